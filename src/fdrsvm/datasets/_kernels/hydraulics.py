"""Fluid with trapped air, orifices and check valves. Each function gives a value and its slope."""

from __future__ import annotations

import math
from typing import NamedTuple

from fdrsvm.maths.compiled import compiled


class Fluid(NamedTuple):
    """``exponent`` is one over the polytropic index of the trapped air."""

    atmosphere: float
    bulk_modulus: float
    air: float
    exponent: float


class Valve(NamedTuple):
    """Conductances of a check valve, closed and fully open; pressures where it starts and ends."""

    closed: float
    opened: float
    crack: float
    full: float


@compiled
def stored(fluid: Fluid, p: float) -> tuple[float, float]:
    """Volume stored per unit volume at gauge pressure p, and its slope, the compressibility.

    The air expands without bound as p nears absolute zero, so p never gets there.
    """
    absolute = fluid.atmosphere + p
    air = fluid.air * (fluid.atmosphere / absolute) ** fluid.exponent
    volume = 1.0 - p / fluid.bulk_modulus + air
    shrinkage = 1.0 / fluid.bulk_modulus + fluid.exponent * air / absolute
    return -math.log(volume), shrinkage / volume


@compiled
def orifice(conductance: float, smoothing: float, drop: float) -> tuple[float, float]:
    """Turbulent flow, ``drop / sqrt(|drop|)`` smoothed at the origin."""
    square = drop * drop + smoothing * smoothing
    root = math.sqrt(math.sqrt(square))
    flow = conductance * drop / root
    return flow, conductance * (1.0 - 0.5 * drop * drop / square) / root


@compiled
def check_valve(valve: Valve, smoothing: float, drop: float) -> tuple[float, float]:
    """An orifice whose area grows linearly from ``crack`` to ``full``."""
    rate = (valve.opened - valve.closed) / (valve.full - valve.crack)
    if drop <= valve.crack:
        conductance, rate = valve.closed, 0.0
    elif drop < valve.full:
        conductance = valve.closed + rate * (drop - valve.crack)
    else:
        conductance, rate = valve.opened, 0.0
    unit, unit_slope = orifice(1.0, smoothing, drop)
    return conductance * unit, conductance * unit_slope + rate * unit
