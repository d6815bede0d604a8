"""A search in one table, as scikit-learn's ``cv_results_`` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from fdrsvm.core.arrays import Array
from fdrsvm.estimators.counts import Scoring, score_counts
from fdrsvm.estimators.search import Outcome


def tabulate(
    points: Sequence[Mapping[str, Any]],
    outcomes: Sequence[Sequence[Outcome]],
    scoring: Scoring,
    positive: int = 1,
) -> dict[str, Any]:
    """A dict of columns with an entry for each configuration; ``outcomes`` has its folds.

    ``positive`` is the position of the class that "f1" is of.
    """
    counts = np.array([[fold.counts for fold in folds] for folds in outcomes])
    errors = [next((fold.error for fold in folds if fold.error), "") for folds in outcomes]
    by_fold = np.array(
        [[score_counts(fold, scoring, positive) for fold in folds] for folds in counts]
    )
    pooled = np.array([score_counts(folds.sum(axis=0), scoring, positive) for folds in counts])
    pooled[[error != "" for error in errors]] = np.nan
    spread = [_mean_and_std(scores[~np.isnan(scores)]) for scores in by_fold]
    mean, std = np.where(np.isnan(pooled), np.nan, np.transpose(spread))
    return {
        "params": [dict(point) for point in points],
        **_columns(points),
        **{f"split{k}_test_score": scores for k, scores in enumerate(by_fold.T.copy())},
        "mean_test_score": mean,
        "std_test_score": std,
        "pooled_test_score": pooled,
        "rank_test_score": rankdata(-np.nan_to_num(pooled, nan=-np.inf), "min").astype(np.int32),
        "max_gap": np.array([max(fold.gap for fold in folds) for folds in outcomes]),
        "error": np.array(errors, dtype=object),
        "counts": counts,
    }


def _mean_and_std(scores: Array) -> tuple[float, float]:
    return (float(scores.mean()), float(scores.std())) if scores.size else (np.nan, np.nan)


def _columns(points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A column a parameter, masked where a configuration leaves it as it is."""
    return {
        f"param_{name}": _column(
            [point.get(name) for point in points], [name not in point for point in points]
        )
        for name in sorted({name for point in points for name in point})
    }


def _column(values: Sequence[Any], masked: Sequence[bool]) -> npt.NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        column[at] = value  # one by one, since a value may be a list
    return np.ma.array(column, mask=masked)
