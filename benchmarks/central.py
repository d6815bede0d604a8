"""The central DR-SVM beside `dro`, cvxpy and Clarabel, and at epsilon = 0 beside LinearSVC.

Data       10^4 rows of 14 features, epsilon = 0.01, kappa = 1, no intercept
Timed      from arrays to a model: ours checks and prepares the data, `dro` and cvxpy write down the
           problem and call Clarabel (their tolerances: Clarabel's defaults of 1e-8), Clarabel alone
           gets its matrices prebuilt
LinearSVC  has no worst case but a ridge term: it minimises ||w||^2/2 + C sum of hinge losses. With
           epsilon = 0, centre 0 and rho = 1/(C N) our client update has the same objective, so both
           are graded by that. LinearSVC runs as it comes (tol = 1e-4) and with tol = 1e-9
Unfair     ours proves its gap within the time; nobody else does
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.clock import time_calls
from benchmarks.problems import Case, central_case, ridge_case
from benchmarks.quadratic_programs import clarabel_solver
from benchmarks.results import Entry, Measured, Results
from fdrsvm.core.arrays import Array

SIZE, QUICK_SIZE = (10_000, 14), (200, 10)
NORMS = ("l1", "l2", "linf")
PENALTIES = (1.0, 100.0)
ORDERS: dict[str, Any] = {"l1": 1, "l2": 2, "linf": "inf"}  # what dro calls p
DUAL_ORDERS: dict[str, Any] = {"l1": "inf", "l2": 2, "linf": 1}
MOST_ITERATIONS = 10**7
TOLERANCES = {"LinearSVC, as it comes": 1e-4, "LinearSVC, tol = 1e-9": 1e-9}


def run(results: Results, quick: bool) -> None:
    """All rows of this part."""
    n, p = QUICK_SIZE if quick else SIZE
    for norm in NORMS:
        for solver in SOLVERS:
            if solver == "Clarabel, matrices prebuilt" and norm != "linf":
                continue  # its quadratic program is that of linf
            entry = Entry(f"central {n}x{p}", solver, norm, n, p)
            results.measure(entry, lambda s=solver, m=norm: solve(s, central_case(n, p, m)))
    for C in PENALTIES:
        for solver in ("ours", *TOLERANCES):
            entry = Entry(f"hinge and ridge {n}x{p}", solver, f"C = {C:g}", n, p)
            results.measure(entry, lambda s=solver, C=C: ridge(s, ridge_case(n, p, C), C))


def solve(solver: str, case: Case) -> Measured:
    """From arrays to w."""
    timing = time_calls(SOLVERS[solver](case))
    return Measured(timing.seconds, case.excess(timing.answer))


def our_model(case: Case) -> Callable[[], Array]:
    """Everything in the call."""
    return lambda: case.solve().w


def dro_model(case: Case) -> Callable[[], Array]:
    """`dro`'s Wasserstein SVM with Clarabel, which is its default in 0.4.3."""
    from dro.linear_model.wasserstein_dro import WassersteinDRO

    ball = {"eps": case.epsilon, "p": ORDERS[case.norm], "kappa": case.kappa}

    def call() -> Array:
        model = WassersteinDRO(case.X.shape[1], "svm", fit_intercept=False, solver="CLARABEL")
        model.update(ball)
        return np.array(model.fit(case.X, case.y)["theta"])

    return call


def cvxpy_model(case: Case) -> Callable[[], Array]:
    """The problem as one would write it."""
    import cvxpy as cp

    N, P = case.X.shape

    def call() -> Array:
        w, lam = cp.Variable(P), cp.Variable()
        margins = cp.multiply(case.y, case.X @ w)
        loss = cp.maximum(0.0, 1.0 - margins, 1.0 + margins - case.kappa * lam)
        size = cp.norm(w, DUAL_ORDERS[case.norm])
        cost = case.epsilon * lam + cp.sum(loss) / N
        cp.Problem(cp.Minimize(cost), [lam >= size]).solve(solver=cp.CLARABEL)
        return np.array(w.value)

    return call


def clarabel_model(case: Case) -> Callable[[], Array]:
    """The quadratic program of the client update with rho = 0."""
    solve_from = clarabel_solver(case, warm=False)
    return lambda: solve_from(case.centre)


SOLVERS: dict[str, Callable[[Case], Callable[[], Array]]] = {
    "ours": our_model,
    "dro": dro_model,
    "cvxpy and Clarabel": cvxpy_model,
    "Clarabel, matrices prebuilt": clarabel_model,
}


def ridge(solver: str, case: Case, C: float) -> Measured:
    """The SVM with a ridge term in place of a worst case."""
    if solver == "ours":
        return solve(solver, case)
    model = LinearSVC(
        C=C,
        loss="hinge",
        fit_intercept=False,
        tol=TOLERANCES[solver],
        max_iter=MOST_ITERATIONS,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the row says so
        timing = time_calls(lambda: model.fit(case.X, case.y).coef_[0])
    ended = ", stopped there" if model.n_iter_ >= MOST_ITERATIONS else ""
    note = f"{model.n_iter_} iterations{ended}"
    return Measured(timing.seconds, case.excess(timing.answer), note)
