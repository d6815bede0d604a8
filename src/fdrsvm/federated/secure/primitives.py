"""Keys, masks and sealed letters, all from ``cryptography``; nothing here is our own.

Pair      X25519 of two clients' keys, then HKDF-SHA256 with the round's context: one key for the
          mask of the pair and one for each direction of letters. The context is the hash of all
          that the clients were asked, so no key serves twice, and clients that were asked different
          things have different masks, which hide instead of cancelling.
Mask      the ChaCha20 stream of a key that is used once
Letter    ChaCha20-Poly1305 under a key that is used once
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.errors import CorruptDataError, UnsupportedError
from fdrsvm.federated.secure.fixed_point import Fixed

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError as error:
    raise UnsupportedError(
        f"secure aggregation needs the package cryptography ({error}); run pip install "
        "'fdr-svm[secure]'"
    ) from None

KEY_BYTES, TAG_BYTES = 32, 16
_CONTEXT = b"fdrsvm secure sum 1 "
# Keys are used once, so the nonces need not differ.
_STREAM_NONCE, _LETTER_NONCE = bytes(16), bytes(12)


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


def pair_keys(private: bytes, public: bytes, context: bytes) -> PairKeys:
    """The same three keys at both ends of a pair."""
    try:
        other = X25519PublicKey.from_public_bytes(public)
        shared = X25519PrivateKey.from_private_bytes(private).exchange(other)
    except ValueError:  # a point of small order, which no client has
        raise CorruptDataError("public key: it is none") from None
    names = b"".join(sorted([public, public_key(private)]))
    kdf = HKDF(SHA256(), 3 * KEY_BYTES, salt=context, info=_CONTEXT + names)
    keys = kdf.derive(shared)
    return PairKeys(*(keys[at : at + KEY_BYTES] for at in range(0, 3 * KEY_BYTES, KEY_BYTES)))


def mask(key: bytes, length: int) -> Fixed:
    """So many numbers that nobody can tell from random ones without the key."""
    stream = Cipher(ChaCha20(key, _STREAM_NONCE), mode=None).encryptor()
    words = np.frombuffer(stream.update(bytes(16 * length)), dtype="<u8").astype(np.uint64)
    return words.reshape(length, 2)


def sealed(key: bytes, letter: bytes) -> bytes:
    """Only who has the key can read it, or change it unseen."""
    return ChaCha20Poly1305(key).encrypt(_LETTER_NONCE, letter, None)


def opened(key: bytes, letter: bytes) -> bytes:
    """What was sealed, or a CorruptDataError."""
    try:
        return ChaCha20Poly1305(key).decrypt(_LETTER_NONCE, letter, None)
    except InvalidTag:
        raise CorruptDataError("share: it was not sealed for this client and round") from None
