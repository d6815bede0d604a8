"""The client update as a quadratic program, and the solvers that take it.

Each function makes a solver for one client, with everything done that does not depend on the
centre, and gives a call from a centre to w. ``warm`` says whether it may start from its last
answer. Tolerances are 1e-9 where a solver can be asked for that; OSQP is asked for 1e-4 and to
polish.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from benchmarks.clock import ContestantError
from benchmarks.problems import Case
from fdrsvm.core.arrays import Array

Solve: TypeAlias = Callable[[Array], Array]

_TOL = 1e-9
_OSQP_TOL = 1e-4


def quadratic_program(case: Case) -> tuple[Any, Any, Array]:
    """(H, A, b) of min x'Hx/2 + q'x, A x <= b over x = (w, lam, s, t), transport norm linf."""
    n, p = case.X.shape
    Z, one = sparse.csr_array(case.y[:, None] * case.X), np.ones((n, 1))
    eye, each = sparse.eye_array(n), sparse.eye_array(p)

    def zero(height: int, width: int) -> Any:
        return sparse.csr_array((height, width))

    A = [
        [zero(n, p), zero(n, 1), -eye, zero(n, p)],
        [-Z, zero(n, 1), -eye, zero(n, p)],
        [Z, sparse.csr_array(-case.kappa * one), -eye, zero(n, p)],
        [each, zero(p, 1), zero(p, n), -each],
        [-each, zero(p, 1), zero(p, n), -each],
        [zero(1, p), -sparse.eye_array(1), zero(1, n), sparse.csr_array(np.ones((1, p)))],
    ]
    b = np.concatenate([np.zeros(n), -np.ones(2 * n), np.zeros(2 * p + 1)])
    H = sparse.diags_array(np.concatenate([np.full(p, case.rho), np.zeros(1 + n + p)]))
    rows = sparse.vstack([sparse.hstack(row) for row in A])
    return sparse.csc_matrix(H), sparse.csc_matrix(rows), b


def linear_term(case: Case, centre: Array) -> Array:
    """The q that belongs to a centre."""
    n, p = case.X.shape
    parts = [-case.rho * centre, [case.epsilon], np.full(n, 1.0 / n), np.zeros(p)]
    return np.concatenate(parts)


def piqp_solver(case: Case, warm: bool) -> Solve:  # noqa: ARG001 -- it has no warm start
    """PIQP keeps its structure; it has no warm start."""
    import piqp

    H, A, b = quadratic_program(case)
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = _TOL
    solver.setup(H, linear_term(case, case.centre), None, None, A, None, b)

    def solve(centre: Array) -> Array:
        solver.update(c=linear_term(case, centre))
        _require(solver.solve() == piqp.PIQP_SOLVED, solver.result.info.status)
        return np.array(solver.result.x[: centre.size])

    return solve


def clarabel_solver(case: Case, warm: bool) -> Solve:  # noqa: ARG001 -- it has no warm start
    """Clarabel gets prebuilt matrices; it has no warm start."""
    import clarabel

    H, A, b = quadratic_program(case)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOL
    cones = [clarabel.NonnegativeConeT(len(b))]

    def solve(centre: Array) -> Array:
        q = linear_term(case, centre)
        answer = clarabel.DefaultSolver(H, q, A, b, cones, settings).solve()
        _require(answer.status == clarabel.SolverStatus.Solved, answer.status)
        return np.array(answer.x[: centre.size])

    return solve


def osqp_solver(case: Case, warm: bool) -> Solve:
    """OSQP keeps its factorisation, and warm also its last point."""
    import osqp

    H, A, b = quadratic_program(case)
    solver = osqp.OSQP()
    solver.setup(
        *(H, linear_term(case, case.centre), A, np.full(len(b), -np.inf), b),
        eps_abs=_OSQP_TOL,
        eps_rel=_OSQP_TOL,
        max_iter=1_000_000,
        polishing=True,
        warm_starting=warm,
        verbose=False,
    )

    def solve(centre: Array) -> Array:
        solver.update(q=linear_term(case, centre))
        answer = solver.solve(raise_error=False)
        _require(answer.info.status == "solved", answer.info.status)
        return np.array(answer.x[: centre.size])

    return solve


def proxqp_solver(case: Case, warm: bool) -> Solve:
    """ProxQP with sparse Cholesky factors; warm it starts from its last point."""
    from proxsuite import proxqp

    H, A, b = quadratic_program(case)
    solver = proxqp.sparse.QP(H.shape[0], 0, len(b))
    solver.settings.sparse_backend = proxqp.SparseBackend.SparseCholesky
    solver.settings.eps_abs = _TOL
    # By default it takes some of these problems for infeasible.
    solver.settings.eps_primal_inf = solver.settings.eps_dual_inf = 1e-14
    if warm:
        solver.settings.initial_guess = proxqp.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
    solver.init(H, linear_term(case, case.centre), None, None, A, np.full(len(b), -1e20), b)

    def solve(centre: Array) -> Array:
        solver.update(g=linear_term(case, centre))
        solver.solve()
        status = solver.results.info.status
        _require(status == proxqp.QPSolverOutput.PROXQP_SOLVED, status)
        return np.array(solver.results.x[: centre.size])

    return solve


def gurobi_solver(case: Case, warm: bool) -> Solve:  # noqa: ARG001 -- it has no warm start
    """Gurobi as the paper's authors call it: the model is built again for each solve."""
    import gurobipy as gp

    env = gp.Env(empty=True)
    env.setParam("OutputFlag", 0)
    env.setParam("Threads", 1)
    env.start()
    n, p = case.X.shape

    def solve(centre: Array) -> Array:
        model = gp.Model(env=env)
        w = model.addMVar(p, lb=-gp.GRB.INFINITY)
        t, lam, s = model.addMVar(p), model.addMVar(1), model.addMVar(n)
        m = (case.y[:, None] * case.X) @ w
        model.addConstr(s >= 1 - m)
        model.addConstr(s >= 1 + m - case.kappa * np.ones((n, 1)) @ lam)
        model.addConstr(t >= w)
        model.addConstr(t >= -w)
        model.addConstr(lam >= np.ones((1, p)) @ t)
        distance = (w - centre) @ (w - centre)
        model.setObjective(case.epsilon * lam.sum() + s.sum() / n + case.rho / 2 * distance)
        model.setParam("BarConvTol", _TOL)
        model.optimize()
        return np.array(w.X)

    return solve


def _require(solved: bool, status: Any) -> None:
    if not solved:
        raise ContestantError(f"it stopped with status {status}")


SOLVERS: dict[str, Callable[[Case, bool], Solve]] = {
    "PIQP": piqp_solver,
    "Clarabel": clarabel_solver,
    "OSQP": osqp_solver,
    "ProxQP": proxqp_solver,
    "Gurobi": gurobi_solver,
}
