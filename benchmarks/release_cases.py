"""What benchmarks/releases.py measures: one repeat of each case, under whichever release is here.

    python -m benchmarks.release_cases

reads the names of cases, one per line, and answers each with a line of JSON. The first time a case
is asked for it is prepared and called once, which is not counted. Only what every release has is
used: the public functions, the clients of a federated run, and the study behind table 1.

cpu, wall   seconds of a call
yardstick   CPU seconds of something to compare with, measured in the same repeat: HiGHS, or two
            products with X
answer      what the call found, so that releases can be compared
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.clock import ContestantError
from benchmarks.federated import large_parts, make_clients, pump_like, uci_parts
from benchmarks.problems import (
    RHO,
    Case,
    blobs,
    central_case,
    cold_case,
    ridge_case,
    text,
    uniform,
    warm_cases,
)
from fdrsvm import RiskOracle, worst_case_risk
from fdrsvm.federated import ADMM, Bundle, InProcess, Subgradient, run_rounds

BATCH = 20e-3  # seconds: shorter calls are timed many at once
NORMS = ("l1", "l2", "linf")
BOX = "unit-box"
CLIENT_SIZES = ((90, 30), (1000, 14), (1000, 60), (10_000, 14))
SMALL, LARGE = ((50, 4), (100, 30)), (1_000_000, 14)
WIDE = ((300, 20_000, 40), (2000, 30_000, 60), (5000, 100_000, 100))
ROWS, CLIENT_ROWS = (1000, 3000, 10_000, 30_000, 100_000), (100, 300, 1000, 3000, 10_000)
FEATURES, CLIENTS = (10, 20, 40, 80, 160), (4, 8, 16, 32, 64, 128, 256)
RESOLVED = 1e-9  # of the gap: below it masters are degenerate, and nobody needs them

Figures = dict[str, float]
Repeat = Callable[[], Figures]
Maker = Callable[[], Repeat]


def cpu_seconds(call: Callable[[], Any], n_calls: int = 1) -> float:
    """Of one call out of this many."""
    start = process_time()
    for _ in range(n_calls):
        call()
    return (process_time() - start) / n_calls


def timed(
    call: Callable[[], Any],
    value: Callable[[Any], float],
    yardstick: Callable[[], Any] | None = None,
) -> Repeat:
    """Repeats of a call; each begins with one that is not counted, to wake the caches."""
    answer = value(call())
    n_calls = _calls_in_a_batch(call)
    n_yardsticks = _calls_in_a_batch(yardstick) if yardstick else 0

    def repeat() -> Figures:
        call()
        found = {"cpu": cpu_seconds(call, n_calls), "answer": answer}
        if yardstick:
            found["yardstick"] = cpu_seconds(yardstick, n_yardsticks)
        return found

    return repeat


def _calls_in_a_batch(call: Callable[[], Any]) -> int:
    call()
    return max(1, round(BATCH / max(cpu_seconds(call), 1e-7)))


def once(
    call: Callable[[], Any], value: Callable[[Any], float], in_threads: bool = False
) -> Repeat:
    """Repeats of a long call; wall time counts where there may be threads."""
    call()

    def repeat() -> Figures:
        start = process_time(), perf_counter()
        answer = call()
        cpu, wall = process_time() - start[0], perf_counter() - start[1]
        found = {"cpu": cpu, "answer": value(answer)}
        return found | {"wall": wall} if in_threads else found

    return repeat


# The client update and the central problem.


def client_cold(n: int, p: int) -> Repeat:
    """The first round, prepared beforehand."""
    case = cold_case(n, p)
    client = case.prepared()
    return timed(lambda: client.solve(case.centre), lambda found: found.objective)


def client_raw(n: int, p: int) -> Repeat:
    """The same from raw arrays, all checks included."""
    case = cold_case(n, p)
    return timed(case.solve, lambda found: found.objective)


def client_warm(n: int, p: int) -> Repeat:
    """The median over rounds 20 to 39, each from the last answer."""
    cases = warm_cases(n, p)
    client = cases[0].prepared()

    def repeat() -> Figures:
        answer = client.solve(cases[0].centre)
        seconds = []
        for case in cases[1:]:
            start = process_time()
            answer = client.solve(case.centre, warm_start=answer.warm_start)
            seconds.append(process_time() - start)
        return {"cpu": median(seconds), "answer": answer.objective}

    repeat()
    return repeat


def solving(case: Case) -> Repeat:
    """From arrays to a model."""
    return timed(case.solve, lambda found: found.objective)


def wide(shape: tuple[int, int, int], norm: str, rho: float) -> Repeat:
    """Sparse rows, checks included."""
    case = Case(*text(*shape), 1e-3, np.zeros(shape[1]), rho, norm=norm)
    return once(case.solve, lambda found: found.objective)


# The worst case of one model.


def oracle_arguments(epsilon: float, support: str | None, norm: str = "linf") -> dict[str, Any]:
    """At kappa = 0.5."""
    return {"epsilon": epsilon, "kappa": 0.5, "norm": norm, "support": support}


def small_oracle(n: int, p: int, epsilon: float) -> Repeat:
    """Data checked beforehand; beside HiGHS where it is installed."""
    w, X, y = uniform(n, p)
    oracle = RiskOracle(X, y, **oracle_arguments(epsilon, BOX))
    return timed(lambda: oracle(w), lambda found: found.value, _highs(w, X, y, epsilon))


def _highs(w: Any, X: Any, y: Any, epsilon: float) -> Callable[[], float] | None:
    from benchmarks.oracle import paper_program, solve_with_highs

    try:
        model = paper_program(w, X, y, epsilon, 0.5)
    except ModuleNotFoundError:
        return None
    return lambda: solve_with_highs(model, "simplex")


def oracle_function(n: int, p: int, epsilon: float) -> Repeat:
    """Data checked in the call."""
    w, X, y = uniform(n, p)
    arguments = oracle_arguments(epsilon, BOX)
    return timed(lambda: worst_case_risk(w, X, y, **arguments), lambda found: found.value)


def large_oracle(norm: str, support: str | None, epsilon: float) -> Repeat:
    """10^6 rows, checks included, beside the two products."""
    w, X, y = uniform(*LARGE)
    arguments = oracle_arguments(epsilon, support, norm)
    return timed(
        lambda: worst_case_risk(w, X, y, **arguments),
        lambda found: found.value,
        lambda: (X @ w, X.T @ y),
    )


# Federated runs, all clients and the server in one process.


def federated(
    parts: Any, method: Any, n_rounds: int, tol: float, n_threads: int | None = None
) -> Repeat:
    """A whole run, of clients with these parts of the data."""
    clients = make_clients(parts)

    def run() -> Any:
        transport = InProcess(clients, n_threads=n_threads or 1)
        return run_rounds(transport, method, max_rounds=n_rounds, tol=tol)

    return once(run, lambda found: found.objective, n_threads is not None)


def server_part(norm: str) -> Repeat:
    """The server's part of a late round of the bundle: the median over rounds 30 to 59."""
    clients = make_clients(large_parts(), norm=norm)

    def repeat() -> Figures:
        transport = Watched(InProcess(clients))
        result = run_rounds(transport, Bundle(), max_rounds=60, tol=0.0)
        late = [r.round for r in result.history[29:-1] if r.gap > RESOLVED]
        # Between two exchanges the server ends a round and begins the next one.
        parts = [transport.begun[k] - transport.ended[k - 1] for k in late]
        return {"cpu": median(parts), "answer": result.objective}

    repeat()
    return repeat


class Watched:
    """A transport that notes the CPU time at which its exchanges begin and end."""

    def __init__(self, transport: InProcess) -> None:
        self.transport = transport
        self.begun: list[float] = []
        self.ended: list[float] = []

    def join(self) -> Any:
        """All clients."""
        return self.transport.join()

    def exchange(self, broadcasts: Any, deadline: float | None) -> Any:
        """One answer for each broadcast."""
        self.begun.append(process_time())
        answers = self.transport.exchange(broadcasts, deadline)
        self.ended.append(process_time())
        return answers


# Growth with rows, features and clients.


def growing_oracle(n: int, p: int, support: str | None) -> Repeat:
    """At kappa = 1."""
    w, X, y = uniform(n, p)
    oracle = RiskOracle(X, y, epsilon=0.05, kappa=1.0, norm="linf", support=support)
    return timed(lambda: oracle(w), lambda found: found.value)


def growing_client(n: int, p: int) -> Repeat:
    """A cold update, prepared beforehand."""
    case = Case(*blobs(n, p), 0.1 / n, -np.ones(p), RHO)
    client = case.prepared()
    return timed(lambda: client.solve(case.centre), lambda found: found.objective)


def growing_bundle(n: int, p: int, n_clients: int) -> Repeat:
    """To a certified gap of 1e-4."""
    X, y = blobs(n * n_clients, p)
    parts = [(X[g::n_clients].copy(), y[g::n_clients].copy()) for g in range(n_clients)]
    return federated(parts, Bundle(), 200, 1e-4)


# The pump, the paper's table 1, and what is installed.


def pump_pool() -> Repeat:
    """2700 records; the waveforms that all of them come from are kept."""
    from fdrsvm.datasets import make_pump_pool

    return once(lambda: make_pump_pool(random_state=1), lambda pool: float(pool.X.mean()))


def pump_runs() -> Repeat:
    """The five simulations behind a pool."""
    from fdrsvm.datasets import pump, simulate_pump

    leaks = [0.0, *pump.SEVERITIES["paper"]]
    return once(lambda: simulate_pump(leaks, step=2e-5), lambda _: 0.0)


def table1() -> Repeat:
    """One repetition of all sets and methods, in seconds that 50 of them take two cores."""
    try:
        from fdrsvm_paper.uci_study import UciStudy
    except ModuleNotFoundError:  # up to 0.1.0 it was part of the package
        from fdrsvm.experiments.reproduction.uci_study import UciStudy

    study = UciStudy(repetitions=1)
    study.run(("ukm", "1"))

    def repeat() -> Figures:
        start = process_time()
        rows = [row for task in study.tasks() for row in study.run(task)]
        seconds = (process_time() - start) * 50 / 2
        return {"cpu": seconds, "answer": float(np.mean([float(row["f1"]) for row in rows]))}

    return repeat


def environment() -> Repeat:
    """Space on disk of the package and all it requires, with pip and setuptools, as `du -m` counts.

    Nothing else counts, whatever else is in the environment.
    """
    from importlib.metadata import PackageNotFoundError, distributions

    from benchmarks.footprint import closure

    try:
        found = closure("fdr-svm")
    except PackageNotFoundError as error:
        raise ContestantError(f"{error} is not installed") from None
    found += [one for one in distributions() if one.name in ("pip", "setuptools")]
    files = {Path(str(file.locate())) for one in found for file in one.files or []}
    blocks = sum(path.stat().st_blocks for path in files if path.is_file())
    return lambda: {"MB": 512 * blocks / 2**20}


def main_cases() -> dict[str, Maker]:
    """Those with goals, and most others, by name."""
    return dict([*solver_cases(), *risk_cases(), *federated_cases()])


def long_cases() -> dict[str, Maker]:
    """The points of curves, and sparse problems."""
    return dict([*growth_cases(), *wide_cases()])


def solver_cases() -> Iterator[tuple[str, Maker]]:
    """One client, or all data in one place."""
    for n, p in CLIENT_SIZES:
        yield f"client {n}x{p} cold", partial(client_cold, n, p)
        yield f"client {n}x{p} warm", partial(client_warm, n, p)
    yield "client 90x30 raw function", partial(client_raw, 90, 30)
    for norm in NORMS:
        yield f"central 10000x14 {norm}", lambda m=norm: solving(central_case(10_000, 14, m))
    for C in (1.0, 100.0):
        yield f"hinge and ridge 10000x14 C = {C:g}", lambda C=C: solving(ridge_case(10_000, 14, C))


def risk_cases() -> Iterator[tuple[str, Maker]]:
    """Small ones beside HiGHS, large ones beside products."""
    for n, p in SMALL:
        for epsilon in (0.1 / n, 0.05, 0.5):
            yield f"oracle {n}x{p} epsilon {epsilon:g}", partial(small_oracle, n, p, epsilon)
            name = f"oracle {n}x{p} epsilon {epsilon:g}, function"
            yield name, partial(oracle_function, n, p, epsilon)
    for support, name in ((None, "free"), (BOX, "box")):
        for norm in NORMS:
            for epsilon in (0.1 / LARGE[0], 0.05, 0.5):
                where = f"oracle 1000000x14 {norm} {name} epsilon {epsilon:g}"
                yield where, partial(large_oracle, norm, support, epsilon)


def federated_cases() -> Iterator[tuple[str, Maker]]:
    """Rounds of all methods, the pump and table 1."""
    admm = ADMM(rho=RHO)
    yield "ADMM 220 rounds, 4 clients", lambda: federated(pump_like(4), admm, 220, 0.0)
    yield "SM 220 rounds, 4 clients", lambda: federated(pump_like(4), Subgradient(), 220, 0.0)
    yield "bundle to 1e-4, BCW", lambda: federated(uci_parts("bcw"), Bundle(), 200, 1e-4)
    for norm in NORMS:
        yield f"bundle, server's part of a round, {norm}", partial(server_part, norm)
    for n_threads, name in ((1, "one thread"), (2, "two threads")):
        yield (
            f"ADMM 50 rounds, 1000 clients, {name}",
            lambda t=n_threads: federated(pump_like(1000), admm, 50, 0.0, t),
        )
    yield "bundle to 1e-4, 1000 clients", lambda: federated(pump_like(1000), Bundle(), 50, 1e-4)
    yield "pump, pool of 2700 records", pump_pool
    yield "pump, five runs of 2 s", pump_runs
    yield "table 1, 50 repetitions", table1
    yield "environment of pip install", environment


def growth_cases() -> Iterator[tuple[str, Maker]]:
    """The points of the curves of benchmarks/scaling.py."""
    for name, support in (("oracle", None), ("oracle on a box", BOX)):
        for n, p in (*((n, 14) for n in ROWS), *((10_000, p) for p in FEATURES)):
            yield f"growth, {name} {n}x{p}", partial(growing_oracle, n, p, support)
    for n, p in (*((n, 14) for n in ROWS), *((1000, p) for p in FEATURES)):
        yield f"growth, client {n}x{p}", partial(growing_client, n, p)
        yield f"growth, central {n}x{p}", lambda n=n, p=p: solving(central_case(n, p, "linf"))
    for n, p in (*((n, 14) for n in CLIENT_ROWS), *((500, p) for p in FEATURES)):
        yield f"growth, bundle 4 of {n}x{p}", partial(growing_bundle, n, p, 4)
    for n_clients in CLIENTS:
        yield (
            f"growth, bundle {n_clients} of 100x14",
            lambda G=n_clients: federated(pump_like(G), Bundle(), 200, 1e-4),
        )


def wide_cases() -> Iterator[tuple[str, Maker]]:
    """Sparse rows; the central problem on the two smaller shapes, as in benchmarks/wide.py."""
    for shape in WIDE:
        for norm in NORMS:
            for problem, rho in (("client", RHO), ("central", 0.0)):
                if rho > 0.0 or shape != WIDE[-1]:
                    name = f"csr {shape[0]}x{shape[1]} {norm} {problem}"
                    yield name, partial(wide, shape, norm, rho)


def main() -> None:
    """Answers until there are no more names."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    makers = main_cases() | long_cases()
    name, repeat = "", None
    for line in sys.stdin:
        wanted = line.strip()
        try:
            if wanted != name:
                repeat = None  # its data may go before that of the next one comes
                name, repeat = wanted, makers[wanted]()
            found = repeat()
        except Exception as error:
            name, found = "", {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
