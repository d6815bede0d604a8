"""The ADMM client update and the central DR-SVM, beside PIQP, Clarabel and Gurobi.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/client_solvers.py

One thread, CPU time, least of several calls; compilation is off the clock. Every answer is graded
by the same function, ``worst_case_risk`` plus the proximal terms; ``excess`` is its value above the
best of the problem's rows. A row is saved as soon as it is there, and a re-run skips the rows it
finds: delete benchmarks/results/client_solvers.csv to measure again. Arguments choose problems by
parts of their names.

"warm" is the mean over rounds 20 to 100 of an ADMM run of four clients. Ours includes checking the
centre and the certificate; the client is prepared beforehand, as in a run. Known unfairness: PIQP
keeps its factorisation structure and only updates the linear term, Clarabel gets prebuilt
matrices, neither is asked for a certificate; Gurobi is timed as the paper's authors call it, its
model rebuilt for each solve, and its free licence ends at 2000 variables. The central problem in
ours includes preparing the data; Clarabel's is without. Wide CSR problems are solved once.
"""

from __future__ import annotations

import csv
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import process_time
from typing import Any

import clarabel
import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.preprocessing import MinMaxScaler

from fdrsvm import worst_case_risk
from fdrsvm.solvers import ConvergenceWarning, prepare_client, solve_central, solve_client_prox

RESULTS = Path(__file__).parent / "results" / "client_solvers.csv"
RHO, KAPPA, N_ROUNDS, FIRST_ROUND = 1e-2, 1.0, 100, 20
ENOUGH = 1.0  # seconds of repeats


@dataclass(frozen=True)
class Row:
    """One measurement; ``note`` says why there is none, or how it ended."""

    problem: str
    solver: str
    setting: str
    milliseconds: float
    objective: float
    gap: float
    n_iter: int
    note: str


class Table:
    """The rows so far, on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.exists():
            with path.open(newline="") as file:
                for line in csv.DictReader(file):
                    line |= {k: float(line[k]) for k in ("milliseconds", "objective", "gap")}
                    line["n_iter"] = int(line["n_iter"])
                    self.rows.append(Row(**line))

    def has(self, problem: str, solver: str, setting: str) -> bool:
        """Whether this was measured before."""
        return any(
            (r.problem, r.solver, r.setting) == (problem, solver, setting) for r in self.rows
        )

    def add(self, row: Row) -> None:
        """Save and print."""
        self.rows.append(row)
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, [f.name for f in fields(Row)])
            if new:
                writer.writeheader()
            writer.writerow(asdict(row))
        print(
            f"{row.problem:34s} {row.solver:9s} {row.setting:5s} {row.milliseconds:11.3f} ms",
            end="",
        )
        print(f"  objective {row.objective:.9f}  gap {row.gap:.1e}  {row.note}", flush=True)


def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    """Least CPU milliseconds of a call, and its answer."""
    best, spent, n_calls = np.inf, 0.0, 0
    while n_calls < 2 or (spent < ENOUGH and n_calls < 200):
        start = process_time()
        answer = call()
        took = process_time() - start
        best, spent, n_calls = min(best, took), spent + took, n_calls + 1
    return 1e3 * best, answer


def blobs(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(
        n_samples,
        n_features=n_features,
        n_informative=8,
        n_redundant=2,
        flip_y=0.05,
        random_state=0,
    )
    return MinMaxScaler().fit_transform(X), 2.0 * y - 1.0


def four_clients(n_samples: int, n_features: int) -> list[tuple[np.ndarray, np.ndarray]]:
    if n_samples == 90:
        X, labels = load_breast_cancer(return_X_y=True)
        keep = np.random.default_rng(0).permutation(len(labels))[:360]
        X, y = MinMaxScaler().fit_transform(X)[keep], 2.0 * labels[keep] - 1.0
    else:
        X, y = blobs(4 * n_samples, n_features)
    return [(np.ascontiguousarray(X[g::4]), y[g::4].copy()) for g in range(4)]


def text(n_samples: int, n_features: int, n_words: int) -> tuple[Any, np.ndarray]:
    """Text-like CSR rows; a tenth of the words carries the label."""
    rng = np.random.default_rng(0)
    X = sparse.random_array(
        (n_samples, n_features), density=n_words / n_features, format="csr", rng=rng
    )
    w = rng.normal(size=n_features) * (rng.random(n_features) < 0.1)
    return X, np.where(X @ w + 0.3 * rng.normal(size=n_samples) > 0.0, 1.0, -1.0)


def quadratic_program(X: np.ndarray, y: np.ndarray, rho: float) -> tuple[Any, Any, np.ndarray]:
    """(H, A, b) of min x'Hx/2 + q'x, A x <= b over x = (w, lam, s, t), transport norm linf."""
    n, p = X.shape
    Z, one = sparse.csr_array(y[:, None] * X), np.ones((n, 1))
    eye, each = sparse.eye_array(n), sparse.eye_array(p)

    def zero(height: int, width: int) -> Any:
        return sparse.csr_array((height, width))

    A = [
        [zero(n, p), zero(n, 1), -eye, zero(n, p)],
        [-Z, zero(n, 1), -eye, zero(n, p)],
        [Z, sparse.csr_array(-KAPPA * one), -eye, zero(n, p)],
        [each, zero(p, 1), zero(p, n), -each],
        [-each, zero(p, 1), zero(p, n), -each],
        [zero(1, p), -sparse.eye_array(1), zero(1, n), sparse.csr_array(np.ones((1, p)))],
    ]
    b = np.concatenate([np.zeros(n), -np.ones(2 * n), np.zeros(2 * p + 1)])
    H = sparse.diags_array(np.concatenate([np.full(p, rho), np.zeros(1 + n + p)]))
    return (
        sparse.csc_matrix(H),
        sparse.csc_matrix(sparse.vstack([sparse.hstack(row) for row in A])),
        b,
    )


def linear_term(centre: np.ndarray, n: int, epsilon: float, rho: float) -> np.ndarray:
    parts = [-rho * centre, [epsilon], np.full(n, 1.0 / n), np.zeros(centre.size)]
    return np.concatenate(parts)


def piqp_solver(X: np.ndarray, y: np.ndarray, epsilon: float, rho: float) -> Callable[..., Any]:
    piqp = importlib.import_module("piqp")
    H, A, b = quadratic_program(X, y, rho)
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    started = False

    def solve(centre: np.ndarray) -> np.ndarray:
        nonlocal started
        q = linear_term(centre, len(y), epsilon, rho)
        if started:
            solver.update(c=q)
        else:
            solver.setup(H, q, None, None, A, None, b)
            started = True
        solver.solve()
        return np.array(solver.result.x[: X.shape[1]])

    return solve


def clarabel_solver(X: np.ndarray, y: np.ndarray, epsilon: float, rho: float) -> Callable[..., Any]:
    H, A, b = quadratic_program(X, y, rho)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    cones = [clarabel.NonnegativeConeT(len(b))]

    def solve(centre: np.ndarray) -> np.ndarray:
        q = linear_term(centre, len(y), epsilon, rho)
        return np.array(clarabel.DefaultSolver(H, q, A, b, cones, settings).solve().x[: X.shape[1]])

    return solve


def gurobi_solver(X: np.ndarray, y: np.ndarray, epsilon: float, rho: float) -> Callable[..., Any]:
    gp = importlib.import_module("gurobipy")
    env = gp.Env(empty=True)
    env.setParam("OutputFlag", 0)
    env.setParam("Threads", 1)
    env.start()
    n, p = X.shape

    def solve(centre: np.ndarray) -> np.ndarray:
        model = gp.Model(env=env)
        w = model.addMVar(p, lb=-gp.GRB.INFINITY)
        t, lam, s = model.addMVar(p), model.addMVar(1), model.addMVar(n)
        m = (y[:, None] * X) @ w
        model.addConstr(s >= 1 - m)
        model.addConstr(s >= 1 + m - KAPPA * np.ones((n, 1)) @ lam)
        model.addConstr(t >= w)
        model.addConstr(t >= -w)
        model.addConstr(lam >= np.ones((1, p)) @ t)
        distance = (w - centre) @ (w - centre)
        model.setObjective(epsilon * lam.sum() + s.sum() / n + rho / 2 * distance)
        model.setParam("BarConvTol", 1e-9)
        model.optimize()
        return np.array(w.X)

    return solve


COMPETITORS = {"PIQP": piqp_solver, "Clarabel": clarabel_solver, "Gurobi": gurobi_solver}


def value(w: Any, X: Any, y: Any, epsilon: float, norm: str, centre: Any, rho: float) -> float:
    risk = worst_case_risk(w, X, y, epsilon=epsilon, kappa=KAPPA, norm=norm).value
    return float(risk + 0.5 * rho * np.sum((w - centre) ** 2))


def ours(problem: str, setting: str, milliseconds: float, s: Any, graded: float) -> Row:
    note = f"{s.status.name}, {s.n_iter} steps"
    return Row(problem, "ours", setting, milliseconds, graded, s.gap, s.n_iter, note)


def race(table: Table, problem: str, n_samples: int, n_features: int) -> None:
    data = four_clients(n_samples, n_features)
    X, y = data[0]
    epsilon, centre = 0.1 / len(y), -np.ones(n_features)
    case = (X, y, epsilon, "linf", centre, RHO)
    client = prepare_client(X, y, rho=RHO, epsilon=epsilon, kappa=KAPPA)
    if not table.has(problem, "ours", "cold"):
        milliseconds, s = cpu(lambda: client.solve(centre))
        table.add(ours(problem, "cold", milliseconds, s, value(s.w, *case)))
    if not table.has(problem, "ours", "warm"):
        runs = [warm_rounds(data) for _ in range(3)]
        milliseconds, s, graded = min(runs, key=lambda run: run[0])
        table.add(ours(problem, "warm", milliseconds, s, graded))
    for name, make in COMPETITORS.items():
        if table.has(problem, name, "cold"):
            continue
        try:
            solve = make(X, y, epsilon, RHO)
            milliseconds, w = cpu(lambda solve=solve: solve(centre))
            row = Row(problem, name, "cold", milliseconds, value(w, *case), np.nan, 0, "")
        except Exception as error:  # a missing package, a licence limit: say so and go on
            note = f"skipped: {type(error).__name__}: {error}"
            row = Row(problem, name, "cold", np.nan, np.nan, np.nan, 0, note)
        table.add(row)


def warm_rounds(data: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, Any, float]:
    """Mean CPU milliseconds of a client's solve in rounds 20 to 100, started at w = 0, mu = 1."""
    prepared = [prepare_client(X, y, rho=RHO, epsilon=0.1 / len(y), kappa=KAPPA) for X, y in data]
    p = data[0][0].shape[1]
    w, mus, starts, total = np.zeros(p), np.ones((4, p)), [None] * 4, 0.0
    for t in range(N_ROUNDS):
        begin = process_time()
        solutions = [
            client.solve(w - mu, warm_start=start)
            for client, mu, start in zip(prepared, mus, starts, strict=True)
        ]
        if t >= FIRST_ROUND:
            total += process_time() - begin
        starts = [s.warm_start for s in solutions]
        last_centre = w - mus[0]
        found = np.stack([s.w for s in solutions])
        w = np.mean(found + mus, axis=0)
        mus = mus + found - w
    X, y = data[0]
    graded = value(solutions[0].w, X, y, 0.1 / len(y), "linf", last_centre, RHO)
    return 1e3 * total / (4 * (N_ROUNDS - FIRST_ROUND)), solutions[0], graded


def central(table: Table, problem: str, norm: str) -> None:
    X, y = blobs(10_000, 14)
    case = (X, y, 0.01, norm, np.zeros(14), 0.0)
    if not table.has(problem, "ours", "cold"):
        milliseconds, s = cpu(lambda: solve_central(X, y, epsilon=0.01, kappa=KAPPA, norm=norm))
        table.add(ours(problem, "cold", milliseconds, s, value(s.w, *case)))
    if norm == "linf" and not table.has(problem, "Clarabel", "cold"):
        solve = clarabel_solver(X, y, 0.01, 0.0)
        milliseconds, w = cpu(lambda: solve(np.zeros(14)))
        graded = value(w, *case)
        table.add(Row(problem, "Clarabel", "cold", milliseconds, graded, np.nan, 0, ""))


def growth(table: Table, problem: str, n_samples: int) -> None:
    if table.has(problem, "ours", "cold"):
        return
    X, y = blobs(n_samples, 14)
    epsilon, centre = 0.1 / n_samples, -np.ones(14)
    client = prepare_client(X, y, rho=RHO, epsilon=epsilon, kappa=KAPPA)
    milliseconds, s = cpu(lambda: client.solve(centre))
    graded = value(s.w, X, y, epsilon, "linf", centre, RHO)
    table.add(ours(problem, "cold", milliseconds, s, graded))


def wide(table: Table, problem: str, shape: tuple[int, int, int], norm: str, rho: float) -> None:
    if table.has(problem, "ours", "cold"):
        return
    X, y = text(*shape)
    centre = np.zeros(shape[1])
    start = process_time()
    if rho > 0.0:
        s = solve_client_prox(X, y, centre=centre, rho=rho, epsilon=1e-3, kappa=KAPPA, norm=norm)
    else:
        s = solve_central(X, y, epsilon=1e-3, kappa=KAPPA, norm=norm)
    milliseconds = 1e3 * (process_time() - start)
    graded = value(s.w, X, y, 1e-3, norm, centre, rho)
    table.add(ours(problem, "cold", milliseconds, s, graded))


def problems() -> Iterator[tuple[str, Callable[..., None], tuple[Any, ...]]]:
    for n, p in ((90, 30), (1000, 14), (1000, 60), (10_000, 14)):
        yield f"client {n}x{p}", race, (n, p)
    for norm in ("l1", "l2", "linf"):
        yield f"central 10000x14 {norm}", central, (norm,)
    for n in (10**4, 10**5, 10**6):
        yield f"growth {n}x14", growth, (n,)
    for shape in ((300, 20_000, 40), (2000, 30_000, 60), (5000, 100_000, 100)):
        for norm in ("l1", "l2", "linf"):
            for name, rho in (("prox", RHO), ("central", 0.0)):
                where = f"csr {shape[0]}x{shape[1]} {norm} {name}"
                yield where, wide, (shape, norm, rho)


def main(wanted: list[str]) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # the row says so
    RESULTS.parent.mkdir(exist_ok=True)
    table = Table(RESULTS)
    warm_up = four_clients(90, 30)[0]
    prepare_client(*warm_up, rho=RHO, epsilon=0.1).solve(np.zeros(30))  # compile off the clock
    for name, run, arguments in problems():
        if not wanted or any(part in name for part in wanted):
            run(table, name, *arguments)
    for problem in dict.fromkeys(row.problem for row in table.rows):
        cold = [r for r in table.rows if r.problem == problem and r.setting == "cold"]
        mine = next((r.milliseconds for r in cold if r.solver == "ours"), np.nan)
        best = np.nanmin([r.objective for r in cold])
        for r in cold:
            if r.solver != "ours":
                ratio, excess = r.milliseconds / mine, r.objective - best
                print(f"{problem}: {r.solver} takes {ratio:.1f} times as long, excess {excess:.1e}")


if __name__ == "__main__":
    main(sys.argv[1:])
