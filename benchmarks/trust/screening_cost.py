"""The screen's share of a round: processor time of its form and its rules, over that of all.

Both in the same run, so that a busy machine slows both. A round is the server's work and the
answers of all clients, one after the other in one process.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from benchmarks.trust.seven_clients import seven_clients
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from fdrsvm.federated.problem import ClientProblem, make_client
from fdrsvm.federated.rounds import Failure, Result, run_rounds
from fdrsvm.federated.screen import check_form, form_of

_GOAL = 0.1
_METHODS: dict[str, tuple[Any, int]] = {
    "SM": (Subgradient(step_size=10.0), 220),
    "ADMM": (ADMM(), 220),
    "bundle": (Bundle(), 20),
    "bundle, summed": (Bundle(cuts="summed"), 60),
}


@dataclass(frozen=True)
class Cost:
    """One method on one data set: the median of some runs."""

    data: str
    method: str
    n_rounds: int
    round_ms: float
    share: float
    n_faults: int


@dataclass(frozen=True)
class ScreeningCost:
    """All of them."""

    costs: tuple[Cost, ...]

    @property
    def holds(self) -> bool:
        """Honest answers passed everywhere; what it cost depends on the machine."""
        return all(cost.n_faults == 0 for cost in self.costs)


@dataclass
class _Clock:
    """Processor time by what it was used for."""

    screening: float = 0.0
    measuring: float = 0.0  # not part of a round

    def timed(self, judge: Callable[..., Any]) -> Callable[..., Any]:
        """What calls take counts as screening."""

        def called(*arguments: Any) -> Any:
            start = time.process_time()
            found = judge(*arguments)
            self.screening += time.process_time() - start
            return found

        return called


@dataclass
class _Watched:
    """The clients; the look at the form of each answer is taken once more, with a watch."""

    inner: InProcess
    method: Any
    clock: _Clock
    federation: Federation = field(init=False)

    def join(self) -> Sequence[ClientProfile]:
        profiles = self.inner.join()
        self.federation = Federation.checked(profiles, "equal")
        return profiles

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        answers = self.inner.exchange(broadcasts, deadline)
        start = time.process_time()
        if "points" in broadcasts[0].values and "evaluation" not in broadcasts[0].algorithm:
            shapes = self.method.expects(self.federation, broadcasts[0].values)
            form = form_of(tuple(shapes.items()))
            for answer, broadcast in zip(answers, broadcasts, strict=True):
                if isinstance(answer, Update):
                    check_form(answer, broadcast, form)
        taken = time.process_time() - start
        self.clock.screening += taken
        self.clock.measuring += taken
        return answers


def measure(quick: bool = False) -> ScreeningCost:
    """The median of seven runs; the quick version has one run of two methods."""
    if quick:
        return ScreeningCost(tuple(_cost("7 clients, BCW", name, 1) for name in ("SM", "bundle")))
    return ScreeningCost(tuple(_cost(data, method, 7) for data in _DATA for method in _METHODS))


def _cost(data: str, method: str, n_runs: int) -> Cost:
    problems, limits = _DATA[data]()
    _run(problems, limits, method)  # imports what is imported late
    found = [_run(problems, limits, method) for _ in range(n_runs)]
    results, times, shares = zip(*found, strict=True)
    result: Result = results[0]
    return Cost(
        data,
        method,
        result.n_rounds,
        1e3 * float(np.median(times)) / result.n_rounds,
        float(np.median(shares)),
        sum(len(record.faults) for record in result.history),
    )


def _run(
    problems: Sequence[ClientProblem], limits: Limits, method: str
) -> tuple[Result, float, float]:
    """A run, its processor time in seconds, and the screen's share of it."""
    algorithm, n_rounds = _METHODS[method]
    clock = _Clock()
    watched = _with_watch(algorithm, clock)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = run_rounds(
            _Watched(InProcess(problems), algorithm, clock),
            watched,
            max_rounds=n_rounds,
            limits=limits,
            run_id="screening cost",
        )
    taken = time.process_time() - start - clock.measuring
    return result, taken, clock.screening / taken


def _with_watch(algorithm: Any, clock: _Clock) -> Any:
    """The same method, whose rules are timed; its settings and its name are unchanged."""
    kind = type(algorithm)
    rules = {name: clock.timed(getattr(kind, name)) for name in ("judge", "judge_evaluation")}
    watched = type(kind.__name__, (kind,), rules)
    names = [entry.name for entry in fields(algorithm)]
    return watched(**{name: getattr(algorithm, name) for name in names})


def _four_clients() -> tuple[list[ClientProblem], Limits]:
    """100 rows of 14 features each, in the unit box."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=14)
    problems = []
    for g in range(4):
        X = rng.uniform(-1.0, 1.0, (100, 14))
        y = np.where(X @ truth + rng.normal(size=100) > 0.0, 1.0, -1.0)
        problems.append(make_client(f"client {g}", X, y))
    return problems, Limits.checked("unit-box", 14)


_DATA: dict[str, Callable[[], tuple[list[ClientProblem], Limits]]] = {
    "4 clients, 100 x 14": _four_clients,
    "7 clients, BCW": lambda: seven_clients("bcw").training(),
}


def to_markdown(result: ScreeningCost) -> str:
    """A Markdown table."""
    heads = ("data", "method", "rounds", "ms per round", "share of the screen")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [
        f"| {cost.data} | {cost.method} | {cost.n_rounds} | {cost.round_ms:.2f} | "
        f"{100.0 * cost.share:.1f} % |"
        for cost in result.costs
    ]
    most = max(result.costs, key=lambda cost: cost.share)
    lines += [
        "",
        f"At most {100.0 * most.share:.1f} % of a round ({most.method}, {most.data}); the goal is "
        f"{100.0 * _GOAL:.0f} %. Processor time with one thread, clients in the same process, "
        "medians of runs; form and rules of every answer.",
    ]
    return "\n".join(lines) + "\n"
