"""The rules of [limits] on the answers of one round, all clients in one pass.

A client's own risks are rows, its cuts lie one after the other; nothing is checked but the numbers.

Cut      mass rule: a hinge cut with constant A is made of rows of mass A, so |v_j| <= R_j A
Risk     between what the best and the worst rows within the limits would give
Both     rows that give the cut have at least and at most a certain risk at every model, ``_span``;
         a risk of the same client outside is wrong, in the same answer or in another round
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled
from fdrsvm.maths.norms import L1, LINF, dual_norm_of

# Which rule is broken, in the order in which they are looked at.
KEPT, NORM_WEIGHT, CONSTANT_HIGH, CONSTANT_LOW, SLOPE, RISK_LOW, RISK_HIGH, ABOVE, APART = range(9)
OVER, VECTOR, INTERCEPT, SQUARES, CONTRADICTING = range(9, 14)

# Two ways to compute one number agree to ROUNDING of the numbers in the answer; what cancels on
# the way, rows of size up to R, adds at most TINY of the scores they can have. See [slack].
ROUNDING, TINY = 1e-9, 1e-12
_SQUARES = 1e-6  # squares only steer when ADMM stops


class Bounds(NamedTuple):
    """What numbers are held against; infinite where nothing is agreed."""

    lowest_constant: float
    highest_constant: float  # the loss of a margin of 0
    slopes: Array  # L R_j, and L for an intercept
    has_slopes: bool  # whether these are finite
    is_hinge: bool
    touches: bool  # whether the first cuts must equal the risks
    is_single: bool  # whether answers are of one client each, not sums
    grid: float  # risks are rounded up to it, constants down


# A named tuple costs some ten microseconds on its way into compiled code, a plain one hardly any.
Plain: TypeAlias = "tuple[float, float, Array, bool, bool, bool, bool, float]"


class Place(NamedTuple):
    """A model, and what the limits alone say of it."""

    point: Array
    size: float  # ||w||_*
    score: float  # L (sum_j R_j |w_j| + |b|), or 0 if nothing is agreed
    least: float  # no row has a smaller loss
    steepness: float  # largest slope over constant of a tangent made here


@compiled
def _place(point: Array, norm: int, n_features: int, bounds: Bounds, other: Array) -> Place:
    """``other`` is empty for the hinge, else (least loss, steepness) at this point."""
    size, score = dual_norm_of(point[:n_features], norm), 0.0
    if bounds.has_slopes:
        for j in range(point.size):
            score += bounds.slopes[j] * abs(point[j])
    if not bounds.is_hinge:
        return Place(point, size, score, other[0], other[1])
    return Place(point, size, score, max(0.0, 1.0 - score) if bounds.has_slopes else 0.0, 1.0)


@compiled
def _value(constant: float, slope: Array, norm_weight: float, place: Place) -> tuple[float, float]:
    """A cut at a place, and the size of what it is summed up from."""
    value, scale = constant + norm_weight * place.size, abs(constant) + norm_weight * place.size
    for j in range(place.point.size):
        term = slope[j] * place.point[j]
        value += term
        scale += abs(term)
    return value, scale


@compiled
def _by_label(
    constant: float, slope: Array, place: Place, n_features: int, bounds: Bounds
) -> float:
    """The least hinge of the rows that a cut with an intercept is made of, each label apart.

    Rows of label +1 have the mass (A - v_b)/2, those of -1 the rest, and sums q of z = y x over
    them add up to -v. How large can w.q be for either label, within the limits? A constant that
    was rounded down leaves each mass half a step of the grid, and what is in doubt is given.
    """
    b, v_b, limits, doubt = place.point[n_features], slope[n_features], bounds.slopes, bounds.grid
    # A constant that was rounded may be a little less than |v_b|; no label has more than all.
    whole = max(constant, 0.0)
    least_up = min(max(0.5 * (constant - v_b), 0.0), whole)
    least_down = min(max(0.5 * (constant + v_b), 0.0), whole)
    up, down = least_up + 0.5 * doubt, least_down + 0.5 * doubt
    highest, lowest, total = 0.0, 0.0, 0.0
    for j in range(n_features):
        w, v, limit = place.point[j], slope[j], limits[j]
        low = max(-up * limit, -v - down * limit)
        high = max(min(up * limit, -v + down * limit), low)
        highest += max(w * low, w * high)
        lowest += min(w * low, w * high)
        total -= w * v
    of_up = (least_up if b < 1.0 else up) * (1.0 - b) - highest
    of_down = (least_down if b > -1.0 else down) * (1.0 + b) - (total - lowest)
    return float(max(of_up, of_down))


class Radius(NamedTuple):
    """What of a client's radius the rules know."""

    floor: float  # epsilon L, or 0 on a box
    flips: float  # epsilon / kappa: the mass of labels that it can flip


@compiled
def _span(
    constant: float,
    linear: float,
    of_rows: float,
    norm_weight: float,
    place: Place,
    radius: Radius,
    bounds: Bounds,
) -> tuple[float, float]:
    """[pair]: between these is every risk at ``place``, if a hinge cut is true.

    ``linear`` is A + v.w + v_b b, ``of_rows`` the least hinge of the rows that it is made of.
    """
    size, score = place.size, place.score
    # What the cut spends on flipped labels it need not spend here, but then it lacks their losses.
    given = max(radius.floor - norm_weight, 0.0) * size
    if given > 0.0 and bounds.is_single:
        if radius.flips == 0.0:
            given = 0.0
        else:
            price = radius.floor * size / radius.flips  # kappa ||w||_*
            share = 1.0 - norm_weight / radius.floor
            given = min(given, price * of_rows / max(1.0 + 0.5 * price, price))
            given = min(given, share * radius.flips * min(2.0 * score, 1.0 + score))
    rest = max(1.0 - constant - bounds.grid, 0.0)  # what is not in the cut are rows too
    lowest = radius.floor * size - given + of_rows + rest * place.least
    if radius.floor == 0.0 or not bounds.is_single:
        return lowest, np.inf
    worst = constant
    if score > 0.0:  # rows with that mean score are worst in the two outermost places
        margins = (constant - linear) / score
        worst = 0.5 * ((constant - margins) * (1.0 + score) + (constant + margins) * place.least)
    outside = rest + 2.0 * (radius.flips + bounds.grid)
    return lowest, radius.floor * size + worst + outside * (1.0 + score)


@compiled
def _pair(
    constant: float,
    slope: Array,
    norm_weight: float,
    place: Place,
    radius: Radius,
    n_features: int,
    bounds: Bounds,
) -> tuple[float, float, float]:
    """Least and largest risk at ``place``, if the cut is true; and how far rounding may lead."""
    value, scale = _value(constant, slope, norm_weight, place)
    slack = ROUNDING * scale + TINY * (1.0 + place.score)
    if not (bounds.is_hinge and bounds.has_slopes):
        return value, np.inf, slack
    linear = value - norm_weight * place.size
    of_rows = max(linear, 0.0)
    if slope.size > n_features:
        of_rows = max(of_rows, _by_label(constant, slope, place, n_features, bounds))
    lowest, highest = _span(constant, linear, of_rows, norm_weight, place, radius, bounds)
    return lowest, highest, slack


@compiled
def _judged_cut(
    constant: float,
    slope: Array,
    norm_weight: float,
    floor: float,
    rate: float,
    error: float,
    bounds: Bounds,
) -> tuple[int, float, float]:
    """The first rule that a cut breaks by itself; ``rate`` is the steepness where it was made."""
    if not norm_weight <= floor * (1.0 + ROUNDING):
        return NORM_WEIGHT, norm_weight, floor
    if not constant <= bounds.highest_constant * (1.0 + ROUNDING):
        return CONSTANT_HIGH, constant, bounds.highest_constant
    if not constant >= bounds.lowest_constant - error - bounds.grid:
        return CONSTANT_LOW, constant, bounds.lowest_constant
    mass = rate * (max(constant, 0.0) * (1.0 + ROUNDING) + error + bounds.grid)
    for j in range(bounds.slopes.size and slope.size):
        limit = bounds.slopes[j] * min(1.0 + ROUNDING, mass)
        # No limit on a feature is no limit on its slope, whatever the mass.
        if bounds.slopes[j] < np.inf and not abs(slope[j]) <= limit:
            return SLOPE, abs(slope[j]), limit
    return KEPT, 0.0, 0.0


@compiled
def _judged(
    places: list[Place],
    risks: Array,
    scales: Array,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
    radius: Radius,
    n_features: int,
    bounds: Bounds,
) -> tuple[int, float, float]:
    """The first rule that one client's answer breaks, with value and limit."""
    floor = radius.floor
    n_points = len(places)  # none where a sum's cuts were made at every client's own optimum
    reach = 0.0
    for i in range(n_points):
        reach = max(reach, places[i].score + abs(scales[i]))
    for k in range(constants.size):
        rate = 1.0 if bounds.is_hinge else np.inf
        if k < n_points:
            rate = places[k].steepness
        error = TINY * (1.0 + reach) if bounds.is_hinge else ROUNDING * (1.0 + reach)
        broken = _judged_cut(constants[k], slopes[k], norm_weights[k], floor, rate, error, bounds)
        if broken[0] != KEPT:
            return broken
    for i in range(n_points):
        place, lowest = places[i], floor * places[i].size + places[i].least
        slack = ROUNDING * (lowest + abs(scales[i])) + TINY * (1.0 + place.score)
        if not risks[i] >= lowest - slack:
            return RISK_LOW, risks[i], lowest
        highest = bounds.highest_constant + place.score + floor * place.size + bounds.grid
        if bounds.has_slopes and not risks[i] <= highest + slack:
            return RISK_HIGH, risks[i], highest
    for k in range(constants.size):
        for i in range(n_points):
            lowest, highest, slack = _pair(
                constants[k], slopes[k], norm_weights[k], places[i], radius, n_features, bounds
            )
            slack += ROUNDING * abs(scales[i])
            if not lowest <= risks[i] + slack:
                return ABOVE, lowest, risks[i]
            if not risks[i] <= highest + slack:
                return OVER, risks[i], highest
            if bounds.touches and k == i:
                value, _ = _value(constants[k], slopes[k], norm_weights[k], places[i])
                if not value >= risks[i] - slack - 2.0 * bounds.grid:
                    return APART, value, risks[i]
    return KEPT, 0.0, 0.0


@compiled
def judge_answers(
    points: Array,
    others: Array,
    norm: int,
    n_features: int,
    risks: Array,
    scales: Array,
    counts: Any,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
    radii: Array,
    limits: Plain,
) -> Array:
    """For each client (a row of ``risks``) the first rule broken, a value and its limit.

    The g-th has ``counts[g]`` cuts, those at the points first. ``scales`` are the numbers that
    ``risks`` are differences of, or the risks themselves. ``others`` are rows for ``_place``,
    ``radii`` the entries of a Radius per client.
    """
    bounds = Bounds(*limits)
    found = np.zeros((risks.shape[0], 3))
    places = [
        _place(points[i], norm, n_features, bounds, others[i]) for i in range(points.shape[0])
    ]
    end = 0
    for g in range(risks.shape[0]):
        own = slice(end, end + counts[g])
        end += counts[g]
        found[g, 0], found[g, 1], found[g, 2] = _judged(
            places,
            risks[g],
            scales[g],
            constants[own],
            slopes[own],
            norm_weights[own],
            Radius(radii[g, 0], radii[g, 1]),
            n_features,
            bounds,
        )
    return found


@compiled
def _contradicts(
    constant: float,
    slope: Array,
    norm_weight: float,
    place: Place,
    radius: Radius,
    risk: float,
    n_features: int,
    bounds: Bounds,
) -> tuple[int, float, float]:
    """Whether a cut cannot be true where a risk is; a nan is one that was not given."""
    if np.isnan(risk) or np.isnan(constant):
        return KEPT, 0.0, 0.0
    lowest, highest, slack = _pair(constant, slope, norm_weight, place, radius, n_features, bounds)
    slack += ROUNDING * abs(risk)
    if not lowest <= risk + slack:
        return CONTRADICTING, lowest, risk
    if not risk <= highest + slack:
        return CONTRADICTING, risk, highest
    return KEPT, 0.0, 0.0


@compiled
def contradictions(
    points: Array,
    others: Array,
    norm: int,
    n_features: int,
    risks: Array,
    owners: Any,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
    radii: Array,
    limits: Plain,
) -> Array:
    """For each client (a row of ``risks``) whether one of its cuts contradicts one of its risks.

    The k-th cut is of client ``owners[k]``.
    """
    bounds = Bounds(*limits)
    found = np.zeros((risks.shape[0], 3))
    for i in range(points.shape[0]):
        place = _place(points[i], norm, n_features, bounds, others[i])
        for k in range(constants.size):
            g = owners[k]
            if found[g, 0] == KEPT:
                found[g, 0], found[g, 1], found[g, 2] = _contradicts(
                    constants[k],
                    slopes[k],
                    norm_weights[k],
                    place,
                    Radius(radii[g, 0], radii[g, 1]),
                    risks[g, i],
                    n_features,
                    bounds,
                )
    return found


@compiled
def judge_round(
    points: Array,
    others: Array,
    best_risks: Array,
    norm: int,
    n_features: int,
    clients: Any,
    risks: Array,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
    radii: Array,
    past_constants: Array,
    past_slopes: Array,
    past_norm_weights: Array,
    limits: Plain,
) -> Array:
    """One risk and one cut per client: ``judge_answers``, and ``contradictions`` with the past.

    ``points`` are the model that was asked about and the best one, whose risks are known. The
    past's first axis is rounds, its second clients.
    """
    bounds = Bounds(*limits)
    place = _place(points[0], norm, n_features, bounds, others[0])
    best = _place(points[1], norm, n_features, bounds, others[1])
    rows = risks.reshape(-1, 1)
    found = judge_answers(
        points[:1],
        others[:1],
        norm,
        n_features,
        rows,
        rows,
        np.ones(clients.size, np.int64),
        constants,
        slopes,
        norm_weights,
        radii[clients],
        limits,
    )
    is_span = bounds.is_hinge and bounds.has_slopes
    # One product for all of the past; what is summed up again is what looks suspicious. The
    # labels of old cuts are not told apart: of those that prove a bound the certificate's own
    # check does it.
    n_clients, width = past_constants.shape[1], place.point.size
    falls = np.dot(past_slopes.reshape(-1, width), place.point)
    for k in range(clients.size):
        g, risk = clients[k], risks[k]
        radius = Radius(radii[g, 0], radii[g, 1])
        if found[k, 0] == KEPT:
            found[k, 0], found[k, 1], found[k, 2] = _contradicts(
                constants[k],
                slopes[k],
                norm_weights[k],
                best,
                radius,
                best_risks[g],
                n_features,
                bounds,
            )
        for t in range(past_constants.shape[0]):
            constant, norm_weight = past_constants[t, g], past_norm_weights[t, g]
            linear = constant + falls[t * n_clients + g]
            lowest, highest = linear + norm_weight * place.size, np.inf
            if is_span:
                lowest, highest = _span(
                    constant, linear, max(linear, 0.0), norm_weight, place, radius, bounds
                )
            if not lowest <= risk <= highest and found[k, 0] == KEPT:
                found[k, 0], found[k, 1], found[k, 2] = _contradicts(
                    constant,
                    past_slopes[t, g],
                    norm_weight,
                    place,
                    radius,
                    risk,
                    n_features,
                    bounds,
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
    if not scale < np.inf:  # a number whose square overflows is beyond all limits
        return VECTOR, np.sqrt(scale), steepest
    theta = rho + 2.0 * solve.tau
    gap = solve.gap * (1.0 + 0.5 * rho * centre) / (1.0 - solve.gap)
    spread = np.sqrt(P) if solve.norm == L1 else 1.0
    error = ROUNDING * (theta * np.sqrt(scale) / solve.relaxation + steepest)
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
        slack = _SQUARES * (found[k] + _SQUARES * scale / solve.relaxation**2)
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
        )
    return found
