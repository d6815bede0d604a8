"""Projections that turn residuals into multipliers, and their derivatives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.maths.norms import L1, LINF

# Where (kept, flipped) lie in the triangle kept, flipped >= 0, kept + flipped <= mass.
VERTEX, KEPT_EDGE, FLIPPED_EDGE, FULL_EDGE, INSIDE = 0, 1, 2, 3, 4


@compiled_fast
def project_sample(
    kept: float, flipped: float, mass: float, flips: bool
) -> tuple[float, float, int]:
    """Nearest point of the triangle, and where it lies; without ``flips``, of its kept side."""
    if not flips:
        if kept <= 0.0 or kept >= mass:
            return min(max(kept, 0.0), mass), 0.0, VERTEX
        return kept, 0.0, KEPT_EDGE
    if max(kept, 0.0) + max(flipped, 0.0) <= mass:
        if kept > 0.0:
            return kept, max(flipped, 0.0), INSIDE if flipped > 0.0 else KEPT_EDGE
        return 0.0, max(flipped, 0.0), FLIPPED_EDGE if flipped > 0.0 else VERTEX
    excess = 0.5 * (kept + flipped - mass)
    if kept <= excess:
        return 0.0, mass, VERTEX
    if flipped <= excess:
        return mass, 0.0, VERTEX
    return kept - excess, flipped - excess, FULL_EDGE


@compiled_fast
def _threshold(x: Array, offset: float) -> float:
    """The t >= 0 with t = offset + sum_p max(0, |x_p| - t), or 0.

    Newton from the left, finite and monotone.
    """
    t = 0.0
    for _ in range(x.size + 2):
        total, count = offset, 1
        for p in range(x.size):
            if abs(x[p]) > t:
                total += abs(x[p])
                count += 1
        if not total / count > t:  # the same set again gives the same t, to the last bit
            break
        t = total / count
    return t


@compiled_fast
def project_cone(x: Array, s: float, norm: int, out: Array) -> tuple[float, float]:
    """Nearest (out, sigma) to (x, s) with ||out|| <= sigma in the transport norm.

    Returns sigma and, for ``cone_curvature``, the threshold or length it was found by.
    """
    if norm == LINF:  # |out_p| <= sigma
        sigma = _threshold(x, s)
        for p in range(x.size):
            out[p] = min(max(x[p], -sigma), sigma)
        return sigma, sigma
    if norm == L1:  # sum |out_p| <= sigma
        cut = _threshold(x, -s)
        sigma = 0.0
        for p in range(x.size):
            out[p] = np.sign(x[p]) * max(abs(x[p]) - cut, 0.0)
            sigma += abs(out[p])
        return (s, 0.0) if cut == 0.0 else (sigma, cut)
    length = 0.0
    for p in range(x.size):
        length += x[p] * x[p]
    length = np.sqrt(length)
    scale = 0.0
    if length <= s:
        scale = 1.0
    elif length > -s:
        scale = 0.5 * (1.0 + s / length)
    for p in range(x.size):
        out[p] = scale * x[p]
    return (s if length <= s else scale * length), length


@compiled_fast
def cone_curvature(
    x: Array,
    s: float,
    sigma: float,
    found_by: float,
    norm: int,
    diagonal: Array,
    low: npt.NDArray[np.float64],
    low_weight: Array,
) -> None:
    """Derivative of ``project_cone`` as diag(diagonal) + sum_i low_weight_i low_i low_i'.

    The last entry stands for lam, which enters with a minus sign. Row 0 holds a positive weight,
    row 1 a negative one. Fills ``diagonal``, ``low`` and ``low_weight``.
    """
    last = diagonal.size - 1
    diagonal[:] = 0.0
    low[:] = 0.0
    low_weight[:] = 0.0
    if sigma <= 0.0:
        return
    if norm == LINF:
        count = 1
        for p in range(x.size):
            if abs(x[p]) > sigma:
                low[0, p] = np.sign(x[p])
                count += 1
            else:
                diagonal[p] = 1.0
        low[0, last] = -1.0
        low_weight[0] = 1.0 / count
    elif found_by == 0.0 if norm == L1 else found_by <= s:  # inside the cone
        diagonal[: x.size] = 1.0
        diagonal[last] = 1.0
    elif norm == L1:
        count = 1
        for p in range(x.size):
            if abs(x[p]) > found_by:
                diagonal[p] = 1.0
                low[1, p] = np.sign(x[p])
                count += 1
        diagonal[last] = 1.0
        low[1, last] = 1.0
        low_weight[1] = -1.0 / count
    else:
        across = 0.5 * (1.0 + s / found_by)
        for p in range(x.size):
            diagonal[p] = across
            low[0, p] = x[p] / found_by
            low[1, p] = low[0, p]
        low[0, last] = -1.0
        low_weight[0] = 0.5
        low_weight[1] = -across
