"""Lies that are consistent with themselves: what no legal data could give names its client."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from fdrsvm import (
    FDRSVC,
    ClientError,
    DegenerateModelWarning,
    InvalidInputError,
    NumericalError,
    worst_case_risk,
)
from fdrsvm.federated import ADMM, Bundle, InProcess, make_client, run_rounds
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.methods import FedAvg, FedDRO, FedSGD, Subgradient
from fdrsvm.federated.problem import evaluate
from fdrsvm.federated.rounds import Stop
from tests.federated.cases import Tampered, blobs, gone, problems, train, with_values

BAD = "client-1"
METHODS = {
    "bundle": Bundle(),
    "summed": Bundle(cuts="summed"),
    "admm": ADMM(rho=0.05),
    "subgradient": Subgradient(step_size=0.5),
}
FROM_ZERO = ("admm", "subgradient")
INTERCEPT = pytest.mark.parametrize("fit_intercept", [False, True])


def limits_of(clients, factor=1.0):
    largest = np.max([np.abs(client.X).max(axis=0) for client in clients], axis=0)
    return Limits.checked(factor * largest, largest.size)


class Playing:
    """One client answers with a function of its own; ADMM's vectors are left as they are."""

    def __init__(self, clients, play, from_round=1):
        self.inner = InProcess(problems(clients))
        self.play, self.from_round = play, from_round

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        answers = self.inner.exchange(broadcasts, deadline)
        return [self._played(b, a) for b, a in zip(broadcasts, answers, strict=True)]

    def _played(self, broadcast, answer):
        if broadcast.client_id != BAD or broadcast.round < self.from_round:
            return answer
        points = broadcast.values["points"]
        if not len(points):
            points = answer.values["own"][None]
        found = [self.play(point) for point in points]
        n_cuts = len(points)
        return with_values(
            answer,
            risks=np.array([risk for risk, *_ in found]),
            constants=np.array([constant for _, constant, _, _ in found])[:n_cuts],
            slopes=np.array([slope for *_, slope, _ in found])[:n_cuts],
            norm_weights=np.array([weight for *_, weight in found])[:n_cuts],
        )


def size_of_the_weights(point):
    """f(w) = ||w||_1 with cuts of constant 0 and slope sign(w): convex, and of no rows."""
    return float(np.abs(point).sum()), 0.0, np.sign(point), 0.0


def no_loss(point):
    """As if all rows were classified well by every model, the model 0 among them."""
    return 0.04 * float(np.abs(point[:4]).sum()), 0.0, np.zeros_like(point), 0.04


def never_below_a_half(point):
    """A constant: legal rows can give it only where scores can reach the margin."""
    return 0.5, 0.5, np.zeros_like(point), 0.0


@INTERCEPT
@pytest.mark.parametrize(
    ("play", "method"),
    [
        *((size_of_the_weights, method) for method in METHODS),
        # These start at the model 0; elsewhere well placed rows could give such risks.
        *((play, method) for play in (no_loss, never_below_a_half) for method in FROM_ZERO),
    ],
)
def test_a_function_of_no_rows_names_its_client(play, method, fit_intercept):
    clients = blobs(4, fit_intercept=fit_intercept, epsilon=0.04)
    with pytest.raises(ClientError) as caught:
        train(
            clients,
            METHODS[method],
            transport=Playing(clients, play),
            limits=limits_of(clients),
            max_rounds=30,
        )
    assert caught.value.client_id == BAD


@pytest.mark.parametrize("method", ["bundle", "summed", "subgradient"])
def test_a_wide_limit_buys_no_slack(method):
    """A limit a thousand times too wide, cuts lifted by .003: named, whatever the scores may be.

    ADMM's cuts touch the risk where the server does not know it: there it could be other rows.
    """
    clients = blobs(4)

    def lifted(update):
        return with_values(update, constants=update.values["constants"] + 0.003)

    settings = {"limits": limits_of(clients, 1000.0), "max_rounds": 30}
    transport = Tampered(InProcess(problems(clients)), BAD, lifted, rounds=range(2, 99))
    with pytest.raises(ClientError) as caught:
        train(clients, METHODS[method], transport=transport, **settings)
    assert caught.value.client_id == BAD
    assert train(clients, METHODS[method], **settings).history[-1].faults == ()


@pytest.mark.parametrize("floor", [1.0, 1e300, 0.039, 0.0400001])
def test_a_floor_that_does_not_follow_from_the_radius_is_refused(floor):
    class Claiming(InProcess):
        def join(self):
            first, second, *others = super().join()
            return [first, replace(second, floor=floor), *others]

    clients = blobs(4)
    with pytest.raises(InvalidInputError, match=r"'client-1'.*floor must be epsilon L = 0\.04"):
        run_rounds(Claiming(problems(clients)), Bundle())


def test_a_radius_beside_which_nothing_else_counts_is_refused():
    class Huge(InProcess):
        def join(self):
            first, second, *others = super().join()
            return [first, replace(second, epsilon=1e300, floor=1e300), *others]

    with pytest.raises(InvalidInputError, match=r"'client-1'.*radius must be at most 1e\+09"):
        run_rounds(Huge(problems(blobs(4))), Bundle())


def test_floors_of_other_losses_and_of_boxes_are_right():
    X, y = [[0.1], [0.9]], [-1, 1]
    for settings in ({"loss": "logistic"}, {"support": "unit-box"}, {"epsilon": 0.0}):
        client = make_client("c", X, y, **{"epsilon": 0.1, **settings})
        run_rounds(InProcess([client]), Subgradient(), max_rounds=2, tol=0.0)


def test_a_floor_of_a_steeper_loss_needs_its_limits():
    class Steep:
        name, lipschitz = "steep", 2.0

        def value(self, margins):
            return np.maximum(0.0, 1.0 - 2.0 * margins)

        def slope(self, margins):
            return np.where(margins < 0.5, -2.0, 0.0)

    client = make_client("c", [[0.1], [0.9]], [-1, 1], epsilon=0.1, loss=Steep())
    limits = Limits.checked(None, 1, loss=Steep())
    run_rounds(InProcess([client]), Subgradient(), max_rounds=2, tol=0.0, limits=limits)
    with pytest.raises(InvalidInputError, match=r"floor.*limits say what L is"):
        run_rounds(InProcess([client]), Subgradient(), max_rounds=2, tol=0.0)
    X, y = np.random.default_rng(0).random((20, 2)), np.arange(20) % 2
    model = FDRSVC(loss=Steep(), algorithm="subgradient", max_rounds=3, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateModelWarning)
        assert model.fit(X, y, clients=np.arange(20) % 3).objective_ < np.inf


@pytest.mark.parametrize("method", [FedSGD(), FedAvg(), FedDRO()])
def test_honest_baselines_of_separable_rows_are_believed(method):
    """Their objective is no worst case: floors do not bound it, and it may be nearly 0."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=30)
    clients = []
    for g in range(4):
        X = rng.random((20, 30))
        y = np.where((X - 0.5) @ direction > 0.0, 1.0, -1.0)
        clients.append(make_client(f"client-{g}", X, y))
    limits = Limits.checked("unit-box", 30)
    result = run_rounds(InProcess(clients), method, limits=limits, max_rounds=30, tol=0.0)
    assert all(record.faults == () for record in result.history)


def test_contradictions_in_sums_of_cuts_end_no_run_that_drops():
    """FedAvg's bounds are of sums: nobody can be named, so what was proved is forgotten."""
    clients = blobs(4)
    easy = [client.with_(X=50.0 * client.X) for client in clients]

    class Changing:
        """Other data from round 40 on."""

        def __init__(self):
            self.honest, self.lying = InProcess(problems(clients)), InProcess(problems(easy))

        def join(self):
            return self.honest.join()

        def exchange(self, broadcasts, deadline):
            inner = self.honest if broadcasts[0].round < 40 else self.lying
            return inner.exchange(broadcasts, deadline)

    settings = {"max_rounds": 60, "tol": 0.0}
    with pytest.raises(NumericalError, match="exceeds the objective"):
        train(clients, FedAvg(), transport=Changing(), **settings)
    result = train(clients, FedAvg(), transport=Changing(), on_fault="drop", **settings)
    faults = [fault for record in result.history for fault in record.faults]
    assert any("sums do not tell" in fault for fault in faults)
    assert result.lower_bound <= result.objective


def test_a_vector_whose_square_overflows_is_named():
    clients = blobs(4)

    def huge(update):
        return with_values(update, vector=np.full(4, 1e200))

    transport = Tampered(InProcess(problems(clients)), BAD, huge, rounds=(2,))
    with pytest.raises(ClientError, match="vector") as caught:
        train(clients, ADMM(rho=0.05), transport=transport, limits=limits_of(clients), max_rounds=5)
    assert (caught.value.client_id, caught.value.round) == (BAD, 2)


def test_a_baselines_huge_vector_ends_no_run():
    clients = blobs(4)

    def huge(update):
        return with_values(update, vector=1e180 * update.values["vector"])

    transport = Tampered(InProcess(problems(clients)), BAD, huge, rounds=(2,))
    settings = {"max_rounds": 8, "tol": 0.0, "on_fault": "drop", "quorum": 4}
    result = train(clients, FedAvg(), transport=transport, limits=limits_of(clients), **settings)
    assert result.objective < np.inf


def test_a_lie_in_the_last_round_leaves_the_certificate_of_the_round_before():
    clients = blobs(4)
    settings = {"max_rounds": 20, "tol": 0.0, "on_fault": "drop"}

    class LyingAndGone(InProcess):
        def exchange(self, broadcasts, deadline):
            answers = list(super().exchange(broadcasts, deadline))
            if broadcasts[0].round == 20:
                values = answers[1].values
                changed = {
                    "risks": 0.2 * values["risks"],
                    "constants": 0.2 * values["constants"],
                    "slopes": 0.2 * values["slopes"],
                    "norm_weights": 0.2 * values["norm_weights"],
                }
                answers[1] = with_values(answers[1], **changed)
            if broadcasts[0].round == 21:
                answers[1] = gone(answers[1])
            return answers

    method = Subgradient(step_size=0.5)
    result = train(clients, method, transport=LyingAndGone(problems(clients)), **settings)
    assert any(BAD in fault for fault in result.history[-1].faults)
    assert result.objective == min(record.objective for record in result.history[:-1])
    assert result.lower_bound > 0.0


@pytest.mark.parametrize("on_fault", ["stop", "drop"])
@pytest.mark.parametrize("method", ["admm", "subgradient"])
def test_a_lie_in_the_last_evaluation_leaves_the_certificate_as_it_was(method, on_fault):
    clients = blobs(4)
    settings = {"max_rounds": 20, "tol": 0.0, "on_fault": on_fault}

    class LyingInTheEnd(InProcess):
        def exchange(self, broadcasts, deadline):
            answers = list(super().exchange(broadcasts, deadline))
            if '"evaluation"' in broadcasts[0].algorithm:
                zero = np.zeros(1)
                answers[1] = with_values(
                    answers[1], risks=zero, constants=zero, slopes=np.zeros((1, 4))
                )
            return answers

    result = train(clients, METHODS[method], transport=LyingInTheEnd(problems(clients)), **settings)
    honest = train(clients, METHODS[method], **settings)
    assert BAD in result.history[-1].faults[-1]
    assert result.objective < np.inf
    assert result.objective == min(record.objective for record in result.history)
    assert result.lower_bound == pytest.approx(honest.lower_bound, rel=0.05)


def test_sums_in_the_open_are_held_against_the_past_client_by_client():
    clients = blobs(4)

    def easier(update):
        return with_values(
            update,
            risks=0.5 * update.values["risks"],
            constants=0.5 * update.values["constants"],
            slopes=0.5 * update.values["slopes"],
            norm_weights=0.5 * update.values["norm_weights"],
        )

    transport = Tampered(InProcess(problems(clients)), BAD, easier, rounds=range(8, 99))
    with pytest.raises(ClientError, match="of one round") as caught:
        train(clients, Bundle(cuts="summed"), transport=transport, tol=1e-9)
    assert caught.value.client_id == BAD


def test_a_risk_is_held_against_the_proof_whose_cuts_are_long_gone():
    """With cuts dropped at once only the mixture that proves the bound still contradicts."""
    clients, method = blobs(4), Bundle(max_age=1, max_cuts=1)

    def easier(update):
        risks = update.values["risks"]
        return with_values(
            update,
            risks=0.3 * risks,
            constants=0.3 * update.values["constants"],
            slopes=0.3 * update.values["slopes"],
            norm_weights=0.3 * update.values["norm_weights"],
        )

    transport = Tampered(InProcess(problems(clients)), BAD, easier, rounds=range(10, 99))
    with pytest.raises(ClientError) as caught:
        train(clients, method, transport=transport, tol=0.0, max_rounds=40)
    assert caught.value.client_id == BAD


def test_no_risk_is_no_gap():
    """One class, labels trusted: the intercept alone does it, and the optimum is 0."""
    X = np.random.default_rng(0).random((20, 3))
    settings = {"epsilon": 0.1, "kappa": np.inf, "fit_intercept": True}
    clients = [make_client(name, X, np.ones(20), **settings) for name in ("a", "b")]
    for method in (Bundle(), Bundle(cuts="summed")):
        result = run_rounds(InProcess(clients), method)
        assert result.reason is Stop.TOL
        assert result.objective <= 1e-12
        assert result.gap == 0.0


@pytest.mark.parametrize("loss", ["logistic", "smooth_hinge"])
def test_other_losses_have_a_steepness_too(loss):
    """[mass] at the model asked about: honest cuts keep to it, one without a constant does not."""
    data = blobs(3)
    settings = {"epsilon": 0.05, "loss": loss}
    clients = [make_client(f"client-{g}", c.X, c.y, **settings) for g, c in enumerate(data)]
    largest = np.max([np.abs(c.X).max(axis=0) for c in data], axis=0)
    limits = Limits.checked(largest, 4, loss=loss)
    method = Subgradient(step_size=0.1)
    run = {"limits": limits, "max_rounds": 6, "tol": 0.0}
    honest = run_rounds(InProcess(clients), method, **run)
    assert all(record.faults == () for record in honest.history)

    def steep(update):
        return with_values(update, constants=np.zeros(1), slopes=largest[None].copy())

    with pytest.raises(ClientError, match="slope exceeds") as caught:
        run_rounds(Tampered(InProcess(clients), BAD, steep, rounds=(1,)), method, **run)
    assert caught.value.client_id == BAD


class WithoutCuts(Playing):
    """Risks of any size, and nothing that they could be held against."""

    def _played(self, broadcast, answer):
        if broadcast.client_id != BAD:
            return answer
        values = answer.values
        gone = {name: values[name][:0] for name in ("constants", "slopes", "norm_weights")}
        return with_values(answer, **gone)


@pytest.mark.parametrize("limited", [False, True])
def test_risks_without_cuts_name_their_client(limited):
    clients = blobs(4)
    limits = limits_of(clients) if limited else None
    with pytest.raises(ClientError, match="fewer cuts than risks") as caught:
        train(clients, Bundle(), transport=WithoutCuts(clients, None), limits=limits)
    assert caught.value.client_id == BAD


@INTERCEPT
@pytest.mark.parametrize("method", ["bundle", "summed", "subgradient"])
def test_a_function_that_starts_below_0_names_its_client_without_limits_too(method, fit_intercept):
    """max(0, v.w - 10): no rows have it, wherever they lie, since their losses at 0 are 1."""
    clients = blobs(4, fit_intercept=fit_intercept, epsilon=0.04)

    def far_below(point):
        slope = np.append(np.full(4, 40.0), np.zeros(point.size - 4))
        value, moved = slope @ point - 10.0, 0.04 * np.abs(point[:4]).sum()
        if value > 0.0:
            return value + moved, -10.0, slope, 0.04
        return moved, 0.0, 0.0 * slope, 0.04

    settings = {"limits": Limits.checked(None, 4), "max_rounds": 60, "on_fault": "drop"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = train(
            clients,
            METHODS[method],
            transport=Playing(clients, far_below, from_round=2),
            **settings,
        )
    assert any(f"{BAD}: a cut's constant is negative" in "".join(r.faults) for r in result.history)
    assert all(record.faulty in ((), (BAD,)) for record in result.history)


@pytest.mark.parametrize(("limit", "blur"), [("agreed", 3), (None, 0)])
@pytest.mark.parametrize("method", ["bundle", "summed"])
def test_cuts_far_below_their_risks_name_their_client(method, limit, blur):
    """Blurred cuts lie below the risk, by an eighth of 1 + S at most; without limits none do."""
    clients = blobs(4)
    features = limits_of(clients).features if limit else None
    limits = Limits.checked(features, 4, blur=blur)
    reach = limits_of(clients)

    def high(point):
        risk = 1.0 + reach.score_ceiling(point) + 0.04 * np.abs(point).sum()
        return risk, 0.0, np.zeros_like(point), 0.0

    with pytest.raises(ClientError, match="does not touch the risk") as caught:
        train(
            clients,
            METHODS[method],
            transport=Playing(clients, high, from_round=2),
            limits=limits,
            max_rounds=30,
        )
    assert caught.value.client_id == BAD


class FarAway(Playing):
    """On a box nothing says how large a client's own optimum may be."""

    def _played(self, broadcast, answer):
        if broadcast.client_id != BAD or "own" not in answer.values:
            return answer
        own = np.full(answer.values["own"].size, self.play)
        return with_values(
            answer,
            own=own,
            risks=np.array([0.5]),
            constants=np.array([0.5]),
            slopes=np.zeros((1, own.size)),
            norm_weights=np.zeros(1),
        )


@pytest.mark.parametrize("size", [1e12, 1e150])
def test_one_of_two_clients_cannot_lead_the_start_away_either(size):
    clients = blobs(2, box=(-9.0, 9.0))
    points = []

    class Watched(FarAway):
        def exchange(self, broadcasts, deadline):
            points.extend(broadcasts[0].values["points"])
            return super().exchange(broadcasts, deadline)

    limits = Limits.checked(9.0, 4)
    result = train(
        clients, Bundle(), transport=Watched(clients, size), limits=limits, max_rounds=60
    )
    assert 0.0 < np.abs(points[0]).max() <= 1e4  # a thousand times the other one's size
    assert result.gap <= 1e-2


@INTERCEPT
@pytest.mark.parametrize("size", [1e6, 1e12, 1e150, 1e300])
def test_one_optimum_far_away_leads_nobody_there(size, fit_intercept):
    """Honest answers there would be nothing but rounding, and break the rules."""
    clients = blobs(4, fit_intercept=fit_intercept, box=(-9.0, 9.0))
    transport = FarAway(clients, size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = train(
            clients,
            Bundle(),
            transport=transport,
            limits=Limits.checked(9.0, 4),
            max_rounds=60,
            on_fault="drop",
        )
    assert all(set(record.faulty) <= {BAD} for record in result.history)
    assert result.gap <= 1e-2


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_risk_grows_no_faster_than_the_limits_and_the_radius_allow(norm, rng):
    """f(w, b) <= f(u, d) + S(w - u, b - d) + epsilon ||w - u||_*: what ADMM's risks are held to."""
    dual = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    for _ in range(300):
        n, p = rng.integers(1, 9), rng.integers(1, 5)
        X, y = rng.uniform(-1.0, 1.0, (n, p)), rng.choice([-1.0, 1.0], n)
        ball = {"epsilon": rng.uniform(0.0, 0.6), "kappa": rng.choice([0.2, 1.0, np.inf])}
        w, u = rng.normal(size=(2, p)) * rng.choice([0.1, 1.0, 10.0])
        b, d = rng.normal(size=2)
        far = worst_case_risk(w, X, y, norm=norm, intercept=b, **ball).value
        near = worst_case_risk(u, X, y, norm=norm, intercept=d, **ball).value
        step = np.abs(w - u).sum() + abs(b - d) + ball["epsilon"] * np.linalg.norm(w - u, dual)
        assert far <= near + step + 1e-12 * (1.0 + far)


@INTERCEPT
def test_points_of_another_width_are_refused(fit_intercept):
    problem = blobs(1, fit_intercept=fit_intercept)[0].problem("plant")
    right = 4 + fit_intercept
    assert evaluate(problem, np.ones((2, right)))["slopes"].shape == (2, right)
    for width in {3, 4, 5, 6} - {right}:
        with pytest.raises(InvalidInputError):
            evaluate(problem, np.ones((2, width)))
