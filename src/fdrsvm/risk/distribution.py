"""The distribution that attains the worst-case risk on a box, atom by atom."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array, check_finite, check_vector
from fdrsvm.core.losses import Hinge
from fdrsvm.core.vectors import Norm, times
from fdrsvm.errors import UnsupportedError
from fdrsvm.risk.ball import Support, WorstCase, WorstCaseDistribution
from fdrsvm.risk.worst_case import RiskOracle, check_proof


def worst_case_distribution(
    w: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    kappa: float = 1.0,
    norm: Norm = "linf",
    support: Support,
    worst_case: WorstCase = "exact",
    sample_weight: Any = None,
    intercept: float = 0.0,
) -> WorstCaseDistribution:
    """A distribution in the Wasserstein ball whose expected hinge loss is the worst-case risk.

    Parameters are those of :func:`fdrsvm.worst_case_risk`. A support is needed: without one the
    worst case may only be approached, by ever less mass sent ever further.

    Examples
    --------
    >>> import numpy as np
    >>> from fdrsvm import worst_case_distribution
    >>> X, y = np.array([[0.1, 0.9], [0.8, 0.3]]), np.array([-1, 1])
    >>> q = worst_case_distribution(
    ...     [2.0, -1.0], X, y, epsilon=0.05, kappa=0.5, support="unit-box"
    ... )
    >>> round(q.transport_cost, 6), round(q.risk, 6)
    (0.05, 0.38)
    """
    if support is None:
        raise UnsupportedError(
            "worst_case_distribution needs a compact support: 'unit-box' or (low, high)"
        )
    oracle = RiskOracle(
        X,
        y,
        epsilon=epsilon,
        kappa=kappa,
        norm=norm,
        support=support,
        worst_case=worst_case,
        sample_weight=sample_weight,
    )
    w = check_vector(w, "w", oracle.X.shape[1], "features")
    intercept = check_finite(intercept, "intercept")
    with np.errstate(over="ignore", invalid="ignore"):  # the proof says what came of it
        moves = oracle.in_box(w, intercept)
    check_proof(moves.risk.value, moves.risk.proof)
    ball = oracle.ball
    ends = []
    for label, step in zip(moves.labels, moves.steps, strict=True):
        points = oracle.displaced(w, label, step)
        labels = np.where(label == 0.0, oracle.y, label)
        costs = _lengths(points - oracle.X, ball.norm)
        costs[labels != oracle.y] += ball.kappa
        losses = Hinge().value(labels * (times(points, w) + intercept))
        ends.append((points, labels, costs, losses))
    # Two ends per sample, between which the shares divide its mass; one if they are the same.
    are_alike = (ends[0][1] == ends[1][1]) & (ends[0][0] == ends[1][0]).all(axis=1)
    shares = np.where(are_alike, 0.0, moves.shares)
    return WorstCaseDistribution.between(ends, shares, oracle.mass)


def _lengths(moves: Array, norm: Norm) -> Array:
    """``norm`` of each row, with sums of a shape that does not depend on the processor."""
    if norm == "linf":
        longest: Array = np.abs(moves).max(axis=1)
        return longest
    ones = np.ones(moves.shape[1])
    return times(np.abs(moves), ones) if norm == "l1" else np.sqrt(times(moves * moves, ones))
