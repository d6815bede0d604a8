"""The worst case of one model: beside the paper's linear program, and beside two products with X.

Data       uniform on the unit box, kappa = 0.5
Small      the program that the paper solves (unit box, transport linf), by HiGHS; ours as an
           oracle (data checked beforehand) and as a function (data checked in the call)
Large      10^6 rows, every norm, with and without the box; X @ w and X.T @ r as a measure
Unfair     HiGHS is handed a sparse matrix made beforehand: writing the program down in Python takes
           longer than solving it, and is not counted. It gives the value, ours a subgradient too
Excess     value over our proof of it, the loss of an explicit distribution inside the ball
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.clock import time_calls
from benchmarks.problems import uniform
from benchmarks.results import Entry, Measured, Results
from fdrsvm import RiskOracle, worst_case_risk
from fdrsvm.core.arrays import Array

KAPPA = 0.5
SMALL = ((50, 4), (100, 30))
LARGE = (1_000_000, 14)
NORMS = ("l1", "l2", "linf")
BOX = "unit-box"
HIGHS = {"HiGHS simplex": "simplex", "HiGHS interior point": "ipm"}


def radii(n_samples: int) -> tuple[float, ...]:
    """The paper's 1/(10 N), and two that are large for data in a unit box."""
    return (0.1 / n_samples, 0.05, 0.5)


def run(results: Results, quick: bool) -> None:
    """All rows of this part."""
    for n, p in SMALL[:1] if quick else SMALL:
        for epsilon in radii(n):
            arguments = {"epsilon": epsilon, "kappa": KAPPA, "norm": "linf", "support": BOX}
            for solver in ("ours, oracle", "ours, function", *HIGHS):
                entry = Entry(f"oracle {n}x{p} linf box", solver, f"epsilon {epsilon:g}", n, p)
                results.measure(entry, lambda n=n, p=p, s=solver, a=arguments: small(s, n, p, a))
    if not quick:
        beside_products(results, *LARGE)


def beside_products(results: Results, n: int, p: int) -> None:
    """The function, checks included, on many rows."""
    results.measure(Entry("two products", "products", "", n, p), lambda: products(n, p))
    for support in (None, BOX):
        for norm in NORMS:
            for epsilon in radii(n):
                where = f"oracle {n}x{p} {norm} {'box' if support else 'free'}"
                entry = Entry(where, "ours, function", f"epsilon {epsilon:g}", n, p)
                arguments = {"epsilon": epsilon, "kappa": KAPPA, "norm": norm, "support": support}
                results.measure(entry, lambda a=arguments: small("ours, function", n, p, a))


def products(n: int, p: int) -> Measured:
    """What any method that looks at all data once has to do."""
    w, X, y = uniform(n, p)
    return Measured(time_calls(lambda: (X @ w, X.T @ y)).seconds)


def small(solver: str, n: int, p: int, arguments: dict[str, Any]) -> Measured:
    """One value, graded by its proof."""
    w, X, y = uniform(n, p)
    proof = worst_case_risk(w, X, y, **arguments).proof
    timing = time_calls(_caller(solver, (w, X, y), arguments))
    return Measured(timing.seconds, timing.answer / proof - 1.0)


def _caller(
    solver: str, data: tuple[Array, Array, Array], arguments: dict[str, Any]
) -> Callable[[], float]:
    w, X, y = data
    if solver == "ours, oracle":
        oracle = RiskOracle(X, y, **arguments)
        return lambda: oracle(w).value
    if solver == "ours, function":
        return lambda: worst_case_risk(w, X, y, **arguments).value
    model = paper_program(w, X, y, arguments["epsilon"], arguments["kappa"])
    return lambda: solve_with_highs(model, HIGHS[solver])


def paper_program(w: Array, X: Array, y: Array, epsilon: float, kappa: float) -> Any:
    """The worst case on the unit box, transport linf, as the paper's linear program.

    Sample n splits its mass 1/N into a rest (the hinge's zero piece), a kept and a flipped part;
    each of the latter has a mass b, a displacement d and a length t >= |d_p|, with
    0 <= b x + d <= b.
    """
    import highspy

    N, P = X.shape
    group = 2 + P
    block = 1 + 2 * group
    cost, budget, lower = (np.zeros((N, block)) for _ in range(3))
    for k, turn in enumerate((1.0, -1.0)):
        mass = 1 + k * group
        moves, length = slice(mass + 1, mass + 1 + P), mass + 1 + P
        cost[:, mass] = turn * y * (X @ w) - 1.0
        cost[:, moves] = turn * y[:, None] * w
        budget[:, mass], budget[:, length] = kappa * k, 1.0
        lower[:, moves] = -np.inf
    inside = sparse.block_diag([_inside_the_box(x) for x in X])
    split = np.zeros((1, block))
    split[0, [0, 1, 1 + group]] = 1.0
    masses = sparse.kron(sparse.eye_array(N), split)
    rows = sparse.csc_array(sparse.vstack([inside, budget.reshape(1, -1), masses]))
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows.shape
    model.col_cost_ = cost.ravel()
    model.col_lower_, model.col_upper_ = lower.ravel(), np.full(cost.size, np.inf)
    share = np.full(N, 1.0 / N)
    model.row_lower_ = np.concatenate([np.full(inside.shape[0] + 1, -np.inf), share])
    model.row_upper_ = np.concatenate([np.zeros(inside.shape[0]), [epsilon], share])
    model.a_matrix_.start_ = rows.indptr
    model.a_matrix_.index_ = rows.indices
    model.a_matrix_.value_ = rows.data
    return model


def _inside_the_box(x: Array) -> Any:
    """One sample's rows, all at most 0: b (x - 1) + d, -b x - d, d - t, -d - t; twice."""
    eye, column, none = sparse.eye_array(x.size), x[:, None], sparse.csc_array((x.size, 1))
    ones = np.ones((x.size, 1))
    part = sparse.vstack(
        [
            sparse.hstack([column - 1.0, eye, none]),
            sparse.hstack([-column, -eye, none]),
            sparse.hstack([none, eye, -ones]),
            sparse.hstack([none, -eye, -ones]),
        ]
    )
    rest = sparse.csc_array((2 * part.shape[0], 1))
    return sparse.hstack([rest, sparse.block_diag([part, part])])


def solve_with_highs(model: Any, method: str) -> float:
    """The program's value; the model is handed over within the time."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("solver", method)
    solver.passModel(model)
    solver.run()
    return -float(solver.getInfo().objective_function_value)
