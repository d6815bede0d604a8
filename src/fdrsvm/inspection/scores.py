"""How often a model is right, over all rows and client by client, and beside other models."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.plain_json import from_plain
from fdrsvm.data.rows import Rows, match_labels
from fdrsvm.decision.goals import positive_class, score_counts
from fdrsvm.errors import (
    ConvergenceWarning,
    DegenerateModelWarning,
    InvalidInputError,
    UnsupportedError,
)
from fdrsvm.estimators.training import fit, make_estimator
from fdrsvm.model.linear_model import POSITIVE, LinearModel
from fdrsvm.model.trained_ball import ROBUST
from fdrsvm.model.unscaling import Scaling

POOLED = "all"
_SHARED = ("kappa", "norm", "support", "loss", "tol", "fit_intercept", "class_weight", "outside")


@dataclass(frozen=True)
class Score:
    """One model on the rows of one client, or of all; nan where it could not be trained.

    ``f1`` is of the class ``f1_of``, or the mean over all classes if that is None.
    """

    model: str
    client: str
    n_rows: int
    accuracy: float
    f1: float
    balanced_accuracy: float
    f1_of: str | None = None


def check_fits(model: LinearModel, rows: Rows) -> None:
    """The rows must have as many features as the model."""
    if rows.X.shape[1] != model.n_features:
        raise InvalidInputError(
            "data",
            f"must have the {model.n_features} features of the model",
            f"it has {rows.X.shape[1]}; ignore the columns that are none",
        )


def score(model: LinearModel, rows: Rows, positive: Any = None) -> list[Score]:
    """The model on each client's rows and on all, best such as were not used in training.

    Of two classes, ``positive`` is the one whose F1 counts. By default it is the one that the file
    names, which is the rarer one in training unless another was asked for; of a file without, the
    rarer one in ``rows``, of two equals the last.
    """
    check_fits(model, rows)
    place = _positive_place(model, rows, positive)
    return _scores("model", dict.fromkeys(rows.client_names, model), model.classes, rows, place)


def compare(model: LinearModel, rows: Rows, training: Rows, positive: Any = None) -> list[Score]:
    """Models trained on other rows with the model's parameters, each scored on ``rows``.

    "local" is a client's own model on its own rows, "federated" one model across the clients,
    "central" one on all rows together. All use the scaling of ``model``, so that the radius means
    the same for all.
    """
    check_fits(model, rows)
    check_fits(model, training)
    place = _positive_place(model, rows, positive)
    names = rows.client_names
    unknown = sorted(set(names) - set(training.client_names))
    if unknown:
        raise InvalidInputError(
            "compare",
            "must have training rows of every client that is scored",
            f"none of {', '.join(map(repr, unknown))}",
        )
    params = _comparable_params(model)
    central_params = {name: params[name] for name in ("epsilon", *_SHARED)}
    federated_params = params if model.estimator == "FDRSVC" else central_params
    training = replace(training, y=np.array(model.classes)[training.codes(model.classes)])
    scaling = Scaling.of(model)
    local = {name: _train("DRSVC", central_params, scaling, training.of(name)) for name in names}
    federated = _train("FDRSVC", federated_params, scaling, training)
    central = _train("DRSVC", central_params, scaling, training)
    return [
        *_scores("local", local, model.classes, rows, place),
        *_scores("federated", dict.fromkeys(names, federated), model.classes, rows, place),
        *_scores("central", dict.fromkeys(names, central), model.classes, rows, place),
    ]


def _positive_place(model: LinearModel, rows: Rows, label: Any) -> int | None:
    """Position of the class whose F1 counts; None means the mean over classes."""
    if len(model.classes) > 2:
        if label is not None:
            raise InvalidInputError(
                "fault", "is for two classes; of more the mean F1 is given", f"it is {label!r}"
            )
        return None
    kept = model.record.get(POSITIVE)
    if label is None and str(kept) in map(str, model.classes):
        label = kept
    totals = np.bincount(rows.codes(model.classes), minlength=2)
    return positive_class(model.classes, totals, label, "fault")


def _scores(
    kind: str,
    models: Mapping[str, LinearModel | None],
    classes: Sequence[Any],
    rows: Rows,
    place: int | None,
) -> list[Score]:
    """Each client's rows by its model, which may know fewer classes, and all rows together."""
    codes = rows.codes(classes)
    tables: list[tuple[str, int, Array | None]] = []  # client, rows, confusion counts
    for client, model in models.items():
        mine = rows.clients == client
        counts = None
        if model is not None:
            counts = np.zeros((len(classes), len(classes)))
            predicted = match_labels(model.predict(rows.X[mine]), classes)
            np.add.at(counts, (codes[mine], predicted), 1.0)
        tables.append((client, int(mine.sum()), counts))
    if len(tables) > 1:
        known = [counts for _, _, counts in tables if counts is not None]
        pooled = np.sum(known, axis=0) if len(known) == len(tables) else None
        tables.append((POOLED, len(rows.X), pooled))
    label = None if place is None else str(classes[place])
    scores = []
    for client, n_rows, counts in tables:
        accuracy = f1 = balanced = np.nan
        if counts is not None:
            accuracy = score_counts(counts, "accuracy")
            balanced = score_counts(counts, "balanced_accuracy")
            f1 = score_counts(counts, "f1_macro" if place is None else "f1", place or 0)
        scores.append(Score(kind, client, n_rows, accuracy, f1, balanced, label))
    return scores


def _comparable_params(model: LinearModel) -> dict[str, Any]:
    """The model's parameters, if models of one client or of all rows can share them."""
    if model.estimator not in ROBUST:
        raise UnsupportedError(
            f"a comparison is for models of {' and '.join(ROBUST)}, whose parameters all three "
            f"models share; this is one of {model.estimator}"
        )
    params = {name: from_plain(value) for name, value in model.params.items()}
    for name in ("epsilon", "kappa"):
        if not isinstance(params[name], str | float | int):
            raise UnsupportedError(
                f"a comparison needs one {name} for all clients; this model has one for each"
            )
    return params


def _train(
    name: str, params: Mapping[str, Any], scaling: Scaling, rows: Rows
) -> LinearModel | None:
    """None if there is one class only, as at a plant that has seen no fault."""
    if len(np.unique(rows.labels)) < 2:
        return None
    estimator = make_estimator(name, params, rows.labels)
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, DegenerateModelWarning):
            warnings.simplefilter("ignore", kind)  # its score is what is asked for
        fit(estimator, scaling.apply(rows.X), rows)
    model: LinearModel = estimator._linear_model()
    return scaling.fold(model)
