"""The distribution that attains the worst-case risk on a box, atom by atom."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_finite, check_vector
from fdrsvm.core.losses import Hinge
from fdrsvm.core.vectors import Norm, dot, times
from fdrsvm.errors import UnsupportedError
from fdrsvm.risk.ball import Support
from fdrsvm.risk.worst_case import RiskOracle, WorstCase, check_proof


class WorstCaseDistribution(NamedTuple):
    """A worst distribution Q* in the ball: at most two atoms for each sample.

    Attributes
    ----------
    points : ndarray of shape (n_atoms, n_features)
        Where the atoms are, inside the support.
    labels : ndarray of shape (n_atoms,)
        Their labels, -1 or +1.
    weights : ndarray of shape (n_atoms,)
        Their masses; they sum to 1.
    source_index : ndarray of shape (n_atoms,)
        The sample each atom came from.
    transport_cost : float
        Mean cost of the transport: epsilon where the radius binds (multiplier above 0), else less.
    risk : float
        Expected hinge loss under Q*. It equals the worst-case risk if ``worst_case="exact"``.
    """

    points: Array
    labels: Array
    weights: Array
    source_index: npt.NDArray[np.intp]
    transport_cost: float
    risk: float


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
    return _collect_atoms(oracle, w, check_finite(intercept, "intercept"))


def _collect_atoms(oracle: RiskOracle, w: Array, intercept: float) -> WorstCaseDistribution:
    with np.errstate(over="ignore", invalid="ignore"):
        found = oracle.in_box(w, intercept)
    check_proof(found.risk.value, found.risk.proof)
    X, ball = oracle.X, oracle.ball
    ends = list(zip(found.labels, found.steps, strict=True))
    points = [oracle.displaced(w, label, step) for label, step in ends]
    labels = [np.where(label == 0.0, oracle.y, label) for label, _ in ends]
    alike = (labels[0] == labels[1]) & (points[0] == points[1]).all(axis=1)
    shares = np.where(alike, 0.0, found.shares)
    weights = np.concatenate([shares * oracle.mass, (1.0 - shares) * oracle.mass])
    kept = np.flatnonzero(weights > 0.0)
    kept = kept[np.argsort(kept % len(X), kind="stable")]
    source = kept % len(X)
    all_points, all_labels = np.concatenate(points)[kept], np.concatenate(labels)[kept]
    weights = weights[kept]
    costs = _lengths(all_points - X[source], ball.norm)
    flipped = all_labels != oracle.y[source]
    costs[flipped] += ball.kappa
    margins = all_labels * (times(all_points, w) + intercept)
    return WorstCaseDistribution(
        points=all_points,
        labels=all_labels,
        weights=weights,
        source_index=source,
        transport_cost=dot(weights, costs),
        risk=dot(weights, Hinge().value(margins)),
    )


def _lengths(moves: Array, norm: Norm) -> Array:
    """``norm`` of each row, with sums of a shape that does not depend on the processor."""
    if norm == "linf":
        longest: Array = np.abs(moves).max(axis=1)
        return longest
    ones = np.ones(moves.shape[1])
    return times(np.abs(moves), ones) if norm == "l1" else np.sqrt(times(moves * moves, ones))
