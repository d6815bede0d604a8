"""How often alarms are false and what they find: python -m benchmarks.alarms [--ai4i FILE].

AI4I    Four plants by blocks of rows; half of each plant's rows train, a quarter of them sets its
        threshold at 5 %, a quarter is for the test; a linear FDRSVC with balanced class weights on
        features scaled to [0, 1]. Mean of the splits.
Pump    Training rows without wrong labels; half of the healthy test rows set one threshold at 5 %,
        the other half and all leaks are for the test, by the size of the leak.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from fdrsvm import FDRSVC, AlarmThreshold, FederatedMinMaxScaler
from fdrsvm.datasets import make_pump

RATE = 0.05
_PLANTS = 4
_AI4I_FEATURES = (3, 4, 5, 6, 7)  # temperatures, speed, torque, wear
_TYPES = ("L", "M", "H")


class Alarms(NamedTuple):
    """Shares of new rows that set off the alarm: of healthy ones and, by kind, of faults."""

    false_alarms: float
    found: dict[str, float]


def read_ai4i(path: Path) -> tuple[Any, Any, Any]:
    """Features, whether a row is a fault, and its plant."""
    with path.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file, delimiter="\t")
    X = np.array([[float(row[k]) for k in _AI4I_FEATURES] for row in rows])
    types = np.array([[row[2] == each for each in _TYPES] for row in rows], dtype=float)
    plants = np.arange(len(rows)) * _PLANTS // len(rows)
    return np.column_stack([X, types]), np.array([row[8] == "1" for row in rows]), plants


def ai4i_alarms(
    path: Path, n_splits: int = 5, rate: float = RATE, *, is_pooled: bool = False
) -> Alarms:
    """Mean over splits; pooled is logistic regression on the rows of all plants."""
    X, is_fault, plants = read_ai4i(path)
    false, found = [], []
    for seed in range(n_splits):
        part = np.random.default_rng(seed).permutation(len(X)) % 4  # 0 and 1 train
        train, calibrate, test = part < 2, (part == 2) & ~is_fault, part == 3
        scaler = FederatedMinMaxScaler().fit(X[train], clients=plants[train])
        scaled = scaler.transform(X)
        model: Any = LogisticRegression(C=1e3, max_iter=1000)
        known = {}
        if not is_pooled:
            model = FDRSVC(epsilon=1e-4, class_weight="balanced", tol=1e-3)
            known = {"clients": plants[train]}
        model.fit(scaled[train], is_fault[train], **known)
        alarm = AlarmThreshold(rate).fit(model, scaled[calibrate], clients=plants[calibrate])
        alarms = alarm.alarms(scaled[test], plants[test])
        false.append(alarms[~is_fault[test]].mean())
        found.append(alarms[is_fault[test]].mean())
    return Alarms(float(np.mean(false)), {"faults": float(np.mean(found))})


def pump_alarms(n_seeds: int = 5, rate: float = RATE, setting: str = "nominal") -> Alarms:
    """Mean over seeds."""
    false, found = [], []
    for seed in range(n_seeds):
        pump = make_pump(setting, random_state=seed)
        model = FDRSVC(epsilon=0.01, norm="l2").fit(pump.X_normalised, pump.y, clients=pump.clients)
        healthy = np.flatnonzero(pump.y_test == -1)
        alarm = AlarmThreshold(rate, pos_label=1).fit(model, pump.X_test_normalised[healthy[::2]])
        alarms = alarm.alarms(pump.X_test_normalised)
        false.append(alarms[healthy[1::2]].mean())
        sizes = np.unique(pump.severity_test[pump.y_test == 1])
        found.append([alarms[pump.severity_test == size].mean() for size in sizes])
    means = np.mean(found, axis=0).tolist()
    return Alarms(float(np.mean(false)), dict(zip(map(str, sizes.tolist()), means, strict=True)))


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ai4i", type=Path, help="ai4i2020.tsv")
    path = parser.parse_args().ai4i
    results = {"pump": pump_alarms(), "pump, noisy labels": pump_alarms(setting="noisy-labels")}
    if path is not None:
        results["AI4I"] = ai4i_alarms(path)
        results["AI4I, logistic regression"] = ai4i_alarms(path, is_pooled=True)
    for name, one in results.items():
        found = ", ".join(f"{kind} {share:.3f}" for kind, share in one.found.items())
        print(f"{name}: false alarms {one.false_alarms:.3f}, found {found}")


if __name__ == "__main__":
    main()
