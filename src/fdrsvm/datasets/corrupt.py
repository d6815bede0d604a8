"""Damage to data as it happens in plants: wrong labels, noisy sensors, missing sensors.

Each function returns a damaged copy; ``clients`` confines what is drawn to one client at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import (
    Array,
    check_choice,
    check_labels,
    check_matrix,
    check_non_negative,
)
from fdrsvm.data.training_data import check_clients, rows_by_client
from fdrsvm.datasets._random import RandomState, as_generator
from fdrsvm.datasets.partition import check_count_within, check_vector
from fdrsvm.errors import InvalidInputError

__all__ = ["add_noise", "drop_sensors", "flip_labels"]


def flip_labels(
    y: Any,
    share: float,
    *,
    clients: Any = None,
    replace: bool = False,
    random_state: RandomState = None,
) -> Array:
    """Labels with a share of each client's turned into the other class.

    Parameters
    ----------
    y : array of -1 and +1
    share : float in [0, 1]
        ``round(share * n)`` rows are drawn among the n rows of each client.
    clients : array, optional
        A client for each row; None means one client.
    replace : bool, default False
        False flips exactly that many. True draws with replacement, as the paper's authors do, and
        flips each row hit once: a share of 1 - (1 - 1/n)^(share n), so 13.9 % in place of 15 %.
    random_state : int, SeedSequence, Generator or None

    Returns
    -------
    array
        A copy of y.

    Examples
    --------
    >>> import numpy as np
    >>> from fdrsvm.datasets import corrupt
    >>> y = np.ones(20)
    >>> int((corrupt.flip_labels(y, 0.15, random_state=0) != y).sum())
    3
    """
    labels = check_labels(y, check_vector(np.asarray(y), "y").size).copy()
    share = check_non_negative(share, "share")
    if share > 1.0:
        raise InvalidInputError("share", "must be at most 1", f"it is {share:g}")
    rng = as_generator(random_state)
    for rows in _rows_by_client(clients, labels.size):
        count = round(share * rows.size)
        if replace:
            hit = rows[rng.integers(rows.size, size=count)]
        else:
            hit = rng.permutation(rows)[:count]
        labels[hit] = -labels[hit]  # by assignment, so that a row hit twice is flipped once
    return labels


def add_noise(
    X: Any, scale: Any, *, relative_to: str = "range", random_state: RandomState = None
) -> Array:
    """Features with Gaussian noise added to every reading.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    scale : float or array of shape (n_features,)
        Standard deviation of the noise, in units of ``relative_to``.
    relative_to : {"range", "std", "unit"}
        The feature's range or standard deviation in X, or the unit it is measured in.
    random_state : int, SeedSequence, Generator or None
    """
    data = _check_dense(X)
    check_choice(relative_to, "relative_to", ("range", "std", "unit"))
    n_features = data.shape[1]
    deviation = np.full(n_features, scale) if np.ndim(scale) == 0 else np.asarray(scale)
    if deviation.shape != (n_features,):
        raise InvalidInputError(
            "scale", f"must be a number or have shape ({n_features},)", f"shape {deviation.shape}"
        )
    for p, value in enumerate(deviation):
        check_non_negative(value, "scale" if np.ndim(scale) == 0 else f"scale[{p}]")
    if relative_to == "range":
        deviation = deviation * np.ptp(data, axis=0)
    elif relative_to == "std":
        deviation = deviation * np.std(data, axis=0)
    return data + deviation * as_generator(random_state).standard_normal(data.shape)


def drop_sensors(
    X: Any,
    n_sensors: int,
    *,
    clients: Any = None,
    fill: float = np.nan,
    random_state: RandomState = None,
) -> Array:
    """Features with some sensors missing: each client lacks ``n_sensors`` columns, drawn for it.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    n_sensors : int
        From 0 to the number of features.
    clients : array, optional
        A client for each row; None means one client.
    fill : float, default NaN
        What stands in the missing columns; estimators want a number.
    random_state : int, SeedSequence, Generator or None
    """
    data = _check_dense(X).copy()
    n_features = data.shape[1]
    n_sensors = check_count_within(n_sensors, "n_sensors", 0, n_features)
    rng = as_generator(random_state)
    for rows in _rows_by_client(clients, len(data)):
        columns = rng.permutation(n_features)[:n_sensors]
        data[np.ix_(rows, columns)] = fill
    return data


def _check_dense(X: Any) -> Array:
    if sparse.issparse(X):
        raise InvalidInputError("X", "must be dense: noise fills every cell", "it is sparse")
    return np.asarray(check_matrix(X))


def _rows_by_client(clients: Any, n_rows: int) -> list[npt.NDArray[np.int64]]:
    """Row numbers of each client, clients in sorted order."""
    every = np.arange(n_rows)
    return [every[rows] for rows in rows_by_client(check_clients(clients, n_rows))[1]]
