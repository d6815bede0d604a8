"""A lower bound on a federation's objective from any numbers: nothing here trusts a solver.

Cuts     F(u) >= Abar + r.u + S ||u||_*  for shares pi >= 0 of each client's cuts with sum 1, where
         Abar = sum alpha pi A, r = sum alpha pi v, S = sum alpha pi sigma, floors included
Bound    Abar, if ||r|| <= S (transport norm, features) and r_b = 0 (intercept), [model-bound]
Repair   clip, scale, give the missing share to the floor; scale down the heavier sign of v_b; mix
         with the floors alone until ||r|| <= S
Cost     two passes over the slopes

Computed in native/master/bound.cpp, which shares no code with a solver.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.native import master as kernels
from fdrsvm.solvers.cut_model import CutModel, clean


class ModelBound(NamedTuple):
    """``F(u) >= value`` for every model u with ||u||_* <= ``radius``.

    An intercept may have any size; r_b = 0 up to rounding, so at |b| = 1e6 it holds up to 1e-10.

    Attributes
    ----------
    value : float
        At least 0, since losses are not negative.
    radius : float
        ``inf`` unless all floors are 0 and the slopes do not cancel; then the one asked for.
    shares : ndarray of shape (n_cuts,)
        The repaired shares the bound is made of; what a client's lack to 1 is its floor's.
    slope_by_client : ndarray of shape (n_clients, width)
        sum_k pi_gk v_gk.
    """

    value: float
    radius: float
    shares: Array
    slope_by_client: Array


def model_bound(model: CutModel, shares: Array, radius: float = np.inf) -> ModelBound:
    """The bound that ``shares``, made feasible, prove; any numbers will do, nan among them.

    ``radius`` is read only if all floors are 0: how large a model the bound should speak of.
    """
    return named_bound(kernels.model_bound(model.kernel, clean(shares), radius))


def named_bound(bound: kernels.Bound) -> ModelBound:
    """A compiled kernel's bound as a tuple."""
    return ModelBound(bound.value, bound.radius, bound.shares, bound.slope_by_client)


def mixture_bound(
    constant: float, excess: float, floor: float, radius: float
) -> tuple[float, float, float]:
    """Bound, the radius it holds for, and the share left to a mixture with that ||r|| - S."""
    return kernels.mixture_bound(constant, excess, floor, radius)


def slope_by_client(model: CutModel, shares: Array) -> Array:
    """sum_k pi_gk v_gk, one row per client."""
    return kernels.slope_by_client(model.kernel, clean(shares))


def distance_bound(
    model: CutModel, centre: Array, level: float, shares: Array, multiplier: float
) -> float:
    """A lower bound on 1/2 ||u - centre||^2 over the models u with M(u) <= level.

    The minimum over all u of that plus ``multiplier`` (not negative) times the excess over the
    level of the cut that ``shares``, made feasible, combine: the norm's proximal operator. -inf if
    the numbers prove nothing.
    """
    return kernels.distance_bound(model.kernel, clean(centre), level, clean(shares), multiplier)
