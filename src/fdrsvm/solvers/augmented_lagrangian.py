"""Semismooth Newton on an augmented Lagrangian: the engine behind every local solve.

Primal   min over (w, b, lam >= ||w||_*)  epsilon lam + (rho/2) ||w - c||^2 + tau ||w||^2
         + sum_n p_n max(0, 1 - m_n, 1 + m_n - kappa lam), [local]
Dual     multipliers (a_n, f_n) of the pieces, in the triangle a, f >= 0, a + f <= p_n, and
         (u, sigma) of the cone, ||u|| <= sigma, [gap-dual]
Method   [stage]: with penalty r, the multipliers that (w, lam) calls for are projections; (w, lam)
         minimises a convex function whose gradient is piecewise linear and reads them. Newton with
         a line search does it in a few steps, since only samples within 1/r of a kink have
         curvature. Then the multipliers move, r grows, and it starts again.
Link     (rho + 2 tau) w = rho c + sum (a - f) y x - u;   sigma = epsilon - kappa sum f
Stop     certify(...).gap <= tol max(1, |objective|), never on the method's own estimate
Cost     a Newton step: two passes over X, the Gram matrix of the samples near a kink, one Cholesky
         factor of size P + 1; above a few hundred features conjugate gradients instead, which form
         neither, preconditioned by the kernel matrix of the samples near a kink.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdrsvm.ambiguity.cuts import Cut
from fdrsvm.maths.arrays import Array
from fdrsvm.solvers._kernels.lagrangian import Point, Terms
from fdrsvm.solvers._kernels.stages import multiplier_method
from fdrsvm.solvers.certificates import Certificate, certify
from fdrsvm.solvers.conic import conic_point, is_within_reach
from fdrsvm.solvers.problem import LocalProblem, every
from fdrsvm.solvers.solution import Solution, Status, WarmStart

# Penalties are in 1/margin: a sample counts as near a kink within 1/penalty.
_COLD_PENALTY = 3.0
_PRIMED_PENALTY = 30.0
_WARM_PENALTY = 1000.0
# The method's own estimate is kept this far below tol, so that the certificate seldom disagrees ...
_MARGIN = 0.5
# ... and is tightened this often, tenfold each time, when it does.
_TIGHTENINGS = 3
_MAX_NEWTON = 1000
_MAX_WIDE_NEWTON = 300  # each costs more, and more of them seldom help
# A cold start on more samples than this begins on a part of them.
_PRIME_ABOVE = 50_000
_PRIME_ROWS = 10_000
_PRIME_TOL = 1e-4
_UNGRADED = Certificate(np.inf, 0.0, np.inf, Cut(0.0, np.empty(0), 0.0))


@dataclass
class _Run:
    """One solve on its way: where it is, and how good that is."""

    problem: LocalProblem
    centre: Array  # in the problem's unit
    centre_intercept: float
    tol: float
    point: Point
    grade: Certificate
    n_iter: int = 0

    @property
    def max_newton(self) -> int:
        return _MAX_WIDE_NEWTON if self.problem.terms.wide else _MAX_NEWTON

    @property
    def solved(self) -> bool:
        # A gap far below 0 is as wrong as one far above, and inf <= inf proves nothing.
        goal = self.tol * max(1.0, abs(self.grade.objective))
        return bool(abs(self.grade.gap) <= goal < np.inf)


def solve(
    problem: LocalProblem,
    centre: Array,
    centre_intercept: float,
    *,
    warm_start: WarmStart | None,
    tol: float,
) -> Solution:
    """Minimises to a certified relative gap of ``tol``; takes clean arguments."""
    centre = centre * problem.feature_scale
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is graded as unsolved
        run = _run(problem, centre, centre_intercept, warm_start, tol)
        if warm_start is not None and not run.solved:
            # The start may be bad, a failed round's or another problem's: it must not decide.
            cold = _run(problem, centre, centre_intercept, None, tol)
            run = min(run, cold, key=lambda candidate: abs(candidate.grade.gap))
        if not run.solved and is_within_reach(problem):
            _fall_back(run)
        return _report(run)


def _run(
    problem: LocalProblem,
    centre: Array,
    centre_intercept: float,
    warm_start: WarmStart | None,
    tol: float,
) -> _Run:
    """One descent from a warm or a cold start."""
    start = _cold_point(problem) if warm_start is None else _copy(warm_start)
    run = _Run(problem, centre, centre_intercept, tol, start, _UNGRADED)
    penalty = _COLD_PENALTY if warm_start is None else _WARM_PENALTY
    if warm_start is None and problem.n_samples > _PRIME_ABOVE and problem.terms.rows.dense.size:
        _prime(run)
        penalty = _PRIMED_PENALTY
    _descend(run, penalty)
    return run


def _quadratic(run: _Run) -> tuple[Array, float]:
    """Linear term in (w, b) and constant of (rho/2) ||w - c||^2 + (rho/2) (b - c_b)^2."""
    grounds, P = run.problem.grounds, run.problem.n_features
    linear = np.empty(run.problem.width)
    np.multiply(run.centre, grounds.rho, out=linear[:P])
    constant = 0.5 * float(linear[:P] @ run.centre)
    if run.problem.fit_intercept:
        linear[P] = grounds.intercept_rho * run.centre_intercept
        constant += 0.5 * float(linear[P]) * run.centre_intercept
    return linear, constant


def _descend(run: _Run, penalty: float) -> None:
    """Runs the method until the certificate agrees, or it is of no more use."""
    linear, constant = _quadratic(run)
    inner_tol = _MARGIN * run.tol
    for _ in range(_TIGHTENINGS + 1):
        left = run.max_newton - run.n_iter
        n_newton, penalty = multiplier_method(
            run.problem.terms, linear, constant, run.point, penalty, inner_tol, left
        )
        run.n_iter += n_newton
        run.grade = _grade(run, run.point)
        if run.solved or run.n_iter >= run.max_newton:
            break
        inner_tol *= 0.1


def _grade(run: _Run, point: Point) -> Certificate:
    return certify(
        run.problem, run.centre, run.centre_intercept, point.w, point.kept, point.flipped
    )


def _prime(run: _Run) -> None:
    """Sets w and lam to those of a loose solve on a part of the samples."""
    terms: Terms = every(run.problem.terms, -(-run.problem.n_samples // _PRIME_ROWS))
    linear, constant = _quadratic(run)
    part = Point(
        run.point.w, 0.5 * terms.mass, np.zeros_like(terms.mass), run.point.pull, run.point.scalars
    )
    run.n_iter += multiplier_method(
        terms, linear, constant, part, _COLD_PENALTY, _PRIME_TOL, _MAX_NEWTON
    )[0]


def _fall_back(run: _Run) -> None:
    """A conic solver's point, then Newton from there; the best graded point stays."""
    best, grade = run.point, run.grade
    found = conic_point(run.problem, _quadratic(run)[0])
    if found is None:
        return
    for polish in (False, True):
        run.point = _duplicate(found)
        if polish:
            run.n_iter, before = 0, run.n_iter
            _descend(run, _WARM_PENALTY)
            run.n_iter += before
        else:
            run.grade = _grade(run, run.point)
        if abs(run.grade.gap) < abs(grade.gap):
            best, grade = run.point, run.grade
        if run.solved:
            break
    run.point, run.grade = best, grade


def _report(run: _Run) -> Solution:
    point, P = run.point, run.problem.n_features
    status = Status.MAX_ITER if run.n_iter >= run.max_newton else Status.STALLED
    lam, sigma = point.scalars.tolist()
    return Solution(
        w=point.w[:P] / run.problem.feature_scale,
        intercept=float(point.w[P]) if run.problem.fit_intercept else 0.0,
        multiplier=run.grade.multiplier,
        objective=run.grade.objective,
        gap=run.grade.gap,
        status=Status.SOLVED if run.solved else status,
        n_iter=run.n_iter,
        cut=run.grade.cut,
        warm_start=WarmStart(point.w, lam, point.kept, point.flipped, point.pull, sigma),
    )


def _cold_point(problem: LocalProblem) -> Point:
    """At w = 0, and every multiplier half way: no sample is presumed active or idle."""
    mass = problem.terms.mass
    return Point(
        w=np.zeros(problem.width),
        kept=0.5 * mass,
        flipped=np.zeros(mass.size),
        pull=np.zeros(problem.n_features),
        scalars=np.array([0.0, 0.5 * problem.terms.epsilon]),
    )


def _copy(start: WarmStart) -> Point:
    return Point(
        start.w.copy(),
        start.kept.copy(),
        start.flipped.copy(),
        start.pull.copy(),
        np.array([start.lam, start.sigma]),
    )


def _duplicate(point: Point) -> Point:
    return Point(*(array.copy() for array in point))
