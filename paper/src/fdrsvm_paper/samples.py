"""One repetition's data: a training set dealt to clients, its folds, and a test set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.datasets import PumpData, partition
from fdrsvm_paper.clients import Clients, stack

N_CLIENTS = 4
N_FOLDS = 5
_SPARED = 2  # the authors' sizes are floor(.7 n) - 2 and floor(.3 n) - 2


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to train on and rows to predict, raw and normalised."""

    raw: Clients
    normalised: Clients
    X_out: Array
    X_out_normalised: Array
    y_out: Array

    def clients(self, normalised: bool) -> Clients:
        """The rows to train on."""
        return self.normalised if normalised else self.raw

    def rows_out(self, normalised: bool) -> Array:
        """The rows to predict."""
        return self.X_out_normalised if normalised else self.X_out


@dataclass(frozen=True, eq=False)
class Sample:
    """Training rows with their clients, and test rows.

    Normalised features are scaled to [0, 1] by the pooled training rows; test rows may leave it.
    """

    X: Array
    X_normalised: Array
    y: Array
    clients: npt.NDArray[np.int64]
    X_test: Array
    X_test_normalised: Array
    y_test: Array
    seed: tuple[int, ...]

    @property
    def counts(self) -> Array:
        """N_g of each client."""
        return np.bincount(self.clients).astype(np.float64)

    def whole(self) -> Fold:
        """All training rows, and the test rows to predict."""
        every = np.ones(self.y.size, dtype=bool)
        return self._fold(every, self.X_test, self.X_test_normalised, self.y_test, 0)

    def folds(self) -> list[Fold]:
        """Five folds, drawn inside each client with classes in proportion; validation is pooled."""
        fold_of = np.empty(self.y.size, dtype=np.int64)
        children = np.random.SeedSequence(self.seed).spawn(int(self.clients.max()) + 1)
        for g, child in enumerate(children):
            members = np.flatnonzero(self.clients == g)
            fold_of[members] = partition.stratified(
                self.y[members], min(N_FOLDS, members.size), random_state=child
            )
        return [
            self._fold(~out, self.X[out], self.X_normalised[out], self.y[out], number)
            for number, out in enumerate((fold_of == k for k in range(N_FOLDS)), start=1)
        ]

    def _fold(
        self,
        training: npt.NDArray[np.bool_],
        X_out: Array,
        X_out_normalised: Array,
        y_out: Array,
        number: int,
    ) -> Fold:
        members = [training & (self.clients == g) for g in range(int(self.clients.max()) + 1)]
        raw, normalised = (
            stack([(X[own], self.y[own]) for own in members], self.counts, (*self.seed, number))
            for X in (self.X, self.X_normalised)
        )
        return Fold(raw, normalised, X_out, X_out_normalised, y_out)


def split_uci(data: Any, seed: tuple[int, ...]) -> Sample:
    """A UCI set split 70/30 and dealt to four clients, classes in proportion throughout."""
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y, dtype=np.float64)
    draw, deal, folds = np.random.SeedSequence(seed).spawn(3)
    rng = np.random.default_rng(draw)
    train, test = [], []
    n_train, n_test = 7 * y.size // 10 - _SPARED, 3 * y.size // 10 - _SPARED
    share = float(np.mean(y > 0.0))
    positive = round(n_train * share), round(n_test * share)
    negative = n_train - positive[0], n_test - positive[1]
    for label, (n_first, n_second) in ((1.0, positive), (-1.0, negative)):
        members = rng.permutation(np.flatnonzero(y == label))
        train.append(members[:n_first])
        test.append(members[n_first : n_first + n_second])
    rows, rows_out = np.concatenate(train), np.concatenate(test)
    low = X[rows].min(axis=0)
    span = X[rows].max(axis=0) - low
    span[span == 0.0] = 1.0
    return Sample(
        X=X[rows],
        X_normalised=(X[rows] - low) / span,
        y=y[rows],
        clients=partition.stratified(y[rows], N_CLIENTS, random_state=deal),
        X_test=X[rows_out],
        X_test_normalised=(X[rows_out] - low) / span,
        y_test=y[rows_out],
        seed=(*seed, int(folds.generate_state(1)[0])),
    )


def sample_pump(data: PumpData, seed: tuple[int, ...]) -> Sample:
    """The pump's rows in the same form."""
    train = data.X, data.X_normalised, data.y, data.clients
    return Sample(*train, data.X_test, data.X_test_normalised, data.y_test, seed)
