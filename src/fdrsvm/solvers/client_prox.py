"""One client's problems, to a certified gap: the ADMM client update and the central DR-SVM.

Primal   min over (w, b) and lam >= ||w||_* of
         lam epsilon + sum_n p_n max(0, 1 - m_n, 1 + m_n - kappa lam)
         + (rho/2) ||w - c||^2 + tau ||w||^2 + (rho/2) (b - c_b)^2,   m_n = y_n (w.x_n + b): [local]
Dual     masses a_n (label kept) and f_n (flipped), a_n + f_n <= p_n and kappa sum_n f_n <= epsilon:
         [gap-dual]
Link     sum_n (a_n - f_n) y_n x_n + rho (c - w) - 2 tau w = (epsilon - kappa sum_n f_n) u, where u
         is a subgradient of ||.||_* at w
Method   semismooth Newton on an augmented Lagrangian, [stage]: native/client, where stages.hpp says
         how. Should a warm start lead nowhere, from a cold one; then from a conic solver's point
Stop     certified gap <= tol max(1, |objective|), never on the method's own estimate
Cost     a Newton step: two passes over X and one Cholesky factor of size P + 1

Only the centre (c, c_b) changes from one ADMM round to the next. The central DR-SVM is the case
rho = tau = 0, whose dual needs ||sum_n (a_n - f_n) y_n x_n|| <= epsilon - kappa sum_n f_n.

Features are stored divided by their typical size s, a power of two, so nothing is rounded: [unit].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import (
    Array,
    Matrix,
    check_finite,
    check_labels,
    check_masses,
    check_matrix,
    check_non_negative,
    check_positive,
    check_vector,
)
from fdrsvm.core.vectors import NORM_CODES, Norm
from fdrsvm.errors import InvalidInputError, NumericalError
from fdrsvm.native import client as kernels
from fdrsvm.risk.ball import Ball
from fdrsvm.risk.worst_case import NO_SLOPE, Cut
from fdrsvm.solvers.conic import conic_point, is_within_reach
from fdrsvm.solvers.solution import Solution, Status, WarmStart, warn_unless_solved

_MAX_NEWTON = 1000
_MAX_WIDE_NEWTON = 300  # each costs more, and more of them seldom help
_SMALLEST = 1e-200  # beyond it and its inverse squares leave float64

# A point's certificate, weights and intercept, where to start from it, and whether it is solved.
_Graded: TypeAlias = tuple[
    kernels.Certificate, Array, float, tuple[Array, float, Array, Array, Array, float], bool
]
_graded = attrgetter("certificate", "w", "intercept", "start", "solved")


@dataclass(frozen=True)
class PreparedClient:
    """A client's data, ready for any centre. Holds no state: a round's warm start is passed in.

    Attributes
    ----------
    kernel : kernels.ClientProblem
        Signed rows y_n (x_n / s, 1) and every constant of the objective, in the unit w' = s w.
    csr : tuple or None
        (data, indices, indptr, width) of rows that are sparse.
    """

    kernel: kernels.ClientProblem
    csr: tuple[Any, ...] | None

    @classmethod
    def within(
        cls,
        ball: Ball,
        X: Matrix,
        y: Array,
        mass: Array,
        *,
        fit_intercept: bool,
        rho: float = 1.0,
        tau: float = 0.0,
    ) -> PreparedClient:
        """From checked arguments; the ball's support and groups do not count."""
        constants: dict[str, Any] = {
            "fit_intercept": fit_intercept,
            "epsilon": ball.epsilon,
            "kappa": ball.kappa,
            "norm": NORM_CODES[ball.norm],
            "rho": rho,
            "tau": tau,
        }
        is_sparse = sparse.issparse(X)
        largest = np.abs(X.data).max(initial=0.0) if is_sparse else kernels.largest_magnitude(X)
        if largest != 0.0 and not _SMALLEST <= largest <= 1.0 / _SMALLEST:
            raise NumericalError(
                f"X: its largest value is {largest:g}, too near the ends of float64; rescale it"
            )
        largest = float(largest) or 1.0  # where all is zero, any unit will do
        if is_sparse:
            csr, scale = _signed_rows(X, y, largest, fit_intercept)
            return cls(kernels.ClientProblem.sparse(csr, y, mass, scale=scale, **constants), csr)
        return cls(kernels.ClientProblem.dense(X, y, mass, largest=largest, **constants), None)

    def with_penalties(self, rho: float, tau: float = 0.0) -> PreparedClient:
        """The same rows with another proximal and quadratic weight; rho = tau = 0 is central."""
        rho, tau = check_non_negative(rho, "rho"), check_non_negative(tau, "tau")
        return PreparedClient(self.kernel.with_penalties(rho, tau), self.csr)

    def solve(
        self,
        centre: Any,
        *,
        centre_intercept: float = 0.0,
        warm_start: WarmStart | None = None,
        tol: float = 1e-9,
        stacklevel: int = 1,
    ) -> Solution:
        """Client update for one centre; see :func:`solve_client_prox`.

        ``stacklevel`` says whose line a warning names: 1 is the caller's.
        """
        if warm_start is not None:
            self._check_warm_start(warm_start)
        centre_intercept = check_finite(centre_intercept, "centre_intercept")
        if centre_intercept != 0.0 and not self.kernel.fit_intercept:
            raise InvalidInputError(
                "centre_intercept", "must be 0 without fit_intercept", f"it is {centre_intercept:g}"
            )
        solution = self.solve_quietly(
            check_vector(centre, "centre", self.kernel.n_features, "features"),
            centre_intercept,
            warm_start,
            check_positive(tol, "tol"),
        )
        warn_unless_solved(solution, stacklevel + 1)
        return solution

    def _check_warm_start(self, start: WarmStart) -> None:
        """It must come from a problem of the same shape."""
        if not isinstance(start, WarmStart):
            raise InvalidInputError(
                "warm_start", "must be the warm_start of a Solution", f"it is {start!r}"
            )
        n_samples, n_features = self.kernel.n_samples, self.kernel.n_features
        arrays = (start.w, start.kept, start.flipped, start.pull)
        shapes = [array.shape for array in arrays]
        # Kernels read and write without a check, so every array must have its right shape.
        fits = shapes == [(self.kernel.width,), (n_samples,), (n_samples,), (n_features,)] and all(
            array.dtype == np.float64 and array.flags.c_contiguous for array in arrays
        )
        if not fits:
            raise InvalidInputError(
                "warm_start",
                f"must come from a problem of {n_samples} samples and {n_features} features, "
                f"with{'' if self.kernel.fit_intercept else 'out'} intercept",
                f"its arrays have shapes {', '.join(map(str, shapes))}",
            )

    def solve_quietly(
        self, centre: Array, centre_intercept: float, warm_start: WarmStart | None, tol: float
    ) -> Solution:
        """``solve`` without checks and warnings, for loops that look at the status themselves."""
        kernel = self.kernel
        max_newton = _MAX_WIDE_NEWTON if kernel.is_wide else _MAX_NEWTON
        answer = kernels.solve(kernel, centre, centre_intercept, warm_start, tol, max_newton)
        best: _Graded = _graded(answer)
        n_iter = answer.n_iter
        if not answer.solved and is_within_reach(kernel, self.csr):
            best, n_more = self._try_again(best, centre, centre_intercept, tol, max_newton)
            n_iter += n_more
        grade, w, intercept, start, is_solved = best
        status = Status.SOLVED
        if not is_solved:
            status = Status.MAX_ITER if n_iter >= max_newton else Status.STALLED
        slope = grade.slope
        if kernel.fit_intercept and not abs(slope[-1]) > NO_SLOPE:
            slope[-1] = 0.0
        return Solution(
            w,
            intercept,
            grade.multiplier,
            grade.objective,
            grade.gap,
            status,
            n_iter,
            Cut(grade.constant, slope, grade.norm_weight),
            WarmStart(*start),
        )

    def _try_again(
        self, first: _Graded, centre: Array, centre_intercept: float, tol: float, max_newton: int
    ) -> tuple[_Graded, int]:
        """The best of Newton's point, a conic solver's and Newton's from there, and its steps."""
        kernel = self.kernel
        point = conic_point(kernel, self.csr, centre, centre_intercept)
        if point is None:
            return first, 0
        scaled = centre * kernel.feature_scale
        grade = kernels.grade(kernel, scaled, centre_intercept, point.w, point.kept, point.flipped)
        # The same rule as the kernel's, which an infinite objective must not satisfy.
        is_solved = abs(grade.gap) <= tol * max(1.0, abs(grade.objective)) < math.inf
        w = point.w[: kernel.n_features] / kernel.feature_scale
        intercept = float(point.w[-1]) if kernel.fit_intercept else 0.0
        graded: list[_Graded] = [first, (grade, w, intercept, point, is_solved)]
        n_iter = 0
        if not is_solved:
            answer = kernels.solve_from(kernel, centre, centre_intercept, point, tol, max_newton)
            graded.append(_graded(answer))
            n_iter = answer.n_iter
        return min(graded, key=lambda each: abs(each[0].gap)), n_iter


def _signed_rows(
    X: Matrix, y: Array, largest: float, fit_intercept: bool
) -> tuple[tuple[Any, ...], float]:
    """CSR rows y_n (x_n / s, 1), and s: the median over features of their root mean square."""
    first = _power_of_two(largest)  # so that no square overflows
    rows = sparse.csr_array(sparse.diags_array(y) @ X)
    rows.data /= first
    squares = np.bincount(rows.indices, weights=rows.data**2, minlength=X.shape[1]) / X.shape[0]
    squares = squares[squares > 0.0]  # features that are zero throughout have no size
    second = _power_of_two(float(np.sqrt(np.median(squares)))) if squares.size else 1.0
    rows.data /= second
    if fit_intercept:
        rows = sparse.csr_array(sparse.hstack([rows, y[:, None]]))
    rows.sort_indices()
    indices, indptr = (each.astype(np.int32, copy=False) for each in (rows.indices, rows.indptr))
    return (rows.data, indices, indptr, rows.shape[1]), first * second


def _power_of_two(size: float) -> float:
    """2^round(log2(size)), without a logarithm, whose last bit differs between processors."""
    mantissa, exponent = math.frexp(size)  # in [0.5, 1)
    return math.ldexp(1.0, exponent - 1 if mantissa < math.sqrt(0.5) else exponent)


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
    rho, tau = check_positive(rho, "rho"), check_non_negative(tau, "tau")
    matrix = check_matrix(X)
    n_samples, n_features = matrix.shape
    labels, mass = check_labels(y, n_samples), check_masses(sample_weight, n_samples)
    ball = Ball.checked(n_features, epsilon=epsilon, kappa=kappa, norm=norm)
    return PreparedClient.within(
        ball, matrix, labels, mass, fit_intercept=bool(fit_intercept), rho=rho, tau=tau
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
    return client.solve(
        centre,
        centre_intercept=centre_intercept,
        warm_start=warm_start,
        tol=tol,
        stacklevel=2,
    )


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

    Parameters, answer, errors and warnings are those of :func:`solve_client_prox`, without those of
    the proximal term.

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
