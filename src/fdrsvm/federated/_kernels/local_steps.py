"""A client's steps on mini-batches: [fedavg], [fedprox], [feddro].

A batch stands for all N samples: a sample of mass p_n counts N p_n / (batch size) in it, which is
1 / (batch size) if masses are equal. ``w`` holds the features' weights and, if it is one longer,
the intercept, which is not penalised.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.solvers._kernels.rows import Rows

Batches = npt.NDArray[np.int64]

_MAX_EXPONENT = 600.0


# One call a batch, not a sample: handing over ``rows`` costs as much as a short row itself.


@compiled_fast
def batch_slacks(rows: Rows, y: Array, batch: Batches, w: Array, out: Array) -> None:
    """Sets out = 1 - y_n (w.x_n + b) over the batch: the hinge loss where it is positive."""
    n_features = rows.dense.shape[1]
    intercept = w[n_features] if w.size > n_features else 0.0
    is_dense = rows.dense.shape[0] > 0
    for i in range(batch.size):
        n, score = batch[i], intercept
        if is_dense:
            for j in range(n_features):
                score += rows.dense[n, j] * w[j]
        else:
            for k in range(rows.indptr[n], rows.indptr[n + 1]):
                score += rows.data[k] * w[rows.indices[k]]
        out[i] = 1.0 - y[n] * score


@compiled_fast
def add_samples(rows: Rows, batch: Batches, scales: Array, out: Array) -> None:
    """Sets out += sum over the batch of scale (x_n, 1)."""
    n_features = rows.dense.shape[1]
    is_dense = rows.dense.shape[0] > 0
    for i in range(batch.size):
        n, scale = batch[i], scales[i]
        if scale == 0.0:
            continue
        if is_dense:
            for j in range(n_features):
                out[j] += scale * rows.dense[n, j]
        else:
            for k in range(rows.indptr[n], rows.indptr[n + 1]):
                out[rows.indices[k]] += scale * rows.data[k]
        if out.size > n_features:
            out[n_features] += scale


@compiled_fast
def set_pull(
    w: Array, centre: Array, n_features: int, epsilon: float, prox_weight: float, out: Array
) -> None:
    """Sets out to the gradient of epsilon ||w||^2 + (prox_weight / 2) ||w - centre||^2."""
    for j in range(w.size):
        out[j] = prox_weight * (w[j] - centre[j])
        if j < n_features:
            out[j] += 2.0 * epsilon * w[j]


@compiled_fast
def local_epochs(
    rows: Rows,
    y: Array,
    mass: Array,
    order: Batches,
    batch_size: int,
    epsilon: float,
    learning_rate: float,
    prox_weight: float,
    centre: Array,
) -> Array:
    """The model after one pass over each row of ``order``, batch by batch, from ``centre``."""
    w, gradient, scales = centre.copy(), np.empty_like(centre), np.empty(batch_size)
    stands_for = y.size / batch_size
    for s in range(order.shape[0]):
        step = learning_rate / np.sqrt(s + 1.0)
        for first in range(0, order.shape[1], batch_size):
            batch = order[s, first : first + batch_size]
            batch_slacks(rows, y, batch, w, scales)
            for i in range(batch_size):
                n = batch[i]
                scales[i] = -stands_for * mass[n] * y[n] if scales[i] > 0.0 else 0.0
            set_pull(w, centre, rows.dense.shape[1], epsilon, prox_weight, gradient)
            add_samples(rows, batch, scales, gradient)
            for j in range(w.size):
                w[j] -= step * gradient[j]
    return w


@compiled_fast
def log_moment_of(losses: Array, weights: Array, temperature: float, least: float) -> float:
    """Log sum of weights exp(losses / temperature), losses above ``least``; may be -inf."""
    top = -np.inf
    for i in range(losses.size):
        if weights[i] > 0.0 and losses[i] > least:
            top = max(top, losses[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(losses.size):
        if weights[i] > 0.0 and losses[i] > least:
            total += weights[i] * np.exp((losses[i] - top) / temperature)
    return float(top / temperature + np.log(total))


@compiled_fast
def log_mix(log_a: float, log_b: float, share: float) -> float:
    """The logarithm of (1 - share) a + share b, from those of a and b."""
    log_a += np.log1p(-share)
    log_b += np.log(share)
    top = max(log_a, log_b)
    if top == -np.inf:
        return top
    return float(top + np.log(np.exp(log_a - top) + np.exp(log_b - top)))


@compiled_fast
def tilted_steps(
    rows: Rows,
    y: Array,
    mass: Array,
    batches: Batches,
    first_step: int,
    epsilon: float,
    learning_rate: float,
    temperature: float,
    momentums: Array,
    least: float,
    log_moment: float,
    start: Array,
) -> tuple[Array, float]:
    """Model and log z after one step a row of ``batches``, numbered from ``first_step``.

    Only losses above ``least`` count in z. The factors exp(loss / temperature) / z sum to
    1 / momentum at most, since z holds that share of the newest moment: no loss is too large. Only
    with a z from elsewhere, at momentum 0, may they need their limit.
    """
    w, gradient = start.copy(), np.empty_like(start)
    size = batches.shape[1]
    losses, weights = np.empty(size), np.empty(size)
    for s in range(batches.shape[0]):
        batch = batches[s]
        batch_slacks(rows, y, batch, w, losses)
        for i in range(size):
            losses[i] = max(losses[i], 0.0)
            weights[i] = mass[batch[i]] * (y.size / size)
        newest = log_moment_of(losses, weights, temperature, least)
        log_moment = log_mix(log_moment, newest, momentums[s])
        for i in range(size):
            if losses[i] > 0.0 and weights[i] > 0.0:
                exponent = min(losses[i] / temperature - log_moment, _MAX_EXPONENT)
                weights[i] *= -y[batch[i]] * np.exp(exponent)
            else:
                weights[i] = 0.0
        set_pull(w, w, rows.dense.shape[1], epsilon, 0.0, gradient)
        add_samples(rows, batch, weights, gradient)
        step = learning_rate / np.sqrt(float(first_step + s))
        for j in range(w.size):
            w[j] -= step * gradient[j]
    return w, log_moment
