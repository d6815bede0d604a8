"""Small dense Cholesky factors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast

_PANEL = 64  # columns at a time of a large factor
_VANISHED = 1e-15


@compiled_fast
def _factorise_block(A: npt.NDArray[np.float64]) -> None:
    for i in range(A.shape[0]):
        pivot = A[i, i]
        for j in range(i):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total * A[j, j]
        for k in range(i):
            pivot -= A[i, k] * A[i, k]
        A[i, i] = 1.0 / np.sqrt(pivot) if pivot > _VANISHED * abs(A[i, i]) else 0.0


@compiled_fast
def factorise(A: npt.NDArray[np.float64]) -> None:
    """Cholesky factor of A in A's lower half, its diagonal inverted.

    A pivot that has vanished in rounding drops its direction.
    """
    size = A.shape[0]
    if size <= 2 * _PANEL:
        _factorise_block(A)
        return
    for start in range(0, size, _PANEL):
        stop = min(start + _PANEL, size)
        if start > 0:  # bring the panel up to date in one matrix product
            left = np.ascontiguousarray(A[start:, :start])
            A[start:, start:stop] -= np.dot(left, left[: stop - start].T)
        corner = A[start:stop, start:stop].copy()
        _factorise_block(corner)
        A[start:stop, start:stop] = corner
        for i in range(stop, size):
            row = A[i, start:stop]
            for j in range(stop - start):
                total = row[j]
                for k in range(j):
                    total -= row[k] * corner[j, k]
                row[j] = total * corner[j, j]


@compiled_fast
def solve_factorised(L: npt.NDArray[np.float64], x: Array) -> None:
    """Sets x = (L L')^-1 x for ``factorise``'s L."""
    for i in range(L.shape[0]):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total * L[i, i]
    for i in range(L.shape[0] - 1, -1, -1):
        x[i] *= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]
