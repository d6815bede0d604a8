"""Blurred cuts through the loop, the estimator and the settings of a federation."""

import numpy as np
import pytest

from fdrsvm import FDRSVC
from fdrsvm.deploy.settings import RunSettings
from fdrsvm.errors import ClientError, ConvergenceWarning, InvalidInputError, UnsupportedError
from fdrsvm.federated import InProcess, Subgradient, make_client, run_rounds
from fdrsvm.federated.limits import Limits

rng = np.random.default_rng(3)
X = rng.random((60, 4))
y = np.where(X @ np.array([1.0, -2.0, 0.5, 1.0]) > 0.25, 1.0, -1.0)
PLANTS = np.repeat(["north", "south", "west"], 20)


def clients(blur):
    return [
        make_client(name, X[name == PLANTS], y[name == PLANTS], epsilon=0.01, blur=blur)
        for name in np.unique(PLANTS)
    ]


def test_a_server_that_knows_of_the_blur_takes_the_cuts_and_one_that_does_not_refuses_them():
    method = Subgradient(step_size=5.0)
    known = Limits.checked(1.0, 4, blur=3)
    result = run_rounds(InProcess(clients(3)), method, max_rounds=20, tol=0.0, limits=known)
    assert result.gap < 1.0
    with pytest.raises(ClientError, match="does not touch"):
        run_rounds(
            InProcess(clients(3)),
            method,
            max_rounds=20,
            tol=0.0,
            limits=Limits.checked(1.0, 4),
        )


def test_the_estimator_blurs_and_its_certificate_stays_true():
    plain = FDRSVC(epsilon=0.01, tol=1e-8).fit(X, y, clients=PLANTS)
    blurred = FDRSVC("subgradient", epsilon=0.01, blur=3, step_size=5.0, max_rounds=100)
    with pytest.warns(ConvergenceWarning):
        blurred.fit(X, y, clients=PLANTS)
    assert blurred.lower_bound_ <= plain.objective_
    assert blurred.objective_ >= plain.lower_bound_
    touching = FDRSVC("subgradient", epsilon=0.01, step_size=5.0, max_rounds=100)
    with pytest.warns(ConvergenceWarning):
        touching.fit(X, y, clients=PLANTS)
    assert not np.array_equal(touching.coef_, blurred.coef_)


def test_what_cannot_be_blurred_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="blur"):
        FDRSVC(blur=2, support="unit-box").fit(X, y, clients=PLANTS)
    with pytest.raises(InvalidInputError, match="blur"):
        FDRSVC(blur=-1).fit(X, y, clients=PLANTS)


def test_a_federation_tells_plants_and_the_screen():
    settings = RunSettings.from_config({"blur": 4, "output": "run"})
    assert settings.task().blur == settings.limits(5).blur == settings.estimator().blur == 4
    assert RunSettings.from_config({"blur": 4, "algorithm": "fedavg"}).task().blur == 0
