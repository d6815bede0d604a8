"""Folds for cross-validation, drawn inside each client; the server only keeps every class in.

A client deals its rows, class after class in random order, to the folds in turn. So numbers of rows
differ by at most one between folds, in all and in each class, and a client with two rows or more
has training rows in every fold. One with fewer rows than folds has nothing held out in some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import Matrix
from fdrsvm.data.training_data import ClientRows, TrainingData, read_training_data
from fdrsvm.errors import InvalidInputError
from fdrsvm.estimators.fdrsvc import FDRSVC

Folds: TypeAlias = npt.NDArray[np.intp]

ALWAYS_TRAINS = -1  # in place of a fold, for a row that is never held out


@dataclass(frozen=True, eq=False)
class Split:
    """One fold: rows that train and rows that are held out, client by client.

    The weights of both are sample weights; those of classes come later.
    """

    classes: npt.NDArray[Any]
    training: tuple[ClientRows, ...]
    held_out: tuple[ClientRows, ...]

    def training_data(self, **reading: Any) -> TrainingData:
        """What FDRSVC would read from the training rows alone."""
        parts = self.training
        sizes = [part.codes.size for part in parts]
        labels = np.array([part.label for part in parts])
        return read_training_data(
            FDRSVC(),
            _stacked([part.X for part in parts]),
            self.classes[np.concatenate([part.codes for part in parts])],
            clients=np.repeat(labels, sizes),
            sample_weight=np.concatenate([part.weights for part in parts]),
            **reading,
        )


def split_rows(data: TrainingData, n_folds: int, seed: int) -> list[Split]:
    """All folds of all clients; neither the order of clients nor that of rows matters.

    ``data`` must have its equal rows merged: they share a fold then, and rows have an order of
    their own.
    """
    folds = keep_every_class(
        [client_folds(one.codes, n_folds, _generator(seed, one.label)) for one in data.clients],
        data,
    )
    if all((drawn == ALWAYS_TRAINS).all() for drawn in folds):
        raise InvalidInputError(
            "X",
            "some client must have two different rows, so that one can be held out",
            f"none of {len(folds)} has",
        )
    return [
        Split(
            data.classes,
            _selected(data, [drawn != fold for drawn in folds]),
            _selected(data, [drawn == fold for drawn in folds]),
        )
        for fold in range(n_folds)
    ]


def client_folds(codes: npt.NDArray[np.intp], n_folds: int, rng: np.random.Generator) -> Folds:
    """The client's part: a fold for each row. A client's only row always trains."""
    if codes.size == 1:
        return np.array([ALWAYS_TRAINS])
    shuffled = rng.permutation(codes.size)
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds = np.empty(codes.size, dtype=np.intp)
    # Else all clients with few rows would have them in the first folds.
    first = rng.integers(n_folds)
    folds[order] = (first + np.arange(codes.size)) % n_folds
    return folds


def keep_every_class(folds: Sequence[Folds], data: TrainingData) -> list[Folds]:
    """The server's part: a class that is in one fold only would be missing when that is held out.

    It then has at most one row a client, and the first client that has one always trains on it.
    """
    kept = [drawn.copy() for drawn in folds]
    for code in range(len(data.classes)):
        rows = [one.codes == code for one in data.clients]
        used = np.concatenate([drawn[own] for drawn, own in zip(kept, rows, strict=True)])
        if len(set(used.tolist())) == 1:
            first = next(g for g, own in enumerate(rows) if own.any())
            kept[first][rows[first]] = ALWAYS_TRAINS
    return kept


def _generator(seed: int, label: Any) -> np.random.Generator:
    """A client's own, whoever else takes part."""
    return np.random.default_rng([seed, *str(label).encode()])


def _selected(data: TrainingData, rows: Sequence[npt.NDArray[np.bool_]]) -> tuple[ClientRows, ...]:
    return tuple(
        ClientRows(
            one.label, one.X[own], one.codes[own], one.weights[own], float(one.weights[own].sum())
        )
        for one, own in zip(data.clients, rows, strict=True)
    )


def _stacked(parts: Sequence[Matrix]) -> Matrix:
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)
