"""Many more features than rows, sparse: ours alone, once each.

Data       text-like CSR rows with 40, 60 and 100 non-zeros, epsilon = 1e-3, kappa = 1
Timed      checking and preparing the data included; one call after a warm-up on a small problem
"""

from __future__ import annotations

import warnings
from time import process_time

import numpy as np

from benchmarks.problems import RHO, Case, text
from benchmarks.results import Entry, Measured, Results

SHAPES = ((300, 20_000, 40), (2000, 30_000, 60), (5000, 100_000, 100))
QUICK = (100, 500, 20)
NORMS = ("l1", "l2", "linf")
EPSILON = 1e-3


def run(results: Results, quick: bool) -> None:
    """All rows of this part; the central problem only on the two smaller shapes."""
    for shape in (QUICK,) if quick else SHAPES:
        for norm in NORMS:
            for setting, rho in (("client", RHO), ("central", 0.0)):
                if rho == 0.0 and shape == SHAPES[-1]:
                    continue
                entry = Entry(f"csr {shape[0]}x{shape[1]} {norm}", "ours", setting, *shape[:2])
                results.measure(entry, lambda s=shape, m=norm, r=rho: once(_case(s, m, r)))


def _case(shape: tuple[int, int, int], norm: str, rho: float) -> Case:
    return Case(*text(*shape), EPSILON, np.zeros(shape[1]), rho, norm=norm)


def once(case: Case) -> Measured:
    """One solve; the excess is by its own certificate, since a tighter one may take minutes."""
    warnings.simplefilter("ignore")
    _case(QUICK, case.norm, case.rho).solve()
    start = process_time()
    answer = case.solve()
    seconds = process_time() - start
    excess = case.objective(answer.w) / (answer.objective - answer.gap) - 1.0
    return Measured([seconds], excess, f"{answer.status.name}, {answer.n_iter} steps")
