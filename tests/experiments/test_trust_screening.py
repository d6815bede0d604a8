"""Short versions of what the trust report measures: faulty updates, honest ones, attacks."""

import numpy as np

from fdrsvm.experiments.trust import attacks, faulty_updates, honest_updates
from fdrsvm.experiments.trust.seven_clients import seven_clients


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


def test_an_attacker_costs_our_methods_little_and_a_plain_mean_much():
    chosen = ("bundle", "FedAvg, trimmed mean", "FedAvg, plain mean")
    found = attacks.attacks(("bcw",), chosen, seeds=(0,))
    assert len(found.rows) == len(chosen) * len(attacks.ATTACKS)
    one_row = 100.0 / len(seven_clients("bcw").y_test)
    for row in found.rows:
        if row.defence == "FedAvg, plain mean":
            assert row.lost > 20.0, row
        else:
            assert row.lost <= 2.0 * one_row + 1e-9, row
    assert attacks.to_markdown(found).count("\n") == 6 + len(chosen)


def test_the_accuracy_of_nothing_is_that_of_one_class():
    clients = seven_clients("bcw")
    nothing = clients.accuracy(np.full(clients.X_test.shape[1] + 1, np.nan))
    assert nothing == 100.0 * np.mean(clients.y_test == -1.0)
