"""Feature maps: what they are, how far they stretch, and what a model of theirs says of sensors."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from fdrsvm.core.vectors import dual_norm, norm_of, norm_rows
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.risk.ball import Box
from fdrsvm.risk.feature_maps import (
    AdditiveMap,
    FourierMap,
    make_features,
    read_features,
    read_map,
)
from fdrsvm.risk.worst_case import worst_case_risk

ORDER = {"l1": 1, "l2": 2, "linf": np.inf}
NORMS = list(ORDER)


def maps(n_sensors, rng):
    """One of each kind, with limits of unlike width."""
    low = rng.normal(size=n_sensors)
    limits = (low, low + rng.uniform(0.2, 3.0, n_sensors))
    made = [
        AdditiveMap(n_knots=int(rng.integers(1, 7)), limits=limits),
        FourierMap(n_components=2 * int(rng.integers(1, 20)), limits=limits),
    ]
    if n_sensors > 1:
        made.append(AdditiveMap(pairs="all", pair_knots=int(rng.integers(1, 4)), limits=limits))
    return [(one, one.over(n_sensors)) for one in made]


@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from(NORMS))
def test_features_move_by_at_most_l_times_what_sensors_move(seed, n_sensors, norm):
    rng = np.random.default_rng(seed)
    for _, features in maps(n_sensors, rng):
        spread = features.width * rng.choice([1e-3, 0.1, 1.0])
        X = features.low + features.width * rng.uniform(-0.5, 1.5, (200, n_sensors))
        moved = X + spread * rng.normal(size=X.shape)
        far = np.linalg.norm(moved - X, ord=ORDER[norm], axis=1)
        mapped = features.apply(moved) - features.apply(X)
        there = norm_rows(mapped, features.norm(norm), features.groups)
        alone = norm_rows(mapped, features.norm(norm))  # as on a box
        assert (alone <= there * (1.0 + 1e-12)).all()
        # The differences carry a rounding of some units in the last place of X.
        slack = 1e-13 * (1.0 + np.abs(X).max() / features.width.min()) * features.n_outputs
        assert (there <= features.stretch(norm) * far + slack).all()


@pytest.mark.parametrize("norm", NORMS)
def test_ramps_of_a_sensor_move_by_just_what_it_moves(norm):
    rng = np.random.default_rng(0)
    features = AdditiveMap(limits=([0.0, -5.0], [1.0, 5.0])).over(2)
    x, moved = rng.uniform(-7.0, 7.0, (2, 50, 2))
    by_sensor = np.abs(features.apply(x) - features.apply(moved)).reshape(50, 2, -1).sum(axis=2)
    np.testing.assert_allclose(by_sensor, np.abs(x - moved), atol=1e-13)
    assert features.stretch(norm) == 1.0
    ramps = features.apply(x).reshape(50, 2, -1).sum(axis=2)
    np.testing.assert_allclose(ramps, x - features.low, atol=1e-13)  # so linear models are in it


@pytest.mark.parametrize("norm", NORMS)
def test_no_smaller_stretch_of_waves_would_hold(norm):
    """Waves move along circles: steep ones move features by nearly L times the way."""
    rng = np.random.default_rng(1)
    features = FourierMap(n_components=12, limits=(0.0, [1.0, 2.0, 4.0])).over(3)
    moves = features.frequencies / features.span * features.scale

    def short_of(direction):
        return -np.linalg.norm(moves @ direction) / np.linalg.norm(direction, ord=ORDER[norm])

    starts = [*rng.normal(size=(40, 3)), *np.eye(3), *np.sign(rng.normal(size=(20, 3)))]
    best = max(-optimize.minimize(short_of, one, method="Nelder-Mead").fun for one in starts)
    assert features.stretch(norm) == pytest.approx(best, rel=1e-5)
    step = 1e-7 * np.ones(3)
    there = np.linalg.norm(features.apply(step[None]) - features.apply(np.zeros((1, 3))))
    assert there == pytest.approx(np.linalg.norm(moves @ step), rel=1e-5)


def test_many_sensors_have_a_bound_in_place_of_all_corners():
    features = FourierMap(n_components=60).over(20)
    moves = features.frequencies / features.span * features.scale
    rng = np.random.default_rng(2)
    corners = np.sign(rng.normal(size=(3000, 20)))
    reached = np.linalg.norm(corners @ moves.T, axis=1).max()
    assert reached <= features.stretch("linf") <= 2.0 * reached


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_the_stretch_of_pairs_is_reached_at_the_upper_limits(norm):
    """l1 and linf of [map-pairs]: where both sensors are at their ends the bound is tight."""
    features = AdditiveMap(pairs="all", pair_knots=2, limits=(0.0, [1.0, 3.0, 0.5])).over(3)
    at, step = features.low + features.width * (1.0 - 1e-9), 1e-10
    reached = 0.0
    directions = np.eye(3) if norm == "l1" else np.ones((1, 3))
    for direction in directions:
        moved = features.apply((at - step * direction)[None]) - features.apply(at[None])
        reached = max(reached, norm_of(moved[0], norm, features.groups) / step)
    assert reached == pytest.approx(features.stretch(norm), rel=1e-4)


@pytest.mark.parametrize("norm", NORMS)
def test_the_stretch_of_pairs_is_the_documented_one(norm):
    """[map-pairs], in plain Python."""
    spans, pairs = [1.0, 3.0, 0.5, 2.0], [(0, 1), (1, 2), (0, 3)]
    shares = [[] for _ in spans]
    for i, j in pairs:
        shares[i].append(spans[j] / (spans[i] + spans[j]))
        shares[j].append(spans[i] / (spans[i] + spans[j]))
    expected = {
        "l1": 1.0 + max(map(sum, shares)),
        "l2": (1.0 + max(sum(2.0 * h**2 for h in each) for each in shares)) ** 0.5,
        "linf": 1.0,
    }
    features = AdditiveMap(pairs=pairs, limits=(0.0, spans)).over(4)
    assert features.stretch(norm) == pytest.approx(expected[norm], rel=1e-11)


@given(st.integers(0, 10**6))
def test_curves_and_surfaces_are_the_score(seed):
    rng = np.random.default_rng(seed)
    features = AdditiveMap(n_knots=4, pairs=[(0, 2)], pair_knots=3, limits=(-1.0, 2.0)).over(3)
    weights = rng.normal(size=features.n_outputs)
    X = rng.uniform(-1.0, 2.0, (30, 3))
    knots, values = features.curves(weights)
    total = sum(np.interp(X[:, j], knots[j], values[j]) for j in range(3))
    surface, places = features.surfaces(weights)[0], np.linspace(-1.0, 2.0, 4)
    for x, row in zip(X, range(30), strict=True):
        down = [np.interp(x[0], places, column) for column in surface.T]
        total[row] += np.interp(x[2], places, down)
    np.testing.assert_allclose(total, features.apply(X) @ weights, atol=1e-12)


@given(st.integers(0, 10**6))
def test_features_stay_in_their_box(seed):
    rng = np.random.default_rng(seed)
    for _, features in maps(3, rng):
        low, high = np.sort(features.low + rng.normal(size=(2, 3)), axis=0)
        box = features.box(Box(low, high))
        mapped = features.apply(rng.uniform(low, high, (50, 3)))
        assert (mapped >= box.low).all()
        assert (mapped <= box.high).all()


def test_readings_in_other_units_have_the_same_features():
    rng = np.random.default_rng(3)
    for _, features in maps(3, rng):
        X, offset, scale = rng.normal(size=(20, 3)), rng.normal(size=3), rng.uniform(0.1, 9.0, 3)
        there = features.rescaled(offset, scale)
        mapped = there.apply(X * scale + offset)
        np.testing.assert_allclose(mapped, features.apply(X), atol=1e-11)
        np.testing.assert_array_equal(there.span, features.span)  # prices stay


def test_features_and_maps_come_back_from_plain_values():
    rng = np.random.default_rng(4)
    for one, features in maps(3, rng):
        assert read_map(one.to_params()) == one
        back = read_features(features.kind, features.settings(), features.arrays())
        X = rng.normal(size=(5, 3))
        np.testing.assert_array_equal(back.apply(X), features.apply(X))
    # Also from the numbers of a grid, np.arange(3, 7) for one.
    numpys = AdditiveMap(n_knots=np.int64(3), pairs=np.array([[1, 0]]), pair_knots=np.int32(2))
    assert json.dumps(numpys.over(2).settings())


def test_waves_are_nearly_the_gaussian_kernel():
    features = FourierMap(n_components=4000, gamma=1.5).over(2)
    rng = np.random.default_rng(5)
    X = rng.random((20, 2))
    kernel = np.exp(-1.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    mapped = features.apply(X)
    # The mean of 2000 cosines: six standard deviations of at most 1/sqrt(2 * 2000) each.
    np.testing.assert_allclose(mapped @ mapped.T, kernel, atol=6.0 / np.sqrt(4000.0))


def test_names_and_defaults():
    assert make_features("linear", 3, None) is None
    assert make_features("additive", 3, None).n_outputs == 18
    assert make_features("additive-pairs", 3, None).n_outputs == 18 + 3 * 4
    assert make_features("fourier", 3, None).n_outputs == 200
    in_box = make_features("additive", 2, ([0.0, 5.0], [2.0, 5.0]))
    np.testing.assert_array_equal(in_box.low, [0.0, 5.0])
    np.testing.assert_array_equal(in_box.width, [2.0, 1.0])  # a sensor that cannot move


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: read_map("quadratic"), "one of 'linear'"),
        (lambda: read_map(7), "AdditiveMap"),
        (lambda: read_map({"map": "hats"}), "features: map"),
        (lambda: read_map({"map": "additive", "knots": 3}), "knots"),
        (lambda: AdditiveMap(n_knots=0), "n_knots"),
        (lambda: AdditiveMap(pairs=[(1, 1)]), "two columns"),
        (lambda: AdditiveMap(pairs=[(0, 1), (1, 0)]), "must differ"),
        (lambda: AdditiveMap(pairs="some"), "pairs"),
        (lambda: AdditiveMap(pairs=[(0, 5)]).over(3), "below 3"),
        (lambda: AdditiveMap(limits=3.0), "pair"),
        (lambda: AdditiveMap(limits=(1.0, 0.0)).over(2), "low must not exceed high"),
        (lambda: AdditiveMap(pairs="all").over(100), "at most 20000 features"),
        (lambda: FourierMap(n_components=3), "even"),
        (lambda: FourierMap(gamma=0.0), "gamma"),
        (lambda: FourierMap(gamma="auto"), "gamma"),
        (lambda: FourierMap(random_state=-1), "random_state"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(make, said):
    with pytest.raises(InvalidInputError, match=said):
        make()


@pytest.mark.parametrize("name", [AdditiveMap(), FourierMap()])
def test_rows_with_other_columns_are_refused_in_words(name):
    """One column must not be spread over all sensors."""
    features = name.over(2)
    for n_columns in (1, 3):
        X, w = np.full((4, n_columns), 0.5), np.ones(features.n_outputs)
        with pytest.raises(InvalidInputError, match=f"2 columns.*got {n_columns}"):
            features.apply(X)
        with pytest.raises(InvalidInputError, match="2 columns"):
            worst_case_risk(w, X, [-1, 1, -1, 1], epsilon=0.1, features=features)


def test_sparse_rows_are_refused_in_words():
    from scipy import sparse

    with pytest.raises(UnsupportedError, match="dense"):
        AdditiveMap().over(2).apply(sparse.csr_array(np.eye(2)))


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_slopes_are_the_gradient_of_the_score(seed, n_sensors):
    rng = np.random.default_rng(seed)
    for _, features in maps(n_sensors, rng):
        w, X = rng.normal(size=features.n_outputs), rng.uniform(-0.3, 1.3, (20, n_sensors))
        X, step = features.low + features.width * X, 1e-7 * features.width
        slopes = features.slopes(X, w)
        for j, move in enumerate(np.diag(step)):
            ahead, behind = (features.apply(X + side * move) @ w for side in (1.0, -1.0))
            numeric = (ahead - behind) / (2.0 * step[j])
            # No knot within a step of all but a few rows in a million.
            np.testing.assert_allclose(
                slopes[:, j], numeric, rtol=1e-6, atol=1e-5 / features.width[j]
            )


def steepest_found(features, w, norm, rng):
    """The largest dual norm of a slope, of many places and of some that are climbed to."""
    order = {"l1": np.inf, "l2": 2, "linf": 1}[norm]

    def less(shares):
        X = features.low + features.width * np.atleast_2d(shares)
        return -np.linalg.norm(features.slopes(X, w), ord=order, axis=1)

    shares = rng.uniform(-0.1, 1.1, (4000, features.n_sensors))
    starts = shares[np.argsort(less(shares))[:3]]
    climbed = [optimize.minimize(lambda s: less(s)[0], s, method="Nelder-Mead") for s in starts]
    return max(-one.fun for one in climbed)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from(NORMS))
def test_no_score_is_steeper_than_it_is_said_to_be(seed, n_sensors, norm):
    rng = np.random.default_rng(seed)
    for _, features in maps(n_sensors, rng):
        w = rng.normal(size=features.n_outputs) * rng.choice([0.1, 1.0, 5.0], features.n_outputs)
        steepness = features.steepness(w, norm)
        groups = features.groups if norm != "l1" else None
        by_norm = features.stretch(norm) * dual_norm(w, features.norm(norm), groups)
        assert steepness <= by_norm * (1.0 + 1e-9)
        assert steepest_found(features, w, norm, rng) <= steepness * (1.0 + 1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_curves_are_somewhere_as_steep_as_they_are_said_to_be(norm):
    rng = np.random.default_rng(6)
    features = AdditiveMap(n_knots=3, limits=(0.0, [1.0, 3.0])).over(2)
    w = rng.normal(size=features.n_outputs)
    found = steepest_found(features, w, norm, rng)
    assert found == pytest.approx(features.steepness(w, norm), rel=1e-9)


def test_with_pairs_the_steepest_place_is_found_sensor_by_sensor():
    """[map-pairs]: with l1 no smaller bound is true; the slope nears it at knots."""
    rng = np.random.default_rng(7)
    features = AdditiveMap(
        pairs="all", n_knots=5, pair_knots=2, limits=(0.0, [1.0, 3.0, 0.5])
    ).over(3)
    for _ in range(5):
        w = rng.normal(size=features.n_outputs)
        ends = np.array([-0.1, 1e-9, 0.5 - 1e-9, 0.5 + 1e-9, 1.0 - 1e-9, 1.1])
        fine = np.union1d(ends, (np.arange(5) + 0.5) / 5)
        grid = np.array(np.meshgrid(fine, fine, fine)).reshape(3, -1).T
        slopes = features.slopes(features.low + features.width * grid, w)
        assert np.abs(slopes).max() == pytest.approx(features.steepness(w, "l1"), rel=1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_few_waves_are_all_steepest_at_once(norm):
    """[map-fourier]: as many waves as sensors can have any phases; l1 and linf are reached."""
    rng = np.random.default_rng(8)
    features = FourierMap(n_components=6, limits=(0.0, [1.0, 2.0, 0.7])).over(3)
    order = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    for _ in range(5):
        w = rng.normal(size=6)
        heights = np.hypot(w[:3], w[3:]) * features.scale
        turns = features.frequencies / features.span
        sides = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
        reached = np.linalg.norm(sides * heights @ turns, ord=order, axis=1).max()
        steepness = features.steepness(w, norm)
        if norm == "l2":  # a relaxation, or L times the norm; no worse than what it is made of
            assert reached <= steepness * (1.0 + 1e-12)
            # Of normal directions with the best density's covariance one is that good on average.
            assert steepness <= np.sqrt(np.pi / 2.0) * reached * (1.0 + 1e-4)
        else:
            by_norm = features.stretch(norm) * np.linalg.norm(w)
            assert steepness == pytest.approx(min(reached, by_norm), rel=1e-9)
            assert reached <= by_norm * (1.0 + 1e-9)


def test_waves_of_many_sensors_have_a_bound_too():
    rng = np.random.default_rng(9)
    features = FourierMap(n_components=40).over(20)
    w = rng.normal(size=40)
    slopes = features.slopes(rng.random((20_000, 20)), w)
    assert np.abs(slopes).sum(axis=1).max() <= features.steepness(w, "linf")
    assert features.steepness(w, "linf") <= features.stretch("linf") * np.linalg.norm(w)


@pytest.mark.parametrize("norm", NORMS)
def test_no_optimiser_finds_a_larger_ratio(norm):
    """Features move by at most L times what sensors move, over moves that are made for it."""
    rng = np.random.default_rng(10)
    for _, features in maps(3, rng):

        def short_of(both, features=features):
            X = features.low + features.width * both.reshape(2, 3)
            moved = features.apply(X)
            far = np.linalg.norm(X[1] - X[0], ord=ORDER[norm])
            if far < 1e-6:  # nothing but rounding
                return 0.0
            return -norm_of(moved[1] - moved[0], features.norm(norm), features.groups) / far

        for _ in range(3):
            start = rng.uniform(0.0, 1.0, 6)
            found = optimize.minimize(short_of, start, method="Nelder-Mead")
            assert -found.fun <= features.stretch(norm) * (1.0 + 1e-8)
