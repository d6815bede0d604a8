"""Products with the signed rows, dense or CSR."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast

_BLOCK = 256  # rows of a Gram product at a time, to stay in cache


class Rows(NamedTuple):
    """Dense rows, or CSR ones; the other half is empty, so that both share their machine code."""

    dense: Array
    data: Array
    indices: npt.NDArray[np.int32]
    indptr: npt.NDArray[np.int32]


@compiled_fast
def inner(x: Array, y: Array) -> float:
    """``x @ y``, without the cost of a library call."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


@compiled_fast
def times(rows: Rows, x: Array, out: Array) -> None:
    """Sets out = rows @ x."""
    if rows.dense.shape[0] > 0:
        np.dot(rows.dense, x, out)
        return
    for n in range(out.size):
        total = 0.0
        for k in range(rows.indptr[n], rows.indptr[n + 1]):
            total += rows.data[k] * x[rows.indices[k]]
        out[n] = total


@compiled_fast
def transposed_times(rows: Rows, x: Array, out: Array) -> None:
    """Sets out = rows.T @ x."""
    if rows.dense.shape[0] > 0:
        np.dot(x, rows.dense, out)
        return
    out[:] = 0.0
    for n in range(x.size):
        if x[n] != 0.0:
            for k in range(rows.indptr[n], rows.indptr[n + 1]):
                out[rows.indices[k]] += rows.data[k] * x[n]


@compiled_fast
def row_dot(rows: Rows, n: int, x: Array) -> float:
    """rows[n] @ x."""
    total = 0.0
    if rows.dense.shape[0] > 0:
        for j in range(x.size):
            total += rows.dense[n, j] * x[j]
        return total
    for k in range(rows.indptr[n], rows.indptr[n + 1]):
        total += rows.data[k] * x[rows.indices[k]]
    return total


@compiled_fast
def add_row(rows: Rows, n: int, scale: float, out: Array) -> None:
    """Sets out += scale * rows[n]."""
    if rows.dense.shape[0] > 0:
        for j in range(rows.dense.shape[1]):
            out[j] += scale * rows.dense[n, j]
        return
    for k in range(rows.indptr[n], rows.indptr[n + 1]):
        out[rows.indices[k]] += scale * rows.data[k]


@compiled_fast
def add_squared_row(rows: Rows, n: int, scale: float, out: Array) -> None:
    """Sets out += scale * rows[n]**2."""
    if rows.dense.shape[0] > 0:
        for j in range(rows.dense.shape[1]):
            out[j] += scale * rows.dense[n, j] * rows.dense[n, j]
        return
    for k in range(rows.indptr[n], rows.indptr[n + 1]):
        out[rows.indices[k]] += scale * rows.data[k] * rows.data[k]


@compiled_fast
def add_gram(rows: Rows, chosen: npt.NDArray[np.int64], weight: Array, size: int, out: Any) -> None:
    """out[:size, :size] += sum over chosen n of weight_n rows[n] rows[n]' (lower half at least)."""
    if rows.dense.shape[0] == 0:
        for c in range(chosen.size):
            start, stop = rows.indptr[chosen[c]], rows.indptr[chosen[c] + 1]
            for i in range(start, stop):
                scaled = weight[c] * rows.data[i]
                for k in range(start, stop):
                    out[rows.indices[i], rows.indices[k]] += scaled * rows.data[k]
        return
    block = np.empty((min(_BLOCK, chosen.size), size))
    for first in range(0, chosen.size, _BLOCK):
        last = min(first + _BLOCK, chosen.size)
        for c in range(first, last):
            root = np.sqrt(weight[c])
            for j in range(size):
                block[c - first, j] = root * rows.dense[chosen[c], j]
        part = block[: last - first]
        out[:size, :size] += np.dot(part.T, part)


@compiled_fast
def kernel_matrix(
    rows: Rows, chosen: npt.NDArray[np.int64], scale: Array, out: npt.NDArray[np.float64]
) -> None:
    """out[i, k] = rows[chosen_i] @ diag(scale) @ rows[chosen_k], lower half at least."""
    size = scale.size
    if rows.dense.shape[0] > 0:
        block = np.empty((chosen.size, size))
        for i in range(chosen.size):
            for j in range(size):
                block[i, j] = np.sqrt(scale[j]) * rows.dense[chosen[i], j]
        out[: chosen.size, : chosen.size] = np.dot(block, block.T)
        return
    scattered = np.zeros(size)
    for i in range(chosen.size):
        start, stop = rows.indptr[chosen[i]], rows.indptr[chosen[i] + 1]
        for k in range(start, stop):
            scattered[rows.indices[k]] += scale[rows.indices[k]] * rows.data[k]
        for c in range(i + 1):
            out[i, c] = row_dot(rows, chosen[c], scattered)
        for k in range(start, stop):
            scattered[rows.indices[k]] = 0.0
