"""The demo's claims, on other seeds than the one it shows."""

import numpy as np

from fdrsvm.experiments.demo import TOL, make_data, risk_at_training_radius, run_demo


def test_four_plants_with_some_wrong_labels():
    data = make_data(3)
    assert [X.shape for X, _ in data.plants] == [(100, 14)] * 4
    assert data.X_test.shape == (1000, 14)
    assert 0.1 < data.wrong_labels < 0.15
    for X, y in data.plants:
        assert ((X >= 0) & (X <= 1)).all()
        assert set(y) == {-1.0, 1.0}


def test_the_robust_model_does_better_in_the_worst_case_and_on_average_with_noisy_sensors():
    runs = [run_demo(seed)[1] for seed in (1, 2, 3)]
    for plain, usual, robust in runs:
        assert risk_at_training_radius(robust) < risk_at_training_radius(plain)
        assert robust.accuracy > usual.accuracy - 0.05
        for outcome in (plain, usual, robust):
            assert (np.diff(outcome.risk) >= -1e-12).all()
        for outcome in (plain, robust):
            assert outcome.training.gap <= TOL
            assert outcome.training.objective < 0.7
    gains = [robust.accuracy_noisy - plain.accuracy_noisy for plain, _, robust in runs]
    assert np.mean(gains) > 0.0
