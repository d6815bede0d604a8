"""Models of plants' own beside the shared one: python -m benchmarks.personal [--data DIR].

DIR has ``uci`` (../shared/data if not given). One row per case, model and plant, kept in
benchmarks/results/personal.csv; docs/publish_joining.py makes the tables of docs/joining.md of
them. All numbers are balanced accuracies on rows that no training saw.

pump    Four plants, one label in seven wrong, each with one size of leak; 10 seeds; epsilon 0.01,
        l2. "own leak": healthy test rows and the plant's leak; "all leaks": all test rows.
demo    The files of ``fdrsvm demo --data``, as ``fdrsvm fit --no-tune --scaling limits --set
        epsilon=0.01 --set norm=l2`` and ``personalise`` read them. "own": the plant's test file.
uci     The seven sets, four plants by a Dirichlet draw of the labels (0.5) or by k-means, 5 seeds:
        70 cases. Half of a plant's rows, class by class, train. FDRSVC() as it comes, with balanced
        classes. A plant counts if both classes occur in its test rows.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import balanced_accuracy_score

from fdrsvm import DRSVC, FDRSVC
from fdrsvm.core.arrays import Array
from fdrsvm.data.rows import DataSettings
from fdrsvm.data.rows import read_rows as read_rows_of_files
from fdrsvm.datasets import UCI_NAMES, load_uci, make_pump, partition
from fdrsvm.demo.plant_files import write_files
from fdrsvm.errors import ConvergenceWarning, DegenerateModelWarning
from fdrsvm.model.unscaling import learn_scaling

RESULTS = Path(__file__).parent / "results" / "personal.csv"
PUMP_SEEDS, UCI_SEEDS = 10, 5
KINDS = ("retune", "prox", "auto")
_FEWEST = 20  # rows of a Dirichlet plant


class Row(NamedTuple):
    """One model at one plant."""

    case: str
    seed: int
    plant: str
    model: str
    choice: str
    own: float  # on the plant's own rows; nan if they have one class only
    everywhere: float  # on all plants' test rows


class Plants(NamedTuple):
    """Training and test rows with their plants."""

    X: Array
    y: Array
    plants: Any
    X_test: Array
    y_test: Array
    plants_test: list[Any]  # by plant, which test rows are its own


def found(model: Any, X: Array, y: Array) -> float:
    """Balanced accuracy; nan where one class occurs."""
    if len(np.unique(y)) < 2:
        return float("nan")
    return float(balanced_accuracy_score(y, model.predict(X)))


def compare(case: str, seed: int, data: Plants, **ball: Any) -> Iterator[Row]:
    """Shared, alone, and each kind of personal model, plant by plant."""
    names = np.unique(data.plants)
    shared = FDRSVC(**ball).fit(data.X, data.y, clients=data.plants)
    personal = {
        kind: FDRSVC(**ball, personal=kind).fit(data.X, data.y, clients=data.plants)
        for kind in KINDS
    }
    for name, mine in zip(names.tolist(), data.plants_test, strict=True):
        rows = data.plants == name
        models: dict[str, tuple[str, Any]] = {"shared": ("", shared)}
        if len(np.unique(data.y[rows])) > 1:
            models["alone"] = ("", DRSVC(**ball).fit(data.X[rows], data.y[rows]))
        for kind, fitted in personal.items():
            models[kind] = (fitted.personal_[name].choice, fitted.for_client(name))
        for kind, (choice, model) in models.items():
            own = found(model, data.X_test[mine], data.y_test[mine])
            everywhere = found(model, data.X_test, data.y_test)
            yield Row(case, seed, str(name), kind, choice, own, everywhere)


def pump(seed: int) -> Iterator[Row]:
    """The plant with the smallest leak is called so."""
    data = make_pump("noisy-labels", random_state=seed)
    leaks = np.array(data.client_severities)
    names = np.array([f"leak {leak:g}" for leak in leaks])
    own = {
        name: np.isin(data.severity_test, (0.0, k)) for name, k in zip(names, leaks, strict=True)
    }
    plants = Plants(
        data.X_normalised,
        data.y,
        names[data.clients],
        data.X_test_normalised,
        data.y_test,
        [own[name] for name in np.unique(names)],
    )
    return compare("pump", seed, plants, epsilon=0.01, kappa=1.0, norm="l2")


def demo() -> Iterator[Row]:
    """The plants' files, scaled by the limits of their contract."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_files(home / "pump")
        contract = home / "pump" / "contract.json"
        train, test = (
            read_rows_of_files(DataSettings((home / "pump" / part,), contract=contract))
            for part in ("train", "test")
        )
    scaling, X = learn_scaling(train, "limits")
    own = [test.clients == name for name in test.client_names]
    plants = Plants(X, train.labels, train.clients, scaling.apply(test.X), test.labels, own)
    yield from compare("demo", 0, plants, epsilon=0.01, norm="l2")


def uci(name: str, kind: str, seed: int) -> Iterator[Row]:
    """Plants that differ in their mix of labels, or in where their rows lie."""
    data = load_uci(name)
    X = (data.X - data.X.min(axis=0)) / np.maximum(np.ptp(data.X, axis=0), 1e-12)
    if kind == "dirichlet":
        plants = partition.dirichlet(data.y, 4, 0.5, min_samples=_FEWEST, random_state=seed)
    else:
        plants = KMeans(4, n_init=1, random_state=seed).fit(X).labels_
    trains = np.zeros(len(X), dtype=bool)
    for g in np.unique(plants):
        rows = np.flatnonzero(plants == g)
        if len(rows) > 1:
            trains[rows] = partition.stratified(data.y[rows], 2, random_state=seed) == 0
    names = np.unique(plants[trains])
    mine = [plants[~trains] == g for g in names]
    split = Plants(X[trains], data.y[trains], plants[trains], X[~trains], data.y[~trains], mine)
    return compare(f"uci {name} {kind}", seed, split, class_weight="balanced")


def runs() -> Iterator[tuple[str, int, Any]]:
    """All that is measured."""
    for seed in range(PUMP_SEEDS):
        yield "pump", seed, lambda seed=seed: pump(seed)
    yield "demo", 0, demo
    for name in UCI_NAMES:
        for kind in ("dirichlet", "k-means"):
            for seed in range(UCI_SEEDS):
                given = (name, kind, seed)
                yield f"uci {name} {kind}", seed, lambda given=given: uci(*given)


def read_rows(path: Path = RESULTS) -> list[Row]:
    """The rows that were kept."""
    with path.open(newline="", encoding="utf-8") as file:
        kinds = get_type_hints(Row).values()
        return [
            Row(*(kind(cell) for kind, cell in zip(kinds, row, strict=True)))
            for row in list(csv.reader(file))[1:]
        ]


def main() -> None:
    """Measure what is not there yet and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    given = parser.parse_args()
    os.environ.setdefault("FDRSVM_DATA", str(given.data / "uci"))
    for kind in (ConvergenceWarning, DegenerateModelWarning):
        warnings.simplefilter("ignore", kind)
    is_new = not given.output.exists()
    kept = set() if is_new else {(row.case, row.seed) for row in read_rows(given.output)}
    with given.output.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(Row._fields)
        for case, seed, run in runs():
            if (case, seed) in kept or given.only not in case:
                continue
            for row in run():
                writer.writerow(f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row)
            file.flush()
            print(case, seed, flush=True)


if __name__ == "__main__":
    main()
