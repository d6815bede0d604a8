"""The second-order cone s >= ||w||_2 of the master problem: its scaling and its steps.

Vectors are (s, w). With u in the cone and its multiplier z there, Nesterov and Todd's scaling W has
W z = W^-1 u; it is eta times a reflection-like matrix built from one vector of hyperbolic norm 1.
"""

from __future__ import annotations

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast


@compiled_fast
def cone_size(u: Array) -> float:
    """sqrt(s^2 - ||w||^2), by the product that does not cancel; 0 outside."""
    squares = 0.0
    for j in range(1, u.size):
        squares += u[j] * u[j]
    length = np.sqrt(squares)
    return float(np.sqrt(max(u[0] - length, 0.0) * (u[0] + length)))


@compiled_fast
def scaling(u: Array, z: Array, axis: Array) -> float:
    """Fills ``axis`` and returns eta."""
    size_u, size_z = cone_size(u), cone_size(z)
    inner = 0.0
    for j in range(u.size):
        inner += u[j] * z[j]
    gamma = np.sqrt(0.5 * (1.0 + inner / (size_u * size_z)))
    axis[0] = 0.5 * (u[0] / size_u + z[0] / size_z) / gamma
    for j in range(1, u.size):
        axis[j] = 0.5 * (u[j] / size_u - z[j] / size_z) / gamma
    return float(np.sqrt(size_u / size_z))


@compiled_fast
def apply_scaling(axis: Array, eta: float, sign: float, x: Array, out: Array) -> None:
    """Sets out = W x (``sign`` 1) or W^-1 x (``sign`` -1)."""
    along = 0.0
    for j in range(1, x.size):
        along += axis[j] * x[j]
    factor = eta if sign > 0.0 else 1.0 / eta
    first = x[0]
    out[0] = factor * (axis[0] * first + sign * along)
    shift = sign * first + along / (1.0 + axis[0])
    for j in range(1, x.size):
        out[j] = factor * (x[j] + shift * axis[j])


@compiled_fast
def add_inverse_square(axis: Array, eta: float, x: Array, out: Array) -> None:
    """Sets out += W^-2 x = (2 q q' - J) x / eta^2 with q = J axis."""
    along = axis[0] * x[0]
    for j in range(1, x.size):
        along -= axis[j] * x[j]
    factor = 1.0 / (eta * eta)
    out[0] += factor * (2.0 * along * axis[0] - x[0])
    for j in range(1, x.size):
        out[j] += factor * (x[j] - 2.0 * along * axis[j])


@compiled_fast
def correction(
    axis: Array, eta: float, z: Array, u_step: Array, z_step: Array, target: float, out: Array
) -> None:
    """Sets out = W^-1 (target e - (W^-1 u_step) o (W z_step)) / lam, lam = W z.

    Product o and quotient are the cone's own: x o y = (x.y, x_0 y_1 + y_0 x_1), e its unit.
    """
    lam, left, right = np.empty(z.size), np.empty(z.size), np.empty(z.size)
    apply_scaling(axis, eta, 1.0, z, lam)
    apply_scaling(axis, eta, -1.0, u_step, left)
    apply_scaling(axis, eta, 1.0, z_step, right)
    inner = 0.0
    for j in range(z.size):
        inner += left[j] * right[j]
    right_0, left_0 = right[0], left[0]
    left[0] = target - inner
    along = 0.0
    for j in range(1, z.size):
        left[j] = -(left_0 * right[j] + right_0 * left[j])
        along += lam[j] * left[j]
    size = cone_size(lam)
    right[0] = (lam[0] * left[0] - along) / (size * size)
    for j in range(1, z.size):
        right[j] = (left[j] - right[0] * lam[j]) / lam[0]
    apply_scaling(axis, eta, -1.0, right, out)


@compiled_fast
def cone_step(u: Array, step: Array) -> float:
    """The largest t with u + t step in the cone."""
    size = cone_size(u)
    a, b, c = step[0] * step[0], u[0] * step[0], size * size
    for j in range(1, u.size):
        a -= step[j] * step[j]
        b -= u[j] * step[j]
    # c + 2 b t + a t^2 falls to 0 first at c / (-b + sqrt(b^2 - a c)), if it does at all.
    discriminant = b * b - a * c
    if discriminant < 0.0 or (a >= 0.0 and b >= 0.0):
        return np.inf
    fall = -b + np.sqrt(discriminant)
    return c / fall if fall > 0.0 else np.inf
