"""How the run time grows with clients, rows and features: the paper's scalability experiment.

Data       two Gaussian classes around vertices of a hypercube of side 2.4, 2000 test rows;
           epsilon_g = 1/(10 N_g), kappa = 0.25, no intercept
Panels     (a) G = 10..50 at N = 1000; (b) G = 10..50 at N = 100 G; (c) N = 1000..3000 at G = 10;
           (d) P = 4..12 at N = 1000, G = 10; P = 4 elsewhere
Methods    SM (gamma = 100, on features scaled to [0, 1], with that box as support), ADMM and
           ADMM-SC (rho = 1e-3) for 220 rounds; the bundle to a certified gap of 1e-4
ADMM-SC    protocol ``text``: the smallest tau that the paper's theorem allows, which grows like
           rho G^3/4 (270 rho at G = 10, 31850 rho at G = 50). ``paper-code``: 18 rho, as in the
           authors' other experiments. (Their scripts for this one hold the theorem's factors but
           multiply them by the place of rho in its grid, 0 for this rho, in place of rho itself.)
Peak       the largest share of the test rows classified correctly, over all rounds; the first
           round that reaches it counts. (The authors time whole runs over a grid of T and
           parameters, and take the one whose mean share over repetitions, to three digits, is
           best.)
Seconds    CPU time of server and clients, one after the other, up to that round, certificates and
           checks of messages included. Preparing clients' solvers is; making the data, importing,
           and evaluating on the test set are not.

The peak is a maximum over a noisy curve: a late round that gets one more test row right moves it.
So the cost of a round is the steadier measure, and :func:`growth_exponents` gives both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fdrsvm.core.arrays import check_count
from fdrsvm.datasets import ScalabilityData, make_scalability
from fdrsvm.federated import ADMM, ADMMSC, Bundle, ClientProblem, Subgradient, make_client
from fdrsvm.federated.methods import Algorithm
from fdrsvm_paper.clients import N_ROUNDS
from fdrsvm_paper.protocols import Protocol, protocol
from fdrsvm_paper.rounds_study import TimedRun, timed_run
from fdrsvm_paper.scores import score
from fdrsvm_paper.study import Rows, Task, check_task
from fdrsvm_paper.summary import SHORT_METHODS, frame, grouped, number, power_law
from fdrsvm_paper.summary import Rows as StoredRows

PANELS: Mapping[str, tuple[int, ...]] = {
    "a": (10, 20, 30, 40, 50),
    "b": (10, 20, 30, 40, 50),
    "c": (1000, 1500, 2000, 2500, 3000),
    "d": (4, 6, 8, 10, 12),
}
VARIABLES: Mapping[str, str] = {"a": "G", "b": "G", "c": "N", "d": "P"}
METHODS = SHORT_METHODS

KAPPA = 0.25
GAMMA, RHO = 100.0, 1e-3
TAU_PER_RHO = 18.0  # paper-code's
TOL = 1e-4  # the bundle's

_STREAM = 4  # tells this study's random numbers from those of the others


class Size(NamedTuple):
    """N, G and P."""

    n_samples: int
    n_clients: int
    n_features: int


class Contestant(NamedTuple):
    """A method as it runs here: which features it sees, its clients' ball, when it stops."""

    algorithm: Algorithm[Any]
    normalised: bool
    ball: Mapping[str, Any]
    tol: float


class Growth(NamedTuple):
    """Exponents p of the laws c x^p that fit best, on one panel for one method."""

    panel: str
    variable: str  # what x stands for: G, N or P
    method: str
    seconds: float  # to the peak
    seconds_per_round: float
    stated: float | None  # of the work that the paper states; None where it states none


@dataclass(frozen=True)
class ScalabilityStudy:
    """Rows of ``scalability-<protocol>.csv``; a task is a panel, a point of it and a repetition.

    One row per method. Repetitions differ in their data; points of the same size have the same.

    Parameters
    ----------
    protocol : {"text", "paper-code"}
        Decides SM's step and worst case, ADMM's features and ADMM-SC's tau.
    repetitions : int
        Data sets for each point.
    seed : int
        Of the data.
    quick : bool
        The first and the last point of each panel, one repetition.
    max_rounds : int
        Rounds a run may take.
    """

    key: ClassVar[tuple[str, ...]] = ("panel", "x", "repetition")
    columns: ClassVar[tuple[str, ...]] = (*key, "method", "seconds", "rounds", "mccr", "seed")
    protocol: str = "text"
    repetitions: int = 10
    seed: int = 0
    quick: bool = False
    max_rounds: int = N_ROUNDS

    def __post_init__(self) -> None:
        protocol(self.protocol)
        check_count(self.repetitions, "repetitions")
        check_count(self.seed, "seed", least=0)
        check_count(self.max_rounds, "max_rounds")

    @property
    def file(self) -> str:
        """Name of the row file."""
        return f"scalability-{self.protocol}"

    def tasks(self) -> list[Task]:
        """Panel, x and repetition."""
        return [
            (panel, str(x), str(repetition))
            for repetition in range(1, self.repetitions + 1)
            for panel, points in PANELS.items()
            for x in (points[:: len(points) - 1] if self.quick else points)
        ]

    def run(self, task: Task) -> Rows:
        """Each method's peak, with the rounds and the seconds to it."""
        panel, x, repetition = check_task(self, task)
        _warm_up(self.protocol)
        sequence = np.random.SeedSequence((self.seed, _STREAM, int(repetition)))
        data = make_scalability(*size_at(panel, int(x)), random_state=sequence)
        rows: Rows = []
        for method, contestant in contestants(protocol(self.protocol)).items():
            run = train(data, contestant, self.max_rounds)
            X = data.X_test_normalised if contestant.normalised else data.X_test
            accuracy = score(run.models, X, data.y_test).accuracy
            first = int(np.argmax(accuracy))
            rows.append(
                {
                    "panel": panel,
                    "x": int(x),
                    "repetition": int(repetition),
                    "method": method,
                    "seconds": float(run.seconds[first]),
                    "rounds": first + 1,
                    "mccr": float(accuracy[first]),
                    "seed": self.seed,
                }
            )
        return rows


def size_at(panel: str, x: int) -> Size:
    """The data's size at a point of a panel."""
    return {
        "a": Size(1000, x, 4),
        "b": Size(100 * x, x, 4),
        "c": Size(x, 10, 4),
        "d": Size(1000, 10, x),
    }[panel]


def contestants(rules: Protocol) -> dict[str, Contestant]:
    """The methods by name, as the protocol has them; the bundle sees what ADMM sees."""
    everywhere = rules.all_normalised
    safeguarded = ADMMSC(rho=RHO, tau=None if rules.name == "text" else TAU_PER_RHO * RHO)
    box = {"support": "unit-box", "worst_case": rules.worst_case}
    return {
        "SM": Contestant(Subgradient(GAMMA, rules.step_decay), True, box, 0.0),
        "ADMM": Contestant(ADMM(rho=RHO), everywhere, {}, 0.0),
        "ADMM-SC": Contestant(safeguarded, everywhere, {}, 0.0),
        "Bundle": Contestant(Bundle(), everywhere, {}, TOL),
    }


def train(data: ScalabilityData, contestant: Contestant, max_rounds: int = N_ROUNDS) -> TimedRun:
    """One method's run, with clients of its own."""
    X = data.X_normalised if contestant.normalised else data.X
    problems: list[ClientProblem] = []
    for g in range(int(data.clients.max()) + 1):
        own = data.clients == g
        ball = {"kappa": KAPPA, **contestant.ball}
        problems.append(make_client(f"client {g}", X[own], data.y[own], **ball))
    return timed_run(problems, contestant.algorithm, max_rounds=max_rounds, tol=contestant.tol)


@cache
def _warm_up(name: str) -> None:
    """Imports what is imported late, off the clock: once per process."""
    data = make_scalability(40, 2, 3, n_test=0, random_state=0)
    for contestant in contestants(protocol(name)).values():
        train(data, contestant, 10)


def stated_work(method: str, size: Size) -> float | None:
    """The work of a round as the paper states it, up to constants and the accuracy of the solves.

    SM: (N P)^3.5 + G P; ADMM-SC: (N + P)^3.5 + G P; N is the number of all rows. Of ADMM the paper
    says nothing, and the bundle is not in it.
    """
    N, G, P = size
    if method == "SM":
        return float((N * P) ** 3.5 + G * P)
    return float((N + P) ** 3.5 + G * P) if method == "ADMM-SC" else None


def growth_exponents(rows: StoredRows) -> list[Growth]:
    """Least squares on logarithms, over all points and repetitions of a panel.

    Parameters
    ----------
    rows : sequence of mappings
        Rows of ``scalability-<protocol>.csv`` as text. Those without seconds above 0 are left out.

    Returns
    -------
    list of Growth
        By panel and method; none where fewer than two points are known.

    Examples
    --------
    >>> from fdrsvm_paper.scalability_study import growth_exponents
    >>> row = {"panel": "c", "method": "SM", "rounds": "1"}
    >>> rows = [{**row, "x": "1000", "seconds": "0.5"}, {**row, "x": "2000", "seconds": "2.0"}]
    >>> found = growth_exponents(rows)[0]
    >>> round(found.seconds, 6), round(found.stated, 6)
    (2.0, 3.5)
    """
    names = {"panel": PANELS, "method": METHODS, "x": (), "repetition": ()}
    timed = [row for row in rows if (number(row, "seconds") or 0.0) > 0.0]
    table = frame(timed, names, ["seconds", "rounds"], may_lack=["repetition"])
    laws = []
    for (panel, method), part in grouped(table, "panel", "method"):
        x, seconds = part["x"].astype(float), part["seconds"]
        if x.nunique() > 1:
            work = [stated_work(method, size_at(panel, int(value))) for value in x]
            powers = power_law(x, seconds), power_law(x, seconds / part["rounds"])
            stated = None if None in work else power_law(x, work)
            laws.append(Growth(panel, VARIABLES[panel], method, *powers, stated))
    return laws
