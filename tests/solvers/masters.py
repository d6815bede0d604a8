"""Models to solve, and slow, plainly right answers to them."""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from fdrsvm.solvers.cut_model import CutModel

DUAL_ORDER = {"linf": 1, "l2": 2, "l1": np.inf}


def hinge_model(
    seed,
    norm,
    *,
    n_clients=3,
    n_cuts=12,
    n_features=5,
    fit_intercept=False,
    epsilon=0.02,
    scale=1.0,
    groups=None,
):
    """Cuts of the worst-case hinge risk of random clients, at random points."""
    rng = np.random.default_rng(seed)
    truth, parts = rng.normal(size=n_features), []
    for g in range(n_clients):
        X = rng.normal(size=(30, n_features)) + 0.5 * rng.normal(size=n_features)
        y = np.where(X @ truth + 0.3 * rng.normal(size=30) > 0.0, 1.0, -1.0)
        for _ in range(n_cuts):
            w, b = truth * rng.uniform(0, 3) + rng.normal(size=n_features), rng.normal()
            active = y * (X @ w + b * fit_intercept) < 1.0
            pull = -(active * y)
            slope = np.append(pull @ X, pull.sum()) / 30 if fit_intercept else pull @ X / 30
            parts.append((active.mean(), slope, epsilon * rng.choice([0.0, 0.5, 1.0]), g))
    constants, slopes, weights, owners = map(np.array, zip(*parts, strict=True))
    slopes[:, :n_features] *= scale
    alphas = rng.random(n_clients) + 0.1
    return CutModel(
        constants=constants,
        slopes=slopes,
        norm_weights=weights * scale,
        owners=owners,
        alphas=alphas / alphas.sum(),
        floors=np.full(n_clients, epsilon * scale),
        n_normed=n_features,
        norm=norm,
        groups=groups,
    )


def dual_size(model, w):
    """||w||_*: the dual order of the largest entries of all groups."""
    sizes = np.abs(w[: model.n_normed])
    if model.groups is not None:
        stops = np.cumsum(model.groups)
        sizes = [sizes[stop - n : stop].max() for n, stop in zip(model.groups, stops, strict=True)]
    return np.linalg.norm(sizes, DUAL_ORDER[model.norm])


def model_value(model, w):
    """M(w), cut by cut."""
    size = dual_size(model, w)
    total = 0.0
    for g in range(model.n_clients):
        sides = [
            model.constants[k] + model.slopes[k] @ w + model.norm_weights[k] * size
            for k in np.flatnonzero(model.owners == g)
        ]
        total += model.alphas[g] * max([*sides, model.floors[g] * size])
    return total


def groups_of(model):
    """Which group each feature belongs to."""
    sizes = (1,) * model.n_normed if model.groups is None else model.groups
    return np.repeat(np.arange(len(sizes)), sizes)


def linear_rows(model):
    """(A, b) of A (w, s, theta, a) <= b: every cut, every floor, |w_p| <= a, and a linear norm."""
    Q, P, G = model.width, model.n_normed, model.n_clients
    size = Q + 1 + G + P
    rows, right = [], []

    def add(entries, bound):
        row = np.zeros(size)
        for start, values in entries.items():
            row[start : start + np.size(values)] = values
        rows.append(row)
        right.append(bound)

    for k, g in enumerate(model.owners):
        add({0: model.slopes[k], Q: model.norm_weights[k], Q + 1 + g: -1.0}, -model.constants[k])
    for g in range(G):
        add({Q: model.floors[g], Q + 1 + g: -1.0}, 0.0)
    for p, j in enumerate(groups_of(model)):
        bound = Q if model.norm == "l1" else Q + 1 + G + j
        add({p: 1.0, bound: -1.0}, 0.0)
        add({p: -1.0, bound: -1.0}, 0.0)
    if model.norm == "linf":
        add({Q: -1.0, Q + 1 + G: np.arange(P) < 1 + max(groups_of(model))}, 0.0)
    return np.array(rows), np.array(right)


def least_value(model, radius=np.inf):
    """min M(w) over ||w||_* <= radius: HiGHS, or Clarabel for l2."""
    A, b = linear_rows(model)
    Q, G = model.width, model.n_clients
    cost = np.zeros(A.shape[1])
    cost[Q + 1 : Q + 1 + G] = model.alphas
    if np.isfinite(radius):
        A, b = np.vstack([A, np.eye(1, A.shape[1], Q)]), np.append(b, radius)
    if model.norm == "l2":
        return cost @ conic(np.zeros((len(cost), len(cost))), cost, A, b, model)
    bounds = [(None, None)] * A.shape[1]
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = linprog(cost, A, b, bounds=bounds, method="highs", options=options)
    assert answer.status == 0
    return answer.fun


def nearest_point(model, centre, level, matrix=None):
    """The w nearest to ``centre`` with M(w) <= level, in the metric of a matrix, by Clarabel."""
    A, b = linear_rows(model)
    Q, G = model.width, model.n_clients
    row = np.zeros(A.shape[1])
    row[Q + 1 : Q + 1 + G] = model.alphas
    cost, curvature = np.zeros(A.shape[1]), np.zeros((A.shape[1], A.shape[1]))
    curvature[:Q, :Q] = np.eye(Q) if matrix is None else matrix
    cost[:Q] = -curvature[:Q, :Q] @ centre
    return conic(curvature, cost, np.vstack([A, row]), np.append(b, level), model)[:Q]


def conic(curvature, cost, A, b, model):
    cones = [clarabel.NonnegativeConeT(len(b))]
    if model.norm == "l2":
        J, Q = 1 + max(groups_of(model)), model.width
        first = Q + 1 + model.n_clients
        lift = np.zeros((J + 1, A.shape[1]))
        lift[0, Q], lift[1:, first : first + J] = -1.0, -np.eye(J)
        A, b = np.vstack([A, lift]), np.append(b, np.zeros(J + 1))
        cones.append(clarabel.SecondOrderConeT(J + 1))
    used = np.flatnonzero(np.abs(A).sum(axis=0) + np.abs(cost) > 0)  # l1 has no a
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    H = sparse.csc_matrix(np.triu(curvature[np.ix_(used, used)]))
    answer = clarabel.DefaultSolver(
        H, cost[used], sparse.csc_matrix(A[:, used]), b, cones, settings
    ).solve()
    x = np.zeros(A.shape[1])
    x[used] = answer.x
    return x
