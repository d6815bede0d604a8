"""Plants at which a model does clearly worse than at the others, or hardly better than guessing.

Given    k_c of n_c rows of class c found at a plant, K_c of N_c at all others; C classes with rows
         at both
Limits   one-sided limits of Clopper and Pearson on each recall, at the level a / (2 C), so that
         all of them hold at once with probability 1 - a whatever the true recalls
Worse    mean over c of the upper limits at the plant < mean of the lower limits elsewhere, and its
         balanced accuracy is lower by 0.05 or more, for less is not worth a word: [straggler]
Guess    mean of the upper limits < 1 / C + 0.05, where all classes of the model occur

If a plant's true recalls are those of the others, "worse" has a probability of at most a; a is 5 %
divided by the number of plants. So a plant with few rows is not blamed for chance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.data.rows import Rows
from fdrsvm.decision.goals import share_limits
from fdrsvm.inspection.scores import (
    MODEL,
    POOLED,
    Score,
    best_cut,
    false_alarm_words,
    found_words,
)
from fdrsvm.model.linear_model import LinearModel

LEVEL = 0.05
MATTERS = 0.05


def is_clearly_below(one: Array, other: Array, level: float = LEVEL) -> bool:
    """Whether the balanced accuracy of one table of counts is below another's: [straggler]."""
    shared = (one.sum(axis=1) > 0.0) & (other.sum(axis=1) > 0.0)
    if not shared.any():
        return False
    each = level / (2.0 * np.count_nonzero(shared))
    (_, high), (low, _) = (
        share_limits(np.diag(counts)[shared], counts.sum(axis=1)[shared], each)
        for counts in (one, other)
    )
    return bool(high.mean() < low.mean()) and recall(one, shared) <= recall(other, shared) - MATTERS


def recall(counts: Array, among: Array) -> float:
    """Mean recall of some classes."""
    return float(np.mean(np.diag(counts)[among] / counts.sum(axis=1)[among]))


def is_hardly_a_guess(counts: Array, level: float = LEVEL) -> bool:
    """Whether labels drawn at random would be about as good; classes must all occur."""
    totals = counts.sum(axis=1)
    if not totals.all():
        return False
    _, high = share_limits(np.diag(counts), totals, level / len(counts))
    return bool(high.mean() < 1.0 / len(counts) + MATTERS)


def stragglers(model: LinearModel, rows: Rows, scores: Sequence[Score]) -> dict[str, str]:
    """What is wrong at which plant, and what to do, one sentence each.

    ``scores`` are those of :func:`fdrsvm.inspection.scores.score` on these rows.
    """
    every = [one for one in scores if one.model == MODEL]  # all rows come last
    plants = [one for one in every if one.client != POOLED]
    whole, level = np.array(every[-1].counts, dtype=float), LEVEL / max(len(plants), 1)
    if is_hardly_a_guess(whole, level):
        return {POOLED: f"the model is hardly better than guessing{_numbers(every[-1])}: {_MEND}"}
    said = {}
    for one in plants:
        counts = np.array(one.counts, dtype=float)
        others = whole - counts
        if is_clearly_below(counts, others, level):
            shared = (counts.sum(axis=1) > 0.0) & (others.sum(axis=1) > 0.0)
            beside = f" against {recall(others, shared):.3f} at the others"
            verb = "does clearly worse than at the other plants"
        elif is_hardly_a_guess(counts, level):
            beside, verb = "", "is hardly better than guessing"
        else:
            continue
        said[one.client] = (
            f"at {one.client!r} the model {verb}{_numbers(one, beside)}: "
            f"{_remedy(model, rows.of(one.client), one)}"
        )
    return said


_MEND = (
    "check units, ranges and labels of its columns (fdrsvm check), and train with rows in which "
    "both classes differ"
)


def _numbers(one: Score, beside: str = "") -> str:
    value = one.balanced_accuracy
    counted = ""
    if one.n_faults is not None:
        counted = f"; found {found_words(one)} {one.f1_of!r}, false alarms {false_alarm_words(one)}"
    return f" (balanced accuracy {value:.3f}{beside}{counted})"


def _remedy(model: LinearModel, own: Rows, one: Score) -> str:
    """A threshold, where another one would help; else where to look."""
    if len(model.classes) == 2 and one.n_faults and one.n_healthy:
        is_second = own.codes(model.classes) == 1
        cut, reached = best_cut(model.decision_function(own.X), is_second)
        if reached >= max(one.balanced_accuracy, 0.5) + 2.0 * MATTERS:
            return (
                f"its rows are ranked better than they are cut: with a threshold of {cut:.4g} "
                f"instead of {model.threshold:.4g} the balanced accuracy on these rows would be "
                f"{reached:.3f}; give it a threshold of its own (fdrsvm alarm, from healthy rows)"
            )
    return (
        "compare units, ranges and labels of its columns with those of the other plants (fdrsvm "
        "check), and see whether it is better off alone (fdrsvm evaluate ... --compare with "
        "training rows)"
    )
