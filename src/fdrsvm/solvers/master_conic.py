"""The master problem for Clarabel: the second try, when the interior point method falls short.

Variables as in the kernels, (w, s, theta, and for the transport norm linf a). What comes back is
only a guess at the answer and its multipliers, graded like any other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import clarabel
import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import L1, L2, LINF
from fdrsvm.native import master as kernels

_TOL = 1e-12


class ConicAnswer(NamedTuple):
    """A guess at the scaled problem's answer."""

    w: Array
    cut_multipliers: Array
    level_price: float


def conic_master(master: kernels.Problem) -> ConicAnswer | None:
    """Clarabel's answer, or None if not finite."""
    Q, K, G = master.centre.size, master.constants.size, master.alphas.size
    A, b, cones = _constraints(master)
    cost, diagonal = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    if master.levelled:
        cost[:Q], diagonal[:Q] = -master.curvature * master.centre, master.curvature
    else:
        cost[Q + 1 : Q + 1 + G] = master.alphas
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOL
    H = sparse.csc_matrix(sparse.diags_array(diagonal))
    answer = clarabel.DefaultSolver(H, cost, A, b, cones, settings).solve()
    x, z = np.array(answer.x), np.array(answer.z)
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        return None
    return ConicAnswer(x[:Q].copy(), z[:K].copy(), float(z[K]))


def _constraints(master: kernels.Problem) -> tuple[Any, Array, list[Any]]:
    """(A, b, cones) of A x + slack = b: cuts, the level (idle unless asked for), the norm."""
    K, G, P = master.constants.size, master.alphas.size, master.n_normed
    n = master.centre.size + 1
    n_bounds = P if master.norm == LINF else 0
    widths = {"x": n, "theta": G, "a": n_bounds}

    def block(height: int, **parts: Any) -> Any:
        empty = {name: sparse.csr_array((height, width)) for name, width in widths.items()}
        return sparse.hstack([sparse.csr_array(part) for part in (empty | parts).values()])

    owners = np.repeat(np.arange(G), np.diff(master.starts))
    picks = sparse.csr_array((-np.ones(K), (np.arange(K), owners)), shape=(K, G))
    weights = master.alphas[None, :] if master.levelled else np.zeros((1, G))
    A = [block(K, x=master.cuts, theta=picks), block(1, theta=weights)]
    b = [-master.constants, np.array([master.level if master.levelled else 1.0])]
    W, s = sparse.eye_array(P, n), np.zeros((1, n))
    s[0, n - 1] = -1.0
    if master.norm == LINF:
        one_each = sparse.eye_array(P)
        A += [block(P, x=W, a=-one_each), block(P, x=-W, a=-one_each)]
        A.append(block(1, x=s, a=np.ones((1, P))))
        b.append(np.zeros(2 * P + 1))
    elif master.norm == L1:
        below = sparse.csr_array(np.repeat(s, P, axis=0))
        A += [block(P, x=W + below), block(P, x=below - W)]
        b.append(np.zeros(2 * P))
    cones = [clarabel.NonnegativeConeT(sum(map(len, b)))]
    if master.norm == L2:
        A += [block(1, x=s), block(P, x=-W)]
        b.append(np.zeros(P + 1))
        cones.append(clarabel.SecondOrderConeT(P + 1))
    return sparse.csc_matrix(sparse.vstack(A)), np.concatenate(b), cones
