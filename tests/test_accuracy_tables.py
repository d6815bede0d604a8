"""The tables of accuracy are those of the rows that were kept."""

import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import accuracy
from benchmarks.accuracy import CHOSEN, Row, read_rows
from sklearn.neural_network import MLPClassifier

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
import publish_accuracy


def test_the_page_has_the_tables_of_the_rows():
    text = publish_accuracy.PAGE.read_text(encoding="utf-8")
    assert publish_accuracy.page_with_tables(text, read_rows()) == text
    tables = {mark[1] for mark in publish_accuracy.MARKS.findall(text)}
    assert tables == {"goals", "flips", "faults", "conditions"}


def test_all_models_of_a_set_have_the_same_seeds():
    rows = read_rows()
    wanted = {*publish_accuracy.OURS, *publish_accuracy.OTHERS}
    for condition in publish_accuracy.CONDITIONS:
        counted = publish_accuracy.n_seeds(rows, condition)
        for case, count in counted.items():
            seeds = {}
            for row in rows:
                if row[:2] == (case, condition) and row.measure == "accuracy":
                    seeds.setdefault(row.model, []).append(row.seed)
            assert all(sorted(found) == list(range(count)) for found in seeds.values())
            assert wanted - seeds.keys() <= {"additive-pairs"}  # which are for few sensors only


def test_a_goal_that_is_missed_is_written_as_missed():
    assert publish_accuracy.verdict(0.94, 0.94) == "yes"
    assert publish_accuracy.verdict(0.9399, 0.94) == "**no**"


def test_means_are_of_sets_and_not_of_rows():
    rows = [
        Row("pump", "clean", CHOSEN, "accuracy", seed, value)
        for seed, value in enumerate([0.8, 1.0])
    ]
    rows.append(Row("rice", "clean", CHOSEN, "accuracy", 0, 0.5))
    assert publish_accuracy.mean(rows, "clean", CHOSEN) == pytest.approx(0.7)
    only_one = [*rows, Row("rice", "clean", "linear", "accuracy", 0, 0.5)]
    assert np.isnan(publish_accuracy.mean(only_one, "clean", "linear"))


def test_federated_averaging_learns_and_averages(monkeypatch):
    """With one client it is that client's own training, pass by pass."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    monkeypatch.setattr(accuracy, "_ROUNDS", (3,))
    [(_, network)] = accuracy.averaged(X, y, np.zeros(60), (), 1e-3)
    alone = MLPClassifier((), alpha=1e-3, batch_size=32, learning_rate_init=1e-2, random_state=0)
    for _ in range(7):  # one pass makes the weights, two are in each round
        alone.partial_fit(X, y, classes=[0, 1])
    np.testing.assert_allclose(network.coefs_[0], alone.coefs_[0])
    monkeypatch.setattr(accuracy, "_ROUNDS", (40,))
    [(_, mean)] = accuracy.averaged(X, y, np.arange(60) % 3, (), 1e-3)
    assert np.mean(mean.predict(X) == y) > 0.9
