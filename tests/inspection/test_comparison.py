"""Compared models are trained as is said, scored on the same rows, and the same every time."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fdrsvm.data.rows import Rows
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.estimators.training import FitSettings, train
from fdrsvm.inspection.comparison import compare, comparison_words
from fdrsvm.inspection.scores import score
from tests.estimators.imbalanced import make_faults

KINDS = ["local", "federated", "central", "logistic", "boosting"]
PLANTS = ["east", "north", "south", "west"]


def rows_of(seed=0, **options):
    X, y, plants = make_faults(seed, share=0.2, shift=1.5, **options)
    return Rows(X, y, plants, ("a", "b", "c", "d"))


@pytest.fixture(scope="module")
def training():
    return rows_of()


@pytest.fixture(scope="module")
def test_rows():
    return rows_of(1, n_rows=600)


@pytest.fixture(scope="module")
def model(training):
    params = {"epsilon": 0.001, "class_weight": "balanced", "tol": 1e-6}
    return train(FitSettings(params=params, tune=False), training).model


def by_name(scores):
    return {(one.model, one.client): one for one in scores}


def test_each_plants_scikit_learn_model_is_what_it_would_have(model, training, test_rows):
    found = by_name(compare(model, test_rows, training))
    assert list(dict.fromkeys(kind for kind, _ in found)) == KINDS
    makers = {
        "logistic": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1000, class_weight="balanced")
        ),
        "boosting": lambda: HistGradientBoostingClassifier(class_weight="balanced", random_state=0),
    }
    for kind, make in makers.items():
        for plant in PLANTS:
            own, new = training.of(plant), test_rows.of(plant)
            made = make().fit(own.X, own.y)
            one = found[kind, plant]
            balanced = balanced_accuracy_score(new.y, made.predict(new.X))
            assert one.balanced_accuracy == pytest.approx(balanced, rel=1e-12)
            ranks = made.predict_proba(new.X)[:, 0]  # "Fault" comes before "ok"
            expected = average_precision_score(new.y == "Fault", ranks)
            assert one.average_precision == pytest.approx(expected, rel=1e-12)
        parts = [found[kind, plant] for plant in PLANTS]
        assert found[kind, "all"].n_found == sum(one.n_found for one in parts)


def test_it_is_the_same_every_time(model, training, test_rows):
    # As text, since nan is not equal to itself.
    assert repr(compare(model, test_rows, training)) == repr(compare(model, test_rows, training))


def test_models_of_ours_are_cut_where_the_model_is_unless_it_was_tuned(model, training, test_rows):
    plain = by_name(compare(model, test_rows, training))["federated", "all"]
    joint = score(model, test_rows)[-1]
    assert plain.counts == joint.counts  # the same rows, parameters and scaling
    tuned = model.cut_at(0.4)
    asked = []

    def tune(linear, rows):
        asked.append((linear, len(rows.X)))
        return 0.4

    found = by_name(compare(tuned, test_rows, training, tune=tune))
    assert found["federated", "all"].counts == score(tuned, test_rows)[-1].counts
    assert sorted(n for _, n in asked) == [300] * 4 + [1200] * 2
    best = by_name(compare(tuned, test_rows, training))["central", "all"]
    assert best.balanced_accuracy >= found["central", "all"].balanced_accuracy
    assert best.average_precision == found["central", "all"].average_precision
    words = comparison_words(tuned, [])[0]
    assert "are cut where the balanced accuracy on their own training rows is best" in words
    assert "at score 0, as the model is" in comparison_words(model, [])[0]


def test_a_plant_with_one_class_has_no_model_of_its_own_and_it_is_said_why(
    model, training, test_rows
):
    kept = (training.clients != "north") | (training.y == "ok")
    fewer = Rows(training.X[kept], training.y[kept], training.clients[kept], training.feature_names)
    scores = compare(model, test_rows, fewer)
    found = by_name(scores)
    for kind in ("local", "logistic", "boosting"):
        assert found[kind, "north"].note == "its training rows are all 'ok'"
        assert np.isnan(found[kind, "all"].f1)
        assert found[kind, "north"].n_found is None
    assert found["federated", "north"].note is None
    said = comparison_words(model, scores)
    assert "No boosting model for north: its training rows are all 'ok'." in said


def test_more_classes_are_compared_too(training):
    rng = np.random.default_rng(0)
    X = rng.random((240, 3))
    y = np.array(["bad", "good", "worn"])[np.digitize(X[:, 0], [0.3, 0.6])]
    rows = Rows(X, y, np.repeat(["a", "b"], 120), ("x", "y", "z"))
    # Of one class a plant has none, and its own models know two.
    kept = (rows.clients == "a") | (rows.y != "worn")
    own = Rows(X[kept], y[kept], rows.clients[kept], rows.feature_names)
    model = train(FitSettings(params={"epsilon": 0.002}), rows).model
    for one in compare(model, rows, own):
        assert one.note is None
        assert 0.0 < one.balanced_accuracy <= 1.0
        if one.client == "b" and one.model in ("local", "logistic", "boosting"):
            assert one.recalls["worn"] == 0.0


def test_a_mapping_of_class_weights_reaches_all(training, test_rows):
    params = {"epsilon": 0.001, "class_weight": {"Fault": 1.0, "ok": 1e-6}}
    model = train(FitSettings(params=params, tune=False), training).model
    for one in compare(model, test_rows, training):
        if one.model != "boosting":
            assert one.recall == 1.0  # a missed fault outweighs every false alarm


def test_who_watches_is_told_what_is_trained(model, training, test_rows):
    told = []
    compare(model, test_rows, training, tell=told.append)
    assert "training: local model of north" in told
    assert "training: boosting model of west" in told
    assert any(line.startswith("FDRSVC: round ") and "certified gap" in line for line in told)


def test_radii_by_client_are_the_clients_own_alone_and_their_mean_on_pooled_rows(test_rows):
    # Of plants of unlike size tuning chooses such, without being asked to.
    training = rows_of().where(np.arange(1200) % 4 * 300 <= np.arange(1200))
    radii = dict(zip(PLANTS, (0.001, 0.002, 0.03, 0.004), strict=True))
    params = {"class_weight": "balanced", "tol": 1e-6}
    settings = FitSettings(params={**params, "epsilon": radii}, tune=False)
    model = train(settings, training).model
    found = by_name(compare(model, test_rows, training))
    assert all(one.note is None for one in found.values())
    assert replace(found["federated", "all"], model="model") == score(model, test_rows)[-1]
    counts = training.counts()
    assert len(set(counts.values())) > 1
    mean = sum(radii[name] * count for name, count in counts.items()) / len(training.X)
    for radius, client in ((radii["south"], "south"), (mean, "all")):
        one = train(FitSettings(params={**params, "epsilon": radius}, tune=False), training).model
        same = by_name(compare(one, test_rows, training))
        kind = "central" if client == "all" else "local"
        assert same[kind, client] == found[kind, client]


def test_what_cannot_be_compared_is_refused(model, training, test_rows):
    with pytest.raises(InvalidInputError, match="none of 'east'"):
        compare(model, test_rows, training.of("north"))
    with pytest.raises(UnsupportedError, match="one of FedSVC"):
        compare(replace(model, estimator="FedSVC"), test_rows, training)


def test_models_beside_one_with_curves_have_curves_too(training):
    """Faults on both sides of a range: no straight model ranks them."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 4))
    y = np.where(np.abs(X[:, 0] - 0.5) > 0.4, "Fault", "ok")
    bent = Rows(X, y, np.repeat(PLANTS, 100), training.feature_names)
    params = {"epsilon": 0.001, "features": "additive", "tol": 1e-3}
    model = train(FitSettings(params=params, tune=False), bent).model
    found = by_name(compare(model, bent, bent))
    for kind in ("local", "federated", "central"):
        assert found[kind, "all"].average_precision > 0.9, kind
    assert found["logistic", "all"].average_precision < 0.6
