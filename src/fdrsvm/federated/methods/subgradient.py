"""SM, the paper's subgradient method, [sm]: clients send a subgradient, the server takes a step.

    w <- w - step(t) sum_g alpha_g v_g,    v_g a subgradient of f_g at w
    step(t) = gamma/t (the paper's text) or gamma/sqrt(t) (its authors' code), t = 1, 2, ...

A client sends its risk and its cut at w ([cut]: slope and norm weight). The server adds the norm's
part, the same for all: v_g = slope_g + norm_weight_g s, s a subgradient of ||w||_*. An absent
client's last subgradient is used again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from fdrsvm.core.arrays import Array, check_choice, check_positive
from fdrsvm.core.vectors import dual_norm_subgradient, length
from fdrsvm.federated.aggregation import check_trim, trimmed_mean
from fdrsvm.federated.certificate import (
    Evidence,
    Standing,
    no_evidence,
    observe,
    settle,
    without_client,
)
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.problem import ClientProblem, evaluate
from fdrsvm.federated.screen import Faults, Rules, judge_round

StepDecay = Literal["1/t", "1/sqrt(t)"]


@dataclass(frozen=True)
class SubgradientState:
    """Before round ``t``."""

    w: Array
    t: int
    subgradients: Array
    mean_length: float  # of the weighted mean of the subgradients
    evidence: Evidence


@dataclass(frozen=True)
class Subgradient:
    """The subgradient method.

    Parameters
    ----------
    step_size : float
        gamma.
    step_decay : {"1/sqrt(t)", "1/t"}
        How the step shrinks with the round.
    trim : float
        Share of the clients left out at either end of the mean, entry by entry: [trimmed].
    """

    name: ClassVar[str] = "subgradient"
    state_type: ClassVar[type] = SubgradientState
    patience: ClassVar[int | None] = None
    step_size: float = 1.0
    step_decay: StepDecay = "1/sqrt(t)"
    trim: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self.step_size, "step_size")
        check_trim(self.trim)
        check_choice(self.step_decay, "step_decay", ("1/t", "1/sqrt(t)"))

    def start(self, federation: Federation) -> SubgradientState:
        """From w = 0."""
        none = np.zeros((federation.n_clients, federation.width))
        return SubgradientState(
            np.zeros(federation.width), 1, none, np.inf, no_evidence(federation)
        )

    def ask(self, federation: Federation, state: SubgradientState, client: int) -> Values:
        """The model."""
        return {"points": state.w[None]}

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """Risk and cut at the model."""
        return memory, evaluate(problem, asked["points"])

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """One risk and one cut."""
        return one_cut(federation)

    def judge(
        self, federation: Federation, state: SubgradientState, replies: Replies, rules: Rules
    ) -> Faults:
        """Risk and cut at the model, also against all rounds before."""
        return judge_round(federation, rules, state.evidence, state.w, replies.answers)

    def advance(
        self, federation: Federation, state: SubgradientState, replies: Replies
    ) -> SubgradientState:
        """One step."""
        subgradients = self._subgradients(federation, state, replies)
        mean = trimmed_mean(subgradients, federation.alphas, self.trim)
        shrink = state.t if self.step_decay == "1/t" else math.sqrt(state.t)
        evidence = observe(
            federation, state.evidence, state.w, replies, newest=2.0 / (state.t + 1.0)
        )
        return SubgradientState(
            w=state.w - self.step_size / shrink * mean,
            t=state.t + 1,
            subgradients=subgradients,
            mean_length=length(mean),
            evidence=evidence,
        )

    def forget(
        self, federation: Federation, state: SubgradientState, client: int
    ) -> SubgradientState:
        """Without its subgradient and its cuts."""
        subgradients = state.subgradients.copy()
        subgradients[client] = 0.0
        evidence = without_client(federation, state.evidence, client)
        return replace(state, subgradients=subgradients, evidence=evidence)

    def _subgradients(
        self, federation: Federation, state: SubgradientState, replies: Replies
    ) -> Array:
        P = federation.n_features
        of_norm = np.zeros(federation.width)
        of_norm[:P] = dual_norm_subgradient(state.w[:P], federation.norm)
        found = state.subgradients.copy()
        for g, update in enumerate(replies.updates):
            if update is not None:
                slope, weight = update.values["slopes"][0], update.values["norm_weights"][0]
                found[g] = slope + weight * of_norm
        return found

    def model(self, state: SubgradientState) -> Array:
        """The newest iterate."""
        return state.w

    def standing(self, state: SubgradientState) -> Standing:
        """The best iterate: a subgradient step may go up."""
        return state.evidence.standing

    def residuals(self, state: SubgradientState) -> dict[str, float]:
        """Length of the mean subgradient."""
        return {"subgradient": state.mean_length}

    def is_settled(self, state: SubgradientState) -> bool:
        """It has no rule of its own."""
        return False

    def settle(self, federation: Federation, state: SubgradientState) -> SubgradientState:
        """The best bound from all cuts."""
        return replace(state, evidence=settle(federation, state.evidence))

    def pending(self, state: SubgradientState) -> Array | None:
        """The newest model: clients see it in the next round only."""
        return state.w

    def judge_evaluation(
        self, federation: Federation, state: SubgradientState, replies: Replies, rules: Rules
    ) -> Faults:
        """As in a round."""
        return self.judge(federation, state, replies, rules)

    def with_evaluation(
        self, federation: Federation, state: SubgradientState, replies: Replies
    ) -> SubgradientState:
        """Risk and cut of the last iterate count too."""
        evidence = observe(
            federation, state.evidence, state.w, replies, newest=2.0 / (state.t + 1.0)
        )
        return replace(state, evidence=evidence)


def one_cut(federation: Federation) -> dict[str, Shape]:
    """Form of an answer with the risk of one model and one cut."""
    return {
        "risks": (1,),
        "constants": (1,),
        "slopes": (1, federation.width),
        "norm_weights": (1,),
    }
