"""The clients' data, checked once: rows by client, classes as numbers, labels -1 and +1, weights.

A row of weight 0 counts as absent, and one of weight 2 as two rows. What goes by client (labels
of both signs, the radius "auto", weights of the clients) has its one home here.

Rows are put in an order of their own and equal ones merged: a model depends on the data and not on
its order. Repeated rows, weights in their place, and any order of the rows then give the same bits.
The order is that of a 64-bit hash of each row: two passes over the data, where sorting by columns
takes many. Unequal rows with one hash stay apart; at worst equal ones next to them are not merged,
which the certificate covers.

scikit-learn is imported where ``fit`` needs it, so that a plant's process can do without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import (
    Array,
    Matrix,
    check_choice,
    check_non_negative,
    check_vector,
    entry_error,
    refuse_stand_ins,
)
from fdrsvm.core.texts import listed
from fdrsvm.errors import InvalidInputError
from fdrsvm.risk.ball import Box, check_inside, check_support

_Checked = TypeVar("_Checked")
Codes: TypeAlias = npt.NDArray[np.intp]
Hashes: TypeAlias = npt.NDArray[np.uint64]

_ONLY_CLIENT = "all"
_BETA = 10.0  # in [practical]
_INT32 = np.iinfo(np.int32).max
_LARGE = 1e290  # no sum of weights below it overflows
_CHUNK = 1 << 18  # entries hashed at once, so that intermediate arrays stay in the cache
_SEED = 20251115
_MOST_SHOWN = 12


# --- what goes by client ---


@dataclass(frozen=True, eq=False)
class Client:
    """One client's data.

    Attributes
    ----------
    name : label
        As in ``clients``: text, a number, anything that can be sorted.
    X : matrix of shape (n_rows, n_features)
    codes : array of shape (n_rows,)
        The rows' classes, as positions among the ``n_classes`` classes of all clients.
    weights : array of shape (n_rows,)
        Sample weight times class weight.
    total : float
        Number of rows, or the sum of their sample weights.
    """

    name: Any
    X: Matrix
    codes: Codes
    n_classes: int
    weights: Array
    total: float

    @property
    def signs(self) -> list[Array]:
        """Labels -1 and +1 for each model: the second class, or each class, against the rest."""
        if self.n_classes <= 2:
            return [np.where(self.codes == 1, 1.0, -1.0)]
        return [np.where(self.codes == code, 1.0, -1.0) for code in range(self.n_classes)]


def auto_radius(n_rows: float) -> float:
    """The radius "auto": the paper's working rule 1/(10 N), [practical]."""
    return 1.0 / (_BETA * n_rows)


def per_client(
    value: Any, argument: str, names: Sequence[Any], check: Callable[[Any, str], _Checked]
) -> list[_Checked]:
    """One value per client from a single one, a mapping by name, or one per client in order."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()  # a pandas Series has the clients in its index
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in names]
        missing = [name for name in names if name not in value]
        if unknown or missing:
            kind, wrong = ("unknown", unknown) if unknown else ("missing", missing)
            raise InvalidInputError(
                argument,
                "must name every client of this fit, and no other",
                f"{kind}: {', '.join(map(repr, wrong))}",
            )
        value = [value[name] for name in names]
    elif isinstance(value, str) or np.ndim(value) == 0:
        return [check(value, argument)] * len(names)
    elif np.shape(value) != (len(names),):
        raise InvalidInputError(
            argument,
            f"must have one entry for each of {len(names)} clients",
            f"its shape is {np.shape(value)}",
        )
    return [
        check(item, f"{argument} of client {name!r}")
        for item, name in zip(value, names, strict=True)
    ]


def radii(value: Any, argument: str, names: Sequence[Any], totals: Sequence[float]) -> list[float]:
    """``per_client`` for radii and penalties, where "auto" goes by the client's rows."""
    checked = per_client(value, argument, names, _check_radius)
    for g, number in enumerate(checked):
        if number is None:
            checked[g] = auto_radius(totals[g])
    return checked  # type: ignore[return-value]


def _check_radius(value: Any, argument: str) -> float | None:
    """None stands for "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise InvalidInputError(argument, "must be a number or 'auto'", f"it is {value!r}")
        return None
    return check_non_negative(value, argument)


def client_shares(client_weights: Any, names: Sequence[Any], totals: Sequence[float]) -> Array:
    """One weight per client; "samples" counts rows, or sums their sample weights."""
    if isinstance(client_weights, str):
        check_choice(client_weights, "client_weights", ("equal", "samples"))
        return np.ones(len(names)) if client_weights == "equal" else np.array(totals, dtype=float)
    return np.array(per_client(client_weights, "client_weights", names, check_non_negative))


# --- what fit is given ---


@dataclass(frozen=True, eq=False)
class TrainingData:
    """All clients, in the order of their names; ``n_clipped`` values were moved into the box.

    ``class_totals`` are rows, or sums of sample weights, by class over all clients.
    """

    classes: npt.NDArray[Any]
    class_totals: Array
    class_weights: Array
    client_labels: npt.NDArray[Any]
    clients: tuple[Client, ...]
    n_clipped: int
    names: list[Any]
    totals: list[float]


def read_training_data(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    clients: Any,
    sample_weight: Any,
    class_weight: Any,
    support: Any = None,
    outside: str = "refuse",
    merge: bool = True,
) -> TrainingData:
    """Check everything that ``fit`` is given; set ``n_features_in_`` and ``feature_names_in_``.

    With ``merge``, equal rows of a client become one, and the order of rows is forgotten. Where
    ``clients`` is the name of a column, it is taken out of X, and ``client_column_`` is set.
    """
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data

    estimator.__dict__.pop("client_column_", None)  # of an earlier fit
    if isinstance(clients, str):
        estimator.client_column_ = clients
        X, clients = take_column(X, clients)
    check_columns(X)
    check_label_values(y, "y")
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, order="C")
    if y.dtype.kind == "O":
        _distinct(y, "y")  # else what is missing is an error without a name in the next line
    check_classification_targets(y)
    feature_names = getattr(estimator, "feature_names_in_", None)
    X, n_clipped = _ready(X, check_support(support, X.shape[1]), outside, feature_names)
    weights = check_weights(sample_weight, X.shape[0])
    labels = check_clients(clients, X.shape[0])
    if not weights.all():
        counted = weights > 0.0
        if not counted.any():
            raise InvalidInputError("sample_weight", "some weight must be positive", "all are zero")
        X, y, weights, labels = X[counted], y[counted], weights[counted], labels[counted]
    classes, codes = _distinct(y, "y")
    if len(classes) < 2:
        raise InvalidInputError(
            "y", "must hold two or more classes over all clients", "there is only one class"
        )
    by_class = np.ones(len(classes))
    if class_weight is not None:
        by_class = _class_weights(class_weight, classes, codes, weights)
    client_labels, groups = rows_by_client(labels)
    names = client_labels.tolist()
    read, totals = [], []
    for name, rows in zip(names, groups, strict=True):
        own = (X[rows], codes[rows], weights[rows])
        client = _make_client(name, by_class, *(merge_equal_rows(*own) if merge else own))
        read.append(client)
        totals.append(client.total)
    by_label = (np.bincount(codes, weights, len(classes)).astype(np.float64), by_class)
    return TrainingData(classes, *by_label, client_labels, tuple(read), n_clipped, names, totals)


def _make_client(name: Any, by_class: Array, X: Matrix, codes: Codes, weights: Array) -> Client:
    if name == "":
        raise InvalidInputError("clients", "labels must not be empty", "some are")
    if weights.max() > _LARGE:
        raise InvalidInputError(
            "sample_weight", f"must be below {_LARGE:g}", f"client {name!r} has a larger one"
        )
    weighted = weights * by_class[codes]
    if not weighted.any():
        raise InvalidInputError(
            "class_weight", "must leave every client some weight", f"client {name!r} has none"
        )
    return Client(name, X, codes, len(by_class), weighted, float(weights.sum()))


def take_column(X: Any, name: str) -> tuple[Any, Any]:
    """The other columns of a data frame (pandas, polars), and this one."""
    if callable(getattr(X, "collect", None)):
        raise InvalidInputError("X", "must be in memory", "it is lazy; collect it first")
    columns = list(getattr(X, "columns", ()))
    remedy = "give one label per row, such as clients=plants"
    if not columns or not callable(getattr(X, "__getitem__", None)):
        raise InvalidInputError(
            "clients",
            "can name a column only if X is a data frame",
            f"it is {name!r}, and X is a {type(X).__name__}; {remedy}",
        )
    if columns.count(name) != 1:
        raise InvalidInputError(
            "clients",
            "must name one column of X, or have one label for each row",
            f"X has {columns.count(name)} columns called {name!r}; its columns are "
            f"{listed(map(repr, columns), _MOST_SHOWN)}",
        )
    return without_column(X, name), X[name]


def without_column(X: Any, name: str) -> Any:
    """A data frame without a column, if it has it; anything else as it is."""
    columns = list(getattr(X, "columns", ()))
    if name not in columns:
        return X
    others = [column for column in columns if column != name]
    if not others:
        raise InvalidInputError("X", "must have a feature", f"its only column is {name!r}")
    return X[others]


def check_columns(X: Any) -> None:
    """No text, date or masked value that could be read as a number, no two columns of one name."""
    columns = getattr(X, "columns", None)
    if columns is not None and len(columns):
        name, count = Counter(columns).most_common(1)[0]
        if count > 1:
            raise InvalidInputError(
                "X", "its columns must have different names", f"{count} are called {name!r}"
            )
    if sparse.issparse(X):
        return
    refuse_stand_ins(X, "X")
    for values in [X] if columns is None else [X[name] for name in columns]:
        try:
            array = np.asarray(values)
        except (TypeError, ValueError):
            return  # scikit-learn has a better word for it
        is_text = array.dtype.kind in "US"
        if array.dtype.kind == "O":
            is_text = any(isinstance(item, str | bytes) for item in array.flat)
        if is_text:
            raise InvalidInputError("X", "must be numeric", "some of it is text")


def _ready(X: Matrix, box: Box | None, outside: str, names: Any) -> tuple[Matrix, int]:
    """X as compiled code takes it and within the support, and how many values had to be moved."""
    check_choice(outside, "outside", ("refuse", "clip"))
    if sparse.issparse(X) and box is None:
        matrix = sparse.csr_array(X)
        if matrix.indices.dtype != np.int32 and max(X.nnz, *X.shape) < _INT32:
            indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
            matrix = sparse.csr_array((X.data, indices, indptr), shape=X.shape)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the next line works in place
            matrix.sum_duplicates()
        return matrix, 0
    # In a box a zero can move as any other value can.
    rows: Array = X.toarray() if sparse.issparse(X) else X
    rows = np.require(rows, requirements=["C", "A", "E"])
    if box is None:
        return rows, 0
    if outside == "refuse":
        check_inside(rows, box, names)
        return rows, 0
    clipped = np.clip(rows, box.low, box.high)
    return clipped, int(np.count_nonzero(clipped != rows))


def check_weights(sample_weight: Any, n_rows: int) -> Array:
    """Masses of the rows, none of them negative; 1 each if they are not given."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = check_vector(sample_weight, "sample_weight", n_rows, "samples")
    if (weights < 0.0).any():
        rule = "weights must not be negative"
        raise entry_error("sample_weight", rule, weights, weights < 0.0)
    return weights


def check_label_values(labels: Any, argument: str) -> None:
    """Nothing masked or missing, and of classes no dates, before NumPy makes labels of it."""
    if isinstance(labels, np.ma.MaskedArray) and np.ma.is_masked(labels):
        raise InvalidInputError(
            argument,
            "labels must not be masked: leave those rows out",
            f"{np.count_nonzero(np.ma.getmaskarray(labels))} are",
        )
    if argument == "y" and getattr(getattr(labels, "dtype", None), "kind", "O") in "mM":
        raise InvalidInputError(
            argument,
            "labels must be text, whole numbers or booleans: turn dates and durations into text",
            f"their dtype is {labels.dtype}",
        )
    if isinstance(labels, list | tuple) and any(
        label is None or (isinstance(label, float) and label != label) for label in labels
    ):
        raise InvalidInputError(argument, "labels must not be missing", "some are")


def check_clients(clients: Any, n_rows: int) -> npt.NDArray[Any]:
    """A client label for each row; all rows are one client's if no labels are given."""
    if clients is None:
        return np.full(n_rows, _ONLY_CLIENT)
    check_label_values(clients, "clients")
    labels = np.asarray(clients)
    if labels.shape != (n_rows,):
        raise InvalidInputError(
            "clients",
            f"must have shape ({n_rows},), one label for each row",
            f"its shape is {labels.shape}",
        )
    return labels


def rows_by_client(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Sequence[Any]]:
    """The clients' labels, sorted, and for each of them which rows it has, in their order."""
    client_labels, owners = _distinct(labels, "clients")
    if len(client_labels) == 1:
        return client_labels, [slice(None)]  # no copy
    ends = np.cumsum(np.bincount(owners, minlength=len(client_labels)))
    return client_labels, np.split(np.argsort(owners, kind="stable"), ends[:-1])


def _distinct(labels: npt.NDArray[Any], argument: str) -> tuple[npt.NDArray[Any], Codes]:
    try:
        values, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise InvalidInputError(
            argument,
            "labels must be of one kind and not missing",
            _missing_row(labels) or "they cannot be sorted",
        ) from None
    for value in values.tolist():
        if value is None or value != value:
            raise InvalidInputError(argument, "labels must not be missing", _missing_row(labels))
    return values, codes


def _missing_row(labels: npt.NDArray[Any]) -> str:
    """The first row without a label, in words; empty if there is none."""
    missing = [
        row
        for row, label in enumerate(labels.tolist())
        if label is None or type(label).__name__ == "NAType" or label != label
    ]
    return f"that of row {missing[0]} is missing ({len(missing)} in all)" if missing else ""


def _class_weights(
    class_weight: Any, classes: npt.NDArray[Any], codes: Codes, weights: Array
) -> Array:
    """One weight per class: the given one, else 1, or "balanced" over all clients' rows."""
    if isinstance(class_weight, str):
        check_choice(class_weight, "class_weight", ("balanced",))
        counts = np.bincount(codes, weights=weights)
        return np.asarray(counts.sum() / (len(classes) * counts))
    if not isinstance(class_weight, Mapping):
        raise InvalidInputError(
            "class_weight", "must be None, 'balanced' or a mapping", f"it is {class_weight!r}"
        )
    labels = classes.tolist()
    without = [label for label in labels if label not in class_weight]
    unknown = [label for label in class_weight if label not in labels]
    if without and unknown:  # a misspelt label, most likely
        raise InvalidInputError(
            "class_weight",
            f"must be for the classes {labels}",
            f"it lacks {without} and has {unknown}",
        )
    return np.array(
        [
            check_non_negative(class_weight.get(label, 1.0), f"class_weight of {label!r}")
            for label in labels
        ]
    )


# --- equal rows ---


def merge_equal_rows(X: Matrix, codes: Codes, weights: Array) -> tuple[Matrix, Codes, Array]:
    """Rows that differ in features or class, with the sums of their weights."""
    hashes = _row_hashes(X) + _mixed(codes.astype(np.uint64) + np.uint64(1))
    order = np.argsort(hashes, kind="stable")
    ties = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    left, right = order[ties], order[ties + 1]
    unequal = X[left] != X[right]
    if sparse.issparse(X):
        differs = np.diff(sparse.csr_array(unequal).indptr) > 0
    else:
        differs = unequal.any(axis=1)
    is_first = np.ones(len(order), dtype=bool)
    is_first[ties + 1] = (codes[left] != codes[right]) | differs
    groups = np.cumsum(is_first) - 1
    sums = np.bincount(groups, weights=weights[order])
    kept = order[is_first]
    return X[kept], codes[kept], np.asarray(sums, dtype=np.float64)


def _row_hashes(X: Matrix) -> Hashes:
    """A sum over the features in which zeros count nothing, so that CSR has the same.

    Adding 0.0 turns -0.0 into 0.0, whose bits are 0.
    """
    random = np.random.default_rng(_SEED).integers(2**63, size=X.shape[1], dtype=np.uint64)
    factors = random * np.uint64(2) + np.uint64(1)
    if sparse.issparse(X):
        terms = _mixed((X.data + 0.0).view(np.uint64)) * factors[X.indices]
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    hashes = np.empty(len(X), dtype=np.uint64)
    n_rows = max(1, _CHUNK // X.shape[1])
    for start in range(0, len(X), n_rows):
        bits = (X[start : start + n_rows] + 0.0).view(np.uint64)
        hashes[start : start + n_rows] = (_mixed(bits) * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def _mixed(bits: Hashes) -> Hashes:
    """Round numbers have their information in the high bits, which a product would push out."""
    return bits ^ (bits >> np.uint64(32))
