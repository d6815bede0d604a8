"""Transport norms on features, and the dual norms that price a weight vector."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.native import norms

Norm = Literal["l1", "l2", "linf"]
NORMS: tuple[Norm, ...] = get_args(Norm)

# What compiled code calls the norms.
L1, L2, LINF = 1, 2, 3
NORM_CODES: dict[Norm, int] = {"l1": L1, "l2": L2, "linf": LINF}

_DUALS: dict[Norm, Norm] = {"l1": "linf", "l2": "l2", "linf": "l1"}
_ORDER: dict[str, float] = {"l1": 1, "l2": 2, "linf": np.inf}


def norm_rows(d: Array, norm: Norm) -> Array:
    """``norm`` of each row of ``d``."""
    result: Array = np.linalg.norm(d, ord=_ORDER[norm], axis=1)
    return result


def norm_of(d: Array, norm: Norm) -> float:
    """``norm`` of one vector: the dual norm of the norm's own dual."""
    return dual_norm(d, _DUALS[norm])


def dual_norm(w: Array, norm: Norm) -> float:
    """Dual of the transport ``norm`` of ``w``: max |w| (l1), ||w||_2 (l2), sum |w| (linf)."""
    return norms.dual_norm(np.ascontiguousarray(w, dtype=np.float64), NORM_CODES[norm])


def dual_norm_subgradient(w: Array, norm: Norm) -> Array:
    """A subgradient s of ``dual_norm`` at ``w``: s.w equals the dual norm, and ||s|| <= 1.

    For l1 the largest entries share equally, so that the order of features does not matter.
    """
    if norm == "linf":
        return np.sign(w)
    size = dual_norm(w, norm)
    if size == 0.0:
        return np.zeros_like(w)
    if norm == "l2":
        return w / size
    largest = np.abs(w) == size
    return np.where(largest, np.sign(w), 0.0) / np.count_nonzero(largest)
