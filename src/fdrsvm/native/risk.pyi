from collections.abc import Sequence
from typing import Any

from fdrsvm.core.arrays import Array

class RiskFound:
    """``value`` bounds the risk from above, ``proof`` from below; they differ by rounding."""

    value: float
    proof: float
    multiplier: float
    subgradient: Array
    intercept_subgradient: float

class CutFound:
    """The risk at a model and the cut that touches it there, [cut]."""

    risk: RiskFound
    constant: float
    norm_weight: float
    slope: Array

class CutsFound:
    """Risks and cuts at several models, one entry or row per model."""

    risks: Array
    proofs: Array
    constants: Array
    slopes: Array
    norm_weights: Array

class MovesFound:
    """The worst distribution: ``shares`` of each sample go the first of two ways.

    ``labels`` and ``steps`` have one row per way; ``displaced`` turns them into points.
    """

    risk: RiskFound
    shares: Array
    labels: Array
    steps: Array

class RiskData:
    """The rows of one client and its ball, checked once."""

    def __init__(
        self,
        *,
        X: Array,
        y: Array,
        mass: Array,
        epsilon: float,
        kappa: float,
        norm: int,
        groups: Sequence[int] | None = None,
        low: Array | None = None,
        high: Array | None = None,
        floor: float = 0.0,
    ) -> None: ...
    def worst_case(self, w: Array, intercept: float) -> RiskFound: ...
    def cut(self, w: Array, intercept: float) -> CutFound: ...
    def cuts(self, points: Array) -> CutsFound | None: ...
    def worst_moves(self, w: Array, intercept: float) -> MovesFound: ...
    def displaced(self, w: Array, labels: Array, steps: Array) -> Array: ...

class LabelsFound:
    value: float
    proof: float
    multiplier: float
    rest: float
    intercept_slope: float
    shares: Array
    residual: Array

class LabelFlips:
    """The worst labels for any loss; features may take any value, [flips]."""

    def __init__(self, *, y: Array, mass: Array, epsilon: float, kappa: float) -> None: ...
    def worst_case(
        self,
        kept: Array,
        flipped: Array,
        kept_slope: Array,
        flipped_slope: Array,
        least: float,
    ) -> LabelsFound: ...

def flip_shares(
    gains: Array, mass: Array, budget: float, floor: float
) -> tuple[float, Array, float]: ...
def first_outside(X: Array, low: Array, high: Array) -> int: ...
def is_clean(w: Any, size: int) -> bool: ...
