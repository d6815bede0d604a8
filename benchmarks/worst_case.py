"""Speed and memory of the worst case, beside HiGHS and beside the two products with X.

    make bench

Ratios within one run, one thread, CPU time; compilation is off the clock. Rows are printed and
written to benchmarks/results/worst_case.csv. Known unfairness: HiGHS is given the program that the
paper solves, as a sparse matrix made beforehand; only handing it over and solving are timed, not
writing the program down in Python, which takes longer than solving it. Ours is timed twice: the
oracle (data checked before) and the function (data checked in the call). Memory is the growth of
the resident set (Linux only), counted against the size of X.
"""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from fdrsvm import RiskOracle, worst_case_risk

RESULTS = Path(__file__).parent / "results" / "worst_case.csv"
KAPPA = 0.5


def seconds(call: Callable[[], Any], repeats: int = 7, at_least: float = 0.05) -> float:
    """CPU time of one call: the least over repeats of a mean over enough calls to be measurable."""
    call()
    n_calls = 1
    while True:
        start = process_time()
        for _ in range(n_calls):
            call()
        if (spent := process_time() - start) >= at_least:
            break
        n_calls *= 4
    best = spent / n_calls
    for _ in range(repeats - 1):
        start = process_time()
        for _ in range(n_calls):
            call()
        best = min(best, (process_time() - start) / n_calls)
    return best


def make_data(n_samples: int, n_features: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features))
    return rng.normal(size=n_features), X, rng.choice([-1.0, 1.0], size=n_samples)


def paper_program(w, X, y, epsilon, kappa, zero_piece=True) -> highspy.HighsLp:
    """The worst case on the unit box, transport linf, as the paper's linear program.

    Sample n splits its mass 1/N into a rest (if the hinge's zero piece is kept), a kept and a
    flipped part; each of the latter has a mass b, a displacement d and a length t >= |d_p|, with
    0 <= b x + d <= b.
    """
    n_samples, n_features = X.shape
    group = 2 + n_features
    lead = int(zero_piece)
    block = lead + 2 * group
    eye, ones = sparse.eye_array(n_features), np.ones((n_features, 1))
    cost = np.zeros((n_samples, block))
    budget = np.zeros((n_samples, block))
    blocks = []
    for n in range(n_samples):
        parts = []
        for k, turn in enumerate((1.0, -1.0)):
            at = lead + k * group
            cost[n, at] = -(1.0 - turn * y[n] * (w @ X[n]))
            cost[n, at + 1 : at + 1 + n_features] = turn * y[n] * w
            budget[n, at] = kappa * k
            budget[n, at + 1 + n_features] = 1.0
            x = X[n][:, None]
            none = sparse.csc_array((n_features, 1))
            parts.append(
                sparse.vstack(
                    [
                        sparse.hstack([x - 1.0, eye, none]),
                        sparse.hstack([-x, -eye, none]),
                        sparse.hstack([none, eye, -ones]),
                        sparse.hstack([none, -eye, -ones]),
                    ]
                )
            )
        pair = sparse.block_diag(parts)
        blocks.append(sparse.hstack([sparse.csc_array((pair.shape[0], lead)), pair]))
    inequality = sparse.block_diag(blocks)
    split = np.zeros((1, block))
    split[0, [*range(lead), lead, lead + group]] = 1.0
    equality = sparse.kron(sparse.eye_array(n_samples), split)
    rows = sparse.csc_array(sparse.vstack([inequality, budget.reshape(1, -1), equality]))
    lower = np.zeros((n_samples, block))
    for k in range(2):
        lower[:, lead + k * group + 1 : lead + k * group + 1 + n_features] = -np.inf
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows.shape
    model.col_cost_ = cost.ravel()
    model.col_lower_, model.col_upper_ = lower.ravel(), np.full(cost.size, np.inf)
    n_upper = inequality.shape[0]
    masses = np.full(n_samples, 1.0 / n_samples)
    model.row_lower_ = np.concatenate([np.full(n_upper + 1, -np.inf), masses])
    model.row_upper_ = np.concatenate([np.zeros(n_upper), [epsilon], masses])
    model.a_matrix_.start_ = rows.indptr
    model.a_matrix_.index_ = rows.indices
    model.a_matrix_.value_ = rows.data
    return model


def solve_with_highs(model: highspy.HighsLp, method: str) -> float:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("solver", method)
    solver.passModel(model)
    solver.run()
    return -solver.getInfo().objective_function_value


def against_highs(rows: list[dict]) -> None:
    for n_samples, n_features in ((50, 4), (100, 30)):
        w, X, y = make_data(n_samples, n_features)
        for epsilon in (1.0 / (10 * n_samples), 0.05, 0.5):
            arguments = {"epsilon": epsilon, "kappa": KAPPA, "norm": "linf", "support": "unit-box"}
            oracle = RiskOracle(X, y, **arguments)
            value = oracle(w).value
            ours = seconds(lambda o=oracle, w=w: o(w))
            checked = seconds(lambda a=arguments, d=(w, X, y): worst_case_risk(*d, **a))
            model = paper_program(w, X, y, epsilon, KAPPA)
            for method in ("simplex", "ipm"):
                error = abs(solve_with_highs(model, method) - value)
                theirs = seconds(lambda m=model, k=method: solve_with_highs(m, k), 3, 0.0)
                rows.append(
                    {
                        "case": f"linf box N={n_samples} P={n_features} epsilon={epsilon:g}",
                        "against": f"HiGHS {method}",
                        "ours_seconds": ours,
                        "ours_checked_seconds": checked,
                        "theirs_seconds": theirs,
                        "ratio": theirs / ours,
                        "ratio_checked": theirs / checked,
                        "difference": error,
                    }
                )
                show(rows[-1])


def peak_bytes(call: Callable[[], Any]) -> int:
    """Growth of the resident set at its peak, in a child so that nothing freed before is reused."""
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        before = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
        call()
        os.write(write_end, str(resident("VmHWM") - before).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(read_end, 64))


def resident(field: str) -> int:
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if field in line
    )
    return 1024 * int(line.split()[1])


def against_products(rows: list[dict]) -> None:
    for n_samples in (10**4, 10**5, 10**6):
        w, X, y = make_data(n_samples, 14)
        products = seconds(lambda X=X, w=w, y=y: (X @ w, X.T @ y))
        for support in (None, "unit-box"):
            for norm in ("l1", "l2", "linf"):
                for epsilon in (1.0 / (10 * n_samples), 0.05, 0.2, 0.5):
                    arguments = {
                        "epsilon": epsilon,
                        "kappa": KAPPA,
                        "norm": norm,
                        "support": support,
                    }

                    def call(a=arguments, d=(w, X, y)):
                        return worst_case_risk(*d, **a)

                    ours = seconds(call, 3)
                    risk = call()
                    row = {
                        "case": f"{norm} {support or 'no support'} N={n_samples} P=14 "
                        f"epsilon={epsilon:g}",
                        "against": "X @ w and X.T @ r",
                        "ours_checked_seconds": ours,
                        "theirs_seconds": products,
                        "ratio_checked": ours / products,
                        "difference": risk.value - risk.proof,
                    }
                    if n_samples == 10**6:  # below, what the interpreter takes would count most
                        row["extra_memory_over_X"] = peak_bytes(call) / X.nbytes
                    rows.append(row)
                    show(rows[-1])


def show(row: dict) -> None:
    parts = [f"{row['case']:<48} {row['against']:<18}"]
    parts += [f"{key} {row[key]:.3g}" for key in row if key not in ("case", "against")]
    print("  ".join(parts), flush=True)


def main() -> None:
    print(platform.platform(), platform.python_version())
    print({name: version(name) for name in ("numpy", "scipy", "numba", "highspy")})
    rows: list[dict] = []
    against_highs(rows)
    against_products(rows)
    RESULTS.parent.mkdir(exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
