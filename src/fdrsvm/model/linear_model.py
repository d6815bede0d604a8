"""What training leaves behind: weights, classes, names, and the certificate that goes with them.

Every estimator makes one, and every file and export is made from one. It needs no scikit-learn.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import Array, Matrix, check_finite, check_matrix, check_vector
from fdrsvm.core.plain_json import check_text, plain
from fdrsvm.errors import InvalidInputError, NumericalError
from fdrsvm.risk.feature_maps import Features

Label: TypeAlias = str | int | float | bool

# What ``fit`` keeps in a model's record about its decisions.
POSITIVE = "positive"  # of two classes: the one that scores of one class are of
TUNING = "tuning"  # how cross-validation chose parameters and threshold
VERDICT = "verdict"  # what is wrong with the model, if anything is, and what to type about it
ALARM = "alarm"  # what is promised of alarms at the model's threshold
PERSONAL = "personal"  # how a plant made the model its own
PROBABILITIES = "probabilities"  # sigmoids that make them of scores


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear classifier; ``checked`` makes one from input that nobody has checked yet.

    Attributes
    ----------
    coef : array of shape (n_scores, n_features), or (n_scores, n_outputs) of the features
        One row for two classes, whose score is above the threshold for ``classes[1]``; else a row
        for each class, and the largest score wins.
    intercept : array of shape (n_scores,)
        Added to the scores.
    classes : tuple
        The labels, all of one type: str, int, float or bool.
    feature_names : tuple of str, or None
        One name for each column of X.
    estimator : str
        Name of the class that trained the model.
    params : dict
        Its parameters: plain values, in which numbers may be infinite.
    certificate : dict
        What is proved about the weights (objective, lower bound, gap, ...): plain values.
    record : dict
        How it was trained, as far as that was kept (scaling, rounds, rows), and what else it was
        given (probabilities): plain values. Nothing here changes scores or labels.
    threshold : float
        Where two classes part. The certificate is about the score; where to cut it is a decision
        of its own. 0 for more than two classes.
    features : Features or None
        What the model is linear in, made of the sensors, which are the columns of X then; None if
        these are the sensors themselves.
    """

    coef: Array
    intercept: Array
    classes: tuple[Label, ...]
    feature_names: tuple[str, ...] | None
    estimator: str
    params: dict[str, Any]
    certificate: dict[str, Any]
    record: dict[str, Any] = field(default_factory=dict)
    threshold: float = 0.0
    features: Features | None = None

    @classmethod
    def checked(
        cls,
        coef: Any,
        intercept: Any,
        classes: Iterable[Any],
        *,
        estimator: str,
        feature_names: Iterable[str] | None = None,
        params: Mapping[str, Any] | None = None,
        certificate: Mapping[str, Any] | None = None,
        record: Mapping[str, Any] | None = None,
        threshold: float = 0.0,
        features: Features | None = None,
    ) -> LinearModel:
        """A model with arrays of its own, or an InvalidInputError that names the fault."""
        labels = tuple(_check_label(label) for label in _listed(classes, "classes"))
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise InvalidInputError(
                "classes", "must be two or more, all different", f"got {labels}"
            )
        if len({type(label) for label in labels}) > 1:
            raise InvalidInputError("classes", "must be of one type", f"got {labels}")
        n_scores = 1 if len(labels) == 2 else len(labels)
        weights = check_matrix(coef, "coef")
        if weights.shape[0] != n_scores:
            raise InvalidInputError(
                "coef",
                f"must have {n_scores} row(s) for {len(labels)} classes",
                f"its shape is {weights.shape}",
            )
        cut = check_finite(threshold, "threshold") + 0.0  # -0.0 becomes 0.0
        if cut and n_scores > 1:
            raise InvalidInputError(
                "threshold", "must be 0 for more than two classes", f"it is {cut!r}"
            )
        if features is not None and weights.shape[1] != features.n_outputs:
            raise InvalidInputError(
                "coef",
                f"must have a column for each of {features.n_outputs} features",
                f"its shape is {weights.shape}",
            )
        n_columns = weights.shape[1] if features is None else features.n_sensors
        return cls(
            coef=_own(weights.toarray() if sparse.issparse(weights) else weights),
            intercept=_own(check_vector(intercept, "intercept", n_scores, "scores")),
            classes=labels,
            feature_names=_check_names(feature_names, n_columns),
            estimator=check_text(estimator, "estimator"),
            params=_check_mapping(params, "params"),
            certificate=_check_mapping(certificate, "certificate"),
            record=_check_mapping(record, "record"),
            threshold=cut,
            features=features,
        )

    @property
    def n_features(self) -> int:
        """Columns that X must have."""
        return int(self.coef.shape[1]) if self.features is None else self.features.n_sensors

    @property
    def positive(self) -> int | None:
        """Of two classes the position of the one looked for, such as the fault; of more, None.

        It is the one that the record names, else the last.
        """
        if len(self.classes) > 2:
            return None
        kept = self.record.get(POSITIVE)  # None is no label, where "None" may be one
        return 0 if kept is not None and str(kept) == str(self.classes[0]) else 1

    @property
    def alarm_statement(self) -> str | None:
        """What the record promises of alarms at this threshold, in words; None without alarms."""
        kept = self.record.get(ALARM)
        said = kept.get("statement") if isinstance(kept, dict) else None
        return said if isinstance(said, str) and self.positive is not None else None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of coefficients, row by row, and intercepts, as little-endian float64.

        A threshold other than 0 comes next, then a feature map's arrays and, as JSON, its settings.
        The exports carry it, so that what runs in a machine can be traced to a model file.
        """
        cut = [self.threshold] if self.threshold else []
        made = [] if self.features is None else [*self.features.arrays().values()]
        numbers = np.concatenate([self.coef.ravel(), self.intercept, cut, *map(np.ravel, made)])
        content = numbers.astype("<f8").tobytes()
        if self.features is not None:
            content += json.dumps([self.features.kind, self.features.settings()]).encode()
        return hashlib.sha256(content).hexdigest()

    def of_sensors(self, X: Matrix) -> Matrix:
        """What the coefficients weigh, of rows that are checked."""
        return X if self.features is None else self.features.apply(X)

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n_samples,) for two classes, else (n_samples, n_classes).

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Finite. Named columns must be those of training, in the same order.
        """
        matrix = check_matrix(X)
        self._check_columns(matrix.shape[1], getattr(X, "columns", None))
        return score_rows(self.of_sensors(matrix), self.coef, self.intercept)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels, one per sample; equal scores go to the class that comes first."""
        return choose_labels(self.decision_function(X), np.array(self.classes), self.threshold)

    def cut_at(self, threshold: float) -> LinearModel:
        """The same score with another threshold, of which no alarm promises anything."""
        record = {name: value for name, value in self.record.items() if name != ALARM}
        return LinearModel.checked(**{**vars(self), "threshold": threshold, "record": record})

    def with_record(self, **kept: Any) -> LinearModel:
        """The same model with more in its record."""
        return replace(self, record=_check_mapping({**self.record, **kept}, "record"))

    def _check_columns(self, n_columns: int, columns: Any) -> None:
        if n_columns != self.n_features:
            raise InvalidInputError(
                "X",
                f"must have the {self.n_features} features of training",
                f"it has {n_columns}",
            )
        names = [] if columns is None else list(columns)
        if self.feature_names is None or not all(isinstance(name, str) for name in names):
            return
        for at, (name, wanted) in enumerate(zip(names, self.feature_names, strict=False)):
            if name != wanted:
                raise InvalidInputError(
                    "X",
                    "its columns must be those of training, in the same order",
                    f"column {at} is {name!r}, not {wanted!r}",
                )


def score_rows(X: Matrix, coef: Array, intercept: Array) -> Array:
    """Scores of rows that are checked: a vector if there is one score, else one column each."""
    if not sparse.issparse(X):  # a frame's columns, side by side, have sums with other last bits
        X = np.ascontiguousarray(X)
    with np.errstate(over="ignore", invalid="ignore"):
        scores: Array = np.asarray(X @ coef.T) + intercept
    if not np.isfinite(scores).all():
        # Else NaN > 0 is False, and a machine that left its range would pass for classes[0].
        row = int(np.argwhere(~np.isfinite(scores))[0, 0])
        raise NumericalError(f"X: the score of row {row} overflows float64")
    return scores[:, 0] if len(coef) == 1 else scores


def choose_labels(
    scores: Array, classes: npt.NDArray[Any], threshold: float = 0.0
) -> npt.NDArray[Any]:
    """The second of two classes above the threshold; of more the one with the largest score.

    Of equal ones it is the first.
    """
    index = scores > threshold if scores.ndim == 1 else scores.argmax(axis=1)
    labels: npt.NDArray[Any] = classes[index.astype(np.intp)]
    return labels


def _own(array: Array) -> Array:
    """A copy that nobody can change: the model is frozen, and so are its numbers."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy


def _check_label(label: Any) -> Label:
    if isinstance(label, (bool, np.bool_)):
        return bool(label)
    if isinstance(label, str):
        return check_text(label, "classes")
    if isinstance(label, (int, np.integer)) and -(2**63) <= int(label) < 2**63:
        return int(label)
    if isinstance(label, (float, np.floating)) and math.isfinite(label):
        return float(label)
    raise InvalidInputError(
        "classes", "labels must be text, 64-bit integers, finite floats or bool", f"got {label!r}"
    )


def _check_names(names: Iterable[str] | None, n_features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    checked = tuple(check_text(name, "feature_names") for name in _listed(names, "feature_names"))
    if len(checked) != n_features or len(set(checked)) < n_features:
        raise InvalidInputError(
            "feature_names",
            f"must be {n_features} different names, one for each feature",
            f"got {len(checked)}, {len(set(checked))} of them different",
        )
    return checked


def _check_mapping(value: Mapping[str, Any] | None, argument: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInputError(argument, "must be a mapping", f"it is a {type(value).__name__}")
    return dict(plain(value or {}, argument))


def _listed(value: Iterable[Any], argument: str) -> list[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InvalidInputError(argument, "must be a list", f"it is {value!r}")
    return list(value)
