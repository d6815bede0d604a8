"""Secure aggregation: a transport whose one client is the sum of all.

Method    what runs on it: :func:`on_sums`. How a round is summed: secure_round.py; what clients
          refuse, whatever the server asks: secure_client.py
Absent    what stands in a sum for a client that is absent, so that nothing false is proved:
          risks         at most its ceiling, [limits]: an objective is never claimed too small
          cuts          its floor, f_g(w) >= floor_g ||w||_*: constant 0, slope 0, norm weight
                        floor_g
          vector        ADMM's w_g + mu_g: the model w itself, as if the client did not pull
          own, squares  nothing: they are means, over the weight that is present
Left out  who is absent or at fault too often; the sum over the others is another problem
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_choice, check_count
from fdrsvm.core.vectors import dot, weighted_sum
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, Values
from fdrsvm.federated.methods import (
    ADMM,
    Bundle,
    FedAvg,
    FedDRO,
    FedSGD,
    OneVsRest,
    Subgradient,
    describe,
    from_description,
)
from fdrsvm.federated.methods.method import Evaluation
from fdrsvm.federated.rounds import Failure, OnFault, Transport
from fdrsvm.federated.secure.secure_round import KeyRing, Listener, SumFailedError, SumRound
from fdrsvm.federated.secure.secure_step import FEWEST, broken_weight_rule, threshold


class SecureSum:
    """All clients of a transport as one, whose answers are weighted sums over them.

    Pass it as ``transport`` of :func:`fdrsvm.federated.run_rounds`, with ``method(algorithm)`` as
    algorithm. A round's deadline is divided among its two or three exchanges.

    Parameters
    ----------
    transport : Transport
        Reaches the clients; at least three.
    client_weights : "equal", "samples", mapping or array
        The weights alpha_g; the loop is then given one client, of weight 1.
    quorum : int, optional
        How many clients must be in a sum; all if not given.
    on_fault : {"stop", "drop"}
        What to do about a client that reports an error, or whose part does not fit those of the
        others: end the round with its name, or do the sum over without it. The second takes three
        exchanges a round, so that faults are found before anything is revealed.
    limits : Limits, optional
        What is agreed of the clients' features; needed for a quorum below all, since the risk of
        an absent client is then counted with its ceiling.
    listener : callable, optional
        Is told of every sum that lacks a client, of every fault and of who is left out for good,
        for an audit log.
    leave_out_after : int, optional
        A client that was in no sum for this many rounds in a row, or at fault in this many, is
        left out for good, see ``left_out``; nobody if not given.

    Attributes
    ----------
    left_out : dict of str to int
        Who is left out for good, and after which round. The next ``join`` gives the profile of the
        others, whose problem is another one: whatever was proved of the old one no longer counts.
        Until then sums are of the old problem.

    Examples
    --------
    >>> from fdrsvm.federated import Bundle, InProcess, make_client, run_rounds
    >>> from fdrsvm.federated.secure.secure_sums import SecureSum
    >>> X, y = [[0.1], [0.2], [0.9]], [-1, -1, 1]
    >>> clients = [make_client(name, X, y, epsilon=0.05) for name in ("north", "south", "west")]
    >>> sums = SecureSum(InProcess(clients))
    >>> result = run_rounds(sums, sums.method(Bundle()))
    >>> result.gap <= 1e-4
    True
    """

    gives_sums: ClassVar[bool] = True  # the loop screens sums otherwise than single answers

    def __init__(
        self,
        transport: Transport,
        client_weights: Any = "equal",
        *,
        quorum: int | None = None,
        on_fault: OnFault = "stop",
        limits: Limits | None = None,
        listener: Listener | None = None,
        leave_out_after: int | None = None,
    ) -> None:
        check_choice(on_fault, "on_fault", ("stop", "drop"))
        if leave_out_after is not None:
            check_count(leave_out_after, "leave_out_after")
        self.transport = transport
        self.client_weights = client_weights
        self.on_fault: OnFault = on_fault
        self.limits = limits
        self.leave_out_after = leave_out_after
        self.left_out: dict[str, int] = {}
        self._wished_quorum = quorum
        self._tell: Listener = listener if listener is not None else lambda _: None
        self._keys = KeyRing()
        self._absences: Counter[str] = Counter()  # rounds in a row, by client
        self._faults: Counter[str] = Counter()  # rounds in all

    @cached_property
    def _everybody(self) -> Federation:
        """All clients that joined, and their weights."""
        members = Federation.checked(self.transport.join(), self.client_weights)
        if members.n_clients < FEWEST:
            raise InvalidInputError(
                "clients",
                f"secure aggregation needs at least {FEWEST}: of a sum of two each client knows "
                "its own part, and so the other's",
                f"there are {members.n_clients}",
            )
        if not members.alphas.all():
            silent = members.client_ids[int(np.argmin(members.alphas))]
            raise InvalidInputError(
                "client_weights",
                "must all be above 0 with secure aggregation: the others' sum would be over fewer "
                "clients than it seems; leave out who does not count",
                f"that of {silent!r} is 0",
            )
        broken = broken_weight_rule(members.alphas.tolist())
        if broken:
            raise InvalidInputError(
                "client_weights",
                'must hide every client in the sum, else the clients refuse it; try "equal"',
                broken,
            )
        return members

    @cached_property
    def members(self) -> Federation:
        """The clients that take part, and their weights; ``join`` has it made again."""
        everybody, kept = self._everybody, self._kept()
        if not self.left_out:
            return everybody
        return Federation.checked([everybody.profiles[g] for g in kept], everybody.alphas[kept])

    def _kept(self) -> list[int]:
        """Who is not left out, by their place among everybody."""
        names = self._everybody.client_ids
        return [g for g, name in enumerate(names) if name not in self.left_out]

    @cached_property
    def quorum(self) -> int:
        """How many clients must be in a sum."""
        n_clients = self._everybody.n_clients
        wished = n_clients if self._wished_quorum is None else self._wished_quorum
        least = threshold(n_clients)
        is_count = isinstance(wished, int) and not isinstance(wished, bool)
        if not is_count or not least <= wished <= n_clients:
            raise InvalidInputError(
                "quorum",
                f"must be a whole number from {least} to {n_clients} with secure aggregation: "
                "fewer clients cannot unmask a sum",
                f"it is {wished!r}",
            )
        if wished < n_clients and (self.limits is None or not self.limits.are_finite):
            raise InvalidInputError(
                "limits",
                "must be given for a quorum below all: only they bound an absent client's risk",
                "there are none",
            )
        return min(wished, self.members.n_clients)

    @cached_property
    def client_id(self) -> str:
        """Of the sum; other clients or weights give another one, so a resumed run has the same."""
        return f"all-{self.members.fingerprint[:8]}"

    def method(self, algorithm: Any) -> Any:
        """The method as it runs on sums, or an UnsupportedError that says why it does not."""
        all_present = self.quorum == self.members.n_clients
        return on_sums(algorithm, self.members, all_present=all_present)

    def join(self) -> Sequence[ClientProfile]:
        """One client: sums over all who are not left out."""
        for name in ("members", "quorum", "client_id"):
            self.__dict__.pop(name, None)
        return [self.members.profile_of_sum(self.client_id)]

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        """The sum over the clients, or why there is none."""
        (broadcast,) = broadcasts
        if describe(self.method(from_description(broadcast.algorithm))) != broadcast.algorithm:
            raise InvalidInputError(
                "algorithm", "must be what SecureSum.method gives", f"it is {broadcast.algorithm}"
            )
        has_three = self.on_fault == "drop" or self.quorum < self.members.n_clients
        round_ = SumRound(
            broadcast,
            None if deadline is None else deadline / (3.0 if has_three else 2.0),
            self._keys,
            transport=self.transport,
            members=self.members,
            quorum=self.quorum,
            on_fault=self.on_fault,
            tell=self._tell,
        )
        try:
            sums, names = round_.sum()
            present = np.isin(self.members.client_ids, sorted(names))
            if not present.all():
                absent = sorted(set(self.members.client_ids) - names)
                self._tell({"event": "absent", "round": broadcast.round, "clients": absent})
            self._count(round_, names)
        except SumFailedError as failed:
            return [Failure(self.client_id, failed.reason, is_missing=failed.is_missing)]
        values = complete(sums, broadcast.values, self.members, present, self.limits)
        return [Update(broadcast.run_id, broadcast.round, broadcast.client_id, values)]

    def _count(self, round_: SumRound, present: set[str]) -> None:
        """Who is left out for good from the next ``join`` on."""
        names, number = self.members.client_ids, round_.broadcast.round
        for name in names:
            if name in round_.doubted:  # one of two who differ is right: neither goes for good
                continue
            self._absences[name] = 0 if name in present else self._absences[name] + 1
            self._faults[name] += name in round_.at_fault
        n_before = len(self.left_out)
        least = math.inf if self.leave_out_after is None else self.leave_out_after
        for name in names:
            is_gone = max(self._absences[name], self._faults[name]) >= least
            if is_gone and name not in self.left_out:
                self.left_out[name] = number
                self._tell({"event": "left out", "round": number, "client": name})
        if len(self.left_out) == n_before:
            return
        # A run ends in words where the others alone could not hide each other.
        weights = self._everybody.alphas[self._kept()].tolist()
        broken = f"{len(weights)} clients are left, at least {FEWEST} are needed"
        if len(weights) >= FEWEST:
            broken = broken_weight_rule(weights)
        if broken:
            gone = ", ".join(f"{name!r}" for name in sorted(self.left_out))
            raise SumFailedError(f"without {gone}: {broken}", is_missing=True)


def on_sums(method: Any, members: Federation, *, all_present: bool) -> Any:
    """The method as a server runs it that sees weighted sums only, or an UnsupportedError.

    The bundle's cuts are summed. ADMM's tau, which depends on the weights, is fixed. FedDRO's
    logarithm of a mean is no mean of what clients could send.
    """
    if isinstance(method, OneVsRest):
        return replace(method, inner=on_sums(method.inner, members, all_present=all_present))
    if getattr(method, "trim", 0.0) > 0.0:
        raise UnsupportedError("a trimmed mean needs every client's own answer: trim must be 0")
    if isinstance(method, Evaluation | Subgradient):
        return method
    if isinstance(method, Bundle):
        return replace(method, cuts="summed")
    if isinstance(method, ADMM):
        return replace(method, tau=method._tau(members))
    if isinstance(method, FedDRO):
        raise UnsupportedError(
            f"{method.name} takes the logarithm of a mean over the clients, which cannot be had "
            "from sums of what they know alone; use it without secure aggregation"
        )
    if not isinstance(method, FedSGD | FedAvg):
        raise UnsupportedError(f"{method.name} is not known to work on sums over the clients")
    if not all_present:
        raise UnsupportedError(
            f"{method.name} has no bound for what an absent client would add to a sum: secure "
            "aggregation needs every client in every round, a quorum of all"
        )
    return method


def complete(
    sums: Values,
    asked: Values,
    members: Federation,
    present: npt.NDArray[np.bool_],
    limits: Limits | None,
) -> dict[str, Array]:
    """Sums over the clients present, with what is provable of the others."""
    if present.all():
        return dict(sums)
    absent = np.where(present, 0.0, members.alphas)
    completed = {}
    for name, array in sums.items():
        model, slash, kind = name.rpartition("/")  # one-vs-rest has its models' numbers in front
        points = asked[model + slash + "points"]
        if kind == "risks":
            assert limits is not None  # SecureSum asks for them where clients may be absent
            # The first points of a bundle are each client's own; there nobody does worse than at 0.
            at = points if len(points) else np.zeros((1, members.width))
            ceilings = [
                [limits.risk_ceiling(one, point) for point in at] for one in members.profiles
            ]
            array = array + weighted_sum(absent, ceilings)
        elif kind == "norm_weights":
            array = array + dot(absent, members.floors)
        elif kind == "vector":
            array = array + absent.sum() * points[0]
        elif kind in ("own", "squares"):
            array = array / members.alphas[present].sum()
        completed[name] = np.asarray(array)
    return completed
