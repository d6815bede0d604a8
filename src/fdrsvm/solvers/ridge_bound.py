"""A lower bound on a ridge problem from cuts of its loss: [ridge-bound].

Primal   min over (w, b) of L(w, b) + e ||w||^2,   L >= 0 and L >= c_k + s_k.(w, b) for every k
Dual     max over pi >= 0 with sum pi <= 1 of C - ||S||^2 / (4 e),   (C, S) = sum_k pi_k (c_k, s_k),
         S's entry for b being 0
Link     w = -S / (2 e)
Cost     a line search against the newest cut, or a quadratic program over all of them

Every pi gives a bound, so the solver need not be trusted. Without a penalty, e = 0, the bound is
C - R ||S||, for models with ||w||_* <= R only; the searches then use e = 1 / R^2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import clarabel
import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import Groups, Norm, dot, norm_of, times, weighted_sum
from fdrsvm.solvers.conic import run_clarabel

_TOL = 1e-9


class RidgeCut(NamedTuple):
    """L(w, b) >= constant + slope.(w, b) for every model; the intercept's entry comes last."""

    constant: float
    slope: Array


class RidgeBound(NamedTuple):
    """No model with ||w||_* up to ``radius`` has a smaller objective than ``value``."""

    value: float
    radius: float


def ridge_bound(
    cut: RidgeCut,
    n_features: int,
    penalty: float,
    norm: Norm,
    reach: float,
    groups: Groups = None,
) -> RidgeBound:
    """What a cut without slope in the intercept proves."""
    slope = cut.slope[:n_features]
    if penalty > 0.0:
        return RidgeBound(cut.constant - dot(slope, slope) / (4.0 * penalty), math.inf)
    return RidgeBound(cut.constant - reach * norm_of(slope, norm, groups), reach)


def search_curvature(penalty: float, reach: float) -> float:
    """e, or what stands in for it while searching for a mixture."""
    return penalty if penalty > 0.0 else 1.0 / (reach * reach)


def blend(best: RidgeCut, new: RidgeCut, curvature: float) -> RidgeCut:
    """The best mixture of two cuts without slope in the intercept."""
    change = new.slope - best.slope
    size = dot(change, change)
    gain = 2.0 * curvature * (new.constant - best.constant) - dot(best.slope, change)
    if gain <= 0.0:
        return best
    share = min(gain / size, 1.0) if size > 0.0 else 1.0
    constant = best.constant + share * (new.constant - best.constant)
    return RidgeCut(constant, best.slope + share * change)


def level_pair(new: RidgeCut, constants: Array, slopes: Array) -> RidgeCut | None:
    """``new`` mixed with the latest of the cuts that has the opposite slope in the intercept.

    None if there is no such cut. The last entry of every slope is the intercept's.
    """
    tilt = float(new.slope[-1])
    if tilt == 0.0:
        return new
    opposite = np.flatnonzero(slopes[:, -1] * tilt < 0.0)
    if opposite.size == 0:
        return None
    k = opposite[-1]
    share = abs(slopes[k, -1]) / (abs(tilt) + abs(slopes[k, -1]))
    slope = share * new.slope + (1.0 - share) * slopes[k]
    slope[-1] = 0.0
    return RidgeCut(float(share * new.constant + (1.0 - share) * constants[k]), slope)


def best_mixture(
    constants: Array, slopes: Array, n_features: int, curvature: float
) -> RidgeCut | None:
    """The best mixture of all cuts, made feasible; None if the solver found nothing finite."""
    has_intercept = slopes.shape[1] > n_features
    tilts = slopes[:, n_features:].ravel() if has_intercept else None
    shares = _solve(constants, slopes[:, :n_features] / (2.0 * math.sqrt(curvature)), tilts)
    if not np.isfinite(shares).all():
        return None
    shares = np.maximum(shares, 0.0)
    shares /= max(1.0, dot(shares, np.ones_like(shares)))
    if tilts is not None:
        # The heavier side is scaled down, so that the slope in the intercept is 0.
        up = dot(shares, np.maximum(tilts, 0.0))
        down = dot(shares, np.maximum(-tilts, 0.0))
        if up > down:
            shares = np.where(tilts > 0.0, shares * (down / up), shares)
        elif down > 0.0:
            shares = np.where(tilts < 0.0, shares * (up / down), shares)
    cut = RidgeCut(dot(shares, constants), weighted_sum(shares, slopes))
    if has_intercept:
        cut.slope[-1] = 0.0  # but for rounding it is
    # The loss is not negative, so 0 is a cut too; a mixture with it may prove more.
    return blend(RidgeCut(0.0, np.zeros_like(cut.slope)), cut, curvature)


def _solve(constants: Array, columns: Array, tilts: Array | None) -> Array:
    """The pi >= 0, sum pi <= 1, tilts.pi = 0 with the largest c.pi - ||columns' pi||^2, nearly."""
    n_cuts, n_features = columns.shape
    if n_features > n_cuts:
        # Only lengths of mixtures count, and as many dimensions as cuts have room for them: the
        # transposed triangle of Gram and Schmidt's method, modified, where one row after another
        # is made orthogonal to those before it. Written out, since the last bits of a library's
        # differ between processors.
        left, columns = np.array(columns, order="C"), np.zeros((n_cuts, n_cuts))
        for k in range(n_cuts):
            inner = times(left[k:], left[k])
            if inner[0] > 0.0:
                columns[k:, k] = inner / math.sqrt(inner[0])
                left[k + 1 :] -= (inner[1:] / inner[0])[:, None] * left[k]
    width = columns.shape[1]
    blocks: list[Any] = [[columns.T, -sparse.eye_array(width)]]
    if tilts is not None:
        blocks.append([tilts[None], None])
    blocks += [[-sparse.eye_array(n_cuts), None], [np.ones((1, n_cuts)), None]]
    A = sparse.csc_matrix(sparse.block_array(blocks))
    n_equal = A.shape[0] - n_cuts - 1
    b = np.zeros(A.shape[0])
    b[-1] = 1.0
    curvature = np.concatenate([np.zeros(n_cuts), np.full(width, 2.0)])
    cost = np.concatenate([-constants, np.zeros(width)])
    cones = [clarabel.ZeroConeT(n_equal), clarabel.NonnegativeConeT(n_cuts + 1)]
    return run_clarabel(curvature, cost, A, b, cones, _TOL)[0][:n_cuts]
