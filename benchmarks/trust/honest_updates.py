"""Is an honest client ever turned away? Random legal problems, and not one rejection is allowed.

Every problem draws its clients, samples, features and their scale, balls, box, loss, intercept,
weights, blur, number of models and method; limits are those of its data, one number for all
features, wider, or a thousand times as wide. Some answers get lost on their way, so that clients
come back, and step sizes lead far away as well as near.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.trust.honest_excess import Excess, excesses, gather, merged
from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import NORMS
from fdrsvm.errors import ConvergenceWarning, QuorumError
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, Values
from fdrsvm.federated.methods import (
    ADMM,
    ADMMSC,
    Bundle,
    FedAvg,
    FedProx,
    FedSGD,
    OneVsRest,
    OneVsRestProblem,
    Subgradient,
)
from fdrsvm.federated.problem import ClientProblem, make_client
from fdrsvm.federated.rounds import Failure, RoundRecord, run_rounds

_LOST = 0.1  # share of answers that get lost
_LOSS = "lost"
_KAPPAS = (0.01, 0.1, 0.5, 1.0, 3.0, np.inf)
_EPSILONS = (0.0, 1e-4, 1e-2, 0.1, 1.0, 10.0)
_TIGHTNESS = ("data", "one number", "wider", "1000 times")
_CERTIFIED = ("bundle", "subgradient", "admm", "admm-sc")  # they send risks and cuts of risks


@dataclass(frozen=True)
class HonestUpdates:
    """How many honest updates were screened, and what was held against any of them.

    ``n_failed`` counts answers that are no update: the client itself reported that float64 is not
    enough for its problem, or that its local solve did not reach its tolerance.
    """

    n_problems: int
    n_updates: int
    n_failed: int
    n_rejected: int
    rejections: tuple[str, ...]
    by_method: Mapping[str, int]
    by_limits: Mapping[str, int]
    excess: Mapping[str, tuple[float, float]]  # see honest_excess

    @property
    def holds(self) -> bool:
        """Nobody honest was rejected."""
        return self.n_rejected == 0


class _Lossy:
    """Hands answers on, loses some, counts the updates that arrive, and keeps them."""

    def __init__(self, inner: InProcess, rng: np.random.Generator) -> None:
        self.inner, self.rng = inner, rng
        self.n_updates = self.n_failed = 0
        self.said: dict[int, list[tuple[Array, Values]]] = {}

    def join(self) -> Sequence[ClientProfile]:
        return self.inner.join()

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        answers = list(self.inner.exchange(broadcasts, deadline))
        for g in np.flatnonzero(self.rng.random(len(answers)) < _LOST).tolist():
            if g > 0:  # somebody must be there
                answers[g] = Failure(answers[g].client_id, _LOSS, is_missing=True)
        for g, answer in enumerate(answers):
            if isinstance(answer, Update):
                self.n_updates += 1
                points = broadcasts[g].values.get("points", np.empty((0, 0)))
                points = points if len(points) else answer.values.get("own", np.empty(0))[None]
                self.said.setdefault(g, []).append((points, answer.values))
            elif not answer.is_missing:
                self.n_failed += 1
        return answers


def measure(quick: bool = False) -> HonestUpdates:
    """A hundred thousand updates; the quick version has a thousand."""
    return honest_updates(1_000 if quick else 100_000)


def honest_updates(n_updates: int = 100_000, seed: int = 0) -> HonestUpdates:
    """Problems from ``seed`` on, until so many honest updates have been screened."""
    n_problems = n_failed = n_rejected = 0
    rejections: list[str] = []
    by_method: Counter[str] = Counter()
    by_limits: Counter[str] = Counter()
    excess: Excess = {}
    while by_method.total() < n_updates:
        rng = np.random.default_rng([seed, n_problems])
        trial = _draw(rng)
        transport, faults = _train(rng, trial)
        by_method[trial.name] += transport.n_updates
        by_limits[trial.tightness] += transport.n_updates
        n_failed += transport.n_failed
        wrong = [fault for fault in faults if not fault.endswith(_LOSS)]
        n_rejected += len(wrong) - transport.n_failed
        if len(wrong) > transport.n_failed:
            rejections.extend(f"problem {n_problems}, {trial.name}: {fault}" for fault in wrong)
        excess = merged(excess, _excess(trial, transport))
        n_problems += 1
    return HonestUpdates(
        n_problems,
        by_method.total(),
        n_failed,
        n_rejected,
        tuple(rejections[:10]),
        dict(sorted(by_method.items())),
        dict(sorted(by_limits.items())),
        excess,
    )


def _excess(trial: _Trial, transport: _Lossy) -> Excess:
    """Of the methods whose answers are risks and cuts of risks, where limits are finite."""
    found: Excess = {}
    if trial.name not in _CERTIFIED or not trial.limits.are_finite:
        return found
    limits, problems = trial.limits, transport.inner.problems
    is_exact = limits.worst_case == "exact" and limits.blur == 0
    for g, answers in transport.said.items():
        said = gather(answers, touching=is_exact and not trial.name.startswith("admm"))
        boxed = problems[g].exact.ball.box is not None
        found = merged(found, excesses(problems[g].profile, limits, said, boxed=boxed))
    return found


def to_markdown(result: HonestUpdates) -> str:
    """A Markdown table."""
    lines = ["| method | honest updates | rejected |", "|---|---|---|"]
    lines += [f"| {name} | {count} | |" for name, count in result.by_method.items()]
    total = f"**all, {result.n_problems} problems** | **{result.n_updates}**"
    note = "were none: the client itself said that it could not solve its problem to the tolerance"
    lines += [f"| {total} | **{result.n_rejected}** |", "", f"{result.n_failed} answers {note}."]
    lines += [f"- {text}" for text in result.rejections]
    tightness = ", ".join(f"{name} {count}" for name, count in result.by_limits.items())
    lines += ["", f"Updates by how tight the limits were: {tightness}.", ""]
    lines += [
        "How far honest answers are beyond each rule, relative to the numbers compared, and to "
        "these and 1 + L S(w), what a client sums up; 0 is never beyond it:",
        "",
        "| rule | of the numbers | of these and 1 + L S(w) |",
        "|---|---|---|",
    ]
    lines += [f"| {rule} | {near:.1e} | {far:.1e} |" for rule, (near, far) in result.excess.items()]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, eq=False)
class _Trial:
    """A random problem."""

    name: str  # of the method
    method: Any
    problems: Sequence[Any]
    limits: Limits
    tightness: str


def _draw(rng: np.random.Generator) -> _Trial:
    problems, limits, is_plain, tightness = _problems(rng)
    method = _method(rng, problems, is_plain)
    name = method.name
    if rng.random() < 0.15 and name in _CERTIFIED:
        name, method = "one-vs-rest", OneVsRest(method, 2, tol=1e-7)
        return _Trial(name, method, [_two_models(one) for one in problems], limits, tightness)
    return _Trial(name, method, problems, limits, tightness)


def _two_models(problem: ClientProblem) -> OneVsRestProblem:
    """The same samples twice, the second time with the other labels."""
    exact, ball = problem.exact, problem.exact.ball
    other = make_client(
        problem.profile.client_id,
        exact.X,
        -exact.y,
        epsilon=ball.epsilon,
        kappa=ball.kappa,
        norm=ball.norm,
        support=None if ball.box is None else (ball.box.low, ball.box.high),
        worst_case="exact" if problem.risk is exact else "paper",
        loss=exact.loss,
        sample_weight=exact.mass,
        fit_intercept=problem.profile.fit_intercept,
        blur=problem.blur,
    )
    return OneVsRestProblem((problem, other))


def _train(rng: np.random.Generator, trial: _Trial) -> tuple[_Lossy, list[str]]:
    """A short run; its transport, and every fault."""
    transport = _Lossy(InProcess(trial.problems), rng)
    faults: list[str] = []
    records: list[RoundRecord] = []
    n_rounds = int(rng.integers(5, 25))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = run_rounds(
                transport,
                trial.method,
                max_rounds=n_rounds,
                tol=1e-7,
                client_weights=rng.random(len(trial.problems)) + 0.1,
                quorum=1,
                on_fault="drop",
                leave_out_after=None,
                callbacks=[lambda record, _: records.append(record)],
                limits=trial.limits,
            )
        records[-1] = result.history[-1]  # with the faults of the last evaluation
    except QuorumError as error:  # nobody is left in a round
        faults += error.faults
    faults += [fault for record in records for fault in record.faults]
    return transport, faults


def _problems(rng: np.random.Generator) -> tuple[list[ClientProblem], Limits, bool, str]:
    """Clients, limits, whether they have the hinge's exact risk without a box, and tightness."""
    n_features = int(rng.integers(1, 9))
    scale = 10.0 ** rng.uniform(-2.0, 2.0, n_features if rng.random() < 0.3 else 1)
    boxed = rng.random() < 0.3
    loss = str(rng.choice(["hinge", "hinge", "logistic", "smooth_hinge"])) if not boxed else "hinge"
    worst_case = "paper" if boxed and rng.random() < 0.2 else "exact"
    samples = [_samples(rng, n_features, scale, boxed) for _ in range(int(rng.integers(1, 6)))]
    largest = np.max([np.abs(X).max(axis=0) for X, _, _ in samples], axis=0)
    settings: dict[str, Any] = {
        "norm": rng.choice(NORMS),
        "loss": loss,
        "worst_case": worst_case,
        "fit_intercept": bool(rng.random() < 0.5),
    }
    if boxed:
        low, high = -scale * np.ones(n_features), scale * np.ones(n_features)
        settings["support"], largest = (low, high), high
    is_plain = loss == "hinge" and not boxed
    blur = int(rng.integers(1, 5)) if is_plain and rng.random() < 0.2 else 0
    problems = [
        make_client(
            f"client {g}",
            X,
            y,
            epsilon=float(rng.choice(_EPSILONS)),
            kappa=float(rng.choice(_KAPPAS)),
            sample_weight=mass,
            blur=blur,
            **settings,
        )
        for g, (X, y, mass) in enumerate(samples)
    ]
    tightness, value = _limits(rng, largest)
    limits = Limits.checked(value, n_features, loss=loss, worst_case=worst_case, blur=blur)  # type: ignore[arg-type]
    return problems, limits, is_plain, tightness


def _limits(rng: np.random.Generator, largest: Array) -> tuple[str, Any]:
    """How tight, and the limits."""
    if rng.random() < 0.1:
        return "none", None
    tightness = str(rng.choice(_TIGHTNESS))
    common = float(largest.max())
    values = {"data": largest, "one number": common, "wider": 1.5 * largest}
    return tightness, values.get(tightness, 1000.0 * common)


def _samples(
    rng: np.random.Generator, n_features: int, scale: Array, boxed: bool
) -> tuple[Array, Array, Array | None]:
    n_samples = int(rng.integers(1, 31))
    X = rng.uniform(-1.0, 1.0, (n_samples, n_features))
    if not boxed and rng.random() < 0.5:
        X = rng.normal(size=(n_samples, n_features)) + rng.normal() * float(rng.random() < 0.3)
    if rng.random() < 0.3:
        X = X[rng.integers(0, max(1, n_samples // 3), n_samples)]  # equal rows, so ties
    y = np.where(X @ rng.normal(size=n_features) + rng.normal(size=n_samples) > 0.0, 1.0, -1.0)
    mass = rng.random(n_samples) + 0.01 if rng.random() < 0.3 else None
    return X * scale, y, mass


def _method(rng: np.random.Generator, problems: Sequence[ClientProblem], is_plain: bool) -> Any:
    """Any that the clients can do; steps from small to far too large."""
    step = float(10.0 ** rng.uniform(-3.0, 3.0))
    rho = float(10.0 ** rng.uniform(-4.0, 1.0))
    trim = float(rng.choice([0.0, 0.0, 0.3]))
    methods: list[Any] = [
        Bundle(),
        Bundle(cuts="summed"),
        Subgradient(step, str(rng.choice(["1/t", "1/sqrt(t)"])), trim),  # type: ignore[arg-type]
    ]
    if is_plain:
        relaxation, balance = float(rng.choice([1.0, 0.6, 1.7])), bool(rng.random() < 0.3)
        methods += [
            ADMM(rho, relaxation=relaxation, balance=balance, trim=trim),
            ADMM(rho, tau=rho * float(rng.random()), relaxation=relaxation),
            ADMMSC(rho),
        ]
    if problems[0].is_hinge:
        # Their penalty is epsilon ||w||^2: a step times it must not lead beyond all numbers.
        step /= max(1.0, *(problem.profile.epsilon for problem in problems))
        methods += [FedSGD(step, trim), FedAvg(min(step, 1.0), 2), FedProx(min(step, 1.0), 2)]
    return methods[int(rng.integers(len(methods)))]
