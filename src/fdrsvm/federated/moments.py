"""Second moments of the clients' rows: the metric in which the bundle projects, [moments].

Client   sum_n p_n z_n z_n' over its masses p and rows z = (x, 1), or x without an intercept: the
         upper half, row by row; zeros if it keeps them to itself, as where they show a single row
Server   their weighted sum B, in the open or under masks, and the metric B + ridge I, where the
         ridge is a hundredth of B's mean diagonal
Believed if B could be moments of some rows within the limits: positive semidefinite up to rounding,
         its diagonal at most R_j^2, and 1 for an intercept

The metric decides where the next points are, and nothing else: no bound is made of it. Its largest
eigenvalue is at most 1 + 100 width times its smallest, whatever was sent, so whoever lies makes a
run slower, by steps that are shorter in some directions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import plain
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Values
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.screen import ROUNDING, Fault, Screen
from fdrsvm.native import products
from fdrsvm.solvers.cut_model import Metric

LARGEST_WIDTH = 1000  # of a model: beyond, moments are 4 MB a client, and the server's work is more
_RIDGE = 1e-2  # of the mean diagonal: where rows say little of a direction, it counts that much
_NOT_NEGATIVE = 1e-8  # of the trace: sums of a million rows are exact to a hundredth of that
_BLOCK = 4096  # rows of a sparse matrix that are made dense at a time
_ALONE = 0.9  # of what moments say of some direction, from one row: so nearly that row is shown
_NO_DIRECTION = 1e-12  # of the largest eigenvalue: what rounding leaves where no row goes


def n_moments(width: int) -> int:
    """How many numbers a client sends."""
    return width * (width + 1) // 2


def packed_moments(problem: ClientProblem) -> Array:
    """What a client sends."""
    width, total = problem.width, np.zeros((problem.width, problem.width))
    if problem.gives_moments is False:
        return np.zeros(n_moments(width))
    for rows, mass in _blocks(problem):
        total += products.gram(rows, mass)
    if problem.gives_moments is None and largest_part(problem, total) > _ALONE:
        total[:] = 0.0
    return total[np.triu_indices(width)]


def _blocks(problem: ClientProblem) -> Iterator[tuple[Array, Array]]:
    """Rows z and their masses, some thousand at a time where they have to be made dense."""
    X, mass = problem.exact.X, problem.exact.mass
    step = _BLOCK if sparse.issparse(X) else len(mass)
    for first in range(0, len(mass), step):
        part = slice(first, first + step)
        rows = X[part].toarray() if sparse.issparse(X) else X[part]
        if problem.profile.fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        yield plain(rows), plain(mass[part] / mass.sum())


def largest_part(problem: ClientProblem, moments: Array) -> float:
    """The largest p z'M^-1 z of a row: 1 if M shows the row by itself, [lone-rows]."""
    if not np.isfinite(moments).all():
        return np.inf  # float64 has no room to tell
    sizes = np.sqrt(np.diag(moments))
    scale = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)
    lengths, directions = np.linalg.eigh(moments * scale[:, None] * scale)
    known = lengths > _NO_DIRECTION * lengths[-1]
    turned = scale[:, None] * directions[:, known] / np.sqrt(lengths[known])
    parts = (mass * ((rows @ turned) ** 2).sum(axis=1) for rows, mass in _blocks(problem))
    return max(float(part.max()) for part in parts)


def unpacked(moments: Array) -> Array:
    """The whole matrix."""
    width = int(np.sqrt(2 * moments.size))
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = moments
    return matrix + np.triu(matrix, 1).T


def sum_of_moments(federation: Federation, replies: Replies) -> Array:
    """The weighted sum over those who answered; its size does not matter to the metric."""
    total = np.zeros(n_moments(federation.width))
    for g, values in replies.values.items():
        total += federation.alphas[g] * values["moments"]
    return total


def metric_of(moments: Array) -> Metric | None:
    """The metric, or None if nobody gave any moments, or float64 has no room for them."""
    if not (moments.size and 0.0 < np.abs(moments).sum() < np.inf):
        return None
    matrix = unpacked(moments)
    ridge = _RIDGE * float(np.trace(matrix)) / len(matrix)
    # In a unit of its own, so that a metric of tiny or huge rows is one of usual numbers. Half of
    # the ridge makes up for what rounding may have taken from the least eigenvalue.
    scaled = matrix / ridge + np.eye(len(matrix))
    return Metric(scaled, 0.5) if ridge > 0.0 and np.isfinite(scaled).all() else None


def judge_moments(federation: Federation, screen: Screen, values: Values) -> Fault | None:
    """Why no rows within the limits have these moments, if none do."""
    matrix = unpacked(values["moments"])
    diagonal, trace = np.diag(matrix), float(np.trace(matrix))
    most = np.full(federation.width, np.inf)
    most[federation.n_features :] = 1.0
    if screen.limits is not None:
        most[: federation.n_features] = screen.limits.features**2
    beyond = diagonal > most * (1.0 + ROUNDING)
    if beyond.any():
        j = int(np.argmax(beyond))
        text = "a second moment exceeds what the limits on features allow"
        return Fault("moments", text, float(diagonal[j]), float(most[j]))
    try:
        np.linalg.cholesky(
            matrix + (_NOT_NEGATIVE * trace + np.finfo(float).tiny) * np.eye(len(matrix))
        )
    except np.linalg.LinAlgError:
        return Fault("moments", "second moments that no rows have: not positive semidefinite")
    return None
