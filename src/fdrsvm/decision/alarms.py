"""Alarms with a bound on the rate of false ones, by split conformal on healthy rows: [alarm].

Given    fault scores of n healthy rows that were not used in training, without the highest
         floor(trim n); m are left, in order z_1 <= ... <= z_m
Alarm    where the fault score of a new row is above z_k
Rate     k = ceil((m + 1) (1 - rate)): a new healthy row sets it off with probability <= rate,
         over the draw of all rows
Sure     k least with P(Bin(m, 1 - rate) <= k - 1) >= confidence: with this probability over the
         draw of the m rows, the share of healthy rows that set it off is <= rate
Needs    k <= m: (m + 1) rate >= 1, or (1 - rate)^m <= 1 - confidence

No distribution is assumed, only that healthy rows to come are like those given. Numbers are taken
as the decimals that they are written as: 0.05 is 1/20.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fdrsvm.core.arrays import Array, check_matrix
from fdrsvm.data.training_data import check_clients, rows_by_client
from fdrsvm.decision.goals import positive_class, share_limits
from fdrsvm.decision.valleys import rows_above_valley
from fdrsvm.errors import InvalidInputError, MixedInFaultsWarning, UnsupportedError
from fdrsvm.model.linear_model import ALARM, POSITIVE, LinearModel
from fdrsvm.model.reading import read_linear

LOWEST_RATE = 1e-9
READINGS_A_WEEK = 7 * 24 * 60  # at one a minute
MOST = 0.75  # of healthy rows: a model that takes so many for faults has another fault class
_CLOSE = 1e-9  # of a probability: closer ones are compared as fractions, ...
_EXACT_ROWS = 10_000  # ... of this many rows at most; of more they count as too large


class AlarmThreshold(BaseEstimator):  # type: ignore[misc]
    """Where to cut a model's score so that few healthy readings set off an alarm: [alarm].

    Parameters
    ----------
    rate : float, default=0.01
        A new healthy row sets off the alarm with at most this probability. 0.05 needs 19 healthy
        rows, 0.01 needs 99.
    confidence : float, optional
        The probability, over the draw of the rows given, that no larger share of healthy rows sets
        off the alarm. By default ``rate`` holds on average over such draws. With 0.9 a rate of 0.05
        needs 45 rows, 0.01 needs 230.
    trim : float, default=0.0
        Share of the rows with the highest fault scores to leave out, below 1/2: faults that are
        mixed in. ``rate`` then holds if those left out are all the faults there are; what holds in
        any case is in the statement.
    pos_label : label, optional
        The fault, also as text; by default the class that the model looks for.

    Attributes
    ----------
    alarms_ : dict
        What is promised of the alarms of each client, a ``PlantAlarm``; None is the only key where
        rows had no clients.
    thresholds_ : dict
        For each client the fault score above which there is an alarm.
    threshold_ : float
        The same where rows had no clients.
    model_ : LinearModel
        Where rows had no clients: the model with this threshold, whose files and exports carry it
        and the statement. ``model_for`` gives each client's.
    n_rows_ : int
        Healthy rows, over all clients.
    statement_ : str
        What is promised, in words; a line for each client.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.arange(200.0)[:, None], np.arange(200) >= 100
    >>> model = LogisticRegression().fit(X, y)
    >>> alarm = AlarmThreshold(rate=0.05).fit(model, np.arange(19.0)[:, None])
    >>> alarm.alarms([[18.0], [18.5]])
    array([False,  True])
    """

    alarms_: dict[Any, PlantAlarm]

    def __init__(
        self,
        rate: float = 0.01,
        confidence: float | None = None,
        trim: float = 0.0,
        pos_label: Any = None,
    ) -> None:
        self.rate = rate
        self.confidence = confidence
        self.trim = trim
        self.pos_label = pos_label

    def fit(self, model: Any, X_healthy: Any, clients: Any = None) -> Self:
        """Set one threshold, or one for each client.

        Parameters
        ----------
        model : LinearModel or fitted linear classifier
            Of two classes. It must not have been trained on these rows.
        X_healthy : array, DataFrame or sparse matrix of shape (n_rows, n_features)
            Rows without a fault, as the model takes them (scaled, if it was trained so).
        clients : array of shape (n_rows,) or name of a column of X_healthy, optional
            Whose row it is. One threshold for unlike plants would break the rate at some of them.

        Raises
        ------
        InvalidInputError
            If a client has too few rows for the rate; it says how many are needed.
        UnsupportedError
            If the model has more than two classes.
        """
        wish = Wish.checked(self.rate, self.confidence, self.trim)
        X_healthy, clients = _split_clients(X_healthy, clients)
        if isinstance(clients, str):
            rule = "must be one label for each row, or a column of X_healthy"
            raise InvalidInputError("clients", rule, f"there is no column {clients!r}")
        self._linear = with_fault(model, self.pos_label)
        scores = self._linear.decision_function(X_healthy)
        if self._linear.positive != 1:  # larger the more a row looks like a fault
            scores = -scores
        rounding = _rounding(self._linear, X_healthy)
        names, groups = rows_by_client(check_clients(clients, len(scores)))
        keys = [None] if clients is None else names.tolist()
        members = dict(zip(keys, groups, strict=True))
        wish.check_enough({key: len(scores[rows]) for key, rows in members.items()})
        self.alarms_ = {
            key: wish.promise(scores[rows], rounding, key) for key, rows in members.items()
        }
        for key, rows in members.items():
            for found in suspicions(self._linear, scores[rows], self.alarms_[key], rounding):
                warnings.warn(MixedInFaultsWarning(found), stacklevel=2)
        for name in ("threshold_", "model_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.n_rows_ = len(scores)
        self.thresholds_ = {key: promise.threshold for key, promise in self.alarms_.items()}
        self.statement_ = "\n".join(promise.statement for promise in self.alarms_.values())
        if clients is None:
            self.threshold_, self.model_ = self.thresholds_[None], self.model_for(None)
        return self

    def alarms(self, X: Any, client: Any = None) -> npt.NDArray[np.bool_]:
        """Whether each row sets off the alarm.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
        client : label, array of shape (n_samples,) or name of a column of X, optional
            Whose rows they are; needed if there are thresholds of several clients.
        """
        check_is_fitted(self)
        X, client = _split_clients(X, client)
        scores = self._linear.decision_function(X)
        if np.ndim(client) == 0:
            cuts = np.full(len(scores), self.model_for(client).threshold)
        else:
            names, groups = rows_by_client(check_clients(client, len(scores)))
            cuts = np.empty(len(scores))
            for name, rows in zip(names.tolist(), groups, strict=True):
                cuts[rows] = self.model_for(name).threshold
        return np.asarray((scores > cuts) == (self._linear.positive == 1))

    def model_for(self, client: Any = None) -> LinearModel:
        """The model with a client's threshold; None will do if there is only one."""
        check_is_fitted(self)
        if client is None and len(self.alarms_) == 1:
            (client,) = self.alarms_
        if client not in self.alarms_:
            names = [name for name in self.alarms_ if name is not None]
            rule = f"must be one of {names}" if names else "must be None: the rows had no clients"
            raise InvalidInputError("client", rule, f"it is {client!r}")
        promise = self.alarms_[client]
        return self._linear.cut_at(promise.cut_for(self._linear.positive)).with_record(
            **{ALARM: promise.to_record()}
        )


# --- what is asked for, and which row gives it ---


@dataclass(frozen=True)
class Wish:
    """A false-alarm rate and how sure it shall be, as the decimals that were written."""

    rate: Fraction
    confidence: Fraction | None
    trim: Fraction

    @classmethod
    def checked(cls, rate: Any, confidence: Any = None, trim: Any = 0.0) -> Wish:
        """From what a user gives."""
        return cls(
            _share(
                rate, "rate", f"at least {LOWEST_RATE:g} and below 1 (0.01 is 1 %)", LOWEST_RATE
            ),
            None
            if confidence is None
            else _share(
                confidence, "confidence", "above 0 and below 1 (0.9 is 90 %), or None", None
            ),
            _share(trim, "trim", "at least 0 and below 1/2 (0.05 is 5 %)", 0.0, Fraction(1, 2)),
        )

    def n_kept(self, n_rows: int) -> int:
        """Rows that are left when the share to trim is left out."""
        return n_rows - math.floor(self.trim * n_rows)

    def rank(self, n_kept: int) -> int:
        """Which of the scores in order, from 1, is the threshold; above n_kept if none will do."""
        if self.confidence is None:
            return math.ceil((n_kept + 1) * (1 - self.rate))
        ranks = range(1, n_kept + 1)
        return 1 + bisect_left(ranks, True, key=lambda rank: self.is_sure(n_kept, rank))

    def is_sure(self, n_kept: int, rank: int) -> bool:
        """Whether P(Bin(n_kept, 1 - rate) <= rank - 1) >= confidence."""
        assert self.confidence is not None
        doubt = 1 - self.confidence
        tail = float(bdtr(n_kept - rank, n_kept, float(self.rate)))
        if abs(tail - float(doubt)) > _CLOSE * float(doubt) or n_kept > _EXACT_ROWS:
            return bool(tail < float(doubt) * (1.0 - _CLOSE))
        rare, whole = self.rate.as_integer_ratio()
        term = total = (whole - rare) ** n_kept
        for n in range(n_kept - rank):  # C(N, n + 1) rare^(n + 1) (whole - rare)^(N - n - 1)
            term = term * (n_kept - n) * rare // ((n + 1) * (whole - rare))
            total += term
        return bool(total <= doubt * whole**n_kept)

    def least_rows(self) -> int:
        """How many healthy rows are needed, those to be left out among them."""
        if self.confidence is None:
            n_kept = math.ceil(1 / self.rate) - 1
        else:
            guess = math.log(1 - self.confidence) / math.log1p(-float(self.rate))
            sizes = range(1, math.ceil(guess * (1.0 + 2.0 * _CLOSE)) + 3)
            n_kept = 1 + bisect_left(sizes, True, key=lambda size: self.is_sure(size, size))
        return math.floor((n_kept - 1) / (1 - self.trim)) + 1

    def check_enough(self, counts: Mapping[Any, int]) -> None:
        """Every client must have the rows that it takes."""
        needed = self.least_rows()
        few = {client: n for client, n in counts.items() if n < needed}
        if not few:
            return
        asked = f"a rate of {_percent(float(self.rate))}"
        if self.confidence is not None:
            asked += f" with a confidence of {_percent(float(self.confidence))}"
        if self.trim:
            asked += f" and {_percent(float(self.trim))} left out"
        of_whom = "" if None in counts else " of every client"
        lowest = self.lowest_rate(min(few.values()))
        have = ", ".join(
            f"there are {n}" if client is None else f"client {client!r} has {n}"
            for client, n in few.items()
        )
        leave = "" if None in counts or len(few) == len(counts) else ", leave these clients out"
        raise InvalidInputError(
            "X_healthy",
            f"must hold at least {needed} healthy rows{of_whom} for {asked}",
            f"{have}; record more{leave}"
            + (f", or ask for a rate of {lowest:g} or more" if lowest < 1.0 else ""),
        )

    def lowest_rate(self, n_rows: int) -> float:
        """The least rate, to two digits, for which this many rows are enough."""
        n_kept = self.n_kept(n_rows)
        if self.confidence is None:
            lowest = 1.0 / (n_kept + 1)
        else:
            lowest = -math.expm1(math.log1p(-float(self.confidence)) / n_kept)
        step = 10.0 ** (math.floor(math.log10(lowest)) - 1)
        return float(f"{math.ceil(lowest / step * (1.0 + _CLOSE)) * step:.2g}")

    def promise(self, scores: Array, rounding: float, client: Any) -> PlantAlarm:
        """The threshold of a client's fault scores, of which there are enough."""
        ordered, n_rows = np.sort(scores), len(scores)
        n_kept = self.n_kept(n_rows)
        rank, n_left_out = self.rank(n_kept), n_rows - n_kept
        # Sums in another order, as in other batches and exports, differ in their last bits: rows
        # that are equal to that of the threshold must not set off the alarm then.
        n_equal = np.count_nonzero(np.abs(ordered - ordered[rank - 1]) <= rounding)
        worst = min(1.0, (n_rows + 1 - rank) / (n_kept + 1))
        if self.confidence is not None:
            n_above = min(n_kept, n_rows - rank)  # of the kept ones, if those left out are healthy
            worst = float(share_limits(n_above, n_kept, float(1 - self.confidence))[1])
        return PlantAlarm(
            client=client,
            rate=float(self.rate),
            confidence=None if self.confidence is None else float(self.confidence),
            trim=float(self.trim),
            n_rows=n_rows,
            n_left_out=n_left_out,
            threshold=float(ordered[rank - 1]),
            margin=rounding if n_equal > 1 else 0.0,
            expected_rate=(n_kept + 1 - rank) / (n_kept + 1),
            worst_rate=worst,
        )


def _share(
    value: Any, argument: str, rule: str, least: float | None, below: Fraction = Fraction(1)
) -> Fraction:
    """A number as the decimal that it is written as; ``least`` None is above 0."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    number = float(value) if is_number and not isinstance(value, bool) else math.nan
    if not (number > 0.0 if least is None else number >= least) or not number < below:
        raise InvalidInputError(argument, f"must be {rule}", f"it is {value!r}")
    return Fraction(repr(number))


@dataclass(frozen=True)
class PlantAlarm:
    """What is promised of a client's alarms.

    Attributes
    ----------
    client : label or None
        Whose they are.
    rate, confidence, trim : float
        As asked for.
    n_rows, n_left_out : int
        Rows that were given, and how many with the highest scores were left out.
    threshold : float
        The fault score above which there is an alarm.
    margin : float
        Added to it where rows equal to that of the threshold might else set off the alarm, because
        their scores were summed in another order; mostly 0.
    expected_rate : float
        How often healthy rows set off the alarm, on average over such draws, at most.
    worst_rate : float
        In place of ``rate`` what holds even if rows other than those left out were faults, as many
        or fewer.
    """

    client: Any
    rate: float
    confidence: float | None
    trim: float
    n_rows: int
    n_left_out: int
    threshold: float
    margin: float
    expected_rate: float
    worst_rate: float

    @property
    def statement(self) -> str:
        """What is promised, in words."""
        name = "" if self.client is None else str(self.client)
        whose = f" of {'' if name.lower().startswith('plant') else 'plant '}{name}" if name else ""
        sure = (
            "" if self.confidence is None else f"With a confidence of {_percent(self.confidence)}, "
        )
        weekly = self.rate * READINGS_A_WEEK
        count = f"{weekly:,.0f}" if weekly >= 10.0 else f"{weekly:.2g}"
        holds = (
            f"{sure}a healthy reading{whose} sets off the alarm with a probability of at most "
            f"{_percent(self.rate)}: at one reading a minute about {count} false alarms a week at "
            "most. It holds as long as healthy readings are like the "
            f"{self.n_rows - self.n_left_out} that the threshold was set on"
        )
        if self.n_left_out:
            holds += (
                f", and if the {self.n_left_out} of {self.n_rows} rows with the highest scores, "
                "which were left out, were all the faults among them; if as many or fewer others "
                f"were faults, the probability is at most {_percent(self.worst_rate, up=True)}"
            )
        return f"{holds[0].upper()}{holds[1:]}."

    def cut_for(self, positive: int | None) -> float:
        """The model's threshold, of which a score equal to ours sets off no alarm."""
        highest = self.threshold + self.margin
        return highest if positive == 1 else float(np.nextafter(-highest, -np.inf))

    def to_record(self) -> dict[str, Any]:
        """Plain values for the model's file."""
        return {**vars(self), "statement": self.statement}


def _percent(share: float, *, up: bool = False) -> str:
    """To four digits; a bound is rounded up."""
    percent = Fraction(repr(share)) * 100
    digits = 10 ** max(0, 3 - math.floor(math.log10(percent))) if percent else 1
    shown = float(math.ceil(percent * digits) / digits if up else percent)
    return f"{shown:.10g} %"


# --- rows ---


def _split_clients(X: Any, clients: Any) -> tuple[Any, Any]:
    """A column that names the clients, apart from the others; else both as they are."""
    columns = list(getattr(X, "columns", ()))
    if not isinstance(clients, str) or clients not in columns:
        return X, clients
    return X[[name for name in columns if name != clients]], np.asarray(X[clients])


def with_fault(model: Any, pos_label: Any = None, argument: str = "pos_label") -> LinearModel:
    """A model of two classes that knows which is the fault; our own keep their certificate."""
    linear = read_linear(model)
    own = getattr(model, "_linear_model", None)
    linear = linear if own is None else own()
    if linear.positive is None:
        raise UnsupportedError(
            f"alarms are for two classes, healthy and fault; the model has {len(linear.classes)}: "
            "train one with two labels"
        )
    if pos_label is None:
        return linear
    same = [label for label in linear.classes if label == pos_label]  # 1 and 1.0
    place = positive_class(linear.classes, (0, 0), same[0] if same else pos_label, argument)
    return linear.with_record(**{POSITIVE: linear.classes[place or 0]})


def _rounding(linear: LinearModel, X: Any) -> float:
    """How far two sums for the same row's score can differ: (P + 2) eps sum |w_j x_j|, [alarm]."""
    matrix = check_matrix(X)
    weights, eps = np.abs(linear.coef[0]), np.finfo(np.float64).eps
    with np.errstate(over="ignore"):
        sizes = abs(linear.of_sensors(matrix)) @ weights + np.abs(linear.intercept[0])
        bounds = (weights.size + 2) * eps * sizes
        if linear.features is not None:
            bounds = bounds + linear.features.rounding(matrix) @ weights
    bound = float(np.max(bounds))
    return bound if math.isfinite(bound) else 0.0


def suspicions(
    linear: LinearModel, scores: Array, promise: PlantAlarm, rounding: float
) -> Iterator[str]:
    """What speaks against all rows being healthy, each with a remedy."""
    whose = "" if promise.client is None else f" of client {promise.client!r}"
    kept = np.sort(scores)[: promise.n_rows - promise.n_left_out]
    n_apart = rows_above_valley(kept, rounding)
    if n_apart:
        share = math.ceil(1000 * (n_apart + promise.n_left_out) / promise.n_rows) / 1000
        trim = f"leave out that share (trim={share:g}; fdrsvm alarm --trim {share:g})"
        yield (
            f"the {n_apart} highest fault scores of {len(kept)} healthy rows{whose} lie apart from "
            "the others: they may be faults, and the alarm would then find few faults like them; "
            "look at these rows, and if they are faults, give only rows that are healthy"
            f"{', or ' + trim if share < 0.5 else ''}"
        )
    fault = linear.classes[linear.positive or 0]
    is_second = scores > linear.threshold if linear.positive == 1 else -scores > linear.threshold
    n_called = int(np.count_nonzero(is_second == (linear.positive == 1)))
    if n_called > MOST * promise.n_rows:
        yield (
            f"the model takes {n_called} of {promise.n_rows} healthy rows{whose} for {fault!r}: "
            "give rows that are healthy and as the model takes them (units, scaling), or name "
            "another class as the fault (pos_label; fdrsvm alarm --fault)"
        )
