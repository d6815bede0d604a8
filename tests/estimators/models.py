"""Models for the tests of this folder, and when two of them are the same."""

import math

import numpy as np
from hypothesis import strategies as st

from fdrsvm.model.linear_model import LinearModel

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
    """Bound on the rounding of a score, in whatever order it is summed, and twice for two of them.

    A sum of k products is off by at most k u / (1 - k u) times the sum of their sizes.
    """
    sizes = np.abs(X) @ np.abs(model.coef).T + np.abs(model.intercept)
    bound = 2.0 * (X.shape[1] + 2) * np.finfo(float).eps * sizes
    return bound[:, 0] if len(model.classes) == 2 else bound
