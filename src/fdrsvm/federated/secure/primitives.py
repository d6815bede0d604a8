"""Keys, masks and sealed letters, all from ``cryptography``; nothing here is our own.

Pair      X25519 of two clients' keys, then HKDF-SHA256 with the round's context: one key for the
          mask of the pair and one for each direction of letters. The context is the hash of all
          that the clients were asked, so no key serves twice, and clients that were asked different
          things have different masks, which hide instead of cancelling.
Mask      the ChaCha20 stream of a key that is used once
Letter    for a key k that is used once, k_open = HMAC(k, "open") and k_whole = HMAC(k, "whole"):
          the text under ChaCha20 with k_open, then the first 16 bytes of its HMAC with k_whole
Seal      SHA-256 of (SHA-256(k_open), k_whole), 16 bytes: what both ends of a letter say of its key
          beforehand. Who shows these two proves that a letter is broken without opening it; who
          shows k opens it, and can show no other one.
Word      the first 16 bytes of HMAC(k, survivors): what one client has another one know
HMAC is HMAC-SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fdrsvm.errors import CorruptDataError, UnsupportedError
from fdrsvm.federated.secure.fixed_point import Fixed

try:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError as error:
    raise UnsupportedError(
        f"secure aggregation needs the package cryptography ({error}); run pip install "
        "'fdr-svm[secure]'"
    ) from None

KEY_BYTES, TAG_BYTES = 32, 16
PROOF_BYTES = 2 * KEY_BYTES
_PURPOSE = b"fdrsvm secure sum 2 "
_NONCE = bytes(16)  # keys are used once, so nonces need not differ


class PairKeys(NamedTuple):
    """What two clients share in one round; ``up`` seals letters from the first to the second."""

    mask: bytes
    up: bytes
    down: bytes


def new_private_key() -> bytes:
    """A key of one client's own."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(private: bytes) -> bytes:
    """What others may know of it."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def is_public_key(public: bytes) -> bool:
    """Whether others can have keys in common with its owner."""
    try:
        pair_keys(new_private_key(), [public], b"")
    except CorruptDataError:
        return False
    return True


def pair_keys(private: bytes, publics: Sequence[bytes], context: bytes) -> list[PairKeys]:
    """With the owner of each public key; the other end of a pair has the same three keys."""
    own = X25519PrivateKey.from_private_bytes(private)
    own_public = own.public_key().public_bytes_raw()
    found = []
    for public in publics:
        try:
            shared = own.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:  # a point of small order, which no client has
            raise CorruptDataError("public key: it is none") from None
        pair = b"".join(sorted([public, own_public]))
        keys = HKDF(SHA256(), 3 * KEY_BYTES, salt=context, info=_PURPOSE + pair).derive(shared)
        found.append(
            PairKeys(keys[:KEY_BYTES], keys[KEY_BYTES : 2 * KEY_BYTES], keys[2 * KEY_BYTES :])
        )
    return found


def mask(key: bytes, length: int) -> Fixed:
    """So many numbers that nobody can tell from random ones without the key."""
    words = np.frombuffer(_stream(key, bytes(16 * length)), dtype="<u8").astype(np.uint64)
    return words.reshape(length, 2)


def sealed(key: bytes, text: bytes) -> bytes:
    """A letter: only who has the key can read it, or change it unseen."""
    hidden = _stream(_mac(key, b"open"), text)
    return hidden + _mac(_mac(key, b"whole"), hidden)[:TAG_BYTES]


def is_whole(proof: bytes, letter: bytes) -> bool:
    """Whether a letter is as it was sealed, for who may know that and no more."""
    hidden, tag = letter[:-TAG_BYTES], letter[-TAG_BYTES:]
    return hmac.compare_digest(_mac(proof[KEY_BYTES:], hidden)[:TAG_BYTES], tag)


def opened(key: bytes, letter: bytes) -> bytes:
    """What was sealed, or a CorruptDataError."""
    if not is_whole(proof_of(key), letter):
        raise CorruptDataError("share: it was not sealed for this client and round")
    return text_of(key, letter)


def text_of(key: bytes, letter: bytes) -> bytes:
    """What was sealed in a letter that is known to be whole."""
    return _stream(_mac(key, b"open"), letter[:-TAG_BYTES])


def proof_of(key: bytes) -> bytes:
    """What shows whether a letter is whole, and does not open it."""
    return hashlib.sha256(_mac(key, b"open")).digest() + _mac(key, b"whole")


def seal_of(proof: bytes) -> bytes:
    """What can be said of a letter's key beforehand."""
    return hashlib.sha256(proof).digest()[:TAG_BYTES]


def word(key: bytes, text: bytes) -> bytes:
    """Only the two who have the key can say it."""
    return _mac(key, b"survivors" + text)[:TAG_BYTES]


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _stream(key: bytes, text: bytes) -> bytes:
    return Cipher(ChaCha20(key, _NONCE), mode=None).encryptor().update(text)
