"""Audits say how many rows a run gave away, and the defences bring that to none."""

from dataclasses import replace

import numpy as np
import pytest

from fdrsvm import AdditiveMap
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.federated import ADMM, Bundle, InProcess, Subgradient, run_rounds
from fdrsvm.federated.messages import encode
from fdrsvm.federated.methods import OneVsRest, OneVsRestProblem, PrivateSubgradient
from fdrsvm.federated.moments import unpacked
from fdrsvm.federated.problem import make_client
from fdrsvm.privacy import Recorded, audit_leak, audit_sums, read_recording
from fdrsvm.privacy.leak_audit import _summed
from fdrsvm.privacy.leak_trial import audit_folder, half_of, leak_table, run_and_audit
from fdrsvm.privacy.recording import Recording
from tests.privacy.cases import breast_cancer

UNIT = (0.0, 1.0)


@pytest.fixture(scope="module")
def parts():
    return breast_cancer(4)


@pytest.fixture(scope="module")
def folder(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    clients = [make_client(name, X, y, kappa=np.inf) for name, (X, y) in parts.items()]
    run_rounds(Recorded(InProcess(clients), folder), Subgradient(), max_rounds=80, tol=0)
    return folder


@pytest.fixture(scope="module")
def recording(folder):
    return read_recording(folder)


@pytest.fixture(scope="module")
def rows(parts):
    return {name: X for name, (X, _) in parts.items()}


def true_rows(claims, X):
    """How many rows of X are among the claims, by a plain double loop."""
    return sum(
        any(
            (abs(abs(row) - abs(claim)) <= 1e-3 * abs(X).max(axis=0)).all() for claim in claims.rows
        )
        for row in X
    )


def test_counts_are_those_of_a_plain_comparison(recording, rows):
    audit = audit_leak(recording, rows, limits=UNIT)
    for client in audit.clients:
        X = rows[client.client_id]
        assert client.n_rows == len(X)
        assert client.n_cuts == 81
        assert client.n_recovered == true_rows(client.claims, X)
        assert client.share == client.n_recovered / len(X)
        assert client.precision == client.n_right / client.n_claimed
    assert audit.n_rows == 398
    assert audit.n_recovered == sum(client.n_recovered for client in audit.clients) > 20
    assert audit.share == audit.n_recovered / 398
    assert 0.9 <= audit.precision <= 1.0


def test_labels_are_recovered_too(recording, parts):
    for client in audit_leak(recording, limits=UNIT).clients:
        X, y = parts[client.client_id]
        for row, label in zip(*client.claims, strict=True):
            hits = np.abs(X - row).max(axis=1) < 1e-4
            if hits.any():
                assert y[hits].tolist() == [label]


def test_without_true_rows_claims_are_counted_only(recording):
    audit = audit_leak(recording, limits=UNIT)
    assert audit.n_claimed > 20
    assert audit.n_recovered is audit.share is audit.precision is None
    assert {client.precision for client in audit.clients} == {None}


def test_a_folder_is_audited_and_printed(folder, recording, rows):
    audit = audit_folder(folder, rows, limits=UNIT)
    assert audit.n_recovered == audit_leak(recording, rows, limits=UNIT).n_recovered
    lines = leak_table(audit)
    assert lines[0].split("  ")[0] == "client"
    headings = ["rows", "cuts", "claimed", "from cuts", "recovered", "share"]
    assert [name.strip() for name in lines[0].split("  ") if name.strip()][1:] == headings
    assert lines[-1].split()[:3] == ["in", "all", "398"]
    assert lines[-1].endswith(f"{100 * audit.share:.1f} %")
    assert len({len(line) for line in lines}) == 1
    ungraded = leak_table(audit_folder(folder))
    assert ungraded[1].split()[-3:] == ["-", "-", "-"]
    assert len(leak_table(replace(audit, clients=audit.clients[:1]))) == 2


def test_who_has_half_of_the_rows_is_counted_the_others(recording, rows, parts):
    known = half_of(parts)
    audit = audit_leak(recording, rows, limits=UNIT, known_rows=known)
    for client in audit.clients:
        X, (half, _) = rows[client.client_id], known[client.client_id]
        others = np.array([row for row in X if not (half == row).all(axis=1).any()])
        assert client.n_rows == len(X) - len(X) // 2 == len(others)
        assert client.n_recovered == true_rows(client.claims, others)
        # Nothing is claimed that the attacker has.
        assert true_rows(client.claims, half) == 0
    assert audit.n_recovered > 10
    (of_sums,) = audit_sums(recording, rows, limits=UNIT, known_rows=known).clients
    assert of_sums.n_rows == sum(len(X) - len(X) // 2 for X in rows.values())
    lines = leak_table(audit_leak(recording, rows, limits=UNIT), audit)
    headings = [name.strip() for name in lines[0].split("  ") if name.strip()]
    assert headings[-3:] == ["other half", "its recovered", "its share"]
    assert len(set(headings)) == len(headings)
    assert lines[-1].split()[-3:] == [f"{audit.n_recovered}", f"{100 * audit.share:.1f}", "%"]
    assert len({len(line) for line in lines}) == 1


def test_sums_are_the_weighted_sums(recording, rows):
    """Three clients without weight: the sum is the fourth client, and so is what it gives away."""
    weights = {name: float(name == "client 2") for name in rows}
    (of_sum,) = audit_sums(recording, rows, client_weights=weights, limits=UNIT).clients
    alone = audit_leak(recording, rows, limits=UNIT).clients[2]
    assert of_sum.client_id == "all"
    assert of_sum.n_recovered == alone.n_recovered
    np.testing.assert_allclose(of_sum.claims.rows, alone.claims.rows, atol=1e-9)


@pytest.mark.parametrize("silent", [None, "b"])
def test_moments_of_sums_count_where_all_clients_gave_them(silent, rng, tmp_path):
    X = rng.random((40, 3))
    y = rng.choice([-1.0, 1.0], 40)
    names = ("a", "b", "c")
    problems = [make_client(name, X, y, moments=name != silent) for name in names]
    method = Bundle(metric="second-moments")
    run_rounds(Recorded(InProcess(problems), tmp_path), method, max_rounds=1, tol=0.0)
    exchanges = _summed(read_recording(tmp_path), np.array([0.5, 0.25, 0.25]))
    sent = [update.values["moments"] for _, update in exchanges if "moments" in update.values]
    if silent:
        assert sent == []
    else:
        np.testing.assert_allclose(unpacked(sent[0]), X.T @ X / 40, rtol=1e-12)


def test_sums_leak_and_sums_of_blurred_cuts_do_not(parts):
    """Four clients with eight blurred rows each have more of them than a cut has numbers, 31."""
    plain = run_and_audit(parts, Subgradient(), rounds=120, limits=UNIT)
    assert plain.of_sums.n_recovered > 10
    blurred = run_and_audit(parts, Subgradient(), rounds=120, limits=UNIT, blur=8)
    assert blurred.of_sums.n_recovered == 0
    assert blurred.of_sums.clients[0].n_cuts == 121  # there was something to attack


@pytest.mark.parametrize("method", [Bundle(), Bundle(cuts="summed"), ADMM()], ids=repr)
def test_every_method_can_be_audited(parts, method):
    audits = run_and_audit(parts, method, rounds=12, limits=UNIT, fit_intercept=True)
    assert audits.result.n_rounds == 12
    for audit in (audits.of_clients, audits.of_sums):
        assert all(client.n_cuts >= 12 for client in audit.clients)
        assert 0 <= audit.n_recovered <= audit.n_rows == 398


@pytest.mark.parametrize("features", ["additive", AdditiveMap(n_knots=2, pairs="all"), "fourier"])
def test_what_is_recovered_of_a_map_are_sensors(features, rng):
    parts = {}
    for name in ("east", "north", "west"):
        X = rng.random((30, 4))
        parts[name] = X, np.where(np.abs(X[:, 0] - 0.5) > 0.25 * rng.random(30), 1.0, -1.0)
    given = {"rounds": 60, "limits": UNIT, "features": features, "kappa": np.inf}
    audits = run_and_audit(parts, Subgradient(step_size=3.0), **given)
    for client in audits.of_clients.clients:
        X, y = parts[client.client_id]
        assert client.claims.rows.shape[1] == 4
        assert client.n_recovered == true_rows(client.claims, X) > 0
        assert client.precision == 1.0  # sums of rows are no features of sensors
        labels = [y[np.abs(X - row).max(axis=1).argmin()] for row in client.claims.rows]
        assert client.claims.labels.tolist() == labels
    assert 0 < audits.of_sums.n_recovered <= 90
    half = audits.half_known_of_clients
    assert [client.n_rows for client in half.clients] == [15] * 3
    assert half.n_recovered > 0


def test_a_map_that_the_recorded_models_do_not_have_is_named(recording):
    with pytest.raises(InvalidInputError, match="must make the 30 features of the recorded models"):
        audit_leak(recording, features=AdditiveMap().over(30))


def test_a_private_run_shows_no_cut(parts):
    method = PrivateSubgradient(noise_multiplier=1.0, radius=6.0, random_state=0)
    audits = run_and_audit(parts, method, rounds=5)
    assert [client.n_cuts for client in audits.of_clients.clients] == [0] * 4
    assert audits.of_clients.n_claimed == audits.of_sums.n_claimed == 0


def test_several_models_are_attacked_one_by_one(rng, tmp_path):
    X = rng.random((40, 3))
    labels = np.argmax(X + 0.1 * rng.normal(size=X.shape), axis=1)
    problem = OneVsRestProblem(
        tuple(make_client("a", X, np.where(labels == k, 1.0, -1.0)) for k in range(3))
    )
    transport = Recorded(InProcess([problem]), tmp_path)
    run_rounds(transport, OneVsRest(Subgradient(), 3), max_rounds=50, tol=0)
    audit = audit_leak(read_recording(tmp_path), {"a": X}, limits=UNIT)
    assert audit.clients[0].n_cuts == 3 * 51
    assert audit.n_recovered > 5


def test_bad_arguments_are_named(recording, rows):
    with pytest.raises(InvalidInputError, match="'client 0' is not there"):
        audit_leak(recording, {})
    with pytest.raises(InvalidInputError, match="must have 30 features"):
        audit_leak(recording, {**rows, "client 1": rows["client 1"][:, :4]})
    alone = Recording(recording.profiles, recording.exchanges[:1])
    with pytest.raises(InvalidInputError, match="can be summed"):
        audit_sums(alone)


@pytest.mark.parametrize(
    "changes",
    [
        {"slopes": np.zeros((1, 4))},
        {"slopes": np.zeros(30)},
        {"slopes": np.full((1, 30), np.nan)},
        {"constants": np.zeros(3)},
        {"constants": None},
        {"own": np.zeros(2)},
        {"squares": np.zeros(3)},
        {"squares": np.zeros(3), "vector": np.zeros(30)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(recording, changes):
    asked, got = recording.exchanges[0]
    values = {name: a for name, a in {**got.values, **changes}.items() if a is not None}
    hostile = Recording(recording.profiles, ((asked, replace(got, values=values)),))
    assert encode(hostile.exchanges[0][1])  # it is a message that a file can hold
    with pytest.raises(CorruptDataError, match="recording"):
        audit_leak(hostile)


def test_a_method_that_is_not_admm_is_refused_for_its_vectors(recording):
    asked, got = recording.exchanges[0]
    asked = replace(asked, values={**asked.values, "rho": np.array(1.0)})
    values = {**got.values, "squares": np.zeros(3), "vector": np.zeros(30)}
    hostile = Recording(recording.profiles, ((asked, replace(got, values=values)),))
    with pytest.raises(CorruptDataError, match="no method of ADMM's kind"):
        audit_leak(hostile)
