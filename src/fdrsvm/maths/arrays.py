"""Checks at the door: user input becomes clean float64 arrays, or an error that names the fault.

Nothing behind these functions checks again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.errors import InvalidInputError

Array: TypeAlias = npt.NDArray[np.float64]
# Dense, or CSR: the two kinds of X. SciPy ships no types, so this cannot be told apart here.
Matrix: TypeAlias = Any

_NUMERIC_KINDS = "biuf"


def column_label(names: Any, column: int) -> str:
    """Position, and the name if columns have names."""
    return f"column {column}" if names is None else f"column {column} ({list(names)[column]!r})"


def _as_float(value: Any, argument: str) -> Array:
    """A float64 array, never by reading text as numbers or by dropping an imaginary part."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidInputError(argument, "must be a regular array", str(error)) from None
    if array.dtype.kind == "O" and not any(isinstance(item, str) for item in array.flat):
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(argument, "must be numeric", str(error)) from None
    if array.dtype.kind not in _NUMERIC_KINDS:
        raise InvalidInputError(argument, "must be numeric", f"its dtype is {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.float64)


def _all_finite(values: Array) -> bool:
    """One pass without a temporary in the usual case; a sum may overflow where no entry does."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def check_matrix(X: Any, argument: str = "X") -> Matrix:
    """Samples by features: a C-ordered float64 array, or CSR if X is sparse."""
    if sparse.issparse(X):
        if X.ndim != 2:
            raise InvalidInputError(
                argument, "must have two dimensions, samples by features", f"it has {X.ndim}"
            )
        # Sorting and summing happen in place, so on a copy of the caller's arrays.
        matrix = sparse.csr_array(X, copy=True)
        matrix.data = _as_float(matrix.data, argument)
        matrix.sum_duplicates()
    else:
        matrix = _as_float(X, argument)
        if matrix.ndim != 2:
            raise InvalidInputError(
                argument, "must have two dimensions, samples by features", f"it has {matrix.ndim}"
            )
    if 0 in matrix.shape:
        raise InvalidInputError(
            argument,
            "must have at least one sample and one feature",
            f"its shape is {matrix.shape}",
        )
    if not _all_finite(matrix.data if sparse.issparse(matrix) else matrix):
        row, column, value = _first_non_finite(matrix)
        raise InvalidInputError(
            argument,
            "every value must be finite",
            f"row {row}, {column_label(getattr(X, 'columns', None), column)} is {value}",
        )
    return matrix


def _first_non_finite(matrix: Matrix) -> tuple[int, int, float]:
    if sparse.issparse(matrix):
        entries = matrix.tocoo()
        at = int(np.flatnonzero(~np.isfinite(entries.data))[0])
        rows, columns = entries.coords
        return int(rows[at]), int(columns[at]), float(entries.data[at])
    row, column = (int(i) for i in np.argwhere(~np.isfinite(matrix))[0])
    return row, column, float(matrix[row, column])


def check_vector(value: Any, argument: str, size: int, per: str) -> Array:
    """A finite float64 vector with one entry for each of ``size`` ``per`` (say, "features")."""
    vector = _as_float(value, argument)
    if vector.shape != (size,):
        raise InvalidInputError(
            argument,
            f"must have shape ({size},), one entry for each of the {per}",
            f"its shape is {vector.shape}",
        )
    if not _all_finite(vector):
        at = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise InvalidInputError(
            argument, "every value must be finite", f"entry {at} is {vector[at]}"
        )
    return vector


def check_labels(y: Any, n_samples: int, argument: str = "y") -> Array:
    """Labels -1 and +1, one a sample."""
    labels = check_vector(y, argument, n_samples, "samples")
    wrong = np.abs(labels) != 1.0
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(
            argument, "labels must be -1 or +1", f"row {row} is {labels[row]:g}"
        )
    return labels


def check_masses(sample_weight: Any, n_samples: int, argument: str = "sample_weight") -> Array:
    """Sample weights scaled to probability masses; None gives every sample 1/N."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples)
    weights = check_vector(sample_weight, argument, n_samples, "samples")
    if (weights < 0.0).any():
        row = int(np.flatnonzero(weights < 0.0)[0])
        raise InvalidInputError(
            argument, "weights must not be negative", f"row {row} is {weights[row]:g}"
        )
    largest = weights.max()
    if largest == 0.0:
        raise InvalidInputError(argument, "some weight must be positive", "all are zero")
    shares = weights / largest  # first, so that no sum can overflow or vanish
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def _check_number(value: Any, argument: str, rule: str, holds: Callable[[float], bool]) -> float:
    try:
        number = float(value) if not isinstance(value, str) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not holds(number):
        raise InvalidInputError(argument, rule, f"it is {value!r}")
    return number


def check_finite(value: Any, argument: str) -> float:
    """A finite number."""
    return _check_number(value, argument, "must be a finite number", math.isfinite)


def check_non_negative(value: Any, argument: str) -> float:
    """A finite number, at least 0."""
    return _check_number(
        value, argument, "must be a finite number, at least 0", lambda v: 0.0 <= v < math.inf
    )


def check_positive(value: Any, argument: str, *, or_infinite: bool = False) -> float:
    """A number above 0; finite unless ``or_infinite``."""
    if or_infinite:
        return _check_number(
            value, argument, "must be a number above 0 (inf is allowed)", lambda v: v > 0.0
        )
    return _check_number(
        value, argument, "must be a finite number above 0", lambda v: 0.0 < v < math.inf
    )


def check_count(value: Any, argument: str, least: int = 1) -> int:
    """A whole number, at least ``least``."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise InvalidInputError(
            argument, f"must be a whole number, at least {least}", f"it is {value!r}"
        )
    return int(value)


def check_choice(value: Any, argument: str, choices: tuple[str, ...]) -> str:
    """One of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidInputError(argument, f"must be one of {listed}", f"it is {value!r}")
    return value
