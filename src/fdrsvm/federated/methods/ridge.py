"""A client's objective in the baselines, and a cut of its loss at one model: [ridge-bound].

    J_g(w, b) = sum_n p_n max(0, 1 - m_n) + epsilon_g ||w||^2,     m_n = y_n (w.x_n + b)

or, with a temperature lam (FedDRO), lam log sum_n p_n exp(max(0, 1 - m_n) / lam) as the loss.
Either loss lies above sum_n q_n a_n (1 - m_n) minus the price of q, whatever q is and for all a_n
in [0, 1]: here a_n = 1 where 1 - m_n > 0, and q is what touches the loss at the model, p itself for
the mean. Constant and slope are sums of their own, never differences of large numbers.
"""

from __future__ import annotations

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.tilted_mean import tilted_mean
from fdrsvm.core.vectors import dot, times, weighted_sum
from fdrsvm.errors import UnsupportedError
from fdrsvm.federated.problem import ClientProblem, stack_cuts
from fdrsvm.risk.worst_case import Cut


def ridge_answer(
    problem: ClientProblem, model: Array, *, penalty: float, temperature: float | None = None
) -> dict[str, Array]:
    """J_g at ``model`` and the cut of its loss, as the arrays of a message."""
    if not problem.can_start:
        raise UnsupportedError(
            f"the baselines are for the hinge; loss is {problem.exact.loss.name!r}"
        )
    w, intercept = problem.split(model)
    X, y, mass = problem.exact.X, problem.exact.y, problem.exact.mass
    losses = np.maximum(1.0 - y * (times(X, w) + intercept), 0.0)
    if temperature is None:
        value, shares, price = dot(mass, losses), mass, 0.0
    else:
        value, shares, price = tilted_mean(losses, mass, temperature)
    active = np.where(losses > 0.0, shares, 0.0)
    signed = -active * y
    slope = weighted_sum(signed, X)
    if problem.profile.fit_intercept:
        slope = np.append(slope, signed.sum())
    cut = Cut(float(active.sum()) - price, slope, 0.0)
    risk = value + penalty * dot(w, w)
    return {"risks": np.array([risk]), **stack_cuts([cut], problem.width)}
