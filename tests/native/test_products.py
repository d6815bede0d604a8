"""Products of all small shapes, where rows are shorter than lanes, and of long rows."""

import numpy as np
import pytest

from fdrsvm.native import products

EPS = np.finfo(float).eps


def sum_error(X, v):
    """Bound on the rounding of X @ v, in any order: Higham's gamma_n, for both computations."""
    return 2 * (X.shape[1] + 1) * EPS * (np.abs(X) @ np.abs(v))


@pytest.mark.parametrize("n_columns", [*range(18), 40])
def test_products_agree_with_numpy_whatever_the_shape(n_columns, rng):
    for n_rows in (*range(14), 1023, 1030):
        X = rng.normal(size=(n_rows, n_columns))
        w, v = rng.normal(size=n_columns), rng.normal(size=n_rows)
        assert (np.abs(products.times(X, w) - X @ w) <= sum_error(X, w)).all()
        assert (np.abs(products.transposed_times(X, v) - X.T @ v) <= sum_error(X.T, v)).all()


def documented_sum(X, v):
    """X.T @ v with every addition where products.hpp says it is."""
    total = np.zeros(X.shape[1])
    for start in range(0, len(X) - 1, 1024):
        sums = np.zeros((4, X.shape[1]))
        for n in range(start, min(start + 1024, len(X) - 1)):
            sums[(n - start) % 4] += X[n] * v[n]
        total += (sums[0] + sums[2]) + (sums[1] + sums[3])
    return total + X[-1] * v[-1]


@pytest.mark.parametrize(("n_rows", "n_columns"), [(950, 71), (1025, 160), (2500, 64), (2500, 99)])
def test_long_rows_are_summed_as_short_ones_are(n_rows, n_columns, rng):
    X, v = rng.normal(size=(n_rows, n_columns)), rng.normal(size=n_rows)
    for share in (0.0, 0.5, 1.0):
        v[rng.random(n_rows) < share] = 0.0
        assert np.array_equal(products.transposed_times(X, v), documented_sum(X, v))
