"""FedSGD, [fedsgd]: clients send a subgradient of the l2-regularised SVM, the server takes a step.

    w <- w - lr/sqrt(t) sum_g alpha_g v_g,     v_g = (slope of the mean hinge at w) + 2 epsilon_g w

t = 1, 2, ... is the round, and w = 0 at first; an intercept has no penalty. A client sends J_g at w
and the cut of its loss there ([ridge-bound]): the cut's slope is the loss's part of v_g, and the
server adds the penalty's. The sum is over the clients that answered, their weights scaled to sum
to 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from fdrsvm.core.arrays import Array, check_positive
from fdrsvm.core.vectors import dot
from fdrsvm.federated.aggregation import check_trim, trimmed_mean
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Values
from fdrsvm.federated.methods.baseline import (
    Baseline,
    BaselineState,
    cuts_of,
    next_state,
    penalties,
    present_weights,
    ridge_answer,
)
from fdrsvm.federated.problem import ClientProblem


@dataclass(frozen=True)
class FedSGD(Baseline):
    """Subgradient descent on the l2-regularised SVM, one step per round.

    Parameters
    ----------
    learning_rate : float
        lr, the step of the first round.
    trim : float
        Share of the clients left out at either end of the mean, entry by entry: [trimmed].
    """

    name: ClassVar[str] = "fedsgd"
    state_type: ClassVar[type] = BaselineState
    learning_rate: float = 0.1
    trim: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self.learning_rate, "learning_rate")
        check_trim(self.trim)

    def ask(self, federation: Federation, state: BaselineState, client: int) -> Values:
        """The model."""
        return {"points": state.w[None]}

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """Objective and cut at the model; the cut's slope is the loss's subgradient."""
        return memory, ridge_answer(problem, asked["points"][0], penalty=problem.profile.epsilon)

    def advance(
        self, federation: Federation, state: BaselineState, replies: Replies
    ) -> BaselineState:
        """One step along the mean subgradient of those who answered."""
        weights, P = present_weights(federation, replies), federation.n_features
        gradient = trimmed_mean(cuts_of(federation, replies)[1], weights, self.trim)
        gradient[:P] += 2.0 * dot(weights, penalties(federation)) * state.w[:P]
        w = state.w - self.learning_rate / math.sqrt(state.t) * gradient
        return next_state(federation, state, w, replies)
