"""How far a block of samples moves inside a box at a given multiplier, [moves].

``room[i, k]`` is how far listed feature i of the block's k-th sample may go; only the first
``width`` places of a block are in use. A move is described by one number a sample, its step: linf
moves every feature by the step, l2 by the step times |w|, each stopped at its room; l1 moves the
features with |w| >= step all the way.

The sample index runs innermost, so that the loops become vector instructions: at 14 features
comparing all pairs of rooms is five times faster than sorting them sample by sample. Blocks are
passed whole, never sliced, because only arrays known to be contiguous are vectorised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled
from fdrsvm.maths.norms import L1, L2, LINF

IntArray = npt.NDArray[np.int64]

KEEP, FLIP = 0, 1
BLOCK = 64
_SORT_ABOVE = 128  # features; up to here comparing all pairs in blocks beats sorting


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
def first_outside(X: Array, low: Array, high: Array) -> int:
    """First row with a value outside [low, high], or -1; no branches inside a row."""
    for n in range(X.shape[0]):
        outside = False
        for p in range(X.shape[1]):
            outside |= (X[n, p] < low[p]) | (X[n, p] > high[p])
        if outside:
            return n
    return -1


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
def _sort_stops(room: Array, k: int, unit: Array, stops: Array, order: IntArray) -> None:
    """Sample k's features in the order in which they stop. Shell's sort: quick to compile."""
    size, gap = stops.size, 1
    for i in range(size):
        order[i] = i
        stops[i] = room[i, k] / unit[i]
    while 3 * gap + 1 < size:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            item, j = order[i], i
            while j >= gap and stops[order[j - gap]] > stops[item]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = item
        gap //= 3


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
    weight: Array, room: Array, lam: float, width: int, free: Array, step: Array
) -> None:
    """Go on while the |w| of the features not yet stopped exceeds lam."""
    n_listed = weight.size
    step[:width] = np.inf
    for i in range(n_listed):
        free[:width] = 0.0
        # Four features at a time: the sum stays in registers, which halves the time.
        for j in range(0, n_listed - 3, 4):
            a, b, c, d = weight[j], weight[j + 1], weight[j + 2], weight[j + 3]
            for k in range(width):
                r = room[i, k]
                first = (a if room[j, k] > r else 0.0) + (b if room[j + 1, k] > r else 0.0)
                second = (c if room[j + 2, k] > r else 0.0) + (d if room[j + 3, k] > r else 0.0)
                free[k] += first + second
        for j in range(n_listed - n_listed % 4, n_listed):
            a = weight[j]
            for k in range(width):
                free[k] += a if room[j, k] > room[i, k] else 0.0
        for k in range(width):
            step[k] = min(step[k], room[i, k] if free[k] <= lam else np.inf)


@compiled
def _steps_linf_by_sorting(weight: Array, room: Array, lam: float, width: int, step: Array) -> None:
    """The same for many features: add up |w| from the largest room down until it exceeds lam."""
    order, stops = np.empty(weight.size, dtype=np.int64), np.empty(weight.size)
    for k in range(width):
        _sort_stops(room, k, np.ones(weight.size), stops, order)
        free, j = weight[order[-1]], weight.size - 1
        while j > 0 and free <= lam:
            j -= 1
            free += weight[order[j]]
        step[k] = stops[order[j]]


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
def _steps_l2_by_sorting(weight: Array, room: Array, lam: float, width: int, step: Array) -> None:
    """The same for many features: the last stop, from the top, at which the ratio is still lam."""
    order, stops = np.empty(weight.size, dtype=np.int64), np.empty(weight.size)
    stopped = np.zeros(weight.size + 1)
    for k in range(width):
        _sort_stops(room, k, weight, stops, order)
        for j in range(weight.size):
            stopped[j + 1] = stopped[j] + room[order[j], k] ** 2
        # Added up from the last stop: subtracting from a total would cancel if weights differ much.
        free, last = 0.0, 0.0
        for j in range(weight.size - 1, -1, -1):
            i = order[j]
            free += weight[i] * weight[i]
            if stopped[j] + free * stops[i] ** 2 >= (lam * stops[i]) ** 2:
                last = stops[i]
                break
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
    width: int,
    scratch: Array,
    step: Array,
) -> None:
    """Best step of each sample in the block at multiplier ``lam``, not above the dual norm.

    At the dual norm itself the cheapest move is none; ``dearest`` gives the longest as good as it.
    Below it ``dearest`` is not asked for.
    """
    norm, weight, top = adversary.norm, adversary.weight, adversary.dual_norm
    many = weight.size > _SORT_ABOVE
    if norm == L1:
        _steps_l1(weight, lam, dearest, width, step)
    elif lam == top and not dearest:
        step[:width] = 0.0
    elif lam == top:
        _first_steps(adversary, room, width, step)
    elif norm == LINF and many:
        _steps_linf_by_sorting(weight, room, lam, width, step)
    elif norm == LINF:
        _steps_linf(weight, room, lam, width, scratch, step)
    elif many:
        _steps_l2_by_sorting(weight, room, lam, width, step)
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
