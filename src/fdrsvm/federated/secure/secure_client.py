"""The client's side of a secure sum: what it masks, what it reveals, and what it refuses.

Rules, which hold whatever the server asks:

- an upload of a number that was used before is refused, unless it is the same message again, which
  gets the same answer: else one mask would hide two values, and their difference would be known
- weights hide every client, among members and among survivors: :func:`broken_weight_rule`; and
  they stay as they are in a run
- an upload has one set of survivors, at least ``threshold`` many, and the client one of them; for
  each member either its share or the mask in common is revealed, never both
- if survivors are not all members, shares are given only on the word of every other survivor that
  it was told the same ones, and gave none
- a round's answer is given in sums over one set of survivors, in however many tries and sessions
- what the server has must be the upload as it was sent

Memory: see :mod:`fdrsvm.federated.secure.secure_memory`, and within it the inner method's memory as
if nothing were masked. A new session forgets the secrets of the one before, and no promise.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.codec import pack
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
    is_whole,
    mask,
    new_private_key,
    pair_keys,
    proof_of,
    public_key,
    seal_of,
    sealed,
    word,
)
from fdrsvm.federated.secure.secret_sharing import SECRET_BYTES, SHARE_BYTES, split
from fdrsvm.federated.secure.secure_memory import (
    HASH_BYTES,
    Arrays,
    Session,
    Waiting,
    name_hash,
    session_arrays,
    session_from,
    under,
)
from fdrsvm.federated.secure.secure_step import SecureStep, broken_weight_rule, threshold
from fdrsvm.federated.secure.words import from_words, n_words, stack, to_words
from fdrsvm.federated.stored_state import memory_from_arrays, memory_to_arrays

ASKED, MASKED, PRESENT = "asked/", "masked/", "n_present"
LETTER_BYTES = SHARE_BYTES + TAG_BYTES
_INNER, _ROUNDS = "inner/", "inner rounds"


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
    session, inner = session_from(known), _inner_from(known, broadcast.run_id)
    session = replace(session, is_lost=session.is_lost or (is_new and has_answered))
    asked = hashlib.sha256(encode(broadcast)).digest()
    if asked == session.last_asked:  # the message was sent twice
        return memory, _update(broadcast, session.last_reply)
    if step.phase == "upload":
        session, inner, reply = _upload(problem, session, inner, broadcast, step)
    elif step.phase == "agree":
        session, reply = _agree(session, broadcast, step)
    else:
        session, reply = _unmask(session, broadcast, step)
    session = replace(session, last_asked=asked, last_reply=reply)
    values = {**session_arrays(session), **_inner_arrays(inner)}
    return Memory(broadcast.run_id, values, ()), _update(broadcast, reply)


def _update(broadcast: Broadcast, values: Arrays) -> Update:
    return Update(broadcast.run_id, broadcast.round, broadcast.client_id, values)


# --- upload ---


def _upload(
    problem: ClientProblem,
    session: Session,
    inner: Memory,
    broadcast: Broadcast,
    step: SecureStep,
) -> tuple[Session, Memory, Arrays]:
    digest = hashlib.sha256(step.session.encode()).digest()
    if session.digest != digest:
        session = Session(
            digest, new_private_key(), promises=session.promises, is_lost=session.is_lost
        )
    position = step.position(broadcast.client_id, public_key(session.private))
    if position is None:
        return session, inner, {"public": to_words(public_key(session.private))}
    if step.number <= session.number:
        raise TellableError(
            "secure-sum",
            "a mask is for one upload",
            f"upload {step.number} comes after {session.number}",
        )
    _check_weights([member.weight for member in step.members])
    promises = session.promises.with_weights(step.members, position)
    plain = replace(broadcast, algorithm=step.method, values=under(broadcast.values, ASKED))
    inner, update = answer(problem, inner, plain, has_answered=session.is_lost)
    waiting = Waiting(
        context=context_of(broadcast),
        round=broadcast.round,
        position=position,
        own_key=secrets.token_bytes(KEY_BYTES),
        digest=b"",
        names=tuple(name_hash(member.client_id) for member in step.members),
        publics=tuple(bytes.fromhex(member.public) for member in step.members),
        weights=tuple(float(member.weight) for member in step.members),
    )
    reply = _masked_reply(session.private, waiting, update.values)
    waiting = replace(waiting, digest=digest_of(reply))
    return replace(session, number=step.number, waiting=waiting, promises=promises), inner, reply


def _check_weights(weights: Sequence[float]) -> None:
    broken = broken_weight_rule(weights)
    if broken:
        raise TellableError("secure-sum", "weights must hide every client in the sum", broken)


def context_of(broadcast: Broadcast) -> bytes:
    """The hash of all that an upload's broadcast says, but for whom it is."""
    header = {
        "run_id": broadcast.run_id,
        "round": broadcast.round,
        "step": broadcast.algorithm,
    }
    return hashlib.sha256(pack("secure sum", 1, header, broadcast.values)).digest()


def digest_of(upload: Arrays) -> bytes:
    """The hash of all that an upload says."""
    return hashlib.sha256(pack("secure upload", 1, {}, upload)).digest()


def _masked_reply(private: bytes, waiting: Waiting, values: Values) -> dict[str, Any]:
    """The upload: masked values, shares of the seed, and what binds the client to them."""
    n_members, own = len(waiting.names), waiting.position
    keys = _keys(private, waiting)
    seed = secrets.token_bytes(SECRET_BYTES)
    shares = split(seed, n_members, threshold(n_members))
    outgoing = [_letter_key(keys, waiting, own, k) for k in range(n_members)]
    incoming = [_letter_key(keys, waiting, k, own) for k in range(n_members)]
    letters = [sealed(key, share) for key, share in zip(outgoing, shares, strict=True)]
    return {
        **_masked(values, waiting.weights[own], own, keys, seed),
        "letters": stack(letters, LETTER_BYTES),
        "seals out": stack([seal_of(proof_of(key)) for key in outgoing], TAG_BYTES),
        "seals in": stack([seal_of(proof_of(key)) for key in incoming], TAG_BYTES),
        "seed": to_words(hashlib.sha256(seed).digest()),
    }


def _keys(private: bytes, waiting: Waiting) -> dict[int, PairKeys]:
    """In common with every other member, by position."""
    others = [k for k in range(len(waiting.publics)) if k != waiting.position]
    try:
        found = pair_keys(private, [waiting.publics[k] for k in others], waiting.context)
    except CorruptDataError as error:
        raise TellableError("secure-sum", "members' keys must be keys", str(error)) from None
    return dict(zip(others, found, strict=True))


def _letter_key(
    keys: Mapping[int, PairKeys], waiting: Waiting, sender: int, receiver: int
) -> bytes:
    """For letters in that direction; the client is at one of its ends, or at both."""
    if sender == receiver:
        return waiting.own_key
    pair = keys[receiver if sender == waiting.position else sender]
    return pair.up if sender < receiver else pair.down


def _masked(
    values: Values, weight: float, position: int, keys: Mapping[int, PairKeys], seed: bytes
) -> dict[str, npt.NDArray[Any]]:
    """The weighted values and a 1 to count by, under all masks together."""
    for name, array in values.items():
        if not (np.abs(array) <= LARGEST).all():
            raise TellableError(
                "secure-sum", f"numbers must be finite and at most {LARGEST:.3g}", f"see {name}"
            )
    names = sorted(values)
    parts = [to_fixed(weight * np.ravel(values[name])) for name in names]
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


# --- agree and unmask ---


def _agree(session: Session, broadcast: Broadcast, step: SecureStep) -> tuple[Session, Arrays]:
    """Masks in common with those who are gone, and a word to each other survivor.

    If a letter is broken, no word but which one it is, with the proof; the upload is then done
    with, so that nothing else of it is revealed.
    """
    waiting = _waiting(session, broadcast, step)
    own, keys = waiting.position, _keys(session.private, waiting)
    others = [k for k in step.survivors if k != own]
    proofs = {k: proof_of(_letter_key(keys, waiting, k, own)) for k in others}
    letters = _rows(broadcast.values, "letters", len(others), LETTER_BYTES)
    for k, letter in zip(others, letters, strict=True):
        if not is_whole(proofs[k], letter):
            reply = {"broken": np.array([k]), "proof": to_words(proofs[k])}
            return replace(session, waiting=None), reply
    group = waiting.group(step.survivors)
    words = [word(_letter_key(keys, waiting, own, k), group) for k in others]
    masks = [keys[k].mask for k in range(len(waiting.names)) if k not in step.survivors]
    reply = {"words": stack(words, TAG_BYTES), "masks": stack(masks, KEY_BYTES)}
    return replace(session, waiting=replace(waiting, agreed=step.survivors)), reply


def _unmask(session: Session, broadcast: Broadcast, step: SecureStep) -> tuple[Session, Arrays]:
    """The keys to the survivors' letters, which nobody but this client and the sender has."""
    waiting = _waiting(session, broadcast, step)
    own, keys = waiting.position, _keys(session.private, waiting)
    group = waiting.group(step.survivors)
    if waiting.agreed or len(step.survivors) < len(waiting.names):
        others = [k for k in step.survivors if k != own]
        said = _rows(broadcast.values, "words", len(others), TAG_BYTES)
        expected = [word(_letter_key(keys, waiting, k, own), group) for k in others]
        if not waiting.agreed or said != expected:
            raise TellableError(
                "secure-sum", "all survivors must have agreed on who they are", "one has not"
            )
    found = [_letter_key(keys, waiting, k, own) for k in step.survivors]
    # What is revealed once is not kept, so that it cannot be asked for otherwise.
    promises = session.promises.with_given(waiting.round, group)
    reply = {"keys": stack(found, KEY_BYTES)}
    return replace(session, waiting=None, promises=promises), reply


def _waiting(session: Session, broadcast: Broadcast, step: SecureStep) -> Waiting:
    """The upload that is to be revealed, if it may be for these survivors."""
    waiting = session.waiting
    if hashlib.sha256(step.session.encode()).digest() != session.digest:
        raise TellableError("secure-sum", "must be of the session that it has keys of", "it is not")
    if waiting is None or step.number != session.number:
        raise TellableError(
            "secure-sum",
            "an upload is unmasked once, for one set of survivors, before the next one",
            f"upload {step.number} is not the one that waits",
        )
    n_members, survivors = len(waiting.names), step.survivors
    least = threshold(n_members)
    is_named = waiting.position in survivors and survivors[-1] < n_members
    if not is_named or len(survivors) < least:
        raise TellableError(
            "secure-sum",
            f"survivors must be at least {least} of the {n_members} members, this client included",
            f"they are {len(survivors)}",
        )
    if waiting.agreed not in ((), survivors):
        raise TellableError("secure-sum", "an upload has one set of survivors", "these are others")
    _check_weights([waiting.weights[k] for k in survivors])
    session.promises.check(waiting.round, waiting.group(survivors))
    if _rows(broadcast.values, "arrived", 1, HASH_BYTES) != [waiting.digest]:
        raise TellableError(
            "secure-sum",
            "what the server has must be what this client sent",
            "its upload was changed on the way",
        )
    return waiting


def _rows(values: Values, name: str, n_rows: int, length: int) -> list[bytes]:
    found = values.get(name)
    if found is None or found.dtype != np.int64 or found.shape != (n_rows, n_words(length)):
        raise TellableError("secure-sum", f"there must be {n_rows} rows of {name}", "there are not")
    return [from_words(row, length) for row in np.asarray(found, dtype=np.int64)]


# --- the inner method's memory ---


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
    return memory_from_arrays(header, under(stored, _INNER))
