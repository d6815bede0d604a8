"""What scores are sums of: a term for each sensor, and with pairs one for each pair.

    score = intercept + sum of the sensors' shares + sum of the pairs' shares

A share is weight times reading, or the height of a curve or surface. Waves have no shares; what a
sensor does when it moves alone can be said of them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import Norm, dual_norm
from fdrsvm.data.rows import Rows
from fdrsvm.errors import UnsupportedError
from fdrsvm.inspection.fitted import names_for
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.feature_maps import AdditiveFeatures, Features, FourierFeatures

_N_SPREAD = 500
_N_STOPS = 25
_MOST_ROWS = 200


def pairs_of(linear: LinearModel) -> tuple[tuple[int, int], ...]:
    """The pairs of sensors that have a surface, as columns."""
    features = linear.features
    return features.pairs if isinstance(features, AdditiveFeatures) else ()


def term_names(linear: LinearModel, X: Any = None) -> tuple[str, ...]:
    """What scores are sums of: the sensors, then the pairs."""
    names = names_for(linear, X)
    return (*names, *(f"{names[i]} and {names[j]}" for i, j in pairs_of(linear)))


def term_shares(linear: LinearModel, X: Array) -> Array:
    """What each sensor, and then each pair, adds to each score: by row, term and score."""
    features = linear.features
    if features is None:
        return np.asarray(X[:, :, None] * linear.coef.T)
    if not isinstance(features, AdditiveFeatures):
        raise UnsupportedError(
            "model: waves run across all sensors at once, and no part of a score belongs to one "
            "sensor; see what moves of sensors do with flipping_perturbation, or train with "
            "features='additive'"
        )
    term = np.repeat(np.arange(len(features.groups)), features.groups)
    places = (np.arange(term.size), term)
    values = features.apply(X)
    return np.stack(
        [values @ sparse.csr_array((row, places)) for row in linear.coef],
        axis=2,
    )


def surface_heights(linear: LinearModel, at: int, shares: Array) -> Array:
    """What a pair adds to each score: by shares of the first range, of the second, and by score."""
    made = linear.features
    assert isinstance(made, AdditiveFeatures)
    first, second = made.pairs[at]
    places = np.zeros((shares.size, shares.size, made.n_sensors))
    places[:, :, first], places[:, :, second] = shares[:, None], shares
    lattice = made.low + made.width * places.reshape(-1, made.n_sensors)
    heights = term_shares(linear, lattice)[:, made.n_sensors + at]
    return heights.reshape(shares.size, shares.size, -1)


def sensor_shares(linear: LinearModel, X: Array) -> Array:
    """What each sensor adds to each score; of a pair's surface both have half."""
    shares = term_shares(linear, X)
    effects = shares[:, : linear.n_features].copy()
    for at, (i, j) in enumerate(pairs_of(linear), start=linear.n_features):
        effects[:, [i, j]] += shares[:, [at]] / 2.0
    return effects


def steepest(linear: LinearModel, norm: Norm) -> list[float]:
    """How much each score changes at most if sensors move by 1, in the unit of epsilon: [map]."""
    made = linear.features
    if made is None:
        return [dual_norm(row, norm) for row in linear.coef]
    return [made.steepness(row, norm) for row in linear.coef]


def spread_rows(features: Features) -> Array:
    """In place of rows that nobody has: sensors anywhere in their ranges, each as likely."""
    return features.low + features.width * np.random.default_rng(0).random(
        (_N_SPREAD, features.n_sensors)
    )


def term_sizes(linear: LinearModel, rows: Rows | None) -> Array:
    """How much each term matters to each score, by score and term, for a model with a map.

    The standard deviation of its share over the rows; of waves how much the score changes while
    the sensor alone moves over its range, on average over the rows.
    """
    made = linear.features
    assert made is not None
    X = spread_rows(made) if rows is None else rows.X
    if isinstance(made, FourierFeatures):
        return changes_alone(linear, made, X)
    return np.asarray(term_shares(linear, X).std(axis=0).T)


def changes_alone(linear: LinearModel, features: Features, X: Array) -> Array:
    """Largest less smallest score while one sensor moves over its range; mean over rows."""
    few = X[:: -(-len(X) // _MOST_ROWS)]
    changes = np.empty((len(linear.coef), features.n_sensors))
    for p in range(features.n_sensors):
        moved = np.repeat(few, _N_STOPS, axis=0)
        stops = features.low[p] + features.width[p] * np.linspace(0.0, 1.0, _N_STOPS)
        moved[:, p] = np.tile(stops, len(few))
        scores = linear.decision_function(moved).reshape(len(few), _N_STOPS, -1)
        changes[:, p] = np.ptp(scores, axis=1).mean(axis=0)
    return changes
