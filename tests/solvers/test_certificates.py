"""The certificate holds whatever it is given, and shares no code with the solver."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fdrsvm.native import client as kernels
from tests.solvers.cases import NORMS, prepared, random_case, random_data
from tests.solvers.reference import objective


@pytest.mark.parametrize(
    ("norm", "rho", "fit_intercept"), list(itertools.product(NORMS, (0.0, 0.01), (False, True)))
)
def test_the_bound_holds_for_any_multipliers(norm, rho, fit_intercept, rng):
    X, y = random_data(rng, 40, 5)
    client = prepared(
        X, y, epsilon=0.05, kappa=0.7, norm=norm, rho=rho, fit_intercept=fit_intercept
    )
    centre = rng.normal(size=5)
    s = client.solve_quietly(centre, 0.3, None, 1e-9)
    start, scaled = s.warm_start, centre * client.kernel.feature_scale

    def bound(kept, flipped):
        grade = kernels.grade(client.kernel, scaled, 0.3, start.w, kept, flipped)
        return grade.objective - grade.gap

    for size in (1e-9, 1e-6, 1e-3, 1e-1, 1.0, 1e3):
        for _ in range(5):
            kept = start.kept + size * rng.normal(size=40) / 40
            flipped = start.flipped + size * rng.normal(size=40) / 40
            assert bound(kept, flipped) <= s.objective + 1e-13
    for bad in (np.nan, np.inf, -np.inf, 1e300):
        assert bound(np.full(40, bad), np.full(40, bad)) <= s.objective + 1e-13


def test_a_point_with_a_nan_has_an_infinite_gap(rng):
    X, y = random_data(rng, 20, 3)
    for norm in NORMS:
        problem = prepared(X, y, epsilon=0.1, kappa=1.0, norm=norm, rho=1.0).kernel
        nan = np.full(3, np.nan)
        assert (
            kernels.grade(problem, np.zeros(3), 0.0, nan, np.zeros(20), np.zeros(20)).gap == np.inf
        )


@pytest.mark.parametrize("seed", range(60))
def test_the_graded_objective_is_the_brute_force_one(seed):
    X, y, case = random_case(seed)
    p = X.shape[1]
    problem = prepared(
        X,
        y,
        epsilon=case["epsilon"],
        kappa=case["kappa"],
        norm=case["norm"],
        rho=case["rho"],
        tau=case["tau"],
        sample_weight=case["mass"],
        fit_intercept=case["fit_intercept"],
    ).kernel
    w = np.random.default_rng(seed).normal(size=problem.width)
    scaled = np.append(w[:p] * problem.feature_scale, w[p:])
    centre = case["centre"]
    b, centre_b = (w[p], centre[p]) if case["fit_intercept"] else (0.0, 0.0)
    masses = np.zeros(len(y)), np.zeros(len(y))
    grade = kernels.grade(problem, centre[:p] * problem.feature_scale, centre_b, scaled, *masses)
    assert_allclose(grade.objective, objective(X, y, w[:p], b, **case), rtol=1e-12)


def test_grading_includes_no_solver_code():
    folder = Path(__file__).parents[2] / "native" / "client"
    included = {
        name
        for file in ("grading.hpp", "grading.cpp")
        for name in re.findall(r'#include "(.*)"', (folder / file).read_text())
    }
    assert "grading.hpp" in included
    assert all(name == "grading.hpp" or name.startswith("../core/") for name in included)
    for name in included - {"grading.hpp"}:  # nor does the core lead back to it
        assert '"../' not in (folder / name).read_text()
