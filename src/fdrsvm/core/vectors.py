"""Operations on vectors: transport norms, their duals, and products that do not depend on BLAS.

NumPy's ``@`` goes to BLAS, which sums in an order of its own on each kind of processor and for each
number of threads. On the way to a model or a certificate the products here stand in for it, so that
the last bit is the same on all of them, [same-bits].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array, Matrix
from fdrsvm.native import norms, products

Norm = Literal["l1", "l2", "linf"]
NORMS: tuple[Norm, ...] = get_args(Norm)

# Sizes of groups of neighbouring features, of which a move is as long as its entries add up to,
# [grouped-norm]. None: every feature is a group of its own.
Groups: TypeAlias = "tuple[int, ...] | None"

# What compiled code calls the norms.
L1, L2, LINF = 1, 2, 3
NORM_CODES: dict[Norm, int] = {"l1": L1, "l2": L2, "linf": LINF}

_DUALS: dict[Norm, Norm] = {"l1": "linf", "l2": "l2", "linf": "l1"}
_ORDER: dict[str, float] = {"l1": 1, "l2": 2, "linf": np.inf}

# As compiled code takes arrays: C-ordered float64, a copy only if they are not.
plain: Callable[[Any], Array] = partial(np.ascontiguousarray, dtype=np.float64)


def norm_rows(d: Array, norm: Norm, groups: Groups = None) -> Array:
    """``norm`` of each row of ``d``."""
    if groups is not None:
        return np.array([norm_of(row, norm, groups) for row in d])
    result: Array = np.linalg.norm(d, ord=_ORDER[norm], axis=1)
    return result


def norm_of(d: Array, norm: Norm, groups: Groups = None) -> float:
    """``norm`` of one vector: without groups the dual norm of the norm's own dual."""
    if groups is not None:
        return norms.transport_norm(plain(d), NORM_CODES[norm], groups)
    return dual_norm(d, _DUALS[norm])


def dual_norm(w: Array, norm: Norm, groups: Groups = None) -> float:
    """Dual of the transport ``norm`` of ``w``: max |w| (l1), ||w||_2 (l2), sum |w| (linf).

    Of a group only the largest entry counts.
    """
    return norms.dual_norm(plain(w), NORM_CODES[norm], groups)


def dual_norm_subgradient(w: Array, norm: Norm, groups: Groups = None) -> Array:
    """A subgradient s of ``dual_norm`` at ``w``: s.w equals the dual norm, and ||s|| <= 1.

    The largest entries (of a group; for l1 of all) share equally, so that the order of features
    does not matter.
    """
    return norms.dual_norm_subgradient(plain(w), NORM_CODES[norm], groups)


def dot(x: Any, y: Any) -> float:
    """``x @ y`` of two vectors."""
    return products.dot(plain(x), plain(y))


def times(matrix: Matrix, x: Any) -> Array:
    """``matrix @ x``; SciPy's products of sparse matrices are plain loops already."""
    if sparse.issparse(matrix):
        return np.asarray(matrix @ x)
    return products.times(plain(matrix), plain(x))


def weighted_sum(weights: Any, rows: Matrix) -> Array:
    """``weights @ rows``: the sum of the rows, each with its weight."""
    if sparse.issparse(rows):
        return np.asarray(weights @ rows)
    return products.transposed_times(plain(rows), plain(weights))


def length(x: Any) -> float:
    """Euclidean, by the plain sum of squares: inf where that overflows."""
    return math.sqrt(dot(x, x))
