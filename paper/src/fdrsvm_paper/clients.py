"""The clients of one run in an experiment: their rows, their radii, and the baselines' batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.federated.methods.batches import Batches, batch_size, epoch_order, step_batches
from fdrsvm.native import steps

Counts: TypeAlias = npt.NDArray[np.int64]
Draws: TypeAlias = steps.Draws  # all batches of all rounds

N_ROUNDS = 220  # the largest T of the paper
N_LOCAL = 5  # epochs of FedAvg, steps of FedDRO, in a round
BATCH_FRACTION = 0.2


@dataclass(frozen=True, eq=False)
class Clients:
    """Training rows, client below client.

    Attributes
    ----------
    X, y : ndarray
        All rows.
    first : ndarray of shape (n_clients + 1,)
        Where each client's rows begin, and where the last one's end.
    counts : ndarray of shape (n_clients,)
        N_g in the radius 1/(beta N_g). In cross-validation that of all rows, held out or not, as in
        the authors' code.
    seed : tuple of int
        Of the batches. They do not depend on the method's parameters, so all share them.
    """

    X: Array
    y: Array
    first: Counts
    counts: Array
    seed: tuple[int, ...]

    @property
    def n_clients(self) -> int:
        """G."""
        return self.first.size - 1

    def parts(self) -> list[tuple[Array, Array]]:
        """X and y of each client."""
        ends = zip(self.first[:-1], self.first[1:], strict=True)
        return [(self.X[a:b], self.y[a:b]) for a, b in ends]

    @cached_property
    def compiled(self) -> steps.Clients:
        """As the compiled runs read them."""
        return steps.Clients(self.X, self.y, self.first)

    def radii(self, beta: float) -> Array:
        """epsilon_g = 1/(beta N_g)."""
        return 1.0 / (beta * self.counts)

    @cached_property
    def epochs(self) -> Draws:
        """FedAvg's and FedProx's: every epoch passes over the client's rows in a new order."""
        return self._draw(epoch_order, 0)

    @cached_property
    def steps(self) -> Draws:
        """FedDRO's: every step has a new batch."""
        return self._draw(step_batches, 1)

    def _draw(self, draw: Callable[..., Batches], purpose: int) -> Draws:
        sequence = np.random.SeedSequence((*self.seed, purpose))
        sizes = np.diff(self.first).tolist()
        return self._joined(
            [
                draw(np.random.default_rng(child), N_ROUNDS * N_LOCAL, n, BATCH_FRACTION)
                for child, n in zip(sequence.spawn(self.n_clients), sizes, strict=True)
            ]
        )

    def _joined(self, draws: Sequence[Batches]) -> Draws:
        sizes = [batch_size(int(n), BATCH_FRACTION) for n in np.diff(self.first)]
        ends = np.cumsum([0, *(part.size for part in draws)])
        return Draws(
            batches=np.concatenate([part.ravel() for part in draws]),
            drawn=ends.astype(np.int64),
            sizes=np.array(sizes, dtype=np.int64),
            n_rounds=N_ROUNDS,
            n_local=N_LOCAL,
        )


def stack(parts: Sequence[tuple[Array, Array]], counts: Array, seed: tuple[int, ...]) -> Clients:
    """Clients from the rows of each."""
    first = np.cumsum([0, *(len(y) for _, y in parts)]).astype(np.int64)
    X = np.ascontiguousarray(np.concatenate([X for X, _ in parts]))
    y = np.concatenate([y for _, y in parts])
    return Clients(X, y, first, counts, seed)
