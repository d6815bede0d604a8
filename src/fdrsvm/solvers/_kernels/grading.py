"""Objective and lower bound from scratch, [gap-dual]: for certificates.py, without solver code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled
from fdrsvm.maths.norms import L1, LINF


class Grounds(NamedTuple):
    """A problem as its certificate reads it; its rows are dense, or CSR where those are empty."""

    dense: Array
    data: Array
    indices: Any
    indptr: Any
    y: Array
    mass: Array
    n_features: int  # an intercept comes after
    epsilon: float
    kappa: float  # inf where labels are trusted
    norm: int
    rho: float
    tau: float
    intercept_rho: float


@compiled
def _margins(grounds: Grounds, w: Array) -> Array:
    if grounds.dense.shape[0] > 0:
        product: Array = np.dot(grounds.dense, w)
        return product
    margins = np.zeros(grounds.mass.size)
    for n in range(margins.size):
        for k in range(grounds.indptr[n], grounds.indptr[n + 1]):
            margins[n] += grounds.data[k] * w[grounds.indices[k]]
    return margins


@compiled
def _tension(grounds: Grounds, signed: Array, size: int) -> Array:
    """sum_n signed_n y_n (x_n, 1)."""
    if grounds.dense.shape[0] > 0:
        product: Array = np.dot(signed, grounds.dense)
        return product
    tension = np.zeros(size)
    for n in range(signed.size):
        for k in range(grounds.indptr[n], grounds.indptr[n + 1]):
            tension[grounds.indices[k]] += grounds.data[k] * signed[n]
    return tension


@compiled
def _length(x: Array, size: int, norm: int) -> float:
    """Norm of x[:size]; a nan comes out as one."""
    total = 0.0
    for p in range(size):
        if norm == L1:
            total += abs(x[p])
        elif norm == LINF:
            if not abs(x[p]) <= total:
                total = abs(x[p])
        else:
            total += x[p] * x[p]
    return total if norm in (L1, LINF) else np.sqrt(total)


@compiled
def _dual_length(w: Array, size: int, norm: int) -> float:
    if norm == L1:
        return _length(w, size, LINF)
    return _length(w, size, L1 if norm == LINF else norm)


@compiled
def _worst_lam(margins: Array, mass: Array, floor: float, epsilon: float, kappa: float) -> float:
    """The best lam >= floor: down from the largest breakpoint till the slope turns."""
    above, count = 0.0, 0
    for n in range(margins.size):
        if min(2.0 * margins[n], 1.0 + margins[n]) > kappa * floor:
            above += mass[n]
            count += 1
    if kappa * above <= epsilon:
        return floor
    breaks, weights = np.empty(count), np.empty(count)
    count = 0
    for n in range(margins.size):
        gain = min(2.0 * margins[n], 1.0 + margins[n])
        if gain > kappa * floor:
            breaks[count], weights[count] = gain / kappa, mass[n]
            count += 1
    order = np.argsort(breaks)
    passed = 0.0
    for k in range(count - 1, -1, -1):
        passed += weights[order[k]]
        if kappa * passed > epsilon:
            return float(max(floor, breaks[order[k]]))
    return floor


@compiled
def grade_objective(
    grounds: Grounds, centre: Array, centre_intercept: float, w: Array
) -> tuple[float, float]:
    """Objective at w (an intercept last), and the lam it is attained at."""
    P, epsilon, kappa, mass = grounds.n_features, grounds.epsilon, grounds.kappa, grounds.mass
    margins = _margins(grounds, w)
    lam = _dual_length(w, P, grounds.norm)
    trusted = not kappa < np.inf
    if not trusted:
        lam = _worst_lam(margins, mass, lam, epsilon, kappa)
    value = lam * epsilon if epsilon > 0.0 else 0.0
    for n in range(margins.size):
        loss = max(0.0, 1.0 - margins[n])
        if not trusted:
            loss = max(loss, 1.0 + margins[n] - kappa * lam)
        value += mass[n] * loss
    for p in range(P):
        value += 0.5 * grounds.rho * (w[p] - centre[p]) ** 2 + grounds.tau * w[p] ** 2
    if w.size > P:
        value += 0.5 * grounds.intercept_rho * (w[P] - centre_intercept) ** 2
    return value, lam


@compiled
def repair_masses(
    grounds: Grounds, kept: Array, flipped: Array, balance: bool, signed: Array
) -> tuple[float, float]:
    """Makes any numbers feasible, [repair].

    Then kept, flipped >= 0, kept + flipped <= mass and kappa sum flipped <= epsilon; with
    ``balance`` also sum y (kept - flipped) = 0, by scaling the heavier side down. Changes ``kept``
    and ``flipped``, fills ``signed`` = kept - flipped; returns (sum kept + flipped, sum flipped).
    """
    mass, y = grounds.mass, grounds.y
    budget = grounds.epsilon / grounds.kappa
    total_flipped = 0.0
    for n in range(mass.size):
        a = kept[n] if kept[n] > 0.0 else 0.0  # a nan fails the comparison
        f = flipped[n] if flipped[n] > 0.0 and budget > 0.0 else 0.0
        if a + f > mass[n]:
            share = mass[n] / (a + f) if a + f < np.inf else 0.0
            a, f = (a * share, f * share) if share > 0.0 else (0.0, 0.0)
        kept[n], flipped[n] = a, f
        total_flipped += f
    flip_scale = budget / total_flipped if total_flipped > budget else 1.0
    up, down = 0.0, 0.0
    for n in range(mass.size):
        flipped[n] *= flip_scale
        if y[n] > 0.0:
            up += kept[n]
            down += flipped[n]
        else:
            up += flipped[n]
            down += kept[n]
    up_scale = down / up if balance and up > down else 1.0
    down_scale = up / down if balance and down > up else 1.0
    total, total_flipped = 0.0, 0.0
    for n in range(mass.size):
        kept[n] *= up_scale if y[n] > 0.0 else down_scale
        flipped[n] *= down_scale if y[n] > 0.0 else up_scale
        signed[n] = kept[n] - flipped[n]
        total += kept[n] + flipped[n]
        total_flipped += flipped[n]
    return total, total_flipped


@compiled
def _project_ball(x: Array, radius: float, norm: int) -> Array:
    """Nearest point to x with transport norm at most ``radius``."""
    length = _length(x, x.size, norm)
    if length <= radius:
        return x
    if norm == LINF:
        return np.minimum(np.maximum(x, -radius), radius)
    if norm != L1:
        return x * (radius / length)
    magnitudes = np.sort(np.abs(x))
    cut, passed = 0.0, 0.0
    for k in range(x.size):
        passed += magnitudes[x.size - 1 - k]
        cut = max(cut, (passed - radius) / (k + 1))
    # |x| - cut cancels where x is large (rho times the centre), and a point outside the ball is no
    # certificate: the best one lies on the sphere, so scale to it.
    held = np.sign(x) * np.maximum(np.abs(x) - cut, 0.0)
    size = _length(held, held.size, L1)
    if not size > 0.0:
        held[np.argmax(np.abs(x))] = 1.0 if x[np.argmax(np.abs(x))] > 0.0 else -1.0
        size = 1.0
    return held * (radius / size)


class Grade(NamedTuple):
    """A point and its masses, judged; ``tension`` and what follows make the cut, [cut]."""

    objective: float
    lam: float  # at which the objective is attained
    bound: float
    constant: float
    tension: Array
    norm_weight: float


@compiled
def _grade_bound(
    grounds: Grounds,
    centre: Array,
    centre_intercept: float,
    w: Array,
    total: float,
    tension: Array,
    spent: float,
) -> float:
    """Lower bound on the optimum from feasible masses.

    ``w`` matters only at epsilon = rho = tau = 0, where it says how far the bound must reach.
    """
    P, rho, epsilon = grounds.n_features, grounds.rho, grounds.epsilon
    theta = rho + 2.0 * grounds.tau
    if w.size > P and grounds.intercept_rho > 0.0:
        pull = tension[P]
        total -= centre_intercept * pull + 0.5 * pull * pull / grounds.intercept_rho
    if theta == 0.0:
        length = _length(tension, P, grounds.norm)
        if epsilon == 0.0:
            return total - 10.0 * max(_dual_length(w, P, grounds.norm), 1.0) * length
        return total * min(1.0, epsilon / max(length + spent, epsilon))
    pulled = tension[:P] + rho * centre
    held = _project_ball(pulled, max(epsilon - spent, 0.0), grounds.norm)
    bound = 0.0
    for p in range(P):
        moved = tension[p] - held[p]
        bound += rho * centre[p] * (grounds.tau * centre[p] - moved) - 0.5 * moved * moved
    return total + bound / theta


@compiled
def grade(
    grounds: Grounds, centre: Array, centre_intercept: float, w: Array, kept: Array, flipped: Array
) -> Grade:
    """Judges a point and any masses, which are copied, not changed."""
    value, lam = grade_objective(grounds, centre, centre_intercept, w)
    balance = w.size > grounds.n_features and grounds.intercept_rho == 0.0
    kept, flipped, signed = kept.copy(), flipped.copy(), np.empty(kept.size)
    total, total_flipped = repair_masses(grounds, kept, flipped, balance, signed)
    spent = grounds.kappa * total_flipped if total_flipped > 0.0 else 0.0
    tension = _tension(grounds, signed, w.size)
    bound = _grade_bound(grounds, centre, centre_intercept, w, total, tension, spent)
    return Grade(value, lam, bound, total, tension, max(grounds.epsilon - spent, 0.0))
