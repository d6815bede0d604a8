"""How often a model is right, client by client and in all; every number says which class it is of.

Given    TP faults found, FN faults missed, FP false alarms, TN other rows let pass, of two classes
precision TP / (TP + FP), recall TP / (TP + FN), false-alarm rate FP / (FP + TN), F1
2 TP / (2 TP + FP + FN); balanced accuracy is the mean recall of the classes that occur. A share of
no rows is nan, and so is the F1 of a class that neither occurs nor is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.data.rows import Rows, match_labels
from fdrsvm.data.training_data import Codes
from fdrsvm.decision.goals import count_rows, positive_class, score_counts
from fdrsvm.errors import InvalidInputError
from fdrsvm.model.linear_model import ALARM, PERSONAL, POSITIVE, TUNING, LinearModel

POOLED = "all"
MODEL = "model"  # what the scores of the model asked about are called


class Classifier(Protocol):
    """What can be scored: a LinearModel, or a classifier of scikit-learn with probabilities."""

    def predict(self, X: Array) -> npt.NDArray[Any]:
        """Labels."""


@dataclass(frozen=True)
class Score:
    """One model on the rows of one client, or of all; nan or None where there is nothing to say.

    Attributes
    ----------
    model, client : str
        Which model, and whose rows.
    n_rows : int
        How many they are.
    accuracy : float
        Share of the rows that it is right about.
    f1 : float
        Of the class ``f1_of``, or the mean over all classes if that is None.
    balanced_accuracy : float
        Mean recall of the classes that occur.
    f1_of : str or None
        Of two classes the one looked for, the fault; of more None.
    n_faults, n_found, n_false_alarms : int or None
        Rows of the fault class, those of them that are found, and other rows called faulty.
    false_alarm_rate : float
        False alarms as a share of the rows that are no fault.
    precision, recall : float
        Of the fault class.
    average_precision : float
        How well rows are ranked, wherever the score is cut; nan if all are of one class.
    recalls : mapping from str to float
        Of each class.
    counts : tuple of tuples of int, or None
        The true class in the row, the predicted one in the column.
    note : str or None
        Why there is no model.
    """

    model: str
    client: str
    n_rows: int
    accuracy: float = np.nan
    f1: float = np.nan
    balanced_accuracy: float = np.nan
    f1_of: str | None = None
    n_faults: int | None = None
    n_found: int | None = None
    n_false_alarms: int | None = None
    false_alarm_rate: float = np.nan
    precision: float = np.nan
    recall: float = np.nan
    average_precision: float = np.nan
    recalls: Mapping[str, float] = field(default_factory=dict)
    counts: tuple[tuple[int, ...], ...] | None = None
    note: str | None = None

    @property
    def n_healthy(self) -> int:
        """Rows that are no fault."""
        return self.n_rows - (self.n_faults or 0)


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

    Of two classes, ``positive`` is the fault. By default it is the one that the file names, which
    is the rarer one in training unless another was asked for; of a file without, the rarer one in
    ``rows``, of two equals the last.
    """
    check_fits(model, rows)
    place = fault_place(model, rows, positive)
    return score_each(MODEL, dict.fromkeys(rows.client_names, model), model.classes, rows, place)


def fault_place(model: LinearModel, rows: Rows, label: Any = None) -> int | None:
    """Position of the fault among two classes; None if there are more."""
    if len(model.classes) > 2:
        if label is not None:
            raise InvalidInputError(
                "fault", "is for two classes; of more the mean F1 is given", f"it is {label!r}"
            )
        return None
    kept = model.record.get(POSITIVE)
    if label is None and kept is not None and str(kept) in map(str, model.classes):
        label = kept
    totals = np.bincount(rows.codes(model.classes), minlength=2)
    return positive_class(model.classes, totals, label, "fault")


def score_each(
    kind: str,
    models: Mapping[str, Classifier | str],
    classes: Sequence[Any],
    rows: Rows,
    place: int | None,
) -> list[Score]:
    """Each client's rows by its model, which may know fewer classes, and all rows together.

    In place of a model may stand why there is none. All rows together are ranked by the scores
    that the models give them.
    """
    codes, names = rows.codes(classes), list(models)
    predicted = np.full(len(codes), -1, dtype=np.intp)
    ranks = np.full(len(codes), np.nan)
    groups = {name: rows.clients == name for name in names}
    for name, model in models.items():
        if not isinstance(model, str):
            mine = groups[name]
            predicted[mine] = match_labels(model.predict(rows.X[mine]), classes)
            if place is not None:
                ranks[mine] = fault_scores(model, rows.X[mine], classes[place])
    if len(names) > 1:
        if POOLED in groups:
            raise InvalidInputError(
                "client",
                f"must not be called {POOLED!r} beside others: that stands for all rows together",
                "one is; call it otherwise, --client NAME=FILE",
            )
        groups[POOLED] = np.ones(len(codes), dtype=bool)
    notes = {name: model for name, model in models.items() if isinstance(model, str)}
    if notes:
        notes[POOLED] = f"no model for {', '.join(notes)}"
    scores = []
    for name, mine in groups.items():
        if name not in notes:
            own = (codes[mine], predicted[mine], ranks[mine])
            scores.append(measure(kind, name, *own, classes, place))
            continue
        nothing = dict.fromkeys(map(str, classes), np.nan)
        fault = None if place is None else str(classes[place])
        count = int(mine.sum())
        scores.append(Score(kind, name, count, f1_of=fault, recalls=nothing, note=notes[name]))
    return scores


def fault_scores(model: Classifier, X: Array, fault: Any) -> Array:
    """The larger the more likely the fault: of ours the score, of others the probability."""
    if isinstance(model, LinearModel):
        scores = model.decision_function(X)
        return scores if fault == model.classes[1] else -scores
    known: Any = model
    return np.asarray(known.predict_proba(X)[:, known.classes_.tolist().index(fault)])


def average_precision(is_fault: npt.NDArray[np.bool_], ranks: Array) -> float:
    """Sum over the distinct scores, from the highest down, of (R_n - R_(n-1)) P_n.

    P_n and R_n are precision and recall of an alarm at the n-th of them and above; nan if all rows
    are of one class.
    """
    if is_fault.all() or not is_fault.any():
        return np.nan
    order, last = _in_order(-ranks)
    found = np.cumsum(is_fault[order])[last]
    gained = np.diff(found, prepend=0) / found[-1]
    return float(np.sum(gained * found / (last + 1.0)))


def _in_order(values: Array) -> tuple[Codes, Codes]:
    """The order of some values, and the last place in it of each that is different."""
    order = np.argsort(values, kind="stable")
    return order, np.flatnonzero(np.append(np.diff(values[order]) != 0.0, True))


def best_cut(scores: Array, is_second: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """The threshold with the best balanced accuracy on some rows of both classes, and that.

    It lies half-way between two scores.
    """
    order, last = _in_order(scores)
    passed = np.cumsum(is_second[order])[last]  # rows of the second class at or below
    right_first = (last + 1.0 - passed) / np.count_nonzero(~is_second)
    balanced = (right_first + 1.0 - passed / np.count_nonzero(is_second)) / 2.0
    at = int(np.argmax(balanced))
    low, high = (float(scores[order[min(last[at] + k, len(order) - 1)]]) for k in (0, 1))
    middle = low / 2.0 + high / 2.0
    return middle if low <= middle < high else low, float(balanced[at])


def measure(
    kind: str,
    client: str,
    codes: Codes,
    predicted: Codes,
    ranks: Array,
    classes: Sequence[Any],
    place: int | None,
) -> Score:
    """Every number, from true and predicted classes and how rows are ranked."""
    counts = count_rows(codes, predicted, len(classes))
    occur = counts.sum(axis=1)
    of_fault: dict[str, Any] = {"f1": score_counts(counts, "f1_macro")}
    if place is not None:
        found, false_alarms = counts[place, place], counts[1 - place, place]
        of_fault = {
            "f1": _share(2.0 * found, found + false_alarms + occur[place]),
            "f1_of": str(classes[place]),
            "n_faults": int(occur[place]),
            "n_found": int(found),
            "n_false_alarms": int(false_alarms),
            "false_alarm_rate": _share(false_alarms, occur[1 - place]),
            "precision": _share(found, found + false_alarms),
            "recall": _share(found, occur[place]),
            "average_precision": average_precision(codes == place, ranks),
        }
    return Score(
        kind,
        client,
        len(codes),
        accuracy=score_counts(counts, "accuracy"),
        balanced_accuracy=score_counts(counts, "balanced_accuracy"),
        recalls={str(label): _share(counts[k, k], occur[k]) for k, label in enumerate(classes)},
        counts=tuple(tuple(map(int, row)) for row in counts),
        **of_fault,
    )


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0.0 else np.nan


# --- in words ---


def percent(part: float) -> str:
    """With one digit after the point, and never 0 for what is above it."""
    if part != part:
        return "-"
    return f"{100.0 * part:.2g} %" if 0.0 < part < 5e-4 else f"{100.0 * part:.1f} %"


def found_words(one: Score) -> str:
    """Faults found, such as "45 of 101"."""
    return "-" if one.n_found is None else f"{one.n_found} of {one.n_faults}"


def false_alarm_words(one: Score) -> str:
    """False alarms with their share of the other rows, such as "45 (1.6 %)"."""
    if one.n_false_alarms is None or not one.n_healthy:
        return "-"
    return f"{one.n_false_alarms} ({percent(one.false_alarm_rate)})"


def counting_words(model: LinearModel, place: int | None, *, was_asked_for: bool = False) -> str:
    """What was counted as a fault, from which score on, and who chose that."""
    if place is None:
        return "A row is given the class with the largest score."
    fault, other = (repr(str(model.classes[k])) for k in (place, 1 - place))
    kept = "as the model file says" if POSITIVE in model.record else "the rarer class in these data"
    side = "above" if place == 1 else "not above"
    return (
        f"Counted as a fault is {fault} ({'as asked for' if was_asked_for else kept}), called so "
        f"where the score is {side} {model.threshold:.4g}; a false alarm is a row of {other} called"
        f" {fault}, in brackets as a share of all rows of {other}. {threshold_words(model)}"
    )


def one_class_words(scores: Sequence[Score]) -> list[str]:
    """Whose rows are all of one of two classes, and what the model's scores on them then show."""
    said = []
    for one in scores:
        if one.model != MODEL or one.n_faults is None or 0 < one.n_faults < one.n_rows:
            continue
        shows = "faults found, and not false alarms"
        if one.n_faults == 0:
            shows = "false alarms, and not whether faults are found"
        fault = "no" if one.n_faults == 0 else "only"
        whose = "The rows" if one.client == POOLED else f"The rows of {one.client}"
        said.append(f"{whose} have {fault} {one.f1_of!r}: they show {shows}.")
    return said


def threshold_words(model: LinearModel) -> str:
    """How the threshold of two classes was chosen, as far as the file tells."""
    tuning = model.record.get(TUNING) or {}
    goal, noise = tuning.get("goal"), tuning.get("label_noise")
    if isinstance((model.record.get(ALARM) or {}).get("rate"), float):
        return f"The threshold is that of an alarm with rate {model.record[ALARM]['rate']:g}."
    if goal is not None:
        wrong = f", with {percent(noise)} of the labels taken to be wrong" if noise else ""
        return f"The threshold was chosen for {goal}, by cross-validation in training{wrong}."
    if model.threshold == 0.0:
        return "The threshold is 0, where training leaves it: it was not tuned."
    if PERSONAL in model.record:
        return "The threshold was chosen by the plant, on held-out rows of its own."
    return "The file does not say how the threshold was chosen."
