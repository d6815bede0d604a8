"""Which labels an adversary flips when features may go anywhere, [flips]."""

from __future__ import annotations

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled


@compiled
def add(total: float, lost: float, term: float) -> tuple[float, float]:
    """Kahan's sum: a million equal masses must add up to 1, not to 1 + 1e-11."""
    term -= lost
    new = total + term
    return new, (new - total) - term


@compiled
def upper_quantile(values: Array, mass: Array, budget: float, floor: float) -> float:
    """Smallest t >= floor such that the mass of {values > t} is at most ``budget``."""
    total, lost, count = 0.0, 0.0, 0
    for n in range(values.size):
        if values[n] > floor:
            total, lost = add(total, lost, mass[n])
            count += 1
    if total <= budget:
        return floor
    value, weight = np.empty(count), np.empty(count)
    count = 0
    for n in range(values.size):
        if values[n] > floor:
            value[count], weight[count] = values[n], mass[n]
            count += 1
    return _quickselect(value, weight, budget)


@compiled
def _quickselect(value: Array, weight: Array, budget: float) -> float:
    """Weighted selection from above; reorders its arguments, whose total exceeds ``budget``."""
    start, stop, above = 0, value.size, 0.0
    while True:
        first, middle, last = value[start], value[(start + stop) // 2], value[stop - 1]
        pivot = max(min(first, middle), min(max(first, middle), last))
        i, larger, smaller = start, start, stop
        heavy, tied, lost = 0.0, 0.0, 0.0
        while i < smaller:
            if value[i] > pivot:
                heavy, lost = add(heavy, lost, weight[i])
                value[i], value[larger] = value[larger], value[i]
                weight[i], weight[larger] = weight[larger], weight[i]
                larger += 1
                i += 1
            elif value[i] < pivot:
                smaller -= 1
                value[i], value[smaller] = value[smaller], value[i]
                weight[i], weight[smaller] = weight[smaller], weight[i]
            else:
                tied += weight[i]
                i += 1
        if above + heavy > budget:
            stop = larger
        elif above + heavy + tied > budget or smaller == stop:
            return float(pivot)
        else:
            # In the order of the comparison: rounded otherwise it may pass the budget, with nothing
            # left to choose from.
            above = above + heavy + tied
            start = smaller


@compiled
def flip_shares(
    gains: Array, mass: Array, budget: float, floor: float
) -> tuple[float, Array, float]:
    """Threshold, share of each sample to flip, and flipped mass.

    Samples gaining more than the threshold are flipped whole. Above ``floor`` the tied ones are
    flipped by the common fraction that spends the budget exactly; at ``floor`` they are kept.
    """
    threshold = upper_quantile(gains, mass, budget, floor)
    above, lost, tied = 0.0, 0.0, 0.0
    for n in range(gains.size):
        if gains[n] > threshold:
            above, lost = add(above, lost, mass[n])
        elif gains[n] == threshold:
            tied += mass[n]
    fraction = 0.0
    if threshold > floor and tied > 0.0:
        fraction = min(max((budget - above) / tied, 0.0), 1.0)
    shares = np.zeros(gains.size)
    for n in range(gains.size):
        if gains[n] > threshold:
            shares[n] = 1.0
        elif gains[n] == threshold:
            shares[n] = fraction
    return threshold, shares, above + fraction * tied


@compiled
def label_worst_case(
    kept: Array,
    flipped: Array,
    kept_slope: Array,
    flipped_slope: Array,
    y: Array,
    mass: Array,
    epsilon: float,
    kappa: float,
    least: float,
) -> tuple[float, float, float, float, Array, Array]:
    """Worst case when features may go anywhere: value, proof, multiplier, rest, shares, residual.

    ``kept`` and ``flipped`` are each sample's losses under its own and the other label, the slopes
    their derivatives in their own margins, ``least`` the smallest multiplier allowed. ``rest`` is
    the budget that the flips leave for moving features. ``proof`` is the expected loss that this
    adversary really reaches: it never exceeds the value, and equals it up to rounding.
    """
    lam, rest, shares = least, epsilon, np.zeros(y.size)
    paid = epsilon * least
    toll = np.inf
    if kappa < np.inf:
        budget, floor = epsilon / kappa, kappa * least
        toll, shares, spent = flip_shares(flipped - kept, mass, budget, floor)
        if toll > floor:
            lam, rest, paid = toll / kappa, 0.0, toll * budget
        else:
            rest = max(epsilon - kappa * spent, 0.0)
    value, value_lost, proof, proof_lost = 0.0, 0.0, 0.0, 0.0
    residual = np.empty(y.size)
    for n in range(y.size):
        share = shares[n]
        worst = kept[n] + max(flipped[n] - kept[n] - toll, 0.0)
        value, value_lost = add(value, value_lost, mass[n] * worst)
        mixed = (1.0 - share) * kept[n] + share * flipped[n]
        proof, proof_lost = add(proof, proof_lost, mass[n] * mixed)
        slope = (1.0 - share) * kept_slope[n] - share * flipped_slope[n]
        residual[n] = mass[n] * y[n] * slope
    return value + paid, proof + rest * least, lam, rest, shares, residual


@compiled
def hinge_worst_case(
    X: Array,
    y: Array,
    mass: Array,
    w: Array,
    intercept: float,
    epsilon: float,
    kappa: float,
    least: float,
) -> tuple[float, float, float, float, Array, float, float]:
    """The same for the hinge and dense data in one call.

    Value, proof, multiplier, rest, slope in w and b, and the constant of the cut: the mass whose
    hinge is active, with nothing to cancel however large w is.
    """
    margins = np.dot(X, w)
    kept, flipped = np.empty(y.size), np.empty(y.size)
    kept_slope, flipped_slope = np.empty(y.size), np.empty(y.size)
    for n in range(y.size):
        margin = y[n] * (margins[n] + intercept)
        kept[n], flipped[n] = max(0.0, 1.0 - margin), max(0.0, 1.0 + margin)
        kept_slope[n] = -1.0 if margin < 1.0 else 0.0
        flipped_slope[n] = -1.0 if margin > -1.0 else 0.0
    value, proof, lam, rest, shares, residual = label_worst_case(
        kept, flipped, kept_slope, flipped_slope, y, mass, epsilon, kappa, least
    )
    constant = 0.0
    for n in range(y.size):
        constant -= mass[n] * ((1.0 - shares[n]) * kept_slope[n] + shares[n] * flipped_slope[n])
    return value, proof, lam, rest, np.dot(residual, X), residual.sum(), constant
