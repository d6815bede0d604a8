"""What a client remembers between rounds, as named arrays: it can be stored, and never leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.federated.messages import Values, add_prefix, strip_prefix
from fdrsvm.solvers import WarmStart


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
    stored: dict[str, npt.NDArray[Any]] = add_prefix("now/", memory.values)
    for k, (_, before) in enumerate(memory.past):
        stored.update(add_prefix(f"{k}/", before))
    return {"run_id": memory.run_id, "past": [round_ for round_, _ in memory.past]}, stored


def memory_from_arrays(header: Mapping[str, Any], stored: Mapping[str, Any]) -> Memory:
    """The memory that ``memory_to_arrays`` took apart."""
    past = tuple(
        (int(round_), strip_prefix(f"{k}/", stored)) for k, round_ in enumerate(header["past"])
    )
    return Memory(str(header["run_id"]), strip_prefix("now/", stored), past)


def store_warm_start(start: WarmStart) -> dict[str, Array]:
    """A solver's start as arrays."""
    return {
        "start_w": start.w,
        "start_kept": start.kept,
        "start_flipped": start.flipped,
        "start_pull": start.pull,
        "start_scalars": np.array([start.lam, start.sigma]),
    }


def load_warm_start(memory: Values) -> WarmStart | None:
    """The start that ``store_warm_start`` put there, if any."""
    if "start_w" not in memory:
        return None
    lam, sigma = memory["start_scalars"].tolist()
    return WarmStart(
        w=memory["start_w"],
        lam=lam,
        kept=memory["start_kept"],
        flipped=memory["start_flipped"],
        pull=memory["start_pull"],
        sigma=sigma,
    )
