"""Margin losses: convex functions of m = y (w.x + b), Lipschitz in m.

A loss is a small object with a value, a slope and a Lipschitz constant; that is all the worst case
without a support needs ([flips] in docs/maths.md), so every loss shares its code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from fdrsvm.core.arrays import Array


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
