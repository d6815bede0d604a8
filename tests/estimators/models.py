"""Models for the tests of this folder, and when two of them are the same."""

import math

import numpy as np
from hypothesis import strategies as st

from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.feature_maps import AdditiveFeatures, AdditiveMap, FourierFeatures, FourierMap

LABELS = {
    "str": ["healthy", "worn seal", "Ventil undicht", "日本"],
    "int": [-1, 1, 2, 2**62],
    "float": [-0.5, 1.0, 1e300, 5e-324],
    "bool": [False, True],
}

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
numbers = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), texts | st.just("inf")
)
keys = texts | st.sampled_from(["$float", "$$float", "$"])
plain_values = st.recursive(
    numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
finite = st.floats(-1e306, 1e306)
label_lists = st.one_of(
    st.lists(texts, min_size=2, max_size=4, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=4, unique=True),
    st.lists(finite, min_size=2, max_size=4, unique=True),
    st.permutations([False, True]),
)


@st.composite
def models(draw):
    classes = draw(label_lists)
    n_scores = 1 if len(classes) == 2 else len(classes)
    n_features = draw(st.integers(1, 4))
    row = st.lists(finite, min_size=n_features, max_size=n_features)
    names = st.lists(texts, min_size=n_features, max_size=n_features, unique=True)
    return LinearModel.checked(
        draw(st.lists(row, min_size=n_scores, max_size=n_scores)),
        draw(st.lists(finite, min_size=n_scores, max_size=n_scores)),
        classes,
        estimator=draw(texts),
        feature_names=draw(st.none() | names),
        params=draw(st.dictionaries(keys, plain_values, max_size=3)),
        certificate=draw(st.dictionaries(keys, plain_values, max_size=3)),
        record=draw(st.dictionaries(keys, plain_values, max_size=3)),
    )


def make_model(rng, classes=(-1, 1), n_features=3, **fields):
    """A model with random weights."""
    n_scores = 1 if len(classes) == 2 else len(classes)
    return LinearModel.checked(
        rng.normal(size=(n_scores, n_features)),
        rng.normal(size=n_scores),
        classes,
        **{"estimator": "FDRSVC", **fields},
    )


def make_mapped(rng, features, classes=(-1, 1), **fields):
    """A model of such features with random weights, of which some are 0."""
    n_scores = 1 if len(classes) == 2 else len(classes)
    shape = (n_scores, features.n_outputs)
    weights = rng.normal(size=shape) * (rng.random(shape) < 0.8)
    fields = {"estimator": "FDRSVC", **fields, "features": features}
    return LinearModel.checked(weights, rng.normal(size=n_scores), classes, **fields)


def random_features(rng, kind, n_sensors):
    """A map of "additive", "pairs" or "fourier"; sensors may be constant, or far from 0."""
    low = rng.normal(size=n_sensors) * 10.0 ** rng.integers(-2, 7, n_sensors)
    width = 10.0 ** rng.uniform(-2.0, 3.0, n_sensors) * (rng.random(n_sensors) < 0.9)
    limits = {"limits": (low, low + width)}
    if kind == "fourier":
        return FourierMap(n_components=2 * int(rng.integers(1, 12)), **limits).over(n_sensors)
    n_knots = int(rng.choice([1, 2, 6, 7, 30]))
    if kind == "additive" or n_sensors == 1:
        return AdditiveMap(n_knots=n_knots, **limits).over(n_sensors)
    pairs = [(i, j) for i in range(n_sensors) for j in range(i) if rng.random() < 0.7]
    pair_knots = int(rng.integers(1, 5))
    made = AdditiveMap(n_knots=n_knots, pairs=pairs or "all", pair_knots=pair_knots, **limits)
    return made.over(n_sensors)


def rows_around(rng, features, n_rows=8):
    """Between the limits, on the knots, a little outside, and up to 1E9 ranges away."""
    shape = (n_rows, features.n_sensors)
    shares = rng.uniform(-0.3, 1.3, shape)
    shares[0] = rng.integers(-1, 8, features.n_sensors) / 6.0
    shares[1] = rng.integers(0, 5, features.n_sensors) / 4.0
    shares[-1] *= 10.0 ** rng.uniform(1.0, 9.0, features.n_sensors)
    return features.low + features.width * shares


def same_plain(left, right):
    """Equal in value and in type, all the way down; NaN is itself and 0.0 is not -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_plain(left[k], right[k]) for k in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same_plain, left, right))
    if isinstance(left, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or (left == right and math.copysign(1, left) == math.copysign(1, right))
    return left == right


def same_model(left, right):
    fields = ("classes", "feature_names", "estimator", "params", "certificate", "record")
    return (
        left.coef.shape == right.coef.shape
        and left.coef.tobytes() == right.coef.tobytes()
        and left.intercept.tobytes() == right.intercept.tobytes()
        and all(same_plain(getattr(left, name), getattr(right, name)) for name in fields)
    )


def score_tolerance(model, X):
    """Bound on the rounding of a score, in whatever order it is summed, [alarm]; twice for two.

    A sum of k products is off by at most k u / (1 - k u) times the sum of their sizes. A curve adds
    what lies below its piece as one number, of as many roundings as it has knots, and may take the
    full height of a piece, 1/K, for a difference of knots that is off by u: K u of it. A phase is a
    sum of products itself, and a wave moves by no more than its phase.
    """
    eps, phi, weights = np.finfo(float).eps, np.abs(model.of_sensors(X)), np.abs(model.coef).T
    bound = (len(weights) + 2) * eps * (phi @ weights + np.abs(model.intercept))
    features = model.features
    if isinstance(features, AdditiveFeatures):
        bound += 2.0 * (len(weights) + 2) * eps * (phi @ weights)
    elif isinstance(features, FourierFeatures):
        phases = np.abs((X - features.low) / features.width) @ np.abs(features.frequencies).T
        moves = eps * ((X.shape[1] + 2) * phases + 4.0) / np.sqrt(len(features.frequencies))
        bound += np.hstack([moves, moves]) @ weights
    else:
        bound *= 2.0
    return bound[:, 0] if len(model.classes) == 2 else bound
