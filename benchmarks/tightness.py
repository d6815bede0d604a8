"""How loose certificates of feature maps are: python -m benchmarks.tightness [--data DIR].

DIR has ``uci`` and ``ai4i/ai4i2020.tsv`` (../shared/data if not given). One row per data set, map,
norm and radius, kept in benchmarks/results/tightness.csv; docs/publish_tightness.py makes the table
of docs/maps.md of them. Of each trained model: the bound that training minimised, the best bound
that is proved of this model, and what an attack on the sensors reaches, each summed over clients.

pump       100 rows at each of four plants, 14 sensors, wrong labels; gap 1e-3
banknote   the UCI set, 4 sensors, four clients; gap 1e-3
AI4I       four plants by row block, five sensors, both classes weigh as much; gap 1e-3
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from benchmarks.federated import uci_parts
from benchmarks.rounds import ai4i, pump
from fdrsvm import FDRSVC, worst_case_risk
from fdrsvm.core.vectors import NORMS

RESULTS = Path(__file__).parent / "results" / "tightness.csv"
MAPS = ("additive", "additive-pairs", "fourier")
RADII = (0.001, 0.01)
_TOL, _KAPPA = 1e-3, 1.0


class Row(NamedTuple):
    """One trained model."""

    data: str
    features: str
    norm: str
    epsilon: float
    mean_loss: float
    trained: float
    certified: float
    attack: float

    @property
    def slack(self) -> float:
        """How far what is certified of the model is above what the attack reaches."""
        return self.certified / self.attack - 1.0


def banknote() -> Any:
    """Features, labels, plants and weights."""
    parts = uci_parts("banknote")
    X, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    plants = np.repeat(np.arange(len(parts)), [len(part[1]) for part in parts])
    return X, y, plants, np.ones(len(y))


def measure(name: str, data: Any, features: str, norm: Any, epsilon: float) -> Row:
    """Trains, certifies and attacks."""
    X, y, plants, weights = data
    share = (y > 0.0).mean()
    is_weighted = weights.min() < weights.max()
    class_weight = {1.0: 0.5 / share, -1.0: 0.5 / (1.0 - share)} if is_weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FDRSVC(
            features=features,
            norm=norm,
            epsilon=epsilon,
            kappa=_KAPPA,
            tol=_TOL,
            class_weight=class_weight,
        ).fit(X, y, clients=plants)
    sums = np.zeros(3)
    for plant in np.unique(plants):
        own = plants == plant
        given = {"sample_weight": weights[own], "intercept": float(model.intercept_[0])}
        rows = model.coef_[0], X[own], y[own]
        made = {"features": model.feature_map_, "norm": norm, "kappa": _KAPPA}
        risk = worst_case_risk(*rows, epsilon=epsilon, **made, **given)
        plain = model.feature_map_.apply(X[own])
        mean = worst_case_risk(model.coef_[0], plain, y[own], epsilon=0.0, **given).value
        sums += [mean, risk.value, risk.proof]
    mean, certified, attack = (sums / len(np.unique(plants))).tolist()
    row = Row(name, features, norm, epsilon, mean, model.objective_, certified, attack)
    print(f"{name} {features} {norm} {epsilon:g}: slack {row.slack:.3%}", flush=True)
    return row


def read_rows(path: Path = RESULTS) -> list[Row]:
    """As they were kept."""
    if not path.exists():
        return []
    kinds = get_type_hints(Row)
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(**{name: kinds[name](text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]


def write_rows(rows: list[Row], path: Path = RESULTS) -> None:
    """All of them."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(
            [f"{value:.8g}" if isinstance(value, float) else value for value in row] for row in rows
        )


def main() -> None:
    """Measures what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("..") / "shared" / "data")
    folder = parser.parse_args().data
    os.environ.setdefault("FDRSVM_DATA", str(folder / "uci"))
    sets: dict[str, Callable[[], Any]] = {
        "pump": pump,
        "banknote": banknote,
        "AI4I": lambda: ai4i(folder / "ai4i" / "ai4i2020.tsv"),
    }
    rows = read_rows()
    known = {row[:4] for row in rows}
    for name, read in sets.items():
        data = read()
        for features in MAPS:
            for norm in NORMS:
                for epsilon in RADII:
                    if (name, features, norm, epsilon) not in known:
                        rows.append(measure(name, data, features, norm, epsilon))
                        write_rows(rows)


if __name__ == "__main__":
    main()
