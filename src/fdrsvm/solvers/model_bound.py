"""A lower bound on a federation's objective from any numbers: nothing here trusts a solver.

Cuts     F(u) >= Abar + r.u + S ||u||_*  for shares pi >= 0 of each client's cuts with sum 1, where
         Abar = sum alpha pi A, r = sum alpha pi v, S = sum alpha pi sigma, floors included
Bound    Abar, if ||r|| <= S (transport norm, features) and r_b = 0 (intercept), [model-bound]
Repair   clip, scale, give the missing share to the floor; scale down the heavier sign of v_b; mix
         with the floors alone until ||r|| <= S
Cost     two passes over the slopes
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.norms import Norm, dual_norm, norm_rows
from fdrsvm.solvers.cut_model import CutModel


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
    shares = _without_intercept_slope(model, _feasible(model, shares))
    weights = model.alphas[model.owners] * shares
    constant = float(weights @ model.constants)
    excess = _excess(model, shares, weights)
    value, reach, theta = mixture_bound(constant, excess, model.floor, radius)
    shares = theta * shares
    return ModelBound(value, reach, shares, slope_by_client(model, shares))


def mixture_bound(
    constant: float, excess: float, floor: float, radius: float
) -> tuple[float, float, float]:
    """Bound, the radius it holds for, and the share left to a mixture with that ||r|| - S."""
    reach, theta = np.inf, 1.0
    if excess > 0.0:
        if floor > 0.0:
            theta = floor / (excess + floor)
            constant *= theta
        else:  # nothing keeps u small, so the bound falls with its size
            constant, reach = constant - radius * excess, radius
    if not constant > 0.0:  # the floors alone prove 0, for all u
        return 0.0, np.inf, 0.0
    return constant, reach, theta


def _feasible(model: CutModel, shares: Array) -> Array:
    """Not negative, and with a sum of at most 1 for each client."""
    shares = np.clip(np.nan_to_num(shares, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)
    sums = np.bincount(model.owners, weights=shares, minlength=model.n_clients)
    return shares / np.maximum(sums, 1.0)[model.owners]


def _without_intercept_slope(model: CutModel, shares: Array) -> Array:
    """Scales down the cuts with the heavier sign of v_b, until r_b = 0 up to rounding."""
    if model.width == model.n_normed:
        return shares
    slopes = model.slopes[:, model.n_normed]
    pulls = model.alphas[model.owners] * shares * slopes
    up, down = float(pulls[pulls > 0.0].sum()), -float(pulls[pulls < 0.0].sum())
    if up > down:
        return np.where(slopes > 0.0, down / up * shares, shares)
    if down > up:
        return np.where(slopes < 0.0, up / down * shares, shares)
    return shares


def _excess(model: CutModel, shares: Array, weights: Array) -> float:
    """||r|| - S: how fast the combined cut may fall with ||u||_*."""
    slope = weights @ model.slopes[:, : model.n_normed]
    return float(norm_rows(slope[None, :], model.norm)[0]) - _norm_weight(model, shares, weights)


def _norm_weight(model: CutModel, shares: Array, weights: Array) -> float:
    """S, the floors' part included."""
    own = np.bincount(model.owners, weights=shares, minlength=model.n_clients)
    left = np.maximum(1.0 - own, 0.0)
    return float(weights @ model.norm_weights + (model.alphas * left) @ model.floors)


def slope_by_client(model: CutModel, shares: Array) -> Array:
    """sum_k pi_gk v_gk, one row per client."""
    slopes, starts = np.zeros((model.n_clients, model.width)), model.starts
    present = np.flatnonzero(np.diff(starts))
    if present.size:  # reduceat would misread a client without cuts
        weighted = shares[:, None] * model.slopes
        slopes[present] = np.add.reduceat(weighted, starts[present], axis=0)
    return slopes


def distance_bound(
    model: CutModel, centre: Array, level: float, shares: Array, multiplier: float
) -> float:
    """A lower bound on 1/2 ||u - centre||^2 over the models u with M(u) <= level.

    The minimum over all u of that plus ``multiplier`` (not negative) times the excess over the
    level of the cut that ``shares``, made feasible, combine: the norm's proximal operator.
    """
    P = model.n_normed
    shares = _feasible(model, shares)
    weights = model.alphas[model.owners] * shares
    constant, slope = float(weights @ model.constants), weights @ model.slopes
    norm_weight = _norm_weight(model, shares, weights)
    u = centre - multiplier * slope
    u[:P] = _shrunk(u[:P], multiplier * norm_weight, model.norm)
    excess = constant + float(slope @ u) + norm_weight * dual_norm(u[:P], model.norm) - level
    return 0.5 * float(np.sum((u - centre) ** 2)) + multiplier * excess


def _shrunk(x: Array, t: float, norm: Norm) -> Array:
    """The u that minimises 1/2 ||u - x||^2 + t ||u||_*."""
    if norm == "linf":
        return np.sign(x) * np.maximum(np.abs(x) - t, 0.0)
    if norm == "l2":
        size = dual_norm(x, norm)
        return x * max(0.0, 1.0 - t / size) if size > 0.0 else x
    # max |u|: what sticks out above the height at which it amounts to t is cut off.
    sizes = np.sort(np.abs(x))[::-1]
    heights = (np.cumsum(sizes) - t) / np.arange(1, x.size + 1)
    return np.clip(x, -max(float(heights.max()), 0.0), max(float(heights.max()), 0.0))
