"""Clients that come and go: the bound stays valid, the objective stays true, the end is reached."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods import ADMM, Bundle
from fdrsvm.federated.rounds import Stop
from tests.federated.cases import (
    CERTIFYING,
    METHODS,
    NORMS,
    Absent,
    Client,
    assert_same_bits,
    blobs,
    problems,
    random_clients,
    train,
)
from tests.federated.reference import reference_optimum
from tests.federated.test_agreement import assert_certified, true_objective

BUNDLES = {"per-client": Bundle(), "summed": Bundle(cuts="summed")}


def away(clients, is_absent):
    return Absent(InProcess(problems(clients)), is_absent)


def federation(seed, method="bundle", **settings):
    boxed = False if method.startswith("admm") else None
    return random_clients(seed, **{"n_clients": 3, "boxed": boxed, "kind": "plain", **settings})


@pytest.mark.parametrize("method", CERTIFYING)
def test_the_certificate_holds_whoever_is_absent(method):
    """Two in five answers are missing, at random, in the first round too."""
    for seed in range(25):
        clients, alphas = federation(300 + seed, method)
        rng = np.random.default_rng(seed)
        missing = {(r, f"client-{g}") for r in range(60) for g in range(3) if rng.random() < 0.4}
        missing -= {(r, f"client-{rng.integers(3)}") for r in range(60)}  # never all of them

        def is_absent(r, name, missing=missing):
            here = [n for n in ("client-0", "client-1", "client-2") if (r, n) not in missing]
            return (r, name) in missing and bool(here)

        result = train(
            clients,
            METHODS[method],
            transport=away(clients, is_absent),
            alphas=alphas,
            quorum=1,
            tol=1e-6,
            max_rounds=15,
        )
        assert_certified(clients, alphas, result)
        counts = [
            sum(not is_absent(record.round, f"client-{g}") for g in range(3))
            for record in result.history
        ]
        assert [record.n_answers for record in result.history] == counts
        assert [len(record.faults) for record in result.history] == [3 - n for n in counts]


@pytest.mark.parametrize("method", BUNDLES)
@pytest.mark.parametrize("rounds_away", [(1,), (2,), (1, 2, 3), (4, 5, 6, 7), (2, 4, 6, 8)])
def test_the_bundle_ends_at_the_optimum_once_all_are_back(method, rounds_away):
    for seed in range(4):
        clients, alphas = federation(400 + seed)
        transport = away(clients, lambda r, name: name == "client-1" and r in rounds_away)
        result = train(
            clients,
            BUNDLES[method],
            transport=transport,
            alphas=alphas,
            quorum=2,
            tol=1e-5,
            max_rounds=400,
        )
        assert result.reason is Stop.TOL
        assert_certified(clients, alphas, result)
        optimum = reference_optimum(clients, alphas)
        assert result.objective <= optimum.high / (1.0 - 1e-5)


@pytest.mark.parametrize("method", CERTIFYING)
@pytest.mark.parametrize("last", [1, 4])
def test_a_client_gone_for_good_leaves_a_valid_result(method, last):
    for seed in range(6):
        clients, alphas = federation(440 + seed, method)
        transport = away(clients, lambda r, name: name == "client-2" and r > last)
        result = train(
            clients,
            METHODS[method],
            transport=transport,
            alphas=alphas,
            quorum=2,
            tol=1e-6,
            max_rounds=25,
        )
        assert_certified(clients, alphas, result)
        assert result.n_rounds == 25 or result.gap <= 1e-6
        assert np.isfinite(result.newest).all()


def test_a_client_that_never_comes_leaves_no_objective():
    clients, alphas = federation(7)
    for method in ("bundle", "summed", "subgradient"):
        transport = away(clients, lambda r, name: name == "client-0")
        result = train(
            clients,
            METHODS[method],
            transport=transport,
            alphas=alphas,
            quorum=2,
            max_rounds=6,
        )
        assert result.objective == np.inf
        assert result.gap == np.inf
        assert result.lower_bound <= reference_optimum(clients, alphas).high
        assert np.isfinite(result.newest).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("method", BUNDLES)
def test_a_client_known_by_its_floor_only_bounds_the_optimum_from_below(method, norm):
    """A far sample costs nothing but epsilon ||w||_*: there the floor is all there is to know."""
    clients = [client.with_(norm=norm) for client in blobs(2)]
    direction = reference_optimum(clients, np.full(2, 0.5)).w
    far = Client(1e3 * direction[None], np.ones(1), epsilon=0.3, kappa=np.inf, norm=norm)
    clients, alphas = [*clients, far], np.array([0.3, 0.3, 0.4])
    transport = away(clients, lambda r, name: name == "client-2")
    result = train(
        clients,
        BUNDLES[method],
        transport=transport,
        alphas=alphas,
        quorum=2,
        tol=1e-9,
        max_rounds=60,
    )
    optimum = reference_optimum(clients, alphas)
    assert 0.99 * optimum.low <= result.lower_bound <= optimum.high


@pytest.mark.parametrize("method", ["bundle", "summed", "admm", "subgradient"])
def test_a_client_without_weight_may_stay_away(method):
    clients, alphas = federation(8, method)
    alphas = np.array([alphas[0], 0.0, 1.0 - alphas[0]])
    transport = away(clients, lambda r, name: name == "client-1")
    result = train(
        clients, METHODS[method], transport=transport, alphas=alphas, quorum=2, max_rounds=40
    )
    assert result.objective < np.inf
    optimum = reference_optimum(clients, alphas)
    assert result.lower_bound <= optimum.high
    assert result.objective >= optimum.low
    if method in ("bundle", "summed"):
        assert result.gap <= 1e-4


def test_only_clients_without_weight_in_the_first_round():
    clients, _ = federation(9)
    alphas = np.array([0.5, 0.5, 0.0])
    for algorithm in BUNDLES.values():
        transport = away(clients, lambda r, name: name != "client-2" and r < 3)
        result = train(
            clients, algorithm, transport=transport, alphas=alphas, quorum=1, max_rounds=100
        )
        assert result.reason is Stop.TOL
        assert_certified(clients, alphas, result)


def test_admm_still_ends_at_the_optimum_after_absences():
    clients, alphas = federation(12, "admm", norm="linf")
    transport = away(clients, lambda r, name: name == "client-1" and r % 3 == 0 and r < 60)
    result = train(
        clients,
        ADMM(rho=0.1),
        transport=transport,
        alphas=alphas,
        quorum=2,
        tol=1e-3,
        max_rounds=2000,
    )
    assert result.reason is Stop.TOL
    optimum = reference_optimum(clients, alphas)
    assert optimum.low <= result.objective <= optimum.high / (1.0 - 1e-3)


@pytest.mark.parametrize("method", CERTIFYING)
def test_the_objective_is_a_sum_of_real_answers(method):
    """Whenever it changes, all clients have answered at that very model."""
    clients, alphas = federation(13, method)
    models = []
    transport = away(clients, lambda r, name: name == f"client-{r % 3}" and r % 2 == 0)
    for max_rounds in range(1, 9):
        result = train(
            clients,
            METHODS[method],
            transport=transport,
            alphas=alphas,
            quorum=2,
            tol=0.0,
            max_rounds=max_rounds,
            run_id=f"run-{max_rounds}",
        )
        models.append(result.model)
        if result.objective < np.inf:
            truth = true_objective(clients, alphas, result.model)
            assert_allclose(result.objective, truth, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_quorum_changes_nothing_while_all_are_there(method):
    clients, alphas = federation(14, "admm")
    settings = {"alphas": alphas, "max_rounds": 8, "tol": 1e-5}
    assert_same_bits(
        train(clients, METHODS[method], **settings),
        train(clients, METHODS[method], quorum=1, on_fault="drop", deadline=600.0, **settings),
    )
