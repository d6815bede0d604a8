"""Products whose last bit is the same on every processor and thread count, [same-bits].

NumPy's ``@`` goes to BLAS, which sums in an order of its own on each kind of processor. On the way
to a model or a certificate these stand in for it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array, Matrix
from fdrsvm.native import products


def dot(x: Any, y: Any) -> float:
    """``x @ y`` of two vectors."""
    return products.dot(_plain(x), _plain(y))


def times(matrix: Matrix, x: Any) -> Array:
    """``matrix @ x``; SciPy's products of sparse matrices are plain loops already."""
    if sparse.issparse(matrix):
        return np.asarray(matrix @ x)
    return products.times(_plain(matrix), _plain(x))


def weighted_sum(weights: Any, rows: Matrix) -> Array:
    """``weights @ rows``: the sum of the rows, each with its weight."""
    if sparse.issparse(rows):
        return np.asarray(weights @ rows)
    return products.transposed_times(_plain(rows), _plain(weights))


def length(x: Any) -> float:
    """Euclidean, by the plain sum of squares: inf where that overflows."""
    return math.sqrt(dot(x, x))


def _plain(values: Any) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)
