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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.norms import dual_norm, dual_norm_subgradient
from fdrsvm.solvers._kernels.master import interior_point
from fdrsvm.solvers.cut_model import CutModel
from fdrsvm.solvers.master_conic import conic_master
from fdrsvm.solvers.master_problem import Scaled, scale_minimisation, scale_projection
from fdrsvm.solvers.model_bound import ModelBound, distance_bound, model_bound

_MAX_ITER = 100
_MARGIN = 0.1  # the method's own estimate is kept this far below tol
_SMALL_VALUE = 1e-3  # of M(0): a smaller optimum is not resolved to relative accuracy
# A projection may exceed the level by this share of M(0) plus that of M(c) - level, ...
_LEVEL_SLACK, _EXCESS_SLACK = 1e-11, 1e-5
# ... and is not asked for a better relative accuracy of the squared distance than this.
_DISTANCE_TOL = 1e-4
_RADIUS_FACTOR = 10.0  # of ||w||_*: what a bound without floors speaks of, unless told


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
    unit = _value_at_0(model)
    best = _Best(model, radius)
    if not unit > 0.0:  # M >= 0 = M(0)
        return best.solution(MasterStatus.SOLVED, 0)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is graded as unsolved
        goal_unit = _SMALL_VALUE * unit
        scaled = scale_minimisation(model, unit, radius)
        v, z, _, n_iter = interior_point(
            scaled.master, scaled.master.centre, _MARGIN * tol, _MAX_ITER
        )
        best.offer(v[: model.width] * scaled.units, scaled.shares(z, 1.0))
        if best.gap <= tol * max(best.value, goal_unit):
            return best.solution(MasterStatus.SOLVED, n_iter)
        found = conic_master(scaled.master)
        if found is not None:
            best.offer(found[0] * scaled.units, scaled.shares(found[1], 1.0))
        solved = best.gap <= tol * max(best.value, goal_unit)
    status = MasterStatus.SOLVED_BY_CONIC if solved else MasterStatus.INACCURATE
    return best.solution(status, n_iter)


class _Best:
    """The best point and the best bound so far, from w = 0 and the floors on."""

    def __init__(self, model: CutModel, radius: float) -> None:
        self.model, self.radius = model, radius
        self.w = np.zeros(model.width)
        self.value = model.value(self.w)
        self.bound = model_bound(model, np.zeros(model.owners.size))

    @property
    def gap(self) -> float:
        return self.value - self.bound.value

    def offer(self, w: Array, shares: Array) -> None:
        model = self.model
        value = model.value(w)
        if np.isfinite(w).all() and value < self.value:
            self.w, self.value = w, value
        radius = self.radius
        if radius == np.inf:
            radius = _RADIUS_FACTOR * dual_norm(self.w[: model.n_normed], model.norm)
        bound = model_bound(model, shares, radius)
        if bound.value > self.bound.value:
            self.bound = bound

    def solution(self, status: MasterStatus, n_iter: int) -> MasterSolution:
        return MasterSolution(
            self.w, self.value, self.bound.shares, 0.0, self.gap, self.bound, status, n_iter
        )


def project_onto_level(
    model: CutModel, centre: Array, level: float, *, tol: float = 1e-9
) -> MasterSolution:
    """The model nearest to ``centre`` with M(w) <= level.

    ``tol`` is aimed at, relative to the squared distance; the answer counts as solved at 1e-4,
    since a level method needs no more and a thin set allows no more.
    """
    task = _Projection(model, centre, level, model.value(centre), _value_at_0(model))
    if task.start <= level:
        return task.graded(centre, np.zeros(model.owners.size), 0.0, 0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        curvature = _steepness(model, centre) / (task.start - level)
        scaled = scale_projection(model, task.unit or task.start, centre, level, curvature)
        v, z, _, n_iter = interior_point(
            scaled.master, scaled.master.centre, _MARGIN * tol, _MAX_ITER
        )
        first = _graded(task, scaled, v, z, n_iter)
        if first.status is MasterStatus.SOLVED:
            return first
        found = conic_master(scaled.master) if first.status is MasterStatus.INACCURATE else None
        if found is None:
            return task.least_bad([first])
        second = _graded(task, scaled, *found, n_iter)
        if second.status is MasterStatus.SOLVED:
            return replace(second, status=MasterStatus.SOLVED_BY_CONIC)
        return task.least_bad([first, second])


@dataclass(frozen=True)
class _Projection:
    """What a projection is graded against."""

    model: CutModel
    centre: Array
    level: float
    start: float  # M(centre)
    unit: float  # M(0)

    @property
    def highest(self) -> float:
        """The level and what is granted above it."""
        return self.level + _LEVEL_SLACK * self.unit + _EXCESS_SLACK * abs(self.start - self.level)

    def graded(self, w: Array, shares: Array, multiplier: float, n_iter: int) -> MasterSolution:
        """Any point and any numbers, with the status they deserve."""
        model, level = self.model, self.level
        value, bound = model.value(w), model_bound(model, shares)
        distance = 0.5 * float(np.sum((w - self.centre) ** 2))
        gap = distance - distance_bound(model, self.centre, level, shares, multiplier)
        status = MasterStatus.INACCURATE
        if bound.value > self.highest:
            status = MasterStatus.EMPTY
        elif value <= self.highest and abs(gap) <= _DISTANCE_TOL * distance:
            status = MasterStatus.SOLVED
        shares = np.nan_to_num(shares, nan=0.0, posinf=0.0, neginf=0.0)
        return MasterSolution(w, value, shares, multiplier, gap, bound, status, n_iter)

    def least_bad(self, found: list[MasterSolution]) -> MasterSolution:
        """The nearest point within the level, or else the lowest; with the best bound of all."""
        lowest = minimise_model(self.model)
        none = np.zeros(self.model.owners.size)
        points = [*found, *(self.graded(w, none, 0.0, 0) for w in (lowest.w, self.centre))]
        points = [point for point in points if np.isfinite(point.w).all()]
        best = min(points, key=lambda point: (max(point.value, self.highest), abs(point.gap)))
        bound = max((lowest, *points), key=lambda point: point.bound.value).bound
        empty = bound.value > self.highest
        status = MasterStatus.EMPTY if empty else MasterStatus.INACCURATE
        return replace(best, bound=bound, status=status, n_iter=found[0].n_iter)


def _graded(task: _Projection, scaled: Scaled, w: Array, z: Array, n_iter: int) -> MasterSolution:
    """A solver's point (and more variables, maybe) and multipliers, brought back and graded."""
    price = float(z[scaled.master.constants.size])
    back = w[: task.model.width] * scaled.units
    multiplier = max(price, 0.0) * scaled.multiplier_unit
    return task.graded(back, scaled.shares(z, price), multiplier, n_iter)


def _value_at_0(model: CutModel) -> float:
    return model.value(np.zeros(model.width))


def _steepness(model: CutModel, w: Array) -> float:
    """Square of a subgradient of M at ``w``: with M(w) - level, the scale of the multiplier."""
    values, P = model.cut_values(w), model.n_normed
    largest = model.client_values(w)
    active = values >= largest[model.owners]
    count = np.bincount(model.owners, weights=active, minlength=model.n_clients)
    shares = active / np.maximum(count, 1.0)[model.owners]
    weights = model.alphas[model.owners] * shares
    slope = weights @ model.slopes
    slope[:P] += float(weights @ model.norm_weights) * dual_norm_subgradient(w[:P], model.norm)
    return float(slope @ slope) or 1.0
