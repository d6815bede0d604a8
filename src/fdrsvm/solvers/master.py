"""The two problems a level bundle method's server solves each round, on its model of the objective.

Primal   minimise M(w) (``minimise_model``), and
         minimise 1/2 ||w - c||^2 where M(w) <= level (``project_onto_level``)
Dual     shares pi_gk >= 0 of each client's cuts with sum 1: the bound of [model-bound]; for the
         projection also a multiplier mu >= 0 of the level
Link     w - c + mu (sum alpha pi v + (sum alpha pi sigma) u) = 0, u a subgradient of the norm at w
Method   predictor-corrector interior point method, theta and |w| eliminated, [master]; where its
         answer is graded too low, Clarabel's, graded likewise; the best of all grades is returned
Stop     M(w) - model_bound(...) <= tol max(M(w), M(0)/1000);  for the projection M(w) <= level and
         1/2 ||w - c||^2 - distance_bound(...), both up to a stated share
Cost     a Newton step: one Gram matrix of the cuts and one Cholesky factor of size width + 1

Scaling, method and grades are compiled, native/master: one call solves and grades.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.native import master as kernels
from fdrsvm.solvers.cut_model import CutModel, clean
from fdrsvm.solvers.master_conic import conic_master
from fdrsvm.solvers.model_bound import ModelBound, named_bound

_MAX_ITER = 100
_MARGIN = 0.1  # the method's own estimate is kept this far below tol
_SMALL_VALUE = 1e-3  # of M(0): a smaller optimum is not resolved to relative accuracy
# A projection may exceed the level by this share of M(0) plus that of M(c) - level, ...
_LEVEL_SLACK, _EXCESS_SLACK = 1e-11, 1e-5
# ... and is not asked for a better relative accuracy of the squared distance than this.
_DISTANCE_TOL = 1e-4


class MasterStatus(Enum):
    """How an answer of the master was found and graded."""

    SOLVED = "within tol, by the interior point method"
    SOLVED_BY_CONIC = "within tol, by the conic solver: the interior point method fell short"
    INACCURATE = "neither solver reached tol; the best point found, its bound as valid as ever"
    EMPTY = "no model reaches the level, as the bound proves; the best point found"


@dataclass(frozen=True)
class MasterSolution:
    """An answer of the master, with its proof.

    Attributes
    ----------
    w : ndarray of shape (width,)
        Always finite.
    value : float
        M(w).
    shares : ndarray of shape (n_cuts,)
        Feasible shares of the cuts; 0 for a cut that does not count at ``w``.
    level_multiplier : float
        mu; 0 for ``minimise_model`` and for a centre within the level.
    gap : float
        Certified: M(w) minus the bound, or, for a projection, by how much 1/2 ||w - c||^2 may be
        too large (it may be negative, as far as ``w`` exceeds the level).
    bound : ModelBound
        A lower bound on the objective, whatever the status.
    status : MasterStatus
        How it was found.
    n_iter : int
        Newton steps of the interior point method.
    """

    w: Array
    value: float
    shares: Array
    level_multiplier: float
    gap: float
    bound: ModelBound
    status: MasterStatus
    n_iter: int


def minimise_model(model: CutModel, *, tol: float = 1e-9, radius: float = np.inf) -> MasterSolution:
    """Minimises M, with a bound on the objective.

    ``radius`` matters only if all floors are 0: how large a model the bound should speak of; inf
    stands for ten times ||w||_*.
    """
    best = kernels.minimise(model.kernel, radius=radius, tol=_MARGIN * tol, max_iter=_MAX_ITER)
    status = MasterStatus.SOLVED
    if not best.is_trivial and not _is_lowest(best, tol):
        found = conic_master(best.problem())
        if found is not None:
            best.offer(found.w, found.cut_multipliers)
        solved = _is_lowest(best, tol)
        status = MasterStatus.SOLVED_BY_CONIC if solved else MasterStatus.INACCURATE
    bound = named_bound(best.bound)
    return MasterSolution(
        best.w, best.value, bound.shares, 0.0, best.gap, bound, status, best.n_iter
    )


def _is_lowest(best: kernels.Minimisation, tol: float) -> bool:
    return best.gap <= tol * max(best.value, _SMALL_VALUE * best.value_at_0)


def project_onto_level(
    model: CutModel, centre: Array, level: float, *, tol: float = 1e-9
) -> MasterSolution:
    """The model nearest to ``centre`` with M(w) <= level.

    ``tol`` is aimed at, relative to the squared distance; the answer counts as solved at 1e-4,
    since a level method needs no more and a thin set allows no more.
    """
    task = kernels.project(
        model.kernel, clean(centre), level, tol=_MARGIN * tol, max_iter=_MAX_ITER
    )
    first = _graded(task, level, task.first)
    if first.status is MasterStatus.SOLVED or task.value_at_centre <= level:
        return first
    found = conic_master(task.problem()) if first.status is MasterStatus.INACCURATE else None
    if found is None:
        return _least_bad(model, task, centre, level, [first])
    second = _graded(task, level, task.grade(*found))
    if second.status is MasterStatus.SOLVED:
        return replace(second, status=MasterStatus.SOLVED_BY_CONIC)
    return _least_bad(model, task, centre, level, [first, second])


def _highest(task: kernels.Projection, level: float) -> float:
    """The level and what is granted above it."""
    excess = abs(task.value_at_centre - level)
    return level + _LEVEL_SLACK * task.value_at_0 + _EXCESS_SLACK * excess


def _graded(task: kernels.Projection, level: float, point: kernels.GradedPoint) -> MasterSolution:
    """A point with the status it deserves."""
    highest, value, bound = _highest(task, level), point.value, named_bound(point.bound)
    status = MasterStatus.INACCURATE
    if bound.value > highest:
        status = MasterStatus.EMPTY
    elif value <= highest and abs(point.gap) <= _DISTANCE_TOL * point.distance:
        status = MasterStatus.SOLVED
    return MasterSolution(
        point.w,
        value,
        point.shares,
        point.level_multiplier,
        point.gap,
        bound,
        status,
        task.n_iter,
    )


def _least_bad(
    model: CutModel,
    task: kernels.Projection,
    centre: Array,
    level: float,
    found: list[MasterSolution],
) -> MasterSolution:
    """The nearest point within the level, or else the lowest; with the best bound of all."""
    lowest, highest = minimise_model(model), _highest(task, level)
    others = [_graded(task, level, task.grade_point(clean(w))) for w in (lowest.w, centre)]
    points = [point for point in (*found, *others) if np.isfinite(point.w).all()]
    best = min(points, key=lambda point: (max(point.value, highest), abs(point.gap)))
    bound = max((lowest, *points), key=lambda point: point.bound.value).bound
    status = MasterStatus.EMPTY if bound.value > highest else MasterStatus.INACCURATE
    return replace(best, bound=bound, status=status, n_iter=task.n_iter)
