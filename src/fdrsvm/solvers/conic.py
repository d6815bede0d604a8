"""The local problem as a conic program for Clarabel: the second try, when Newton gives up.

Variables (w, b, lam, s, t): s the losses, and t >= |w| for the transport norm linf. What comes back
is only a guess at the answer and its multipliers; ``certificates`` grades it like any other.
"""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import L1, L2, LINF
from fdrsvm.solvers.problem import LocalProblem
from fdrsvm.solvers.solution import WarmStart

_MAX_ENTRIES = 1_000_000
_MAX_SIZE = 25_000  # samples plus features
_TOL = 1e-12


def is_within_reach(problem: LocalProblem) -> bool:
    """Whether a general solver can be expected to finish soon."""
    small = problem.n_samples + problem.n_features <= _MAX_SIZE
    dense_entries = problem.n_samples * problem.width
    entries = dense_entries if problem.csr is None else problem.csr[0].size
    return small and bool(entries <= _MAX_ENTRIES)


def conic_point(problem: LocalProblem, centre: Array, centre_intercept: float) -> WarmStart | None:
    """Clarabel's primal and dual point, or None if it found no finite one."""
    terms, N, Q = problem.kernel, problem.n_samples, problem.width
    A, b, cones = _constraints(problem, N, Q)
    linear, curvature = _quadratic(problem, centre, centre_intercept)
    size = A.shape[1]
    cost = np.zeros(size)
    cost[:Q], cost[Q], cost[Q + 1 : Q + 1 + N] = -linear, terms.epsilon, terms.mass()
    diagonal = np.zeros(size)
    diagonal[:Q] = curvature
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOL
    H = sparse.csc_matrix(sparse.diags_array(diagonal))
    answer = clarabel.DefaultSolver(H, cost, A, b, cones, settings).solve()
    x, z = np.array(answer.x), np.array(answer.z)
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        return None
    kept = z[N : 2 * N].copy()
    flips = np.isfinite(terms.kappa)
    flipped = z[2 * N : 3 * N].copy() if flips else np.zeros(N)
    w = x[:Q].copy()
    pull = (terms.pull_of(kept - flipped) + linear - curvature * w)[: problem.n_features].copy()
    sigma = terms.epsilon - (terms.kappa * float(flipped.sum()) if flips else 0.0)
    return WarmStart(w, float(x[Q]), kept, flipped, pull, sigma)


def _quadratic(
    problem: LocalProblem, centre: Array, centre_intercept: float
) -> tuple[Array, Array]:
    """Linear term in (w, b) of (rho/2) ||w - c||^2 + (rho/2) (b - c_b)^2, and all curvatures."""
    terms, P = problem.kernel, problem.n_features
    linear = np.full(problem.width, terms.intercept_rho * centre_intercept)
    linear[:P] = terms.rho * centre * problem.feature_scale
    curvature = np.full(problem.width, terms.intercept_rho)
    curvature[:P] = terms.rho + 2.0 * terms.tau
    return linear, curvature


def _constraints(problem: LocalProblem, N: int, Q: int) -> tuple[Any, Array, list[Any]]:
    """(A, b, cones) of A x + slack = b: losses, kept and flipped pieces, then the norm."""
    terms, P = problem.kernel, problem.n_features
    csr = problem.csr
    Z = sparse.csr_array(terms.dense_rows()) if csr is None else sparse.csr_array(csr[:3], (N, Q))
    n_bounds = P if terms.norm == LINF else 0
    widths = {"w": Q, "lam": 1, "s": N, "t": n_bounds}

    def block(height: int, **parts: Any) -> Any:
        empty = {name: sparse.csr_array((height, width)) for name, width in widths.items()}
        return sparse.hstack([sparse.csr_array(part) for part in (empty | parts).values()])

    eye, one_each, W = sparse.eye_array(N), sparse.eye_array(P), sparse.eye_array(P, Q)
    A = [block(N, s=-eye), block(N, w=-Z, s=-eye)]
    b = [np.zeros(N), -np.ones(N)]
    if np.isfinite(terms.kappa):
        A.append(block(N, w=Z, lam=np.full((N, 1), -terms.kappa), s=-eye))
        b.append(-np.ones(N))
    if terms.norm == LINF:
        A += [block(P, w=W, t=-one_each), block(P, w=-W, t=-one_each)]
        A.append(block(1, lam=-np.ones((1, 1)), t=np.ones((1, P))))
        b.append(np.zeros(2 * P + 1))
    elif terms.norm == L1:
        A += [block(P, w=W, lam=-np.ones((P, 1))), block(P, w=-W, lam=-np.ones((P, 1)))]
        b.append(np.zeros(2 * P))
    cones = [clarabel.NonnegativeConeT(sum(map(len, b)))]
    if terms.norm == L2:
        A += [block(1, lam=-np.ones((1, 1))), block(P, w=-W)]
        b.append(np.zeros(P + 1))
        cones.append(clarabel.SecondOrderConeT(P + 1))
    return sparse.csc_matrix(sparse.vstack(A)), np.concatenate(b), cones
