"""Rows from cuts, as a curious server would look for them: [row-difference], [peeling].

Differences   (v, c) of two cuts, c > 0. If one row alone changed its share, v / c is that row.
Which are     v / c must lie within the agreed limits, have +-1 for an intercept, and be active
rows?         where it says so. A vector that several pairs give is a row; one that a single pair
              gives is taken for one only if c is the mass of a whole row.
Peeling       once a row is known, so is its share at every model; its part is taken out of every
              cut, and differences that were of two rows are of one.
Spans         what successive differences have in common, pieces.py: the only way to rows whose
              shares are fractions.
Risks         pieces of a risk are cuts that nobody blurred, pieces.py too: they are attacked alone
              and with the others.
Known rows    an attacker that has some of the rows takes their part out first, of cuts, of risks
              and of second moments, and looks for the others.
Maps          a vector that the clients' map makes of no sensors is no row; what it makes of some
              gives them back, inverses.py.
Moments       no row has a larger part in them than all rows together have, [moments-row]; and the
              last row that is not known is all that is left of them.
The grid      with a resolution constants are off by up to that much; a change by a whole row's
              mass is still told, and with an intercept its own slope tells the mass exactly.

Nothing here knows the data: see leak_audit.py for how claims are graded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.privacy.inverses import are_features, sensors_of
from fdrsvm.privacy.observations import FeatureRange, Observations, Risks
from fdrsvm.privacy.pieces import Pieces, common_directions, pieces_of
from fdrsvm.risk.feature_maps import Features

_Mask = npt.NDArray[np.bool_]

_SUPPORTS = (3, 2, 1)  # the surest first: a wrong row taken out spoils the rest
_SAME_STATE = 1e-11
_SAME_ROW = 1e-7
_SAME_DIRECTION = 1e-4
_SLACK = 1e-6  # of limits and of the intercept's +-1
_SMALLEST_SHARE = 1e-3  # of a row's mass; below, rounding is divided by too little
_LARGEST_ENTRY = 1e6
_LARGEST_ERROR = 1e-3  # of a row's mass: what a piece of a risk may be off by
_NO_MOMENT = 1e-9  # of the largest: what rounding leaves where no row is
_FLAT = 1e-6  # of the largest: less is as if no row went there
_UNSURE = 1e-2  # a solver's cut: how near to the margin a row may have any share


class Claims(NamedTuple):
    """Rows of sensors that an attack claims to have seen, and their labels.

    A label is 0 where only y x is known, or only x.
    """

    rows: Array
    labels: Array


class Recovered(NamedTuple):
    """Claims from cuts alone, and from cuts and risks together."""

    from_cuts: Claims
    from_all: Claims


class KnownRows(NamedTuple):
    """Rows that the attacker has already: y z (and y with an intercept), and their masses.

    z are the features of a row where the clients share a map, else its sensors.
    """

    signed: Array
    masses: Array


def recover_rows(
    observed: Observations,
    limits: FeatureRange | None = None,
    *,
    with_risks: bool = False,
    known: KnownRows | None = None,
    features: Features | None = None,
) -> Recovered:
    """What the messages of one client, or of a sum, give away besides the rows that are known.

    Agreed limits of the sensors tell rows from sums of rows, and labels; so does a shared map.
    """
    observed = replace(observed, limits=limits, features=features)
    start = np.empty((0, observed.points.shape[1]))
    if known is not None:
        observed, start = _without_known(observed, known), known.signed
    claims = np.vstack([start, _recovered(observed, start)])
    from_cuts = len(claims)
    claims = np.vstack([claims, *(z for z in _last_row(observed) if _is_new(z, claims))])
    if with_risks and observed.risks is not None:
        for new in _from_risks(observed, observed.risks, start):
            claims = np.vstack([claims, *(z for z in new if _is_new(z, claims))])
    return Recovered(
        _labelled(claims[len(start) : from_cuts], observed),
        _labelled(claims[len(start) :], observed),
    )


def _from_risks(observed: Observations, risks: Risks, known: Array) -> Iterator[Array]:
    """Rows from pieces of the risk by themselves, and from the surest of them with the cuts."""
    mass = float(observed.masses.min())
    pieces = pieces_of(risks, observed.resolution, _LARGEST_ERROR * mass)
    if pieces.errors.size:
        yield _recovered(_as_cuts(observed, pieces), known)
    pieces = pieces.select(pieces.errors <= _SLACK * mass)
    if pieces.errors.size == 0:
        return
    sure = _as_cuts(observed, pieces)
    yield _recovered(sure, known)
    if observed.resolution == 0.0:  # else constants of cuts are off by more than those of pieces
        both: dict[str, Any] = {
            name: np.concatenate([getattr(observed, name), getattr(sure, name)])
            for name in ("states", "points", "are_whole")
        }
        yield _recovered(replace(sure, **both), known)


def _as_cuts(observed: Observations, pieces: Pieces) -> Observations:
    """Pieces in place of the cuts that were sent."""
    return replace(
        observed,
        states=pieces.states,
        points=pieces.points,
        are_whole=np.ones(len(pieces.states), dtype=bool),
        risks=None,
        resolution=0.0,
        error=float(pieces.errors.max()),
    )


def _without_known(observed: Observations, known: KnownRows) -> Observations:
    """Cuts and risks without the part of rows that are known; cuts where it is not are left out."""
    residual, usable = _peeled(observed, observed.states, zip(*known, strict=True))
    risks = observed.risks
    if risks is not None:
        losses = np.maximum(1.0 - risks.points @ known.signed.T, 0.0)
        risks = risks._replace(values=risks.values - losses @ known.masses)
    moments = observed.moments
    if moments is not None:
        left = moments - (known.signed.T * known.masses) @ known.signed
        largest = float(np.abs(moments).max())
        moments = left if np.abs(left).max() > _NO_MOMENT * largest else None
    return replace(
        observed,
        states=residual[usable],
        points=observed.points[usable],
        are_whole=observed.are_whole[usable],
        risks=risks,
        moments=moments,
    )


def _last_row(observed: Observations) -> Array:
    """The only row that is not known, which is all that is left of second moments."""
    nothing = observed.points[:0]
    if observed.moments is None:
        return nothing
    sizes, directions = np.linalg.eigh(observed.moments)
    if not np.abs(sizes[:-1]).max(initial=0.0) <= _NO_MOMENT * sizes[-1]:
        return nothing
    rows = np.sqrt(sizes[-1] / observed.masses)[:, None] * directions[:, -1]
    return np.asarray(rows[_is_plausible(rows, observed)])


def _peeled(
    observed: Observations, residual: Array, rows: Iterable[tuple[Array, float]]
) -> tuple[Array, _Mask]:
    """What is left of cuts without some rows, of these masses, and where that is certain."""
    usable = np.ones(len(residual), dtype=bool)
    for signed, mass in rows:
        slack = 1.0 - observed.points @ signed
        # A row on the margin has any share in a solver's cut; so has each where no point is known.
        usable &= (observed.are_whole | (np.abs(slack) > _UNSURE)) & ~np.isnan(slack)
        shares = np.where(slack > 0.0, 1.0, 0.0)
        residual = residual - np.outer(shares * mass, np.append(signed, 1.0))
    return residual, usable


def _recovered(observed: Observations, known: Array) -> Array:
    """Signed rows that the cuts give away, except for those that are known."""
    residual = observed.states
    usable = np.ones(len(residual), dtype=bool)
    claims = known
    for least in _SUPPORTS:
        while True:  # every row that is taken out may lay others bare
            candidates = _candidates(observed, residual, usable, least)
            new = [(signed, mass) for signed, mass in candidates if _is_new(signed, claims)]
            if not new:
                break
            residual, are_sure = _peeled(observed, residual, new)
            usable &= are_sure
            claims = np.vstack([claims, *(signed for signed, _ in new)])
    if observed.error == 0.0:  # pieces of a risk have no shares, and no order in time
        spanned = _spanned(observed)
        claims = np.vstack([claims, *(z for z in spanned if _is_new(z, claims))])
    return claims[len(known) :]


def _spanned(observed: Observations) -> Array:
    """Directions that spans of differences have in common, if several pairs of spans agree."""
    states = observed.states
    if observed.resolution > 0.0 and observed.fit_intercept:
        states = states[:, :-1]  # the intercept's slope, +-1 per row, is exact and scales as well
        signed = common_directions(states)
        signed = np.column_stack([signed, np.ones(len(signed))])  # with either label
    else:
        signed = common_directions(states)
    signed = signed[_is_plausible(signed, observed)]
    order, first, supports = _clusters(signed, _SAME_DIRECTION)
    chosen = supports >= _SUPPORTS[0]
    median = (first + supports // 2)[chosen]
    return np.asarray(signed[order[median]])


def _candidates(
    observed: Observations, residual: Array, usable: _Mask, least: int
) -> list[tuple[Array, float]]:
    """Vectors that ``least`` pairs of cuts give and their masses, the best supported first."""
    # All pairs are looked at, so equal cuts are left out first.
    at = np.flatnonzero(usable)
    order, first, _ = _clusters(residual[at], max(_SAME_STATE, observed.error))
    at = at[np.sort(order[first])]  # cuts that differ, in order of time
    pairs = [
        (residual[:0, :-1], residual[:0, 0]),
        *_differences(observed, residual, at, least),
    ]
    signed, masses = (np.concatenate(column) for column in zip(*pairs, strict=True))
    tolerance = max(_SAME_ROW, observed.error / float(observed.masses.min()))
    order, first, supports = _clusters(signed, tolerance, -masses)  # the largest share first
    signed, masses = signed[order], masses[order]
    # A row may have been seen by fractions: the largest tells best which mass it has as a whole.
    heaviest = np.maximum.reduceat(masses, first) if first.size else masses
    chosen = np.flatnonzero(supports >= least)
    chosen = chosen[np.argsort(-supports[chosen], kind="stable")]
    whole = observed.masses[_nearest(heaviest[chosen], observed.masses)]
    return list(zip(signed[first[chosen]], whole.tolist(), strict=True))


def _differences(
    observed: Observations,
    residual: Array,
    at: npt.NDArray[np.intp],
    least: int,
) -> Iterator[tuple[Array, Array]]:
    """Differences of pairs of cuts that may be one row, divided by their mass."""
    largest, smallest = observed.masses.max(), _SMALLEST_SHARE * observed.masses.min()
    # The mass by which two cuts differ is told by their constants, up to the grid: what a whole row
    # may weigh within that is taken for one. The slope of an intercept, which has no grid, tells it
    # too.
    has_exact_slope = observed.resolution > 0.0 and observed.fit_intercept
    grid = 0.0 if has_exact_slope else observed.resolution
    slack = _SLACK * observed.masses.min() + grid + 2.0 * observed.error
    for k, i in enumerate(at[:-1]):
        others = at[k + 1 :]
        difference = residual[i] - residual[others]
        mass = np.abs(difference[:, -2 if has_exact_slope else -1])
        whole = observed.masses[_nearest(mass, observed.masses)]
        are_whole = np.abs(mass - whole) <= slack
        if grid > 0.0 or observed.error > 0.0:
            mass = np.where(are_whole, whole, mass)
        possible = (mass > smallest) & (mass <= largest * (1.0 + _SLACK))
        if least == 1:
            possible &= are_whole
        if not possible.any():
            continue
        difference, mass, others = difference[possible], mass[possible], others[possible]
        is_more = difference[:, -1] > 0.0
        signed = difference[:, :-1] / np.copysign(mass, difference[:, -1])[:, None]
        keep = _is_plausible(signed, observed)
        # Where both models count, a whole row is active at the one and not at the other.
        here = signed @ observed.points[i] - 1.0
        there = np.einsum("np,np->n", signed, observed.points[others]) - 1.0
        active, idle = np.where(is_more, here, there), np.where(is_more, there, here)
        are_known = observed.are_whole[i] & observed.are_whole[others]
        agrees = ~are_known | ((active <= _SAME_ROW) & (idle >= -_SAME_ROW))
        keep &= ~are_whole[possible] | agrees
        yield signed[keep], mass[keep]


def _nearest(values: Array, masses: Array) -> npt.NDArray[np.intp]:
    return np.asarray(np.abs(values[:, None] - masses).argmin(axis=1))


def _is_plausible(signed: Array, observed: Observations) -> _Mask:
    """Within the limits, as x or as -x, with a label for an intercept, and not beyond moments."""
    keep = np.abs(signed).max(axis=1, initial=0.0) < _LARGEST_ENTRY
    if observed.fit_intercept:
        keep &= np.abs(np.abs(signed[:, -1]) - 1.0) <= _SLACK
    keep[keep] = np.any(_could_be_rows(signed[keep], observed), axis=0)
    keep[keep] = _is_within_moments(signed[keep], observed)
    return np.asarray(keep)


def _could_be_rows(signed: Array, observed: Observations) -> tuple[_Mask, _Mask]:
    """Which vectors could be a row as they are, and which as their negative.

    All could where no limits are agreed, and no map is shared.
    """
    low, high = (-np.inf, np.inf) if observed.limits is None else observed.limits
    rows = signed[:, : observed.n_features]
    slack = _SLACK + observed.error / float(observed.masses.min())

    def fits(rows: Array) -> _Mask:
        x = sensors_of(observed.features, rows)
        is_within = ((x >= low - _SLACK) & (x <= high + _SLACK)).all(axis=1)
        return np.asarray(is_within & are_features(observed.features, rows, slack))

    return fits(rows), fits(-rows)


def _is_within_moments(signed: Array, observed: Observations) -> _Mask:
    """Where p z'M^-1 z <= 1: second moments M less a row's own part are not negative."""
    if observed.moments is None:
        return np.ones(len(signed), dtype=bool)
    sizes, directions = np.linalg.eigh(observed.moments)
    # Where no row has any part, what a claim is off by has some.
    least = _FLAT * float(np.abs(sizes).max())
    along = signed @ directions / np.sqrt(np.maximum(sizes, least))
    part = float(observed.masses.min()) * (along**2).sum(axis=1)
    return np.asarray(part <= 1.0 + _LARGEST_ERROR)


def _is_new(signed: Array, claims: Array) -> bool:
    """Whether a row is not claimed yet, with either sign."""
    apart = np.minimum(
        np.abs(claims - signed).max(axis=1, initial=0.0),
        np.abs(claims + signed).max(axis=1, initial=0.0),
    )
    return not (apart <= _SAME_DIRECTION).any()


def _labelled(claims: Array, observed: Observations) -> Claims:
    """Sensors from y z, with the label that the intercept, the limits or the map tell."""
    rows = claims[:, : observed.n_features]
    if observed.fit_intercept:
        labels = np.sign(claims[:, -1])
    else:
        fits, fits_negative = _could_be_rows(claims, observed)
        labels = np.where(fits == fits_negative, 0.0, np.where(fits, 1.0, -1.0))
    rows = rows * np.where(labels < 0.0, -1.0, 1.0)[:, None]
    return Claims(sensors_of(observed.features, rows), labels)


def _clusters(
    vectors: Array, tolerance: float, *ties: Array
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """An order in which equal vectors are neighbours, where each run of them begins, its size.

    Vectors are equal if one sum of theirs with fixed random weights is, up to the tolerance.
    ``ties`` put those of equal sums in order.
    """
    keys = vectors @ np.random.default_rng(20251115).normal(size=vectors.shape[1])
    order = np.lexsort((*ties, keys))
    first = np.flatnonzero(np.diff(keys[order], prepend=-np.inf) > tolerance)
    return order, first, np.diff(first, append=keys.size)
