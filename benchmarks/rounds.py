"""Rounds to a certified gap, with and without a metric: python -m benchmarks.rounds [--data DIR].

DIR has ``uci`` and ``ai4i/ai4i2020.tsv`` (../shared/data if not given). One row per case and
setting, kept in benchmarks/results/rounds.csv; docs/publish_rounds.py makes the tables of
docs/federated.md of them; rows that are there are not measured again. CPU seconds of this process,
clients and server, one thread; the settings of a case are timed one after the other, so that what
else the machine does slows them alike.

UCI        The seven sets as in benchmarks/federated.py, linf, to 1e-4
Synthetic  Two noisy classes, 500 rows at each of four clients, 60 and 160 features, linf, to 1e-4
Additive   Six ramps per sensor, linf, with an intercept, to 1e-3; pump with wrong labels, and AI4I
           with class weights, five sensors, four plants by row block
Fourier    200 or 400 waves, gamma 4/d, l2, the same otherwise
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from benchmarks.alarms import read_ai4i
from benchmarks.federated import make_clients, uci_parts
from benchmarks.scaling import blob_parts
from fdrsvm.core.arrays import Array
from fdrsvm.datasets import UCI_NAMES, make_pump
from fdrsvm.federated import Bundle, InProcess, make_client, run_rounds

RESULTS = Path(__file__).parent / "results" / "rounds.csv"
SETTINGS = {
    "2 points": Bundle(),  # the default, and all that there was before
    "4 points": Bundle(points_per_round=4),
    "metric": Bundle(metric="second-moments"),
    "metric, 4 points": Bundle(metric="second-moments", points_per_round=4),
    "metric, 6 points": Bundle(metric="second-moments", points_per_round=6),
    "summed": Bundle(cuts="summed"),
    "summed, metric": Bundle(cuts="summed", metric="second-moments"),
    "summed, metric, 6 points": Bundle(cuts="summed", metric="second-moments", points_per_round=6),
}
_SENSORS, _RAMPS, _AT_MOST = 5, 6, 150


class Row(NamedTuple):
    """One run."""

    case: str
    features: int
    setting: str
    tol: float
    rounds: int
    gap: float
    kilobytes: float
    seconds: float
    server_seconds: float


class Case(NamedTuple):
    """Clients, and how far to close the gap."""

    name: str
    tol: float
    make: Callable[[], list[Any]]


class _Timed(InProcess):
    """Knows how much CPU time its clients took."""

    spent = 0.0

    def exchange(self, broadcasts: Any, deadline: Any) -> Any:
        start = time.process_time()
        answers = super().exchange(broadcasts, deadline)
        self.spent += time.process_time() - start
        return answers


def additive(X: Array, n_ramps: int = _RAMPS) -> Array:
    """clip(x - t_k, 0, h) of features in [0, 1]; the first and the last go on outside."""
    height = 1.0 / n_ramps
    ramps = []
    for k in range(n_ramps):
        low = -np.inf if k == 0 else 0.0
        high = np.inf if k == n_ramps - 1 else height
        ramps.append(np.clip(X - k * height, low, high))
    return np.concatenate(ramps, axis=1)


def fourier(X: Array, n_waves: int, seed: int = 0) -> Array:
    """Pairs of cosine and sine along random directions, orthogonal in groups."""
    d, rng = X.shape[1], np.random.default_rng(seed)
    groups = []
    for _ in range(-(-n_waves // (2 * d))):
        basis, _ = np.linalg.qr(rng.normal(size=(d, d)))
        groups.append(basis * np.sqrt(rng.chisquare(d, size=d))[:, None])
    directions = np.sqrt(2.0 * 4.0 / d) * np.concatenate(groups)[: n_waves // 2]
    turns = X @ directions.T
    return np.concatenate([np.cos(turns), np.sin(turns)], axis=1) / np.sqrt(n_waves / 2.0)


def mapped(data: Callable[[], Any], features: Callable[[Array], Array], norm: str) -> list[Any]:
    """One client per plant, on features that a map makes."""
    X, y, plants, weights = data()
    Z = features(X)
    return [
        make_client(
            f"plant {g}",
            np.ascontiguousarray(Z[plants == g]),
            y[plants == g],
            sample_weight=weights[plants == g],
            norm=norm,
            fit_intercept=True,
            moments=True,
        )
        for g in np.unique(plants)
    ]


def pump() -> Any:
    """Features, labels, plants and weights."""
    data = make_pump("noisy-labels", random_state=0)
    return data.X_normalised, np.asarray(data.y, float), data.clients, np.ones(len(data.y))


def ai4i(path: Path) -> Any:
    """The same; both classes weigh as much."""
    X, is_fault, plants = read_ai4i(path)
    X = X[:, :_SENSORS]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    share = is_fault.mean()
    weights = np.where(is_fault, 0.5 / share, 0.5 / (1.0 - share))
    return X, np.where(is_fault, 1.0, -1.0), plants, weights


def cases(folder: Path) -> Iterator[Case]:
    """All that is measured."""
    for name in UCI_NAMES:
        yield Case(
            f"UCI {name}", 1e-4, lambda name=name: make_clients(uci_parts(name), moments=True)
        )
    for p in (60, 160):
        parts = partial(blob_parts, 500, p, 4)
        yield Case(f"synthetic {p}", 1e-4, lambda parts=parts: make_clients(parts(), moments=True))
    plants = {"pump": pump, "AI4I": partial(ai4i, folder / "ai4i" / "ai4i2020.tsv")}
    for name, data in plants.items():
        yield Case(f"{name} additive", 1e-3, partial(mapped, data, additive, "linf"))
        waves = partial(fourier, n_waves=200)
        yield Case(f"{name} Fourier 200", 1e-3, partial(mapped, data, waves, "l2"))
    waves = partial(fourier, n_waves=400)
    yield Case("pump Fourier 400", 1e-3, partial(mapped, pump, waves, "l2"))


def measure(case: Case, settings: list[str]) -> Iterator[Row]:
    """One run for each setting."""
    clients = case.make()
    for setting in settings:
        method = SETTINGS[setting]
        transport = _Timed(clients)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            result = run_rounds(transport, method, max_rounds=_AT_MOST, tol=case.tol)
            seconds = time.process_time() - start
        volume = sum(record.bytes_up + record.bytes_down for record in result.history)
        yield Row(
            case=case.name,
            features=clients[0].profile.n_features,
            setting=setting,
            tol=case.tol,
            rounds=result.n_rounds,
            gap=result.gap,
            kilobytes=volume / 1e3,
            seconds=seconds,
            server_seconds=seconds - transport.spent,
        )


def read_rows(path: Path = RESULTS) -> list[Row]:
    """The rows that were kept."""
    with path.open(newline="", encoding="utf-8") as file:
        kinds = get_type_hints(Row).values()
        return [
            Row(*(kind(cell) for kind, cell in zip(kinds, row, strict=True)))
            for row in list(csv.reader(file))[1:]
        ]


def main() -> None:
    """Measure everything and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    given = parser.parse_args()
    os.environ.setdefault("FDRSVM_DATA", str(given.data / "uci"))
    is_new = not given.output.exists()
    with given.output.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(Row._fields)
        kept = [] if is_new else read_rows(given.output)
        for case in cases(given.data):
            done = {row.setting for row in kept if row.case == case.name}
            missing = [setting for setting in SETTINGS if setting not in done]
            if not missing or given.only not in case.name:
                continue
            for row in measure(case, missing):
                numbers = (f"{value:.6g}" if isinstance(value, float) else value for value in row)
                writer.writerow(numbers)
                file.flush()
                print(*row, flush=True)


if __name__ == "__main__":
    main()
