"""Moves of sensors that turn a decision where curves or waves bend the score, [flip-curves].

Gain    of a sensor that may move by d: the most that the rival catches up within d, at least 0
linf    every sensor may move by the same d, and the gains of curves add up: exact
l1, l2  the gains' concave hulls, of which the best mixture is known, give a bound; moves that use
        the same room, and as much more as it takes, turn the decision
Pairs   bend each other's curves, and waves are straight nowhere: moves are searched for, and tried;
        the bound takes the steepest slope of whatever is not a curve
Cost    O(N P K) for N rows and K stops per sensor, some 100 times over
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import Norm, norm_rows
from fdrsvm.inspection.terms import term_shares
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.ball import Box
from fdrsvm.risk.feature_maps import AdditiveFeatures, FourierFeatures

_BEYOND = 1e-9  # moves end where the rival leads by this share of what it had to catch up
_HALVINGS = 60
_LEAST_STEP = 1e-30  # of the longest
_ROWS_AT_ONCE = 1000
_WAVE_STOPS = 25  # per range
_OVERSHOOTS = (1.0, 1.3, 2.0, 4.0)  # sensors that move together may gain less than each alone
_MOST_OTHERS = 500


def bent_moves(
    linear: LinearModel, X: Array, now: npt.NDArray[np.intp], norm: Norm, box: Box | None
) -> tuple[Array, Array, Array]:
    """Moves that turn decisions, their costs, and below which cost nothing does.

    Costs are inf where no move was found, the bound too where it is proved that there is none.
    """
    moves, cost = np.full_like(X, np.nan), np.full(len(X), np.inf)
    bound = np.full(len(X), np.inf)
    for winner in np.unique(now):
        members = np.flatnonzero(now == winner)
        for rival in np.flatnonzero(np.arange(len(linear.classes)) != winner):
            lead = _lead(linear, int(winner), int(rival))
            for start in range(0, len(members), _ROWS_AT_ONCE):
                rows = members[start : start + _ROWS_AT_ONCE]
                step, least = _one_rival(lead, X[rows], X, norm, box)
                price = np.where(np.isnan(step).any(axis=1), np.inf, norm_rows(step, norm))
                bound[rows] = np.minimum(bound[rows], least)
                better = price < cost[rows]
                moves[rows[better]], cost[rows[better]] = step[better], price[better]
    return moves, cost, bound


def _lead(linear: LinearModel, winner: int, rival: int) -> LinearModel:
    """A model whose score is how far the rival is ahead of the winner."""
    if len(linear.coef) == 1:
        sign = 1.0 if rival else -1.0
        coef, offset = sign * linear.coef, sign * (linear.intercept - linear.threshold)
    else:
        coef = linear.coef[[rival]] - linear.coef[[winner]]
        offset = linear.intercept[[rival]] - linear.intercept[[winner]]
    return replace(linear, coef=coef, intercept=offset, classes=(0, 1), threshold=0.0)


def _one_rival(
    lead: LinearModel, X: Array, others: Array, norm: Norm, box: Box | None
) -> tuple[Array, Array]:
    """Moves, nan where none was found, and the bound."""
    behind = np.maximum(-lead.decision_function(X), 0.0)
    need = behind + _BEYOND * np.maximum(behind, np.abs(lead.coef).max())
    features = lead.features
    if isinstance(features, FourierFeatures):
        low, high = features.low, features.low + features.width
        if box is None:
            low, high = np.minimum(low, X.min(axis=0)), np.maximum(high, X.max(axis=0))
        else:
            low, high = box.low, box.high
        stops = low + np.linspace(0.0, 1.0, _WAVE_STOPS)[:, None] * (high - low)
        step = _searched(lead, X, others, need, stops, norm)
        # Per unit of the readings, in which moves are measured here.
        steepest = replace(features, span=features.width).steepness(lead.coef[0], norm)
        least = behind / steepest if steepest > 0.0 else np.where(behind > 0.0, np.inf, 0.0)
        return step, least
    assert isinstance(features, AdditiveFeatures)
    stops = _knots(lead, features, X, need, box)
    at_stops, at_rows = (term_shares(lead, each)[:, : X.shape[1], 0] for each in (stops, X))
    curves = _Gains.of(X, stops, at_stops.T - at_rows[:, :, None], need)
    if features.pairs:
        step = _searched(lead, X, others, need, stops, norm)
        return step, curves.steeper(features.pair_slopes(lead.coef[0])).bound(behind, norm)
    move, is_enough = curves.moves(need, norm)
    return np.where(is_enough[:, None], move, np.nan), curves.bound(behind, norm)


# --- what sensors gain by moving ---


@dataclass(frozen=True, eq=False)
class _Gains:
    """Straight pieces of each sensor's curve, seen from each row: arrays by row, sensor and piece.

    ``near`` and ``far`` are the distances of a piece's ends, on the side ``sign``, and ``low`` and
    ``high`` the gains there. A piece ends where its sensor alone has gained enough.
    """

    near: Array
    far: Array
    low: Array
    high: Array
    sign: Array

    @classmethod
    def of(cls, X: Array, stops: Array, gains: Array, need: Array) -> _Gains:
        """Between stops (one row each), whose gains are by row, sensor and stop."""
        offsets = np.concatenate([stops.T - X[:, :, None], np.zeros((*X.shape, 1))], axis=2)
        gains = np.concatenate([gains, np.zeros((*X.shape, 1))], axis=2)
        order = np.argsort(offsets, axis=2, kind="stable")
        offsets, gains = (np.take_along_axis(each, order, axis=2) for each in (offsets, gains))
        outward = offsets[:, :, 1:] > 0.0
        near, far = _ends(np.abs(offsets), outward)
        low, high = _ends(gains, outward)
        enough = need[:, None, None] * (1.0 + _BEYOND)  # so that rounding leaves what is needed
        crosses = (low < enough) & (enough < high)
        share = np.divide(enough - low, high - low, out=np.ones_like(low), where=crosses)
        far, high = near + share * (far - near), np.where(crosses, enough, high)
        return cls(near, far, low, high, np.where(outward, 1.0, -1.0))

    def steeper(self, slopes: Array) -> _Gains:
        """With what else a sensor may gain per unit that it moves."""
        rise = slopes[:, None]
        return replace(self, low=self.low + rise * self.near, high=self.high + rise * self.far)

    def within(self, room: Array) -> tuple[Array, Array]:
        """The largest gain of each sensor within its room, and the move that makes it."""
        length = self.far - self.near
        share = np.divide(room[:, :, None] - self.near, length, where=length > 0.0, out=length * 0)
        share = np.clip(share, 0.0, 1.0)
        gains = np.where(room[:, :, None] >= self.near, self.low, 0.0)
        gains = gains + np.where(share > 0.0, share * (self.high - self.low), 0.0)
        best = gains.argmax(axis=2)[:, :, None]
        gain, sign, near, length, share = (
            np.take_along_axis(each, best, axis=2)[:, :, 0]
            for each in (gains, self.sign, self.near, length, share)
        )
        return np.maximum(gain, 0.0), np.where(gain > 0.0, sign * (near + share * length), 0.0)

    def moves(self, need: Array, norm: Norm) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Moves that gain what is needed, for linf the cheapest, or all that can be gained."""
        rooms, most = self._rooms(norm)
        step = _least(lambda t: self.within(rooms(t)[0])[0].sum(axis=1), need, most)[1]
        gain, move = self.within(rooms(step)[0])
        return move, gain.sum(axis=1) >= need * (1.0 - _BEYOND / 2.0)

    def bound(self, need: Array, norm: Norm) -> Array:
        """What any moves that gain so much cost at least; inf where no moves do."""
        rooms, most = self._rooms(norm)
        step = _least(lambda t: rooms(t)[1], need, most)[0]
        reached = rooms(most)[1] >= need * (1.0 - _BEYOND)
        return np.where(reached, norm_rows(rooms(step)[0], norm), np.inf)

    def _rooms(self, norm: Norm) -> tuple[Callable[[Array], tuple[Array, Array]], Array]:
        """Room of each sensor, and a bound on what all gain, by one growing number; its end."""
        if norm == "linf":

            def alike(t: Array) -> tuple[Array, Array]:
                room = np.repeat(t[:, None], self.far.shape[1], axis=1)
                return room, self.within(room)[0].sum(axis=1)

            return alike, self.far.max(axis=(1, 2))
        start, length, slope = self._hull()
        if norm == "l1":  # the steepest pieces of all hulls first
            order = np.argsort(-slope.reshape(len(slope), -1), axis=1, kind="stable")
            rank = np.argsort(order, axis=1).reshape(slope.shape).astype(np.float64)

            def used(t: Array) -> Array:
                return length * np.clip(t[:, None, None] - rank, 0.0, 1.0)

            most = np.full(len(slope), float(slope[0].size))
        else:  # t is the multiplier: sum of squares / 2 is least at a given gain

            def used(t: Array) -> Array:
                return np.clip(t[:, None, None] * slope - start, 0.0, length)

            ends = np.divide(start + length, slope, where=slope > 0.0, out=slope * 0.0)
            most = ends.max(axis=(1, 2)) * (1.0 + _BEYOND)

        def mixed(t: Array) -> tuple[Array, Array]:
            each = used(t)
            return each.sum(axis=2), (each * slope).sum(axis=(1, 2))

        return mixed, most

    def _hull(self) -> tuple[Array, Array, Array]:
        """Edges of each gain's concave hull: where they start, how long and how steep they are."""
        at, gained = np.zeros(self.far.shape[:2]), np.zeros(self.far.shape[:2])
        edges = []
        for _ in range(self.far.shape[2]):
            run, rise = self.far - at[:, :, None], self.high - gained[:, :, None]
            ahead = (run > 0.0) & (rise > 0.0)
            if not ahead.any():
                break
            slopes = np.divide(rise, run, where=ahead, out=np.zeros_like(run))
            best = slopes.argmax(axis=2)[:, :, None]
            slope, length, gain = (
                np.take_along_axis(np.where(ahead, each, 0.0), best, axis=2)[:, :, 0]
                for each in (slopes, run, rise)
            )
            edges.append((at, length, slope))
            at, gained = at + length, gained + gain
        if not edges:
            edges = [(at, at, at)]
        start, lengths, steep = (np.stack(each, axis=2) for each in zip(*edges, strict=True))
        return start, lengths, steep


def _ends(values: Array, outward: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """Of pieces between neighbours: the end that is nearer to the row, and the other."""
    first, second = values[:, :, :-1], values[:, :, 1:]
    return np.where(outward, first, second), np.where(outward, second, first)


def _least(gain: Callable[[Array], Array], need: Array, most: Array) -> tuple[Array, Array]:
    """Where a growing function reaches ``need``: just before, and just there."""
    low, high = _LEAST_STEP * most, most.copy()
    below = gain(low) < need
    low, high = np.where(below, low, 0.0), np.where(below, high, low)
    for _ in range(_HALVINGS):
        middle = np.where(high > 4.0 * low, np.sqrt(low * high), (low + high) / 2.0)
        below = gain(middle) < need
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low, high


# --- where to stop ---


def _knots(
    lead: LinearModel, features: AdditiveFeatures, X: Array, need: Array, box: Box | None
) -> Array:
    """Readings between which all is straight, and so far out that outer slopes gain enough."""
    readings, values = features.curves(lead.coef[0])
    knots = [readings.T]
    if features.pairs:
        shares = np.arange(features.pair_knots + 1)[:, None] / features.pair_knots
        knots.append(features.low + features.width * shares)
    if box is not None:
        inner = np.clip(np.concatenate(knots), box.low, box.high)
        return np.concatenate([inner, box.low[None], box.high[None]])
    low, high = (
        np.minimum(readings[:, 0], X.min(axis=0)),
        np.maximum(readings[:, -1], X.max(axis=0)),
    )
    slopes = np.abs(np.diff(values) / np.diff(readings))[:, [0, -1]].T
    # Beyond a valley that lies between a row and the end, the valley has to be made up for too.
    ends, at_rows = (term_shares(lead, at)[:, : X.shape[1], 0] for at in (np.stack([low, high]), X))
    lacks = need.max(initial=0.0) + np.maximum(at_rows.max(axis=0) - ends, 0.0)
    far = np.divide(2.0 * lacks, slopes, where=slopes > 0.0, out=slopes * 0.0)
    return np.concatenate([*knots, (low - far[0])[None], (high + far[1])[None]])


# --- pairs and waves ---


def _searched(
    lead: LinearModel, X: Array, others: Array, need: Array, stops: Array, norm: Norm
) -> Array:
    """Moves that are tried: as if sensors gained what each gains alone, or towards another row."""
    now = lead.decision_function(X)
    gains = np.empty((*X.shape, len(stops)))
    for j in range(X.shape[1]):
        for m, stop in enumerate(stops[:, j]):
            moved = X.copy()
            moved[:, j] = stop
            gains[:, j, m] = lead.decision_function(moved) - now
    found, cost = np.full_like(X, np.nan), np.full(len(X), np.inf)
    for factor in _OVERSHOOTS:
        steps, _ = _Gains.of(X, stops, gains, factor * need).moves(factor * need, norm)
        _keep_shorter(lead, X, steps, norm, found, cost)
    left = np.flatnonzero(np.isinf(cost))
    beyond = others[lead.decision_function(others) > 0.0][:_MOST_OTHERS] if left.size else X[:0]
    if len(beyond):
        steps = np.full_like(X, np.nan)
        for row in left:
            away = beyond - X[row]
            steps[row] = away[norm_rows(away, norm).argmin()]
        _keep_shorter(lead, X, steps, norm, found, cost)
    return found


def _keep_shorter(
    lead: LinearModel, X: Array, steps: Array, norm: Norm, found: Array, cost: Array
) -> None:
    """Keeps steps that turn the decision, cut where they first seem to, if that is cheaper."""
    goes = np.where(np.isnan(steps), 0.0, steps)  # to stay where it is turns nothing
    able = np.flatnonzero(lead.decision_function(X + goes) > 0.0)
    if not able.size:
        return
    X, step = X[able], steps[able]
    low, high = np.zeros(len(able)), np.ones(len(able))
    for _ in range(_HALVINGS // 2):
        middle = (low + high) / 2.0
        turns = lead.decision_function(X + middle[:, None] * step) > 0.0
        low, high = np.where(turns, low, middle), np.where(turns, middle, high)
    step = high[:, None] * step
    price = norm_rows(step, norm)
    better = price < cost[able]
    found[able[better]], cost[able[better]] = step[better], price[better]
