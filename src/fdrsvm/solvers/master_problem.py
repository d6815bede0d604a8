"""The master problem in the unit its solvers work in, and back, [master].

Features are divided by their largest slope, an intercept by its own, and values by M(0), so that
slopes and values are about 1. One scale for all features: the norm forbids others.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.maths.arrays import Array
from fdrsvm.maths.norms import NORM_CODES, dual_norm
from fdrsvm.solvers._kernels.master_rows import Master
from fdrsvm.solvers.cut_model import CutModel

# Beyond this ||w||_*, in units of M(0) over the largest slope, no minimiser is looked for ...
_FARTHEST = 1e5
# ... nor beyond this multiple of where the floors keep it.
_SLACK_REACH = 4.0


_Places: TypeAlias = npt.NDArray[np.int64]


class Scaled(NamedTuple):
    """A master problem in its unit, and how to bring answers back."""

    master: Master
    units: Array  # w = w' * units
    multiplier_unit: float  # of the level
    cuts: _Places  # cuts of clients with weight ...
    rows: _Places  # ... and where they stand among the master's rows
    n_cuts: int

    def shares(self, z: Array, price: float) -> Array:
        """Shares from the rows' multipliers, which for client g sum to ``price`` alpha_g."""
        owners = np.repeat(np.arange(self.master.alphas.size), np.diff(self.master.starts))
        shares = np.zeros(self.n_cuts)
        if price > 0.0:
            weights = price * self.master.alphas[owners[self.rows]]
            shares[self.cuts] = z[self.rows] / weights
        return shares


def scale_minimisation(model: CutModel, value_unit: float, radius: float) -> Scaled:
    """Minimise M(w), with ||w||_* up to ``radius`` (or where no minimiser can be)."""
    return _scale(model, value_unit, np.zeros(model.width), np.inf, 0.0, radius)


def scale_projection(
    model: CutModel, value_unit: float, centre: Array, level: float, curvature: float
) -> Scaled:
    """Minimise (curvature/2) ||w - centre||^2 where M(w) <= level."""
    return _scale(model, value_unit, centre, level, curvature, np.inf)


def _scale(
    model: CutModel,
    value_unit: float,
    centre: Array,
    level: float,
    curvature: float,
    radius: float,
) -> Scaled:
    weighted = np.flatnonzero(model.alphas > 0.0)  # the others would leave theta free
    cuts = np.flatnonzero(model.alphas[model.owners] > 0.0)
    rows, floor_rows, starts = _layout(model, weighted, cuts)
    scales, P, width = _scales(model), model.n_normed, model.width
    table, constants = np.zeros((starts[-1], width + 1)), np.zeros(starts[-1])
    table[rows, :width] = model.slopes[cuts] / scales
    table[rows, width] = model.norm_weights[cuts] / scales[0]
    table[floor_rows, width] = model.floors[weighted] / scales[0]
    constants[rows] = model.constants[cuts] / value_unit
    units = value_unit / scales
    where, levelled = centre / units, bool(level < np.inf)
    floor, size = model.floor / scales[0], dual_norm(where[:P], model.norm)
    price = min(1.0 / floor if floor > 0.0 else radius / units[0], _FARTHEST)
    master = Master(
        cuts=table,
        constants=constants,
        starts=starts,
        alphas=model.alphas[weighted],
        n_normed=P,
        norm=NORM_CODES[model.norm],
        curvature=curvature * units * units / value_unit,
        centre=where,
        level=level / value_unit if levelled else 0.0,
        levelled=levelled,
        price=0.0 if levelled else price,
        reach=_SLACK_REACH * (price + size) if floor > 0.0 or levelled else price,
        intercept_reach=_FARTHEST + _SLACK_REACH * float(np.abs(where[P:]).sum()),
    )
    multiplier_unit = 1.0 / curvature if curvature > 0.0 else 0.0
    return Scaled(master, units, multiplier_unit, cuts, rows, model.owners.size)


def _layout(model: CutModel, weighted: _Places, cuts: _Places) -> tuple[_Places, _Places, _Places]:
    """Where cuts and floors of clients with weight stand, client by client; and where each begins.

    A client's floor comes after its cuts.
    """
    place = np.full(model.n_clients, -1)
    place[weighted] = np.arange(weighted.size)
    owners = place[model.owners[cuts]]
    rows = np.arange(cuts.size) + owners
    starts = np.searchsorted(owners, np.arange(weighted.size + 1)) + np.arange(weighted.size + 1)
    return rows, starts[1:] - 1, starts


def _scales(model: CutModel) -> Array:
    """One scale for all features, and one for an intercept."""
    P = model.n_normed
    scale = _largest(model.slopes[:, :P]) or _largest(model.norm_weights) or 1.0
    return np.append(
        np.full(P, scale), np.full(model.width - P, _largest(model.slopes[:, P:]) or 1.0)
    )


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0.0))
