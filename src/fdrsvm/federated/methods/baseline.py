"""What the baselines have in common: the server's bookkeeping, and what they leave out.

They minimise J(w) = sum_g alpha_g J_g(w) and not the worst-case risk, so objective, bound and gap
are those of J. A model is evaluated when it is sent, a round after it was made: the last one never
is, and ``standing`` holds the best of those that were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import dot, length, weighted_sum
from fdrsvm.federated.aggregation import trimmed_mean
from fdrsvm.federated.certificate import Standing
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Values
from fdrsvm.federated.methods.ridge_evidence import (
    RidgeEvidence,
    no_evidence,
    observe,
    settle,
)
from fdrsvm.federated.screen import Faults, Rules, judge_answers
from fdrsvm.solvers.ridge_bound import RidgeCut

_LARGEST_SQUARE = 1e200  # of a model: beyond it risks with their penalty overflow


@dataclass(frozen=True)
class BaselineState:
    """Before round ``t``."""

    w: Array
    t: int
    step: float  # how far w moved in the last round
    evidence: RidgeEvidence


State = TypeVar("State", bound=BaselineState)


class Baseline:
    """The part of an algorithm that is the same in all of them."""

    patience: ClassVar[int | None] = None

    def start(self, federation: Federation) -> Any:
        """The state before the first round; each baseline has its own."""
        raise NotImplementedError

    def model(self, state: BaselineState) -> Array:
        """The newest iterate: what the paper keeps after its last round."""
        return state.w

    def standing(self, state: BaselineState) -> Standing:
        """The best iterate, by J, that all clients have evaluated."""
        return state.evidence.standing

    def residuals(self, state: BaselineState) -> dict[str, float]:
        """How far the last round moved the model."""
        return {"step": state.step}

    def is_settled(self, state: BaselineState) -> bool:
        """They have no rule of their own."""
        return False

    def settle(self, federation: Federation, state: State) -> State:
        """The best bound from all cuts kept."""
        return replace(state, evidence=settle(federation, state.evidence))

    def pending(self, state: BaselineState) -> Array | None:
        """Nothing: a last evaluation would give the worst-case risk, which is not theirs."""
        return None

    def judge(
        self, federation: Federation, state: BaselineState, replies: Replies, rules: Rules
    ) -> Faults:
        """Objective and cut at the model; of the vectors of local steps nothing is proved."""
        answers = replies.answers
        return judge_answers(
            federation,
            rules,
            state.w[None],
            answers,
            penalties=penalties(federation),
        )

    def judge_evaluation(
        self, federation: Federation, state: BaselineState, replies: Replies, rules: Rules
    ) -> Faults:
        """There is none."""
        return {}

    def forget(self, federation: Federation, state: State, client: int) -> State:
        """Nothing of a client is kept; what was proved with its cuts has to be proved again."""
        return replace(state, evidence=self.start(federation).evidence)

    def with_evaluation(self, federation: Federation, state: State, replies: Replies) -> State:
        """Nothing was pending."""
        return state


def first_state(federation: Federation) -> BaselineState:
    """From w = 0."""
    evidence = no_evidence(federation, dot(federation.alphas, penalties(federation)))
    return BaselineState(np.zeros(federation.width), 1, np.inf, evidence)


def next_state(
    federation: Federation, state: BaselineState, w: Array, replies: Replies
) -> BaselineState:
    """After a round that led to ``w``, where J is a weighted mean over the clients."""
    risks = replies.rows("risks", np.full((federation.n_clients, 1), np.nan))[:, 0]
    constants, slopes = cuts_of(federation, replies)
    cut = RidgeCut(dot(federation.alphas, constants), weighted_sum(federation.alphas, slopes))
    evidence = observe(federation, state.evidence, state.w, federation.objective(risks), risks, cut)
    return BaselineState(w, state.t + 1, length(w - state.w), evidence)


def model_and_round(state: BaselineState) -> Values:
    """What clients that draw batches are sent: the round is in their seed."""
    return {"points": state.w[None], "round": np.array(float(state.t))}


def cuts_of(federation: Federation, replies: Replies) -> tuple[Array, Array]:
    """Constants and slopes by client; 0 for the absent, which is right: no loss is negative."""
    none = np.zeros((federation.n_clients, 1))
    no_slopes = np.zeros((federation.n_clients, 1, federation.width))
    return replies.rows("constants", none)[:, 0], replies.rows("slopes", no_slopes)[:, 0]


def penalties(federation: Federation) -> Array:
    """epsilon_g of each client, the weight of its ||w||^2."""
    return np.array([profile.epsilon for profile in federation.profiles])


def present_weights(federation: Federation, replies: Replies) -> Array:
    """The weights of those who answered, scaled to sum to 1; all 0 if none of them has any."""
    weights = np.where(replies.present, federation.alphas, 0.0)
    total = weights.sum()
    return np.asarray(weights / total) if total > 0.0 else weights


def mean_vector(
    federation: Federation, state: BaselineState, replies: Replies, trim: float
) -> Array:
    """The mean of the models of those who answered.

    The old model if they have no weight, or if nobody could evaluate the mean: of what local steps
    lead to nothing is proved, and a vector of 1e155 would make every client's next answer infinite.
    """
    weights = present_weights(federation, replies)
    if not weights.any():
        return state.w
    vectors = replies.rows("vector", np.zeros((federation.n_clients, federation.width)))
    mean = trimmed_mean(vectors, weights, trim)
    return mean if dot(mean, mean) < _LARGEST_SQUARE else state.w
