"""Runs without messages give the models that the federated methods give with them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fdrsvm.federated import (
    ADMM,
    FedAvg,
    FedDRO,
    FedProx,
    FedSGD,
    InProcess,
    Subgradient,
    make_client,
    run_rounds,
)
from fdrsvm.federated.methods.batches import client_generator, epoch_order, step_batches
from fdrsvm.solvers import solve_central
from fdrsvm_paper import clients as module
from fdrsvm_paper import trajectories
from fdrsvm_paper.clients import Draws, stack
from fdrsvm_paper.feddro_published import FedDROPublished

N_ROUNDS = 25
SIZES = (11, 17, 30, 12)  # batches leave rows over
# Steps are rounded differently in one loop and in four; a run multiplies that by its few rounds.
ROUNDING = 1e-9


@pytest.fixture
def parts(rng):
    w = rng.normal(size=3)
    found = []
    for n in SIZES:
        X = rng.random((n, 3))
        y = np.where((X - 0.5) @ w + 0.2 * rng.normal(size=n) > 0.0, 1.0, -1.0)
        found.append((X, y))
    return found


@pytest.fixture
def clients(parts, monkeypatch):
    monkeypatch.setattr(module, "N_ROUNDS", N_ROUNDS)
    monkeypatch.setattr(trajectories, "N_ROUNDS", N_ROUNDS)
    return stack(parts, np.array(SIZES, dtype=float), (7,))


def same_draws(clients, draw, n_local):
    """The batches that the federated methods would draw with random_state 3."""
    parts = []
    for g, n in enumerate(SIZES):
        rounds = range(1, N_ROUNDS + 1)
        generators = [client_generator(3, t, f"client {g}") for t in rounds]
        parts.append(np.concatenate([draw(rng, n_local, n, 0.2) for rng in generators]))
    return clients._joined(parts)


def models_by_messages(parts, algorithm, n_rounds=N_ROUNDS, every=1, **ball):
    problems = [
        make_client(f"client {g}", X, y, epsilon=0.1 / len(y), **ball)
        for g, (X, y) in enumerate(parts)
    ]
    models = []
    run_rounds(
        InProcess(problems),
        algorithm,
        max_rounds=every * n_rounds,
        tol=0.0,
        callbacks=[lambda _, model: models.append(model)],
    )
    return np.array(models)[every - 1 :: every]


def assert_same(models, expected):
    assert models.shape == expected.shape == (N_ROUNDS, 3)
    assert np.abs(np.diff(models, axis=0)).max() > 1e-3  # they move, so agreement means something
    assert_allclose(models, expected, rtol=0.0, atol=ROUNDING * np.abs(expected).max())


@pytest.mark.parametrize(("rho", "tau"), [(1e-2, 0.0), (1e-1, 1.8)])
@pytest.mark.parametrize("kappa", [0.1, 1.0])
def test_admm(clients, parts, rho, tau, kappa):
    models = trajectories.admm(clients, clients.radii(10.0), kappa, rho, tau, N_ROUNDS)
    expected = models_by_messages(parts, ADMM(rho=rho, tau=tau), kappa=kappa)
    # Both solve to a relative gap of 1e-8; rho/2 ||w - w*||^2 <= 1e-8 leaves w this free.
    assert_allclose(models, expected, rtol=0.0, atol=np.sqrt(2e-8 / rho))


@pytest.mark.parametrize("worst_case", ["exact", "paper"])
@pytest.mark.parametrize("decay", ["1/t", "1/sqrt(t)"])
def test_subgradient(clients, parts, worst_case, decay):
    models = trajectories.subgradient(
        clients, clients.radii(10.0), 0.5, 0.7, decay, worst_case, N_ROUNDS
    )
    expected = models_by_messages(
        parts,
        Subgradient(step_size=0.7, step_decay=decay),
        kappa=0.5,
        support="unit-box",
        worst_case=worst_case,
    )
    assert_same(models, expected)


def test_fedsgd(clients, parts):
    models = trajectories.fedsgd(clients, clients.radii(10.0), 0.5)
    assert_same(models, models_by_messages(parts, FedSGD(learning_rate=0.5)))


@pytest.mark.parametrize("prox_weight", [0.0, 1.0])
def test_fedavg_and_fedprox(clients, parts, prox_weight):
    draws = same_draws(clients, epoch_order, 5)
    clients.__dict__["epochs"] = draws  # in place of the cached property
    models = trajectories.fedprox(clients, clients.radii(10.0), 0.1, prox_weight)
    settings = {"learning_rate": 0.1, "random_state": 3}
    method = FedProx(prox_weight=1.0, **settings) if prox_weight else FedAvg(**settings)
    assert_same(models, models_by_messages(parts, method))


@pytest.mark.parametrize("temperature", [0.5, 10.0])
def test_feddro(clients, parts, temperature):
    clients.__dict__["steps"] = same_draws(clients, step_batches, 5)
    models = trajectories.feddro(clients, clients.radii(10.0), 0.3, temperature, 0.03)
    method = FedDRO(learning_rate=0.3, temperature=temperature, momentum=0.03, random_state=3)
    assert_same(models, models_by_messages(parts, method))


@pytest.mark.parametrize("temperature", [5.0, 50.0])
def test_feddro_as_published(clients, parts, temperature):
    clients.__dict__["steps"] = same_draws(clients, step_batches, 5)
    models = trajectories.feddro_published(clients, 0.3, temperature, 0.03)
    method = FedDROPublished(
        learning_rate=0.3, temperature=temperature, momentum=0.03, random_state=3
    )
    assert_same(models, models_by_messages(parts, method, every=6))


def test_the_bundle_is_certified(clients):
    found = trajectories.bundle(clients, clients.radii(10.0), 1.0)
    assert found.gap <= trajectories.CERTIFIED
    assert found.rounds >= 1


def test_the_central_model_is_the_solvers(clients):
    found = trajectories.central(clients, 1e-2, 0.5)
    expected = solve_central(clients.X, clients.y, epsilon=1e-2, kappa=0.5)
    assert_allclose(found, expected.w, atol=1e-2)


def test_batches_pass_over_a_clients_rows_and_repeat_themselves(parts):
    once, again = (stack(parts, np.array(SIZES, dtype=float), (7,)) for _ in range(2))
    other = stack(parts, np.array(SIZES, dtype=float), (8,))
    for name in ("epochs", "steps"):
        draws = getattr(once, name)
        assert isinstance(draws, Draws)
        assert (draws.batches == getattr(again, name).batches).all()
        assert (draws.batches != getattr(other, name).batches).any()
        assert draws.sizes.tolist() == [n // 5 for n in SIZES]
    for g, n in enumerate(SIZES):
        mine = once.epochs.batches[once.epochs.drawn[g] : once.epochs.drawn[g + 1]]
        epochs = mine.reshape(module.N_ROUNDS * module.N_LOCAL, -1)
        assert epochs.shape[1] == 5 * (n // 5)
        for epoch in epochs[:3]:
            assert len(set(epoch.tolist())) == epoch.size
            assert epoch.max() < n
