"""Going on without a client: what counts from then on is what the others say, and it is said."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from fdrsvm import LeftOutWarning, QuorumError
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.federated import ADMM, Bundle, CheckpointFolder, InProcess, run_rounds
from fdrsvm.federated.checkpoint import read_checkpoint
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.methods import ALGORITHMS, FedAvg, OneVsRest, Subgradient
from fdrsvm.federated.methods.one_vs_rest import OneVsRestProblem
from fdrsvm.federated.rounds import Stop
from fdrsvm.federated.secure.secure_sums import SecureSum
from tests.federated.cases import (
    Absent,
    Tampered,
    assert_same_bits,
    blobs,
    gone,
    problems,
    with_values,
)
from tests.federated.reference import reference_optimum
from tests.federated.test_agreement import assert_certified, true_objective

BAD = "client-1"
METHODS = {
    "bundle": Bundle(),
    "summed": Bundle(cuts="summed"),
    "admm": ADMM(rho=0.05),
    "subgradient": Subgradient(step_size=0.5),
}
OTHERS = np.array([1.0, 0.0, 1.0, 1.0]) / 3.0
ALWAYS = range(1, 10_000)


def lie(update):
    """A cut far above the risk of the same answer."""
    return with_values(update, constants=update.values["constants"] + 5.0)


def train(transport, method, **settings):
    """A run under "drop" whose warnings are not of interest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run_rounds(
            transport,
            method,
            **{"on_fault": "drop", "run_id": "a-run", "tol": 1e-6, "max_rounds": 40, **settings},
        )


def lying(clients, change=lie, rounds=ALWAYS):
    return Tampered(InProcess(problems(clients)), BAD, change, rounds=rounds)


def assert_certified_for_the_others(clients, result):
    """From the record on in which the client is left out; nothing is said of its own risk."""
    assert np.isnan(result.risks[1])
    since = tuple(record for record in result.history if record.left_out)
    risks = np.where(OTHERS > 0.0, result.risks, 0.0)
    of_others = replace(result.certificate, risks=risks)
    assert_certified(clients, OTHERS, replace(result, history=since, certificate=of_others))
    assert result.objective < np.inf


@pytest.mark.parametrize("change", [lie, gone], ids=["caught", "absent"])
@pytest.mark.parametrize("method", METHODS)
def test_who_is_caught_or_absent_every_round_is_left_out(method, change):
    clients = blobs(4)
    result = train(lying(clients, change), METHODS[method])
    assert result.left_out == {BAD: 3}
    assert [record.left_out for record in result.history[:3]] == [(), (), (BAD,)]
    assert all(record.left_out == (BAD,) for record in result.history[3:])
    assert all(not record.faults for record in result.history[3:])
    np.testing.assert_allclose(result.federation.alphas, OTHERS, rtol=1e-15)
    assert_certified_for_the_others(clients, result)


@pytest.mark.parametrize("method", ["bundle", "summed"])
def test_the_bundle_then_ends_at_the_optimum_of_the_others(method):
    clients = blobs(4)
    result = train(lying(clients), METHODS[method], max_rounds=300)
    assert result.reason is Stop.TOL
    others = [clients[g] for g in (0, 2, 3)]
    alone = train(InProcess(problems(others)), METHODS[method], max_rounds=300)
    assert result.objective == pytest.approx(alone.objective, rel=2e-6)


@pytest.mark.parametrize("method", METHODS)
def test_who_leaves_later_takes_its_words_along(method):
    """From round 6 on there is no answer: cuts and risks of before do not count any more."""
    clients = blobs(4)
    result = train(lying(clients, gone, range(6, 10_000)), METHODS[method])
    if result.n_rounds >= 8:  # the bundle may be done before
        assert result.left_out == {BAD: 8}
        assert_certified_for_the_others(clients, result)


def test_a_liar_that_is_honest_in_between_is_left_out_too():
    result = train(lying(blobs(4), lie, range(1, 10_000, 2)), Bundle(), tol=1e-9)
    assert result.left_out == {BAD: 5}


def test_who_comes_back_in_time_stays():
    clients = blobs(4)
    away = Absent(InProcess(problems(clients)), lambda r, name: name == BAD and r % 3 != 0)
    result = train(away, Bundle(), max_rounds=200)
    assert result.left_out == {}
    assert result.reason is Stop.TOL
    assert_certified(clients, np.full(4, 0.25), result)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_number_of_rounds_is_the_users(rounds):
    result = train(lying(blobs(4)), Bundle(), leave_out_after=rounds)
    assert result.left_out == {BAD: rounds}


def test_without_it_nobody_is_left_out_and_a_run_that_cannot_get_on_stops():
    result = train(lying(blobs(4)), Bundle(), leave_out_after=None, max_rounds=200)
    assert result.left_out == {}
    assert result.reason is Stop.STALLED
    assert result.n_rounds < 200
    assert result.gap == np.inf


def test_stop_leaves_nobody_out():
    transport = lying(blobs(4), gone)
    result = train(transport, Bundle(), on_fault="stop", quorum=3, max_rounds=12)
    assert result.left_out == {}


def test_it_is_said_where_the_run_was_called():
    with pytest.warns(LeftOutWarning, match="without 'client-1' after round 3") as caught:
        run_rounds(lying(blobs(4)), Bundle(), on_fault="drop", max_rounds=60)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("quorum", [None, 4])
def test_a_quorum_is_kept(quorum):
    """More than half by default: of two clients both."""
    clients = blobs(2 if quorum is None else 4)
    with pytest.raises(QuorumError, match=BAD):
        train(lying(clients), Bundle(), quorum=quorum)


def test_a_resumed_run_goes_on_without_it_and_with_the_same_bits(tmp_path):
    for name, method in METHODS.items():
        whole = train(lying(blobs(4)), method, max_rounds=9, tol=0.0)
        for n_rounds in (2, 3, 5):
            folder = tmp_path / f"{name}-{n_rounds}"
            inner = InProcess(problems(blobs(4)))
            checkpoints = CheckpointFolder(folder, inner)
            first = Tampered(inner, BAD, lie, rounds=ALWAYS)
            train(first, method, max_rounds=n_rounds, tol=0.0, checkpoint=checkpoints)
            again = InProcess(problems(blobs(4)))
            snapshot = CheckpointFolder(folder, again).latest()
            second = Tampered(again, BAD, lie, rounds=ALWAYS)
            resumed = train(second, method, max_rounds=9, tol=0.0, resume=snapshot)
            assert_same_bits(whole, resumed)
            assert resumed.left_out == {BAD: 3}


def test_several_models_lose_it_together():
    clients = blobs(4)
    turned = [client.with_(y=-client.y) for client in clients]
    pairs = zip(problems(clients), problems(turned), strict=True)
    transport = InProcess([OneVsRestProblem(pair) for pair in pairs])

    def one_lie(update):
        name = next((n for n in update.values if n.endswith("constants")), None)
        return with_values(update, **{name: update.values[name] + 5.0}) if name else update

    tampered = Tampered(transport, BAD, one_lie, rounds=ALWAYS)
    result = train(tampered, OneVsRest(Bundle(), 2, tol=1e-6), max_rounds=100)
    assert result.left_out == {BAD: 3}
    assert result.gap <= 1e-6


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"private-subgradient"}))
def test_every_method_goes_on(name):
    method = ALGORITHMS[name]()
    result = train(lying(blobs(4), gone, range(4, 10_000)), method, max_rounds=10, tol=0.0)
    assert result.left_out == {BAD: 6}
    assert np.isfinite(result.newest).all()
    assert np.isfinite(result.objective)


def test_a_baselines_certificate_is_that_of_the_others():
    """After a client has left, J is the mean over the rest, at a model of the rounds since."""
    clients = blobs(4)
    result = train(lying(clients, gone, range(4, 10_000)), FedAvg(), max_rounds=10, tol=0.0)
    total = 0.0
    for weight, client in zip(OTHERS, clients, strict=True):
        margins = client.y * (client.X @ result.model)
        total += weight * (np.maximum(0.0, 1.0 - margins).mean())
        total += weight * client.epsilon * result.model @ result.model
    assert result.objective == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("method", [Bundle(), ADMM(rho=0.05), Subgradient(step_size=0.5)])
def test_sums_go_on_without_it_and_are_certified_for_the_others(method, tmp_path):
    """The same model as without secure aggregation among those who remain, up to rounding."""
    clients = blobs(4)
    largest = np.max([np.abs(client.X).max(axis=0) for client in clients], axis=0)
    limits = Limits.checked(largest, largest.size)

    def run(n_rounds, folder):
        inner = InProcess(problems(clients))
        checkpoints = CheckpointFolder(folder, inner)
        away = Absent(inner, lambda r, name: name == BAD and r >= 3)
        sums = SecureSum(away, quorum=3, on_fault="drop", limits=limits, leave_out_after=2)
        snapshot = checkpoints.latest()
        settings = {"checkpoint": checkpoints, "resume": snapshot, "limits": limits}
        return train(sums, sums.method(method), **settings, max_rounds=n_rounds, tol=0.0)

    result = run(12, tmp_path / "whole")
    run(6, tmp_path / "halves")
    resumed = run(12, tmp_path / "halves")
    assert resumed.left_out == result.left_out
    np.testing.assert_allclose(resumed.model, result.model, rtol=1e-9, atol=1e-12)
    assert result.left_out == {BAD: 4}
    assert [record.left_out for record in result.history[2:5]] == [(), (BAD,), (BAD,)]
    others = [clients[g] for g in (0, 2, 3)]
    truth = true_objective(others, np.full(3, 1.0 / 3.0), result.model)
    assert result.objective == pytest.approx(truth, rel=1e-9)
    optimum = reference_optimum(others, np.full(3, 1.0 / 3.0))
    assert result.lower_bound <= optimum.high * (1.0 + 1e-9)
    assert result.objective >= optimum.low


def test_a_resumed_run_without_two_clients_scales_weights_as_the_unbroken_one(tmp_path):
    """One after the other or both at once, the weights have the same bits (7 equal ones do not)."""
    clients = blobs(7)

    def transport():
        first = Tampered(InProcess(problems(clients)), "client-1", gone, rounds=ALWAYS)
        return Tampered(first, "client-4", gone, rounds=range(3, 10_000))

    keep = CheckpointFolder(tmp_path, keep=10_000)
    whole = train(transport(), Subgradient(step_size=0.5), checkpoint=keep, max_rounds=12, tol=0.0)
    assert whole.left_out == {"client-1": 3, "client-4": 5}
    snapshot, _ = read_checkpoint(tmp_path / "round-000007.safetensors")
    resumed = train(
        transport(), Subgradient(step_size=0.5), resume=snapshot, max_rounds=12, tol=0.0
    )
    assert resumed.federation.alphas.tobytes() == whole.federation.alphas.tobytes()
    assert_same_bits(resumed, whole)
