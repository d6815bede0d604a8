"""Newton's matrix of the master problem: one Cholesky factor of size width + 1, [master]."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.maths.norms import L1, L2, LINF
from fdrsvm.solvers._kernels.linear_algebra import factorise, solve_factorised
from fdrsvm.solvers._kernels.master_rows import Master, n_bounds


class System(NamedTuple):
    """diag(curvature) + R' diag(weights) R (+ W^-2), with theta and a eliminated."""

    factor: npt.NDArray[np.float64]  # H, then its Cholesky factor
    centred: npt.NDArray[np.float64]  # sqrt(weight) (x_k - xbar_g)
    means: npt.NDArray[np.float64]  # xbar_g: the weighted mean of client g's cuts
    sums: Array  # delta_g: their weights' sum
    pull: Array  # u = sum_g alpha_g xbar_g
    level_room: Array  # taul, one entry
    tilt: Array  # (e, 1)
    bound_sums: Array  # Da
    bound_room: Array  # tau, one entry


@compiled_fast
def new_system(master: Master) -> System:
    """Room for the factor and for what brings theta and a back."""
    n, G = master.cuts.shape[1], master.alphas.size
    return System(
        np.empty((n, n)),
        np.empty((master.constants.size, n)),
        np.empty((G, n)),
        np.empty(G),
        np.empty(n),
        np.empty(1),
        np.empty(n),
        np.empty(n_bounds(master)),
        np.empty(1),
    )


@compiled_fast
def _add_outer(H: npt.NDArray[np.float64], x: Array, scale: float) -> None:
    for i in range(x.size):
        scaled = scale * x[i]
        if scaled != 0.0:
            for j in range(i + 1):
                H[i, j] += scaled * x[j]


@compiled_fast
def _set_cuts(master: Master, weights: Array, system: System) -> None:
    """Sets H to the Gram matrix of the cuts, each less its client's mean: so nothing cancels."""
    n, centred = master.cuts.shape[1], system.centred
    system.pull[:] = 0.0
    for g in range(master.alphas.size):
        start, stop, mean = master.starts[g], master.starts[g + 1], system.means[g]
        total = 0.0
        mean[:] = 0.0
        for k in range(start, stop):
            total += weights[k]
            for j in range(n):
                mean[j] += weights[k] * master.cuts[k, j]
        for j in range(n):
            mean[j] /= total
            system.pull[j] += master.alphas[g] * mean[j]
        system.sums[g] = total
        for k in range(start, stop):
            root = np.sqrt(weights[k])
            for j in range(n):
                centred[k, j] = root * (master.cuts[k, j] - mean[j])
    np.dot(centred.T, centred, system.factor)


@compiled_fast
def _add_norm(master: Master, weights: Array, first: int, system: System) -> int:
    """Adds the rows of the norm, from row ``first`` on; returns the row after them."""
    H, P, last = system.factor, master.n_normed, system.factor.shape[0] - 1
    if master.norm == L1:
        for p in range(P):
            up, down = weights[first + p], weights[first + P + p]
            H[p, p] += up + down
            H[last, p] += down - up
            H[last, last] += up + down
        return first + 2 * P
    if master.norm == L2:
        return first
    room = 1.0 / weights[first + 2 * P]
    system.tilt[:] = 0.0
    system.tilt[last] = 1.0
    for p in range(P):
        up, down = weights[first + p], weights[first + P + p]
        total = up + down
        system.bound_sums[p] = total
        system.tilt[p] = (down - up) / total
        room += 1.0 / total
        H[p, p] += 4.0 * (up / total) * down
    system.bound_room[0] = room
    _add_outer(H, system.tilt, 1.0 / room)
    return first + 2 * P + 1


@compiled_fast
def build_system(master: Master, weights: Array, axis: Array, eta: float, system: System) -> None:
    """Fills ``system`` at row ``weights`` (and the cone's scaling, for l2), and factorises it."""
    H, P, K = system.factor, master.n_normed, master.constants.size
    last = H.shape[0] - 1
    _set_cuts(master, weights, system)
    if master.levelled:
        room = 1.0 / weights[K]
        for g in range(master.alphas.size):
            room += master.alphas[g] * (master.alphas[g] / system.sums[g])
        system.level_room[0] = room
        _add_outer(H, system.pull, 1.0 / room)
    row = _add_norm(master, weights, K + 1, system)
    for j in range(last):
        H[j, j] += master.curvature[j]
    H[last, last] += weights[row]
    if last > P:
        H[P, P] += weights[row + 1] + weights[row + 2]
    if master.norm == L2:
        factor = 1.0 / (eta * eta)
        H[last, last] += factor * (2.0 * axis[0] * axis[0] - 1.0)
        for p in range(P):
            H[last, p] -= 2.0 * factor * axis[0] * axis[p + 1]
            scaled = 2.0 * factor * axis[p + 1]
            for q in range(p + 1):
                H[p, q] += scaled * axis[q + 1]
            H[p, p] += factor
    factorise(H)


@compiled_fast
def solve_system(master: Master, system: System, f: Array) -> None:
    """Sets f = (Newton's matrix)^-1 f over all variables."""
    n, P, G = master.cuts.shape[1], master.n_normed, master.alphas.size
    x, theta, a = f[:n], f[n : n + G], f[n + G :]
    level_part, bound_part = 0.0, 0.0
    for g in range(G):
        level_part += master.alphas[g] * (theta[g] / system.sums[g])
        for j in range(n):
            x[j] += theta[g] * system.means[g, j]
    if master.levelled:
        level_part /= system.level_room[0]
        for j in range(n):
            x[j] -= level_part * system.pull[j]
    if master.norm == LINF:
        for p in range(P):
            bound_part += a[p] / system.bound_sums[p]
            x[p] -= system.tilt[p] * a[p]
        bound_part /= system.bound_room[0]
        for j in range(n):
            x[j] += bound_part * system.tilt[j]
    solve_factorised(system.factor, x)
    if master.levelled:
        for j in range(n):
            level_part += system.pull[j] * (x[j] / system.level_room[0])
    else:
        level_part = 0.0
    for g in range(G):
        theta[g] = (theta[g] - master.alphas[g] * level_part) / system.sums[g]
        for j in range(n):
            theta[g] += system.means[g, j] * x[j]
    if master.norm == LINF:
        for j in range(n):
            bound_part -= system.tilt[j] * (x[j] / system.bound_room[0])
        for p in range(P):
            a[p] = (a[p] - bound_part) / system.bound_sums[p] - system.tilt[p] * x[p]
