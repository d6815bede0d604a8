"""Rows from spans of differences: [subspaces].

While few rows change their shares, differences of successive cuts lie in the span of those rows
(z_n, 1), whatever the shares are: fractions hide no row from this. Two spans that have one
direction in common share one row, and its last entry, 1, gives the scale.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from fdrsvm.core.arrays import Array

_NO_CHANGE = 1e-12
_RANK = 1e-9  # singular values below this share of the largest are rounding
_COMMON = 1e-10  # how far below 1 the cosine between two spans may be
_SMALLEST_LAST = 1e-6
_MAX_SPANS = 300


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
