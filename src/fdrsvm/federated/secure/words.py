"""Secrets and ciphertexts as int64 arrays: what messages and memories can hold."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.int64]
_WORD = 8


def n_words(length: int) -> int:
    """How many words so many bytes take."""
    return -(-length // _WORD)


def to_words(data: bytes) -> Words:
    """The bytes, with zeros up to the next whole word."""
    padded = data.ljust(n_words(len(data)) * _WORD, b"\0")
    return np.frombuffer(padded, dtype="<i8").astype(np.int64)


def from_words(words: Words, length: int) -> bytes:
    """The first ``length`` bytes."""
    return words.astype("<i8").tobytes()[:length]


def stack(rows: list[bytes], length: int) -> Words:
    """One row for each, all of one length."""
    if not rows:
        return np.empty((0, n_words(length)), dtype=np.int64)
    return np.array([to_words(row) for row in rows])
