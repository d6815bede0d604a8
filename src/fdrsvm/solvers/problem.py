"""The data of one local problem, checked and prepared once, read by solver and certificate.

    min over (w, b), lam >= ||w||_*
        lam epsilon + sum_n p_n max(0, 1 - m_n, 1 + m_n - kappa lam)
        + (rho/2) ||w - c||^2 + tau ||w||^2 + (rho/2) (b - c_b)^2,      m_n = y_n (w.x_n + b)

That is [local]. Only the centre (c, c_b) is missing here: it is what changes from one ADMM round to
the next. rho = 0 is the central problem; the intercept b is neither transported nor in the norm.

Features are stored divided by their typical size s, a power of two, so nothing is rounded: [unit].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import (
    Array,
    Matrix,
    check_labels,
    check_masses,
    check_matrix,
)
from fdrsvm.core.vectors import NORM_CODES
from fdrsvm.errors import NumericalError
from fdrsvm.native import client as kernels
from fdrsvm.risk.ball import WassersteinBall

_SMALLEST = 1e-200


@dataclass(frozen=True)
class LocalProblem:
    """Signed rows y_n (x_n / s, 1) and every constant of the objective, in the unit w' = s w."""

    kernel: kernels.ClientProblem
    csr: tuple[Any, ...] | None  # (data, indices, indptr, width) of rows that are sparse
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
    constants: dict[str, Any] = {
        "fit_intercept": bool(fit_intercept),
        "epsilon": ball.epsilon,
        "kappa": ball.kappa,
        "norm": NORM_CODES[ball.norm],
        "rho": rho,
        "tau": tau,
    }
    csr = None
    if sparse.issparse(matrix):
        csr, scale = _signed_rows(matrix, labels, bool(fit_intercept))
        kernel = kernels.ClientProblem.sparse(csr, labels, mass, scale=scale, **constants)
    else:
        largest = _check_largest(kernels.largest_magnitude(matrix))
        kernel = kernels.ClientProblem.dense(matrix, labels, mass, largest=largest, **constants)
    return LocalProblem(
        kernel, csr, kernel.feature_scale, n_samples, n_features, bool(fit_intercept)
    )


def with_penalties(problem: LocalProblem, rho: float, tau: float) -> LocalProblem:
    """The same samples and ball with another rho and tau; shares the rows."""
    return LocalProblem(
        problem.kernel.with_penalties(rho, tau),
        problem.csr,
        problem.feature_scale,
        problem.n_samples,
        problem.n_features,
        problem.fit_intercept,
    )


def _check_largest(largest: float) -> float:
    """The largest magnitude in X, or 1 if all is zero."""
    if largest == 0.0:
        return 1.0
    if not _SMALLEST <= largest <= 1.0 / _SMALLEST:
        raise NumericalError(
            f"X: its largest value is {largest:g}, too near the ends of float64; rescale it"
        )
    return largest


def _power_of_two(size: float) -> float:
    """2^round(log2(size)), without a logarithm, whose last bit differs between processors."""
    mantissa, exponent = math.frexp(size)  # in [0.5, 1)
    return math.ldexp(1.0, exponent - 1 if mantissa < math.sqrt(0.5) else exponent)


def _signed_rows(X: Matrix, y: Array, fit_intercept: bool) -> tuple[tuple[Any, ...], float]:
    """CSR rows y_n (x_n / s, 1), and s: the median over features of their root mean square."""
    largest = _check_largest(float(np.abs(X.data).max(initial=0.0)))
    first = _power_of_two(largest)  # so that no square overflows
    rows = sparse.csr_array(sparse.diags_array(y) @ X)
    rows.data /= first
    squares = np.bincount(rows.indices, weights=rows.data**2, minlength=X.shape[1])
    second = _typical(squares / X.shape[0])
    rows.data /= second
    if fit_intercept:
        rows = sparse.csr_array(sparse.hstack([rows, y[:, None]]))
    rows.sort_indices()
    indices, indptr = (part.astype(np.int32, copy=False) for part in (rows.indices, rows.indptr))
    return (rows.data, indices, indptr, rows.shape[1]), first * second


def _typical(squares: Array) -> float:
    """Power of two nearest the median root, over features that are not all zero."""
    squares = squares[squares > 0.0]
    return _power_of_two(float(np.sqrt(np.median(squares)))) if squares.size else 1.0
