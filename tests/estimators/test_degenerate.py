"""A model that finds nothing says so, with a remedy that works; one that finds something does not.

The rules are recomputed here from predictions and scores, without the code that warns.
"""

import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score

import fdrsvm
from fdrsvm import (
    DRSVC,
    FDRSVC,
    FDRSVCCV,
    ConvergenceWarning,
    DegenerateModelWarning,
    FederatedMinMaxScaler,
    FedSVC,
    InvalidInputError,
    worst_case_risk,
)
from fdrsvm.decision.goals import positive_class, score_counts
from fdrsvm.estimators.advice import Setting, Tally, judge
from tests.datasets.uci_folder import FOLDER
from tests.estimators.imbalanced import FAULT, OK, make_faults

AI4I = None if FOLDER is None else Path(FOLDER).parent / "ai4i" / "ai4i2020.tsv"

STEPS = {FDRSVC: {}, DRSVC: {}, FedSVC: {"learning_rate": 1.0}}


def fit(model, X, y, plants):
    return model.fit(X, y) if isinstance(model, DRSVC) else model.fit(X, y, clients=plants)


def warned(model, X, y, plants):
    """The messages of all warnings about a model that has given up."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(model, X, y, plants)
    return [str(one.message) for one in caught if one.category is DegenerateModelWarning]


def gives_up(model, X, y):
    """The rules of the docstring, from what the fitted model predicts."""
    predicted = model.predict(X)
    for label in np.unique(y):
        own, found = np.sum(y == label), np.sum((y == label) & (predicted == label))
        if label not in predicted or (own >= 5 and found < own / 100):
            return True
    return bool(np.ptp(model.decision_function(X), axis=0).max() <= 0.02)


# --- each estimator ---


@pytest.mark.parametrize("kind", [FDRSVC, DRSVC, FedSVC])
def test_each_estimator_warns_once_at_the_callers_line_and_the_remedy_works(kind):
    X, y, plants = make_faults()
    options = STEPS[kind]
    with pytest.warns(DegenerateModelWarning) as caught:
        fit(kind(**options), X, y, plants)
    assert [one.filename for one in caught] == [__file__]
    said = str(caught[0].message)
    assert f"the model never predicts '{FAULT}' (36 of 1200 rows are)" in said
    assert "use class_weight='balanced'" in said
    typed = caught[0].message.for_command_line
    assert "; train again: fdrsvm fit ... --class-weight balanced" in typed
    balanced = kind(**options, class_weight="balanced")
    assert warned(balanced, X, y, plants) == []
    assert balanced_accuracy_score(y, balanced.predict(X)) > 0.65


def test_the_search_warns_once_at_the_callers_line_with_and_without_a_model():
    X, y, plants = make_faults()
    grid = {"epsilon": [0.001, 0.01]}
    for refit in (True, False):
        search = FDRSVCCV(grid, cv=2, tol=1e-2, random_state=0, refit=refit, threshold="zero")
        with pytest.warns(DegenerateModelWarning, match=r"never .* of 1200 rows are") as caught:
            search.fit(X, y, clients=plants)
        assert [one.filename for one in caught] == [__file__]
    tuned = FDRSVCCV(grid, cv=2, tol=1e-2, random_state=0)  # flat in all the grid: said, once
    with pytest.warns(DegenerateModelWarning, match="ignores all features") as caught:
        tuned.fit(X, y, clients=plants)
    assert [one.filename for one in caught] == [__file__]
    search = FDRSVCCV(grid, cv=2, tol=1e-2, random_state=0, class_weight="balanced")
    assert warned(search, X, y, plants) == []
    assert search.best_score_ > 0.65


@pytest.mark.parametrize("kind", [FDRSVC, DRSVC, FedSVC])
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_a_model_that_finds_its_faults_does_not_warn(kind, share):
    X, y, plants = make_faults(share=share, shift=4.0, n_rows=200)
    assert warned(kind(**STEPS[kind]), X, y, plants) == []


def test_a_handful_of_rows_is_no_reason_to_warn():
    X = np.array([[0.1, 0.9], [0.2, 0.7], [0.8, 0.3], [0.9, 0.2]])
    for model in (FDRSVC(epsilon=0.01), DRSVC(epsilon=0.01), FedSVC()):
        assert warned(model, X, [0, 0, 1, 1], ["a", "b", "a", "b"]) == []


def test_a_class_without_weight_is_not_missed():
    X, y, plants = make_faults(share=0.3, shift=4.0, n_rows=300)
    y[(y == OK) & (X[:, 2] > np.median(X[:, 2]))] = "trial"
    model = FDRSVC(class_weight={FAULT: 1.0, OK: 1.0, "trial": 0.0})
    assert warned(model, X, y, plants) == []
    assert "trial" not in model.predict(X)


def test_rows_are_counted_by_their_weight_but_not_by_that_of_their_class():
    X, y, plants = make_faults()
    with pytest.warns(DegenerateModelWarning, match="72 of 2400 rows are"):
        FDRSVC(class_weight={FAULT: 0.5}).fit(
            X, y, clients=plants, sample_weight=np.full(len(y), 2.0)
        )


def test_of_several_classes_those_never_predicted_are_named():
    X, y, plants = make_faults(n_rows=1600, share=0.04)
    rare = np.flatnonzero(y == FAULT)
    y[rare[::2]] = "Leak"
    (said,) = warned(FDRSVC(tol=1e-3), X, y, plants)
    assert "never predicts 'Fault' (32 of 1600 rows are)" in said
    assert "never predicts 'Leak' (32 of 1600 rows are)" in said
    assert "'ok'" not in said


# --- w = 0 ---


@pytest.mark.parametrize("kind", [FDRSVC, DRSVC])
def test_from_half_on_the_label_price_is_named_and_what_it_says_helps(kind):
    X, y, plants = make_faults(share=0.5, shift=4.0, n_rows=200)
    (said,) = warned(kind(epsilon=0.6, kappa=1.2), X, y, plants)
    assert "ignores all features" in said
    assert "epsilon / kappa is 0.5: from 1/2 on half of every row may have the other label" in said
    assert "use a smaller epsilon or a larger kappa" in said
    assert warned(kind(epsilon=0.06, kappa=1.2), X, y, plants) == []


def test_a_radius_that_is_too_large_for_the_features_is_named():
    X, y, plants = make_faults(share=0.5, shift=4.0, n_rows=200)
    (said,) = warned(FDRSVC(epsilon=5.0, kappa=np.inf), X, y, plants)
    assert "ignores all features" in said
    assert "use a smaller epsilon" in said
    assert warned(FDRSVC(epsilon=0.01, kappa=np.inf), X, y, plants) == []


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 2.0), st.floats(0.1, 3.0))
def test_half_flips_leave_no_model_better_than_zero(seed, ratio, kappa):
    """[half-flips]: the worst-case risk of any model is at least that of w = 0, b = 0."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(7, 2)), rng.choice([-1.0, 1.0], size=7)
    for loss in ("hinge", "logistic", "smooth_hinge"):
        ball = {"epsilon": ratio * kappa, "kappa": kappa, "loss": loss}
        zero = worst_case_risk(np.zeros(2), X, y, **ball).value
        some = worst_case_risk(rng.normal(size=2), X, y, intercept=rng.normal(), **ball).value
        assert some >= zero * (1.0 - 1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(1e-4, 0.3))
def test_a_flat_model_is_hardly_better_than_one_without_weights(seed, size):
    """[flat]: w = 0 with the middle score as intercept is worse by half the range at most."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(9, 3)), rng.choice([-1.0, 1.0], size=9)
    w, b = size * rng.normal(size=3), rng.normal()
    scores = X @ w + b
    for loss in ("hinge", "logistic", "smooth_hinge"):
        ball = {"epsilon": rng.random(), "kappa": rng.choice([0.3, 1.0, np.inf]), "loss": loss}
        risk = worst_case_risk(w, X, y, intercept=b, **ball).value
        middle = (scores.max() + scores.min()) / 2.0
        plain = worst_case_risk(np.zeros(3), X, y, intercept=middle, **ball).value
        assert plain <= risk + np.ptp(scores) / 2.0 + 1e-12


# --- the rule ---


def evidence(counts, spread=1.0):
    return Tally(np.array(counts, dtype=float), np.zeros(1), np.full(1, spread))


@pytest.mark.parametrize(
    ("counts", "missed"),
    [
        ([[100, 0], [1, 0]], [1]),  # never predicted
        ([[100, 2], [4, 0]], []),  # too few rows to tell
        ([[100, 2], [5, 0]], [1]),
        ([[900, 2], [99, 1]], []),  # one in a hundred
        ([[900, 2], [100, 1]], [1]),  # fewer
        ([[100, 0], [0, 0]], []),  # it does not occur
        ([[50, 0, 0], [20, 0, 0], [0, 5, 20]], [1]),
    ],
)
def test_which_classes_count_as_missed(counts, missed):
    found = judge(evidence(counts), ["a", "b", "c"], Setting("FDRSVC", None))
    assert [k for k, label in enumerate("abc") if f"predicts {label!r}" in str(found)] == missed
    assert (found is None) == (not missed)


def test_scores_are_flat_up_to_a_hundredth_of_the_margin_either_way():
    assert evidence([[5, 5], [5, 5]], 0.02).is_flat
    assert not evidence([[5, 5], [5, 5]], 0.0201).is_flat


@pytest.mark.parametrize(
    ("setting", "first"),
    [
        (Setting("FDRSVC", None), "use class_weight='balanced'; if that is not enough, a smaller"),
        (Setting("FDRSVC", "balanced"), "use a smaller epsilon (FDRSVCCV can choose it)"),
        (Setting("FDRSVC", "balanced", has_radius=False), "use features that tell the classes"),
        (Setting("FDRSVC", None, is_solved=False), "use more rounds (max_rounds); if that"),
        (Setting("DRSVC", "balanced", is_solved=False), "use more iterations (max_iter); if"),
        (Setting("FedSVC", "balanced"), "use a larger learning_rate, or FDRSVC"),
    ],
)
def test_the_remedy_is_one_that_was_not_tried(setting, first):
    found = judge(evidence([[90, 0], [10, 0]]), ["a", "b"], setting)
    assert str(found).split("; ", 1)[1].startswith(first)


@pytest.mark.parametrize(("rows", "is_rare"), [((76, 24), True), ((74, 26), False)])
def test_class_weights_are_for_classes_below_half_of_their_even_share(rows, is_rare):
    found = judge(evidence([[rows[0], 0], [rows[1], 0]]), ["a", "b"], Setting("FDRSVC", None))
    assert ("class_weight" in found.remedy) == is_rare
    assert ("--class-weight" in found.command_line_remedy) == is_rare
    assert "a smaller epsilon" in found.remedy


def test_of_other_rows_a_handful_says_nothing_and_equal_scores_need_a_model_that_is_flat():
    def judged(counts, spread=1.0, may_be_flat=True):
        return judge(
            evidence(counts, spread),
            ["a", "b"],
            Setting("FDRSVC", None),
            least_rows=5,
            may_be_flat=may_be_flat,
        )

    assert judged([[100, 0], [4, 0]]) is None
    assert "never predicts 'b' (5 of 105 rows are)" in str(judged([[100, 0], [5, 0]]))
    assert judged([[1, 0], [0, 0]], 0.0, may_be_flat=False) is None
    assert "ignores all features" in str(judged([[1, 0], [0, 0]], 0.0))


def test_a_baseline_that_blew_up_has_one_remedy():
    X, y, plants = make_faults()
    model = FedSVC("fedsgd", learning_rate=1e6, max_rounds=2)
    with pytest.warns(ConvergenceWarning, match="try a smaller learning_rate") as caught:
        model.fit(X, y, clients=plants)
    assert len(caught) == 1
    assert gives_up(model, X, y)  # which alone would ask for a larger one


def test_every_parameter_that_a_remedy_names_exists():
    for name, kind in (
        ("class_weight", FDRSVC),
        ("epsilon", FDRSVC),
        ("kappa", DRSVC),
        ("max_rounds", FDRSVC),
        ("max_iter", DRSVC),
        ("learning_rate", FedSVC),
    ):
        assert name in inspect.signature(kind).parameters


def test_the_warning_is_exported_and_can_be_made_of_a_text():
    assert issubclass(fdrsvm.DegenerateModelWarning, UserWarning)
    assert str(DegenerateModelWarning("it sleeps")) == "it sleeps"


# --- many problems ---


def random_problem(seed):
    rng = np.random.default_rng([7, seed])
    X, y, plants = make_faults(
        seed=seed,
        n_rows=int(rng.integers(60, 500)),
        share=float(rng.uniform(0.02, 0.3)),
        shift=float(rng.uniform(0.0, 4.0)),
        n_features=int(rng.integers(2, 6)),
    )
    return X, y, plants, float(10.0 ** rng.uniform(-4, 0))


def check_no_silence(seeds):
    silent, heard = 0, 0
    for seed in seeds:
        X, y, plants, epsilon = random_problem(seed)
        for model in (FDRSVC(epsilon=epsilon, tol=1e-3), DRSVC(epsilon=epsilon)):
            said = warned(model, X, y, plants)
            assert len(said) == gives_up(model, X, y)
            heard += len(said)
            silent += not said
    return silent, heard


def test_no_model_gives_up_in_silence_on_random_problems():
    silent, heard = check_no_silence(range(12))
    assert silent > 0
    assert heard > 0  # both kinds occur


@pytest.mark.slow
def test_no_model_gives_up_in_silence_on_two_hundred_random_problems():
    silent, heard = check_no_silence(range(200))
    assert min(silent, heard) >= 40


# --- the class that scores are of ---


def test_the_positive_class_is_the_rarer_one_or_the_one_asked_for():
    assert positive_class(["Fault", "ok"], [3, 97]) == 0
    assert positive_class([0, 1], [97, 3]) == 1
    assert positive_class(["a", "b"], [5, 5]) == 1
    assert positive_class([0, 1], [97, 3], "0") == 0
    assert positive_class([-1.0, 1.0], [3, 97], 1) == 1
    assert positive_class([False, True], [97, 3], False) == 0
    with pytest.raises(InvalidInputError, match="pos_label: must be one of the classes"):
        positive_class([0, 1], [97, 3], 2)


def test_the_search_scores_the_rarer_class_or_pos_label():
    X, y, plants = make_faults(share=0.2, shift=3.0, n_rows=200)
    options = {"cv": 2, "tol": 1e-2, "random_state": 0, "scoring": "f1"}
    for pos_label, expected in ((None, FAULT), (FAULT, FAULT), (OK, OK)):
        search = FDRSVCCV({"kappa": [1.0]}, pos_label=pos_label, **options)
        search.fit(X, y, clients=plants)
        assert search.pos_label_ == expected
        counts = search.cv_results_["counts"].sum(axis=(0, 1)).astype(int)
        truth = np.repeat([FAULT, FAULT, OK, OK], counts.ravel())
        predicted = np.repeat([FAULT, OK, FAULT, OK], counts.ravel())
        assert search.best_score_ == pytest.approx(
            f1_score(truth, predicted, pos_label=expected), rel=1e-14
        )
    with pytest.raises(InvalidInputError, match=r"pos_label: must be one of .* 'leak'"):
        FDRSVCCV({"kappa": [1.0]}, pos_label="leak", **options).fit(X, y, clients=plants)
    y[:20] = "leak"
    with pytest.raises(InvalidInputError, match="pos_label: is for two classes; there are 3"):
        FDRSVCCV({"kappa": [1.0]}, pos_label="leak").fit(X, y, clients=plants)


def test_balanced_accuracy_is_the_default_and_none_means_it():
    assert FDRSVCCV().scoring == "balanced_accuracy"
    X, y, plants = make_faults(share=0.2, shift=4.0, n_rows=100)
    search = FDRSVCCV({"kappa": [1.0]}, cv=2, tol=1e-2, scoring=None).fit(X, y, clients=plants)
    assert search.scoring_ == "balanced_accuracy"


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "f1", "f1_macro", "accuracy"])
def test_folds_of_one_class_have_a_score_and_no_warning(scoring):
    for counts in ([[4.0, 0.0], [0.0, 0.0]], [[0.0, 4.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 4.0]]):
        assert 0.0 <= score_counts(np.array(counts), scoring) <= 1.0
    X, y, plants = make_faults(n_rows=80, share=0.04, shift=6.0)  # three faults, five folds
    search = FDRSVCCV(
        {"epsilon": [1e-3]}, scoring=scoring, tol=1e-2, random_state=0, class_weight="balanced"
    ).fit(X, y, clients=plants)
    assert 0.0 <= search.best_score_ <= 1.0


# --- the real file ---


@pytest.mark.slow
@pytest.mark.skipif(
    AI4I is None or not AI4I.is_file(),
    reason="AI4I 2020 is not here: ai4i/ai4i2020.tsv beside the folder FDRSVM_DATA",
)
def test_the_remedy_works_on_ai4i():
    lines = [line.split("\t") for line in AI4I.read_text(encoding="utf-8").splitlines()]
    X = np.array([[float(cell) for cell in line[3:8]] for line in lines[1:]])
    y = np.where(np.array([line[8] for line in lines[1:]]) == "1", FAULT, OK)
    plants = np.repeat([1, 2, 3, 4], 2500)
    X = FederatedMinMaxScaler().fit(X, clients=plants).transform(X)
    (said,) = warned(FDRSVC(), X, y, plants)
    assert "the model never predicts 'Fault' (339 of 10000 rows are)" in said
    balanced = FDRSVC(class_weight="balanced")
    assert warned(balanced, X, y, plants) == []
    assert balanced_accuracy_score(y, balanced.predict(X)) > 0.8
