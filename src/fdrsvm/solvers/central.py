"""The central DR-SVM: the local problem without a proximal term."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdrsvm.core.arrays import check_positive
from fdrsvm.core.vectors import Norm
from fdrsvm.solvers import augmented_lagrangian
from fdrsvm.solvers.client_prox import check_warm_start
from fdrsvm.solvers.problem import check_problem
from fdrsvm.solvers.solution import Solution, WarmStart, warn_unless_solved


def solve_central(
    X: Any,
    y: Any,
    *,
    epsilon: float,
    kappa: float = 1.0,
    norm: Norm = "linf",
    sample_weight: Any = None,
    fit_intercept: bool = False,
    warm_start: WarmStart | None = None,
    tol: float = 1e-9,
) -> Solution:
    """Minimise the worst-case hinge risk: [local] at rho = tau = 0.

    At epsilon = 0 this is the plain hinge loss, nothing bounds w, and the gap is certified only for
    models up to ten times as large as the answer.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The samples.
    y : array of shape (n_samples,)
        Labels, -1 or +1.
    epsilon, kappa, norm, sample_weight
        The Wasserstein ball, as in :func:`fdrsvm.worst_case_risk`.
    fit_intercept : bool
        Whether the model has an intercept. It is not transported, so the norm leaves it alone.
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
    >>> from fdrsvm.solvers import solve_central
    >>> X, y = [[0.1, 0.9], [0.8, 0.3]], [-1, 1]
    >>> round(solve_central(X, y, epsilon=0.05, kappa=0.5).objective, 6)
    0.2
    """
    problem = check_problem(
        X,
        y,
        epsilon=epsilon,
        kappa=kappa,
        norm=norm,
        rho=0.0,
        tau=0.0,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
    )
    if warm_start is not None:
        check_warm_start(warm_start, problem)
    solution = augmented_lagrangian.solve(
        problem,
        np.zeros(problem.n_features),
        0.0,
        warm_start=warm_start,
        tol=check_positive(tol, "tol"),
    )
    warn_unless_solved(solution, stacklevel=2)
    return solution
