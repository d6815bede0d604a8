"""Rows in an order of their own, equal ones merged: a model depends on the data, not on its order.

Repeated rows, weights in their place, and any order of the rows then give the same bits. The order
is that of a 64-bit hash of each row: two passes over the data, where sorting by columns takes many.
Unequal rows with one hash stay apart; at worst equal ones next to them are not merged, which the
certificate covers.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import Array, Matrix

Codes: TypeAlias = npt.NDArray[np.intp]
Hashes: TypeAlias = npt.NDArray[np.uint64]

_CHUNK = 1 << 18  # entries, so that intermediate arrays stay in the cache
_SEED = 20251115


def merge_equal_rows(X: Matrix, codes: Codes, weights: Array) -> tuple[Matrix, Codes, Array]:
    """Rows that differ in features or code, with the sums of their weights."""
    hashes = _row_hashes(X) + _mixed(codes.astype(np.uint64) + np.uint64(1))
    order = np.argsort(hashes, kind="stable")
    is_first = np.ones(len(order), dtype=bool)
    ties = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    left, right = order[ties], order[ties + 1]
    is_first[ties + 1] = (codes[left] != codes[right]) | _rows_differ(X, left, right)
    groups = np.cumsum(is_first) - 1
    sums = np.bincount(groups, weights=weights[order])
    kept = order[is_first]
    return X[kept], codes[kept], np.asarray(sums, dtype=np.float64)


def _row_hashes(X: Matrix) -> Hashes:
    """A sum over the features in which zeros count nothing, so that CSR has the same."""
    factors = _column_factors(X.shape[1])
    if sparse.issparse(X):
        terms = _mixed(_bits(X.data)) * factors[X.indices]
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    n_rows = max(1, _CHUNK // X.shape[1])
    parts = [
        (_mixed(_bits(X[start : start + n_rows])) * factors).sum(axis=1, dtype=np.uint64)
        for start in range(0, len(X), n_rows)
    ]
    return np.concatenate(parts)


def _column_factors(n_features: int) -> Hashes:
    random = np.random.default_rng(_SEED).integers(2**63, size=n_features, dtype=np.uint64)
    return random * np.uint64(2) + np.uint64(1)


def _bits(values: Array) -> Hashes:
    return (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0, whose bits are 0


def _mixed(bits: Hashes) -> Hashes:
    """Round numbers have their information in the high bits, which a product would push out."""
    return bits ^ (bits >> np.uint64(32))


def _rows_differ(X: Matrix, left: Codes, right: Codes) -> npt.NDArray[np.bool_]:
    if sparse.issparse(X):
        differences = sparse.csr_array(X[left] != X[right])
        return np.asarray(np.diff(differences.indptr) > 0)
    return np.asarray((X[left] != X[right]).any(axis=1))
