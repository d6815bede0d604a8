"""How the worst-case risk of a model grows with the radius of the ball."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array, check_matrix, check_vector
from fdrsvm.core.losses import MarginLoss
from fdrsvm.core.vectors import Norm
from fdrsvm.errors import InvalidInputError
from fdrsvm.inspection.fitted import check_signs
from fdrsvm.model.reading import read_linear
from fdrsvm.risk.ball import Ball, Support, check_inside
from fdrsvm.risk.worst_case import RiskOracle


class RiskCurve(NamedTuple):
    """Worst-case risk against radius.

    Attributes
    ----------
    radii : ndarray of shape (n_radii,)
        The radii, in the order given.
    risk : ndarray of shape (n_radii,)
        The worst-case risk at each: concave in the radius, and never falling.
    multiplier : ndarray of shape (n_radii,)
        Its slope there: what a slightly larger radius would add, per unit.
    """

    radii: Array
    risk: Array
    multiplier: Array


def risk_curve(
    model: Any,
    X: Any,
    y: Any,
    *,
    radii: Any,
    kappa: float = 1.0,
    norm: Norm = "linf",
    support: Support = None,
    loss: str | MarginLoss = "hinge",
    sample_weight: Any = None,
) -> RiskCurve:
    """Exact worst-case risk of a model on some data, at each of several radii.

    With a feature map it is what is certified in training: at most this much, [map].

    Parameters
    ----------
    model, X
        As in :func:`feature_effects`; of two classes, and best not the samples of training. The
        risk is of the score, wherever the model cuts it.
    y : array of shape (n_samples,)
        Their labels, which must be the model's classes.
    radii : array of shape (n_radii,)
        Radii of the ball, at least 0. At 0 the risk is the mean loss. They are distances in the
        units of X; for a model with a feature map in those of the sensors that trained it.
    kappa, norm, support, loss, sample_weight
        The ball and the loss, as in :func:`fdrsvm.worst_case_risk`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import LinearSVC
    >>> from fdrsvm.inspection import risk_curve
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.2]]), ["ok", "fault", "fault"]
    >>> model = LinearSVC(C=100.0).fit(X, y)
    >>> curve = risk_curve(model, X, y, radii=[0.0, 0.1, 0.2])
    >>> bool((np.diff(curve.risk) > 0.0).all())
    True
    """
    linear = read_linear(model)
    signs = check_signs(linear, y, len(linear.decision_function(X)))
    checked = check_vector(radii, "radii", np.size(radii), "radii").copy()
    if checked.size == 0 or (checked < 0.0).any():
        raise InvalidInputError(
            "radii", "must be one or more numbers, at least 0", f"they are {radii!r}"
        )
    ball: dict[str, Any] = {"epsilon": 0.0, "kappa": kappa, "norm": norm, "support": support}
    stretch, rows = 1.0, X
    if linear.features is not None:
        box = Ball.checked(linear.n_features, **ball).box
        if box is not None:
            check_inside(check_matrix(X), box, getattr(X, "columns", None))
        stretch = linear.features.stretch(norm)
        rows, ball = linear.features.in_front(check_matrix(X), ball)
    oracle = RiskOracle(rows, signs, loss=loss, sample_weight=sample_weight, **ball)
    risks = []
    for radius in checked:
        oracle = oracle.with_ball(replace(oracle.ball, epsilon=stretch * float(radius)))
        with np.errstate(over="ignore", invalid="ignore"):  # the oracle checks what comes out
            risks.append(oracle(linear.coef[0], float(linear.intercept[0])))
    return RiskCurve(
        radii=checked,
        risk=np.array([risk.value for risk in risks]),
        multiplier=stretch * np.array([risk.multiplier for risk in risks]),
    )
