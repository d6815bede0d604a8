"""Where to cut scores, from counts alone, beside what sorting the rows themselves gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, f1_score

from fdrsvm.decision.goals import FalseAlarmRate, MissCost
from fdrsvm.decision.histograms import (
    FIRST_EDGES,
    Aim,
    ask_histogram,
    best_cut,
    check_label_noise,
    count_scores,
    true_counts,
)
from fdrsvm.errors import InvalidInputError


def histogram_of(*folds):
    """Of folds, each (scores, codes) of one client, or with weights."""

    def ask(edges):
        return np.array(
            [
                count_scores(scores, codes, weights[0] if weights else np.ones(len(codes)), edges)
                for scores, codes, *weights in folds
            ]
        )

    return ask_histogram(ask)


def normal_scores(rng, n=2000, share=0.1, shift=1.5, scale=1.0):
    codes = (rng.random(n) < share).astype(np.intp)
    return scale * (rng.normal(size=n) + shift * codes), codes


def best_by_sorting(scores, codes, value):
    """The largest value of (healthy kept, false alarms, missed, found) over all cuts."""
    order = np.argsort(scores)
    below = np.concatenate([[0], np.cumsum(codes[order])])  # of the second class
    kept = np.arange(len(codes) + 1) - below
    is_cut = np.concatenate([[True], np.diff(scores[order]) > 0, [True]])
    tables = (kept, (codes == 0).sum() - kept, below, (codes == 1).sum() - below)
    return value(*(part[is_cut] for part in tables)).max()


# --- counting ---


def test_a_client_counts_its_rows_between_edges():
    edges = np.array([-1.0, 0.0, 2.0])
    scores, codes = np.array([-3.0, -1.0, 0.0, 1e-9, 2.0, 5.0]), np.array([0, 0, 1, 1, 0, 1])
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    found = count_scores(scores, codes, weights, edges)
    assert found.tolist() == [[3.0, 0.0, 5.0, 0.0], [0.0, 3.0, 4.0, 6.0]]


@given(
    st.lists(st.tuples(st.floats(-1e300, 1e300), st.integers(0, 1), st.integers(0, 3)), min_size=1),
    st.integers(1, 3),
)
def test_the_tables_are_those_of_the_rows_at_every_edge(rows, n_folds):
    scores, codes, weights = (np.array(part) for part in zip(*rows, strict=True))
    owners = np.arange(len(rows)) % n_folds
    folds = [
        (scores[owners == k], codes[owners == k], weights[owners == k]) for k in range(n_folds)
    ]
    histogram = histogram_of(*folds)
    assert 0.0 in histogram.edges
    tables = histogram.tables()
    assert tables.shape == (n_folds, len(histogram.edges), 2, 2)
    for at in (0, histogram.zero, len(histogram.edges) // 3, len(histogram.edges) - 1):
        for k, (own, truth, mass) in enumerate(folds):
            expected = np.zeros((2, 2))
            np.add.at(expected, (truth, (own > histogram.edges[at]).astype(int)), mass)
            assert_array_equal(histogram.tables(at)[k], expected)
            assert_array_equal(tables[k, at], expected)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e6, 1e200])
@pytest.mark.parametrize("offset", [0.0, -1.0])
def test_no_interval_holds_much_whatever_the_size_of_scores(scale, offset, rng):
    scores, codes = normal_scores(rng, scale=scale)
    histogram = histogram_of((scores + offset * (scale < 1.0), codes))
    counts = histogram.counts.sum(axis=0)
    distinct = len(np.unique(scores + offset * (scale < 1.0)))
    if distinct == len(scores):  # beside -1, scores of 1e-12 are few values
        heavy = (counts > counts.sum(axis=1, keepdims=True) / 256).any(axis=0)
        assert not (heavy & (counts.sum(axis=0) >= 10)).any()


def test_an_interval_of_few_rows_is_not_split():
    """So that counts do not tell where a single row lies: 3 rows stay within the first edges."""
    histogram = histogram_of((np.array([0.3, 0.4, 0.5]), np.array([1, 0, 1])))
    assert_array_equal(histogram.edges, FIRST_EDGES)
    assert histogram.n_numbers == 2 * 2 * (len(FIRST_EDGES) + 1)


def test_equal_scores_end_the_questions():
    histogram = histogram_of((np.full(1000, 0.7), np.arange(1000) % 2))
    assert histogram.counts.sum() == 1000
    assert len(histogram.edges) < 1000


def test_sums_over_clients_are_all_that_is_needed(rng):
    scores, codes = normal_scores(rng)
    owners = rng.integers(4, size=len(codes))

    def summed(edges):
        parts = [
            count_scores(
                scores[owners == g], codes[owners == g], np.ones((owners == g).sum()), edges
            )
            for g in range(4)
        ]
        return np.sum(parts, axis=0)[None]

    one, other = ask_histogram(summed), histogram_of((scores, codes))
    assert_array_equal(one.edges, other.edges)
    assert_array_equal(one.counts, other.counts)


# --- cutting ---


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("shift", [-1.0, 0.5, 2.0])
def test_the_best_cut_is_nearly_that_of_the_rows(positive, shift, rng):
    """At an edge counts are exact; the best cut may lie within an interval, which holds at most one
    in 256 rows of a class or 9 rows."""
    scores, codes = normal_scores(rng, n=4000, share=0.3, shift=shift)
    histogram = histogram_of((scores, codes))
    at, threshold = best_cut(histogram, Aim("balanced_accuracy", positive))
    found = balanced_accuracy_score(codes, (scores > threshold).astype(int))
    table = confusion_matrix(codes, (scores > threshold).astype(int))
    assert_array_equal(histogram.tables(at)[0], table)
    best = best_by_sorting(
        scores, codes, lambda tn, fp, fn, tp: 0.5 * (tn / (tn + fp) + tp / (tp + fn))
    )
    rows = [max((codes == k).sum() / 256, 9) / (codes == k).sum() for k in (0, 1)]
    assert best - 0.5 * sum(rows) <= found <= best

    _, threshold = best_cut(histogram, Aim("f1", positive))
    found = f1_score(codes, (scores > threshold).astype(int), pos_label=positive)

    def f1(tn, fp, fn, tp):
        return 2 * (tp if positive else tn) / (2 * (tp if positive else tn) + fp + fn)

    best = best_by_sorting(scores, codes, f1)
    # F1 = 2 T / (P + A): both move by no more rows than an interval holds.
    moved = sum(max((codes == k).sum() / 256, 9) for k in (0, 1))
    assert best - 3 * moved / (codes == positive).sum() <= found <= best


def test_separated_classes_are_cut_in_the_middle_or_at_0():
    scores, codes = np.array([-3.0] * 20 + [2.0] * 20), np.repeat([0, 1], 20)
    assert best_cut(histogram_of((scores, codes)), Aim("accuracy"))[1] == 0.0
    _, threshold = best_cut(histogram_of((scores + 10.0, codes)), Aim("accuracy"))
    assert 7.0 <= threshold < 12.0
    assert abs(threshold - 9.5) < 0.5  # edges come near the rows, so that the middle is the gap's


def test_where_nothing_tells_classes_apart_the_threshold_stays_near_the_scores(rng):
    scores = rng.normal(size=500)
    always, never = np.ones(500, dtype=np.intp), np.zeros(500, dtype=np.intp)
    for codes in (always, never):
        _, threshold = best_cut(histogram_of((scores, codes)), Aim("accuracy"))
        assert ((scores > threshold) == codes).all()
        assert abs(threshold) <= 256.0


@pytest.mark.parametrize("rate", [0.01, 0.1])
@pytest.mark.parametrize("positive", [0, 1])
def test_a_false_alarm_rate_is_kept_on_the_rows_counted(rate, positive, rng):
    scores, codes = normal_scores(rng, n=5000, share=0.2)
    codes = codes if positive == 1 else 1 - codes
    scores = scores if positive == 1 else -scores  # the looked for class lies above, or below
    _, threshold = best_cut(histogram_of((scores, codes)), Aim(FalseAlarmRate(rate), positive))
    alarms = (scores > threshold) == bool(positive)
    healthy = codes != positive
    assert alarms[healthy].mean() <= rate
    assert alarms[healthy].mean() >= rate - 1 / 256 - 9 / healthy.sum()


@pytest.mark.parametrize("ratio", [0.2, 1.0, 30.0])
def test_a_cost_is_least_within_an_interval(ratio, rng):
    scores, codes = normal_scores(rng, n=5000, share=0.2)
    _, threshold = best_cut(histogram_of((scores, codes)), Aim(MissCost(ratio)))

    missed, alarms = (scores[codes == 1] <= threshold).sum(), (scores[codes == 0] > threshold).sum()
    found = -(ratio * missed + alarms)
    interval = ratio * max((codes == 1).sum() / 256, 9) + max((codes == 0).sum() / 256, 9)
    best = best_by_sorting(scores, codes, lambda tn, fp, fn, tp: -(ratio * fn + fp))
    assert best - interval <= found <= best


# --- wrong labels ---


@given(
    st.lists(st.integers(0, 10_000), min_size=4, max_size=4),
    st.floats(0.0, 0.45),
)
def test_label_noise_is_undone_exactly(counts, share):
    """[label-noise]: expected counts under flips, turned back, are the counts before."""
    true = np.array(counts, dtype=float).reshape(2, 2)
    observed = (1 - share) * true + share * true[::-1]
    # Two products and a difference, divided by 1 - 2 q >= 0.1.
    scale = true.sum() * np.finfo(float).eps / (1 - 2 * share)
    assert_allclose(true_counts(observed, share), true, rtol=0, atol=8 * scale)


def test_with_known_noise_the_cut_for_f1_is_that_of_true_labels(rng):
    scores, codes = normal_scores(rng, n=200_000, share=0.2, shift=2.0)
    wrong = np.where(rng.random(len(codes)) < 0.15, 1 - codes, codes)
    true_f1 = f1_score(codes, scores > best_cut(histogram_of((scores, codes)), Aim("f1"))[1])
    told, silent = (
        f1_score(codes, scores > best_cut(histogram_of((scores, wrong)), Aim("f1", 1, q))[1])
        for q in (0.15, 0.0)
    )
    assert told > true_f1 - 0.01
    assert told > silent + 0.01


def test_noise_that_leaves_no_true_row_is_refused():
    check_label_noise(0.0, np.array([5.0, 95.0]))
    check_label_noise(0.04, np.array([5.0, 95.0]))
    with pytest.raises(InvalidInputError, match=r"label_noise: must be below .* rarer class"):
        check_label_noise(0.05, np.array([5.0, 95.0]))
    with pytest.raises(InvalidInputError, match="label_noise: is for two classes"):
        check_label_noise(0.05, np.array([5.0, 5.0, 95.0]))


# --- flat ---


def test_flat_scores_are_known_from_counts():
    codes = np.arange(400) % 2
    flat = -1.0 + 1e-3 * np.linspace(-1.0, 1.0, 400)
    assert histogram_of((flat, codes)).is_flat(0.02)
    assert not histogram_of((1000.0 * flat, codes)).is_flat(0.02)
    assert not histogram_of((np.where(codes, 1.0, flat), codes)).is_flat(0.02)
