"""Optima of 0, and features far from 1 in size: a closed gap, or a warning with the remedy."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

from fdrsvm import DRSVC, FDRSVC, ClientError, ConvergenceWarning, DegenerateModelWarning, FedSVC
from fdrsvm.solvers import solve_central
from fdrsvm.solvers.solution import Status
from tests.problems import NORMS


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X), y, np.arange(len(y)) % 4


def separable(rng):
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] > 0.0, 1, -1)
    X[:, 0] += 0.5 * y
    return X, y


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 1e-14])
def test_an_optimum_of_zero_closes_the_gap(norm, fit_intercept, epsilon, rng):
    """At 1e-14 the objective is about 1e-14 too, and the bound below it all rounding."""
    X, y = separable(rng)
    model = DRSVC(epsilon=epsilon, kappa=np.inf, norm=norm, fit_intercept=fit_intercept).fit(X, y)
    assert 0.0 <= model.objective_ <= 1e-12
    assert model.gap_ == 0.0
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("norm", NORMS)
def test_one_class_with_an_intercept_is_solved_centrally(norm, rng):
    """The optimum is 0, at w = 0 and b = 1; the solver's gap is absolute below 1."""
    X, ones = rng.normal(size=(30, 3)), np.ones(30)
    found = solve_central(X, ones, epsilon=0.1, kappa=np.inf, norm=norm, fit_intercept=True)
    assert found.status is Status.SOLVED
    assert 0.0 <= found.objective <= 1e-9
    assert found.gap <= 1e-9


@pytest.mark.parametrize("scale", [2.0**30, 2.0**-30])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_problem_is_the_same_in_every_unit(cancer, scale, loss):
    """With radius and label price in the unit of the features; both runs certify their gap."""
    X, y, clients = cancer
    here = FDRSVC(epsilon=0.01, kappa=1.0, loss=loss).fit(X, y, clients=clients)
    there = FDRSVC(epsilon=0.01 * scale, kappa=scale, loss=loss).fit(scale * X, y, clients=clients)
    assert there.gap_ <= 1e-4
    assert there.lower_bound_ <= here.objective_ * (1 + 1e-12)
    assert here.lower_bound_ <= there.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("algorithm", ["fedsgd", "fedavg", "fedprox"])
def test_a_baseline_that_is_no_better_than_nothing_says_so(cancer, algorithm):
    X, y, clients = cancer
    model = FedSVC(algorithm, max_rounds=20, random_state=0)
    with pytest.warns(
        ConvergenceWarning,
        match=r"gap of 1.0e\+00; features are up to 1.0e\+09 .* FederatedMinMaxScaler",
    ):
        model.fit(1e9 * X, y, clients=clients)
    scores = 1e9 * X @ model.coef_[0] + model.intercept_[0]
    losses = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * scores)
    assert np.mean([losses[clients == g].mean() for g in range(4)]) >= 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, clients=clients)


def test_a_learning_rate_that_is_too_large_is_the_remedy_at_scale_one(cancer):
    X, y, clients = cancer
    with pytest.warns(ConvergenceWarning, match="try a smaller learning_rate"):
        FedSVC("fedsgd", learning_rate=1e6, max_rounds=2).fit(X, y, clients=clients)


@pytest.mark.filterwarnings("ignore::fdrsvm.DegenerateModelWarning")  # after five rounds
def test_a_run_that_ends_above_tol_names_the_scale(cancer):
    X, y, clients = cancer
    model = FDRSVC("subgradient", max_rounds=5)
    with pytest.warns((ConvergenceWarning, DegenerateModelWarning)) as caught:
        model.fit(1e9 * X, y, clients=clients)
    (said,) = [str(w) for w in messages(caught) if isinstance(w, ConvergenceWarning)]
    assert "; allow more rounds or a larger tol; max_rounds is 5; features are up to" in said
    assert "scale them to about 1, say with FederatedMinMaxScaler" in said
    assert said.endswith("(fdrsvm fit --scaling minmax)")
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y, clients=clients)
    assert not any("FederatedMinMaxScaler" in str(w) for w in messages(caught))


def test_a_failed_local_solve_names_the_scale(cancer):
    X, y, clients = cancer
    with pytest.raises(ClientError, match=r"features are up to 1.0e\+15"):
        FDRSVC("admm", max_rounds=3).fit(1e15 * X, y, clients=clients)


def messages(caught):
    return [warning.message for warning in caught]
