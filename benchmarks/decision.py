"""How useful decisions are by default: python -m benchmarks.decision [--data DIR] [--output CSV].

DIR has ``ai4i/ai4i2020.tsv`` and ``uci`` with the seven sets of the paper. One row per case,
measure, model and seed, kept in benchmarks/results/decision.csv; docs/publish_decision.py makes the
tables of docs/decisions.md of them.

AI4I     Four plants by blocks of rows, five sensors, a third of the rows for the test, stratified;
         what ``fdrsvm fit`` does by default and for other goals, beside one fit cut at 0 and a
         pooled logistic regression (class weights, and the threshold by 5-fold cross-validation).
UCI      Four clients at random, 15 % of the training labels wrong, a third for the test.
Alarms   See benchmarks/alarms.py.   Probabilities   See benchmarks/probabilities.py.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    make_scorer,
)
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.alarms import ai4i_alarms, pump_alarms, read_ai4i
from benchmarks.probabilities import measure_ai4i, measure_pump
from fdrsvm import FDRSVC, FDRSVCCV, FederatedMinMaxScaler
from fdrsvm.data.rows import Rows
from fdrsvm.datasets import load_uci
from fdrsvm.estimators.training import FitSettings, train

RESULTS = Path(__file__).parent / "results" / "decision.csv"
SETS = ("banknote", "bcw", "mammographic", "parkinsons", "rice", "sonar", "ukm")
N_SPLITS = {"ai4i": 5, "uci": 4}
WRONG = 0.15
_SENSORS = 5
GOALS = {
    "default command": FitSettings(),
    "--goal f1": FitSettings(goal="f1"),
    "--goal cost=20": FitSettings(goal="cost=20"),
    "--goal false-alarms=1%": FitSettings(goal="false-alarms=1%"),
    "--no-tune": FitSettings(tune=False),
}


class Row(NamedTuple):
    """One number."""

    case: str
    model: str
    measure: str
    seed: int
    value: float


def ai4i_rows(path: Path) -> Iterator[Row]:
    """Of the command's model for each goal, on rows that it has not seen."""
    X, is_fault, plants = read_ai4i(path)
    X, y = X[:, :_SENSORS], is_fault.astype(int)
    names = tuple(f"sensor {k}" for k in range(_SENSORS))
    for seed in range(N_SPLITS["ai4i"]):
        kept, tested = train_test_split(
            np.arange(len(y)), test_size=1 / 3, random_state=seed, stratify=y
        )
        rows = Rows(X[kept], y[kept], np.array([f"plant {g}" for g in plants[kept]]), names)
        for name, settings in GOALS.items():
            model = train(replace(settings, fault="1"), rows).model
            scores, guess = model.decision_function(X[tested]), model.predict(X[tested])
            yield from _judge("AI4I", name, seed, y[tested], guess, scores)
        for goal, scorer in (
            ("balanced accuracy", "balanced_accuracy"),
            ("f1", make_scorer(f1_score)),
        ):
            logistic = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
            tuned = TunedThresholdClassifierCV(logistic, scoring=scorer, random_state=0)
            tuned.fit(X[kept], y[kept])
            scores = tuned.predict_proba(X[tested])[:, 1]
            name = f"pooled logistic regression, tuned for {goal}"
            yield from _judge("AI4I", name, seed, y[tested], tuned.predict(X[tested]), scores)


def _judge(case: str, name: str, seed: int, y: Any, guess: Any, scores: Any) -> Iterator[Row]:
    values = {
        "balanced accuracy": balanced_accuracy_score(y, guess),
        "F1 of the faults": f1_score(y, guess, zero_division=0.0),
        "average precision": average_precision_score(y, scores),
        "faults found": guess[y == 1].mean(),
        "false alarms": guess[y == 0].mean(),
    }
    for measure, value in values.items():
        yield Row(case, name, measure, seed, float(value))


def uci_rows(folder: Path) -> Iterator[Row]:
    """On true labels, with wrong ones in training."""
    for name in SETS:
        data = load_uci(name, folder)
        X, y = np.asarray(data.X), np.asarray(data.y)
        for seed in range(N_SPLITS["uci"]):
            rng = np.random.default_rng(100 + seed)
            clients = rng.integers(4, size=len(y)).astype(str)
            kept, tested = train_test_split(
                np.arange(len(y)), test_size=1 / 3, random_state=seed, stratify=y
            )
            wrong = np.where(rng.random(len(kept)) < WRONG, -y[kept], y[kept])
            names = tuple(f"x{k}" for k in range(X.shape[1]))
            rows = Rows(X[kept], wrong, clients[kept], names)
            scaler = FederatedMinMaxScaler().fit(X[kept], clients=clients[kept])
            scaled, unseen = scaler.transform(X[kept]), scaler.transform(X[tested])
            # As 0.1.0 did it: F1 of the class sorted last, at score 0, without class weights.
            before = FDRSVCCV(
                ["epsilon", "kappa"], scoring="f1", pos_label=1, threshold="zero", random_state=0
            )
            before.fit(scaled, wrong, clients=clients[kept])
            once = FDRSVC().fit(scaled, wrong, clients=clients[kept])
            guesses = {
                "default command": train(FitSettings(), rows).model.predict(X[tested]),
                "--goal f1-macro": train(FitSettings(goal="f1-macro"), rows).model.predict(
                    X[tested]
                ),
                "FDRSVC()": once.predict(unseen),
                "FDRSVCCV() as in 0.1.0": before.predict(unseen),
            }
            for model, guess in guesses.items():
                macro = f1_score(y[tested], guess, average="macro")
                balanced = balanced_accuracy_score(y[tested], guess)
                yield Row(f"UCI {name}", model, "macro F1", seed, float(macro))
                yield Row(f"UCI {name}", model, "balanced accuracy", seed, float(balanced))


def alarm_rows(path: Path) -> Iterator[Row]:
    """Shares of healthy rows and of faults that set off an alarm at 5 %, means of five seeds."""
    cases = {
        "AI4I": ai4i_alarms(path),
        "pump": pump_alarms(),
        "pump, wrong labels": pump_alarms(setting="noisy-labels"),
    }
    for case, alarms in cases.items():
        yield Row(case, "alarm at 5 %", "false alarms", -1, alarms.false_alarms)
        for kind, share in alarms.found.items():
            yield Row(case, "alarm at 5 %", f"found: {kind}", -1, share)
    pooled = ai4i_alarms(path, is_pooled=True)
    yield Row(
        "AI4I",
        "alarm at 5 %, pooled logistic regression",
        "found: faults",
        -1,
        pooled.found["faults"],
    )


def probability_rows(path: Path) -> Iterator[Row]:
    """Brier score and calibration error."""
    for one in [*measure_ai4i(path), *measure_pump()]:
        yield Row(one.case, f"probabilities: {one.probabilities}", "Brier", one.seed, one.brier)
        yield Row(
            one.case, f"probabilities: {one.probabilities}", "ECE", one.seed, one.calibration_error
        )


def read_rows(path: Path = RESULTS) -> list[Row]:
    """The rows that were kept."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(case, model, measure, int(seed), float(value))
            for case, model, measure, seed, value in list(csv.reader(file))[1:]
        ]


def main() -> None:
    """Measure everything and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    ai4i = given.data / "ai4i" / "ai4i2020.tsv"
    rows = [
        *ai4i_rows(ai4i),
        *uci_rows(given.data / "uci"),
        *alarm_rows(ai4i),
        *probability_rows(ai4i),
    ]
    with given.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows((*row[:4], f"{row.value:.6g}") for row in rows)


if __name__ == "__main__":
    main()
