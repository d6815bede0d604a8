"""Slow, plainly right answers: the worst case written out as a linear or conic program.

The program is the textbook one (Mohajerin Esfahani and Kuhn, 2018, section 4): every sample splits
its mass over the pieces of the loss and the two labels; a share of mass b moved by d in total
sits at x + d/b. It shares no formula with the package.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog


@dataclass(frozen=True)
class Program:
    """maximise c.z subject to equality @ z = equal, upper @ z <= bound, ||shift_k z|| <= t_k z."""

    c: np.ndarray
    equality: sparse.csc_array
    equal: np.ndarray
    upper: sparse.csc_array
    bound: np.ndarray
    cones: list[np.ndarray]


def worst_case_program(
    w,
    X,
    y,
    *,
    epsilon,
    kappa,
    norm,
    box=None,
    zero_piece=True,
    mass=None,
    intercept=0.0,
    groups=None,
) -> Program:
    """Variables of sample n: [rest,] then b, d, t for the label kept and, at a price, flipped.

    With groups (not for l1) also e >= |d|, after t; ``sums`` adds up that of each group.
    """
    n_samples, n_features = X.shape
    mass = np.full(n_samples, 1.0 / n_samples) if mass is None else np.asarray(mass)
    turns = (1.0, -1.0) if np.isfinite(kappa) else (1.0,)
    n_bounds = n_features if norm == "l1" else 1
    sums = np.eye(n_features)
    if groups is not None:
        sums = np.repeat(np.eye(len(groups)), groups, axis=0).T
    group = 1 + n_features + n_bounds + (0 if groups is None else n_features)
    block = int(zero_piece) + len(turns) * group
    size = n_samples * block
    c, budget = np.zeros(size), np.zeros(size)
    equality, upper, cones = [], [], []
    for n in range(n_samples):
        start = n * block
        split = np.zeros(size)
        if zero_piece:
            split[start] = 1.0
        for k, turn in enumerate(turns):
            b = start + int(zero_piece) + k * group
            d = slice(b + 1, b + 1 + n_features)
            t = slice(b + 1 + n_features, b + 1 + n_features + n_bounds)
            e = slice(t.stop, b + group)
            split[b] = 1.0
            label = turn * y[n]
            c[b] = 1.0 - label * (w @ X[n] + intercept)
            c[d] = -label * w
            budget[t] = 1.0
            budget[b] = 0.0 if turn > 0 else kappa
            rows = np.zeros((1, size))
            rows[0, b] = -1.0  # b >= 0
            upper.append(rows)
            for sign in (1.0, -1.0):
                if box is not None:
                    rows = np.zeros((n_features, size))
                    rows[:, d] = sign * np.eye(n_features)
                    edge = box[1] - X[n] if sign > 0 else X[n] - box[0]
                    rows[:, b] = -edge
                    upper.append(rows)
                if groups is not None:
                    rows = np.zeros((n_features, size))
                    rows[:, d], rows[:, e] = sign * np.eye(n_features), -np.eye(n_features)
                    upper.append(rows)
                elif norm != "l2":
                    rows = np.zeros((n_features, size))
                    rows[:, d] = sign * np.eye(n_features)
                    rows[:, t] = -np.eye(n_features) if norm == "l1" else -1.0
                    upper.append(rows)
            if groups is not None and norm == "linf":
                rows = np.zeros((len(sums), size))
                rows[:, e], rows[:, t] = sums, -1.0
                upper.append(rows)
            if norm == "l2":
                rows = np.zeros((1 + len(sums), size))
                rows[0, t] = 1.0
                rows[1:, d if groups is None else e] = sums
                cones.append(rows)
        if zero_piece:
            rows = np.zeros((1, size))
            rows[0, start] = -1.0
            upper.append(rows)
        equality.append(split)
    upper.append(budget[None, :])
    stacked = np.vstack(upper)
    bound = np.zeros(len(stacked))
    bound[-1] = epsilon
    return Program(
        c, sparse.csc_array(np.array(equality)), mass, sparse.csc_array(stacked), bound, cones
    )


def solve_with_highs(program: Program) -> float:
    result = linprog(
        -program.c,
        A_ub=program.upper,
        b_ub=program.bound,
        A_eq=program.equality,
        b_eq=program.equal,
        bounds=(None, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0, result.message
    return -result.fun


def solve_with_clarabel(program: Program) -> float:
    """The better of primal and dual would do; their difference is asserted to be small."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    blocks = [program.equality, program.upper, *[-sparse.csc_array(k) for k in program.cones]]
    rhs = [program.equal, program.bound, *[np.zeros(len(k)) for k in program.cones]]
    cones = [
        clarabel.ZeroConeT(len(program.equal)),
        clarabel.NonnegativeConeT(len(program.bound)),
        *[clarabel.SecondOrderConeT(len(k)) for k in program.cones],
    ]
    size = len(program.c)
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((size, size)),
        -program.c,
        sparse.csc_matrix(sparse.vstack(blocks, format="csc")),
        np.concatenate(rhs),
        cones,
        settings,
    )
    solution = solver.solve()
    primal, dual = -solution.obj_val, -solution.obj_val_dual
    assert abs(primal - dual) <= 1e-9 * max(1.0, abs(primal)), solution.status
    return 0.5 * (primal + dual)


def reference_risk(w, X, y, *, norm, **settings) -> float:
    """Worst-case risk by HiGHS (l1, linf) or Clarabel (l2)."""
    program = worst_case_program(w, X, y, norm=norm, **settings)
    return solve_with_clarabel(program) if norm == "l2" else solve_with_highs(program)
