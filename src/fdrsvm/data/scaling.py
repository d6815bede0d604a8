"""Scalers fitted from clients' summaries, so that rows never meet.

A scaler is two plain functions: ``summarise`` runs at a client and turns its rows into a few
numbers, ``combine`` runs at the server and turns summaries into one. ``fit(X, clients=...)`` plays
both parts in one process; ``fit_summaries`` takes summaries that came from elsewhere.

What leaves a client is said in the notes of each class: nothing with agreed limits, else two
numbers per feature, which are readings or tell of them.

The scalers of scikit-learn are not underneath: its ``MinMaxScaler`` multiplies and adds, so that
values leave the unit box by rounding, and on CSR its ``StandardScaler`` multiplies by a reciprocal.

A summary has no column names: all clients must keep one order of columns, which is what
:class:`fdrsvm.data.contract.FeatureContract` is for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fdrsvm.core.arrays import (
    Array,
    Matrix,
    check_flag,
    check_matrix,
    check_non_negative,
    check_vector,
    column_label,
    refuse_stand_ins,
)
from fdrsvm.core.vectors import weighted_sum
from fdrsvm.data.training_data import check_clients, check_weights, rows_by_client
from fdrsvm.errors import InvalidInputError, NumericalError
from fdrsvm.risk.ball import check_bounds, check_pair

__all__ = [
    "FederatedMinMaxScaler",
    "FederatedStandardScaler",
    "MinMaxSummary",
    "MomentSummary",
]

_EPS = float(np.finfo(np.float64).eps)
_CONSTANT = 10 * _EPS  # a standard deviation this small beside the mean is rounding
_MAX_COLUMNS_NAMED = 5


class _Summary:
    """Vectors with one entry per feature, which nobody can change."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return max(np.size(value) for value in vars(self).values())

    def _freeze(self, *names: str) -> list[Array]:
        """The vectors of these names, checked and copied."""
        frozen: list[Array] = []
        for name in names:
            value = getattr(self, name)
            size = frozen[0].size if frozen else _length(value) or 1
            vector = check_vector(value, name, size, "features").copy()
            vector.flags.writeable = False
            object.__setattr__(self, name, vector)
            frozen.append(vector)
        return frozen


@dataclass(frozen=True, eq=False)
class MinMaxSummary(_Summary):
    """What leaves a client for :class:`FederatedMinMaxScaler`: 2 P numbers.

    Attributes
    ----------
    low, high : ndarray of shape (n_features,)
        The smallest and the largest value of each feature.
    """

    low: Array
    high: Array

    def __post_init__(self) -> None:
        low, high = self._freeze("low", "high")
        _refuse_columns(low > high, "low", "must not exceed high", "does")


@dataclass(frozen=True, eq=False)
class MomentSummary(_Summary):
    """What leaves a client for :class:`FederatedStandardScaler`: 2 P + 1 numbers.

    Attributes
    ----------
    weight : float
        Number of rows, or the sum of their weights.
    mean, variance : ndarray of shape (n_features,)
        Of each feature over these rows; the variance is about this mean and divides by ``weight``.
    """

    weight: float
    mean: Array
    variance: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", check_non_negative(self.weight, "weight"))
        _, variance = self._freeze("mean", "variance")
        _refuse_columns(variance < 0.0, "variance", "must not be negative", "is")


class _Scaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both scalers share: rows as they come, columns, and answers that fit into float64."""

    def _refuse_sparse(self, X: Any) -> None:
        """Where zeros would be filled."""
        raise NotImplementedError

    def _read(self, X: Any, *, reset: bool = False, is_scaled: bool = False) -> Matrix:
        """X with the columns of ``fit``; with ``reset`` they are learnt from it."""
        if not reset:
            check_is_fitted(self)
        self._refuse_sparse(X)
        refuse_stand_ins(X, "X")
        if not is_scaled:
            return validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=reset)
        # Not by ``validate_data``: an array that ``transform`` made has no names, and need not.
        X = check_array(X, dtype=np.float64, accept_sparse="csr")
        if X.shape[1] != self.n_features_in_:
            raise InvalidInputError(
                "X", f"must have the {self.n_features_in_} features of fit", f"it has {X.shape[1]}"
            )
        return X

    def transform(self, X: Any) -> Matrix:
        """X shifted and scaled: a dense array, or CSR if X is sparse."""
        X = self._within_limits(self._read(X))
        offset, scale = self._offset_and_scale()
        with np.errstate(over="ignore"):
            if sparse.issparse(X):
                return _replace_stored(X, X.data / scale[X.indices])
            scaled = X / scale if offset is None else (X - offset) / scale
        return self._check_finite(scaled, "scaled value")

    def inverse_transform(self, X: Any) -> Matrix:
        """What was scaled to X; a value that was moved to a limit comes back as the limit."""
        X = self._read(X, is_scaled=True)
        offset, scale = self._offset_and_scale()
        with np.errstate(over="ignore"):
            if sparse.issparse(X):
                return _replace_stored(X, X.data * scale[X.indices])
            original = X * scale if offset is None else X * scale + offset
        return self._check_finite(original, "original value")

    def _offset_and_scale(self) -> tuple[Array | None, Array]:
        """What a feature is shifted by, if at all, and then divided by."""
        raise NotImplementedError

    def _within_limits(self, X: Matrix) -> Matrix:
        """Rows as they are transformed."""
        return X

    def _set_features(self, n_features: int, feature_names: Any) -> None:
        """What ``validate_data`` does, where there is no X."""
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if feature_names is not None:
            self.feature_names_in_ = _check_names(feature_names, n_features)
        self.n_features_in_ = n_features

    def _check_finite(self, values: Array, what: str) -> Array:
        return _check_representable(values, what, getattr(self, "feature_names_in_", None))


class FederatedMinMaxScaler(_Scaler):
    """Maps each feature to the interval from 0 to 1, by agreed limits or by the range of the data.

    Values within the range map into the interval exactly, not up to rounding, so that the result
    lies in the support ``"unit-box"``. A feature without a range maps to 0. NaN is refused.

    Parameters
    ----------
    limits : pair (low, high), optional
        Agreed engineering limits: numbers, or one per feature. Nothing is then learnt from rows,
        and transforming a value outside is an error unless ``clip``. Without limits the range is
        that of all clients' rows, and values outside, which later rows may have, map to numbers
        below 0 or above 1 unless ``clip``.
    clip : bool, default False
        Move values outside to the nearer end; ``count_outside`` tells how many there are.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_features,)
        What maps to 0, and to 1.
    range_ : ndarray of shape (n_features,)
        ``high_ - low_``, and 1 where that is 0.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names.

    Notes
    -----
    Privacy: without limits 2 P numbers leave a client, and they are readings: an extreme value of
    one client becomes known to all. With limits nothing leaves it.

    Unlike scikit-learn's ``MinMaxScaler``, a feature is constant only if its range is 0 and not
    when it is below 2e-15, so that small units do no harm.

    Examples
    --------
    One process that plays all clients:

    >>> from fdrsvm.data.scaling import FederatedMinMaxScaler
    >>> X, plants = [[1.0, 20.0], [3.0, 40.0], [5.0, 30.0]], ["a", "a", "b"]
    >>> FederatedMinMaxScaler().fit_transform(X, clients=plants).tolist()
    [[0.0, 0.0], [0.5, 1.0], [1.0, 0.5]]

    The same on a federation: each plant summarises, the server combines.

    >>> messages = [FederatedMinMaxScaler.summarise(rows) for rows in (X[:2], X[2:])]
    >>> FederatedMinMaxScaler().fit_summaries(messages).transform(X).tolist()
    [[0.0, 0.0], [0.5, 1.0], [1.0, 0.5]]
    """

    def __init__(self, limits: Any = None, clip: bool = False) -> None:
        self.limits = limits
        self.clip = clip

    @staticmethod
    def summarise(X: Any) -> MinMaxSummary:
        """The client's part: the range of each feature, 2 P numbers."""
        FederatedMinMaxScaler._refuse_sparse(X)
        X = check_matrix(X)
        return MinMaxSummary(X.min(axis=0), X.max(axis=0))

    @staticmethod
    def combine(summaries: Iterable[MinMaxSummary]) -> MinMaxSummary:
        """The server's part: the summary of all rows from those of the clients, in any order."""
        parts = _check_summaries(summaries, MinMaxSummary)
        return MinMaxSummary(
            np.min([part.low for part in parts], axis=0),
            np.max([part.high for part in parts], axis=0),
        )

    def fit(self, X: Any, y: Any = None, *, clients: Any = None) -> Self:  # noqa: ARG002
        """Summarise each client's rows and combine; with limits, only learn the columns.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored
        clients : array of shape (n_samples,), optional
            A client label for each row. None means one client.
        """
        X = self._read(X, reset=True)
        groups = _groups(clients, X.shape[0])
        if self.limits is None:
            summary = self.combine([self.summarise(X[rows]) for rows in groups])
        else:
            pair = check_pair(self.limits, "limits")
            summary = MinMaxSummary(*check_bounds(pair, "limits", X.shape[1]))
        return self._set_range(summary)

    def fit_summaries(
        self, summaries: Iterable[MinMaxSummary] = (), feature_names: Any = None
    ) -> Self:
        """Fit without rows.

        Parameters
        ----------
        summaries : MinMaxSummary, one per client
            None at all if there are limits, since then nothing needs to leave a client.
        feature_names : sequence of str, optional
            Become ``feature_names_in_``. Needed if the limits are two numbers, which do not tell
            how many features there are.
        """
        if self.limits is None:
            summary = self.combine(summaries)
        else:
            if list(summaries):
                raise InvalidInputError(
                    "summaries",
                    "must be empty if limits are agreed, so that nothing leaves a client",
                    "there are some",
                )
            pair = check_pair(self.limits, "limits")
            lengths = [_length(value) for value in (feature_names, *pair)]
            known = [length for length in lengths if length is not None]
            if not known:
                raise InvalidInputError(
                    "feature_names", "must be given if the limits are two numbers", "they are None"
                )
            summary = MinMaxSummary(*check_bounds(pair, "limits", known[0]))
        self._set_features(summary.n_features, feature_names)
        return self._set_range(summary)

    def count_outside(self, X: Any) -> npt.NDArray[np.int64]:
        """How many values of each feature lie outside the range: those that ``clip`` moves."""
        X = self._read(X)
        return np.asarray(self._outside(X).sum(axis=0), dtype=np.int64)

    @staticmethod
    def _refuse_sparse(X: Any) -> None:
        if sparse.issparse(X):
            raise InvalidInputError(
                "X",
                "must be dense, since a feature's low end becomes 0 and its zeros something else",
                "it is sparse; FederatedStandardScaler(with_mean=False) keeps zeros",
            )

    def _offset_and_scale(self) -> tuple[Array | None, Array]:
        return self.low_, self.range_

    def _within_limits(self, X: Array) -> Array:
        if self.clip:
            return np.clip(X, self.low_, self.high_)
        if self.limits is None:
            return X
        counts = self._outside(X).sum(axis=0)
        columns = np.flatnonzero(counts)
        if columns.size == 0:
            return X
        # Counts and limits only: messages travel further than readings may.
        names = getattr(self, "feature_names_in_", None)
        found = [
            f"{column_label(names, column)} has {counts[column]} outside "
            f"[{self.low_[column]:.17g}, {self.high_[column]:.17g}]"
            for column in columns[:_MAX_COLUMNS_NAMED]
        ]
        if columns.size > _MAX_COLUMNS_NAMED:
            found.append(f"and {columns.size - _MAX_COLUMNS_NAMED} more columns")
        raise InvalidInputError(
            "X", "every value must lie within the agreed limits, or clip be True", ", ".join(found)
        )

    def _set_range(self, summary: MinMaxSummary) -> Self:
        check_flag(self.clip, "clip")
        with np.errstate(over="ignore"):
            range_ = summary.high - summary.low
        self._check_finite(range_, "range")
        self.low_, self.high_ = summary.low, summary.high
        self.range_ = np.where(range_ == 0.0, 1.0, range_)
        return self

    def _outside(self, X: Array) -> npt.NDArray[np.bool_]:
        return np.asarray((self.low_ > X) | (self.high_ < X))


class FederatedStandardScaler(_Scaler):
    """Shifts each feature to mean 0 and scales it to variance 1 over all clients' rows.

    The clients' means and variances are combined by the formula of Chan, Golub and LeVeque, in
    which large offsets do not cancel; the result is that of pooled rows, up to rounding. A constant
    feature is not scaled. NaN is refused.

    Parameters
    ----------
    with_mean : bool, default True
        Shift. Must be False for sparse X, whose zeros a shift would fill.
    with_std : bool, default True
        Scale.

    Attributes
    ----------
    mean_, var_ : ndarray of shape (n_features,)
        Over all rows, whether used or not.
    scale_ : ndarray of shape (n_features,)
        What a feature is divided by: the root of ``var_``, or 1 if the feature is constant or
        ``with_std`` is False.
    n_samples_seen_ : float
        Number of rows, or the sum of their weights.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names.

    Notes
    -----
    Privacy: 2 P + 1 numbers leave a client, whatever the options. Of a client with one row they are
    that row, and two rows can be told from them.

    A feature is constant if its standard deviation is at most 10 machine epsilons of its mean.
    scikit-learn's ``StandardScaler`` has the number of rows in place of the 10, so that with 1e6
    rows it leaves unscaled what varies by less than 2e-10 of its mean; this one scales it.

    Examples
    --------
    >>> from fdrsvm.data.scaling import FederatedStandardScaler
    >>> X, plants = [[1.0], [3.0], [5.0], [7.0]], ["a", "a", "b", "b"]
    >>> scaler = FederatedStandardScaler().fit(X, clients=plants)
    >>> scaler.mean_.tolist(), scaler.var_.tolist()
    ([4.0], [5.0])
    """

    def __init__(self, with_mean: bool = True, with_std: bool = True) -> None:
        self.with_mean = with_mean
        self.with_std = with_std

    @staticmethod
    def summarise(X: Any, sample_weight: Any = None) -> MomentSummary:
        """The client's part: weight, mean and variance, 2 P + 1 numbers.

        Parameters
        ----------
        X : array, DataFrame or CSR of shape (n_samples, n_features)
        sample_weight : array of shape (n_samples,), optional
            Not negative. A row of weight 2 counts as two rows, one of weight 0 as none.
        """
        X = check_matrix(X)
        weights = check_weights(sample_weight, X.shape[0])
        if (weights == 0.0).any():  # such rows must not even overflow
            X, weights = X[weights > 0.0], weights[weights > 0.0]
        if weights.size == 0:
            return MomentSummary(0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1]))
        total = _total(weights)
        moments = _sparse_moments if sparse.issparse(X) else _dense_moments
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = moments(X, weights / total)
        return MomentSummary(total, mean, _check_representable(variance, "variance"))

    @staticmethod
    def combine(summaries: Iterable[MomentSummary]) -> MomentSummary:
        """The server's part: the summary of all rows from those of the clients, in any order.

        With shares s_g of the weight, ``mean = sum_g s_g mean_g`` and
        ``variance = sum_g s_g (variance_g + (mean_g - mean)^2)``.
        """
        parts = _check_summaries(summaries, MomentSummary)
        parts = [part for part in parts if part.weight > 0.0]
        if not parts:
            raise InvalidInputError("sample_weight", "some weight must be positive", "all are zero")
        weights = np.array([part.weight for part in parts])
        total = _total(weights)
        means = np.stack([part.mean for part in parts])
        within = np.stack([part.variance for part in parts])
        with np.errstate(over="ignore", invalid="ignore"):
            mean, between = _dense_moments(means, weights / total)
            variance = weighted_sum(weights / total, within) + between
        return MomentSummary(total, mean, _check_representable(variance, "variance"))

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        clients: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Summarise each client's rows and combine.

        Parameters
        ----------
        X : array, DataFrame or CSR of shape (n_samples, n_features)
        y : ignored
        clients : array of shape (n_samples,), optional
            A client label for each row. None means one client.
        sample_weight : array of shape (n_samples,), optional
            Not negative. A row of weight 2 counts as two rows, one of weight 0 as none.
        """
        X = self._read(X, reset=True)
        weights = check_weights(sample_weight, X.shape[0])
        groups = _groups(clients, X.shape[0])
        summaries = [self.summarise(X[rows], weights[rows]) for rows in groups]
        return self._set_moments(self.combine(summaries))

    def fit_summaries(self, summaries: Iterable[MomentSummary], feature_names: Any = None) -> Self:
        """Fit without rows.

        Parameters
        ----------
        summaries : MomentSummary, one per client
        feature_names : sequence of str, optional
            Become ``feature_names_in_``.
        """
        summary = self.combine(summaries)
        self._set_features(summary.n_features, feature_names)
        return self._set_moments(summary)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        return tags

    def _offset_and_scale(self) -> tuple[Array | None, Array]:
        return self.mean_ if self.with_mean else None, self.scale_

    def _set_moments(self, summary: MomentSummary) -> Self:
        check_flag(self.with_mean, "with_mean")
        check_flag(self.with_std, "with_std")
        deviation = np.sqrt(summary.variance)
        constant = deviation <= _CONSTANT * np.abs(summary.mean)
        self.mean_, self.var_ = summary.mean, summary.variance
        self.scale_ = np.where(constant | (not self.with_std), 1.0, deviation)
        self.n_samples_seen_ = summary.weight
        return self

    def _refuse_sparse(self, X: Any) -> None:
        if self.with_mean and sparse.issparse(X):
            raise InvalidInputError(
                "with_mean",
                "must be False for sparse X, since a shift would fill its zeros",
                f"it is {self.with_mean!r}",
            )


_Kind = TypeVar("_Kind", MinMaxSummary, MomentSummary)


def _dense_moments(X: Array, shares: Array) -> tuple[Array, Array]:
    """Mean and variance by columns. Exact for a constant column, whatever its offset.

    Deviations are from the heaviest row: whatever its distance from the others, the variance is
    of that size too, so that rounding stays small beside it.
    """
    anchor = X[shares.argmax()]
    deviations = X - anchor
    first = weighted_sum(shares, deviations)
    deviations -= first
    rest = weighted_sum(shares, deviations)  # what rounding, of the shares too, left of the mean
    deviations -= rest
    np.square(deviations, out=deviations)
    return anchor + (first + rest), weighted_sum(shares, deviations)


def _sparse_moments(X: Matrix, shares: Array) -> tuple[Array, Array]:
    """The same for CSR, in time proportional to the entries stored."""
    n_samples, n_features = X.shape
    entry_shares = np.repeat(shares, np.diff(X.indptr))

    def column_sums(values: Array) -> Array:
        sums = np.bincount(X.indices, weights=values, minlength=n_features)
        return np.asarray(sums, dtype=np.float64)

    is_full = np.bincount(X.indices, minlength=n_features) == n_samples
    # One minus a sum is not quite 0 in a full column, and would count as some zeros.
    zeros = np.where(is_full, 0.0, np.maximum(1.0 - column_sums(entry_shares), 0.0))
    first = column_sums(entry_shares * X.data)
    deviations = X.data - first[X.indices]
    rest = column_sums(entry_shares * deviations) - zeros * first
    deviations -= rest[X.indices]
    mean = first + rest
    return mean, column_sums(entry_shares * deviations**2) + zeros * mean**2


def _groups(clients: Any, n_samples: int) -> Sequence[Any]:
    """Which rows each client has, in the order of the clients' labels."""
    if clients is None:
        return [slice(None)]
    return rows_by_client(check_clients(clients, n_samples))[1]


def _check_summaries(summaries: Iterable[_Kind], kind: type[_Kind]) -> Sequence[_Kind]:
    parts = list(summaries)
    if not parts:
        raise InvalidInputError("summaries", "there must be at least one", "there are none")
    for at, part in enumerate(parts):
        if not isinstance(part, kind):
            raise InvalidInputError(
                "summaries", f"each must be a {kind.__name__}", f"entry {at} is not"
            )
        if part.n_features != parts[0].n_features:
            raise InvalidInputError(
                "summaries",
                "must have one number of features",
                f"entry 0 has {parts[0].n_features}, entry {at} has {part.n_features}",
            )
    return parts


def _total(weights: Array) -> float:
    try:
        return math.fsum(weights)
    except OverflowError:
        raise NumericalError("sample_weight: the sum of the weights overflows float64") from None


def _length(value: Any) -> int | None:
    """None for a number, even if wrapped in an array without dimensions."""
    try:
        return len(value)
    except TypeError:
        return None


def _check_names(feature_names: Any, n_features: int) -> npt.NDArray[np.object_]:
    names = list(feature_names)
    if len(names) != n_features:
        raise InvalidInputError(
            "feature_names",
            f"must name each of the {n_features} features",
            f"there are {len(names)}",
        )
    if not all(isinstance(name, str) for name in names):
        raise InvalidInputError("feature_names", "must be text", "some are not")
    if len(set(names)) < len(names):
        raise InvalidInputError("feature_names", "must differ from each other", "some are equal")
    return np.array(names, dtype=object)


def _check_representable(values: Array, what: str, names: Any = None) -> Array:
    """Numbers by columns, none of which may have overflowed."""
    if not np.isfinite(values).all():
        bad = ~np.isfinite(np.atleast_2d(values)).all(axis=0)
        column = column_label(names, int(np.flatnonzero(bad)[0]))
        raise NumericalError(f"{column}: a {what} overflows float64")
    return values


def _replace_stored(X: Matrix, values: Array) -> Matrix:
    if not np.isfinite(values).all():
        column = int(X.indices[~np.isfinite(values)][0])
        raise NumericalError(f"column {column}: a value overflows float64")
    scaled = X.copy()
    scaled.data = values
    return scaled


def _refuse_columns(broken: npt.NDArray[np.bool_], argument: str, rule: str, failing: str) -> None:
    if broken.any():
        column = column_label(None, int(np.flatnonzero(broken)[0]))
        raise InvalidInputError(argument, rule, f"{column} {failing}")
