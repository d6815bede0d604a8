"""Probabilities: against scikit-learn, SciPy and Bayes; from sums only; right for odd input too."""

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.probabilities import PUMP_NOISE, measure_ai4i, measure_pump, summarise
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from fdrsvm import (
    FDRSVC,
    CalibrationWarning,
    FederatedCalibrator,
    InvalidInputError,
    NumericalError,
)
from fdrsvm.datasets import make_pump
from fdrsvm.decision.calibration import (
    CalibrationRows,
    Question,
    ScoredRows,
    ask_all,
    brier_score,
    calibrate,
    client_sums,
    expected_calibration_error,
    fit_sigmoid,
    log_odds_error,
)
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import load_model, save_model
from fdrsvm.model.sigmoids import Probabilities, probabilities
from tests.estimators.test_degenerate import AI4I

EPS = np.finfo(float).eps


def draw(rng, n=400, slope=1.5, intercept=-0.5, q=0.0, scale=1.0, offset=0.0):
    """Rows whose scores are log-odds, but for scale and offset; a share q of labels is wrong."""
    z = rng.normal(size=n)
    y = rng.random(n) < expit(slope * z + intercept)
    return ScoredRows(scale * z + offset, y ^ (rng.random(n) < q), np.ones(n))


def objective(rows, fit_or_question, q):
    """Loss and gradient in the coordinates of a fit."""
    sigmoid = fit_or_question
    totals = tuple(client_sums(rows, Question()).tolist())
    question = Question(totals, sigmoid.centre, sigmoid.scale, (), q)

    def evaluate(point):
        sums = client_sums(rows, replace(question, points=(tuple(point),)))[0]
        return sums[0], sums[1:3]

    return evaluate


def probability(fit, scores):
    return expit(fit.sigmoid.log_odds(np.asarray(scores, dtype=float)))


# --- the sums ---


@pytest.mark.parametrize("q", [0.0, 0.15, 0.45])
def test_the_loss_is_the_formula(q, rng):
    rows = draw(rng, 30)
    others, wanted = np.sum(~rows.is_class), np.sum(rows.is_class)
    centre, scale, (a, b) = 0.1, 0.7, (3.0, -1.0)
    u = a * (rows.scores - centre) / scale + b
    v = np.where(rows.is_class, u, -u)
    d = np.where(rows.is_class, 1.0 / (wanted + 2.0), 1.0 / (others + 2.0))
    losses = -(1.0 - d) * np.log(q + (1.0 - 2.0 * q) * expit(v)) - d * np.log(expit(-v))
    question = Question((float(others), float(wanted)), centre, scale, ((a, b),), q)
    assert client_sums(rows, question)[0, 0] == pytest.approx(losses.mean(), rel=1e-13)
    if q == 0.0:  # as Platt wrote it, with targets
        t = np.where(rows.is_class, (wanted + 1.0) / (wanted + 2.0), 1.0 / (others + 2.0))
        platt = -t * np.log(expit(u)) - (1.0 - t) * np.log(expit(-u))
        assert losses == pytest.approx(platt, rel=1e-12)


@given(
    q=st.sampled_from([0.0, 0.05, 0.3, 0.49]),
    a=st.floats(-20.0, 20.0),
    b=st.floats(-20.0, 20.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_gradient_and_hessian_are_differences_of_the_loss(q, a, b, seed):
    rows = draw(np.random.default_rng(seed), 20)
    # Central differences err by h^2/6 of a third derivative, which is below 27 max|z|^3 / 10 here,
    # and by rounding of the loss over h.
    h = 1e-5
    points = [(a, b), (a + h, b), (a - h, b), (a, b + h), (a, b - h)]
    table = client_sums(rows, Question((8.0, 12.0), 0.0, 1.0, tuple(points), q))
    loss, g0, g1, h00, h01, h11 = table[0]
    assert np.isfinite(loss)
    slopes = [(table[1] - table[2]) / (2.0 * h), (table[3] - table[4]) / (2.0 * h)]
    tolerance = h * h * np.abs(rows.scores).max() ** 3 + 50.0 * EPS * max(loss, 1.0) / h
    assert np.abs([slopes[0][0] - g0, slopes[1][0] - g1]).max() <= tolerance
    differences = [slopes[0][1] - h00, slopes[0][2] - h01, slopes[1][1] - h01, slopes[1][2] - h11]
    assert np.abs(differences).max() <= tolerance * max(1.0, np.abs(rows.scores).max())


def test_clients_answers_add_up_to_those_of_pooled_rows(rng):
    rows = draw(rng, 300, q=0.1)
    owner = rng.integers(3, size=300)
    parts = [ScoredRows(*(values[owner == g] for values in vars(rows).values())) for g in range(3)]
    for question in (
        Question(),
        Question((200.0, 100.0)),
        Question((200.0, 100.0), 0.3),
        Question((200.0, 100.0), 0.3, 0.8, ((1.0, 0.0), (2.0, -3.0)), 0.1),
    ):
        pooled, summed = client_sums(rows, question), ask_all(parts)(question)
        assert pooled.shape == summed.shape
        np.testing.assert_allclose(summed, pooled, rtol=1e-12, atol=300 * EPS)
    one, many = fit_sigmoid(ask_all([rows]), 0.1), fit_sigmoid(ask_all(parts), 0.1)
    np.testing.assert_allclose(
        probability(one, rows.scores), probability(many, rows.scores), rtol=1e-9
    )


def test_masked_sums_are_enough(rng):
    """Answers on a grid, modulo 2^64 and under masks that cancel: what secure sums hand over."""
    grid = 2.0**-40
    parts = [draw(rng, 100, q=0.1) for _ in range(4)]
    seen = []

    def ask(question):
        answers = [np.round(client_sums(rows, question) / grid).astype(np.int64) for rows in parts]
        masks = rng.integers(-(2**62), 2**62, size=(3, *answers[0].shape))
        masked = [answers[g] + masks[g] for g in range(3)] + [answers[3] - masks.sum(axis=0)]
        seen.append(len(question.points))
        return np.sum(masked, axis=0) * grid

    scores = np.linspace(-3.0, 3.0, 7)
    masked, open_ = fit_sigmoid(ask, 0.1), fit_sigmoid(ask_all(parts), 0.1)
    # The gradient is off by at most 4 halves of the grid, over the least curvature, some 0.01.
    np.testing.assert_allclose(probability(masked, scores), probability(open_, scores), atol=1e-8)
    assert len(seen) == masked.n_questions


# --- the fit ---


@pytest.mark.parametrize(
    ("n", "scale", "offset"), [(30, 1.0, 0.0), (1000, 1e-6, 3.0), (400, 1e5, -1e5)]
)
def test_pooled_it_is_platts_as_scikit_learn_has_it(n, scale, offset, rng):
    rows = draw(rng, n, scale=scale, offset=offset)
    X, y = rows.scores[:, None], rows.is_class.astype(int)
    model = LogisticRegression().fit(np.array([[0.0], [1.0]]), [0, 1])
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([0.0])
    theirs = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid", ensemble=False, cv=2)
    theirs.fit(X, y)
    known = theirs.calibrated_classifiers_[0].calibrators[0]
    ours = FederatedCalibrator().fit(model, X, y)
    (fit,) = ours.fits_
    # Their point in our coordinates, and how far it is from a minimum: gradient over curvature.
    sigmoid = fit.sigmoid
    point = (-known.a_ * sigmoid.scale, -known.a_ * sigmoid.centre - known.b_)
    totals = (float(np.sum(y == 0)), float(np.sum(y == 1)))
    question = Question(totals, sigmoid.centre, sigmoid.scale, (point,))
    loss, g0, g1, h00, h01, h11 = client_sums(rows, question)[0]
    assert fit.loss <= loss + 4.0 * EPS
    curvature = np.linalg.eigvalsh([[h00, h01], [h01, h11]])[0]
    away = 2.0 * np.hypot(g0, g1) / curvature
    reach = 0.25 * (1.0 + np.abs((rows.scores - sigmoid.centre) / sigmoid.scale).max())
    rounding = 1e-9 * (1.0 + abs(offset / scale))
    found, expected = ours.predict_proba(X), theirs.predict_proba(X)
    assert np.abs(found - expected).max() <= away * reach + rounding
    assert away * reach < 1e-3


@pytest.mark.parametrize("q", [0.01, 0.1, 0.25, 0.4])
@pytest.mark.parametrize("share", [0.3, 0.05])
def test_with_wrong_labels_it_is_the_best_of_many_starts(q, share, rng):
    for _ in range(3):
        rows = draw(rng, 600, slope=2.0, intercept=logit(share), q=q)
        if min(rows.is_class.mean(), 1.0 - rows.is_class.mean()) <= q:
            continue
        fit = fit_sigmoid(ask_all([rows]), q)
        evaluate = objective(rows, fit.sigmoid, q)
        starts = rng.normal(size=(30, 2)) * [4.0, 4.0]
        ends = [minimize(evaluate, start, jac=True, method="L-BFGS-B") for start in starts]
        best = min((end for end in ends if end.x[0] >= 0.0), key=lambda end: end.fun)
        if fit.sigmoid.slope > 0.0:
            assert fit.loss <= best.fun + 1e-12
        loss, gradient = evaluate((fit.sigmoid.slope, fit.sigmoid.intercept))
        assert loss == fit.loss
        assert fit.excess <= 1e-14
        assert np.abs(gradient).max() <= 1e-9 or fit.sigmoid.slope == 0.0


@pytest.mark.parametrize("q", [0.0, 0.15])
def test_true_probabilities_come_out_within_sampling_error(q):
    rng = np.random.default_rng(1)
    n, slope, intercept = 40_000, 1.5, -1.0
    rows = draw(rng, n, slope, intercept, q)
    fit = fit_sigmoid(ask_all([rows]), q)
    s = fit.sigmoid
    question = Question(
        tuple(client_sums(rows, Question())), s.centre, s.scale, ((s.slope, s.intercept),), q
    )
    h00, h01, h11 = client_sums(rows, question)[0, 3:]
    covariance = np.linalg.inv([[h00, h01], [h01, h11]]) / n  # the inverse of Fisher's information
    z = (np.linspace(-3.0, 3.0, 13) - s.centre) / s.scale
    directions = np.column_stack([z, np.ones_like(z)])
    error = np.sqrt(np.einsum("np,pq,nq->n", directions, covariance, directions))
    true = slope * np.linspace(-3.0, 3.0, 13) + intercept
    assert (np.abs(s.log_odds(np.linspace(-3.0, 3.0, 13)) - true) <= 4.5 * error).all()
    assert error.max() < 0.2
    if q:  # and without saying so they do not
        naive = fit_sigmoid(ask_all([rows])).sigmoid.log_odds(np.linspace(-3.0, 3.0, 13))
        assert np.abs(naive - true).max() > 10.0 * error.max()


def test_scores_that_part_the_classes_have_a_finite_sigmoid():
    for n in (1, 5, 1000):
        rows = ScoredRows(np.repeat([-1.0, 1.0], n), np.repeat([False, True], n), np.ones(2 * n))
        fit = fit_sigmoid(ask_all([rows]))
        # Two values of the score and two numbers to fit: the targets are reached.
        np.testing.assert_allclose(
            probability(fit, [-1.0, 1.0]), [1.0 / (n + 2.0), (n + 1.0) / (n + 2.0)], rtol=1e-6
        )
        noisy = fit_sigmoid(ask_all([rows]), 0.1)
        assert np.isfinite([noisy.sigmoid.slope, noisy.sigmoid.intercept]).all()
        assert fit.excess <= 1e-12


def test_equal_scores_give_every_row_the_share_and_a_warning(rng):
    y = rng.random(50) < 0.3
    for score in (0.0, 0.1, -1e300, 1e-300):
        fit = fit_sigmoid(ask_all([ScoredRows(np.full(50, score), y, np.ones(50))]))
        n, wanted = 50.0, float(y.sum())
        t = (wanted * (wanted + 1.0) / (wanted + 2.0) + (n - wanted) / (n - wanted + 2.0)) / n
        assert probability(fit, [score, 5.0]) == pytest.approx([t, t], rel=1e-12)
        assert "ignores all features" in fit.found[0]


@pytest.mark.parametrize("q", [0.0, 0.1])
def test_a_ranking_the_wrong_way_round_is_no_probability(q, rng):
    rows = draw(rng, 500, q=q)
    upside_down = replace(rows, scores=-rows.scores)
    fit = fit_sigmoid(ask_all([upside_down]), q, "'Fault'")
    assert fit.sigmoid.slope == 0.0
    assert "higher score for 'Fault' are less often of it" in fit.found[-1]
    constant = fit_sigmoid(ask_all([replace(rows, scores=np.zeros(500))]), q)
    assert fit.loss == pytest.approx(constant.loss, rel=1e-12)
    model = LinearModel.checked([[-1.0]], [0.0], ["Fault", "ok"], estimator="x")
    y = np.where(rows.is_class, "ok", "Fault")
    with pytest.warns(CalibrationWarning, match="check that labels mean") as caught:
        calibrator = FederatedCalibrator(label_noise=q).fit(model, rows.scores[:, None], y)
    assert caught[0].filename == __file__
    assert np.ptp(calibrator.predict_proba([[-1e300], [0.0], [1e300]])[:, 1]) == 0.0


def test_labels_cleaner_than_said_are_told(rng):
    clean = draw(rng, 2000, slope=6.0)
    assert "give a smaller share" in fit_sigmoid(ask_all([clean]), 0.2).found[0]
    for q in (0.05, 0.2):
        assert fit_sigmoid(ask_all([draw(rng, 2000, slope=6.0, q=q)]), q).found == ()


@given(power=st.integers(-990, 990), seed=st.integers(0, 2**32 - 1), q=st.sampled_from([0.0, 0.1]))
def test_the_unit_of_the_score_does_not_matter(power, seed, q):
    rows = draw(np.random.default_rng(seed), 40, slope=3.0, q=q)
    if not q < rows.is_class.mean() < 1.0 - q:
        return
    fit = fit_sigmoid(ask_all([rows]), q)
    scaled = replace(rows, scores=np.ldexp(rows.scores, power))
    other = fit_sigmoid(ask_all([scaled]), q)
    assert probability(other, scaled.scores).tobytes() == probability(fit, rows.scores).tobytes()


extreme = st.one_of(
    st.floats(-1e300, 1e300), st.sampled_from([0.0, 1.0, -1.0, 1e300, -1e300, 1e-300, 5e-324])
)


@given(
    rows=st.lists(
        st.tuples(extreme, st.booleans(), st.sampled_from([1e-300, 1e-3, 1.0, 7.0, 1e200])),
        min_size=2,
        max_size=12,
    ),
    q=st.sampled_from([0.0, 0.01, 0.3]),
)
def test_any_scores_and_weights_give_probabilities_or_a_sentence(rows, q):
    scores, is_class, weights = (np.array(values) for values in zip(*rows, strict=True))
    clients = ask_all([ScoredRows(scores, is_class, weights)])
    wanted = weights[is_class].sum() / weights.sum()
    rarer = min(wanted, weights[~is_class].sum() / weights.sum())
    if rarer <= q:
        with pytest.raises(InvalidInputError, match=r"rows of every class|share of the rarer"):
            fit_sigmoid(clients, q)
        return
    fit = fit_sigmoid(clients, q)
    assert fit.sigmoid.slope >= 0.0
    assert np.isfinite(fit.sigmoid.prior)
    found = probability(fit, np.sort(scores))
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert (np.diff(found) >= 0.0).all()


@given(seed=st.integers(0, 2**32 - 1), q=st.sampled_from([0.0, 0.1]))
def test_a_weight_counts_rows(seed, q):
    rng = np.random.default_rng(seed)
    rows = draw(rng, 60, slope=3.0, q=q)
    weights = rng.integers(0, 4, size=60)
    weighted = replace(rows, weights=weights.astype(float))
    if not q < np.average(rows.is_class, weights=weights) < 1.0 - q:
        return
    repeated = ScoredRows(
        np.repeat(rows.scores, weights), np.repeat(rows.is_class, weights), np.ones(weights.sum())
    )
    left, right = (fit_sigmoid(ask_all([one]), q) for one in (weighted, repeated))
    assert left.loss == pytest.approx(right.loss, rel=1e-12)
    if q == 0.0:  # else there may be two places with one loss
        np.testing.assert_allclose(
            probability(left, rows.scores), probability(right, rows.scores), rtol=1e-6
        )


# --- the calibrator ---


def plants_and_model(rng, n=900, classes=("healthy", "worn")):
    X = rng.normal(size=(n, 3))
    noisy = X[:, : len(classes)] + 0.5 * rng.normal(size=(n, len(classes)))
    y = np.array(classes)[noisy.argmax(axis=1)]
    plants = np.array(["east", "north", "south"])[rng.integers(3, size=n)]
    half = n // 2
    model = FDRSVC(epsilon=0.01).fit(X[:half], y[:half], clients=plants[:half])
    return model, X[half:], y[half:], plants[half:]


def test_clients_make_no_difference_to_the_shared_sigmoid(rng):
    model, X, y, plants = plants_and_model(rng)
    pooled = FederatedCalibrator().fit(model, X, y).predict_proba(X)
    federated = FederatedCalibrator().fit(model, X, y, clients=plants)
    np.testing.assert_allclose(federated.predict_proba(X), pooled, rtol=1e-9)
    assert federated.clients_ == dict.fromkeys(["east", "north", "south"], "shared")
    one_class = np.where(y == "worn", "east", "north")  # and clients with one class each
    apart = FederatedCalibrator().fit(model, X, y, clients=one_class)
    np.testing.assert_allclose(apart.predict_proba(X), pooled, rtol=1e-9)
    order = rng.permutation(len(X))
    other = FederatedCalibrator().fit(model, X[order], y[order], clients=plants[order])
    np.testing.assert_allclose(other.predict_proba(X), pooled, rtol=1e-9)


def test_columns_are_the_classes_and_the_model_carries_everything(rng, tmp_path):
    model, X, y, plants = plants_and_model(rng)
    calibrator = FederatedCalibrator(per_client=True).fit(model, X, y, clients=plants)
    found = calibrator.predict_proba(X)
    assert calibrator.classes_.tolist() == ["healthy", "worn"]
    assert found[y == "worn", 1].mean() > 0.7 > 0.3 > found[y == "healthy", 1].mean()
    assert calibrator.n_features_in_ == 3
    kept = calibrator.model_
    assert kept.certificate == model._linear_model().certificate
    assert kept.predict(X).tolist() == model.predict(X).tolist()
    save_model(kept, tmp_path / "pump")
    assert probabilities(load_model(tmp_path / "pump"), X).tobytes() == found.tobytes()
    assert "probabilities" not in model._linear_model().record, "the model is left as it was"
    again = clone(calibrator).set_params(per_client=False).fit(model, X, y)
    assert again.get_params() == {"method": "sigmoid", "label_noise": 0.0, "per_client": False}
    from_file = FederatedCalibrator().fit(load_model(tmp_path / "pump"), X, y, clients=plants)
    assert from_file.predict_proba(X).tobytes() == found.tobytes()


def test_more_than_two_classes_are_one_against_the_rest_as_in_scikit_learn(rng):
    model, X, y, plants = plants_and_model(rng, 1200, ("a", "b", "c"))
    scores = LogisticRegression().fit(X, y)  # any linear classifier
    theirs = CalibratedClassifierCV(
        FrozenEstimator(scores), method="sigmoid", ensemble=False, cv=2
    ).fit(X, y)
    ours = FederatedCalibrator().fit(scores, X, y, clients=plants)
    # Each of the three is off by their stopping rule, gradient 1e-6 over a curvature above 0.01.
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    own = FederatedCalibrator().fit(model, X, y, clients=plants)
    np.testing.assert_allclose(own.predict_proba(X).sum(axis=1), 1.0, rtol=4 * EPS)
    with pytest.raises(InvalidInputError, match="label_noise: must be 0 for more than two"):
        FederatedCalibrator(label_noise=0.1).fit(model, X, y)
    with pytest.raises(InvalidInputError, match=r"every class.*none is of 'c'"):
        FederatedCalibrator().fit(model, X[y != "c"], y[y != "c"])


def test_a_plant_that_differs_has_a_sigmoid_of_its_own(rng):
    model = LinearModel.checked([[1.0]], [0.0], ["Fault", "ok"], estimator="x")
    n = 1000
    X = rng.normal(size=(4 * n, 1))
    plants = np.repeat(["alike", "other", "small", "healthy"], n)
    odds = 2.0 * X[:, 0] + np.where(plants == "other", 3.0, 0.0)
    y = np.where(rng.random(4 * n) < expit(odds), "ok", "Fault")
    kept = (plants != "small") | (np.arange(4 * n) % 50 == 0)
    kept &= (plants != "healthy") | (y == "ok")
    X, y, plants = X[kept], y[kept], plants[kept]
    calibrator = FederatedCalibrator(per_client=True).fit(model, X, y, clients=plants)
    says = calibrator.clients_
    assert says["other"].startswith("its own, from 1000 rows, ")
    assert says["small"].startswith("shared: ")
    assert "where 2 is asked for (16 rows of each class do)" in says["small"]
    assert "tell nothing of its odds" in says["healthy"]
    mine = plants == "other"
    own = calibrator.predict_proba(X[mine], clients=plants[mine])
    alone = FederatedCalibrator().fit(model, X[mine], y[mine])
    np.testing.assert_allclose(own, alone.predict_proba(X[mine]), rtol=1e-9)
    shared = FederatedCalibrator().fit(model, X, y, clients=plants)
    for name in ("small", "healthy"):
        rows = plants == name
        expected = shared.predict_proba(X[rows])
        assert (calibrator.predict_proba(X[rows], clients=plants[rows]) == expected).all()
    assert set(Probabilities.of(calibrator.model_).clients) >= {"other"}
    with pytest.warns(CalibrationWarning, match="no rows of 'othr' in fit.*check the spelling"):
        calibrator.predict_proba(X[:2], clients=["othr", "other"])
    alike = FederatedCalibrator(per_client=True).fit(
        model, X[plants == "alike"], y[plants == "alike"], clients=rng.integers(2, size=n)
    )
    assert set(alike.clients_.values()) == {
        "shared: that fits its rows as well as a sigmoid of its own"
    }


@pytest.mark.parametrize("q", [0.0, 0.1])
def test_the_error_of_log_odds_is_that_of_many_draws(q):
    rng = np.random.default_rng(3)
    n, t = 2000, 0.2
    p = q + (1.0 - 2.0 * q) * t
    counts = rng.binomial(n, p, size=20_000)
    shares = (counts / n - q) / (1.0 - 2.0 * q)
    # Two terms of an expansion are left out, of relative size 1/(n t); so is 5/sqrt(2 draws).
    assert log_odds_error(n * (1.0 - p), n * p, q) == pytest.approx(logit(shares).std(), rel=0.05)
    if q == 0.0:
        assert log_odds_error(30.0, 10.0) == pytest.approx(np.sqrt(1 / 30 + 1 / 10))
        limit = np.log(2.0) / 1.96
        assert log_odds_error(16.0, 16.0) <= limit < log_odds_error(15.0, 15.0)
    else:
        assert log_odds_error(99.0, 1.0, q) == np.inf, "fewer than wrong labels alone would give"


def test_out_of_fold_scores_are_calibrated_by_the_same_function(rng):
    model, X, y, plants = plants_and_model(rng)
    linear = model._linear_model()
    codes = (y == "worn").astype(np.intp)
    rows = {
        str(name): CalibrationRows(
            linear.decision_function(X[plants == name]),
            codes[plants == name],
            np.ones(np.sum(plants == name)),
        )
        for name in np.unique(plants)
    }
    done = calibrate(linear, rows, per_client=True)
    calibrator = FederatedCalibrator(per_client=True).fit(model, X, y, clients=plants)
    assert done.model.record == calibrator.model_.record
    assert done.clients == calibrator.clients_


# --- bad input ---


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "isotonic"}, "method: must be one of 'sigmoid'"),
        ({"label_noise": 0.5}, "label_noise: must be below 0.5: if half of the labels are wrong"),
        ({"label_noise": -0.1}, "label_noise: must be a finite number, at least 0"),
        ({"label_noise": np.nan}, "label_noise: must be a finite number"),
        ({"label_noise": "0.1"}, "label_noise: must be a finite number"),
        ({"per_client": "yes"}, "per_client: must be True or False"),
        ({"label_noise": 0.3}, r"label_noise: must be below the share of the rarer label.*0\.25"),
    ],
)
def test_options_that_cannot_be(options, says):
    model = LinearModel.checked([[1.0]], [0.0], [0, 1], estimator="x")
    X, y = np.arange(8.0)[:, None], [0, 0, 0, 0, 0, 0, 1, 1]
    with pytest.raises(InvalidInputError, match=says):
        FederatedCalibrator(**options).fit(model, X, y)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y": [0, 0, 0, 0]}, "y: must hold rows of every class, over all clients.*none is of 1"),
        ({"y": [1, 1, 1, 1]}, "y: must hold rows of every class.*every one is of 1"),
        ({"y": [0, 1, 2, 1]}, r"y: labels must be among the model's classes \[0, 1\]; row 2 is 2"),
        ({"y": ["0", "1", "0", "1"]}, "y: labels must be among the model's classes"),
        ({"y": [0, 1]}, r"y: must have shape \(4,\)"),
        ({"y": [0, 1, None, 1]}, "y: labels must not be missing"),
        ({"sample_weight": [1.0, -1.0, 1.0, 1.0]}, "sample_weight: weights must not be negative"),
        ({"sample_weight": [1.7e308] * 4}, "sample_weight: their sum must be finite"),
        ({"sample_weight": [0.0] * 4}, "y: must hold rows of every class"),
        ({"sample_weight": [0.0, 1.0, 0.0, 1.0]}, "y: must hold rows of every class"),
        ({"clients": ["a"]}, r"clients: must have shape \(4,\)"),
        ({"clients": np.array([1, "1", 1, 1], dtype=object)}, "clients: "),
        ({"X": [[np.nan], [0.0], [0.0], [0.0]]}, "X: every value must be finite"),
        ({"X": np.zeros((4, 2))}, "X: must have the 1 features of training"),
        ({"model": LogisticRegression()}, "model: must be a fitted linear classifier"),
        ({"model": None}, "model: must be a fitted linear classifier"),
    ],
)
def test_rows_that_cannot_be(change, says):
    given_ = {
        "model": LinearModel.checked([[1.0]], [0.0], [0, 1], estimator="x"),
        "X": np.arange(4.0)[:, None],
        "y": [0, 1, 0, 1],
    }
    with pytest.raises(InvalidInputError, match=says):
        FederatedCalibrator().fit(**{**given_, **change})


def test_scores_too_large_to_tell_apart_are_named():
    model = LinearModel.checked([[1.0]], [0.0], [0, 1], estimator="x")
    with pytest.raises(NumericalError, match=r"X: a score is 1e\+301.*scale the features"):
        FederatedCalibrator().fit(model, [[1e301], [0.0]], [1, 0])


# --- how good they are ---


@given(
    rows=st.lists(st.tuples(st.booleans(), st.floats(0.0, 1.0)), min_size=2, max_size=60),
    n_bins=st.integers(1, 20),
    ties=st.booleans(),
)
def test_brier_and_calibration_error_against_brute_force(rows, n_bins, ties):
    y, p = (np.array(values, dtype=float) for values in zip(*rows, strict=True))
    p = np.round(p, 1) if ties else p
    assert brier_score(y, p) == pytest.approx(brier_score_loss(y, p, pos_label=1), abs=1e-15)
    order, bins, start = np.argsort(p, kind="stable"), [], 0
    for k in range(1, n_bins + 1):
        end = k * len(p) // n_bins
        while 0 < end < len(p) and p[order[end]] == p[order[end - 1]]:
            end += 1
        if end > start:
            bins.append(order[start:end])
            start = end
    expected = sum(len(b) * abs(y[b].mean() - p[b].mean()) for b in bins) / len(p)
    found = expected_calibration_error(y, p, n_bins)
    assert found == pytest.approx(expected, abs=1e-13)
    shuffled = np.random.default_rng(0).permutation(len(p))
    again = expected_calibration_error(y[shuffled], p[shuffled], n_bins)
    assert again == pytest.approx(found, abs=1e-13), "the order of rows does not matter"


def test_calibration_error_sees_what_is_off():
    y = np.tile([1.0, 0.0, 0.0, 0.0], 250)
    assert expected_calibration_error(y, np.full(1000, 0.25)) == 0.0
    assert expected_calibration_error(y, np.full(1000, 0.35)) == pytest.approx(0.1)
    assert brier_score(y, np.full(1000, 0.25)) == pytest.approx(0.25 * 0.75)


@pytest.mark.parametrize(
    ("y", "p", "says"),
    [
        ([0, 2], [0.1, 0.2], "outcomes: must be 0 or 1; row 1 is 2"),
        ([0, 1], [0.1, 1.2], "probability: must lie between 0 and 1; row 1 is 1.2"),
        ([0, 1], [0.1, np.nan], "probability: every value must be finite"),
        ([0], [0.1, 0.2], "outcomes: must have shape"),
        ([], [], "probability: must have an entry"),
    ],
)
def test_scores_of_probabilities_check_what_they_are_given(y, p, says):
    for score in (brier_score, expected_calibration_error):
        with pytest.raises(InvalidInputError, match=says):
            score(y, p)
    with pytest.raises(InvalidInputError, match="n_bins"):
        expected_calibration_error([0, 1], [0.2, 0.5], 0)


# --- the goals ---


def test_the_pump_with_wrong_labels_has_honest_probabilities():
    pump = make_pump("noisy-labels", random_state=0)
    assert np.mean(pump.y != pump.y_true) == pytest.approx(PUMP_NOISE, abs=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        briers = {row[1]: row[2] for row in summarise([*measure_pump()])}
    assert briers["shared"] <= 0.05
    assert briers["per client"] <= 0.05
    assert briers["shared"] < briers["label_noise=0"] < briers["before"]


@pytest.mark.slow
@pytest.mark.skipif(
    AI4I is None or not AI4I.is_file(),
    reason="AI4I 2020 is not here: ai4i/ai4i2020.tsv beside the folder FDRSVM_DATA",
)
def test_ai4i_has_honest_probabilities():
    for _, kind, brier, error in summarise([*measure_ai4i(AI4I)]):
        if kind != "before":
            assert brier <= 0.026
            assert error <= 0.015


# --- the pages ---

PAGE = Path(__file__).parents[2] / "docs" / "probabilities.md"


def test_the_page_prints_what_it_says(capsys):
    blocks = re.findall(
        r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", PAGE.read_text("utf-8"), re.S
    )
    assert len(blocks) == 4
    scope = {}
    for code, printed in blocks:
        exec(compile(code, PAGE.name, "exec"), scope)
        said = capsys.readouterr().out
        assert said == printed


def test_the_rows_that_the_pages_ask_for_suffice():
    limit = np.log(2.0) / 1.96
    assert log_odds_error(9.0, 72.0) <= limit < log_odds_error(9.0, 71.0)
