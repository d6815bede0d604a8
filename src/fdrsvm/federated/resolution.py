"""What an answer's exact numbers become before they leave a client: [resolution].

    risks      up to the next multiple of the resolution
    constants  of cuts, down to one

Both stay true: a worst case that is claimed larger, a cut that lies lower. With the same models and
cuts an objective rises by less than one resolution and a bound falls by less than one.
"""

from __future__ import annotations

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.federated.messages import Values

# Beyond so many steps a float64 has no room for the fraction of a step: it is on the grid as it is.
_MOST_STEPS = 2.0**52


def coarsened(values: Values, resolution: float) -> dict[str, Array]:
    """An answer's arrays with risks and cuts' constants on the grid; 0 leaves them as they are.

    Several models have their number before the names: "0/risks", "1/risks", ...
    """
    if resolution == 0.0:
        return dict(values)
    return {name: _coarsened(name, array, resolution) for name, array in values.items()}


def _coarsened(name: str, array: Array, resolution: float) -> Array:
    kind = name.rpartition("/")[2]
    if kind == "risks":
        return rounded_up(array, resolution)
    if kind == "constants":
        return -rounded_up(-array, resolution) + 0.0  # no -0
    return array


def rounded_up(values: Array, resolution: float) -> Array:
    """The smallest k * resolution, as float64 computes it, that is not below each value.

    The quotient is off by at most half a unit in its last place, so k is right or one off; which of
    them is seen from the products themselves, that are what is sent.
    """
    with np.errstate(over="ignore"):
        steps = np.ceil(values / resolution)
    has_room = np.abs(steps) <= _MOST_STEPS  # not so for what is not finite either
    steps = np.where(has_room, steps, 0.0)
    steps = np.where((steps - 1.0) * resolution >= values, steps - 1.0, steps)
    steps = np.where(steps * resolution < values, steps + 1.0, steps)
    return np.where(has_room, steps * resolution, values)
