"""Data of any size, for measuring how run time grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_classification

from fdrsvm.core.arrays import Array, check_count, check_positive
from fdrsvm.data.scaling import FederatedMinMaxScaler
from fdrsvm.datasets import partition
from fdrsvm.datasets._random import RandomState, spawn

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

    scikit-learn's ``make_classification`` with one cluster per class, all features informative, no
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
    check_count(n_samples, "n_samples", 2)
    check_count(n_clients, "n_clients")
    check_count(n_features, "n_features")
    check_count(n_test, "n_test", 0)
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
    # Rows are in random order: the first of each class, half and half, are for training.
    negative, positive = np.flatnonzero(y < 0.0), np.flatnonzero(y > 0.0)
    half = min(n_samples // 2, positive.size)
    train = np.sort(np.concatenate([positive[:half], negative[: n_samples - half]]))
    test = np.setdiff1d(np.arange(y.size), train)
    normalised = FederatedMinMaxScaler().fit(X[train]).transform(X)
    return ScalabilityData(
        X=X[train],
        y=y[train],
        clients=partition.stratified(y[train], n_clients, random_state=deals),
        X_normalised=normalised[train],
        X_test=X[test],
        y_test=y[test],
        X_test_normalised=normalised[test],
    )
