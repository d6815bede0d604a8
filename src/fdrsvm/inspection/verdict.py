"""Whether a model from a file has given up on given rows, and what to type about it."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from fdrsvm.core.plain_json import from_plain
from fdrsvm.data.rows import Rows
from fdrsvm.errors import DegenerateModelWarning, InvalidInputError, UnsupportedError
from fdrsvm.estimators.advice import ENOUGH, FLAT, Setting, Tally, flip_share, judge, tally_rows
from fdrsvm.inspection.certifying import training_counts
from fdrsvm.inspection.terms import steepest
from fdrsvm.model.linear_model import VERDICT, LinearModel
from fdrsvm.model.trained_ball import ROBUST, TrainedBall, balls
from fdrsvm.model.unscaling import Scaling


def verdict(model: LinearModel, rows: Rows | None = None) -> str | None:
    """What is wrong on these rows, or was in training, and what to type; None if nothing is.

    The rules are those of :mod:`fdrsvm.estimators.advice`. A few rows that are all of one class
    or all equal say nothing against a model.
    """
    kept = model.record.get(VERDICT)
    if rows is None:
        return None if kept is None else str(kept)
    own: list[TrainedBall] = []  # of training, as far as the file tells
    if model.estimator in ROBUST:
        with suppress(InvalidInputError, UnsupportedError):  # clients are not known by name
            own = list(balls(model, training_counts(model)).values())
    gap = np.max(from_plain(model.certificate.get("gap", 0.0)))
    tol = from_plain(model.params.get("tol", 0.0))
    setting = Setting(
        estimator=model.estimator,
        class_weight=from_plain(model.params.get("class_weight")),
        flip_share=flip_share([one.epsilon for one in own], [one.kappa for one in own]),
        has_radius=not own or max(one.epsilon for one in own) > 0.0,
        is_solved=tol == 0.0 or not math.isfinite(gap) or bool(gap <= tol),
    )
    evidence = _tally(model, rows)

    def judged(may_be_flat: bool) -> DegenerateModelWarning | None:
        return judge(evidence, model.classes, setting, least_rows=ENOUGH, may_be_flat=may_be_flat)

    if kept is not None and judged(may_be_flat=False) is None:
        return f"in training {kept}"  # which knew how rare the classes are
    warning = judged(may_be_flat=ignores_features(model))
    return None if warning is None else warning.for_command_line


def ignores_features(model: LinearModel, rows: Rows | None = None) -> bool:
    """Whether no feature matters: scores hardly differ between the rows, and hardly could.

    They hardly could if they hardly differ where all features move by 1 at once, as scaled; where
    features are not scaled, if all weights are 0. Equal rows have equal scores under any model.
    """
    if rows is not None and not _tally(model, rows).is_flat:
        return False
    scaling = Scaling.of(model)
    if scaling.method == "none":
        return not model.coef.any()
    return max(steepest(scaling.unfold(model), "linf")) <= 2.0 * FLAT


def _tally(model: LinearModel, rows: Rows) -> Tally:
    linear = (model.coef, model.intercept, model.threshold)
    return tally_rows(*linear, model.of_sensors(rows.X), rows.codes(model.classes))
