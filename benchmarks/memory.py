"""Memory: the largest resident set of a fresh process that solves one problem (Linux only).

    python -m benchmarks.memory PROBLEM SOLVER

prints two numbers of bytes: the peak of the whole process, and how far solving rose above what
was there before (interpreter, libraries, data, and the solver's code, loaded by a small problem of
the same kind).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.clock import fresh_python, peak_memory
from benchmarks.results import Entry, Measured, Results

CLIENT, CENTRAL = "client 10000x14", "central 10000x14 linf"
FREE, BOX = "oracle 1000000x14", "oracle 1000000x14 box"
CONTESTANTS = {
    FREE: ("ours",),
    BOX: ("ours",),
    CLIENT: ("ours", "PIQP", "Clarabel", "OSQP"),  # the others do not solve it
    CENTRAL: ("ours", "dro", "cvxpy and Clarabel", "Clarabel, matrices prebuilt"),
}
SETTINGS = ("whole process", "while solving")


def run(results: Results, quick: bool) -> None:
    """All rows of this part."""
    for problem in (CLIENT,) if quick else CONTESTANTS:
        n, p = map(int, problem.split()[1].split("x"))
        for solver in CONTESTANTS[problem][: 1 if quick else None]:
            for place, setting in enumerate(SETTINGS):
                entry = Entry(problem, solver, setting, n, p, unit="MB")
                results.measure(entry, lambda q=problem, s=solver, k=place: in_process(q, s, k))


def in_process(problem: str, solver: str, place: int) -> Measured:
    """One of the two numbers, in MB, from a fresh interpreter."""
    answer = fresh_python("-m", "benchmarks.memory", problem, solver)
    return Measured([int(answer.split()[place]) / 1e6])


def solver_of(problem: str, solver: str, small: bool) -> Callable[[], Any]:
    """What to call: the problem itself, or a small one of its kind."""
    from benchmarks import central, client
    from benchmarks.problems import central_case, cold_case, uniform
    from fdrsvm import RiskOracle

    if problem == CLIENT:
        case = cold_case(*((100, 14) if small else (10_000, 14)))
        return lambda: client.prepare(solver, case, warm=False)(case.centre)
    if problem == CENTRAL:
        case = central_case(*((100, 14) if small else (10_000, 14)), "linf")
        return lambda: central.SOLVERS[solver](case)()
    w, X, y = uniform(*((100, 14) if small else (1_000_000, 14)))
    support = "unit-box" if problem == BOX else None
    return lambda: RiskOracle(X, y, epsilon=0.05, kappa=0.5, norm="linf", support=support)(w)


def main(problem: str, solver: str) -> None:
    """Peak of the process, and what solving added."""
    solver_of(problem, solver, small=True)()
    call = solver_of(problem, solver, small=False)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is resident
    before = peak_memory()
    call()
    peak = peak_memory()
    print(peak, peak - before)


if __name__ == "__main__":
    main(*sys.argv[1:])
