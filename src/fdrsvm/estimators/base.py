"""What the three classifiers share: scores and labels, the model file, and the exports."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fdrsvm.core.arrays import Array
from fdrsvm.core.files import PathLike
from fdrsvm.core.plain_json import from_plain, to_plain
from fdrsvm.data.training_data import TrainingData, check_columns
from fdrsvm.errors import CorruptDataError, NumericalError
from fdrsvm.estimators.degenerate import Setting, client_evidence, judge, pooled
from fdrsvm.federated.certificate import Certificate
from fdrsvm.federated.rounds import Result, RoundRecord
from fdrsvm.model.export import to_json, to_onnx, to_structured_text, write_onnx
from fdrsvm.model.linear_model import Label, LinearModel
from fdrsvm.model.model_file import load_model, save_model


class Certified(NamedTuple):
    """What is proved of one model; ``gap`` is relative."""

    objective: float
    lower_bound: float
    gap: float
    radius: float


class LinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier with a certificate, for two classes or one-vs-rest."""

    # What a model file keeps beside the weights, without the underscore at the end.
    _kept: ClassVar[tuple[str, ...]] = (
        "objective",
        "lower_bound",
        "gap",
        "bound_radius",
        "n_iter",
        "stop_reason",
        "client_labels",
        "left_out",
        "n_clipped",
    )

    classes_: npt.NDArray[Any]
    coef_: Array
    intercept_: Array
    history_: tuple[RoundRecord, ...]

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n_samples,) for two classes, else (n_samples, n_classes).

        Parameters
        ----------
        X : array, DataFrame or CSR of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        check_columns(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Array = np.asarray(X @ self.coef_.T) + self.intercept_
        if not np.isfinite(scores).all():
            # Else NaN > 0 is False, and a machine that left its range would pass for healthy.
            row = int(np.argwhere(~np.isfinite(scores))[0, 0])
            raise NumericalError(f"X: the score of row {row} overflows float64")
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels, one per sample; equal scores go to the class that comes first.

        Parameters
        ----------
        X : array, DataFrame or CSR of shape (n_samples, n_features)
        """
        scores = self.decision_function(X)
        index = scores > 0.0 if scores.ndim == 1 else scores.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[index.astype(np.intp)]
        return labels

    def save(self, path: PathLike) -> None:
        """Write the fitted model to a safe file, see :mod:`fdrsvm.model.model_file`.

        It holds weights, classes, feature names, parameters and certificate, and no training data;
        ``history_`` is not part of it.
        """
        save_model(self._linear_model(), path)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """The estimator that ``save`` wrote; ``history_`` is empty.

        Raises
        ------
        CorruptDataError
            If the file was altered, or holds another estimator's model.
        """
        model = load_model(path)
        if model.estimator != cls.__name__:
            raise CorruptDataError(f"{path}: it holds a {model.estimator}, not a {cls.__name__}")
        try:
            estimator = cls(**{name: from_plain(value) for name, value in model.params.items()})
            kept = cls._read_kept(model.certificate)
        except (TypeError, ValueError) as error:
            raise CorruptDataError(f"{path}: {error}") from None
        estimator._set_weights(model.coef.copy(), model.intercept.copy(), np.array(model.classes))
        estimator.n_features_in_ = model.n_features
        if model.feature_names is not None:
            estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
        estimator.history_ = ()
        for name, value in kept.items():
            setattr(estimator, name, value)
        return estimator

    def to_onnx(self, path: PathLike | None = None) -> bytes | None:
        """The model as ONNX: bytes, or a file if a path is given.

        See :func:`fdrsvm.model.export.to_onnx`.
        """
        model = self._linear_model()
        if path is None:
            return to_onnx(model)
        write_onnx(model, path)
        return None

    def to_structured_text(
        self, *, name: str = "FDRSVM_Score", alarm_on: Collection[Label] | None = None
    ) -> str:
        """The model as IEC 61131-3 structured text for a PLC.

        See :func:`fdrsvm.model.export.to_structured_text`.
        """
        return to_structured_text(self._linear_model(), name=name, alarm_on=alarm_on)

    def to_json(self) -> str:
        """All of the model as JSON for people and other programs."""
        return to_json(self._linear_model())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @classmethod
    def _read_kept(cls, certificate: Mapping[str, Any]) -> dict[str, Any]:
        unknown = certificate.keys() - set(cls._kept)
        if unknown:  # a file must not be able to set any attribute it likes
            raise CorruptDataError(f"its certificate has {sorted(unknown)}")
        return {f"{name}_": from_plain(value) for name, value in certificate.items()}

    def _linear_model(self) -> LinearModel:
        check_is_fitted(self)
        kept = {name: f"{name}_" for name in self._kept if hasattr(self, f"{name}_")}
        return LinearModel.checked(
            self.coef_,
            self.intercept_,
            self.classes_.tolist(),
            estimator=type(self).__name__,
            feature_names=getattr(self, "feature_names_in_", None),
            params={
                name: to_plain(value, f"parameter {name}")
                for name, value in self.get_params(deep=False).items()
            },
            certificate={name: to_plain(getattr(self, key), key) for name, key in kept.items()},
        )

    def _set_weights(self, coef: Array, intercept: Array, classes: npt.NDArray[Any]) -> None:
        self.coef_, self.intercept_, self.classes_ = coef, intercept, classes

    def _set_models(self, models: Sequence[Array], classes: npt.NDArray[Any]) -> None:
        """From vectors with the intercept last, if there is one."""
        rows = np.array(models)
        P = self.n_features_in_
        intercept = rows[:, P] if rows.shape[1] > P else np.zeros(len(rows))
        self._set_weights(rows[:, :P].copy(), intercept.copy(), classes)

    def _set_rounds(self, result: Result, client_labels: npt.NDArray[Any]) -> None:
        """Who took part, and how the run went."""
        self.client_labels_ = client_labels
        self.n_iter_ = result.n_rounds
        self.stop_reason_ = result.reason.value
        self.history_ = result.history
        if result.left_out:
            self.left_out_ = dict(result.left_out)
        elif hasattr(self, "left_out_"):
            del self.left_out_  # of an earlier fit

    def _set_certificates(self, proved: Sequence[Certified]) -> None:
        """Numbers for two classes, else arrays with one entry per class."""
        self.objective_ = per_class([one.objective for one in proved])
        self.lower_bound_ = per_class([one.lower_bound for one in proved])
        self.gap_ = per_class([one.gap for one in proved])
        self.bound_radius_ = per_class([one.radius for one in proved])

    def _warn_if_degenerate(
        self, data: TrainingData, *, flip_share: float, has_radius: bool, stacklevel: int
    ) -> None:
        """A DegenerateModelWarning at most; ``stacklevel`` counts from the caller."""
        # Weights of classes are not rows. A class of weight 0 is one that nobody wants found.
        each = np.zeros(len(data.classes))
        np.divide(1.0, data.class_weights, out=each, where=data.class_weights > 0.0)
        parts = [
            client_evidence(
                self.coef_, self.intercept_, one.X, one.codes, one.weights * each[one.codes]
            )
            for one in data.clients
        ]
        setting = Setting(
            estimator=type(self).__name__,
            class_weight=self.class_weight,
            flip_share=flip_share,
            has_radius=has_radius,
            is_solved=self.tol == 0.0 or bool(np.max(self.gap_) <= self.tol),
        )
        found = judge(pooled(parts), data.classes.tolist(), setting)
        if found is not None:
            warnings.warn(found, stacklevel=stacklevel + 1)


def per_class(values: Sequence[float]) -> float | Array:
    """A number for two classes, else an array with one entry per class."""
    return float(values[0]) if len(values) == 1 else np.array(values, dtype=np.float64)


def certified(standing: Certificate) -> Certified:
    """The proof that goes with a standing's model."""
    return Certified(standing.objective, standing.lower_bound, standing.gap, standing.radius)
