"""Slow, plainly right answers: the whole federated problem written out as one program.

minimise over w, b, lam_g >= 0, s_gn >= 0    sum_g alpha_g (lam_g epsilon_g + sum_n p_gn s_gn)
no support   s_gn >= 1 - m_gn,  s_gn >= 1 + m_gn - kappa_g lam_g,  ||w||_* <= lam_g
box          s_gn >= 1 - m_gn + u.(high - x) + v.(x - low),   u, v >= 0, ||-y w - u + v||_* <= lam_g
             s_gn >= 1 + m_gn - kappa_g lam_g + the same with y turned round

It is the textbook dual (Mohajerin Esfahani and Kuhn, 2018), solved by HiGHS or Clarabel, and shares
no formula with the package.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

# Rows are held to this; the multipliers of all rows sum to a few units, so the value is good to
# some ten times as much.
_ROW_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Optimum:
    """The true optimum lies between ``low`` and ``high``; ``w`` has the intercept last."""

    low: float
    high: float
    w: np.ndarray


@dataclass
class _Rows:
    """Sparse rows a.z <= b, and second-order cones, gathered piece by piece."""

    size: int = 0
    blocks: list = field(default_factory=list)
    bounds: list = field(default_factory=list)
    cones: list = field(default_factory=list)

    def variables(self, count):
        start, self.size = self.size, self.size + count
        return np.arange(start, start + count)

    def at_most(self, bound, *parts):
        """sum of coefficient @ z[columns] <= bound, one part a pair (columns, coefficients)."""
        self.blocks.append(parts)
        self.bounds.append(np.atleast_1d(np.asarray(bound, dtype=float)))

    def matrix(self, parts, height):
        block = sparse.lil_array((height, self.size))
        for columns, coefficients in parts:
            dense = np.asarray(coefficients, dtype=float).reshape(height, len(columns))
            for k, column in enumerate(columns):
                for row in np.flatnonzero(dense[:, k]):
                    block[row, column] += dense[row, k]
        return block

    def dual_norm_at_most(self, parts, n_features, limit, norm, eye, groups=None):
        """||sum of coefficient @ z[columns]||_* <= limit, a pair (columns, coefficients) or None.

        ``limit`` is a column, or a number. Of a group only the largest entry counts.
        """
        if groups is not None:  # t_j >= every |entry| of group j, and t has the dual norm
            t = self.variables(len(groups))
            owners = np.repeat(np.eye(len(groups)), groups, axis=0)
            for sign in (1.0, -1.0):
                signed = [(columns, sign * np.asarray(a)) for columns, a in parts]
                self.at_most(np.zeros(n_features), *signed, (t, -owners))
            alone = np.eye(len(groups))
            self.dual_norm_at_most([(t, alone)], len(groups), limit, norm, alone)
            return
        number = isinstance(limit, float)
        bound = limit if number else 0.0
        column = [] if number else [([limit], -np.ones((n_features, 1)))]
        if norm == "l1":
            for sign in (1.0, -1.0):
                signed = [(columns, sign * np.asarray(a)) for columns, a in parts]
                self.at_most(np.full(n_features, bound), *signed, *column)
        elif norm == "linf":
            t = self.variables(n_features)
            for sign in (1.0, -1.0):
                signed = [(columns, sign * np.asarray(a)) for columns, a in parts]
                self.at_most(np.zeros(n_features), *signed, (t, -eye))
            total = [] if number else [([limit], [[-1.0]])]
            self.at_most([bound], (t, np.ones((1, n_features))), *total)
        else:
            self.cones.append((parts, limit, n_features))


def reference_optimum(clients, alphas, *, radius=np.inf) -> Optimum:
    """Optimum of sum_g alpha_g f_g over models with ||w||_* <= radius."""
    first = clients[0]
    n_features, norm = first.X.shape[1], first.norm
    eye = np.eye(n_features)
    rows = _Rows()
    w = rows.variables(n_features)
    b = rows.variables(1) if first.fit_intercept else np.empty(0, dtype=int)
    lower = {}
    costs: dict[int, float] = {}
    for client, alpha in zip(clients, alphas, strict=True):
        if alpha == 0.0:
            continue
        n_samples = len(client.y)
        (lam,), s = rows.variables(1), rows.variables(n_samples)
        costs[lam] = alpha * client.epsilon
        costs.update(zip(s, alpha * client.masses, strict=True))
        lower.update({lam: 0.0, **dict.fromkeys(s, 0.0)})
        if client.box is None:
            rows.dual_norm_at_most([(w, eye)], n_features, lam, norm, eye, first.groups)
        turns = (1.0, -1.0) if np.isfinite(client.kappa) else (1.0,)
        for n in range(n_samples):
            x, y = client.X[n], client.y[n]
            for turn in turns:
                label = turn * y
                parts = [(w, -label * x[None]), ([s[n]], [[-1.0]])]
                if len(b):
                    parts.append((b, [[-label]]))
                if turn < 0.0:
                    parts.append(([lam], [[-client.kappa]]))
                if client.box is not None:
                    low, high = client.box
                    up, down = rows.variables(n_features), rows.variables(n_features)
                    lower.update(dict.fromkeys([*up, *down], 0.0))
                    parts += [(up, (high - x)[None]), (down, (x - low)[None])]
                    held = [(w, -label * eye), (up, -eye), (down, eye)]
                    rows.dual_norm_at_most(held, n_features, lam, norm, eye)
                rows.at_most([-1.0], *parts)
    if radius < np.inf:
        rows.dual_norm_at_most([(w, eye)], n_features, float(radius), norm, eye, first.groups)
    cost = np.zeros(rows.size)
    cost[list(costs)] = list(costs.values())
    A = sparse.vstack(
        [
            rows.matrix(parts, len(bound))
            for parts, bound in zip(rows.blocks, rows.bounds, strict=True)
        ],
        format="csc",
    )
    bound = np.concatenate(rows.bounds)
    if norm == "l2":
        return _conic(rows, cost, A, bound, lower, w, b)
    return _linear(cost, A, bound, lower, w, b)


def _linear(cost, A, bound, lower, w, b) -> Optimum:
    limits = np.full((cost.size, 2), [-np.inf, np.inf])
    limits[list(lower), 0] = 0.0
    found = linprog(
        cost,
        A_ub=A,
        b_ub=bound,
        bounds=limits,
        method="highs",
        options={
            "primal_feasibility_tolerance": _ROW_TOLERANCE,
            "dual_feasibility_tolerance": _ROW_TOLERANCE,
        },
    )
    assert found.status == 0, found.message
    slack = 10.0 * _ROW_TOLERANCE * (1.0 + abs(found.fun))
    return Optimum(found.fun - slack, found.fun + slack, found.x[[*w, *b]])


def _conic(rows, cost, A, bound, lower, w, b) -> Optimum:
    signs = sparse.csc_array(-np.eye(rows.size)[list(lower)])
    blocks, bounds = [A, signs], [bound, np.zeros(len(lower))]
    kinds = [clarabel.NonnegativeConeT(bound.size + len(lower))]
    for parts, limit, n_features in rows.cones:
        top = sparse.lil_array((1, rows.size))
        if isinstance(limit, float):
            edge = np.append(limit, np.zeros(n_features))
        else:
            top[0, limit] = -1.0
            edge = np.zeros(n_features + 1)
        blocks += [top, -rows.matrix(parts, n_features)]
        bounds.append(edge)
        kinds.append(clarabel.SecondOrderConeT(n_features + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    found = clarabel.DefaultSolver(
        sparse.csc_matrix((rows.size, rows.size)),
        cost,
        sparse.csc_matrix(sparse.vstack(blocks, format="csc")),
        np.concatenate(bounds),
        kinds,
        settings,
    ).solve()
    primal, dual = found.obj_val, found.obj_val_dual
    apart = abs(primal - dual)
    assert apart <= 1e-7 * max(1.0, abs(primal)), found.status
    slack = apart + 1e-8 * (1.0 + abs(primal))  # of rows held to 1e-10, in the solver's own scale
    return Optimum(
        min(primal, dual) - slack, max(primal, dual) + slack, np.array(found.x)[[*w, *b]]
    )
