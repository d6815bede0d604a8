"""The ADMM client update, cold and warm, beside general solvers of quadratic programs.

Cold       the first round: w = 0, mu = 1, no earlier answer
Warm       rounds 20 to 39 of one ADMM run of four clients, the same centres for everybody, each
           solver starting from its own last answer if it can; the median over those rounds
Prepared   the client's data is at hand in each solver's own form; only what depends on the centre
           is timed, but for Gurobi, whose model is rebuilt as in the authors' code
Failed     who gives no answer cold is not asked again
Unfair     ours checks the centre and proves its gap within the time; nobody else proves anything
"""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

from benchmarks.clock import ENOUGH, MOST, TOO_LONG, time_calls
from benchmarks.problems import Case, cold_case, warm_cases
from benchmarks.quadratic_programs import SOLVERS, Solve
from benchmarks.results import Entry, Measured, Results
from fdrsvm.core.arrays import Array

OURS = "ours"
SIZES = ((90, 30), (1000, 14), (1000, 60), (10_000, 14))


def run(results: Results, quick: bool) -> None:
    """All rows of this part."""
    for n, p in SIZES[:1] if quick else SIZES:
        for solver in (OURS, *SOLVERS):
            problem = f"client {n}x{p}"
            first = Entry(problem, solver, "cold", n, p)
            if results.measure(first, lambda n=n, p=p, s=solver: cold(s, cold_case(n, p))):
                later = Entry(problem, solver, "warm", n, p)
                results.measure(later, lambda n=n, p=p, s=solver: warm(s, warm_cases(n, p)))


def prepare(solver: str, case: Case, warm: bool) -> Solve:
    """A call from a centre to w."""
    return our_solver(case, warm) if solver == OURS else SOLVERS[solver](case, warm)


def our_solver(case: Case, warm: bool) -> Solve:
    """Ours in the shape of the others: it keeps its last answer itself."""
    client, start = case.prepared(), None

    def solve(centre: Array) -> Array:
        nonlocal start
        answer = client.solve(centre, warm_start=start)
        if warm:
            start = answer.warm_start
        return answer.w

    return solve


def cold(solver: str, case: Case) -> Measured:
    """One centre, again and again."""
    solve = prepare(solver, case, warm=False)
    timing = time_calls(lambda: solve(case.centre))
    return Measured(timing.seconds, case.excess(timing.answer))


def warm(solver: str, cases: Sequence[Case]) -> Measured:
    """One centre after the other; the excess is the worst of them.

    Slow solvers stop after TOO_LONG seconds, and quick ones go round again; the first centre,
    the warm-up, is not counted.
    """
    solve = prepare(solver, cases[0], warm=True)
    seconds: list[float] = []
    answers: list[tuple[Case, Array]] = []
    for _ in range(MOST):
        solve(cases[0].centre)
        for case in cases[1:]:
            start = process_time()
            w = solve(case.centre)
            seconds.append(process_time() - start)
            answers.append((case, w))
            if sum(seconds) > TOO_LONG:
                break
        if sum(seconds) > ENOUGH:
            break
    return Measured(seconds, max(case.excess(w) for case, w in answers[: len(cases) - 1]))
