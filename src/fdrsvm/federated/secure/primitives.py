"""Keys, masks and sealed letters, all from ``cryptography``; nothing here is our own.

Pair      X25519 of two clients' keys, then HKDF-SHA256 with the round's context: one key for the
          mask of the pair and one for each direction of letters. The context is the hash of all
          that the clients were asked, so no key serves twice, and clients that were asked different
          things have different masks, which hide instead of cancelling.
Mask      the ChaCha20 stream of a key that is used once
Letter    ChaCha20-Poly1305 under a key that is used once
"""

from __future__ import annotations

from collections.abc import Sequence
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
_PURPOSE = b"fdrsvm secure sum 1 "
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
