"""Products of all small shapes, where rows are shorter than the lanes they are read in."""

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
