"""Newton on one augmented Lagrangian after another."""

from __future__ import annotations

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.solvers._kernels.lagrangian import (
    Point,
    Stage,
    Terms,
    complementarity,
    lagrangian_gradient,
    stationarity_price,
    update_multipliers,
)
from fdrsvm.solvers._kernels.newton import (
    System,
    build_system,
    new_system,
    solve_direct,
    solve_iteratively,
)
from fdrsvm.solvers._kernels.projections import (
    FLIPPED_EDGE,
    FULL_EDGE,
    KEPT_EDGE,
    project_sample,
)
from fdrsvm.solvers._kernels.rows import inner, row_dot, times
from fdrsvm.solvers._kernels.search import centre_lam, search_step

_GROWTH = 3.0  # of the penalty from stage to stage ...
_HARD_STAGE = 15  # ... unless the last one took this many Newton steps
_STAGE_STEPS = 40
_IDLE_STAGES = 20  # stages without a Newton step before giving up
# Beyond these the rounding of the margins, times the penalty, spoils the multipliers; where every
# coordinate is curved the gap feels only its square.
_MAX_PENALTY, _MAX_CURVED_PENALTY = 1e5, 1e8
# Proximal weights, over the penalty: of coordinates without curvature, and of lam in units of
# epsilon. The tiny number keeps the matrix regular at epsilon = 0.
_PROX, _LAM_PROX, _TINY = 1e-5, 1e-4, 1e-300
_MIN_WIDTH = 100  # of a system that is worth solving by conjugate gradients
_ROUNDING = 1e-16  # a Newton step that promises less cannot be judged by function values


@compiled_fast
def _move_linearly(
    terms: Terms, stage: Stage, system: System, count: int, direction: Array, point: Point
) -> None:
    """Takes a tiny Newton step, the multipliers by their derivative instead of from the margins.

    Margins carry a rounding of 1e-16 and multipliers ``penalty`` times that; this sheds it.
    """
    last = direction.size - 1
    features = direction[:last]
    for n in system.band[:count]:
        scale = stage.penalty * terms.mass[n]
        place = system.place[n]
        margin = row_dot(terms.rows, n, features)
        flip = margin - terms.kappa * direction[last]
        kept, flipped = point.kept[n], point.flipped[n]
        if place == FULL_EDGE:
            kept -= 0.5 * scale * (margin + flip)
            flipped += 0.5 * scale * (margin + flip)
        else:
            if place != FLIPPED_EDGE:
                kept -= scale * margin
            if place != KEPT_EDGE:
                flipped += scale * flip
        point.kept[n], point.flipped[n], _ = project_sample(
            kept, flipped, terms.mass[n], terms.flips
        )
    along_0, along_1 = inner(system.low[0], direction), inner(system.low[1], direction)
    for j in range(last + 1):
        bent = system.low_weight[0] * along_0 * system.low[0, j]
        bent += system.low_weight[1] * along_1 * system.low[1, j]
        change = stage.cone_penalty * (system.cone[j] * direction[j] + bent)
        if j < terms.n_normed:
            point.pull[j] += change
        elif j == last:
            point.scalars[1] -= change
        if j < last:
            point.w[j] += direction[j]
    point.scalars[0] += direction[last]


@compiled_fast
def _add_prox(stage: Stage, point: Point, gradient: Array) -> None:
    last = point.w.size
    for j in range(last):
        gradient[j] += stage.prox[j] * (point.w[j] - stage.anchor[j])
    gradient[last] += stage.prox[last] * (point.scalars[0] - stage.anchor[last])


@compiled_fast
def _minimise_stage(
    terms: Terms, stage: Stage, point: Point, system: System, tol: float, max_newton: int
) -> tuple[bool, int]:
    """Newton until the multipliers are worth moving; returns (reached tol, Newton steps)."""
    n_samples, last = point.kept.size, point.w.size
    margins, moved, signed = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    gradient, direction = np.empty(last + 1), np.empty(last + 1)
    work = np.empty((2, terms.n_normed))
    times(terms.rows, point.w, margins)
    n_newton, centred, moved_linearly = 0, False, False
    while True:
        found_by = 0.0
        if not moved_linearly:
            found_by = update_multipliers(
                terms, stage, margins, point, system.place, system.shifted
            )
        lagrangian_gradient(terms, stage, point, signed, gradient)
        slack, value = complementarity(terms, stage, point, margins)
        goal = tol * max(1.0, abs(value))
        if slack + stationarity_price(terms, point, gradient) <= goal:
            return True, n_newton
        if moved_linearly:
            return False, n_newton
        _add_prox(stage, point, gradient)
        price = stationarity_price(terms, point, gradient)
        flat = price <= 0.1 * goal or (n_newton > 0 and price <= 0.1 * slack)
        if flat or n_newton >= max_newton:
            return False, n_newton
        count, lam_is_curved = build_system(terms, stage, point, found_by, system)
        if not (lam_is_curved or centred):  # Newton would send lam to infinity
            point.scalars[0] = centre_lam(
                terms, stage, margins, system.shifted, point.scalars[0], work[1]
            )
            centred = True
            continue
        centred = False
        for j in range(last + 1):
            direction[j] = -gradient[j]
        # With few samples near a kink their kernel matrix is smaller than the Gram matrix.
        if terms.wide or (last > _MIN_WIDTH and 2 * count < last):
            solve_iteratively(terms, system, count, stage.cone_penalty, direction)
        else:
            solve_direct(terms, system, count, stage.cone_penalty, direction)
        n_newton += 1
        slope = 0.0
        for j in range(last + 1):
            slope += gradient[j] * direction[j]
        if slope >= -_ROUNDING:
            _move_linearly(terms, stage, system, count, direction, point)
            times(terms.rows, point.w, margins)
            moved_linearly = True
            continue
        times(terms.rows, direction[:last], moved)
        step = search_step(terms, stage, point, margins, direction, moved, slope, work)
        for j in range(last):
            point.w[j] += step * direction[j]
        point.scalars[0] += step * direction[last]
        for n in range(n_samples):
            margins[n] += step * moved[n]


@compiled_fast
def _begin_stage(
    terms: Terms, linear: Array, constant: float, old: Point, point: Point, penalty: float
) -> Stage:
    last = point.w.size
    anchor, prox = np.empty(last + 1), np.empty(last + 1)
    for j in range(last):
        anchor[j] = point.w[j]
        prox[j] = 0.0 if terms.curvature[j] > 0.0 else _PROX / penalty
    anchor[last] = point.scalars[0]
    prox[last] = _LAM_PROX * terms.epsilon / penalty + _TINY
    return Stage(linear, constant, old, anchor, prox, penalty, penalty * terms.cone_scale)


@compiled_fast
def multiplier_method(
    terms: Terms,
    linear: Array,
    constant: float,
    point: Point,
    penalty: float,
    tol: float,
    max_newton: int,
) -> tuple[int, float]:
    """Stage after stage from ``point`` (changed in place); returns (Newton steps, last penalty)."""
    system = new_system(point.kept.size, point.w.size + 1, terms.n_normed)
    old = Point(
        point.w,
        point.kept.copy(),
        point.flipped.copy(),
        point.pull.copy(),
        point.scalars.copy(),
    )
    max_penalty = _MAX_CURVED_PENALTY if np.min(terms.curvature) > 0.0 else _MAX_PENALTY
    n_newton, n_idle = 0, 0
    while n_idle < _IDLE_STAGES and n_newton < max_newton:
        stage = _begin_stage(terms, linear, constant, old, point, penalty)
        limit = min(_STAGE_STEPS, max_newton - n_newton)
        reached, n_steps = _minimise_stage(terms, stage, point, system, tol, limit)
        n_newton += n_steps
        if reached:
            break
        n_idle = n_idle + 1 if n_steps == 0 else 0
        old.kept[:] = point.kept
        old.flipped[:] = point.flipped
        old.pull[:] = point.pull
        old.scalars[:] = point.scalars
        if n_steps < _HARD_STAGE:
            penalty = min(_GROWTH * penalty, max_penalty)
    return n_newton, penalty
