"""The pump once more, slowly and from the documented equations, for SciPy's stiff integrators."""

import math

import numpy as np
from scipy.integrate import solve_ivp

ATMOSPHERE = 101325.0


def stored(pump, p):
    """Volume stored per unit volume, and the compressibility."""
    air = pump.air_fraction * (ATMOSPHERE / (ATMOSPHERE + p)) ** (1 / pump.polytropic_index)
    volume = 1 - p / pump.bulk_modulus + air
    slope = 1 / pump.bulk_modulus + air / (pump.polytropic_index * (ATMOSPHERE + p))
    return -np.log(volume), slope / volume


def levers(pump, angle):
    """Derivative of the plungers' travel by the crank angle."""
    phases = np.asarray(angle)[..., None] + np.array([-1, 0, 1]) * 2 * math.pi / 3
    r, rod = pump.crank_radius, pump.rod_length
    reach = np.sqrt(rod**2 - (r * np.sin(phases)) ** 2)
    return r * np.sin(phases) * (1 + r * np.cos(phases) / reach)


def travel(pump, angle):
    """The plungers' way from top dead centre."""
    phases = np.asarray(angle)[..., None] + np.array([-1, 0, 1]) * 2 * math.pi / 3
    r, rod = pump.crank_radius, pump.rod_length
    return r + rod - r * np.cos(phases) - np.sqrt(rod**2 - (r * np.sin(phases)) ** 2)


def volumes(pump):
    pipe = math.pi / 4 * pump.pipe_diameter**2 * pump.pipe_length
    return np.array(
        [pump.dead_volume] * 3
        + [pump.manifold_volume, pipe, pump.load_volume, pump.manifold_volume, pipe]
    )


def simulate(pump, leak, times, tolerance=1e-7):
    """Outlet flow in l/min at the given times.

    The integrator sees the logarithm of absolute pressure, since its trial steps overshoot zero.
    """
    flow_factor = pump.discharge_coefficient * math.sqrt(2 / pump.density)
    bore = math.pi / 4 * pump.pipe_diameter**2
    length = (pump.pipe_length + pump.pipe_extra_length) / 2
    resistance = 32 * pump.density * pump.viscosity * length / (pump.pipe_diameter**2 * bore)
    size = volumes(pump)
    area = math.pi * pump.plunger_radius**2
    full = pump.valve_area * np.array([pump.blocking, 1, 1])

    def orifice(opening, drop):
        return flow_factor * opening * drop / (drop**2 + pump.smoothing_pressure**2) ** 0.25

    def valve(most, drop):
        share = (drop - pump.crack_pressure) / (pump.open_pressure - pump.crack_pressure)
        share = np.clip(share, 0, 1)
        return orifice(pump.valve_leak_area + share * (most - pump.valve_leak_area), drop)

    def friction(v):
        u = v / (math.sqrt(2) * pump.breakaway_speed)
        peak = math.sqrt(2 * math.e) * (pump.breakaway_friction - pump.coulomb_friction)
        stick = pump.coulomb_friction * np.tanh(v / (pump.breakaway_speed / 10))
        return pump.viscous_friction * v + peak * u * np.exp(-(u**2)) + stick

    def pressures(logarithm):
        return ATMOSPHERE * (np.exp(np.clip(logarithm, -20, 20)) - 1)

    def slope(_, state):
        p = pressures(state[:8])
        angle, speed, torque, measured, integral = state[8:]
        lever = levers(pump, angle)
        into = valve(full, p[6] - p[:3])
        out = valve(pump.valve_area, p[:3] - p[3])
        net = np.empty(8)
        net[:3] = into - out - area * lever * speed
        net[0] -= orifice(pump.leak_area(leak), p[0])
        outlet, inlet = (p[3] - p[4]) / resistance, (p[7] - p[6]) / resistance
        net[3] = out.sum() - outlet
        net[4] = outlet - (p[4] - p[5]) / resistance
        net[5] = (p[4] - p[5]) / resistance - orifice(pump.load_area, p[5] - pump.load_pressure)
        net[6] = inlet - into.sum()
        net[7] = -p[7] / resistance - inlet
        error = pump.reference_speed - measured
        demand = pump.proportional_gain * error + pump.integral_gain * integral
        demand = np.clip(demand, -pump.torque_limit, pump.torque_limit)
        push = ((p[:3] * area - friction(lever * speed)) * lever).sum()
        turn = pump.gear * torque - pump.bearing_damping * speed + push
        filtered = 2 * math.pi * pump.speed_filter * (speed * 30 / math.pi - measured)
        wound = abs(integral) >= pump.integral_limit and integral * error > 0
        shaft = [speed, turn / pump.inertia, (demand - torque) / pump.torque_lag, filtered]
        return np.concatenate(
            [net / (size * stored(pump, p)[1] * (ATMOSPHERE + p)), shaft, [0.0 if wound else error]]
        )

    start = np.zeros(13)
    start[3:6] = np.log1p(pump.load_pressure / ATMOSPHERE)
    scale = np.concatenate([np.full(8, 1e-8), [1e-7, 1e-6, 1e-7, 1e-4, 1e-4]])
    # SciPy widens its difference steps without bound in states that do not matter at the time.
    with np.errstate(over="ignore"):
        found = solve_ivp(
            slope,
            (0, times[-1]),
            start,
            method="Radau",
            t_eval=times,
            rtol=tolerance,
            atol=scale,
            max_step=1e-3,
        )
    return (pressures(found.y[3]) - pressures(found.y[4])) / resistance * 60e3
