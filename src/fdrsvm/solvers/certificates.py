"""Duality gaps, computed from scratch: nothing here trusts, or shares code with, a solver.

The numbers come from native/client/grading.cpp:

Primal   P(w, b) = min over lam >= ||w||_* of the worst-case risk, one-dimensional, solved exactly,
         + (rho/2) ||w - c||^2 + tau ||w||^2 + (rho/2) (b - c_b)^2
Dual     [gap-dual]: masses a_n (label kept) and f_n (flipped), any numbers, made feasible by
         clipping and scaling, [repair]
Bound    D <= optimum <= P for any numbers handed in
Cost     two passes over X
"""

from __future__ import annotations

from typing import NamedTuple

from fdrsvm.core.arrays import Array
from fdrsvm.native import client as kernels
from fdrsvm.risk.cuts import Cut, intercept_slope
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
    return certificate_of(
        problem, kernels.grade(problem.kernel, centre, centre_intercept, w, kept, flipped)
    )


def certificate_of(problem: LocalProblem, grade: kernels.Certificate) -> Certificate:
    """What the kernel found, as others read it."""
    slope = grade.slope
    if problem.fit_intercept:
        slope[-1] = intercept_slope(float(slope[-1]))
    return Certificate(
        grade.objective, grade.multiplier, grade.gap, Cut(grade.constant, slope, grade.norm_weight)
    )
