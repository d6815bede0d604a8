"""The client's side of a secure sum: what it masks, what it reveals, and what it refuses.

Rules, which hold whatever the server asks:

- an upload of a number that was used before is refused, unless it is the same message again, which
  gets the same answer: else one mask would hide two values, and their difference would be known
- an upload is unmasked once, for one set of survivors; for each member either its share or the mask
  in common is revealed, never both
- survivors must be at least ``threshold`` many, and the client one of them

Memory: the keys of the session, the last upload's secrets until they are revealed, the last answer
with the hash of its broadcast, and within it the inner method's memory as if nothing were masked. A
new session forgets the secrets of the one before.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.codec import pack
from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.client import NO_MEMORY, Memory, answer
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Broadcast, Update, Values, encode
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.secure.fixed_point import LARGEST, Fixed, added, negative, to_fixed
from fdrsvm.federated.secure.primitives import (
    KEY_BYTES,
    TAG_BYTES,
    PairKeys,
    mask,
    new_private_key,
    opened,
    pair_keys,
    public_key,
    sealed,
)
from fdrsvm.federated.secure.secret_sharing import SECRET_BYTES, SHARE_BYTES, split
from fdrsvm.federated.secure.step import Member, SecureStep, threshold
from fdrsvm.federated.secure.words import Words, from_words, n_words, stack, to_words
from fdrsvm.federated.stored_state import memory_from_arrays, memory_to_arrays

Arrays = Mapping[str, npt.NDArray[Any]]
ASKED, MASKED, PRESENT = "asked/", "masked/", "n_present"
LETTER_BYTES = SHARE_BYTES + TAG_BYTES
_HASH_BYTES = 32
_INNER, _REPLY, _ROUNDS = "inner/", "reply/", "inner rounds"


@dataclass(frozen=True)
class _Session:
    """What a client remembers of a session."""

    digest: bytes  # of the session's name; empty before the first
    private: bytes = b""
    number: int = 0  # of the last upload
    context: bytes = b""  # of an upload that is not unmasked yet
    own_share: bytes = b""
    members: tuple[tuple[int, bytes], ...] = ()  # position and public key of every other one
    is_lost: bool = False  # what was remembered of the run before
    last_asked: bytes = b""
    last_reply: Arrays = field(default_factory=dict)


def respond(
    problem: ClientProblem,
    memory: Memory,
    broadcast: Broadcast,
    step: SecureStep,
    *,
    has_answered: bool,
) -> tuple[Memory, Update]:
    """A client's part of a step, and what it remembers from then on."""
    is_new = memory.run_id != broadcast.run_id
    known = {} if is_new else memory.values
    session, inner = _session_from(known), _inner_from(known, broadcast.run_id)
    session = replace(session, is_lost=session.is_lost or (is_new and has_answered))
    asked = hashlib.sha256(encode(broadcast)).digest()
    if asked == session.last_asked:  # the message was sent twice
        return memory, _update(broadcast, session.last_reply)
    if step.phase == "upload":
        session, inner, reply = _upload(problem, session, inner, broadcast, step)
    else:
        session, reply = _unmask(session, broadcast, step)
    session = replace(session, last_asked=asked, last_reply=reply)
    values = {**_session_arrays(session), **_inner_arrays(inner)}
    return Memory(broadcast.run_id, values, ()), _update(broadcast, reply)


def _update(broadcast: Broadcast, values: Arrays) -> Update:
    return Update(broadcast.run_id, broadcast.round, broadcast.client_id, values)


# --- upload ---


def _upload(
    problem: ClientProblem,
    session: _Session,
    inner: Memory,
    broadcast: Broadcast,
    step: SecureStep,
) -> tuple[_Session, Memory, Arrays]:
    digest = hashlib.sha256(step.session.encode()).digest()
    if session.digest != digest:
        session = _Session(digest, new_private_key(), is_lost=session.is_lost)
    public = public_key(session.private)
    position = step.position(broadcast.client_id, public)
    if position is None:
        return session, inner, {"public": to_words(public)}
    if step.number <= session.number:
        raise TellableError(
            "secure-sum",
            "a mask is for one upload",
            f"upload {step.number} comes after {session.number}",
        )
    asked = {
        name.removeprefix(ASKED): array
        for name, array in broadcast.values.items()
        if name.startswith(ASKED)
    }
    plain = replace(broadcast, algorithm=step.method, values=asked)
    inner, update = answer(problem, inner, plain, has_answered=session.is_lost)
    context = context_of(broadcast)
    others = tuple(
        (k, bytes.fromhex(member.public)) for k, member in enumerate(step.members) if k != position
    )
    session = replace(session, number=step.number, context=context, members=others)
    seed = secrets.token_bytes(SECRET_BYTES)
    shares = split(seed, len(step.members), threshold(len(step.members)))
    keys = _keys(session)
    letters = [sealed(_outgoing(keys[k], position, k), shares[k]) for k, _ in others]
    reply = {
        **_masked(update.values, step.members[position], position, keys, seed),
        "letters": stack(letters, LETTER_BYTES),
    }
    return replace(session, own_share=shares[position]), inner, reply


def context_of(broadcast: Broadcast) -> bytes:
    """The hash of all that an upload's broadcast says, but for whom it is."""
    header = {
        "run_id": broadcast.run_id,
        "round": broadcast.round,
        "step": broadcast.algorithm,
    }
    return hashlib.sha256(pack("secure sum", 1, header, broadcast.values)).digest()


def _keys(session: _Session) -> dict[int, PairKeys]:
    """In common with every other member, by position."""
    positions, publics = zip(*session.members, strict=True)
    try:
        found = pair_keys(session.private, publics, session.context)
    except CorruptDataError as error:
        raise TellableError("secure-sum", "members' keys must be keys", str(error)) from None
    return dict(zip(positions, found, strict=True))


def _outgoing(keys: PairKeys, sender: int, receiver: int) -> bytes:
    """The key for letters in that direction."""
    return keys.up if sender < receiver else keys.down


def _masked(
    values: Values, own: Member, position: int, keys: Mapping[int, PairKeys], seed: bytes
) -> dict[str, npt.NDArray[Any]]:
    """The weighted values and a 1 to count by, under all masks together."""
    for name, array in values.items():
        if not (np.abs(array) <= LARGEST).all():
            raise TellableError(
                "secure-sum", f"numbers must be finite and at most {LARGEST:.3g}", f"see {name}"
            )
    names = sorted(values)
    parts = [to_fixed(own.weight * np.ravel(values[name])) for name in names]
    total = added(np.concatenate([*parts, to_fixed(np.ones(1))]), mask(seed, _length(parts)))
    for k, pair in keys.items():
        total = added(total, signed_mask(pair.mask, position, k, len(total)))
    words = total.astype(np.uint64).view(np.int64)
    hidden: dict[str, npt.NDArray[Any]] = {PRESENT: words[-1:]}
    at = 0
    for name in names:
        shape = np.shape(values[name])
        size = math.prod(shape)
        hidden[MASKED + name] = words[at : at + size].reshape(*shape, 2)
        at += size
    return hidden


def _length(parts: list[Fixed]) -> int:
    return sum(len(part) for part in parts) + 1


def signed_mask(key: bytes, own: int, other: int, length: int) -> Fixed:
    """The mask of a pair as one of them adds it: the other adds what cancels it."""
    stream = mask(key, length)
    return stream if own < other else negative(stream)


# --- unmask ---


def _unmask(
    session: _Session, broadcast: Broadcast, step: SecureStep
) -> tuple[_Session, dict[str, Words]]:
    if hashlib.sha256(step.session.encode()).digest() != session.digest:
        raise TellableError("secure-sum", "must be of the session that it has keys of", "it is not")
    if step.number != session.number or not session.context:
        raise TellableError(
            "secure-sum",
            "an upload is unmasked once, for one set of survivors, before the next one",
            f"upload {step.number} is not the one that waits",
        )
    n_members = len(session.members) + 1
    position = (set(range(n_members)) - {k for k, _ in session.members}).pop()
    survivors, least = set(step.survivors), threshold(n_members)
    if position not in survivors or len(survivors) < least or max(survivors) >= n_members:
        raise TellableError(
            "secure-sum",
            f"survivors must be at least {least} of the {n_members} members, this client included",
            f"they are {len(survivors)}",
        )
    keys = _keys(session)
    letters = _letters(broadcast.values, step, position)
    shares = [
        session.own_share if k == position else _opened(keys[k], k, position, letters[k])
        for k in step.survivors
    ]
    masks = [keys[k].mask for k in range(n_members) if k not in survivors]
    reply = {"shares": stack(shares, SHARE_BYTES), "masks": stack(masks, KEY_BYTES)}
    # What is revealed once is not kept, so that it cannot be asked for otherwise.
    return replace(session, context=b"", own_share=b"", members=()), reply


def _letters(values: Values, step: SecureStep, position: int) -> dict[int, bytes]:
    senders = [k for k in step.survivors if k != position]
    found = values.get("letters")
    shape = (len(senders), n_words(LETTER_BYTES))
    if found is None or found.dtype != np.int64 or found.shape != shape:
        raise TellableError("secure-sum", "there must be a letter from each survivor", "see them")
    return {k: from_words(row, LETTER_BYTES) for k, row in zip(senders, found, strict=True)}


def _opened(keys: PairKeys, sender: int, receiver: int, letter: bytes) -> bytes:
    try:
        return opened(_outgoing(keys, sender, receiver), letter)
    except CorruptDataError as error:
        raise TellableError("secure-sum", "letters must be whole", str(error)) from None


# --- memory ---


def _session_arrays(session: _Session) -> dict[str, npt.NDArray[Any]]:
    stored: dict[str, npt.NDArray[Any]] = {
        "session": to_words(session.digest),
        "private": to_words(session.private),
        "number": np.array(session.number),
        "is lost": np.array(session.is_lost),
        "last asked": to_words(session.last_asked),
    }
    if session.context:
        stored["context"] = to_words(session.context)
        stored["own share"] = to_words(session.own_share)
        stored["members"] = np.array([k for k, _ in session.members])
        stored["keys"] = stack([public for _, public in session.members], KEY_BYTES)
    return {**stored, **{_REPLY + name: array for name, array in session.last_reply.items()}}


def _session_from(stored: Arrays) -> _Session:
    if "session" not in stored:
        return _Session(b"")
    session = _Session(
        digest=from_words(stored["session"], _HASH_BYTES),
        private=from_words(stored["private"], KEY_BYTES),
        number=int(stored["number"]),
        is_lost=bool(stored["is lost"]),
        last_asked=from_words(stored["last asked"], _HASH_BYTES),
        last_reply=_under(stored, _REPLY),
    )
    if "context" not in stored:
        return session
    keys = [from_words(row, KEY_BYTES) for row in stored["keys"]]
    return replace(
        session,
        context=from_words(stored["context"], _HASH_BYTES),
        own_share=from_words(stored["own share"], SHARE_BYTES),
        members=tuple(zip(stored["members"].tolist(), keys, strict=True)),
    )


def _inner_arrays(inner: Memory) -> dict[str, npt.NDArray[Any]]:
    if not inner.run_id:
        return {}
    header, stored = memory_to_arrays(inner)
    rounds = np.array(header["past"], dtype=np.int64)
    return {_ROUNDS: rounds, **{_INNER + name: array for name, array in stored.items()}}


def _inner_from(stored: Arrays, run_id: str) -> Memory:
    if _ROUNDS not in stored:
        return NO_MEMORY
    header = {"run_id": run_id, "past": stored[_ROUNDS].tolist()}
    return memory_from_arrays(header, _under(stored, _INNER))


def _under(stored: Arrays, prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {
        name.removeprefix(prefix): array
        for name, array in stored.items()
        if name.startswith(prefix)
    }
