"""Short versions of what the trust report measures: faulty updates, honest ones, the screen."""

import warnings

import numpy as np
from benchmarks.trust import (
    faulty_updates,
    honest_excess,
    honest_updates,
    screening_cost,
)
from benchmarks.trust.seven_clients import seven_clients

from fdrsvm import ConvergenceWarning
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import ClientProfile
from fdrsvm.federated.rounds import run_rounds


def test_all_fifteen_faulty_updates_are_stopped():
    found = faulty_updates.measure()
    assert len(faulty_updates.FAULTS) == 15
    assert found.n_stopped == 15, found.reasons
    assert found.rounds_lost == 0
    text = faulty_updates.to_markdown(found)
    assert "15 of 15 stopped" in text
    assert text.count("| stopped") == 15 * 6


def test_no_honest_update_is_rejected():
    found = honest_updates.honest_updates(1500, seed=11)
    assert found.n_updates >= 1500
    assert found.n_rejected == 0, found.rejections
    assert set(found.by_method) >= {"bundle", "admm", "subgradient"}
    assert "**0** |" in honest_updates.to_markdown(found)


def test_honest_answers_keep_to_the_rules_up_to_rounding():
    """What clients sum up are at most some hundred numbers: a few thousand units of rounding."""
    found = honest_updates.honest_updates(500, seed=3)
    assert len(found.excess) == 10
    assert all(far <= 1e-12 for _, far in found.excess.values()), found.excess
    assert sum(found.by_limits.values()) == found.n_updates
    text = honest_updates.to_markdown(found)
    assert all(rule in text for rule in found.excess)


def test_an_excess_over_a_rule_is_found():
    profile = ClientProfile("a", 10, 2, False, "linf", 0.1, 0.1, 0.1)
    limits = Limits.checked(1.0, 2)
    point = np.array([[0.5, 0.0]])
    honest = {
        "risks": np.array([0.8]),
        "constants": np.array([1.0]),
        "slopes": np.array([[-0.5, 0.2]]),
        "norm_weights": np.array([0.1]),
    }
    assert excess_of(profile, limits, point, honest) == {}
    wrong = {
        "constant at most loss(0)": {"constants": np.array([1.5]), "risks": np.array([1.3])},
        "constant at least 0": {"constants": np.array([-0.1]), "risks": np.array([0.5])},
        "slope within the limits": {"slopes": np.array([[-0.5, 1.2]])},
        "norm weight at most floor": {"norm_weights": np.array([0.2]), "risks": np.array([0.85])},
        "slope at most constant times limits": {"constants": np.array([0.1])},
        "risk at least that of the best rows": {"risks": np.array([0.5])},
        "risk at most that of the worst rows": {"risks": np.array([1.6])},
        "cut at most risk, all rounds": {"risks": np.array([0.79])},
        "cut touches risk": {"risks": np.array([0.9])},
        "cut and what it leaves at most risk": {
            "constants": np.array([0.5]),
            "risks": np.array([0.5]),
        },
    }
    for rule, change in wrong.items():
        assert rule in excess_of(profile, limits, point, {**honest, **change})


def excess_of(profile, limits, points, values):
    said = honest_excess.gather([(points, values)], touching=True)
    found = honest_excess.excesses(profile, limits, said, boxed=False)
    return {rule: both for rule, both in found.items() if max(both) > 1e-12}


def test_the_screen_is_timed_without_a_change_to_the_run():
    problems, limits = seven_clients("bcw").training()
    result, seconds, share = screening_cost._run(problems, limits, "SM")
    method, n_rounds = screening_cost._METHODS["SM"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = run_rounds(InProcess(problems), method, max_rounds=n_rounds, limits=limits)
    np.testing.assert_array_equal(result.model, plain.model)
    assert seconds > 0.0
    assert 0.0 < share < 1.0


def test_the_accuracy_of_nothing_is_that_of_one_class():
    clients = seven_clients("bcw")
    nothing = clients.accuracy(np.full(clients.X_test.shape[1] + 1, np.nan))
    assert nothing == 100.0 * np.mean(clients.y_test == -1.0)
