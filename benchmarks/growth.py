"""How a figure grows: exponents fitted on logarithms, with their standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Growth(NamedTuple):
    """y is about x to the power ``exponent``; ``error`` is its standard error."""

    exponent: float
    error: float


def fit_growth(x: Sequence[float], y: Sequence[float]) -> Growth:
    """Least squares of log y on log x, over three points at least.

    The exponent is S_xy / S_xx and its error sqrt(R / ((n - 2) S_xx)), R the sum of squared
    residuals: how far the points are from one power law, caches and numbers of steps included.
    """
    log_x, log_y = np.log(x), np.log(y)
    across, up = log_x - log_x.mean(), log_y - log_y.mean()
    spread = float(across @ across)
    exponent = float(across @ up) / spread
    residuals = up - exponent * across
    return Growth(exponent, float(np.sqrt(residuals @ residuals / ((len(log_x) - 2) * spread))))
