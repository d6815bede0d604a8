"""The master problem as rows: products with the matrix of all its constraints.

Variables v = (w, s, theta_g, and for the transport norm linf a_p); n = width + 1 counts (w, s).
Rows R v + offset + slack = 0, in this order:

    v_k.w + sigma_k s - theta_g <= -A_k                 cuts and floors, sorted by client
    sum_g alpha_g theta_g       <= level                one row; idle where theta is the objective
    w_p - a_p, -w_p - a_p, sum_p a_p - s <= 0           linf: sum |w| <= s
    w_p - s, -w_p - s <= 0                              l1: max |w| <= s
    s <= reach;  b, -b <= intercept_reach               keep an unbounded optimal set bounded

For l2 the pair (s, w) lies in a second-order cone: ``master_cone``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.maths.norms import L1, L2, LINF


class Master(NamedTuple):
    """A scaled master problem; nothing here changes during a solve."""

    cuts: npt.NDArray[np.float64]  # (v_k, sigma_k), floors among them
    constants: Array
    starts: npt.NDArray[np.int64]  # of each client's cuts, and their number at the end
    alphas: Array
    n_normed: int
    norm: int
    curvature: Array  # of the distance to the centre; 0 where theta is the objective
    centre: Array
    level: float
    levelled: bool
    price: float  # what a unit of slope left over may cost: about ||w||_*
    reach: float
    intercept_reach: float


@compiled_fast
def n_bounds(master: Master) -> int:
    """How many a_p there are."""
    return master.n_normed if master.norm == LINF else 0


@compiled_fast
def n_rows(master: Master) -> int:
    """Rows, the idle one included."""
    count = master.constants.size + 2
    if master.cuts.shape[1] - 1 > master.n_normed:
        count += 2
    if master.norm == L2:
        return count
    return count + 2 * master.n_normed + (1 if master.norm == LINF else 0)


@compiled_fast
def times_rows(master: Master, v: Array, out: Array) -> None:
    """Sets out = R v."""
    n, P, K, G = master.cuts.shape[1], master.n_normed, master.constants.size, master.alphas.size
    x, theta, a, s = v[:n], v[n : n + G], v[n + G :], v[n - 1]
    total = 0.0
    for g in range(G):
        total += master.alphas[g] * theta[g]
        for k in range(master.starts[g], master.starts[g + 1]):
            product = 0.0
            for j in range(n):
                product += master.cuts[k, j] * x[j]
            out[k] = product - theta[g]
    out[K] = total if master.levelled else 0.0
    last = K + 1
    if master.norm != L2:
        size = 0.0
        for p in range(P):
            bound = s
            if master.norm == LINF:
                bound = a[p]
                size += bound
            out[last + p], out[last + P + p] = x[p] - bound, -x[p] - bound
        last += 2 * P
        if master.norm == LINF:
            out[last] = size - s
            last += 1
    out[last] = s
    if n - 1 > P:
        out[last + 1], out[last + 2] = x[P], -x[P]


@compiled_fast
def add_transposed(master: Master, z: Array, sign: float, out: Array) -> None:
    """Sets out += sign * R' z; the level's entry always counts, since it prices theta."""
    n, P, K, G = master.cuts.shape[1], master.n_normed, master.constants.size, master.alphas.size
    x, theta, a = out[:n], out[n : n + G], out[n + G :]
    for g in range(G):
        total = 0.0
        for k in range(master.starts[g], master.starts[g + 1]):
            total += z[k]
            scaled = sign * z[k]
            for j in range(n):
                x[j] += scaled * master.cuts[k, j]
        theta[g] += sign * (master.alphas[g] * z[K] - total)
    last = K + 1
    if master.norm == L1:
        for p in range(P):
            x[p] += sign * (z[last + p] - z[last + P + p])
            x[n - 1] -= sign * (z[last + p] + z[last + P + p])
        last += 2 * P
    elif master.norm == LINF:
        price = z[last + 2 * P]
        for p in range(P):
            x[p] += sign * (z[last + p] - z[last + P + p])
            a[p] += sign * (price - z[last + p] - z[last + P + p])
        x[n - 1] -= sign * price
        last += 2 * P + 1
    x[n - 1] += sign * z[last]
    if n - 1 > P:
        x[P] += sign * (z[last + 1] - z[last + 2])


@compiled_fast
def row_offsets(master: Master) -> Array:
    """What is added to R v."""
    offsets = np.zeros(n_rows(master))
    K = master.constants.size
    for k in range(K):
        offsets[k] = master.constants[k]
    if master.levelled:
        offsets[K] = -master.level
    if master.cuts.shape[1] - 1 > master.n_normed:
        offsets[-3] = -master.reach
        offsets[-2] = offsets[-1] = -master.intercept_reach
    else:
        offsets[-1] = -master.reach
    return offsets
