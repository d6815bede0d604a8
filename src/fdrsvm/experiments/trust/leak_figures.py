"""How many rows a curious server recovers, from each client's messages and from sums of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdrsvm.datasets import load_uci, make_pump, partition
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated import ADMM, Bundle, Subgradient
from fdrsvm.leakage.audit import LeakAudit
from fdrsvm.leakage.command import run_and_audit
from fdrsvm.maths.arrays import Array

Parts = dict[str, tuple[Array, Array]]

UNIT_BOX = (0.0, 1.0)
METHODS: dict[str, tuple[Any, int]] = {
    "SM, gamma 1": (Subgradient(step_size=1.0), 300),
    "SM, gamma 10": (Subgradient(step_size=10.0), 300),
    "bundle": (Bundle(), 60),
    "bundle, summed": (Bundle(cuts="summed"), 100),
    "ADMM": (ADMM(rho=0.01), 300),
}
_TRAINING_SHARE = 0.7


@dataclass(frozen=True)
class LeakFigure:
    """One run and what it gave away; blur is the number of rows a client blurs."""

    data: str
    method: str
    n_clients: int
    width: int  # of a model
    blur: int
    n_rows: int
    n_rounds: int
    objective: float
    gap: float
    from_clients: int  # true rows recovered
    from_sums: int
    precision: float | None  # of what is claimed from clients

    @property
    def hides_all(self) -> bool:
        """Whether sums gave no row away."""
        return self.from_sums == 0


@dataclass(frozen=True)
class Leaks:
    """All runs."""

    figures: tuple[LeakFigure, ...]

    @property
    def covered(self) -> tuple[LeakFigure, ...]:
        """Runs that the defence is for: ADMM, and others with the covering blur."""
        return tuple(
            one
            for one in self.figures
            if one.method == "ADMM" or one.blur * one.n_clients >= one.width + 2
        )

    @property
    def holds(self) -> bool:
        """Sums of ADMM, and of blurred cuts, gave no row away."""
        return len(self.covered) > 0 and all(one.hides_all for one in self.covered)


def unit_parts(data: str, n_clients: int = 4, seed: int = 0) -> Parts:
    """70 % of a UCI set's rows, or a pump's four plants, scaled to [0, 1], by client."""
    if data == "pump":
        pump = make_pump("nominal", random_state=seed)
        X, y, ids = pump.X_normalised, pump.y.astype(float), np.asarray(pump.clients)
    else:
        loaded = load_uci(data)
        X, y = np.asarray(loaded.X, dtype=float), np.asarray(loaded.y, dtype=float)
        chosen = np.random.default_rng(seed).permutation(y.size)[: int(_TRAINING_SHARE * y.size)]
        X, y = X[chosen], y[chosen]
        spread = np.ptp(X, axis=0)
        X = (X - X.min(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        ids = partition.stratified(y, n_clients, random_state=seed)
    return {f"client {g}": (X[ids == g], y[ids == g]) for g in np.unique(ids)}


def covering_blur(width: int, n_clients: int) -> int:
    """Rows that each client must blur so that a sum holds more of them than (z_n, 1) has numbers.

    ``width`` is the length of a model: features, and one for an intercept.
    """
    return -(-(width + 2) // n_clients)


def measure(quick: bool = False) -> Leaks:
    """Two data sets, every method, without blur and with the covering one; quick is one run."""
    if quick:
        return Leaks(tuple(measure_leaks(["bcw"], ["SM, gamma 1"], (0, None), rounds=60)))
    blurs = (0, None)
    return Leaks(tuple(measure_leaks(["bcw", "parkinsons"], blurs=blurs, kappa=float("inf"))))


def measure_leaks(
    data: Sequence[str] = ("bcw", "parkinsons"),
    methods: Iterable[str] = tuple(METHODS),
    blurs: Sequence[int | None] = (0, 2, None),
    *,
    n_clients: int = 4,
    rounds: int | None = None,
    seed: int = 0,
    **client_settings: Any,
) -> Iterator[LeakFigure]:
    """Runs and attacks, one after the other; a blur of None is the covering one."""
    for name in data:
        parts = unit_parts(name, n_clients, seed)
        n_features = next(iter(parts.values()))[0].shape[1]
        width = n_features + int(client_settings.get("fit_intercept", False))
        for method in methods:
            if method not in METHODS:
                raise InvalidInputError(
                    "methods", f"must be among {', '.join(METHODS)}", f"one is {method!r}"
                )
            algorithm, usual = METHODS[method]
            for blur in blurs:
                n_blurred = covering_blur(width, len(parts)) if blur is None else blur
                audits = run_and_audit(
                    parts,
                    algorithm,
                    rounds=rounds or usual,
                    limits=UNIT_BOX,
                    blur=n_blurred,
                    **client_settings,
                )
                yield LeakFigure(
                    data=name,
                    method=method,
                    n_clients=len(parts),
                    width=width,
                    blur=n_blurred,
                    n_rows=audits.of_clients.n_rows,
                    n_rounds=audits.result.n_rounds,
                    objective=audits.result.objective,
                    gap=audits.result.gap,
                    from_clients=_recovered(audits.of_clients),
                    from_sums=_recovered(audits.of_sums),
                    precision=audits.of_clients.precision,
                )


def _recovered(audit: LeakAudit) -> int:
    assert audit.n_recovered is not None
    return audit.n_recovered


def to_markdown(result: Leaks) -> str:
    """A table, a run a line."""
    lines = [
        "| data | method | clients | blur | rounds | objective | gap | rows | from clients "
        "| claims right | from sums |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in result.figures:
        right = "-" if one.precision is None else f"{100.0 * one.precision:.0f} %"
        lines.append(
            f"| {one.data} | {one.method} | {one.n_clients} | {one.blur} | {one.n_rounds} "
            f"| {one.objective:.5f} | {one.gap:.1e} | {one.n_rows} "
            f"| {_share(one.from_clients, one.n_rows)} | {right} "
            f"| {_share(one.from_sums, one.n_rows)} |"
        )
    return "\n".join(lines) + "\n"


def _share(count: int, total: int) -> str:
    return f"{count} ({100.0 * count / total:.0f} %)"
