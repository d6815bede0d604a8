"""A column that numbers the rows: one rule for ``fdrsvm check`` and for training."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm import FDRSVC, DegenerateModelWarning
from fdrsvm.data.columns import is_id

WHOLE = st.lists(st.integers(-300, 300), min_size=2, max_size=60, unique=True)


@given(WHOLE, st.sampled_from([1, 7]))
def test_ids_are_those_that_a_reading_would_repeat(numbers, step):
    values = np.array(numbers, dtype=float) * step
    pairs = [abs(a - b) for a, b in combinations(values, 2)]
    places = np.ptp(values) / min(pairs) + 1.0  # where a reading of that resolution can lie
    expected = len(pairs) / places  # each pair meets with the probability 1 / places
    assert is_id("flow", values) == (len(values) >= 10 and expected >= 10.0)
    assert is_id("Serial Number", values) == (len(values) >= 10)


def test_ids_never_repeat_and_are_whole():
    numbers = np.arange(40.0)
    assert is_id("flow", numbers)
    assert not is_id("id", np.append(numbers, 3.0))
    assert not is_id("id", numbers + 0.5)


@pytest.mark.parametrize(
    ("numbers", "is_told"),
    [
        (np.arange(100) * 600, True),  # a clock, every ten minutes
        (np.arange(100) ** 3, False),  # whole and all different, but far between
        (np.arange(100) // 2, False),
    ],
)
def test_training_says_it_by_the_same_rule(numbers, is_told):
    rng = np.random.default_rng(0)
    rows = rng.permutation(100)
    X = np.column_stack([rng.random(100), numbers[rows]])
    y, plants = X[:, 0] > 0.5, np.arange(100) % 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FDRSVC(epsilon=1e-3, max_rounds=3).fit(X, y, clients=plants)
    said = [str(one.message) for one in caught if one.category is DegenerateModelWarning]
    assert any("column 1 looks like an identifier" in one for one in said) == is_told
    assert is_id("", X[:, 1]) == is_told
