"""Secure aggregation measured: what masks do to a run's result, and what they cost.

Each method runs twice on the same clients, in the open and on masked sums. The bundle in the open
has summed cuts, so that both do the same; beside it stands the default, which sees each client's.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdrsvm.datasets import load_uci, make_pump, partition
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, encode
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from fdrsvm.federated.problem import ClientProblem, make_client
from fdrsvm.federated.rounds import Callback, Failure, Result, Transport, run_rounds
from fdrsvm.federated.secure.secure_sums import SecureSum

_SETS = ("bcw", "pump")
_N_CLIENTS = 4
_GAP = 1e-4


@dataclass(frozen=True)
class SecureSumRow:
    """One method on one data set; bytes and milliseconds are means over rounds.

    ``objective`` and ``model`` are relative differences between the two runs; bytes are of all
    messages of a round, both ways, divided by clients; milliseconds are processor time of all
    clients and the server together.
    """

    data: str
    method: str
    n_clients: int
    rounds_plain: int
    rounds_secure: int
    gap_plain: float
    gap_secure: float
    objective: float
    model: float
    bytes_plain: float
    bytes_secure: float
    ms_plain: float
    ms_secure: float


@dataclass(frozen=True)
class SecureSumCost:
    """What a round costs one of so many clients, on average, the keys' exchange left out."""

    n_clients: int
    n_bytes: float
    ms: float


@dataclass(frozen=True)
class SecureSums:
    """All rows, how many rounds the default bundle needs for the same gap, and larger consortia."""

    rows: tuple[SecureSumRow, ...]
    rounds_per_client: dict[str, int]
    costs: tuple[SecureSumCost, ...]

    @property
    def largest_difference(self) -> float:
        """Of the objectives, relative."""
        return max(row.objective for row in self.rows)

    @property
    def holds(self) -> bool:
        """Objectives agree with those of runs in the open to 1e-9."""
        return self.largest_difference <= 1e-9


class _Weighed:
    """Counts the bytes of all that passes."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.n_bytes = 0

    def join(self) -> Sequence[ClientProfile]:
        return self.inner.join()

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        answers = self.inner.exchange(broadcasts, deadline)
        self.n_bytes += sum(len(encode(broadcast)) for broadcast in broadcasts)
        self.n_bytes += sum(len(encode(one)) for one in answers if isinstance(one, Update))
        return answers


def measure(quick: bool = False) -> SecureSums:
    """Two data sets and up to a hundred clients; the quick version is small."""
    if quick:
        return measure_secure_sums(sets=("bcw",), n_rounds=10, consortia=(3,))
    return measure_secure_sums()


def measure_secure_sums(
    *,
    sets: Sequence[str] = _SETS,
    n_rounds: int = 100,
    consortia: Sequence[int] = (4, 20, 100),
) -> SecureSums:
    """SM and ADMM for ``n_rounds`` rounds and the bundle to a gap of 1e-4, on each set.

    Then SM with 14 features in consortia of so many clients.
    """
    rows, rounds_per_client = [], {}
    for name in sets:
        problems = _problems(name)
        rows += [
            _row(name, problems, "SM", Subgradient(10.0), n_rounds, 0.0),
            _row(name, problems, "ADMM", ADMM(rho=0.01), n_rounds, 0.0),
            _row(name, problems, "bundle, summed", Bundle(cuts="summed"), 200, _GAP),
        ]
        rounds_per_client[name] = _run(InProcess(problems), Bundle(), 200, _GAP).n_rounds
    return SecureSums(tuple(rows), rounds_per_client, tuple(_cost(G) for G in consortia))


def _cost(n_clients: int) -> SecureSumCost:
    """Of rounds 2 to 4."""
    rng = np.random.default_rng(0)
    problems = [
        make_client(f"plant {g}", rng.random((10, 14)), np.repeat([-1.0, 1.0], 5))
        for g in range(n_clients)
    ]
    weighed = _Weighed(InProcess(problems))
    sums = SecureSum(weighed)
    marks: list[tuple[int, float]] = []

    def mark(*_: Any) -> None:
        marks.append((weighed.n_bytes, time.process_time()))

    _run(sums, Subgradient(), 4, 0.0, callbacks=[mark])
    n_bytes, seconds = marks[-1][0] - marks[0][0], marks[-1][1] - marks[0][1]
    share = (len(marks) - 1) * n_clients
    return SecureSumCost(n_clients, n_bytes / share, 1e3 * seconds / share)


def _problems(name: str) -> list[ClientProblem]:
    """Four clients: a pump's four plants, or a UCI set dealt to four."""
    if name == "pump":
        parts = make_pump("noisy-labels", random_state=0).parts(normalised=True)
    else:
        data = load_uci(name)
        low, high = data.X.min(axis=0), data.X.max(axis=0)
        X = (data.X - low) / (high - low)
        owners = partition.stratified(data.y, _N_CLIENTS, random_state=0)
        parts = [(X[owners == g], data.y[owners == g]) for g in range(_N_CLIENTS)]
    return [make_client(f"plant {g}", X, y) for g, (X, y) in enumerate(parts)]


def _row(
    data: str,
    problems: Sequence[ClientProblem],
    name: str,
    method: Any,
    max_rounds: int,
    tol: float,
) -> SecureSumRow:
    open_, masked = _Weighed(InProcess(problems)), _Weighed(InProcess(problems))
    sums = SecureSum(masked)
    start = time.process_time()
    plain = _run(open_, method, max_rounds, tol)
    middle = time.process_time()
    secure = _run(sums, sums.method(method), max_rounds, tol)
    end = time.process_time()
    size = float(abs(plain.model).max()) or 1.0
    G = len(problems)
    return SecureSumRow(
        data=data,
        method=name,
        n_clients=G,
        rounds_plain=plain.n_rounds,
        rounds_secure=secure.n_rounds,
        gap_plain=plain.gap,
        gap_secure=secure.gap,
        objective=abs(secure.objective - plain.objective) / plain.objective,
        model=float(abs(secure.model - plain.model).max()) / size,
        bytes_plain=open_.n_bytes / plain.n_rounds / G,
        bytes_secure=masked.n_bytes / secure.n_rounds / G,
        ms_plain=1e3 * (middle - start) / plain.n_rounds,
        ms_secure=1e3 * (end - middle) / secure.n_rounds,
    )


def _run(
    transport: Transport,
    method: Any,
    max_rounds: int,
    tol: float,
    callbacks: Sequence[Callback] = (),
) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run_rounds(
            transport,
            method,
            max_rounds=max_rounds,
            tol=tol,
            callbacks=callbacks,
            run_id="secure sums",
        )


def to_markdown(result: SecureSums) -> str:
    """A Markdown table."""
    lines = [
        "| data | method | clients | rounds, open / masked | objectives differ by "
        "| models differ by | gap, open / masked | bytes a client and round, open / masked "
        "| ms a round, open / masked |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.data} | {row.method} | {row.n_clients} | {row.rounds_plain} / {row.rounds_secure} "
        f"| {row.objective:.1e} | {row.model:.1e} | {row.gap_plain:.1e} / {row.gap_secure:.1e} "
        f"| {row.bytes_plain:.0f} / {row.bytes_secure:.0f} "
        f"| {row.ms_plain:.1f} / {row.ms_secure:.1f} |"
        for row in result.rows
    ]
    lines.append("")
    for name, n_rounds in result.rounds_per_client.items():
        (summed,) = [r for r in result.rows if r.data == name and r.method == "bundle, summed"]
        lines.append(
            f"{name}: the bundle that sees each client's cuts reaches a certified gap of {_GAP:g} "
            f"in {n_rounds} rounds, on sums in {summed.rounds_secure}."
        )
    lines += [
        f"{cost.n_clients} clients, 14 features, SM: {cost.n_bytes:.0f} bytes and {cost.ms:.1f} ms "
        "of processor time a client and round."
        for cost in result.costs
    ]
    lines.append(f"Objectives differ by {result.largest_difference:.1e} at most, relative.")
    return "\n".join(lines) + "\n"
