"""Projections in a metric, beside Clarabel's, and the bound that grades them."""

import numpy as np
import pytest

from fdrsvm.solvers import master
from fdrsvm.solvers.cut_model import Metric, distance_bound
from fdrsvm.solvers.master import MasterStatus, minimise_model, project_onto_level
from tests.solvers.masters import hinge_model, model_value, nearest_point

NORMS = ("linf", "l2", "l1")
RIDGE = 0.05


def random_metric(rng, width):
    """Moments of rows that are nearly dependent, and a ridge."""
    rows = rng.normal(size=(3 * width, width)) * np.logspace(0, -3, width)
    rows[:, 0] += rows[:, 1]
    return Metric(rows.T @ rows / len(rows) + RIDGE * np.eye(width), RIDGE)


def projected(norm, seed, fit_intercept=False, share=0.3):
    """A model, a centre, a level between the least value and the centre's, and a metric."""
    rng = np.random.default_rng(seed)
    model = hinge_model(seed, norm, fit_intercept=fit_intercept)
    lowest = minimise_model(model)
    centre = lowest.w + rng.normal(size=model.width)
    level = lowest.value + share * (model.value(centre) - lowest.value)
    return model, centre, level, random_metric(rng, model.width)


def distance(metric, u, centre):
    return 0.5 * (u - centre) @ metric.matrix @ (u - centre)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("norm", NORMS)
def test_the_projection_is_the_reference_one(norm, seed, fit_intercept):
    model, centre, level, metric = projected(norm, seed, fit_intercept)
    solution = project_onto_level(model, centre, level, metric=metric)
    assert solution.status is MasterStatus.SOLVED
    best = nearest_point(model, centre, level, metric.matrix)
    # Strongly convex: a point this close in distance is this close in its square root.
    assert model_value(model, solution.w) <= level + 1e-5 * abs(model.value(centre) - level)
    assert distance(metric, solution.w, centre) == pytest.approx(
        distance(metric, best, centre), rel=1e-4
    )
    apart = solution.w - best
    assert apart @ metric.matrix @ apart <= 4e-4 * distance(metric, best, centre)


@pytest.mark.parametrize("norm", NORMS)
def test_the_identity_is_the_euclidean_metric(norm):
    model, centre, level, _ = projected(norm, 3)
    same = project_onto_level(model, centre, level, metric=Metric(np.eye(model.width), 1.0))
    np.testing.assert_allclose(same.w, project_onto_level(model, centre, level).w, atol=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_the_unit_of_the_metric_does_not_matter(norm):
    model, centre, level, metric = projected(norm, 4)
    one = project_onto_level(model, centre, level, metric=metric)
    other = project_onto_level(
        model, centre, level, metric=Metric(1e6 * metric.matrix, 1e6 * metric.least)
    )
    np.testing.assert_allclose(other.w, one.w, atol=1e-5)


@pytest.mark.parametrize("multiplier", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("norm", NORMS)
def test_no_point_within_the_level_is_nearer_than_the_bound(norm, multiplier):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        model, centre, level, metric = projected(norm, seed, fit_intercept=seed % 2 == 1)
        best = distance(metric, nearest_point(model, centre, level, metric.matrix), centre)
        for near in (centre, rng.normal(size=model.width), np.full(model.width, np.nan)):
            bound = distance_bound(
                model,
                centre,
                level,
                rng.uniform(-0.5, 1.0, size=len(model.constants)),
                multiplier,
                metric=metric,
                near=near,
            )
            assert bound <= best * (1.0 + 1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_the_conic_solver_steps_in(norm, monkeypatch):
    model, centre, level, metric = projected(norm, 5)
    monkeypatch.setattr(master, "_MAX_ITER", 3)
    solution = project_onto_level(model, centre, level, metric=metric)
    assert solution.status is MasterStatus.SOLVED_BY_CONIC
    best = nearest_point(model, centre, level, metric.matrix)
    assert distance(metric, solution.w, centre) == pytest.approx(
        distance(metric, best, centre), rel=1e-4
    )


def test_what_is_no_number_is_refused():
    """A metric of another size is an error at the door, not memory that is read beyond its end."""
    model, centre, level, _ = projected("linf", 1)
    with pytest.raises(ValueError, match="metric"):
        project_onto_level(model, centre, level, metric=Metric(np.eye(model.width + 1), 1.0))
