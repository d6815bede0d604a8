"""What ``fit`` was given, checked once: rows by client, classes as numbers, weights.

A row of weight 0 counts as absent, and one of weight 2 as two rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from fdrsvm.core.arrays import (
    Array,
    Matrix,
    check_choice,
    check_non_negative,
    check_vector,
    refuse_stand_ins,
)
from fdrsvm.data.equal_rows import merge_equal_rows
from fdrsvm.errors import InvalidInputError
from fdrsvm.risk.ball import Box, check_inside, check_support

_Checked = TypeVar("_Checked")

_ONLY_CLIENT = "all"
_AUTO = 10.0  # beta in [practical]: the paper's 1 / (beta N)
_INT32 = np.iinfo(np.int32).max
_LARGE = 1e290  # no sum of weights overflows below


@dataclass(frozen=True, eq=False)
class ClientRows:
    """One client's share of the data.

    ``codes`` are positions in the classes, ``weights`` sample weight times class weight, and
    ``total`` the number of rows, or the sum of their sample weights.
    """

    label: Any
    X: Matrix
    codes: npt.NDArray[np.intp]
    weights: Array
    total: float


@dataclass(frozen=True, eq=False)
class TrainingData:
    """All clients, in the order of their labels; ``n_clipped`` values were moved into the box."""

    classes: npt.NDArray[Any]
    class_weights: Array
    client_labels: npt.NDArray[Any]
    clients: tuple[ClientRows, ...]
    n_clipped: int

    @property
    def n_models(self) -> int:
        """One for two classes, else one per class."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def signs(self, codes: npt.NDArray[np.intp]) -> list[Array]:
        """Labels -1 and +1 for each model: the second class, or each class, against the rest."""
        positives = [1] if self.n_models == 1 else range(self.n_models)
        return [np.where(codes == positive, 1.0, -1.0) for positive in positives]


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
    """Checks everything that ``fit`` is given; sets ``n_features_in_`` and ``feature_names_in_``.

    With ``merge``, equal rows of a client become one, and the order of rows is forgotten.
    """
    check_columns(X)
    check_label_values(y, "y")
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, order="C")
    if y.dtype.kind == "O":
        _distinct(y, "y")  # else what is missing is an error without a name in the next line
    check_classification_targets(y)
    names = getattr(estimator, "feature_names_in_", None)
    X, n_clipped = _inside(_owned(X), check_support(support, X.shape[1]), outside, names)
    n_rows = X.shape[0]
    weights = _check_weights(sample_weight, n_rows)
    labels = _check_clients(clients, n_rows)
    if sample_weight is not None and not weights.all():
        counted = weights > 0.0
        X, y, weights, labels = X[counted], y[counted], weights[counted], labels[counted]
    classes, codes = _distinct(y, "y")
    if len(classes) < 2:
        raise InvalidInputError(
            "y", "must hold two or more classes over all clients", "there is only one class"
        )
    by_class = _class_weights(class_weight, classes, codes, weights)
    client_labels, owners = _distinct(labels, "clients")
    if "" in client_labels.tolist():
        raise InvalidInputError("clients", "labels must not be empty", "some are")
    found = []
    for label, rows in zip(client_labels.tolist(), _split(len(client_labels), owners), strict=True):
        part = (X[rows], codes[rows], weights[rows])
        found.append(_client_rows(label, by_class, *(merge_equal_rows(*part) if merge else part)))
    return TrainingData(classes, by_class, client_labels, tuple(found), n_clipped)


def per_client(
    value: Any, argument: str, data: TrainingData, check: Callable[[Any, str], _Checked]
) -> list[_Checked]:
    """One value per client from a single one, a mapping by label, or one per client in order."""
    labels = data.client_labels.tolist()
    if hasattr(value, "to_dict"):
        value = value.to_dict()  # a pandas Series has the clients in its index
    if isinstance(value, Mapping):
        _check_names(value, argument, labels)
        return [check(value[label], f"{argument} of client {label!r}") for label in labels]
    if isinstance(value, str) or np.ndim(value) == 0:
        return [check(value, argument)] * len(labels)
    if np.shape(value) != (len(labels),):
        raise InvalidInputError(
            argument,
            f"must have one entry for each of {len(labels)} clients",
            f"its shape is {np.shape(value)}",
        )
    return [
        check(item, f"{argument} of client {label!r}")
        for item, label in zip(value, labels, strict=True)
    ]


def radii(value: Any, argument: str, data: TrainingData) -> list[float]:
    """``per_client`` for radii and penalties, where "auto" is 1/(10 N_g): [practical]."""
    found = per_client(value, argument, data, _check_radius)
    return [
        1.0 / (_AUTO * client.total) if number is None else number
        for client, number in zip(data.clients, found, strict=True)
    ]


def _check_radius(value: Any, argument: str) -> float | None:
    """None stands for "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise InvalidInputError(argument, "must be a number or 'auto'", f"it is {value!r}")
        return None
    return check_non_negative(value, argument)


def client_shares(client_weights: Any, data: TrainingData) -> Array:
    """One weight a client; "samples" counts rows, or sums their weights."""
    if isinstance(client_weights, str):
        check_choice(client_weights, "client_weights", ("equal", "samples"))
        equal = client_weights == "equal"
        return np.array([1.0 if equal else client.total for client in data.clients])
    return np.array(per_client(client_weights, "client_weights", data, check_non_negative))


def _check_names(value: Mapping[Any, Any], argument: str, labels: Sequence[Any]) -> None:
    unknown = [name for name in value if name not in labels]
    missing = [label for label in labels if label not in value]
    if unknown or missing:
        kind, names = ("unknown", unknown) if unknown else ("missing", missing)
        raise InvalidInputError(
            argument,
            "must name every client of this fit, and no other",
            f"{kind}: {', '.join(map(repr, names))}",
        )


def check_columns(X: Any) -> None:
    """No text, date or masked value that could be read as a number, no two columns of one name."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        name, count = Counter(columns).most_common(1)[0] if len(columns) else ("", 0)
        if count > 1:
            raise InvalidInputError(
                "X", "its columns must have different names", f"{count} are called {name!r}"
            )
    if not sparse.issparse(X):
        refuse_stand_ins(X, "X")
        _refuse_text([X] if columns is None else [X[name] for name in columns])


def _refuse_text(parts: Sequence[Any]) -> None:
    for part in parts:
        try:
            array = np.asarray(part)
        except (TypeError, ValueError):
            return  # scikit-learn has a better word for it
        is_text = array.dtype.kind in "US"
        if array.dtype.kind == "O":
            is_text = any(isinstance(item, str | bytes) for item in array.flat)
        if is_text:
            raise InvalidInputError("X", "must be numeric", "some of it is text")


def _owned(X: Matrix) -> Matrix:
    """As compiled code takes it: aligned rows in C order, and 32-bit indices."""
    if not sparse.issparse(X):
        return np.require(X, requirements=["C", "A", "E"])
    matrix = sparse.csr_array(X)
    if matrix.indices.dtype != np.int32 and max(X.nnz, *X.shape) < _INT32:
        indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        matrix = sparse.csr_array((X.data, indices, indptr), shape=X.shape)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the next line works in place
        matrix.sum_duplicates()
    return matrix


def _inside(X: Matrix, box: Box | None, outside: str, names: Any) -> tuple[Matrix, int]:
    """X within the support, and how many values had to be moved."""
    check_choice(outside, "outside", ("refuse", "clip"))
    if box is None:
        return X, 0
    if sparse.issparse(X):
        X = X.toarray()  # in a box a zero can move as any other value can
    if outside == "refuse":
        check_inside(X, box, names)
        return X, 0
    clipped = np.clip(X, box.low, box.high)
    return clipped, int(np.count_nonzero(clipped != X))


def _check_weights(sample_weight: Any, n_rows: int) -> Array:
    if sample_weight is None:
        return np.ones(n_rows)
    weights = check_vector(sample_weight, "sample_weight", n_rows, "samples")
    if (weights < 0.0).any():
        row = int(np.flatnonzero(weights < 0.0)[0])
        raise InvalidInputError(
            "sample_weight", "weights must not be negative", f"row {row} is {weights[row]:g}"
        )
    if not weights.any():
        raise InvalidInputError("sample_weight", "some weight must be positive", "all are zero")
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


def _check_clients(clients: Any, n_rows: int) -> npt.NDArray[Any]:
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


def _distinct(
    labels: npt.NDArray[Any], argument: str
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    try:
        values, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise InvalidInputError(
            argument, "labels must be of one kind and not missing", "they cannot be sorted"
        ) from None
    if any(value is None or value != value for value in values.tolist()):
        raise InvalidInputError(argument, "labels must not be missing", "some are")
    return values, codes


def _split(n_clients: int, owners: npt.NDArray[np.intp]) -> Sequence[Any]:
    """The rows of each client, in their order."""
    if n_clients == 1:
        return [slice(None)]  # no copy
    ends = np.cumsum(np.bincount(owners, minlength=n_clients))
    return np.split(np.argsort(owners, kind="stable"), ends[:-1])


def _class_weights(
    class_weight: Any,
    classes: npt.NDArray[Any],
    codes: npt.NDArray[np.intp],
    weights: Array,
) -> Array:
    """One weight a class: 1, the given one, or "balanced" over all clients' rows."""
    if class_weight is None:
        return np.ones(len(classes))
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


def _client_rows(
    label: Any, by_class: Array, X: Matrix, codes: npt.NDArray[np.intp], weights: Array
) -> ClientRows:
    if weights.max() > _LARGE:
        raise InvalidInputError(
            "sample_weight", f"must be below {_LARGE:g}", f"client {label!r} has a larger one"
        )
    weighted = weights * by_class[codes]
    if not weighted.any():
        raise InvalidInputError(
            "class_weight", "must leave every client some weight", f"client {label!r} has none"
        )
    return ClientRows(label, X, codes, weighted, float(weights.sum()))
