"""F-1 of the class +1, and the share of rows that a linear model without intercept gets right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array


class Scores(NamedTuple):
    """One entry per model."""

    f1: Array
    accuracy: Array


def score(models: Array, X: Array, y: Array) -> Scores:
    """Of each row of ``models``. A score of 0 counts as +1; F-1 is 0 if nothing is found."""
    with np.errstate(over="ignore", invalid="ignore"):  # a diverged model predicts what it may
        predicted = X @ models.T >= 0.0
    truth = (y > 0.0)[:, None]
    hits = (predicted & truth).sum(axis=0)
    named = predicted.sum(axis=0) + truth.sum()
    f1 = np.divide(2.0 * hits, named, out=np.zeros(len(models)), where=named > 0)
    return Scores(f1, (predicted == truth).mean(axis=0))
