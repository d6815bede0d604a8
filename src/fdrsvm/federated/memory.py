"""What a client remembers between rounds, as named arrays: it can be stored, and never leaves."""

from __future__ import annotations

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.federated.messages import Values
from fdrsvm.solvers import WarmStart


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
