"""The engine behind every local solve, and its second try.

Method   semismooth Newton on an augmented Lagrangian: native/client, where stages.hpp says how
Stop     certify(...).gap <= tol max(1, |objective|), never on the method's own estimate
Retry    from a cold start, should a warm one lead nowhere; then from a conic solver's point
"""

from __future__ import annotations

from fdrsvm.core.arrays import Array
from fdrsvm.native import client as kernels
from fdrsvm.solvers.certificates import certificate_of, certify
from fdrsvm.solvers.conic import conic_point, is_within_reach
from fdrsvm.solvers.problem import LocalProblem
from fdrsvm.solvers.solution import Solution, Status, WarmStart

_MAX_NEWTON = 1000
_MAX_WIDE_NEWTON = 300  # each costs more, and more of them seldom help


def solve(
    problem: LocalProblem,
    centre: Array,
    centre_intercept: float,
    *,
    warm_start: WarmStart | None,
    tol: float,
) -> Solution:
    """Minimises to a certified relative gap of ``tol``; takes clean arguments."""
    max_newton = _max_newton(problem)
    answer = kernels.solve(problem.kernel, centre, centre_intercept, warm_start, tol, max_newton)
    solution = _report(problem, answer, max_newton)
    if answer.solved or not is_within_reach(problem):
        return solution
    return _fall_back(problem, centre, centre_intercept, solution, tol)


def _max_newton(problem: LocalProblem) -> int:
    return _MAX_WIDE_NEWTON if problem.kernel.is_wide else _MAX_NEWTON


def _report(problem: LocalProblem, answer: kernels.Answer, max_newton: int) -> Solution:
    found = certificate_of(problem, answer.certificate)
    if answer.solved:
        status = Status.SOLVED
    else:
        status = Status.MAX_ITER if answer.n_iter >= max_newton else Status.STALLED
    return Solution(
        answer.w,
        answer.intercept,
        found.multiplier,
        found.objective,
        found.gap,
        status,
        answer.n_iter,
        found.cut,
        WarmStart(*answer.start),
    )


def _fall_back(
    problem: LocalProblem, centre: Array, centre_intercept: float, best: Solution, tol: float
) -> Solution:
    """The best of what there is, a conic solver's point, and Newton's from there."""
    found = conic_point(problem, centre, centre_intercept)
    if found is None:
        return best
    conic = _grade(problem, centre, centre_intercept, found, best, tol)
    if abs(conic.gap) < abs(best.gap):
        best = conic
    if conic.status is Status.SOLVED:
        return best
    max_newton = _max_newton(problem)
    answer = kernels.solve_from(problem.kernel, centre, centre_intercept, found, tol, max_newton)
    polished = _report(problem, answer, max_newton)
    n_iter = best.n_iter + answer.n_iter
    if abs(polished.gap) < abs(best.gap):
        best = polished
    if best.status is not Status.SOLVED and n_iter >= max_newton:
        best = best._replace(status=Status.MAX_ITER)
    return best._replace(n_iter=n_iter)


def _grade(
    problem: LocalProblem,
    centre: Array,
    centre_intercept: float,
    point: WarmStart,
    so_far: Solution,
    tol: float,
) -> Solution:
    """A conic solver's point as an answer; its Newton steps are those taken so far."""
    scaled = centre * problem.feature_scale
    grade = certify(problem, scaled, centre_intercept, point.w, point.kept, point.flipped)
    is_solved = abs(grade.gap) <= tol * max(1.0, abs(grade.objective)) < float("inf")
    P = problem.n_features
    return Solution(
        w=point.w[:P] / problem.feature_scale,
        intercept=float(point.w[P]) if problem.fit_intercept else 0.0,
        multiplier=grade.multiplier,
        objective=grade.objective,
        gap=grade.gap,
        status=Status.SOLVED if is_solved else so_far.status,
        n_iter=so_far.n_iter,
        cut=grade.cut,
        warm_start=point,
    )
