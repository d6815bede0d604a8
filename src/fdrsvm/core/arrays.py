"""Checks at the door: user input becomes clean float64 arrays, or an error that names the fault.

Nothing behind these functions checks again.
"""

from __future__ import annotations

import datetime
import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.errors import InvalidInputError
from fdrsvm.native import risk as kernels

Array: TypeAlias = npt.NDArray[np.float64]
# Dense, or CSR: the two kinds of X. SciPy ships no types, so this cannot be told apart here.
Matrix: TypeAlias = Any

_FEW = 10_000  # entries: their temporary costs less than setting NumPy's warnings
_NUMERIC_KINDS = "biuf"
_TIME_KINDS = "mM"
# pandas' own dates and durations derive from these; its periods are told by their name.
_TIMES = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)


def column_label(names: Any, column: int) -> str:
    """Position, and the name if columns have names."""
    return f"column {column}" if names is None else f"column {column} ({list(names)[column]!r})"


def refuse_stand_ins(value: Any, argument: str) -> None:
    """Refuses masked values, dates and durations, which NumPy would hand on as numbers.

    In a data frame nothing may be missing either, since there the column has a name to give.
    """
    is_plain = type(value) is np.ndarray and value.dtype.kind in _NUMERIC_KINDS
    if is_plain or sparse.issparse(value):
        return
    columns = getattr(value, "columns", None)
    if columns is None or not hasattr(value, "__getitem__"):
        _refuse_masked(value, argument)
        _refuse_times(value, argument, None)
        return
    for position, name in enumerate(columns):
        label = column_label(columns, position)
        _refuse_times(value[name], argument, label)
        _refuse_missing(value[name], argument, label)


def _refuse_masked(value: Any, argument: str) -> None:
    rows = value if isinstance(value, list | tuple) else ()
    place = ""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        place = _place(np.ma.getmaskarray(value))
    for n, row in enumerate(rows):  # NumPy forgets the masks of rows that it makes an array of
        if isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row):
            place = place or f"row {n}, column {int(np.ma.getmaskarray(row).argmax())}"
    if place:
        raise InvalidInputError(
            argument,
            "must hold no masked values: fill them in, or leave those rows out",
            f"{place} is masked",
        )


def _refuse_times(value: Any, argument: str, label: str | None) -> None:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return  # no array at all, which others have a word for
    if array.dtype.kind == "O":
        each = [isinstance(v, _TIMES) or type(v).__name__ == "Period" for v in array.flat]
        is_time = np.array(each, dtype=bool).reshape(array.shape)
    else:
        is_time = np.full(array.shape, array.dtype.kind in _TIME_KINDS)
    if is_time.any():
        raise InvalidInputError(
            argument,
            "must be numbers, not dates or durations: leave them out, or count, say, the hours "
            "since a fixed time",
            f"{label or _place(is_time)} is a date or duration",
        )


def _refuse_missing(column: Any, argument: str, label: str) -> None:
    array = np.asarray(column)
    if array.dtype.kind == "f":
        missing = np.isnan(array)
    elif array.dtype.kind == "O":
        # pandas.NA is told by the name of its type, without pandas.
        missing = np.array(
            [
                v is None or (isinstance(v, float) and v != v) or type(v).__name__ == "NAType"
                for v in array.flat
            ],
            dtype=bool,
        )
    else:
        return
    if missing.any():
        raise InvalidInputError(
            argument,
            "every value must be finite: fill in what is missing, or leave those rows out",
            f"row {int(np.flatnonzero(missing)[0])}, {label} is nan or missing",
        )


def _place(where: npt.NDArray[np.bool_]) -> str:
    """Row and column, or entry, of the first True."""
    at = [int(i) for i in np.argwhere(where)[0]] if where.ndim else []
    return f"row {at[0]}, column {at[1]}" if len(at) == 2 else f"entry {at[0]}" if at else "it"


def entry_error(
    argument: str, rule: str, values: Array, wrong: npt.NDArray[np.bool_], place: str = "row"
) -> InvalidInputError:
    """Names the first entry that breaks the rule."""
    at = int(wrong.argmax())
    return InvalidInputError(argument, rule, f"{place} {at} is {values[at]:g}")


def _as_float(value: Any, argument: str) -> Array:
    """A float64 array, never by reading text as numbers or by dropping an imaginary part."""
    refuse_stand_ins(value, argument)
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


def check_matrix(X: Any, argument: str = "X") -> Matrix:
    """Samples by features: a C-ordered float64 array, or CSR if X is sparse."""
    is_sparse = sparse.issparse(X)
    is_plain = type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous
    matrix = X if is_sparse or is_plain else _as_float(X, argument)
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
    if is_sparse:
        # Sorting and summing happen in place, so on a copy of the caller's arrays.
        matrix = sparse.csr_array(X, copy=True)
        matrix.data = _as_float(matrix.data, argument)
        matrix.sum_duplicates()
    values: Any = matrix.data if is_sparse else matrix
    if values.size <= _FEW:
        are_finite = np.isfinite(values).all()
    else:
        # One pass without a temporary in the usual case; a sum may overflow where no entry does.
        with np.errstate(over="ignore", invalid="ignore"):
            are_finite = np.isfinite(values.sum()) or np.isfinite(values).all()
    if not are_finite:
        entries = sparse.coo_array(matrix)  # row by row
        at = int(np.flatnonzero(~np.isfinite(entries.data))[0])
        row, column = (int(place[at]) for place in entries.coords)
        raise InvalidInputError(
            argument,
            "every value must be finite",
            f"row {row}, {column_label(getattr(X, 'columns', None), column)} is {entries.data[at]}",
        )
    return matrix


def check_vector(value: Any, argument: str, size: int, per: str) -> Array:
    """A finite float64 vector with one entry for each of ``size`` ``per`` (say, "features")."""
    # One compiled pass over what is clean already: loops ask this of the same model each time.
    if type(value) is np.ndarray and kernels.is_clean(value, size):
        return value
    vector = _as_float(value, argument)
    if vector.shape != (size,):
        raise InvalidInputError(
            argument,
            f"must have shape ({size},), one entry for each of the {per}",
            f"its shape is {vector.shape}",
        )
    is_finite = np.isfinite(vector)
    if not is_finite.all():
        raise entry_error(argument, "every value must be finite", vector, ~is_finite, "entry")
    return vector


def check_labels(y: Any, n_samples: int, argument: str = "y") -> Array:
    """Labels -1 and +1, one per sample."""
    labels = check_vector(y, argument, n_samples, "samples")
    wrong = np.abs(labels) != 1.0
    if wrong.any():
        raise entry_error(argument, "labels must be -1 or +1", labels, wrong)
    return labels


def check_masses(sample_weight: Any, n_samples: int, argument: str = "sample_weight") -> Array:
    """Sample weights scaled to probability masses; None gives every sample 1/N."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples)
    weights = check_vector(sample_weight, argument, n_samples, "samples")
    if (weights < 0.0).any():
        raise entry_error(argument, "weights must not be negative", weights, weights < 0.0)
    largest = weights.max()
    if largest == 0.0:
        raise InvalidInputError(argument, "some weight must be positive", "all are zero")
    shares = weights / largest  # first, so that no sum can overflow or vanish
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def _number(value: Any) -> float:
    """As a float, never by reading text; nan, which fails every test, if it is not a number."""
    try:
        return math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def check_finite(value: Any, argument: str) -> float:
    """A finite number."""
    number = _number(value)
    if not math.isfinite(number):
        raise InvalidInputError(argument, "must be a finite number", f"it is {value!r}")
    return number


def check_non_negative(value: Any, argument: str) -> float:
    """A finite number, at least 0."""
    number = _number(value)
    if not 0.0 <= number < math.inf:
        raise InvalidInputError(argument, "must be a finite number, at least 0", f"it is {value!r}")
    return number


def check_positive(value: Any, argument: str, *, or_infinite: bool = False) -> float:
    """A number above 0; finite unless ``or_infinite``."""
    number = _number(value)
    if not number > 0.0 or (number == math.inf and not or_infinite):
        rule = "a number above 0 (inf is allowed)" if or_infinite else "a finite number above 0"
        raise InvalidInputError(argument, f"must be {rule}", f"it is {value!r}")
    return number


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


def check_flag(value: Any, argument: str) -> bool:
    """True or False, and nothing else that could pass for it."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(argument, "must be True or False", f"it is {value!r}")
    return bool(value)
