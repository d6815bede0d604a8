"""FedSGD, FedAvg, FedProx and FedDRO: each against a plain loop, its bound against the optimum."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.federated.checkpoint import state_from_arrays, state_to_arrays
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Update
from fdrsvm.federated.methods import (
    FedAvg,
    FedDRO,
    FedProx,
    FedSGD,
    describe,
    from_description,
)
from fdrsvm.federated.methods.batches import batch_size, client_generator, epoch_order
from fdrsvm.federated.problem import make_client
from fdrsvm.federated.rounds import run_rounds
from fdrsvm_paper.feddro_published import FedDROPublished
from tests.federated.baseline_reference import (
    PlainClient,
    objective,
    optimum,
    plain_fedavg,
    plain_feddro,
    plain_feddro_published,
    plain_fedsgd,
)

METHODS = (
    FedSGD(0.3),
    FedAvg(0.1),
    FedProx(0.1),
    FedDRO(0.5, temperature=2.0),
    FedDROPublished(0.5, temperature=2.0),
)
LOOPS = {
    "fedsgd": plain_fedsgd,
    "fedavg": plain_fedavg,
    "fedprox": lambda clients, alphas, method, n_rounds: plain_fedavg(
        clients, alphas, method, n_rounds, method.prox_weight
    ),
    "feddro": plain_feddro,
    "feddro-published": plain_feddro_published,
}
by_name = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def random_clients(rng, *, n_clients=None, fit_intercept=False, weighted=False, scale=1.0):
    """Up to four clients of unequal size, and their weights."""
    n_clients = int(rng.integers(1, 5)) if n_clients is None else n_clients
    n_features = int(rng.integers(1, 6))
    direction = rng.normal(size=n_features)
    clients = []
    for g in range(n_clients):
        n = int(rng.integers(4, 25))
        X = scale * rng.normal(size=(n, n_features)) + 0.3
        y = np.where(X @ direction + scale * rng.normal(size=n) > 0.0, 1.0, -1.0)
        clients.append(
            PlainClient(
                X,
                y,
                epsilon=float(rng.choice([1e-3, 1e-2, 0.1])),
                mass=rng.random(n) + 0.1 if weighted else None,
                fit_intercept=fit_intercept,
                client_id=f"client {g}",
            )
        )
    alphas = rng.random(len(clients)) + 0.1
    return clients, alphas / alphas.sum()


def problems_of(clients):
    return [
        make_client(
            client.client_id,
            client.X,
            client.y,
            epsilon=client.epsilon,
            sample_weight=client.mass,
            fit_intercept=not client.is_feature.all(),
        )
        for client in clients
    ]


def exchanges(method):
    """How many of the loop's rounds make one of the method's."""
    return method.n_steps + 1 if isinstance(method, FedDROPublished) else 1


def train(method, problems, alphas, n_rounds, **settings):
    """The result, and the newest model after every round of the method."""
    models = []
    result = run_rounds(
        InProcess(problems, n_threads=settings.pop("n_threads", 1)),
        method,
        max_rounds=n_rounds * exchanges(method),
        tol=0.0,
        client_weights=alphas,
        callbacks=[lambda record, model: models.append(model) and False],
        **settings,
    )
    return result, models[exchanges(method) - 1 :: exchanges(method)]


def ridge(method):
    """What the reference needs to know of a method's objective."""
    return {
        "temperature": getattr(method, "temperature", None),
        "penalised": not isinstance(method, FedDROPublished),
    }


# --- the steps are those of the definition ---


@by_name
@pytest.mark.parametrize("seed", range(6))
def test_every_round_is_that_of_a_plain_loop(method, seed):
    rng = np.random.default_rng(seed)
    clients, alphas = random_clients(rng, fit_intercept=seed % 2 == 1, weighted=seed % 3 == 2)
    _, models = train(method, problems_of(clients), alphas, 6)
    plain = list(LOOPS[method.name](clients, alphas, method, 6))
    assert len(models) == len(plain)
    for ours, theirs in zip(models, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_samples", [1, 3, 4, 5, 7, 23, 100])
def test_the_batches_of_an_epoch_share_no_sample(n_samples):
    order = epoch_order(client_generator(0, 1, "a"), 5, n_samples, 0.2)
    size = batch_size(n_samples, 0.2)
    assert size == max(1, n_samples // 5)
    assert order.shape == (5, min(5, n_samples) * size)
    for epoch in order:
        assert len(set(epoch.tolist())) == order.shape[1]
    assert set(order.ravel().tolist()) <= set(range(n_samples))


def test_a_fraction_of_all_samples_is_not_lost_to_rounding():
    assert batch_size(100, 0.29) == 29


def test_one_client_with_one_full_batch_and_one_epoch_is_gradient_descent(rng):
    clients, _ = random_clients(rng)
    client, w = clients[0], np.zeros(clients[0].X.shape[1])
    method = FedAvg(0.2, n_epochs=1, batch_fraction=1.0)
    _, models = train(method, problems_of([client]), [1.0], 20)
    for model in models:
        w = w - 0.2 * client.gradient(w, range(client.n))
        np.testing.assert_allclose(model, w, rtol=1e-9, atol=1e-12)


def test_fedprox_without_its_proximal_term_is_fedavg_to_the_last_bit(rng):
    clients, alphas = random_clients(rng)
    problems = problems_of(clients)
    ours, models = train(FedProx(0.1, prox_weight=0.0), problems, alphas, 10)
    theirs, others = train(FedAvg(0.1), problems, alphas, 10)
    assert np.array_equal(models, others)
    assert ours.lower_bound == theirs.lower_bound


def test_feddro_at_a_huge_temperature_minimises_the_mean_loss(rng):
    clients, alphas = random_clients(rng)
    problems = problems_of(clients)
    settings = {"n_steps": 1, "batch_fraction": 1.0}
    hot, models = train(FedDRO(0.3, temperature=1e9, **settings), problems, alphas, 30)
    mean, others = train(FedSGD(0.3), problems, alphas, 30)
    np.testing.assert_allclose(models, others, rtol=1e-6, atol=1e-7)
    assert hot.objective == pytest.approx(mean.objective, rel=1e-7)
    assert hot.lower_bound == pytest.approx(mean.lower_bound, rel=1e-5)


@pytest.mark.parametrize("kind", [FedDRO, FedDROPublished])
def test_feddro_survives_losses_of_thousands_at_temperature_one(kind, rng):
    clients, alphas = random_clients(rng, scale=1e4)
    method = kind(1.0, temperature=1.0, n_steps=3)
    result, models = train(method, problems_of(clients), alphas, 20)
    assert np.isfinite(models).all()
    assert max(client.losses(models[0]).max() for client in clients) > 1e3
    assert np.isfinite([result.objective, result.lower_bound]).all()


# --- the certificate ---


@by_name
@pytest.mark.parametrize("seed", range(12))
def test_no_bound_lies_above_the_optimum(method, seed):
    rng = np.random.default_rng(100 + seed)
    clients, alphas = random_clients(rng, fit_intercept=seed % 2 == 1, weighted=seed % 3 == 0)
    best = optimum(clients, alphas, **ridge(method))
    result, _ = train(method, problems_of(clients), alphas, 25)
    bounds = [record.lower_bound for record in result.history] + [result.lower_bound]
    assert all(later >= earlier for earlier, later in pairwise(bounds))
    assert result.lower_bound <= best + 1e-8 * (1.0 + best)
    exact = objective(clients, alphas, result.model, **ridge(method))
    assert result.objective == pytest.approx(exact, rel=1e-10)
    assert result.objective >= best - 1e-8
    assert result.gap * result.objective >= result.objective - best - 1e-8


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    ("method", "n_rounds"),
    [
        (FedSGD(1.0), 300),
        (FedAvg(0.1, batch_fraction=1.0), 300),
        (FedDRO(1.0, temperature=2.0, momentum=1.0, batch_fraction=1.0), 300),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_gap_closes_where_the_method_converges(method, n_rounds, fit_intercept):
    rng = np.random.default_rng(5)
    clients, _ = random_clients(rng, fit_intercept=fit_intercept)
    client = clients[0]
    client.epsilon = 0.1
    result, _ = train(method, problems_of([client]), [1.0], n_rounds)
    assert result.gap < 2e-3


def test_a_model_without_penalty_is_bounded_up_to_a_radius(rng):
    clients, alphas = random_clients(rng)
    for client in clients:
        client.epsilon = 0.0
    result, _ = train(FedAvg(0.3), problems_of(clients), alphas, 60)
    assert result.lower_bound <= optimum(clients, alphas) + 1e-8
    assert np.isinf(result.bound_radius) == (result.lower_bound == 0.0)


def test_the_best_model_is_the_best_of_those_sent(rng):
    clients, alphas = random_clients(rng)
    result, models = train(FedSGD(2.0), problems_of(clients), alphas, 15)
    sent = [np.zeros_like(models[0]), *models[:-1]]
    values = [objective(clients, alphas, w) for w in sent]
    assert result.objective == pytest.approx(min(values), rel=1e-12)
    assert np.array_equal(result.model, sent[int(np.argmin(values))])
    assert np.array_equal(result.newest, models[-1])


def test_objectives_are_reported_client_by_client(rng):
    clients, alphas = random_clients(rng)
    result, _ = train(FedAvg(0.1), problems_of(clients), alphas, 5)
    for client, risk in zip(clients, result.risks, strict=True):
        assert risk == pytest.approx(objective([client], [1.0], result.model), rel=1e-12)


# --- clients: weights, order, absence ---


@by_name
def test_the_order_of_clients_changes_nothing_beyond_rounding(method, rng):
    clients, alphas = random_clients(np.random.default_rng(3), n_clients=3)
    problems, order = problems_of(clients), rng.permutation(len(clients))
    ours, models = train(method, problems, alphas, 8)
    theirs, others = train(method, [problems[g] for g in order], alphas[order], 8)
    np.testing.assert_allclose(models, others, rtol=1e-9, atol=1e-12)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-10)
    assert ours.lower_bound == pytest.approx(theirs.lower_bound, rel=1e-5, abs=1e-9)


@by_name
def test_a_client_without_weight_changes_no_model(method):
    clients, alphas = random_clients(np.random.default_rng(3), n_clients=3)
    _, models = train(method, problems_of(clients[:2]), alphas[:2], 6)
    _, others = train(method, problems_of(clients[:3]), [*alphas[:2], 0.0], 6)
    np.testing.assert_allclose(models, others, rtol=1e-12, atol=1e-14)


def one_round(method, federation, problems, state, memories, absent=()):
    """The loop's round, written out: what each client is asked, and what is left of the answers."""
    asked = [method.ask(federation, state, g) for g in range(federation.n_clients)]
    updates = []
    for g, problem in enumerate(problems):
        if g in absent:
            updates.append(None)
            continue
        memories[g], values = method.answer(problem, memories.get(g, {}), asked[g])
        form = method.expects(federation, asked[g])
        assert {name: array.shape for name, array in values.items()} == form
        updates.append(Update("run", 1, problem.profile.client_id, values))
    return method.advance(federation, state, Replies(tuple(updates)))


@by_name
def test_means_are_over_the_clients_that_answered(method):
    clients, alphas = random_clients(np.random.default_rng(3), n_clients=3)
    problems = problems_of(clients)
    federation = Federation.checked([problem.profile for problem in problems], alphas)
    few = Federation.checked([problem.profile for problem in problems[1:]], alphas[1:])
    state, other = method.start(federation), method.start(few)
    memories, theirs = {}, {}
    for _ in range(3 * exchanges(method)):
        state = one_round(method, federation, problems, state, memories, absent=(0,))
        other = one_round(method, few, problems[1:], other, theirs)
    np.testing.assert_allclose(
        method.progress(state).model, method.progress(other).model, rtol=1e-12, atol=1e-14
    )
    standing = method.progress(method.settle(federation, state)).certificate
    assert standing.objective == np.inf  # nobody knows the first client's part
    assert 0.0 <= standing.lower_bound <= optimum(clients, alphas, **ridge(method)) + 1e-8


@by_name
def test_a_round_without_anyone_of_weight_leaves_the_model(method):
    clients, _ = random_clients(np.random.default_rng(3), n_clients=3)
    problems = problems_of(clients[:2])
    federation = Federation.checked([problem.profile for problem in problems], [1.0, 0.0])
    state, memories = method.start(federation), {}
    for _ in range(exchanges(method)):
        state = one_round(method, federation, problems, state, memories)
    before = method.progress(state).model
    for _ in range(exchanges(method)):
        state = one_round(method, federation, problems, state, memories, absent=(0,))
    assert np.array_equal(method.progress(state).model, before)
    assert np.isfinite(before).all()


def test_a_client_that_missed_a_step_goes_on_from_the_model_of_the_round():
    clients, alphas = random_clients(np.random.default_rng(3), n_clients=3)
    problems = problems_of(clients)
    method = FedDROPublished(0.5, temperature=2.0)
    federation = Federation.checked([problem.profile for problem in problems], alphas)
    state, memories = method.start(federation), {}
    for k in range(2 * exchanges(method)):
        absent = (0,) if k == 2 else ()
        state = one_round(method, federation, problems, state, memories, absent)
    assert np.isfinite(method.progress(state).model).all()


# --- seeds ---


@pytest.mark.parametrize("method", METHODS[1:], ids=lambda method: method.name)
def test_bits_depend_on_the_seed_and_not_on_threads(method, rng):
    clients, alphas = random_clients(np.random.default_rng(3), n_clients=3)
    problems = problems_of(clients)
    ours, models = train(method, problems, alphas, 6)
    again, same = train(method, problems, alphas, 6, n_threads=2)
    _, others = train(replace(method, random_state=1), problems, alphas, 6)
    assert np.array_equal(models, same)
    assert (ours.objective, ours.lower_bound) == (again.objective, again.lower_bound)
    assert not np.allclose(models[-1], others[-1])


def test_clients_and_rounds_draw_from_streams_of_their_own():
    seeds = [(0, 1, "a"), (1, 1, "a"), (0, 2, "a"), (0, 1, "b"), (0, 1, "aa"), (0, 1, "é")]
    drawn = [client_generator(*seed).integers(1 << 62) for seed in seeds]
    assert len(set(drawn)) == len(seeds)
    assert drawn[0] == client_generator(0, 1, "a").integers(1 << 62)


@by_name
def test_a_resumed_run_has_the_bits_of_an_unbroken_one(method):
    clients, alphas = random_clients(np.random.default_rng(4), n_clients=3)
    problems, snapshots = problems_of(clients), []
    whole, _ = train(method, problems, alphas, 6, run_id="run", checkpoint=snapshots.append)
    half = 3 * exchanges(method) - 1
    stored = state_to_arrays(snapshots[half].state)
    state = state_from_arrays(method.state_type, stored)
    resumed = replace(snapshots[half], state=state)
    result, _ = train(method, problems, alphas, 6, run_id="run", resume=resumed)
    assert np.array_equal(whole.newest, result.newest)
    assert (whole.objective, whole.lower_bound) == (result.objective, result.lower_bound)


def test_published_feddro_can_stop_between_two_steps_of_a_round():
    clients, alphas = random_clients(np.random.default_rng(4), n_clients=3)
    method, settings = METHODS[4], {"tol": 0.0, "client_weights": alphas, "run_id": "run"}
    whole = run_rounds(InProcess(problems_of(clients)), method, max_rounds=18, **settings)
    transport, snapshots = InProcess(problems_of(clients)), []
    run_rounds(transport, method, max_rounds=9, checkpoint=snapshots.append, **settings)
    result = run_rounds(transport, method, max_rounds=18, resume=snapshots[-1], **settings)
    assert np.array_equal(whole.newest, result.newest)
    assert whole.objective == result.objective


# --- what goes in ---


@by_name
def test_batches_without_any_mass_do_no_harm(method):
    clients, alphas = random_clients(np.random.default_rng(8), n_clients=2)
    for client in clients:
        client.mass = np.where(np.arange(client.n) == 0, 1.0, 0.0)
    result, models = train(method, problems_of(clients), alphas, 8)
    assert np.isfinite(models).all()
    assert models[-1].any()
    assert result.lower_bound <= optimum(clients, alphas, **ridge(method)) + 1e-8


@by_name
def test_sparse_data_give_the_model_of_dense_ones(method):
    clients, alphas = random_clients(np.random.default_rng(6), fit_intercept=True)
    for client in clients:
        client.X[np.abs(client.X) < 0.5] = 0.0
    dense, models = train(method, problems_of(clients), alphas, 5)
    for client in clients:
        client.X = sparse.csr_array(client.X)
    thin, others = train(method, problems_of(clients), alphas, 5)
    np.testing.assert_allclose(models, others, rtol=1e-9, atol=1e-12)
    assert dense.objective == pytest.approx(thin.objective, rel=1e-12)


@by_name
def test_what_a_client_sends_does_not_grow_with_its_data(method, rng):
    sizes = []
    for n in (10, 1000):
        X = rng.normal(size=(n, 3))
        client = PlainClient(X, np.sign(X[:, 0]), epsilon=0.1)
        result, _ = train(method, problems_of([client]), [1.0], 1)
        sizes.append(sum(record.bytes_up for record in result.history))
    assert sizes[0] == sizes[1]


@by_name
def test_the_settings_survive_a_message(method):
    assert from_description(describe(method)) == method


@by_name
def test_other_losses_are_refused(method, rng):
    X = rng.normal(size=(10, 2))
    problem = make_client("a", X, np.sign(X[:, 0]), loss="logistic")
    federation = Federation.checked([problem.profile], "equal")
    asked = method.ask(federation, method.start(federation), 0)
    with pytest.raises(UnsupportedError, match="hinge"):
        method.answer(problem, {}, asked)


@pytest.mark.parametrize(
    ("kind", "settings", "argument"),
    [
        (FedSGD, {"learning_rate": 0.0}, "learning_rate"),
        (FedAvg, {"n_epochs": 0}, "n_epochs"),
        (FedAvg, {"n_epochs": 2.0}, "n_epochs"),
        (FedAvg, {"batch_fraction": 1.5}, "batch_fraction"),
        (FedAvg, {"random_state": -1}, "random_state"),
        (FedProx, {"prox_weight": -1.0}, "prox_weight"),
        (FedProx, {"learning_rate": -1.0}, "learning_rate"),
        (FedDRO, {"temperature": 0.0}, "temperature"),
        (FedDRO, {"momentum": 0.0}, "momentum"),
        (FedDRO, {"momentum": 1.1}, "momentum"),
        (FedDROPublished, {"n_steps": True}, "n_steps"),
    ],
)
def test_wrong_settings_are_named(kind, settings, argument):
    with pytest.raises(InvalidInputError) as caught:
        kind(**settings)
    assert caught.value.argument == argument


def test_the_momentum_of_feddro_follows_the_learning_rate():
    assert FedDRO(0.5).beta == 0.05
    assert FedDRO(20.0).beta == 1.0
    assert FedDRO(0.5, momentum=0.3).beta == 0.3


def test_honest_tilted_means_pass_the_screen_of_agreed_limits(rng):
    """Their cuts have smaller constants than the mass of their rows: only their form is judged."""
    clients = []
    for g in range(2):
        X = rng.random((25, 3))
        y = np.where(X[:, 0] + 0.2 * rng.normal(size=25) > 0.5, 1.0, -1.0)
        clients.append(make_client(f"client-{g}", X, y, epsilon=0.05))
    result = run_rounds(
        InProcess(clients), FedDRO(), max_rounds=4, tol=0.0, limits=Limits.checked(1.0, 3)
    )
    assert result.n_rounds == 4  # with on_fault="stop" a fault would have ended it
    assert np.isfinite(result.objective)
