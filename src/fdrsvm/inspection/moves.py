"""The shortest move of each sample to a hyperplane, in a transport norm and inside a box.

Problem  min ||d||  over d with  w.(x + d) + b = t  and  low <= x + d <= high
Anywhere cost |w.x + b - t| / ||w||_*, along a d that attains the dual norm: [flip-cost]
Box      every feature moves towards the plane, by at most its room r: [flip-on-box]
Cost     O(N P), and a sort of each row for l2 and linf on a box
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import Norm, dual_norm, dual_norm_subgradient, norm_rows
from fdrsvm.risk.ball import Box

_EPS = float(np.finfo(np.float64).eps)


def moves_to_plane(
    X: Array, w: Array, scores: Array, norm: Norm, box: Box | None
) -> tuple[Array, Array]:
    """Moves d that bring ``scores`` (w.x + b - t) to 0, and their costs.

    Where that is impossible the cost is inf and the move nan.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if box is not None and w.any():
            moves, costs = _moves_inside(X, w, scores, norm, box)
        else:
            costs = np.abs(scores) / dual_norm(w, norm)
            direction = dual_norm_subgradient(w, norm)
            if norm == "l1":  # any of the largest will do; one feature is the simplest to tell
                first = np.arange(w.size) == np.argmax(np.abs(w))
                direction = np.where(first, np.sign(w), 0.0)
            moves = np.multiply.outer(-np.sign(scores) * costs, direction)
    moves[scores == 0.0], costs[scores == 0.0] = 0.0, 0.0
    moves[~np.isfinite(costs)] = np.nan
    return moves, costs


def moves_to_other_classes(
    X: Array,
    coef: Array,
    intercept: Array,
    now: npt.NDArray[np.intp],
    norm: Norm,
    box: Box | None,
) -> tuple[Array, Array, npt.NDArray[np.intp]]:
    """The cheapest over all other classes, each met where it ties with the class that wins now.

    Moves, their costs, and the class that wins beyond.
    """
    moves, cost, then = np.full_like(X, np.nan), np.full(len(X), np.inf), now.copy()
    for winner in np.unique(now):
        rows = np.flatnonzero(now == winner)
        for rival in np.flatnonzero(np.arange(len(coef)) != winner):
            w = coef[rival] - coef[winner]
            lead = X[rows] @ w + (intercept[rival] - intercept[winner])
            # Rounding may see the rival ahead by a hair; it is not.
            step, price = moves_to_plane(X[rows], w, np.minimum(lead, 0.0), norm, box)
            better = price < cost[rows]
            moves[rows[better]], cost[rows[better]] = step[better], price[better]
            then[rows[better]] = rival
    return moves, cost, then


def _moves_inside(X: Array, w: Array, scores: Array, norm: Norm, box: Box) -> tuple[Array, Array]:
    largest = np.abs(w).max()
    # Squares of smaller weights vanish, and what they can add is far below rounding.
    listed = np.flatnonzero(np.abs(w) > 1e-150 * largest)
    weight = np.abs(w[listed]) / largest
    need = np.abs(scores) / largest
    towards = np.multiply.outer(-np.sign(scores), np.sign(w[listed]))
    room = np.where(towards > 0.0, box.high[listed] - X[:, listed], X[:, listed] - box.low[listed])
    if norm == "l1":
        # A share s of the need costs s / |w_p|: the features with the largest weights go as far as
        # they can, the last as far as needed.
        order = np.argsort(-weight, kind="stable")
        missing = need[:, None] - _sums_before(weight[order] * room[:, order])
        sizes = np.empty_like(room)
        sizes[:, order] = np.clip(missing / weight[order], 0.0, room[:, order])
    else:
        # Feature p moves by min(r_p, t u_p), with the smallest t that is enough. What is gained is
        # concave in t: the least of the lines (gain of those stopped so far) + t (pull of the
        # others), one for each stop. So t is where the last of them reaches the need.
        unit = np.ones(listed.size) if norm == "linf" else weight
        order = np.argsort(room / unit, axis=1, kind="stable")
        stopped = _sums_before(np.take_along_axis(weight * room, order, axis=1))
        # Added up from the last stop: subtracting from a total would cancel if weights differ much.
        pull = np.cumsum((weight * unit)[order][:, ::-1], axis=1)[:, ::-1]
        step = ((need[:, None] - stopped) / pull).max(axis=1, initial=0.0)
        sizes = np.minimum(room, np.multiply.outer(step, unit))
    reach = room @ weight
    # The plane may touch the box in a corner; rounding of scores and rooms must not hide that.
    summands = 2.0 * np.abs(X[:, listed]) @ weight + reach + need
    possible = reach >= need - (listed.size + 4) * _EPS * summands
    moves = np.zeros_like(X)
    moves[:, listed] = towards * sizes
    return moves, np.where(possible, norm_rows(sizes, norm), np.inf)


def _sums_before(values: Array) -> Array:
    """Sum of the entries to the left of each."""
    sums = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=sums[:, 1:])
    return sums
