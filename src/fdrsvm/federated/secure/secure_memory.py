"""What a client remembers of secure sums, and the promises that it does not go back on.

Promises    hold in the whole run, whatever sessions the server opens: the weights, and for which
            survivors a round's answer was given
Session     the private key, and the number of the last upload
Waiting     the last upload's secrets, until they are revealed or another upload comes

A new session forgets the secrets of the one before, and no promise. All of it is stored as named
arrays beside the inner method's memory, under "inner/", which is as if nothing were masked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.federated.client_memory import NO_MEMORY, Memory, memory_from_arrays, memory_to_arrays
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import add_prefix, split_prefixes
from fdrsvm.federated.secure.primitives import HASH_BYTES, KEY_BYTES, from_words, stack, to_words
from fdrsvm.federated.secure.secure_step import Arrays, Member

# A server that crashed asks for the last few rounds again; older ones are not given out any more.
_KEPT_ROUNDS = 8
_SAME = 1e-9  # weights are rounded when they are divided by their sum
_REPLY, _INNER, _INNER_ROUNDS = "reply", "inner", "inner rounds"


def refusal(rule: str, breach: str) -> TellableError:
    """What a client says where it does not do what it is asked; no value of its data is in it."""
    return TellableError("secure-sum", rule, breach)


def name_hash(client_id: str) -> bytes:
    """A name of a fixed length."""
    return hashlib.sha256(client_id.encode()).digest()


@dataclass(frozen=True)
class Promises:
    """What holds in the whole run; weights are relative to the client's own."""

    weights: Mapping[bytes, float] = field(default_factory=dict)  # by hash of the name
    given: tuple[tuple[int, bytes], ...] = ()  # rounds, oldest first, and hash of who was in it

    def with_weights(self, members: Sequence[Member], position: int) -> Promises:
        """With those of members that were not seen before; all others must be as they were."""
        own = members[position].weight
        weights = dict(self.weights)
        for member in members:
            # Relative weights stay the same when a member is left out and the rest is scaled up.
            weight = member.weight / own
            known = weights.setdefault(name_hash(member.client_id), weight)
            if abs(weight - known) > _SAME * known:
                raise refusal(
                    "weights must stay as they are in the whole run: sums with other ones could be "
                    "solved for single answers",
                    f"that of {member.client_id!r} changed beside this client's",
                )
        return replace(self, weights=weights)

    def check(self, round_: int, group: bytes) -> None:
        """A round's answer is given out in sums over one set of survivors."""
        given = dict(self.given)
        is_too_old = len(given) == _KEPT_ROUNDS and round_ < min(given)
        if is_too_old or given.get(round_, group) != group:
            breach = ", or is too old to know" if is_too_old else " with others"
            raise refusal(
                "a round's answer is given in one sum: two over other survivors would differ by "
                "single answers",
                f"that of round {round_} was given{breach}",
            )

    def with_given(self, round_: int, group: bytes) -> Promises:
        """After ``check``."""
        given = {**dict(self.given), round_: group}
        return replace(self, given=tuple(sorted(given.items())[-_KEPT_ROUNDS:]))


@dataclass(frozen=True)
class Waiting:
    """An upload that is not unmasked yet."""

    context: bytes
    round: int
    position: int
    own_key: bytes  # to the share that the client keeps itself
    digest: bytes  # of the upload
    names: tuple[bytes, ...]  # hashes, of all members
    publics: tuple[bytes, ...]
    weights: tuple[float, ...]
    agreed: tuple[int, ...] = ()  # the survivors, once they were named

    def group(self, survivors: Sequence[int]) -> bytes:
        """The hash of members and survivors, whatever their order."""
        here = sorted(self.names[k] for k in survivors)
        return hashlib.sha256(b"".join([*sorted(self.names), b" ", *here])).digest()


@dataclass(frozen=True)
class Session:
    """What a client remembers besides the inner method's memory."""

    digest: bytes = b""  # of the session's name; empty before the first
    private: bytes = b""
    number: int = 0  # of the last upload
    waiting: Waiting | None = None
    promises: Promises = field(default_factory=Promises)
    is_lost: bool = False  # what was remembered of the run before
    last_asked: bytes = b""
    last_reply: Arrays = field(default_factory=dict)


def store_session(session: Session, inner: Memory) -> dict[str, npt.NDArray[Any]]:
    """A session and the inner method's memory in a form that memories can hold."""
    promises, waiting = session.promises, session.waiting
    stored: dict[str, npt.NDArray[Any]] = {
        "session": to_words(session.digest),
        "private": to_words(session.private),
        "number": np.array(session.number),
        "is lost": np.array(session.is_lost),
        "last asked": to_words(session.last_asked),
        "run names": stack(list(promises.weights), HASH_BYTES),
        "run weights": np.array(list(promises.weights.values()), dtype=np.float64),
        "given rounds": np.array([round_ for round_, _ in promises.given], dtype=np.int64),
        "given to": stack([group for _, group in promises.given], HASH_BYTES),
        **add_prefix(_REPLY, session.last_reply),
    }
    if waiting is not None:
        stored |= {
            "context": to_words(waiting.context),
            "own key": to_words(waiting.own_key),
            "upload": to_words(waiting.digest),
            "place": np.array([waiting.round, waiting.position]),
            "names": stack(waiting.names, HASH_BYTES),
            "keys": stack(waiting.publics, KEY_BYTES),
            "weights": np.array(waiting.weights),
            "agreed": np.array(waiting.agreed, dtype=np.int64),
        }
    if inner.run_id:
        header, arrays = memory_to_arrays(inner)
        stored[_INNER_ROUNDS] = np.array(header["past"], dtype=np.int64)
        stored |= add_prefix(_INNER, arrays)
    return stored


def load_session(stored: Arrays, run_id: str) -> tuple[Session, Memory]:
    """What ``store_session`` put there; a first session and no memory if there is nothing."""
    if "session" not in stored:
        return Session(), NO_MEMORY
    sets = split_prefixes(stored)
    weights = zip(_rows(stored["run names"]), stored["run weights"].tolist(), strict=True)
    given = zip(stored["given rounds"].tolist(), _rows(stored["given to"]), strict=True)
    waiting = None
    if "context" in stored:
        round_, position = stored["place"].tolist()
        waiting = Waiting(
            context=from_words(stored["context"], HASH_BYTES),
            round=round_,
            position=position,
            own_key=from_words(stored["own key"], KEY_BYTES),
            digest=from_words(stored["upload"], HASH_BYTES),
            names=_rows(stored["names"]),
            publics=_rows(stored["keys"]),
            weights=tuple(stored["weights"].tolist()),
            agreed=tuple(stored["agreed"].tolist()),
        )
    session = Session(
        digest=from_words(stored["session"], HASH_BYTES),
        private=from_words(stored["private"], KEY_BYTES),
        number=int(stored["number"]),
        waiting=waiting,
        promises=Promises(dict(weights), tuple(given)),
        is_lost=bool(stored["is lost"]),
        last_asked=from_words(stored["last asked"], HASH_BYTES),
        last_reply=sets.get(_REPLY, {}),
    )
    if _INNER_ROUNDS not in stored:
        return session, NO_MEMORY
    header = {"run_id": run_id, "past": stored[_INNER_ROUNDS].tolist()}
    return session, memory_from_arrays(header, sets.get(_INNER, {}))


def _rows(rows: npt.NDArray[Any]) -> tuple[bytes, ...]:
    """Hashes or keys: both have 32 bytes."""
    return tuple(from_words(row, HASH_BYTES) for row in rows)
