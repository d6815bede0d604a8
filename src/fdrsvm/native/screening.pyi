from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array

Indices = npt.NDArray[np.integer[Any]]

ROUNDING: float

class Rule(Enum):
    NORM_WEIGHT = ...
    CONSTANT_HIGH = ...
    CONSTANT_LOW = ...
    SLOPE = ...
    RISK_LOW = ...
    RISK_HIGH = ...
    ABOVE = ...
    OVER = ...
    APART = ...
    VECTOR = ...
    INTERCEPT = ...
    SQUARES = ...
    CONTRADICTING = ...

class Finding:
    @property
    def client(self) -> int: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def value(self) -> float: ...
    @property
    def limit(self) -> float: ...

class Bounds:
    def __init__(
        self,
        *,
        lowest_constant: float,
        highest_constant: float,
        slopes: Array,
        has_slopes: bool,
        is_hinge: bool,
        touches: bool,
        blurred: float,
        is_single: bool,
        grid: float,
    ) -> None: ...
    @property
    def lowest_constant(self) -> float: ...

class Radii:
    def __init__(self, *, floors: Array, flips: Array, n_features: int, norm: int) -> None: ...

class Points:
    def __init__(self, models: Array, others: Array | None = None) -> None: ...

class Cuts:
    def __init__(
        self, owners: Indices, constants: Array, slopes: Array, norm_weights: Array
    ) -> None: ...
    @property
    def owners(self) -> Indices: ...
    @property
    def constants(self) -> Array: ...
    @property
    def slopes(self) -> Array: ...
    @property
    def norm_weights(self) -> Array: ...

class Form:
    def __init__(
        self,
        shapes: dict[str, tuple[int | None, ...]],
        together: list[tuple[str, str, str]],
        never_negative: list[str],
    ) -> None: ...
    def fault(self, values: dict[str, Any]) -> tuple[str, str | None] | None: ...

class Answers:
    def __init__(self, values_by_client: dict[int, Mapping[str, Array]]) -> None: ...
    @property
    def clients(self) -> Indices: ...
    @property
    def risks(self) -> Array: ...
    @property
    def cuts(self) -> Cuts: ...

class Past:
    def __init__(
        self, *, best_risks: Array, constants: Array, slopes: Array, norm_weights: Array
    ) -> None: ...

class Solve:
    def __init__(
        self,
        *,
        w: Array,
        rho: float,
        tau: float,
        relaxation: float,
        gap: float,
        n_features: int,
        norm: int,
    ) -> None: ...

def judge_answers(
    bounds: Bounds,
    radii: Radii,
    points: Points,
    answers: Answers,
    *,
    touching: bool,
    penalties: Array | None = None,
) -> list[Finding]: ...
def judge_past(
    bounds: Bounds, radii: Radii, points: Points, risks: Array, known: Cuts
) -> list[Finding]: ...
def judge_round(
    bounds: Bounds,
    radii: Radii,
    points: Points,
    answers: Answers,
    past: Past,
    *,
    touching: bool,
) -> list[Finding]: ...
def judge_solves(
    bounds: Bounds,
    radii: Radii,
    solve: Solve,
    answers: Answers,
    values_by_client: dict[int, Mapping[str, Array]],
    duals: Array,
    own: Array,
) -> list[Finding]: ...
def span(bounds: Bounds, radii: Radii, points: Points, cut: Cuts) -> tuple[float, float]: ...
