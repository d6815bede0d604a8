"""Exact risks give away what a blur hides, and a grid takes that back."""

import numpy as np
import pytest

from fdrsvm.core.vectors import dual_norm
from fdrsvm.federated import ADMM, InProcess, Subgradient, make_client, run_rounds
from fdrsvm.federated.client import rounded_up
from fdrsvm.federated.methods import FedAvg
from fdrsvm.federated.problem import evaluate
from fdrsvm.privacy import Recorded, audit_leak, audit_sums, read_recording
from fdrsvm.privacy.observations import Risks, observe
from fdrsvm.privacy.pieces import pieces_of

UNIT = (0.0, 1.0)
WORST = 1e-3


def risks_of(problem, points):
    """What a server sees of a client at some models: risks, and no cut."""
    w = points[:, : problem.profile.n_features]
    return Risks(
        points,
        np.array([problem.risk_of(point) for point in points]),
        np.array([dual_norm(one, problem.profile.norm) for one in w]),
        np.full(len(points), problem.profile.floor),
    )


def client(rng, n=30, n_features=3, **settings):
    X = rng.random((n, n_features))
    y = np.where(X @ np.ones(n_features) + 0.3 * rng.normal(size=n) > 1.5, 1.0, -1.0)
    return make_client("a", X, y, kappa=np.inf, **settings)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_piece_is_the_cut_that_nobody_sent(rng, norm, fit_intercept):
    """Against the touching cuts themselves, from models along a slow walk."""
    problem = client(rng, norm=norm, fit_intercept=fit_intercept)
    steps = rng.normal(size=(120, problem.width)) * 0.004
    points = np.cumsum(np.vstack([np.full((1, problem.width), 0.6), steps]), axis=0)
    found = pieces_of(risks_of(problem, points), 0.0, WORST)
    assert len(found.states) > 20
    assert found.errors.max() <= WORST
    cuts = evaluate(problem, found.points)
    true = np.column_stack([-cuts["slopes"], cuts["constants"]])
    is_right = np.abs(found.states - true).max(axis=1) <= found.errors
    assert is_right.mean() > 0.8  # a wrong one may lie below all risks that were seen


def test_as_many_models_as_numbers_are_needed_in_one_piece(rng):
    """Four near models have the piece's three slopes and its constant; three do not."""
    problem = client(rng)
    points = 0.1 + 1e-3 * rng.random((4, 3))  # here every row is active
    found = pieces_of(risks_of(problem, points), 0.0, WORST)
    np.testing.assert_allclose(found.states[:, -1], 1.0, atol=1e-9)
    assert len(found.states) == 4
    assert pieces_of(risks_of(problem, points[:3]), 0.0, WORST).states.shape == (0, 4)


def test_a_grid_leaves_no_piece_of_use(rng):
    """An error of the grid, over the length of the steps, is many rows."""
    problem = client(rng)
    points = np.cumsum(np.vstack([np.full((1, 3), 0.6), rng.normal(size=(120, 3)) * 0.004]), axis=0)
    exact = risks_of(problem, points)
    assert len(pieces_of(exact, 0.0, WORST / 30).states) > 20
    rounded = exact._replace(values=rounded_up(exact.values, 1e-4))
    assert len(pieces_of(rounded, 1e-4, WORST / 30).states) == 0
    # Nor does it help to take the numbers for exact: what comes out is no cut of the client.
    for state, point, _ in zip(*pieces_of(rounded, 0.0, WORST / 30), strict=True):
        cuts = evaluate(problem, point[None])
        assert np.abs(state[:-1] + cuts["slopes"][0]).max() > WORST / 30


def four_clients(rng, **settings):
    clients = []
    for g in range(4):
        X = rng.random((60, 3))
        y = np.where(X @ np.ones(3) + 0.3 * rng.normal(size=60) > 1.5, 1.0, -1.0)
        clients.append(make_client(f"client {g}", X, y, kappa=np.inf, **settings))
    return clients


def recorded(folder, clients, method, rounds):
    run_rounds(Recorded(InProcess(clients), folder), method, max_rounds=rounds, tol=0.0)
    rows = {one.profile.client_id: one.exact.X for one in clients}
    return read_recording(folder), rows


@pytest.mark.parametrize(
    ("method", "blur"), [(ADMM(), 0), (Subgradient(step_size=0.5), 2)], ids=["admm", "blurred sm"]
)
def test_risks_give_away_rows_past_a_blur_and_out_of_sums_unless_on_a_grid(tmp_path, method, blur):
    found = {}
    for resolution in (0.0, 1e-4):
        clients = four_clients(np.random.default_rng(4), blur=blur, resolution=resolution)
        recording, rows = recorded(tmp_path / str(resolution), clients, method, 300)
        audit = audit_sums(recording, rows, limits=UNIT, resolution=resolution)
        found[resolution] = (audit.n_from_cuts, audit.n_recovered)
    assert found[0.0][0] < found[0.0][1]
    assert found[1e-4] == (0, 0)


def test_baselines_risks_are_read_without_their_penalty(tmp_path, rng):
    """J_g has epsilon ||w||^2 in place of the norm term; less that it is the mean loss."""
    problem = client(rng, n=20)
    method = FedAvg(learning_rate=0.01, random_state=0)
    recording, _ = recorded(tmp_path, [problem], method, 60)
    (seen,) = observe(recording.of_client("a"), problem.profile, np.array([0.05]))
    X, y = problem.exact.X, problem.exact.y
    losses = np.maximum(1.0 - y * (seen.risks.points @ X.T), 0.0).mean(axis=1)
    np.testing.assert_allclose(seen.risks.values, losses, atol=1e-14)
    assert not seen.risks.norm_weights.any()


def test_the_server_of_summed_admm_does_not_know_where_cuts_were_made(tmp_path, rng):
    recording, rows = recorded(tmp_path, four_clients(rng), ADMM(), 5)
    leak = audit_sums(recording, rows, limits=UNIT).clients[0]
    assert leak.n_cuts == 6
    alone = audit_leak(recording, rows, limits=UNIT)
    assert all(one.n_cuts == 6 for one in alone.clients)
