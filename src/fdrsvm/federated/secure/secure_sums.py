"""The server's side of secure aggregation: a transport whose one client is the sum of all.

Protocol, after Bonawitz et al. (2017), two or three exchanges a round:

    keys     in a session's first round: every client's X25519 public key
    upload   y_i = alpha_i x_i + PRG(b_i) + sum_{j > i} PRG(s_ij) - sum_{j < i} PRG(s_ij) mod 2^128
             where x_i is the method's answer, b_i a seed of this sum only and s_ij a key that i and
             j have in common; with it a share of b_i for every client in a sealed letter, the hash
             of b_i, and hashes of the keys to the letters as both of their ends know them
    agree    if somebody is gone, or to find faults while they cost nothing: each survivor gives
             s_ij of the others and its word to the other survivors, or proof of a broken letter
    unmask   each survivor gives the keys to the letters that it has of survivors, hence its shares

So the sum over the survivors is all that can be had. Until keys are given the sum can be done over,
with fresh masks and other survivors; after that it cannot, and need not be: whoever leaves or lies,
``threshold`` right keys give a seed, and hashes say which ones are right. Shares:
:mod:`fdrsvm.federated.secure.secret_sharing`. Clients' rules:
:mod:`fdrsvm.federated.secure.secure_client`.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_choice, check_count
from fdrsvm.core.vectors import dot
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update
from fdrsvm.federated.methods import describe, from_description
from fdrsvm.federated.rounds import Failure, OnFault, Transport
from fdrsvm.federated.secure.fixed_point import Fixed, added, from_fixed, negative
from fdrsvm.federated.secure.primitives import (
    KEY_BYTES,
    PROOF_BYTES,
    TAG_BYTES,
    is_public_key,
    is_whole,
    mask,
    proof_of,
    seal_of,
    text_of,
)
from fdrsvm.federated.secure.secret_sharing import combined, weights_at_zero
from fdrsvm.federated.secure.secure_client import (
    ASKED,
    LETTER_BYTES,
    MASKED,
    PRESENT,
    digest_of,
    signed_mask,
)
from fdrsvm.federated.secure.secure_memory import HASH_BYTES
from fdrsvm.federated.secure.secure_methods import completed, on_sums
from fdrsvm.federated.secure.secure_step import (
    FEWEST,
    Member,
    SecureStep,
    broken_weight_rule,
    threshold,
)
from fdrsvm.federated.secure.words import Words, from_words, n_words, stack

_PUBLIC_FORM = {"public": (n_words(KEY_BYTES),)}
_BROKEN_FORM = {"broken": (1,), "proof": (n_words(PROOF_BYTES),)}

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

    @property
    def is_whole(self) -> bool:
        """Whether all members are survivors."""
        return len(self.answers) == len(self.step.members)

    def name(self, position: int) -> str:
        return self.step.members[position].client_id

    def letter(self, sender: int, receiver: int) -> bytes:
        return from_words(self.answers[sender].values["letters"][receiver], LETTER_BYTES)

    def seal(self, sender: int, receiver: int) -> bytes:
        """Of the letter's key, as its sender knows it; the receiver says the same."""
        return from_words(self.answers[sender].values["seals out"][receiver], TAG_BYTES)


class _RoundFailedError(Exception):
    """No sum in this round; what to tell the loop."""

    def __init__(self, reason: str, *, is_missing: bool) -> None:
        self.reason = reason
        self.is_missing = is_missing
        super().__init__(reason)


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
        self.transport = transport
        self.client_weights = client_weights
        self.on_fault = check_choice(on_fault, "on_fault", ("stop", "drop"))
        self.limits = limits
        self.session = uuid.uuid4().hex
        self.leave_out_after = (
            None if leave_out_after is None else check_count(leave_out_after, "leave_out_after")
        )
        self.left_out: dict[str, int] = {}
        self._wished_quorum = quorum
        self._tell = listener if listener is not None else _nobody
        self._keys: dict[str, bytes] = {}  # public ones, by client
        self._number = 0
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
        return self._without(self.left_out)

    def _without(self, names: Mapping[str, int]) -> Federation:
        everybody = self._everybody
        if not names:
            return everybody
        kept = [g for g, name in enumerate(everybody.client_ids) if name not in names]
        return Federation.checked([everybody.profiles[g] for g in kept], everybody.alphas[kept])

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

    def method(self, algorithm: Any) -> Any:
        """The method as it runs on sums, or an UnsupportedError that says why it does not."""
        all_present = self.quorum == self.members.n_clients
        return on_sums(algorithm, self.members, all_present=all_present)

    def join(self) -> Sequence[ClientProfile]:
        """One client: sums over all who are not left out."""
        for name in ("members", "quorum", "client_id"):
            self.__dict__.pop(name, None)
        profiles, alphas = self.members.profiles, self.members.alphas
        epsilons = np.array([profile.epsilon for profile in profiles])
        return [
            replace(
                profiles[0],
                client_id=self.client_id,
                n_samples=sum(profile.n_samples for profile in profiles),
                epsilon=dot(alphas, epsilons),
                floor=self.members.floor,
                flips=dot(alphas, [profile.flips for profile in profiles]),
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
        has_three = self.on_fault == "drop" or self.quorum < self.members.n_clients
        share = None if deadline is None else deadline / (3.0 if has_three else 2.0)
        self._renewed: set[str] = set()
        self._at_fault: dict[str, str] = {}  # in this round
        self._doubted: set[str] = set()  # of those, who may be right
        self._silent: set[str] = set()  # answered, then did not agree: not asked again in it
        self._round = broadcast.round
        try:
            values = self._sum(broadcast, share)
        except _RoundFailedError as failed:
            return [Failure(self.client_id, failed.reason, is_missing=failed.is_missing)]
        return [replace(_answer_to(broadcast), values=values)]

    def _sum(self, broadcast: Broadcast, deadline: float | None) -> dict[str, Array]:
        self._learn_keys(broadcast, deadline)
        # Every try that fails leaves somebody out of the next, or gives somebody a new key, once.
        n_tries = 2 * self.members.n_clients
        for _ in range(n_tries):
            values = self._attempt(broadcast, deadline)
            if values is not None:
                return values
        reason = f"clients came and went: no sum in {n_tries} tries{self._because()}"
        raise _RoundFailedError(reason, is_missing=True)

    def _check_method(self, text: str) -> None:
        method = from_description(text)
        if describe(self.method(method)) != text:
            raise InvalidInputError(
                "algorithm", "must be what SecureSum.method gives", f"it is {text}"
            )

    # --- one sum ---

    def _attempt(self, broadcast: Broadcast, deadline: float | None) -> dict[str, Array] | None:
        """One sum; None if it has to be done over, which it may be until keys are given."""
        upload = self._upload(broadcast, deadline)
        if upload is None:
            return None
        agreed: Mapping[int, Update] = {}
        if self.on_fault == "drop" or not upload.is_whole:
            agreed = self._agree(broadcast, upload, deadline)
            if len(agreed) < len(upload.survivors):
                return None
        revealed = self._unmask(broadcast, upload, agreed, deadline)
        least = threshold(len(upload.step.members))
        if len(revealed) < least:
            raise _RoundFailedError(
                f"{len(revealed)} clients unmasked, {least} are needed{self._because()}",
                is_missing=True,
            )
        seeds = [self._seed(upload, revealed, k) for k in upload.survivors]
        sums = _unmasked(upload, agreed, seeds)
        names = [upload.name(k) for k in upload.survivors]
        present = np.isin(self.members.client_ids, names)
        if not present.all():
            absent = sorted(set(self.members.client_ids) - set(names))
            self._tell({"event": "absent", "round": broadcast.round, "clients": absent})
        self._count(set(names))
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
        key = _bytes(update.values["public"], KEY_BYTES)
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
            if name in self._keys and name not in self._at_fault and name not in self._silent
        )
        self._check_quorum([member.weight for member in members], "joined")
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
        self._check_quorum([members[k].weight for k in answers], "answered")
        upload = _Upload(step, answers)
        if self._blame_disagreeing(upload):
            return None
        return upload

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
        n_members, seals = len(step.members), n_words(TAG_BYTES)
        fixed = {
            "letters": (n_members, n_words(LETTER_BYTES)),
            "seals out": (n_members, seals),
            "seals in": (n_members, seals),
            "seed": (n_words(HASH_BYTES),),
            PRESENT: (1, 2),
        }
        forms = {}
        for k, update in sorted(answers.items()):
            own = {name: np.shape(array) for name, array in update.values.items()}
            if fixed.items() <= own.items() and _has_form(update, own):
                forms[k] = frozenset(own.items())
        common = Counter(forms.values()).most_common(1)
        kept = {}
        for k, update in sorted(answers.items()):
            if k in forms and forms[k] == common[0][0]:
                kept[k] = update
            else:
                self._blame(step.members[k].client_id, "its upload has another form")
        return kept

    def _blame_disagreeing(self, upload: _Upload) -> bool:
        """Whether two clients' hashes of the keys in common differ: their masks would not cancel.

        One of the two is wrong, and nobody can say which. Who differs from most others is taken to
        be: a client that is right differs from none that is.
        """
        differ = _differing(upload)
        if not differ.any():
            return False
        while differ.any():
            counts = differ.sum(axis=1)
            wrong = np.flatnonzero(counts == counts.max())
            names = sorted(upload.name(upload.survivors[g]) for g in wrong)
            reason = f"its keys differ from those of {counts.max()} others"
            if len(wrong) > 1:
                reason += f"; {' or '.join(names)} is wrong, it cannot be said who"
            for name in names:
                self._blame(name, reason)
            if len(wrong) > 1:
                self._doubted |= set(names)
            differ[wrong], differ[:, wrong] = False, False
        return True

    def _agree(
        self, broadcast: Broadcast, upload: _Upload, deadline: float | None
    ) -> dict[int, Update]:
        """Masks in common with who is gone, and survivors' words to each other, by position."""
        step, survivors = upload.step, upload.survivors
        found = self._tell_survivors(
            "agree",
            broadcast,
            upload,
            {k: {"letters": _letters_to(k, upload)} for k in survivors},
            deadline,
        )
        form = {
            "words": (len(survivors) - 1, n_words(TAG_BYTES)),
            "masks": (len(step.members) - len(survivors), n_words(KEY_BYTES)),
        }
        self._silent |= {upload.name(k) for k in survivors if k not in found}
        agreed = {}
        for k, update in found.items():
            if _has_form(update, _BROKEN_FORM):
                self._blame_for_letter(upload, k, update)
            elif _has_form(update, form):
                agreed[k] = update
            else:
                self._blame(upload.name(k), "what it agrees to has another form")
        return agreed

    def _blame_for_letter(self, upload: _Upload, receiver: int, complaint: Update) -> None:
        """The sender, if the proof holds for the letter as it came; else who complains."""
        sender = int(complaint.values["broken"][0])
        proof = _bytes(complaint.values["proof"], PROOF_BYTES)
        if (
            sender in upload.answers
            and seal_of(proof) == upload.seal(sender, receiver)
            and not is_whole(proof, upload.letter(sender, receiver))
        ):
            reason = f"its letter to {upload.name(receiver)!r} is broken"
            self._blame(upload.name(sender), reason)
        else:
            self._blame(upload.name(receiver), "it complains of a letter without proof")

    def _unmask(
        self,
        broadcast: Broadcast,
        upload: _Upload,
        agreed: Mapping[int, Update],
        deadline: float | None,
    ) -> dict[int, Update]:
        """The keys that survivors reveal, by position."""
        survivors = upload.survivors
        values: dict[int, dict[str, Words]] = {k: {} for k in survivors}
        if agreed:
            values = {k: {"words": _words_to(k, agreed)} for k in survivors}
        found = self._tell_survivors("unmask", broadcast, upload, values, deadline)
        form = {"keys": (len(survivors), n_words(KEY_BYTES))}
        revealed = {}
        for k, update in found.items():
            if _has_form(update, form):
                revealed[k] = update
            else:
                self._blame(upload.name(k), "what it reveals has another form")
        return revealed

    def _tell_survivors(
        self,
        phase: Any,
        broadcast: Broadcast,
        upload: _Upload,
        values: Mapping[int, Mapping[str, Words]],
        deadline: float | None,
    ) -> dict[int, Update]:
        """Tells each who they are, and what arrived of it; the answers by position."""
        step, survivors = upload.step, upload.survivors
        told = SecureStep(phase, step.session, step.number, survivors=survivors)
        asked = []
        for k in survivors:
            arrived = stack([digest_of(upload.answers[k].values)], HASH_BYTES)
            asked.append(_to(broadcast, upload.name(k), told, {**values[k], "arrived": arrived}))
        found = self._exchange(asked, deadline)
        return {k: found[upload.name(k)] for k in survivors if upload.name(k) in found}

    # --- seeds from shares, and who gave wrong ones ---

    def _seed(self, upload: _Upload, revealed: Mapping[int, Update], sender: int) -> bytes:
        """What masks a survivor's upload, checked against its hash."""
        least = threshold(len(upload.step.members))
        expected = _bytes(upload.answers[sender].values["seed"], HASH_BYTES)
        shares: dict[int, bytes] = {}
        for k, share in self._shares(upload, revealed, sender):
            shares[k + 1] = share
            for numbers in _windows(sorted(shares), least, newest=k + 1):
                seed = combined(shares, self._weights_at_zero(numbers))
                if hashlib.sha256(seed).digest() == expected:
                    if len(shares) > least:
                        self._blame(upload.name(sender), "shares of its seed do not fit")
                    return seed
        if len(shares) < least:
            raise _RoundFailedError(
                f"{len(shares)} right shares of what {upload.name(sender)!r} masked with, {least} "
                f"are needed{self._because()}",
                is_missing=True,
            )
        raise _RoundFailedError(
            f"client {upload.name(sender)!r}: the shares of its seed do not give it; the others "
            "have revealed theirs, so this round cannot be done over",
            is_missing=False,
        )

    def _shares(
        self, upload: _Upload, revealed: Mapping[int, Update], sender: int
    ) -> Iterator[tuple[int, bytes]]:
        """The shares of one seed, from letters whose keys are as both ends said beforehand."""
        at = upload.survivors.index(sender)
        for receiver, update in sorted(revealed.items()):
            key = from_words(update.values["keys"][at], KEY_BYTES)
            letter, proof = upload.letter(sender, receiver), proof_of(key)
            if seal_of(proof) != upload.seal(sender, receiver):
                self._blame(upload.name(receiver), "a key that it reveals is not as it said before")
            elif not is_whole(proof, letter):
                reason = f"its letter to {upload.name(receiver)!r} is broken"
                self._blame(upload.name(sender), reason)
            else:
                yield receiver, text_of(key, letter)

    def _weights_at_zero(self, numbers: tuple[int, ...]) -> dict[int, int]:
        """Those of the last set of shares are kept: most seeds come from the same clients."""
        if getattr(self, "_last_numbers", None) != numbers:
            self._last_numbers, self._last_weights = numbers, weights_at_zero(numbers)
        return self._last_weights

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
        if name not in self._at_fault:
            self._at_fault[name] = reason
            self._tell({"event": "fault", "round": self._round, "client": name, "reason": reason})

    def _because(self) -> str:
        reasons = {**self._at_fault, **self._reasons}
        if not reasons:
            return ""
        return f" ({'; '.join(f'{name}: {why}' for name, why in sorted(reasons.items()))})"

    def _check_quorum(self, weights: Sequence[float], what: str) -> None:
        """Whether so many, with these weights, make a sum that clients will unmask."""
        if len(weights) < self.quorum:
            raise _RoundFailedError(
                f"{len(weights)} of {self.members.n_clients} clients {what}, {self.quorum} are "
                f"needed{self._because()}",
                is_missing=True,
            )
        broken = broken_weight_rule(weights)
        if broken:
            raise _RoundFailedError(
                f"of the clients that {what} {broken}: they would refuse{self._because()}",
                is_missing=True,
            )

    def _count(self, present: set[str]) -> None:
        """Who is left out for good from the next ``join`` on."""
        for name in self.members.client_ids:
            if name in self._doubted:  # one of two who differ is right: neither goes for good
                continue
            self._absences[name] = 0 if name in present else self._absences[name] + 1
            self._faults[name] += name in self._at_fault
        if self.leave_out_after is None:
            return
        gone = [
            name
            for name in self.members.client_ids
            if name not in self.left_out
            and max(self._absences[name], self._faults[name]) >= self.leave_out_after
        ]
        for name in gone:
            self.left_out[name] = self._round
            self._tell({"event": "left out", "round": self._round, "client": name})
        if gone:
            self._check_rest()

    def _check_rest(self) -> None:
        """A run ends in words where the others alone could not hide each other."""
        n_left = self._everybody.n_clients - len(self.left_out)
        broken = f"{n_left} clients are left, at least {FEWEST} are needed"
        if n_left >= FEWEST:
            broken = broken_weight_rule(self._without(self.left_out).alphas.tolist())
        if broken:
            names = ", ".join(f"{name!r}" for name in sorted(self.left_out))
            raise _RoundFailedError(f"without {names}: {broken}", is_missing=True)


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


def _bytes(array: npt.NDArray[Any], length: int) -> bytes:
    """Of an array whose form was checked."""
    return from_words(np.asarray(array, dtype=np.int64), length)


def _letters_to(receiver: int, upload: _Upload) -> Words:
    """Letters of the other survivors to one of them."""
    rows = [
        upload.answers[sender].values["letters"][receiver]
        for sender in upload.survivors
        if sender != receiver
    ]
    return np.array(rows, dtype=np.int64)


def _words_to(receiver: int, agreed: Mapping[int, Update]) -> Words:
    """Each survivor has a word for every other one, in order."""
    survivors = sorted(agreed)
    at = survivors.index(receiver)
    rows = [
        agreed[sender].values["words"][at - (sender < receiver)]
        for sender in survivors
        if sender != receiver
    ]
    return np.array(rows, dtype=np.int64)


def _differing(upload: _Upload) -> npt.NDArray[np.bool_]:
    """For which pairs of survivors the two ends' hashes of a letter's key are not the same."""
    survivors = list(upload.survivors)
    out, in_ = (
        np.array([upload.answers[k].values[name][survivors] for k in survivors])
        for name in ("seals out", "seals in")
    )
    differ = (out != in_.transpose(1, 0, 2)).any(axis=2)
    return np.asarray(differ | differ.T)


def _windows(numbers: Sequence[int], length: int, newest: int) -> list[tuple[int, ...]]:
    """So many neighbours each, the newest among them, in a ring: one wrong share is in few."""
    ring, n = [*numbers, *numbers], len(numbers)
    if n < length:
        return []
    found = {tuple(sorted(ring[at : at + length])) for at in range(n)}
    return sorted(window for window in found if newest in window)


def _unmasked(
    upload: _Upload, agreed: Mapping[int, Update], seeds: Sequence[bytes]
) -> dict[str, Array]:
    """The sums over the survivors."""
    first = upload.answers[upload.survivors[0]]
    names = sorted(name for name in first.values if name.startswith(MASKED))
    total = reduce(added, (_flat(update, names) for update in upload.answers.values()))
    for stream in _masks(upload, agreed, seeds, len(total)):
        total = added(total, negative(stream))
    sums = from_fixed(total)
    if sums[-1] != len(upload.survivors):
        raise _RoundFailedError(
            "the masks do not cancel: a client masked with something else than the keys and the "
            "seed that it spoke of; nobody can say which one without its answer",
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


def _masks(
    upload: _Upload, agreed: Mapping[int, Update], seeds: Sequence[bytes], length: int
) -> list[Fixed]:
    """All masks that are left in the survivors' sum."""
    streams = [mask(seed, length) for seed in seeds]
    gone = [k for k in range(len(upload.step.members)) if k not in upload.answers]
    for k in upload.survivors if gone else ():
        for row, other in zip(agreed[k].values["masks"], gone, strict=True):
            streams.append(signed_mask(from_words(row, KEY_BYTES), k, other, length))
    return streams


def _nobody(event: Mapping[str, Any]) -> None:
    """Listens to nothing."""
