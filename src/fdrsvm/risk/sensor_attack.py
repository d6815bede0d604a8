"""An attack on the sensors in front of a feature map: how much of a certified worst case is real.

Problem  max E_Q[loss(y (w.phi(x) + b))] over Q within transport cost epsilon of the rows, [map]
Pool     Every row has places to go, with a label, a cost and the loss there. Given those, the best
         Q is a linear program with one budget: each row takes its best place at a price lam of
         cost, and the places taken at the two sides of the best lam are mixed to cost epsilon
New      Places that are the best ones at that price are added, until none is better
Curves   without pairs: the best place of a row is found exactly, among knots, [attack]; with the
         hinge, and norm l1 or linf, the attack is then the worst case of the sensors itself
Others   places are searched along gradients, from each row at several radii, and sensor by sensor

What comes out is a distribution in the ball of the sensors. Its loss is computed of the map itself,
so the worst case of the sensors is at least that, however the places were found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.losses import MarginLoss
from fdrsvm.core.vectors import dot, dual_norm_subgradient, norm_rows
from fdrsvm.risk.ball import Ball, WorstCaseDistribution
from fdrsvm.risk.feature_maps import AdditiveFeatures, Features

_FAR = 1e6  # ranges: so far goes ever less mass where there is no support, [flips]
_ROUNDS = 40  # of new places; exact ones run out much earlier
_SAME = 1e-12  # of the risk: less is rounding
_WORTH_IT = 1e-5  # of the risk: a search that gains less in a round has found what it finds
_RADII = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8)  # of the search, in ranges
_STEPS = 4  # along the gradient, at each radius
_REFINED = 400  # rows whose places are searched more closely
_TINY = 1e-9  # ranges
_ONE_BY_ONE = 40  # of these those where sensors are tried one by one
_STOPS = 24  # per range, for waves
_STARTS = 7  # lengths of a move from which its best length is sought (l2)


@dataclass(frozen=True, eq=False)
class Target:
    """A model of features, and the rows whose sensors are attacked."""

    features: Features
    w: Array
    intercept: float
    X: Array
    y: Array
    mass: Array
    ball: Ball  # in units of the sensors

    @property
    def loss(self) -> MarginLoss:
        """What the attack makes large."""
        return self.ball.loss

    def scores(self, points: Array) -> Array:
        """Of sensors anywhere."""
        return np.asarray(self.features.apply(points) @ self.w + self.intercept)

    def inside(self, points: Array) -> Array:
        """The nearest points in the support, no farther from any row than before."""
        box = self.ball.box
        return points if box is None else np.clip(points, box.low, box.high)


class _Pool:
    """Places of all rows: one column of each array is one place for every row."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.points: list[Array] = []
        self.labels: list[Array] = []
        n_rows = len(target.y)
        self.costs, self.losses = np.empty((n_rows, 0)), np.empty((n_rows, 0))

    def add(self, points: Array, labels: Array) -> None:
        """A place for every row."""
        target = self.target
        costs = norm_rows(points - target.X, target.ball.norm)
        costs = costs + np.where(labels == target.y, 0.0, target.ball.kappa)
        losses = np.asarray(target.loss.value(labels * target.scores(points)), dtype=np.float64)
        # At kappa = inf labels stay: nobody takes a place with the other one.
        losses = np.where(np.isfinite(costs), losses, -np.inf)
        costs = np.where(np.isfinite(costs), costs, 0.0)
        self.points.append(points)
        self.labels.append(labels)
        self.costs = np.column_stack([self.costs, costs])
        self.losses = np.column_stack([self.losses, losses])

    def at_price(self, price: float) -> _Choice:
        """Each row's best place at a price of cost."""
        places = np.argmax(self.losses - price * self.costs, axis=1)
        rows, mass = np.arange(len(places)), self.target.mass
        costs, losses = self.costs[rows, places], self.losses[rows, places]
        return _Choice(places, dot(mass, costs), dot(mass, losses))

    def best(self) -> _Mixture:
        """The mixture that costs epsilon, and its price: tangents meet where the minimum is."""
        epsilon = self.target.ball.epsilon
        gains = self.losses - self.losses[:, :1]  # over staying, which is the first place
        pays = (self.costs > 0.0) & (gains > 0.0)
        highest = np.divide(gains, self.costs, out=np.zeros_like(gains), where=pays).max()
        cheap, dear = self.at_price(2.0 * float(highest) + 1.0), self.at_price(0.0)
        if dear.cost <= epsilon:
            return _Mixture(dear, dear, 1.0)
        for _ in range(200):
            price = (dear.loss - cheap.loss) / (dear.cost - cheap.cost)
            middle = self.at_price(price)
            if middle.worth(price) - cheap.worth(price) <= _SAME * (1.0 + abs(cheap.loss)):
                break
            cheap, dear = (middle, dear) if middle.cost <= epsilon else (cheap, middle)
        return _Mixture(dear, cheap, (epsilon - cheap.cost) / (dear.cost - cheap.cost), price)

    def distribution(self, best: _Mixture) -> WorstCaseDistribution:
        """At most two atoms per row."""
        rows, ends = np.arange(len(self.target.y)), []
        for places in (best.dear.places, best.cheap.places):
            points, labels = (
                np.array([each[place][row] for row, place in enumerate(places.tolist())])
                for each in (self.points, self.labels)
            )
            ends.append((points, labels, self.costs[rows, places], self.losses[rows, places]))
        shares = np.where(best.dear.places == best.cheap.places, 1.0, best.share)
        return WorstCaseDistribution.between(ends, shares, self.target.mass)


@dataclass(frozen=True, eq=False)
class _Choice:
    """One place for every row, their mean cost and their mean loss."""

    places: npt.NDArray[np.intp]
    cost: float
    loss: float

    def worth(self, price: float) -> float:
        """What is left of the loss at a price of cost."""
        return self.loss - price * self.cost


@dataclass(frozen=True, eq=False)
class _Mixture:
    """The share of every row that goes to the dear place; the rest goes to the cheap one."""

    dear: _Choice
    cheap: _Choice
    share: float
    price: float = 0.0

    @property
    def loss(self) -> float:
        return self.share * self.dear.loss + (1.0 - self.share) * self.cheap.loss


class _Mover(ABC):
    """Finds places to go for every row; ``worth_it`` is what a round must gain to go on."""

    worth_it: ClassVar[float] = -np.inf

    def __init__(self, target: Target, label: float) -> None:
        self.target, self.label = target, label

    def first(self) -> list[Array]:
        """Places that do not depend on the price.

        Where curves go on straight for ever, all rows go where they lose most, [flips].
        """
        target, features, norm = self.target, self.target.features, self.target.ball.norm
        if target.ball.box is not None or not isinstance(features, AdditiveFeatures):
            return []
        knots, values = features.curves(target.w)
        slopes = -self.label * np.diff(values, axis=1) / np.diff(knots, axis=1)
        down, up = -slopes[:, 0], slopes[:, -1]
        rates = np.maximum(np.maximum(down, up), 0.0)
        if not rates.any():
            return []
        way = np.where(up >= down, 1.0, -1.0) * dual_norm_subgradient(rates, norm)
        return [target.X + _FAR * float(np.median(features.span)) * way]

    @abstractmethod
    def better(self, price: float, pool: _Pool) -> list[Array]:
        """The best places at a price of cost in units of the score."""


class _OnCurves(_Mover):
    """Sensor by sensor: a curve, and the row's place on it, [attack]."""

    def __init__(self, target: Target, label: float, features: AdditiveFeatures) -> None:
        super().__init__(target, label)
        knots, values = features.curves(target.w)
        self.knots, self.values = knots, -label * values
        stops = knots
        if target.ball.box is not None:
            low, high = target.ball.box.low[:, None], target.ball.box.high[:, None]
            stops = np.concatenate([np.clip(knots, low, high), low, high], axis=1)
        X = target.X
        self.stops = stops
        self.ways = stops - X[:, :, None]
        here = self._heights(X)
        self.gains = self._heights(stops.T).T - here[:, :, None]
        self.here = here
        slopes = np.diff(self.values, axis=1) / np.diff(knots, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(self.gains > 0.0, self.gains / np.abs(self.ways), 0.0)
        # Beyond the knots a curve goes on; a piece that a row is on has the slope of its ends.
        self.rates = np.maximum(rates.max(axis=2), np.abs(slopes[:, [0, -1]]).max(axis=1))
        self.slopes = slopes
        if target.ball.norm == "linf":
            self.windows = np.sort(np.abs(self.ways).reshape(len(X), -1), axis=1)
            reached = [self._in_window(window)[0].sum(axis=1) for window in self.windows.T]
            self.reached = np.column_stack(reached)

    def _heights(self, X: Array) -> Array:
        """What each sensor adds to the score, times -label: one column per sensor."""
        knots, values = self.knots, self.values
        n_pieces = knots.shape[1] - 1
        places = (X - knots[:, 0]) / (knots[:, -1] - knots[:, 0]) * n_pieces
        at = np.clip(np.floor(places), 0, n_pieces - 1).astype(np.intp)
        sensors = np.arange(X.shape[1])
        start, end = values[sensors, at], values[sensors, at + 1]
        return np.asarray(start + (end - start) * (places - at))

    def better(self, price: float, pool: _Pool) -> list[Array]:  # noqa: ARG002
        """See :class:`_Mover`."""
        norm = self.target.ball.norm
        moved = self.target.X.copy()
        if norm == "l1":
            worth = self.gains - price * np.abs(self.ways)
            return [np.where(worth.max(axis=2) > 0.0, self._stop(worth.argmax(axis=2)), moved)]
        if norm == "linf":
            at = (self.reached - price * self.windows).argmax(axis=1)
            window = self.windows[np.arange(len(at)), at]
            gain = self.reached[np.arange(len(at)), at] - price * window
            return [np.where(gain[:, None] > 0.0, self._in_window(window)[1], moved)]
        # Gains are at most rates times ways: where the rates are small, no move pays.
        rows = np.flatnonzero(np.linalg.norm(self.rates, axis=1) > price)
        if rows.size:
            moved[rows] = self._best_length(rows, max(price, 1e-9))
        return [moved]

    def _stop(self, at: npt.NDArray[np.intp]) -> Array:
        return np.asarray(self.stops[np.arange(self.stops.shape[0]), at])

    def _in_window(self, window: Array) -> tuple[Array, Array]:
        """The most that each sensor gains within a distance of each row, and where."""
        X, reach = self.target.X, window[:, None]
        ends = [self.target.inside(X + side * reach) for side in (-1.0, 1.0)]
        at_ends = [self._heights(end) - self.here for end in ends]
        stops = np.where(np.abs(self.ways) <= reach[:, :, None], self.gains, -np.inf)
        choice = stops.argmax(axis=2)
        gains = np.stack([stops.max(axis=2), *at_ends, np.zeros_like(X)])
        points = np.stack([self._stop(choice), *ends, X])
        best = gains.argmax(axis=0)[None]
        return np.take_along_axis(gains, best, 0)[0], np.take_along_axis(points, best, 0)[0]

    def _best_length(self, rows: npt.NDArray[np.intp], price: float) -> Array:
        """l2: for a length t, ||d|| <= (||d||^2 / t + t)/2 is separable, and exact at t = ||d||."""
        X, ways, gains = self.target.X[rows], self.ways[rows], self.gains[rows]
        found, worth = X.copy(), np.zeros(len(rows))
        widest = np.linalg.norm(np.diff(self.knots[:, [0, -1]], axis=1))
        for start in widest * 0.5 ** np.arange(_STARTS):
            length = np.full(len(rows), start)
            for _ in range(4):
                points, gain = self._at_length(X, ways, gains, price / length)
                moved = np.linalg.norm(points - X, axis=1)
                better = gain - price * moved > worth
                found[better], worth[better] = points[better], (gain - price * moved)[better]
                length = np.maximum(moved, 1e-9 * widest)
        return found

    def _at_length(self, X: Array, ways: Array, gains: Array, bend: Array) -> tuple[Array, Array]:
        """The best of stops, and of where a piece is as steep as the parabola bend d^2 / 2."""
        bend = bend[:, None, None]
        knots, slopes = self.knots, self.slopes
        low, high = knots[:, :-1].copy(), knots[:, 1:].copy()
        low[:, 0], high[:, -1] = -np.inf, np.inf
        where = np.clip(X[:, :, None] + slopes / bend, low, high)
        if self.target.ball.box is not None:
            box = self.target.ball.box
            where = np.clip(where, box.low[:, None], box.high[:, None])
        n_sensors, n_pieces = slopes.shape
        flat = np.moveaxis(where, 2, 0).reshape(-1, n_sensors)
        heights = np.moveaxis(self._heights(flat).reshape(n_pieces, len(X), n_sensors), 0, 2)
        here = self._heights(X)[:, :, None]
        all_ways = np.concatenate([ways, where - X[:, :, None], np.zeros((*X.shape, 1))], axis=2)
        all_gains = np.concatenate([gains, heights - here, np.zeros((*X.shape, 1))], axis=2)
        best = (all_gains - 0.5 * bend * all_ways**2).argmax(axis=2)[:, :, None]
        way = np.take_along_axis(all_ways, best, 2)[:, :, 0]
        return X + way, np.take_along_axis(all_gains, best, 2)[:, :, 0].sum(axis=1)


class _Climber(_Mover):
    """Along the gradient: the farthest point of a radius, again and again from where it led."""

    worth_it = _WORTH_IT

    def first(self) -> list[Array]:
        """See :class:`_Mover`."""
        X, unit = self.target.X, float(np.median(self.target.features.span))
        everyone = np.arange(len(X))
        near = [self._uphill(everyone, X, np.full(len(X), unit * share)) for share in _RADII]
        return near + super().first()

    def better(self, price: float, pool: _Pool) -> list[Array]:
        """See :class:`_Mover`; around the places of the rows that gain most."""
        target = self.target
        ours = np.array([(labels == self.label).all() for labels in pool.labels])
        worth = np.where(ours, pool.losses - price * target.loss.lipschitz * pool.costs, -np.inf)
        at = worth.argmax(axis=1)
        everyone = np.arange(len(at))
        gain = (worth[everyone, at] - (pool.losses[:, 0])) * target.mass
        rows = np.argsort(-gain, kind="stable")[:_REFINED]
        start = np.stack([pool.points[k][n] for n, k in zip(rows, at[rows], strict=True)])
        radius = norm_rows(start - target.X[rows], target.ball.norm)
        tried = [self._uphill(rows, start, factor * radius) for factor in (0.7, 1.0, 1.4)]
        few = slice(_ONE_BY_ONE)
        tried.append(start.copy())
        tried[-1][few] = self._one_sensor(rows[few], start[few], radius[few], price)
        found = []
        for points in tried:
            everywhere = target.X.copy()
            everywhere[rows] = points
            found.append(everywhere)
        return found

    def _one_sensor(
        self, rows: npt.NDArray[np.intp], start: Array, radius: Array, price: float
    ) -> Array:
        """The best places that differ from the start by another stop for one sensor."""
        target = self.target
        features, X = target.features, target.X[rows]
        shares = np.arange(_STOPS + 1) / _STOPS
        if isinstance(features, AdditiveFeatures):
            knots = [np.arange(n + 1) / n for n in (features.n_knots, features.pair_knots)]
            shares = np.unique(np.concatenate(knots))
        n_sensors, best = X.shape[1], start.copy()
        most = np.full(len(rows), -np.inf)
        for j in range(n_sensors):
            stops = np.tile(features.low[j] + features.width[j] * shares, (len(rows), 1))
            ways = X[:, j, None] + radius[:, None] * [-1.0, 0.0, 1.0]
            stops = np.concatenate([stops, ways], axis=1)
            points = np.repeat(start[:, None, :], stops.shape[1], axis=1)
            points[:, :, j] = stops
            points = target.inside(points.reshape(-1, n_sensors))
            costs = norm_rows(points - np.repeat(X, stops.shape[1], axis=0), target.ball.norm)
            worth = -self.label * target.scores(points) - price * costs
            worth = worth.reshape(len(rows), -1)
            at = worth.argmax(axis=1)
            everyone = np.arange(len(rows))
            better = worth[everyone, at] > most
            points = points.reshape(len(rows), -1, n_sensors)[everyone, at]
            best[better], most[better] = points[better], worth[everyone, at][better]
        return best

    def _uphill(self, rows: npt.NDArray[np.intp], start: Array, radius: Array) -> Array:
        """The best of some steps from a start, each as far from the row as the radius allows."""
        target = self.target
        X, span = target.X[rows], target.features.span
        points = best = start
        least = np.full(len(rows), np.inf)
        for _ in range(_STEPS):
            slopes = -self.label * target.features.slopes(points, target.w)
            ahead = points + _TINY * span * np.sign(slopes)
            slopes = np.where(target.inside(ahead) == points, 0.0, slopes)  # at the support's edge
            points = target.inside(X + radius[:, None] * self._steepest(slopes))
            scores = self.label * target.scores(points)
            better = scores < least
            best, least = np.where(better[:, None], points, best), np.minimum(scores, least)
        return best

    def _steepest(self, slopes: Array) -> Array:
        """Moves of length 1 along which the slopes gain most."""
        norm = self.target.ball.norm
        if norm == "linf":
            return np.sign(slopes)
        if norm == "l2":
            lengths = np.linalg.norm(slopes, axis=1, keepdims=True)
            return np.asarray(np.divide(slopes, lengths, where=lengths > 0.0, out=0.0 * slopes))
        first = np.abs(slopes).argmax(axis=1)[:, None] == np.arange(slopes.shape[1])
        return np.where(first, np.sign(slopes), 0.0)


def attack_sensors(target: Target) -> WorstCaseDistribution:
    """The worst distribution found in the ball around the sensors' rows, atom by atom."""
    features, movers = target.features, list[_Mover]()
    for label in (-1.0, 1.0):
        if isinstance(features, AdditiveFeatures) and not features.pairs:
            movers.append(_OnCurves(target, label, features))
        else:
            movers.append(_Climber(target, label))
    pool = _Pool(target)
    pool.add(target.X, target.y)
    pool.add(target.X, -target.y)
    for mover in movers:
        for points in mover.first():
            pool.add(points, np.full(len(points), mover.label))
    best = pool.best()
    for _ in range(_ROUNDS):
        for mover in movers:
            for points in mover.better(best.price / target.loss.lipschitz, pool):
                pool.add(points, np.full(len(points), mover.label))
        # No Q of these places has a larger loss; of exact places no Q at all has.
        bound = best.price * target.ball.epsilon + pool.at_price(best.price).worth(best.price)
        before, best = best.loss, pool.best()
        unit = 1.0 + abs(bound)
        if bound - best.loss <= _SAME * unit or best.loss - before < movers[0].worth_it * unit:
            break
    return pool.distribution(best)
