"""The augmented Lagrangian: its multipliers, its gradient, and what they say about the gap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.maths.norms import dual_norm_of
from fdrsvm.solvers._kernels.projections import project_cone, project_sample
from fdrsvm.solvers._kernels.rows import Rows, transposed_times


class Terms(NamedTuple):
    """What a problem's objective is made of; nothing here changes from round to round."""

    rows: Rows
    mass: Array
    curvature: Array  # of the quadratic in (w, b): rho + 2 tau, and rho for the intercept
    epsilon: float
    kappa: float  # 0 where labels are trusted
    flips: bool
    norm: int
    n_normed: int  # the norm sees w[:n_normed]; an intercept comes after
    reach: float  # how far, per unit of gradient, a coordinate without curvature may move the gap
    cone_scale: float  # the cone's penalty over that of the samples
    wide: bool  # too many features to form Newton's matrix


class Point(NamedTuple):
    """Primal and dual iterate; the arrays are changed in place, ``scalars`` is [lam, sigma]."""

    w: Array
    kept: Array
    flipped: Array
    pull: Array
    scalars: Array


class Stage(NamedTuple):
    """One augmented Lagrangian: its starting multipliers, its penalties and its proximal term."""

    linear: Array  # of the quadratic in (w, b) ...
    constant: float  # ... and its value at 0
    old: Point  # only its multipliers are read
    anchor: Array  # (w, b, lam) at the start
    prox: Array  # weight of the pull towards the anchor
    penalty: float
    cone_penalty: float


@compiled_fast
def sample_multipliers(
    terms: Terms, stage: Stage, n: int, margin: float, lam: float
) -> tuple[float, float, int]:
    """(kept, flipped) of sample n at this margin and lam, and their place in the triangle."""
    weight = stage.penalty * terms.mass[n]
    return project_sample(
        stage.old.kept[n] + weight * (1.0 - margin),
        stage.old.flipped[n] + weight * (1.0 + margin - terms.kappa * lam),
        terms.mass[n],
        terms.flips,
    )


@compiled_fast
def update_multipliers(
    terms: Terms,
    stage: Stage,
    margins: Array,
    point: Point,
    place: npt.NDArray[np.int8],
    shifted: Array,
) -> float:
    """All multipliers of ``point`` from its w and lam; notes where they lie.

    Fills ``place`` (of the samples) and ``shifted`` (what the cone's projection was given); returns
    that projection's second answer.
    """
    lam = point.scalars[0]
    for n in range(margins.size):
        point.kept[n], point.flipped[n], place[n] = sample_multipliers(
            terms, stage, n, margins[n], lam
        )
    for p in range(terms.n_normed):
        shifted[p] = stage.old.pull[p] + stage.cone_penalty * point.w[p]
    point.scalars[1], found_by = project_cone(
        shifted, stage.old.scalars[1] - stage.cone_penalty * lam, terms.norm, point.pull
    )
    return found_by


@compiled_fast
def lagrangian_gradient(
    terms: Terms, stage: Stage, point: Point, signed: Array, gradient: Array
) -> None:
    """Fills ``gradient`` (over w, b, lam) and ``signed`` = kept - flipped."""
    last = point.w.size
    total_flipped = 0.0
    for n in range(signed.size):
        signed[n] = point.kept[n] - point.flipped[n]
        total_flipped += point.flipped[n]
    transposed_times(terms.rows, signed, gradient[:last])
    for j in range(last):
        gradient[j] = terms.curvature[j] * point.w[j] - stage.linear[j] - gradient[j]
    for p in range(terms.n_normed):
        gradient[p] += point.pull[p]
    gradient[last] = terms.epsilon - terms.kappa * total_flipped - point.scalars[1]


@compiled_fast
def complementarity(
    terms: Terms, stage: Stage, point: Point, margins: Array
) -> tuple[float, float]:
    """What the multipliers leave on the table at w: a stationary point's gap; and the objective."""
    w, kappa = point.w, terms.kappa
    lam = max(point.scalars[0], dual_norm_of(w[: terms.n_normed], terms.norm))
    slack, value = point.scalars[1] * lam, terms.epsilon * lam + stage.constant
    for p in range(terms.n_normed):
        slack -= point.pull[p] * w[p]
    for j in range(w.size):
        value += (0.5 * terms.curvature[j] * w[j] - stage.linear[j]) * w[j]
    for n in range(margins.size):
        kept_loss, flipped_loss = 1.0 - margins[n], 1.0 + margins[n] - kappa * lam
        loss = max(0.0, kept_loss)
        if terms.flips:
            loss = max(loss, flipped_loss)
        loss *= terms.mass[n]
        value += loss
        slack += loss - point.kept[n] * kept_loss - point.flipped[n] * flipped_loss
    return slack, value


@compiled_fast
def stationarity_price(terms: Terms, point: Point, gradient: Array) -> float:
    """What the gradient of the Lagrangian adds to the duality gap."""
    price = abs(gradient[-1]) * (abs(point.scalars[0]) + 1.0)
    for j in range(point.w.size):
        if terms.curvature[j] > 0.0:
            price += 0.5 * gradient[j] * gradient[j] / terms.curvature[j]
        else:
            price += abs(gradient[j]) * (abs(point.w[j]) + terms.reach)
    return float(price)
