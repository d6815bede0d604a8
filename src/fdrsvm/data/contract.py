"""The agreement on data that every client checks before it trains.

A :class:`FeatureContract` lists the features in order, each with a unit, limits and what to do
about missing values, and the legal labels. It is written once, sent to all as JSON, and compared by
its ``fingerprint``. ``check`` finds all breaches at once and says for each of them which client and
column, which rule and how many values.

Data protection: error messages end up in logs, and logs with the server. So messages hold names,
rules, limits, counts and row numbers, and never a value or a label that a client's data holds.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import Array, check_choice, check_finite
from fdrsvm.core.files import PathLike, read_capped, write_atomically
from fdrsvm.data.tables import Table
from fdrsvm.errors import CorruptDataError, InvalidInputError

__all__ = [
    "Checked",
    "ContractError",
    "Feature",
    "FeatureContract",
    "Violation",
    "check_all_clients",
]

Label: TypeAlias = "str | int"
Missing = Literal["forbid", "fill", "drop"]
_Note: TypeAlias = Callable[[str | None, str, "int | npt.NDArray[np.bool_]"], None]

_KIND = "fdrsvm-feature-contract"
_VERSION = 1
_MAX_BYTES = 1 << 24
_MAX_LINES = 20


@dataclass(frozen=True)
class Violation:
    """One rule that one client's data break.

    Attributes
    ----------
    client : object
        The client's name as given to ``check``, or None.
    column : str or None
        Name of the column, ``"y"`` for the labels (the rule then speaks of labels), None if the
        table as a whole is at fault.
    rule : str
        What must hold; with the limit, never with a value found.
    count : int
        How many values break it; where no row is to blame, how many columns, rows, labels or
        dimensions were found instead.
    example_row : int or None
        Number of the first row that breaks it; None if no row is to blame. Rows of arrays and data
        frames count from 0, those of files as a spreadsheet counts them, with the header in row 1.
    """

    client: Any
    column: str | None
    rule: str
    count: int
    example_row: int | None

    def __str__(self) -> str:
        client = "" if self.client is None else f"client {self.client!r}, "
        column = "the table" if self.column is None else f"column {self.column!r}"
        if self.example_row is None:
            return f"{client}{column}: {self.rule}; found {self.count}"
        return f"{client}{column}: {self.rule}; {self.count} not, first in row {self.example_row}"


class ContractError(InvalidInputError):
    """Data break a contract; the message lists the violations, one per line.

    Attributes
    ----------
    violations : tuple of Violation
        All of them, also those that the message leaves out.
    """

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        lines = [f"\n  {violation}" for violation in self.violations[:_MAX_LINES]]
        if len(self.violations) > _MAX_LINES:
            lines.append(f"\n  and {len(self.violations) - _MAX_LINES} more")
        super().__init__(
            "data",
            "must keep the feature contract",
            f"rules broken: {len(self.violations)}{''.join(lines)}",
        )
        self.args = (self.violations,)  # what copies are made from


@dataclass(frozen=True)
class Feature:
    """One column of the contract.

    Parameters
    ----------
    name : str
    unit : str, default ""
    low, high : float, optional
        Limits, which are legal values themselves. None is no limit.
    missing : "forbid", "fill" or "drop", default "forbid"
        Whether a missing value (NaN, None, null) is a violation, becomes ``fill``, or has its row
        left out.
    fill : float, optional
        Within the limits; only with ``missing="fill"``.
    """

    name: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    missing: Missing = "forbid"
    fill: float | None = None

    def __post_init__(self) -> None:
        _check_text(self.name, "name", may_be_empty=False)
        _check_text(self.unit, f"unit of {self.name!r}", may_be_empty=True)
        check_choice(self.missing, f"missing of {self.name!r}", get_args(Missing))
        for field in ("low", "high", "fill"):
            value, argument = getattr(self, field), f"{field} of {self.name!r}"
            if isinstance(value, bool):
                raise InvalidInputError(argument, "must be a finite number", f"it is {value!r}")
            if value is not None:  # -0.0 becomes 0.0: one value, one fingerprint
                object.__setattr__(self, field, check_finite(value, argument) + 0.0)
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InvalidInputError(
                f"low of {self.name!r}", "must not exceed high", f"{self.low!r} > {self.high!r}"
            )
        if (self.fill is not None) != (self.missing == "fill"):
            raise InvalidInputError(
                f"fill of {self.name!r}",
                "must be given with missing='fill', and only then",
                f"it is {self.fill!r} with missing={self.missing!r}",
            )
        if self.fill is not None and not self._lower <= self.fill <= self._upper:
            raise InvalidInputError(
                f"fill of {self.name!r}",
                f"must lie in [{self._lower!r}, {self._upper!r}]",
                f"it is {self.fill!r}",
            )

    @property
    def _lower(self) -> float:
        return -math.inf if self.low is None else self.low

    @property
    def _upper(self) -> float:
        return math.inf if self.high is None else self.high


@dataclass(frozen=True, eq=False)
class Checked:
    """Data that keep a contract.

    Attributes
    ----------
    X : ndarray of shape (n_kept, n_features)
        float64, columns in the order of the contract, missing values filled.
    y : ndarray of shape (n_kept,) or None
        The labels, if given.
    n_clipped, n_filled : ndarray of shape (n_features,)
        How many values of each feature were moved to a limit, or filled, in the rows kept.
    is_kept : ndarray of shape (n_samples,)
        Which of the given rows these are: those that lack no value for which they are left out.
    """

    X: Array
    y: npt.NDArray[Any] | None
    n_clipped: npt.NDArray[np.int64]
    n_filled: npt.NDArray[np.int64]
    is_kept: npt.NDArray[np.bool_]

    @property
    def n_dropped(self) -> int:
        """How many rows were left out."""
        return int(np.count_nonzero(~self.is_kept))


@dataclass(frozen=True)
class FeatureContract:
    """Features in order, and the legal labels.

    Parameters
    ----------
    features : sequence of Feature
        With distinct names.
    labels : sequence of str or of int
        At least two. 1.0 and True count as 1. A client need not have all of them.

    Examples
    --------
    >>> from fdrsvm.data.contract import Feature, FeatureContract
    >>> contract = FeatureContract(
    ...     features=(
    ...         Feature("pressure", "bar", low=0.0, high=25.0),
    ...         Feature("temperature", "degC", low=-20.0, missing="fill", fill=20.0),
    ...     ),
    ...     labels=("healthy", "worn"),
    ... )
    >>> contract.check([[12.5, None], [30.0, 41.0]], ["worn", "worn"], client="north")
    Traceback (most recent call last):
        ...
    fdrsvm.data.contract.ContractError: data: must keep the feature contract; rules broken: 1
      client 'north', column 'pressure': must be at most 25.0 bar; 1 not, first in row 1
    >>> contract.check([[12.5, None], [30.0, 41.0]], clip=True).X.tolist()
    [[12.5, 20.0], [25.0, 41.0]]
    """

    features: tuple[Feature, ...]
    labels: tuple[Label, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _check_features(self.features))
        object.__setattr__(self, "labels", _check_legal_labels(self.labels))

    @property
    def names(self) -> tuple[str, ...]:
        """The features' names, in order."""
        return tuple(feature.name for feature in self.features)

    @property
    def box(self) -> tuple[Array, Array]:
        """Arrays (low, high) of all limits, as scalers and supports take them."""
        for feature in self.features:
            if feature.low is None or feature.high is None:
                raise InvalidInputError(
                    "features",
                    "must all have both limits to make a box",
                    f"{feature.name!r} lacks one",
                )
        low = np.array([feature.low for feature in self.features], dtype=np.float64)
        high = np.array([feature.high for feature in self.features], dtype=np.float64)
        return low, high

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the content: equal where contracts are equal, however they were written."""
        text = json.dumps(self._content(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def to_json(self) -> str:
        """Text for people and machines; equal contracts give equal text."""
        return json.dumps(self._content(), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> FeatureContract:
        """The contract that ``to_json`` wrote, or that someone wrote by hand.

        Of a feature only the name is needed. Unknown keys, keys given twice and other versions
        raise CorruptDataError; content that breaks a rule raises InvalidInputError.
        """
        content = _read_json(text)
        _check_keys(content, {"kind", "version", "features", "labels"}, "the contract")
        features, labels = content.get("features"), content.get("labels")
        if not isinstance(features, list) or not isinstance(labels, list):
            raise CorruptDataError(f"{_KIND}: features and labels must be lists")
        return cls(tuple(read_feature(entry) for entry in features), tuple(labels))

    def save(self, path: PathLike) -> None:
        """Write ``to_json`` to a file, whole or not at all; ``load`` reads it."""
        write_atomically(path, self.to_json().encode("ascii") + b"\n")

    @classmethod
    def load(cls, path: PathLike) -> FeatureContract:
        """The contract in a file, or an error that names the file."""
        return read_contract(Path(path))

    def violations(
        self, X: Any, y: Any = None, *, client: Any = None, clip: bool = False
    ) -> list[Violation]:
        """All breaches of the contract; empty if there are none. Takes what ``check`` takes."""
        return self._examine(X, y, client, clip)[0]

    def check(self, X: Any, y: Any = None, *, client: Any = None, clip: bool = False) -> Checked:
        """Clean arrays, or a ContractError with all violations.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_features)
            The columns of a DataFrame (pandas, polars) are found by name, in any order; those of an
            array by position. Missing and additional columns are violations, as are text and
            infinite values, also in rows that will be left out.
        y : array of shape (n_samples,), optional
            Labels, each of them legal. One class alone is fine; see :func:`check_all_clients`.
        client : optional
            Name of the client, for messages.
        clip : bool, default False
            Move values outside the limits to the nearer one, and count them, rather than refuse.
        """
        violations, read, labels = self._examine(X, y, client, clip)
        if violations:
            raise ContractError(violations)
        dropping = [
            np.isnan(values)
            for feature, values in zip(self.features, read, strict=True)
            if feature.missing == "drop"
        ]
        is_kept = ~np.logical_or.reduce([np.zeros(len(read[0]), dtype=np.bool_), *dropping])
        if not is_kept.any():
            rule = "must have a row that lacks no value; all are left out"
            raise ContractError([Violation(client, None, rule, 0, None)])
        columns, n_clipped, n_filled = [], [], []
        for feature, given in zip(self.features, read, strict=True):
            values = given[is_kept]
            is_missing = np.isnan(values)
            if feature.fill is not None:
                values = np.where(is_missing, feature.fill, values)
            clipped = np.clip(values, feature._lower, feature._upper)
            columns.append(clipped)
            n_clipped.append(np.count_nonzero(clipped != values))
            n_filled.append(np.count_nonzero(is_missing))
        return Checked(
            X=np.column_stack(columns),
            y=None if labels is None else labels[is_kept],
            n_clipped=np.array(n_clipped, dtype=np.int64),
            n_filled=np.array(n_filled, dtype=np.int64),
            is_kept=is_kept,
        )

    def _content(self) -> dict[str, Any]:
        return {
            "kind": _KIND,
            "version": _VERSION,
            "features": [dataclasses.asdict(feature) for feature in self.features],
            "labels": list(self.labels),
        }

    def _examine(
        self, X: Any, y: Any, client: Any, clip: bool
    ) -> tuple[list[Violation], list[Array], npt.NDArray[Any] | None]:
        """All violations, the columns that are there, and the labels."""
        violations: list[Violation] = []

        def note(column: str | None, rule: str, found: int | npt.NDArray[np.bool_]) -> None:
            """A count where no row is to blame; else the broken rows, if there are any."""
            if isinstance(found, int):
                violations.append(Violation(client, column, rule, found, None))
            elif found.any():
                count, first = int(np.count_nonzero(found)), int(found.argmax())
                row = first if row_numbers is None else int(row_numbers[first])
                violations.append(Violation(client, column, rule, count, row))

        is_file = isinstance(X, Table)
        row_numbers, notes = (X.row_numbers, X.notes) if is_file else (None, {})
        table, n_rows = _read_table(X, self.names, note)
        columns = [
            _read_values(table[feature.name], feature, clip, note, notes.get(feature.name, ""))
            for feature in self.features
            if feature.name in table
        ]
        labels = None if y is None else _read_labels(y, n_rows, self.labels, note)
        return violations, columns, labels


def read_contract(path: Path) -> FeatureContract:
    """The contract in a file, or an error that names the file."""
    try:
        return FeatureContract.from_json(read_capped(path.expanduser(), _MAX_BYTES))
    except OSError as error:
        raise InvalidInputError(
            "contract", "must be a file that can be read", f"{path}: {error.strerror}"
        ) from None
    except (CorruptDataError, InvalidInputError) as error:
        raise CorruptDataError(f"{path}: {error}") from None


def check_all_clients(labels_by_client: Mapping[Any, Any]) -> tuple[Any, ...]:
    """The classes of all clients together, sorted, of which there must be two or more.

    One class in one client is fine. Only the distinct labels of each client are needed, so that
    these are all that must leave it.

    Parameters
    ----------
    labels_by_client : mapping from client to array of labels
    """
    if not labels_by_client:
        raise InvalidInputError("labels_by_client", "must have a client", "it is empty")
    classes = set().union(*(_distinct(labels, name) for name, labels in labels_by_client.items()))
    try:
        ordered = tuple(sorted(classes))
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in classes}))
        raise InvalidInputError(
            "labels_by_client", "labels must be of one kind", f"there are {kinds}"
        ) from None
    if len(ordered) == 1:
        raise InvalidInputError(
            "labels_by_client",
            "there must be two classes over all clients",
            f"every label of every client is {ordered[0]!r}",
        )
    return ordered


def _read_table(X: Any, names: Sequence[str], note: _Note) -> tuple[dict[str, Any], int | None]:
    """Columns by name, as far as they can be told apart, and the number of rows."""
    if sparse.issparse(X):
        raise InvalidInputError(
            "X", "must be a DataFrame or a dense array", "it is sparse; a contract sees every value"
        )
    if callable(getattr(X, "collect", None)):
        raise InvalidInputError("X", "must be in memory", "it is lazy; collect it first")
    table: dict[str, Any] = {}
    if getattr(X, "columns", None) is not None:
        n_rows = X.shape[0]
        # Only text is shown: a name of another kind could be a value.
        counts = Counter(column for column in X.columns if isinstance(column, str))
        n_others = len(X.columns) - counts.total()
        if n_others:
            note(None, "must have no columns but those named by text", n_others)
        for name in names:
            if counts[name] == 1:
                table[name] = X[name]
            else:
                note(name, "must be there once", counts[name])
        for name in sorted(counts.keys() - set(names)):
            note(name, "must not be there, since it is not in the contract", counts[name])
    else:
        array = _to_array(X)
        if array.ndim != 2:
            note(None, "must have two dimensions, rows by columns", array.ndim)
            return {}, None
        n_rows = array.shape[0]
        if array.shape[1] == len(names):
            table = dict(zip(names, array.T, strict=True))
        else:
            note(None, f"must have {len(names)} columns", array.shape[1])
    if n_rows == 0:
        note(None, "must have a row", 0)
    return table, n_rows


def _read_values(
    column: Any, feature: Feature, clip: bool, note: _Note, why_text: str = ""
) -> Array:
    """Values as float64, missing ones as NaN; text is never read as a number.

    ``why_text`` says why some numbers were left as text, if any were.
    """
    values = _to_array(column)
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
    else:
        absent = np.array([_is_missing(item) for item in values], dtype=np.bool_)
        is_number = np.array([_is_number(item) for item in values], dtype=np.bool_)
        why = f" ({why_text})" if why_text else ""
        note(feature.name, f"must be a number{why}", ~(absent | is_number))
        # What is not a number is noted once: no other rule looks at what stands in for it.
        stand_in = min(max(0.0, feature._lower), feature._upper)
        numbers = np.where(absent, np.nan, stand_in)
        is_value = is_number & ~absent
        numbers[is_value] = [_to_float(item) for item in values[is_value]]
    is_finite, is_missing = np.isfinite(numbers), np.isnan(numbers)
    if feature.missing == "forbid":
        note(feature.name, "must not be missing", is_missing)
    note(feature.name, "must be finite", ~(is_finite | is_missing))
    if not clip:  # without a limit nothing is beyond it
        unit = f" {feature.unit}" if feature.unit else ""
        below, above = numbers < feature._lower, numbers > feature._upper
        note(feature.name, f"must be at least {feature.low!r}{unit}", is_finite & below)
        note(feature.name, f"must be at most {feature.high!r}{unit}", is_finite & above)
    return numbers


def _to_array(values: Any) -> npt.NDArray[Any]:
    if not isinstance(values, np.ma.MaskedArray):
        try:
            return np.asarray(values)
        except ValueError:  # rows of unequal length
            return np.array(None)
    array = np.array(values.data, dtype=object)
    array[np.ma.getmaskarray(values)] = None
    return array


def _is_missing(item: Any) -> bool:
    if isinstance(item, Decimal):
        return item.is_nan()
    if _is_number(item):
        return bool(item != item)
    return item is None or type(item).__name__ == "NAType"  # pandas.NA, without pandas


def _is_number(item: Any) -> bool:
    # NumPy counts spans of time among its integers.
    return isinstance(item, Real | Decimal) and not isinstance(item, np.timedelta64)


def _to_float(item: Any) -> float:
    try:
        return float(item)
    except OverflowError:
        return math.inf


def _read_labels(
    y: Any, n_rows: int | None, legal: tuple[Label, ...], note: _Note
) -> npt.NDArray[Any]:
    labels = _to_array(y)
    if labels.ndim != 1:
        note("y", "must be a vector of labels, one for each row", labels.ndim)
        return labels
    if n_rows is not None and labels.size != n_rows:
        note("y", f"must have {n_rows} labels, one for each row", labels.size)
    illegal = [
        not (isinstance(label, str | Real | np.bool_) and label in legal)
        for label in labels.tolist()
    ]
    rule = f"label must be one of {', '.join(map(repr, legal))}"
    note("y", rule, np.array(illegal, dtype=bool))
    return labels


def _distinct(labels: Any, client: Any) -> set[Any]:
    array = _to_array(labels)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInputError(
            "labels_by_client", "must have a vector of labels", f"that of {client!r} is not one"
        )
    items = array.tolist()
    if not all(isinstance(item, str | Real | np.bool_) and item == item for item in items):
        raise InvalidInputError(
            "labels_by_client", "labels must be text or numbers", f"some of {client!r} are not"
        )
    return set(items)


def _check_features(features: Any) -> tuple[Feature, ...]:
    checked = tuple(features) if isinstance(features, Iterable) else ()
    if not checked or not all(isinstance(feature, Feature) for feature in checked):
        raise InvalidInputError("features", "must be one or more of Feature", "they are not")
    for name, count in Counter(feature.name for feature in checked).items():
        if count > 1:
            raise InvalidInputError(
                "features", "must have distinct names", f"{name!r} is there {count} times"
            )
    return checked


def _check_legal_labels(labels: Any) -> tuple[Label, ...]:
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InvalidInputError("labels", "must be a sequence of labels", f"it is {labels!r}")
    checked = tuple(_check_label(label) for label in labels)
    if len({type(label) for label in checked}) > 1:
        raise InvalidInputError(
            "labels", "must be all text or all whole numbers", f"they are {checked!r}"
        )
    if len(set(checked)) < max(len(checked), 2):
        raise InvalidInputError(
            "labels", "must be two or more, all different", f"they are {checked!r}"
        )
    return checked


def _check_label(label: Any) -> Label:
    if isinstance(label, str):
        return str(label)
    if isinstance(label, Integral | np.bool_):
        return int(label)
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return int(label)
    raise InvalidInputError("labels", "must be text or whole numbers", f"{label!r} is not")


def _check_text(value: Any, argument: str, *, may_be_empty: bool) -> None:
    if not isinstance(value, str) or not (value or may_be_empty):
        rule = "must be text" if may_be_empty else "must be text, not empty"
        raise InvalidInputError(argument, rule, f"it is {value!r}")


def _read_json(text: Any) -> dict[str, Any]:
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptDataError(f"{_KIND}: not the JSON of a contract ({error})") from None
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise CorruptDataError(f"{_KIND}: not the JSON of a contract (its kind is another)")
    version = content.get("version")
    if type(version) is not int or version != _VERSION:
        raise CorruptDataError(
            f"{_KIND}: written in version {version!r}, this release reads {_VERSION}"
        )
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key is given twice")
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def _check_keys(content: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(content) - known)
    if unknown:
        raise CorruptDataError(f"{_KIND}: {where} has unknown keys {', '.join(map(repr, unknown))}")


def read_feature(entry: Any) -> Feature:
    """A feature as a contract's JSON has it."""
    if not isinstance(entry, dict) or "name" not in entry:
        raise CorruptDataError(f"{_KIND}: each feature must be an object with a name")
    known = {field.name for field in dataclasses.fields(Feature)}
    _check_keys(entry, known, f"feature {entry['name']!r}")
    return Feature(**entry)
