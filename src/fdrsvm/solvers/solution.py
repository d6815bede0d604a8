"""What a solve hands back: the point, its certified gap, why it stopped, where to start next.

Every point is graded from scratch by native/client/grading.cpp, which trusts no solver and shares
no code with one; Python reaches it as ``fdrsvm.native.client.grade``:

Primal   P(w, b) = min over lam >= ||w||_* of the worst-case risk, one-dimensional, solved exactly,
         + (rho/2) ||w - c||^2 + tau ||w||^2 + (rho/2) (b - c_b)^2
Dual     [gap-dual]: masses a_n (label kept) and f_n (flipped), any numbers, made feasible by
         clipping and scaling, [repair]
Bound    D <= optimum <= P for any numbers handed in
Cost     two passes over X
"""

from __future__ import annotations

import warnings
from enum import Enum
from typing import NamedTuple

from fdrsvm.core.arrays import Array
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.risk.worst_case import Cut


class Status(Enum):
    """Why a solver stopped; the value says what it means for the caller."""

    SOLVED = "the certified duality gap is within tol"
    MAX_ITER = "out of Newton steps before the certified gap reached tol: allow a larger tol"
    STALLED = "rounding stops the gap above tol: rescale the features or allow a larger tol"


class WarmStart(NamedTuple):
    """Primal and dual point of an earlier solve of the same client, in the kernels' unit.

    No solver changes it.
    """

    w: Array  # with the intercept last, if there is one
    lam: float
    kept: Array
    flipped: Array
    pull: Array
    sigma: float


class Solution(NamedTuple):
    """A solved client problem, with its proof.

    ``objective - gap`` is a certified lower bound on the optimal value, whatever the status. One
    exception: the central problem at epsilon = 0, where nothing bounds w. There the bound holds for
    models up to ten times as large as ``w`` only ([repair] in docs/solvers.md).

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The linear model.
    intercept : float
        0 unless an intercept was asked for.
    multiplier : float
        The lam at which the worst-case risk of ``w`` is attained.
    objective : float
        Worst-case risk plus proximal and quadratic terms, at ``w``.
    gap : float
        Certified bound on objective minus optimum; SOLVED means gap <= tol max(1, |objective|).
    status : Status
        Why the solver stopped.
    n_iter : int
        Newton steps.
    cut : Cut
        What the dual solution proves about the worst-case risk of every model, [cut], without the
        proximal terms. At the optimum it touches the risk there, with the slope
        rho (c - w) - 2 tau w once the norm's part is added.
    warm_start : WarmStart
        To start the next, similar solve from.
    """

    w: Array
    intercept: float
    multiplier: float
    objective: float
    gap: float
    status: Status
    n_iter: int
    cut: Cut
    warm_start: WarmStart


def warn_unless_solved(solution: Solution, stacklevel: int) -> None:
    """A ConvergenceWarning that says status and gap; ``stacklevel`` counts from the caller."""
    if solution.status is not Status.SOLVED:
        message = (
            f"not solved to tol ({solution.status.name}, gap {solution.gap:.1e}): "
            f"{solution.status.value}"
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel + 1)
