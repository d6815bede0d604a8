"""What no legal data could give is one client's fault; honest answers pass."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fdrsvm import ClientError, InvalidInputError
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, Update
from fdrsvm.federated.methods import ADMM, ADMMSC, Bundle, FedAvg, FedSGD, OneVsRest, Subgradient
from fdrsvm.federated.methods.one_vs_rest import OneVsRestProblem
from fdrsvm.federated.rounds import run_rounds
from fdrsvm.federated.screen import Fault, Screen, check_form, form_of
from tests.federated.cases import (
    NORMS,
    Tampered,
    assert_same_bits,
    blobs,
    gone,
    problems,
    random_clients,
    train,
    with_values,
)
from tests.federated.test_agreement import ROUNDING, truth_of

BAD = "client-1"
OURS = {
    "bundle": Bundle(),
    "summed": Bundle(cuts="summed"),
    "admm": ADMM(rho=0.05),
    "admm-relaxed": ADMM(rho=0.05, tau=0.02, relaxation=1.6, balance=True),
    "admm-sc": ADMMSC(rho=0.01),
    "subgradient": Subgradient(step_size=0.5),
}


def assert_certified_at_the_end(clients, result):
    """Bounds of rounds with lies in them are wrong; the last one is not."""
    optimum, _, highest = truth_of(clients, np.full(len(clients), 1.0 / len(clients)))
    assert result.lower_bound <= highest + ROUNDING * (1.0 + highest)
    assert optimum.low <= result.objective < np.inf


def limits_of(clients, **settings):
    """As tight as the data allow."""
    largest = np.max([np.abs(client.X).max(axis=0) for client in clients], axis=0)
    return Limits.checked(largest, largest.size, **settings)


def faulty(clients, method, change, *, rounds=(3,), max_rounds=5, **settings):
    return train(
        clients,
        method,
        transport=Tampered(InProcess(problems(clients)), BAD, change, rounds=rounds),
        **{"tol": 0.0, "max_rounds": max_rounds, "quorum": 2, "on_fault": "drop", **settings},
    )


def scaled(name, factor):
    return lambda u: with_values(u, **{name: factor * u.values[name]})


def moved(name, step):
    return lambda u: with_values(u, **{name: u.values[name] + step})


def everything(factor):
    return lambda u: replace(u, values={k: factor * v for k, v in u.values.items()})


def assert_dropped(result, text, *, round_=3):
    """Only that client, only in that round, with value and limit; no round is lost."""
    for record in result.history:
        is_bad = record.round == round_
        assert record.n_answers == 3 - is_bad, record.faults
        assert len(record.faults) == is_bad
    (fault,) = result.history[round_ - 1].faults
    assert fault.startswith(f"{BAD}: ")
    assert re.search(text, fault), fault


# --- rules that need nothing agreed ---

ALWAYS = {
    "norm weight": (moved("norm_weights", 0.5), "exceeds epsilon L: .*, limit 0.04"),
    "cut too high": (moved("constants", 5.0), "above a risk of the same answer: .*, limit"),
    "risk too low": (scaled("risks", -1.0), "is below that of any rows|above a risk"),
}


@pytest.mark.parametrize("rule", ALWAYS)
@pytest.mark.parametrize("method", OURS)
def test_an_answer_that_contradicts_profile_or_itself_is_dropped(method, rule):
    change, text = ALWAYS[rule]
    assert_dropped(faulty(blobs(3), OURS[method], change), text)


ADMMS = [name for name in OURS if name.startswith("admm")]
VECTORS = {
    "flip": (scaled("vector", -10.0), "does not follow from the cut"),
    "one entry": (moved("vector", np.array([0.0, 0.3, 0.0, 0.0])), "does not follow from the cut"),
    "slopes": (scaled("slopes", -10.0), "does not follow|above a risk"),
    "squares": (scaled("squares", 1.5), "a square is not that"),
}


@pytest.mark.parametrize("rule", VECTORS)
@pytest.mark.parametrize("method", ADMMS)
def test_a_vector_follows_from_its_cut(method, rule):
    change, text = VECTORS[rule]
    assert_dropped(faulty(blobs(3), OURS[method], change), text)


def test_so_does_its_intercept():
    clients = blobs(3, fit_intercept=True)
    change = moved("vector", np.array([0.0, 0.0, 0.0, 0.0, 1.0]))
    assert_dropped(faulty(clients, ADMM(rho=0.05), change), "the vector's intercept")


@pytest.mark.parametrize("norm", NORMS)
def test_the_limit_on_vectors_is_the_one_in_the_docs(norm):
    """|| rho (c - w_g) - 2 tau w_g - v || <= sigma, from the answer alone, up to the tolerance."""
    clients, tau, rho = blobs(2, norm=norm), 0.03, 0.1
    problem = clients[0].problem("c")
    w = np.array([0.3, -0.2, 0.1, 0.4])
    asked = {"points": w[None], "rho": np.array(rho), "tau": np.array(tau)}
    _, found = ADMM(rho, solver_tol=1e-13).answer(problem, {}, asked)
    centre = w - 1.0
    own = found["vector"] - 1.0
    pull = rho * (centre - own) - 2.0 * tau * own - found["slopes"][0]
    length = np.linalg.norm(pull, {"l1": 1, "l2": 2, "linf": np.inf}[norm])
    gap = 1e-13 * (1.0 + 0.5 * rho * centre @ centre)
    slack = 2.0 * np.sqrt(2.0 * (rho + 2.0 * tau) * gap)  # ||.||_1 <= sqrt(P) ||.||_2
    assert length <= found["norm_weights"][0] + slack
    # The best subgradient of the norm at w_g is what makes it an equality.
    assert pull @ own == pytest.approx(
        found["norm_weights"][0] * np.linalg.norm(own, {"l1": np.inf, "l2": 2, "linf": 1}[norm]),
        abs=1e-5,
    )


def test_a_lost_answer_does_not_lead_server_and_client_apart():
    """Whoever was absent goes on from what the server last took: the next answers are judged."""
    clients = blobs(3)
    for method in ADMMS:
        result = faulty(clients, OURS[method], gone, rounds=(1, 3), max_rounds=8)
        assert [record.n_answers for record in result.history] == [2, 3, 2, 3, 3, 3, 3, 3]
        late = faulty(clients, OURS[method], scaled("vector", -10.0), rounds=(2,), max_rounds=4)
        assert "does not follow" in late.history[1].faults[0]
        assert late.history[2].faults == ()


def test_too_many_cuts_are_refused():
    def more(update):
        names = ("constants", "slopes", "norm_weights")
        return with_values(update, **{n: np.repeat(update.values[n], 3, axis=0) for n in names})

    assert_dropped(faulty(blobs(3), Bundle(), more), "too many cuts: 12, limit 4")
    first = faulty(blobs(3), Bundle(), more, rounds=(1,))
    assert "too many cuts: 6, limit 2" in first.history[0].faults[0]
    only = train(
        blobs(1),
        Bundle(),
        transport=Tampered(InProcess(problems(blobs(1))), "client-0", lambda u: u),
        max_rounds=3,
        tol=0.0,
    )
    assert only.n_rounds == 3


def test_a_single_client_with_too_many_cuts_leaves_nobody():
    def more(update):
        names = ("constants", "slopes", "norm_weights")
        return with_values(update, **{n: np.repeat(update.values[n], 3, axis=0) for n in names})

    clients = blobs(1)
    transport = Tampered(InProcess(problems(clients)), "client-0", more, rounds=(2,))
    with pytest.raises(ClientError, match="too many cuts"):
        train(clients, Bundle(), transport=transport, max_rounds=3)


# --- rules that need limits ---

WITH_LIMITS = {
    "constant": (lambda u: with_values(u, constants=np.full_like(u.values["constants"], 1.1)), ""),
    "negative constant": (moved("constants", -1.5), "constant is negative"),
    "slopes": (scaled("slopes", -10.0), "slope exceeds|touch|above a risk|does not follow"),
    "risk": (moved("risks", 100.0), "risk exceeds .* limit"),
    "all values": (everything(-10.0), "negative"),
}


@pytest.mark.parametrize("rule", WITH_LIMITS)
@pytest.mark.parametrize("method", OURS)
def test_what_no_data_within_the_limits_could_give_is_dropped(method, rule):
    change, text = WITH_LIMITS[rule]
    clients = blobs(3)
    assert_dropped(faulty(clients, OURS[method], change, limits=limits_of(clients)), text)


@pytest.mark.parametrize("method", ["bundle", "summed", "subgradient"])
def test_a_cut_touches_the_risk_where_it_was_made(method):
    clients = blobs(3)
    change = scaled("constants", 0.5)
    result = faulty(clients, OURS[method], change, limits=limits_of(clients))
    assert_dropped(result, "does not touch the risk")


@pytest.mark.parametrize("method", [FedSGD(), FedAvg()], ids=repr)
def test_objective_and_cut_of_the_baselines_are_judged(method):
    clients = blobs(3)
    for change, text in (
        (scaled("slopes", -10.0), "slope exceeds|touch|above a risk"),
        (moved("risks", 1e3), "risk exceeds"),
        (moved("norm_weights", 1e-3), "exceeds epsilon L"),
    ):
        assert_dropped(faulty(clients, method, change, limits=limits_of(clients)), text)


OWN = {
    "worse than nothing": (
        lambda u: with_values(
            u,
            own=10.0 * u.values["own"],
            risks=np.array([1.5]),
            constants=np.zeros(1),
            slopes=np.zeros((1, 5)),
            norm_weights=np.array([0.0]),
        ),
        "",
    ),
    "intercept": (moved("own", np.array([0.0, 0.0, 0.0, 0.0, 1e6])), ""),
    "flip": (scaled("own", -10.0), ""),
}


@pytest.mark.parametrize("rule", OWN)
def test_a_clients_own_optimum_is_judged(rule):
    change, text = OWN[rule]
    clients = blobs(3, fit_intercept=True)
    result = faulty(clients, Bundle(), change, rounds=(1,), limits=limits_of(clients))
    assert_dropped(result, text, round_=1)


def flat_start(update, risk, own):
    """An own optimum with a cut that keeps to every rule on cuts."""
    return with_values(
        update,
        own=own,
        risks=np.array([risk]),
        constants=np.array([risk]),
        slopes=np.zeros((1, own.size)),
        norm_weights=np.zeros(1),
    )


def test_an_own_optimum_is_no_worse_than_nothing_and_no_intercept_is_beyond_all_scores():
    clients = blobs(3, fit_intercept=True, epsilon=0.0)
    limits = limits_of(clients)
    for risk, own, text in (
        (1.2, np.ones(5), "worse than the model 0: 1.2, limit 1"),
        (0.5, np.array([0.0, 0.0, 0.0, 0.0, 1.5]), "intercept of its own optimum .*: 1.5, limit 1"),
    ):

        def change(update, risk=risk, own=own):
            found = flat_start(update, risk, own)
            return with_values(found, constants=np.array([0.6 * risk]))

        paper = replace(limits, worst_case="paper")  # whose cuts need not touch
        result = faulty(clients, Bundle(), change, rounds=(1,), limits=paper)
        assert_dropped(result, text, round_=1)


def test_limits_must_be_for_the_features_there_are():
    with pytest.raises(InvalidInputError, match="limits: must be for 4 features; they are for 3"):
        train(blobs(2), Bundle(), limits=Limits.checked(1.0, 3))


def test_a_loss_of_ones_own_may_have_negative_constants():
    class Late:
        """Hinge that starts at -1: its tangents are negative at 0."""

        name, lipschitz = "late", 1.0

        def value(self, margins):
            return np.maximum(0.0, -1.0 - margins)

        def slope(self, margins):
            return np.where(margins < -1.0, -1.0, 0.0)

    assert Screen(Limits.checked(1.0, 2, loss=Late())).bounds.lowest_constant == -np.inf
    assert Screen(Limits.checked(1.0, 2, loss="logistic")).bounds.lowest_constant == 0.0


# --- the loop ---


@pytest.mark.parametrize("method", OURS)
def test_with_on_fault_stop_the_rule_is_in_the_error(method):
    clients = blobs(3)
    transport = Tampered(InProcess(problems(clients)), BAD, moved("norm_weights", 0.5), rounds=(2,))
    with pytest.raises(ClientError, match=r"exceeds epsilon L: .*, limit 0.04") as caught:
        train(clients, OURS[method], transport=transport, max_rounds=4)
    assert (caught.value.client_id, caught.value.round) == (BAD, 2)


@pytest.mark.parametrize("method", OURS)
def test_a_judged_answer_leaves_no_trace(method):
    clients = blobs(3)
    bad = faulty(clients, OURS[method], moved("norm_weights", 0.5))
    away = faulty(clients, OURS[method], gone)
    history = [
        replace(a, faults=f.faults, faulty=f.faulty, absent=f.absent)
        for a, f in zip(away.history, bad.history, strict=True)
    ]
    assert_same_bits(replace(away, history=tuple(history)), bad)


@pytest.mark.parametrize("method", ["admm", "subgradient"])
def test_the_last_evaluation_is_judged_too(method):
    clients = blobs(3)
    result = faulty(clients, OURS[method], moved("norm_weights", 0.5), rounds=(6,))
    assert result.history[-1].n_answers == 3
    assert "exceeds epsilon L" in result.history[-1].faults[-1]


def test_a_fault_says_rule_value_and_limit():
    assert str(Fault("risk", "too large", 2.0, 1.0)) == "too large: 2, limit 1"
    assert str(Fault("round", "of another round")) == "of another round"


# --- contradictions between rounds ---


class Changing:
    """From some round on a client answers from other data: each answer is right by itself."""

    def __init__(self, clients, others, rounds):
        self.inner, self.rounds = InProcess(problems(clients)), rounds
        self.others = InProcess(problems(others))

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        answers = list(self.inner.exchange(broadcasts, deadline))
        lies = self.others.exchange(broadcasts, deadline)
        if broadcasts[0].round in self.rounds:
            answers[1] = lies[1]
        return answers


@pytest.mark.parametrize("method", ["bundle", "subgradient"])
def test_a_client_that_contradicts_itself_is_named_and_forgotten(method):
    """Labels of one round are the wrong way round; afterwards its honest cuts prove the bound."""
    clients = blobs(3)
    others = [client.with_(y=-client.y) for client in clients]
    settings = {"tol": 0.0, "max_rounds": 25, "quorum": 2}
    with pytest.raises(ClientError, match=r"a cut of one round.* lies above its risk") as caught:
        train(clients, OURS[method], transport=Changing(clients, others, (4,)), **settings)
    assert caught.value.client_id == BAD
    result = train(
        clients,
        OURS[method],
        transport=Changing(clients, others, (4,)),
        on_fault="drop",
        **settings,
    )
    assert result.n_rounds == 25
    faults = [fault for record in result.history for fault in record.faults]
    assert faults
    assert all(fault.startswith(f"{BAD}: a cut of one round") for fault in faults)
    assert all(record.n_answers == 3 for record in result.history[-15:])
    assert_certified_at_the_end(clients, result)


def test_admms_client_is_forgotten_too():
    clients = blobs(3)
    method = ADMM(rho=0.05)

    class Lifted(InProcess):
        def exchange(self, broadcasts, deadline):
            answers = super().exchange(broadcasts, deadline)
            if broadcasts[0].round == 4:  # too low by far, and consistent with its cut
                values = answers[1].values
                answers[1] = with_values(answers[1], risks=0.2 * values["risks"])
            return answers

    result = train(
        clients,
        method,
        transport=Lifted(problems(clients)),
        on_fault="drop",
        quorum=2,
        tol=0.0,
        max_rounds=30,
    )
    assert result.history[3].n_answers == 2
    assert_certified_at_the_end(clients, result)


# --- sums, and several models ---


class Sums(InProcess):
    """Weighted sums over clients, as secure aggregation gives them, under one name."""

    gives_sums = True

    def join(self):
        profiles = super().join()
        return [
            replace(
                profiles[0],
                client_id="all",
                epsilon=float(np.mean([p.epsilon for p in profiles])),
                floor=float(np.mean([p.floor for p in profiles])),
            )
        ]

    def exchange(self, broadcasts, deadline):
        (broadcast,) = broadcasts
        asked = [replace(broadcast, client_id=p.client_id) for p in super().join()]
        found = [answer.values for answer in super().exchange(asked, deadline)]
        values = {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}
        return [Update(broadcast.run_id, broadcast.round, "all", values)]


@pytest.mark.parametrize("method", ["summed", "admm", "subgradient"])
def test_sums_keep_to_the_rules_that_are_left(method):
    clients = blobs(3, fit_intercept=True)
    result = train(
        clients,
        OURS[method],
        transport=Sums(problems(clients)),
        limits=limits_of(clients),
        tol=0.0,
        max_rounds=8,
    )
    assert result.n_rounds == 8
    assert all(record.faults == () for record in result.history)
    spoiled = Tampered(Sums(problems(clients)), "all", scaled("slopes", 1e3), rounds=(1,))
    with pytest.raises(ClientError, match="slope exceeds"):
        train(clients, OURS[method], transport=spoiled, limits=limits_of(clients))


def several(clients, n_models=3):
    rng = np.random.default_rng(0)
    return [
        OneVsRestProblem(
            tuple(
                c.with_(y=rng.choice([-1.0, 1.0], c.y.size)).problem(f"client-{g}")
                for _ in range(n_models)
            )
        )
        for g, c in enumerate(clients)
    ]


@pytest.mark.parametrize("method", ["bundle", "admm", "subgradient"])
def test_several_models_are_judged_one_by_one(method):
    clients = blobs(3)
    settings = {"max_rounds": 4, "tol": 0.0, "run_id": "r", "limits": limits_of(clients)}
    algorithm = OneVsRest(OURS[method], 3)
    honest = run_rounds(InProcess(several(clients)), algorithm, **settings)
    assert all(record.faults == () for record in honest.history)
    transport = Tampered(InProcess(several(clients)), BAD, moved("2/norm_weights", 0.5))
    with pytest.raises(ClientError, match=r"round 2: model 2: .*exceeds epsilon L"):
        run_rounds(transport, algorithm, **settings)


def test_a_contradiction_in_one_model_is_forgotten_in_all():
    clients = blobs(3)
    algorithm = OneVsRest(Bundle(), 3)
    lowered = Tampered(InProcess(several(clients)), BAD, scaled("1/risks", 1e-3), rounds=(4,))
    result = run_rounds(
        lowered, algorithm, max_rounds=8, tol=0.0, run_id="r", quorum=2, on_fault="drop"
    )
    assert result.history[3].n_answers == 2
    assert "model 1" in result.history[3].faults[0]
    assert result.history[-1].n_answers == 3


# --- honest answers ---


@pytest.mark.parametrize("method", OURS)
def test_honest_clients_pass_with_the_tightest_limits(method):
    for seed in range(12):
        boxed = False if method.startswith("admm") else None
        clients, alphas = random_clients(900 + seed, boxed=boxed)
        limits = limits_of(clients)
        if clients[0].box is not None:
            limits = Limits.checked(np.max(np.abs(clients[0].box), axis=0), len(limits.features))
        result = train(clients, OURS[method], alphas=alphas, limits=limits, tol=1e-6, max_rounds=12)
        assert all(record.faults == () for record in result.history)


# --- form ---


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"client_id": "b"}, "client"),
        ({"run_id": "another"}, "run"),
        ({"round": 2}, "round"),
        ({"values": {}}, "names"),
        ({"values": {"risks": [1.0]}}, "dtype"),
        ({"values": {"risks": np.ones(1, np.float32)}}, "dtype"),
        ({"values": {"risks": np.ones((1, 1))}}, "shape"),
        ({"values": {"risks": np.array([np.inf])}}, "finite"),
    ],
    ids=str,
)
def test_the_form_comes_first(changes, rule):
    broadcast = Broadcast("run", 3, "a", "{}", {})
    answer = Update("run", 3, "a", {"risks": np.ones(1)})
    form = form_of((("risks", (1,)),))
    assert check_form(answer, broadcast, form) is None
    assert check_form(replace(answer, **changes), broadcast, form).rule == rule


def test_cuts_whose_number_is_free_must_agree_in_it():
    form = form_of((("constants", (None,)), ("slopes", (None, 2)), ("norm_weights", (None,))))
    values = {"constants": np.ones(2), "slopes": np.ones((2, 2)), "norm_weights": np.ones(2)}
    broadcast, answer = Broadcast("run", 3, "a", "{}", {}), Update("run", 3, "a", values)
    assert check_form(answer, broadcast, form) is None
    fault = check_form(with_values(answer, slopes=np.ones((3, 2))), broadcast, form)
    assert str(fault) == "its cuts are [2, 3] in number"
