"""What a client remembers of a run, and its form in a file: it never leaves the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy.typing as npt

from fdrsvm.federated.messages import Values, add_prefix, split_prefixes


class Memory(NamedTuple):
    """What a client remembers of a run.

    ``past`` holds the last rounds answered, oldest first, each with what was remembered before it:
    a round can be asked for again and is answered with the same bits.
    """

    run_id: str
    values: Values
    past: tuple[tuple[int, Values], ...]


NO_MEMORY = Memory("", {}, ())


def memory_to_arrays(memory: Memory) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Header and arrays of what a client remembers."""
    stored: dict[str, npt.NDArray[Any]] = add_prefix("now", memory.values)
    for k, (_, before) in enumerate(memory.past):
        stored.update(add_prefix(str(k), before))
    return {"run_id": memory.run_id, "past": [round_ for round_, _ in memory.past]}, stored


def memory_from_arrays(header: Mapping[str, Any], stored: Mapping[str, Any]) -> Memory:
    """The memory that ``memory_to_arrays`` took apart."""
    sets = split_prefixes(stored)
    past = tuple((int(round_), sets.get(str(k), {})) for k, round_ in enumerate(header["past"]))
    return Memory(str(header["run_id"]), sets.get("now", {}), past)
