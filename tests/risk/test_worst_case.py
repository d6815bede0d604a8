"""worst_case_risk against independent programs, its own invariants, and hard cases."""

import itertools
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linprog

from fdrsvm import RiskOracle, UnsupportedError, worst_case_distribution, worst_case_risk
from fdrsvm.core.losses import Hinge, Logistic, SmoothHinge
from fdrsvm.core.vectors import dual_norm
from tests.problems import NORMS, problems, random_problem
from tests.reference import reference_risk, solve_with_clarabel, worst_case_program

CASES = list(itertools.product(NORMS, (False, True), ("exact", "paper")))


def risk_of(problem, **changes):
    problem = problem.with_(**changes)
    return worst_case_risk(problem.w, problem.X, problem.y, **problem.arguments)


def rounding(problem, *values):
    """What float64 may lose: a few hundred operations on numbers of the size at hand."""
    scale = 1.0 + np.abs(problem.w).sum() * (1.0 + np.abs(problem.X).max())
    return 1e-13 * (scale + sum(abs(v) for v in values))


@pytest.mark.parametrize(("norm", "boxed", "worst_case"), CASES)
def test_agrees_with_the_linear_or_conic_program(norm, boxed, worst_case, rng):
    for _ in range(40):
        problem = random_problem(rng, norm, boxed, worst_case)
        ours = risk_of(problem)
        theirs = reference_risk(problem.w, problem.X, problem.y, **problem.reference_arguments)
        assert_allclose(ours.value, theirs, atol=1e-8, rtol=1e-8)
        assert abs(ours.value - ours.proof) <= rounding(problem, ours.value)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_agrees_with_a_second_solver(norm, rng):
    for _ in range(10):
        problem = random_problem(rng, norm, True, "exact")
        program = worst_case_program(problem.w, problem.X, problem.y, **problem.reference_arguments)
        assert_allclose(risk_of(problem).value, solve_with_clarabel(program), atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("n_features", [20, pytest.param(140, marks=pytest.mark.slow)])
@pytest.mark.parametrize("norm", NORMS)
def test_agrees_with_the_program_when_features_are_many(norm, n_features, rng):
    """From 129 features on rooms are sorted."""
    for _ in range(6 if n_features == 20 else 2):
        problem = random_problem(rng, norm, True, "exact", n_features=n_features)
        ours = risk_of(problem)
        theirs = reference_risk(problem.w, problem.X, problem.y, **problem.reference_arguments)
        assert_allclose(ours.value, theirs, atol=1e-8, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("norm", "boxed", "worst_case"), CASES)
def test_agrees_with_the_program_many_times(norm, boxed, worst_case):
    rng = np.random.default_rng(1)
    for _ in range(500):
        problem = random_problem(rng, norm, boxed, worst_case)
        ours = risk_of(problem)
        theirs = reference_risk(problem.w, problem.X, problem.y, **problem.reference_arguments)
        assert_allclose(ours.value, theirs, atol=1e-8, rtol=1e-8)


# ------------------------------------------------------------------------------------ invariants


@given(problems(), st.lists(st.floats(-4, 4), min_size=4, max_size=4), st.floats(-2, 2))
def test_the_subgradient_inequality_holds(problem, other, shift):
    u = np.array(other[: problem.w.size])
    here, there = risk_of(problem), risk_of(problem, w=u, intercept=shift)
    bound = here.value + here.subgradient @ (u - problem.w) + here.intercept_subgradient * shift
    assert there.value >= bound - rounding(problem.with_(w=np.append(problem.w, u)), bound)


@given(problems(), st.floats(0, 1))
def test_the_subgradient_inequality_holds_towards_zero_weights(problem, share):
    """Zero entries are where the dual norms have their kinks."""
    here = risk_of(problem)
    for p in range(problem.w.size):
        u = problem.w.copy()
        u[p] *= share
        there = risk_of(problem, w=u)
        bound = here.value + here.subgradient @ (u - problem.w)
        assert there.value >= bound - rounding(problem, bound)


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_the_subgradient_inequality_holds_where_the_multiplier_is_the_dual_norm(norm, boxed, rng):
    """There every sample is indifferent between staying and moving: a tie easy to miss."""
    at_the_tie = 0
    for _ in range(300):
        problem = random_problem(rng, norm, boxed, "exact").with_(kappa=np.inf, epsilon=0.01)
        here = risk_of(problem)
        at_the_tie += here.multiplier == dual_norm(problem.w, norm)
        u = problem.w + rng.normal(size=problem.w.size) * rng.choice([1e-6, 1e-3, 1.0])
        there = risk_of(problem, w=u)
        bound = here.value + here.subgradient @ (u - problem.w)
        assert there.value >= bound - rounding(problem, bound)
    assert at_the_tie > 100


@given(problems(), st.floats(0, 2))
def test_the_risk_grows_with_the_radius_by_at_most_the_multiplier(problem, more):
    small, large = risk_of(problem), risk_of(problem, epsilon=problem.epsilon + more)
    slack = rounding(problem, large.value)
    assert small.value - slack <= large.value
    assert large.value <= small.value + more * small.multiplier * (1 + 1e-12) + slack


@given(problems(), st.floats(1, 8))
def test_the_risk_falls_as_labels_become_dearer(problem, factor):
    cheap, dear = risk_of(problem), risk_of(problem, kappa=problem.kappa * factor)
    trusted = risk_of(problem, kappa=np.inf)
    slack = rounding(problem, cheap.value)
    assert cheap.value >= dear.value - slack
    assert dear.value >= trusted.value - slack


@given(problems(boxed=True))
def test_a_box_never_raises_the_risk(problem):
    free = risk_of(problem, boxed=False)
    assert risk_of(problem).value <= free.value + rounding(problem, free.value)


@given(problems(worst_case="paper"))
def test_the_papers_worst_case_never_exceeds_the_exact_one(problem):
    exact = risk_of(problem, worst_case="exact")
    assert risk_of(problem).value <= exact.value + rounding(problem, exact.value)


def test_the_papers_worst_case_misses_risk_that_the_exact_one_sees():
    """Points far beyond the margin pull the linear objective down but not the hinge."""
    X, y, w = np.array([[0.0], [1.0]]), np.array([-1.0, 1.0]), np.array([5.0])
    exact = worst_case_risk(w, X, y, epsilon=0.1, support="unit-box")
    paper = worst_case_risk(w, X, y, epsilon=0.1, support="unit-box", worst_case="paper")
    assert paper.value < 0.0 < exact.value


@given(problems(worst_case="exact"))
def test_without_a_ball_it_is_the_mean_hinge(problem):
    risk = risk_of(problem, epsilon=0.0, kappa=np.inf)
    margins = problem.y * (problem.X @ problem.w)
    assert_allclose(risk.value, np.maximum(0, 1 - margins).mean(), rtol=1e-14, atol=1e-14)


@given(problems(boxed=False, worst_case="exact"))
def test_with_trusted_labels_and_no_support_it_is_the_regularised_hinge(problem):
    risk = risk_of(problem, kappa=np.inf)
    margins = problem.y * (problem.X @ problem.w)
    expected = problem.epsilon * dual_norm(problem.w, problem.norm)
    expected += np.maximum(0, 1 - margins).mean()
    assert_allclose(risk.value, expected, rtol=1e-13, atol=1e-13)


@given(problems(boxed=False, worst_case="exact"))
def test_the_multiplier_is_the_order_statistic_of_the_documentation(problem):
    """[flips]: max(||w||_*, (k+1)-th largest t_n, 0), t_n = min(2 m_n, 1 + m_n)/kappa."""
    if not np.isfinite(problem.kappa):
        return
    n_samples = problem.y.size
    margins = problem.y * (problem.X @ problem.w)
    t = np.sort(np.minimum(2 * margins, 1 + margins) / problem.kappa)[::-1]
    ratio = n_samples * problem.epsilon / problem.kappa
    if abs(ratio - round(ratio)) < 1e-9:
        return  # any multiplier between two order statistics is optimal
    k = int(ratio)
    least = dual_norm(problem.w, problem.norm)
    expected = least if k >= n_samples else max(least, t[k], 0.0)
    assert_allclose(risk_of(problem).multiplier, expected, rtol=1e-12, atol=1e-12)


@given(problems(), st.sampled_from([1e-12, 1e-3, 1e5, 1e12]))
def test_units_do_not_matter(problem, unit):
    """Measuring features in other units: X, epsilon and kappa scale, w scales back."""
    scaled = worst_case_risk(
        problem.w / unit,
        problem.X * unit,
        problem.y,
        epsilon=problem.epsilon * unit,
        kappa=problem.kappa * unit,
        norm=problem.norm,
        support=(0.0, unit) if problem.boxed else None,
        worst_case=problem.worst_case,
    )
    here = risk_of(problem)
    assert_allclose(scaled.value, here.value, rtol=1e-9, atol=rounding(problem) * 1e2)
    assert_allclose(scaled.multiplier * unit, here.multiplier, rtol=1e-6, atol=1e-6)


@given(problems(), st.randoms(use_true_random=False))
def test_order_and_copies_do_not_matter(problem, random):
    order = list(range(problem.y.size))
    random.shuffle(order)
    shuffled = risk_of(problem, X=problem.X[order], y=problem.y[order])
    doubled = risk_of(
        problem, X=np.vstack([problem.X, problem.X]), y=np.append(problem.y, problem.y)
    )
    here = risk_of(problem)
    for other in (shuffled, doubled):
        assert_allclose(other.value, here.value, rtol=1e-12, atol=rounding(problem))


@given(problems(), st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_whole_weights_are_copies(problem, counts):
    counts = np.array(counts[: problem.y.size])
    if counts.sum() == 0:
        return
    weighted = risk_of(problem, mass=counts.astype(float))
    copied = risk_of(problem, X=problem.X.repeat(counts, axis=0), y=problem.y.repeat(counts))
    assert_allclose(weighted.value, copied.value, rtol=1e-12, atol=rounding(problem))


@given(problems())
def test_swapping_both_labels_and_the_sign_of_w_changes_nothing(problem):
    swapped = risk_of(problem, w=-problem.w, y=-problem.y)
    here = risk_of(problem)
    assert_allclose(swapped.value, here.value, rtol=1e-12, atol=rounding(problem))


@given(problems(worst_case="exact"), st.floats(-3, 3))
def test_an_intercept_is_a_shift_of_space(problem, intercept):
    """Moving the data by c and the intercept by -w.c leaves every margin and distance alone."""
    shift = np.linspace(-1, 1, problem.w.size)
    moved = worst_case_risk(
        problem.w,
        problem.X + shift,
        problem.y,
        epsilon=problem.epsilon,
        kappa=problem.kappa,
        norm=problem.norm,
        support=(shift - 1e-9, shift + 1 + 1e-9) if problem.boxed else None,
        intercept=intercept - problem.w @ shift,
    )
    here = risk_of(problem, intercept=intercept)
    room = 1e-9 * (1 + moved.multiplier) * np.abs(problem.w).sum()  # the box is 1e-9 wider
    assert_allclose(moved.value, here.value, rtol=1e-9, atol=rounding(problem) * 1e2 + room)


@pytest.mark.parametrize("norm", NORMS)
def test_a_huge_box_is_no_box(norm, rng):
    for _ in range(20):
        problem = random_problem(rng, norm, False, "exact")
        boxed = worst_case_risk(
            problem.w,
            problem.X,
            problem.y,
            **problem.arguments | {"support": (-1e9, 1e9)},
        )
        free = risk_of(problem)
        # Beyond the flips, mass delta moved 1e9 away spends delta * 1e9: the hinge's unit offset
        # is lost on delta = epsilon / 1e9 of the mass.
        lost = 2e-9 * problem.epsilon * (1 + np.abs(problem.y * (problem.X @ problem.w)).max())
        assert_allclose(boxed.value, free.value, rtol=1e-12, atol=lost + rounding(problem) * 10)


@pytest.mark.parametrize("order", ["as drawn", "by class", "by margin"])
@pytest.mark.parametrize("norm", NORMS)
def test_many_samples_take_the_sampled_route_to_a_proved_answer(norm, order, rng):
    """Whatever the order of rows, and so however bad the guesses."""
    X, y, w = rng.random((25_000, 4)), rng.choice([-1.0, 1.0], size=25_000), rng.normal(size=4) * 2
    weights = rng.random(25_000) ** 8
    weights[::24] = 0.0  # one whole sample without mass
    if order != "as drawn":
        rows = np.argsort(y if order == "by class" else y * (X @ w), kind="stable")
        X, y, weights = X[rows], y[rows], weights[rows]
    for epsilon in (0.02, 0.3):
        arguments = {"epsilon": epsilon, "kappa": 0.5, "norm": norm, "support": "unit-box"}
        risk = worst_case_risk(w, X, y, **arguments, sample_weight=weights)
        assert_allclose(risk.value, risk.proof, rtol=1e-12)
        q = worst_case_distribution(w, X, y, **arguments, sample_weight=weights)
        assert_allclose(q.risk, risk.value, rtol=1e-12)
        assert_allclose(q.transport_cost, epsilon, rtol=1e-9)


# ------------------------------------------------------------------------------------ other losses


def transport_program(loss, w, X, y, epsilon, kappa, grid):
    """One feature: the best plan from the samples to (grid point, label), by linear program."""
    n_samples = y.size
    targets = [(x, label) for x in grid for label in (-1.0, 1.0)]
    value = np.array([loss.value(np.array([label * w * x]))[0] for x, label in targets])
    cost = np.array(
        [
            [abs(x - X[n]) + (0.0 if label == y[n] else kappa) for x, label in targets]
            for n in range(n_samples)
        ]
    )
    cost[cost > 1e5] = np.where(np.isinf(cost[cost > 1e5]), 1e9, cost[cost > 1e5])
    split = np.kron(np.eye(n_samples), np.ones(len(targets)))
    result = linprog(
        -np.tile(value, n_samples),
        A_ub=cost.reshape(1, -1),
        b_ub=[epsilon],
        A_eq=split,
        b_eq=np.full(n_samples, 1 / n_samples),
        method="highs",
    )
    assert result.status == 0
    return -result.fun


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), SmoothHinge()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("kappa", [0.3, 1.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.4])
def test_other_losses_agree_with_transport_on_a_grid(loss, kappa, epsilon, rng):
    X, y, w, far = rng.normal(size=6), np.array([1.0, -1, 1, 1, -1, -1]), 1.7, 1e4
    grid = np.concatenate([X, [-far, far]])
    below = transport_program(loss, w, X, y, epsilon, kappa, grid)
    ours = worst_case_risk([w], X[:, None], y, epsilon=epsilon, kappa=kappa, loss=loss)
    # A unit of cost spent on going far gains at least |w| - (m + loss(m))/far.
    margins = np.abs(w * X)
    missed = epsilon * (margins + loss.value(-margins)).max() / far * 2
    assert below - 1e-9 <= ours.value <= below + missed + 1e-9


@pytest.mark.parametrize("loss", ["logistic", "smooth_hinge"])
@given(problem=problems(boxed=False, worst_case="exact"), step=st.floats(-1, 1))
def test_other_losses_have_true_subgradients(loss, problem, step):
    u = problem.w + step * np.linspace(-1, 1, problem.w.size)
    arguments = problem.arguments | {"loss": loss}
    here = worst_case_risk(problem.w, problem.X, problem.y, **arguments)
    there = worst_case_risk(u, problem.X, problem.y, **arguments)
    bound = here.value + here.subgradient @ (u - problem.w)
    assert there.value >= bound - rounding(problem, bound)
    assert abs(here.value - here.proof) <= rounding(problem, here.value)


def test_a_loss_of_ones_own_is_accepted():
    class Scaled:
        name = "scaled"
        lipschitz = 2.0

        def value(self, margins):
            return 2.0 * np.maximum(0.0, 1.0 - margins)

        def slope(self, margins):
            return np.where(margins < 1.0, -2.0, 0.0)

    X, y, w = np.array([[0.2], [0.9], [0.4]]), np.array([-1.0, 1.0, 1.0]), np.array([1.5])
    ours = worst_case_risk(w, X, y, epsilon=0.2, kappa=0.4, loss=Scaled())
    hinge = worst_case_risk(w, X, y, epsilon=0.2, kappa=0.4)
    assert_allclose(ours.value, 2 * hinge.value)
    assert_allclose(ours.subgradient, 2 * hinge.subgradient)


def test_a_support_with_another_loss_is_refused():
    with pytest.raises(UnsupportedError, match="loss is 'logistic'"):
        worst_case_risk([1.0], [[0.5]], [1], epsilon=0.1, loss="logistic", support="unit-box")


def test_the_papers_mode_with_another_loss_is_refused():
    with pytest.raises(UnsupportedError, match="hinge only"):
        worst_case_risk([1.0], [[0.5]], [1], epsilon=0.1, loss="logistic", worst_case="paper")


# ------------------------------------------------------------------------------------ hard cases


@pytest.mark.parametrize(("norm", "boxed", "worst_case"), CASES)
def test_degenerate_data_are_legal_and_right(norm, boxed, worst_case, rng):
    X = rng.random((4, 3))
    X[:, 1] = 0.5
    y = np.array([1.0, 1.0, -1.0, -1.0])
    base = random_problem(rng, norm, boxed, worst_case).with_(
        mass=None, X=X, y=y, w=np.array([1.0, -2.0, 0.5]), epsilon=0.1, kappa=0.5, intercept=0.0
    )
    cases = {
        "zero weights": base.with_(w=np.zeros(3)),
        "no radius": base.with_(epsilon=0.0),
        "one class": base.with_(y=np.ones(4)),
        "one sample": base.with_(X=X[:1], y=y[:1]),
        "duplicates": base.with_(X=X[[0, 0, 0, 0]], y=y),
        "all at a corner": base.with_(X=np.zeros((4, 3))),
        "labels for nothing": base.with_(kappa=1e-12),
        "enormous radius": base.with_(epsilon=1e6),
        "equal weights": base.with_(w=np.ones(3)),
    }
    for name, problem in cases.items():
        ours = risk_of(problem)
        theirs = reference_risk(problem.w, problem.X, problem.y, **problem.reference_arguments)
        assert_allclose(ours.value, theirs, atol=1e-8, rtol=1e-8, err_msg=name)
        assert np.isfinite(ours.subgradient).all(), name


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("n_features", [1, 5, 17, 40, 140])
def test_feature_scales_from_1e_minus_12_to_1e12_in_one_matrix(norm, boxed, n_features, rng):
    """Value and proof are computed apart, from the dual and from a distribution."""
    for epsilon in (0.05, 1e3):
        scale = 10.0 ** rng.uniform(-12, 12, size=n_features)
        X, y = rng.random((20, n_features)) * scale, rng.choice([-1.0, 1.0], size=20)
        w = rng.normal(size=n_features) / scale
        arguments = {"epsilon": epsilon, "kappa": 0.5, "norm": norm}
        if boxed:
            arguments["support"] = (np.zeros(n_features), scale)
            q = worst_case_distribution(w, X, y, **arguments)
            assert q.transport_cost <= epsilon * (1 + 1e-12)
            assert_allclose(q.risk, worst_case_risk(w, X, y, **arguments).value, rtol=1e-9)
        here = worst_case_risk(w, X, y, **arguments)
        assert_allclose(here.value, here.proof, rtol=1e-12)
        for _ in range(10):
            u = w + rng.normal(size=n_features) / scale * 0.1
            there = worst_case_risk(u, X, y, **arguments)
            bound = here.value + here.subgradient @ (u - w)
            assert there.value >= bound - 1e-10 * (1 + abs(bound))


def test_a_multiplier_far_below_the_dual_norm_is_found():
    """By hand: one sample at 0.36e-12 of a box of 1e-12, w = 4e12, so m = 1.44. The radius pays for
    a flip of one tenth or for any move: move to 0 (loss 1) and flip 0.1 (loss 1 + 4), 1.4.
    """
    risk = worst_case_risk(
        [4e12], [[0.36e-12]], [1], epsilon=1.0, kappa=10.0, norm="linf", support=(0.0, 1e-12)
    )
    assert_allclose(risk.value, 1.4, rtol=1e-12)


def test_prices_near_the_ends_of_float64_stay_finite(rng):
    X, y, w = rng.random((6, 2)), rng.choice([-1.0, 1.0], size=6), np.array([2.0, -1.0])
    for kappa, epsilon in itertools.product((5e-324, 1e-300, 1e300), (0.0, 1e-300, 1.0)):
        for support in (None, "unit-box"):
            risk = worst_case_risk(w, X, y, epsilon=epsilon, kappa=kappa, support=support)
            assert np.isfinite(risk.value)
            assert_allclose(risk.value, risk.proof, rtol=1e-12)


# ------------------------------------------------------------------------------------ input kinds


def test_sparse_data_frames_lists_and_narrow_types_give_the_same_answer(rng):
    pandas = pytest.importorskip("pandas")
    X = np.where(rng.random((30, 6)) < 0.5, 0.0, np.round(rng.random((30, 6)), 2))
    X = X.astype(np.float32).astype(float)
    y, w = rng.choice([-1, 1], size=30), rng.normal(size=6)
    for support in (None, "unit-box"):
        arguments = {"epsilon": 0.1, "kappa": 0.5, "support": support}
        expected = worst_case_risk(w, X, y, **arguments)
        kinds = [
            X.tolist(),
            np.asfortranarray(X),
            X.astype(np.float32),
            pandas.DataFrame(X),
            sparse.csr_array(X),
            sparse.csc_matrix(X),
            sparse.coo_array(X),
        ]
        for kind in kinds:
            risk = worst_case_risk(w, kind, y.tolist(), **arguments)
            assert_allclose(risk.value, expected.value, rtol=1e-14)
            assert_allclose(risk.subgradient, expected.subgradient, atol=1e-15)


def test_inputs_are_left_as_they_were(rng):
    X, y, w = rng.random((30, 3)), rng.choice([-1.0, 1.0], size=30), rng.normal(size=3)
    before = [a.copy() for a in (X, y, w)]
    for support in (None, "unit-box"):
        worst_case_risk(w, X, y, epsilon=0.1, support=support, sample_weight=np.ones(30))
    for array, copy in zip((X, y, w), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_inputs_are_left_as_they_were(dtype):
    """Unsorted and doubled entries are put in order, but not in the caller's arrays."""
    data, indices = np.array([0.25, 0.125, 0.5, 0.25], dtype), np.array([1, 0, 0, 0])
    X = sparse.csr_array((data, indices, np.array([0, 2, 4])), shape=(2, 2))
    dense = np.array([[0.125, 0.25], [0.75, 0.0]])
    for support in (None, "unit-box"):
        arguments = {"epsilon": 0.1, "kappa": 0.5, "support": support}
        for _ in range(2):
            ours = worst_case_risk([2.0, -1.0], X, [1, -1], **arguments)
            assert ours.value == worst_case_risk([2.0, -1.0], dense, [1, -1], **arguments).value
    np.testing.assert_array_equal(X.indices, [1, 0, 0, 0])
    np.testing.assert_array_equal(X.data, data)


def test_a_loss_derived_from_the_hinge_is_not_taken_for_it():
    class Doubled(Hinge):
        lipschitz = 2.0

        def value(self, margins):
            return 2.0 * super().value(margins)

    with pytest.raises(UnsupportedError, match="support"):
        worst_case_risk([1.0], [[0.5]], [1], epsilon=0.1, loss=Doubled(), support="unit-box")


def test_the_oracle_is_the_function(rng):
    X, y = rng.random((30, 3)), rng.choice([-1.0, 1.0], size=30)
    oracle = RiskOracle(X, y, epsilon=0.1, kappa=0.3, support="unit-box")
    for _ in range(3):
        w = rng.normal(size=3)
        one = oracle(w, 0.25)
        other = worst_case_risk(w, X, y, epsilon=0.1, kappa=0.3, support="unit-box", intercept=0.25)
        assert one.value == other.value
        np.testing.assert_array_equal(one.subgradient, other.subgradient)


@pytest.mark.parametrize("support", [None, "unit-box"])
def test_a_copied_oracle_answers_as_the_first_one(support, rng):
    X, y = rng.random((20, 3)), np.where(rng.random(20) < 0.5, -1.0, 1.0)
    oracle = RiskOracle(X, y, epsilon=0.1, support=support)
    w = np.array([1.0, -2.0, 0.5])
    assert deepcopy(oracle)(w).value == oracle(w).value
