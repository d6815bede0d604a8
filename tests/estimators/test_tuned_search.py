"""FDRSVCCV with a tuned threshold, against a plain loop of FDRSVC fits and their scores."""

import json
import warnings

import numpy as np
import onnxruntime
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import balanced_accuracy_score, confusion_matrix

from fdrsvm import DegenerateModelWarning, InvalidInputError
from fdrsvm.decision.goals import FalseAlarmRate, MissCost
from fdrsvm.decision.histograms import true_counts
from fdrsvm.estimators import FDRSVC, FDRSVCCV
from tests.estimators.imbalanced import FAULT, OK, make_faults
from tests.estimators.structured_text import FunctionBlock
from tests.estimators.test_fdrsvccv import arrays, splits_of

GRID = {"epsilon": [0.001, 0.003], "class_weight": [None, "balanced"]}
QUICK = {"cv": 3, "tol": 1e-2, "random_state": 0}
CERTIFICATE = ("objective_", "lower_bound_", "gap_", "bound_radius_", "coef_", "intercept_")


def faults(**options):
    return make_faults(**{"n_rows": 360, "share": 0.1, "shift": 2.0, "n_features": 3, **options})


def search_on(rows, *, labels=None, **options):
    X, y, plants = rows
    return FDRSVCCV(**{"param_grid": GRID, **QUICK, **options}).fit(
        X, y if labels is None else np.where(y == FAULT, *labels), clients=plants
    )


def out_of_fold(search, X, y, plants, weights=None, **options):
    """Labels, scores and weights of held-out rows, from one fit of the best per fold."""
    found = []
    for split in splits_of(X, y, plants, search.n_splits_, 0, weights):
        rows, labels, owners, masses = arrays(split, "training")
        model = FDRSVC(tol=search.tol, **options, **search.best_params_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateModelWarning)
            model.fit(rows, labels, clients=owners, sample_weight=masses)
        rows, labels, owners, masses = arrays(split, "held_out")
        found.append((labels, model.decision_function(rows), masses, owners))
    return [np.concatenate(part) for part in zip(*found, strict=True)]


def goal_by_loop(scoring, positive, counts):
    """What is maximised, from a confusion matrix, in plain words."""
    hits, missed = counts[positive, positive], counts[positive, 1 - positive]
    alarms, quiet = counts[1 - positive, positive], counts[1 - positive, 1 - positive]
    if scoring == "balanced_accuracy":
        return (hits / (hits + missed) + quiet / (quiet + alarms)) / 2
    if scoring == "f1":
        return 2 * hits / (2 * hits + alarms + missed)
    if scoring == "accuracy":
        return (hits + quiet) / counts.sum()
    if isinstance(scoring, MissCost):
        return -(scoring.ratio * missed + alarms) / counts.sum()
    rate = alarms / (alarms + quiet)
    return hits / (hits + missed) if rate <= scoring.rate else -rate


def confusions_of_all_cuts(truth, scores, weights, classes):
    """One for each cut between two distinct scores, and beyond them all."""
    cuts = [-np.inf, *np.unique(scores)]
    return [
        confusion_matrix(truth, classes[(scores > cut).astype(int)], sample_weight=weights)
        for cut in cuts
    ]


SCORINGS = ["balanced_accuracy", "f1", "accuracy", MissCost(10), FalseAlarmRate(0.05)]


# --- where it cuts ---


@pytest.mark.parametrize("labels", [(FAULT, OK), ("worn", "ok"), (1, 0), (-1, 1), (False, True)])
@pytest.mark.parametrize("scoring", SCORINGS, ids=str)
def test_counts_and_score_are_those_of_held_out_rows_cut_at_the_threshold(scoring, labels):
    X, y, plants = faults()
    y = np.where(y == FAULT, *labels)
    search = search_on((X, y, plants), scoring=scoring)
    assert search.pos_label_ == labels[0]
    truth, scores, weights, _ = out_of_fold(search, X, y, plants)
    classes, positive = search.classes_, search.classes_.tolist().index(labels[0])
    counts = search.cv_results_["counts"][search.best_index_].sum(axis=0)
    cut = classes[(scores > search.threshold_).astype(int)]
    assert_array_equal(counts, confusion_matrix(truth, cut))
    found = goal_by_loop(scoring, positive, counts)
    assert search.best_score_ == pytest.approx(found, rel=1e-14)
    assert search.cv_results_["threshold"][search.best_index_] == search.threshold_
    # An interval that is not split any more holds fewer than 10 rows (1 in 256 are fewer here), so
    # that some edge is within 9 rows of the best of all cuts; each that moves changes two counts.
    tables = confusions_of_all_cuts(truth, scores, weights, classes)
    goals = [goal_by_loop(scoring, positive, table) for table in tables]
    best = max(goals)
    at = tables[goals.index(best)]
    near = [g for t, g in zip(tables, goals, strict=True) if abs(t - at).sum() <= 2 * 9]
    assert search.best_score_ >= min(near)
    assert search.best_score_ <= best


def test_rows_count_by_their_weight():
    X, y, plants = faults()
    weights = np.random.default_rng(0).integers(0, 4, size=len(y))
    search = FDRSVCCV(GRID, **QUICK).fit(X, y, clients=plants, sample_weight=weights)
    truth, scores, masses, _ = out_of_fold(search, X, y, plants, weights)
    cut = search.classes_[(scores > search.threshold_).astype(int)]
    counts = search.cv_results_["counts"][search.best_index_].sum(axis=0)
    assert_array_equal(counts, confusion_matrix(truth, cut, sample_weight=masses))
    copies = np.repeat(np.arange(len(y)), weights)
    repeated = search_on((X[copies], y[copies], plants[copies]))
    assert repeated.threshold_ == search.threshold_
    assert_array_equal(repeated.coef_, search.coef_)


def test_known_wrong_labels_correct_the_score_and_not_the_counts():
    X, y, plants = faults(share=0.3)
    wrong = np.random.default_rng(1).random(len(y)) < 0.1
    y = np.where(wrong, np.where(y == OK, FAULT, OK), y)
    search = search_on((X, y, plants), label_noise=0.1)
    counts = search.cv_results_["counts"][search.best_index_].sum(axis=0)
    assert counts.sum() == len(y)
    kept, moved = (1 - 0.1) / (1 - 2 * 0.1), 0.1 / (1 - 2 * 0.1)
    corrected = np.maximum(kept * counts - moved * counts[::-1], 0.0)
    np.testing.assert_allclose(true_counts(counts, 0.1), corrected, rtol=1e-13)
    expected = goal_by_loop("balanced_accuracy", 0, corrected)
    assert search.best_score_ == pytest.approx(expected, rel=1e-13)
    with pytest.raises(InvalidInputError, match="label_noise: must be below the share of the rar"):
        search_on((X, y, plants), label_noise=0.45)


def test_held_out_rows_are_those_of_the_plain_loop():
    X, y, plants = faults()
    search = search_on((X, y, plants))
    truth, scores, weights, owners = out_of_fold(search, X, y, plants)
    held = search.held_out_rows()
    assert sorted(held) == sorted(set(plants.tolist()))
    for name, rows in held.items():
        mine = owners == name
        assert_array_equal(rows.scores, scores[mine])
        assert_array_equal(search.classes_[rows.codes], truth[mine])
        assert_array_equal(rows.weights, weights[mine])


# --- what is tried ---


def test_parameters_that_are_set_are_not_varied_by_the_default_grid():
    rows = faults(n_rows=120)
    search = search_on(rows, param_grid=None, epsilon=0.01)
    assert sorted(search.best_params_) == ["class_weight", "kappa"]
    assert len(search.cv_results_["params"]) == 6
    assert search.best_estimator_.epsilon == 0.01
    search = search_on(rows, param_grid=["kappa"], class_weight="balanced")
    assert [point["kappa"] for point in search.cv_results_["params"]] == [0.1, 0.5, 1.0]
    assert search.best_estimator_.class_weight == "balanced"
    search = search_on(rows, param_grid=None, epsilon=0.01, kappa=0.5, class_weight="balanced")
    assert search.cv_results_["params"] == [{"epsilon": 0.01}]
    with pytest.raises(InvalidInputError, match="param_grid: must be one of 'epsilon', 'kappa'"):
        search_on(rows, param_grid=["tau"])


@pytest.mark.filterwarnings("ignore::fdrsvm.DegenerateModelWarning")  # there is nothing to find
@pytest.mark.parametrize("seed", range(3))
def test_a_configuration_that_ignores_the_features_never_wins(seed):
    # At a radius of half the label price w = 0 is best; any other model may rank no better.
    rows = faults(seed=seed, shift=0.0)
    search = search_on(rows, param_grid={"epsilon": [0.5, 0.0001], "class_weight": ["balanced"]})
    assert search.cv_results_["is_flat"].tolist() == [True, False]
    assert search.best_params_["epsilon"] == 0.0001


# --- what comes of it ---


@pytest.fixture(scope="module", params=[(FAULT, OK), ("worn", "ok")], ids=str)
def tuned(request):
    """A search whose threshold is far from 0, and its rows."""
    X, y, plants = faults()
    search = search_on(
        (X, y, plants),
        labels=request.param,
        param_grid={"epsilon": [0.001], "class_weight": [None]},
        scoring=MissCost(50),
    )
    assert abs(search.threshold_) > 0.05
    return search, X


def test_predict_cuts_there_and_a_file_keeps_it(tuned, tmp_path):
    search, X = tuned
    scores, above = search.decision_function(X), search.classes_[1]
    assert_array_equal(search.predict(X) == above, scores > search.threshold_)
    assert (search.predict(X) != search.classes_[(scores > 0.0).astype(int)]).any()
    search.save(tmp_path / "model")
    for kind in (FDRSVCCV, FDRSVC):
        loaded = kind.load(tmp_path / "model")
        assert (loaded.threshold_, loaded.pos_label_) == (search.threshold_, search.pos_label_)
        assert_array_equal(loaded.decision_function(X), scores)
        assert_array_equal(loaded.predict(X), search.predict(X))


def test_exports_cut_there_too(tuned):
    search, X = tuned
    # Rows whose score is within rounding of the cut may go either way in single precision.
    clear = abs(search.decision_function(X) - search.threshold_) > 1e-4
    session = onnxruntime.InferenceSession(search.to_onnx(), providers=["CPUExecutionProvider"])
    (name,) = [one.name for one in session.get_inputs()]
    dtype = np.float64 if "double" in session.get_inputs()[0].type else np.float32
    _, labels = session.run(None, {name: X.astype(dtype)})
    assert_array_equal(np.asarray(labels)[clear], search.predict(X)[clear])
    block = FunctionBlock(search.to_structured_text(alarm_on=[search.pos_label_]))
    for row in X[clear][:60]:
        assert block(row)["ALARM"] == (search.predict(row[None])[0] == search.pos_label_)
    content = json.loads(search.to_json())
    assert content["threshold"] == search.threshold_


@pytest.mark.parametrize("threshold", ["tuned", "zero"])
def test_the_certificate_is_that_of_fdrsvc_bit_for_bit(threshold):
    X, y, plants = faults()
    search = search_on((X, y, plants), threshold=threshold)
    alone = FDRSVC(tol=QUICK["tol"], **search.best_params_)
    with warnings.catch_warnings():  # cut at 0 it may find nothing
        warnings.simplefilter("ignore", DegenerateModelWarning)
        alone.fit(X, y, clients=plants)
    for name in CERTIFICATE:
        assert_array_equal(getattr(search, name), getattr(alone, name))
    assert search.worst_case_risk_per_client_ == alone.worst_case_risk_per_client_
    assert (search.threshold_ != 0.0) == (threshold == "tuned")
    assert alone.threshold_ == 0.0


def test_two_jobs_give_the_same_bits():
    rows = faults(n_rows=120)
    one, two = (search_on(rows, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.threshold_ == two.threshold_
    assert_array_equal(one.coef_, two.coef_)
    for name in ("counts", "threshold", "pooled_test_score", "is_flat", "max_gap"):
        assert_array_equal(one.cv_results_[name], two.cv_results_[name])


def test_without_refit_there_is_a_threshold_in_the_results_only():
    search, whole = (search_on(faults(), refit=refit) for refit in (False, True))
    assert_array_equal(search.cv_results_["threshold"], whole.cv_results_["threshold"])
    assert search.best_score_ == whole.best_score_
    assert not hasattr(search, "threshold_")
    assert search.pos_label_ == FAULT


def test_three_classes_have_no_threshold():
    X, y, plants = faults(share=0.4)
    y[(y == FAULT) & (X[:, 0] > np.median(X[y == FAULT, 0]))] = "worn"
    searches = [search_on((X, y, plants), threshold=one) for one in ("tuned", "zero")]
    assert [one.threshold_ for one in searches] == [0.0, 0.0]
    assert_array_equal(searches[0].coef_, searches[1].coef_)
    assert not hasattr(searches[0], "pos_label_")


@pytest.mark.filterwarnings("ignore::fdrsvm.ConvergenceWarning")
def test_runs_that_see_sums_only_are_tuned_as_well():
    X, y, plants = faults()
    masked = {"secure_aggregation": True, "max_rounds": 40}
    search = search_on((X, y, plants), **masked)
    truth, scores, _, _ = out_of_fold(search, X, y, plants, **masked)
    counts = search.cv_results_["counts"][search.best_index_].sum(axis=0)
    cut = search.classes_[(scores > search.threshold_).astype(int)]
    assert_array_equal(counts, confusion_matrix(truth, cut))
    assert balanced_accuracy_score(y, search.predict(X)) > 0.8
