"""FDRSVCCV: folds inside clients, counts and nothing else, one run for all numbers of rounds."""

import copy
import inspect
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, FitFailedWarning, NotFittedError
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from fdrsvm import (
    ConvergenceWarning,
    DegenerateModelWarning,
    InvalidInputError,
    UnsupportedError,
)
from fdrsvm.data.scaling import FederatedMinMaxScaler
from fdrsvm.data.training_data import read_training_data
from fdrsvm.decision.goals import score_counts
from fdrsvm.decision.histograms import FIRST_EDGES
from fdrsvm.estimators import FDRSVC, FDRSVCCV
from fdrsvm.estimators.search import (
    grid_points,
    held_out_counts,
    split_rows,
    train_once,
)
from fdrsvm.federated import train as train_module
from fdrsvm.federated.in_process import InProcess
from fdrsvm.model.linear_model import LinearModel

QUIET = pytest.mark.filterwarnings("ignore::fdrsvm.ConvergenceWarning")
# Of labels that are noise, of epsilon / kappa above 1/2 in the grid, or after too few rounds.
MAY_GIVE_UP = pytest.mark.filterwarnings("ignore::fdrsvm.DegenerateModelWarning")
LABELS = np.array(["healthy", "leak", "worn"])
CLIENTS = np.array(["north", "south", "west"])
GRID = {"epsilon": [0.001, 0.3], "kappa": [0.5, np.inf]}
QUICK = {"tol": 1e-2, "random_state": 0, "threshold": "zero"}  # tuned ones are further down


def make_data(rng, n_samples=90, n_features=3, n_classes=2):
    """Rows of three clients, noisy labels, features within [0, 1]."""
    X = rng.random((n_samples, n_features))
    scores = X[:, :n_classes] + 0.1 * rng.normal(size=(n_samples, n_classes))
    return X, LABELS[scores.argmax(axis=1)], CLIENTS[rng.integers(3, size=n_samples)]


@pytest.fixture
def data(rng):
    return make_data(rng)


def splits_of(X, y, clients, n_folds, seed, sample_weight=None):
    """The folds that a search draws."""
    rows = read_training_data(
        FDRSVC(), X, y, clients=clients, sample_weight=sample_weight, class_weight=None
    )
    return split_rows(rows, n_folds, seed)


def arrays(split, part):
    """Rows of all clients in one fold, as ``fit`` takes them."""
    parts = getattr(split, part)
    X = np.vstack([one.X for one in parts])
    y = split.classes[np.concatenate([one.codes for one in parts])]
    clients = np.repeat([one.name for one in parts], [len(one.codes) for one in parts])
    return X, y, clients, np.concatenate([one.weights for one in parts])


def by_plain_loop(X, y, clients, grid, n_folds, seed, sample_weight=None, **fixed):
    """(truth, prediction, weight) by configuration and fold, from one FDRSVC fit each."""
    splits = splits_of(X, y, clients, n_folds, seed, sample_weight)
    found = []
    for point in ParameterGrid(grid):
        found.append([])
        for split in splits:
            rows, labels, owners, weights = arrays(split, "training")
            model = FDRSVC(**fixed, **point)
            model.fit(rows, labels, clients=owners, sample_weight=weights)
            rows, labels, _, weights = arrays(split, "held_out")
            found[-1].append((labels, model.predict(rows), weights))
    return found


def pooled(folds):
    return [np.concatenate(part) for part in zip(*folds, strict=True)]


# --- what a search finds ---


@MAY_GIVE_UP
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"fit_intercept": False}])
def test_it_is_a_loop_over_fits_scored_on_pooled_predictions(n_classes, options, rng):
    X, y, clients = make_data(rng, n_classes=n_classes)
    search = FDRSVCCV(GRID, cv=3, **QUICK, **options).fit(X, y, clients=clients)
    results = search.cv_results_
    loop = by_plain_loop(X, y, clients, GRID, 3, 0, tol=1e-2, **options)
    for k, folds in enumerate(loop):
        truth, predicted, _ = pooled(folds)
        assert results["counts"][k].sum() == len(y)
        expected = balanced_accuracy_score(truth, predicted)
        assert_allclose(results["pooled_test_score"][k], expected, rtol=1e-14)
        for fold, (truth, predicted, _) in enumerate(folds):
            expected = balanced_accuracy_score(truth, predicted)
            assert_allclose(results[f"split{fold}_test_score"][k], expected, rtol=1e-14)
    best = search.best_index_
    assert best == results["pooled_test_score"].argmax()
    assert search.best_score_ == results["pooled_test_score"][best]
    assert search.best_params_ == list(ParameterGrid(GRID))[best] == results["params"][best]
    refitted = FDRSVC(tol=1e-2, **options, **search.best_params_).fit(X, y, clients=clients)
    assert_array_equal(search.coef_, refitted.coef_)
    assert_array_equal(search.predict(X), refitted.predict(X))


@MAY_GIVE_UP
def test_sample_weights_count_in_training_and_in_counts(data, rng):
    X, y, clients = data
    weights = rng.integers(0, 4, size=len(y))
    search = FDRSVCCV(GRID, cv=3, **QUICK).fit(X, y, clients=clients, sample_weight=weights)
    loop = by_plain_loop(X, y, clients, GRID, 3, 0, weights, tol=1e-2)
    for k, folds in enumerate(loop):
        truth, predicted, counted = pooled(folds)
        expected = balanced_accuracy_score(truth, predicted, sample_weight=counted)
        assert_allclose(search.cv_results_["pooled_test_score"][k], expected, rtol=1e-14)
    copies = np.repeat(np.arange(len(y)), weights)
    repeated = FDRSVCCV(GRID, cv=3, **QUICK).fit(X[copies], y[copies], clients=clients[copies])
    assert_array_equal(repeated.cv_results_["counts"], search.cv_results_["counts"])
    assert_array_equal(repeated.coef_, search.coef_)


def test_the_results_have_the_columns_of_scikit_learn(data):
    X, y, clients = data
    grid = [{"kappa": [0.5, 1.0]}, {"epsilon": [[0.1, 0.2, 0.3]], "norm": ["l2"]}]
    search = FDRSVCCV(grid, cv=2, **QUICK).fit(X, y, clients=clients)
    results = search.cv_results_
    assert results["params"] == list(ParameterGrid(grid))
    assert results["param_kappa"].tolist() == [0.5, 1.0, None]
    assert results["param_norm"].mask.tolist() == [True, True, False]
    assert results["param_epsilon"][2] == [0.1, 0.2, 0.3]
    by_fold = np.array([results[f"split{k}_test_score"] for k in range(2)])
    assert_allclose(results["mean_test_score"], by_fold.mean(axis=0))
    assert_allclose(results["std_test_score"], by_fold.std(axis=0))
    assert results["counts"].shape == (3, 2, 2, 2)
    assert (results["max_gap"] <= 1e-2).all()
    assert results["error"].tolist() == [""] * 3
    assert sorted(pd.DataFrame({k: v for k, v in results.items() if k != "counts"})) == sorted(
        results.keys() - {"counts"}
    )
    assert (search.n_splits_, search.scoring_) == (2, "balanced_accuracy")
    # For each configuration the first question alone asks for this many, of both classes.
    assert search.n_numbers_shared_ > 3 * 2 * (len(FIRST_EDGES) + 1)
    assert search.n_numbers_shared_ % 2 == 0


def test_of_equal_scores_the_first_is_taken(data):
    X, y, clients = data
    search = FDRSVCCV({"kappa": [0.7, 0.7, 0.7]}, cv=2, **QUICK).fit(X, y, clients=clients)
    assert search.cv_results_["rank_test_score"].tolist() == [1, 1, 1]
    assert search.best_index_ == 0


def test_the_default_grid_is_the_papers_with_and_without_balanced_classes(rng):
    X = rng.random((48, 2))
    y = (X[:, 0] + 0.3 * rng.random(48) > 0.6).astype(int)
    clients = np.repeat([1, 2, 3], 16)
    search = FDRSVCCV(cv=2, refit=False, **QUICK).fit(X, y, clients=clients)
    assert len(search.cv_results_["params"]) == 24
    assert set(search.cv_results_["param_class_weight"]) == {None, "balanced"}
    epsilons = sorted(set(search.cv_results_["param_epsilon"]))
    assert_allclose(epsilons, [1 / (beta * 16) for beta in (100, 10, 1, 0.1)])
    assert sorted(set(search.cv_results_["param_kappa"])) == [0.1, 0.5, 1.0]


def test_the_default_radii_go_by_client_where_sizes_differ(rng):
    X, y = rng.random((30, 2)), np.arange(30) % 2
    rows = read_training_data(
        FDRSVC(),
        X,
        y,
        clients=np.repeat(["a", "b"], [20, 10]),
        sample_weight=None,
        class_weight=None,
    )
    points = grid_points(["epsilon", "kappa"], rows)
    assert len(points) == 12
    assert points[3]["epsilon"] == {"a": 1 / 200, "b": 1 / 100}


def test_automatic_radii_follow_the_rows_of_the_fold(data):
    X, y, clients = data
    split = splits_of(X, y, clients, 3, 0)[0]
    folded = split.training_data(class_weight=None, support=None, outside="refuse")
    sizes = [len(one.codes) for one in split.training]
    (result,) = train_once([FDRSVC(tol=1e-2)], folded)
    found = [profile.epsilon for profile in result.federation.profiles]
    assert_allclose(found, 1 / (10 * np.array(sizes)))


# --- scores ---


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_counts_are_scikit_learns(n_classes, rng):
    truth, predicted = rng.integers(n_classes, size=(2, 50))
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (truth, predicted), 1.0)
    assert_allclose(score_counts(counts, "accuracy"), accuracy_score(truth, predicted))
    assert_allclose(
        score_counts(counts, "balanced_accuracy"), balanced_accuracy_score(truth, predicted)
    )
    macro = f1_score(truth, predicted, average="macro")
    assert_allclose(score_counts(counts, "f1_macro"), macro)
    if n_classes == 2:
        assert_allclose(score_counts(counts, "f1"), f1_score(truth, predicted))
    assert score_counts(counts, lambda found: found[0, 0]) == counts[0, 0]


def test_scores_where_a_class_does_not_occur():
    only_first = np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert score_counts(only_first, "f1_macro") == 1.0
    assert score_counts(only_first, "balanced_accuracy") == 1.0
    assert score_counts(only_first[:2, :2], "f1") == 0.0
    assert np.isnan(score_counts(np.zeros((2, 2)), "accuracy"))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_client_counts_what_the_model_takes_for_what(container):
    model = LinearModel.checked([[1.0, 0.0]], [-0.5], [0, 1], estimator="FDRSVC")
    X = container(np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.5, 0.0]]))
    y = np.array([0, 0, 1, 1])
    assert held_out_counts(model, X, y).tolist() == [[1, 1], [1, 1]]
    assert held_out_counts(model, X, y, np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [[1, 2], [4, 3]]
    assert held_out_counts(model, X[:0], y[:0]).tolist() == [[0, 0], [0, 0]]


@MAY_GIVE_UP
@pytest.mark.parametrize(
    "scoring", ["accuracy", "balanced_accuracy", "f1_macro", lambda counts: -counts[1, 0]]
)
def test_the_scoring_decides(scoring, data):
    X, y, clients = data
    search = FDRSVCCV(GRID, cv=3, scoring=scoring, **QUICK).fit(X, y, clients=clients)
    sums = search.cv_results_["counts"].sum(axis=1)
    scores = [score_counts(counts, scoring) for counts in sums]
    assert_array_equal(search.cv_results_["pooled_test_score"], scores)
    assert search.best_score_ == max(scores)


# --- folds ---


def test_folds_are_even_in_every_class_of_every_client(rng):
    X, y, clients = make_data(rng, n_samples=200, n_classes=3)
    splits = splits_of(X, y, clients, 5, 0)
    for g in range(3):
        held = [np.bincount(split.held_out[g].codes, minlength=3) for split in splits]
        assert np.ptp(held, axis=0).max() <= 1
        assert np.ptp(np.sum(held, axis=1)) <= 1
    for split in splits:
        for kept, left in zip(split.training, split.held_out, strict=True):
            assert len(kept.codes) + len(left.codes) == np.sum(clients == kept.name)


def test_neither_the_order_of_rows_nor_of_clients_matters(data, rng):
    X, y, clients = data
    order = rng.permutation(len(y))
    one = FDRSVCCV(GRID, cv=3, **QUICK).fit(X, y, clients=clients)
    other = FDRSVCCV(GRID, cv=3, **QUICK).fit(X[order], y[order], clients=clients[order])
    assert_array_equal(one.cv_results_["counts"], other.cv_results_["counts"])
    assert_array_equal(one.coef_, other.coef_)


def test_a_clients_folds_are_its_own_affair(data):
    X, y, clients = data
    everyone = splits_of(X, y, clients, 3, 0)
    two = clients != "south"
    fewer = splits_of(X[two], y[two], clients[two], 3, 0)
    for all_of_it, part in zip(everyone, fewer, strict=True):
        assert_array_equal(all_of_it.held_out[0].X, part.held_out[0].X)
        assert_array_equal(all_of_it.held_out[2].X, part.held_out[1].X)


def test_the_seed_decides_the_folds(data):
    X, y, clients = data

    def counts(random_state):
        search = FDRSVCCV({"kappa": [1.0]}, cv=3, tol=0.1, refit=False, random_state=random_state)
        return search.fit(X, y, clients=clients).cv_results_["counts"]

    assert_array_equal(counts(1), counts(1))
    assert_array_equal(counts(np.random.RandomState(1)), counts(np.random.RandomState(1)))
    assert len({counts(seed).tobytes() for seed in range(5)}) > 1


def test_clients_with_one_class_and_clients_with_few_rows_take_part(data, rng):
    X, y, _ = data
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    clients = np.array(
        ["healthy plant"] * 30 + ["big"] * 55 + ["pair"] * 2 + ["lone"] * 1 + ["two"] * 2
    )
    splits = splits_of(X, y, clients, 5, 0)
    labels = [one.name for one in splits[0].training]
    for split in splits:
        assert min(len(one.codes) for one in split.training) >= 1
        assert not len(split.held_out[labels.index("lone")].codes)
    held = [sum(len(one.codes) > 0 for one in split.held_out) for split in splits]
    assert max(held) <= 4
    search = FDRSVCCV({"kappa": [0.5, 1.0]}, **QUICK).fit(X, y, clients=clients)
    assert search.cv_results_["counts"].sum(axis=(1, 2, 3)).tolist() == [89.0, 89.0]
    assert search.best_score_ > 0.7


def test_a_class_with_a_single_row_always_trains(rng):
    X, y, clients = make_data(rng, n_samples=40)
    y[7] = "worn"
    for seed in range(10):
        for split in splits_of(X, y, clients, 4, seed):
            _, trained, *_ = arrays(split, "training")
            assert set(trained) == {"healthy", "leak", "worn"}
    search = FDRSVCCV({"kappa": [1.0]}, cv=4, **QUICK)
    with pytest.warns(
        DegenerateModelWarning, match=r"never predicts 'worn' \(\d+ of 40 rows"
    ) as said:
        search.fit(X, y, clients=clients)
    assert [one.filename for one in said] == [__file__]
    assert search.cv_results_["counts"].sum() == 39.0


def test_single_rows_of_a_class_are_held_out_as_long_as_others_train(rng):
    n_clients = 8
    X = rng.random((4 * n_clients, 2))
    y, clients = np.tile([0, 0, 0, 1], n_clients), np.repeat(np.arange(n_clients), 4)
    splits = splits_of(X, y, clients, 3, 0)
    assert sum(np.sum(one.codes == 1) for split in splits for one in split.held_out) == n_clients
    assert all(1 in arrays(split, "training")[1] for split in splits)


def test_more_folds_than_rows_leave_some_without_a_score(rng):
    X, y = rng.random((6, 2)), np.array([0, 1, 0, 1, 0, 1])
    search = FDRSVCCV({"kappa": [1.0]}, cv=8, **QUICK).fit(X, y)
    by_fold = [search.cv_results_[f"split{k}_test_score"][0] for k in range(8)]
    assert np.isnan(by_fold).sum() == 2
    assert_allclose(search.cv_results_["mean_test_score"][0], np.nanmean(by_fold))
    assert search.cv_results_["counts"].sum() == 6


def test_equal_rows_share_a_fold(rng):
    X = np.repeat(rng.random((20, 2)), 3, axis=0)
    y = np.repeat(np.arange(20) % 2, 3)
    for split in splits_of(X, y, None, 4, 0):
        assert set(split.held_out[0].weights) == {3.0}


# --- one run for all numbers of rounds ---


class CountingTransport(InProcess):
    n_exchanges = 0

    def exchange(self, broadcasts, deadline):
        type(self).n_exchanges += 1
        return super().exchange(broadcasts, deadline)


@QUIET
@MAY_GIVE_UP
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("tol", [0.0, 0.05])
@pytest.mark.parametrize("algorithm", ["bundle", "admm", "admm-sc", "subgradient"])
def test_a_model_read_off_a_longer_run_is_that_of_a_shorter_one(algorithm, tol, n_classes, rng):
    X, y, clients = make_data(rng, n_classes=n_classes)
    ends = [1, 2, 5, 13, 24, 9]
    models = [FDRSVC(algorithm, max_rounds=end, tol=tol) for end in ends]
    rows = read_training_data(
        FDRSVC(), X, y, clients=clients, sample_weight=None, class_weight=None
    )
    for model, result in zip(models, train_once(models, rows), strict=True):
        model.fit(X, y, clients=clients)
        found = result.model.reshape(len(model.coef_), -1)
        assert_array_equal(found[:, :-1], model.coef_)
        assert_array_equal(found[:, -1], model.intercept_)
        assert result.gap == np.max(model.gap_)
        assert result.n_rounds == model.n_iter_


@pytest.mark.parametrize("algorithm", ["bundle", "admm", "subgradient"])
def test_a_grid_over_rounds_costs_one_run_a_fold(algorithm, data, monkeypatch):
    X, y, clients = data
    monkeypatch.setattr(train_module, "InProcess", CountingTransport)
    monkeypatch.setattr(CountingTransport, "n_exchanges", 0)
    ends = [4, 8, 12]
    search = FDRSVCCV(
        {"max_rounds": ends}, cv=3, algorithm=algorithm, tol=0.0, random_state=0, refit=False
    ).fit(X, y, clients=clients)
    evaluations = 0 if algorithm == "bundle" else len(ends)
    assert CountingTransport.n_exchanges == 3 * (12 + evaluations)
    for end, counts in zip(ends, search.cv_results_["counts"], strict=True):
        alone = clone(search).set_params(param_grid={"max_rounds": [end]})
        assert_array_equal(alone.fit(X, y, clients=clients).cv_results_["counts"][0], counts)


def test_rounds_and_other_parameters_can_be_crossed(data, monkeypatch):
    X, y, clients = data
    monkeypatch.setattr(train_module, "InProcess", CountingTransport)
    monkeypatch.setattr(CountingTransport, "n_exchanges", 0)
    grid = {"step_size": [0.3, 3.0], "max_rounds": [3, 6]}
    search = FDRSVCCV(
        grid, cv=2, algorithm="subgradient", tol=0.0, random_state=0, threshold="zero"
    )
    clone(search).set_params(refit=False).fit(X, y, clients=clients)
    assert CountingTransport.n_exchanges == 2 * 2 * (6 + 2)
    search.fit(X, y, clients=clients)
    assert search.n_iter_ == search.best_params_["max_rounds"]
    loop = by_plain_loop(X, y, clients, grid, 2, 0, algorithm="subgradient", tol=0.0)
    for k, folds in enumerate(loop):
        truth, predicted, _ = pooled(folds)
        expected = balanced_accuracy_score(truth, predicted)
        assert_allclose(search.cv_results_["pooled_test_score"][k], expected, rtol=1e-14)


# --- parallel ---


PROCESSES = """
import numpy as np
from numpy.testing import assert_array_equal
from fdrsvm import FDRSVCCV

rng = np.random.default_rng(3)
X, clients = rng.random((90, 3)), np.arange(90) % 3
y = X[:, 0] + 0.2 * rng.normal(size=90) > 0.5
settings = {"cv": 3, "tol": 1e-2, "random_state": 0}
grid = {"epsilon": [0.001, 0.3], "kappa": [0.5, np.inf]}
for attempt in range(2):  # the first compiles what no cache holds yet
    one = FDRSVCCV(grid, n_jobs=1, **settings).fit(X, y, clients=clients)
"""

COMPARED = """
two = FDRSVCCV(grid, n_jobs=2, n_threads=2, **settings).fit(X, y, clients=clients)
for name, column in one.cv_results_.items():
    assert_array_equal(column, two.cv_results_[name])
assert_array_equal(one.coef_, two.coef_)
"""


@pytest.mark.slow
def test_processes_change_nothing():
    """In a new process: code it has just compiled and code loaded from disk may round otherwise."""
    for code in (PROCESSES, PROCESSES + COMPARED):
        subprocess.run([sys.executable, "-c", code], check=True)


# --- warnings and failures ---


def test_configurations_that_stop_early_give_one_warning_with_their_number(data):
    X, y, clients = data
    search = FDRSVCCV({"max_rounds": [2, 3, 200]}, cv=3, random_state=0, refit=False)
    with pytest.warns(
        ConvergenceWarning, match="2 of 3 configurations did not reach tol"
    ) as caught:
        search.fit(X, y, clients=clients)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (search.cv_results_["max_gap"] > 1e-2).tolist() == [True, True, False]


def test_without_a_tolerance_there_is_no_warning(data):
    X, y, clients = data
    FDRSVCCV({"max_rounds": [2, 3]}, cv=2, tol=0.0).fit(X, y, clients=clients)


def test_options_that_do_not_go_together_are_recorded_and_the_others_tried(data):
    X, y, clients = data
    grid = {"loss": ["hinge", "logistic"], "support": [None, "unit-box"]}
    search = FDRSVCCV(grid, cv=2, tol=0.05, random_state=0)
    with pytest.warns(FitFailedWarning, match="1 of 4 .* a support is possible with") as caught:
        search.fit(X, y, clients=clients)
    assert len(caught) == 1
    results = search.cv_results_
    assert np.isnan(results["pooled_test_score"]).tolist() == [False, False, False, True]
    assert np.isnan(results["mean_test_score"]).tolist() == [False, False, False, True]
    assert results["rank_test_score"][3] == 4
    assert results["error"][3].startswith("UnsupportedError: a support is possible with")


def test_if_no_configuration_has_a_score_that_is_an_error(data):
    X, y, clients = data
    search = FDRSVCCV({"kappa": [0.5, 1.0]}, algorithm="admm", support="unit-box")
    with pytest.raises(UnsupportedError, match=r"none of 2 .* algorithm='admm' solves"):
        search.fit(X, y, clients=clients)
    search = FDRSVCCV({"kappa": [0.5]}, cv=2, scoring=lambda counts: np.nan, **QUICK)
    with pytest.raises(UnsupportedError, match=r"none of 1 .* scoring gives nan"):
        search.fit(X, y, clients=clients)


def test_verbose_prints_a_line_a_configuration(data, capsys):
    X, y, clients = data
    search = FDRSVCCV({"kappa": [0.5, 1.0]}, cv=2, verbose=1, **QUICK).fit(X, y, clients=clients)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("configuration 2, {'kappa': 1.0}: score 0.")
    search.set_params(verbose=2).fit(X, y, clients=clients)
    assert len(capsys.readouterr().out.splitlines()) == 2 + search.n_iter_


# --- the model ---


def test_everything_fitted_is_that_of_the_best_estimator(data, tmp_path):
    X, y, clients = data
    frame = pd.DataFrame(X, columns=["pressure", "flow", "heat"])
    search = FDRSVCCV(GRID, cv=2, tol=1e-2, random_state=np.random.RandomState(0))
    best = search.fit(frame, y, clients=clients).best_estimator_
    assert isinstance(best, FDRSVC)
    for name in vars(best):
        if name.endswith("_"):
            assert getattr(search, name) is getattr(best, name)
    assert_array_equal(search.decision_function(frame), best.decision_function(frame))
    assert search.score(frame, y) == best.score(frame, y)
    assert search.to_json() == best.to_json()
    assert search.to_onnx() == best.to_onnx()
    assert search.to_structured_text() == best.to_structured_text()
    search.save(tmp_path / "model.fdrsvm")
    for kind in (FDRSVC, FDRSVCCV):
        loaded = kind.load(tmp_path / "model.fdrsvm")
        assert isinstance(loaded, kind)
        assert_array_equal(loaded.predict(frame), best.predict(frame))
        assert loaded.gap_ == search.gap_


def test_without_refit_there_are_scores_and_no_model(data):
    X, y, clients = data
    search = FDRSVCCV(GRID, cv=2, **QUICK).fit(X, y, clients=clients)
    search.set_params(refit=False).fit(X, y, clients=clients)
    assert search.best_params_ in list(ParameterGrid(GRID))
    assert not hasattr(search, "coef_")
    for use in (search.predict, search.decision_function):
        with pytest.raises(NotFittedError, match="no model after a fit with refit=False"):
            use(X)
    with pytest.raises(NotFittedError, match="refit=False"):
        search.to_json()


def test_it_has_every_parameter_of_fdrsvc_with_the_same_default():
    own, base = (inspect.signature(kind).parameters for kind in (FDRSVCCV, FDRSVC))
    assert {name: own[name].default for name in base} == {
        name: parameter.default for name, parameter in base.items()
    }


def test_parameters_outside_the_grid_reach_the_folds_and_the_model(data):
    X, y, clients = data
    fixed = {"norm": "l2", "epsilon": 0.05, "client_weights": "samples", "tol": 2e-2}
    search = FDRSVCCV({"kappa": [0.5, 1.0]}, cv=2, random_state=0, threshold="zero", **fixed)
    search.fit(X, y, clients=clients)
    loop = by_plain_loop(X, y, clients, {"kappa": [0.5, 1.0]}, 2, 0, **fixed)
    for k, folds in enumerate(loop):
        truth, predicted, _ = pooled(folds)
        expected = balanced_accuracy_score(truth, predicted)
        assert_allclose(search.cv_results_["pooled_test_score"][k], expected, rtol=1e-14)
    assert search.best_estimator_.get_params()["norm"] == "l2"


def test_how_rows_are_read_may_vary_too(data):
    X, y, clients = data
    grid = {"class_weight": [None, "balanced", {"leak": 5.0}], "support": [None, "unit-box"]}
    search = FDRSVCCV(grid, cv=2, **QUICK).fit(X, y, clients=clients)
    loop = by_plain_loop(X, y, clients, grid, 2, 0, tol=1e-2)
    for k, folds in enumerate(loop):
        truth, predicted, _ = pooled(folds)
        expected = balanced_accuracy_score(truth, predicted)
        assert_allclose(search.cv_results_["pooled_test_score"][k], expected, rtol=1e-14)


def test_sparse_rows_stay_sparse(data):
    X, y, clients = data
    X = np.where(X < 0.3, 0.0, X)
    dense = FDRSVCCV(GRID, cv=3, **QUICK).fit(X, y, clients=clients)
    thin = FDRSVCCV(GRID, cv=3, **QUICK).fit(sparse.csr_array(X), y, clients=clients)
    assert_allclose(
        thin.cv_results_["pooled_test_score"], dense.cv_results_["pooled_test_score"], atol=0.05
    )
    assert thin.cv_results_["counts"].sum() == dense.cv_results_["counts"].sum()


# --- scikit-learn's contract ---

# The other two xfails of `make test` (see test_estimators.py): the check cannot be put to a search
# that draws its folds inside clients, and the test it names puts the question its own way.
GIVEN_FOLDS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "it hands over row numbers as cv, and folds "
    "are drawn inside each client here; test_sample_weights_count_in_training_and_in_counts has it"
    for kind in ("dense", "sparse")
}


@QUIET
@MAY_GIVE_UP
@parametrize_with_checks(
    # A tuned threshold is not the 0 that two of the checks expect, whatever decides (as with
    # scikit-learn's own TunedThresholdClassifierCV).
    [
        FDRSVCCV(
            {"kappa": [0.5, 1.0]}, cv=2, max_rounds=20, tol=1e-2, random_state=0, threshold="zero"
        )
    ],
    expected_failed_checks=lambda estimator: GIVEN_FOLDS,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_scikit_learn_array_api_check_that_needs_a_setting_of_its_own():
    # scikit-learn skips it above unless this is set before SciPy is imported.
    code = (
        "from sklearn.utils.estimator_checks import check_array_api_input as check\n"
        "from fdrsvm.estimators import FDRSVCCV\n"
        "check('FDRSVCCV', FDRSVCCV({'kappa': [1.0]}, cv=2, tol=1e-2), 'numpy')\n"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_clients_travel_by_metadata_routing_in_a_pipeline(data):
    X, y, clients = data
    scaler = FederatedMinMaxScaler(limits=(-1.0, 2.0))
    search = FDRSVCCV({"kappa": [0.5, 1.0]}, cv=2, support="unit-box", **QUICK)
    with config_context(enable_metadata_routing=True):
        pipeline = Pipeline(
            [
                ("scale", clone(scaler).set_fit_request(clients=True)),
                ("svc", clone(search).set_fit_request(clients=True)),
            ]
        )
        pipeline.fit(X, y, clients=clients)
    by_hand = search.fit(scaler.fit_transform(X, clients=clients), y, clients=clients)
    assert pipeline["svc"].client_labels_.tolist() == CLIENTS.tolist()
    assert_array_equal(pipeline["svc"].coef_, by_hand.coef_)
    assert_array_equal(pipeline.predict(X), by_hand.predict(scaler.transform(X)))


# --- bad input ---


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ({"kappa": [1.0], "C": [1.0], "gamma": [2.0]}, "unknown: 'C', 'gamma'"),
        ([{"kappa": [1.0]}, {"cv": [3]}], "must name parameters of FDRSVC; unknown: 'cv'"),
        ({}, "must vary a parameter; it is empty"),
        ([], "must vary a parameter; it is empty"),
        ([{"kappa": [1.0]}, {}], "must vary a parameter; it is empty"),
        ({"kappa": []}, "kappa must have a value; it has none"),
        ({"kappa": 1.0}, "the values of kappa must be a list; they are 1.0"),
        ({"norm": "l2"}, "the values of norm must be a list; they are 'l2'"),
        ({"kappa": np.ones((2, 2))}, "the values of kappa must be a list"),
        ({"epsilon": {"north": 0.1}}, "the values of epsilon must be a list"),
        ("kappa", "must be a mapping or a list of mappings; it is 'kappa'"),
        (3, "must be a mapping or a list of mappings; it is 3"),
        (["rho"], "must be one of 'epsilon', 'kappa', 'class_weight'"),
        (["kappa", {}], "must be a mapping or a list of mappings; it has 'kappa'"),
    ],
    ids=str,
)
def test_a_grid_that_is_none_is_refused(grid, sentence, data):
    X, y, clients = data
    with pytest.raises(InvalidInputError, match=f"param_grid: .*{sentence}"):
        FDRSVCCV(grid).fit(X, y, clients=clients)


@pytest.mark.parametrize(
    "options",
    [
        {"kappa": [1.0, 0.0]},
        {"epsilon": [0.1, -0.1]},
        {"epsilon": [{"east": 0.1}]},
        {"norm": ["l2", "l3"]},
        {"loss": ["squared"]},
        {"max_rounds": [10, 0]},
        {"max_rounds": [2.5, 10]},
        {"tol": [-1.0]},
        {"client_weights": [[0.0, 0.0, 0.0]]},
        {"class_weight": ["fair"]},
        {"support": ["box"]},
        {"n_threads": [0]},
        {"algorithm": ["newton"]},
    ],
    ids=str,
)
def test_a_value_that_breaks_a_rule_is_named_before_any_run(options, data, monkeypatch):
    X, y, clients = data
    monkeypatch.setattr(train_module, "run_rounds", None)
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        FDRSVCCV(options, **QUICK).fit(X, y, clients=clients)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cv": 1}, "cv: must be a whole number, at least 2"),
        ({"cv": "five"}, "cv: must be a whole number"),
        ({"scoring": "roc_auc"}, "scoring: must be one of 'f1', 'f1_macro', 'accuracy'"),
        ({"scoring": 3}, "scoring: must be one of"),
        ({"refit": "yes"}, "refit: must be True or False"),
        ({"kappa": -1.0, "param_grid": {"epsilon": [0.1]}}, "kappa: must be a number above 0"),
    ],
    ids=str,
)
def test_options_that_break_a_rule_are_named(options, sentence, data):
    X, y, clients = data
    with pytest.raises(InvalidInputError, match=sentence):
        FDRSVCCV(**options).fit(X, y, clients=clients)


def test_f1_of_three_classes_is_refused(rng):
    X, y, clients = make_data(rng, n_classes=3)
    with pytest.raises(InvalidInputError, match="'f1' is for two classes, 'f1_macro' for more"):
        FDRSVCCV(scoring="f1").fit(X, y, clients=clients)


def test_rows_that_break_a_rule_are_named(data):
    X, y, clients = data
    with pytest.raises(InvalidInputError, match=r"clients: must have shape \(90,\)"):
        FDRSVCCV().fit(X, y, clients=clients[:-1])
    with pytest.raises(InvalidInputError, match="two or more classes over all clients"):
        FDRSVCCV().fit(X, ["healthy"] * 90, clients=clients)
    with pytest.raises(InvalidInputError, match="some client must have two different rows"):
        FDRSVCCV().fit(X, y, clients=np.arange(90))
    frame = pd.DataFrame(X, columns=["pressure", "flow", "heat"])
    frame.loc[5, "heat"] = 1.5
    with pytest.raises(InvalidInputError, match=r"row 5, column 2 \('heat'\) is 1.5, outside"):
        FDRSVCCV({"support": [None, "unit-box"]}).fit(frame, y, clients=clients)


def test_labels_in_a_column_are_read_with_one_warning(data):
    X, y, clients = data
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        FDRSVCCV({"kappa": [1.0]}, cv=2, **QUICK).fit(X, y[:, None], clients=clients)
    assert len(caught) == 1


@QUIET
@MAY_GIVE_UP
@pytest.mark.parametrize("name", ["epsilon", "kappa"])
def test_one_value_per_client_is_left_as_it_is(name, data):
    X, y, clients = data
    values = np.array([0.1, 0.2, 0.3])
    given = {"cv": 2, "tol": 0.05, name: values}
    search = FDRSVCCV(**given, random_state=0).fit(X, y, clients=clients)
    assert name not in search.best_params_
    assert_array_equal(getattr(search.best_estimator_, name), values)


@MAY_GIVE_UP
def test_a_configuration_that_failed_does_not_win_over_flat_ones(data):
    X, y, clients = data
    grid = {"loss": ["logistic", "hinge"], "support": ["unit-box"]}
    search = FDRSVCCV(grid, cv=2, epsilon=10.0, tol=0.05, random_state=0)
    with pytest.warns(FitFailedWarning, match="1 of 2"):
        search.fit(X, y, clients=clients)
    assert search.cv_results_["is_flat"].tolist() == [False, True]
    assert search.best_params_["loss"] == "hinge"
    assert search.cv_results_["rank_test_score"].tolist() == [2, 1]


def test_neither_copies_nor_a_failed_fit_hold_scores_of_rows(data):
    X, y, clients = data
    search = FDRSVCCV({"kappa": [0.5]}, cv=2, **QUICK).fit(X, y, clients=clients)
    assert sum(len(one.scores) for one in search.held_out_rows().values()) == len(X)
    search.listen(lambda done, of_all: None)  # nothing can hand this to another process
    other = copy.deepcopy(search)
    assert_array_equal(other.predict(X), search.predict(X))
    assert not {"_held_out", "_tell"} & set(search.__getstate__())
    with pytest.raises(NotFittedError, match="in this process only"):
        other.held_out_rows()
    with pytest.raises(ValueError, match="scoring"):
        search.set_params(scoring="no such").fit(X, y, clients=clients)
    with pytest.raises(NotFittedError, match="in this process only"):
        search.held_out_rows()
