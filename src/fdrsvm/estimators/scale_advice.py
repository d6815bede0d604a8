"""Features far from 1 in size: said where training suffers from it, with the remedy.

Radius, label price, penalties and step sizes are all in the features' unit. The problem itself is
the same in every unit, if they are given in it; defaults are made for features of about 1.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array, Matrix
from fdrsvm.core.vectors import dot, times
from fdrsvm.data.training_data import TrainingData

_LARGE, _SMALL = 1e3, 1e-3


def scale_advice(data: TrainingData) -> str:
    """What to do about the size of the features; empty where there is nothing wrong with it."""
    largest = max(_largest(client.X) for client in data.clients)
    if largest == 0.0 or _SMALL <= largest <= _LARGE:
        return ""
    return (
        f"features are up to {largest:.1e} in size, and epsilon, kappa, rho and step sizes are in "
        "their unit: scale them to about 1, say with FederatedMinMaxScaler (fdrsvm fit "
        "--scaling minmax)"
    )


def _largest(X: Matrix) -> float:
    values: Array = X.data if sparse.issparse(X) else X
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def mean_hinge(data: TrainingData, models: Array, shares: Array) -> Array:
    """Of each model, with the intercept last if it has one: the clients' mean losses, weighted."""
    totals = np.zeros(len(models))
    for client, share in zip(data.clients, shares / shares.sum(), strict=True):
        masses = client.weights / client.weights.sum()
        n_features = client.X.shape[1]
        for k, signs in enumerate(data.signs(client.codes)):
            intercept = float(models[k, n_features:].sum())
            with np.errstate(over="ignore", invalid="ignore"):
                margins = signs * (times(client.X, models[k, :n_features]) + intercept)
                totals[k] += share * dot(masses, np.maximum(0.0, 1.0 - margins))
    return totals
