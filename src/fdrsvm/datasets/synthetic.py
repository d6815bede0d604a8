"""Data of any size, for measuring how run time grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_classification

from fdrsvm.core.arrays import Array, check_positive
from fdrsvm.datasets import partition
from fdrsvm.datasets._random import RandomState, spawn
from fdrsvm.errors import InvalidInputError

__all__ = ["ScalabilityData", "make_scalability"]

SIDE = 2.4  # of the hypercube


@dataclass(frozen=True)
class ScalabilityData:
    """Training rows with their clients, and test rows; normalised features as in ``PumpData``."""

    X: Array
    y: Array
    clients: npt.NDArray[np.int64]
    X_normalised: Array
    X_test: Array
    y_test: Array
    X_test_normalised: Array


def make_scalability(
    n_samples: int = 1000,
    n_clients: int = 10,
    n_features: int = 4,
    *,
    n_test: int = 2000,
    side: float = SIDE,
    random_state: RandomState = None,
) -> ScalabilityData:
    """The paper's scalability data: two Gaussian classes around vertices of a hypercube.

    scikit-learn's ``make_classification`` with one cluster a class, all features informative, no
    label flipped and ``class_sep`` half the side. Classes and clients are equal in size; every
    client has the same mix.

    Parameters
    ----------
    n_samples, n_clients, n_features : int
        Training rows, clients they are dealt to, features.
    n_test : int, default 2000
        Test rows from the same classes.
    side : float, default 2.4
        Side of the hypercube, in standard deviations of the classes.
    random_state : int, SeedSequence, Generator or None

    Examples
    --------
    >>> from fdrsvm.datasets import make_scalability
    >>> data = make_scalability(1000, 10, 4, random_state=0)
    >>> data.X.shape, data.X_test.shape, int(data.clients.max())
    ((1000, 4), (2000, 4), 9)
    """
    for value, name, least in (
        (n_samples, "n_samples", 2),
        (n_clients, "n_clients", 1),
        (n_features, "n_features", 1),
        (n_test, "n_test", 0),
    ):
        _check_at_least(value, name, least)
    side = check_positive(side, "side")
    draws, deals = spawn(random_state, 2)
    X, labels = make_classification(
        n_samples + n_test,
        n_features=n_features,
        n_informative=n_features,
        n_redundant=0,
        n_clusters_per_class=1,
        flip_y=0.0,
        class_sep=0.5 * side,
        random_state=int(draws.integers(2**32)),
    )
    y = np.where(labels == 1, 1.0, -1.0)
    train, test = _split(y, n_samples)
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    normalised = (X - low) / np.where(high > low, high - low, 1.0)
    return ScalabilityData(
        X=X[train],
        y=y[train],
        clients=partition.stratified(y[train], n_clients, random_state=deals),
        X_normalised=normalised[train],
        X_test=X[test],
        y_test=y[test],
        X_test_normalised=normalised[test],
    )


def _split(y: Array, n_train: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The first rows of each class, half and half, for training. Rows are in random order."""
    negative, positive = np.flatnonzero(y < 0.0), np.flatnonzero(y > 0.0)
    half = min(n_train // 2, positive.size)
    train = np.sort(np.concatenate([positive[:half], negative[: n_train - half]]))
    return train, np.setdiff1d(np.arange(y.size), train)


def _check_at_least(value: Any, argument: str, least: int) -> None:
    is_count = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_count or value < least:
        raise InvalidInputError(
            argument, f"must be an integer, at least {least}", f"it is {value!r}"
        )
