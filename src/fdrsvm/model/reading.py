"""Any fitted linear classifier as a LinearModel."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdrsvm.core.arrays import check_matrix
from fdrsvm.errors import InvalidInputError
from fdrsvm.model.linear_model import LinearModel

_MISSING = object()


def read_linear(model: Any) -> LinearModel:
    """Weights, intercepts and classes of a fitted classifier, or an error that says what it lacks.

    An estimator has ``coef_``, a model that came from a file ``coef``.
    """
    if isinstance(model, LinearModel):
        return model
    values: list[Any] = []
    for name in ("coef", "intercept", "classes"):
        value = getattr(model, f"{name}_", getattr(model, name, _MISSING))
        if value is _MISSING:
            needs = "coef_, intercept_ and classes_ (of a pipeline or a search, pass the classifier"
            raise _not_linear(f"{needs} in it)", f"{type(model).__name__} has no {name}_")
        values.append(value)
    coef, intercept, classes = values
    labels = np.asarray(classes)
    if labels.ndim != 1 or labels.size < 2:
        raise _not_linear("two or more classes in one list", f"classes_ is {classes!r}")
    weights = check_matrix(coef if np.ndim(coef) != 1 else np.asarray(coef)[None], "coef_")
    n_scores = 1 if labels.size == 2 else labels.size
    # SVC(kernel="linear") has a row for each pair of classes, of three classes three as well.
    is_pairwise = n_scores > 1 and hasattr(model, "decision_function_shape")
    if weights.shape[0] != n_scores or is_pairwise:
        raise _not_linear(
            "one row of coef_ for two classes, else one for each class (not for each pair)",
            f"{type(model).__name__} has {weights.shape[0]} for {labels.size} classes",
        )
    names = getattr(model, "feature_names_in_", getattr(model, "feature_names", None))
    texts = None if names is None else tuple(str(name) for name in names)
    return LinearModel.checked(
        weights,
        np.full(n_scores, intercept) if np.ndim(intercept) == 0 else intercept,
        labels.tolist(),
        estimator=type(model).__name__,
        threshold=getattr(model, "threshold_", 0.0) if n_scores == 1 else 0.0,
        features=getattr(model, "feature_map_", None),
        # Names of which two are equal tell no columns apart; numbers do.
        feature_names=None if texts is None or len({*texts}) < len(texts) else texts,
    )


def read_whole(model: Any) -> LinearModel:
    """The same with certificate, parameters and record, if it is this package's estimator."""
    own = getattr(model, "_linear_model", None)
    return read_linear(model if own is None else own())


def _not_linear(needs: str, fault: str) -> InvalidInputError:
    return InvalidInputError("model", f"must be a fitted linear classifier with {needs}", fault)
