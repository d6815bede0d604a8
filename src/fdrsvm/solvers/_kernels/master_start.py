"""Where the interior point method on the master problem begins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.maths.norms import dual_norm_of
from fdrsvm.solvers._kernels.master_rows import Master, n_bounds, row_offsets, times_rows

# In the scaled problem, where slopes and values are about 1.
_NORM_ROOM, _LEVELLED_NORM_ROOM = 10.0, 0.1  # of s above ||w||_*: absolute, relative
_THETA_ROOM = 1.0
_LEVEL_ROOM = 0.1
_LEVEL_PRICE = 100.0
_CONE_PRICE = 10.0  # the cone stands for many rows


class Iterate(NamedTuple):
    """Primal and dual point; the arrays are changed in place."""

    v: Array
    slack: Array
    z: Array
    cone_z: Array  # of (s, w), for l2; its slack is (s, w) itself


@compiled_fast
def gather_cone(master: Master, v: Array, out: Array) -> None:
    """Sets out = (s, w)."""
    out[0] = v[master.cuts.shape[1] - 1]
    for p in range(master.n_normed):
        out[p + 1] = v[p]


@compiled_fast
def _first_variables(master: Master, w: Array, offsets: Array) -> Array:
    """At ``w``, with room below s, every a_p and every theta_g."""
    n, P, G = master.cuts.shape[1], master.n_normed, master.alphas.size
    v, rows = np.zeros(n + G + n_bounds(master)), np.empty(offsets.size)
    for j in range(n - 1):
        v[j] = w[j]
    size = dual_norm_of(w[:P], master.norm)
    room = _LEVELLED_NORM_ROOM * (size + _LEVELLED_NORM_ROOM) if master.levelled else _NORM_ROOM
    v[n - 1] = size + min(room, 0.5 * abs(master.reach - size))
    for p in range(n_bounds(master)):
        v[n + G + p] = abs(w[p]) + 0.5 * (v[n - 1] - size) / P
    times_rows(master, v, rows)
    for g in range(G):
        largest = -np.inf
        for k in range(master.starts[g], master.starts[g + 1]):
            largest = max(largest, rows[k] + offsets[k])
        v[n + g] = largest + _THETA_ROOM
    return v


@compiled_fast
def _first_multipliers(master: Master, slack: Array) -> tuple[Array, float]:
    """Multipliers that price theta right, centred client by client; and their mean product."""
    z, K = np.ones(slack.size), master.constants.size
    if master.levelled:
        z[K] = _LEVEL_PRICE
    mean = 0.0
    for g in range(master.alphas.size):
        total = 0.0
        for k in range(master.starts[g], master.starts[g + 1]):
            total += 1.0 / slack[k]
        for k in range(master.starts[g], master.starts[g + 1]):
            z[k] = z[K] * master.alphas[g] / (slack[k] * total)
            mean += slack[k] * z[k] / K
    for i in range(K + 1, z.size):
        z[i] = mean / slack[i]
    return z, mean


@compiled_fast
def first_iterate(master: Master, w: Array) -> Iterate:
    """Strictly inside every row at ``w``, but for the level and the reach if ``w`` exceeds them."""
    K, offsets = master.constants.size, row_offsets(master)
    v, slack = _first_variables(master, w, offsets), np.empty(offsets.size)
    times_rows(master, v, slack)
    for i in range(slack.size):
        slack[i] = max(-(slack[i] + offsets[i]), 1e-8)
    slack[K] = max(slack[K], _LEVEL_ROOM) if master.levelled else 1.0
    z, mean = _first_multipliers(master, slack)
    cone_z = np.zeros(master.n_normed + 1)
    cone_z[0] = _CONE_PRICE * mean / v[master.cuts.shape[1] - 1]
    return Iterate(v, slack, z, cone_z)
