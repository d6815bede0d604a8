"""The central DR-SVM: one client's worst-case risk and nothing else.

Primal   min over (w, b) and lam >= ||w||_* of
         lam epsilon + sum_n p_n max(0, 1 - m_n, 1 + m_n - kappa lam): [local] at rho = tau = 0
Dual     [gap-dual], where ||sum_n (a_n - f_n) y_n x_n|| <= epsilon - kappa sum_n f_n
Method   that of client_prox, which gives directions without curvature a fading proximal term
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fdrsvm.core.vectors import Norm
from fdrsvm.solvers.client_prox import prepare_client
from fdrsvm.solvers.solution import Solution, WarmStart


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
    client = prepare_client(
        X,
        y,
        rho=1.0,
        epsilon=epsilon,
        kappa=kappa,
        norm=norm,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
    ).with_penalties(0.0)
    origin = np.zeros(client.kernel.n_features)
    return client.solve(origin, warm_start=warm_start, tol=tol, stacklevel=2)
