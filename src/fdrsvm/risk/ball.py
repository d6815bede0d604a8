"""The Wasserstein ball around a client's data: radius, label price, transport norm, support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from fdrsvm.core.arrays import (
    Array,
    check_choice,
    check_finite,
    check_non_negative,
    check_positive,
    check_vector,
    column_label,
)
from fdrsvm.core.vectors import NORMS, Norm
from fdrsvm.errors import InvalidInputError
from fdrsvm.native import risk as kernels

Support: TypeAlias = "str | tuple[Any, Any] | None"

_WIDEST = 1e150  # beyond, squared distances overflow


@dataclass(frozen=True)
class Box:
    """low <= x <= high, feature by feature."""

    low: Array
    high: Array


@dataclass(frozen=True)
class WassersteinBall:
    """All distributions whose transport from the data costs at most ``epsilon`` on average.

    Moving a sample costs ``||x - x'||`` in the transport ``norm``, plus ``kappa`` if its label is
    flipped. ``box`` is the support, or None for all of space.
    """

    epsilon: float
    kappa: float
    norm: Norm
    box: Box | None

    @classmethod
    def checked(
        cls, n_features: int, *, epsilon: Any, kappa: Any, norm: Any, support: Support
    ) -> WassersteinBall:
        """From user arguments, or an error that names the one at fault."""
        return cls(
            epsilon=check_non_negative(epsilon, "epsilon"),
            kappa=check_positive(kappa, "kappa", or_infinite=True),
            norm=cast(Norm, check_choice(norm, "norm", NORMS)),
            box=check_support(support, n_features),
        )


def check_support(support: Support, n_features: int) -> Box | None:
    """None, the unit box, or a pair of finite bounds with low <= high."""
    if support is None:
        return None
    if isinstance(support, str):
        check_choice(support, "support", ("unit-box",))
        return Box(np.zeros(n_features), np.ones(n_features))
    if not isinstance(support, tuple | list | np.ndarray) or len(support) != 2:
        raise InvalidInputError(
            "support", "must be None, 'unit-box' or a pair (low, high)", f"it is {support!r}"
        )
    low, high = (
        _check_bound(bound, f"support ({end})", n_features)
        for bound, end in zip(support, ("low", "high"), strict=True)
    )
    if (low > high).any():
        column = int(np.flatnonzero(low > high)[0])
        raise InvalidInputError(
            "support",
            "low must not exceed high",
            f"column {column} has low {low[column]:g} and high {high[column]:g}",
        )
    with np.errstate(over="ignore"):
        too_wide = ~(high - low <= _WIDEST)
    if too_wide.any():
        column = int(np.flatnonzero(too_wide)[0])
        raise InvalidInputError(
            "support", f"no feature may range over more than {_WIDEST:g}", f"column {column} does"
        )
    return Box(low, high)


def _check_bound(bound: Any, argument: str, n_features: int) -> Array:
    if np.isscalar(bound) or (isinstance(bound, np.ndarray) and bound.ndim == 0):
        return np.full(n_features, check_finite(bound, argument))
    return check_vector(bound, argument, n_features, "features")


def check_inside(X: Array, box: Box, names: Any = None, argument: str = "X") -> None:
    """Every sample must lie in the support; ``names`` is what X's columns are called, if known."""
    row = kernels.first_outside(X, box.low, box.high)
    if row < 0:
        return
    column = int(np.flatnonzero((X[row] < box.low) | (X[row] > box.high))[0])
    raise InvalidInputError(
        argument,
        "every sample must lie inside the support",
        f"row {row}, {column_label(names, column)} is {X[row, column]:.17g}, "
        f"outside [{box.low[column]:.17g}, {box.high[column]:.17g}]",
    )
