"""The data of one local problem, checked and prepared once, read by solver and certificate.

    min over (w, b), lam >= ||w||_*
        lam epsilon + sum_n p_n max(0, 1 - m_n, 1 + m_n - kappa lam)
        + (rho/2) ||w - c||^2 + tau ||w||^2 + (rho/2) (b - c_b)^2,      m_n = y_n (w.x_n + b)

That is [local]. Only the centre (c, c_b) is missing here: it is what changes from one ADMM round to
the next. rho = 0 is the central problem; the intercept b is neither transported nor in the norm.

Features are stored divided by their typical size s, a power of two, so nothing is rounded: [unit].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from fdrsvm.ambiguity.ball import WassersteinBall
from fdrsvm.errors import NumericalError
from fdrsvm.maths.arrays import (
    Array,
    Matrix,
    check_labels,
    check_masses,
    check_matrix,
)
from fdrsvm.maths.norms import NORM_CODES
from fdrsvm.solvers._kernels.grading import Grounds
from fdrsvm.solvers._kernels.lagrangian import Terms
from fdrsvm.solvers._kernels.rows import Rows

# Above these widths Newton's matrix is not formed.
_MAX_DENSE_WIDTH = 800
_MAX_SPARSE_WIDTH = 400
_SMALLEST = 1e-200


@dataclass(frozen=True)
class LocalProblem:
    """Signed rows y_n (x_n / s, 1) and every constant of the objective, in the unit w' = s w."""

    terms: Terms  # as the solver reads it
    grounds: Grounds  # as the certificate reads it
    feature_scale: float  # s
    n_samples: int
    n_features: int
    fit_intercept: bool

    @property
    def width(self) -> int:
        """Features, and one for an intercept."""
        return self.n_features + int(self.fit_intercept)


def check_problem(
    X: Any,
    y: Any,
    *,
    epsilon: Any,
    kappa: Any,
    norm: Any,
    rho: float,
    tau: float,
    sample_weight: Any,
    fit_intercept: bool,
) -> LocalProblem:
    """From user arguments (``rho`` and ``tau`` checked already), or an error naming the fault."""
    matrix = check_matrix(X)
    n_samples, n_features = matrix.shape
    labels = check_labels(y, n_samples)
    mass = check_masses(sample_weight, n_samples)
    ball = WassersteinBall.checked(
        n_features, epsilon=epsilon, kappa=kappa, norm=norm, support=None
    )
    return _make_problem(matrix, labels, mass, ball, rho, tau, bool(fit_intercept))


def _make_problem(
    X: Matrix,
    y: Array,
    mass: Array,
    ball: WassersteinBall,
    rho: float,
    tau: float,
    fit_intercept: bool,
) -> LocalProblem:
    n_samples, n_features = X.shape
    rows, scale = _signed_rows(X, y, fit_intercept)
    width = n_features + int(fit_intercept)
    # At epsilon = 0 lam is free, so no flip ever pays.
    kappa = ball.kappa / scale if ball.epsilon > 0.0 else np.inf
    flips = bool(np.isfinite(kappa))
    epsilon, norm = ball.epsilon / scale, NORM_CODES[ball.norm]
    rho_in_unit, tau_in_unit = rho / scale / scale, tau / scale / scale
    curvature = _curvature(width, n_features, rho, rho_in_unit + 2.0 * tau_in_unit)
    return LocalProblem(
        terms=Terms(
            rows=rows,
            mass=mass,
            curvature=curvature,
            epsilon=epsilon,
            kappa=kappa if flips else 0.0,
            flips=flips,
            norm=norm,
            n_normed=n_features,
            reach=1.0 / epsilon if epsilon > 0.0 else 10.0,
            cone_scale=epsilon * min(max(1.0, 3.0 * n_features / n_samples), 300.0),
            wide=width > (_MAX_DENSE_WIDTH if rows.dense.size else _MAX_SPARSE_WIDTH),
        ),
        grounds=Grounds(
            *rows,
            y=y.copy(),  # the caller's may change, or be read-only: another type to numba
            mass=mass,
            n_features=n_features,
            epsilon=epsilon,
            kappa=kappa,
            norm=norm,
            rho=rho_in_unit,
            tau=tau_in_unit,
            intercept_rho=rho,
        ),
        feature_scale=scale,
        n_samples=n_samples,
        n_features=n_features,
        fit_intercept=fit_intercept,
    )


def _curvature(width: int, n_features: int, rho: float, theta: float) -> Array:
    """Second derivatives of the quadratic terms: theta for features, rho for an intercept."""
    curvature = np.full(width, rho)
    curvature[:n_features] = theta
    return curvature


def with_penalties(problem: LocalProblem, rho: float, tau: float) -> LocalProblem:
    """The same samples and ball with another rho and tau; shares the arrays."""
    scale = problem.feature_scale
    rho_in_unit, tau_in_unit = rho / scale / scale, tau / scale / scale
    curvature = _curvature(problem.width, problem.n_features, rho, rho_in_unit + 2.0 * tau_in_unit)
    return replace(
        problem,
        terms=problem.terms._replace(curvature=curvature),
        grounds=problem.grounds._replace(rho=rho_in_unit, tau=tau_in_unit, intercept_rho=rho),
    )


def _power_of_two(size: float) -> float:
    return float(2.0 ** np.round(np.log2(size)))


def _signed_rows(X: Matrix, y: Array, fit_intercept: bool) -> tuple[Rows, float]:
    """Rows y_n (x_n / s, 1), and s: the median over features of their root mean square."""
    values = X.data if sparse.issparse(X) else X
    largest = max(values.max(initial=0.0), -values.min(initial=0.0))
    if largest == 0.0:
        largest = 1.0
    if not _SMALLEST <= largest <= 1.0 / _SMALLEST:
        raise NumericalError(
            f"X: its largest value is {largest:g}, too near the ends of float64; rescale it"
        )
    first = _power_of_two(largest)  # so that no square overflows
    if sparse.issparse(X):
        rows = sparse.csr_array(sparse.diags_array(y) @ X)
        rows.data /= first
        squares = np.bincount(rows.indices, weights=rows.data**2, minlength=X.shape[1])
        second = _typical(squares / X.shape[0])
        rows.data /= second
        if fit_intercept:
            rows = sparse.csr_array(sparse.hstack([rows, y[:, None]]))
        none = np.empty((0, rows.shape[1]))
        return Rows(none, rows.data, rows.indices, rows.indptr), first * second
    dense = np.empty((X.shape[0], X.shape[1] + int(fit_intercept)))
    features = dense[:, : X.shape[1]]
    np.multiply(X, (y / first)[:, None], out=features)
    second = _typical(np.einsum("np,np->p", features, features) / X.shape[0])
    features /= second
    if fit_intercept:
        dense[:, -1] = y
    nothing = np.empty(0, dtype=np.int32)
    return Rows(dense, np.empty(0), nothing, nothing), first * second


def _typical(squares: Array) -> float:
    """Power of two nearest the median root, over features that are not all zero."""
    squares = squares[squares > 0.0]
    return _power_of_two(float(np.sqrt(np.median(squares)))) if squares.size else 1.0


def every(terms: Terms, stride: int) -> Terms:
    """The same problem on every ``stride``-th sample of a dense client."""
    chosen = np.flatnonzero(terms.mass)[::stride]  # weights may be 0 on every stride-th sample
    mass = terms.mass[chosen]
    rows = terms.rows._replace(dense=terms.rows.dense[chosen])
    return terms._replace(rows=rows, mass=mass / mass.sum())
