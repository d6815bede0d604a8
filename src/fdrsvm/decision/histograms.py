"""How scores spread over the classes, as counts, and where counts say to cut them.

A client counts its rows, class by class, between agreed edges, and tells no more. The server needs
the sums over clients only, so that masked sums do. The first edges serve scores of any size; then
every interval that holds much is split, and asked for again, until each of them holds at most one
in 256 rows of either class or hardly any rows. Counts are exact at every edge, so that the score of
a cut there is that of the held-out rows themselves.

With a share q of labels wrong, whichever row it is, observed counts O of a prediction and true ones
T belong together by O_+ = (1 - q) T_+ + q T_- and O_- = q T_+ + (1 - q) T_-, so that

    T_+ = ((1 - q) O_+ - q O_-) / (1 - 2 q)    and T_- likewise    [label-noise]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.data.training_data import Codes
from fdrsvm.decision.goals import Scoring, score_counts
from fdrsvm.errors import InvalidInputError

# 0 is an edge, and never goes: it is where an untuned model cuts.
_SIZES = 256.0 ** np.arange(-4, 128)
FIRST_EDGES: Array = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])
_SHARE = 1.0 / 256.0
_FEW = 10  # rows; below it an interval tells of chance, and of single rows
_PARTS = 16
_MOST_QUESTIONS = 12


class Histogram(NamedTuple):
    """Rows between edges: ``counts`` has shape (n_folds, 2, n_edges + 1).

    The interval k is the one above ``edges[k - 1]`` up to and with ``edges[k]``. ``n_numbers`` is
    how many counts a client was asked for until it was fine enough.
    """

    edges: Array
    counts: Array
    n_numbers: int

    @property
    def zero(self) -> int:
        """Position of the edge 0, where an untuned model cuts."""
        return int(np.searchsorted(self.edges, 0.0))

    def tables(self, at: int | slice = slice(None)) -> Array:
        """Confusion counts of a cut at an edge, or at each of them, in the last two axes.

        The true class has the row, the predicted one the column; folds come first.
        """
        below = np.cumsum(self.counts, axis=-1)[..., :-1]
        above = self.counts.sum(axis=-1, keepdims=True) - below
        return np.moveaxis(np.stack([below, above], axis=-1), 1, -2)[:, at]

    def is_flat(self, width: float) -> bool:
        """Whether nearly all rows of both classes lie within an interval of this width.

        Nearly all is 98 in 100 of each class.
        """
        below = np.cumsum(self.counts.sum(axis=0), axis=-1)
        shares = [each / each[-1] for each in below if each[-1] > 0.0]
        if not shares:
            return False
        bounds = np.concatenate([[-np.inf], self.edges, [np.inf]])
        low = min(bounds[np.searchsorted(each, 0.01, side="right")] for each in shares)
        high = max(bounds[np.searchsorted(each, 0.99) + 1] for each in shares)
        return bool(high - low <= width)

    def middle_of_gap(self, at: int) -> float:
        """The threshold for an edge: of edges around empty intervals all predict the same."""
        edges, is_empty = self.edges, self.counts.sum(axis=(0, 1)) == 0.0
        low = high = at
        while high + 1 < len(edges) and is_empty[high + 1]:
            high += 1
        while low > 0 and is_empty[low]:
            low -= 1
        if edges[low] <= 0.0 <= edges[high]:
            return 0.0
        if (
            low == 0 or high == len(edges) - 1
        ):  # one class for all rows: the end of the gap near them
            return float(edges[high] if low == 0 else edges[low])
        return float(0.5 * edges[low] + 0.5 * edges[high])


def count_scores(scores: Array, codes: Codes, weights: Array, edges: Array) -> Array:
    """The client's part: how many rows of each of two classes lie in each interval.

    Parameters
    ----------
    scores, codes, weights : arrays of shape (n_rows,)
        Codes are 0 and 1; a row of weight 2 counts as two.
    edges : array
        In rising order.
    """
    counts = np.zeros((2, len(edges) + 1))
    np.add.at(counts, (codes, np.searchsorted(edges, scores, side="left")), weights)
    return counts


def ask_histogram(ask: Callable[[Array], Array]) -> Histogram:
    """The server's part: edges that suit the scores, from sums of counts alone.

    ``ask`` gives the counts between edges, summed over clients, fold by fold. Until the edges are
    fine enough, a client need tell only what all its folds have together.
    """
    edges, n_numbers = FIRST_EDGES, 0
    for _ in range(_MOST_QUESTIONS):
        pooled = ask(edges).sum(axis=0)
        n_numbers += pooled.size
        finer = _split(edges, pooled)
        if finer is None:
            break
        edges = finer
    counts = ask(edges)
    return Histogram(edges, counts, n_numbers + counts.size)


def _split(edges: Array, counts: Array) -> Array | None:
    """More edges where much lies, none in the middle of nothing; None if that changes nothing."""
    is_heavy = (counts > _SHARE * counts.sum(axis=1, keepdims=True)).any(axis=0)
    is_heavy &= counts.sum(axis=0) >= _FEW
    places = np.flatnonzero(is_heavy[1:-1]) + 1  # what is beyond all edges has no width
    low, high = edges[places - 1, None], edges[places, None]
    steps = np.arange(1, _PARTS) / _PARTS
    inner = np.setdiff1d(low * (1.0 - steps) + high * steps, edges)
    if not inner.size:
        return None
    near = counts.sum(axis=0)
    is_used = (near[:-1] + near[1:] > 0.0) | (edges == 0.0)
    return np.union1d(edges[is_used], inner)


@dataclass(frozen=True)
class Aim:
    """What is to be maximised: a score of one class or all, of counts corrected for wrong labels.

    Attributes
    ----------
    scoring : str, goal or callable
        As ``check_scoring`` gives it.
    positive : int
        Position of the class that is looked for.
    label_noise : float
        Share of labels that are wrong, in both classes alike.
    """

    scoring: Scoring
    positive: int = 1
    label_noise: float = 0.0

    def score(self, counts: Array) -> float:
        """Of confusion counts as they were recorded; nan if nothing was counted."""
        return score_counts(true_counts(counts, self.label_noise), self.scoring, self.positive)


def best_cut(histogram: Histogram, aim: Aim) -> tuple[int, float]:
    """The edge with the best score of all folds together, and the threshold there.

    Of equal scores the one with the most rows right. Where no row lies around the edge, the
    threshold is the middle of that gap, or 0 if that is in it.
    """
    tables = histogram.tables().sum(axis=0)
    scores = np.array([aim.score(table) for table in tables])
    if np.isnan(scores).all():
        return histogram.zero, 0.0
    ties = np.flatnonzero(scores == np.nanmax(scores))
    at = int(ties[np.trace(tables[ties], axis1=1, axis2=2).argmax()])
    return at, histogram.middle_of_gap(at)


def true_counts(observed: Array, label_noise: float) -> Array:
    """Counts as they would be with true labels, [label-noise]; none is below 0.

    Parameters
    ----------
    observed : array of shape (..., 2, 2)
        The recorded class has the row.
    label_noise : float
        Share of labels that are wrong, in both classes alike; below 1/2.
    """
    if label_noise == 0.0:
        return observed
    other = observed[..., ::-1, :]
    corrected = ((1.0 - label_noise) * observed - label_noise * other) / (1.0 - 2.0 * label_noise)
    return np.maximum(corrected, 0.0)


def check_label_noise(value: float, totals: Array) -> None:
    """A share that leaves true rows of both classes."""
    if len(totals) > 2 and value > 0.0:
        raise InvalidInputError("label_noise", "is for two classes", f"there are {len(totals)}")
    rarer = float(totals.min() / totals.sum())
    if value >= rarer:
        raise InvalidInputError(
            "label_noise",
            "must be below the share of the rarer class, or none of it would be true",
            f"it is {value:g}, and the share is {rarer:.3g}",
        )
