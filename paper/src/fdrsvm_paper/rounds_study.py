"""Rounds to a certified gap, by method and data set: the price of training where messages are dear.

Setting  the UCI sets, 70 % of the rows, scaled to [0, 1], dealt to four clients with classes in
         proportion; epsilon_g = 1/(10 N_g), kappa = 1, no support, no intercept
Run      at most 220 rounds, stopped at the smallest target; ADMM-SC has the smallest tau that the
         paper's theorem allows, SM the step gamma/sqrt(t), with which its gap falls faster
Reached  in the first round whose certified relative gap is within the target, or in the last one
         if the newest model's evaluation after it brings the gap there
Seconds  CPU time of server and clients, one after the other, up to that round; of all rounds where
         the target was not reached. Loading is off the clock.

Known unfairness: ADMM, ADMM-SC and SM run with every parameter of a grid, and the best is picked
afterwards by the gap itself, from the rows. Nobody can do that in practice. The bundle has no
parameter to pick. On the other side, the bundle's bound is the best there is after every round,
theirs only after rounds 8, 10, 13, 17 and so on, each a quarter later: their rounds are up to a
quarter too many. ADMM-SC minimises F + tau ||w||^2, so its gap to the optimum of F need not close.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from fdrsvm.core.arrays import Array, check_choice, check_count
from fdrsvm.core.vectors import Norm
from fdrsvm.datasets import UCI_NAMES, load_uci
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.federated import (
    ADMM,
    ADMMSC,
    Bundle,
    ClientProblem,
    InProcess,
    Result,
    RoundRecord,
    Subgradient,
    make_client,
    run_rounds,
)
from fdrsvm.federated.methods import Algorithm
from fdrsvm_paper.clients import N_ROUNDS
from fdrsvm_paper.samples import split_uci
from fdrsvm_paper.study import Rows, Task, check_task

TARGETS = (1e-2, 1e-3, 1e-4)
NORMS: tuple[Norm, ...] = ("linf", "l2", "l1")
QUICK_NAMES = ("banknote", "bcw", "ukm")  # few rounds, many rounds, few rows

# By method and parameter. The grids are wide enough that the best is seldom at an end.
METHODS: Mapping[str, Mapping[float | str, Algorithm[Any]]] = {
    "Bundle": {"": Bundle()},
    "Bundle summed": {"": Bundle(cuts="summed")},
    "ADMM": {rho: ADMM(rho=rho) for rho in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)},
    "ADMM-SC": {rho: ADMMSC(rho=rho) for rho in (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)},
    "SM": {gamma: Subgradient(step_size=gamma) for gamma in (1.0, 10.0, 100.0, 1000.0)},
}

_STREAM = 5  # tells this study's random numbers from those of the others

Part: TypeAlias = tuple[Array, Array]


class TimedRun(NamedTuple):
    """A run with the clock beside it."""

    result: Result
    seconds: Array  # of CPU time from the start to the end of each round
    models: Array  # the newest one after each round, one per row


def timed_run(
    problems: Iterable[ClientProblem],
    algorithm: Algorithm[Any],
    *,
    max_rounds: int = N_ROUNDS,
    tol: float = 0.0,
) -> TimedRun:
    """Train with all clients in this process; CPU seconds and the newest model of each round.

    Clients remember what they prepared for an earlier run: pass new ones if that is to be timed.
    A method that does not converge does so quietly, its gap is in the result.
    """
    ends: list[float] = []
    models: list[Array] = []

    def note(_: RoundRecord, model: Array) -> None:
        ends.append(time.process_time())
        models.append(model)

    transport = InProcess(problems)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        result = run_rounds(transport, algorithm, max_rounds=max_rounds, tol=tol, callbacks=[note])
    return TimedRun(result, np.array(ends) - start, np.array(models))


def rounds_to(result: Result, target: float) -> int | None:
    """Rounds until the certified relative gap is within ``target``; None if it never is."""
    for record in result.history:
        if record.gap <= target:
            return record.round
    return result.n_rounds if result.gap <= target else None


@dataclass(frozen=True)
class RoundsStudy:
    """Rows of ``rounds.csv``; a task is a set, a norm, a repetition and a method.

    One row for each of the method's parameters and each target.

    Parameters
    ----------
    repetitions : int
        Splits of each data set.
    seed : int
        Of the splits.
    quick : bool
        Three data sets and the norm linf.
    data_home : str, optional
        Folder of the sets' CSV files, as in :func:`fdrsvm.datasets.load_uci`.
    names : tuple of str
        The sets.
    max_rounds : int
        Rounds a run may take.
    """

    file: ClassVar[str] = "rounds"
    key: ClassVar[tuple[str, ...]] = ("data", "norm", "repetition", "method")
    columns: ClassVar[tuple[str, ...]] = (
        *(*key, "parameter", "target", "rounds", "gap", "seconds", "seed"),
    )
    repetitions: int = 5
    seed: int = 0
    quick: bool = False
    data_home: str | None = None
    names: tuple[str, ...] = UCI_NAMES
    max_rounds: int = N_ROUNDS

    def __post_init__(self) -> None:
        check_count(self.repetitions, "repetitions")
        check_count(self.seed, "seed", least=0)
        check_count(self.max_rounds, "max_rounds")
        for name in self.names:
            check_choice(name, "names", UCI_NAMES)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The sets to run; a quick study has three of them unless others were asked for."""
        return QUICK_NAMES if self.quick and self.names == UCI_NAMES else self.names

    def tasks(self) -> list[Task]:
        """Data set, norm, repetition and method."""
        return [
            (data, norm, str(repetition), method)
            for repetition in range(1, self.repetitions + 1)
            for norm in (NORMS[:1] if self.quick else NORMS)
            for data in self.chosen
            for method in METHODS
        ]

    def run(self, task: Task) -> Rows:
        """Rounds, last gap and CPU seconds for each parameter and target."""
        data, norm, repetition, method = check_task(self, task)
        rows: Rows = []
        for parameter, run in self._runs(data, norm, int(repetition), method).items():
            for target in TARGETS:
                rounds = rounds_to(run.result, target)
                last = run.result.n_rounds if rounds is None else rounds
                rows.append(
                    {
                        "data": data,
                        "norm": norm,
                        "repetition": int(repetition),
                        "method": method,
                        "parameter": parameter,
                        "target": target,
                        "rounds": "" if rounds is None else rounds,
                        "gap": run.result.gap,
                        "seconds": float(run.seconds[last - 1]),
                        "seed": self.seed,
                    }
                )
        return rows

    def _runs(
        self, data: str, norm: str, repetition: int, method: str
    ) -> dict[float | str, TimedRun]:
        """A run for each of the method's parameters, each with clients of its own."""
        _warm_up(norm)
        parts = deal(data, self.seed, repetition, self.data_home)
        # With a tolerance the bound is settled on the way too, as users would see it.
        return {
            parameter: timed_run(
                _make_clients(parts, norm), algorithm, max_rounds=self.max_rounds, tol=min(TARGETS)
            )
            for parameter, algorithm in METHODS[method].items()
        }


@dataclass(frozen=True)
class ConvergenceStudy(RoundsStudy):
    """Rows of ``convergence.csv``: gap and bounds after each round, linf, the first repetition.

    Of a method's parameters the one that reaches the smallest target first, or else ends with the
    smallest gap. Cells are empty as long as no model has been evaluated. The last round's row
    holds what is certified at the end, with the newest model evaluated and the bound settled.
    """

    file: ClassVar[str] = "convergence"
    key: ClassVar[tuple[str, ...]] = ("data", "norm", "method")
    columns: ClassVar[tuple[str, ...]] = (
        *(*key, "parameter", "round", "gap", "objective", "lower_bound", "seed"),
    )
    repetitions: int = 1

    def tasks(self) -> list[Task]:
        """Data set, norm and method."""
        return [(data, NORMS[0], method) for data in self.chosen for method in METHODS]

    def run(self, task: Task) -> Rows:
        """One row per round."""

        def rank(run: TimedRun) -> tuple[float, float]:
            """Less is better."""
            rounds = rounds_to(run.result, min(TARGETS))
            return (np.inf if rounds is None else rounds, run.result.gap)

        data, norm, method = check_task(self, task)
        runs = self._runs(data, norm, 1, method)
        parameter, best = min(runs.items(), key=lambda item: rank(item[1]))
        states: list[RoundRecord | Result] = [*best.result.history[:-1], best.result]
        return [
            {
                "data": data,
                "norm": norm,
                "method": method,
                "parameter": parameter,
                "round": number,
                "gap": _finite(state.gap),
                "objective": _finite(state.objective),
                "lower_bound": _finite(state.lower_bound),
                "seed": self.seed,
            }
            for number, state in enumerate(states, start=1)
        ]


def deal(name: str, seed: int, repetition: int, data_home: str | None = None) -> list[Part]:
    """Rows and labels of each client."""
    data = load_uci(name, data_home, progress=False)
    sample = split_uci(data, (seed, _STREAM, UCI_NAMES.index(name), repetition))
    members = [sample.clients == g for g in range(int(sample.clients.max()) + 1)]
    return [(sample.X_normalised[own], sample.y[own]) for own in members]


def _make_clients(parts: Sequence[Part], norm: str) -> list[ClientProblem]:
    settings: dict[str, Any] = {"norm": norm}
    return [make_client(f"client {g}", X, y, **settings) for g, (X, y) in enumerate(parts)]


@cache
def _warm_up(norm: str) -> None:
    """Imports what is imported late, off the clock: once per process."""
    rng = np.random.default_rng(0)
    parts = [(rng.random((12, 3)), np.tile([-1.0, 1.0], 6)) for _ in range(2)]
    for candidates in METHODS.values():
        algorithm = next(iter(candidates.values()))
        timed_run(_make_clients(parts, norm), algorithm, max_rounds=12, tol=1e-12)


def _finite(value: float) -> float | str:
    return float(value) if np.isfinite(value) else ""
