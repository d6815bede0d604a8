"""What a secure sum is made of: words, numbers that masks can hide, keys, letters and shares.

Ciphers and curves are those of ``cryptography``; our own are the arithmetic and Shamir's sharing.

Word      bytes travel in messages and lie in memories as int64, eight to a word, padded with zeros
Number    x is round(2^64 x) modulo 2^128, in two words, the lower one first. Sums of such numbers
          are exact, whatever their order, and wrap round like the masks that are added to them.
          With 64 bits before the point and 64 after it nobody has to agree on a scale: the step is
          5.4e-20, and float64 itself is coarser from 2.5e-4 on.
Pair      X25519 of two clients' keys, then HKDF-SHA256 with the round's context: one key for the
          mask of the pair and one for each direction of letters. The context is the hash of all
          that the clients were asked, so no key serves twice, and clients that were asked different
          things have different masks, which hide instead of cancelling.
Mask      the ChaCha20 stream of a key that is used once
Letter    for a key k that is used once, k_open = HMAC(k, "open") and k_whole = HMAC(k, "whole"):
          the text under ChaCha20 with k_open, then the first 16 bytes of its HMAC with k_whole
Seal      SHA-256 of (SHA-256(k_open), k_whole), 16 bytes: what both ends of a letter say of its key
          beforehand. Whoever shows these two proves that a letter is broken without opening it;
          whoever shows k opens it, and can show no other one.
Assurance the first 16 bytes of HMAC(k, "survivors", text): what one client lets another one know
Share     of a secret, [Shamir]: the value at k = 1, 2, ... of a polynomial of degree threshold - 1
          modulo PRIME, whose value at 0 is the secret and whose other coefficients are random. Any
          ``threshold`` shares give the secret; fewer say nothing of it.
HMAC is HMAC-SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.errors import CorruptDataError, UnsupportedError

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

Words: TypeAlias = npt.NDArray[np.int64]
Fixed: TypeAlias = npt.NDArray[np.uint64]  # the last axis is (low word, high word)

KEY_BYTES, HASH_BYTES, TAG_BYTES = 32, 32, 16
PROOF_BYTES = 2 * KEY_BYTES
SECRET_BYTES, SHARE_BYTES = 32, 33
LETTER_BYTES = SHARE_BYTES + TAG_BYTES
PRIME = 2**256 + 297  # the first prime above 2^256: every 32 bytes are a secret
# Weighted sums of numbers up to this stay far from half of 2^64, where signs would be lost.
LARGEST = 2.0**60
_FRACTION = 2.0**64
_PURPOSE = b"fdrsvm secure sum 2 "
_NONCE = bytes(16)  # keys are used once, so nonces need not differ


# --- words ---


def n_words(length: int) -> int:
    """How many words this many bytes take."""
    return -(-length // 8)


def to_words(data: bytes) -> Words:
    """The bytes, with zeros up to the next whole word."""
    padded = data.ljust(8 * n_words(len(data)), b"\0")
    return np.frombuffer(padded, dtype="<i8").astype(np.int64)


def from_words(words: npt.NDArray[Any], length: int) -> bytes:
    """The first ``length`` bytes."""
    return words.astype("<i8").tobytes()[:length]


def stack(rows: Sequence[bytes], length: int) -> Words:
    """One row of words for each, all of one length."""
    words = np.array([to_words(row) for row in rows], dtype=np.int64)
    return words.reshape(len(rows), n_words(length))


# --- numbers ---


def to_fixed(values: Array) -> Fixed:
    """Two words per number; all must lie within +-LARGEST."""
    sizes = np.abs(values)
    whole = np.floor(sizes)
    low = np.rint((sizes - whole) * _FRACTION)
    fixed = np.stack([low.astype(np.uint64), whole.astype(np.uint64)], axis=-1)
    return np.where((values < 0.0)[..., None], negate(fixed), fixed)


def from_fixed(fixed: Fixed) -> Array:
    """The numbers, to within a rounding or two."""
    is_negative = fixed[..., 1] >> np.uint64(63) == 1
    sizes = np.where(is_negative[..., None], negate(fixed), fixed).astype(np.float64)
    values = sizes[..., 1] + sizes[..., 0] / _FRACTION
    return np.where(is_negative, -values, values)


def add(left: Fixed, right: Fixed) -> Fixed:
    """The sum modulo 2^128."""
    low = left[..., 0] + right[..., 0]
    carry = (low < left[..., 0]).astype(np.uint64)  # unsigned sums wrap round
    return np.stack([low, left[..., 1] + right[..., 1] + carry], axis=-1)


def negate(fixed: Fixed) -> Fixed:
    """What gives 0 when it is added."""
    low = ~fixed[..., 0] + np.uint64(1)
    carry = (low == 0).astype(np.uint64)
    return np.stack([low, ~fixed[..., 1] + carry], axis=-1)


def split_column(
    column: npt.NDArray[Any], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, npt.NDArray[Any]]:
    """The arrays that a column holds one after the other; what follows them is left out."""
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()], dtype=np.intp)
    arrays = zip(shapes.items(), np.split(column, ends), strict=False)
    return {name: array.reshape(*shape, *column.shape[1:]) for (name, shape), array in arrays}


# --- keys and masks ---


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
    pairs = []
    for public in publics:
        try:
            shared = own.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:  # a point of small order, which no client has
            raise CorruptDataError("public key: it is not one") from None
        pair = b"".join(sorted([public, own_public]))  # so that both ends derive the same keys
        keys = HKDF(SHA256(), 3 * KEY_BYTES, salt=context, info=_PURPOSE + pair).derive(shared)
        each = (keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES))
        pairs.append(PairKeys(*each))
    return pairs


def mask(key: bytes, length: int) -> Fixed:
    """Numbers, ``length`` of them, that nobody can tell from random ones without the key."""
    words = np.frombuffer(_stream(key, bytes(16 * length)), dtype="<u8").astype(np.uint64)
    return words.reshape(length, 2)


def signed_mask(key: bytes, own: int, other: int, length: int) -> Fixed:
    """The mask of a pair as one of them adds it: the other adds what cancels it."""
    stream = mask(key, length)
    return stream if own < other else negate(stream)


# --- letters ---


def seal_letter(key: bytes, text: bytes) -> bytes:
    """A letter: only whoever has the key can read it, or change it unseen."""
    hidden = _stream(_mac(key, b"open"), text)
    return hidden + _mac(_mac(key, b"whole"), hidden)[:TAG_BYTES]


def is_whole(proof: bytes, letter: bytes) -> bool:
    """Whether a letter is as it was sealed, for those who may know that and no more."""
    hidden, tag = letter[:-TAG_BYTES], letter[-TAG_BYTES:]
    return hmac.compare_digest(_mac(proof[KEY_BYTES:], hidden)[:TAG_BYTES], tag)


def read_letter(key: bytes, letter: bytes) -> bytes:
    """What was sealed in a letter that is known to be whole."""
    return _stream(_mac(key, b"open"), letter[:-TAG_BYTES])


def proof_of(key: bytes) -> bytes:
    """What shows whether a letter is whole, and does not open it."""
    return hashlib.sha256(_mac(key, b"open")).digest() + _mac(key, b"whole")


def seal_of(proof: bytes) -> bytes:
    """What can be said of a letter's key beforehand."""
    return hashlib.sha256(proof).digest()[:TAG_BYTES]


def assurance(key: bytes, text: bytes) -> bytes:
    """Only the two who have the key can say it."""
    return _mac(key, b"survivors" + text)[:TAG_BYTES]


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _stream(key: bytes, text: bytes) -> bytes:
    return Cipher(ChaCha20(key, _NONCE), mode=None).encryptor().update(text)


# --- shares ---


def split(secret: bytes, n_shares: int, threshold: int) -> list[bytes]:
    """Shares 1 to ``n_shares`` of 32 bytes."""
    coefficients = [int.from_bytes(secret, "little")]
    coefficients += [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    values = [polynomial_value(coefficients, k) for k in range(1, n_shares + 1)]
    return [value.to_bytes(SHARE_BYTES, "little") for value in values]


def polynomial_value(coefficients: Sequence[int], at: int) -> int:
    """By Horner's rule, modulo PRIME; the constant is the first coefficient."""
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * at + coefficient) % PRIME
    return value


def weights_at_zero(numbers: Sequence[int]) -> dict[int, int]:
    """Lagrange's weights: the value at 0 is their sum over the shares with these numbers."""
    weights = {}
    for k in numbers:
        above, below = 1, 1
        for other in numbers:
            if other != k:
                above = above * other % PRIME
                below = below * (other - k) % PRIME
        weights[k] = above * pow(below, -1, PRIME) % PRIME
    return weights


def combine(shares: Mapping[int, bytes], weights: Mapping[int, int]) -> bytes:
    """The secret of the shares with the numbers that ``weights`` has; wrong shares give another."""
    secret = sum(w * int.from_bytes(shares[k], "little") for k, w in weights.items()) % PRIME
    return (secret % 2**256).to_bytes(SECRET_BYTES, "little")
