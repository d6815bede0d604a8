"""SM, the paper's subgradient method, [sm]: clients send a subgradient, the server takes a step.

    w <- w - step(t) sum_g alpha_g v_g,    v_g a subgradient of f_g at w
    step(t) = gamma/t (the paper's text) or gamma/sqrt(t) (its authors' code), t = 1, 2, ...

A client sends its risk and its cut at w ([cut]: slope and norm weight). The server adds the norm's
part, the same for all: v_g = slope_g + norm_weight_g s, s a subgradient of ||w||_*. An absent
client's last subgradient is used again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from fdrsvm.core.arrays import Array, check_choice, check_positive
from fdrsvm.core.vectors import dual_norm_subgradient, length
from fdrsvm.federated.aggregation import check_trim, trimmed_mean
from fdrsvm.federated.certificate import Evidence, no_evidence
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Values
from fdrsvm.federated.methods.method import Algorithm, Progress
from fdrsvm.federated.problem import ClientProblem, evaluate

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
class Subgradient(Algorithm[SubgradientState]):
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

    def advance(
        self, federation: Federation, state: SubgradientState, replies: Replies
    ) -> SubgradientState:
        """One step along the mean subgradient."""
        P = federation.n_features
        of_norm = np.zeros(federation.width)
        of_norm[:P] = dual_norm_subgradient(state.w[:P], federation.norm, federation.groups)
        subgradients = state.subgradients.copy()
        for g, values in replies.values.items():
            subgradients[g] = values["slopes"][0] + values["norm_weights"][0] * of_norm
        mean = trimmed_mean(subgradients, federation.alphas, self.trim)
        shrink = state.t if self.step_decay == "1/t" else math.sqrt(state.t)
        return SubgradientState(
            w=state.w - self.step_size / shrink * mean,
            t=state.t + 1,
            subgradients=subgradients,
            mean_length=length(mean),
            evidence=self.observed(federation, state, replies),
        )

    def newest_share(self, state: SubgradientState) -> float:
        """With 2/(t + 1) the t-th cut has weight t: early ones, far from the optimum, fade."""
        return 2.0 / (state.t + 1.0)

    def forget(
        self, federation: Federation, state: SubgradientState, client: int
    ) -> SubgradientState:
        """Without its subgradient and its cuts."""
        subgradients = state.subgradients.copy()
        subgradients[client] = 0.0
        evidence = state.evidence.without_client(federation, client)
        return replace(state, subgradients=subgradients, evidence=evidence)

    def progress(self, state: SubgradientState) -> Progress:
        """The certificate is of the best iterate, since a step may go up."""
        residuals = {"subgradient": state.mean_length}
        return Progress(state.w, state.evidence.certificate, residuals, pending=state.w)
