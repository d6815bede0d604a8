"""The tilted mean, a soft maximum: what a KL ball of distributions makes of losses, [feddro].

    value   lam log sum_n p_n exp(x_n / lam) = max over distributions q of  q.x - lam KL(q || p)
    shares  q_n = p_n exp(x_n / lam) / sum_m p_m exp(x_m / lam), the maximiser

lam is the temperature: value tends to the mean of x as lam grows and to its maximum as lam -> 0.
Any q gives a lower bound, whatever x is; that is what cuts of a tilted mean are made of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import dot


class TiltedMean(NamedTuple):
    """The tilted mean, with ``value == shares @ x - price`` up to rounding.

    Attributes
    ----------
    value : float
        lam log sum_n p_n exp(x_n / lam).
    shares : ndarray
        q, a distribution.
    price : float
        lam KL(q || p).
    """

    value: float
    shares: Array
    price: float


def tilted_mean(x: Array, mass: Array, temperature: float) -> TiltedMean:
    """Tilted mean of ``x`` under the probabilities ``mass``; neither overflows nor cancels."""
    top = float(x[mass > 0.0].max())
    # Never above 0 where it counts, so no exponential overflows.
    tilt = np.minimum(x - top, 0.0) / temperature
    total = dot(mass, np.exp(tilt))
    # Near 1 the sum has lost what a high temperature leaves of x; far from 1 expm1 would.
    log_total = float(np.log1p(dot(mass, np.expm1(tilt))) if total > 0.5 else np.log(total))
    tilt -= log_total
    shares = mass * np.exp(tilt)
    return TiltedMean(top + temperature * log_total, shares, temperature * dot(shares, tilt))
