"""Rows from cuts, as a curious server would look for them: [row-difference], [peeling].

Differences   (v, c) of two cuts, c > 0. If one row alone changed its share, v / c is that row.
Which are     v / c must lie within the agreed limits, have +-1 for an intercept, and be active
rows?         where it says so. A vector that several pairs give is a row; one that a single pair
              gives is taken for one only if c is the mass of a whole row.
Peeling       once a row is known, so is its share at every model; its part is taken out of every
              cut, and differences that were of two rows are of one.
Spans         what successive differences have in common, subspaces.py: the only way to rows whose
              shares are fractions.

Nothing here knows the data: see audit.py for how claims are graded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.leakage.observations import Observations
from fdrsvm.leakage.subspaces import common_directions
from fdrsvm.maths.arrays import Array

Limits = tuple[Array | float, Array | float]
_Mask = npt.NDArray[np.bool_]

_SUPPORTS = (3, 2, 1)  # the surest first: a wrong row taken out spoils the rest
_SAME_STATE = 1e-11
_SAME_ROW = 1e-7
_SAME_DIRECTION = 1e-4
_SLACK = 1e-6  # of limits and of the intercept's +-1
_SMALLEST_SHARE = 1e-3  # of a row's mass; below, rounding is divided by too little
_LARGEST_ENTRY = 1e6
_UNSURE = 1e-2  # a solver's cut: how near to the margin a row may have any share


class Claims(NamedTuple):
    """Rows that an attack claims to have seen, and their labels; 0 where only y x is known."""

    rows: Array
    labels: Array


class _Candidates(NamedTuple):
    """Signed rows z, the mass by which each was seen, and how many pairs of cuts gave it."""

    signed: Array
    masses: Array
    supports: npt.NDArray[np.intp]


def recover_rows(observed: Observations, limits: Limits | None = None) -> Claims:
    """What the cuts of one client (or of a sum) give away.

    Parameters
    ----------
    observed : Observations
        All that the server has.
    limits : (low, high), optional
        Agreed limits of the features: they tell rows from sums of rows, and labels.
    """
    residual = observed.states
    usable = np.ones(len(residual), dtype=bool)
    claims = np.empty((0, observed.points.shape[1]))
    for least in _SUPPORTS:
        while True:
            found = _candidates(observed, residual, usable, limits, least)
            new = _unknown(found, claims)
            if not new.supports.size:
                break
            for signed, mass in zip(new.signed, new.masses, strict=True):
                shares, are_sure = _shares(observed, signed)
                residual = residual - np.outer(shares * mass, np.append(signed, 1.0))
                usable &= are_sure
            claims = np.concatenate([claims, new.signed])
    new = _unknown(_spanned(observed, limits), claims)
    return _labelled(np.concatenate([claims, new.signed]), observed, limits)


def _spanned(observed: Observations, limits: Limits | None) -> _Candidates:
    """Directions that spans of differences have in common, if several pairs of spans agree."""
    signed = common_directions(observed.states)
    signed = signed[_is_plausible(signed, observed, limits)]
    keys = signed @ _mixer(signed.shape[1])
    order = np.argsort(keys, kind="stable")
    groups = _groups(keys[order], _SAME_DIRECTION)
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    supports = np.diff(first, append=groups.size)
    chosen = supports >= _SUPPORTS[0]
    middle = order[(first + supports // 2)[chosen]]
    return _Candidates(signed[middle], np.empty(middle.size), supports[chosen])


def _shares(observed: Observations, signed: Array) -> tuple[Array, _Mask]:
    """The share of a known row in every cut, and where that is certain."""
    slack = 1.0 - observed.points @ signed
    are_sure = observed.are_whole | (np.abs(slack) > _UNSURE)
    return np.where(slack > 0.0, 1.0, 0.0), are_sure & ~np.isnan(slack)


def _candidates(
    observed: Observations, residual: Array, usable: _Mask, limits: Limits | None, least: int
) -> _Candidates:
    """Vectors that ``least`` pairs of cuts give, the best supported first."""
    at = np.flatnonzero(usable)
    at = at[_first_of_each(residual[at] @ _mixer(residual.shape[1]), _SAME_STATE)]
    parts = list(_differences(observed, residual, at, limits, least))
    signed = np.concatenate([part[0] for part in parts]) if parts else residual[:0, :-1]
    masses = np.concatenate([part[1] for part in parts]) if parts else residual[:0, 0]
    keys = signed @ _mixer(signed.shape[1])
    order = np.lexsort((-masses, keys))  # of equal ones the largest share first
    signed, masses, keys = signed[order], masses[order], keys[order]
    groups = _groups(keys, _SAME_ROW)
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    supports = np.diff(first, append=groups.size)
    heaviest = np.maximum.reduceat(masses, first) if first.size else masses
    chosen = np.flatnonzero(supports >= least)
    chosen = chosen[np.argsort(-supports[chosen], kind="stable")]
    whole = observed.masses[_nearest(heaviest[chosen], observed.masses)]
    return _Candidates(signed[first[chosen]], whole, supports[chosen])


def _differences(
    observed: Observations,
    residual: Array,
    at: npt.NDArray[np.intp],
    limits: Limits | None,
    least: int,
) -> Iterator[tuple[Array, Array]]:
    """Differences of pairs of cuts that may be one row, divided by their mass."""
    largest, smallest = observed.masses.max(), _SMALLEST_SHARE * observed.masses.min()
    for k, i in enumerate(at[:-1]):
        others = at[k + 1 :]
        difference = residual[i] - residual[others]
        mass = np.abs(difference[:, -1])
        possible = (mass > smallest) & (mass <= largest * (1.0 + _SLACK))
        are_whole = _are_whole(mass, observed.masses)
        if least == 1:
            possible &= are_whole
        if not possible.any():
            continue
        difference, mass, others = difference[possible], mass[possible], others[possible]
        signed = difference[:, :-1] / difference[:, -1:]
        keep = _is_plausible(signed, observed, limits)
        keep &= ~are_whole[possible] | _agrees(signed, difference[:, -1] > 0.0, observed, i, others)
        yield signed[keep], mass[keep]


def _are_whole(mass: Array, masses: Array) -> _Mask:
    """Whether a difference is as heavy as a whole row."""
    apart = np.abs(mass - masses[_nearest(mass, masses)])
    return np.asarray(apart <= _SLACK * masses.min())


def _nearest(values: Array, masses: Array) -> npt.NDArray[np.intp]:
    return np.asarray(np.abs(values[:, None] - masses).argmin(axis=1))


def _is_plausible(signed: Array, observed: Observations, limits: Limits | None) -> _Mask:
    """Within the limits, as x or as -x, and with a label for an intercept."""
    keep = np.abs(signed).max(axis=1) < _LARGEST_ENTRY
    if observed.fit_intercept:
        keep &= np.abs(np.abs(signed[:, -1]) - 1.0) <= _SLACK
    if limits is not None:
        features = signed[:, : observed.n_features]
        keep &= _is_within(features, limits) | _is_within(-features, limits)
    return np.asarray(keep)


def _is_within(rows: Array, limits: Limits) -> _Mask:
    low, high = limits
    inside = (rows >= low - _SLACK) & (rows <= high + _SLACK)
    return np.asarray(inside.all(axis=1))


def _agrees(
    signed: Array, is_more: _Mask, observed: Observations, i: np.intp, others: npt.NDArray[np.intp]
) -> _Mask:
    """Whether the row would be active at the one model and not at the other, where both count."""
    here = signed @ observed.points[i] - 1.0
    there = np.einsum("np,np->n", signed, observed.points[others]) - 1.0
    active, idle = np.where(is_more, here, there), np.where(is_more, there, here)
    are_known = observed.are_whole[i] & observed.are_whole[others]
    return np.asarray(~are_known | ((active <= _SAME_ROW) & (idle >= -_SAME_ROW)))


def _unknown(found: _Candidates, claims: Array) -> _Candidates:
    """Those that are not claimed yet, with either sign."""
    new = [
        k
        for k, signed in enumerate(found.signed)
        if not _is_among(signed, claims) and not _is_among(-signed, claims)
    ]
    return _Candidates(found.signed[new], found.masses[new], found.supports[new])


def _is_among(signed: Array, claims: Array) -> bool:
    return bool((np.abs(claims - signed).max(axis=1, initial=0.0) <= _SAME_DIRECTION).any())


def _labelled(claims: Array, observed: Observations, limits: Limits | None) -> Claims:
    """Rows from y x, with the label that the intercept or the limits tell."""
    rows = claims[:, : observed.n_features]
    labels = np.zeros(len(claims))
    if observed.fit_intercept:
        labels = np.sign(claims[:, -1])
    elif limits is not None:
        fits, fits_negative = _is_within(rows, limits), _is_within(-rows, limits)
        labels = np.where(fits == fits_negative, 0.0, np.where(fits, 1.0, -1.0))
    return Claims(rows * np.where(labels < 0.0, -1.0, 1.0)[:, None], labels)


def _mixer(size: int) -> Array:
    """Fixed random weights: vectors are equal if this one sum of theirs is."""
    return np.random.default_rng(20251115).normal(size=size)


def _groups(sorted_keys: Array, tolerance: float) -> npt.NDArray[np.intp]:
    """A number for each key; keys closer than the tolerance to the one before have its number."""
    starts = np.diff(sorted_keys, prepend=sorted_keys[:1]) > tolerance
    return np.cumsum(starts)


def _first_of_each(keys: Array, tolerance: float) -> npt.NDArray[np.intp]:
    """Places of keys that differ, in order."""
    order = np.argsort(keys, kind="stable")
    groups = _groups(keys[order], tolerance)
    return np.sort(order[np.flatnonzero(np.diff(groups, prepend=-1))])
