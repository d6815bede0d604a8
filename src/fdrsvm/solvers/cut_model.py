"""The cutting-plane model of a federation's objective, and the lower bound that it proves.

    f_g(w) >= A_gk + v_gk.w + sigma_gk ||w||_*            cut k of client g, [cut]
    f_g(w) >= floor_g ||w||_*                             the floor: losses are not negative
    M(w) = sum_g alpha_g max over k of (right-hand sides) <= F(w) = sum_g alpha_g f_g(w)

The first ``n_normed`` entries of w are features; one more, if there is one, is an intercept, which
the norm does not see.

The bound is that of any numbers, whoever found them: it grades the solvers of master.py, trusts
none of them and shares no code with them (native/master/bound.cpp; a test reads the includes).

Cuts     F(u) >= Abar + r.u + S ||u||_*  for shares pi >= 0 of each client's cuts with sum 1, where
         Abar = sum alpha pi A, r = sum alpha pi v, S = sum alpha pi sigma, floors included
Bound    Abar, if ||r|| <= S (transport norm, features) and r_b = 0 (intercept), [model-bound]
Repair   clip, scale, give the missing share to the floor; scale down the heavier sign of v_b; mix
         with the floors alone until ||r|| <= S
Cost     two passes over the slopes
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import NORM_CODES, Groups, Norm, plain
from fdrsvm.native import master as kernels


@dataclass(frozen=True)
class CutModel:
    """Cuts of all clients, stacked; takes clean arrays.

    Attributes
    ----------
    constants : ndarray of shape (n_cuts,)
        A.
    slopes : ndarray of shape (n_cuts, width)
        v, an intercept's last; ``width`` is ``n_normed``, or one more.
    norm_weights : ndarray of shape (n_cuts,)
        sigma, not negative.
    owners : ndarray of int of shape (n_cuts,)
        The client of each cut, in ascending order. A client may have none.
    alphas : ndarray of shape (n_clients,)
        Weights of the clients, not negative, with sum 1.
    floors : ndarray of shape (n_clients,)
        Norm weights of the floors, not negative.
    n_normed : int
        Number of features.
    norm : {"l1", "l2", "linf"}
        The transport norm; the model has its dual.
    groups : tuple of int, optional
        Sizes of the groups of features of that norm, [grouped-norm].
    """

    constants: Array
    slopes: Array
    norm_weights: Array
    owners: npt.NDArray[np.int64]
    alphas: Array
    floors: Array
    n_normed: int
    norm: Norm
    groups: Groups = None

    @property
    def n_clients(self) -> int:
        """Clients, those without cuts or weight among them."""
        return self.alphas.size

    @property
    def width(self) -> int:
        """Features, and one for an intercept."""
        return int(self.slopes.shape[1])

    @cached_property
    def kernel(self) -> kernels.Cuts:
        """The model as compiled code reads it."""
        # Made when first asked for: models that only carry cuts from one place to another are many.
        return kernels.Cuts(
            constants=plain(self.constants),
            slopes=plain(self.slopes),
            norm_weights=plain(self.norm_weights),
            owners=np.ascontiguousarray(self.owners, dtype=np.int64),
            alphas=plain(self.alphas),
            floors=plain(self.floors),
            n_normed=self.n_normed,
            norm=NORM_CODES[self.norm],
            groups=self.groups,
        )

    def client_values(self, w: Array) -> Array:
        """Largest right-hand side at ``w`` of each client."""
        return self.kernel.client_values(plain(w))

    def value(self, w: Array) -> float:
        """M(w)."""
        return self.kernel.value(plain(w))


# --- the bound: nothing below trusts a solver ---


# F(u) >= ``value`` for every model u with ||u||_* <= ``radius``. The value is at least 0, since
# losses are not negative; the radius is inf unless all floors are 0 and the slopes do not cancel:
# then it is the one asked for. ``shares``, one per cut, are the repaired ones that prove the bound;
# what a client's lack to 1 is its floor's. ``slope_by_client`` has a row sum_k pi_gk v_gk each.
# An intercept may have any size: r_b = 0 up to rounding, so at |b| = 1e6 it holds up to 1e-10.
ModelBound: TypeAlias = kernels.Bound


def model_bound(model: CutModel, shares: Array, radius: float = np.inf) -> ModelBound:
    """The bound that ``shares``, made feasible, prove; any numbers will do, nan among them.

    ``radius`` is read only if all floors are 0: how large a model the bound should speak of.
    """
    return kernels.model_bound(model.kernel, plain(shares), radius)


def mixture_bound(
    constant: float, excess: float, floor: float, radius: float
) -> tuple[float, float, float]:
    """Bound, the radius it holds for, and the share left to a mixture with that ||r|| - S."""
    return kernels.mixture_bound(constant, excess, floor, radius)


def slope_by_client(model: CutModel, shares: Array) -> Array:
    """sum_k pi_gk v_gk, one row per client."""
    return kernels.slope_by_client(model.kernel, plain(shares))


@dataclass(frozen=True)
class Metric:
    """How far apart two models are: 1/2 (u - c)' matrix (u - c), in place of 1/2 ||u - c||^2.

    Attributes
    ----------
    matrix : ndarray of shape (width, width)
        Symmetric.
    least : float
        Above 0; no eigenvalue is smaller.
    """

    matrix: Array
    least: float


def distance_bound(
    model: CutModel,
    centre: Array,
    level: float,
    shares: Array,
    multiplier: float,
    *,
    metric: Metric | None = None,
    near: Array | None = None,
) -> float:
    """A lower bound on the distance 1/2 ||u - centre||^2 over the models u with M(u) <= level.

    The minimum over all u of that plus ``multiplier`` (not negative) times the excess over the
    level of the cut that ``shares``, made feasible, combine: the norm's proximal operator. -inf if
    the numbers prove nothing. In a ``metric`` a bound on that minimum, the better the closer
    ``near`` is to where it is, [metric-bound].
    """
    return kernels.distance_bound(
        model.kernel,
        plain(centre),
        level,
        plain(shares),
        multiplier,
        metric=None if metric is None else plain(metric.matrix),
        least=1.0 if metric is None else metric.least,
        near=plain(centre if near is None else near),
    )
