"""The tilted mean: its two formulas, its limits, and what must not overflow or cancel."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm.core.losses import tilted_mean

values = st.lists(st.floats(0, 20), min_size=1, max_size=8)


def masses(rng, size):
    mass = rng.random(size) + 0.01
    return mass / mass.sum()


@given(x=values, temperature=st.floats(0.1, 1e3), seed=st.integers(0, 99))
def test_it_is_the_logarithm_of_the_mean_exponential(x, temperature, seed):
    x, rng = np.array(x), np.random.default_rng(seed)
    mass = masses(rng, x.size)
    found = tilted_mean(x, mass, temperature)
    direct = temperature * np.log(mass @ np.exp(x / temperature))
    assert found.value == pytest.approx(direct, rel=1e-9, abs=1e-9 * temperature)
    shares = mass * np.exp(x / temperature)
    np.testing.assert_allclose(found.shares, shares / shares.sum(), rtol=1e-9)


@given(x=values, temperature=st.floats(0.1, 1e3), seed=st.integers(0, 99))
def test_it_is_the_best_distribution_less_its_price(x, temperature, seed):
    x, rng = np.array(x), np.random.default_rng(seed)
    mass = masses(rng, x.size)
    found = tilted_mean(x, mass, temperature)
    assert found.value == pytest.approx(found.shares @ x - found.price, rel=1e-10, abs=1e-10)
    assert found.shares.sum() == pytest.approx(1.0, rel=1e-12)
    for _ in range(5):
        other = masses(rng, x.size)
        price = temperature * other @ np.log(other / mass)
        assert other @ x - price <= found.value + 1e-9 * (1.0 + found.value)


def test_it_lies_between_the_mean_and_the_largest_value(rng):
    x, mass = rng.random(50) * 10, masses(rng, 50)
    tilted = [tilted_mean(x, mass, temperature).value for temperature in (1e-3, 1.0, 10.0, 1e12)]
    assert tilted[0] == pytest.approx(x.max(), abs=0.02)
    assert all(low < high for high, low in pairwise(tilted))
    assert tilted[-1] == pytest.approx(mass @ x, rel=1e-12)


def test_the_price_does_not_cancel_at_a_high_temperature(rng):
    x, mass = rng.random(20), masses(rng, 20)
    found = tilted_mean(x, mass, 1e12)
    variance = mass @ (x - mass @ x) ** 2
    assert abs(found.price) <= variance / 1e12 + 1e-15  # to first order variance / (2 lam)


def test_huge_values_do_not_overflow(rng):
    x = np.array([1e300, 1.0, 5e299])
    found = tilted_mean(x, np.full(3, 1.0 / 3.0), 1.0)
    assert found.value == 1e300
    assert found.shares.tolist() == [1.0, 0.0, 0.0]


def test_values_without_mass_do_not_count():
    mass = np.array([0.5, 0.5, 0.0])
    with_, without = (
        tilted_mean(x, m, 1.0)
        for x, m in ((np.array([1.0, 2.0, 1e6]), mass), (np.array([1.0, 2.0]), mass[:2]))
    )
    assert with_.value == without.value
    assert with_.shares[2] == 0.0


def test_a_rare_large_value_is_not_lost():
    mass = np.array([1e-20, 1.0])
    found = tilted_mean(np.array([1e4, 0.0]), mass, 1.0)
    assert found.value == pytest.approx(1e4 + np.log(1e-20), rel=1e-12)
