"""Means over clients, one entry of a vector at a time: the weighted one, and one that trims.

[trimmed]  In each entry the floor(share G) smallest and as many largest values are left out, G the
number of clients with weight; the rest are averaged, their weights scaled to sum to 1. So up to
floor(share G) clients cannot lead an entry beyond what the others sent. It costs an optimum of its
own: where honest clients differ, the trimmed mean is not their mean, and a method that follows it
does not end at the minimum of F. The certificate is made of risks and cuts, and stays true.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array, check_non_negative
from fdrsvm.core.vectors import weighted_sum
from fdrsvm.errors import InvalidInputError

_ROUNDING = 1e-9  # 0.29 * 100 is 28.999999999999996


def check_trim(share: Any) -> float:
    """A share that leaves somebody: from 0 to below a half."""
    if not check_non_negative(share, "trim") < 0.5:
        raise InvalidInputError("trim", "must be below 0.5", f"it is {share!r}")
    return float(share)


def trimmed_mean(values: Array, weights: Array, share: float) -> Array:
    """Mean of the rows of ``values``, trimmed at either end: [trimmed]; at 0 the plain mean.

    Parameters
    ----------
    values : ndarray of shape (n_clients, width)
    weights : ndarray of shape (n_clients,)
        Not negative, with sum 1; rows without weight do not count.
    share : float
        Of the clients, left out at either end.
    """
    if share == 0.0:
        return weighted_sum(weights, values)
    counted = weights > 0.0
    values, weights = values[counted], weights[counted]
    n_out = math.floor(share * weights.size + _ROUNDING)
    order = np.argsort(values, axis=0, kind="stable")[n_out : weights.size - n_out]
    kept = np.take_along_axis(values, order, axis=0)
    shares = weights[order]
    # Scaled first: a mean of large numbers must not overflow where they do not.
    return np.asarray((shares / shares.sum(axis=0) * kept).sum(axis=0))
