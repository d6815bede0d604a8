"""Parameters by cross-validation on F-1, then a fit on all training rows and a look at the test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm_paper.methods import Method, Parameters
from fdrsvm_paper.samples import Fold, Sample
from fdrsvm_paper.scores import score

RESULT_COLUMNS = ("f1", "accuracy", "rounds", "parameters", "cv_f1", "gap", "seconds", "seed")


def evaluate_methods(sample: Sample, methods: Iterable[Method], seed: int) -> list[dict[str, Any]]:
    """One row per method, tuned on the same folds and tested on the same rows."""
    folds, whole = sample.folds(), sample.whole()
    return [
        {"method": method.name, **_row(method, folds, whole), "seed": seed} for method in methods
    ]


def _row(method: Method, folds: Sequence[Fold], whole: Fold) -> dict[str, Any]:
    start = time.process_time()
    chosen, mark, cv_f1 = choose(method, folds)
    used = {**chosen, **(method.refit or {})}
    trained = method.train(whole.clients(method.normalised), used)
    seconds = time.process_time() - start
    f1, accuracy = score(
        trained.models[mark : mark + 1], whole.rows_out(method.normalised), whole.y_out
    )
    return {
        "f1": float(f1[0]),
        "accuracy": float(accuracy[0]),
        "rounds": trained.rounds[mark] if trained.rounds[mark] is not None else "",
        "parameters": json.dumps(dict(used)),
        "cv_f1": cv_f1,
        "gap": trained.gap if trained.gap is not None else "",
        "seconds": round(seconds, 4),
    }


def choose(method: Method, folds: Sequence[Fold]) -> tuple[Parameters, int, float | str]:
    """Parameters and number of the mark with the best mean F-1; of equals the first."""
    if len(method.grid) == method.n_marks == 1:
        return method.grid[0], 0, ""
    table: list[list[Array]] = []
    for parameters in method.grid:
        table.append([])
        for fold in folds:
            models = method.train(fold.clients(method.normalised), parameters).models
            X_out = fold.rows_out(method.normalised)
            table[-1].append(score(models, X_out, fold.y_out).f1)
    means = np.array(table).mean(axis=1)  # parameters x marks
    best, mark = np.unravel_index(int(np.argmax(means)), means.shape)
    return method.grid[int(best)], int(mark), float(means[best, mark])
