"""How rows are spread over clients: labels and a seed in, a client for each row out.

Every function returns an array with one client number, from 0, for each row, so that every row
belongs to exactly one client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_positive
from fdrsvm.datasets._random import RandomState, as_generator
from fdrsvm.errors import InvalidInputError
from fdrsvm.native import steps

__all__ = ["by_group", "by_shares", "dirichlet", "stratified"]

ClientIds = npt.NDArray[np.int64]

_MAX_DRAWS = 1000


def stratified(y: Any, n_clients: int, *, random_state: RandomState = None) -> ClientIds:
    """Equal clients with equal mixes of labels.

    Numbers of rows differ by at most one between clients, in all and in each class.

    Parameters
    ----------
    y : array
        A label for each row, of any kind and any number of classes.
    n_clients : int
        At most the number of rows.
    random_state : int, SeedSequence, Generator or None

    Examples
    --------
    >>> import numpy as np
    >>> from fdrsvm.datasets import partition
    >>> clients = partition.stratified([0] * 30 + [1] * 10, 4, random_state=0)
    >>> np.bincount(clients).tolist(), np.bincount(clients[30:]).tolist()
    ([10, 10, 10, 10], [2, 2, 3, 3])
    """
    codes = _codes(y, "y")
    n_clients = _check_clients(n_clients, codes.size)
    return _deal_by_class(codes, np.full(n_clients, 1.0 / n_clients), random_state)


def by_shares(y: Any, shares: Sequence[float], *, random_state: RandomState = None) -> ClientIds:
    """Clients of given sizes with equal mixes of labels, say 70, 15, 10 and 5 %.

    A client's number of rows is its share to within one, and exact where the share is a whole
    number; in each class it is to within two.

    Parameters
    ----------
    y : array
        A label for each row.
    shares : numbers above 0
        One per client, in any unit: ``(70, 15, 10, 5)`` and ``(.7, .15, .1, .05)`` are the same.
    random_state : int, SeedSequence, Generator or None
    """
    codes = _codes(y, "y")
    try:
        weights = np.asarray(shares, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.ndim != 1 or weights.size == 0 or not ((weights > 0) & np.isfinite(weights)).all():
        raise InvalidInputError(
            "shares", "must be one finite number above 0 for each client", f"it is {shares!r}"
        )
    weights = weights / weights.sum()
    _check_clients(weights.size, codes.size, "shares")
    clients = _deal_by_class(codes, weights, random_state)
    counts = np.bincount(clients, minlength=weights.size)
    if not counts.all():
        g = int(np.flatnonzero(counts == 0)[0])
        raise InvalidInputError(
            "shares",
            "must give every client a row",
            f"client {g} has {100 * weights[g]:.3g} % of {codes.size}",
        )
    return clients


def dirichlet(
    y: Any,
    n_clients: int,
    concentration: float,
    *,
    min_samples: int = 1,
    random_state: RandomState = None,
) -> ClientIds:
    """Clients with different mixes of labels: each class is spread by its own Dirichlet draw.

    Parameters
    ----------
    y : array
        A label for each row.
    n_clients : int
    concentration : float above 0
        0.1 gives most of a class to one client or two; 100 is close to equal mixes.
    min_samples : int, default 1
        Draws are repeated until every client has this many rows.
    random_state : int, SeedSequence, Generator or None
    """
    codes = _codes(y, "y")
    n_clients = _check_clients(n_clients, codes.size)
    concentration = check_positive(concentration, "concentration")
    min_samples = check_count_within(min_samples, "min_samples", 0, codes.size // n_clients)
    rng = as_generator(random_state)
    rows = [rng.permutation(np.flatnonzero(codes == c)) for c in range(codes.max() + 1)]
    for _ in range(_MAX_DRAWS):
        clients = np.empty(codes.size, dtype=np.int64)
        for members in rows:
            shares = rng.dirichlet(np.full(n_clients, concentration))
            ends = np.rint(np.cumsum(shares) * members.size).astype(np.int64)
            clients[members] = np.searchsorted(ends[:-1], np.arange(members.size), side="right")
        if np.bincount(clients, minlength=n_clients).min() >= min_samples:
            return clients
    raise InvalidInputError(
        "min_samples",
        f"must be met within {_MAX_DRAWS} draws",
        f"{min_samples} rows for each of {n_clients} clients at concentration {concentration:g} "
        "were not; fewer rows or a larger concentration are",
    )


def by_group(
    groups: Any, n_clients: int | None = None, *, random_state: RandomState = None
) -> ClientIds:
    """Clients made of whole groups: machines, persons, batches.

    Parameters
    ----------
    groups : array
        A group for each row.
    n_clients : int, optional
        None makes every group a client, in sorted order. Otherwise groups, the largest first, go
        to the client with the fewest rows so far.
    random_state : int, SeedSequence, Generator or None
        Decides between groups of equal size.
    """
    codes = _codes(groups, "groups")
    n_groups = int(codes.max()) + 1
    if n_clients is None:
        return codes
    n_clients = _check_clients(n_clients, n_groups, per="groups")
    sizes = np.bincount(codes)
    shuffled = as_generator(random_state).permutation(n_groups)
    home, load = np.empty(n_groups, dtype=np.int64), np.zeros(n_clients, dtype=np.int64)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        home[group] = load.argmin()
        load[home[group]] += sizes[group]
    return np.asarray(home[codes], dtype=np.int64)


def _deal_by_class(codes: ClientIds, shares: Array, random_state: RandomState) -> ClientIds:
    """Rows in random order, class after class, dealt by shares."""
    shuffled = as_generator(random_state).permutation(codes.size)
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    clients = np.empty(codes.size, dtype=np.int64)
    clients[order] = steps.deal(shares, codes.size)
    return clients


def _codes(values: Any, argument: str) -> ClientIds:
    array = check_vector(np.asarray(values), argument)
    if array.dtype.kind == "f" and np.isnan(array).any():
        row = int(np.flatnonzero(np.isnan(array))[0])
        raise InvalidInputError(argument, "must not be missing", f"row {row} is nan")
    try:
        return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)
    except TypeError:
        raise InvalidInputError(argument, "entries must be of one kind", "they are mixed") from None


def check_vector(array: npt.NDArray[Any], argument: str) -> npt.NDArray[Any]:
    """An array with one entry per row."""
    if array.ndim != 1 or array.size == 0:
        raise InvalidInputError(
            argument, "must be a vector with at least one entry", f"its shape is {array.shape}"
        )
    return array


def check_count_within(
    value: Any, argument: str, low: int, high: int, rule: str | None = None
) -> int:
    """A whole number, neither below ``low`` nor above ``high``."""
    is_count = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_count or not low <= value <= high:
        rule = rule or f"must be an integer from {low} to {high}"
        raise InvalidInputError(argument, rule, f"it is {value!r}")
    return int(value)


def _check_clients(
    n_clients: Any, available: int, argument: str = "n_clients", per: str = "rows"
) -> int:
    rule = f"there must be at least 1 client and no more than the {available} {per}"
    return check_count_within(n_clients, argument, 1, available, rule)
