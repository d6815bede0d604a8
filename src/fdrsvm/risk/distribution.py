"""The distribution that attains the worst-case risk on a box, atom by atom."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array, check_finite, check_vector
from fdrsvm.core.losses import Hinge
from fdrsvm.core.vectors import Norm, dot, times
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
    X, y, mass = oracle.X, oracle.y, oracle.mass
    # Two ends per sample, between which the shares divide its mass; one if they are the same.
    ends = list(zip(moves.labels, moves.steps, strict=True))
    points = [oracle.displaced(w, label, step) for label, step in ends]
    labels = [np.where(label == 0.0, y, label) for label, _ in ends]
    are_alike = (labels[0] == labels[1]) & (points[0] == points[1]).all(axis=1)
    shares = np.where(are_alike, 0.0, moves.shares)
    weights = np.concatenate([shares * mass, (1.0 - shares) * mass])
    atoms = np.flatnonzero(weights > 0.0)
    atoms = atoms[np.argsort(atoms % len(X), kind="stable")]  # sample by sample
    source, atom_weights = atoms % len(X), weights[atoms]
    atom_points, atom_labels = np.concatenate(points)[atoms], np.concatenate(labels)[atoms]
    costs = _lengths(atom_points - X[source], oracle.ball.norm)
    costs[atom_labels != y[source]] += oracle.ball.kappa
    margins = atom_labels * (times(atom_points, w) + intercept)
    return WorstCaseDistribution(
        points=atom_points,
        labels=atom_labels,
        weights=atom_weights,
        source_index=source,
        transport_cost=dot(atom_weights, costs),
        risk=dot(atom_weights, Hinge().value(margins)),
    )


def _lengths(moves: Array, norm: Norm) -> Array:
    """``norm`` of each row, with sums of a shape that does not depend on the processor."""
    if norm == "linf":
        longest: Array = np.abs(moves).max(axis=1)
        return longest
    ones = np.ones(moves.shape[1])
    return times(np.abs(moves), ones) if norm == "l1" else np.sqrt(times(moves * moves, ones))
