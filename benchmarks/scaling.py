"""How time grows with rows N, features P and clients G.

Problem    "oracle", "oracle on a box", "client", "central", "bundle", then the variable that grows
Fixed      N = 10^4 (oracle), 1000 (client, central), 500 a client (bundle); P = 14; G = 4, or
           clients of 100 rows where G grows
Settings   transport linf; kappa = 1; epsilon = 0.05 (oracle), 0.01 (central), 1/(10 N) (client,
           bundle); the bundle runs to a certified gap of 1e-4, all clients and the server in one
           process, and is given in seconds and in seconds a round
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.clock import time_calls
from benchmarks.federated import make_clients, pump_like
from benchmarks.problems import RHO, Case, blobs, central_case, uniform
from benchmarks.results import Entry, Measured, Results
from fdrsvm import RiskOracle
from fdrsvm.federated import Bundle, InProcess, run_rounds

KAPPA, TOL = 1.0, 1e-4
ROWS = (1000, 3000, 10_000, 30_000, 100_000)
FEATURES = (10, 20, 40, 80, 160)
CLIENTS = (4, 8, 16, 32, 64, 128, 256)
CLIENT_ROWS = (100, 300, 1000, 3000, 10_000)

Task = tuple[Entry, Callable[[], Measured]]


def run(results: Results, quick: bool) -> None:
    """All rows of this part, or the smallest two of each."""
    for entry, call in tasks(2 if quick else None):
        results.measure(entry, call)


def tasks(most: int | None) -> Iterator[Task]:
    """Every point of every curve, up to ``most`` on each."""
    for name, box in (("oracle", None), ("oracle on a box", "unit-box")):
        for n in ROWS[:most]:
            yield point(f"{name}, N", n, 14), lambda n=n, b=box: oracle(n, 14, b)
        for p in FEATURES[:most]:
            yield point(f"{name}, P", 10_000, p), lambda p=p, b=box: oracle(10_000, p, b)
    for name, call in (("client", client), ("central", central)):
        for n in ROWS[:most]:
            yield point(f"{name}, N", n, 14), lambda n=n, c=call: c(n, 14)
        for p in FEATURES[:most]:
            yield point(f"{name}, P", 1000, p), lambda p=p, c=call: c(1000, p)
    yield from bundle_tasks(most)


def point(curve: str, n: int, p: int, n_clients: int = 1, unit: str = "s") -> Entry:
    """One point of a curve, told from the others by its sizes."""
    clients = f", {n_clients} clients" if n_clients > 1 else ""
    return Entry(curve, "ours", f"{n}x{p}{clients}", n, p, n_clients, unit)


def bundle_tasks(most: int | None) -> Iterator[Task]:
    """Whole runs."""
    for unit in ("s", "s a round"):
        for n in CLIENT_ROWS[:most]:
            entry = point("bundle, N", n, 14, 4, unit)
            yield entry, lambda n=n, u=unit: bundle(blob_parts(n, 14, 4), u)
        for p in FEATURES[:most]:
            entry = point("bundle, P", 500, p, 4, unit)
            yield entry, lambda p=p, u=unit: bundle(blob_parts(500, p, 4), u)
        for G in CLIENTS[:most]:
            entry = point("bundle, G", 100, 14, G, unit)
            yield entry, lambda G=G, u=unit: bundle(pump_like(G), u)


def oracle(n: int, p: int, support: str | None) -> Measured:
    """One call at a random w."""
    w, X, y = uniform(n, p)
    risk = RiskOracle(X, y, epsilon=0.05, kappa=KAPPA, norm="linf", support=support)
    timing = time_calls(lambda: risk(w))
    return Measured(timing.seconds, timing.answer.value / timing.answer.proof - 1.0)


def client(n: int, p: int) -> Measured:
    """A cold update, prepared beforehand."""
    case = Case(*blobs(n, p), 0.1 / n, -np.ones(p), RHO)
    prepared = case.prepared()
    timing = time_calls(lambda: prepared.solve(case.centre))
    return Measured(timing.seconds, case.excess(timing.answer.w))


def central(n: int, p: int) -> Measured:
    """From arrays to a model."""
    case = central_case(n, p, "linf")
    timing = time_calls(case.solve)
    return Measured(timing.seconds, case.excess(timing.answer.w))


def blob_parts(n: int, p: int, n_clients: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Equal clients of one distribution."""
    X, y = blobs(n * n_clients, p)
    return [(X[g::n_clients].copy(), y[g::n_clients].copy()) for g in range(n_clients)]


def bundle(parts: list[tuple[np.ndarray, np.ndarray]], unit: str) -> Measured:
    """A whole run; the certified gap is its excess."""
    clients = make_clients(parts)
    timing = time_calls(lambda: run_rounds(InProcess(clients), Bundle(), tol=TOL))
    result = timing.answer
    share = result.n_rounds if unit == "s a round" else 1
    excess = result.objective / result.lower_bound - 1.0
    return Measured([s / share for s in timing.seconds], excess, f"{result.n_rounds} rounds")
