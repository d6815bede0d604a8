"""Steps on mini-batches against their formulas in NumPy, and what is refused at the edge."""

import math

import numpy as np
import pytest
from scipy import sparse

from fdrsvm.native import steps

# Sums of at most 60 products each, over at most 40 steps that are no longer than 1.
ROUNDING = 1e-12


def random_client(seed, n_features, *, intercept):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.6)
    mass = rng.random(n) * rng.choice([0.0, 1.0], n) + (np.arange(n) == 0)
    y = rng.choice([-1.0, 1.0], n)
    return rng, X, y, mass / mass.sum(), rng.normal(size=n_features + intercept)


def both_forms(X, y, mass):
    rows = sparse.csr_array(X)
    csr = (rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
    return steps.Samples.dense(X, y, mass), steps.Samples.sparse(csr, X.shape[1], y, mass)


def extended(X, w):
    """Rows with a 1 for the intercept, if the model has one."""
    return X if w.size == X.shape[1] else np.column_stack([X, np.ones(len(X))])


def penalised(X, w):
    return np.where(np.arange(w.size) < X.shape[1], w, 0.0)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_features", [1, 2, 7, 8, 9, 16, 21])
def test_epochs_are_those_of_the_formula(n_features, intercept):
    rng, X, y, mass, start = random_client(n_features, n_features, intercept=intercept)
    size = int(rng.integers(1, len(y) + 1))
    order = np.array([rng.permutation(len(y))[: len(y) // size * size] for _ in range(3)])
    w, Z = start.copy(), extended(X, start)
    for s, epoch in enumerate(order):
        for batch in epoch.reshape(-1, size):
            active = y[batch] * (Z[batch] @ w) < 1.0
            weights = len(y) / size * mass[batch] * active * y[batch]
            gradient = -weights @ Z[batch] + 0.2 * penalised(X, w) + 0.5 * (w - start)
            w = w - 0.3 / math.sqrt(s + 1) * gradient
    descent = steps.Descent(epsilon=0.1, learning_rate=0.3, prox_weight=0.5, n_epochs=3)
    given = start.copy()
    given.flags.writeable = False
    for samples in both_forms(X, y, mass):
        found = steps.local_epochs(samples, given, order, size, descent)
        np.testing.assert_allclose(found, w, rtol=0.0, atol=ROUNDING * (1.0 + np.abs(w).max()))


@pytest.mark.parametrize("least", [-1.0, 0.0])
@pytest.mark.parametrize("n_features", [1, 7, 8, 13])
def test_tilted_steps_are_those_of_the_formula(n_features, least):
    rng, X, y, mass, start = random_client(n_features, n_features, intercept=True)
    size = int(rng.integers(1, len(y) + 1))
    batches = np.array([rng.permutation(len(y))[:size] for _ in range(4)])
    momentums, lam = np.array([1.0, 0.3, 0.3, 0.3]), 0.7
    w, z, Z = start.copy(), 0.0, extended(X, start)
    for k, (batch, beta) in enumerate(zip(batches, momentums, strict=True)):
        losses = np.maximum(1.0 - y[batch] * (Z[batch] @ w), 0.0)
        tilted = len(y) / size * mass[batch] * np.exp(losses / lam)
        z = (1.0 - beta) * z + beta * tilted[losses > least].sum()
        factors = tilted / z * (losses > 0.0) * y[batch] if z > 0.0 else np.zeros(size)
        w = w - 0.3 / math.sqrt(5 + k) * (-factors @ Z[batch] + 0.2 * penalised(X, w))
    tilt = steps.Tilt(
        epsilon=0.1,
        learning_rate=0.3,
        temperature=lam,
        least=least,
        log_moment=-math.inf,
        first_step=5,
    )
    for samples in both_forms(X, y, mass):
        found, log_moment = steps.tilted_steps(samples, start, batches, momentums, tilt)
        np.testing.assert_allclose(found, w, rtol=0.0, atol=ROUNDING * (1.0 + np.abs(w).max()))
        assert math.exp(log_moment) == pytest.approx(z, rel=1e-12)


def test_a_mixture_of_logarithms_neither_overflows_nor_vanishes():
    assert steps.log_mix(0.0, 0.0, 0.25) == pytest.approx(0.0, abs=1e-15)
    assert steps.log_mix(math.log(2.0), math.log(6.0), 0.25) == pytest.approx(math.log(3.0))
    assert steps.log_mix(900.0, -900.0, 0.5) == pytest.approx(900.0 - math.log(2.0))
    assert steps.log_mix(-math.inf, 3.0, 1.0) == 3.0
    assert steps.log_mix(3.0, -math.inf, 0.0) == 3.0
    assert steps.log_mix(-math.inf, -math.inf, 0.5) == -math.inf


X, Y, MASS = np.ones((4, 3)), np.ones(4), np.full(4, 0.25)
ORDER = np.arange(4)[None]
DESCENT = steps.Descent(epsilon=0.1, learning_rate=0.1, prox_weight=0.0, n_epochs=1)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"X": X.astype(np.float32)}, TypeError),
        ({"X": np.ones((4, 6))[:, ::2]}, TypeError),
        ({"X": X[0]}, TypeError),
        ({"y": np.ones(3)}, ValueError),
        ({"mass": np.ones(5)}, ValueError),
        ({"mass": [0.25] * 4}, TypeError),
    ],
)
def test_samples_that_cannot_be_read_are_refused(wrong, error):
    with pytest.raises(error):
        steps.Samples.dense(**{"X": X, "y": Y, "mass": MASS, **wrong})


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [
        ([0, 3], [0, 1, 1, 1, 2]),  # a column too far
        ([0, -1], [0, 1, 1, 1, 2]),
        ([0, 1], [0, 1, 1, 2]),  # a row too few
        ([0, 1], [0, 2, 1, 1, 2]),
        ([0, 1], [0, 1, 1, 1, 3]),
        ([0, 1], [1, 1, 1, 1, 2]),
    ],
)
def test_sparse_rows_that_point_outside_are_refused(indices, indptr):
    csr = (np.ones(2), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32))
    with pytest.raises(ValueError, match=r"indices|indptr"):
        steps.Samples.sparse(csr, 3, Y, MASS)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"order": np.array([[0, 1, 2, 4]])}, ValueError),
        ({"order": np.array([[0, 1, 2, -1]])}, ValueError),
        ({"order": ORDER.astype(np.int32)}, TypeError),
        ({"order": np.vstack([ORDER, ORDER])}, ValueError),  # two epochs, not one
        ({"order": np.empty((1, 0), dtype=np.int64)}, ValueError),
        ({"batch_size": 3}, ValueError),
        ({"batch_size": 0}, ValueError),
        ({"start": np.zeros(5)}, ValueError),
        ({"start": np.zeros(2)}, ValueError),
        ({"start": np.zeros((3, 1))}, TypeError),
    ],
)
def test_batches_and_models_that_do_not_fit_are_refused(wrong, error):
    samples = steps.Samples.dense(X, Y, MASS)
    arguments = {"start": np.zeros(3), "order": ORDER, "batch_size": 2, "descent": DESCENT}
    assert steps.local_epochs(samples, **arguments).shape == (3,)
    with pytest.raises(error):
        steps.local_epochs(samples, **{**arguments, **wrong})


DRAWS = {
    "batches": np.array([0, 1, 1, 0, 0, 1, 1, 0]),
    "drawn": np.array([0, 4, 8]),
    "sizes": np.array([1, 2]),
    "n_rounds": 2,
    "n_local": 1,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"batches": np.array([0, 1, 1, 0, 0, 1, 1, 2])},  # its client has two rows
        {"batches": np.array([0, 1, 1, 0, 0, 1, 1, -1])},
        {"batches": np.array([0, 1, 1, 0])},
        {"drawn": np.array([0, 3, 8])},
        {"drawn": np.array([0, 8])},
        {"sizes": np.array([1, 0])},
        {"sizes": np.array([1, 3])},
        {"n_rounds": 3},
        {"n_rounds": 0},
    ],
)
def test_draws_that_do_not_fit_their_clients_are_refused(wrong):
    clients = steps.Clients(X, Y, np.array([0, 2, 4]))
    epsilons = np.full(2, 0.1)
    assert steps.fedprox_run(clients, steps.Draws(**DRAWS), epsilons, 0.1, 0.0).shape == (2, 3)
    with pytest.raises(ValueError, match=r"batches|drawn|draws"):
        steps.fedprox_run(clients, steps.Draws(**{**DRAWS, **wrong}), epsilons, 0.1, 0.0)


@pytest.mark.parametrize("first", [[0, 2, 3], [1, 2, 4], [0, 2, 2, 4], [0], [0, 5, 4]])
def test_clients_must_cover_all_rows(first):
    with pytest.raises(ValueError, match="first"):
        steps.Clients(X, Y, np.array(first))


def test_nobody_cannot_be_dealt_to():
    with pytest.raises(ValueError, match="shares"):
        steps.deal(np.empty(0), 3)
    assert steps.deal(np.ones(1), 3).tolist() == [0, 0, 0]
