"""Slow, plainly right answers: the local problem written out, and its objective by brute force."""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

DUAL_ORDER = {"linf": 1, "l2": 2, "l1": np.inf}


def conic_reference(
    X, y, *, centre, rho, tau, epsilon, kappa, norm, mass, fit_intercept, tol=1e-10
):
    """(w, intercept) of min over (w, b, lam, s[, t]) with s the losses and t >= |w|."""
    n, p = X.shape
    Z = y[:, None] * (np.c_[X, np.ones(n)] if fit_intercept else X)
    q = Z.shape[1]
    n_t = p if norm == "linf" else 0
    size = q + 1 + n + n_t
    linear, diagonal = np.zeros(size), np.zeros(size)
    linear[:q] = -rho * centre[:q]
    linear[q] = epsilon
    linear[q + 1 : q + 1 + n] = mass
    diagonal[:q] = rho
    diagonal[:p] += 2.0 * tau
    columns = {"w": q, "lam": 1, "s": n, "t": n_t}

    def block(height, **parts):
        empty = {name: sparse.csr_array((height, width)) for name, width in columns.items()}
        return sparse.hstack([sparse.csr_array(part) for part in (empty | parts).values()])

    eye_n, eye_p, W = sparse.eye_array(n), sparse.eye_array(p), sparse.eye_array(p, q)
    A = [block(n, s=-eye_n), block(n, w=-Z, s=-eye_n)]
    b = [np.zeros(n), -np.ones(n)]
    if np.isfinite(kappa):
        A.append(block(n, w=Z, lam=np.full((n, 1), -kappa), s=-eye_n))
        b.append(-np.ones(n))
    if norm == "linf":
        A += [block(p, w=W, t=-eye_p), block(p, w=-W, t=-eye_p)]
        A.append(block(1, lam=-np.ones((1, 1)), t=np.ones((1, p))))
        b.append(np.zeros(2 * p + 1))
    elif norm == "l1":
        A += [block(p, w=W, lam=-np.ones((p, 1))), block(p, w=-W, lam=-np.ones((p, 1)))]
        b.append(np.zeros(2 * p))
    cones = [clarabel.NonnegativeConeT(sum(map(len, b)))]
    if norm == "l2":
        A += [block(1, lam=-np.ones((1, 1))), block(p, w=-W)]
        b.append(np.zeros(p + 1))
        cones.append(clarabel.SecondOrderConeT(p + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    H = sparse.csc_matrix(sparse.diags_array(diagonal))
    A = sparse.csc_matrix(sparse.vstack(A))
    solver = clarabel.DefaultSolver(H, linear, A, np.concatenate(b), cones, settings)
    x = np.array(solver.solve().x)
    return x[:p], float(x[p]) if fit_intercept else 0.0


def objective(X, y, w, b, *, centre, rho, tau, epsilon, kappa, norm, mass, fit_intercept):
    """The primal value by brute force over the breakpoints of lam."""
    p = X.shape[1]
    m = y * (X @ w + b)
    low = np.linalg.norm(w, DUAL_ORDER[norm])
    if np.isinf(kappa) or epsilon == 0.0:
        value = epsilon * low + mass @ np.maximum(0.0, 1.0 - m)
    else:
        lams = np.append(np.maximum(low, np.minimum(2.0 * m, 1.0 + m) / kappa), low)
        losses = np.maximum(np.maximum(0.0, 1.0 - m), 1.0 + m - kappa * lams[:, None])
        value = np.min(lams * epsilon + losses @ mass)
    value += tau * w @ w + 0.5 * rho * np.sum((w - centre[:p]) ** 2)
    return value + (0.5 * rho * (b - centre[p]) ** 2 if fit_intercept and rho > 0 else 0.0)
