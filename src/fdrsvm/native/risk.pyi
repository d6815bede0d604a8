from typing import Any

from fdrsvm.core.arrays import Array

class RiskFound:
    value: float
    proof: float
    multiplier: float
    subgradient: Array
    intercept_subgradient: float

class CutFound:
    risk: RiskFound
    constant: float
    norm_weight: float
    slope: Array

class CutsFound:
    risks: Array
    proofs: Array
    constants: Array
    slopes: Array
    norm_weights: Array

class MovesFound:
    risk: RiskFound
    shares: Array
    labels: Array
    steps: Array

class RiskData:
    def __init__(
        self,
        *,
        X: Array,
        y: Array,
        mass: Array,
        epsilon: float,
        kappa: float,
        norm: int,
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
