"""What a user wants of decisions, as a number computed from counts of rows.

A goal is a name, or a callable on the counts: an array of shape (n_classes, n_classes) with the
true class in the row and the predicted one in the column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fdrsvm.core.arrays import Array, check_choice
from fdrsvm.errors import InvalidInputError

Scoring: TypeAlias = str | Callable[[Array], float]

F1 = "f1"  # the only score that is of one class
DEFAULT_SCORING = "balanced_accuracy"


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
        return scoring  # type: ignore[no-any-return]
    name = check_choice(scoring, "scoring", (F1, *_SCORES))
    if name == F1 and n_classes > 2:
        raise InvalidInputError(
            "scoring", "'f1' is for two classes, 'f1_macro' for more", f"there are {n_classes}"
        )
    return name


def positive_class(
    classes: Sequence[Any], totals: Any, pos_label: Any = None, argument: str = "pos_label"
) -> int | None:
    """Position of the class that scores of one class are of; None if there are not two classes.

    Parameters
    ----------
    classes : sequence of labels
        Sorted.
    totals : sequence of numbers
        Rows of each class in training.
    pos_label : label, optional
        The class asked for, also as text; by default the rarer one, of two equals the last.
    argument : str
        What an error calls it.
    """
    if len(classes) != 2 and pos_label is not None:
        raise InvalidInputError(argument, "is for two classes", f"there are {len(classes)}")
    if len(classes) != 2:
        return None
    if pos_label is None:
        return 0 if totals[0] < totals[1] else 1
    names = [str(one) for one in classes]
    if str(pos_label) not in names:
        raise InvalidInputError(
            argument, f"must be one of the classes {names}", f"it is {pos_label!r}"
        )
    return names.index(str(pos_label))


def _f1_scores(counts: Array) -> Array:
    """2 TP / (2 TP + FP + FN) of each class; nan for one that neither occurs nor is predicted."""
    totals = counts.sum(axis=0) + counts.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(2.0 * np.diag(counts) / totals)


def balanced_accuracy(counts: Array) -> float:
    """Mean over the classes that occur of the share of their rows that are found."""
    totals = counts.sum(axis=1)
    occurs = totals > 0.0
    return float(np.mean(np.diag(counts)[occurs] / totals[occurs]))


_SCORES: dict[str, Callable[[Array], float]] = {
    "f1_macro": lambda counts: float(np.nanmean(_f1_scores(counts))),
    "accuracy": lambda counts: float(np.trace(counts) / counts.sum()),
    "balanced_accuracy": balanced_accuracy,
}
