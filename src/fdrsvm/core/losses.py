"""Margin losses: convex functions of m = y (w.x + b), Lipschitz in m.

A loss is a small object with a value, a slope and a Lipschitz constant; that is all the worst case
without a support needs ([flips] in docs/maths.md), so every loss shares its code.

The tilted mean is a soft maximum: what a KL ball of distributions makes of losses x, [feddro].

    value   lam log sum_n p_n exp(x_n / lam) = max over distributions q of  q.x - lam KL(q || p)
    shares  q_n = p_n exp(x_n / lam) / sum_m p_m exp(x_m / lam), the maximiser

lam is the temperature: value tends to the mean of x as lam grows and to its maximum as lam -> 0.
Any q gives a lower bound, whatever x is; that is what cuts of a tilted mean are made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import dot


@runtime_checkable
class MarginLoss(Protocol):
    """What a loss must offer. It must be convex in the margin and ``lipschitz``-Lipschitz."""

    @property
    def name(self) -> str:
        """How the loss is called in arguments and messages."""

    @property
    def lipschitz(self) -> float:
        """Smallest L with |value(a) - value(b)| <= L |a - b|."""

    def value(self, margins: Array) -> Array:
        """Loss at each margin."""

    def slope(self, margins: Array) -> Array:
        """Derivative at each margin; at a kink any number between the one-sided derivatives."""


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 - m)."""

    name: ClassVar[str] = "hinge"
    lipschitz: ClassVar[float] = 1.0

    def value(self, margins: Array) -> Array:
        return np.maximum(0.0, 1.0 - margins)

    def slope(self, margins: Array) -> Array:
        return np.where(margins < 1.0, -1.0, 0.0)


@dataclass(frozen=True)
class SmoothHinge:
    """0 for m >= 1, (1 - m)^2 / 2 for 0 < m < 1, 1/2 - m for m <= 0."""

    name: ClassVar[str] = "smooth_hinge"
    lipschitz: ClassVar[float] = 1.0

    def value(self, margins: Array) -> Array:
        short = np.clip(1.0 - margins, 0.0, 1.0)
        return 0.5 * short * short + np.maximum(0.0, -margins)

    def slope(self, margins: Array) -> Array:
        return -np.clip(1.0 - margins, 0.0, 1.0)


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-m))."""

    name: ClassVar[str] = "logistic"
    lipschitz: ClassVar[float] = 1.0

    def value(self, margins: Array) -> Array:
        return np.logaddexp(0.0, -margins)

    def slope(self, margins: Array) -> Array:
        result: Array = -expit(-margins)
        return result


@dataclass(frozen=True)
class Linear:
    """1 - m: what the paper's adversary maximises in place of the hinge."""

    name: ClassVar[str] = "linear"
    lipschitz: ClassVar[float] = 1.0

    def value(self, margins: Array) -> Array:
        return 1.0 - margins

    def slope(self, margins: Array) -> Array:
        return np.full_like(margins, -1.0)


LOSSES: dict[str, MarginLoss] = {loss.name: loss for loss in (Hinge(), SmoothHinge(), Logistic())}
_OWN = {type(loss) for loss in LOSSES.values()}


def is_known(loss: MarginLoss) -> bool:
    """Whether a loss is one of the package's own: they fall, and their tangents start above 0."""
    return type(loss) in _OWN  # a subclass may be another loss


class TiltedMean(NamedTuple):
    """The tilted mean, with ``value == shares @ x - price`` up to rounding."""

    value: float
    shares: Array  # q, a distribution
    price: float  # lam KL(q || p)


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
