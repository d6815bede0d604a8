"""How often a model is right, over all rows and client by client, and beside other models."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.plain_json import from_plain
from fdrsvm.data.rows import Rows, match_labels
from fdrsvm.errors import (
    ConvergenceWarning,
    DegenerateModelWarning,
    InvalidInputError,
    UnsupportedError,
)
from fdrsvm.estimators.search import positive_class, score_counts
from fdrsvm.estimators.training import fit, make_estimator
from fdrsvm.model.linear_model import POSITIVE, LinearModel
from fdrsvm.model.trained_ball import ROBUST
from fdrsvm.model.unscaling import Scaling

POOLED = "all"
LOCAL, FEDERATED, CENTRAL = "local", "federated", "central"
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
    """The model on each client's rows, and on all.

    Parameters
    ----------
    model : LinearModel
        What to score.
    rows : Rows
        Rows with labels, best such as were not used in training.
    positive : label, optional
        For two classes: the one whose F1 counts. By default the one that the file names, which is
        the rarer one in training unless another was asked for; of a file without, the rarer one in
        ``rows``, of two equals the last.
    """
    check_fits(model, rows)
    counts = dict(_count(dict.fromkeys(rows.client_names, model), model.classes, rows))
    return _scores("model", counts, rows, _positive(model, rows, positive))


def compare(model: LinearModel, rows: Rows, training: Rows, positive: Any = None) -> list[Score]:
    """Models trained on other rows with the model's parameters, each scored on ``rows``.

    "local" is a client's own model on its own rows, "federated" one model across the clients,
    "central" one on all rows together. All use the scaling of ``model``, so that the radius means
    the same for all.
    """
    check_fits(model, rows)
    check_fits(model, training)
    where = _positive(model, rows, positive)
    unknown = sorted(set(rows.client_names) - set(training.client_names))
    if unknown:
        raise InvalidInputError(
            "compare",
            "must have training rows of every client that is scored",
            f"none of {', '.join(map(repr, unknown))}",
        )
    scaling, labels = Scaling.of(model), np.array(model.classes)
    y = labels[training.codes(model.classes)]
    training = replace(training, y=y)
    params = _central_params(model)
    local = {
        name: _trained("DRSVC", params, scaling, training.of(name)) for name in rows.client_names
    }
    federated = _trained("FDRSVC", _federated_params(model), scaling, training)
    central = _trained("DRSVC", params, scaling, training)
    found = []
    for kind, models in (
        (LOCAL, local),
        (FEDERATED, dict.fromkeys(rows.client_names, federated)),
        (CENTRAL, dict.fromkeys(rows.client_names, central)),
    ):
        counts = dict(_count(models, model.classes, rows))
        found += _scores(kind, counts, rows, where)
    return found


@dataclass(frozen=True)
class _Positive:
    """The class whose F1 counts."""

    place: int
    label: str


def _positive(model: LinearModel, rows: Rows, label: Any) -> _Positive | None:
    """None means the mean over classes."""
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
    place = positive_class(model.classes, totals, label, "fault")
    return _Positive(place, str(model.classes[place]))


def _count(
    models: Mapping[str, LinearModel | None], classes: Sequence[Any], rows: Rows
) -> Iterator[tuple[str, Array | None]]:
    """Confusion counts of each client's rows by its model, which may know fewer classes."""
    codes = rows.codes(classes)
    for client, model in models.items():
        if model is None:
            yield client, None
            continue
        mine = rows.clients == client
        predicted = match_labels(model.predict(rows.X[mine]), classes)
        counts = np.zeros((len(classes), len(classes)))
        np.add.at(counts, (codes[mine], predicted), 1.0)
        yield client, counts


def _scores(
    kind: str, counts: Mapping[str, Array | None], rows: Rows, positive: _Positive | None
) -> list[Score]:
    sizes = rows.counts()
    found = [_score(kind, name, sizes[name], each, positive) for name, each in counts.items()]
    if len(counts) > 1:
        parts = [each for each in counts.values() if each is not None]
        pooled = None if len(parts) < len(counts) else np.sum(parts, axis=0)
        found.append(_score(kind, POOLED, len(rows.X), pooled, positive))
    return found


def _score(
    kind: str, client: str, n_rows: int, counts: Array | None, positive: _Positive | None
) -> Score:
    label = None if positive is None else positive.label
    if counts is None:
        return Score(kind, client, n_rows, np.nan, np.nan, np.nan, label)
    f1 = (
        score_counts(counts, "f1_macro")
        if positive is None
        else score_counts(counts, "f1", positive.place)
    )
    return Score(
        kind,
        client,
        n_rows,
        score_counts(counts, "accuracy"),
        f1,
        score_counts(counts, "balanced_accuracy"),
        label,
    )


def _central_params(model: LinearModel) -> dict[str, Any]:
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
    return {name: params[name] for name in ("epsilon", *_SHARED)}


def _federated_params(model: LinearModel) -> dict[str, Any]:
    if model.estimator == "FDRSVC":
        return {name: from_plain(value) for name, value in model.params.items()}
    return _central_params(model)


def _trained(
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
