"""Whose turn it is when rows are dealt to clients by shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled

_SLACK = 1e-9  # shares are rounded; a client is not left out for that


@compiled
def deal(shares: Array, n_rows: int) -> npt.NDArray[np.int64]:
    """A client for each row, such that after any k rows each has its share of k to within one.

    Tijdeman's rule for the chairman assignment problem: of the clients that are owed enough, the
    one whose next row is due first.
    """
    n_clients = shares.size
    turns, counts = np.zeros(n_rows, np.int64), np.zeros(n_clients)
    if n_clients == 1:
        return turns
    margin = 1.0 / (2 * n_clients - 2)
    for k in range(n_rows):
        best, first = -1, np.inf
        for g in range(n_clients):
            if shares[g] > 0.0 and shares[g] * (k + 1) - counts[g] >= margin - _SLACK:
                due = (counts[g] + 1.0 - margin) / shares[g]
                if due < first:
                    best, first = g, due
        turns[k] = best
        counts[best] += 1.0
    return turns
