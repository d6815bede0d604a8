"""The eight pressures at the end of a step: backward Euler in conservative form, by Newton.

Unknowns  three chambers; outlet manifold, outlet pipe, load chamber; inlet manifold, inlet pipe
Equation  volume * (stored(p) - stored(p_before)) / dt + outflow - inflow = 0, for each
Jacobian  an arrow: the chambers touch only the two manifolds, each pipe its neighbours. Load, pipes
          and chambers are eliminated, and two equations in the manifold pressures are left.
Stop      no pressure moves by more than 0.01 Pa: what Newton leaves over is lost mass
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.datasets._kernels.hydraulics import Fluid, Valve, check_valve, orifice, stored
from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled

N_CHAMBERS = 3
OUT_MANIFOLD, OUT_PIPE, LOAD, IN_MANIFOLD, IN_PIPE = 3, 4, 5, 6, 7
N_PRESSURES = 8

_TOLERANCE = 0.01  # Pa
_MAX_ITERATIONS = 50  # 8 is the most seen
_LEAST_SHARE = 0.1  # of its absolute pressure that a node keeps in one iteration


class Circuit(NamedTuple):
    """What the fluid flows through: conductances in flow per root of pressure, or per pressure."""

    fluid: Fluid
    inlet_1: Valve  # of plunger 1, which may be blocked
    inlet: Valve  # of the others
    outlet: Valve
    leak: float  # conductance from chamber 1 to the tank
    load: float  # conductance to the back pressure
    back_pressure: float
    pipe: float  # conductance of half a pipe
    smoothing: float
    volumes: Array


class Scratch(NamedTuple):
    """Room for one Newton iteration: residuals, diagonal, valve slopes, the step."""

    residual: Array
    diagonal: Array
    into: Array
    out: Array
    step: Array


@compiled
def new_scratch() -> Scratch:
    return Scratch(
        np.empty(N_PRESSURES),
        np.empty(N_PRESSURES),
        np.empty(N_CHAMBERS),
        np.empty(N_CHAMBERS),
        np.empty(N_PRESSURES),
    )


@compiled
def leak_flow(circuit: Circuit, p: Array) -> float:
    """From chamber 1 to the tank."""
    return orifice(circuit.leak, circuit.smoothing, p[0])[0]


@compiled
def _store_terms(circuit: Circuit, p: Array, before: Array, dt: float, scratch: Scratch) -> None:
    for k in range(N_PRESSURES):
        value, slope = stored(circuit.fluid, p[k])
        scratch.residual[k] = circuit.volumes[k] * (value - before[k]) / dt
        scratch.diagonal[k] = circuit.volumes[k] * slope / dt


@compiled
def _add_flow(scratch: Scratch, source: int, sink: int, flow: float, slope: float) -> None:
    scratch.residual[source] += flow
    scratch.residual[sink] -= flow
    scratch.diagonal[source] += slope
    scratch.diagonal[sink] += slope


@compiled
def _chamber_terms(circuit: Circuit, p: Array, displaced: Array, scratch: Scratch) -> None:
    """Valves, displacement by the plungers, and the leak of the first."""
    for i in range(N_CHAMBERS):
        valve = circuit.inlet_1 if i == 0 else circuit.inlet
        flow, slope = check_valve(valve, circuit.smoothing, p[IN_MANIFOLD] - p[i])
        _add_flow(scratch, IN_MANIFOLD, i, flow, slope)
        scratch.into[i] = slope
        flow, slope = check_valve(circuit.outlet, circuit.smoothing, p[i] - p[OUT_MANIFOLD])
        _add_flow(scratch, i, OUT_MANIFOLD, flow, slope)
        scratch.out[i] = slope
        scratch.residual[i] += displaced[i]
    flow, slope = orifice(circuit.leak, circuit.smoothing, p[0])
    scratch.residual[0] += flow
    scratch.diagonal[0] += slope


@compiled
def _pipe_terms(circuit: Circuit, p: Array, scratch: Scratch) -> None:
    """Laminar pipes, the load, and the tank at pressure 0."""
    pipe = circuit.pipe
    _add_flow(scratch, OUT_MANIFOLD, OUT_PIPE, pipe * (p[OUT_MANIFOLD] - p[OUT_PIPE]), pipe)
    _add_flow(scratch, OUT_PIPE, LOAD, pipe * (p[OUT_PIPE] - p[LOAD]), pipe)
    _add_flow(scratch, IN_PIPE, IN_MANIFOLD, pipe * (p[IN_PIPE] - p[IN_MANIFOLD]), pipe)
    scratch.residual[IN_PIPE] += pipe * p[IN_PIPE]
    scratch.diagonal[IN_PIPE] += pipe
    flow, slope = orifice(circuit.load, circuit.smoothing, p[LOAD] - circuit.back_pressure)
    scratch.residual[LOAD] += flow
    scratch.diagonal[LOAD] += slope


@compiled
def _solve_arrow(pipe: float, scratch: Scratch) -> None:
    """Newton's step, by elimination towards the two manifolds."""
    r, d, step = scratch.residual, scratch.diagonal, scratch.step
    share_load = pipe / d[LOAD]
    pipe_diagonal = d[OUT_PIPE] - pipe * share_load
    pipe_residual = r[OUT_PIPE] + share_load * r[LOAD]
    share_out, share_in = pipe / pipe_diagonal, pipe / d[IN_PIPE]
    a, b = d[OUT_MANIFOLD] - pipe * share_out, d[IN_MANIFOLD] - pipe * share_in
    cross = 0.0
    f = r[OUT_MANIFOLD] + share_out * pipe_residual
    g = r[IN_MANIFOLD] + share_in * r[IN_PIPE]
    for i in range(N_CHAMBERS):
        to_out, to_in = scratch.out[i] / d[i], scratch.into[i] / d[i]
        a -= scratch.out[i] * to_out
        b -= scratch.into[i] * to_in
        cross -= scratch.out[i] * to_in
        f += to_out * r[i]
        g += to_in * r[i]
    determinant = a * b - cross * cross
    step[OUT_MANIFOLD] = (cross * g - b * f) / determinant
    step[IN_MANIFOLD] = (cross * f - a * g) / determinant
    for i in range(N_CHAMBERS):
        pulled = scratch.out[i] * step[OUT_MANIFOLD] + scratch.into[i] * step[IN_MANIFOLD]
        step[i] = (pulled - r[i]) / d[i]
    step[OUT_PIPE] = (pipe * step[OUT_MANIFOLD] - pipe_residual) / pipe_diagonal
    step[LOAD] = share_load * step[OUT_PIPE] - r[LOAD] / d[LOAD]
    step[IN_PIPE] = share_in * step[IN_MANIFOLD] - r[IN_PIPE] / d[IN_PIPE]


@compiled
def _guarded_move(circuit: Circuit, p: Array, step: Array) -> float:
    """Take the step, held back where Newton would cycle; the largest move that was made.

    No node loses more than 90 % of its absolute pressure, and no chamber jumps past the middle of
    a valve's opening range, as diodes are limited in circuit simulators.
    """
    half = 0.5 * (circuit.outlet.crack + circuit.outlet.full)
    high, low = p[OUT_MANIFOLD] + half, p[IN_MANIFOLD] - half
    largest = 0.0
    for k in range(N_PRESSURES):
        atmosphere = circuit.fluid.atmosphere
        moved = max(p[k] + step[k], _LEAST_SHARE * (p[k] + atmosphere) - atmosphere)
        if k < N_CHAMBERS:
            if p[k] < high:
                moved = min(moved, high)
            if p[k] > low:
                moved = max(moved, low)
        largest = max(largest, abs(moved - p[k]))
        p[k] = moved
    return largest


@compiled
def solve_pressures(
    circuit: Circuit, p: Array, before: Array, displaced: Array, dt: float, scratch: Scratch
) -> int:
    """Move p to the end of the step; the number of iterations, or -1 if they do not settle.

    ``before`` is what was stored at the step's start, ``displaced`` the plungers' volume flow out
    of the chambers' fluid.
    """
    for iteration in range(1, _MAX_ITERATIONS + 1):
        _store_terms(circuit, p, before, dt, scratch)
        _chamber_terms(circuit, p, displaced, scratch)
        _pipe_terms(circuit, p, scratch)
        _solve_arrow(circuit.pipe, scratch)
        if _guarded_move(circuit, p, scratch.step) <= _TOLERANCE:
            return iteration
    return -1
