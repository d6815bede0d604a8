"""Kernels against plain NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fdrsvm.native import risk

values = st.lists(
    st.tuples(st.integers(-3, 3) | st.floats(-3, 3), st.integers(0, 4)), min_size=1, max_size=30
)


def quantile_by_sorting(gains, mass, budget, floor):
    candidates = [floor, *[v for v in gains if v > floor]]
    return min(t for t in candidates if mass[gains > t].sum() <= budget)


@given(values, st.integers(0, 60), st.integers(-2, 2))
def test_upper_quantile_is_the_definition(pairs, budget, floor):
    """Whole masses, so that sums are exact in any order."""
    gains = np.array([float(v) for v, _ in pairs])
    mass = np.array([float(m) for _, m in pairs])
    found, *_ = risk.flip_shares(gains, mass, float(budget), float(floor))
    assert found == quantile_by_sorting(gains, mass, budget, floor)


@given(values, st.floats(0, 40))
def test_flips_spend_the_budget_above_the_floor(pairs, budget):
    gains = np.array([float(v) for v, _ in pairs])
    mass = np.array([float(m) for _, m in pairs])
    threshold, shares, flipped = risk.flip_shares(gains, mass, budget, 0.0)
    assert ((shares >= 0.0) & (shares <= 1.0)).all()
    assert (shares[gains > threshold] == 1.0).all()
    assert (shares[gains < threshold] == 0.0).all()
    assert_allclose(shares @ mass, flipped, atol=1e-12)
    assert flipped <= budget + 1e-12
    if threshold > 0.0:
        assert_allclose(flipped, budget, atol=1e-12)


def test_a_million_equal_masses_are_one():
    """Added up plainly they are off by 8e-12."""
    mass = np.full(10**6, 1e-6)
    plain = 0.0
    for m in mass:
        plain += m
    assert abs(plain - 1.0) > 1e-12
    _, _, flipped = risk.flip_shares(np.full(10**6, 2.0), mass, 2.0, 1.0)
    assert abs(flipped - 1.0) <= 1e-15


def test_a_budget_that_is_a_whole_number_of_samples_is_spent_on_that_many():
    """Sums of masses round; a selection that trusts them twice in two orders never ends."""
    rng = np.random.default_rng(0)
    for n in (10, 50, 100, 130):
        for k in range(1, n, 7):
            gains = rng.normal(size=n)
            found, *_ = risk.flip_shares(gains, np.full(n, 1.0 / n), k / n, -10.0)
            above = int(np.count_nonzero(gains > found))
            assert k - 1 <= above <= k  # k masses of 1/n may add up to a little more than k/n
