"""Cuts that do not show which rows are active: a few rows near the margin count by a fraction.

Every 0 <= a_n + f_n <= p_n gives a cut of the worst-case hinge, [blurred-cut]:

    f(u) >= sum_n a_n (1 - m_n(u)) + f_n (1 + m_n(u)) + (epsilon - kappa sum_n f_n) ||u||_*.

The touching cut has a_n = p_n or 0, so that the cuts at two models that one row tells apart differ
by that row. Here a_n falls from p_n to 0 over a band around the margin that holds several rows.
"""

from __future__ import annotations

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.losses import Hinge
from fdrsvm.core.vectors import dot, weighted_sum
from fdrsvm.risk.worst_case import Cut, RiskOracle, with_tilt


def blurred_cut(oracle: RiskOracle, w: Array, intercept: float, blur: int) -> Cut:
    """A cut near ``w`` in which the ``blur`` rows nearest to the margin count by a fraction.

    For the hinge without a support. At ``w`` it lies below the touching cut, by at most an eighth
    of the band's half width times the mass inside.
    """
    y, mass = oracle.y, oracle.mass
    margins = oracle.margins(w, intercept)
    worst = oracle.worst_labels(Hinge(), margins, w)
    kept_mass = mass * (1.0 - worst.shares) * blurred_shares(1.0 - margins, blur)
    flipped_mass = mass * worst.shares * (margins > -1.0)
    signed = (flipped_mass - kept_mass) * y
    ones = np.ones(signed.size)
    slope = with_tilt(weighted_sum(signed, oracle.X), dot(signed, ones))
    return Cut(dot(kept_mass, ones) + dot(flipped_mass, ones), slope, worst.rest)


def blurred_shares(slacks: Array, blur: int) -> Array:
    """1 well inside the margin, 0 well outside, and a straight line over the band between.

    ``slacks`` are 1 - m_n. The band ends at the nearest distance from the margin that ``blur``
    different ones are below: equal rows count once, since together they would stand out as one.
    """
    distances = np.unique(np.abs(slacks))
    width = float(distances[min(blur, distances.size - 1)])
    if width == 0.0:
        return np.full_like(slacks, 0.5)
    return np.clip(0.5 + slacks / (2.0 * width), 0.0, 1.0)
