"""Short versions of what the trust report measures: faulty updates, honest ones, attacks."""

import numpy as np

from fdrsvm.experiments.trust.attacks import ATTACKS, attacks, format_attacks
from fdrsvm.experiments.trust.faulty_updates import FAULTS, faulty_updates, format_faulty
from fdrsvm.experiments.trust.honest_updates import format_honest, honest_updates
from fdrsvm.experiments.trust.seven_clients import seven_clients


def test_all_fifteen_faulty_updates_are_stopped():
    found = faulty_updates()
    assert len(FAULTS) == 15
    assert found.n_stopped == 15, found.reasons
    assert found.rounds_lost == 0
    text = format_faulty(found)
    assert "15 of 15 stopped" in text
    assert text.count("| stopped") == 15 * 6


def test_no_honest_update_is_rejected():
    found = honest_updates(1500, seed=11)
    assert found.n_updates >= 1500
    assert found.n_rejected == 0, found.rejections
    assert set(found.by_method) >= {"bundle", "admm", "subgradient"}
    assert "**0** |" in format_honest(found)


def test_an_attacker_costs_our_methods_little_and_a_plain_mean_much():
    chosen = ("bundle", "FedAvg, trimmed mean", "FedAvg, plain mean")
    rows = attacks(("bcw",), chosen, seeds=(0,))
    assert len(rows) == len(chosen) * len(ATTACKS)
    one_row = 100.0 / len(seven_clients("bcw").y_test)
    for row in rows:
        if row.defence == "FedAvg, plain mean":
            assert row.lost > 20.0, row
        else:
            assert row.lost <= 2.0 * one_row + 1e-9, row
    assert format_attacks(rows).count("\n") == 2 + len(chosen)


def test_the_accuracy_of_nothing_is_that_of_one_class():
    clients = seven_clients("bcw")
    nothing = clients.accuracy(np.full(clients.X_test.shape[1] + 1, np.nan))
    assert nothing == 100.0 * np.mean(clients.y_test == -1.0)
