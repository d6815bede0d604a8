"""Every number of ``evaluate`` is scikit-learn's, or counted again by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    precision_recall_fscore_support,
    recall_score,
)

from fdrsvm.data.rows import Rows
from fdrsvm.inspection.scores import (
    average_precision,
    best_cut,
    counting_words,
    false_alarm_words,
    fault_place,
    found_words,
    percent,
    score,
)
from fdrsvm.model.linear_model import LinearModel

LABELS = [("Fault", "ok"), ("ok", "worn"), (0, 1), (False, True), (-1, 1)]


def make_model(classes, threshold=0.0, intercept=0.0, **record):
    n_scores = 1 if len(classes) == 2 else len(classes)
    coef = np.random.default_rng(5).normal(size=(n_scores, 3))
    return LinearModel.checked(
        coef,
        np.full(n_scores, intercept),
        classes,
        estimator="FDRSVC",
        threshold=threshold,
        record=record,
    )


def make_rows(model, n_rows=200, seed=0):
    """Rounded, so that scores tie; labels that agree with the scores more often than not."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, 3)))
    labels = np.array(model.classes)
    y = np.where(rng.random(n_rows) < 0.6, model.predict(X), rng.choice(labels, n_rows))
    return Rows(X, y.astype(labels.dtype), np.array(["a", "b"])[rng.integers(2, size=n_rows)], ())


@pytest.mark.parametrize("threshold", [0.0, 0.7, -1.1])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("classes", LABELS)
def test_two_classes_agree_with_scikit_learn(classes, place, threshold):
    model = make_model(classes, threshold)
    rows = make_rows(model)
    fault = classes[place]
    for one in score(model, rows, fault):
        mine = (
            np.ones(len(rows.X), dtype=bool) if one.client == "all" else rows.clients == one.client
        )
        y, X = rows.y[mine], rows.X[mine]
        guess = np.where(model.decision_function(X) > threshold, classes[1], classes[0])
        is_fault = y == fault
        ranks = model.decision_function(X) * (1 if place == 1 else -1)
        precision, recall, f1, n_faults = precision_recall_fscore_support(y, guess, labels=[fault])
        assert one.f1_of == str(fault)
        assert one.n_rows == mine.sum()
        assert one.n_faults == n_faults[0]
        assert found_words(one) == f"{((guess == fault) & is_fault).sum()} of {n_faults[0]}"
        n_false = ((guess == fault) & ~is_fault).sum()
        assert one.n_false_alarms == n_false
        assert one.false_alarm_rate == pytest.approx(n_false / (~is_fault).sum(), rel=1e-12)
        assert one.precision == pytest.approx(precision[0], rel=1e-12)
        assert one.recall == pytest.approx(recall[0], rel=1e-12)
        assert one.f1 == pytest.approx(f1[0], rel=1e-12)
        assert one.accuracy == pytest.approx(accuracy_score(y, guess), rel=1e-12)
        assert one.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, guess), rel=1e-12)
        expected = average_precision_score(is_fault, ranks)
        assert one.average_precision == pytest.approx(expected, rel=1e-12)


def test_more_classes_have_a_recall_each():
    model = make_model(("bad", "good", "worn"))
    rows = make_rows(model)
    one = score(model, rows)[-1]
    guess = model.predict(rows.X)
    each = recall_score(rows.y, guess, average=None, labels=model.classes)
    assert list(one.recalls.values()) == pytest.approx(each, rel=1e-12)
    assert one.balanced_accuracy == pytest.approx(np.mean(each), rel=1e-12)
    assert one.f1 == pytest.approx(f1_score(rows.y, guess, average="macro"), rel=1e-12)
    assert (one.n_faults, one.f1_of) == (None, None)
    assert found_words(one) == false_alarm_words(one) == "-"


ranked = st.lists(
    st.tuples(st.booleans(), st.sampled_from([-1e300, -2.0, 0.0, 0.5, 1e-300, 3.0])), min_size=1
)


@given(ranked)
def test_average_precision_is_scikit_learns_with_ties(pairs):
    is_fault, ranks = (np.array(each) for each in zip(*pairs, strict=True))
    found = average_precision(is_fault, ranks)
    if is_fault.all() or not is_fault.any():
        assert np.isnan(found)
    else:
        assert found == pytest.approx(average_precision_score(is_fault, ranks), rel=1e-12)


@given(ranked)
def test_the_best_cut_is_that_of_all_cuts(pairs):
    is_second, scores = (np.array(each) for each in zip(*pairs, strict=True))
    if is_second.all() or not is_second.any():
        return
    cut, reached = best_cut(scores, is_second)
    cuts = [-np.inf, *np.unique(scores)]
    values = [balanced_accuracy_score(is_second, scores > each) for each in cuts]
    # Sums of two quotients of whole numbers, each rounded once or twice.
    assert reached == pytest.approx(max(values), rel=1e-14)
    assert balanced_accuracy_score(is_second, scores > cut) == pytest.approx(reached, rel=1e-14)


@pytest.mark.parametrize("classes", LABELS)
def test_a_model_that_finds_nothing_has_no_good_score_of_the_fault(classes):
    for place in (0, 1):
        fault, healthy = classes[place], classes[1 - place]
        model = make_model(classes, intercept=1e6 if place == 0 else -1e6, positive=fault)
        X = np.random.default_rng(0).normal(size=(300, 3))
        y = np.where(np.arange(300) < 9, fault, healthy)
        rows = Rows(X, y, np.repeat("a", 300), ())
        assert set(model.predict(X).tolist()) == {healthy}
        (one,) = score(model, rows)
        assert one.f1_of == str(fault)
        assert (one.f1, one.recall, one.balanced_accuracy) == (0.0, 0.0, 0.5)
        assert np.isnan(one.precision)
        assert found_words(one) == "0 of 9"
        assert false_alarm_words(one) == "0 (0.0 %)"
        # Without a word in the file the rarer class is looked for.
        bare = model.with_record(positive=None)
        assert score(bare, rows)[0].f1_of == str(fault)


def test_where_there_is_nothing_to_count_nothing_is_said():
    model = make_model(("ok", "worn"))
    X = np.random.default_rng(0).normal(size=(50, 3))
    quiet = X[model.predict(X) == "ok"]
    healthy = Rows(quiet, np.repeat("ok", len(quiet)), np.repeat("a", len(quiet)), ())
    (one,) = score(model, healthy, "worn")
    values = (one.f1, one.precision, one.recall, one.average_precision)
    assert np.isnan(values).all()
    assert one.false_alarm_rate == 0.0
    faults = Rows(X, np.repeat("worn", 50), np.repeat("a", 50), ())
    (one,) = score(model, faults, "worn")
    assert np.isnan((one.false_alarm_rate, one.average_precision)).all()
    assert false_alarm_words(one) == "-"


def test_the_words_under_the_table_say_who_chose_what():
    model = make_model(("Fault", "ok"), 0.5, positive="Fault")
    rows = make_rows(model)
    place = fault_place(model, rows)
    said = counting_words(model, place)
    assert "Counted as a fault is 'Fault' (as the model file says)" in said
    assert "where the score is not above 0.5" in said
    assert "does not say how the threshold was chosen" in said
    asked = counting_words(model, fault_place(model, rows, "ok"), was_asked_for=True)
    assert "is 'ok' (as asked for), called so where the score is above 0.5" in asked
    tuned = model.with_record(tuning={"goal": "F1 of 'Fault'", "label_noise": 0.15})
    said = counting_words(tuned, place)
    assert "chosen for F1 of 'Fault', by cross-validation in training, with 15.0 % of the" in said
    assert "0, where training leaves it" in counting_words(model.cut_at(0.0), place)
    alarm = model.with_record(alarm={"rate": 0.01})
    assert "that of an alarm with rate 0.01" in counting_words(alarm, place)
    assert "largest score" in counting_words(make_model((1, 2, 3)), None)


def test_a_share_above_0_is_never_shown_as_0():
    assert [percent(part) for part in (0.0, 1e-6, 4e-4, 0.016, 1.0, np.nan)] == [
        "0.0 %",
        "0.0001 %",
        "0.04 %",
        "1.6 %",
        "100.0 %",
        "-",
    ]
