"""The loop: what stops it, what it says, and that nothing wrong is ever aggregated."""

import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from fdrsvm import ConvergenceWarning, InvalidInputError, UnsupportedError
from fdrsvm.core.losses import Hinge
from fdrsvm.errors import ClientError, QuorumError
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods import ADMM, ADMMSC, Bundle, Subgradient
from fdrsvm.federated.problem import make_client
from fdrsvm.federated.rounds import Failure, Stop, run_rounds
from tests.federated.cases import (
    METHODS,
    Recorded,
    Tampered,
    assert_same_bits,
    blobs,
    gone,
    names,
    problems,
    random_clients,
    train,
    with_values,
)

OURS = ("bundle", "summed", "admm", "subgradient")


# --- stopping ---


@pytest.mark.parametrize("method", METHODS)
def test_without_a_tolerance_all_rounds_are_used_in_silence(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run_rounds(
            InProcess(problems(blobs(2))), METHODS[method], max_rounds=9, tol=0.0, run_id="r"
        )
    assert result.reason is Stop.MAX_ROUNDS
    assert [record.round for record in result.history] == list(range(1, 10))
    assert result.n_rounds == 9


@pytest.mark.parametrize("method", METHODS)
def test_too_few_rounds_warn_with_the_gap(method):
    with pytest.warns(ConvergenceWarning, match="certified relative gap") as caught:
        result = run_rounds(
            InProcess(problems(blobs(2))), METHODS[method], max_rounds=2, tol=1e-9, run_id="r"
        )
    assert f"{result.gap:.1e}" in str(caught[0].message)
    assert METHODS[method].name in str(caught[0].message)
    assert caught[0].filename == __file__
    assert result.reason is Stop.MAX_ROUNDS


@pytest.mark.parametrize("method", ["bundle", "summed"])
def test_it_stops_at_the_first_round_within_tol(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run_rounds(InProcess(problems(blobs(3))), METHODS[method], tol=1e-3)
    gaps = [record.gap for record in result.history]
    assert result.reason is Stop.TOL
    assert gaps[-1] <= 1e-3 < min(gaps[:-1])
    assert result.gap <= 1e-3


def test_callbacks_see_every_round_and_may_stop():
    seen = []

    def look(record, model):
        seen.append((record, model.copy()))

    result = run_rounds(
        InProcess(problems(blobs(2))),
        Bundle(),
        tol=0.0,
        max_rounds=50,
        callbacks=[look, lambda record, _: record.round == 4],
    )
    assert result.reason is Stop.CALLBACK
    assert [record for record, _ in seen] == list(result.history)
    assert len(seen) == 4
    assert all(model.shape == (4,) for _, model in seen)
    np.testing.assert_array_equal(seen[-1][1], result.newest)


def test_a_callback_that_raises_ends_the_run_with_its_error():
    def stumble(record, model):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_rounds(InProcess(problems(blobs(2))), Bundle(), callbacks=[stumble])


@pytest.mark.parametrize("method", METHODS)
def test_the_last_model_is_evaluated_but_not_counted(method):
    clients = blobs(2)
    transport = Recorded(InProcess(problems(clients)))
    result = train(clients, METHODS[method], transport=transport, max_rounds=5, tol=0.0)
    assert result.n_rounds == len(result.history) == 5
    assert len(transport.rounds) in (5, 6)
    assert result.objective <= result.history[-1].objective
    assert result.lower_bound >= result.history[-1].lower_bound
    if method in ("admm", "admm-sc", "subgradient"):  # their newest model is always unknown
        ((broadcasts, _),) = transport.rounds[5:]
        np.testing.assert_array_equal(broadcasts[0].values["points"][0], result.newest)
    if method == "admm":  # it is still going down
        assert result.objective < result.history[-1].objective
        np.testing.assert_array_equal(result.model, result.newest)


def test_a_fault_in_the_last_evaluation_does_not_undo_the_run():
    clients = blobs(3)
    lost = Tampered(InProcess(problems(clients)), "client-1", gone, rounds=(6,))
    broken = Tampered(
        InProcess(problems(clients)),
        "client-1",
        lambda u: with_values(u, risks=np.array([np.nan])),
        rounds=(6,),
    )
    whole = train(clients, ADMM(rho=0.05), max_rounds=5, tol=0.0)
    for transport in (lost, broken):
        result = train(clients, ADMM(rho=0.05), transport=transport, max_rounds=5, tol=0.0)
        assert result.history[-1].objective == whole.history[-1].objective
        assert result.objective == result.history[-1].objective
        np.testing.assert_array_equal(result.newest, whole.newest)


def test_records_hold_times_and_answers():
    result = train(blobs(3), Bundle(), max_rounds=4, tol=0.0)
    for record in result.history:
        assert record.n_answers == 3
        assert record.faults == ()
        assert record.seconds > 0.0
        assert 0.0 < record.server_seconds <= record.seconds


# --- faults ---


def scaled_by(factor, name):
    return lambda u: with_values(u, **{name: factor * u.values[name]})


def first_entry(name, value):
    def change(u):
        array = u.values[name].copy()
        array.flat[0] = value
        return with_values(u, **{name: array})

    return change


FAULTS = {
    "nan": (first_entry("risks", np.nan), "risks is not finite"),
    "nan in a slope": (first_entry("slopes", np.nan), "slopes is not finite"),
    "inf": (first_entry("constants", np.inf), "constants is not finite"),
    "minus inf": (first_entry("slopes", -np.inf), "slopes is not finite"),
    "wrong shape": (lambda u: with_values(u, risks=np.zeros((3, 3))), "risks has shape"),
    "wrong width": (
        lambda u: with_values(u, slopes=np.ascontiguousarray(u.values["slopes"][:, :-1])),
        "slopes has shape",
    ),
    "scalar": (lambda u: with_values(u, risks=np.array(1.0)), "risks has shape"),
    "missing name": (lambda u: with_values(u, risks=None), "the answer holds"),
    "extra name": (lambda u: with_values(u, X=np.zeros((2, 2))), "the answer holds"),
    "other name": (lambda u: with_values(u, risks=None, risk=np.zeros(1)), "the answer holds"),
    "nothing": (lambda u: replace(u, values={}), "the answer holds"),
    "float32": (
        lambda u: with_values(u, risks=u.values["risks"].astype(np.float32)),
        "risks is not an array of float64",
    ),
    "integers": (
        lambda u: with_values(u, risks=u.values["risks"].astype(np.int64)),
        "risks is not an array of float64",
    ),
    "objects": (
        lambda u: with_values(u, risks=u.values["risks"].astype(object)),
        "risks is not an array of float64",
    ),
    "a list": (
        lambda u: with_values(u, risks=u.values["risks"].tolist()),
        "risks is not an array of float64",
    ),
    "stale round": (lambda u: replace(u, round=u.round - 1), "is of round 1, not 2"),
    "future round": (lambda u: replace(u, round=u.round + 1), "is of round 3, not 2"),
    "other run": (lambda u: replace(u, run_id="another"), "another run"),
    "other client": (lambda u: replace(u, client_id="client-0"), "from 'client-0'"),
    "unknown client": (lambda u: replace(u, client_id="nobody"), "from 'nobody'"),
    "negative norm weight": (first_entry("norm_weights", -1e-3), "norm_weights"),
    "unequal cuts": (
        lambda u: with_values(
            u,
            constants=np.append(u.values["constants"], 0.0),
            norm_weights=np.append(u.values["norm_weights"], 0.0),
        ),
        "",
    ),
    "more slopes": (
        lambda u: with_values(u, slopes=np.vstack([u.values["slopes"], u.values["slopes"]])),
        "",
    ),
    "an error": (lambda u: Failure(u.client_id, "ValueError: disk full"), "disk full"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", OURS)
def test_a_fault_stops_the_run_and_names_client_and_round(method, fault):
    change, reason = FAULTS[fault]
    clients = blobs(3)
    transport = Tampered(InProcess(problems(clients)), "client-1", change)
    with pytest.raises(ClientError) as caught:
        train(clients, METHODS[method], transport=transport, tol=0.0, max_rounds=4)
    assert caught.value.client_id == "client-1"
    assert caught.value.round == 2
    assert reason in caught.value.reason
    assert "client 'client-1', round 2" in str(caught.value)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", OURS)
def test_a_dropped_answer_leaves_no_trace_but_its_record(method, fault):
    """The same bits as if that client had been away in that round."""
    change, reason = FAULTS[fault]
    clients = blobs(3)
    settings = {"tol": 0.0, "max_rounds": 6, "quorum": 2}
    faulty = train(
        clients,
        METHODS[method],
        transport=Tampered(InProcess(problems(clients)), "client-1", change),
        on_fault="drop",
        **settings,
    )
    away = train(
        clients,
        METHODS[method],
        transport=Tampered(InProcess(problems(clients)), "client-1", gone),
        **settings,
    )
    assert [record.n_answers for record in faulty.history] == [3, 2, 3, 3, 3, 3]
    (named,) = faulty.history[1].faults
    assert named.startswith("client-1: ")
    assert reason in named
    assert all(record.faults == () for k, record in enumerate(faulty.history) if k != 1)
    assert away.history[1].faults == ("client-1: away",)
    same = [
        replace(a, faults=f.faults, bytes_up=f.bytes_up, faulty=f.faulty, absent=f.absent)
        for a, f in zip(away.history, faulty.history, strict=True)
    ]
    assert_same_bits(replace(away, history=tuple(same)), faulty)


@pytest.mark.parametrize("fault", ["nan", "wrong width", "an error", "missing name"])
def test_a_fault_in_the_bundles_first_round_is_dropped_too(fault):
    change, _ = FAULTS[fault]
    clients = blobs(3)
    results = [
        train(
            clients,
            Bundle(),
            transport=Tampered(InProcess(problems(clients)), "client-2", how, rounds=(1,)),
            tol=1e-4,
            quorum=2,
            on_fault="drop",
        )
        for how in (change, gone)
    ]
    np.testing.assert_array_equal(results[0].model, results[1].model)
    assert results[0].reason is Stop.TOL


@pytest.mark.parametrize("method", ["bundle", "summed"])
def test_a_consistent_answer_with_too_few_cuts_names_its_client(method):
    """One cut where two points were asked for: sums over clients would not even have a shape."""

    def fewer(u):
        return with_values(
            u, **{n: u.values[n][:1].copy() for n in ("constants", "slopes", "norm_weights")}
        )

    clients = blobs(3)
    transport = Tampered(InProcess(problems(clients)), "client-1", fewer, rounds=(3,))
    with pytest.raises(ClientError, match="client 'client-1', round 3"):
        train(clients, METHODS[method], transport=transport, tol=0.0, max_rounds=5)


def test_a_negative_square_names_its_client():
    clients = blobs(3)
    transport = Tampered(
        InProcess(problems(clients)), "client-1", scaled_by(-1.0, "squares"), rounds=(3,)
    )
    with pytest.raises(ClientError, match="client 'client-1', round 3"):
        train(clients, ADMM(rho=0.05), transport=transport, tol=0.0, max_rounds=5)


def test_large_but_finite_numbers_pass_without_a_warning():
    clients = blobs(2)
    transport = Tampered(
        InProcess(problems(clients)), "client-1", first_entry("risks", 1e200), rounds=(2,)
    )
    result = train(clients, Subgradient(), transport=transport, tol=0.0, max_rounds=4)
    assert result.n_rounds == 4


class Stumbling:
    """A loss that fails: an error inside a client, found on the usual way."""

    name, lipschitz = "stumbling", 1.0

    def __init__(self, at_call):
        self.at_call, self.calls = at_call, 0
        self.is_armed = False  # not before its client is made

    def value(self, margins):
        self.calls += self.is_armed
        if self.calls > self.at_call:
            raise OSError("sensor gone")
        return Hinge().value(margins)

    def slope(self, margins):
        return Hinge().slope(margins)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_inside_a_client_names_it(n_threads):
    clients = blobs(3)

    def transport():
        made, loss = problems(clients), Stumbling(at_call=4)
        made[1] = make_client("client-1", clients[1].X, clients[1].y, epsilon=0.04, loss=loss)
        loss.is_armed = True
        return InProcess(made, n_threads=n_threads)

    with pytest.raises(ClientError, match="sensor gone") as caught:
        train(clients, Subgradient(), transport=transport(), tol=0.0, max_rounds=8)
    assert (caught.value.client_id, caught.value.round) == ("client-1", 3)
    result = train(
        clients,
        Subgradient(),
        transport=transport(),
        tol=0.0,
        max_rounds=4,
        on_fault="drop",
        quorum=2,
    )
    assert [record.n_answers for record in result.history] == [3, 3, 2, 2]
    assert "OSError: sensor gone" in result.history[2].faults[0]


# --- quorum and deadline ---


def test_too_few_answers_name_everybody_missing():
    clients = blobs(4)

    class Half:
        def __init__(self):
            self.inner = InProcess(problems(clients))

        def join(self):
            return self.inner.join()

        def exchange(self, broadcasts, deadline):
            return [
                gone(answer) if answer.client_id in ("client-1", "client-3") else answer
                for answer in self.inner.exchange(broadcasts, deadline)
            ]

    for quorum in (None, 3):
        with pytest.raises(QuorumError) as caught:
            train(clients, Bundle(), transport=Half(), quorum=quorum)
        assert caught.value.n_answers == 2
        assert caught.value.quorum == quorum or quorum is None
        assert caught.value.round == 1
        assert "client-1" in str(caught.value)
        assert "client-3" in str(caught.value)
        assert "client-0" not in str(caught.value)
    assert train(clients, Bundle(), transport=Half(), quorum=2, max_rounds=3).n_rounds == 3


class Waiting(Stumbling):
    """A loss that takes its time: until told, or for some seconds."""

    def __init__(self, seconds=60.0):
        self.go_on, self.seconds, self.is_armed = threading.Event(), seconds, False
        self.inside, self.most_inside, self.lock = 0, 0, threading.Lock()

    def value(self, margins):
        with self.lock:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        if self.is_armed:
            self.go_on.wait(self.seconds)
        with self.lock:
            self.inside -= 1
        return Hinge().value(margins)


def with_a_slow_client(clients, loss, n_threads):
    made = problems(clients)
    made[-1] = make_client(f"client-{len(clients) - 1}", clients[-1].X, clients[-1].y, loss=loss)
    loss.is_armed = True
    return InProcess(made, n_threads=n_threads)


def test_in_threads_a_slow_client_is_left_behind_and_may_come_back():
    clients, loss = blobs(3), Waiting()
    transport = with_a_slow_client(clients, loss, 4)

    def release(record, model):
        if record.round == 2:
            loss.go_on.set()
            time.sleep(0.5)

    try:
        result = train(
            clients,
            Subgradient(),
            transport=transport,
            tol=0.0,
            max_rounds=5,
            quorum=2,
            deadline=0.5,
            callbacks=[release],
        )
    finally:
        loss.go_on.set()
    assert [record.n_answers for record in result.history[:2]] == [2, 2]
    assert result.history[-1].n_answers == 3
    assert loss.most_inside == 1  # while busy it is not asked again
    for record in result.history[:2]:
        assert record.faults == ("client-2: no answer within the deadline",)


def test_in_turn_a_slow_client_is_late():
    clients = blobs(3)
    transport = with_a_slow_client(clients, Waiting(seconds=0.3), 1)  # it is asked twice a risk
    result = train(
        clients,
        Subgradient(),
        transport=transport,
        tol=0.0,
        max_rounds=1,
        quorum=2,
        deadline=0.5,
    )
    assert result.history[0].faults == ("client-2: no answer within the deadline",)


@pytest.mark.parametrize("on_fault", ["stop", "drop"])
def test_a_late_client_is_missing_not_at_fault(on_fault):
    clients = blobs(2)
    loss = Waiting()
    transport = with_a_slow_client(clients, loss, 2)
    try:
        with pytest.raises(QuorumError, match="client-1: no answer within the deadline"):
            train(clients, Subgradient(), transport=transport, deadline=0.3, on_fault=on_fault)
    finally:
        loss.go_on.set()


# --- bad input ---


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("max_rounds", 0),
        ("max_rounds", -3),
        ("max_rounds", np.nan),
        ("max_rounds", "10"),
        ("max_rounds", 2.5),
        ("max_rounds", None),
        ("tol", -1e-3),
        ("tol", np.nan),
        ("tol", np.inf),
        ("tol", "small"),
        ("quorum", 0),
        ("quorum", 3),
        ("quorum", 1.0),
        ("quorum", True),
        ("deadline", 0.0),
        ("deadline", -1.0),
        ("deadline", np.nan),
        ("deadline", "soon"),
        ("on_fault", "ignore"),
        ("on_fault", None),
        ("client_weights", "size"),
        ("client_weights", [1.0]),
        ("client_weights", [1.0, 1.0, 1.0]),
        ("client_weights", [[1.0, 1.0]]),
        ("client_weights", [1.0, -0.5]),
        ("client_weights", [0.0, 0.0]),
        ("client_weights", [1.0, np.nan]),
        ("client_weights", [1.0, np.inf]),
        ("client_weights", ["1", "2"]),
        ("client_weights", None),
        ("client_weights", {"client-0": 1.0}),
        ("client_weights", {"client-0": 1.0, "client-7": 1.0}),
        ("client_weights", {"client-0": 1.0, "client-1": 1.0, "client-2": 1.0}),
        ("client_weights", {"client-0": 1.0, "client-1": -1.0}),
        ("client_weights", {"client-0": 1.0, "client-1": np.nan}),
        ("client_weights", {"client-0": 1.0, 1: 1.0}),
    ],
    ids=str,
)
def test_a_bad_argument_is_named_before_anything_is_sent(argument, value):
    transport = Recorded(InProcess(problems(blobs(2))))
    with pytest.raises(InvalidInputError, match=argument):
        run_rounds(transport, Bundle(), **{argument: value})
    assert transport.rounds == []


def test_client_weights_of_every_kind():
    clients = blobs(3, n_samples=10)  # 10, 11 and 12 samples
    for weights, expected in (
        ("equal", [1 / 3] * 3),
        ("samples", [10 / 33, 11 / 33, 12 / 33]),
        ([1, 2, 5], [1 / 8, 2 / 8, 5 / 8]),
        (np.array([0.0, 3.0, 1.0]), [0.0, 0.75, 0.25]),
        ({"client-2": 3.0, "client-0": 1.0, "client-1": 0.0}, [0.25, 0.0, 0.75]),
        ([1e300, 1e300, 2e300], [0.25, 0.25, 0.5]),
        ([1e-300, 1e-300, 2e-300], [0.25, 0.25, 0.5]),
    ):
        result = train(clients, Subgradient(), alphas=weights, max_rounds=1, tol=0.0)
        np.testing.assert_allclose(result.federation.alphas, expected, rtol=1e-15)
        np.testing.assert_allclose(result.federation.alphas @ result.risks, result.objective)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Bundle(cuts="all"), "cuts"),
        (lambda: Bundle(level=0.0), "level"),
        (lambda: Bundle(level=1.0), "level"),
        (lambda: Bundle(level=np.nan), "level"),
        (lambda: Bundle(max_age=0), "max_age"),
        (lambda: Bundle(max_age=1.5), "max_age"),
        (lambda: Bundle(max_cuts=0), "max_cuts"),
        (lambda: Bundle(max_cuts=0.5), "max_cuts"),
        (lambda: Bundle(max_cuts="many"), "max_cuts"),
        (lambda: ADMM(rho=0.0), "rho"),
        (lambda: ADMM(rho=-1.0), "rho"),
        (lambda: ADMM(rho=np.inf), "rho"),
        (lambda: ADMM(rho="1"), "rho"),
        (lambda: ADMM(tau=-1.0), "tau"),
        (lambda: ADMMSC(tau=np.nan), "tau"),
        (lambda: ADMM(relaxation=0.0), "relaxation"),
        (lambda: ADMM(relaxation=2.0), "relaxation"),
        (lambda: ADMM(relaxation=np.nan), "relaxation"),
        (lambda: ADMM(residual_tol=-1.0), "residual_tol"),
        (lambda: ADMM(solver_tol=0.0), "solver_tol"),
        (lambda: Subgradient(step_size=0.0), "step_size"),
        (lambda: Subgradient(step_size=np.inf), "step_size"),
        (lambda: Subgradient(step_decay="1/t^2"), "step_decay"),
        (lambda: Subgradient(step_decay=None), "step_decay"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_methods_settings_are_checked(make, argument):
    with pytest.raises(InvalidInputError, match=argument):
        make()


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"client_id": ""}, "client_id"),
        ({"client_id": 3}, "client_id"),
        ({"X": np.zeros((0, 2))}, "X"),
        ({"X": np.array([[np.nan, 0.0]] * 4)}, "X"),
        ({"X": np.zeros(4)}, "X"),
        ({"X": 3.0}, "X"),
        ({"X": np.array(3.0)}, "X"),
        ({"y": np.zeros(4)}, "y"),
        ({"y": np.ones(3)}, "y"),
        ({"epsilon": -0.1}, "epsilon"),
        ({"epsilon": "paper"}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"kappa": 0.0}, "kappa"),
        ({"norm": "l3"}, "norm"),
        ({"loss": "square"}, "loss"),
        ({"worst_case": "best"}, "worst_case"),
        ({"support": (1.0, 0.0)}, "support"),
        ({"sample_weight": -np.ones(4)}, "sample_weight"),
    ],
    ids=str,
)
def test_a_clients_data_are_checked(change, argument):
    arguments = {"client_id": "c", "X": np.eye(4)[:, :2], "y": np.array([1.0, -1.0, 1.0, -1.0])}
    arguments |= change
    with pytest.raises(InvalidInputError, match=argument):
        make_client(arguments.pop("client_id"), arguments.pop("X"), arguments.pop("y"), **arguments)


def test_the_radius_of_the_paper_is_the_default():
    (client,) = blobs(1, n_samples=25)
    assert make_client("c", client.X, client.y).profile.epsilon == 1.0 / 250.0
    assert make_client("c", client.X.tolist(), client.y).profile.epsilon == 1.0 / 250.0


def test_clients_must_agree_on_the_model():
    one = blobs(1)[0]
    for other, rule in (
        (one.with_(X=one.X[:, :3]), "n_features"),
        (one.with_(norm="l2"), "norm"),
        (one.with_(fit_intercept=True), "fit_intercept"),
    ):
        with pytest.raises(InvalidInputError, match=rule) as caught:
            train([one, other], Bundle())
        assert "client-1" in str(caught.value)


def test_clients_must_have_an_id_of_their_own():
    (client,) = blobs(1)
    twins = [client.problem("a"), client.problem("b"), client.problem("a")]
    with pytest.raises(InvalidInputError, match="'a'"):
        run_rounds(InProcess(twins), Bundle())
    with pytest.raises(InvalidInputError, match="clients"):
        run_rounds(InProcess([]), Bundle())


def test_admm_says_what_it_cannot_do():
    clients, _ = random_clients(1, n_clients=2, boxed=True, kind="plain")
    with pytest.raises(ClientError, match=r"UnsupportedError: admm .* without a support"):
        train(clients, ADMM())
    problem = clients[0].with_(box=None, worst_case="paper").problem("c")
    with pytest.raises(UnsupportedError):
        ADMM().answer(
            problem,
            {},
            {"points": np.zeros((1, problem.width)), "rho": np.array(1.0), "tau": np.array(0.0)},
        )


def test_a_loss_that_may_be_negative_is_not_certified_at_zero():
    """1 - m without the zero piece falls below 0, and so may the optimum: 0 is no bound then."""

    class Line:
        name, lipschitz = "line", 1.0

        def value(self, margins):
            return 1.0 - margins

        def slope(self, margins):
            return np.full_like(margins, -1.0)

    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    try:
        client = make_client("c", X, y, epsilon=0.01, kappa=np.inf, loss=Line())
    except (InvalidInputError, UnsupportedError):
        return  # to refuse such a loss is as good
    result = train([], Subgradient(), transport=InProcess([client]), tol=0.0, max_rounds=5)
    assert result.lower_bound <= result.objective


def test_names_are_in_order():
    result = train(blobs(3), Bundle(), max_rounds=2, tol=0.0)
    assert result.federation.client_ids == tuple(names(3))


def test_one_round_of_the_bundle_gives_a_model_with_a_certificate():
    """Its first round asks for the clients' own optima only; their mean is evaluated at the end."""
    result = train(blobs(3), Bundle(), max_rounds=1, tol=0.0)
    assert np.isfinite(result.objective)
    assert 0.0 <= result.gap < 1.0
    assert np.isfinite(result.risks).all()
    assert result.model.any()
