"""How far a block of samples moves inside a box at a given multiplier, [moves].

``room[i, k]`` is how far listed feature i of the block's k-th sample may go; only the first
``width`` places of a block are in use. A move is described by one number a sample, its step: linf
moves every feature by the step, l2 by the step times |w|, each stopped at its room; l1 moves the
features with |w| >= step all the way.

The sample index runs innermost, so that the loops become vector instructions: sorting the rooms
sample by sample was five times slower. Blocks are passed whole, never sliced, because only arrays
known to be contiguous are vectorised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled
from fdrsvm.maths.norms import L1, L2, LINF

IntArray = npt.NDArray[np.int64]
OrderArray = npt.NDArray[np.int32]

KEEP, FLIP = 0, 1
BLOCK = 64
_SORT_ABOVE = 16  # features; up to here comparing all pairs anew at each look beats sorting once


class Samples(NamedTuple):
    """A client's rows, with their margins ``y (w.x + b)`` and probability masses."""

    X: Array
    y: Array
    margins: Array
    mass: Array


class Adversary(NamedTuple):
    """What may be moved, how far, and at what price; only features with ``w != 0`` are listed.

    ``ends[1]`` are the bounds that features run up against when w.x is raised, ``ends[0]`` when it
    is lowered.
    """

    ends: Array
    features: IntArray
    sign: Array
    weight: Array  # |w|
    norm: int
    dual_norm: float
    kappa: float
    floor: float  # 0 for the hinge; -inf for the paper's linear loss


@compiled
def fill_rooms(
    samples: Samples, adversary: Adversary, rows: IntArray, direction: Array, room: Array
) -> None:
    """Room of the rows when w.x is to move in ``direction`` (+1 or -1, one a row)."""
    for k in range(rows.size):
        n, end = rows[k], 1 if direction[k] > 0.0 else 0
        for i in range(adversary.features.size):
            room[i, k] = abs(adversary.ends[end, i] - samples.X[n, adversary.features[i]])


@compiled
def _steps_l1(weight: Array, lam: float, dearest: bool, width: int, step: Array) -> None:
    """A feature pays for its way while |w| > lam, whichever the sample."""
    least = np.inf
    for i in range(weight.size):
        if weight[i] > lam or (dearest and weight[i] == lam):
            least = min(least, weight[i])
    step[:width] = least


@compiled
def _steps_linf(
    weight: Array, room: Array, lam: float, dearest: bool, width: int, free: Array, step: Array
) -> None:
    """Go on while the |w| of the features not yet stopped exceeds lam."""
    step[:width] = 0.0 if dearest else np.inf
    for i in range(weight.size):
        free[:width] = 0.0
        for j in range(weight.size):
            a = weight[j]
            if dearest:
                for k in range(width):
                    free[k] += a if room[j, k] >= room[i, k] else 0.0
            else:
                for k in range(width):
                    free[k] += a if room[j, k] > room[i, k] else 0.0
        if dearest:
            for k in range(width):
                step[k] = max(step[k], room[i, k] if free[k] >= lam else 0.0)
        else:
            for k in range(width):
                step[k] = min(step[k], room[i, k] if free[k] <= lam else np.inf)


@compiled
def _steps_linf_in_order(
    adversary: Adversary,
    room: Array,
    lam: float,
    dearest: bool,
    orders: OrderArray,
    rows: IntArray,
    step: Array,
) -> None:
    """The same for many features, each row's rooms sorted beforehand: stop one after another."""
    last = adversary.weight.size - 1
    for k in range(rows.size):
        n = rows[k]
        free, j = adversary.dual_norm, 0
        while j < last:
            i = orders[n, j]
            free -= adversary.weight[i]
            tied = room[i, k] == room[orders[n, j + 1], k]
            if not tied and (free < lam or (free == lam and not dearest)):
                break
            j += 1
        step[k] = room[orders[n, j], k]


@compiled
def _steps_l2(
    weight: Array, room: Array, lam: float, width: int, square: Array, step: Array
) -> None:
    """Go along |w| until the length gone, over the step, has fallen to lam.

    The ratio falls as the step grows; it is tried at every feature's stop to learn which features
    are stopped, after which the step has a closed form.
    """
    step[:width] = 0.0
    for i in range(weight.size):
        square[:width] = 0.0
        for j in range(weight.size):
            scale = weight[j] / weight[i]
            for k in range(width):
                move = min(room[j, k], scale * room[i, k])
                square[k] += move * move
        bound = lam / weight[i]
        for k in range(width):
            reach = bound * room[i, k]
            stop = room[i, k] / weight[i]
            step[k] = max(step[k], stop if square[k] >= reach * reach else 0.0)
    for k in range(width):
        step[k] = _finish_step_l2(weight, room, k, lam, step[k])


@compiled
def _steps_l2_in_order(
    adversary: Adversary,
    room: Array,
    lam: float,
    orders: OrderArray,
    rows: IntArray,
    step: Array,
) -> None:
    """The same for many features, each row's stops sorted beforehand."""
    weight = adversary.weight
    for k in range(rows.size):
        free, stopped, last = adversary.dual_norm**2, 0.0, 0.0
        for j in range(weight.size):
            i = orders[rows[k], j]
            stop = room[i, k] / weight[i]
            if stopped + free * stop * stop < (lam * stop) ** 2:
                break
            last = stop
            stopped += room[i, k] * room[i, k]
            free = max(free - weight[i] * weight[i], 0.0)
        step[k] = _finish_step_l2(weight, room, k, lam, last)


@compiled
def _finish_step_l2(weight: Array, room: Array, k: int, lam: float, last: float) -> float:
    """The step, given the last stop not beyond it: stopped^2 + step^2 free^2 = lam^2 step^2."""
    stopped, free, following = 0.0, 0.0, np.inf
    for i in range(weight.size):
        stop = room[i, k] / weight[i]
        if stop <= last:
            stopped += room[i, k] * room[i, k]
        else:
            free += weight[i] * weight[i]
            following = min(following, stop)
    if following == np.inf or stopped == 0.0:
        return last
    fall = lam * lam - free
    # Rounding may push the step out of its interval, whose ends are known.
    return max(min(np.sqrt(stopped / fall), following), last) if fall > 0.0 else following


@compiled
def _first_steps(adversary: Adversary, room: Array, width: int, step: Array) -> None:
    """At lam equal to the dual norm (l2, linf) a step up to the first stop is as good as none."""
    step[:width] = np.inf
    for i in range(adversary.features.size):
        unit = 1.0 if adversary.norm == LINF else adversary.weight[i]
        for k in range(width):
            step[k] = min(step[k], room[i, k] / unit)


@compiled
def fill_steps(
    adversary: Adversary,
    room: Array,
    lam: float,
    dearest: bool,
    orders: OrderArray,
    rows: IntArray,
    scratch: Array,
    step: Array,
) -> None:
    """Best step of each sample in the block at multiplier ``lam``."""
    norm, weight, top = adversary.norm, adversary.weight, adversary.dual_norm
    sorted_before, width = orders.size > 0, rows.size
    if norm == L1:
        _steps_l1(weight, lam, dearest, width, step)
    elif lam > top or (lam == top and not dearest):
        step[:width] = 0.0
    elif lam == top:
        _first_steps(adversary, room, width, step)
    elif norm == LINF and sorted_before:
        _steps_linf_in_order(adversary, room, lam, dearest, orders, rows, step)
    elif norm == LINF:
        _steps_linf(weight, room, lam, dearest, width, scratch, step)
    elif sorted_before:
        _steps_l2_in_order(adversary, room, lam, orders, rows, step)
    else:
        _steps_l2(weight, room, lam, width, scratch, step)


@compiled
def fill_moves(
    adversary: Adversary, room: Array, step: Array, width: int, gain: Array, cost: Array
) -> None:
    """Replace rooms by moves; what each sample's move gains, and how long it is."""
    norm, weight = adversary.norm, adversary.weight
    gain[:width] = 0.0
    cost[:width] = 0.0
    for i in range(weight.size):
        a = weight[i]
        if norm == L1:
            for k in range(width):
                room[i, k] = room[i, k] if a >= step[k] else 0.0
                cost[k] += room[i, k]
        elif norm == LINF:
            for k in range(width):
                room[i, k] = min(room[i, k], step[k])
                cost[k] = max(cost[k], room[i, k])
        else:
            for k in range(width):
                room[i, k] = min(room[i, k], a * step[k])
                cost[k] += room[i, k] * room[i, k]
        for k in range(width):
            gain[k] += a * room[i, k]
    if norm == L2:
        for k in range(width):
            cost[k] = np.sqrt(cost[k])


@compiled
def _sort_by(keys: Array, order: OrderArray) -> None:
    """Shell's sort: quick to compile, fast on short rows, fair on long ones."""
    size, gap = keys.size, 1
    for i in range(size):
        order[i] = i
    while 3 * gap + 1 < size:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            item, j = order[i], i
            while j >= gap and keys[order[j - gap]] > keys[item]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = item
        gap //= 3


@compiled
def sort_stops(samples: Samples, adversary: Adversary) -> OrderArray:
    """Order in which each sample's features stop, label kept and flipped; empty if not needed."""
    n_samples, n_listed = samples.y.size, adversary.features.size
    if adversary.norm == L1 or n_listed <= _SORT_ABOVE:
        return np.empty((2, 0, 0), dtype=np.int32)
    orders = np.empty((2, n_samples, n_listed), dtype=np.int32)
    rows, direction = np.empty(1, dtype=np.int64), np.empty(1)
    room, stops = np.empty((n_listed, 1)), np.empty(n_listed)
    for branch in range(2 if adversary.kappa < np.inf else 1):
        for n in range(n_samples):
            rows[0] = n
            direction[0] = samples.y[n] if branch == FLIP else -samples.y[n]
            fill_rooms(samples, adversary, rows, direction, room)
            for i in range(n_listed):
                unit = 1.0 if adversary.norm == LINF else adversary.weight[i]
                stops[i] = room[i, 0] / unit
            _sort_by(stops, orders[branch, n])
    return orders
