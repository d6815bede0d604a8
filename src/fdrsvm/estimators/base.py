"""What the classifiers share: parameters, scores and labels, the model file, and the exports."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fdrsvm.core.arrays import Array, Matrix, check_flag
from fdrsvm.core.files import PathLike
from fdrsvm.core.plain_json import from_plain, to_plain
from fdrsvm.data.rows import remembered_columns
from fdrsvm.data.training_data import (
    TrainingData,
    check_columns,
    client_shares,
    read_training_data,
    without_column,
)
from fdrsvm.decision.goals import positive_class
from fdrsvm.decision.histograms import Aim
from fdrsvm.errors import CorruptDataError
from fdrsvm.estimators.advice import (
    ColumnAdvice,
    Setting,
    beyond_limits,
    flip_share,
    judge,
    look_at_columns,
    pool_tallies,
    tally_rows,
)
from fdrsvm.federated.rounds import Result, RoundRecord
from fdrsvm.federated.train import make_problems, train
from fdrsvm.model.export import to_json, to_onnx, to_structured_text, write_onnx
from fdrsvm.model.linear_model import (
    PERSONAL,
    POSITIVE,
    Label,
    LinearModel,
    choose_labels,
    score_rows,
)
from fdrsvm.model.model_file import load_model, save_model
from fdrsvm.risk.feature_maps import FeatureMap, Features, make_features, read_map

_MAX_SEED = 2**31 - 1
_CERTIFICATE = ("objective", "lower_bound", "gap", "bound_radius")


class LinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier with a certificate, for two classes or one-vs-rest."""

    # What a model file keeps beside the weights, without the underscore at the end.
    _kept: ClassVar[tuple[str, ...]] = (
        *_CERTIFICATE,
        "n_iter",
        "stop_reason",
        "client_labels",
        "left_out",
        "n_clipped",
    )
    # Functions are for the run at hand; a file of plain values could not hold them.
    _not_kept: ClassVar[tuple[str, ...]] = ("callbacks",)
    knows_clients: ClassVar[bool] = True  # whether ``fit`` takes a client label for each row
    _per_client: ClassVar[str]  # attribute for each client's own objective
    # What not every class has as a parameter.
    features: Any = "linear"
    support: Any = None
    outside: str = "refuse"
    secure_aggregation: bool = False
    personal: str | None = None

    classes_: npt.NDArray[Any]
    coef_: Array
    intercept_: Array
    history_: tuple[RoundRecord, ...]
    threshold_: float
    feature_map_: Features | None = None  # what the model is linear in, if not the sensors

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n_samples,) for two classes, else (n_samples, n_classes).

        Parameters
        ----------
        X : array, DataFrame or CSR of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        if hasattr(self, "client_column_"):
            X = without_column(X, self.client_column_)
        check_columns(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return score_rows(self._mapped(X), self.coef_, self.intercept_)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels, one per sample; equal scores go to the class that comes first.

        Parameters
        ----------
        X : array, DataFrame or CSR of shape (n_samples, n_features)
        """
        return choose_labels(self.decision_function(X), self.classes_, self.threshold_)

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
        return cls._of_model(load_model(path), path)

    @classmethod
    def _of_model(cls, model: LinearModel, path: PathLike) -> Self:
        """The estimator that a model was made by; ``path`` is where errors say it is from."""
        if model.estimator != cls.__name__:
            raise CorruptDataError(f"{path}: it holds a {model.estimator}, not a {cls.__name__}")
        try:
            params = {name: from_plain(value) for name, value in model.params.items()}
            if isinstance(params.get("features"), dict):
                params["features"] = read_map(params["features"])
            estimator = cls(**params)
            unknown = model.certificate.keys() - set(cls._kept)
            if unknown:  # a file must not be able to set any attribute it likes
                raise CorruptDataError(f"its certificate has {sorted(unknown)}")
            for name, value in model.certificate.items():
                setattr(estimator, f"{name}_", from_plain(value))
        except (TypeError, ValueError) as error:
            raise CorruptDataError(f"{path}: {error}") from None
        estimator.coef_, estimator.intercept_ = model.coef.copy(), model.intercept.copy()
        estimator.classes_ = np.array(model.classes)
        estimator.threshold_ = model.threshold
        if POSITIVE in model.record and model.positive is not None:
            estimator.pos_label_ = model.classes[model.positive]
        client_column = remembered_columns(model.record).get("client")
        if client_column is not None:
            estimator.client_column_ = client_column
        estimator.n_features_in_ = model.n_features
        estimator.feature_map_ = model.features
        if model.feature_names is not None:
            estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
        estimator.history_ = ()
        if PERSONAL in model.record:
            estimator._personal_record = model.record[PERSONAL]
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

    def _store(self, arguments: dict[str, Any]) -> None:
        """Keep the arguments of ``__init__`` by name, as they are: scikit-learn's rule."""
        for name, value in arguments.items():
            if name != "self":
                setattr(self, name, value)

    def _linear_model(self) -> LinearModel:
        check_is_fitted(self)
        kept = {name: f"{name}_" for name in self._kept if hasattr(self, f"{name}_")}
        record: dict[str, Any] = {}
        if hasattr(self, "pos_label_"):
            record[POSITIVE] = self.pos_label_
        if hasattr(self, "_personal_record"):
            record[PERSONAL] = self._personal_record
        if hasattr(self, "client_column_"):
            record["data"] = {"columns": {"client": self.client_column_}}
        return LinearModel.checked(
            self.coef_,
            self.intercept_,
            self.classes_.tolist(),
            estimator=type(self).__name__,
            feature_names=getattr(self, "feature_names_in_", None),
            params=self._plain_params(),
            certificate={name: to_plain(getattr(self, key), key) for name, key in kept.items()},
            record=record,
            threshold=self.threshold_,
            features=self.feature_map_,
        )

    def _plain_params(self) -> dict[str, Any]:
        """Parameters as a model keeps them, or an error that names the one that it cannot."""
        given = self.get_params(deep=False)
        return {
            name: to_plain(
                value.to_params() if isinstance(value, FeatureMap) else value, f"parameter {name}"
            )
            for name, value in given.items()
            if name not in self._not_kept
        }

    def _mapped(self, X: Matrix) -> Matrix:
        """What the coefficients weigh."""
        return X if self.feature_map_ is None else self.feature_map_.apply(X)

    def _set_certificates(self, proved: Sequence[tuple[float, ...]]) -> None:
        """From objective, lower bound, gap and radius of each model.

        Numbers for two classes, else arrays with one entry per class.
        """
        columns = np.array(proved, dtype=np.float64).T
        for name, values in zip(_CERTIFICATE, columns, strict=True):
            setattr(self, f"{name}_", float(values[0]) if len(values) == 1 else values.copy())

    def _set_result(
        self,
        result: Result,
        classes: npt.NDArray[Any],
        client_labels: npt.NDArray[Any] | None = None,
        n_clipped: int = 0,
    ) -> None:
        """The best models of a run with their certificates, how it went, and who took part."""
        vectors, proved, own = [], [], []
        for one in result.certificate.parts:
            vectors.append(one.model)
            proved.append((one.objective, one.lower_bound, one.gap, one.radius))
            own.append(one.risks)
        models, P = np.array(vectors), result.federation.n_features
        self.classes_, self.threshold_ = classes, 0.0
        # The intercept is last, if there is one; the sum over no column is 0.
        self.coef_, self.intercept_ = models[:, :P].copy(), models[:, P:].sum(axis=1)
        self._set_certificates(proved)
        self.n_iter_, self.history_ = result.n_rounds, result.history
        self.stop_reason_ = result.reason.value
        for name in ("left_out_", "n_clipped_", "personal_", "_personal_record"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if self.support is not None:
            self.n_clipped_ = n_clipped
        if result.left_out:
            self.left_out_ = dict(result.left_out)
        if client_labels is not None:
            self.client_labels_ = client_labels
            by_client = own[0].tolist() if len(own) == 1 else [*np.transpose(own).copy()]
            if self.secure_aggregation:  # only the sum over the clients is known
                unknown = np.nan if len(own) == 1 else np.full(len(own), np.nan)
                by_client = [unknown] * len(client_labels)
            named = zip(client_labels.tolist(), by_client, strict=True)
            setattr(self, self._per_client, dict(named))

    def _balls(self, data: TrainingData) -> tuple[list[float], list[float], dict[str, Any]]:
        """Radii and label prices by client, and what is the same for all clients."""
        raise NotImplementedError

    def _features(self, data: TrainingData) -> Features | None:
        """What the model is linear in, if not the sensors: agreed, and not learnt from rows."""
        return make_features(self.features, data.clients[0].X.shape[1], self.support)

    def _set_positive(self, data: TrainingData, asked: Any = None) -> int | None:
        """Of two classes the one that is looked for: the one asked for, else the rarer one."""
        self.__dict__.pop("pos_label_", None)  # of an earlier fit
        labels = data.classes.tolist()
        place = positive_class(labels, data.class_totals, asked)
        if place is not None:
            self.pos_label_ = labels[place]
        return place

    def _warn_if_degenerate(
        self, data: TrainingData, columns: ColumnAdvice, stacklevel: int
    ) -> None:
        """A DegenerateModelWarning for each fault; ``stacklevel`` counts from the caller."""
        # Weights of classes are not rows. A class of weight 0 is one that nobody wants found.
        each = np.zeros(len(data.classes))
        np.divide(1.0, data.class_weights, out=each, where=data.class_weights > 0.0)
        tallies = []
        for client in data.clients:
            weights = client.weights * each[client.codes]
            linear = (self.coef_, self.intercept_, self.threshold_)
            tallies.append(tally_rows(*linear, self._mapped(client.X), client.codes, weights))
        epsilons, kappas, _ = self._balls(data)
        setting = Setting(
            estimator=type(self).__name__,
            class_weight=self.class_weight,
            flip_share=flip_share(epsilons, kappas),
            has_radius=any(epsilons),
            is_solved=self.tol == 0.0 or bool(np.max(self.gap_) <= self.tol),
        )
        fault = judge(pool_tallies(tallies), data.classes.tolist(), setting)
        names = getattr(self, "feature_names_in_", None)
        beyond = beyond_limits(data.clients, self.feature_map_, names)
        for warning in (fault, columns.scales, columns.ids, beyond):
            if warning is not None:
                warnings.warn(warning, stacklevel=stacklevel + 1)


class FederatedClassifier(LinearClassifier):
    """A classifier that is trained in rounds across clients."""

    merges_rows: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, *, clients: Any = None, sample_weight: Any = None) -> Self:
        """Train across the clients.

        Parameters
        ----------
        X : array, DataFrame or CSR of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels, two or more over all clients. A client may have rows of one class only.
        clients : array of shape (n_samples,) or str, optional
            A client label for each row, or the name of the column of a data frame X that has them,
            which is no feature then. None means one client, called "all".
        sample_weight : array of shape (n_samples,), optional
            Masses of the rows within their client. A row of weight 2 counts as two rows, one of
            weight 0 as none. (With baselines that draw batches of rows, this holds on average.)

        Returns
        -------
        FDRSVC or FedSVC
            This object.

        Warns
        -----
        ConvergenceWarning
            If the certified gap is above a ``tol`` that is not 0 after ``max_rounds``. For
            baselines also if the model is no better than the model 0: steps are too long for the
            features.
        DegenerateModelWarning
            If the model finds fewer than one in a hundred training rows of a class, or ignores all
            features (its score varies by at most 0.02 over the training rows); if one feature
            spreads over 100 times as much as another, or is an identifier; with a remedy.
        """
        self._fit(X, y, clients, sample_weight)
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        clients: Any,
        sample_weight: Any,
        threshold: float = 0.0,
        aim: Aim | None = None,
    ) -> None:
        """Train, and cut scores at the threshold; warnings name the line that called the caller.

        ``aim`` is what plants look for in models of their own.
        """
        self._check_options()
        data = read_training_data(
            self,
            X,
            y,
            clients=clients,
            sample_weight=sample_weight,
            class_weight=self.class_weight,
            support=self.support,
            outside=self.outside,
            merge=self.merges_rows,
        )
        names = getattr(self, "feature_names_in_", None)
        columns = look_at_columns(data.clients, names)
        self.feature_map_ = self._features(data)
        result = train(
            **self._settings(data),
            n_threads=self.n_threads,
            callbacks=self.callbacks,
            verbose=self.verbose,
            advice=columns.size,
            stacklevel=3,
        )
        self._set_result(result, data.classes, data.client_labels, data.n_clipped)
        self._set_positive(data)
        self.threshold_ = threshold
        if self.personal is not None:
            self._set_personal(data, aim)
        self._warn_if_degenerate(data, columns, stacklevel=3)

    def _set_personal(self, data: TrainingData, aim: Aim | None) -> None:
        """Each client's own model, if the class has the parameter ``personal``."""
        raise NotImplementedError

    def _check_options(self) -> None:
        """What does not go together, before any work is done."""
        raise NotImplementedError

    def _method(self, data: TrainingData | None = None) -> Any:
        """The algorithm, with its parameters checked; what depends on the data needs them."""
        raise NotImplementedError

    def _settings(self, data: TrainingData) -> dict[str, Any]:
        """The run that the parameters describe: arguments of ``train``."""
        epsilons, kappas, ball = self._balls(data)
        features = self._features(data)
        return {
            "clients": make_problems(data.clients, epsilons, kappas, features=features, **ball),
            "method": self._method(data),
            "client_weights": client_shares(self.client_weights, data.names, data.totals),
            "max_rounds": self.max_rounds,
            "tol": self.tol,
            "secure_aggregation": check_flag(self.secure_aggregation, "secure_aggregation"),
        }


def seed_of(random_state: Any) -> int:
    """A whole number, as messages carry it."""
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(_MAX_SEED))
