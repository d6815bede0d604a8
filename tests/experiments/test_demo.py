"""The demo's claims, on other seeds than the one it shows."""

import numpy as np

from fdrsvm.experiments.demo import N_PLANTS, make_data, risk_at_training_radius, run_demo


def test_every_training_row_is_at_one_plant_and_scaled():
    data = make_data(3)
    assert len(data.plants) == N_PLANTS
    assert sum(y.size for _, y in data.plants) + data.y_test.size == 569
    for X, y in data.plants:
        assert ((X >= 0) & (X <= 1)).all()
        assert set(y) == {-1.0, 1.0}


def test_the_robust_model_has_the_lower_worst_case_risk_and_keeps_its_accuracy():
    for seed in (1, 2):
        plain, robust = run_demo(seed)
        assert risk_at_training_radius(robust) < risk_at_training_radius(plain)
        assert robust.accuracy > plain.accuracy - 0.05
        for outcome in (plain, robust):
            assert (np.diff(outcome.risk) >= -1e-12).all()
            assert outcome.objective[0] == 1.0  # w = 0
            assert outcome.objective.min() < 0.6
