"""Whole runs of the baselines in one call each, on the same kernels as the federated methods.

Tables need tens of thousands of runs with small clients, where messages would cost ten times what
the steps do. All clients' rows stand below each other in ``X`` and ``y``, client g's from
``first[g]`` to ``first[g + 1]``; clients have equal weights. ``batches`` holds client after client,
each from ``drawn[g]`` on: the row numbers, within the client, of all its batches in order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdrsvm.federated._kernels.local_steps import Batches, local_epochs, log_mix, tilted_steps
from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.solvers._kernels.rows import Rows

Counts = npt.NDArray[np.int64]

_ALL_LOSSES, _POSITIVE_LOSSES = -1.0, 0.0
_LOG_OF_NOTHING = -1e100


@compiled_fast
def _client(X: Array, y: Array, first: Counts, g: int) -> tuple[Rows, Array, Array]:
    rows, labels = X[first[g] : first[g + 1]], y[first[g] : first[g + 1]]
    nothing, no_indices = np.empty(0), np.empty(0, dtype=np.int32)
    mass = np.full(labels.size, 1.0 / labels.size)
    return Rows(rows, nothing, no_indices, no_indices), labels, mass


@compiled_fast
def fedsgd_run(
    X: Array, y: Array, first: Counts, epsilons: Array, learning_rate: float, n_rounds: int
) -> Array:
    """The model after each round: [fedsgd]."""
    n_clients, width = epsilons.size, X.shape[1]
    w, models = np.zeros(width), np.empty((n_rounds, width))
    for t in range(1, n_rounds + 1):
        gradient = np.zeros(width)
        for g in range(n_clients):
            size = first[g + 1] - first[g]
            for n in range(first[g], first[g + 1]):
                score = 0.0
                for j in range(width):
                    score += X[n, j] * w[j]
                if y[n] * score < 1.0:
                    for j in range(width):
                        gradient[j] -= y[n] * X[n, j] / (size * n_clients)
        step = learning_rate / np.sqrt(float(t))
        for j in range(width):
            w[j] -= step * (gradient[j] + 2.0 * epsilons.mean() * w[j])
        models[t - 1] = w
    return models


@compiled_fast
def fedprox_run(
    X: Array,
    y: Array,
    first: Counts,
    epsilons: Array,
    learning_rate: float,
    prox_weight: float,
    n_rounds: int,
    n_epochs: int,
    batches: Batches,
    drawn: Counts,
    sizes: Counts,
) -> Array:
    """The model after each round: [fedprox], and [fedavg] at ``prox_weight`` 0."""
    n_clients, width = epsilons.size, X.shape[1]
    w, models = np.zeros(width), np.empty((n_rounds, width))
    for t in range(n_rounds):
        mean = np.zeros(width)
        for g in range(n_clients):
            rows, labels, mass = _client(X, y, first, g)
            length = (drawn[g + 1] - drawn[g]) // n_rounds
            start = drawn[g] + t * length
            order = batches[start : start + length].reshape((n_epochs, length // n_epochs))
            mean += local_epochs(
                rows, labels, mass, order, sizes[g], epsilons[g], learning_rate, prox_weight, w
            )
        w = mean / n_clients
        models[t] = w
    return models


@compiled_fast
def feddro_run(
    X: Array,
    y: Array,
    first: Counts,
    epsilons: Array,
    learning_rate: float,
    temperature: float,
    momentum: float,
    n_rounds: int,
    n_steps: int,
    batches: Batches,
    drawn: Counts,
    sizes: Counts,
) -> Array:
    """The model after each round: [feddro]."""
    n_clients, width = epsilons.size, X.shape[1]
    w, models = np.zeros(width), np.empty((n_rounds, width))
    log_moment, found = -np.inf, np.empty(n_clients)
    for t in range(n_rounds):
        mean = np.zeros(width)
        momentums = np.full(n_steps, momentum)
        if t == 0:
            momentums[0] = 1.0
        for g in range(n_clients):
            rows, labels, mass = _client(X, y, first, g)
            start = drawn[g] + t * n_steps * sizes[g]
            chosen = batches[start : start + n_steps * sizes[g]].reshape((n_steps, sizes[g]))
            local, found[g] = tilted_steps(
                rows,
                labels,
                mass,
                chosen,
                t * n_steps + 1,
                epsilons[g],
                learning_rate,
                temperature,
                momentums,
                _ALL_LOSSES,
                log_moment,
                w,
            )
            mean += local
        w = mean / n_clients
        log_moment = _log_mean(found)
        models[t] = w
    return models


@compiled_fast
def feddro_published_run(
    X: Array,
    y: Array,
    first: Counts,
    learning_rate: float,
    temperature: float,
    momentum: float,
    n_rounds: int,
    n_steps: int,
    batches: Batches,
    drawn: Counts,
    sizes: Counts,
) -> Array:
    """The model after each round: [feddro-published]."""
    n_clients, width = sizes.size, X.shape[1]
    w, models = np.zeros(width), np.empty((n_rounds, width))
    local, found = np.empty((n_clients, width)), np.empty(n_clients)
    log_moment, rate = _LOG_OF_NOTHING, learning_rate / temperature
    renewed, kept = np.ones(1), np.zeros(1)
    for t in range(n_rounds):
        local[:] = w
        for s in range(n_steps):
            for g in range(n_clients):
                rows, labels, mass = _client(X, y, first, g)
                start = drawn[g] + (t * n_steps + s) * sizes[g]
                batch = batches[start : start + sizes[g]].reshape((1, sizes[g]))
                found[g] = tilted_steps(
                    rows,
                    labels,
                    mass,
                    batch,
                    1,
                    0.0,
                    0.0,
                    temperature,
                    renewed,
                    _POSITIVE_LOSSES,
                    -np.inf,
                    local[g],
                )[1]
            newest = max(_log_mean(found), _LOG_OF_NOTHING)
            log_moment = max(log_mix(log_moment, newest, momentum), _LOG_OF_NOTHING)
            for g in range(n_clients):
                rows, labels, mass = _client(X, y, first, g)
                start = drawn[g] + (t * n_steps + s) * sizes[g]
                batch = batches[start : start + sizes[g]].reshape((1, sizes[g]))
                local[g] = tilted_steps(
                    rows,
                    labels,
                    mass,
                    batch,
                    t * n_steps + s + 1,
                    0.0,
                    rate,
                    temperature,
                    kept,
                    _POSITIVE_LOSSES,
                    log_moment,
                    local[g],
                )[0]
        for j in range(width):
            w[j] = local[:, j].mean()
        models[t] = w
    return models


@compiled_fast
def _log_mean(logs: Array) -> float:
    """Log of the mean of numbers given by their logarithms."""
    top = float(logs.max())
    if top == -np.inf:
        return top
    return float(top + np.log(np.exp(logs - top).mean()))
