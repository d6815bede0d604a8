"""Duality gaps, computed from scratch: nothing here trusts, or shares code with, a solver.

Primal   P(w, b) = min over lam >= ||w||_* of the worst-case risk, one-dimensional, solved exactly,
         + (rho/2) ||w - c||^2 + tau ||w||^2 + (rho/2) (b - c_b)^2
Dual     [gap-dual]: masses a_n (label kept) and f_n (flipped), any numbers, made feasible by
         clipping and scaling, [repair]
Bound    D <= optimum <= P for any numbers handed in
Cost     two passes over X
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.ambiguity.cuts import Cut, intercept_slope
from fdrsvm.maths.arrays import Array
from fdrsvm.solvers._kernels.grading import grade
from fdrsvm.solvers.problem import LocalProblem


class Certificate(NamedTuple):
    """``objective - gap <= optimum <= objective``.

    ``multiplier`` is the lam the objective is attained at. ``cut`` lies below the worst-case risk
    itself, without the proximal terms; at the optimum it touches the risk there, with the slope
    rho (c - w) - 2 tau w once the norm's part is added.
    """

    objective: float
    multiplier: float
    gap: float
    cut: Cut


def certify(
    problem: LocalProblem,
    centre: Array,
    centre_intercept: float,
    w: Array,
    kept: Array,
    flipped: Array,
) -> Certificate:
    """Grades a point; ``w`` (an intercept last) and ``centre`` are in the problem's unit."""
    objective, lam, bound, constant, tension, norm_weight = grade(
        problem.grounds, centre, centre_intercept, w, kept, flipped
    )
    gap = objective - bound
    scale = problem.feature_scale
    slope = -tension
    slope[: problem.n_features] *= scale
    if problem.fit_intercept:
        slope[-1] = intercept_slope(float(slope[-1]))
    return Certificate(
        objective,
        lam / scale,
        gap if gap == gap else np.inf,
        Cut(constant, slope, norm_weight * scale),
    )
