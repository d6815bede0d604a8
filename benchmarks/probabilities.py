"""How good the probabilities are: Brier score and calibration error before and after.

    OMP_NUM_THREADS=1 python -m benchmarks.probabilities [ai4i2020.tsv]

Without the file of AI4I 2020 only the pump. "before" takes sigma(score), which nobody should, as
what a score would be if it were log-odds. Five splits of AI4I, ten draws of the pump.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fdrsvm import FDRSVC, FederatedCalibrator, FederatedMinMaxScaler
from fdrsvm.core.arrays import Array
from fdrsvm.datasets import make_pump
from fdrsvm.decision.calibration import (
    CalibrationRows,
    brier_score,
    calibrate,
    expected_calibration_error,
    probabilities,
)
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.model.sigmoids import sigma
from fdrsvm.model.unscaling import Scaling

N_FOLDS = 5
N_SPLITS = 5
PUMP_NOISE = 0.14  # of the labels of make_pump("noisy-labels"), as its documentation has it


@dataclass(frozen=True)
class Quality:
    """On the rows of a test, of the class looked for."""

    case: str
    seed: int
    probabilities: str
    brier: float
    calibration_error: float


def measure_ai4i(path: Path, n_splits: int = N_SPLITS) -> Iterator[Quality]:
    """Four plants by block of rows; two thirds of each train, with out-of-fold scores."""
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    X = np.array([[float(cell) for cell in line[3:8]] for line in lines[1:]])
    y = np.array([line[8] == "1" for line in lines[1:]])
    plants = np.repeat(np.arange(4), 2500)
    for seed in range(n_splits):
        rng = np.random.default_rng(seed)
        trains = rng.permuted(np.arange(10_000) % 3) < 2
        model = _train(X[trains], y[trains], plants[trains])
        rows = _out_of_fold(X[trains], y[trains], plants[trains], rng)
        test = X[~trains], y[~trains]
        yield _judge("AI4I", seed, "before", sigma(model.decision_function(test[0])), test[1])
        for name, own in (("shared", False), ("per client", True)):
            known = calibrate(model, rows, per_client=own).model
            found = np.concatenate(
                [probabilities(known, test[0][plants[~trains] == p], p)[:, 1] for p in range(4)]
            )
            yield _judge("AI4I", seed, name, found, test[1])


def _train(X: Array, y: Any, plants: Any) -> Any:
    """A linear model of readings as they are: the scaling is folded into it."""
    scaler = FederatedMinMaxScaler().fit(X, clients=plants)
    model = FDRSVC(class_weight="balanced").fit(scaler.transform(X), y, clients=plants)
    return Scaling("minmax", scaler.low_, scaler.range_).fold(model._linear_model())


def _out_of_fold(X: Array, y: Any, plants: Any, rng: Any) -> dict[str, CalibrationRows]:
    folds, scores = rng.permuted(np.arange(len(y)) % N_FOLDS), np.empty(len(y))
    for fold in range(N_FOLDS):
        rest = folds != fold
        scores[~rest] = _train(X[rest], y[rest], plants[rest]).decision_function(X[~rest])
    codes, ones = y.astype(np.intp), np.ones(len(y))
    return {
        str(p): CalibrationRows(*(values[plants == p] for values in (scores, codes, ones)))
        for p in np.unique(plants)
    }


def measure_pump(n_draws: int = 10) -> Iterator[Quality]:
    """Wrong labels in training and calibration, judged by the true labels of the test."""
    for seed in range(n_draws):
        pump = make_pump("noisy-labels", random_state=seed)
        model = FDRSVC(epsilon=0.01, norm="l2").fit(pump.X_normalised, pump.y, clients=pump.clients)
        X, y = pump.X_test_normalised, pump.y_test == 1
        # Which client a row of the test belongs to: the one that knows its severity.
        severity = np.array(pump.client_severities)
        client = np.abs(severity - pump.severity_test[:, None]).argmin(axis=1)
        healthy = np.flatnonzero(~y)
        client[healthy] = np.arange(len(healthy)) % len(severity)
        yield _judge("pump", seed, "before", sigma(model.decision_function(X)), y)
        for name, noise, own in (
            ("label_noise=0", 0.0, False),
            ("shared", PUMP_NOISE, False),
            ("per client", PUMP_NOISE, True),
        ):
            calibrator = FederatedCalibrator(label_noise=noise, per_client=own)
            calibrator.fit(model, pump.X_normalised, pump.y, clients=pump.clients)
            found = calibrator.predict_proba(X, clients=client)[:, 1]
            yield _judge("pump", seed, name, found, y)


def _judge(case: str, seed: int, name: str, found: Array, y: Any) -> Quality:
    return Quality(case, seed, name, brier_score(y, found), expected_calibration_error(y, found))


def summarise(rows: list[Quality]) -> list[tuple[str, str, float, float]]:
    """Means over the seeds, by case and kind of probability."""
    kinds = dict.fromkeys((row.case, row.probabilities) for row in rows)
    means = []
    for kind in kinds:
        own = [row for row in rows if (row.case, row.probabilities) == kind]
        brier = float(np.mean([row.brier for row in own]))
        means.append((*kind, brier, float(np.mean([row.calibration_error for row in own]))))
    return means


def main(paths: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = [*measure_pump()]
    for path in paths:
        rows += measure_ai4i(Path(path))
    print("| data | probabilities | Brier | calibration error |\n|---|---|---|---|")
    for case, kind, brier, error in summarise(rows):
        print(f"| {case} | {kind} | {brier:.4f} | {error:.4f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
