"""A triplex plunger pump with a leaking plunger seal: parameters and simulation.

The model is that of docs/datasets.md: crank and slider, oil with trapped air, check valves without
dynamics, laminar pipes, a load behind an orifice, and a torque-limited motor. Pressures are gauge.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array, check_non_negative, check_positive
from fdrsvm.errors import InvalidInputError
from fdrsvm.native import pump as kernel

STEP = 2e-5
SAMPLE_RATE = 1000.0
DURATION = 2.0

_ATMOSPHERE = 101325.0
_BAR = 1e5
_LITRES_PER_MINUTE = 60e3  # in a m^3/s
_RPM = 30.0 / math.pi  # in a rad/s

# fmt: off
_MAY_BE_ZERO = {
    "air_fraction", "bearing_damping", "breakaway_friction", "coulomb_friction", "integral_gain",
    "integral_limit", "least_leak_area", "load_pressure", "pipe_extra_length", "proportional_gain",
    "valve_leak_area", "viscous_friction",
}
# fmt: on


@dataclass(frozen=True)
class PumpParameters:
    """The pump, in SI units (speeds of the controller in rpm). Defaults: docs/datasets.md."""

    crank_radius: float = 15e-3
    rod_length: float = 72.5e-3
    plunger_radius: float = 12e-3
    dead_volume: float = 8e-6
    discharge_coefficient: float = 0.7
    valve_area: float = 1e-4
    valve_leak_area: float = 1e-12
    crack_pressure: float = 0.3e5
    open_pressure: float = 1.2e5
    blocking: float = 0.8  # share of the inlet area left to plunger 1
    least_leak_area: float = 1e-9  # of a healthy seal
    pipe_diameter: float = 30e-3
    pipe_length: float = 5.0
    pipe_extra_length: float = 1.0  # what bends and fittings add to the resistance
    manifold_volume: float = 2e-4
    load_volume: float = 1e-4
    load_area: float = 2e-4
    load_pressure: float = 7e5
    density: float = 870.0
    viscosity: float = 90e-6  # kinematic
    bulk_modulus: float = 1.4e9
    air_fraction: float = 0.005
    polytropic_index: float = 1.4
    smoothing_pressure: float = 500.0  # below it an orifice is laminar
    inertia: float = 6.9e-3
    bearing_damping: float = 1e-4 * 180.0 / math.pi
    breakaway_friction: float = 25.0
    breakaway_speed: float = 0.1
    coulomb_friction: float = 20.0
    viscous_friction: float = 100.0
    reference_speed: float = 958.0 * 1.0731
    proportional_gain: float = 0.04
    integral_gain: float = 0.002
    integral_limit: float = 40.0
    torque_limit: float = 5.0
    torque_lag: float = 0.02
    speed_filter: float = 200.0  # Hz
    gear: float = 2.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check = check_non_negative if field.name in _MAY_BE_ZERO else check_positive
            object.__setattr__(self, field.name, check(getattr(self, field.name), field.name))
        for low, high in (("crank_radius", "rod_length"), ("crack_pressure", "open_pressure")):
            if getattr(self, low) >= getattr(self, high):
                raise InvalidInputError(
                    low, f"must be below {high}", f"{getattr(self, low)} >= {getattr(self, high)}"
                )

    def leak_area(self, leak: float) -> float:
        """Area of the leak, from its share of the inlet valve's full area."""
        return max(leak * self.valve_area, self.least_leak_area)

    @property
    def plunger_area(self) -> float:
        """Cross section of one plunger."""
        return math.pi * self.plunger_radius**2


@dataclass(frozen=True)
class PumpRun:
    """Time series of one or more runs, without measurement noise.

    Every signal has the shape of the runs, then one entry per sample; ``chamber_pressure`` has
    three more, one per plunger. Flows are in l/min, gauge pressures in bar, speed in rpm, torque in
    N m, the crank's angle in radians.
    """

    time: Array
    flow: Array
    pressure: Array
    inlet_flow: Array
    inlet_pressure: Array
    speed: Array
    torque: Array
    leak_flow: Array
    angle: Array
    chamber_pressure: Array


def simulate_pump(
    leak: Any = 0.0,
    *,
    load_pressure: Any = None,
    torque_limit: Any = None,
    viscosity: Any = None,
    blocking: Any = None,
    pump: PumpParameters | None = None,
    duration: float = DURATION,
    start: float = 0.0,
    sample_rate: float = SAMPLE_RATE,
    step: float = STEP,
) -> PumpRun:
    """Flow and pressure of a triplex plunger pump whose first plunger's seal may leak.

    The pump starts from standstill; it has settled after about 0.8 s. The result is the physics
    alone and has no randomness: sensors' noise is for the caller to add.

    Parameters
    ----------
    leak : float or array, default 0
        Area of the leak over the full area of an inlet valve. 1e-3 is hard to see, 1e-2 is plain.
    load_pressure, torque_limit, viscosity, blocking : float or array, optional
        Where runs differ from ``pump``: back pressure in Pa, motor torque in N m, kinematic
        viscosity in m^2/s, share of plunger 1's inlet area that is open. Arrays are broadcast with
        ``leak``; each element is a run, and equal runs are simulated once.
    pump : PumpParameters, optional
        Everything else.
    duration, start : float
        Seconds simulated, and the time of the first sample that is kept.
    sample_rate : float, default 1000
        Samples per second.
    step : float, default 2e-5
        Time step of the integration; ``1 / (sample_rate * step)`` must be a whole number.

    Returns
    -------
    PumpRun

    Examples
    --------
    >>> from fdrsvm.datasets import simulate_pump
    >>> run = simulate_pump([0.0, 1e-2], start=0.8, step=2e-4)
    >>> run.flow.shape
    (2, 1201)
    >>> bool(run.flow[0].mean() > run.flow[1].mean())
    True
    """
    pump = PumpParameters() if pump is None else pump
    if not isinstance(pump, PumpParameters):
        raise InvalidInputError("pump", "must be PumpParameters", f"it is {pump!r}")
    overrides = _broadcast_runs(
        leak=leak,
        load_pressure=load_pressure,
        torque_limit=torque_limit,
        viscosity=viscosity,
        blocking=blocking,
    )
    leaks = overrides.pop("leak")
    n_samples, first, every, dt = _time_grid(duration, start, sample_rate, step)
    simulate = lru_cache(maxsize=None)(partial(_simulate, n_samples, every, dt))
    records = []
    for index in np.ndindex(leaks.shape):
        changes = {name: float(values[index]) for name, values in overrides.items()}
        changed = dataclasses.replace(pump, **changes)
        records.append(simulate(changed, check_non_negative(leaks[index], "leak"))[first:])
    record = np.stack(records).reshape(*leaks.shape, n_samples - first, kernel.N_SIGNALS)
    return PumpRun(
        time=np.arange(first, n_samples) / sample_rate,
        flow=record[..., kernel.FLOW] * _LITRES_PER_MINUTE,
        pressure=record[..., kernel.PRESSURE] / _BAR,
        inlet_flow=record[..., kernel.INLET_FLOW] * _LITRES_PER_MINUTE,
        inlet_pressure=record[..., kernel.INLET_PRESSURE] / _BAR,
        speed=record[..., kernel.SPEED] * _RPM,
        torque=record[..., kernel.TORQUE].copy(),
        leak_flow=record[..., kernel.LEAK_FLOW] * _LITRES_PER_MINUTE,
        angle=record[..., kernel.ANGLE].copy(),
        chamber_pressure=record[..., kernel.FIRST_CHAMBER :] / _BAR,
    )


def _broadcast_runs(**given: Any) -> dict[str, Array]:
    """Arrays of one shape, without those that are None."""
    arrays = {}
    for name, value in given.items():
        try:
            if value is not None or name == "leak":
                arrays[name] = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInputError(name, "must be numeric", f"it is {value!r}") from None
    try:
        spread = np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidInputError("leak", "shapes of the runs must go together", shapes) from None
    if spread[0].size == 0:
        raise InvalidInputError("leak", "must have at least one run", "it has none")
    return dict(zip(arrays, spread, strict=True))


def _time_grid(
    duration: float, start: float, sample_rate: float, step: float
) -> tuple[int, int, int, float]:
    """Number of samples, first one kept, steps per sample, and the step that fits exactly."""
    duration = check_positive(duration, "duration")
    start = check_non_negative(start, "start")
    sample_rate = check_positive(sample_rate, "sample_rate")
    step = check_positive(step, "step")
    steps = 1.0 / (sample_rate * step)
    every = round(steps)
    if every < 1 or abs(steps - every) > 1e-6 * steps:
        raise InvalidInputError(
            "step",
            "must go a whole number of times into a sample",
            f"1 / (sample_rate * step) is {steps:.9g}",
        )
    last = math.floor(duration * sample_rate + 1e-9)
    first = math.ceil(start * sample_rate - 1e-9)
    if first > last:
        raise InvalidInputError(
            "start", "must not be beyond the duration", f"{start:g} s of {duration:g} s"
        )
    return last + 1, first, every, 1.0 / (sample_rate * every)


def _simulate(n_samples: int, every: int, dt: float, pump: PumpParameters, leak: float) -> Array:
    run = kernel_pump(pump, leak).run(step=dt, every=every, n_samples=n_samples)
    if run.failed_step > 0:
        raise InvalidInputError(
            "step",
            "must be small enough for the pump's equations",
            f"with {dt:g} s they could not be solved at t = {run.failed_step * dt:.6g} s",
        )
    return run.record


def circuit_of(pump: PumpParameters, leak: float) -> kernel.Circuit:
    """The hydraulics, with this leak."""
    speed = pump.discharge_coefficient * math.sqrt(2.0 / pump.density)  # at a drop of 1 Pa

    def valve(area: float) -> kernel.Valve:
        return kernel.Valve(
            closed=speed * pump.valve_leak_area,
            opened=speed * area,
            crack=pump.crack_pressure,
            full=pump.open_pressure,
        )

    bore = 0.25 * math.pi * pump.pipe_diameter**2
    half = 0.5 * (pump.pipe_length + pump.pipe_extra_length)
    resistance = 32.0 * pump.density * pump.viscosity * half / (pump.pipe_diameter**2 * bore)
    return kernel.Circuit(
        fluid=kernel.Fluid(
            atmosphere=_ATMOSPHERE,
            bulk_modulus=pump.bulk_modulus,
            air=pump.air_fraction,
            exponent=1.0 / pump.polytropic_index,
        ),
        inlet_1=valve(pump.blocking * pump.valve_area),
        inlet=valve(pump.valve_area),
        outlet=valve(pump.valve_area),
        leak=speed * pump.leak_area(leak),
        load=speed * pump.load_area,
        back_pressure=pump.load_pressure,
        pipe=1.0 / resistance,
        smoothing=pump.smoothing_pressure,
        volumes=kernel.Volumes(
            chamber=pump.dead_volume,
            manifold=pump.manifold_volume,
            pipe=bore * pump.pipe_length,
            load=pump.load_volume,
        ),
    )


def kernel_pump(pump: PumpParameters, leak: float) -> kernel.Pump:
    """The compiled model: hydraulics with this leak, mechanics and motor."""
    mechanics = kernel.Mechanics(
        crank=pump.crank_radius,
        rod=pump.rod_length,
        plunger_area=pump.plunger_area,
        inertia=pump.inertia,
        damping=pump.bearing_damping,
        breakaway=pump.breakaway_friction,
        breakaway_speed=pump.breakaway_speed,
        coulomb=pump.coulomb_friction,
        viscous=pump.viscous_friction,
    )
    motor = kernel.Motor(
        reference=pump.reference_speed,
        gain=pump.proportional_gain,
        integral_gain=pump.integral_gain,
        integral_limit=pump.integral_limit,
        torque_limit=pump.torque_limit,
        lag=pump.torque_lag,
        filter_rate=2.0 * math.pi * pump.speed_filter,
        gear=pump.gear,
    )
    return kernel.Pump(circuit_of(pump, leak), mechanics, motor)
