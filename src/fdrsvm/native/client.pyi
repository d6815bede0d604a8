from typing import Any

from fdrsvm.core.arrays import Array

class ClientProblem:
    """Signed rows, masses, ball and penalties of one client, in the unit of [unit]."""

    @staticmethod
    def dense(
        X: Array,
        y: Array,
        mass: Array,
        *,
        largest: float,
        fit_intercept: bool,
        epsilon: float,
        kappa: float,
        norm: int,
        rho: float,
        tau: float,
    ) -> ClientProblem: ...
    @staticmethod
    def sparse(
        csr: tuple[Array, Any, Any, int],
        y: Array,
        mass: Array,
        *,
        scale: float,
        fit_intercept: bool,
        epsilon: float,
        kappa: float,
        norm: int,
        rho: float,
        tau: float,
    ) -> ClientProblem: ...
    def with_penalties(self, rho: float, tau: float) -> ClientProblem: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def fit_intercept(self) -> bool: ...
    @property
    def feature_scale(self) -> float: ...
    @property
    def is_wide(self) -> bool: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def kappa(self) -> float: ...
    @property
    def norm(self) -> int: ...
    @property
    def rho(self) -> float: ...
    @property
    def tau(self) -> float: ...
    @property
    def intercept_rho(self) -> float: ...
    def mass(self) -> Array: ...
    def dense_rows(self) -> Array: ...
    def pull_of(self, x: Array) -> Array: ...

class Certificate:
    """Objective, gap and cut of a candidate, computed without the solver, [gap-dual]."""

    @property
    def objective(self) -> float: ...
    @property
    def multiplier(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def constant(self) -> float: ...
    @property
    def slope(self) -> Array: ...
    @property
    def norm_weight(self) -> float: ...

class Answer:
    """A solution in the caller's unit; ``start`` warms up the next solve."""

    @property
    def certificate(self) -> Certificate: ...
    @property
    def w(self) -> Array: ...
    @property
    def intercept(self) -> float: ...
    @property
    def n_iter(self) -> int: ...
    @property
    def solved(self) -> bool: ...
    @property
    def start(self) -> tuple[Array, float, Array, Array, Array, float]: ...

def solve(
    problem: ClientProblem,
    centre: Array,
    centre_intercept: float,
    start: tuple[Array, float, Array, Array, Array, float] | None,
    tol: float,
    max_newton: int,
) -> Answer: ...
def solve_from(
    problem: ClientProblem,
    centre: Array,
    centre_intercept: float,
    start: tuple[Array, float, Array, Array, Array, float],
    tol: float,
    max_newton: int,
) -> Answer: ...
def grade(
    problem: ClientProblem,
    centre: Array,
    centre_intercept: float,
    w: Array,
    kept: Array,
    flipped: Array,
) -> Certificate: ...
def largest_magnitude(X: Array) -> float: ...
