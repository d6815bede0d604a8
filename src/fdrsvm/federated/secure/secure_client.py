"""The client's side of a secure sum: what it masks, what it reveals, and what it refuses.

Rules, which hold whatever the server asks:

- an upload of a number that was used before is refused, unless it is the same message again, which
  gets the same answer: else one mask would hide two values, and their difference would be known
- weights hide every client, among members and among survivors: :func:`broken_weight_rule`; and
  they stay as they are in a run
- an upload has one set of survivors, at least ``threshold`` many, and the client one of them; for
  each member either its share or the mask in common is revealed, never both
- if survivors are not all members, shares are given only on the assurance of every other survivor
  that it was told the same ones, and gave none
- a round's answer is given in sums over one set of survivors, in however many tries and sessions
- what the server has must be the upload as it was sent

Memory, stored as named arrays beside the inner method's, which lies under "inner/" as if nothing
were masked; a new session forgets the secrets of the one before, and no promise:

Promises    hold in the whole run, whatever sessions the server opens: the weights, and for which
            survivors a round's answer was given
Session     the private key, and the number of the last upload
Waiting     the last upload's secrets, until they are revealed or another upload comes
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.client_memory import NO_MEMORY, Memory, memory_from_arrays, memory_to_arrays
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Broadcast, Update, Values, add_prefix, encode, split_prefixes
from fdrsvm.federated.problem import ClientProblem
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
    context_of,
    digest_of,
    threshold,
)

# A server that crashed asks for the last few rounds again; older ones are not given out any more.
_KEPT_ROUNDS = 8
_SAME = 1e-9  # weights are rounded when they are divided by their sum
_REPLY, _INNER, _INNER_ROUNDS = "reply", "inner", "inner rounds"

# How a client answers a method's broadcast: fdrsvm.federated.client.answer, which imports this.
AnswerInTheOpen: TypeAlias = Callable[..., tuple[Memory, Update]]


def respond(
    answer: AnswerInTheOpen,
    problem: ClientProblem,
    memory: Memory,
    broadcast: Broadcast,
    step: SecureStep,
    *,
    has_answered: bool,
) -> tuple[Memory, Update]:
    """A client's part of a step, and what it remembers from then on.

    ``answer`` answers the inner method's question; this function decides what of it leaves.
    """
    is_new = memory.run_id != broadcast.run_id
    session, inner = load_session({} if is_new else memory.values, broadcast.run_id)
    session = replace(session, is_lost=session.is_lost or (is_new and has_answered))
    asked = hashlib.sha256(encode(broadcast)).digest()
    reply: Arrays = session.last_reply
    if asked != session.last_asked:  # else the message was sent twice
        if step.phase == "upload":
            session, inner, reply = _upload(answer, problem, session, inner, broadcast, step)
        elif step.phase == "agree":
            session, reply = _agree(session, broadcast, step)
        else:
            session, reply = _unmask(session, broadcast, step)
        session = replace(session, last_asked=asked, last_reply=reply)
        memory = Memory(broadcast.run_id, store_session(session, inner), ())
    return memory, Update(broadcast.run_id, broadcast.round, broadcast.client_id, reply)


# --- upload ---


def _upload(
    answer: AnswerInTheOpen,
    problem: ClientProblem,
    session: Session,
    inner: Memory,
    broadcast: Broadcast,
    step: SecureStep,
) -> tuple[Session, Memory, Arrays]:
    """The masked answer, or this session's key if the members do not name the client with it."""
    digest = name_hash(step.session)
    if session.digest != digest:  # a new session: its secrets are forgotten, its promises are not
        session = Session(
            digest, crypto.new_private_key(), promises=session.promises, is_lost=session.is_lost
        )
    public = crypto.public_key(session.private)
    position = step.position(broadcast.client_id, public)
    if position is None:
        return session, inner, {"public": crypto.to_words(public)}
    if step.number <= session.number:
        raise refusal(
            "a mask is for one upload", f"upload {step.number} comes after {session.number}"
        )
    _check_weights([member.weight for member in step.members])
    promises = session.promises.with_weights(step.members, position)
    asked = split_prefixes(broadcast.values).get(ASKED, {})
    plain = replace(broadcast, algorithm=step.method, values=asked)
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
    reply = make_upload(session.private, waiting, update.values)
    waiting = replace(waiting, digest=digest_of(reply))
    return replace(session, number=step.number, waiting=waiting, promises=promises), inner, reply


def _check_weights(weights: Sequence[float]) -> None:
    broken = broken_weight_rule(weights)
    if broken:
        raise refusal("weights must hide every client in the sum", broken)


def make_upload(private: bytes, waiting: Waiting, values: Values) -> dict[str, Any]:
    """Masked values, shares of the seed, and what binds the client to them."""
    n_members, own = len(waiting.names), waiting.position
    keys = _pair_keys(private, waiting)
    seed = secrets.token_bytes(crypto.SECRET_BYTES)
    shares = crypto.split(seed, n_members, threshold(n_members))
    outgoing = [_letter_key(keys, waiting, own, k) for k in range(n_members)]
    incoming = [_letter_key(keys, waiting, k, own) for k in range(n_members)]
    letters = [crypto.seal_letter(key, share) for key, share in zip(outgoing, shares, strict=True)]
    seals_out, seals_in = (
        [crypto.seal_of(crypto.proof_of(key)) for key in side] for side in (outgoing, incoming)
    )
    return {
        **_mask_values(values, waiting.weights[own], own, keys, seed),
        "letters": crypto.stack(letters, LETTER_BYTES),
        "seals out": crypto.stack(seals_out, TAG_BYTES),
        "seals in": crypto.stack(seals_in, TAG_BYTES),
        "seed": crypto.to_words(hashlib.sha256(seed).digest()),
    }


def _pair_keys(private: bytes, waiting: Waiting) -> dict[int, crypto.PairKeys]:
    """In common with every other member, by position."""
    others = [k for k in range(len(waiting.publics)) if k != waiting.position]
    try:
        pairs = crypto.pair_keys(private, [waiting.publics[k] for k in others], waiting.context)
    except CorruptDataError as error:
        raise refusal("members' keys must be keys", str(error)) from None
    return dict(zip(others, pairs, strict=True))


def _letter_key(
    keys: Mapping[int, crypto.PairKeys], waiting: Waiting, sender: int, receiver: int
) -> bytes:
    """For letters in that direction; the client is at one of its ends, or at both."""
    if sender == receiver:
        return waiting.own_key
    pair = keys[receiver if sender == waiting.position else sender]
    return pair.up if sender < receiver else pair.down


def _mask_values(
    values: Values, weight: float, position: int, keys: Mapping[int, crypto.PairKeys], seed: bytes
) -> dict[str, npt.NDArray[Any]]:
    """The weighted values and a 1 to count by, under all masks together."""
    for name, array in values.items():
        if not (np.abs(array) <= crypto.LARGEST).all():
            raise refusal(f"numbers must be finite and at most {crypto.LARGEST:.3g}", f"see {name}")
    names = sorted(values)
    # One column of numbers has one mask: the server adds and unmasks it in the same order.
    columns = [crypto.to_fixed(weight * np.ravel(values[name])) for name in names]
    total = np.concatenate([*columns, crypto.to_fixed(np.ones(1))])
    total = crypto.add(total, crypto.mask(seed, len(total)))
    for k, pair in keys.items():
        total = crypto.add(total, crypto.signed_mask(pair.mask, position, k, len(total)))
    words = total.astype(np.uint64).view(np.int64)
    hidden = crypto.split_column(words, {name: np.shape(values[name]) for name in names})
    return {PRESENT: words[-1:], **add_prefix(MASKED, hidden)}


# --- agree and unmask ---


def _agree(session: Session, broadcast: Broadcast, step: SecureStep) -> tuple[Session, Arrays]:
    """Masks in common with those who are gone, and an assurance for each other survivor.

    If a letter is broken, no assurance but which one it is, with the proof; the upload is then done
    with, so that nothing else of it is revealed.
    """
    waiting = _waiting_for(session, broadcast, step)
    own, keys = waiting.position, _pair_keys(session.private, waiting)
    others = [k for k in step.survivors if k != own]
    letters = _rows(broadcast.values, "letters", len(others), LETTER_BYTES)
    for k, letter in zip(others, letters, strict=True):
        proof = crypto.proof_of(_letter_key(keys, waiting, k, own))
        if not crypto.is_whole(proof, letter):
            reply = {"broken": np.array([k]), "proof": crypto.to_words(proof)}
            return replace(session, waiting=None), reply
    group = waiting.group(step.survivors)
    words = [crypto.assurance(_letter_key(keys, waiting, own, k), group) for k in others]
    masks = [keys[k].mask for k in range(len(waiting.names)) if k not in step.survivors]
    reply = {"words": crypto.stack(words, TAG_BYTES), "masks": crypto.stack(masks, KEY_BYTES)}
    return replace(session, waiting=replace(waiting, agreed=step.survivors)), reply


def _unmask(session: Session, broadcast: Broadcast, step: SecureStep) -> tuple[Session, Arrays]:
    """The keys to the survivors' letters, which nobody but this client and the sender has."""
    waiting = _waiting_for(session, broadcast, step)
    own, keys = waiting.position, _pair_keys(session.private, waiting)
    group = waiting.group(step.survivors)
    incoming = {k: _letter_key(keys, waiting, k, own) for k in step.survivors}
    if waiting.agreed or len(step.survivors) < len(waiting.names):
        expected = [crypto.assurance(key, group) for k, key in incoming.items() if k != own]
        given = _rows(broadcast.values, "words", len(expected), TAG_BYTES)
        if not waiting.agreed or given != expected:
            raise refusal("all survivors must have agreed on who they are", "one has not")
    # What is revealed once is not kept, so that it cannot be asked for otherwise.
    promises = session.promises.with_given(waiting.round, group)
    reply = {"keys": crypto.stack(list(incoming.values()), KEY_BYTES)}
    return replace(session, waiting=None, promises=promises), reply


def _waiting_for(session: Session, broadcast: Broadcast, step: SecureStep) -> Waiting:
    """The upload that is to be revealed, if it may be for these survivors."""
    waiting = session.waiting
    if name_hash(step.session) != session.digest:
        raise refusal("must be of the session that it has keys of", "it is not")
    if waiting is None or step.number != session.number:
        raise refusal(
            "an upload is unmasked once, for one set of survivors, before the next one",
            f"upload {step.number} is not the one that waits",
        )
    n_members, survivors = len(waiting.names), step.survivors
    least = threshold(n_members)
    is_named = waiting.position in survivors and survivors[-1] < n_members
    if not is_named or len(survivors) < least:
        raise refusal(
            f"survivors must be at least {least} of the {n_members} members, this client included",
            f"they are {len(survivors)}",
        )
    if waiting.agreed not in ((), survivors):
        raise refusal("an upload has one set of survivors", "these are others")
    _check_weights([waiting.weights[k] for k in survivors])
    session.promises.check(waiting.round, waiting.group(survivors))
    if _rows(broadcast.values, "arrived", 1, HASH_BYTES) != [waiting.digest]:
        raise refusal(
            "what the server has must be what this client sent", "its upload was changed on the way"
        )
    return waiting


def _rows(values: Values, name: str, n_rows: int, length: int) -> list[bytes]:
    """Rows of bytes in a broadcast, whose form is looked at first."""
    words = values.get(name)
    if words is None or words.dtype != np.int64 or words.shape != (n_rows, crypto.n_words(length)):
        raise refusal(f"there must be {n_rows} rows of {name}", "there are not")
    return [crypto.from_words(row, length) for row in np.asarray(words, dtype=np.int64)]


# --- what a client remembers, and the promises that it does not go back on ---


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
        "session": crypto.to_words(session.digest),
        "private": crypto.to_words(session.private),
        "number": np.array(session.number),
        "is lost": np.array(session.is_lost),
        "last asked": crypto.to_words(session.last_asked),
        "run names": crypto.stack(list(promises.weights), HASH_BYTES),
        "run weights": np.array(list(promises.weights.values()), dtype=np.float64),
        "given rounds": np.array([round_ for round_, _ in promises.given], dtype=np.int64),
        "given to": crypto.stack([group for _, group in promises.given], HASH_BYTES),
        **add_prefix(_REPLY, session.last_reply),
    }
    if waiting is not None:
        stored |= {
            "context": crypto.to_words(waiting.context),
            "own key": crypto.to_words(waiting.own_key),
            "upload": crypto.to_words(waiting.digest),
            "place": np.array([waiting.round, waiting.position]),
            "names": crypto.stack(waiting.names, HASH_BYTES),
            "keys": crypto.stack(waiting.publics, KEY_BYTES),
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
    weights = zip(_from_rows(stored["run names"]), stored["run weights"].tolist(), strict=True)
    given = zip(stored["given rounds"].tolist(), _from_rows(stored["given to"]), strict=True)
    waiting = None
    if "context" in stored:
        round_, position = stored["place"].tolist()
        waiting = Waiting(
            context=crypto.from_words(stored["context"], HASH_BYTES),
            round=round_,
            position=position,
            own_key=crypto.from_words(stored["own key"], KEY_BYTES),
            digest=crypto.from_words(stored["upload"], HASH_BYTES),
            names=_from_rows(stored["names"]),
            publics=_from_rows(stored["keys"]),
            weights=tuple(stored["weights"].tolist()),
            agreed=tuple(stored["agreed"].tolist()),
        )
    session = Session(
        digest=crypto.from_words(stored["session"], HASH_BYTES),
        private=crypto.from_words(stored["private"], KEY_BYTES),
        number=int(stored["number"]),
        waiting=waiting,
        promises=Promises(dict(weights), tuple(given)),
        is_lost=bool(stored["is lost"]),
        last_asked=crypto.from_words(stored["last asked"], HASH_BYTES),
        last_reply=sets.get(_REPLY, {}),
    )
    if _INNER_ROUNDS not in stored:
        return session, NO_MEMORY
    header = {"run_id": run_id, "past": stored[_INNER_ROUNDS].tolist()}
    return session, memory_from_arrays(header, sets.get(_INNER, {}))


def _from_rows(rows: npt.NDArray[Any]) -> tuple[bytes, ...]:
    """Hashes or keys: both have 32 bytes."""
    return tuple(crypto.from_words(row, HASH_BYTES) for row in rows)
