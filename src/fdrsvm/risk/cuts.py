"""A cut: a simple function below a worst-case risk, equal to it (or close) at one model."""

from __future__ import annotations

from typing import NamedTuple

from fdrsvm.core.arrays import Array

# Masses sum to 1, so a smaller slope of the intercept is rounding; a server that followed it would
# end at intercepts of 1e15.
_NO_SLOPE = 1e-15


def intercept_slope(value: float) -> float:
    """The slope, or 0 where it is rounding alone."""
    return value if abs(value) > _NO_SLOPE else 0.0


class Cut(NamedTuple):
    """f(u, b) >= constant + slope.(u, b) + norm_weight ||u||_* for every model (u, b): [cut].

    Attributes
    ----------
    constant : float
        What is left of the bound at u = 0, b = 0.
    slope : ndarray of shape (n_features,) or (n_features + 1,)
        The linear part; the intercept's entry, if there is one, comes last.
    norm_weight : float
        At least 0: the part of the radius that moves features, times the loss's Lipschitz constant.
        0 on a box.
    """

    constant: float
    slope: Array
    norm_weight: float
