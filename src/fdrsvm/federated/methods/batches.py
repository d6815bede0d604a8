"""Mini-batches that depend on the seed, the round and the client's id, and on nothing else.

Neither the order in which clients answer nor a resumed run changes them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import check_positive
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.native import steps

Batches = npt.NDArray[np.int64]

_ROUNDING = 1e-9  # 0.29 * 100 is 28.999999999999996


def client_generator(random_state: int, t: int, client_id: str) -> np.random.Generator:
    """The generator of one client in one round."""
    sequence = np.random.SeedSequence(random_state, spawn_key=(t, *client_id.encode()))
    return np.random.Generator(np.random.PCG64(sequence))


def batch_size(n_samples: int, fraction: float) -> int:
    """That fraction of the samples, rounded down; at least one."""
    return max(1, math.floor(fraction * n_samples + _ROUNDING))


def epoch_order(
    rng: np.random.Generator, n_epochs: int, n_samples: int, fraction: float
) -> Batches:
    """One row per epoch: batches one after the other, without replacement.

    There are floor(1 / fraction) batches; the few samples left over wait for the next epoch.
    """
    size = batch_size(n_samples, fraction)
    n_batches = min(math.floor(1.0 / fraction + _ROUNDING), n_samples // size)
    return np.ascontiguousarray(_shuffles(rng, n_epochs, n_samples)[:, : n_batches * size])


def step_batches(
    rng: np.random.Generator, n_steps: int, n_samples: int, fraction: float
) -> Batches:
    """One row per step: a batch without replacement, each time drawn from all samples."""
    size = batch_size(n_samples, fraction)
    return np.ascontiguousarray(_shuffles(rng, n_steps, n_samples)[:, :size])


def _shuffles(rng: np.random.Generator, n_rows: int, n_samples: int) -> Batches:
    rows = np.empty((n_rows, n_samples), dtype=np.int64)
    rows[:] = np.arange(n_samples)
    return rng.permuted(rows, axis=1, out=rows)


def samples_of(problem: ClientProblem) -> steps.Samples:
    """The client's rows, dense or CSR, as the steps read them."""
    data = problem.exact
    if not sparse.issparse(data.X):
        return steps.Samples.dense(data.X, data.y, data.mass)
    indices, indptr = (
        part.astype(np.int32, copy=False) for part in (data.X.indices, data.X.indptr)
    )
    return steps.Samples.sparse((data.X.data, indices, indptr), data.X.shape[1], data.y, data.mass)


def check_fraction(value: Any, argument: str) -> None:
    """A number above 0 and at most 1."""
    if check_positive(value, argument) > 1.0:
        raise InvalidInputError(argument, "must be at most 1", f"it is {value!r}")
