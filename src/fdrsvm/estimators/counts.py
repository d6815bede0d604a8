"""Validation by counts: what a client hands over about its held-out rows, and what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, Matrix, check_choice
from fdrsvm.errors import InvalidInputError
from fdrsvm.model.linear_model import LinearModel

Scoring: TypeAlias = str | Callable[[Array], float]

F1 = "f1"  # the only one that is of one class
DEFAULT_SCORING = "balanced_accuracy"


def held_out_counts(
    model: LinearModel,
    X: Matrix,
    y: npt.NDArray[np.intp],
    sample_weight: Array | None = None,
) -> Array:
    """The client's part: how many rows of each class the model takes for each class.

    Parameters
    ----------
    model : LinearModel
        Its classes are 0, 1, ..., n_classes - 1.
    X, y : arrays
        Rows that the model was not trained on; ``y`` in the model's classes.
    sample_weight : array, optional
        A row of weight 2 counts as two.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        All that leaves the client: the true class has the row, the predicted one the column.
    """
    n_classes = len(model.classes)
    counts = np.zeros((n_classes, n_classes))
    if len(y):
        np.add.at(counts, (y, model.predict(X)), 1.0 if sample_weight is None else sample_weight)
    return counts


def score_counts(counts: Array, scoring: Scoring, positive: int = 1) -> float:
    """The server's part: a score from counts summed over clients; nan if nothing was counted.

    Parameters
    ----------
    counts : array of shape (n_classes, n_classes)
        The true class has the row, the predicted one the column.
    scoring : str or callable
        As ``check_scoring`` gives it.
    positive : int
        Position of the class that "f1" is of.
    """
    if not counts.any():
        return np.nan
    if scoring == F1:
        return float(np.nan_to_num(_f1_scores(counts)[positive]))
    score = _SCORES[scoring] if isinstance(scoring, str) else scoring
    return float(score(counts))


def check_scoring(scoring: Any, n_classes: int) -> Scoring:
    """A name that suits the number of classes, or a callable; None is the default."""
    if scoring is None:
        return DEFAULT_SCORING
    if callable(scoring):
        found: Scoring = scoring
        return found
    name = check_choice(scoring, "scoring", (F1, *_SCORES))
    if name == F1 and n_classes > 2:
        raise InvalidInputError(
            "scoring", "'f1' is for two classes, 'f1_macro' for more", f"there are {n_classes}"
        )
    return name


def positive_class(
    classes: Sequence[Any], totals: Any, pos_label: Any = None, argument: str = "pos_label"
) -> int:
    """Position of the class that scores of one class are of, for two classes.

    Parameters
    ----------
    classes : sequence of two labels
        Sorted.
    totals : sequence of two numbers
        Rows of each class in training.
    pos_label : label, optional
        The class asked for, also as text; by default the rarer one, of two equals the last.
    argument : str
        What an error calls it.
    """
    if pos_label is None:
        return 0 if totals[0] < totals[1] else 1
    names = [str(one) for one in classes]
    if str(pos_label) not in names:
        raise InvalidInputError(
            argument, f"must be one of the classes {names}", f"it is {pos_label!r}"
        )
    return names.index(str(pos_label))


def _accuracy(counts: Array) -> float:
    return float(np.trace(counts) / counts.sum())


def _balanced_accuracy(counts: Array) -> float:
    """Mean over the classes that occur."""
    totals = counts.sum(axis=1)
    occurs = totals > 0.0
    return float(np.mean(np.diag(counts)[occurs] / totals[occurs]))


def _f1_scores(counts: Array) -> Array:
    """2 TP / (2 TP + FP + FN) of each class; nan for one that neither occurs nor is predicted."""
    totals = counts.sum(axis=0) + counts.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(2.0 * np.diag(counts) / totals)


def _f1_macro(counts: Array) -> float:
    return float(np.nanmean(_f1_scores(counts)))


_SCORES: dict[str, Callable[[Array], float]] = {
    "f1_macro": _f1_macro,
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
}
