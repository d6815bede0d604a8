"""Every attack of ``lies`` on every method, and a judge who knows the honest rows.

BCW in the unit box at seven clients, of whom one or two lie, hinge, linf, kappa = inf, where the
judge of ``legal_poison`` is exact. What is asked of each run: is its certificate true of some legal
data, is the liar named and nobody else, and is its model better than what legal poison makes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from benchmarks.trust.legal_poison import HonestRows, Poisoned, judge, strongest_rows
from benchmarks.trust.lies import ATTACKS, LATE, Attack
from benchmarks.trust.lying import Lying, Scene
from benchmarks.trust.seven_clients import SevenClients, seven_clients
from fdrsvm.core.arrays import Array
from fdrsvm.errors import (
    ClientError,
    ConvergenceWarning,
    FDRSVMError,
    LeftOutWarning,
    QuorumError,
)
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.rounds import OnFault, Result, RoundRecord, run_rounds

_TOL = 1e-4
_LEFT_OUT_AFTER = 3
_STILL = 5  # rounds
# A run that stops names its liar in the same round as one that goes on: once is enough.
_ON_FAULT: dict[str, tuple[OnFault, ...]] = {
    "intercept": ("stop", "drop"),
    "no intercept": ("drop",),
}
_QUICK = (
    "fault: NaN",
    "no loss at all",
    "labels flipped",
    "the poison that raises F* most",
    "absent from round 5 on",
)


@dataclass(frozen=True)
class _Method:
    """How a method is run, and the array of an answer that its server follows."""

    algorithm: Any
    n_rounds: int
    array: str = "slopes"


METHODS: dict[str, _Method] = {
    "bundle": _Method(Bundle(), 60),
    "bundle, summed": _Method(Bundle(cuts="summed"), 60),
    "ADMM": _Method(ADMM(), 60, "vector"),
    "SM": _Method(Subgradient(step_size=10.0), 100),
}
SETTINGS = {"intercept": True, "no intercept": False}


@dataclass(frozen=True)
class Run:
    """One attacked run.

    ``broken`` says which condition of ``legal_poison`` the certificate breaks; "" if it is true.
    ``accuracy`` is None if the run ended with an error, whose words ``error`` holds then.
    ``n_altered`` answers were not honest, ``n_named`` of the liars' were held against them, first
    in round ``named``. ``blamed`` are honest clients that were named.
    """

    attack: str
    setting: str
    method: str
    on_fault: str
    broken: str
    accuracy: float | None
    error: str
    named: int | None
    n_altered: int
    n_named: int
    left_out: tuple[str, ...]
    blamed: tuple[str, ...]
    n_rounds: int
    gap: float | None


@dataclass(frozen=True)
class Attacks:
    """All runs, and the accuracy of those without a liar, by setting and then by method."""

    runs: tuple[Run, ...]
    honest: dict[str, dict[str, float]]

    @cached_property
    def worst_legal(self) -> dict[tuple[str, str, int], float]:
        """The least accuracy under poisoned rows: by setting, method and number of liars.

        Not under another radius: with a large one every client can have the model 0.
        """
        found: dict[tuple[str, str, int], float] = {}
        for run in self.runs:
            attack = ATTACKS[run.attack]
            if attack.is_poison and run.accuracy is not None:
                key = (run.setting, run.method, len(attack.lies))
                found[key] = min(found.get(key, np.inf), run.accuracy)
        return found

    @property
    def false(self) -> list[Run]:
        """Runs with a certificate that is true of no legal data."""
        return [run for run in self.runs if run.broken]

    @property
    def unnamed(self) -> list[Run]:
        """Runs in which an illegal answer was sent and nobody named for any."""
        return [run for run in self.runs if _is_illegal(run) and run.named is None]

    @property
    def wrongly_named(self) -> list[Run]:
        """Runs that name an honest client, or one for legal answers."""
        return [
            run
            for run in self.runs
            if run.blamed or (run.named is not None and ATTACKS[run.attack].kind == "legal")
        ]

    @property
    def below(self) -> list[Run]:
        """Runs whose model is worse than poisoned rows make it, but for those of another radius."""
        return [
            run
            for run in self.runs
            if self.excess(run) > 0.0 and ATTACKS[run.attack].kind != "legal"
        ]

    def lost(self, run: Run) -> float:
        """Points of accuracy lost; 0 if there is no model."""
        if run.accuracy is None:
            return 0.0
        return self.honest[run.setting][run.method] - run.accuracy

    def excess(self, run: Run) -> float:
        """Points lost beyond what legal poison costs, if that is known."""
        key = (run.setting, run.method, len(ATTACKS[run.attack].lies))
        if run.accuracy is None or key not in self.worst_legal:
            return 0.0
        return self.worst_legal[key] - run.accuracy

    @property
    def holds(self) -> bool:
        """No false certificate, nobody honest named, no model below legal poison's.

        A liar who is not named has said what legal rows might have said, as far as the
        certificate and the model go.
        """
        return not (self.false or self.wrongly_named or self.below)


def _is_illegal(run: Run) -> bool:
    return ATTACKS[run.attack].kind == "illegal"


def measure(quick: bool = False) -> Attacks:
    """Every attack; the quick version has a few of them, an intercept, and two methods."""
    if quick:
        return attacks(_QUICK, ("intercept",), ("bundle", "SM"))
    return attacks()


def attacks(
    names: Iterable[str] = tuple(ATTACKS),
    settings: Sequence[str] = tuple(SETTINGS),
    methods: Sequence[str] = tuple(METHODS),
) -> Attacks:
    """Attacks by name, on every method that they are meant for, with faults stopped and dropped."""
    names = tuple(names)
    runs = []
    honest: dict[str, dict[str, float]] = {}
    for setting in settings:
        stage = stage_of(setting)
        honest[setting] = {
            method: stage.clients.accuracy(stage.honest_run(method).model) for method in methods
        }
        for name in names:
            for method in [m for m in methods if m in (ATTACKS[name].methods or METHODS)]:
                runs += [stage.attacked(name, method, on_fault) for on_fault in _ON_FAULT[setting]]
    return Attacks(tuple(runs), honest)


@dataclass(frozen=True, eq=False)
class Stage:
    """The honest clients of one setting."""

    setting: str
    clients: SevenClients
    problems: tuple[ClientProblem, ...]
    limits: Limits

    @cached_property
    def goal(self) -> Array:
        """The model of the honest clients."""
        return self.honest_run("bundle").model

    def honest_run(self, method: str) -> Result:
        """Without a liar."""
        found = METHODS[method]
        return _quietly_run(InProcess(self.problems), found, self.limits, len(self.problems))

    def poisoned(
        self, weights: dict[str, float], liars: Sequence[int], limits: Limits, epsilon: float
    ) -> Poisoned:
        """What the judge knows of a run with these weights."""
        honest = [g for g in range(len(self.problems)) if g not in liars]
        names = [problem.profile.client_id for problem in self.problems]
        width, P = self.problems[0].width, limits.features.size
        rows = [
            HonestRows(_signed(self.problems[g]), weights[names[g]], _epsilon(self.problems[g]))
            for g in honest
            if weights.get(names[g], 0.0) > 0.0
        ]
        reach = np.append(limits.features, 1.0)[:width]
        weight = sum(weights.get(names[g], 0.0) for g in liars)
        kappa = self.problems[0].exact.ball.kappa
        return Poisoned(tuple(rows), reach, P, kappa, weight, epsilon)

    def scene(self, attack: Attack, method: str, liar: int, limits: Limits) -> Scene:
        """What one liar knows."""
        rows = _strongest_rows(self.setting, attack.liars, attack.limit)
        return Scene(self.problems[liar], limits, self.goal, METHODS[method].array, rows)

    def limits_of(self, limit: float) -> Limits:
        """Another limit on every feature."""
        return Limits.checked(limit, self.limits.features.size)

    def attacked(self, name: str, method: str, on_fault: OnFault) -> Run:
        """One run, judged."""
        attack, found = ATTACKS[name], METHODS[method]
        limits = self.limits_of(attack.limit)
        lies = {
            liar: make(self.scene(attack, method, liar, limits))
            for liar, make in zip(attack.liars, attack.lies, strict=True)
        }
        transport = Lying(InProcess(self.problems), lies, attack.profile)
        quorum = len(self.problems) - len(lies)
        try:
            result = _quietly_run(transport, found, limits, quorum, on_fault)
        except FDRSVMError as error:
            return self._stopped(name, method, on_fault, transport, error)
        return self._finished(name, method, on_fault, transport, result, limits)

    def _finished(
        self,
        name: str,
        method: str,
        on_fault: OnFault,
        transport: Lying,
        result: Result,
        limits: Limits,
    ) -> Run:
        liars = ATTACKS[name].liars
        profile = ATTACKS[name].profile(self.problems[liars[0]].profile)
        left_out = self._left_out(result)
        weights = _weights_of(result, left_out)
        known = self.poisoned(weights, liars, limits, profile.epsilon)
        faults = [
            (record.round, fault)
            for record in result.history
            for fault in record.faults
            if not fault.endswith(LATE)
        ]
        named = [(round_, who) for round_, fault in faults if (who := self._who(fault))]
        mine = [round_ for round_, who in named if who in self._ids(liars)]
        if not mine and set(left_out) & set(self._ids(liars)):
            mine = [result.n_rounds]
        return Run(
            attack=name,
            setting=self.setting,
            method=method,
            on_fault=on_fault,
            broken=judge(known, result.model, result.objective, result.lower_bound),
            accuracy=self.clients.accuracy(result.model),
            error="",
            named=min(mine, default=None),
            n_altered=transport.n_altered,
            n_named=len(mine),
            left_out=left_out,
            blamed=tuple(sorted({who for _, who in named if who not in self._ids(liars)})),
            n_rounds=result.n_rounds,
            gap=result.gap,
        )

    def _stopped(
        self, name: str, method: str, on_fault: OnFault, transport: Lying, error: FDRSVMError
    ) -> Run:
        """An error names a client, or says that the answers do not fit together."""
        liars = self._ids(ATTACKS[name].liars)
        who = error.client_id if isinstance(error, ClientError) else self._who(str(error))
        round_ = error.round if isinstance(error, (ClientError, QuorumError)) else 0
        return Run(
            attack=name,
            setting=self.setting,
            method=method,
            on_fault=on_fault,
            broken="",
            accuracy=None,
            error=f"{type(error).__name__}: {error}",
            named=round_ if who in liars else None,
            n_altered=transport.n_altered,
            n_named=int(who in liars),
            left_out=(),
            blamed=(who,) if who and who not in liars else (),
            n_rounds=round_,
            gap=None,
        )

    def _left_out(self, result: Result) -> tuple[str, ...]:
        """Names of the clients that the run went on without."""
        return tuple(result.left_out)

    def _ids(self, clients: Sequence[int]) -> list[str]:
        return [self.problems[g].profile.client_id for g in clients]

    def _who(self, text: str) -> str:
        """The first client that a text names."""
        places = {text.find(name): name for name in self._ids(range(len(self.problems)))}
        places.pop(-1, None)
        return places[min(places)] if places else ""


@lru_cache(maxsize=2)
def stage_of(setting: str) -> Stage:
    """BCW with or without an intercept."""
    clients = seven_clients("bcw")
    problems, limits = clients.training(fit_intercept=SETTINGS[setting], kappa=np.inf)
    return Stage(setting, clients, tuple(problems), limits)


@lru_cache(maxsize=16)
def _strongest_rows(
    setting: str, liars: tuple[int, ...], limit: float
) -> tuple[Array, Array, Array]:
    """The poison of these liars that raises the optimum most."""
    stage = stage_of(setting)
    equal = {problem.profile.client_id: 1.0 / len(stage.problems) for problem in stage.problems}
    epsilon = _epsilon(stage.problems[liars[0]])
    return strongest_rows(stage.poisoned(equal, liars, stage.limits_of(limit), epsilon))


def _epsilon(problem: ClientProblem) -> float:
    return problem.profile.epsilon


def _signed(problem: ClientProblem) -> Array:
    """Z = y (x, 1), or y x, one row a sample."""
    X, y = np.asarray(problem.exact.X), problem.exact.y
    if problem.profile.fit_intercept:
        X = np.column_stack([X, np.ones(len(y))])
    return np.asarray(y[:, None] * X)


def _weights_of(result: Result, left_out: Sequence[str]) -> dict[str, float]:
    """Of the clients that the certificate is about, by name."""
    federation = result.federation
    given = dict(zip(federation.client_ids, federation.alphas.tolist(), strict=True))
    kept = {name: weight for name, weight in given.items() if name not in left_out}
    total = sum(kept.values())
    return {name: weight / total for name, weight in kept.items()}


class _Standstill:
    """Stops a run without an objective once its model stands still: someone never answers.

    The bundle would go on, with ever harder programs for points that tell it nothing.
    """

    def __init__(self) -> None:
        self.model: Array | None = None
        self.n_still = 0

    def __call__(self, record: RoundRecord, model: Array) -> bool:
        same = self.model is not None and bool(np.allclose(model, self.model, rtol=1e-6, atol=0.0))
        self.n_still = self.n_still + 1 if same and record.objective == np.inf else 0
        self.model = model
        return self.n_still >= _STILL


def _quietly_run(
    transport: Any, method: _Method, limits: Limits, quorum: int, on_fault: OnFault = "stop"
) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", LeftOutWarning)
        return run_rounds(
            transport,
            method.algorithm,
            max_rounds=method.n_rounds,
            tol=_TOL,
            quorum=quorum,
            on_fault=on_fault,
            limits=limits,
            callbacks=[_Standstill()],
            run_id="attacks",
            leave_out_after=_LEFT_OUT_AFTER,
        )


# The page


def to_markdown(result: Attacks) -> str:
    """A Markdown table: one row per attack, one column per method, and what it all comes to."""
    methods = [name for name in METHODS if any(run.method == name for run in result.runs)]
    lines = [
        f"| attack | {' | '.join(methods)} | most lost |",
        "|---" * (len(methods) + 2) + "|",
    ]
    group = ""
    for name, attack in ATTACKS.items():
        runs = [run for run in result.runs if run.attack == name]
        if not runs:
            continue
        if attack.group != group:
            group = attack.group
            lines.append(f"| **{group}** |" + " |" * (len(methods) + 1))
        cells = [_cell([run for run in runs if run.method == method]) for method in methods]
        lost = max(result.lost(run) for run in runs)
        lines.append(f"| {name.replace('|', chr(92) + '|')} | {' | '.join(cells)} | {lost:.1f} |")
    return "\n".join([*lines, "", *_summary(result)]) + "\n"


def _cell(runs: Sequence[Run]) -> str:
    """What became of an attack on a method, over settings, stopped and dropped."""
    if not runs:
        return ""
    return " / ".join(dict.fromkeys(_outcome(run) for run in runs))


def _outcome(run: Run) -> str:
    if run.broken:
        named = f", named {run.named}" if run.named is not None else ""
        return f"**FALSE {run.broken}**{named}"
    if run.blamed:
        return f"**blamed {', '.join(run.blamed)}**"
    if run.named is not None:
        return f"named {run.named}"
    if run.error:
        return "refused, nobody named"
    return {"illegal": "unnamed, true", "legal": "legal", "absent": "absent"}[
        ATTACKS[run.attack].kind
    ]


def _summary(result: Attacks) -> list[str]:
    runs = result.runs
    names = {run.attack for run in runs}
    illegal = [run for run in runs if _is_illegal(run)]
    unnamed = sorted({run.attack for run in result.unnamed})
    worst = ", ".join(
        f"{accuracy:.1f} ({method}, {setting}, {n_liars} of 7)"
        for (setting, method, n_liars), accuracy in sorted(result.worst_legal.items())
    )
    honest = ", ".join(
        f"{accuracy:.1f} ({method}, {setting})"
        for setting, by_method in result.honest.items()
        for method, accuracy in by_method.items()
    )
    lines = [
        f"{len(names)} attacks, {len(runs)} runs: **{len(result.false)} false certificates**; "
        f"{len(illegal) - len(result.unnamed)} of {len(illegal)} runs with answers not made of "
        f"rows named the liar; {len(result.wrongly_named)} named an honest client or legal "
        f"answers; {len(result.below)} ended with a model below that of legal poison.",
        "",
        f"Accuracy in percent, honest: {honest}. Least under legal poison: {worst}.",
        "",
        "A cell sums up runs with and without an intercept, faults stopped and dropped: named k: "
        "first named in round k (0: when it joined); FALSE i, ii, iii: the certificate is true of "
        "no legal data, by that condition of `legal_poison`; unnamed, true: nobody was named, and "
        "some legal data would have given certificate and model.",
    ]
    if unnamed:
        lines += [
            "",
            f"Not named in some run: {'; '.join(unnamed)}. As far as the rules tell, rows within "
            "the limits could have given these answers at the models that were asked about; for "
            "losses scaled down such rows are found in tests/federated/test_legality.py.",
        ]
    return [line.replace("||", r"\|\|") for line in lines]
