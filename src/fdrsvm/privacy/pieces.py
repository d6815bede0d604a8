"""What messages show besides plain differences of cuts: pieces of risks, and spans.

Pieces, [risk-pieces]: cuts that nobody sent, from risks alone. Less its norm term a hinge risk is a
sum of p_n max(0, 1 - z_n.w): between kinks it is c - s.w with the s and c of the touching cut,
blurred or not, summed or not. As many models as (s, c) has numbers give it, if all lie in one
piece. The nearest models of a run are tried together, and successive ones. What is found must also
lie below every other risk, since a touching cut does: few wrong ones pass that.

Spans, [subspaces]: while few rows change their shares, differences of successive cuts lie in the
span of those rows (z_n, 1), whatever the shares are: fractions hide no row from this. Two spans
that have one direction in common share one row, and its last entry, 1, gives the scale.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.privacy.observations import Risks

_ROUNDING = 1e-14  # of a risk, relative to 1 + |risk|
_EXTRA = 4  # times the rounding: what a check may miss by
_SPREAD = 1e-13  # singular values below this share of the largest are rounding
_SAME_WEIGHT = 1e-12  # other flips are another piece
_REFITS = 2
_NO_CHANGE = 1e-12  # of a difference of two cuts
_RANK = 1e-9  # singular values of a span below this share of the largest are rounding
_COMMON = 1e-10  # how far below 1 the cosine between two spans may be
_SMALLEST_LAST = 1e-6
_MAX_SPANS = 300


class Pieces(NamedTuple):
    """Linear pieces of a risk: (s, c), a model inside each, and how far (s, c) may be off."""

    states: Array
    points: Array
    errors: Array

    def select(self, keep: npt.NDArray[np.bool_ | np.intp]) -> Pieces:
        """Some of them."""
        return Pieces(self.states[keep], self.points[keep], self.errors[keep])


def pieces_of(risks: Risks, resolution: float, worst: float) -> Pieces:
    """The pieces around each model, as far as the risks at its neighbours determine them.

    ``resolution`` is the grid of the risks, ``worst`` the largest error of use.
    """
    n_points, width = risks.points.shape
    shown = []
    if n_points > width:
        linear = risks.values - risks.norm_weights * risks.sizes
        noise = _EXTRA * (_ROUNDING * (1.0 + np.abs(risks.values)) + resolution)
        square = np.einsum("ij,ij->i", risks.points, risks.points)
        apart = square[:, None] + square - 2.0 * risks.points @ risks.points.T
        for at in range(n_points):
            orders = (
                np.argsort(apart[at], kind="stable"),
                np.arange(at, n_points),
                np.arange(at, -1, -1),
            )
            # From the first order of the models, nearest first, in which a piece shows.
            pieces = (_piece_at(risks, linear, noise, order, at) for order in orders)
            piece = next((one for one in pieces if one is not None), None)
            if piece is not None and piece[1] <= worst:
                shown.append((piece[0], risks.points[at], piece[1]))
    return Pieces(
        np.array([state for state, _, _ in shown]).reshape(-1, width + 1),
        np.array([point for _, point, _ in shown]).reshape(-1, width),
        np.array([error for _, _, error in shown]),
    )


def _piece_at(
    risks: Risks, linear: Array, noise: Array, nearest: npt.NDArray[np.intp], at: int
) -> tuple[Array, float] | None:
    """(s, c) of the piece that a model lies in, and their error; None if it does not show."""
    width = risks.points.shape[1]
    reach = 1.0 + np.abs(risks.points).sum(axis=1)
    norm_term = risks.norm_weights[at] * risks.sizes
    is_alike = np.abs(risks.norm_weights - risks.norm_weights[at]) <= _SAME_WEIGHT
    same = nearest[is_alike[nearest]]
    for n_used in (width + 2, width + 1):  # one more than needed is a check of its own
        used = same[:n_used]
        if used.size < n_used:
            continue
        for _ in range(_REFITS):
            fit = _fitted(risks.points, linear, noise, used, at)
            if fit is None:
                break
            values = fit[0][-1] - risks.points @ fit[0][:-1]
            if not (values + norm_term <= risks.values + noise * reach).all():
                break  # a cut that touches lies below all risks
            inside = np.abs(linear - values) <= noise
            agreeing = np.flatnonzero(inside & is_alike)
            if agreeing.size <= used.size:
                return fit
            used = agreeing  # more models in the piece leave less rounding
        else:
            return _fitted(risks.points, linear, noise, used, at)
    return None


def _fitted(
    points: Array, linear: Array, noise: Array, used: npt.NDArray[np.intp], at: int
) -> tuple[Array, float] | None:
    """Least squares about the model itself, where rounding hurts least."""
    steps = points[used] - points[at]  # an intercept at the model itself: no constant to fit
    left, spread, right = np.linalg.svd(steps, full_matrices=False)
    if spread.size < points.shape[1] or not spread[-1] > _SPREAD * max(float(spread[0]), 1e-300):
        return None
    rises = linear[used] - linear[at]
    slope = -right.T @ ((left.T @ rises) / spread)
    if not (np.abs(rises + steps @ slope) <= noise[used] + noise[at]).all():
        return None
    error = float(noise[at] / spread[-1]) * (1.0 + float(np.abs(points[at]).sum()))
    return np.append(slope, linear[at] + slope @ points[at]), error


def common_directions(states: Array) -> Array:
    """Vectors z for every pair of spans with one direction (z, 1) in common, repeats included."""
    spans = spans_of(np.diff(states, axis=0))
    directions = [span[0] for span in spans if len(span) == 1]
    for left, right in combinations(spans, 2):
        rotation, cosines, _ = np.linalg.svd(left @ right.T)
        # A cosine of 1 is a direction in both; two of them could be any mixture of two rows.
        if np.count_nonzero(cosines > 1.0 - _COMMON) == 1:
            directions.append(rotation[:, 0] @ left)
    common = np.array(directions).reshape(-1, states.shape[1])
    common = common[np.abs(common[:, -1]) > _SMALLEST_LAST]  # the last entry of a row is 1
    return np.asarray(common[:, :-1] / common[:, -1:])


def spans_of(differences: Array) -> list[Array]:
    """Orthonormal rows of the span of a few successive differences, from every start.

    As many differences are taken as it needs for one more to add nothing; a start where they would
    fill the whole space gives none, and one that repeats the span before gives nothing new.
    """
    spans: list[Array] = []
    for start in range(len(differences) - 1):
        span = _span_from(differences[start : start + differences.shape[1]])
        if span is None:
            continue
        if spans and len(spans[-1]) == len(span):
            cosines = np.linalg.svd(spans[-1] @ span.T, compute_uv=False)
            if cosines[-1] > 1.0 - _COMMON:  # the same span
                continue
        spans.append(span)
    return spans[:: 1 + len(spans) // _MAX_SPANS]  # all pairs of these are looked at


def _span_from(differences: Array) -> Array | None:
    lengths = np.linalg.norm(differences, axis=1)
    basis = np.empty((0, differences.shape[1]))
    for difference, length in zip(differences, lengths, strict=True):
        if length <= _NO_CHANGE:
            return None
        rest = difference / length
        for _ in range(2):  # once more for what rounding left
            rest = rest - basis.T @ (basis @ rest)
        size = float(np.linalg.norm(rest))
        if size <= _RANK:
            return basis
        basis = np.vstack([basis, rest / size])
    return None
