"""The one loop that drives every method over every transport, round by round.

ask all -> wait for answers -> screen each -> advance -> record -> stop?

The method says what to ask and where to go next, the screen which answers count, the certificate
what is proved. What is left is here: who takes part, when to stop, and what a round's record holds.
"""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

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
from fdrsvm.federated.certificate import Certificate
from fdrsvm.federated.federation import Federation, Replies, check_radii
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, ClientProfile, Shape, Update, Values, encoded_size
from fdrsvm.federated.messages import Failure as Failure
from fdrsvm.federated.methods.method import Algorithm, describe
from fdrsvm.federated.screen import (
    CONTRADICTION,
    MISSING,
    NOBODY_NAMED,
    Faults,
    Judge,
    Screen,
    in_words,
)

OnFault = Literal["stop", "drop"]

# A better bound from all cuts costs a linear program, so it is sought in few rounds: in this one,
# and whenever there have been a quarter more rounds than the last time: 8, 10, 13, 17, ...
_FIRST_SETTLING, _SETTLING_GROWTH = 8, 1.25


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
    certificate : Certificate
        The best model and what is proved of it; several models have one each in its ``parts``.
    newest : ndarray
        The method's last iterate, whether or not it is the best.
    reason : Stop
        Why it stopped.
    history : tuple of RoundRecord
        One record per round.
    federation : Federation
        The clients, and the weights of those who still count.
    run_id : str
        The run's name in messages and files.
    left_out : mapping
        Clients without which the run went on, each with the round after which it did. Objective,
        bound, gap and the weights of ``federation`` are those of the others.
    """

    certificate: Certificate
    newest: Array
    reason: Stop
    history: tuple[RoundRecord, ...]
    federation: Federation
    run_id: str
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def model(self) -> Array:
        """The best model evaluated by all clients: weights, and the intercept last if there is one.

        The newest one, with an objective of inf, if some client never answered.
        """
        return self.certificate.model

    @property
    def objective(self) -> float:
        """Weighted sum of the clients' worst-case risks at ``model``."""
        return self.certificate.objective

    @property
    def lower_bound(self) -> float:
        """No model (with ||w||_* up to ``bound_radius``) has a smaller objective."""
        return self.certificate.lower_bound

    @property
    def bound_radius(self) -> float:
        """Infinite unless nothing bounds w: a box support, or epsilon = 0."""
        return self.certificate.radius

    @property
    def gap(self) -> float:
        """(objective - lower_bound) / objective."""
        return self.certificate.gap

    @property
    def risks(self) -> Array:
        """Each client's worst-case risk at ``model``."""
        return self.certificate.risks

    @property
    def n_rounds(self) -> int:
        """Rounds used; a last exchange that only evaluates is not counted."""
        return len(self.history)

    @property
    def standing(self) -> Certificate:
        """Another name of ``certificate``."""
        return self.certificate


class _Exchange(NamedTuple):
    """What one exchange of messages brought."""

    replies: Replies
    faults: Faults
    bytes_down: int
    bytes_up: int
    seconds: float  # until all answers were there


class _Run:
    """A run: its settings, who still takes part in it, and how far it has come."""

    def __init__(
        self,
        transport: Transport,
        algorithm: Algorithm[Any],
        *,
        tol: float,
        client_weights: Any,
        quorum: int | None,
        deadline: float | None,
        on_fault: OnFault,
        leave_out_after: int | None,
        resume: Snapshot | None,
        run_id: str | None,
        limits: Limits | None,
    ) -> None:
        federation = Federation.checked(transport.join(), client_weights)
        n_clients, of_sums = federation.n_clients, bool(getattr(transport, "gives_sums", False))
        lipschitz = 1.0 if limits is None else float(limits.loss.lipschitz)
        check_radii(federation.profiles, lipschitz, of_sums=of_sums)
        check_choice(on_fault, "on_fault", ("stop", "drop"))
        if leave_out_after is not None:
            check_count(leave_out_after, "leave_out_after")
        if deadline is not None:
            check_positive(deadline, "deadline")
        if quorum is None:
            quorum = n_clients if on_fault == "stop" else n_clients // 2 + 1
        if isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum <= n_clients:
            raise InvalidInputError(
                "quorum", f"must be a whole number from 1 to {n_clients}", f"it is {quorum!r}"
            )
        if limits is not None and limits.features.size != federation.n_features:
            rule = f"must be for {federation.n_features} features"
            raise InvalidInputError("limits", rule, f"they are for {limits.features.size}")
        self.transport, self.algorithm, self.federation = transport, algorithm, federation
        self.screen = Screen(limits, of_sums)
        self.tol, self.quorum, self.deadline = check_non_negative(tol, "tol"), quorum, deadline
        self.on_fault, self.leave_out_after = on_fault, leave_out_after
        self.method = describe(algorithm)
        self.everybody = federation  # whoever is left out later
        self.run_id = run_id or (resume.run_id if resume else uuid.uuid4().hex)
        self.history: tuple[RoundRecord, ...] = ()
        self.left_out: dict[str, int] = {}  # and after which round
        self.settling_round = _FIRST_SETTLING
        self.state = algorithm.start(federation) if resume is None else self._go_on_from(resume)
        self.progress = algorithm.progress(self.state)
        # The last certificate that was whole: a lie at the very end undoes nothing.
        self.proved = self.progress.certificate

    def _go_on_from(self, resume: Snapshot) -> Any:
        """A state means something only to the same method, for the same clients."""
        if resume.run_id != self.run_id:
            rule = f"must be that of the run resumed, {resume.run_id!r}"
            raise InvalidInputError("run_id", rule, f"it is {self.run_id!r}")
        if resume.algorithm != self.method:
            raise InvalidInputError(
                "resume", f"the run must be of {self.method}", f"it is of {resume.algorithm}"
            )
        if resume.federation != self.federation.fingerprint:
            raise InvalidInputError(
                "resume",
                "the run must have the same clients, with the same profiles and weights",
                "it has others",
            )
        self.history = resume.history
        left_out: dict[str, int] = {}
        for record in resume.history:
            for name in record.left_out:
                left_out.setdefault(name, record.round)
        if left_out:
            if self.screen.of_sums:
                getattr(self.transport, "left_out", {}).update(left_out)
            self._go_on_without(left_out, len(self.history))
        return resume.state

    def snapshot(self) -> Snapshot:
        """All that is needed to go on after the newest round."""
        fingerprint, n_rounds = self.everybody.fingerprint, len(self.history)
        return Snapshot(self.run_id, self.method, fingerprint, n_rounds, self.state, self.history)

    def play(self) -> RoundRecord:
        """One round; whoever is left out by it does not count in its record."""
        start, round_ = time.perf_counter(), len(self.history) + 1
        exchange = self._train(round_)
        names, faults = self.federation.client_ids, exchange.faults
        sentences = in_words(faults, names)
        faulty: list[str] = []
        absent: list[str] = []
        for g in sorted(faults):
            (faulty if faults[g].breaks_a_rule else absent).append(names[g])
        newly_out = self._leave_out(round_, faulty, absent)
        self.progress = self.algorithm.progress(self.state)
        # Each client's words may fit together and those of all still not: then nobody is named, and
        # a run that is to go on starts its proof again.
        if self.on_fault == "drop" and self.progress.certificate.is_refuted:
            for client in range(self.federation.n_clients):
                self.state = self.algorithm.forget(self.federation, self.state, client)
            self.progress = self.algorithm.progress(self.state)
            sentences = (*sentences, NOBODY_NAMED)
        seconds = time.perf_counter() - start
        certificate = _sound(self.progress.certificate)
        record = RoundRecord(
            round=round_,
            objective=certificate.objective,
            lower_bound=certificate.lower_bound,
            gap=certificate.gap,
            n_answers=len(exchange.replies.values),
            faults=sentences,
            bytes_down=exchange.bytes_down,
            bytes_up=exchange.bytes_up,
            seconds=seconds,
            server_seconds=seconds - exchange.seconds,
            residuals=self.progress.residuals,
            faulty=tuple(faulty),
            absent=tuple(absent),
            left_out=tuple(sorted(self.left_out)),
        )
        self.history = (*self.history, record)
        if certificate.objective < np.inf or newly_out:
            self.proved = certificate
        return record

    def _train(self, round_: int) -> _Exchange:
        """Ask, screen, advance; the state is the next one then."""
        algorithm, federation, state = self.algorithm, self.federation, self.state
        ask = partial(algorithm.ask, federation, state)
        asked = list(map(ask, range(federation.n_clients)))
        form = algorithm.expects(federation, asked[0])
        exchange = self._exchange(round_, self.method, asked, form, algorithm.judge)
        for g, fault in exchange.faults.items():
            if fault.rule == CONTRADICTION:  # its earlier answers do not count any more either
                state = algorithm.forget(federation, state, g)
        state = algorithm.advance(federation, state, exchange.replies)
        while self.settling_round < round_:
            self.settling_round = int(np.ceil(_SETTLING_GROWTH * self.settling_round))
        if self.tol > 0.0 and self.settling_round == round_:
            state = algorithm.settle(federation, state)
        # Single answers may pass and what they prove together still be false: so the certificate is
        # judged too, if this round changed it.
        certificate, judged = algorithm.progress(state).certificate, self.progress.certificate.parts
        unsound = self.screen.judge_proof(federation, certificate, judged)
        self._stop_at(round_, unsound)
        for g in unsound:
            state = algorithm.forget(federation, state, g)
        self.state = state
        return exchange._replace(faults={**exchange.faults, **unsound})

    def _exchange(
        self,
        round_: int,
        method: str,
        asked: Sequence[Values],
        form: Mapping[str, Shape],
        judge: Judge,
    ) -> _Exchange:
        """Sends, waits, and lets through only what passes the screen."""
        broadcasts, reached = [], []
        for g, client_id in enumerate(self.federation.client_ids):
            if client_id not in self.left_out:
                broadcasts.append(Broadcast(self.run_id, round_, client_id, method, asked[g]))
                reached.append(g)
        start = time.perf_counter()
        answers = self.transport.exchange(broadcasts, self.deadline)
        seconds = time.perf_counter() - start
        replies, faults = self.screen.sift(
            self.federation, self.state, answers, broadcasts, reached, form, judge
        )
        self._stop_at(round_, faults)
        n_answers = len(replies.values)
        if n_answers < self.quorum:
            sentences = in_words(faults, self.federation.client_ids)
            raise QuorumError(round_, n_answers, self.quorum, sentences)
        counted = filter(None, replies.updates)
        return _Exchange(
            replies,
            faults,
            sum(map(encoded_size, broadcasts)),
            sum(map(encoded_size, counted)),
            seconds,
        )

    def _stop_at(self, round_: int, faults: Faults) -> None:
        """Where faults stop a run, the first one does, unless a client is only missing."""
        for g in sorted(faults):
            if self.on_fault == "stop" and faults[g].rule != MISSING:
                raise ClientError(self.federation.client_ids[g], round_, str(faults[g]))

    def _leave_out(self, round_: int, faulty: Sequence[str], absent: Sequence[str]) -> bool:
        """Whether the run goes on without somebody more from now on.

        An answer that broke a rule is not forgotten when the next one keeps it; who gave none may
        come back.
        """
        left_out = set(self.left_out)
        if self.screen.of_sums:
            left_out = set(getattr(self.transport, "left_out", ()))
        elif self.on_fault == "drop" and self.leave_out_after is not None and (faulty or absent):
            rounds = [(record.faulty, record.absent) for record in self.history]
            rounds.append((tuple(faulty), tuple(absent)))
            for name in {*faulty, *absent}:
                n_broken = sum(name in faulty for faulty, _ in rounds)
                n_lost = 0  # rounds in a row, up to this one, without an answer that counts
                while n_lost < len(rounds) and any(name in who for who in rounds[-1 - n_lost]):
                    n_lost += 1
                if max(n_broken, n_lost) >= self.leave_out_after:
                    left_out.add(name)
        new = left_out - self.left_out.keys()
        if new:
            # A sum that lacks somebody is another sum: nothing said of the old one counts.
            names = self.federation.client_ids
            gone = [g for g, name in enumerate(names) if name in new or self.screen.of_sums]
            self._go_on_without({**self.left_out, **dict.fromkeys(sorted(new), round_)}, round_)
            for client in gone:
                self.state = self.algorithm.forget(self.federation, self.state, client)
        return bool(new)

    def _go_on_without(self, left_out: dict[str, int], round_: int) -> None:
        """The same run for those who remain; they must be as many as the quorum."""
        self.left_out, names = left_out, self.federation.client_ids
        if self.screen.of_sums:
            self.federation = Federation.checked(self.transport.join(), np.ones(1))
            return
        n_left = len(names) - len(left_out)
        if n_left < self.quorum:
            gone = tuple(f"{name}: left out" for name in names if name in left_out)
            raise QuorumError(round_, n_left, self.quorum, gone)
        # From everybody, not from those before: a resumed run scales once and has the same bits.
        self.federation = self.everybody.without(left_out)

    def stop_reason(self, max_rounds: int) -> Stop | None:
        """Why the run is over, if it is."""
        history, patience = self.history, self.algorithm.patience
        if not history:
            return None
        last = history[-1]
        if self.tol > 0.0 and last.gap <= self.tol:
            return Stop.TOL
        if self.progress.is_settled:
            return Stop.SETTLED
        # Nothing has changed for as many rounds as the method needs at most to get on.
        if patience is not None and len(history) > patience:
            now = last.objective, last.lower_bound, last.left_out
            since = history[-patience - 1 :]
            if all((one.objective, one.lower_bound, one.left_out) == now for one in since):
                return Stop.STALLED
        return Stop.MAX_ROUNDS if len(history) >= max_rounds else None

    def finish(self, reason: Stop) -> Result:
        """Evaluates the newest model if nobody has, and takes the best bound there is."""
        algorithm, federation = self.algorithm, self.federation
        pending = self.progress.pending
        if pending is not None:
            sentences = self._evaluate(pending)
            last = replace(self.history[-1], faults=(*self.history[-1].faults, *sentences))
            self.history = (*self.history[:-1], last)
        self._believe(algorithm.settle(federation, self.state))
        now = algorithm.progress(self.state)
        certificate = _sound(now.certificate)
        if not np.isfinite(certificate.objective) and np.isfinite(self.proved.objective):
            certificate = self.proved
        if not np.isfinite(certificate.objective):
            # Nobody can say how good the newest model is, but it is what there is.
            certificate = replace(certificate, model=now.model)
        return Result(
            certificate=certificate,
            newest=now.model,
            reason=reason,
            history=self.history,
            federation=federation,
            run_id=self.run_id,
            left_out=self.left_out,
        )

    def _evaluate(self, point: Array) -> tuple[str, ...]:
        """Asks for risk and cut of the last model; faults in words.

        A client at fault here is named and its answer ignored: what was proved before stays proved.
        """
        algorithm, federation = self.algorithm, self.federation
        method, values, form = algorithm.evaluation(federation, point)
        asked = [values] * federation.n_clients
        try:
            exchange = self._exchange(
                len(self.history) + 1, method, asked, form, algorithm.judge_evaluation
            )
        except (ClientError, QuorumError) as error:
            return (f"the last model was not evaluated: {error}",)
        rejected = {g: fault for g, fault in exchange.faults.items() if fault.rule != MISSING}
        unsound = self._believe(algorithm.with_evaluation(federation, self.state, exchange.replies))
        return in_words({**rejected, **unsound}, federation.client_ids)

    def _believe(self, state: Any) -> Faults:
        """Go over to a state at the end, unless what it proves cannot be; by whose words, if known.

        Of sums nobody can be named: where faults are dropped, such a state is too.
        """
        certificate = self.algorithm.progress(state).certificate
        unsound = self.screen.judge_proof(self.federation, certificate)
        if not unsound and not (self.on_fault == "drop" and certificate.is_refuted):
            self.state = state
        return unsound


def _sound(certificate: Certificate) -> Certificate:
    """The certificate, unless its bound is above its objective: that is no proof of anything."""
    if certificate.is_refuted:
        raise NumericalError(
            f"the lower bound {certificate.lower_bound:g} exceeds the objective "
            f"{certificate.objective:g}: some client's data changed during the run, its answers "
            "are wrong, or float64 is not enough for its features; rescale them"
        )
    return certificate


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
    """Train over a transport, round by round.

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
    run = _Run(
        transport,
        algorithm,
        tol=tol,
        client_weights=client_weights,
        quorum=quorum,
        deadline=deadline,
        on_fault=on_fault,
        leave_out_after=leave_out_after,
        resume=resume,
        run_id=run_id,
        limits=limits,
    )
    check_count(max_rounds, "max_rounds")
    reason = run.stop_reason(max_rounds)
    while reason is None:
        record = run.play()
        if checkpoint is not None:
            checkpoint(run.snapshot())
        reason = run.stop_reason(max_rounds)
        for callback in callbacks:
            if callback(record, run.progress.model) and reason is None:
                reason = Stop.CALLBACK
    result = run.finish(reason)
    gap = result.certificate.gap
    if tol > 0.0 and gap > tol and reason is not Stop.CALLBACK:
        warnings.warn(
            f"{algorithm.name}: certified relative gap {gap:.1e} after {result.n_rounds} "
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
