"""The paper's test: whether the best of ours is better than a federated baseline.

Wilcoxon's signed-rank test, one-sided, on F-1 differences paired by repetition. H0: the differences
are spread evenly about zero. H1: ours is better. For each data set "ours" is the one of SM, ADMM
and ADMM-SC with the highest mean. Since that choice is made on the same repetitions, the p-values
are a little too small; they are computed like this to be the paper's, not because it is best. The
same test of the bundle method involves no choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import stats

from fdrsvm.core.arrays import Array
from fdrsvm.errors import InvalidInputError
from fdrsvm_paper.paper_values import (
    BASELINES,
    DATA_TITLES,
    OURS,
    WILCOXON,
    WILCOXON_ALPHA,
)
from fdrsvm_paper.summary import BUNDLE, Rows, in_order, values_by_repetition

__all__ = ["Comparison", "SignedRank", "compare_best", "compare_bundle", "signed_rank"]

# F-1 is a ratio of counts: differences that are equal on paper differ by rounding, 1e-16, and those
# that are not by far more than this.
_DECIMALS = 12
_LARGEST_ENUMERATION = 13  # differences; 2^13 signs are quickly tried


@dataclass(frozen=True)
class SignedRank:
    """Outcome of a one-sided signed-rank test.

    Attributes
    ----------
    statistic : float
        Sum of the ranks of the positive differences.
    p_value : float
        Chance of a sum at least as large if ours is no better.
    """

    statistic: float
    p_value: float


@dataclass(frozen=True)
class Comparison:
    """One method of ours against one baseline on one data set.

    Attributes
    ----------
    data : str
        The data set, as named in the rows.
    ours, baseline : str
        The two methods.
    n : int
        Repetitions that both have, ties included.
    statistic, p_value : float
        As in :class:`SignedRank`.
    rejected : bool
        Whether "ours is no better" is rejected.
    paper_rejected : bool or None
        Whether the paper rejected it; None for a test that the paper does not have.
    """

    data: str
    ours: str
    baseline: str
    n: int
    statistic: float
    p_value: float
    rejected: bool
    paper_rejected: bool | None


def signed_rank(ours: Sequence[float] | Array, baseline: Sequence[float] | Array) -> SignedRank:
    """Test whether ``ours`` is larger than ``baseline``, pair by pair.

    Pairs without a difference are left out; equal differences share their ranks. The p-value is
    exact where scipy has it exactly: up to 50 differences that all differ in size, or up to 13
    otherwise. Beyond that it is the normal approximation with the correction for ties.

    Parameters
    ----------
    ours, baseline : array of shape (n_pairs,)
        Scores of the two methods in the same repetitions.

    Returns
    -------
    SignedRank
        ``statistic`` and ``p_value``; 0 and 1 if no pair differs.

    Examples
    --------
    >>> signed_rank([0.95, 0.93, 0.97, 0.94], [0.92, 0.93, 0.95, 0.93])
    SignedRank(statistic=6.0, p_value=0.125)
    """
    left, right = _checked(ours, "ours"), _checked(baseline, "baseline")
    if len(left) != len(right):
        raise InvalidInputError(
            "baseline", "must have as many scores as ours", f"found {len(right)} for {len(left)}"
        )
    differences = np.round(left - right, _DECIMALS)
    differences = differences[differences != 0.0]
    if len(differences) == 0:
        return SignedRank(0.0, 1.0)
    tied = len(np.unique(np.abs(differences))) < len(differences)
    # Not every scipy that we allow sees by itself that its tables do not hold for ties.
    enumerate_signs = tied and len(differences) <= _LARGEST_ENUMERATION
    result = stats.wilcoxon(
        differences,
        alternative="greater",
        method=stats.PermutationMethod() if enumerate_signs else "auto",
    )
    return SignedRank(float(result.statistic), float(result.pvalue))


def compare_best(rows: Rows, *, alpha: float = WILCOXON_ALPHA) -> list[Comparison]:
    """The paper's tests: on each data set, the best of ours against each federated baseline.

    Parameters
    ----------
    rows : sequence of dict
        Rows of table 1.
    alpha : float, default=0.05
        Level of each test. As in the paper there is no correction for their number.

    Returns
    -------
    list of Comparison
        By data set, then by baseline; without those that have no common repetition.
    """
    scores = values_by_repetition(rows, "data")
    best = {data: _best_of_ours(scores, data) for data in _data_sets(scores)}
    return [
        comparison
        for data, ours in best.items()
        if ours is not None
        for comparison in _compare(scores, data, ours, alpha, WILCOXON)
    ]


def compare_bundle(rows: Rows, *, alpha: float = WILCOXON_ALPHA) -> list[Comparison]:
    """The same tests for the certified bundle method, which the paper does not have.

    Parameters
    ----------
    rows : sequence of dict
        Rows of table 1.
    alpha : float, default=0.05
        Level of each test.

    Returns
    -------
    list of Comparison
        By data set, then by baseline, with ``paper_rejected`` None.
    """
    scores = values_by_repetition(rows, "data")
    return [
        comparison
        for data in _data_sets(scores)
        for comparison in _compare(scores, data, BUNDLE, alpha, {})
    ]


_Scores = Mapping[tuple[str, str], Mapping[str, float]]  # (method, data) -> repetition -> F-1


def _checked(values: Sequence[float] | Array, name: str) -> Array:
    checked = np.asarray(values, dtype=np.float64)
    if checked.ndim != 1 or not np.isfinite(checked).all():
        raise InvalidInputError(name, "must be one list of finite numbers", f"found {values!r}")
    return checked


def _data_sets(scores: _Scores) -> list[str]:
    return in_order((data for _, data in scores), DATA_TITLES)


def _best_of_ours(scores: _Scores, data: str) -> str | None:
    """The one with the highest mean over the repetitions that all of ours there have."""
    present = {method: scores[method, data] for method in OURS if (method, data) in scores}
    if not present:
        return None
    common = set.intersection(*(set(values) for values in present.values()))
    if not common:
        return None
    means = {
        method: round(fmean(values[repetition] for repetition in common), _DECIMALS)
        for method, values in present.items()
    }
    return max(means, key=means.__getitem__)


def _compare(
    scores: _Scores,
    data: str,
    ours: str,
    alpha: float,
    paper: Mapping[str, Mapping[str, bool]],
) -> list[Comparison]:
    """One method of ours against every baseline that shares repetitions with it."""
    comparisons = []
    for baseline in BASELINES:
        left, right = scores.get((ours, data), {}), scores.get((baseline, data), {})
        common = [repetition for repetition in left if repetition in right]
        if not common:
            continue
        test = signed_rank([left[r] for r in common], [right[r] for r in common])
        comparisons.append(
            Comparison(
                data=data,
                ours=ours,
                baseline=baseline,
                n=len(common),
                statistic=test.statistic,
                p_value=test.p_value,
                rejected=test.p_value < alpha,
                paper_rejected=paper.get(baseline, {}).get(data),
            )
        )
    return comparisons
