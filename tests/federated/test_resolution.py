"""Risks up, constants down, to a grid: valid for every method, and paid for by the gap alone."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm import FDRSVC
from fdrsvm.deploy.settings import RunSettings
from fdrsvm.errors import ClientError, ConvergenceWarning, InvalidInputError
from fdrsvm.federated import ADMM, Bundle, InProcess, Subgradient, make_client, run_rounds
from fdrsvm.federated.client import coarsened, rounded_up
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.methods import (
    FedAvg,
    FedDRO,
    FedSGD,
    OneVsRest,
    OneVsRestProblem,
    PrivateSubgradient,
)
from fdrsvm.federated.problem import evaluate
from fdrsvm.federated.secure.secure_sums import SecureSum
from fdrsvm.solvers.cut_model import CutModel
from fdrsvm.solvers.master import minimise_model
from tests.federated.cases import Recorded

rng = np.random.default_rng(3)
X = rng.random((60, 4))
y = np.where(X @ np.array([1.0, -2.0, 0.5, 1.0]) + 0.2 * rng.normal(size=60) > 0.25, 1.0, -1.0)
PLANTS = np.repeat(["north", "south", "west"], 20)
GRID = 3e-4
METHODS = [
    Subgradient(step_size=5.0),
    ADMM(),
    Bundle(),
    Bundle(cuts="summed"),
    FedSGD(),
    FedAvg(random_state=0),
    FedDRO(random_state=0),
]

numbers = st.floats(-1e6, 1e6)
grids = st.one_of(st.sampled_from([1e-5, 1e-4, 1e-3, 0.1, 1 / 3, 1.0, 2.0]), st.floats(1e-9, 10.0))


def clients(resolution, **settings):
    return [
        make_client(
            str(name),
            X[name == PLANTS],
            y[name == PLANTS],
            epsilon=0.01,
            resolution=resolution,
            **settings,
        )
        for name in np.unique(PLANTS)
    ]


# --- one number ---


@given(numbers, grids)
def test_a_number_becomes_the_next_multiple_and_never_less_than_itself(value, grid):
    """In exact arithmetic, against every other multiple that float64 has."""
    (found,) = rounded_up(np.array([value]), grid)
    assert Fraction(found) >= Fraction(value)
    k = round(Fraction(found) / Fraction(grid))
    assert found == k * grid  # a multiple, as float64 computes it
    assert (k - 1) * grid < value  # and the one before is too small
    # So it moved by less than a step, up to the rounding of the product.
    assert Fraction(found) - Fraction(value) <= Fraction(grid) + Fraction(np.spacing(abs(found)))


@given(st.integers(-(10**6), 10**6), grids)
def test_multiples_stay_with_their_bits(k, grid):
    value = np.array([k * grid])
    assert rounded_up(value, grid).tolist() == value.tolist()
    down = coarsened({"constants": value}, grid)["constants"]
    assert down.tolist() == value.tolist()
    assert not np.signbit(down[down == 0.0]).any()


@given(numbers, grids)
def test_constants_go_down_and_stay_non_negative(value, grid):
    (found,) = coarsened({"constants": np.array([value])}, grid)["constants"]
    assert found <= value
    assert (found >= 0.0) == (value >= 0.0)
    assert found == -rounded_up(np.array([-value]), grid)[0]


@pytest.mark.parametrize("value", [1e300, -1e300, 2.0**53 + 2.0, np.inf, -np.inf, np.nan])
def test_where_float64_has_no_room_for_a_step_a_number_stays(value):
    found = rounded_up(np.array([value]), 1e-9)
    np.testing.assert_array_equal(found, [value])


def test_only_risks_and_constants_change_and_zero_changes_nothing():
    values = {name: np.array([0.123]) for name in ("risks", "constants", "slopes", "squares")}
    values |= {f"11/{name}": array for name, array in values.items()}
    found = coarsened(values, 0.1)
    assert {name: array.item() for name, array in found.items()} == {
        f"{model}{name}": number
        for model in ("", "11/")
        for name, number in [
            ("risks", 0.2),
            ("constants", 0.1),
            ("slopes", 0.123),
            ("squares", 0.123),
        ]
    }
    assert coarsened(values, 0.0) == values


# --- a client's answers ---


def is_on_grid(array, grid=GRID):
    return array.tolist() == (np.round(array / grid) * grid).tolist()


def answers(method, resolution, problems=None, rounds=4):
    """What every client sent in a short run, update by update."""
    transport = Recorded(InProcess(problems or clients(resolution)))
    run_rounds(transport, method, max_rounds=rounds, tol=0.0)
    return [update for _, got in transport.rounds for update in got]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_no_method_sends_an_exact_risk_or_constant(method):
    found = answers(method, GRID)
    assert len(found) >= 12
    for update in found:
        assert is_on_grid(update.values["risks"])
        assert is_on_grid(update.values["constants"])
    exact = answers(method, 0.0)
    assert not all(is_on_grid(update.values["risks"]) for update in exact)
    # The first answers are to the same question.
    for rounded, plain in zip(found[:3], exact[:3], strict=True):
        for name, array in plain.values.items():
            moved = rounded.values[name] - array
            if name == "risks":
                assert ((moved >= 0.0) & (moved < GRID)).all()
            elif name == "constants":
                assert ((moved <= 0.0) & (moved > -GRID)).all()
            else:
                np.testing.assert_array_equal(moved, 0.0)


def test_several_models_are_rounded_one_by_one():
    labels = np.digitize(X[:20, 0], [0.3, 0.6])
    problem = OneVsRestProblem(
        tuple(
            make_client("north", X[:20], np.where(labels == k, 1.0, -1.0), resolution=GRID)
            for k in range(3)
        )
    )
    for update in answers(OneVsRest(Bundle(), 3), GRID, [problem]):
        for k in range(3):
            assert is_on_grid(update.values[f"{k}/risks"])
            assert is_on_grid(update.values[f"{k}/constants"])


def test_a_private_answer_has_nothing_to_round():
    method = PrivateSubgradient(noise_multiplier=1.0, radius=2.0, random_state=0)
    found = answers(method, GRID)
    assert {name for update in found for name in update.values} == {"subgradient"}
    for rounded, plain in zip(found, answers(method, 0.0), strict=True):
        np.testing.assert_array_equal(rounded.values["subgradient"], plain.values["subgradient"])


@pytest.mark.parametrize("loss", ["hinge", "logistic", "smooth_hinge"])
def test_masked_sums_are_of_rounded_numbers(loss):
    """The sum of three multiples with weights 1/2, 1/4, 1/4 is a multiple of a quarter."""
    grid = 2.0**-10
    weights = np.array([0.5, 0.25, 0.25])
    secure = SecureSum(InProcess(clients(grid, loss=loss)), weights)
    transport = Recorded(secure)
    method = secure.method(Subgradient(step_size=5.0))
    run_rounds(transport, method, max_rounds=3, tol=0.0, client_weights=np.ones(1))
    sums = [update for _, got in transport.rounds for update in got]
    assert len(sums) == 4
    for update in sums:
        assert is_on_grid(update.values["risks"], grid / 4)
        assert is_on_grid(update.values["constants"], grid / 4)


# --- the price ---


@pytest.mark.parametrize(
    "settings",
    [{}, {"loss": "logistic"}, {"support": "unit-box"}, {"blur": 2}, {"fit_intercept": True}],
    ids=str,
)
@pytest.mark.parametrize("grid", [1e-5, 1e-3, 0.05])
def test_with_the_same_models_the_gap_grows_by_at_most_two_resolutions(settings, grid):
    """[resolution]: the objective rises by at most one, the bound falls by at most one."""
    problems = clients(0.0, **settings)
    width = problems[0].width
    points = np.random.default_rng(5).normal(size=(12, width))
    exact = [evaluate(problem, points) for problem in problems]
    rounded = [coarsened(found, grid) for found in exact]
    floors = np.array([problem.profile.floor for problem in problems])

    def certificate(answers):
        objectives = np.mean([found["risks"] for found in answers], axis=0)
        model = CutModel(
            constants=np.concatenate([found["constants"] for found in answers]),
            slopes=np.concatenate([found["slopes"] for found in answers]),
            norm_weights=np.concatenate([found["norm_weights"] for found in answers]),
            owners=np.repeat(np.arange(3), len(points)),
            alphas=np.full(3, 1.0 / 3.0),
            floors=floors,
            n_normed=4,
            norm="linf",
        )
        return objectives, minimise_model(model, tol=1e-9, radius=10.0).bound.value

    (upper, lower), (upper_rounded, lower_rounded) = certificate(exact), certificate(rounded)
    slack = 1e-9 * (1.0 + upper.max())  # the master's tolerance, on either side
    assert (upper_rounded >= upper).all()
    assert (upper_rounded <= upper + grid * (1.0 + 1e-12)).all()
    assert lower - grid - 2.0 * slack <= lower_rounded <= lower + 2.0 * slack
    gap, gap_rounded = upper.min() - lower, upper_rounded.min() - lower_rounded
    assert gap - 2.0 * slack <= gap_rounded <= gap + 2.0 * grid + 4.0 * slack


@pytest.mark.parametrize("algorithm", ["bundle", "admm", "subgradient"])
@pytest.mark.parametrize("grid", [1e-4, 1e-2])
def test_certificates_of_whole_runs_stay_true(algorithm, grid):
    exact = FDRSVC(epsilon=0.01, tol=1e-8).fit(X, y, clients=PLANTS)
    rounded = FDRSVC(algorithm, epsilon=0.01, resolution=grid, step_size=5.0, max_rounds=60)
    with pytest.warns(ConvergenceWarning):
        rounded.fit(X, y, clients=PLANTS)
    assert rounded.lower_bound_ <= exact.objective_
    assert rounded.objective_ >= exact.lower_bound_
    for name, risk in rounded.worst_case_risk_per_client_.items():
        assert is_on_grid(np.array([risk]), grid)
        problem = make_client(
            "one", X[name == PLANTS], y[name == PLANTS], epsilon=0.01, fit_intercept=True
        )
        true = problem.risk_of(np.append(rounded.coef_[0], rounded.intercept_[0]))
        assert true <= risk < true + grid


def test_a_bundle_closes_the_gap_up_to_the_resolution():
    """At a fine grid the default tol is still reached; the gap that stays is the grid's."""
    fine = FDRSVC(epsilon=0.01, resolution=1e-6).fit(X, y, clients=PLANTS)
    assert fine.gap_ <= fine.tol
    coarse = FDRSVC(epsilon=0.01, resolution=1e-3, max_rounds=60)
    with pytest.warns(ConvergenceWarning):
        coarse.fit(X, y, clients=PLANTS)
    assert coarse.objective_ - coarse.lower_bound_ <= 2e-3 + 1e-4 * coarse.objective_


def test_a_server_that_knows_of_the_grid_takes_the_cuts_and_one_that_does_not_refuses_them():
    method, grid = Subgradient(step_size=5.0), 2.0**-7  # 1, the risk of the model 0, is on it
    known = Limits.checked(1.0, 4, resolution=grid)
    result = run_rounds(InProcess(clients(grid)), method, max_rounds=20, tol=0.0, limits=known)
    assert result.gap < 1.0
    with pytest.raises(ClientError, match="does not touch"):
        run_rounds(
            InProcess(clients(grid)),
            method,
            max_rounds=20,
            tol=0.0,
            limits=Limits.checked(1.0, 4),
        )


# --- where it is offered ---


def test_it_is_a_number_that_is_not_negative():
    for wrong in (-1e-3, np.inf, np.nan, "fine"):
        with pytest.raises(InvalidInputError, match="resolution"):
            FDRSVC(resolution=wrong).fit(X, y, clients=PLANTS)
        with pytest.raises(InvalidInputError, match="resolution"):
            Limits.checked(1.0, 4, resolution=wrong)
    with pytest.raises(InvalidInputError, match="resolution"):
        RunSettings.from_config({"resolution": -1.0, "output": "run"})


def test_a_federation_tells_plants_and_the_screen():
    settings = RunSettings.from_config({"resolution": 1e-4, "output": "run"})
    assert settings.task().resolution == settings.limits(5).resolution == 1e-4
    assert settings.estimator().resolution == 1e-4
    baseline = RunSettings.from_config({"resolution": 1e-4, "algorithm": "fedavg"})
    assert baseline.task().resolution == baseline.limits(5).resolution == 1e-4
