"""Searches in one dimension: for lam alone, and along a Newton direction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.solvers._kernels.lagrangian import Point, Stage, Terms, sample_multipliers
from fdrsvm.solvers._kernels.projections import project_cone


@compiled_fast
def _lam_slope(
    terms: Terms, stage: Stage, margins: Array, shifted: Array, lam: float, out: Array
) -> float:
    """Derivative of the augmented Lagrangian in lam alone."""
    total_flipped = 0.0
    if terms.flips:
        for n in range(margins.size):
            total_flipped += sample_multipliers(terms, stage, n, margins[n], lam)[1]
    sigma, _ = project_cone(
        shifted, stage.old.scalars[1] - stage.cone_penalty * lam, terms.norm, out
    )
    pulled = stage.prox[-1] * (lam - stage.anchor[-1])
    return float(terms.epsilon - terms.kappa * total_flipped - sigma + pulled)


@compiled_fast
def centre_lam(
    terms: Terms, stage: Stage, margins: Array, shifted: Array, lam: float, out: Array
) -> float:
    """The lam that minimises the augmented Lagrangian at this w.

    Bracketed by doubling, then found by secants and bisection.
    """
    here = _lam_slope(terms, stage, margins, shifted, lam, out)
    reach = -np.sign(here) / stage.penalty
    a, slope_a, b, slope_b = lam, here, lam, here
    for _ in range(200):
        if slope_b * here <= 0.0:
            break
        a, slope_a = b, slope_b
        b, reach = b + reach, 2.0 * reach
        slope_b = _lam_slope(terms, stage, margins, shifted, b, out)
    for k in range(100):
        if slope_b == 0.0 or slope_a == slope_b or abs(b - a) <= 1e-12 * (abs(a) + abs(b)):
            break
        middle = 0.5 * (a + b) if k % 3 == 2 else b - slope_b * (b - a) / (slope_b - slope_a)
        slope = _lam_slope(terms, stage, margins, shifted, middle, out)
        if slope * slope_b <= 0.0:
            a, slope_a = b, slope_b
        b, slope_b = middle, slope
    return b


@compiled_fast
def _slope_along(
    terms: Terms,
    stage: Stage,
    point: Point,
    margins: Array,
    direction: Array,
    moved: Array,
    step: float,
    work: npt.NDArray[np.float64],
) -> float:
    """Derivative of the augmented Lagrangian at ``step``; ``moved`` = rows @ direction."""
    last, kappa = direction.size - 1, terms.kappa
    d_lam = direction[last]
    lam = point.scalars[0] + step * d_lam
    total = (terms.epsilon + stage.prox[last] * (lam - stage.anchor[last])) * d_lam
    for n in range(margins.size):
        kept, flipped, _ = sample_multipliers(terms, stage, n, margins[n] + step * moved[n], lam)
        total -= (kept - flipped) * moved[n] + kappa * flipped * d_lam
    for j in range(last):
        w = point.w[j] + step * direction[j]
        pulled = stage.prox[j] * (w - stage.anchor[j])
        total += (terms.curvature[j] * w - stage.linear[j] + pulled) * direction[j]
        if j < terms.n_normed:
            work[0, j] = stage.old.pull[j] + stage.cone_penalty * w
    sigma, _ = project_cone(
        work[0], stage.old.scalars[1] - stage.cone_penalty * lam, terms.norm, work[1]
    )
    for p in range(terms.n_normed):
        total += work[1, p] * direction[p]
    return float(total - sigma * d_lam)


@compiled_fast
def search_step(
    terms: Terms,
    stage: Stage,
    point: Point,
    margins: Array,
    direction: Array,
    moved: Array,
    slope: float,
    work: npt.NDArray[np.float64],
) -> float:
    """A step at which the slope is small against the first one.

    1 if it serves, otherwise by secants kept inside a bracket.
    """
    low, high, low_slope, step = 0.0, 1.0, slope, 1.0
    for _ in range(30):
        now = _slope_along(terms, stage, point, margins, direction, moved, step, work)
        if now > -0.1 * slope:
            high = step
            step = low + (high - low) * min(max(low_slope / (low_slope - now), 0.1), 0.9)
        elif now < 0.5 * slope and step < 1.0:
            low, low_slope = step, now
            step = 0.5 * (low + high)
        else:
            break
    return step
