"""[radius] and [confidence] recomputed from the paper's formula."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm import InvalidInputError, mowb_confidence, practical_radius, wasserstein_radius

sizes = st.integers(1, 10**6)
features = st.integers(1, 30)
etas = st.floats(1e-6, 0.99)
constants = st.fixed_dictionaries(
    {"c1": st.floats(1.0, 10), "c2": st.floats(0.01, 10), "a": st.floats(1.1, 4)}
)


@given(sizes, features, etas, constants, st.floats(0.1, 10))
def test_the_radius_is_the_formula(n, p, eta, given_constants, c3):
    c1, c2, a = given_constants["c1"], given_constants["c2"], given_constants["a"]
    exponent = 1 / a if n < math.log(c1 / eta) / (c2 * c3) else 1 / p
    expected = (math.log(c1 / eta) / (c2 * n)) ** exponent
    found = wasserstein_radius(n, p, eta=eta, c3=c3, **given_constants)
    # At the branch point itself rounding decides which branch is taken; both are the formula.
    other = (math.log(c1 / eta) / (c2 * n)) ** (1 / a + 1 / p - exponent)
    on_the_edge = math.isclose(n, math.log(c1 / eta) / (c2 * c3), rel_tol=1e-12)
    assert math.isclose(found, expected, rel_tol=1e-12) or (
        on_the_edge and math.isclose(found, other, rel_tol=1e-12)
    )


@given(st.lists(st.tuples(sizes, st.floats(1e-3, 0.5)), min_size=1, max_size=5), features)
def test_confidence_undoes_the_radius(clients, p):
    counts, risks = [n for n, _ in clients], [eta for _, eta in clients]
    radii = wasserstein_radius(counts, p, eta=risks, c1=2.0, c2=0.5)
    confidence = mowb_confidence(radii, counts, p, c1=2.0, c2=0.5)
    # eta enters through exp(-x) with x = log(c1/eta) < 8, and P-th roots and powers undo each other
    # to about P ulps.
    assert confidence == pytest.approx(np.prod([1 - eta for eta in risks]), rel=1e-11)


@given(st.floats(1e-3, 3), st.floats(0.1, 3), features, st.floats(0.2, 5))
def test_confidence_promises_nothing_the_radius_does_not(radius, growth, p, c3):
    """Larger balls never give less, and the eta behind the promise has a radius within epsilon."""
    arguments = {"c1": 2.0, "c2": 0.5, "c3": c3}
    promise = mowb_confidence(radius, 100, p, **arguments)
    assert mowb_confidence(radius * (1 + growth), 100, p, **arguments) >= promise
    if 0 < promise < 1 - 1e-12:
        needed = wasserstein_radius(100, p, eta=1 - promise, **arguments)
        assert needed <= radius * (1 + 1e-3)


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
