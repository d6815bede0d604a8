"""What explanations and displays need of a fitted linear classifier, whoever trained it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import Array, Matrix, check_matrix, check_vector
from fdrsvm.errors import InvalidInputError, NumericalError

_MISSING = object()


@dataclass(frozen=True, eq=False)
class FittedLinear:
    """A linear classifier, checked.

    Attributes
    ----------
    coef : ndarray of shape (n_scores, n_features)
        One row for two classes, whose score is above 0 for ``classes[1]``; else a row a class.
    intercept : ndarray of shape (n_scores,)
        Added to the scores.
    classes : ndarray of shape (n_classes,)
        The labels.
    feature_names : tuple of str, or None
        Those of training, if columns had names.
    """

    coef: Array
    intercept: Array
    classes: npt.NDArray[Any]
    feature_names: tuple[str, ...] | None

    @property
    def is_binary(self) -> bool:
        """Whether one score decides between two classes."""
        return len(self.classes) == 2

    def names_for(self, X: Any) -> tuple[str, ...]:
        """Names of training, else those of X's columns, else x0, x1, ... as in scikit-learn."""
        names = self.feature_names or _string_columns(X)
        return names or tuple(f"x{p}" for p in range(self.coef.shape[1]))

    def features(self, X: Any) -> Matrix:
        """X as float64, dense or CSR, if its columns are those of training."""
        matrix = check_matrix(X)
        if matrix.shape[1] != self.coef.shape[1]:
            raise InvalidInputError(
                "X",
                f"must have the {self.coef.shape[1]} features of training",
                f"it has {matrix.shape[1]}",
            )
        for at, (name, wanted) in enumerate(
            zip(_string_columns(X) or (), self.feature_names or (), strict=False)
        ):
            if name != wanted:
                raise InvalidInputError(
                    "X",
                    "its columns must be those of training, in the same order",
                    f"column {at} is {name!r}, not {wanted!r}",
                )
        return matrix

    def dense_features(self, X: Any) -> Array:
        """The same, dense: where a zero may move as any other value can."""
        matrix = self.features(X)
        dense: Array = matrix.toarray() if sparse.issparse(matrix) else matrix
        return dense

    def signs(self, y: Any, n_samples: int) -> Array:
        """Labels of a model with two classes as -1 and +1."""
        if not self.is_binary:
            raise InvalidInputError("model", "must have two classes", f"it has {len(self.classes)}")
        labels = np.asarray(y)
        if labels.shape != (n_samples,):
            raise InvalidInputError(
                "y",
                f"must have shape ({n_samples},), one label for each of the samples",
                f"its shape is {labels.shape}",
            )
        is_second = labels == self.classes[1]
        unknown = ~(is_second | (labels == self.classes[0]))
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0])
            raise InvalidInputError(
                "y",
                f"labels must be among the model's classes {self.classes.tolist()}",
                f"row {row} is {labels[row]!r}",
            )
        return np.where(is_second, 1.0, -1.0)


def class_index(classes: npt.NDArray[Any], label: Any) -> int:
    """Position of ``label`` among the classes."""
    known: list[Any] = classes.tolist()
    if label not in known:
        raise InvalidInputError(
            "class_of_interest",
            f"must be one of the model's classes {known}",
            f"it is {label!r}",
        )
    return known.index(label)


def read_linear(model: Any) -> FittedLinear:
    """Weights, intercepts and classes of a fitted classifier, or an error that names what lacks."""
    coef, intercept, classes = (_fitted(model, name) for name in ("coef", "intercept", "classes"))
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
    if np.ndim(intercept) == 0:
        intercept = np.full(n_scores, intercept)
    names = getattr(model, "feature_names_in_", getattr(model, "feature_names", None))
    return FittedLinear(
        coef=weights.toarray() if sparse.issparse(weights) else weights.copy(),
        intercept=check_vector(intercept, "intercept_", n_scores, "scores").copy(),
        classes=labels,
        feature_names=None if names is None else tuple(str(name) for name in names),
    )


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


def check_scores(values: Array) -> Array:
    """Scores, one row a sample, if they fit into float64."""
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise NumericalError(f"X: the score of row {row} overflows float64")
    return values


def check_row(value: Any, n_rows: int, argument: str) -> int:
    """A row's number, from 0."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not 0 <= value < n_rows:
        raise InvalidInputError(
            argument, f"must be the number of a row, 0 to {n_rows - 1}", f"it is {value!r}"
        )
    return int(value)


def _fitted(model: Any, name: str) -> Any:
    """``coef_`` of an estimator, or ``coef`` of a model that came from a file."""
    for attribute in (f"{name}_", name):
        value = getattr(model, attribute, _MISSING)
        if value is not _MISSING:
            return value
    raise _not_linear(
        "coef_, intercept_ and classes_ (of a pipeline or a search, pass the classifier in it)",
        f"{type(model).__name__} has no {name}_",
    )


def _not_linear(needs: str, found: str) -> InvalidInputError:
    return InvalidInputError("model", f"must be a fitted linear classifier with {needs}", found)


def _string_columns(X: Any) -> tuple[str, ...] | None:
    """Names of a data frame's columns, if all are text."""
    columns = getattr(X, "columns", None)
    names = () if columns is None else tuple(columns)
    return names if names and all(isinstance(name, str) for name in names) else None
