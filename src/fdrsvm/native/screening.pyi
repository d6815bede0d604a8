from collections.abc import Mapping, Sequence
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
    """The first rule that a client breaks, with its number and the limit."""

    @property
    def client(self) -> int: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def value(self) -> float: ...
    @property
    def limit(self) -> float: ...

class Bounds:
    """What answers are checked against during a whole run, [limits]."""

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
    """epsilon L and epsilon / kappa, one entry per client of the federation."""

    def __init__(
        self,
        *,
        floors: Array,
        flips: Array,
        n_features: int,
        norm: int,
        groups: Sequence[int] | None = None,
    ) -> None: ...

class Points:
    """Models, one per row; ``others``: their least losses and steepnesses, not for the hinge."""

    def __init__(self, models: Array, others: Array | None = None) -> None: ...

class Cuts:
    """Cuts one below the other, and the client of each."""

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
    """Names, shapes and signs that an answer must have, checked in one call."""

    def __init__(
        self,
        shapes: dict[str, tuple[int | None, ...]],
        together: list[tuple[str, str, str]],
        never_negative: list[str],
    ) -> None: ...
    def fault(self, values: dict[str, Any]) -> tuple[str, str | None] | None: ...

class Answers:
    """What the clients sent, stacked; the arrays are checked here and nowhere else."""

    def __init__(self, values_by_client: dict[int, Mapping[str, Array]]) -> None: ...
    @property
    def clients(self) -> Indices: ...
    @property
    def risks(self) -> Array: ...
    @property
    def cuts(self) -> Cuts: ...

class Past:
    """One cut per client and round, and every client's risk at the best model."""

    def __init__(
        self, *, best_risks: Array, constants: Array, slopes: Array, norm_weights: Array
    ) -> None: ...

class Solve:
    """What a round of ADMM asks of every client."""

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
