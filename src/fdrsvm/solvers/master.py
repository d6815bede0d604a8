"""The two problems a level bundle method's server solves each round, on its model of the objective.

Primal   minimise M(w) (``minimise_model``), and
         minimise 1/2 ||w - c||^2 where M(w) <= level (``project_onto_level``), or
         1/2 (w - c)' B (w - c) in a metric B
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
from fdrsvm.core.vectors import plain
from fdrsvm.native import master as kernels
from fdrsvm.solvers.conic import conic_master
from fdrsvm.solvers.cut_model import CutModel, Metric, ModelBound

_MAX_ITER = 100  # Newton steps; on real runs 43 were the most
# The method stops on an estimate of its own, but success is a matter of the certified gap. It aims
# at this share of tol, so that a gap somewhat above the estimate does not cost a second try.
_MARGIN = 0.1
# Losses are of M(0)'s size, so a far smaller optimum is a difference of theirs: below this share of
# M(0) it is not resolved to relative accuracy.
_SMALL_VALUE = 1e-3
# A projection may exceed the level by this share of M(0), which is rounding, plus that of the way
# M(c) - level it comes down, ...
_LEVEL_SLACK, _EXCESS_SLACK = 1e-11, 1e-5
# ... and is not asked for a better relative accuracy of the squared distance than this: the next
# point of a level method need not be exact, and a thin set allows no more.
_DISTANCE_TOL = 1e-4


class MasterStatus(Enum):
    """How an answer of the master was reached and graded."""

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
    status, smallest = MasterStatus.SOLVED, _SMALL_VALUE * best.value_at_0
    # Where M(0) = 0 is the minimum nothing was to be solved. The test is the negation of success,
    # so that a gap of nan fails it.
    if not best.is_trivial and not best.gap <= tol * max(best.value, smallest):
        guess = conic_master(best.problem())
        if guess is not None:
            # Taken only as far as it is better: a higher bound need not come with a lower point.
            w, cut_multipliers, _ = guess
            best.offer(w, cut_multipliers)
        is_solved = best.gap <= tol * max(best.value, smallest)
        status = MasterStatus.SOLVED_BY_CONIC if is_solved else MasterStatus.INACCURATE
    bound = best.bound
    return MasterSolution(
        best.w, best.value, bound.shares, 0.0, best.gap, bound, status, best.n_iter
    )


def project_onto_level(
    model: CutModel,
    centre: Array,
    level: float,
    *,
    tol: float = 1e-9,
    metric: Metric | None = None,
) -> MasterSolution:
    """The model nearest to ``centre`` with M(w) <= level, by the Euclidean distance or a metric's.

    ``tol`` is aimed at, relative to the squared distance; the answer counts as solved at 1e-4,
    since a level method needs no more and a thin set allows no more.
    """
    task = kernels.project(
        model.kernel,
        plain(centre),
        level,
        metric=None if metric is None else plain(metric.matrix),
        least=1.0 if metric is None else metric.least,
        tol=_MARGIN * tol,
        max_iter=_MAX_ITER,
    )
    excess = abs(task.value_at_centre - level)
    highest = level + _LEVEL_SLACK * task.value_at_0 + _EXCESS_SLACK * excess
    first = _graded(task, highest, task.first)
    # A centre within the level is its own projection, exactly.
    if first.status is MasterStatus.SOLVED or task.value_at_centre <= level:
        return first
    answers = [first]
    # Where the bound already proves that no model reaches the level, no solver can do better.
    if first.status is MasterStatus.INACCURATE:
        guess = conic_master(task.problem())
        if guess is not None:
            second = _graded(task, highest, task.grade(*guess))
            if second.status is MasterStatus.SOLVED:
                return replace(second, status=MasterStatus.SOLVED_BY_CONIC)
            answers.append(second)
    return _least_bad(model, task, centre, highest, answers)


def _graded(task: kernels.Projection, highest: float, point: kernels.GradedPoint) -> MasterSolution:
    """A point with the status it deserves; ``highest`` is the level and what is granted above."""
    bound, status = point.bound, MasterStatus.INACCURATE
    if bound.value > highest:
        status = MasterStatus.EMPTY
    # The gap may be negative: a point slightly above the level can be nearer than any within it.
    elif point.value <= highest and abs(point.gap) <= _DISTANCE_TOL * point.distance:
        status = MasterStatus.SOLVED
    return MasterSolution(
        point.w,
        point.value,
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
    highest: float,
    answers: list[MasterSolution],
) -> MasterSolution:
    """The nearest point within the level, or else the lowest; with the best bound of all."""
    # The model's minimum is within the level if anything is, and the centre is always finite; so
    # there is a point to return whatever became of the solvers.
    lowest = minimise_model(model)
    others = [_graded(task, highest, task.grade_point(plain(w))) for w in (lowest.w, centre)]
    points = [point for point in (*answers, *others) if np.isfinite(point.w).all()]
    best = min(points, key=lambda point: (max(point.value, highest), abs(point.gap)))
    # A bound on the objective holds for every point, wherever it was found.
    bound = max((lowest, *points), key=lambda point: point.bound.value).bound
    status = MasterStatus.EMPTY if bound.value > highest else MasterStatus.INACCURATE
    return replace(best, bound=bound, status=status, n_iter=task.n_iter)
