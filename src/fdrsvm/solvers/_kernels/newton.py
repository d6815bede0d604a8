"""Newton's linear system on an augmented Lagrangian, formed and factorised or only applied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.compiled import compiled_fast
from fdrsvm.solvers._kernels.lagrangian import Point, Stage, Terms
from fdrsvm.solvers._kernels.linear_algebra import factorise, solve_factorised
from fdrsvm.solvers._kernels.projections import (
    FLIPPED_EDGE,
    INSIDE,
    KEPT_EDGE,
    VERTEX,
    cone_curvature,
)
from fdrsvm.solvers._kernels.rows import (
    add_gram,
    add_row,
    add_squared_row,
    inner,
    kernel_matrix,
    row_dot,
)

# Samples near a kink beyond which their kernel matrix costs more than it saves; without curvature
# conjugate gradients cannot do without it for longer.
_MAX_CURVED_KERNEL, _MAX_KERNEL = 500, 3000
_RTOL, _MAX_STEPS = 1e-3, 500  # of conjugate gradients


class System(NamedTuple):
    """Newton's matrix, as sums of rank-one terms; the last row and column stand for lam.

    sum_k weight_k r_k r_k' + diag(diagonal) + cone_penalty sum_i low_weight_i low_i low_i', where
    r_k = (row of sample band_k, -tilt_k) and diagonal = own + cone_penalty cone.
    """

    place: npt.NDArray[np.int8]  # of every sample's multipliers
    band: npt.NDArray[np.int64]  # samples with curvature come first
    weight: Array
    tilt: Array
    own: Array
    diagonal: Array
    shifted: Array  # what the cone's projection was given
    cone: Array
    low: npt.NDArray[np.float64]
    low_weight: Array


@compiled_fast
def new_system(n_samples: int, size: int, n_normed: int) -> System:
    """Room for a system of ``size`` unknowns, lam among them."""
    return System(
        np.empty(n_samples, np.int8),
        np.empty(n_samples, np.int64),
        np.empty(n_samples),
        np.empty(n_samples),
        np.empty(size),
        np.empty(size),
        np.empty(n_normed),
        np.empty(size),
        np.empty((2, size)),
        np.empty(2),
    )


@compiled_fast
def build_system(
    terms: Terms, stage: Stage, point: Point, found_by: float, system: System
) -> tuple[int, bool]:
    """Fills ``system``; returns how many samples it holds and whether lam has any curvature."""
    count, lam_part, lam_own, kappa = 0, 0.0, 0.0, terms.kappa
    last = system.diagonal.size - 1
    for n in range(system.place.size):
        place = system.place[n]
        if place == VERTEX:
            continue
        scale = stage.penalty * terms.mass[n]
        tilt = 0.0
        if place == FLIPPED_EDGE:
            tilt = kappa
        elif place != KEPT_EDGE:  # two pieces at once, or the difference of two
            scale, tilt = 2.0 * scale, 0.5 * kappa
        if place == INSIDE:
            lam_own += scale * tilt * tilt
        lam_part += scale * tilt * tilt
        system.band[count], system.weight[count], system.tilt[count] = n, scale, tilt
        count += 1
    shifted_sigma = stage.old.scalars[1] - stage.cone_penalty * point.scalars[0]
    cone, low, low_weight = system.cone, system.low, system.low_weight
    cone_curvature(
        system.shifted, shifted_sigma, point.scalars[1], found_by, terms.norm, cone, low, low_weight
    )
    for j in range(last + 1):
        system.own[j] = stage.prox[j] + (terms.curvature[j] if j < last else lam_own)
        system.diagonal[j] = system.own[j] + stage.cone_penalty * cone[j]
    return count, lam_part + cone[last] + low_weight[0] * abs(low[0, last]) > 0.0


@compiled_fast
def solve_direct(terms: Terms, system: System, count: int, cone_penalty: float, x: Array) -> None:
    """Sets x = H^-1 x with H formed and factorised: for few features."""
    last = x.size - 1
    H = np.zeros((x.size, x.size))
    band, weight, tilt = system.band[:count], system.weight[:count], system.tilt[:count]
    add_gram(terms.rows, band, weight, last, H)
    lam_row = H[last, :last]
    for k in range(count):
        if tilt[k] > 0.0:
            add_row(terms.rows, band[k], -weight[k] * tilt[k], lam_row)
            H[last, last] += weight[k] * tilt[k] * tilt[k]
    for i in range(2):
        if system.low_weight[i] != 0.0:
            for j in range(x.size):
                scaled = cone_penalty * system.low_weight[i] * system.low[i, j]
                if scaled != 0.0:
                    for k in range(j + 1):
                        H[j, k] += scaled * system.low[i, k]
    for j in range(x.size):
        H[j, j] += system.diagonal[j]
    factorise(H)
    solve_factorised(H, x)


@compiled_fast
def _apply_system(
    terms: Terms, system: System, count: int, cone_penalty: float, x: Array, out: Array
) -> None:
    """Sets out = H x."""
    last = x.size - 1
    x_features, out_features = x[:last], out[:last]
    for j in range(x.size):
        out[j] = system.diagonal[j] * x[j]
    for k in range(count):
        n, tilt = system.band[k], system.tilt[k]
        scaled = system.weight[k] * (row_dot(terms.rows, n, x_features) - tilt * x[last])
        add_row(terms.rows, n, scaled, out_features)
        out[last] -= scaled * tilt
    for i in range(2):
        if system.low_weight[i] != 0.0:
            low = system.low[i]
            _add(cone_penalty * system.low_weight[i] * inner(low, x), low, out)


@compiled_fast
def _add(scale: float, x: Array, out: Array) -> None:
    """Sets out += scale * x."""
    for j in range(x.size):
        out[j] += scale * x[j]


class Preconditioner(NamedTuple):
    """An approximate inverse of Newton's matrix.

    With ``size`` 0: diag(inverse). Otherwise the exact one, by Woodbury's formula over the kernel
    matrix of the samples in the band, of which ``factor`` is the Cholesky factor. B = diagonal +
    the negative rank-one term has the inverse diag(inverse) + bend bent bent'.
    """

    size: int
    inverse: Array
    bend: float
    bent: Array
    factor: npt.NDArray[np.float64]


@compiled_fast
def _diagonal_preconditioner(
    terms: Terms, system: System, count: int, cone_penalty: float
) -> Preconditioner:
    last = system.diagonal.size - 1
    scale = system.diagonal.copy()
    features = scale[:last]
    for k in range(count):
        weight, tilt = system.weight[k], system.tilt[k]
        add_squared_row(terms.rows, system.band[k], weight, features)
        scale[last] += weight * tilt * tilt
    for j in range(last + 1):
        for i in range(2):
            scale[j] += cone_penalty * system.low_weight[i] * system.low[i, j] ** 2
        scale[j] = 1.0 / max(scale[j], 1e-300)
    return Preconditioner(0, scale, 0.0, scale, np.empty((0, 0)))


@compiled_fast
def _along_rows(terms: Terms, system: System, count: int, x: Array, out: Array) -> None:
    """Sets out = R x: the band's rows, then the positive rank-one term's."""
    last = x.size - 1
    features = x[:last]
    for k in range(count):
        product = row_dot(terms.rows, system.band[k], features)
        out[k] = product - system.tilt[k] * x[last]
    if out.size > count:
        out[count] = inner(system.low[0], x)


@compiled_fast
def _kernel_preconditioner(
    terms: Terms, system: System, count: int, cone_penalty: float
) -> Preconditioner:
    width = system.diagonal.size
    inverse, bent, pushed = np.empty(width), np.empty(width), np.empty(width)
    square, left = 0.0, 0.0
    for j in range(width):
        inverse[j] = 1.0 / system.diagonal[j]
        bent[j] = inverse[j] * system.low[1, j]
        pushed[j] = inverse[j] * system.low[0, j]
        square += system.low[1, j] ** 2
        left += system.low[1, j] * system.own[j] * bent[j]
    # left / square is 1 - cone_penalty |low_weight| low' inverse low, without its cancellation.
    bend = -cone_penalty * system.low_weight[1] * square / left if left > 0.0 else 0.0
    size = count + 1 if cone_penalty * system.low_weight[0] > 0.0 else count
    K, along = np.zeros((size, size)), np.zeros(size)
    kernel_matrix(terms.rows, system.band[:count], inverse[: width - 1], K)
    if size > count:
        _along_rows(terms, system, count, pushed, K[count])
        K[count, count] += 1.0 / (cone_penalty * system.low_weight[0])
    if bend > 0.0:
        _along_rows(terms, system, count, bent, along)
    for i in range(size):
        if i < count:
            _add(inverse[-1] * system.tilt[i], system.tilt[: i + 1], K[i])
            K[i, i] += 1.0 / system.weight[i]
        _add(bend * along[i], along[: i + 1], K[i])
    factorise(K)
    return Preconditioner(size, inverse, bend, bent, K)


@compiled_fast
def _apply_base(inverse: Preconditioner, r: Array, scale: float, out: Array) -> None:
    """Sets out += scale * B^-1 r."""
    for j in range(r.size):
        out[j] += scale * inverse.inverse[j] * r[j]
    if inverse.bend > 0.0:
        _add(scale * inverse.bend * inner(inverse.bent, r), inverse.bent, out)


@compiled_fast
def _precondition(
    terms: Terms, system: System, count: int, inverse: Preconditioner, r: Array, z: Array
) -> None:
    """Sets z = an approximation of H^-1 r."""
    z[:] = 0.0
    _apply_base(inverse, r, 1.0, z)
    if inverse.size == 0:
        return
    share, taken = np.empty(inverse.size), np.zeros(r.size)
    _along_rows(terms, system, count, z, share)
    solve_factorised(inverse.factor, share)
    features = taken[:-1]
    for k in range(count):
        add_row(terms.rows, system.band[k], share[k], features)
        taken[-1] -= share[k] * system.tilt[k]
    if inverse.size > count:
        _add(share[count], system.low[0], taken)
    _apply_base(inverse, taken, -1.0, z)


@compiled_fast
def solve_iteratively(
    terms: Terms, system: System, count: int, cone_penalty: float, x: Array
) -> None:
    """Sets x = H^-1 x by preconditioned conjugate gradients, never forming H: for many features."""
    if count <= (_MAX_CURVED_KERNEL if terms.curvature[0] > 0.0 else _MAX_KERNEL):
        inverse = _kernel_preconditioner(terms, system, count, cone_penalty)
    else:
        inverse = _diagonal_preconditioner(terms, system, count, cone_penalty)
    r = x.copy()
    x[:] = 0.0
    z, p, Hp = np.empty(x.size), np.zeros(x.size), np.empty(x.size)
    rz, goal, turn = 0.0, -1.0, 0.0
    for _ in range(_MAX_STEPS):
        _precondition(terms, system, count, inverse, r, z)
        previous, rz = rz, inner(r, z)
        if goal < 0.0:
            goal = _RTOL * _RTOL * rz
        elif rz > goal:
            turn = rz / previous
        if rz <= goal:
            break
        for j in range(x.size):
            p[j] = z[j] + turn * p[j]
        _apply_system(terms, system, count, cone_penalty, p, Hp)
        curvature = inner(p, Hp)
        if curvature <= 0.0:
            break
        _add(rz / curvature, p, x)
        _add(-rz / curvature, Hp, r)
