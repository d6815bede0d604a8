"""[radius], [confidence] and [generalisation] recomputed, and held against measurement."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.stats import norm as normal

from fdrsvm import (
    InvalidInputError,
    generalisation_bound,
    mowb_confidence,
    practical_radius,
    wasserstein_radius,
    worst_case_risk,
)
from fdrsvm.core.losses import LOSSES
from tests.problems import NORMS

sizes = st.integers(1, 10**6)
features = st.integers(1, 30)
etas = st.floats(1e-6, 0.99)
constants = st.fixed_dictionaries(
    {"c1": st.floats(1.0, 10), "c2": st.floats(0.01, 10), "a": st.floats(1.1, 4)}
)


def bulk_radius(q, p):
    """r of [radius]; for two features by a bracketing root finder in log r."""
    if p != 2:
        return q ** (1 / max(p, 2))

    def excess(u):
        return 2 * (u - math.log(math.log(2 + math.exp(-u)))) - math.log(q)

    return math.exp(brentq(excess, -50, 50, xtol=1e-14, rtol=1e-14))


@given(sizes, features, etas, constants, st.floats(0.1, 10))
def test_the_radius_is_the_formula(n, p, eta, given_constants, c3):
    c1, c2, a = given_constants["c1"], given_constants["c2"], given_constants["a"]
    q = math.log(c1 / eta) / (c2 * n)
    tail, bulk = q ** (1 / a), min(bulk_radius(q, p), c3 ** (1 / a))
    found = wasserstein_radius(n, p, eta=eta, c3=c3, **given_constants)
    # At the branch point itself rounding decides which branch is taken; both are the formula.
    on_the_edge = math.isclose(q, c3, rel_tol=1e-12)
    expected = [tail, bulk] if on_the_edge else [tail if q > c3 else bulk]
    assert any(math.isclose(found, one, rel_tol=1e-12) for one in expected)


@pytest.mark.parametrize("q", [1e-280, 1e-12, 1e-3, 0.5, 0.82])
def test_two_features_solve_the_equation_with_the_logarithm(q):
    """log(c1/eta) / (c2 N) = q, as long as the radius stays below 1."""
    radius = wasserstein_radius(1, 2, eta=0.5, c1=0.5 * math.e, c2=1 / q)
    assert (radius / math.log(2 + 1 / radius)) ** 2 == pytest.approx(q, rel=1e-12)


def test_one_and_two_features_are_no_better_than_the_root_of_n():
    """The paper prints 1/P for the exponent: at P = 1 a radius that falls with N itself."""
    arguments = {"eta": 0.05, "c1": 2.0, "c2": 1.0}
    small, large = wasserstein_radius([100, 10_000], 1, **arguments)
    assert small / large == pytest.approx(10.0)
    small, large = wasserstein_radius([100, 10_000], 2, **arguments)
    assert 10.0 / math.log(2 + 1 / large) < small / large < 10.0
    small, large = wasserstein_radius([100, 10_000], 3, **arguments)
    assert small / large == pytest.approx(100 ** (1 / 3))


# F, and the integral of the quantile function from 0 to u, of distributions with one feature.
ONE_FEATURE = {
    "uniform": (lambda x: x, lambda u: 0.5 * u**2),
    "normal": (normal.cdf, lambda u: -normal.pdf(normal.ppf(u))),
}


def distances(name, n, n_draws, rng):
    """W_1 of ``n_draws`` samples of size n from their distribution."""
    draw = rng.random if name == "uniform" else lambda n: rng.normal(size=n)
    return np.concatenate([distance_of(np.sort(draw(n))[None], name) for _ in range(n_draws)])


def distance_of(x, name):
    """W_1 between sorted samples, in rows, and a distribution: |x_(i) - Q(u)| integrated over u."""
    cdf, integral = ONE_FEATURE[name]
    n = x.shape[1]
    ends = np.arange(n + 1) / n
    low, high = ends[:-1], ends[1:]
    turn = np.clip(cdf(x), low, high)
    below = x * (turn - low) - (integral(turn) - integral(low))
    above = integral(high) - integral(turn) - x * (high - turn)
    return (below + above).sum(axis=1)


@pytest.mark.parametrize("name", ONE_FEATURE)
def test_the_radius_of_one_feature_falls_as_measured_distances_do(name, rng):
    """Constants fitted at N = 100 give the measured quantile at N = 10000; those of 1/P a tenth."""
    n_draws, level = 600, 0.95
    near = np.quantile(distances(name, 100, n_draws, rng), level)
    # 95 % of n_draws is known to three standard errors of a share, which the quantile inherits.
    error = 3 * math.sqrt(level * (1 - level) / n_draws)
    far = np.quantile(distances(name, 10_000, n_draws, rng), [level - error, level + error])
    c2 = math.log(2.0 / 0.05) / (100 * near**2)
    assert wasserstein_radius(100, 1, eta=0.05, c1=2.0, c2=c2) == pytest.approx(near)
    radius = wasserstein_radius(10_000, 1, eta=0.05, c1=2.0, c2=c2)
    assert 0.9 * far[0] <= radius <= 1.1 * far[1]
    if name == "uniform":  # as docs/maths.md says
        assert near == pytest.approx(0.058, rel=0.05)
        assert 0.95 * far[0] <= 0.0058 <= 1.05 * far[1]


def test_within_the_radius_the_true_risk_is_below_the_worst_case_for_all_models(rng):
    """[confidence]: with the ball just large enough for the truth, which is uniform on [0, 1]."""
    for _ in range(20):
        x = rng.random(15)
        distance = distance_of(np.sort(x)[None], "uniform")[0]
        for w, b in rng.normal(scale=4.0, size=(8, 2)):
            grid = (np.arange(20_000) + 0.5) / 20_000
            # The midpoint rule on a function with one kink is right to |w| / 20000^2.
            truth = np.maximum(0.0, 1.0 - (w * grid + b)).mean()
            worst = worst_case_risk(
                [w], x[:, None], np.ones(15), epsilon=distance, kappa=100.0, intercept=b
            )
            assert truth <= worst.value + 1e-7


@given(st.lists(st.tuples(sizes, st.floats(1e-3, 0.5)), min_size=1, max_size=5), features)
def test_confidence_undoes_the_radius(clients, p):
    counts, risks = [n for n, _ in clients], [eta for _, eta in clients]
    radii = wasserstein_radius(counts, p, eta=risks, c1=2.0, c2=0.5)
    confidence = mowb_confidence(radii, counts, p, c1=2.0, c2=0.5)
    at_least = np.prod([1 - eta for eta in risks])
    # eta enters through exp(-x) with x = log(c1/eta) < 8, and P-th roots and powers undo each other
    # to about P ulps.
    assert confidence >= at_least * (1 - 1e-11)
    if p != 2 or (radii != 1.0).all():  # where the radius rests at 1, more is promised
        assert confidence == pytest.approx(at_least, rel=1e-11)


@pytest.mark.parametrize(("c3", "a"), [(1.0, 2.0), (0.3, 1.7), (3.0, 2.3)])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_radius_gives_its_own_confidence_back(p, c3, a):
    """Where it rests at c3^(1/a), that of q = c3, the largest q with this radius."""
    arguments = {"c1": 2.0, "c2": 1.0, "c3": c3, "a": a}
    resting = 0
    for n in range(1, 60):
        radius = wasserstein_radius(n, p, eta=0.05, **arguments)
        found = mowb_confidence(radius, n, p, **arguments)
        q = math.log(2.0 / 0.05) / n
        rests = q < c3 and radius == c3 ** (1 / a)
        resting += rests
        # eta enters through exp(-x) with x < 60, so that roundings of x are 60 times as large.
        largest = 1 - 2.0 * math.exp(-n * c3) if rests else 0.95
        assert found == pytest.approx(largest, rel=1e-12)
        assert found >= 0.95 * (1 - 1e-12)
    assert resting > 0 or p != 2 or c3 > 1.0


def test_the_confidence_where_the_radius_of_two_features_rests():
    assert wasserstein_radius(4, 2, eta=0.05, c1=2.0, c2=1.0) == 1.0
    found = mowb_confidence(1.0, 4, 2, c1=2.0, c2=1.0)
    assert found == pytest.approx(1 - 2 * math.exp(-4), rel=1e-12)


@given(st.floats(1e-3, 3), st.floats(0.1, 3), features, st.floats(0.2, 5))
def test_confidence_promises_nothing_the_radius_does_not(radius, growth, p, c3):
    """Larger balls never give less, and the eta behind the promise has a radius within epsilon."""
    arguments = {"c1": 2.0, "c2": 0.5, "c3": c3}
    promise = mowb_confidence(radius, 100, p, **arguments)
    assert mowb_confidence(radius * (1 + growth), 100, p, **arguments) >= promise
    if 0 < promise < 1 - 1e-12:
        needed = wasserstein_radius(100, p, eta=1 - promise, **arguments)
        assert needed <= radius * (1 + 1e-3)


@given(sizes, features, etas, constants, st.floats(0.1, 10), st.floats(1.01, 100))
def test_the_radius_is_monotone(n, p, eta, given_constants, c3, factor):
    """It falls with samples, accepted risk and c2, and grows with c1, across all branches."""

    def radius(n=n, eta=eta, **changes):
        return wasserstein_radius(n, p, eta=eta, c3=c3, **(given_constants | changes))

    here = radius() * (1 + 1e-12)
    assert radius(n=int(n * factor) + 1) <= here
    assert radius(eta=min(eta * factor, 0.999)) <= here
    assert radius(c2=given_constants["c2"] * factor) <= here
    assert radius(c1=given_constants["c1"] * factor) >= radius() * (1 - 1e-12)


def test_clients_that_miss_in_turn_have_the_confidence_of_the_union_bound():
    """[confidence]: one sample each, uniform on [0, 1], the second half a turn after the first."""
    eta = 0.2
    radius = 0.25 + (0.5 * (1 - eta)) ** 2  # W_1 is 1/4 + (x - 1/2)^2
    first = (np.arange(10_000) + 0.5) / 10_000
    both = [first, (first + 0.5) % 1.0]
    held = np.all([distance_of(x[:, None], "uniform") <= radius for x in both], axis=0).mean()
    c2 = math.log(2.0 / eta) / radius**2  # so that each client's risk is exactly eta
    arguments = {"c1": 2.0, "c2": c2}
    assert mowb_confidence(radius, 1, 1, **arguments) == pytest.approx(1 - eta)
    independent = mowb_confidence([radius] * 2, 1, 1, **arguments)
    in_any_case = mowb_confidence([radius] * 2, 1, 1, **arguments, independent=False)
    assert independent == pytest.approx((1 - eta) ** 2)
    assert in_any_case == pytest.approx(1 - 2 * eta)
    assert held == pytest.approx(in_any_case, abs=1e-3)
    assert held < independent - 0.03
    assert mowb_confidence([radius] * 9, 1, 1, **arguments, independent=False) == 0.0


def dual_norm_of(w, norm):
    return np.linalg.norm(w, {"l1": np.inf, "l2": 2, "linf": 1}[norm])


def expected_bound(counts, alphas, R, B, B_b, norm, loss, eta):
    """[generalisation], term by term."""
    n = 1 / sum(alpha**2 / count for alpha, count in zip(alphas, counts, strict=True))
    euclidean = math.sqrt(sum(r * r for r in R))
    massart = max(R) * math.sqrt(2 * math.log(2 * len(R)))
    K = {"l1": sum(R), "l2": euclidean, "linf": min(massart, euclidean)}[norm]
    M = B * {"l1": sum(R), "l2": euclidean, "linf": max(R)}[norm] + B_b
    value = {
        "hinge": lambda m: max(0.0, 1 - m),
        "smooth_hinge": lambda m: 0.0 if m >= 1 else (1 - m) ** 2 / 2 if m > 0 else 0.5 - m,
        "logistic": lambda m: math.log1p(math.exp(-m)),
    }[loss]
    width = value(-M) - value(M)
    return 2 * (B * K + B_b) / math.sqrt(n) + width * math.sqrt(math.log(1 / eta) / (2 * n))


@given(
    counts=st.lists(sizes, min_size=1, max_size=4),
    R=st.lists(st.floats(0.0, 5.0), min_size=1, max_size=8),
    B=st.floats(0, 10),
    B_b=st.floats(0, 10),
    norm=st.sampled_from(NORMS),
    loss=st.sampled_from(sorted(LOSSES)),
    eta=st.floats(1e-6, 0.9),
)
def test_the_generalisation_bound_is_the_formula(counts, R, B, B_b, norm, loss, eta):
    weights = list(range(1, len(counts) + 1))
    alphas = [weight / sum(weights) for weight in weights]
    found = generalisation_bound(
        counts,
        R,
        model_size=B,
        intercept_size=B_b,
        norm=norm,
        confidence=1 - eta,
        loss=loss,
        client_weights=weights,
    )
    # 1 - (1 - eta) loses 1e-16 of 1, which is 1e-10 of the least eta, within a logarithm of 0.1.
    expected = expected_bound(counts, alphas, R, B, B_b, norm, loss, eta)
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-15)


def test_equal_clients_count_as_one_with_all_samples():
    settings = {"model_size": 2.0, "intercept_size": 1.0}
    together = generalisation_bound(400, [1.0, 2.0], **settings)
    assert generalisation_bound([100] * 4, [1.0, 2.0], **settings) == pytest.approx(together)


@pytest.mark.parametrize("norm", NORMS)
def test_random_signs_stay_within_the_documented_spread(norm, rng):
    """K of [generalisation] by enumeration of all signs of eight samples; McDiarmid's term at
    confidence -> 0 vanishes, and what is left is 2 B K / sqrt(n)."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    for n_features in (1, 2, 5, 40):
        R = rng.random(n_features) + 0.1
        left = generalisation_bound(8, R, model_size=1.0, norm=norm, confidence=1e-12)
        spread = left * math.sqrt(8) / 2  # K, to 1e-6
        corners = R * rng.choice([-1.0, 1.0], size=(8, n_features))
        for X in (corners, np.tile(R, (8, 1)), corners * rng.random((8, n_features))):
            mean = np.linalg.norm(signs @ X, order, axis=1).mean()
            assert mean <= spread * math.sqrt(8) * (1 + 1e-5)
        if norm != "linf":  # Khinchine: equal rows come within the root of 2 of it
            equal = np.linalg.norm(signs @ np.tile(R, (8, 1)), order, axis=1).mean()
            assert equal >= spread * math.sqrt(8) / math.sqrt(2) * (1 - 1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_true_risks_exceed_the_bound_no_more_often_than_promised(norm, rng):
    """The truth is 30 equally likely points with labels by coin, so that fitting them is all luck.

    Models are random ones of the largest size and the one that fits the samples best.
    """
    n, eta, B, B_b, n_draws = 40, 0.2, 2.0, 0.5, 100
    R = np.array([1.0, 0.5, 2.0])
    points = np.column_stack([R * rng.choice([-1.0, 1.0], size=(30, 3)), np.ones(30)])
    points *= rng.choice([-1.0, 1.0], size=(30, 1))  # y (x, 1)
    t = generalisation_bound(n, R, model_size=B, intercept_size=B_b, norm=norm, confidence=1 - eta)
    models = rng.normal(size=(200, 4))
    models[:, :3] *= (B / np.array([dual_norm_of(w, norm) for w in models[:, :3]]))[:, None]
    models[:, 3] = B_b * np.sign(models[:, 3])

    def fitted(rows):
        def risk(model):
            size = max(dual_norm_of(model[:3], norm) / B, abs(model[3]) / B_b, 1.0)
            return np.maximum(0.0, 1.0 - rows @ (model / size)).mean()

        found = minimize(risk, np.zeros(4), method="Powell", options={"maxiter": 5}).x
        return found / max(dual_norm_of(found[:3], norm) / B, abs(found[3]) / B_b, 1.0)

    excess = []
    for _ in range(n_draws):
        rows = points[rng.integers(30, size=n)]
        candidates = np.vstack([models, fitted(rows)])
        true, seen = (
            np.maximum(0.0, 1.0 - candidates @ part.T).mean(axis=1) for part in (points, rows)
        )
        excess.append((true - seen).max())
    assert np.mean(np.array(excess) > t) <= eta
    assert np.mean(excess) > t / 10  # so that a bound ten times as small would not pass


def test_the_practical_rule():
    assert practical_radius(90) == pytest.approx(1 / 900)
    np.testing.assert_allclose(practical_radius([10, 20], beta=100.0), [1e-3, 5e-4])


def test_numbers_in_numbers_out_lists_in_arrays_out():
    assert isinstance(wasserstein_radius(10, 2, eta=0.1, c1=2.0, c2=1.0), float)
    assert wasserstein_radius([10, 20], 2, eta=0.1, c1=2.0, c2=1.0).shape == (2,)
    assert wasserstein_radius(10, 2, eta=[0.1, 0.2, 0.3], c1=2.0, c2=1.0).shape == (3,)
    assert isinstance(practical_radius(5), float)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": 2.5}, "n_samples"),
        ({"n_samples": [[1]]}, "n_samples (entry 0)"),
        ({"n_samples": "ten"}, "n_samples"),
        ({"n_features": [4, 5]}, "n_features"),
        ({"n_samples": []}, "n_samples"),
        ({"n_samples": [10, -1]}, "n_samples (entry 1)"),
        ({"n_features": 0}, "n_features"),
        ({"eta": 0.0}, "eta"),
        ({"eta": 1.0}, "eta"),
        ({"n_samples": [1, 2], "eta": [0.1, 0.2, 0.3]}, "n_samples"),
        ({"c1": 0.0}, "c1"),
        ({"c1": 0.05}, "c1"),
        ({"c2": -1.0}, "c2"),
        ({"c3": np.inf}, "c3"),
        ({"a": 1.0}, "a"),
    ],
)
def test_bad_arguments_are_named(changes, argument):
    arguments = {"n_samples": 10, "n_features": 2, "eta": 0.1, "c1": 2.0, "c2": 1.0} | changes
    with pytest.raises(InvalidInputError) as caught:
        wasserstein_radius(**arguments)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"limits": [1.0, -1.0]}, "limits"),
        ({"limits": []}, "limits"),
        ({"limits": [np.inf]}, "limits"),
        ({"limits": 1.0}, "limits"),
        ({"model_size": -1.0}, "model_size"),
        ({"model_size": np.inf}, "model_size"),
        ({"intercept_size": np.nan}, "intercept_size"),
        ({"norm": "l3"}, "norm"),
        ({"loss": "square"}, "loss"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 0.0}, "confidence"),
        ({"n_samples": 0}, "n_samples"),
        ({"client_weights": [1.0, 2.0]}, "client_weights"),
    ],
)
def test_bad_arguments_of_the_generalisation_bound_are_named(changes, argument):
    arguments = {"n_samples": 10, "limits": [1.0, 1.0], "model_size": 1.0} | changes
    with pytest.raises(InvalidInputError) as caught:
        generalisation_bound(**arguments)
    assert caught.value.argument == argument


def test_independent_is_yes_or_no():
    with pytest.raises(InvalidInputError, match="independent: must be True or False"):
        mowb_confidence(0.1, 10, 2, c1=2.0, c2=1.0, independent="no")
