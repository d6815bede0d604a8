"""The rules of [limits] on the answers of one round, all clients in one pass.

A client's own risks are rows, its cuts lie one after the other; nothing is checked but the numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled
from fdrsvm.maths.norms import L1, LINF, dual_norm_of

# Which rule is broken, in the order in which they are looked at.
KEPT, NORM_WEIGHT, CONSTANT_HIGH, CONSTANT_LOW, SLOPE, RISK_LOW, RISK_HIGH, ABOVE, APART = range(9)
VECTOR, INTERCEPT, SQUARES, CONTRADICTING = range(9, 13)


class Bounds(NamedTuple):
    """What numbers are held against; infinite where nothing is agreed."""

    lowest_constant: float
    highest_constant: float  # the loss of a margin of 0
    slopes: Array  # L R_j, and L for an intercept
    has_slopes: bool  # whether these are finite
    touches: bool  # whether the first cuts must equal the risks
    rounding: float


# A named tuple costs some ten microseconds on its way into compiled code, a plain one hardly any.
Plain: TypeAlias = "tuple[float, float, Array, bool, bool, float]"


@compiled
def _score(point: Array, bounds: Bounds) -> float:
    """L (sum_j R_j |w_j| + |b|), or 0 if nothing is agreed."""
    score = 0.0
    if bounds.has_slopes:
        for j in range(point.size):
            score += bounds.slopes[j] * abs(point[j])
    return score


@compiled
def _value(
    constant: float, slope: Array, norm_weight: float, point: Array, size: float
) -> tuple[float, float]:
    """A cut at a point, and the size of what it is summed up from."""
    value, scale = constant + norm_weight * size, abs(constant) + norm_weight * size
    for j in range(point.size):
        term = slope[j] * point[j]
        value += term
        scale += abs(term)
    return value, scale


@compiled
def _judged(
    points: Array,
    sizes: Array,
    scores: Array,
    risks: Array,
    scales: Array,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
    floor: float,
    bounds: Bounds,
) -> tuple[int, float, float]:
    """The first rule that one client's answer breaks, with value and limit."""
    rounding, n_points = bounds.rounding, points.shape[0]
    reach = 1.0
    for i in range(n_points):
        reach = max(reach, 1.0 + scores[i] + abs(scales[i]))
    for k in range(constants.size):
        if not norm_weights[k] <= floor * (1.0 + rounding):
            return NORM_WEIGHT, norm_weights[k], floor
        if not constants[k] <= bounds.highest_constant * (1.0 + rounding):
            return CONSTANT_HIGH, constants[k], bounds.highest_constant
        if not constants[k] >= bounds.lowest_constant - rounding * reach:
            return CONSTANT_LOW, constants[k], bounds.lowest_constant
        if bounds.has_slopes:
            for j in range(slopes.shape[1]):
                limit = bounds.slopes[j]
                if not abs(slopes[k, j]) <= limit * (1.0 + rounding):
                    return SLOPE, abs(slopes[k, j]), limit
    for i in range(n_points):
        lowest = floor * sizes[i]
        slack = rounding * (1.0 + lowest + scores[i] + abs(scales[i]))
        if not risks[i] >= lowest - slack:
            return RISK_LOW, risks[i], lowest
        highest = bounds.highest_constant + scores[i] + lowest
        if bounds.has_slopes and not risks[i] <= highest + slack:
            return RISK_HIGH, risks[i], highest
    for k in range(constants.size):
        for i in range(n_points):
            value, scale = _value(constants[k], slopes[k], norm_weights[k], points[i], sizes[i])
            slack = rounding * (1.0 + abs(scales[i]) + scale + scores[i])
            if not value <= risks[i] + slack:
                return ABOVE, value, risks[i]
            if bounds.touches and k == i and not value >= risks[i] - slack:
                return APART, value, risks[i]
    return KEPT, 0.0, 0.0


@compiled
def judge_answers(
    points: Array,
    norm: int,
    n_features: int,
    risks: Array,
    scales: Array,
    counts: Any,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
    floors: Array,
    limits: Plain,
) -> Array:
    """For each client (a row of ``risks``) the first rule broken, a value and its limit.

    The g-th has ``counts[g]`` cuts, those at the points first. ``scales`` are the numbers that
    ``risks`` are differences of, or the risks themselves.
    """
    bounds = Bounds(*limits)
    found = np.zeros((risks.shape[0], 3))
    scores, sizes = np.empty(points.shape[0]), np.empty(points.shape[0])
    for i in range(points.shape[0]):
        scores[i] = _score(points[i], bounds)
        sizes[i] = dual_norm_of(points[i, :n_features], norm)
    end = 0
    for g in range(risks.shape[0]):
        own = slice(end, end + counts[g])
        end += counts[g]
        found[g, 0], found[g, 1], found[g, 2] = _judged(
            points,
            sizes,
            scores,
            risks[g],
            scales[g],
            constants[own],
            slopes[own],
            norm_weights[own],
            floors[g],
            bounds,
        )
    return found


@compiled
def _contradicts(
    constant: float,
    slope: Array,
    norm_weight: float,
    point: Array,
    size: float,
    score: float,
    risk: float,
    rounding: float,
) -> tuple[int, float, float]:
    """Whether a cut lies above a risk at a point; a nan is one that was not given."""
    if np.isnan(risk) or np.isnan(constant):
        return KEPT, 0.0, 0.0
    value, scale = _value(constant, slope, norm_weight, point, size)
    if value <= risk + rounding * (1.0 + abs(risk) + scale + score):
        return KEPT, 0.0, 0.0
    return CONTRADICTING, value, risk


@compiled
def contradictions(
    points: Array,
    norm: int,
    n_features: int,
    risks: Array,
    owners: Any,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
    limits: Plain,
) -> Array:
    """For each client (a row of ``risks``) whether one of its cuts lies above one of its risks.

    The k-th cut is of client ``owners[k]``.
    """
    bounds = Bounds(*limits)
    found = np.zeros((risks.shape[0], 3))
    for i in range(points.shape[0]):
        score = _score(points[i], bounds)
        size = dual_norm_of(points[i, :n_features], norm)
        for k in range(constants.size):
            g, at = owners[k], points[i]
            if found[g, 0] == KEPT:
                found[g, 0], found[g, 1], found[g, 2] = _contradicts(
                    constants[k],
                    slopes[k],
                    norm_weights[k],
                    at,
                    size,
                    score,
                    risks[g, i],
                    bounds.rounding,
                )
    return found


@compiled
def judge_round(
    point: Array,
    best: Array,
    best_risks: Array,
    norm: int,
    n_features: int,
    clients: Any,
    risks: Array,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
    floors: Array,
    past_constants: Array,
    past_slopes: Array,
    past_norm_weights: Array,
    limits: Plain,
) -> Array:
    """One risk and one cut a client: ``judge_answers``, and ``contradictions`` with the past.

    The past's first axis is rounds, its second clients. ``best`` is a model with known risks.
    """
    bounds = Bounds(*limits)
    rounding = bounds.rounding
    counts = np.ones(clients.size, np.int64)
    rows = risks.reshape(-1, 1)
    found = judge_answers(
        point.reshape(1, -1),
        norm,
        n_features,
        rows,
        rows,
        counts,
        constants,
        slopes,
        norm_weights,
        floors[clients],
        limits,
    )
    size, best_size = dual_norm_of(point[:n_features], norm), dual_norm_of(best[:n_features], norm)
    score, best_score = _score(point, bounds), _score(best, bounds)
    for k in range(clients.size):
        g = clients[k]
        if found[k, 0] == KEPT:
            found[k, 0], found[k, 1], found[k, 2] = _contradicts(
                constants[k],
                slopes[k],
                norm_weights[k],
                best,
                best_size,
                best_score,
                best_risks[g],
                rounding,
            )
    # One product for all of the past; what is summed up again is what looks suspicious.
    n_clients, width = past_constants.shape[1], point.size
    falls = np.dot(past_slopes.reshape(-1, width), point)
    for k in range(clients.size):
        g = clients[k]
        for t in range(past_constants.shape[0]):
            value = past_constants[t, g] + falls[t * n_clients + g] + past_norm_weights[t, g] * size
            if not value <= risks[k] and found[k, 0] == KEPT:
                found[k, 0], found[k, 1], found[k, 2] = _contradicts(
                    past_constants[t, g],
                    past_slopes[t, g],
                    past_norm_weights[t, g],
                    point,
                    size,
                    score,
                    risks[k],
                    rounding,
                )
    return found


class Solve(NamedTuple):
    """What a round of ADMM asks of every client."""

    w: Array
    rho: float
    tau: float
    relaxation: float
    gap: float  # of the local solve, relative to its objective
    n_features: int
    norm: int


@compiled
def _gathered(length: float, entry: float, norm: int) -> float:
    """A norm's sum with one entry more; that of l2 is a sum of squares."""
    if norm == L1:
        return length + abs(entry)
    if norm == LINF:
        return max(length, abs(entry))
    return length + entry * entry


@compiled
def _judged_solve(
    solve: Solve,
    mu: Array,
    vector: Array,
    squares: Array,
    previous: Array,
    slope: Array,
    norm_weight: float,
    rounding: float,
) -> tuple[int, float, float]:
    """The first rule of [limits] on ADMM that one client's answer breaks."""
    w, rho, P = solve.w, solve.rho, solve.n_features
    length, centre, local, dual, moved, scale, steepest = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    pull = 0.0
    for j in range(w.size):
        theta = rho + 2.0 * solve.tau if j < P else rho
        own = (vector[j] - mu[j] - (1.0 - solve.relaxation) * w[j]) / solve.relaxation
        pull = rho * (w[j] - mu[j]) - theta * own - slope[j]
        if j < P:
            length = _gathered(length, pull, solve.norm)
        centre += (w[j] - mu[j]) ** 2
        local += own * own
        dual += mu[j] * mu[j]
        moved += (previous[j] - w[j]) ** 2
        scale += (abs(vector[j]) + abs(mu[j]) + abs(w[j])) ** 2
        steepest = max(steepest, abs(slope[j]))
    theta = rho + 2.0 * solve.tau
    gap = solve.gap * (1.0 + 0.5 * rho * centre) / (1.0 - solve.gap)
    spread = np.sqrt(P) if solve.norm == L1 else 1.0
    error = 1e-3 * rounding * (theta * np.sqrt(scale) / solve.relaxation + steepest)
    if solve.norm not in (L1, LINF):
        length = np.sqrt(length)
    limit = norm_weight + spread * (np.sqrt(2.0 * theta * gap) + error)
    if not length <= limit:
        return VECTOR, length, limit
    limit = np.sqrt(2.0 * rho * gap) + error
    if w.size > P and not abs(pull) <= limit:
        return INTERCEPT, abs(pull), limit
    found = (moved, local, dual)
    for k in range(3):
        slack = rounding * (found[k] + rounding * scale / solve.relaxation**2)
        # Of the first one nothing is known after an answer that was lost.
        if not (abs(squares[k] - found[k]) <= slack or (k == 0 and np.isnan(moved))):
            return SQUARES, squares[k], found[k]
    return KEPT, 0.0, 0.0


@compiled
def judge_solves(
    asked: tuple[Array, float, float, float, float, int, int],
    duals: Array,
    vectors: Array,
    squares: Array,
    previous: Array,
    slopes: Array,
    norm_weights: Array,
    rounding: float,
) -> Array:
    """For each client (a row) the first rule broken, a value and its limit.

    ``asked`` are the entries of a Solve, ``duals`` the mu_g of this round, ``previous`` the
    clients' last w_g, nan if not known.
    """
    solve = Solve(*asked)
    found = np.zeros((vectors.shape[0], 3))
    for g in range(vectors.shape[0]):
        found[g, 0], found[g, 1], found[g, 2] = _judged_solve(
            solve,
            duals[g],
            vectors[g],
            squares[g],
            previous[g],
            slopes[g],
            norm_weights[g],
            rounding,
        )
    return found
