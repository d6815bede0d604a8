"""Crank, plunger friction, motor and speed controller."""

from __future__ import annotations

import math
from typing import NamedTuple

from fdrsvm.datasets._kernels.pressures import N_CHAMBERS
from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled

_THIRD = 2.0 * math.pi / 3.0
_RPM = 30.0 / math.pi  # per rad/s


class Mechanics(NamedTuple):
    """Crank-slider and what resists it."""

    crank: float
    rod: float
    plunger_area: float
    inertia: float
    damping: float
    breakaway: float
    breakaway_speed: float
    coulomb: float
    viscous: float


class Motor(NamedTuple):
    """Torque-limited drive under a PI controller of the shaft speed, in rpm."""

    reference: float
    gain: float
    integral_gain: float
    integral_limit: float
    torque_limit: float
    lag: float
    filter_rate: float
    gear: float


class Shaft(NamedTuple):
    """Angle, speed, motor torque, filtered speed in rpm, integral of the speed error."""

    angle: float
    speed: float
    torque: float
    measured: float
    integral: float


@compiled
def fill_levers(mechanics: Mechanics, angle: float, levers: Array) -> None:
    """Plunger travel per radian of crank, for each plunger; positive while it sucks."""
    for i in range(N_CHAMBERS):
        phase = angle + (i - 1) * _THIRD
        sine, cosine = math.sin(phase), math.cos(phase)
        reach = math.sqrt(mechanics.rod**2 - (mechanics.crank * sine) ** 2)
        levers[i] = mechanics.crank * sine * (1.0 + mechanics.crank * cosine / reach)


@compiled
def friction(mechanics: Mechanics, speed: float) -> float:
    """Viscous, Stribeck and Coulomb force on a plunger."""
    u = speed / (math.sqrt(2.0) * mechanics.breakaway_speed)
    peak = math.sqrt(2.0 * math.e) * (mechanics.breakaway - mechanics.coulomb)
    stick = mechanics.coulomb * math.tanh(10.0 * speed / mechanics.breakaway_speed)
    return mechanics.viscous * speed + peak * u * math.exp(-u * u) + stick


@compiled
def next_shaft(
    mechanics: Mechanics, motor: Motor, shaft: Shaft, levers: Array, p: Array, dt: float
) -> Shaft:
    """Speed, torque and controller one explicit step on; the angle has been moved before."""
    torque = motor.gear * shaft.torque - mechanics.damping * shaft.speed
    for i in range(N_CHAMBERS):
        force = p[i] * mechanics.plunger_area - friction(mechanics, levers[i] * shaft.speed)
        torque += force * levers[i]
    error = motor.reference - shaft.measured
    integral = shaft.integral + dt * error
    integral = min(max(integral, -motor.integral_limit), motor.integral_limit)
    demand = motor.gain * error + motor.integral_gain * integral
    demand = min(max(demand, -motor.torque_limit), motor.torque_limit)
    return Shaft(
        shaft.angle,
        shaft.speed + dt * torque / mechanics.inertia,
        shaft.torque + dt * (demand - shaft.torque) / motor.lag,
        shaft.measured + dt * motor.filter_rate * (shaft.speed * _RPM - shaft.measured),
        integral,
    )
