"""The demo's claims, on other seeds than the one it shows."""

import numpy as np
import pytest
from sklearn.metrics import f1_score as sklearn_f1

from fdrsvm.demo.four_plants import (
    EPSILON,
    KAPPA,
    NORM,
    TOL,
    DemoPlant,
    compare_plants,
    f1_score,
    format_table,
    joining_pays,
    make_data,
    run_demo,
    train_alone,
    weights,
)
from fdrsvm.risk.worst_case import RiskOracle


def test_four_plants_with_some_wrong_labels():
    data = make_data(3)
    assert [X.shape for X, _ in data.parts(normalised=True)] == [(100, 14)] * 4
    assert data.X_test_normalised.shape == (1000, 14)
    assert 0.1 < np.mean(data.y != data.y_true) < 0.15
    for X, y in data.parts(normalised=True):
        assert ((X >= 0) & (X <= 1)).all()
        assert set(y) == {-1.0, 1.0}


def test_the_robust_model_does_better_in_the_worst_case_and_on_average_with_noisy_sensors():
    runs = [run_demo(seed)[1] for seed in (1, 2, 3)]
    for plain, usual, robust in runs:
        assert robust.risk_at_training_radius < plain.risk_at_training_radius
        assert robust.accuracy > usual.accuracy - 0.05
        for outcome in (plain, usual, robust):
            assert (np.diff(outcome.risk) >= -1e-12).all()
        for outcome in (plain, robust):
            assert outcome.estimator.gap_ <= TOL
            assert outcome.estimator.objective_ < 0.7
    gains = [robust.accuracy_noisy - plain.accuracy_noisy for plain, _, robust in runs]
    assert np.mean(gains) > 0.0


def test_f1_counts_hits_misses_and_false_alarms():
    X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    assert f1_score(np.array([1.0, 0.0]), X, y) == 0.5  # one hit, one miss, one false alarm
    assert f1_score(np.array([0.0, 1.0]), X, y) == pytest.approx(2 / 3)
    assert f1_score(np.array([0.0, -1.0]), X, y) == 0.0
    assert f1_score(np.array([0.0, -1.0]), X, -np.ones(4)) == 0.0


def test_a_model_alone_is_the_best_for_its_rows():
    data = make_data(1)
    models = [train_alone(X, y) for X, y in data.parts(normalised=True)]
    for g, (X, y) in enumerate(data.parts(normalised=True)):
        risk = RiskOracle(X, y, epsilon=EPSILON, kappa=KAPPA, norm=NORM)
        values = [risk(model[:-1], float(model[-1])).value for model in models]
        assert values[g] <= min(values) * (1.0 + 2.0 * TOL)


def test_plants_are_compared_on_the_same_rows():
    data, outcomes = run_demo(1)
    plants, X_test = outcomes[-1].plants, data.X_test_normalised
    assert [plant.name for plant in plants] == [f"plant {g}" for g in (1, 2, 3, 4)]
    assert sorted(plant.leak for plant in plants) == [0.001, 0.004, 0.007, 0.01]
    assert [outcome.plants for outcome in outcomes[:-1]] == [(), ()]
    for model in ("federated", "pooled"):  # one model for all, on one test set
        assert len({plant.all_leaks[model] for plant in plants}) == 1
    robust = outcomes[-1].estimator
    w = weights(robust)
    assert plants[0].all_leaks["federated"] == f1_score(w, X_test, data.y_test)
    for (X, y), plant in zip(data.parts(normalised=True), plants, strict=True):
        own = np.isin(data.severity_test, (0.0, plant.leak))
        assert own.sum() == 625
        alone = f1_score(train_alone(X, y), X_test[own], data.y_test[own])
        assert plant.own_leak["alone"] == alone
        personal = robust.for_client(plant.name).predict(X_test[own])
        assert plant.own_leak["personal"] == pytest.approx(sklearn_f1(data.y_test[own], personal))
    assert compare_plants(data, robust) == plants


def test_the_table_and_its_sentence_show_the_plants():
    _, outcomes = run_demo(1)
    lines = format_table(outcomes).splitlines()
    place = lines.index("Does joining pay?")
    assert [line.split()[0] for line in lines[place + 3 : place + 7]] == ["plant"] * 4
    assert " ".join(lines[place + 7 :]) == joining_pays(outcomes[-1].plants)


def test_the_sentence_follows_the_numbers():
    def plant(name, alone, own):
        return DemoPlant(
            name,
            0.001,
            {"alone": alone, "federated": 0.8, "personal": 0.8, "pooled": 0.85},
            {"alone": own, "federated": 0.5, "personal": own, "pooled": 0.5},
        )

    said = joining_pays([plant("north", 0.6, 0.5), plant("south", 0.9, 0.75)])
    assert said == (
        "On all leaks the federated model is better than the plant's own for 1 of 2 plants and "
        "worse for 1: from -10.0 points of F-1 (south) to +20.0 (north). On the leak that a plant "
        "has seen itself it is better than the plant's own for 0 of 2 plants and worse for 1: from "
        "-25.0 points of F-1 (south) to +0.0 (north); the personal model, which a plant makes of "
        "it by its own rows, is better than the plant's own for 0 of 2 plants and worse for 0: "
        "from +0.0 points of F-1 (north) to +0.0 (north). Pooling all rows would have given 5.0 "
        "points more than the federation on all leaks."
    )
