"""Effects add up to scores; the cheapest flips are as cheap as linear and conic programs say."""

import clarabel
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import linprog
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from fdrsvm.core.vectors import NORMS, dual_norm
from fdrsvm.errors import InvalidInputError, NumericalError, UnsupportedError
from fdrsvm.estimators.fdrsvc import FDRSVC
from fdrsvm.inspection import feature_effects, flipping_perturbation, worst_case_atoms
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.distribution import worst_case_distribution
from fdrsvm.risk.feature_maps import AdditiveMap, FourierMap
from fdrsvm.risk.worst_case import worst_case_risk
from tests.inspection.models import Linear

EPS = np.finfo(float).eps
ORDER = {"l1": 1, "l2": 2, "linf": np.inf}


def score_rounding(model, X):
    """Bound on the rounding of two sums of P products and an intercept, in any order."""
    sizes = np.abs(X) @ np.abs(model.coef_).T + np.abs(model.intercept_)
    return 2.0 * (X.shape[1] + 2) * EPS * sizes.max(axis=1)


def random_case(rng, n_classes=2, n_features=6, n_samples=12):
    """A model with some zero weights, and samples in the unit box, some of them on its walls."""
    n_scores = 1 if n_classes == 2 else n_classes
    coef = rng.normal(size=(n_scores, n_features)) * (rng.random((n_scores, n_features)) < 0.8)
    X = rng.random((n_samples, n_features))
    X[rng.random(X.shape) < 0.2] = 0.0
    X[rng.random(X.shape) < 0.1] = 1.0
    # Most planes, but not all, pass through the box.
    return Linear(coef, 1.5 * rng.normal(size=n_scores) - coef.sum(axis=1) / 2.0), X


# Effects


@pytest.mark.parametrize("baseline", [None, [0.5, 1.0, -2.0, 0.0]])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_effects_and_intercept_add_up_to_the_score(n_classes, baseline, rng):
    X, y = rng.normal(size=(40, 4)), np.arange(40) % n_classes
    model = LogisticRegression().fit(X, y)
    found = feature_effects(model, X, baseline=baseline)
    assert_array_equal(found.score, found.effects.sum(axis=1) + found.intercept)
    sizes = np.abs(X) if baseline is None else np.abs(X) + 2.0 * np.abs(baseline)
    rounding = score_rounding(model, sizes)
    difference = np.abs(found.score - model.decision_function(X))
    assert (difference.reshape(40, -1) <= 2.0 * rounding[:, None]).all()


def test_an_effect_is_weight_times_value(rng):
    model, X = random_case(rng)
    assert_array_equal(feature_effects(model, X).effects, model.coef_[0] * X)
    assert feature_effects(model, X).intercept == model.intercept_[0]


def test_against_a_baseline_the_intercept_is_its_score_and_its_own_effects_are_zero(rng):
    model, X = random_case(rng, n_classes=3)
    found = feature_effects(model, X, baseline=X[4])
    assert_allclose(found.intercept, model.decision_function(X)[4], rtol=1e-13)
    assert not found.effects[4].any()
    assert_allclose(found.effects[0, 2], model.coef_[:, 2] * (X[0, 2] - X[4, 2]), rtol=1e-13)


def test_top_lists_the_strongest_effects_of_each_row_first():
    model = Linear([3.0, -1.0, 0.5], feature_names=["pressure", "flow", "speed"])
    rows = feature_effects(model, [[1.0, 4.0, 2.0], [1.0, 0.0, 2.0]]).top(2)
    assert rows[0] == (("flow", 4.0, -4.0), ("pressure", 1.0, 3.0))
    assert [effect.feature for effect in rows[1]] == ["pressure", "speed"]
    assert len(feature_effects(model, [[1.0, 4.0, 2.0]]).top(99)[0]) == 3


def test_top_of_several_classes_explains_the_winner_unless_told_otherwise():
    model = Linear([[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0]], classes=["a", "b", "c"])
    found = feature_effects(model, [[3.0, 1.0], [1.0, 3.0]])
    assert [row[0] for row in found.top(1)] == [("x0", 3.0, 3.0), ("x1", 3.0, 6.0)]
    assert [row[0].effect for row in found.top(1, class_of_interest="c")] == [-3.0, -3.0]
    with pytest.raises(InvalidInputError, match=r"class_of_interest.*'a', 'b', 'c'.*'d'"):
        found.top(class_of_interest="d")


def test_sparse_rows_have_the_effects_of_dense_ones(rng):
    model, X = random_case(rng)
    dense, csr = feature_effects(model, X), feature_effects(model, sparse.csr_array(X))
    assert_array_equal(dense.effects, csr.effects)
    assert_array_equal(dense.values, csr.values)


def test_results_do_not_follow_later_changes_of_the_data(rng):
    model, X = random_case(rng)
    effects, flip = feature_effects(model, X), flipping_perturbation(model, X)
    before = X.copy()
    X[:] = 7.0
    assert_array_equal(effects.values, before)
    assert_array_equal(flip.values, before)


# Flips


def cheapest_by_program(w, score, x, norm, box):
    """min ||d|| over w.d = -score and, in the box, low <= x + d <= high: inf if there is none."""
    P = w.size
    low, high = box
    if norm == "l2":
        return _cheapest_by_cone(w, score, low - x, high - x)
    bounds = [*zip(low - x, high - x, strict=True)]
    n_sizes = P if norm == "l1" else 1
    sizes = np.eye(P) if norm == "l1" else np.ones((P, 1))
    result = linprog(
        np.r_[np.zeros(P), np.ones(n_sizes)],
        A_ub=np.vstack([np.hstack([np.eye(P), -sizes]), np.hstack([-np.eye(P), -sizes])]),
        b_ub=np.zeros(2 * P),
        A_eq=np.r_[w, np.zeros(n_sizes)][None],
        b_eq=[-score],
        bounds=bounds + [(0.0, None)] * n_sizes,
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status in (0, 2)
    return result.fun if result.status == 0 else np.inf


def _cheapest_by_cone(w, score, least, most):
    P = w.size
    walls = np.isfinite(least)
    eye = np.eye(P)[walls]
    A = np.vstack(
        [
            np.r_[w, 0.0],
            np.c_[eye, np.zeros(len(eye))],
            np.c_[-eye, np.zeros(len(eye))],
            np.r_[np.zeros(P), -1.0],
            np.c_[-np.eye(P), np.zeros(P)],
        ]
    )
    b = np.r_[-score, most[walls], -least[walls], 0.0, np.zeros(P)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [
        clarabel.ZeroConeT(1),
        clarabel.NonnegativeConeT(2 * len(eye)),
        clarabel.SecondOrderConeT(P + 1),
    ]
    nothing = sparse.csc_matrix((P + 1, P + 1))
    goal = np.r_[np.zeros(P), 1.0]
    solver = clarabel.DefaultSolver(nothing, goal, sparse.csc_matrix(A), b, cones, settings)
    solution = solver.solve()
    if "Infeasible" in str(solution.status):
        return np.inf
    assert "Solved" in str(solution.status)
    return solution.obj_val


UNIT = (np.zeros(6), np.ones(6))
ANYWHERE = (np.full(6, -np.inf), np.full(6, np.inf))


@pytest.mark.parametrize("support", [None, "unit-box"])
@pytest.mark.parametrize("norm", NORMS)
def test_two_classes_flip_at_the_cost_that_a_program_finds(norm, support, rng):
    outcomes = set()
    for _ in range(10):
        model, X = random_case(rng, n_samples=6)
        flip = flipping_perturbation(model, X, norm=norm, support=support)
        box = ANYWHERE if support is None else UNIT
        expected = [
            cheapest_by_program(model.coef_[0], score, x, norm, box)
            for x, score in zip(X, model.decision_function(X), strict=True)
        ]
        # The programs are solved to 1e-10 of numbers near 1.
        assert_allclose(flip.cost, expected, rtol=1e-7, atol=1e-8)
        outcomes |= set(flip.is_possible.tolist())
        check_points(model, X, flip, norm, box)
    assert outcomes == ({True} if support is None else {True, False})


@pytest.mark.parametrize("support", [None, "unit-box"])
@pytest.mark.parametrize("norm", NORMS)
def test_several_classes_flip_to_the_cheapest_rival(norm, support, rng):
    for _ in range(3):
        model, X = random_case(rng, n_classes=4)
        flip = flipping_perturbation(model, X, norm=norm, support=support)
        box = ANYWHERE if support is None else UNIT
        scores = model.decision_function(X)
        for n, x in enumerate(X):
            winner = scores[n].argmax()
            rivals = [k for k in range(4) if k != winner]
            costs = [
                cheapest_by_program(
                    model.coef_[k] - model.coef_[winner],
                    scores[n, k] - scores[n, winner],
                    x,
                    norm,
                    box,
                )
                for k in rivals
            ]
            assert_allclose(flip.cost[n], min(costs), rtol=1e-7, atol=1e-8)
            if np.isfinite(min(costs)):
                assert flip.flipped_labels[n] == rivals[int(np.argmin(costs))]
        check_points(model, X, flip, norm, box)


def check_points(model, X, flip, norm, box):
    """What holds of every flip: the point is on the boundary, in the box, and as far as it says."""
    some = flip.is_possible
    assert_array_equal(np.isfinite(flip.cost), some)
    assert np.isnan(flip.points[~some]).all()
    assert not flip.moved[~some].any()
    assert_array_equal(flip.labels, model.predict(X))
    assert_array_equal(flip.flipped_labels != flip.labels, some)
    X, points = X[some], flip.points[some]
    assert ((points >= box[0]) & (points <= box[1])).all()
    distances = np.linalg.norm(points - X, ord=ORDER[norm], axis=1)
    assert_allclose(distances, flip.cost[some], rtol=1e-12, atol=1e-14)
    assert_array_equal(flip.moved[some] | (points == X), np.ones_like(X, dtype=bool))
    scores = model.decision_function(points).reshape(len(points), len(model.coef_))
    if scores.shape[1] > 1:
        scores = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)
    # The score at x, the sum of the moves and the score at the point each round.
    assert (np.abs(scores[:, 0]) <= 4.0 * score_rounding(model, np.abs(X) + np.abs(points))).all()


@pytest.mark.parametrize("norm", NORMS)
def test_anywhere_the_cost_is_the_score_over_the_dual_norm(norm, rng):
    model, X = random_case(rng)
    flip = flipping_perturbation(model, X, norm=norm)
    expected = np.abs(model.decision_function(X)) / dual_norm(model.coef_[0], norm)
    assert_allclose(flip.cost, expected, rtol=1e-13)


@pytest.mark.parametrize("norm", NORMS)
def test_just_beyond_the_point_the_decision_is_another(norm, rng):
    for n_classes in (2, 4):
        model, X = random_case(rng, n_classes=n_classes)
        flip = flipping_perturbation(model, X, norm=norm)
        move = flip.points - X
        assert_array_equal(model.predict(X + (1.0 - 1e-9) * move), flip.labels)
        assert_array_equal(model.predict(X + (1.0 + 1e-9) * move), flip.flipped_labels)


@pytest.mark.parametrize("norm", NORMS)
def test_a_box_too_wide_to_matter_changes_nothing(norm, rng):
    model, X = random_case(rng)
    anywhere = flipping_perturbation(model, X, norm=norm)
    in_box = flipping_perturbation(model, X, norm=norm, support=(-1e6, 1e6))
    assert_allclose(in_box.points, anywhere.points, atol=1e-12)
    assert_array_equal(in_box.moved, anywhere.moved)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_on_a_box_features_move_side_by_side_and_stop_at_the_walls(norm, rng):
    """Equation [flip-on-box], with t by bisection."""
    model, X = random_case(rng, n_samples=50)
    w, scores = model.coef_[0], model.decision_function(X)
    flip = flipping_perturbation(model, X, norm=norm, support="unit-box")
    for n in np.flatnonzero(flip.is_possible):
        room = np.where(w * scores[n] > 0.0, X[n], 1.0 - X[n])
        unit = np.where(w == 0.0, 0.0, 1.0 if norm == "linf" else np.abs(w))
        least, most = 0.0, 1e6
        for _ in range(200):
            t = (least + most) / 2.0
            enough = np.abs(w) @ np.minimum(room, t * unit) >= abs(scores[n])
            least, most = (least, t) if enough else (t, most)
        moves = np.minimum(room, most * unit)
        assert_allclose(np.abs(flip.points[n] - X[n]), moves, atol=1e-9)


def test_l1_on_a_box_takes_the_strongest_features_first():
    model = Linear([3.0, -2.0, 1.0], -0.25, feature_names=["a", "b", "c"])
    flip = flipping_perturbation(model, [[0.5, 0.25, 0.5]], norm="l1", support="unit-box")
    # The score is 1.25: a goes down by 1.25/3, and b and c stay.
    assert_allclose(flip.cost, [1.25 / 3.0])
    assert [change.feature for change in flip.changes(0)] == ["a"]
    flip = flipping_perturbation(
        model, [[0.25, 0.0, 1.0]], norm="l1", support=((0, 0, 0), (1, 1, 1))
    )
    # The score is 1.5: a falls to 0, which gives 0.75, and b rises by 0.375 for the rest.
    assert_allclose(flip.points, [[0.0, 0.375, 1.0]])
    assert flip.changes(0) == (("b", 0.0, 0.375), ("a", 0.25, 0.0))


@pytest.mark.parametrize("norm", NORMS)
def test_a_boundary_that_touches_the_box_in_a_corner_can_be_reached(norm, rng):
    for _ in range(50):
        model = Linear(rng.random(7) + 0.1)
        X = rng.random((4, 7))
        flip = flipping_perturbation(model, X, norm=norm, support="unit-box")
        assert flip.is_possible.all()
        assert_allclose(flip.points, 0.0, atol=1e-12)


def test_points_at_a_wall_are_not_a_rounding_beyond_it(rng):
    low, high = -1.0, 0.1
    X = rng.uniform(low, high, size=(500, 3))
    assert (X + (high - X) > high).any()  # this is what would happen
    flip = flipping_perturbation(Linear(np.ones(3), -3.0 * high), X, support=(low, high))
    assert flip.is_possible.all()
    assert ((flip.points >= low) & (flip.points <= high)).all()


@pytest.mark.parametrize("support", [None, "unit-box"])
@pytest.mark.parametrize("norm", NORMS)
def test_a_model_without_weights_flips_only_where_its_score_is_zero(norm, support):
    X = [[0.5, 0.5]]
    flip = flipping_perturbation(Linear([0.0, 0.0], 1.0), X, norm=norm, support=support)
    assert flip.cost[0] == np.inf
    assert flip.changes(0) == ()
    flip = flipping_perturbation(Linear([0.0, 0.0]), X, norm=norm, support=support)
    assert flip.cost[0] == 0.0
    assert_array_equal(flip.points, X)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e12, 1e200])
@pytest.mark.parametrize("support", [None, "unit-box"])
@pytest.mark.parametrize("norm", NORMS)
def test_the_scale_of_the_score_does_not_matter(norm, support, scale, rng):
    model, X = random_case(rng)
    flip = flipping_perturbation(model, X, norm=norm, support=support)
    scaled = Linear(scale * model.coef_, scale * model.intercept_)
    assert_allclose(
        flipping_perturbation(scaled, X, norm=norm, support=support).cost, flip.cost, rtol=1e-11
    )


@pytest.mark.parametrize("norm", NORMS)
def test_weights_of_very_different_sizes_are_no_obstacle(norm):
    model = Linear([1.0, 1e-9, 1e-170], -0.5 - 1e-10)
    flip = flipping_perturbation(model, [[0.5, 0.5, 0.5]], norm=norm, support="unit-box")
    assert flip.is_possible[0]
    assert abs(model.decision_function(flip.points)[0]) <= 1e-16
    no_room = flipping_perturbation(model, [[0.5, 0.5, 0.5]], norm=norm, support=([0.5, 0, 0], 1.0))
    assert no_room.is_possible[0]
    assert 1e-10 < no_room.cost[0] < 1.0


# What the worst case does


def test_atoms_of_all_samples_make_up_the_worst_case(rng):
    X, y = rng.random((15, 3)), np.where(rng.random(15) < 0.5, "worn", "healthy")
    model = Linear([2.0, -1.0, 0.5], -0.4, classes=["healthy", "worn"])
    ball = {"epsilon": 0.08, "kappa": 0.3, "norm": "l2", "support": "unit-box"}
    atoms = [worst_case_atoms(model, X, y, n, **ball) for n in range(15)]
    for found in atoms:
        assert 1 <= len(found) <= 2
        assert_allclose(sum(atom.mass for atom in found), 1.0 / 15.0)
    everything = [atom for found in atoms for atom in found]
    signs = np.where(y == "worn", 1.0, -1.0)
    worst = worst_case_distribution(model.coef_[0], X, signs, intercept=-0.4, **ball)
    assert_allclose(sum(a.mass * a.cost for a in everything), worst.transport_cost)
    losses = [
        max(0.0, 1.0 - (1 if a.label == "worn" else -1) * (model.coef_[0] @ a.point - 0.4))
        for a in everything
    ]
    risk = sum(atom.mass * loss for atom, loss in zip(everything, losses, strict=True))
    expected = worst_case_risk(model.coef_[0], X, signs, intercept=-0.4, **ball)
    assert_allclose(risk, expected.value)


def test_at_radius_zero_a_sample_stays_where_it_is(rng):
    model, X = random_case(rng)
    y = model.predict(X)
    (atom,) = worst_case_atoms(model, X, y, 3, epsilon=0.0, support="unit-box")
    assert_array_equal(atom.point, X[3])
    assert (atom.label, atom.cost) == (y[3], 0.0)


def test_bad_rows_of_atoms_are_named(rng):
    model, X = random_case(rng)
    y = model.predict(X)
    for index in (-1, len(X), 0.5, True, "0"):
        with pytest.raises(InvalidInputError, match="index: must be the number of a row"):
            worst_case_atoms(model, X, y, index, epsilon=0.1, support="unit-box")
    with pytest.raises(InvalidInputError, match="model: must have two classes"):
        worst_case_atoms(Linear(np.eye(3)), np.eye(3), [0, 1, 2], 0, epsilon=0.1, support=(0, 1))


# Models, names and bad input


def test_real_estimators_are_explained():
    data = load_iris(as_frame=True)
    X, y = data.data, data.target
    model = FDRSVC(epsilon=0.02).fit(X, y, clients=np.arange(150) % 3)
    effects, flip = feature_effects(model, X), flipping_perturbation(model, X, norm="l1")
    assert_allclose(effects.score, model.decision_function(X), atol=1e-10)
    assert_array_equal(flip.labels, model.predict(X))
    assert effects.feature_names == flip.feature_names == tuple(data.feature_names)
    two = FDRSVC(epsilon=0.02).fit(X, y == 0)
    flip = flipping_perturbation(two, X, support=(0.0, 10.0))
    frame = X.assign(**dict(zip(X.columns, flip.points.T, strict=True)))
    assert_allclose(two.decision_function(frame), 0.0, atol=1e-12)
    assert_array_equal(flip.flipped_labels, ~flip.labels)


def test_a_model_from_a_file_has_no_underscores(rng):
    model, X = random_case(rng)

    class FromFile:
        coef, intercept, classes = model.coef_, model.intercept_, (False, True)
        feature_names = tuple("abcdef")

    found = feature_effects(FromFile(), X)
    assert_array_equal(found.effects, feature_effects(model, X).effects)
    assert found.feature_names == tuple("abcdef")


def test_frames_keep_their_names(rng):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = ["pressure", "flow", "speed"]
    X, y = rng.random((20, 3)), np.arange(20) % 2
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        trained_on_names, on_numbers = LinearSVC().fit(frame, y), LinearSVC().fit(X, y)
        for model, given in ((trained_on_names, frame), (trained_on_names, X), (on_numbers, frame)):
            assert feature_effects(model, given).feature_names == tuple(names)
            assert flipping_perturbation(model, given).feature_names == tuple(names)
        with pytest.raises(InvalidInputError, match=r"column 0 is 'flow', not 'pressure'"):
            feature_effects(trained_on_names, frame[["flow", "pressure", "speed"]])
        with pytest.raises(InvalidInputError, match=r"row 0, column 1 \('flow'\)"):
            flipping_perturbation(trained_on_names, frame, support=([0, 2, 0], 3.0))
    assert feature_effects(on_numbers, X).feature_names == ("x0", "x1", "x2")


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (LinearSVC(), "LinearSVC has no coef_"),
        (SVC(kernel="rbf").fit([[0.0], [1.0]], [0, 1]), "SVC has no coef_"),
        (make_pipeline(StandardScaler(), LinearSVC()), "Pipeline has no coef_"),
        (
            SVC(kernel="linear").fit([[0.0], [1.0], [2.0]], ["a", "b", "c"]),
            "SVC has 3 for 3 classes",
        ),
        (Linear(np.eye(3), classes=["a", "b", "c", "d"]), "Linear has 3 for 4 classes"),
        (Linear([1.0], classes=["a"]), "classes_ is"),
    ],
)
def test_what_is_no_fitted_linear_classifier_is_refused(model, found):
    for function in (feature_effects, flipping_perturbation):
        with pytest.raises(InvalidInputError, match="must be a fitted linear classifier") as caught:
            function(model, [[0.0]])
        assert caught.value.argument == "model"
        assert found in str(caught.value)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda m: feature_effects(m, [[1.0, 2.0, 3.0]]), "X"),
        (lambda m: feature_effects(m, [[1.0, np.nan]]), "X"),
        (lambda m: feature_effects(m, [[1.0, 2.0]], baseline=[1.0]), "baseline"),
        (lambda m: feature_effects(m, [[1.0, 2.0]]).top(0), "k"),
        (lambda m: feature_effects(m, [[1.0, 2.0]]).top(1.5), "k"),
        (lambda m: feature_effects(m, [[1.0, 2.0]]).top(class_of_interest=1), "class_of_interest"),
        (lambda m: flipping_perturbation(m, [[1.0, 2.0, 3.0]]), "X"),
        (lambda m: flipping_perturbation(m, [[1.0, 2.0]], norm="l3"), "norm"),
        (lambda m: flipping_perturbation(m, [[1.0, 2.0]], support="box"), "support"),
        (lambda m: flipping_perturbation(m, [[1.0, 2.0]], support="unit-box"), "X"),
        (lambda m: flipping_perturbation(m, [[1.0, 2.0]]).changes(1), "row"),
    ],
)
def test_bad_input_is_named(call, argument):
    with pytest.raises(InvalidInputError) as caught:
        call(Linear([1.0, -1.0]))
    assert caught.value.argument == argument


def test_scores_that_overflow_are_refused():
    model = Linear([1e300, 1e300])
    for function in (feature_effects, flipping_perturbation):
        with pytest.raises(NumericalError, match="the score of row 1 overflows"):
            function(model, [[1.0, 1.0], [1e300, 1.0]])


# --- feature maps ---


def bent_model(bent, n_classes=2, n_sensors=3):
    rng = np.random.default_rng(4)
    features = bent.over(n_sensors)
    n_scores = 1 if n_classes == 2 else n_classes
    return LinearModel.checked(
        rng.normal(size=(n_scores, features.n_outputs)),
        rng.normal(size=n_scores),
        range(n_classes),
        estimator="other",
        features=features,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("pairs", [None, "all"])
@pytest.mark.parametrize("baseline", [None, [0.2, 1.3, 0.5]])
def test_effects_of_curves_and_pairs_add_up_to_the_score(baseline, pairs, n_classes, rng):
    model = bent_model(AdditiveMap(pairs=pairs), n_classes)
    X = rng.random((20, 3)) * 1.4 - 0.2  # some beyond the limits
    found = feature_effects(model, X, baseline=baseline)
    assert_array_equal(found.score, found.effects.sum(axis=1) + found.intercept)
    assert_allclose(found.score, model.decision_function(X), rtol=1e-12, atol=1e-12)
    if baseline is not None:
        assert_allclose(found.intercept, model.decision_function([baseline])[0], atol=1e-12)


def test_the_effect_of_a_sensor_is_what_its_curve_rises_from_the_lower_limit(rng):
    """Of two sensors with a surface each has its curve, and half of what both add on top."""
    model = bent_model(AdditiveMap(pairs=[(0, 2)]))
    X = rng.random((8, 3))
    alone = [np.where(np.arange(3) == p, X, 0.0) for p in range(3)]
    at_low = model.decision_function(np.zeros((1, 3)))
    curves = np.stack([model.decision_function(each) - at_low for each in alone], axis=1)
    together = model.decision_function(X) - at_low - curves.sum(axis=1)
    expected = curves + together[:, None] * [0.5, 0.0, 0.5]
    assert_allclose(feature_effects(model, X).effects, expected, atol=1e-12)


def test_waves_have_no_effects_and_maps_no_atoms():
    waves, curves = bent_model(FourierMap(n_components=6)), bent_model(AdditiveMap())
    X = np.full((2, 3), 0.5)
    with pytest.raises(UnsupportedError, match=r"one sensor; see what .* features='additive'"):
        feature_effects(waves, X)
    with pytest.raises(UnsupportedError, match=r"worst_case_risk\(..., features=...\)"):
        worst_case_atoms(curves, X, [0, 1], 0, epsilon=0.1, support="unit-box")
