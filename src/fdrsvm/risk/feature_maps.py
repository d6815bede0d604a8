"""Shared feature maps: what is made of sensors in front of the linear model, [map].

    score(x) = w.phi(x) + b,    phi the same at every client, made of agreed limits or of a seed

What a user states stays in units of the sensors. If ||phi(x) - phi(x')|| <= L ||x - x'||, a ball of
radius epsilon and label price kappa around the sensors lies within the ball of radius L epsilon and
price L kappa around the features: moving a row costs at most L times as much there, and flipping
its label exactly L times. So the certified worst case of the features is at least that of the
sensors. ``stretch`` is L, proved map by map in docs/maths.md.

A map (:class:`AdditiveMap`, :class:`FourierMap`) is a choice; with limits of the sensors it becomes
:class:`Features`, which training, files and exports share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import (
    Array,
    Matrix,
    check_choice,
    check_count,
    check_positive,
    check_vector,
)
from fdrsvm.core.vectors import Groups, Norm, dual_norm
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.risk.ball import Box, Support, check_bounds, check_pair, check_support

_MOST_FEATURES = 20_000  # a model of more is a slip of the keyboard, and would not fit a PLC
_MOST_CORNERS = 16  # sensors up to which all corners of a cube are tried
_DENSITIES = 40  # steps to a bound on the steepness of waves (l2)
_ROUNDING = 1e-12  # L is rounded up by this share, so that its own rounding breaks no bound
_NARROWEST, _WIDEST = 1e-100, 1e100  # ranges of sensors whose products float64 still has room for
_EPS = float(np.finfo(np.float64).eps)
_WIDE = 4.0  # gamma times the number of sensors, in shares of their ranges


@dataclass(frozen=True, kw_only=True)
class FeatureMap(ABC):
    """What a user chooses; ``over`` makes :class:`Features` of it."""

    name: ClassVar[str]
    limits: Any = None

    def __post_init__(self) -> None:
        if self.limits is not None:
            ends = check_pair(self.limits, "features: limits")
            # Values that compare and print as what they are, whatever arrays they came from.
            try:
                plain = tuple(np.asarray(end, dtype=np.float64).tolist() for end in ends)
            except (TypeError, ValueError):
                raise InvalidInputError(
                    "features: limits", "must be numbers, or one per sensor", f"they are {ends!r}"
                ) from None
            kept = tuple(tuple(end) if isinstance(end, list) else end for end in plain)
            object.__setattr__(self, "limits", kept)

    @abstractmethod
    def n_outputs(self, n_sensors: int) -> int:
        """How many features it makes of so many sensors."""

    @abstractmethod
    def between(self, low: Array, width: Array) -> Features:
        """The features of sensors that range from low to low + width."""

    def over(self, n_sensors: int, box: Box | None = None) -> Features:
        """The features of so many sensors: within the map's limits, else the box, else [0, 1]."""
        n_outputs = self.n_outputs(n_sensors)
        if n_outputs > _MOST_FEATURES:
            raise InvalidInputError(
                "features",
                f"must make at most {_MOST_FEATURES} features",
                f"{n_sensors} sensors make {n_outputs}",
            )
        if self.limits is not None:
            low, high = check_bounds(self.limits, "features: limits", n_sensors)
        elif box is not None:
            low, high = box.low, box.high
        else:
            low, high = np.zeros(n_sensors), np.ones(n_sensors)
        # A sensor that cannot move has no range to be a share of: any unit will do.
        with np.errstate(over="ignore"):
            width = np.where(high > low, high - low, 1.0)
        if not _are_ranges(width):
            raise InvalidInputError(
                "features: limits",
                f"must be apart by {_NARROWEST:g} to {_WIDEST:g}; scale the sensors",
                f"they are {low.tolist()} and {high.tolist()}",
            )
        return self.between(low, width)

    def to_params(self) -> dict[str, Any]:
        """Plain values that ``read_map`` makes the map of again."""
        return {"map": self.name, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class AdditiveMap(FeatureMap):
    """One curve per sensor, and perhaps one surface per pair of sensors.

    Each sensor's range is cut into ``n_knots`` pieces of equal length; the score is a straight line
    in each, and goes on straight beyond the limits. So a linear model is one of these, at the same
    price. Pairs are for faults that show in two sensors together, such as torque times speed.

    Parameters
    ----------
    n_knots : int
        Pieces of each curve.
    pairs : None, "all", or sequence of (int, int)
        The pairs of sensors, by their columns, that have a surface.
    pair_knots : int
        Pieces per side of a surface.
    limits : (low, high), optional
        Where sensors range: numbers, or one per sensor. By default the support, else 0 to 1, as
        scaled features do.

    Examples
    --------
    >>> from fdrsvm.estimators import AdditiveMap, FDRSVC
    >>> X = [[0.1], [0.2], [0.5], [0.5], [0.8], [0.9]]
    >>> y = ["off", "off", "fine", "fine", "off", "off"]
    >>> model = FDRSVC(features=AdditiveMap(n_knots=4), epsilon=0.001).fit(X, y)
    >>> model.predict([[0.15], [0.5], [0.85]]).tolist()
    ['off', 'fine', 'off']
    """

    name: ClassVar[str] = "additive"
    n_knots: int = 6
    pairs: Any = None
    pair_knots: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_knots", "pair_knots"):  # plain numbers, which files can hold
            object.__setattr__(self, name, check_count(getattr(self, name), f"features: {name}"))
        if isinstance(self.pairs, str):
            check_choice(self.pairs, "features: pairs", ("all",))
        elif self.pairs is not None:
            object.__setattr__(self, "pairs", _check_pairs(self.pairs))

    def n_outputs(self, n_sensors: int) -> int:
        """See :class:`FeatureMap`."""
        n_pairs = n_sensors * (n_sensors - 1) // 2 if self.pairs == "all" else len(self.pairs or ())
        return n_sensors * self.n_knots + n_pairs * self.pair_knots**2

    def between(self, low: Array, width: Array) -> AdditiveFeatures:
        """See :class:`FeatureMap`."""
        pairs = self.pairs or ()
        if pairs == "all":
            pairs = tuple(combinations(range(low.size), 2))
        if any(j >= low.size for _, j in pairs):
            raise InvalidInputError(
                "features: pairs", f"must be columns below {low.size}", f"they are {pairs}"
            )
        return AdditiveFeatures(low, width, width, self.n_knots, pairs, self.pair_knots)


@dataclass(frozen=True, kw_only=True)
class FourierMap(FeatureMap):
    """Waves across all sensors together, in random directions: nearly the Gaussian (RBF) kernel.

    Parameters
    ----------
    n_components : int
        Number of features, even: a cosine and a sine in each direction.
    gamma : float or "scale"
        Of the kernel exp(-gamma ||s - s'||^2) of the sensors s as shares of their ranges; "scale"
        is 4 divided by their number.
    random_state : int
        The seed that all clients share.
    limits : (low, high), optional
        As for :class:`AdditiveMap`.
    """

    name: ClassVar[str] = "fourier"
    n_components: int = 200
    gamma: Any = "scale"
    random_state: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_count(self.n_components, "features: n_components", 2) % 2:
            raise InvalidInputError(
                "features: n_components", "must be even", f"it is {self.n_components}"
            )
        if isinstance(self.gamma, str):
            check_choice(self.gamma, "features: gamma", ("scale",))
        else:
            check_positive(self.gamma, "features: gamma")
        check_count(self.random_state, "features: random_state", 0)

    def n_outputs(self, n_sensors: int) -> int:  # noqa: ARG002 - as many of any sensors
        """See :class:`FeatureMap`."""
        return self.n_components

    def between(self, low: Array, width: Array) -> FourierFeatures:
        """See :class:`FeatureMap`."""
        gamma = _WIDE / low.size if self.gamma == "scale" else float(self.gamma)
        directions = _directions(self.n_components // 2, low.size, self.random_state)
        return FourierFeatures(low, width, width, np.sqrt(2.0 * gamma) * directions)


def _are_ranges(width: Array) -> bool:
    return bool(((width >= _NARROWEST) & (width <= _WIDEST)).all())


def _check_pairs(pairs: Any) -> tuple[tuple[int, int], ...]:
    """Different sensors, the first one first; none twice."""
    if not isinstance(pairs, list | tuple | np.ndarray):
        raise InvalidInputError(
            "features: pairs", "must be None, 'all' or a list of pairs", f"it is {pairs!r}"
        )
    checked = []
    for pair in pairs:
        i, j = check_pair(pair, "features: pairs", "must be pairs of columns, such as [(0, 1)]")
        i, j = (check_count(at, "features: pairs", 0) for at in (i, j))
        if i == j:
            raise InvalidInputError("features: pairs", "must be of two columns", f"got {pair!r}")
        checked.append((min(i, j), max(i, j)))
    if len({*checked}) < len(checked):
        raise InvalidInputError("features: pairs", "must differ", f"they are {pairs!r}")
    return tuple(sorted(checked))


def _directions(count: int, n_sensors: int, seed: int) -> Array:
    """Rows of independent normal length, at right angles in blocks: fewer waves say the same.

    Orthogonal random features (Yu and others, 2016) have the kernel's mean, and less variance.
    """
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(-(-count // n_sensors)):
        square = np.linalg.qr(rng.normal(size=(n_sensors, n_sensors)))[0]
        lengths = np.linalg.norm(rng.normal(size=(n_sensors, n_sensors)), axis=1)
        blocks.append(lengths[:, None] * square)
    return np.concatenate(blocks)[:count]


_NAMED: dict[str, FeatureMap | None] = {
    "linear": None,
    "additive": AdditiveMap(),
    "additive-pairs": AdditiveMap(pairs="all"),
    "fourier": FourierMap(),
}
NAMES = tuple(_NAMED)
_MAPS: dict[str, type[FeatureMap]] = {one.name: one for one in (AdditiveMap, FourierMap)}


def read_map(features: Any) -> FeatureMap | None:
    """The map of a name, an object, or plain values with the key "map"; None for "linear"."""
    if isinstance(features, FeatureMap):
        return features
    if isinstance(features, Mapping) and "map" in features:
        kind = _MAPS[check_choice(features["map"], "features: map", tuple(_MAPS))]
        given = {name: value for name, value in features.items() if name != "map"}
        unknown = given.keys() - {one.name for one in fields(kind)}
        if unknown:
            raise InvalidInputError(
                "features", f"must name parameters of {kind.__name__}", f"unknown: {unknown}"
            )
        return kind(**given)
    if isinstance(features, str) and features in _NAMED:
        return _NAMED[features]
    raise InvalidInputError(
        "features",
        f"must be one of {', '.join(map(repr, NAMES))}, an AdditiveMap or a FourierMap",
        f"it is {features!r}",
    )


def make_features(features: Any, n_sensors: int, support: Support) -> Features | None:
    """What a model's parameter makes of its sensors; None where they are used as they are."""
    chosen = read_map(features)
    if chosen is None:
        return None
    return chosen.over(n_sensors, check_support(support, n_sensors))


# --- a map with the limits of its sensors ---


@dataclass(frozen=True, eq=False)
class Features(ABC):
    """Features of sensors between agreed limits.

    Attributes
    ----------
    low, width : array of shape (n_sensors,)
        A sensor x counts as the share s = (x - low) / width of its range.
    span : array of shape (n_sensors,)
        What a whole range costs to cross, in the unit of epsilon: ``width`` in training. Readings
        in other units later have another ``width``, and the same price.
    """

    kind: ClassVar[str]
    low: Array
    width: Array
    span: Array

    @property
    def n_sensors(self) -> int:
        """Columns that X must have."""
        return self.low.size

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Columns of the features."""

    @abstractmethod
    def of_shares(self, shares: Array) -> Array:
        """Features of sensors as shares of their ranges; one row for each."""

    @abstractmethod
    def slopes(self, X: Array, weights: Array) -> Array:
        """The gradient of the score in the sensors, row by row; at a knot that of either side."""

    @abstractmethod
    def norm(self, norm: Norm) -> Norm:
        """The transport norm of the features, for one of the sensors."""

    @property
    def groups(self) -> Groups:
        """Sizes of groups of features within which moves add up, [grouped-norm], or None."""
        return None

    @abstractmethod
    def stretch(self, norm: Norm) -> float:
        """L: features move by at most L times what sensors move, groups counted as they are."""

    def steepness(self, weights: Array, norm: Norm) -> float:
        """A Lipschitz constant of the score of these weights, over the sensors: [map]."""
        groups = self.groups if norm != "l1" else None
        return self.stretch(norm) * dual_norm(weights, self.norm(norm), groups)

    @abstractmethod
    def box(self, box: Box) -> Box:
        """Where the features are while the sensors are in a box."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What is not an array, as plain values."""

    def arrays(self) -> dict[str, Array]:
        """By name: what makes the same features again, with ``settings``."""
        return {"low": self.low, "width": self.width, "span": self.span}

    def apply(self, X: Matrix) -> Array:
        """The features of rows of finite readings."""
        if sparse.issparse(X):
            raise UnsupportedError(
                "features: a map makes dense features of all values; give a dense X, or take "
                "features='linear'"
            )
        if X.shape[1] != self.n_sensors:  # one column would be taken for all sensors
            raise InvalidInputError(
                "X", f"must have {self.n_sensors} columns, as the feature map", f"got {X.shape[1]}"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # whoever sums them up refuses infinity
            return np.ascontiguousarray(self.of_shares((X - self.low) / self.width))

    @abstractmethod
    def rounding(self, X: Array) -> Array:
        """By row and feature: how far apart two programs may be, exports among them, [alarm]."""

    def ball(self, epsilon: float, kappa: float, norm: Norm, support: Support) -> dict[str, Any]:
        """The ball around the features that holds a ball around the sensors.

        Groups know no support. Without it the ball is larger, and with groups still much smaller
        than on a box without them: ramps would each pay for a move that only one of them makes.
        """
        stretch, groups = self.stretch(norm), self.groups if norm != "l1" else None
        sensors = check_support(support, self.n_sensors)
        box = None if sensors is None or groups is not None else self.box(sensors)
        return {
            "epsilon": stretch * epsilon,
            "kappa": stretch * kappa,
            "norm": self.norm(norm),
            "groups": groups,
            "support": None if box is None else (box.low, box.high),
        }

    def in_front(self, X: Matrix, ball: Mapping[str, Any]) -> tuple[Array, dict[str, Any]]:
        """What guards a linear model of the features: rows, and a ball's settings by name."""
        agreed = (ball["epsilon"], ball["kappa"], ball["norm"], ball.get("support"))
        return self.apply(X), {**ball, **self.ball(*agreed)}

    def rescaled(self, offset: Array, scale: Array) -> Self:
        """The same features of readings r, where the sensors here are (r - offset) / scale."""
        return replace(self, low=offset + self.low * scale, width=self.width * scale)


@dataclass(frozen=True, eq=False)
class AdditiveFeatures(Features):
    """Ramps of each sensor, then products of coarser ramps of pairs.

        r_k(s) = span clip(s - k/K, 0, 1/K),  k < K; the first and the last go on straight outside
        q_ab   = price clip(s_i - a/m, 0, 1/m) clip(s_j - b/m, 0, 1/m),  a, b < m

    Ramps of a sensor add up to its reading less ``low``, and move one after the other: that is why
    they stretch nothing, and why of their weights only the steepest has a price. In ``price`` =
    span_i span_j / (span_i + span_j) the products of a pair together move no more than one sensor
    where all may be off at once (linf).
    """

    kind: ClassVar[str] = "additive"
    n_knots: int
    pairs: tuple[tuple[int, int], ...]
    pair_knots: int

    @property
    def n_outputs(self) -> int:
        """See :class:`Features`."""
        return self.n_sensors * self.n_knots + len(self.pairs) * self.pair_knots**2

    @property
    def pair_places(self) -> npt.NDArray[np.intp]:
        """First and second sensors of the pairs, in two rows."""
        return np.array(self.pairs, dtype=np.intp).reshape(-1, 2).T

    @property
    def pair_prices(self) -> Array:
        """What products are multiplied by."""
        first, second = self.span[self.pair_places]
        return np.asarray(first * second / (first + second))

    def of_shares(self, shares: Array) -> Array:
        """See :class:`Features`."""
        ramps = self._ramps(shares, self.n_knots, ends=True) * self.span[:, None]
        parts = [ramps.reshape(len(shares), self.n_sensors * self.n_knots)]
        if self.pairs:
            first, second = self.pair_places
            coarse = self._ramps(shares, self.pair_knots, ends=False)
            products = coarse[:, first, :, None] * coarse[:, second, None, :]
            products *= self.pair_prices[:, None, None]
            n_products = len(self.pairs) * self.pair_knots**2
            parts.append(products.reshape(len(shares), n_products))
        return np.concatenate(parts, axis=1)

    def slopes(self, X: Array, weights: Array) -> Array:
        """See :class:`Features`."""
        shares, K, m = (X - self.low) / self.width, self.n_knots, self.pair_knots
        ramps_of, own = self.split(weights)
        piece = np.clip(np.floor(shares * K), 0, K - 1).astype(np.intp)
        found = (ramps_of * self.span[:, None])[np.arange(self.n_sensors), piece]
        if self.pairs:
            first, second = self.pair_places
            ramps = self._ramps(shares, m, ends=False)
            on = np.floor(shares * m)[:, :, None] == np.arange(m)
            along = np.einsum("npa,pab,npb->np", on[:, first], own, ramps[:, second], optimize=True)
            across = np.einsum(
                "npa,pab,npb->np", ramps[:, first], own, on[:, second], optimize=True
            )
            for places, parts in ((first, along), (second, across)):
                np.add.at(found.T, places, parts.T)
        return np.asarray(found / self.width)

    def rounding(self, X: Array) -> Array:
        """See :class:`Features`; exports add curves up piece by piece."""
        return np.asarray(2.0 * (self.n_outputs + 2) * _EPS * np.abs(self.apply(X)))

    @staticmethod
    def _ramps(shares: Array, n_knots: int, *, ends: bool) -> Array:
        """By row, sensor and knot."""
        rises = shares[:, :, None] - np.arange(n_knots) / n_knots
        low, high = np.zeros(n_knots), np.full(n_knots, 1.0 / n_knots)
        if ends:
            low[0], high[-1] = -np.inf, np.inf
        return np.clip(rises, low, high, out=rises)

    def norm(self, norm: Norm) -> Norm:
        """See :class:`Features`."""
        return norm

    @property
    def groups(self) -> tuple[int, ...]:
        """The ramps of each sensor, and the products of each pair."""
        return (self.n_knots,) * self.n_sensors + (self.pair_knots**2,) * len(self.pairs)

    def stretch(self, norm: Norm) -> float:
        """1 without pairs; with them [map-pairs] in docs/maths.md."""
        if norm == "linf" or not self.pairs:
            return 1.0
        own = np.zeros(self.n_sensors)
        for places in self.pair_places:
            slopes = self.pair_prices / self.span[places]
            np.add.at(own, places, slopes if norm == "l1" else 2.0 * slopes**2)
        largest = 1.0 + float(own.max())
        return (largest if norm == "l1" else float(np.sqrt(largest))) * (1.0 + _ROUNDING)

    def steepness(self, weights: Array, norm: Norm) -> float:
        """See :class:`Features`; with pairs each sensor at its steepest, [map-pairs]."""
        bound = super().steepness(weights, norm)
        if not self.pairs:
            return bound
        K, m = self.n_knots, self.pair_knots
        pieces, products = self.split(weights)
        # Each coarse piece meets some fine ones: by sensor and coarse piece, both ends of them.
        meet = (np.arange(K) < np.arange(1, m + 1)[:, None] * K / m) & (
            np.arange(1, K + 1) > np.arange(m)[:, None] * K / m
        )
        low = np.where(meet, pieces[:, None, :], np.inf).min(axis=2)
        high = np.where(meet, pieces[:, None, :], -np.inf).max(axis=2)
        for places, turned in zip(
            self.pair_places, (products, products.swapaxes(1, 2)), strict=True
        ):
            # The other sensor of the pair is at a knot where this one's slope is an extreme.
            sums = np.pad(turned.cumsum(axis=2), ((0, 0), (0, 0), (1, 0))) / m
            sums /= self.span[places][:, None, None]
            np.add.at(low, places, sums.min(axis=2))
            np.add.at(high, places, sums.max(axis=2))
        # Beyond the limits products are constant, and what is left are the curves' ends.
        ends = np.abs(pieces[:, [0, -1]]).max(axis=1)
        steepest = np.maximum(np.maximum(-low, high).max(axis=1), ends)
        return min(bound, dual_norm(steepest, norm) * (1.0 + _ROUNDING))

    def box(self, box: Box) -> Box:
        """Features never fall where sensors rise, in exact numbers and in rounded ones."""
        low, high = self.apply(np.array([box.low, box.high]))
        return Box(low, high)

    def settings(self) -> dict[str, Any]:
        """See :class:`Features`."""
        pairs = [list(pair) for pair in self.pairs]
        return {"n_knots": self.n_knots, "pairs": pairs, "pair_knots": self.pair_knots}

    def split(self, weights: Array) -> tuple[Array, Array]:
        """Weights of ramps by sensor and knot, and those of products, times their prices, by pair.

        Any axes in front are kept.
        """
        n_ramps, m = self.n_sensors * self.n_knots, self.pair_knots
        front = weights.shape[:-1]
        ramps = weights[..., :n_ramps].reshape(*front, self.n_sensors, self.n_knots)
        products = weights[..., n_ramps:].reshape(*front, len(self.pairs), m, m)
        return ramps, products * self.pair_prices[:, None, None]

    def curves(self, weights: Array) -> tuple[Array, Array]:
        """What each sensor adds to a score: readings at the knots, and the values there.

        Two arrays of shape (n_sensors, n_knots + 1). Between knots, and beyond the last ones, the
        curves are straight; all are 0 at the lower limit.
        """
        knots = np.arange(self.n_knots + 1) / self.n_knots
        rises = self.split(weights)[0] * self.span[:, None] / self.n_knots
        values = np.concatenate([np.zeros((self.n_sensors, 1)), np.cumsum(rises, axis=1)], axis=1)
        return self.low[:, None] + self.width[:, None] * knots, values

    def surfaces(self, weights: Array) -> Array:
        """What each pair adds to a score, of shape (n_pairs, pair_knots + 1, pair_knots + 1).

        At shares 0, 1/m, ..., 1 of both ranges; bilinear between, constant beyond.
        """
        m = self.pair_knots
        values = np.zeros((len(self.pairs), m + 1, m + 1))
        steps = self.split(weights)[1] / m**2
        values[:, 1:, 1:] = steps.cumsum(axis=1).cumsum(axis=2)
        return values

    def pair_slopes(self, weights: Array) -> Array:
        """How steep the surfaces of each sensor can be together, per unit of its reading."""
        surfaces, steepest = self.surfaces(weights), np.zeros(self.n_sensors)
        for axis, sensors in enumerate(self.pair_places, start=1):
            rises = np.abs(np.diff(surfaces, axis=axis)).max(axis=(1, 2)) * self.pair_knots
            np.add.at(steepest, sensors, rises / self.width[sensors])
        return steepest


@dataclass(frozen=True, eq=False)
class FourierFeatures(Features):
    """Cosines and sines of the shares along the rows of ``frequencies``, in all of length 1.

        phi(s) = (cos W s, sin W s) / sqrt(D/2)

    Attributes
    ----------
    frequencies : array of shape (n_outputs / 2, n_sensors)
        W, in radians per range.
    """

    kind: ClassVar[str] = "fourier"
    frequencies: Array

    @property
    def n_outputs(self) -> int:
        """See :class:`Features`."""
        return 2 * len(self.frequencies)

    @property
    def scale(self) -> float:
        """1 / sqrt(D/2)."""
        return float(1.0 / np.sqrt(len(self.frequencies)))

    def of_shares(self, shares: Array) -> Array:
        """See :class:`Features`."""
        phases = shares @ self.frequencies.T
        return np.concatenate([np.cos(phases), np.sin(phases)], axis=1) * self.scale

    def slopes(self, X: Array, weights: Array) -> Array:
        """See :class:`Features`."""
        phases = (X - self.low) / self.width @ self.frequencies.T
        cosines, sines = weights.reshape(2, -1) * self.scale
        turns = sines * np.cos(phases) - cosines * np.sin(phases)
        return np.asarray(turns @ self.frequencies / self.width)

    def rounding(self, X: Array) -> Array:
        """See :class:`Features`; phases are sums themselves."""
        with np.errstate(over="ignore"):
            shares = np.abs((X - self.low) / self.width)
            sizes = (self.n_sensors + 2) * (shares @ np.abs(self.frequencies).T) + 4.0
        return np.concatenate([sizes, sizes], axis=1) * (self.scale * _EPS)

    def norm(self, norm: Norm) -> Norm:  # noqa: ARG002 - whatever the sensors' is
        """Euclidean: waves move along circles."""
        return "l2"

    def stretch(self, norm: Norm) -> float:
        """The largest ||W (delta / span)||_2 / sqrt(D/2) over moves delta of length 1."""
        moves = self.frequencies / self.span * self.scale
        if norm == "l1":
            largest = float(np.linalg.norm(moves, axis=0).max())
        elif norm == "l2":
            largest = float(np.linalg.norm(moves, ord=2))
        elif self.n_sensors <= _MOST_CORNERS:  # the largest over a cube is at a corner
            gram, corners = moves.T @ moves, _corners(self.n_sensors)
            squares = np.einsum("ci,ij,cj->c", corners, gram, corners, optimize=True)
            largest = float(np.sqrt(squares.max()))
        else:  # of too many corners a bound
            by_size = np.sqrt(self.n_sensors) * np.linalg.norm(moves, ord=2)
            largest = float(min(by_size, np.sqrt(np.abs(moves.T @ moves).sum())))
        return largest * (1.0 + _ROUNDING)

    def steepness(self, weights: Array, norm: Norm) -> float:
        """See :class:`Features`; as if all waves could be at their steepest, [map-fourier]."""
        bound = super().steepness(weights, norm)
        heights = np.hypot(*weights.reshape(2, -1)) * self.scale
        turns = self.frequencies / self.span
        if norm == "l1":
            steepest = float((heights @ np.abs(turns)).max())
        elif norm == "linf" and self.n_sensors <= _MOST_CORNERS:
            steepest = float((np.abs(_corners(self.n_sensors) @ turns.T) @ heights).max())
        else:
            steepest = _longest_sum(heights, turns)
            steepest *= np.sqrt(self.n_sensors) if norm == "linf" else 1.0
        return min(bound, steepest * (1.0 + _ROUNDING))

    def box(self, box: Box) -> Box:  # noqa: ARG002 - a wave may be anywhere in it
        """Waves stay between -1 and 1, times their scale."""
        most = np.full(self.n_outputs, self.scale)
        return Box(-most, most)

    def settings(self) -> dict[str, Any]:
        """See :class:`Features`."""
        return {}

    def arrays(self) -> dict[str, Array]:
        """See :class:`Features`."""
        return {**super().arrays(), "frequencies": self.frequencies}


def _corners(n_sensors: int) -> Array:
    """Of the cube |s| <= 1, one of s and -s each: what is measured there is the same for both."""
    places = np.arange(2 ** (n_sensors - 1))[:, None] >> np.arange(n_sensors) & 1
    return np.asarray(1.0 - 2.0 * places)


def _longest_sum(heights: Array, turns: Array) -> float:
    """A bound on ||sum_k c_k heights_k turns_k||_2 over all |c_k| <= 1.

    For every density P the root of sum(t) times the largest eigenvalue of sum_k heights_k^2 / t_k
    turns_k turns_k' is one, with t_k = heights_k sqrt(turns_k' P turns_k); multiplicative steps
    take P to the best.
    """
    n_sensors = turns.shape[1]
    density, best = np.eye(n_sensors) / n_sensors, np.inf
    for _ in range(_DENSITIES):
        lengths = np.sqrt(np.maximum(np.einsum("kp,pq,kq->k", turns, density, turns), 1e-300))
        pull = (turns.T * (heights / lengths)) @ turns
        best = min(best, float(heights @ lengths) * float(np.linalg.eigvalsh(pull)[-1]))
        sizes, axes = np.linalg.eigh(density)
        root = (axes * np.sqrt(np.maximum(sizes, 0.0))) @ axes.T
        density = root @ pull @ root
        density /= max(float(np.trace(density)), 1e-300)
    return float(np.sqrt(best))


_FEATURES: dict[str, type[Features]] = {
    one.kind: one for one in (AdditiveFeatures, FourierFeatures)
}


def read_features(kind: Any, settings: Mapping[str, Any], arrays: Mapping[str, Array]) -> Features:
    """Features from a file: their kind, plain values and arrays, checked."""
    made = _FEATURES[check_choice(kind, "features: kind", tuple(_FEATURES))]
    names = {one.name for one in fields(made)}
    given = {**settings, **arrays}
    if given.keys() != names:
        raise InvalidInputError(
            "features", f"must have {sorted(names)}", f"there are {sorted(given)}"
        )
    n_sensors = np.size(given["low"])
    for name in ("low", "width", "span"):
        given[name] = check_vector(given[name], f"features: {name}", n_sensors, "sensors")
        if name != "low" and not _are_ranges(given[name]):
            rule = f"must be from {_NARROWEST:g} to {_WIDEST:g}"
            raise InvalidInputError(f"features: {name}", rule, "some are not")
    if made is AdditiveFeatures:
        placed = AdditiveMap(**settings).between(given["low"], given["width"])
        return replace(placed, span=given["span"])
    frequencies = np.asarray(given["frequencies"], dtype=np.float64)
    if frequencies.ndim != 2 or frequencies.shape[1] != n_sensors or not frequencies.size:
        raise InvalidInputError(
            "features: frequencies",
            f"must have one column for each of {n_sensors} sensors",
            f"their shape is {frequencies.shape}",
        )
    if not np.isfinite(frequencies).all():
        raise InvalidInputError("features: frequencies", "must be finite", "some are not")
    return made(**{**given, "frequencies": frequencies})
