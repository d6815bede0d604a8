"""Shamir's secret sharing: any ``threshold`` shares give the secret, fewer say nothing of it.

The secret is the value at 0 of a polynomial of degree threshold - 1 with random coefficients over
the integers modulo PRIME; share k is its value at k = 1, 2, ...
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

PRIME = 2**256 + 297  # the first prime above 2^256: every 32 bytes are a secret
SECRET_BYTES, SHARE_BYTES = 32, 33


def split(secret: bytes, n_shares: int, threshold: int) -> list[bytes]:
    """Shares 1 to ``n_shares`` of 32 bytes."""
    coefficients = [int.from_bytes(secret, "little")]
    coefficients += [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    return [_value(coefficients, k).to_bytes(SHARE_BYTES, "little") for k in range(1, n_shares + 1)]


def _value(coefficients: Sequence[int], at: int) -> int:
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


def combined(shares: Mapping[int, bytes], weights: Mapping[int, int]) -> bytes:
    """The secret of the shares with the numbers that ``weights`` has; wrong shares give another."""
    secret = sum(w * int.from_bytes(shares[k], "little") for k, w in weights.items()) % PRIME
    return (secret % 2**256).to_bytes(SECRET_BYTES, "little")
