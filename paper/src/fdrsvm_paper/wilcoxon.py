"""The paper's test: whether the best of ours is better than a federated baseline.

Wilcoxon's signed-rank test, one-sided, on F-1 differences paired by repetition. H0: the differences
are spread evenly about zero. H1: ours is better. For each data set "ours" is the one of SM, ADMM
and ADMM-SC with the highest mean. Since that choice is made on the same repetitions, the p-values
are a little too small; they are computed like this to be the paper's, not because it is best. The
same test of the bundle method involves no choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from fdrsvm.core.arrays import Array
from fdrsvm.errors import InvalidInputError
from fdrsvm_paper.paper_values import BASELINES, OURS, WILCOXON, WILCOXON_ALPHA
from fdrsvm_paper.summary import BUNDLE, Rows, by_repetition

# F-1 is a ratio of counts: differences that are equal on paper differ by rounding, 1e-16, and those
# that are not by far more than this.
_DECIMALS = 12
_LARGEST_ENUMERATION = 13  # differences; 2^13 signs are quickly tried


class SignedRank(NamedTuple):
    """Outcome of a one-sided signed-rank test."""

    statistic: float  # sum of the ranks of the positive differences
    p_value: float  # chance of a sum at least as large if ours is no better


class Comparison(NamedTuple):
    """One method of ours against one baseline on one data set."""

    data: str
    ours: str
    baseline: str
    n: int  # repetitions that both have, ties included
    statistic: float
    p_value: float
    rejected: bool  # whether "ours is no better" is rejected
    paper_rejected: bool | None  # None for a test that the paper does not have


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
    left, right = np.asarray(ours, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    for name, values in (("ours", left), ("baseline", right)):
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InvalidInputError(name, "must be one list of finite numbers", f"found {values}")
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

    def best(methods: Any) -> str:
        """The highest mean over the repetitions that all of ours there have."""
        ours = methods.reindex(columns=OURS).dropna(axis=1, how="all").dropna()
        return "" if ours.empty else str(ours.mean().round(_DECIMALS).idxmax())

    return _compare(rows, best, alpha, WILCOXON)


def compare_bundle(rows: Rows, *, alpha: float = WILCOXON_ALPHA) -> list[Comparison]:
    """The same tests for the certified bundle method, which the paper does not have.

    ``paper_rejected`` is None in all of them.
    """
    return _compare(rows, lambda _: BUNDLE, alpha, {})


def _compare(
    rows: Rows,
    choose: Callable[[Any], str],
    alpha: float,
    paper: Mapping[str, Mapping[str, bool]],
) -> list[Comparison]:
    """On each data set the chosen method against every baseline that shares repetitions with it."""
    comparisons = []
    for data, scores in by_repetition(rows, "data").groupby(level="data", observed=True):
        methods = scores.droplevel("data").unstack("method")  # a row per repetition
        ours = choose(methods)
        for baseline in BASELINES:
            pairs = methods.reindex(columns=[ours, baseline]).dropna()
            if pairs.empty:
                continue
            test = signed_rank(pairs[ours], pairs[baseline])
            rejected = test.p_value < alpha
            printed = paper.get(baseline, {}).get(data)
            comparisons.append(
                Comparison(data, ours, baseline, len(pairs), *test, rejected, printed)
            )
    return comparisons
