"""All machine code that the benchmarks need, compiled or loaded before any clock runs."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.problems import RHO, Case, central_case, text, uniform
from fdrsvm import RiskOracle
from fdrsvm.federation.warm_up import warm_up
from fdrsvm.maths.norms import NORMS


def compile_all() -> None:
    """Small problems of every kind; some minutes the first time on a machine."""
    warm_up()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for norm in NORMS:
            central_case(20, 10, norm).solve()
            w, X, y = uniform(20, 4)
            for support in (None, "unit-box"):
                RiskOracle(X, y, epsilon=0.1, norm=norm, support=support)(w)
            sparse, labels = text(20, 100, 5)
            for rho in (0.0, RHO):
                case = Case(sparse, labels, 1e-3, np.zeros(100), rho, norm=norm)
                case.objective(case.solve().w)
