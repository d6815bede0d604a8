"""Second moments: what clients send, what is believed, and that a metric only changes the way."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fdrsvm import FDRSVC
from fdrsvm.errors import ClientError, InvalidInputError
from fdrsvm.federated import Bundle, InProcess, make_client, run_rounds
from fdrsvm.federated.checkpoint import CheckpointFolder
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Update
from fdrsvm.federated.moments import (
    judge_moments,
    largest_part,
    metric_of,
    packed_moments,
    unpacked,
)
from fdrsvm.federated.screen import Screen
from fdrsvm.federated.secure.secure_sums import SecureSum

METRIC = Bundle(metric="second-moments")
WIDTH = 5


def make_parts(n_rows=40, n_clients=3):
    """Correlated features in the unit box, and labels that are not all right."""
    rng = np.random.default_rng(7)
    truth, parts = rng.normal(size=WIDTH - 1), []
    for _ in range(n_clients):
        X = rng.random((n_rows, WIDTH - 1))
        X[:, 1] = 0.9 * X[:, 0] + 0.1 * X[:, 1]
        y = np.where((X - 0.5) @ truth + 0.2 * rng.normal(size=n_rows) > 0.0, 1.0, -1.0)
        parts.append((X, y))
    return parts


def make_clients(parts=None, **settings):
    given = {"epsilon": 0.01, "fit_intercept": True, **settings}
    return [
        make_client(f"client {g}", X, y, **given) for g, (X, y) in enumerate(parts or make_parts())
    ]


def moments_of(X, mass):
    Z = np.column_stack([X, np.ones(len(X))])
    return Z.T @ (mass[:, None] * Z)


# --- what a client sends ---


@pytest.mark.parametrize("is_sparse", [False, True])
def test_moments_are_sums_over_rows(is_sparse):
    X, y = make_parts(5000)[0]
    weights = np.random.default_rng(0).random(len(y))
    given = sparse.csr_array(X) if is_sparse else X
    client = make_client("a", given, y, fit_intercept=True, sample_weight=weights)
    # Sums of 5000 numbers of at most 1/5000: far below 1e-12.
    expected = moments_of(X, weights / weights.sum())
    np.testing.assert_allclose(unpacked(packed_moments(client)), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("n_rows", "settings", "gives"),
    [
        (2 * WIDTH, {}, True),
        (2 * WIDTH - 1, {}, False),
        (2 * WIDTH, {"size": 1e160}, False),
        (2 * WIDTH - 1, {"moments": True}, True),
        (40, {"moments": False}, False),
        (40, {"blur": 1}, False),
        (40, {"resolution": 1e-4}, False),
    ],
)
def test_who_gives_moments(n_rows, settings, gives):
    X, y = make_parts(n_rows)[0]
    X = X * settings.pop("size", 1.0)
    client = make_client("a", X, y, fit_intercept=True, **settings)
    with np.errstate(over="ignore"):
        moments = packed_moments(client)
    assert moments.any() == gives


@pytest.mark.parametrize("n_alone", [1, 2])
def test_moments_that_show_a_row_are_kept(n_alone):
    """One machine in a hundred has an option: its column of the moments would be its row."""
    X, y = make_parts(100)[0]
    X[:, 0] = np.arange(len(X)) < n_alone
    told = unpacked(packed_moments(make_client("a", X, y, fit_intercept=True, moments=True)))
    assert np.allclose(told[0] / told[0, -1], [*X[0], 1.0]) == (n_alone == 1)
    client = make_client("a", X, y, fit_intercept=True)
    assert packed_moments(client).any() == (n_alone > 1)
    Z = np.column_stack([X, np.ones(len(X))])
    parts = np.einsum("np,pn->n", Z, np.linalg.solve(told, Z.T)) / len(Z)
    assert largest_part(client, told) == pytest.approx(parts.max(), rel=1e-9)


# --- what is believed ---


def judged(moments, limit=1.0):
    federation = Federation([client.profile for client in make_clients()], np.full(3, 1 / 3))
    screen = Screen(None if limit is None else Limits.checked(limit, WIDTH - 1))
    return judge_moments(federation, screen, {"moments": moments[np.triu_indices(WIDTH)]})


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 30),
    size=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_honest_moments_are_believed(seed, n_rows, size):
    rng = np.random.default_rng(seed)
    X = size * np.where(rng.random((n_rows, WIDTH - 1)) < 0.5, rng.uniform(-1, 1), 1.0)
    moments = moments_of(X, np.full(n_rows, 1 / n_rows))
    assert judged(moments, size) is None
    assert judged(moments, None) is None
    assert judged(0.0 * moments, size) is None  # kept to itself


def test_what_no_rows_have_is_a_fault():
    X, y = make_parts()[0]
    honest = moments_of(X, np.full(len(y), 1 / len(y)))
    assert judged(honest) is None
    too_large, negative, indefinite, heavy = (honest.copy() for _ in range(4))
    too_large[2, 2] = 1.01  # a mean square in [-1, 1] is at most 1
    negative[0, 0] = -1e-3
    indefinite[0, 1] = indefinite[1, 0] = 1.1 * np.sqrt(honest[0, 0] * honest[1, 1])
    heavy[-1, -1] = 1.01  # the masses sum to 1
    for wrong, limit in ((too_large, 1.0), (negative, None), (indefinite, None), (heavy, None)):
        assert judged(wrong, limit).rule == "moments"


class Lying(InProcess):
    """The first client's moments are what ``lie`` makes of them."""

    def __init__(self, problems, lie):
        super().__init__(problems)
        self.lie = lie

    def exchange(self, broadcasts, deadline):
        first, *others = super().exchange(broadcasts, deadline)
        if "moments" in first.values:
            lie = {**first.values, "moments": self.lie(first.values["moments"])}
            first = Update(first.run_id, first.round, first.client_id, lie)
        return [first, *others]


def test_a_lie_that_is_found_names_the_client():
    with pytest.raises(ClientError, match=r"client 0.*second moments"):
        run_rounds(Lying(make_clients(), lambda moments: -moments), METRIC)


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e6, 1e200, 1e306])
def test_a_lie_that_is_not_found_bends_no_certificate(size):
    """Any positive semidefinite matrix passes without limits; it only makes other points."""
    honest = run_rounds(InProcess(make_clients()), Bundle(), tol=1e-6)

    def lie(moments):
        direction = np.array([1.0, 2.0, 3.0, 4.0, 0.0])  # the intercept's mass is known
        return (size * np.outer(direction, direction))[np.triu_indices(WIDTH)]

    result = run_rounds(Lying(make_clients(), lie), METRIC, tol=1e-6)
    assert result.gap <= 1e-6
    assert result.lower_bound <= honest.objective
    assert honest.lower_bound <= result.objective


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-150, 1.0, 1e150]))
def test_no_metric_is_steeper_than_its_width_allows(seed, size):
    rows = np.random.default_rng(seed).normal(size=(2, WIDTH))
    metric = metric_of(size * (rows.T @ rows)[np.triu_indices(WIDTH)])
    values = np.linalg.eigvalsh(metric.matrix)
    assert metric.least <= values[0]
    assert values[-1] <= (1 + 100 * WIDTH) * values[0] * (1 + 1e-9)


# --- a run ---


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_the_optimum_is_the_same(norm):
    plain = run_rounds(InProcess(make_clients(norm=norm)), Bundle(), tol=1e-7)
    for n_points in (1, 2, 4, 6):
        method = Bundle(metric="second-moments", points_per_round=n_points)
        result = run_rounds(InProcess(make_clients(norm=norm)), method, tol=1e-7)
        assert result.gap <= 1e-7
        assert result.objective == pytest.approx(plain.objective, rel=2e-7)


def test_moments_travel_once_and_are_counted():
    """Half a matrix of float64 up, in the first round, and nothing after it."""
    plain = run_rounds(InProcess(make_clients()), Bundle(), tol=0.0, max_rounds=3)
    asked = run_rounds(InProcess(make_clients()), METRIC, tol=0.0, max_rounds=3)
    more = [a.bytes_up - b.bytes_up for a, b in zip(asked.history, plain.history, strict=True)]
    numbers = 3 * 8 * WIDTH * (WIDTH + 1) // 2
    assert numbers <= more[0] <= numbers + 3 * 100  # a name and a shape each
    assert more[1:] == [0, 0]


def test_secure_sums_give_the_open_sums_metric():
    """Masked sums are exact to 2^-64, so the metric is that of the clients' weighted moments."""
    clients = make_clients()
    seen = []
    sums = SecureSum(InProcess(clients))
    exchange = sums.exchange

    def watched(broadcasts, deadline):
        answers = exchange(broadcasts, deadline)
        seen.extend(answers)
        return answers

    sums.exchange = watched
    result = run_rounds(sums, sums.method(METRIC), tol=1e-4)
    expected = sum(packed_moments(client) for client in clients) / len(clients)
    np.testing.assert_allclose(seen[0].values["moments"], expected, rtol=1e-12)
    in_the_open = run_rounds(
        InProcess(clients), Bundle(cuts="summed", metric="second-moments"), tol=1e-4
    )
    assert result.gap <= 1e-4
    assert result.objective == pytest.approx(in_the_open.objective, rel=2e-4)
    assert result.n_rounds <= in_the_open.n_rounds + 2


class Killed(Exception):  # noqa: N818
    pass


@pytest.mark.parametrize("round_", [1, 2, 4])
def test_a_resumed_run_has_the_same_bits(round_, tmp_path):
    method = Bundle(metric="second-moments", points_per_round=4)
    settings = {"tol": 0.0, "max_rounds": 6, "run_id": "one"}
    whole = run_rounds(InProcess(make_clients()), method, **settings)

    def kill(record, model):
        if record.round == round_:
            raise Killed

    killed = InProcess(make_clients())
    folder = CheckpointFolder(tmp_path, killed)
    with pytest.raises(Killed):
        run_rounds(killed, method, checkpoint=folder, callbacks=[kill], **settings)
    again = InProcess(make_clients())
    folder = CheckpointFolder(tmp_path, again)
    resumed = run_rounds(again, method, resume=folder.latest(), **settings)
    assert resumed.model.tobytes() == whole.model.tobytes()
    assert resumed.lower_bound == whole.lower_bound


def test_a_client_that_is_forgotten_takes_the_metric_with_it():
    clients = make_clients()
    federation = Federation([client.profile for client in clients], np.full(3, 1 / 3))
    state = METRIC.start(federation)
    moments = packed_moments(clients[0])
    assert METRIC.forget(federation, replace(state, moments=moments), 0).moments.size == 0


# --- settings ---


@pytest.mark.parametrize(
    ("settings", "width", "asked"),
    [
        ({}, 500, False),
        ({"metric": "second-moments"}, 2, True),
        ({"metric": "second-moments"}, 1001, False),
        ({"metric": "auto"}, 99, False),
        ({"metric": "auto"}, 100, True),
        ({"metric": "auto", "cuts": "summed"}, 2, True),
    ],
)
def test_when_moments_are_asked_for(settings, width, asked):
    X = np.random.default_rng(0).random((2, width))
    problem = make_client("a", X, [1.0, -1.0], epsilon=0.1)
    method = Bundle(**settings)
    federation = Federation([problem.profile], np.ones(1))
    form = method.expects(federation, method.ask(federation, method.start(federation), 0))
    assert ("moments" in form) == asked


@pytest.mark.parametrize("wrong", [{"metric": "euclidean"}, {"points_per_round": 7}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        FDRSVC(**wrong).fit([[0.0], [1.0]], [0, 1], clients=[0, 1])


def test_fdrsvc_takes_fewer_rounds_with_more_points():
    parts = make_parts(200)
    X = np.concatenate([X for X, _ in parts])
    y = np.concatenate([y for _, y in parts])
    clients = np.repeat(np.arange(len(parts)), 200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = FDRSVC(tol=1e-6).fit(X, y, clients=clients)
        more = FDRSVC(tol=1e-6, points_per_round=6, metric="second-moments")
        more.fit(X, y, clients=clients)
    assert more.gap_ <= 1e-6
    assert more.n_iter_ < plain.n_iter_
