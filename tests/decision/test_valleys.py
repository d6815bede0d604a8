"""The highest values that lie apart are found, and of one peak hardly ever any."""

import numpy as np
import pytest
from scipy import stats

from fdrsvm.decision.valleys import RISK, rows_above_valley

ONE_PEAK = {
    "normal": stats.norm(),
    "Student's t with 2 degrees of freedom": stats.t(2),
    "Cauchy": stats.cauchy(),
    "exponential": stats.expon(),
    "log-normal": stats.lognorm(1.0),
    "uniform": stats.uniform(),
}


@pytest.mark.parametrize("name", ONE_PEAK)
def test_one_peak_has_hardly_ever_a_valley_whatever_its_tails(name, rng):
    n_trials = 400
    for n_rows, sign in ((100, 1.0), (300, -1.0)):
        draws = sign * ONE_PEAK[name].rvs(size=(n_trials, n_rows), random_state=rng)
        n_false = sum(rows_above_valley(values) > 0 for values in draws)
        # 2 %, as the page says: more than 5 % of 400 trials would then be seen once in 10^4 runs.
        assert n_false <= 0.05 * n_trials
    assert stats.binom.sf(0.05 * n_trials, n_trials, 0.02) < 1e-3
    assert RISK < 1.0


def test_the_ratio_of_uniform_order_statistics_is_the_beta_of_the_test(rng):
    v, w, n_rows, n_trials = 3, 4, 12, 4000
    U = np.sort(rng.random((n_trials, n_rows)), axis=1)
    ratios = U[:, v - 1] / U[:, v + w - 1]
    assert stats.kstest(ratios, stats.beta(v, w).cdf).pvalue > 1e-4
    # A density that falls makes the ratio smaller: the uniform one is the worst.
    X = np.sort(rng.exponential(size=(n_trials, n_rows)), axis=1)
    for level in (0.5, 0.1, 0.01):
        limit = stats.beta(v, w).ppf(1.0 - level)
        share = np.mean(X[:, v - 1] / X[:, v + w - 1] > limit)
        assert share <= level + 4.0 * np.sqrt(level / n_trials)


@pytest.mark.parametrize(
    ("n_rows", "n_apart", "distance"), [(100, 10, 14), (400, 20, 12), (2000, 60, 9)]
)
def test_a_group_of_its_own_is_found_and_counted(n_rows, n_apart, distance, rng):
    for scale in (1e-9, 1.0, 1e9):
        values = rng.normal(size=n_rows)
        values[:n_apart] += distance
        assert rows_above_valley(scale * values) == pytest.approx(n_apart, abs=2)


def test_rounded_and_few_values_have_no_valley(rng):
    for n_rows in range(1, 9):
        assert rows_above_valley(rng.normal(size=n_rows)) == 0
    for digits in (0, 1, 2):
        assert rows_above_valley(rng.normal(size=500).round(digits)) == 0
    assert rows_above_valley(np.zeros(100)) == 0
    assert rows_above_valley(np.repeat([0.0, 1.0], 50) + 1e-15 * rng.random(100), 1e-14) == 0
