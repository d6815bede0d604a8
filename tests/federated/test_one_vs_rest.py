import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fdrsvm import ConvergenceWarning, InvalidInputError
from fdrsvm.errors import ClientError
from fdrsvm.federated.checkpoint import CheckpointFolder
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.messages import decode_broadcast, decode_update, encode
from fdrsvm.federated.methods import (
    ADMM,
    ADMMSC,
    Bundle,
    FedAvg,
    FedDRO,
    FedSGD,
    OneVsRest,
    OneVsRestProblem,
    Subgradient,
    describe,
    from_description,
)
from fdrsvm.federated.problem import make_client
from fdrsvm.federated.rounds import Failure, Stop, run_rounds

N_MODELS = 3
METHODS = [Bundle(), ADMM(0.1), ADMMSC(0.1), Subgradient(), FedSGD(), FedAvg(), FedDRO()]


def make_problems(rng, n_clients=3, n_samples=25, n_features=4, fit_intercept=True):
    """Clients with three classes each, of which the third is the hardest to tell."""
    found = []
    for g in range(n_clients):
        X = rng.normal(size=(n_samples, n_features))
        scores = np.column_stack([4 * X[:, 0], 4 * X[:, 1], X[:, 2] + rng.normal(size=n_samples)])
        labels = scores.argmax(axis=1)
        problems = [
            make_client(
                f"plant {g}",
                X,
                np.where(labels == k, 1.0, -1.0),
                epsilon=0.02,
                fit_intercept=fit_intercept,
            )
            for k in range(N_MODELS)
        ]
        found.append(OneVsRestProblem(tuple(problems)))
    return found


@pytest.fixture
def problems(rng):
    return make_problems(rng)


def train(problems, method, tol, max_rounds=60, transport=None, **options):
    many = OneVsRest(method, N_MODELS, tol)
    transport = transport or InProcess(problems)
    return quietly(transport, many, tol=tol, max_rounds=max_rounds, **options)


def train_alone(problems, model, method, tol, max_rounds=60):
    transport = InProcess([client.problems[model] for client in problems])
    return quietly(transport, method, tol=tol, max_rounds=max_rounds)


def quietly(transport, method, **options):
    """Few rounds are enough here, and the warning about it is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run_rounds(transport, method, run_id="run", **options)


class Watched(InProcess):
    """Notes the names in every broadcast; answers pass through ``change``."""

    def __init__(self, problems, change=lambda answer: answer):
        super().__init__(problems)
        self.asked = []
        self.change = change

    def exchange(self, broadcasts, deadline):
        self.asked.append(set(broadcasts[0].values))
        return [self.change(answer) for answer in super().exchange(broadcasts, deadline)]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("tol", [0.0, 3e-2])
def test_each_model_is_what_a_run_of_its_own_gives(problems, method, tol):
    together = train(problems, method, tol, max_rounds=20)
    for k, standing in enumerate(together.standing.models):
        alone = train_alone(problems, k, method, tol, max_rounds=20)
        assert_array_equal(standing.model, alone.model)
        assert standing.objective == alone.objective
        assert_array_equal(standing.risks, alone.risks)
        # A resting model's bound may be settled once more, to the accuracy of the master's solver.
        assert_allclose(standing.lower_bound, alone.lower_bound, rtol=1e-6, atol=1e-9)


def test_it_takes_the_rounds_of_the_slowest_model_and_no_more(problems):
    tol = 1e-4
    alone = [train_alone(problems, k, Bundle(), tol).n_rounds for k in range(N_MODELS)]
    together = train(problems, Bundle(), tol)
    assert len(set(alone)) > 1
    assert together.n_rounds == max(alone)
    assert together.reason is Stop.TOL


def test_models_within_tol_are_not_asked_again(problems):
    tol = 1e-3
    alone = [train_alone(problems, k, Bundle(), tol).n_rounds for k in range(N_MODELS)]
    transport = Watched(problems)
    result = train(problems, Bundle(), tol, transport=transport)
    for k, n_rounds in enumerate(alone):
        asked = [f"{k}/points" in names for names in transport.asked]
        assert asked == [True] * n_rounds + [False] * (result.n_rounds - n_rounds)


def test_without_tol_all_models_are_asked_to_the_end(problems):
    transport = Watched(problems)
    train(problems, Bundle(), 0.0, max_rounds=15, transport=transport)
    assert all({f"{k}/points" for k in range(N_MODELS)} <= names for names in transport.asked)


def test_models_that_settle_by_their_own_rule_rest_too(problems):
    method = ADMM(0.1, residual_tol=0.05)
    alone = [train_alone(problems, k, method, 0.0).n_rounds for k in range(N_MODELS)]
    together = train(problems, method, 0.0)
    assert together.reason is Stop.SETTLED
    assert together.n_rounds == max(alone) < 60


def test_the_standing_is_the_mean_and_the_gap_the_largest(problems):
    result = train(problems, Bundle(), 0.0, max_rounds=5)
    models = result.standing.models
    assert_array_equal(result.model, np.concatenate([one.model for one in models]))
    assert_allclose(result.objective, np.mean([one.objective for one in models]))
    assert_allclose(result.lower_bound, np.mean([one.lower_bound for one in models]))
    assert_allclose(result.risks, np.mean([one.risks for one in models], axis=0))
    assert result.gap == max(one.gap for one in models) == result.history[-1].gap
    assert result.bound_radius == min(one.radius for one in models)


def test_certificates_hold_against_many_other_models(problems, rng):
    models = train(problems, Bundle(), 1e-2).standing.models
    for k, standing in enumerate(models):
        clients = [client.problems[k] for client in problems]
        risks = [client.risk_of(standing.model) for client in clients]
        assert_allclose(np.mean(risks), standing.objective, rtol=1e-12)
        for _ in range(50):
            other = standing.model + rng.normal(size=standing.model.size)
            assert np.mean([client.risk_of(other) for client in clients]) >= standing.lower_bound


def test_the_method_survives_the_wire(problems):
    many = OneVsRest(ADMMSC(0.5, 3.0), 4, 0.01)
    assert from_description(describe(many)) == many
    assert from_description(describe(many)).inner == ADMMSC(0.5, 3.0)
    assert describe(from_description(describe(many))) == describe(many)


def test_messages_survive_the_wire(problems):
    class Wire(InProcess):
        def exchange(self, broadcasts, deadline):
            there = [decode_broadcast(encode(broadcast)) for broadcast in broadcasts]
            return [decode_update(encode(found)) for found in super().exchange(there, deadline)]

    wired = train(problems, Bundle(), 1e-3, transport=Wire(problems))
    assert_array_equal(wired.model, train(problems, Bundle(), 1e-3).model)


@pytest.mark.parametrize("method", [Bundle(), ADMM(0.1), FedDRO()], ids=lambda m: m.name)
def test_a_resumed_run_has_the_same_bits(problems, method, tmp_path):
    tol = 1e-3
    unbroken = train(problems, method, tol, max_rounds=12)
    first = InProcess(problems)
    train(
        problems,
        method,
        tol,
        max_rounds=12,
        transport=first,
        checkpoint=CheckpointFolder(tmp_path, first),
        callbacks=[lambda record, model: record.round == 5],
    )
    second = InProcess(problems)
    snapshot = CheckpointFolder(tmp_path, second).latest()
    assert snapshot.round == 5
    assert len(snapshot.state) == N_MODELS
    resumed = train(problems, method, tol, max_rounds=12, transport=second, resume=snapshot)
    assert_array_equal(resumed.model, unbroken.model)
    assert_array_equal(resumed.newest, unbroken.newest)
    assert resumed.lower_bound == unbroken.lower_bound
    assert resumed.n_rounds == unbroken.n_rounds


def spoil(name, spoiled):
    """A change that spoils one array of the second model's answer of the second client."""

    def change(answer):
        if answer.client_id != "plant 1":
            return answer
        key = f"1/{name}"
        return replace(answer, values={**answer.values, key: spoiled(answer.values[key])})

    return change


@pytest.mark.parametrize(
    ("name", "spoiled", "reason"),
    [
        ("norm_weights", lambda array: array - 1.0, "1/norm_weights has a negative entry"),
        ("norm_weights", lambda array: array[1:], "its cuts are"),
        ("slopes", lambda array: array * np.nan, "1/slopes is not finite"),
        ("risks", lambda array: array[:0], "1/risks has shape"),
    ],
)
def test_cuts_of_every_model_are_screened(problems, name, spoiled, reason):
    transport = Watched(problems, spoil(name, spoiled))
    with pytest.raises(ClientError, match=f"'plant 1', round 1: {reason}"):
        train(problems, Bundle(), 1e-3, transport=transport)


def test_an_absent_client_costs_rounds_but_no_certificate(problems):
    class Absent(InProcess):
        def exchange(self, broadcasts, deadline):
            found = list(super().exchange(broadcasts, deadline))
            if broadcasts[0].round % 3 == 2:
                found[0] = Failure(broadcasts[0].client_id, "away", is_missing=True)
            return found

    tol = 1e-3
    whole = train(problems, Bundle(), tol)
    result = train(problems, Bundle(), tol, max_rounds=100, transport=Absent(problems), quorum=2)
    assert result.reason is Stop.TOL
    for one, other in zip(result.standing.models, whole.standing.models, strict=True):
        # Both intervals hold the optimum.
        assert one.lower_bound <= other.objective
        assert other.lower_bound <= one.objective


@pytest.mark.parametrize("method", [Bundle(), ADMM(0.1)], ids=lambda method: method.name)
def test_who_is_caught_lying_when_a_model_is_done_is_forgotten_and_the_run_goes_on(method):
    """The model that was done is proved anew; honest clients still have its duals."""

    def lie(answer):
        """Once only one model is left: a tenth off its risks, and cuts that say nothing."""
        models = {name.partition("/")[0] for name in answer.values}
        if answer.client_id != "plant 1" or len(models) > 1 or lied:
            return answer
        lied.append(answer.round)
        model = models.pop()
        changed = {f"{model}/risks": 0.9 * answer.values[f"{model}/risks"]}
        for name in ("constants", "slopes", "norm_weights"):
            changed[f"{model}/{name}"] = np.zeros_like(answer.values[f"{model}/{name}"])
        return replace(answer, values={**answer.values, **changed})

    lied, tol = [], 1e-3
    problems = two_models(np.random.default_rng(0))
    many = OneVsRest(method, 2, tol)
    options = {"tol": tol, "max_rounds": 300, "quorum": 2, "on_fault": "drop"}
    honest = quietly(InProcess(problems), many, **options)
    result = quietly(Watched(problems, lie), many, **options)
    assert lied
    faults = {record.round: record.faults for record in result.history if record.faults}
    assert list(faults) == lied  # nobody else is blamed, then or later
    assert all("plant 1: " in fault for fault in faults[lied[0]])
    assert "lies above its risk in another" in faults[lied[0]][0]
    assert result.reason is Stop.TOL
    for one, other in zip(result.standing.models, honest.standing.models, strict=True):
        # Both intervals hold the optimum.
        assert one.lower_bound <= other.objective
        assert other.lower_bound <= one.objective


def two_models(rng):
    """An easy and a hard one."""
    found = []
    for g in range(4):
        X = rng.random((40, 3)) - 0.5
        labels = (X @ [1.0, 2.0, 3.0] > 0.0, X[:, 0] + 0.5 * rng.normal(size=40) > 0.0)
        found.append(
            OneVsRestProblem(
                tuple(
                    make_client(f"plant {g}", X, np.where(y, 1.0, -1.0), epsilon=0.05)
                    for y in labels
                )
            )
        )
    return found


def test_a_client_with_another_number_of_problems_is_named(problems):
    fewer = [*problems[:2], OneVsRestProblem(problems[2].problems[:2])]
    with pytest.raises(
        ClientError, match=r"'plant 2'.*there must be 3, one per model; there are 2"
    ):
        train(fewer, Bundle(), 1e-3)


def test_settings_that_make_no_sense_are_refused(problems):
    with pytest.raises(InvalidInputError, match="n_models: must be a whole number, at least 2"):
        OneVsRest(Bundle(), 1)
    with pytest.raises(InvalidInputError, match="tol: must be a finite number, at least 0"):
        OneVsRest(Bundle(), 2, -1.0)
    with pytest.raises(InvalidInputError, match="inner: must train one model"):
        OneVsRest(OneVsRest(Bundle(), 2), 2)
    with pytest.raises(InvalidInputError, match="problems: there must be at least one"):
        OneVsRestProblem(())
    with pytest.raises(InvalidInputError, match="problems: must differ in their labels only"):
        OneVsRestProblem((problems[0].problems[0], problems[1].problems[0]))


def test_a_client_says_nothing_of_models_it_is_not_asked_about(problems):
    many = OneVsRest(Subgradient(), N_MODELS)
    _, found = many.answer(problems[0], {}, {"2/points": np.zeros((1, 5))})
    assert {name.partition("/")[0] for name in found} == {"2"}
