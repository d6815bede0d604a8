"""One round of a secure sum at the server: exchanges with the clients until it has their sum.

Protocol, after Bonawitz et al. (2017), two or three exchanges per round:

    keys     in a session's first round, and of a client whose key is another by now: its X25519
             public key, in place of an upload
    upload   y_i = alpha_i x_i + PRG(b_i) + sum_{j > i} PRG(s_ij) - sum_{j < i} PRG(s_ij) mod 2^128
             where x_i is the method's answer, b_i a seed of this sum only and s_ij a key that i and
             j have in common; with it a share of b_i for every client in a sealed letter, the hash
             of b_i, and hashes of the keys to the letters as both of their ends know them
    agree    if somebody is gone, or to find faults while they cost nothing: each survivor gives
             s_ij of the others and its assurance to the other survivors, or proof of a broken
             letter
    unmask   each survivor gives the keys to the letters that it has of survivors, hence its shares

So the sum over the survivors is all that can be had. Until keys are given the sum can be done over,
with fresh masks and other survivors; after that it cannot, and need not be: whoever leaves or lies,
``threshold`` right keys give a seed, and hashes say which ones are right. Clients' rules:
:mod:`fdrsvm.federated.secure.secure_client`.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from typing import Any, Literal

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.messages import Broadcast, Update, add_prefix, split_prefixes
from fdrsvm.federated.methods import describe
from fdrsvm.federated.rounds import Failure, OnFault, Transport
from fdrsvm.federated.secure import primitives as crypto
from fdrsvm.federated.secure.primitives import HASH_BYTES, KEY_BYTES, LETTER_BYTES, TAG_BYTES
from fdrsvm.federated.secure.secure_step import (
    ASKED,
    MASKED,
    PRESENT,
    Arrays,
    Member,
    SecureStep,
    broken_weight_rule,
    digest_of,
    threshold,
)

Listener = Callable[[Mapping[str, Any]], None]
_Form = Mapping[str, tuple[int, ...]]
_PUBLIC_FORM = {"public": (crypto.n_words(KEY_BYTES),)}
_BROKEN_FORM = {"broken": (1,), "proof": (crypto.n_words(crypto.PROOF_BYTES),)}
# Most seeds of a round come from shares of the same clients.
_weights_at_zero = lru_cache(maxsize=1)(crypto.weights_at_zero)


class SumFailedError(Exception):
    """No sum in this round; what to tell the loop."""

    def __init__(self, reason: str, *, is_missing: bool) -> None:
        self.reason = reason
        self.is_missing = is_missing
        super().__init__(reason)


@dataclass
class KeyRing:
    """What the server keeps from round to round: who has which key, and the last upload's number.

    A restarted server has another session, and asks everybody for new keys.
    """

    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    publics: dict[str, bytes] = field(default_factory=dict)  # by client
    number: int = 0


@dataclass(frozen=True)
class _Uploads:
    """Uploads that arrived: the step that asked for them, and answers by position."""

    step: SecureStep
    answers: Mapping[int, Update]

    @cached_property
    def survivors(self) -> tuple[int, ...]:
        return tuple(sorted(self.answers))

    @cached_property
    def gone(self) -> list[int]:
        """Members that are not survivors."""
        return [k for k in range(len(self.step.members)) if k not in self.answers]

    def name(self, position: int) -> str:
        return self.step.members[position].client_id

    def letter(self, sender: int, receiver: int) -> bytes:
        return crypto.from_words(self.answers[sender].values["letters"][receiver], LETTER_BYTES)

    def seal(self, sender: int, receiver: int) -> bytes:
        """Of the letter's key, as its sender knows it; the receiver says the same."""
        return crypto.from_words(self.answers[sender].values["seals out"][receiver], TAG_BYTES)

    def sums(self, agreed: Mapping[int, Update], seeds: Sequence[bytes]) -> dict[str, Array]:
        """The sums over the survivors, without the masks that are left in them."""
        first = self.answers[self.survivors[0]]
        shapes = {
            name: array.shape[:-1]
            for name, array in sorted(split_prefixes(first.values).get(MASKED, {}).items())
        }

        def column(update: Update) -> crypto.Fixed:
            """An upload as the client masked it: one column of numbers, the count last."""
            masked = (update.values[f"{MASKED}/{name}"] for name in shapes)
            arrays = [*masked, update.values[PRESENT]]
            return np.concatenate([array.reshape(-1, 2) for array in arrays]).view(np.uint64)

        total = reduce(crypto.add, (column(update) for update in self.answers.values()))
        length = len(total)
        # Masks of two survivors cancel each other; their seeds' and those with the others are left.
        for seed in seeds:
            total = crypto.add(total, crypto.negate(crypto.mask(seed, length)))
        for k in self.survivors if self.gone else ():
            for row, other in zip(agreed[k].values["masks"], self.gone, strict=True):
                key = crypto.from_words(row, KEY_BYTES)
                total = crypto.add(total, crypto.negate(crypto.signed_mask(key, k, other, length)))
        sums = crypto.from_fixed(total)
        if sums[-1] != len(self.survivors):
            raise SumFailedError(
                "the masks do not cancel: a client masked with something else than the keys and "
                "the seed that it spoke of; nobody can say which one without its answer",
                is_missing=False,
            )
        return crypto.split_column(sums, shapes)


@dataclass
class SumRound:
    """The exchanges of one round, and who is at fault in it.

    ``transport``, ``members``, ``quorum``, ``on_fault`` and ``tell`` are those of
    :class:`fdrsvm.federated.secure.secure_sums.SecureSum`.
    """

    broadcast: Broadcast  # what the loop asks of the sum
    deadline: float | None  # seconds for each exchange
    keys: KeyRing  # changed by the round
    transport: Transport
    members: Federation
    quorum: int
    on_fault: OnFault
    tell: Listener
    at_fault: dict[str, str] = field(default_factory=dict)  # clients, and why
    doubted: set[str] = field(default_factory=set)  # of those, who may be right
    _renewed: set[str] = field(default_factory=set)  # had a new key in this round
    _silent: set[str] = field(default_factory=set)  # uploaded and did not agree: not asked again
    _reasons: dict[str, str] = field(default_factory=dict)  # for no answer in the last exchange

    def sum(self) -> tuple[dict[str, Array], set[str]]:
        """The weighted sums over the survivors, and who they are, or a SumFailedError."""
        # Keys that are not known: of all clients at first, of latecomers in each round.
        unknown = [name for name in self.members.client_ids if name not in self.keys.publics]
        if unknown:
            number, method = self.keys.number + 1, self.broadcast.algorithm
            step = SecureStep("upload", self.keys.session, number, method)
            for name, update in self._exchange(step, {name: {} for name in unknown}).items():
                self._take_key(name, update)
        # Every try that fails leaves somebody out of the next, or gives somebody a new key, once.
        n_tries = 2 * self.members.n_clients
        for _ in range(n_tries):
            uploads = self.upload()
            if uploads is None:
                continue
            agreed: Mapping[int, Update] = {}
            if self.on_fault == "drop" or uploads.gone:
                agreed = self.agree(uploads)
                if len(agreed) < len(uploads.survivors):
                    continue
            # From here on nothing can be done over: clients reveal an upload once.
            revealed = self.unmask(uploads, agreed)
            seeds = [self._seed(uploads, revealed, k) for k in uploads.survivors]
            names = {uploads.name(k) for k in uploads.survivors}
            return uploads.sums(agreed, seeds), names
        raise self._missing(f"clients came and went: no sum in {n_tries} tries")

    # --- keys and uploads ---

    def _take_key(self, name: str, update: Update) -> None:
        """Keeps a client's key, if the others can work with it."""
        publics, round_ = self.keys.publics, self.broadcast.round
        publics.pop(name, None)
        if not _has_form(update, _PUBLIC_FORM):
            self._blame(name, f"round {round_}: its key has another form")
            return
        key = crypto.from_words(update.values["public"], KEY_BYTES)
        if key in publics.values() or not crypto.is_public_key(key):
            self._blame(name, f"round {round_}: its key is not one, or another client's")
            return
        publics[name] = key

    def upload(self) -> _Uploads | None:
        """Masked answers; None if the sum has to be done over with other keys or members."""
        publics = self.keys.publics
        weights = zip(self.members.client_ids, self.members.alphas.tolist(), strict=True)
        members = tuple(
            Member(name, publics[name].hex(), weight)
            for name, weight in weights
            if name in publics and name not in self.at_fault and name not in self._silent
        )
        self._check_quorum([member.weight for member in members], "joined")
        self.keys.number += 1
        session, method = self.keys.session, self.broadcast.algorithm
        step = SecureStep("upload", session, self.keys.number, method, members)
        values = add_prefix(ASKED, self.broadcast.values)
        answers = self._exchange(step, {member.client_id: values for member in members})
        newcomers = [name for name, update in answers.items() if "public" in update.values]
        for name in newcomers:  # they lost their keys; who does so twice is left out of the round
            if name in self._renewed:
                del publics[name]
                self._blame(name, f"round {self.broadcast.round}: it has another key each time")
            else:
                self._renewed.add(name)
                self._take_key(name, answers[name])
        if newcomers:
            return None
        positions = {member.client_id: k for k, member in enumerate(members)}
        uploads = self._of_one_form(step, {positions[name]: one for name, one in answers.items()})
        self._check_quorum([members[k].weight for k in uploads.answers], "answered")
        return None if self._blame_disagreeing(uploads) else uploads

    def _of_one_form(self, step: SecureStep, answers: Mapping[int, Update]) -> _Uploads:
        """Those that can be added up: whose form is the one that most have."""
        n_members, seals = len(step.members), crypto.n_words(TAG_BYTES)
        required = {
            "letters": (n_members, crypto.n_words(LETTER_BYTES)),
            "seals out": (n_members, seals),
            "seals in": (n_members, seals),
            "seed": (crypto.n_words(HASH_BYTES),),
            PRESENT: (1, 2),
        }
        forms = {}
        for k, update in sorted(answers.items()):
            form = {name: np.shape(array) for name, array in update.values.items()}
            if required.items() <= form.items() and _has_form(update, form):
                forms[k] = frozenset(form.items())
        # Nobody knows an answer's shapes beforehand; what most say is taken for right.
        common = Counter(forms.values()).most_common(1)
        kept = {}
        for k, update in sorted(answers.items()):
            if k in forms and forms[k] == common[0][0]:
                kept[k] = update
            else:
                self._blame(step.members[k].client_id, "its upload has another form")
        return _Uploads(step, kept)

    def _blame_disagreeing(self, uploads: _Uploads) -> bool:
        """Whether two clients' hashes of the keys in common differ: their masks would not cancel.

        One of the two is wrong, and nobody can say which. The client that differs from most others
        is taken to be: one that is right differs from nobody who is.
        """
        survivors = list(uploads.survivors)
        outgoing, incoming = (
            np.array([uploads.answers[k].values[name][survivors] for k in survivors])
            for name in ("seals out", "seals in")
        )
        differ = (outgoing != incoming.transpose(1, 0, 2)).any(axis=2)
        differ = differ | differ.T
        if not differ.any():
            return False
        while differ.any():
            counts = differ.sum(axis=1)
            wrong = np.flatnonzero(counts == counts.max())
            names = sorted(uploads.name(survivors[g]) for g in wrong)
            reason = f"its keys differ from those of {counts.max()} others"
            if len(wrong) > 1:
                reason += f"; {' or '.join(names)} is wrong, it cannot be said who"
            for name in names:
                self._blame(name, reason)
            if len(wrong) > 1:
                self.doubted |= set(names)
            differ[wrong], differ[:, wrong] = False, False
        return True

    # --- what survivors say and reveal ---

    def agree(self, uploads: _Uploads) -> dict[int, Update]:
        """Masks in common with those who are gone, and survivors' assurances, by position."""
        survivors = uploads.survivors
        letters: dict[int, Arrays] = {}
        for k in survivors:
            rows = [uploads.answers[j].values["letters"][k] for j in survivors if j != k]
            letters[k] = {"letters": np.array(rows, dtype=np.int64)}
        form = {
            "words": (len(survivors) - 1, crypto.n_words(TAG_BYTES)),
            "masks": (len(uploads.gone), crypto.n_words(KEY_BYTES)),
        }
        agreed = self._tell_survivors("agree", uploads, letters, form, _BROKEN_FORM)
        for k in [k for k, update in agreed.items() if "broken" in update.values]:
            complaint = agreed.pop(k).values
            sender = int(complaint["broken"][0])
            proof = crypto.from_words(complaint["proof"], crypto.PROOF_BYTES)
            # The sender is to blame if the proof holds for the letter as it came.
            if (
                sender in uploads.answers
                and crypto.seal_of(proof) == uploads.seal(sender, k)
                and not crypto.is_whole(proof, uploads.letter(sender, k))
            ):
                self._blame_sender(uploads, sender, k)
            else:
                self._blame(uploads.name(k), "it complains of a letter without proof")
        return agreed

    def _blame_sender(self, uploads: _Uploads, sender: int, receiver: int) -> None:
        reason = f"its letter to {uploads.name(receiver)!r} is broken"
        self._blame(uploads.name(sender), reason)

    def unmask(self, uploads: _Uploads, agreed: Mapping[int, Update]) -> dict[int, Update]:
        """The keys that survivors reveal, by position; enough of them, or a SumFailedError."""
        survivors = uploads.survivors
        words: dict[int, Arrays] = {k: {} for k in survivors}
        for at, k in enumerate(survivors if agreed else ()):
            # A survivor has a word for every other one, in their order, and none for itself.
            rows = [agreed[j].values["words"][at - (j < k)] for j in survivors if j != k]
            words[k] = {"words": np.array(rows, dtype=np.int64)}
        form = {"keys": (len(survivors), crypto.n_words(KEY_BYTES))}
        revealed = self._tell_survivors("unmask", uploads, words, form)
        least = threshold(len(uploads.step.members))
        if len(revealed) < least:
            raise self._missing(f"{len(revealed)} clients unmasked, {least} are needed")
        return revealed

    def _tell_survivors(
        self,
        phase: Literal["agree", "unmask"],
        uploads: _Uploads,
        values: Mapping[int, Arrays],
        *forms: _Form,
    ) -> dict[int, Update]:
        """Tells each who they are, and what arrived of it; answers of these forms, by position."""
        step, survivors = uploads.step, uploads.survivors
        asked = {}
        for k in survivors:
            arrived = crypto.stack([digest_of(uploads.answers[k].values)], HASH_BYTES)
            asked[uploads.name(k)] = {**values[k], "arrived": arrived}
        told = SecureStep(phase, step.session, step.number, survivors=survivors)
        answers = self._exchange(told, asked)
        right = {}
        for k in survivors:
            name = uploads.name(k)
            if name not in answers:
                self._silent.add(name)
            elif any(_has_form(answers[name], form) for form in forms):
                right[k] = answers[name]
            else:
                self._blame(name, f"what it sends to {phase} has another form")
        return right

    # --- seeds from shares, and who gave wrong ones ---

    def _seed(self, uploads: _Uploads, revealed: Mapping[int, Update], sender: int) -> bytes:
        """What masks a survivor's upload, checked against its hash."""
        name, at = uploads.name(sender), uploads.survivors.index(sender)
        least = threshold(len(uploads.step.members))
        expected = crypto.from_words(uploads.answers[sender].values["seed"], HASH_BYTES)
        shares: dict[int, bytes] = {}
        for receiver, update in revealed.items():
            # Only letters whose keys are as both ends said beforehand, and which are whole.
            key = crypto.from_words(update.values["keys"][at], KEY_BYTES)
            letter, proof = uploads.letter(sender, receiver), crypto.proof_of(key)
            if crypto.seal_of(proof) != uploads.seal(sender, receiver):
                self._blame(
                    uploads.name(receiver), "a key that it reveals is not as it said before"
                )
                continue
            if not crypto.is_whole(proof, letter):
                self._blame_sender(uploads, sender, receiver)
                continue
            shares[receiver + 1] = crypto.read_letter(key, letter)
            for numbers in _windows(sorted(shares), least, newest=receiver + 1):
                seed = crypto.combine(shares, _weights_at_zero(numbers))
                if hashlib.sha256(seed).digest() == expected:
                    if len(shares) > least:
                        self._blame(name, "shares of its seed do not fit")
                    return seed
        if len(shares) < least:
            raise self._missing(
                f"{len(shares)} right shares of what {name!r} masked with, {least} are needed"
            )
        raise SumFailedError(
            f"client {name!r}: the shares of its seed do not give it; the others have revealed "
            "theirs, so this round cannot be done over",
            is_missing=False,
        )

    # --- clients that do not answer, or are at fault ---

    def _exchange(self, step: SecureStep, asked: Mapping[str, Arrays]) -> dict[str, Update]:
        """The answers that came, by client."""
        algorithm = describe(step)
        broadcasts = [
            replace(self.broadcast, client_id=name, algorithm=algorithm, values=values)
            for name, values in asked.items()
        ]
        self._reasons = {}
        answers = {}
        got = self.transport.exchange(broadcasts, self.deadline)
        for broadcast, answer in zip(broadcasts, got, strict=True):
            name = broadcast.client_id
            if isinstance(answer, Failure) and answer.is_missing:
                self._reasons[name] = answer.reason
            elif isinstance(answer, Failure):
                self._blame(name, answer.reason)
            elif replace(answer, values={}) != Update(broadcast.run_id, broadcast.round, name, {}):
                self._blame(name, "its answer is of another client, run or round")
            else:
                answers[name] = answer
        return answers

    def _blame(self, name: str, reason: str) -> None:
        """A client at fault ends the round, or is left out of it."""
        if self.on_fault == "stop":
            raise SumFailedError(f"client {name!r}: {reason}", is_missing=False)
        self._reasons[name] = reason
        if name not in self.at_fault:
            self.at_fault[name] = reason
            round_ = self.broadcast.round
            self.tell({"event": "fault", "round": round_, "client": name, "reason": reason})

    def _missing(self, lack: str) -> SumFailedError:
        """What is lacking for a sum, with who is missing and why."""
        reasons = sorted({**self.at_fault, **self._reasons}.items())
        because = "; ".join(f"{name}: {why}" for name, why in reasons)
        return SumFailedError(f"{lack} ({because})" if because else lack, is_missing=True)

    def _check_quorum(self, weights: Sequence[float], what: str) -> None:
        """Whether this many, with these weights, make a sum that clients will unmask."""
        if len(weights) < self.quorum:
            n_clients = self.members.n_clients
            raise self._missing(
                f"{len(weights)} of {n_clients} clients {what}, {self.quorum} are needed"
            )
        broken = broken_weight_rule(weights)
        if broken:
            raise self._missing(f"of the clients that {what} {broken}: they would refuse")


def _has_form(update: Update, form: _Form) -> bool:
    return update.values.keys() == form.keys() and all(
        isinstance(array, np.ndarray) and array.dtype == np.int64 and array.shape == form[name]
        for name, array in update.values.items()
    )


def _windows(numbers: Sequence[int], length: int, newest: int) -> list[tuple[int, ...]]:
    """Sets of ``length`` neighbours in a ring, the newest among them: one wrong share is in few."""
    ring, n = [*numbers, *numbers], len(numbers)
    if n < length:
        return []
    windows = {tuple(sorted(ring[at : at + length])) for at in range(n)}
    return sorted(window for window in windows if newest in window)
