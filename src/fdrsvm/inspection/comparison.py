"""Other models beside a model: ours trained alone, jointly or on pooled rows, and scikit-learn's.

What is fair: all are scored on the same rows. Ours share the model's parameters and scaling, so
that the radius means the same. Where clients have radii of their own, pooled rows have the mean
over the rows: the ball of that radius holds every mixture of distributions in the clients' own. If
the model's threshold is 0, they are cut there too; if it was tuned, each is cut where the balanced
accuracy on its own training rows is best, for another model's scores need another threshold.
Logistic regression and gradient boosting get the model's class weights and are cut at a probability
of one half. Average precision needs no cut.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.plain_json import from_plain
from fdrsvm.data.rows import Rows
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.estimators.training import fit, make_estimator
from fdrsvm.inspection.scores import (
    POOLED,
    Classifier,
    Score,
    best_cut,
    check_fits,
    fault_place,
    score_each,
)
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.trained_ball import ROBUST, balls
from fdrsvm.model.unscaling import Scaling

Tune: TypeAlias = Callable[[LinearModel, Rows], float]

LOCAL, FEDERATED, CENTRAL = "local", "federated", "central"
LOGISTIC, BOOSTING = "logistic", "boosting"
_SHARED = (
    *("features", "kappa", "norm", "support", "loss", "tol", "fit_intercept", "class_weight"),
    "outside",
)


def tell_nobody(said: str) -> None:
    """Where nobody watches."""


def balanced_cut(model: LinearModel, rows: Rows) -> float:
    """Where to cut a model's score for the best balanced accuracy on some rows."""
    codes = rows.codes(model.classes)
    return best_cut(model.decision_function(rows.X), codes == 1)[0]


def compare(
    model: LinearModel,
    rows: Rows,
    training: Rows,
    positive: Any = None,
    *,
    tune: Tune = balanced_cut,
    tell: Callable[[str], None] = tell_nobody,
) -> list[Score]:
    """Models trained on ``training``, each scored on ``rows``.

    "local" is a client's own model on its own rows, "federated" one model across the clients,
    "central" one on all rows together; "logistic" and "boosting" are scikit-learn's, each client
    alone.

    Parameters
    ----------
    model : LinearModel
        Its parameters and scaling are used.
    rows, training : Rows
        To score on, and to train on; a client that is scored must have training rows.
    positive : label, optional
        The fault, as in :func:`fdrsvm.inspection.scores.score`.
    tune : callable
        From a model of two classes and its training rows to its threshold; asked if the model's
        threshold is not 0.
    tell : callable
        Told what is being trained.
    """
    check_fits(model, rows)
    check_fits(model, training)
    place, names = fault_place(model, rows, positive), rows.client_names
    unknown = ", ".join(map(repr, sorted(set(names) - set(training.client_names))))
    if unknown:
        rule = "must have training rows of every client that is scored"
        raise InvalidInputError("compare", rule, f"none of {unknown}")
    params = comparable_params(model)
    central_params = {name: params[name] for name in ("epsilon", *_SHARED)}
    radii = own_radii(model, params["epsilon"], training)
    federated_params = params if model.estimator == "FDRSVC" else central_params
    federated_params = federated_params | ({"epsilon": radii} if radii else {})
    training = replace(training, y=np.array(model.classes)[training.codes(model.classes)])

    def at_each(kind: str, train: Callable[[Rows], Classifier]) -> dict[str, Classifier | str]:
        what = f"{kind} model of "
        return {name: _train(what + name, train, training.of(name), tell) for name in names}

    def of_all(kind: str, train: Callable[[Rows], Classifier]) -> dict[str, Classifier | str]:
        return dict.fromkeys(names, _train(f"{kind} model", train, training, tell))

    def of_rows(mine: Rows) -> LinearModel:
        given = dict(central_params)
        if radii:  # of rows together the mean, row by row
            given["epsilon"] = float(np.mean([radii[name] for name in mine.clients.tolist()]))
        return train_ours(model, "DRSVC", given, tune, tell, mine)

    of_clients = partial(train_ours, model, "FDRSVC", federated_params, tune, tell)
    others = library_models(params.get("class_weight"))
    contenders = {
        LOCAL: at_each(LOCAL, of_rows),
        FEDERATED: of_all(FEDERATED, of_clients),
        CENTRAL: of_all(CENTRAL, of_rows),
        **{kind: at_each(kind, train) for kind, train in others.items()},
    }
    return [
        one
        for kind, models in contenders.items()
        for one in score_each(kind, models, model.classes, rows, place)
    ]


def train_ours(
    model: LinearModel,
    estimator: str,
    given: Mapping[str, Any],
    tune: Tune,
    tell: Callable[[str], None],
    mine: Rows,
) -> LinearModel:
    """Another model, scaled as the given one; where that is tuned, this one is too."""
    made = make_estimator(estimator, given, mine.labels)

    def watch(record: Any, _: Any) -> None:
        tell(f"{estimator}: round {record.round}, certified gap {record.gap:.1e}")

    made.set_params(callbacks=(watch,))
    scaling = Scaling.of(model)
    fit(made, scaling.apply(mine.X), mine)
    linear = scaling.fold(made._linear_model())
    is_tuned = model.threshold != 0.0 and len(linear.classes) == 2
    return linear.cut_at(tune(linear, mine)) if is_tuned else linear


def own_radii(model: LinearModel, epsilon: Any, training: Rows) -> dict[str, float]:
    """Each client's radius, where they were not all given as one."""
    if isinstance(epsilon, str | float | int):
        return {}
    return {name: ball.epsilon for name, ball in balls(model, training.counts()).items()}


def comparable_params(model: LinearModel) -> dict[str, Any]:
    """The model's parameters, if models of one client or of all rows can share all but radii."""
    if model.estimator not in ROBUST:
        raise UnsupportedError(
            f"a comparison is for models of {' and '.join(ROBUST)}, whose parameters all three "
            f"models share; this is one of {model.estimator}"
        )
    params = {name: from_plain(value) for name, value in model.params.items()}
    if not isinstance(params["kappa"], float | int):
        raise UnsupportedError(
            "a comparison needs one kappa for all clients; this model has one for each: train one "
            "with a single number (fdrsvm fit --set kappa=...)"
        )
    return params


def comparison_words(model: LinearModel, scores: list[Score]) -> list[str]:
    """What the compared models are and where they are cut; then why some are missing."""
    weights = from_plain(model.params.get("class_weight"))
    weighted = "" if weights is None else ", with the model's class weights"
    ours = "at score 0, as the model is"
    if model.threshold != 0.0:
        ours = "where the balanced accuracy on their own training rows is best"
    if len(model.classes) > 2:
        cut = ""
    else:
        cut = (
            f" {LOCAL}, {FEDERATED} and {CENTRAL} are cut {ours}, {LOGISTIC} and {BOOSTING} at a "
            "probability of 0.5; average precision needs no cut."
        )
    notes = dict.fromkeys(
        f"No {one.model} model for {one.client}: {one.note}."
        for one in scores
        if one.note is not None and one.client != POOLED
    )
    return [
        f"Beside the model: {LOCAL}, each plant alone; {FEDERATED}, all plants together; {CENTRAL},"
        " on pooled rows; all three with the model's parameters and scaling. "
        f"{LOGISTIC} and {BOOSTING} are scikit-learn's logistic regression (on standardised "
        f"features) and gradient boosting, each plant alone{weighted}.{cut}",
        *notes,
    ]


def _train(
    what: str, train: Callable[[Rows], Classifier], rows: Rows, tell: Callable[[str], None]
) -> Classifier | str:
    """A model, or why there is none, as at a plant that has seen no fault."""
    known = np.unique(rows.labels)
    if len(known) < 2:
        return f"its training rows are all {str(known[0])!r}"
    tell(f"training: {what}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its score is what is asked for
        return train(rows)


def library_models(class_weight: Any) -> dict[str, Callable[[Rows], Classifier]]:
    """What else could be used, from the library that everybody has."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def weights(rows: Rows) -> Array | None:
        # By row: boosting numbers its classes, and would not find labels in a mapping.
        if class_weight is None:
            return None
        known, codes, counts = np.unique(rows.labels, return_inverse=True, return_counts=True)
        if isinstance(class_weight, Mapping):
            given = {str(label): float(weight) for label, weight in class_weight.items()}
            each = np.array([given.get(str(label), 1.0) for label in known.tolist()])
        else:
            each = len(codes) / (len(known) * counts)
        return np.asarray(each[codes])

    def logistic(rows: Rows) -> Classifier:
        made = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, random_state=0))
        by_row = {"logisticregression__sample_weight": weights(rows)}
        fitted: Classifier = made.fit(rows.X, rows.labels, **by_row)
        return fitted

    def boosting(rows: Rows) -> Classifier:
        made = HistGradientBoostingClassifier(random_state=0)
        fitted: Classifier = made.fit(rows.X, rows.labels, sample_weight=weights(rows))
        return fitted

    return {LOGISTIC: logistic, BOOSTING: boosting}
