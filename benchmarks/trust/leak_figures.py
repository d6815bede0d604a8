"""How many rows a curious server recovers, from each client's messages and from sums of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.datasets import load_uci, make_pump, partition
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated import ADMM, Bundle, Subgradient
from fdrsvm.privacy.leak_audit import LeakAudit
from fdrsvm.privacy.leak_trial import Audits, run_and_audit
from fdrsvm.risk.feature_maps import make_features

Parts = dict[str, tuple[Array, Array]]

UNIT_BOX = (0.0, 1.0)
METHODS: dict[str, tuple[Any, int]] = {
    "SM, gamma 1": (Subgradient(step_size=1.0), 300),
    "SM, gamma 10": (Subgradient(step_size=10.0), 300),
    "bundle": (Bundle(), 60),
    "bundle, summed": (Bundle(cuts="summed"), 100),
    "ADMM": (ADMM(rho=0.01), 300),
}
MEASURED = ("SM, gamma 1", "ADMM", "bundle", "bundle, summed")
RESOLUTIONS = (0.0, 1e-5, 1e-4, 1e-3)
_TRAINING_SHARE = 0.7
_EXPLANATION = (
    "4 clients. Counts are true rows that a curious server recovers: from cuts alone, with the "
    "risks as well, and of the other half if half of each client's rows is known to it already; "
    "from each client's messages, or from sums over the clients only, as secure aggregation gives "
    "them. Resolution 0 is exact risks and constants. See [privacy.md](privacy.md)."
)


@dataclass(frozen=True)
class LeakFigure:
    """One run and what it gave away; blur is the number of rows a client blurs.

    ``from_clients`` and ``from_sums`` count true rows recovered, from risks and cuts together; with
    ``by_cuts_`` before it from cuts alone, and with ``half_`` those that an attacker recovers of
    ``n_other`` rows which has the other half already.
    """

    data: str
    method: str
    n_clients: int
    width: int  # of a model
    blur: int
    resolution: float
    n_rows: int
    n_rounds: int
    objective: float
    gap: float
    by_cuts_from_clients: int
    by_cuts_from_sums: int
    from_clients: int
    from_sums: int
    n_other: int
    half_from_clients: int
    half_from_sums: int
    precision: float | None  # of what is claimed from clients
    features: str = "linear"

    @property
    def hides_all(self) -> bool:
        """Whether sums gave no row away, also to whom half of the rows is known."""
        return self.from_sums == 0 and self.half_from_sums == 0


@dataclass(frozen=True)
class Leaks:
    """All runs."""

    figures: tuple[LeakFigure, ...]

    @property
    def covered(self) -> tuple[LeakFigure, ...]:
        """Runs with a grid, and ADMM or the covering blur: what the defence is for."""
        return tuple(
            one
            for one in self.figures
            if one.resolution > 0.0
            and (one.method == "ADMM" or one.blur * one.n_clients >= one.width + 2)
        )

    @property
    def holds(self) -> bool:
        """Sums of ADMM, and of blurred cuts, gave no row away where risks were on a grid."""
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
    """Two data sets, one with four features, without and with blur and grids; quick is one run."""
    if quick:
        quick_runs = measure_leaks(["bcw"], ["SM, gamma 1"], (0, None), (0.0, 1e-4), rounds=60)
        return Leaks(tuple(quick_runs))
    return Leaks(tuple(measure_leaks(kappa=float("inf"))))


def measure_leaks(
    data: Sequence[str] = ("bcw", "banknote"),
    methods: Sequence[str] = MEASURED,
    blurs: Sequence[int | None] = (0, None),
    resolutions: Sequence[float] = RESOLUTIONS,
    *,
    n_clients: int = 4,
    rounds: int | None = None,
    seed: int = 0,
    **client_settings: Any,
) -> Iterator[LeakFigure]:
    """Runs and attacks, one after the other; a blur of None is the covering one."""
    chosen = client_settings.get("features", "linear")
    for name in data:
        parts = unit_parts(name, n_clients, seed)
        n_sensors = next(iter(parts.values()))[0].shape[1]
        placed = make_features(chosen, n_sensors, None)
        width = n_sensors if placed is None else placed.n_outputs
        width += int(client_settings.get("fit_intercept", False))
        for method in methods:
            if method not in METHODS:
                raise InvalidInputError(
                    "methods", f"must be among {', '.join(METHODS)}", f"one is {method!r}"
                )
            algorithm, usual = METHODS[method]
            for blur, resolution in product(blurs, resolutions):
                n_blurred = covering_blur(width, len(parts)) if blur is None else blur
                audits = run_and_audit(
                    parts,
                    algorithm,
                    rounds=rounds or usual,
                    limits=UNIT_BOX,
                    blur=n_blurred,
                    resolution=resolution,
                    **client_settings,
                )
                figure = _figure(name, method, width, n_blurred, resolution, audits)
                yield replace(figure, features=chosen)


def measure_maps(data: Sequence[str] = ("pump",)) -> Leaks:
    """Straight lines, curves and waves on the same rows."""
    figures: list[LeakFigure] = []
    for name, features in product(data, ("linear", "additive", "fourier")):
        # The ADMM does not know the groups of features that curves are.
        methods = [one for one in MEASURED if one != "ADMM" or features != "additive"]
        runs = measure_leaks([name], methods, (0,), (0.0,), kappa=float("inf"), features=features)
        figures += runs
    return Leaks(tuple(figures))


def maps_to_markdown(result: Leaks) -> str:
    """A table, a run a line: what is made of sensors, and the rows of sensors that get out."""
    lines = [
        "| data | method, rounds | features | width | rows | from clients | claims that are right "
        "| from sums |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in sorted(result.figures, key=lambda one: (one.data, one.method)):
        right = "-" if one.precision is None else f"{one.precision:.0%}"
        lines.append(
            f"| {one.data} | {one.method}, {one.n_rounds} | {one.features} | {one.width} "
            f"| {one.n_rows} | {one.from_clients} ({one.from_clients / one.n_rows:.0%}) "
            f"| {right} | {one.from_sums} ({one.from_sums / one.n_rows:.0%}) |"
        )
    return "\n".join(lines) + "\n"


def _figure(
    data: str, method: str, width: int, blur: int, resolution: float, audits: Audits
) -> LeakFigure:
    clients, sums = audits.of_clients, audits.of_sums
    return LeakFigure(
        data=data,
        method=method,
        n_clients=len(clients.clients),
        width=width,
        blur=blur,
        resolution=resolution,
        n_rows=clients.n_rows,
        n_rounds=audits.result.n_rounds,
        objective=audits.result.objective,
        gap=audits.result.gap,
        by_cuts_from_clients=clients.n_from_cuts or 0,
        by_cuts_from_sums=sums.n_from_cuts or 0,
        from_clients=_recovered(clients),
        from_sums=_recovered(sums),
        n_other=audits.half_known_of_clients.n_rows,
        half_from_clients=_recovered(audits.half_known_of_clients),
        half_from_sums=_recovered(audits.half_known_of_sums),
        precision=clients.precision,
    )


def _recovered(audit: LeakAudit) -> int:
    assert audit.n_recovered is not None
    return audit.n_recovered


def to_markdown(result: Leaks) -> str:
    """A table, a run a line."""
    lines = [
        "| data | method | blur | resolution | rounds | objective | gap | rows "
        "| clients: cuts | + risks | half known | sums: cuts | + risks | half known |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.data} | {one.method} | {one.blur} | {one.resolution:g} | {one.n_rounds} "
        f"| {one.objective:.5f} | {one.gap:.1e} | {one.n_rows} "
        f"| {one.by_cuts_from_clients} | {one.from_clients} "
        f"| {one.half_from_clients} of {one.n_other} "
        f"| {one.by_cuts_from_sums} | {one.from_sums} | {one.half_from_sums} of {one.n_other} |"
        for one in result.figures
    ]
    return "\n".join(lines) + "\n\n" + _EXPLANATION + "\n"
