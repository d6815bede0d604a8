"""The ADMM client update: prepare once, then solve for one centre after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fdrsvm.core.arrays import (
    Array,
    check_finite,
    check_non_negative,
    check_positive,
    check_vector,
)
from fdrsvm.core.vectors import Norm
from fdrsvm.errors import InvalidInputError
from fdrsvm.solvers import augmented_lagrangian
from fdrsvm.solvers.problem import LocalProblem, check_problem, with_penalties
from fdrsvm.solvers.solution import Solution, WarmStart, warn_unless_solved


@dataclass(frozen=True)
class PreparedClient:
    """A client's data, ready for any centre. Holds no state: a round's warm start is passed in."""

    problem: LocalProblem

    def solve(
        self,
        centre: Any,
        *,
        centre_intercept: float = 0.0,
        warm_start: WarmStart | None = None,
        tol: float = 1e-9,
    ) -> Solution:
        """Client update for one centre; see :func:`solve_client_prox`."""
        solution = self._solve(centre, centre_intercept, warm_start, tol)
        warn_unless_solved(solution, stacklevel=2)
        return solution

    def with_penalties(self, rho: float, tau: float = 0.0) -> PreparedClient:
        """The same data with another proximal and quadratic weight; rho = tau = 0 is central."""
        return PreparedClient(
            with_penalties(
                self.problem, check_non_negative(rho, "rho"), check_non_negative(tau, "tau")
            )
        )

    def solve_quietly(
        self,
        centre: Array,
        centre_intercept: float,
        warm_start: WarmStart | None,
        tol: float,
    ) -> Solution:
        """``solve`` without checks and warnings, for loops that look at the status themselves."""
        return augmented_lagrangian.solve(
            self.problem, centre, centre_intercept, warm_start=warm_start, tol=tol
        )

    def _solve(
        self, centre: Any, centre_intercept: Any, warm_start: WarmStart | None, tol: Any
    ) -> Solution:
        if warm_start is not None:
            check_warm_start(warm_start, self.problem)
        centre_intercept = check_finite(centre_intercept, "centre_intercept")
        if centre_intercept != 0.0 and not self.problem.fit_intercept:
            raise InvalidInputError(
                "centre_intercept", "must be 0 without fit_intercept", f"it is {centre_intercept:g}"
            )
        return augmented_lagrangian.solve(
            self.problem,
            check_vector(centre, "centre", self.problem.n_features, "features"),
            centre_intercept,
            warm_start=warm_start,
            tol=check_positive(tol, "tol"),
        )


def check_warm_start(warm_start: WarmStart, problem: LocalProblem) -> None:
    """It must come from a problem of the same shape."""
    if not isinstance(warm_start, WarmStart):
        raise InvalidInputError(
            "warm_start", "must be the warm_start of a Solution", f"it is {warm_start!r}"
        )
    w, kept, flipped, pull = (
        warm_start.w,
        warm_start.kept,
        warm_start.flipped,
        warm_start.pull,
    )
    # Kernels read and write without a check, so every array must have its right shape.
    fits = (
        w.shape == (problem.width,)
        and kept.shape == flipped.shape == (problem.n_samples,)
        and pull.shape == (problem.n_features,)
        and w.dtype == kept.dtype == flipped.dtype == pull.dtype == np.float64
        and all(array.flags.c_contiguous for array in (w, kept, flipped, pull))
    )
    if not fits:
        shapes = ", ".join(str(array.shape) for array in (w, kept, flipped, pull))
        raise InvalidInputError(
            "warm_start",
            f"must come from a problem of {problem.n_samples} samples and {problem.n_features} "
            f"features, with{'' if problem.fit_intercept else 'out'} intercept",
            f"its arrays have shapes {shapes}",
        )


def prepare_client(
    X: Any,
    y: Any,
    *,
    rho: float,
    tau: float = 0.0,
    epsilon: float,
    kappa: float = 1.0,
    norm: Norm = "linf",
    sample_weight: Any = None,
    fit_intercept: bool = False,
) -> PreparedClient:
    """Everything of the client update that does not depend on the centre.

    Takes the arguments of :func:`solve_client_prox` but the centre, the warm start and ``tol``,
    which its ``solve`` takes.
    """
    return PreparedClient(
        check_problem(
            X,
            y,
            epsilon=epsilon,
            kappa=kappa,
            norm=norm,
            rho=check_positive(rho, "rho"),
            tau=check_non_negative(tau, "tau"),
            sample_weight=sample_weight,
            fit_intercept=fit_intercept,
        )
    )


def solve_client_prox(
    X: Any,
    y: Any,
    *,
    centre: Any,
    rho: float,
    tau: float = 0.0,
    epsilon: float,
    kappa: float = 1.0,
    norm: Norm = "linf",
    sample_weight: Any = None,
    fit_intercept: bool = False,
    centre_intercept: float = 0.0,
    warm_start: WarmStart | None = None,
    tol: float = 1e-9,
) -> Solution:
    """Minimise f(w) + (rho/2) ||w - centre||^2 + tau ||w||^2, f the worst-case hinge risk: [local].

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The client's samples.
    y : array of shape (n_samples,)
        Labels, -1 or +1.
    centre : array of shape (n_features,)
        Where the proximal term pulls to: in ADMM the global model minus the scaled dual.
    rho : float
        Weight of the proximal term, above 0.
    tau : float
        Weight of ``w @ w``, without a half; above 0 in ADMM-SC.
    epsilon, kappa, norm, sample_weight
        The Wasserstein ball, as in :func:`fdrsvm.worst_case_risk`.
    fit_intercept : bool
        Whether the model has an intercept b. It is not transported, so the norm and ``tau`` leave
        it alone, [intercept]; the proximal term adds (rho/2) (b - centre_intercept)^2.
    centre_intercept : float
        The centre's intercept.
    warm_start : WarmStart, optional
        ``warm_start`` of an earlier solution for the same samples.
    tol : float
        Stop at a certified gap of ``tol * max(1, |objective|)``.

    Returns
    -------
    Solution
        ``w``, ``intercept``, ``multiplier``, ``objective``, ``gap``, ``status``, ``n_iter`` and
        ``warm_start``.

    Raises
    ------
    InvalidInputError
        Naming the argument, the rule, and the row or column at fault.

    Warns
    -----
    ConvergenceWarning
        If the certified gap stays above ``tol``; ``status`` says why.

    Examples
    --------
    >>> from fdrsvm.solvers import solve_client_prox
    >>> X, y = [[0.1, 0.9], [0.8, 0.3]], [-1, 1]
    >>> s = solve_client_prox(X, y, centre=[0.0, 0.0], rho=1.0, epsilon=0.05, kappa=0.5)
    >>> s.status.name, round(s.objective, 6)
    ('SOLVED', 0.932288)
    """
    client = prepare_client(
        X,
        y,
        rho=rho,
        tau=tau,
        epsilon=epsilon,
        kappa=kappa,
        norm=norm,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
    )
    solution = client._solve(centre, centre_intercept, warm_start, tol)
    warn_unless_solved(solution, stacklevel=2)
    return solution
