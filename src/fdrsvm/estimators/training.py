"""A training run from rows to files: scale, fit, fold the scaling in, keep how it went."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fdrsvm
from fdrsvm.core.files import write_together
from fdrsvm.core.plain_json import encode, plain
from fdrsvm.data.rows import Rows
from fdrsvm.errors import ConvergenceWarning, DegenerateModelWarning, InvalidInputError
from fdrsvm.estimators.configuration import FitSettings
from fdrsvm.estimators.counts import positive_class
from fdrsvm.federated.rounds import Callback, RoundRecord
from fdrsvm.federated.train import watched
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import model_bytes
from fdrsvm.model.record import POSITIVE, VERDICT
from fdrsvm.model.trained_ball import balls, client_weights
from fdrsvm.model.unscaling import learn_scaling

MODEL, CERTIFICATE = "model.safetensors", "certificate.json"
_MAPPED_BY_LABEL = ("class_weight",)
_CERTIFIED = ("data", "scaling", POSITIVE, VERDICT)
# No seconds: the same command gives the same file.
_KEPT_OF_A_ROUND = ("round", "objective", "lower_bound", "gap", "n_answers", "bytes_up")


@dataclass(frozen=True)
class Training:
    """A trained model, ready to be written.

    ``warnings`` say where it fell short of its tolerance, ``verdict`` whether it has given up.
    """

    model: LinearModel
    rows: Rows
    warnings: tuple[str, ...]
    verdict: str | None = None


def train(settings: FitSettings, rows: Rows, watch: Callback | None = None) -> Training:
    """Fit as the settings say.

    Parameters
    ----------
    settings : FitSettings
        Estimator, parameters, scaling.
    rows : Rows
        What the clients have.
    watch : callable, optional
        Called with a RoundRecord and a model after each round.
    """
    settings.check()
    positive = _positive(settings.fault, rows)
    scaling, X = learn_scaling(rows, settings.scaling, clip=settings.clip)
    estimator = make_estimator(settings.estimator, settings.params, rows.labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("always", DegenerateModelWarning)
        with watched(watch or _nobody):
            fit(estimator, X, rows)
    estimator.feature_names_in_ = np.array(rows.feature_names, dtype=object)
    scaled: LinearModel = estimator._linear_model()
    said = [one.message for one in caught if isinstance(one.message, DegenerateModelWarning)]
    verdict = said[0].for_command_line if said else None
    record = {
        "scaling": scaling.to_record(),
        "history": _columns(estimator.history_),
        "data": _facts(scaled, rows),
        **({} if positive is None else {POSITIVE: positive}),
        **({} if verdict is None else {VERDICT: verdict}),
    }
    model = scaling.fold(
        LinearModel.checked(
            scaled.coef,
            scaled.intercept,
            scaled.classes,
            estimator=scaled.estimator,
            feature_names=scaled.feature_names,
            params=scaled.params,
            certificate=scaled.certificate,
            record=record,
        )
    )
    short = tuple(str(one.message) for one in caught if one.category is ConvergenceWarning)
    return Training(model, rows, short, verdict)


def make_estimator(name: str, params: Mapping[str, Any], y: Any) -> Any:
    """An estimator with parameters from a file, where labels can only be text."""
    given = dict(params)
    for key in _MAPPED_BY_LABEL:
        if isinstance(given.get(key), Mapping):
            given[key] = _by_label(given[key], key, y)
    if name == "FedSVC":
        given.setdefault("random_state", 0)  # the same command gives the same model
    return getattr(fdrsvm, name)(**given)


def fit(estimator: Any, X: Any, rows: Rows) -> None:
    """Across clients, or on all rows if the estimator knows no clients."""
    if estimator.__class__.__name__ == "DRSVC":
        estimator.fit(X, rows.labels)
    else:
        estimator.fit(X, rows.labels, clients=rows.clients)


def write_training(training: Training, folder: Path) -> tuple[Path, Path]:
    """Model file and certificate, both or neither; the folder is made if need be."""
    model, certificate = folder / MODEL, folder / CERTIFICATE
    text = json.dumps(certificate_content(training.model), indent=2, sort_keys=True)
    data = model_bytes(training.model)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_together((model, data), (certificate, text.encode() + b"\n"))
    except OSError:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
    return model, certificate


def certificate_content(model: LinearModel) -> dict[str, Any]:
    """What is proved of which model, as JSON for people and programs."""
    content: dict[str, Any] = {
        "model_sha256": model.fingerprint,
        "release": fdrsvm.__version__,
        "estimator": model.estimator,
        "classes": list(model.classes),
        "params": model.params,
        **model.certificate,
        **{name: model.record[name] for name in _CERTIFIED if name in model.record},
    }
    return dict(encode(plain(content, "certificate")))


def _nobody(record: RoundRecord, model: Any) -> None:
    """Watches nothing."""


def _positive(fault: str | None, rows: Rows) -> Any:
    """The class that scores of one class are of; None if there are not two."""
    classes, totals = np.unique(rows.labels, return_counts=True)
    labels: list[Any] = classes.tolist()
    if len(labels) == 2:
        return labels[positive_class(labels, totals, fault, "fault")]
    if fault is not None:
        raise InvalidInputError("fault", "is for two classes", f"there are {len(labels)}")
    return None


def _by_label(given: Mapping[str, Any], argument: str, y: Any) -> dict[Any, Any]:
    labels = {str(label): label for label in np.unique(y).tolist()}
    unknown = [key for key in given if str(key) not in labels]
    if unknown:
        raise InvalidInputError(
            argument, f"must be for the labels {list(labels)}", f"it has {unknown}"
        )
    return {labels[str(key)]: value for key, value in given.items()}


def _columns(history: Sequence[RoundRecord]) -> dict[str, list[Any]]:
    """Rounds by column, as far as they do not depend on the clock."""
    return {name: [getattr(one, name) for one in history] for name in _KEPT_OF_A_ROUND}


def _facts(model: LinearModel, rows: Rows) -> dict[str, Any]:
    """Counts and agreed numbers of the training rows; no value of any row."""
    counts = rows.counts()
    facts: dict[str, Any] = {"rows": counts}
    if model.estimator == "FDRSVC":
        facts["epsilon"] = {name: ball.epsilon for name, ball in balls(model, counts).items()}
        facts["client_weights"] = client_weights(model, counts)
    if rows.contract is not None:
        facts["contract"] = rows.contract.fingerprint
    return facts
