"""What a user wants of decisions, as a number computed from counts of rows.

Counts are an array of shape (n_classes, n_classes) with the true class in the row and the predicted
one in the column. What is wanted is a name, a goal about one of two classes, or any callable on the
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import betaincinv

from fdrsvm.core.arrays import Array, check_choice, check_positive
from fdrsvm.data.training_data import Codes
from fdrsvm.errors import InvalidInputError

F1 = "f1"  # of the class that is looked for, as are the goals below
DEFAULT_SCORING = "balanced_accuracy"


@dataclass(frozen=True)
class MissCost:
    """The goal of least cost, where a fault that is missed costs as much as ``ratio`` false alarms.

    Its score is minus the cost per row, in false alarms.
    """

    ratio: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", check_positive(self.ratio, "ratio"))

    def of(self, counts: Array, positive: int) -> float:
        """From counts as :func:`score_counts` takes them."""
        missed, alarms = counts[positive, 1 - positive], counts[1 - positive, positive]
        return -float((self.ratio * missed + alarms) / counts.sum())

    def __str__(self) -> str:
        return f"least cost, where a missed fault costs as much as {self.ratio:g} false alarms"


@dataclass(frozen=True)
class FalseAlarmRate:
    """The goal to find most faults while at most a share ``rate`` of healthy rows is a false alarm.

    Its score is the share of faults found; above the rate, minus the share of false alarms.
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check_positive(self.rate, "rate"))
        if self.rate >= 1.0:
            raise InvalidInputError("rate", "must be below 1", f"it is {self.rate:g}")

    def of(self, counts: Array, positive: int) -> float:
        """From counts as :func:`score_counts` takes them."""
        shares = counts[:, positive] / np.maximum(counts.sum(axis=1), np.finfo(float).tiny)
        false_alarms = float(shares[1 - positive])
        return float(shares[positive]) if false_alarms <= self.rate else -false_alarms

    def __str__(self) -> str:
        return f"most faults found with at most {100.0 * self.rate:g} % false alarms"


Goal: TypeAlias = MissCost | FalseAlarmRate
Scoring: TypeAlias = str | Goal | Callable[[Array], float]


def count_rows(
    codes: Codes, predicted: Codes, n_classes: int, weights: Array | None = None
) -> Array:
    """The counts of some rows, from the positions of their true and predicted classes.

    A row of weight 2 counts as two.
    """
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (codes, predicted), 1.0 if weights is None else weights)
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
        Position of the class that is looked for.
    """
    if not counts.any():
        return np.nan
    if isinstance(scoring, MissCost | FalseAlarmRate):
        return scoring.of(counts, positive)
    if scoring == F1:
        return float(np.nan_to_num(_f1_scores(counts)[positive]))
    score = _SCORES[scoring] if isinstance(scoring, str) else scoring
    return float(score(counts))


def check_scoring(scoring: Any, n_classes: int) -> Scoring:
    """A name that suits the number of classes, or a callable; None is the default."""
    if scoring is None:
        return DEFAULT_SCORING
    is_goal = isinstance(scoring, MissCost | FalseAlarmRate)
    if callable(scoring) and not is_goal:
        return scoring  # type: ignore[no-any-return]
    if not is_goal:
        check_choice(scoring, "scoring", (F1, *_SCORES))
    if (is_goal or scoring == F1) and n_classes > 2:
        rule = f"{scoring!r} is for two classes, 'f1_macro' for more (--goal f1-macro)"
        raise InvalidInputError("scoring", rule, f"there are {n_classes}")
    return scoring  # type: ignore[no-any-return]


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
    # 1 is 1.0, and "1" is 1: what is typed is text.
    same = [k for k, one in enumerate(classes) if one == pos_label or str(one) == str(pos_label)]
    if not same:
        names = [str(one) for one in classes]
        raise InvalidInputError(
            argument, f"must be one of the classes {names}", f"it is {pos_label!r}"
        )
    return same[0]


def _f1_scores(counts: Array) -> Array:
    """2 TP / (2 TP + FP + FN) of each class; nan for one that neither occurs nor is predicted."""
    totals = counts.sum(axis=0) + counts.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(2.0 * np.diag(counts) / totals)


def share_limits(parts: Any, wholes: Any, level: float) -> tuple[Array, Array]:
    """Lower and upper limit of shares, each exceeded with probability ``level`` at most.

    By Clopper and Pearson: the quantiles ``level`` of Beta(k, n - k + 1) and 1 - ``level`` of
    Beta(k + 1, n - k); 0 and 1 at the ends.
    """
    k, n = np.asarray(parts, dtype=float), np.asarray(wholes, dtype=float)
    low = np.where(k > 0.0, betaincinv(np.maximum(k, 1.0), n - k + 1.0, level), 0.0)
    high = np.where(k < n, betaincinv(k + 1.0, np.maximum(n - k, 1.0), 1.0 - level), 1.0)
    return low, high


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


# As typed; two more goals have a number.
_TYPED = {"balanced": DEFAULT_SCORING, "f1": F1, "f1-macro": "f1_macro", "accuracy": "accuracy"}
DEFAULT_GOAL = "balanced"
TYPED_FORMS = "balanced, f1, f1-macro, accuracy, cost=RATIO or false-alarms=PERCENT%"


def read_goal(text: str) -> Scoring:
    """What a user typed, such as "f1", "cost=20" or "false-alarms=1%"."""
    name, _, value = text.partition("=")
    try:
        if text in _TYPED:
            return _TYPED[text]
        if name == "cost":
            return MissCost(float(value))
        if name == "false-alarms" and value.endswith("%"):  # 0.5 alone could mean either
            return FalseAlarmRate(float(value[:-1]) / 100.0)
        raise KeyError(name)
    except (KeyError, ValueError) as error:
        why = f": {error.argument} {error.rule}" if isinstance(error, InvalidInputError) else ""
        raise InvalidInputError("goal", f"must be {TYPED_FORMS}", f"it is {text!r}{why}") from None


def goal_in_words(scoring: Scoring, fault: Any = None) -> str:
    """For people; ``fault`` is the label of the class that is looked for."""
    if isinstance(scoring, str):
        words = {F1: f"F1 of {str(fault)!r}", "f1_macro": "mean F1 over the classes"}
        return words.get(scoring, scoring.replace("_", " "))
    return str(scoring) if isinstance(scoring, MissCost | FalseAlarmRate) else "a score of your own"
