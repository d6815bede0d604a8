"""Splits, folds and scores of the experiments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, f1_score
from sklearn.utils import Bunch

from fdrsvm.datasets import make_pump
from fdrsvm_paper.samples import N_FOLDS, sample_pump, split_uci
from fdrsvm_paper.scores import score


@pytest.fixture
def data(rng):
    n = 203
    y = np.where(np.arange(n) < 60, 1.0, -1.0)
    return Bunch(X=np.column_stack([np.arange(n), rng.normal(size=n)]), y=y)


def test_training_and_test_rows_have_the_authors_sizes_and_proportions(data):
    sample = split_uci(data, (1, 2))
    assert len(sample.y) == 203 * 7 // 10 - 2
    assert len(sample.y_test) == 203 * 3 // 10 - 2
    assert not set(sample.X[:, 0]) & set(sample.X_test[:, 0])
    for y in (sample.y, sample.y_test):
        assert abs((y > 0).sum() - len(y) * 60 / 203) <= 0.5
    for g in range(4):
        mine = sample.y[sample.clients == g]
        assert abs(mine.size - sample.y.size / 4) < 1
        assert abs((mine > 0).sum() - (sample.y > 0).sum() / 4) < 1


def test_features_are_normalised_by_the_training_rows(data):
    sample = split_uci(data, (1, 2))
    low, high = sample.X.min(axis=0), sample.X.max(axis=0)
    assert_allclose(sample.X_normalised, (sample.X - low) / (high - low))
    assert_allclose(sample.X_test_normalised, (sample.X_test - low) / (high - low))
    constant = Bunch(X=np.column_stack([data.X, np.full(203, 7.0)]), y=data.y)
    assert (split_uci(constant, (1, 2)).X_normalised[:, 2] == 0.0).all()


def test_splits_follow_the_seed(data):
    assert (split_uci(data, (1, 2)).X == split_uci(data, (1, 2)).X).all()
    assert (split_uci(data, (1, 2)).X != split_uci(data, (1, 3)).X).any()


def test_folds_hold_out_every_row_once_inside_each_client(data):
    sample = split_uci(data, (1, 2))
    folds = sample.folds()
    assert len(folds) == N_FOLDS
    held_out = np.concatenate([fold.X_out[:, 0] for fold in folds])
    assert sorted(held_out) == sorted(sample.X[:, 0])
    owner = dict(zip(sample.X[:, 0], sample.clients, strict=True))
    for fold in folds:
        assert not set(fold.X_out[:, 0]) & set(fold.raw.X[:, 0])
        assert fold.normalised.X.shape == fold.raw.X.shape
        for g, (X, y) in enumerate(fold.raw.parts()):
            assert {owner[x] for x in X[:, 0]} == {g}
            assert (y == np.where(X[:, 0] < 60, 1.0, -1.0)).all()
            out = sum(owner[x] == g for x in fold.X_out[:, 0])
            assert abs(out - sample.counts[g] / N_FOLDS) < 1
        # Radii are those of all rows, held out or not.
        assert_allclose(fold.raw.radii(10.0), 1.0 / (10.0 * sample.counts))


def test_the_pumps_rows_keep_their_clients():
    pump = make_pump("both", random_state=0)
    whole = sample_pump(pump, (0,)).whole()
    for (X, y), (X_pump, y_pump) in zip(whole.raw.parts(), pump.parts(), strict=True):
        assert (X_pump == X).all()
        assert (y == y_pump).all()
    assert (whole.X_out_normalised == pump.X_test_normalised).all()


def test_scores_are_scikit_learns(rng):
    models, X = rng.normal(size=(6, 3)), rng.normal(size=(40, 3))
    y = np.where(rng.random(40) < 0.3, 1.0, -1.0)
    found = score(models, X, y)
    for k, w in enumerate(models):
        predicted = np.where(X @ w >= 0.0, 1.0, -1.0)
        assert_allclose(found.f1[k], f1_score(y, predicted))
        assert_allclose(found.accuracy[k], accuracy_score(y, predicted))


def test_a_score_of_zero_counts_as_positive_and_a_diverged_model_finds_nothing():
    X, y = np.eye(2), np.array([1.0, -1.0])
    assert score(np.zeros((1, 2)), X, y).accuracy[0] == 0.5
    lost = score(np.full((1, 2), np.nan), X, y)
    assert lost.f1[0] == 0.0
    assert score(np.array([[1.0, -1.0]]), X, -np.ones(2)).f1[0] == 0.0  # no positive row at all
