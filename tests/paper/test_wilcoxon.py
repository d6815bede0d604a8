"""The signed-rank test against all signs tried one by one, and against scipy."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from fdrsvm.errors import InvalidInputError
from fdrsvm_paper.paper_values import BASELINES
from fdrsvm_paper.summary import BUNDLE
from fdrsvm_paper.wilcoxon import compare_best, compare_bundle, signed_rank

# Plant heights in pairs, cross-fertilised less self-fertilised: Darwin's, as in Fisher (1935).
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def by_all_signs(differences):
    """Statistic and p-value by trying each way to give signs to the ranks."""
    moved = np.array([d for d in differences if d != 0.0])
    ranks = stats.rankdata(np.abs(moved))
    observed = ranks[moved > 0.0].sum()
    sums = [ranks[np.array(signs)].sum() for signs in product([False, True], repeat=len(moved))]
    return observed, np.mean(np.array(sums) >= observed - 1e-9)


def table_rows(scores, data="bcw"):
    return [
        {"data": data, "method": method, "repetition": str(repetition), "f1": repr(float(value))}
        for method, values in scores.items()
        for repetition, value in enumerate(values)
        if value is not None
    ]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [1, 2, 5, 8, 11])
@pytest.mark.parametrize("decimals", [1, 6])  # with ties and zeros, and without
def test_small_samples_are_exact(n, seed, decimals):
    rng = np.random.default_rng([n, seed, decimals])
    baseline = np.round(rng.random(n), decimals)
    ours = np.round(baseline + rng.normal(0.1, 0.3, size=n), decimals)
    found = signed_rank(ours, baseline)
    differences = np.round(ours - baseline, 9)
    if not differences.any():
        assert (found.statistic, found.p_value) == (0.0, 1.0)
        return
    statistic, p_value = by_all_signs(differences)
    assert found.statistic == pytest.approx(statistic)
    assert found.p_value == pytest.approx(p_value, abs=1e-12)


def test_darwins_plants():
    # Known: the positive ranks sum to 96 of 120.
    found = signed_rank(DARWIN, [0] * 15)
    assert found.statistic == 96.0
    assert found.p_value == pytest.approx(0.0206, abs=5e-5)
    assert found.p_value == pytest.approx(by_all_signs(DARWIN)[1])


@pytest.mark.parametrize("decimals", [2, 8])
def test_larger_samples_are_as_scipy_has_them(decimals):
    rng = np.random.default_rng(decimals)
    differences = np.round(rng.normal(0.02, 0.05, size=50), decimals)
    moved = differences[differences != 0.0]
    expected = stats.wilcoxon(moved, alternative="greater")
    found = signed_rank(differences, np.zeros(50))
    assert (found.statistic, found.p_value) == (expected.statistic, expected.pvalue)


def test_equal_scores_reject_nothing():
    found = signed_rank([0.9, 0.8, 0.7], [0.9, 0.8, 0.7])
    assert (found.statistic, found.p_value) == (0.0, 1.0)
    assert signed_rank([], []).p_value == 1.0


def test_rounding_makes_no_difference():
    # 0.3 against 0.1 + 0.2, and differences that are all 0.1 but for the last bit.
    assert signed_rank([0.3], [0.1 + 0.2]).p_value == 1.0
    ours, baseline = np.array([0.3, 0.8, 0.4, 0.7]), np.array([0.2, 0.7, 0.3, 0.8])
    found = signed_rank(ours, baseline)
    assert found.statistic == 7.5  # four equal ranks of 2.5
    assert found.p_value == pytest.approx(5 / 16)


def test_the_side_matters():
    ours, baseline = np.arange(1.0, 9.0), np.zeros(8)
    assert signed_rank(ours, baseline).p_value == pytest.approx(2.0**-8)
    assert signed_rank(baseline, ours).p_value == 1.0


@pytest.mark.parametrize(
    ("ours", "baseline"), [([1.0, 2.0], [1.0]), ([np.nan], [1.0]), ([[1.0]], [[0.0]])]
)
def test_bad_samples_are_refused(ours, baseline):
    with pytest.raises(InvalidInputError):
        signed_rank(ours, baseline)


def test_the_best_of_ours_is_tested():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.8, 0.9, size=12)
    rows = table_rows(
        {
            "SM": base + 0.01,
            "ADMM": base + 0.03 + 0.001 * np.arange(12),
            "ADMM-SC": base + 0.02,
            "FedSGD": base,
            "FedAvg": base + 0.03 + 0.001 * np.arange(12),
            "FedProx": base + 0.05,
            "FedDRO (KL)": base - 0.1,
            "Central DR-SVM": base + 0.1,
        }
    )
    found = compare_best(rows)
    assert [(c.data, c.ours, c.baseline, c.n) for c in found] == [
        ("bcw", "ADMM", baseline, 12) for baseline in BASELINES
    ]
    assert [c.rejected for c in found] == [True, False, False, True]
    assert found[0].p_value == pytest.approx(2.0**-12)
    assert (found[1].statistic, found[1].p_value) == (0.0, 1.0)
    assert [c.paper_rejected for c in found] == [True] * 4
    assert compare_bundle(rows) == []


def test_pairs_are_those_that_both_have():
    rows = table_rows(
        {
            "SM": [None, 0.6, 0.6, 0.99],  # the higher mean of all it has, not where ADMM is too
            "ADMM": [0.5, 0.9, 0.7, None],
            "FedAvg": [None, 0.8, 0.5, 0.1],
            "FedProx": [None, None, None, 0.1],
        }
    )
    (found,) = compare_best(rows)
    assert (found.ours, found.baseline, found.n) == ("ADMM", "FedAvg", 2)
    assert (found.statistic, found.p_value, found.rejected) == (3.0, 0.25, False)


def test_nothing_in_common_gives_no_test():
    assert compare_best([]) == []
    assert compare_best(table_rows({"FedAvg": [0.9]})) == []
    assert (
        compare_best(table_rows({"SM": [0.9, None], "ADMM": [None, 0.9], "FedAvg": [0, 0]})) == []
    )


def test_the_bundle_has_its_own_tests_and_data_sets_their_order():
    scores = {BUNDLE: [0.9] * 6, "FedAvg": np.arange(6) / 10.0, "SM": [0.1] * 6}
    rows = [row for data in ("mine", "ukm", "bcw") for row in table_rows(scores, data)]
    found = compare_bundle(rows)
    assert [c.data for c in found] == ["bcw", "ukm", "mine"]
    assert all((c.ours, c.baseline, c.paper_rejected) == (BUNDLE, "FedAvg", None) for c in found)
    assert all(c.rejected and c.p_value == pytest.approx(1 / 64) for c in found)
    assert not any(c.rejected for c in compare_bundle(rows, alpha=0.01))
    best = {c.data: c for c in compare_best(rows)}
    assert [best[data].paper_rejected for data in ("bcw", "ukm", "mine")] == [True, False, None]
