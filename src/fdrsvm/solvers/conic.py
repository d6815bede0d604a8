"""Conic programs for Clarabel: the second try, where a method of our own falls short.

Primal   the local problem [local] or the master problem [master], in the variables
         (w, size, values, bounds): w an intercept last, size >= ||w||_*, values the samples' losses
         or the clients' models, bounds >= |w| (of a group all |w|) for the transport norm linf,
         and for l2 with groups
Dual     Clarabel's multipliers of the rows, of which we read those of losses, cuts and level
Stop     Clarabel's own rule at 1e-12; what comes back is only a guess, graded like any other
Cost     a sparse factor of all rows per step: 10 times our own methods' time and more
"""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import L1, L2, LINF
from fdrsvm.native import client, master
from fdrsvm.solvers.solution import WarmStart

_MAX_ENTRIES = 1_000_000
_MAX_SIZE = 25_000  # samples plus features
_TOL = 1e-12


def run_clarabel(
    curvature: Array, cost: Array, A: Any, b: Array, cones: list[Any], tol: float
) -> tuple[Array, Array]:
    """The x with the least x' H x / 2 + cost.x where b - A x lies in the cones.

    ``curvature`` is H's diagonal, or what of H is not zero, in its first rows and columns.
    Returns x and the constraints' multipliers; where Clarabel fails they may not be finite.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    if curvature.ndim == 1:
        H = sparse.csc_matrix(sparse.diags_array(curvature))
    else:  # its upper half
        rest = cost.size - len(curvature)
        H = sparse.csc_matrix(np.pad(np.triu(curvature), ((0, rest), (0, rest))))
    answer = clarabel.DefaultSolver(H, cost, A, b, cones, settings).solve()
    return np.array(answer.x), np.array(answer.z)


def is_within_reach(problem: client.ClientProblem, csr: tuple[Any, ...] | None) -> bool:
    """Whether a general solver can be expected to finish soon."""
    entries = problem.n_samples * problem.width if csr is None else csr[0].size
    return problem.n_samples + problem.n_features <= _MAX_SIZE and bool(entries <= _MAX_ENTRIES)


def conic_point(
    problem: client.ClientProblem,
    csr: tuple[Any, ...] | None,
    centre: Array,
    centre_intercept: float,
) -> WarmStart | None:
    """The local problem's primal and dual point, or None if Clarabel found no finite one."""
    N, P, Q = problem.n_samples, problem.n_features, problem.width
    flips = bool(np.isfinite(problem.kappa))
    rows = problem.dense_rows() if csr is None else csr[:3]
    Z = sparse.csr_array(rows, shape=(N, Q))
    eye = sparse.eye_array(N)
    # A loss is at least 0, at least the kept label's piece and at least the flipped one's.
    pieces = [({"values": -eye}, np.zeros(N)), ({"w": -Z, "values": -eye}, -np.ones(N))]
    if flips:
        tolls = np.full((N, 1), -problem.kappa)
        pieces.append(({"w": Z, "size": tolls, "values": -eye}, -np.ones(N)))
    A, b, cones = _constraints(pieces, problem.norm, [1] * P, Q)
    # (rho/2) ||w - c||^2 + tau ||w||^2 + (rho/2) (b - c_b)^2, less what is constant.
    linear = np.full(Q, problem.intercept_rho * centre_intercept)
    linear[:P] = problem.rho * centre * problem.feature_scale
    curvature, cost = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    curvature[:Q] = problem.intercept_rho
    curvature[:P] = problem.rho + 2.0 * problem.tau
    cost[:Q], cost[Q], cost[Q + 1 : Q + 1 + N] = -linear, problem.epsilon, problem.mass()
    x, z = run_clarabel(curvature, cost, A, b, cones, _TOL)
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        return None
    w, kept = x[:Q].copy(), z[N : 2 * N].copy()
    flipped = z[2 * N : 3 * N].copy() if flips else np.zeros(N)
    pull = (problem.pull_of(kept - flipped) + linear - curvature[:Q] * w)[:P].copy()
    sigma = problem.epsilon - (problem.kappa * float(flipped.sum()) if flips else 0.0)
    return WarmStart(w, float(x[Q]), kept, flipped, pull, sigma)


def conic_master(problem: master.Problem) -> tuple[Array, Array, float] | None:
    """A guess at the scaled master problem's w, and at the multipliers of cuts and of the level.

    None if Clarabel found nothing finite.
    """
    Q, K, G = problem.centre.size, problem.constants.size, problem.alphas.size
    owners = np.repeat(np.arange(G), np.diff(problem.starts))
    picks = sparse.csr_array((-np.ones(K), (np.arange(K), owners)), shape=(K, G))
    cuts = {"w": problem.cuts[:, :Q], "size": problem.cuts[:, Q:], "values": picks}
    # The level is a row of its own even where none is asked for, so that both have one shape.
    weights = problem.alphas if problem.levelled else np.zeros(G)
    level = np.array([problem.level if problem.levelled else 1.0])
    pieces = [(cuts, -problem.constants), ({"values": weights[None, :]}, level)]
    A, b, cones = _constraints(pieces, problem.norm, problem.groups, Q)
    curvature, cost = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    if problem.metric.size:
        curvature, cost[:Q] = problem.metric, -(problem.metric @ problem.centre)
    elif problem.levelled:
        curvature[:Q], cost[:Q] = problem.curvature, -problem.curvature * problem.centre
    else:
        cost[Q + 1 : Q + 1 + G] = problem.alphas
    x, z = run_clarabel(curvature, cost, A, b, cones, _TOL)
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        return None
    return x[:Q].copy(), z[:K].copy(), float(z[K])


def _constraints(
    pieces: list[tuple[dict[str, Any], Array]], norm: int, groups: list[int], width: int
) -> tuple[Any, Array, list[Any]]:
    """(A, b, cones) of A x + slack = b: ``pieces``, by columns and bound, then the norm."""
    J, P, n_values = len(groups), sum(groups), pieces[0][0]["values"].shape[1]
    has_bounds = norm == LINF or (norm == L2 and J < P)
    columns = {"w": width, "size": 1, "values": n_values, "bounds": J if has_bounds else 0}

    def block(height: int, **filled: Any) -> Any:
        empty = {name: sparse.csr_array((height, n)) for name, n in columns.items()}
        return sparse.hstack([sparse.csr_array(each) for each in (empty | filled).values()])

    A = [block(bound.size, **filled) for filled, bound in pieces]
    b = [bound for _, bound in pieces]
    W, one = sparse.eye_array(P, width), np.ones((1, 1))
    if has_bounds:  # -bounds <= w <= bounds
        of_group = sparse.csr_array((np.ones(P), (np.arange(P), np.repeat(np.arange(J), groups))))
        A += [block(P, w=W, bounds=-of_group), block(P, w=-W, bounds=-of_group)]
        b.append(np.zeros(2 * P))
    if norm == LINF:  # their sum is at most size
        A.append(block(1, size=-one, bounds=np.ones((1, J))))
        b.append(np.zeros(1))
    elif norm == L1:  # -size <= w <= size
        A += [block(P, w=W, size=-np.ones((P, 1))), block(P, w=-W, size=-np.ones((P, 1)))]
        b.append(np.zeros(2 * P))
    cones = [clarabel.NonnegativeConeT(sum(map(len, b)))]
    if norm == L2:
        A += [block(1, size=-one)]
        A += [block(J, bounds=-sparse.eye_array(J)) if has_bounds else block(P, w=-W)]
        b.append(np.zeros(J + 1))
        cones.append(clarabel.SecondOrderConeT(J + 1))
    return sparse.csc_matrix(sparse.vstack(A)), np.concatenate(b), cones
