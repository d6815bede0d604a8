"""One Newton step of the interior point method on the master problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.maths.norms import L2
from fdrsvm.solvers._kernels.master_cone import add_inverse_square, correction
from fdrsvm.solvers._kernels.master_rows import Master, add_transposed, row_offsets, times_rows
from fdrsvm.solvers._kernels.master_start import Iterate, gather_cone
from fdrsvm.solvers._kernels.master_system import System, solve_system


class Work(NamedTuple):
    """Room for one Newton step; ``cone_*`` are over (s, w), for l2."""

    offsets: Array
    primal: Array  # residual of the rows
    dual: Array  # residual of stationarity
    weights: Array  # z / slack
    t: Array  # what z would move by, were v to stay
    rhs: Array
    part: Array  # of v_step, one solve's
    v_step: Array
    slack_step: Array
    z_step: Array
    moved: Array  # R v_step
    more: Array
    cone_u: Array  # the cone's slack: (s, w) itself
    cone_u_step: Array
    cone_t: Array
    cone_z_step: Array
    cone_axis: Array


@compiled_fast
def new_work(master: Master, iterate: Iterate) -> Work:
    """Room for the steps of one solve."""
    m, n_v, n_cone = iterate.z.size, iterate.v.size, master.n_normed + 1
    return Work(
        row_offsets(master),
        np.empty(m),
        np.empty(n_v),
        np.empty(m),
        np.empty(m),
        np.empty(n_v),
        np.empty(n_v),
        np.empty(n_v),
        np.empty(m),
        np.empty(m),
        np.empty(m),
        np.empty(m),
        np.empty(n_cone),
        np.empty(n_cone),
        np.empty(n_cone),
        np.empty(n_cone),
        np.empty(n_cone),
    )


@compiled_fast
def add_cone(master: Master, cone: Array, sign: float, out: Array) -> None:
    """Sets out += sign * cone over the variables (s, w)."""
    out[master.cuts.shape[1] - 1] += sign * cone[0]
    for p in range(master.n_normed):
        out[p] += sign * cone[p + 1]


@compiled_fast
def aim(master: Master, iterate: Iterate, work: Work, eta: float, target: float) -> None:
    """Fills t and the right-hand side; ``target`` < 0 predicts, else corrects by the last step."""
    _, slack, z, cone_z = iterate
    K = master.constants.size
    for i in range(z.size):
        work.t[i] = work.weights[i] * work.primal[i] - z[i]
        if target >= 0.0:
            work.t[i] += (target - work.slack_step[i] * work.z_step[i]) / slack[i]
    if not master.levelled:
        work.t[K] = 0.0
    for j in range(work.rhs.size):
        work.rhs[j] = -work.dual[j]
    add_transposed(master, work.t, -1.0, work.rhs)
    if master.norm == L2:
        cone_t = work.cone_t
        cone_t[:] = 0.0
        if target >= 0.0:
            correction(
                work.cone_axis, eta, cone_z, work.cone_u_step, work.cone_z_step, target, cone_t
            )
        for p in range(cone_t.size):
            cone_t[p] -= cone_z[p]
        add_cone(master, cone_t, 1.0, work.rhs)


@compiled_fast
def _subtract_product(master: Master, work: Work) -> None:
    """Sets rhs -= (Newton's matrix) v_step, from its parts."""
    for i in range(work.moved.size):
        work.more[i] = work.weights[i] * work.moved[i]
    if not master.levelled:
        work.more[master.constants.size] = 0.0
    add_transposed(master, work.more, -1.0, work.rhs)
    for j in range(master.centre.size):
        work.rhs[j] -= master.curvature[j] * work.v_step[j]
    if master.norm == L2:
        add_cone(master, work.cone_z_step, -1.0, work.rhs)


@compiled_fast
def solve_step(master: Master, system: System, work: Work, eta: float, n_solves: int) -> None:
    """Fills all steps from t and rhs, which is spent; each solve after the first refines.

    R v_step is summed up on its own: were a refinement added to v_step first, it would be lost in
    rounding, which the weights then multiply.
    """
    K = master.constants.size
    work.v_step[:] = 0.0
    work.moved[:] = 0.0
    work.cone_z_step[:] = 0.0
    for solve in range(n_solves):
        if solve > 0:
            _subtract_product(master, work)
        for j in range(work.rhs.size):
            work.part[j] = work.rhs[j]
        solve_system(master, system, work.part)
        times_rows(master, work.part, work.more)
        for j in range(work.part.size):
            work.v_step[j] += work.part[j]
        for i in range(work.moved.size):
            work.moved[i] += work.more[i]
        if master.norm == L2:
            gather_cone(master, work.part, work.cone_u_step)
            add_inverse_square(work.cone_axis, eta, work.cone_u_step, work.cone_z_step)
    for i in range(work.moved.size):
        work.slack_step[i] = -(work.primal[i] + work.moved[i])
        work.z_step[i] = work.weights[i] * work.moved[i] + work.t[i]
    if not master.levelled:
        work.slack_step[K] = work.z_step[K] = 0.0
    if master.norm == L2:
        gather_cone(master, work.v_step, work.cone_u_step)
        for p in range(work.cone_t.size):
            work.cone_z_step[p] = work.cone_t[p] - work.cone_z_step[p]
