"""Whether the highest of many numbers lie apart from the others, as mixed-in rows would: [valley].

Given    n different numbers in order, x_0 < ... < x_(n-1), drawn independently from one density
Valley   from x_i to x_(i + v); the w numbers next to it lie within R above it, or within L below it
Test     V / (V + R) and V / (V + L) are both above the quantile 1 - delta of Beta(v, w), w of each
         side its own; delta = RISK / (2 tests), over all i, v and w that are tried
Holds    if the density falls on either side of a single peak, whatever its tails, a valley is
         found with a probability of at most RISK; since most tests overlap, it is below 1/50
Cost     O(n log(n)^2)
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from fdrsvm.core.arrays import Array

RISK = 0.5


def rows_above_valley(values: Array, resolution: float = 0.0) -> int:
    """How many of the highest values lie above a valley, at most about half; 0 if there is none.

    Parameters
    ----------
    values : array of shape (n,)
        In any order.
    resolution : float
        Values no further apart than this are the same.
    """
    ordered = np.sort(values)
    x = ordered[np.concatenate([[True], np.diff(ordered) > resolution])]
    n, lowest_end = len(x), len(x) // 2
    valleys, sides = _powers_of_two(1, n // 4), _powers_of_two(2, n // 2)
    if not valleys or not sides:
        return 0
    delta = RISK / (2 * len(valleys) * len(sides) * (n - lowest_end))
    widest, middle = 0.0, np.inf
    for v in valleys:
        ends = np.arange(max(lowest_end, v), n)
        starts = ends - v
        width = x[ends] - x[starts]
        is_steep_above, is_steep_below = np.zeros((2, len(ends)), dtype=bool)
        for w in sides:
            # 1 - Beta(v, w) is Beta(w, v): R / (V + R) <= quantile, where no digits are lost.
            quantile = float(betaincinv(w, v, delta))
            reach = width * (quantile / (1.0 - quantile))
            above, below = np.minimum(ends + w, n - 1), np.maximum(starts - w, 0)
            is_steep_above |= (ends + w < n) & (x[above] - x[ends] <= reach)
            is_steep_below |= (starts - w >= 0) & (x[starts] - x[below] <= reach)
        width[~(is_steep_above & is_steep_below)] = 0.0
        if width.max(initial=0.0) > widest:
            at = int(width.argmax())
            widest = float(width[at])
            middle = 0.5 * (float(x[starts[at]]) + float(x[ends[at]]))
    return int(np.count_nonzero(values > middle))


def _powers_of_two(first: int, most: int) -> list[int]:
    powers = []
    while first <= most:
        powers.append(first)
        first *= 2
    return powers
