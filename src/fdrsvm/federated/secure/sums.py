"""The server's side of secure aggregation: a transport whose one client is the sum of all.

Protocol, after Bonawitz et al. (2017), two exchanges a round, for a server that follows it:

    keys     in a session's first round: every client's X25519 public key
    upload   y_i = alpha_i x_i + PRG(b_i) + sum_{j > i} PRG(s_ij) - sum_{j < i} PRG(s_ij) mod 2^128
             where x_i is the method's answer, b_i a seed of this sum only and s_ij a key that i and
             j have in common; with it a share of b_i for every other client, sealed
    unmask   told who survived, each gives its shares of the survivors' b_i, and s_ij of the others

So the sum over the survivors is all that can be had. If a survivor leaves before it unmasks, the
others' shares do, as long as nobody had left before the upload; else the sum is done over, with
fresh masks. Shares: :mod:`fdrsvm.federated.secure.secret_sharing`. Clients' rules:
:mod:`fdrsvm.federated.secure.client`.
"""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.algorithms import describe, from_description
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update
from fdrsvm.federated.rounds import Failure, OnFault, Transport
from fdrsvm.federated.secure.client import ASKED, LETTER_BYTES, MASKED, PRESENT, signed_mask
from fdrsvm.federated.secure.fixed_point import Fixed, added, from_fixed, negative
from fdrsvm.federated.secure.methods import completed, on_sums
from fdrsvm.federated.secure.primitives import KEY_BYTES, is_public_key, mask
from fdrsvm.federated.secure.secret_sharing import SHARE_BYTES, combined, weights_at_zero
from fdrsvm.federated.secure.step import FEWEST, Member, SecureStep, threshold
from fdrsvm.federated.secure.words import Words, from_words, n_words
from fdrsvm.maths.arrays import Array, check_choice

_MAX_ATTEMPTS = 5
_PUBLIC_FORM = {"public": (n_words(KEY_BYTES),)}

Answers = dict[str, Update]
Listener = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class _Upload:
    """Uploads that arrived: the step that asked for them, and answers by position."""

    step: SecureStep
    answers: Mapping[int, Update]

    @property
    def survivors(self) -> tuple[int, ...]:
        return tuple(sorted(self.answers))


class _RoundFailedError(Exception):
    """No sum in this round; what to tell the loop."""

    def __init__(self, reason: str, *, is_missing: bool) -> None:
        self.reason = reason
        self.is_missing = is_missing
        super().__init__(reason)


class SecureSum:
    """All clients of a transport as one, whose answers are weighted sums over them.

    Pass it as ``transport`` of :func:`fdrsvm.federated.run_rounds`, with ``method(algorithm)`` as
    algorithm. A round's deadline is halved between its two exchanges.

    Parameters
    ----------
    transport : Transport
        Reaches the clients; at least three.
    client_weights : "equal", "samples", mapping or array
        The weights alpha_g; the loop is then given one client, of weight 1.
    quorum : int, optional
        How many clients must be in a sum; all if not given.
    on_fault : {"stop", "drop"}
        What to do about a client that reports an error: end the round with it, or leave the client
        out of the sum.
    limits : Limits, optional
        What is agreed of the clients' features; needed for a quorum below all, since the risk of
        an absent client is then counted with its ceiling.
    listener : callable, optional
        Is told of every sum that lacks a client, and who it was, for an audit log.

    Examples
    --------
    >>> from fdrsvm.federated import Bundle, InProcess, make_client, run_rounds
    >>> from fdrsvm.federated.secure.sums import SecureSum
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
    ) -> None:
        self.transport = transport
        self.client_weights = client_weights
        self.on_fault = check_choice(on_fault, "on_fault", ("stop", "drop"))
        self.limits = limits
        self.session = uuid.uuid4().hex
        self._wished_quorum = quorum
        self._tell = listener if listener is not None else _nobody
        self._keys: dict[str, bytes] = {}  # public ones, by client
        self._number = 0

    @cached_property
    def members(self) -> Federation:
        """The clients themselves, and their weights."""
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
        return members

    @cached_property
    def quorum(self) -> int:
        """How many clients must be in a sum."""
        n_clients = self.members.n_clients
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
        return wished

    def method(self, algorithm: Any) -> Any:
        """The method as it runs on sums, or an UnsupportedError that says why it does not."""
        all_present = self.quorum == self.members.n_clients
        return on_sums(algorithm, self.members, all_present=all_present)

    def join(self) -> Sequence[ClientProfile]:
        """One client: sums over all."""
        profiles, alphas = self.members.profiles, self.members.alphas
        epsilons = np.array([profile.epsilon for profile in profiles])
        return [
            replace(
                profiles[0],
                client_id=self.client_id,
                n_samples=sum(profile.n_samples for profile in profiles),
                epsilon=float(alphas @ epsilons),
                floor=self.members.floor,
            )
        ]

    @cached_property
    def client_id(self) -> str:
        """Of the sum; other clients or weights give another one, so a resumed run has the same."""
        return f"all-{self.members.fingerprint[:8]}"

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        """The sum over the clients, or why there is none."""
        (broadcast,) = broadcasts
        self._check_method(broadcast.algorithm)
        share = None if deadline is None else deadline / 2.0
        try:
            self._renewed: set[str] = set()
            self._learn_keys(broadcast, share)
            for _ in range(_MAX_ATTEMPTS):
                values = self._attempt(broadcast, share)
                if values is not None:
                    return [replace(_answer_to(broadcast), values=values)]
        except _RoundFailedError as failed:
            return [Failure(self.client_id, failed.reason, is_missing=failed.is_missing)]
        reason = f"clients came and went: no sum in {_MAX_ATTEMPTS} tries"
        return [Failure(self.client_id, reason, is_missing=True)]

    def _check_method(self, text: str) -> None:
        method = from_description(text)
        if describe(self.method(method)) != text:
            raise InvalidInputError(
                "algorithm", "must be what SecureSum.method gives", f"it is {text}"
            )

    # --- one sum ---

    def _attempt(self, broadcast: Broadcast, deadline: float | None) -> dict[str, Array] | None:
        """One sum; None if it has to be done over."""
        upload = self._upload(broadcast, deadline)
        if upload is None:
            return None
        revealed = self._unmask(broadcast, upload, deadline)
        n_members, survivors = len(upload.step.members), upload.survivors
        if len(survivors) < n_members and len(revealed) < len(survivors):
            return None  # who left now had masks in common with who left before
        if len(revealed) < threshold(n_members):
            raise _RoundFailedError(
                f"{len(revealed)} clients unmasked, {threshold(n_members)} are needed",
                is_missing=True,
            )
        sums = _unmasked(upload, revealed)
        names = [upload.step.members[k].client_id for k in survivors]
        present = np.isin(self.members.client_ids, names)
        if not present.all():
            absent = sorted(set(self.members.client_ids) - set(names))
            self._tell({"event": "absent", "round": broadcast.round, "clients": absent})
        return completed(sums, broadcast.values, self.members, present, self.limits)

    def _learn_keys(self, broadcast: Broadcast, deadline: float | None) -> None:
        """Asks for the keys that are not known: of all at first, of latecomers in each round."""
        unknown = [name for name in self.members.client_ids if name not in self._keys]
        if not unknown:
            return
        step = SecureStep("upload", self.session, self._number + 1, broadcast.algorithm)
        asked = [_to(broadcast, name, step, {}) for name in unknown]
        for name, update in self._exchange(asked, deadline).items():
            self._take_key(name, update, broadcast.round)

    def _take_key(self, name: str, update: Update, round_: int) -> None:
        """Keeps a client's key, if the others can work with it."""
        self._keys.pop(name, None)
        if not _has_form(update, _PUBLIC_FORM):
            self._blame(name, f"round {round_}: its key has another form")
            return
        words = np.asarray(update.values["public"], dtype=np.int64)
        key = from_words(words, KEY_BYTES)
        if key in self._keys.values() or not is_public_key(key):
            self._blame(name, f"round {round_}: its key is none, or another client's")
            return
        self._keys[name] = key

    def _upload(self, broadcast: Broadcast, deadline: float | None) -> _Upload | None:
        """Masked answers; None if a client lost its keys and has new ones."""
        weights = dict(zip(self.members.client_ids, self.members.alphas.tolist(), strict=True))
        members = tuple(
            Member(name, self._keys[name].hex(), weights[name])
            for name in self.members.client_ids
            if name in self._keys
        )
        self._check_quorum(len(members), "joined")
        self._number += 1
        step = SecureStep("upload", self.session, self._number, broadcast.algorithm, members)
        values = {ASKED + name: array for name, array in broadcast.values.items()}
        asked = [_to(broadcast, member.client_id, step, values) for member in members]
        found = self._exchange(asked, deadline)
        newcomers = [name for name, update in found.items() if "public" in update.values]
        for name in newcomers:
            self._renew_key(name, found[name], broadcast.round)
        if newcomers:
            return None
        positions = {member.client_id: k for k, member in enumerate(members)}
        answers = self._of_one_form({positions[name]: one for name, one in found.items()}, step)
        self._check_quorum(len(answers), "answered")
        return _Upload(step, answers)

    def _renew_key(self, name: str, update: Update, round_: int) -> None:
        """Of a client that lost its keys; who does so twice in a round is left out of it."""
        if name in self._renewed:
            del self._keys[name]
            self._blame(name, f"round {round_}: it has another key each time")
            return
        self._renewed.add(name)
        self._take_key(name, update, round_)

    def _of_one_form(self, answers: Mapping[int, Update], step: SecureStep) -> dict[int, Update]:
        """Those that can be added up: whose form is the one that most have."""
        letters = {"letters": (len(step.members) - 1, n_words(LETTER_BYTES)), PRESENT: (1, 2)}
        forms = {}
        for k, update in sorted(answers.items()):
            own = {name: np.shape(array) for name, array in update.values.items()}
            if letters.items() <= own.items() and _has_form(update, own):
                forms[k] = frozenset(own.items())
        common = Counter(forms.values()).most_common(1)
        kept = {}
        for k, update in sorted(answers.items()):
            if k in forms and forms[k] == common[0][0]:
                kept[k] = update
            else:
                self._blame(step.members[k].client_id, "its upload has another form")
        return kept

    def _unmask(
        self, broadcast: Broadcast, upload: _Upload, deadline: float | None
    ) -> dict[int, Update]:
        """What survivors reveal, by position."""
        step, survivors = upload.step, upload.survivors
        told = SecureStep("unmask", step.session, step.number, survivors=survivors)
        asked = [
            _to(
                broadcast,
                step.members[k].client_id,
                told,
                {"letters": _letters_to(k, upload)},
            )
            for k in survivors
        ]
        found = self._exchange(asked, deadline)
        form = {
            "shares": (len(survivors), n_words(SHARE_BYTES)),
            "masks": (len(step.members) - len(survivors), n_words(KEY_BYTES)),
        }
        revealed = {}
        for k in survivors:
            name = step.members[k].client_id
            if name in found and _has_form(found[name], form):
                revealed[k] = found[name]
            elif name in found:
                self._blame(name, "what it reveals has another form")
        return revealed

    # --- clients that do not answer ---

    def _exchange(self, asked: Sequence[Broadcast], deadline: float | None) -> Answers:
        """The answers that came, by client."""
        self._reasons: dict[str, str] = {}
        found = {}
        answers = self.transport.exchange(asked, deadline)
        for broadcast, one in zip(asked, answers, strict=True):
            name = broadcast.client_id
            if isinstance(one, Failure) and one.is_missing:
                self._reasons[name] = one.reason
            elif isinstance(one, Failure):
                self._blame(name, one.reason)
            elif replace(one, values={}) != replace(_answer_to(broadcast), values={}):
                self._blame(name, "its answer is of another client, run or round")
            else:
                found[name] = one
        return found

    def _blame(self, name: str, reason: str) -> None:
        """A client at fault ends the round, or is left out of it."""
        if self.on_fault == "stop":
            raise _RoundFailedError(f"client {name!r}: {reason}", is_missing=False)
        self._reasons[name] = reason

    def _check_quorum(self, count: int, what: str) -> None:
        if count < self.quorum:
            n_clients = self.members.n_clients
            reasons = "; ".join(f"{name}: {why}" for name, why in sorted(self._reasons.items()))
            raise _RoundFailedError(
                f"{count} of {n_clients} clients {what}, {self.quorum} are needed ({reasons})",
                is_missing=True,
            )


def _answer_to(broadcast: Broadcast) -> Update:
    return Update(broadcast.run_id, broadcast.round, broadcast.client_id, {})


def _to(
    broadcast: Broadcast, name: str, step: SecureStep, values: Mapping[str, npt.NDArray[Any]]
) -> Broadcast:
    return replace(broadcast, client_id=name, algorithm=describe(step), values=values)


def _has_form(update: Update, form: Mapping[str, tuple[int, ...]]) -> bool:
    return update.values.keys() == form.keys() and all(
        isinstance(array, np.ndarray) and array.dtype == np.int64 and array.shape == form[name]
        for name, array in update.values.items()
    )


def _letters_to(receiver: int, upload: _Upload) -> Words:
    """Letters of the survivors to one of them; each has one for every member but itself."""
    rows = [
        upload.answers[sender].values["letters"][receiver - (sender < receiver)]
        for sender in upload.survivors
        if sender != receiver
    ]
    return np.array(rows, dtype=np.int64)


def _unmasked(upload: _Upload, revealed: Mapping[int, Update]) -> dict[str, Array]:
    """The sums over the survivors."""
    first = upload.answers[upload.survivors[0]]
    names = sorted(name for name in first.values if name.startswith(MASKED))
    total = reduce(added, (_flat(update, names) for update in upload.answers.values()))
    for stream in _masks(upload, revealed, len(total)):
        total = added(total, negative(stream))
    sums = from_fixed(total)
    if sums[-1] != len(upload.survivors):
        raise _RoundFailedError(
            "the masks do not cancel: clients were told different things, or one revealed what is "
            "not so",
            is_missing=False,
        )
    found, at = {}, 0
    for name in names:
        shape = first.values[name].shape[:-1]
        size = math.prod(shape)
        found[name.removeprefix(MASKED)] = sums[at : at + size].reshape(shape)
        at += size
    return found


def _flat(update: Update, names: Sequence[str]) -> Fixed:
    """An upload as one column of numbers, the count last."""
    parts = [update.values[name].reshape(-1, 2) for name in (*names, PRESENT)]
    return np.concatenate(parts).view(np.uint64)


def _masks(upload: _Upload, revealed: Mapping[int, Update], length: int) -> list[Fixed]:
    """All masks that are left in the survivors' sum."""
    n_members, survivors = len(upload.step.members), upload.survivors
    chosen = sorted(revealed)[: threshold(n_members)]
    weights = weights_at_zero([k + 1 for k in chosen])
    streams = []
    for at in range(len(survivors)):
        shares = {k + 1: from_words(revealed[k].values["shares"][at], SHARE_BYTES) for k in chosen}
        streams.append(mask(combined(shares, weights), length))
    gone = [k for k in range(n_members) if k not in upload.answers]
    for k in survivors if gone else ():
        for row, other in zip(revealed[k].values["masks"], gone, strict=True):
            streams.append(signed_mask(from_words(row, KEY_BYTES), k, other, length))
    return streams


def _nobody(event: Mapping[str, Any]) -> None:
    """Listens to nothing."""
