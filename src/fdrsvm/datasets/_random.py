"""Random numbers: one spelling of ``random_state``, and independent streams from one seed."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from fdrsvm.errors import InvalidInputError

# What the user may pass: None, an int, a SeedSequence or a Generator.
RandomState: TypeAlias = (
    "int | np.integer[Any] | np.random.SeedSequence | np.random.Generator | None"
)


def as_generator(random_state: RandomState) -> np.random.Generator:
    """PCG64, whose streams are the same on every platform."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.Generator(np.random.PCG64(_as_sequence(random_state)))


def spawn(random_state: RandomState, n_streams: int) -> list[np.random.Generator]:
    """Independent streams, so that what one part draws does not shift what another gets."""
    if isinstance(random_state, np.random.Generator):
        return list(random_state.spawn(n_streams))
    # A copy: spawning counts children, and the caller's sequence must give the same again.
    sequence = _as_sequence(random_state)
    fresh = np.random.SeedSequence(
        sequence.entropy, spawn_key=sequence.spawn_key, pool_size=sequence.pool_size
    )
    return [np.random.Generator(np.random.PCG64(child)) for child in fresh.spawn(n_streams)]


def _as_sequence(random_state: Any) -> np.random.SeedSequence:
    if random_state is None or isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence() if random_state is None else random_state
    is_seed = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not is_seed or random_state < 0:
        raise InvalidInputError(
            "random_state",
            "must be None, an integer from 0, a SeedSequence or a Generator",
            f"it is {random_state!r}",
        )
    return np.random.SeedSequence(int(random_state))
