"""The one loop that drives every method over every transport, round by round.

ask all -> wait for answers -> screen each -> advance -> record -> stop?
"""

from __future__ import annotations

import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import takewhile
from typing import Any, Literal, Protocol

import numpy as np

from fdrsvm.core.arrays import Array, check_choice, check_count, check_non_negative, check_positive
from fdrsvm.errors import (
    ClientError,
    ConvergenceWarning,
    InvalidInputError,
    LeftOutWarning,
    NumericalError,
    QuorumError,
)
from fdrsvm.federated.certificate import Standing
from fdrsvm.federated.federation import Federation, Replies, check_radii
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import (
    Broadcast,
    ClientProfile,
    Shape,
    Update,
    Values,
    encoded_size,
)
from fdrsvm.federated.methods.method import Algorithm, describe
from fdrsvm.federated.methods.one_vs_rest import evaluation_request
from fdrsvm.federated.screen import (
    CONTRADICTION,
    ERROR,
    MISSING,
    Fault,
    Faults,
    Form,
    Rules,
    check_form,
    form_of,
    judge_proof,
)

OnFault = Literal["stop", "drop"]

# A better bound costs a linear program: at these rounds, and each quarter more, it is worth it.
_FIRST_SETTLING, _SETTLING_GROWTH = 8, 1.25
_CONTRADICTION = 1e-6
_NOBODY_NAMED = (
    "the bound exceeds the objective, and sums do not tell whose answers are wrong: what was "
    "proved is forgotten"
)


@dataclass(frozen=True)
class Failure:
    """In place of an update: the client did not answer in time, or reported an error."""

    client_id: str
    reason: str
    is_missing: bool = False  # late or gone, rather than at fault


class Transport(Protocol):
    """Carries messages and nothing else.

    One whose updates are weighted sums over clients, as secure aggregation gives them, has an
    attribute ``gives_sums`` that is True: rules that sums do not keep are left out then. It decides
    itself whom sums go on without, and says so in ``left_out``, a mapping to rounds; ``join`` then
    gives the profile of the sum over the others.
    """

    def join(self) -> Sequence[ClientProfile]:
        """The clients that take part, always in the same order."""

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        """One answer for each broadcast, in the same order, within ``deadline`` seconds."""


class Stop(Enum):
    """Why training stopped; the value says what it means for the user."""

    TOL = "the certified relative gap is within tol"
    SETTLED = "the method's own stopping rule holds"
    STALLED = "no round improves on the model or its bound any more"
    MAX_ROUNDS = "all rounds were used"
    CALLBACK = "a callback asked for it"


@dataclass(frozen=True)
class RoundRecord:
    """One round in numbers.

    ``objective``, ``lower_bound`` and ``gap`` are of the best model so far; ``gap`` is relative.
    ``server_seconds`` is the part of ``seconds`` that was not spent waiting for clients. ``faulty``
    are the clients whose answers broke a rule, ``absent`` those that gave none; who is ``left_out``
    does not count any more from the next round on: objective, bound and gap of this record are
    those of the others already.
    """

    round: int
    objective: float
    lower_bound: float
    gap: float
    n_answers: int
    faults: tuple[str, ...]
    bytes_down: int
    bytes_up: int
    seconds: float
    server_seconds: float
    residuals: Mapping[str, float] = field(default_factory=dict)
    faulty: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """A run after a round: all that is needed to go on."""

    run_id: str
    algorithm: str
    federation: str  # fingerprint
    round: int
    state: Any
    history: tuple[RoundRecord, ...]


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes
    ----------
    model : ndarray
        The best model evaluated by all clients: weights, and the intercept last if there is one.
        The newest one, with an objective of inf, if some client never answered.
    newest : ndarray
        The method's last iterate, whether or not it is the best.
    objective : float
        Weighted sum of the clients' worst-case risks at ``model``.
    lower_bound : float
        No model (with ||w||_* up to ``bound_radius``) has a smaller objective.
    bound_radius : float
        Infinite unless nothing bounds w: a box support, or epsilon = 0.
    gap : float
        (objective - lower_bound) / objective.
    risks : ndarray of shape (n_clients,)
        Each client's worst-case risk at ``model``.
    n_rounds : int
        Rounds used; a last exchange that only evaluates is not counted.
    reason : Stop
        Why it stopped.
    history : tuple of RoundRecord
        One record per round.
    standing : Standing
        ``model`` and its certificate as the method keeps them; several models have one each.
    left_out : mapping
        Clients without which the run went on, each with the round after which it did. Objective,
        bound, gap and the weights of ``federation`` are those of the others.
    """

    model: Array
    newest: Array
    objective: float
    lower_bound: float
    bound_radius: float
    gap: float
    risks: Array
    n_rounds: int
    reason: Stop
    history: tuple[RoundRecord, ...]
    federation: Federation
    run_id: str
    standing: Standing
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Exchange:
    """What one exchange of messages brought."""

    replies: Replies
    faults: Faults
    bytes_down: int
    bytes_up: int
    seconds: float  # until all answers were there

    @property
    def contradicting(self) -> list[int]:
        """Clients whose earlier answers do not count any more."""
        return [g for g, fault in self.faults.items() if fault.rule == CONTRADICTION]


@dataclass(frozen=True)
class _Loop:
    """The settings of a run, and who still takes part in it."""

    transport: Transport
    algorithm: Algorithm[Any]
    federation: Federation
    method: str  # the algorithm in words
    run_id: str
    quorum: int
    deadline: float | None
    on_fault: OnFault
    leave_out_after: int | None
    rules: Rules
    left_out: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        return self.federation.client_ids

    def exchange(
        self,
        round_: int,
        method: str,
        asked: Sequence[Values],
        form: Mapping[str, Shape],
        judge: Callable[[Replies], Faults],
    ) -> _Exchange:
        """Sends, waits, and lets through only what passes the screen."""
        broadcasts = [
            Broadcast(self.run_id, round_, client_id, method, values)
            for client_id, values in zip(self.names, asked, strict=True)
            if client_id not in self.left_out
        ]
        start = time.perf_counter()
        answers = self.transport.exchange(broadcasts, self.deadline)
        seconds = time.perf_counter() - start
        replies, faults = self._screened(answers, broadcasts, form, judge)
        self._check_faults(round_, faults)
        n_answers = len(replies.values)
        if n_answers < self.quorum:
            raise QuorumError(round_, n_answers, self.quorum, self.in_words(faults))
        return _Exchange(
            replies,
            faults,
            sum(encoded_size(broadcast) for broadcast in broadcasts),
            sum(encoded_size(update) for update in replies.updates if update is not None),
            seconds,
        )

    def _check_faults(self, round_: int, faults: Faults) -> None:
        """Where faults stop a run, the first one does, unless a client is only missing."""
        at_fault = [g for g in sorted(faults) if faults[g].rule != MISSING]
        if self.on_fault == "stop" and at_fault:
            raise ClientError(self.names[at_fault[0]], round_, str(faults[at_fault[0]]))

    def in_words(self, faults: Faults) -> tuple[str, ...]:
        """One sentence per client, with its name."""
        return tuple(f"{self.names[g]}: {faults[g]}" for g in sorted(faults))

    def _screened(
        self,
        answers: Sequence[Update | Failure],
        broadcasts: Sequence[Broadcast],
        shapes: Mapping[str, Shape],
        judge: Callable[[Replies], Faults],
    ) -> tuple[Replies, Faults]:
        """The answers that count, and why the others do not."""
        form = form_of(shapes)
        faults: Faults = {}
        updates: list[Update | None] = [None] * len(self.names)
        asked = [g for g, client_id in enumerate(self.names) if client_id not in self.left_out]
        with np.errstate(over="ignore", invalid="ignore"):
            for g, answer, broadcast in zip(asked, answers, broadcasts, strict=True):
                fault = _form_fault(answer, broadcast, form)
                if fault is not None:
                    faults[g] = fault
                elif isinstance(answer, Update):
                    updates[g] = answer
            replies = Replies(tuple(updates))
            judged = judge(replies) if replies.values else {}
        if not judged:
            return replies, faults
        kept = (None if g in judged else update for g, update in enumerate(updates))
        return Replies(tuple(kept)), {**faults, **judged}

    def round(self, state: Any, round_: int, settling: bool) -> tuple[Any, _Exchange]:
        """One round of training."""
        asked = [
            self.algorithm.ask(self.federation, state, g) for g in range(self.federation.n_clients)
        ]
        form = self.algorithm.expects(self.federation, asked[0])

        def judge(replies: Replies) -> Faults:
            return self.algorithm.judge(self.federation, state, replies, self.rules)

        found = self.exchange(round_, self.method, asked, form, judge)
        judged = self.algorithm.standing(state).parts
        for client in found.contradicting:
            state = self.algorithm.forget(self.federation, state, client)
        state = self.algorithm.advance(self.federation, state, found.replies)
        if settling:
            state = self.algorithm.settle(self.federation, state)
        unsound = self.judge_proof(state, judged)
        self._check_faults(round_, unsound)
        for client in unsound:
            state = self.algorithm.forget(self.federation, state, client)
        if unsound:
            found = replace(found, faults={**found.faults, **unsound})
        return state, found

    def judge_proof(self, state: Any, judged: Sequence[Standing] = ()) -> Faults:
        """Clients by whose words the certificate of a state, as it is, cannot be true.

        What has not changed since it was ``judged`` is not judged again.
        """
        faults: Faults = {}
        for part in self.algorithm.standing(state).parts:
            if not any(part is one for one in judged):
                faults = {**judge_proof(self.federation, self.rules, part), **faults}
        return faults

    def evaluation(self, state: Any, point: Array, round_: int) -> tuple[Any, tuple[str, ...]]:
        """Risk and cut of the last model.

        Who is at fault by now is named and not heard: what was proved before stays proved.
        """
        method, values, form = evaluation_request(self.federation, point)
        asked = [values] * self.federation.n_clients

        def judge(replies: Replies) -> Faults:
            return self.algorithm.judge_evaluation(self.federation, state, replies, self.rules)

        try:
            found = self.exchange(round_, method, asked, form, judge)
        except (ClientError, QuorumError) as error:
            return state, (f"the last model was not evaluated: {error}",)
        rejected = {g: fault for g, fault in found.faults.items() if fault.rule != MISSING}
        evaluated = self.algorithm.with_evaluation(self.federation, state, found.replies)
        unsound = self.judge_proof(evaluated)
        return (state if unsound else evaluated), self.in_words({**rejected, **unsound})

    def going_on_without(self, history: Sequence[RoundRecord]) -> frozenset[str]:
        """Clients that are left out after the newest round, those before among them.

        An answer that broke a rule is not forgotten when the next one keeps it; who gave none may
        come back.
        """
        if self.rules.of_sums:
            return frozenset(getattr(self.transport, "left_out", ()))
        if self.on_fault != "drop" or self.leave_out_after is None:
            return self.left_out
        faulty = Counter(name for record in history for name in record.faulty)
        gone = {
            name
            for name in {*history[-1].faulty, *history[-1].absent}
            if max(faulty[name], _rounds_in_a_row(history, name)) >= self.leave_out_after
        }
        return self.left_out | gone

    def without(self, left_out: frozenset[str], round_: int) -> _Loop:
        """The same run for those who remain; they must be as many as the quorum."""
        if self.rules.of_sums:
            federation = Federation.checked(self.transport.join(), np.ones(1))
            return replace(self, left_out=left_out, federation=federation)
        names, n_left = self.names, len(self.names) - len(left_out)
        if n_left < self.quorum:
            gone = tuple(f"{name}: left out" for name in names if name in left_out)
            raise QuorumError(round_, n_left, self.quorum, gone)
        return replace(self, left_out=left_out, federation=self.federation.without(left_out))


def _rounds_in_a_row(history: Sequence[RoundRecord], name: str) -> int:
    """For how many rounds up to the newest a client has had no answer that counts."""
    lost = (name in record.faulty or name in record.absent for record in reversed(history))
    return sum(1 for _ in takewhile(bool, lost))


def _form_fault(answer: Update | Failure, broadcast: Broadcast, form: Form) -> Fault | None:
    if isinstance(answer, Failure):
        return Fault(MISSING if answer.is_missing else ERROR, answer.reason)
    return check_form(answer, broadcast, form)


Callback = Callable[[RoundRecord, Array], "bool | None"]


def run_rounds(
    transport: Transport,
    algorithm: Algorithm[Any],
    *,
    max_rounds: int = 200,
    tol: float = 1e-4,
    client_weights: Any = "equal",
    quorum: int | None = None,
    deadline: float | None = None,
    on_fault: OnFault = "stop",
    leave_out_after: int | None = 3,
    callbacks: Sequence[Callback] = (),
    checkpoint: Callable[[Snapshot], None] | None = None,
    resume: Snapshot | None = None,
    run_id: str | None = None,
    limits: Limits | None = None,
    stacklevel: int = 1,
    advice: str = "",
) -> Result:
    """Train one model over a transport.

    Parameters
    ----------
    transport : Transport
        Reaches the clients.
    algorithm : Algorithm
        ``Bundle()``, ``ADMM(...)``, ``ADMMSC(...)``, ``Subgradient(...)`` or a baseline.
    max_rounds : int
        Rounds at most.
    tol : float
        Stop at this certified relative gap; 0 runs all rounds (the bundle stops at a gap of 1e-11,
        and after 20 rounds that change nothing).
    client_weights : "equal", "samples", mapping or array
        The weights alpha_g.
    quorum : int, optional
        How many valid answers a round needs. With fewer the run stops with a QuorumError that names
        who is missing. If not given all clients, or with ``on_fault="drop"`` more than half.
    deadline : float, optional
        Seconds a round may take; later answers count as missing.
    on_fault : {"stop", "drop"}
        What to do about an answer that breaks a rule or an error at a client: stop with a
        ClientError that names it, or leave that answer out of the round and write the fault into
        its record.
    leave_out_after : int, optional
        With ``on_fault="drop"``: after this many rounds in a row without an answer that counts, or
        this many answers in all that broke a rule, the run goes on without the client. The weights
        of the others are scaled to 1, and objective and certificate are theirs from then on. None
        keeps everybody.
    callbacks : sequence of callables
        Called after each round with its record and the newest model; True stops.
    checkpoint : callable, optional
        Called with a Snapshot after each round, see :mod:`fdrsvm.federated.checkpoint`.
    resume : Snapshot, optional
        Go on from there; the result has the same bits as that of an unbroken run.
    run_id : str, optional
        Made up if not given.
    limits : Limits, optional
        What all clients have agreed on; answers that no such data could give are faults, [limits].
        Without it only those are that contradict themselves or the client's profile.
    stacklevel : int
        Whose line a ConvergenceWarning names: 1 is the caller's, 2 that of the caller's caller.
    advice : str
        What else may help where ``tol`` is not reached: the end of that warning.

    Returns
    -------
    Result
        The best model, its certificate, and one record per round.

    Warns
    -----
    ConvergenceWarning
        If ``tol`` is not reached within ``max_rounds``, with the gap that was.
    LeftOutWarning
        If the run went on without a client, with its name and since when.
    """
    profiles = transport.join()
    federation = Federation.checked(profiles, client_weights)
    of_sums = bool(getattr(transport, "gives_sums", False))
    lipschitz = 1.0 if limits is None else float(limits.loss.lipschitz)
    check_radii(profiles, lipschitz, of_sums=of_sums)
    check_choice(on_fault, "on_fault", ("stop", "drop"))
    if leave_out_after is not None:
        check_count(leave_out_after, "leave_out_after")
    check_count(max_rounds, "max_rounds")
    check_non_negative(tol, "tol")
    if deadline is not None:
        check_positive(deadline, "deadline")
    loop = _Loop(
        transport=transport,
        algorithm=algorithm,
        federation=federation,
        method=describe(algorithm),
        run_id=run_id or (resume.run_id if resume else uuid.uuid4().hex),
        quorum=_check_quorum(quorum, federation.n_clients, on_fault),
        deadline=deadline,
        on_fault=on_fault,
        leave_out_after=leave_out_after,
        rules=Rules(_check_limits(limits, federation), of_sums),
    )
    state, history = _first_state(loop, resume)
    if history and history[-1].left_out:
        if of_sums:
            getattr(transport, "left_out", {}).update(_left_out_since(history))
        loop = loop.without(frozenset(history[-1].left_out), len(history))
    reason = _stop_reason(loop, state, history, max_rounds, tol) if history else None
    proved = algorithm.standing(state)
    while reason is None:
        n_before = len(loop.left_out)
        loop, state, record = _one_round(loop, state, history, tol)
        history = (*history, record)
        if record.objective < np.inf or len(loop.left_out) > n_before:
            proved = algorithm.standing(state)
        if checkpoint is not None:
            checkpoint(
                Snapshot(
                    loop.run_id,
                    loop.method,
                    federation.fingerprint,
                    record.round,
                    state,
                    history,
                )
            )
        reason = _stop_reason(loop, state, history, max_rounds, tol)
        wishes = [callback(record, algorithm.model(state)) for callback in callbacks]
        if reason is None and any(wishes):
            reason = Stop.CALLBACK
    result = _finish(loop, state, history, reason, proved)
    if tol > 0.0 and result.gap > tol and reason is not Stop.CALLBACK:
        warnings.warn(
            f"{algorithm.name}: certified relative gap {result.gap:.1e} after {result.n_rounds} "
            f"rounds, above tol = {tol:g}; allow more rounds or a larger tol"
            f"{'; ' if advice else ''}{advice}",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
    for client_id, round_ in result.left_out.items():
        warnings.warn(
            f"the run went on without {client_id!r} after round {round_}: model, objective and gap "
            "are those of the other clients; see the faults in the history, mend the client and "
            "train again",
            LeftOutWarning,
            stacklevel=stacklevel + 1,
        )
    return result


def _check_quorum(quorum: int | None, n_clients: int, on_fault: OnFault) -> int:
    if quorum is None:
        return n_clients if on_fault == "stop" else n_clients // 2 + 1
    if isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum <= n_clients:
        raise InvalidInputError(
            "quorum", f"must be a whole number from 1 to {n_clients}", f"it is {quorum!r}"
        )
    return quorum


def _check_limits(limits: Limits | None, federation: Federation) -> Limits | None:
    if limits is not None and limits.features.size != federation.n_features:
        raise InvalidInputError(
            "limits",
            f"must be for {federation.n_features} features",
            f"they are for {limits.features.size}",
        )
    return limits


def _first_state(loop: _Loop, resume: Snapshot | None) -> tuple[Any, tuple[RoundRecord, ...]]:
    if resume is None:
        return loop.algorithm.start(loop.federation), ()
    if resume.run_id != loop.run_id:
        raise InvalidInputError(
            "run_id",
            f"must be that of the run resumed, {resume.run_id!r}",
            f"it is {loop.run_id!r}",
        )
    if resume.algorithm != loop.method:
        raise InvalidInputError(
            "resume", f"the run must be of {loop.method}", f"it is of {resume.algorithm}"
        )
    if resume.federation != loop.federation.fingerprint:
        raise InvalidInputError(
            "resume",
            "the run must have the same clients, with the same profiles and weights",
            "it has others",
        )
    return resume.state, resume.history


def _one_round(
    loop: _Loop, state: Any, history: Sequence[RoundRecord], tol: float
) -> tuple[_Loop, Any, RoundRecord]:
    """The run after one more round, and its record; who is left out by it does not count in it."""
    start, round_ = time.perf_counter(), len(history) + 1
    state, found = loop.round(state, round_, tol > 0.0 and _is_settling_round(round_))
    record = RoundRecord(
        round=round_,
        objective=np.inf,
        lower_bound=0.0,
        gap=np.inf,
        n_answers=len(found.replies.values),
        faults=loop.in_words(found.faults),
        bytes_down=found.bytes_down,
        bytes_up=found.bytes_up,
        seconds=0.0,
        server_seconds=0.0,
        faulty=tuple(loop.names[g] for g, f in sorted(found.faults.items()) if f.breaks_a_rule),
        absent=tuple(loop.names[g] for g, f in sorted(found.faults.items()) if not f.breaks_a_rule),
    )
    left_out = loop.going_on_without((*history, record))
    new = left_out - loop.left_out
    if new:
        # A sum that lacks somebody is another sum: nothing said of the old one counts.
        gone = [g for g, name in enumerate(loop.names) if name in new or loop.rules.of_sums]
        loop = loop.without(left_out, round_)
        for client in gone:
            state = loop.algorithm.forget(loop.federation, state, client)
    if loop.on_fault == "drop" and _contradicts(loop.algorithm.standing(state)):
        for client in range(loop.federation.n_clients):
            state = loop.algorithm.forget(loop.federation, state, client)
        record = replace(record, faults=(*record.faults, _NOBODY_NAMED))
    seconds = time.perf_counter() - start
    standing = loop.algorithm.standing(state)
    _check_standing(standing)
    return (
        loop,
        state,
        replace(
            record,
            objective=standing.objective,
            lower_bound=standing.lower_bound,
            gap=standing.gap,
            seconds=seconds,
            server_seconds=seconds - found.seconds,
            residuals=loop.algorithm.residuals(state),
            left_out=tuple(sorted(left_out)),
        ),
    )


def _contradicts(standing: Standing) -> bool:
    """Whether the bound is above the objective, by more than rounding."""
    return standing.contradiction > _CONTRADICTION * (1.0 + abs(standing.objective))


def _check_standing(standing: Standing) -> None:
    """A bound above the objective is no proof of anything, so it is not passed on as a gap of 0."""
    if _contradicts(standing):
        raise NumericalError(
            f"the lower bound {standing.lower_bound:g} exceeds the objective "
            f"{standing.objective:g}: some client's data changed during the run, its answers are "
            "wrong, or float64 is not enough for its features; rescale them"
        )


def _is_settling_round(round_: int) -> bool:
    """Whether ``round_`` is one of 8, 10, 13, 17, ...: ever the next is a quarter later."""
    settling = _FIRST_SETTLING
    while settling < round_:
        settling = int(np.ceil(_SETTLING_GROWTH * settling))
    return settling == round_


def _stop_reason(
    loop: _Loop, state: Any, history: Sequence[RoundRecord], max_rounds: int, tol: float
) -> Stop | None:
    if tol > 0.0 and history[-1].gap <= tol:
        return Stop.TOL
    if loop.algorithm.is_settled(state):
        return Stop.SETTLED
    if _is_stalled(history, loop.algorithm.patience):
        return Stop.STALLED
    return Stop.MAX_ROUNDS if len(history) >= max_rounds else None


def _is_stalled(history: Sequence[RoundRecord], patience: int | None) -> bool:
    """Whether nothing has changed for as many rounds as the method needs at most to get on."""
    if patience is None or len(history) <= patience:
        return False
    last = history[-1]
    return all(
        (record.objective, record.lower_bound, record.left_out)
        == (last.objective, last.lower_bound, last.left_out)
        for record in history[-patience - 1 :]
    )


def _finish(
    loop: _Loop, state: Any, history: tuple[RoundRecord, ...], reason: Stop, proved: Standing
) -> Result:
    """Evaluates the newest model if nobody has, and takes the best bound there is.

    ``proved`` is the last certificate there was: a lie at the very end undoes nothing.
    """
    algorithm = loop.algorithm
    pending = algorithm.pending(state)
    if pending is not None:
        state, faults = loop.evaluation(state, pending, len(history) + 1)
        last = replace(history[-1], faults=(*history[-1].faults, *faults))
        history = (*history[:-1], last)
    settled = algorithm.settle(loop.federation, state)
    if not loop.judge_proof(settled):
        state = settled
    standing = algorithm.standing(state)
    _check_standing(standing)
    if not np.isfinite(standing.objective) and np.isfinite(proved.objective):
        standing = proved
    if not np.isfinite(standing.objective):
        # Nobody can say how good the newest model is, but it is what there is.
        standing = replace(standing, model=algorithm.model(state))
    return Result(
        model=standing.model,
        newest=algorithm.model(state),
        objective=standing.objective,
        lower_bound=standing.lower_bound,
        bound_radius=standing.radius,
        gap=standing.gap,
        risks=standing.risks,
        n_rounds=len(history),
        reason=reason,
        history=history,
        federation=loop.federation,
        run_id=loop.run_id,
        standing=standing,
        left_out=_left_out_since(history),
    )


def _left_out_since(history: Sequence[RoundRecord]) -> dict[str, int]:
    """Who is left out, and after which round."""
    since: dict[str, int] = {}
    for record in history:
        for name in record.left_out:
            since.setdefault(name, record.round)
    return since
