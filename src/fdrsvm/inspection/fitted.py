"""Checks of what is asked about a fitted classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array, check_matrix
from fdrsvm.errors import InvalidInputError
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.reading import read_linear

_MISSING = object()


def names_for(linear: LinearModel, X: Any = None) -> tuple[str, ...]:
    """Names of training, else those of X's columns, else x0, x1, ... as in scikit-learn."""
    columns = tuple(getattr(X, "columns", ()))
    if not all(isinstance(name, str) for name in columns):
        columns = ()
    return linear.feature_names or columns or tuple(f"x{p}" for p in range(linear.n_features))


def read_with_rows(model: Any, X: Any) -> tuple[LinearModel, Array, Array]:
    """A classifier, X as a dense matrix (a zero may move as any other value), and its scores."""
    linear = read_linear(model)
    scores = linear.decision_function(X)  # checks the columns
    matrix = check_matrix(X)
    return linear, matrix.toarray() if sparse.issparse(matrix) else matrix, scores


def check_signs(linear: LinearModel, y: Any, n_samples: int) -> Array:
    """Labels of a model with two classes as -1 and +1."""
    if len(linear.classes) > 2:
        raise InvalidInputError("model", "must have two classes", f"it has {len(linear.classes)}")
    labels = np.asarray(y)
    if labels.shape != (n_samples,):
        raise InvalidInputError(
            "y",
            f"must have shape ({n_samples},), one label for each of the samples",
            f"its shape is {labels.shape}",
        )
    is_first, is_second = (labels == label for label in np.array(linear.classes))
    unknown = ~(is_first | is_second)
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise InvalidInputError(
            "y",
            f"labels must be among the model's classes {list(linear.classes)}",
            f"row {row} is {labels[row]!r}",
        )
    return np.where(is_second, 1.0, -1.0)


def class_index(classes: Sequence[Any], label: Any) -> int:
    """Position of ``label`` among the classes."""
    known = list(classes)
    if label not in known:
        raise InvalidInputError(
            "class_of_interest", f"must be one of the model's classes {known}", f"it is {label!r}"
        )
    return known.index(label)


def fitted_attribute(model: Any, name: str) -> Any:
    """Attribute ``name`` of a model trained by this package."""
    value = getattr(model, name, _MISSING)
    if value is _MISSING:
        raise InvalidInputError(
            "model",
            f"must be fitted, by an estimator that sets {name}",
            f"{type(model).__name__} has no {name}",
        )
    return value


def parameters(model: Any) -> dict[str, Any]:
    """What the model was made with, if it says so."""
    return dict(model.get_params(deep=False)) if hasattr(model, "get_params") else {}


def check_row(value: Any, n_rows: int, argument: str) -> int:
    """A row's number, from 0."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not 0 <= value < n_rows:
        raise InvalidInputError(
            argument, f"must be the number of a row, 0 to {n_rows - 1}", f"it is {value!r}"
        )
    return int(value)
