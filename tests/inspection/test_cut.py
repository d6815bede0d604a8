"""Distances are to where the score is cut; losses and what is proved know nothing of the cut."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fdrsvm import flipping_perturbation, worst_case_risk
from fdrsvm.core.vectors import NORMS, dual_norm
from fdrsvm.estimators.training import FitSettings, train
from fdrsvm.inspection import risk_curve
from fdrsvm.inspection.certifying import certificate_words, flips, recompute
from fdrsvm.inspection.page import model_page
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.unscaling import Scaling
from tests.inspection.test_page import make_rows

CUTS = [0.0, 0.8, -1.3]


def make(threshold, rng, n_features=4):
    return LinearModel.checked(
        rng.normal(size=(1, n_features)), [0.2], ("no", "yes"), estimator="x", threshold=threshold
    )


@pytest.mark.parametrize("support", [None, "unit-box"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("threshold", CUTS)
def test_a_step_beyond_the_point_turns_the_decision_and_one_before_does_not(
    threshold, norm, support, rng
):
    model, X = make(threshold, rng), rng.random((60, 4))
    turn = flipping_perturbation(model, X, norm=norm, support=support)
    possible = turn.is_possible
    assert possible.any()
    scores = model.decision_function(turn.points[possible])
    assert_allclose(scores, threshold, atol=1e-12)  # sums of five numbers of size 1
    step = (turn.points - X)[possible]
    assert_array_equal(model.predict(X[possible] + 0.999 * step), turn.labels[possible])
    beyond = model.predict(X[possible] + 1.001 * step)
    assert_array_equal(beyond, turn.flipped_labels[possible])
    assert (turn.labels[possible] != turn.flipped_labels[possible]).all()
    if support is None:
        expected = np.abs(model.decision_function(X) - threshold) / dual_norm(model.coef[0], norm)
        assert_allclose(turn.cost, expected, rtol=1e-12)
    elif not possible.all():  # no corner of the box is on the other side
        corners = np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1).T
        for row in np.flatnonzero(~possible):
            assert (model.predict(corners) == turn.labels[row]).all()


@pytest.fixture(scope="module")
def trained():
    rows = make_rows()
    return train(FitSettings(tune=False, params={"epsilon": 0.02, "kappa": 0.5}), rows).model, rows


@pytest.mark.parametrize("threshold", CUTS)
def test_scaling_leaves_the_cut_and_certify_measures_to_it(trained, threshold):
    model, rows = trained
    cut = model.cut_at(threshold)
    scaling = Scaling.of(cut)
    scaled, X = scaling.unfold(cut), scaling.apply(rows.X)
    assert scaled.threshold == scaling.fold(scaled).threshold == threshold
    assert_array_equal(scaled.predict(X), cut.predict(rows.X))
    size = np.abs(scaled.coef[0]).sum()
    expected = np.sort(np.abs(cut.decision_function(rows.X) - threshold) / size)
    assert_allclose(flips(cut, rows).costs, expected, rtol=1e-9, atol=1e-12)
    share = 0.25
    at = int(np.ceil(share * len(expected))) - 1
    assert flips(cut, rows).moves[share] == pytest.approx(expected[at], rel=1e-9, abs=1e-12)


def test_risks_do_not_depend_on_the_cut(trained, rng):
    model, rows = trained
    cut = model.cut_at(0.9)
    assert recompute(cut, rows).objectives == recompute(model, rows).objectives
    assert recompute(cut, rows).agrees
    plain, X = make(0.0, rng), rng.random((30, 4))
    y = np.where(rng.random(30) < 0.5, "yes", "no")
    radii = [0.0, 0.1, 0.3]
    curve = risk_curve(plain.cut_at(0.7), X, y, radii=radii)
    signs = np.where(y == "yes", 1.0, -1.0)
    for radius, risk in zip(radii, curve.risk, strict=True):
        one = worst_case_risk(plain.coef[0], X, signs, epsilon=radius, intercept=0.2)
        assert risk == one.value


def test_the_words_say_that_the_cut_is_not_proved(trained):
    model, rows = trained
    said = " ".join(certificate_words(model.cut_at(0.9)))
    assert "about the scores. Where they are cut, at a threshold of 0.9, is a decision" in said
    assert "decision of its own" not in " ".join(certificate_words(model))
    page = model_page(model.cut_at(0.9), rows, sample=5)
    assert "where to cut them was chosen apart from it" in page
    assert "; the threshold is 0.9)" in page
    assert "Losses are about the score, wherever it is cut" in page


@pytest.mark.parametrize("threshold", CUTS)
def test_one_row_explained_is_turned_where_the_model_turns_it(trained, threshold):
    model, rows = trained
    cut = model.cut_at(threshold)
    page = model_page(cut, rows, sample=5)
    size = np.abs(Scaling.of(cut).unfold(cut).coef[0]).sum()
    cost = abs(float(cut.decision_function(rows.X[[5]])[0]) - threshold) / size
    assert f"A move by {cost:.4g} " in page
    says = str(cut.predict(rows.X[[5]])[0])
    other = next(label for label in cut.classes if label != says)
    assert f"the model says {says} " in page
    assert f"turns it to {other}" in " ".join(page.split())
