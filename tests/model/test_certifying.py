"""What is recomputed is what training certified, for every estimator and option that changes it."""

from dataclasses import replace

import numpy as np
import pytest

from fdrsvm import RiskOracle, UnsupportedError, mowb_confidence, worst_case_risk
from fdrsvm.data.rows import Rows
from fdrsvm.estimators.training import FitSettings, train
from fdrsvm.inspection.certifying import confidence, flips, in_words, proved, recompute
from fdrsvm.model.trained_ball import Overrides, balls, client_weights
from fdrsvm.model.unscaling import Scaling


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(90, 4)) * [1.0, 20.0, 0.3, 5.0] + [0.0, 100.0, 3.0, -50.0]
    score = (X - X.mean(axis=0)) / X.std(axis=0) @ [1.0, -1.0, 0.5, 0.0]
    y = np.where(score + 0.5 * rng.normal(size=90) > 0.0, "leak", "healthy")
    return Rows(X, y, np.repeat(["a", "b", "c"], [50, 25, 15]), ("p", "q", "r", "s"))


@pytest.mark.parametrize(
    ("estimator", "params"),
    [
        ("FDRSVC", {}),
        ("FDRSVC", {"epsilon": {"a": 0.01, "b": 0.02, "c": 0.05}, "kappa": (0.5, 1.0, np.inf)}),
        ("FDRSVC", {"client_weights": "samples", "class_weight": "balanced", "norm": "l2"}),
        ("FDRSVC", {"client_weights": {"a": 1.0, "b": 2.0, "c": 3.0}, "epsilon": 0.1}),
        ("FDRSVC", {"loss": "logistic", "class_weight": {"leak": 3.0}}),
        ("DRSVC", {"epsilon": 0.03}),
        ("DRSVC", {}),
    ],
)
@pytest.mark.parametrize("scaling", ["minmax", "standard"])
def test_the_files_numbers_come_out_again(rows, estimator, params, scaling):
    model = train(FitSettings(scaling=scaling, estimator=estimator, params=params), rows).model
    again = recompute(model, rows)
    assert again.agrees is True
    assert again.n_clipped == 0
    assert again.objectives[0] == pytest.approx(proved(model)[0].objective, rel=1e-9)
    assert all(one.mean_loss <= one.worst_case for one in again.risks)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("features", ["additive", "additive-pairs", "fourier"])
def test_with_a_map_the_files_numbers_are_bounds_that_attacks_approach(rows, features, norm):
    params = {"features": features, "norm": norm, "epsilon": 0.01, "tol": 1e-2}
    model = train(FitSettings(tune=False, params=params), rows).model
    assert recompute(model, rows).limits == ()
    again = recompute(model, rows, attack=True)
    assert again.agrees is True
    for one in again.risks:
        assert one.mean_loss < one.at_least <= one.at_most * (1.0 + 1e-9)
        assert one.at_most <= one.worst_case * (1.0 + 1e-9)
    [(low, high)] = again.limits
    assert low == pytest.approx(np.mean([one.at_least for one in again.risks]), rel=1e-12)
    assert high == pytest.approx(np.mean([one.at_most for one in again.risks]), rel=1e-12)
    if (features, norm) == ("additive", "l1"):
        assert low == pytest.approx(again.objectives[0], rel=1e-6)  # the goal of docs/maps.md
    said = " ".join(in_words(model))
    assert f"worst-case risk of at most {proved(model)[0].objective:.6g}" in said
    assert f"in front of the model's feature map ({model.features.kind})" in said


@pytest.mark.parametrize("support", ["unit-box", None])
def test_each_class_of_a_map_is_attacked_with_its_own_rows(rows, support):
    """Three classes, and a support: what comes out is worst_case_risk's word, class by class."""
    y = np.where(rows.X[:, 0] > 1.0, "hot", rows.y)
    three = Rows(rows.X, y, rows.clients, rows.feature_names)
    params = {"features": "additive", "epsilon": 0.01, "support": support, "tol": 0.05}
    model = train(FitSettings(tune=False, params=params), three).model
    scaling = Scaling.of(model)
    scaled = scaling.unfold(model)
    again = recompute(model, three, attack=True)
    assert len(again.limits) == 3
    for one in again.risks:
        part, k = three.of(one.client), model.classes.index(one.label)
        # As in recompute: rounding may leave a row outside by a hair.
        X = scaling.apply(part.X) if support is None else np.clip(scaling.apply(part.X), 0.0, 1.0)
        found = worst_case_risk(
            scaled.coef[k],
            X,
            np.where(part.y == one.label, 1.0, -1.0),
            epsilon=0.01,
            support=support,
            features=scaled.features,
            intercept=float(scaled.intercept[k]),
        )
        assert (one.at_least, one.at_most) == (found.proof, found.value)


def test_linear_models_need_no_attack(rows):
    model = train(FitSettings(tune=False, params={"epsilon": 0.02}), rows).model
    again = recompute(model, rows, attack=True)
    assert again.limits == ()
    assert {(one.at_least, one.at_most) for one in again.risks} == {(None, None)}
    assert "at most" not in in_words(model)[0]


def test_confidence_of_a_map_is_that_of_its_sensors(rows):
    """[confidence] is of the balls around the rows: as many dimensions as there are sensors."""
    params = {"features": "fourier", "epsilon": 0.02, "tol": 0.05}
    model = train(FitSettings(tune=False, params=params), rows).model
    counts = {"a": 50, "b": 25, "c": 15}
    expected = mowb_confidence([0.02] * 3, [50, 25, 15], 4, c1=2.0, c2=1e6)
    assert confidence(model, counts, 2.0, 1e6) == expected


def test_a_fifth_of_the_rows_moved_changes_the_verdict(rows):
    model = train(FitSettings(params={"epsilon": 0.02}), rows).model
    moved = Rows(rows.X + 1.0, rows.y, rows.clients, rows.feature_names)
    assert recompute(model, moved).agrees is False
    other = Rows(rows.X, rows.y, np.full(90, "z"), rows.feature_names)
    assert recompute(model, other).agrees is None  # the file says nothing of that client


def test_risks_that_were_rounded_up_agree_up_to_the_resolution(rows):
    model = train(FitSettings(params={"epsilon": 0.02, "resolution": 1e-6}), rows).model
    again = recompute(model, rows)
    assert again.resolution == 1e-6
    assert again.agrees is True
    assert all(0.0 < one.stated - one.worst_case < 1e-6 for one in again.risks)
    assert replace(again, resolution=0.0).agrees is False
    moved = Rows(rows.X + 1.0, rows.y, rows.clients, rows.feature_names)
    assert recompute(model, moved).agrees is False


def test_another_radius_is_taken_for_all_clients(rows):
    model = train(FitSettings(params={"epsilon": 0.02}), rows).model
    scaling = Scaling.of(model)
    scaled = scaling.unfold(model)
    found = recompute(model, rows, Overrides(epsilon=0.2, kappa=0.4, norm="l1"))
    for one in found.risks:
        part = rows.of(one.client)
        signs = np.where(part.y == "leak", 1.0, -1.0)
        oracle = RiskOracle(scaling.apply(part.X), signs, epsilon=0.2, kappa=0.4, norm="l1")
        assert one.worst_case == oracle.value(scaled.coef[0], float(scaled.intercept[0]))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_within_the_distance_given_that_share_of_the_decisions_turns(rows, norm):
    model = train(FitSettings(tune=False, params={"epsilon": 0.02, "norm": norm}), rows).model
    found = flips(model, rows)
    scaling = Scaling.of(model)
    w = scaling.unfold(model).coef[0]
    order = {"l1": np.inf, "l2": 2, "linf": 1}[norm]  # of the dual norm
    costs = np.abs(model.decision_function(rows.X)) / np.linalg.norm(w, order)
    np.testing.assert_allclose(found.costs, np.sort(costs), rtol=1e-9)
    for share, move in found.moves.items():
        assert np.mean(costs <= move * (1.0 + 1e-9)) >= share
        assert np.mean(costs < move * (1.0 - 1e-9)) < share


def test_values_outside_the_support_are_moved_and_counted(rows):
    params = {"epsilon": 0.02, "support": "unit-box"}
    model = train(FitSettings(params=params), rows).model
    assert recompute(model, rows).agrees is True
    far = Rows(rows.X * 2.0, rows.y, rows.clients, rows.feature_names)
    scaled = Scaling.of(model).apply(far.X)
    assert recompute(model, far).n_clipped == np.count_nonzero((scaled < 0.0) | (scaled > 1.0)) > 0


def test_auto_is_a_tenth_of_the_inverse_number_of_rows(rows):
    model = train(FitSettings(tune=False), rows).model
    found = balls(model, rows.counts())
    assert {name: ball.epsilon for name, ball in found.items()} == {
        "a": 1.0 / 500.0,
        "b": 1.0 / 250.0,
        "c": 1.0 / 150.0,
    }
    assert client_weights(model, rows.counts()) == pytest.approx(dict.fromkeys("abc", 1.0 / 3.0))
    (_, guarded) = in_words(model)
    assert "epsilon = 0.002 to 0.006667, by client" in guarded


def test_a_row_a_client_is_the_mean_loss_at_radius_zero(rows):
    model = train(FitSettings(params={"epsilon": 0.0}), rows).model
    margins = np.where(rows.y == "leak", 1.0, -1.0) * model.decision_function(rows.X)
    for one in recompute(model, rows).risks:
        hinge = np.maximum(0.0, 1.0 - margins[rows.clients == one.client]).mean()
        assert one.worst_case == pytest.approx(hinge, rel=1e-9, abs=1e-9)


def test_balls_without_flips_have_no_confidence(rows):
    """[radius]: with kappa = inf only the very shares of labels that were recorded lie in them."""
    counts = {"a": 50, "b": 25, "c": 15}
    model = train(FitSettings(params={"epsilon": 0.02, "kappa": (1.0, 1.0, np.inf)}), rows).model
    with pytest.raises(UnsupportedError, match="train with a finite kappa"):
        confidence(model, counts, 2.0, 1e6)
    model = train(FitSettings(params={"epsilon": 0.02}), rows).model
    for independent in (True, False):
        expected = mowb_confidence(
            [0.02] * 3, [50, 25, 15], 4, c1=2.0, c2=1e6, independent=independent
        )
        assert confidence(model, counts, 2.0, 1e6, independent=independent) == expected


@pytest.mark.parametrize("estimator", ["FDRSVC", "DRSVC"])
def test_other_rows_have_the_radius_of_training(rows, estimator):
    """ "auto" went by the rows of training, not by those that are looked at later."""
    model = train(FitSettings(estimator=estimator), rows).model
    own = {"a": 50, "b": 25, "c": 15} if estimator == "FDRSVC" else dict.fromkeys("abc", 90)
    for counts in ({"a": 50, "b": 25, "c": 15}, {"a": 7, "b": 700, "c": 1}):
        radii = {name: ball.epsilon for name, ball in balls(model, counts).items()}
        assert radii == {name: 1.0 / (10.0 * count) for name, count in own.items()}
    few = Rows(rows.X[:60], rows.y[:60], rows.clients[:60], rows.feature_names)
    stated = recompute(model, few, Overrides(epsilon=0.5))
    assert recompute(model, few).risks != stated.risks


def test_what_only_the_sum_is_known_of_is_not_said_to_disagree(rows):
    """Under secure sums no client's own risk is known: the file is silent, not contradicted."""
    params = {"epsilon": 0.02, "secure_aggregation": True, "max_rounds": 6, "tol": 1.0}
    model = train(FitSettings(params=params), rows).model
    again = recompute(model, rows)
    assert [one.stated for one in again.risks] == [None] * 3
    assert again.agrees is None
    assert again.objectives[0] == pytest.approx(proved(model)[0].objective, rel=1e-9)
