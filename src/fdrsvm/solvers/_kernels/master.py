"""Mehrotra's predictor-corrector interior point method on the master problem, [master]."""

from __future__ import annotations

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.maths.norms import L2
from fdrsvm.solvers._kernels.master_cone import cone_step, scaling
from fdrsvm.solvers._kernels.master_rows import Master, add_transposed, times_rows
from fdrsvm.solvers._kernels.master_start import Iterate, first_iterate, gather_cone
from fdrsvm.solvers._kernels.master_step import Work, add_cone, aim, new_work, solve_step
from fdrsvm.solvers._kernels.master_system import build_system, new_system

_TO_BOUNDARY = 0.99  # of the longest step
# Steps without a better point before giving up; fewer where rounding is the likely cause.
_PATIENCE, _LATE_PATIENCE, _LATE = 20, 4, 1e-5
# Values below these are rounding: of the objective, and of the level (per unit of its multiplier).
_SMALL_VALUE, _LEVEL_ROUNDING = 1e-3, 1e-13
_LARGEST = 1e100


@compiled_fast
def _copy(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = x[i]


@compiled_fast
def _residuals(master: Master, iterate: Iterate, work: Work) -> tuple[float, float]:
    """Fills both residuals; returns the complementarity gap, and all that may part w from optimal.

    The second is relative to the objective, less what rounding the level explains.
    """
    v, slack, z, cone_z = iterate
    n, K = master.cuts.shape[1], master.constants.size
    times_rows(master, v, work.primal)
    gap, price, value = 0.0, 0.0, 0.0
    for i in range(z.size):
        work.primal[i] += work.offsets[i] + slack[i]
        if i == K and not master.levelled:
            work.primal[i] = 0.0
            continue
        gap += slack[i] * z[i]
        price += z[i] * abs(work.primal[i])
    work.dual[:] = 0.0
    for j in range(n - 1):
        apart = v[j] - master.centre[j]
        work.dual[j] = master.curvature[j] * apart
        value += 0.5 * master.curvature[j] * apart * apart
    add_transposed(master, z, 1.0, work.dual)
    if master.norm == L2:
        gather_cone(master, v, work.cone_u)
        add_cone(master, cone_z, -1.0, work.dual)
        for p in range(cone_z.size):
            gap += cone_z[p] * work.cone_u[p]
    for j in range(v.size):
        price += abs(work.dual[j]) * (1.0 + max(abs(v[j]), master.price))
    if master.levelled:
        return gap, (gap + price - _LEVEL_ROUNDING * z[K]) / value
    for g in range(master.alphas.size):
        value += master.alphas[g] * v[n + g]
    return gap, (gap + price) / max(value, _SMALL_VALUE)


@compiled_fast
def _longest(x: Array, step: Array) -> float:
    """The largest t with x + t step >= 0."""
    longest = np.inf
    for i in range(x.size):
        if step[i] < 0.0:
            longest = min(longest, -x[i] / step[i])
    return longest


@compiled_fast
def _step_lengths(
    master: Master, iterate: Iterate, work: Work, share: float
) -> tuple[float, float]:
    """Primal and dual; only a linear program without a cone may take two different ones."""
    primal, dual = _longest(iterate.slack, work.slack_step), _longest(iterate.z, work.z_step)
    if master.norm == L2:
        primal = min(primal, cone_step(work.cone_u, work.cone_u_step))
        dual = min(dual, cone_step(iterate.cone_z, work.cone_z_step))
    primal, dual = min(1.0, share * primal), min(1.0, share * dual)
    if master.levelled or master.norm == L2:
        primal = dual = min(primal, dual)
    return primal, dual


@compiled_fast
def _gap_after(master: Master, iterate: Iterate, work: Work, primal: float, dual: float) -> float:
    gap, K = 0.0, master.constants.size
    for i in range(iterate.z.size):
        if i != K or master.levelled:
            slack = iterate.slack[i] + primal * work.slack_step[i]
            gap += slack * (iterate.z[i] + dual * work.z_step[i])
    if master.norm == L2:
        for p in range(work.cone_u.size):
            u = work.cone_u[p] + primal * work.cone_u_step[p]
            gap += u * (iterate.cone_z[p] + dual * work.cone_z_step[p])
    return gap


@compiled_fast
def _move(master: Master, iterate: Iterate, work: Work, primal: float, dual: float) -> None:
    for j in range(iterate.v.size):
        iterate.v[j] += primal * work.v_step[j]
    for i in range(iterate.z.size):
        iterate.slack[i] += primal * work.slack_step[i]
        iterate.z[i] += dual * work.z_step[i]
    if master.norm == L2:
        for p in range(iterate.cone_z.size):
            iterate.cone_z[p] += dual * work.cone_z_step[p]


@compiled_fast
def interior_point(
    master: Master, w: Array, tol: float, max_iter: int
) -> tuple[Array, Array, float, int]:
    """From ``w``: the best (v, z) found, how far it may be from optimal, and Newton steps.

    That distance is relative to the objective and the method's own estimate; stops at ``tol``.
    """
    iterate = first_iterate(master, w)
    work, system = new_work(master, iterate), new_system(master)
    degree = iterate.z.size - int(not master.levelled) + int(master.norm == L2)
    best_v, best_z, best, best_at = iterate.v.copy(), iterate.z.copy(), np.inf, 0
    eta, n_iter = 1.0, 0
    while True:
        gap, apart = _residuals(master, iterate, work)
        if apart < best:
            best, best_at = apart, n_iter
            _copy(iterate.v, best_v)
            _copy(iterate.z, best_z)
        lost = not 0.0 < gap < _LARGEST or apart != apart
        patience = _LATE_PATIENCE if best <= _LATE else _PATIENCE
        if best <= tol or lost or n_iter >= min(max_iter, best_at + patience):
            return best_v, best_z, best, n_iter
        n_iter += 1
        for i in range(work.weights.size):
            work.weights[i] = iterate.z[i] / iterate.slack[i]
        if master.norm == L2:
            eta = scaling(work.cone_u, iterate.cone_z, work.cone_axis)
        build_system(master, work.weights, work.cone_axis, eta, system)
        target, primal, dual = -1.0, 0.0, 0.0
        for phase in range(2):  # predict, then correct
            aim(master, iterate, work, eta, target)
            solve_step(master, system, work, eta, 1 + phase)
            share = 1.0 if phase == 0 else _TO_BOUNDARY
            primal, dual = _step_lengths(master, iterate, work, share)
            if phase == 0:
                left = _gap_after(master, iterate, work, primal, dual) / gap
                target = left * left * left * gap / degree
        _move(master, iterate, work, primal, dual)
