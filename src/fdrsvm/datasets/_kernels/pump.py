"""The pump's time loop: angle first, then the pressures, then shaft and motor."""

from __future__ import annotations

import math

import numpy as np

from fdrsvm.datasets._kernels.drive import Mechanics, Motor, Shaft, fill_levers, next_shaft
from fdrsvm.datasets._kernels.hydraulics import stored
from fdrsvm.datasets._kernels.pressures import (
    IN_MANIFOLD,
    IN_PIPE,
    N_CHAMBERS,
    N_PRESSURES,
    OUT_MANIFOLD,
    OUT_PIPE,
    Circuit,
    Scratch,
    leak_flow,
    new_scratch,
    solve_pressures,
)
from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled

# Columns of the record.
FLOW, PRESSURE, INLET_FLOW, INLET_PRESSURE, SPEED, TORQUE, LEAK, ANGLE = range(8)
CHAMBERS = slice(8, 8 + N_CHAMBERS)
N_SIGNALS = 8 + N_CHAMBERS


@compiled
def _write(circuit: Circuit, shaft: Shaft, p: Array, row: Array) -> None:
    row[FLOW] = circuit.pipe * (p[OUT_MANIFOLD] - p[OUT_PIPE])
    row[PRESSURE] = p[OUT_MANIFOLD]
    row[INLET_FLOW] = circuit.pipe * (p[IN_PIPE] - p[IN_MANIFOLD])
    row[INLET_PRESSURE] = p[IN_MANIFOLD]
    row[SPEED] = shaft.speed
    row[TORQUE] = shaft.torque
    row[LEAK] = leak_flow(circuit, p)
    row[ANGLE] = shaft.angle
    for i in range(N_CHAMBERS):
        row[8 + i] = p[i]


@compiled
def _step(
    circuit: Circuit,
    mechanics: Mechanics,
    motor: Motor,
    shaft: Shaft,
    p: Array,
    dt: float,
    work: Array,
    scratch: Scratch,
) -> tuple[Shaft, int]:
    levers, displaced, before = work[0, :N_CHAMBERS], work[1, :N_CHAMBERS], work[2]
    turned = Shaft(
        shaft.angle + dt * shaft.speed, shaft.speed, shaft.torque, shaft.measured, shaft.integral
    )
    fill_levers(mechanics, turned.angle, levers)
    for i in range(N_CHAMBERS):
        displaced[i] = mechanics.plunger_area * levers[i] * shaft.speed
    for k in range(N_PRESSURES):
        before[k] = stored(circuit.fluid, p[k])[0]
    iterations = solve_pressures(circuit, p, before, displaced, dt, scratch)
    return next_shaft(mechanics, motor, turned, levers, p, dt), iterations


@compiled
def run_pump(
    circuit: Circuit,
    mechanics: Mechanics,
    motor: Motor,
    p: Array,
    dt: float,
    every: int,
    record: Array,
) -> int:
    """Fill ``record``, a row each ``every`` steps, from standstill and the initial pressures p.

    Returns the most Newton iterations in a step, or minus the number of the step that failed.
    """
    shaft = Shaft(0.0, 0.0, 0.0, 0.0, 0.0)
    work, scratch = np.zeros((3, N_PRESSURES)), new_scratch()
    most = 0
    _write(circuit, shaft, p, record[0])
    for k in range(1, (record.shape[0] - 1) * every + 1):
        shaft, iterations = _step(circuit, mechanics, motor, shaft, p, dt, work, scratch)
        if iterations < 0 or not math.isfinite(shaft.speed):
            return -k
        most = max(most, iterations)
        if k % every == 0:
            _write(circuit, shaft, p, record[k // every])
    return most
