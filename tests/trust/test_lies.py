"""Lying clients really lie, and the judge finds what they bend."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.trust import attacks, lies
from benchmarks.trust.attacks import METHODS, Attacks, stage_of
from benchmarks.trust.faulty_updates import FAULTS
from benchmarks.trust.lies import ATTACKS
from benchmarks.trust.lying import Lying

from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.rounds import run_rounds

N_ROUNDS = 15  # some lies begin in round 5, or once risks are small


def test_there_are_enough_attacks_of_all_kinds():
    assert len(ATTACKS) >= 40
    assert sum(attack.group == "faults" for attack in ATTACKS.values()) == len(FAULTS) == 15
    assert {attack.kind for attack in ATTACKS.values()} == {"illegal", "legal", "absent"}
    assert {len(attack.lies) for attack in ATTACKS.values()} == {1, 2}


def altered(name, method):
    """Answers of liars that are not what they would be from an honest client, in a short run."""
    stage, attack = stage_of("intercept"), ATTACKS[name]
    limits = stage.limits_of(attack.limit)
    made = {
        liar: make(stage.scene(attack, method, liar, limits))
        for liar, make in zip(attack.liars, attack.lies, strict=True)
    }
    transport = Lying(InProcess(stage.problems), made)
    run_rounds(  # without limits: as many lies as possible get through
        transport,
        METHODS[method].algorithm,
        max_rounds=N_ROUNDS,
        tol=0.0,
        quorum=1,
        on_fault="drop",
        leave_out_after=None,
    )
    return transport.n_altered


def is_in_the_profile(name):
    profile = stage_of("intercept").problems[3].profile
    return ATTACKS[name].profile(profile) != profile


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_alters_answers_or_the_profile(name):
    method = (ATTACKS[name].methods or ("SM",))[-1]
    assert is_in_the_profile(name) or altered(name, method) > 0


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_alters_answers_of_every_method(name, method):
    if method in (ATTACKS[name].methods or METHODS):
        assert is_in_the_profile(name) or altered(name, method) > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_liar_who_tells_the_truth_is_an_honest_client(method):
    stage = stage_of("intercept")
    truth = lies.edited(lambda values: {})
    scene = stage.scene(ATTACKS["no loss at all"], method, 3, stage.limits)
    transport = Lying(InProcess(stage.problems), {3: truth(scene)})
    settings = {"max_rounds": N_ROUNDS, "tol": 0.0, "limits": stage.limits}
    found = run_rounds(transport, METHODS[method].algorithm, **settings)
    honest = run_rounds(InProcess(stage.problems), METHODS[method].algorithm, **settings)
    assert transport.n_altered == 0
    # A vector less the model is the dual up to rounding.
    np.testing.assert_allclose(found.newest, honest.newest, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_one_who_lied_goes_on_as_the_server_expects(method):
    """The truth after a lie that was let through: ADMM's dual is the one that the server knows."""
    stage = stage_of("intercept")
    scene = stage.scene(ATTACKS["labels flipped"], method, 3, stage.limits)
    once = lies.timed(lambda turn: turn.broadcast.round == 2, lies.poison(lies.flipped))
    transport = Lying(InProcess(stage.problems), {3: once(scene)})
    found = run_rounds(
        transport,
        METHODS[method].algorithm,
        max_rounds=N_ROUNDS,
        tol=0.0,
        quorum=6,
        on_fault="drop",
        limits=stage.limits,
    )
    assert transport.n_altered == 1
    faults = [fault for record in found.history for fault in record.faults]
    assert all("square" not in fault and "vector" not in fault for fault in faults)


@pytest.mark.parametrize("setting", attacks.SETTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_honest_certificates_are_true(setting, method):
    stage = stage_of(setting)
    found = stage.honest_run(method)
    names = [problem.profile.client_id for problem in stage.problems]
    weights = dict.fromkeys(names, 1.0 / len(names))
    for liars in [(3,), (3, 5)]:
        epsilon = stage.problems[3].profile.epsilon
        known = stage.poisoned(weights, liars, stage.limits, epsilon)
        assert attacks.judge(known, found.model, found.objective, found.lower_bound) == ""


@pytest.mark.parametrize("name", ["labels flipped", "the poison that raises F* most"])
@pytest.mark.parametrize("method", ["bundle", "SM"])
def test_poison_is_neither_named_nor_false(name, method):
    found = stage_of("intercept").attacked(name, method, "stop")
    assert (found.broken, found.named, found.error, found.blamed) == ("", None, "", ())


def test_what_legal_poison_can_do_is_as_documented():
    stage = stage_of("intercept")
    names = [problem.profile.client_id for problem in stage.problems]
    epsilon = stage.problems[3].profile.epsilon
    equal = dict.fromkeys(names, 1.0 / len(names))
    strongest, _ = stage.poisoned(equal, (3,), stage.limits, epsilon).strongest
    honest = stage.honest_run("bundle")
    assert (round(honest.objective, 2), round(strongest, 2)) == (0.12, 0.91)
    poisoned = stage.attacked("the poison that raises F* most", "bundle", "stop")
    accuracy = stage.clients.accuracy(honest.model)
    assert (round(accuracy, 1), round(poisoned.accuracy, 1)) == (97.7, 60.8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("on_fault", ["stop", "drop"])
def test_a_fault_is_named_at_once(method, on_fault):
    found = stage_of("intercept").attacked("fault: NaN", method, on_fault)
    assert found.named == 1
    assert found.blamed == ()
    assert (found.accuracy is None) == (on_fault == "stop")


def test_what_went_wrong_is_counted_and_shown():
    fault, poisoned = (
        stage_of("intercept").attacked(name, "SM", "drop")
        for name in ("fault: NaN", "labels flipped")
    )
    poisoned = replace(poisoned, accuracy=fault.accuracy)  # one yardstick alone is often better
    fine = Attacks((fault, poisoned), {"intercept": {"SM": 95.0}})
    assert fine.holds
    false = replace(fine, runs=(replace(fault, broken="iii"), poisoned))
    assert not false.holds
    assert "**FALSE iii**" in attacks.to_markdown(false)
    assert "**1 false certificates**" in attacks.to_markdown(false)
    blamed = replace(fine, runs=(replace(fault, blamed=("client 0",)), poisoned))
    assert not blamed.holds
    assert "blamed client 0" in attacks.to_markdown(blamed)
    worse = replace(fine, runs=(replace(fault, accuracy=poisoned.accuracy - 1.0), poisoned))
    assert not worse.holds
    unnamed = replace(fine, runs=(replace(fault, named=None), poisoned))
    assert [run.attack for run in unnamed.unnamed] == ["fault: NaN"]
    assert "unnamed, true" in attacks.to_markdown(unnamed)
    wrong = replace(fine, runs=(fault, replace(poisoned, named=2)))
    assert not wrong.holds


@pytest.mark.slow
def test_all_attacks_end_as_claimed():
    assert attacks.measure().holds
