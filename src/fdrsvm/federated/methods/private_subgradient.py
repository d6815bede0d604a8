"""SM with differential privacy, [private-sm]: clients add Gaussian noise to their subgradients.

    client   u_g = v_g + noise_multiplier sensitivity_g xi_g,      xi_g standard normal
    server   w <- w - step(t) sum_g alpha_g u_g,    model = weighted mean of the iterates

Nothing else leaves a client: a risk or a cut would cost privacy too. So nothing is certified:
objective and gap stay infinite. What the rounds spend: ``epsilon_spent`` in differential.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import SystemRandom
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import Array, check_choice, check_count, check_non_negative, check_positive
from fdrsvm.core.vectors import length, norm_rows, weighted_sum
from fdrsvm.errors import UnsupportedError
from fdrsvm.federated.certificate import Certificate, no_certificate
from fdrsvm.federated.differential import subgradient_sensitivity
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.methods.batches import client_generator
from fdrsvm.federated.methods.method import Algorithm, Progress
from fdrsvm.federated.methods.subgradient import StepDecay
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.screen import Faults, Screen
from fdrsvm.risk.worst_case import RiskOracle

_ROUNDING = 1e-12  # a row scaled to the radius may be longer by this share


@dataclass(frozen=True)
class NoisyState:
    """Before round ``t``."""

    w: Array
    mean: Array  # of the iterates, the t-th with weight t
    t: int
    mean_length: float  # of the weighted mean of the noisy subgradients
    certificate: Certificate


@dataclass(frozen=True)
class PrivateSubgradient(Algorithm[NoisyState]):
    """The subgradient method with noise added at the clients.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise, in units of the most that one row can change:
        :func:`fdrsvm.federated.differential.noise_multiplier_for`.
    radius : float
        R: no row may be longer, in the Euclidean norm. Agreed beforehand, not read off the data.
    step_size : float
        gamma.
    step_decay : {"1/sqrt(t)", "1/t"}
        How the step shrinks with the round.
    outside : {"refuse", "clip"}
        What to do about a longer row: an error at that client, or scale it down to R.
    random_state : int, optional
        For tests only: whoever knows it can take the noise away. Without it the noise comes from
        the operating system.
    """

    name: ClassVar[str] = "private-subgradient"
    state_type: ClassVar[type] = NoisyState
    noise_multiplier: float
    radius: float
    step_size: float = 1.0
    step_decay: StepDecay = "1/sqrt(t)"
    outside: Literal["refuse", "clip"] = "refuse"
    random_state: int | None = None

    def __post_init__(self) -> None:
        check_non_negative(self.noise_multiplier, "noise_multiplier")
        check_positive(self.radius, "radius")
        check_positive(self.step_size, "step_size")
        check_choice(self.step_decay, "step_decay", ("1/t", "1/sqrt(t)"))
        check_choice(self.outside, "outside", ("refuse", "clip"))
        if self.random_state is not None:
            check_count(self.random_state, "random_state", least=0)

    def start(self, federation: Federation) -> NoisyState:
        """From w = 0."""
        zero = np.zeros(federation.width)
        return NoisyState(zero, zero, 1, np.inf, no_certificate(federation))

    def ask(self, federation: Federation, state: NoisyState, client: int) -> Values:
        """The model, and the round's number for a seed."""
        return {"points": state.w[None], "round": np.array(float(state.t))}

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """A noisy subgradient and nothing else."""
        oracle = self._bounded(problem)
        risk = oracle(*problem.split(asked["points"][0]))
        exact = problem.joined(risk.subgradient, risk.intercept_subgradient)
        profile, ball = problem.profile, oracle.ball
        scale = self.noise_multiplier * subgradient_sensitivity(
            profile.n_samples,
            self.radius,
            n_features=profile.n_features,
            norm=ball.norm,
            epsilon=ball.epsilon,
            kappa=ball.kappa,
            fit_intercept=profile.fit_intercept,
        )
        if self.random_state is None:
            system = SystemRandom()
            noise = np.array([system.gauss(0.0, 1.0) for _ in range(exact.size)])
        else:
            seeded = client_generator(self.random_state, int(asked["round"]), profile.client_id)
            noise = seeded.normal(size=exact.size)
        return memory, {"subgradient": exact + scale * noise}

    def _bounded(self, problem: ClientProblem) -> RiskOracle:
        """The client's risk, with no row longer than the radius."""
        risk = problem.risk
        is_grouped = problem.profile.groups is not None
        if not problem.has_solver or is_grouped or sparse.issparse(risk.X):
            raise UnsupportedError(
                f"{self.name} needs dense rows and the exact hinge risk without a support or "
                "groups of features; norm='l1' has none"
            )
        if (risk.mass != risk.mass[0]).any():
            raise UnsupportedError(f"{self.name} needs rows of equal weight")
        lengths = norm_rows(risk.X, "l2")
        too_long = lengths > self.radius * (1.0 + _ROUNDING)
        if not too_long.any():
            return risk
        if self.outside == "refuse":
            raise TellableError(
                "X",
                f"no row may be longer than the agreed radius {self.radius:g}",
                "some are; agree on another, scale the features, or use outside='clip'",
            )
        shrunk = risk.X * (self.radius / np.maximum(lengths, self.radius))[:, None]
        ball = risk.ball
        return RiskOracle(shrunk, risk.y, epsilon=ball.epsilon, kappa=ball.kappa, norm=ball.norm)

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """One vector."""
        return {"subgradient": (federation.width,)}

    def judge(self, federation: Federation, state: Any, replies: Replies, screen: Screen) -> Faults:
        """Nobody: noise has no bound, so whatever is finite could be honest."""
        return {}

    def forget(self, federation: Federation, state: NoisyState, client: int) -> NoisyState:
        """Nothing of a client is kept."""
        return state

    def advance(self, federation: Federation, state: NoisyState, replies: Replies) -> NoisyState:
        """One step; the weights are scaled over those who answered."""
        present = np.where(replies.present, federation.alphas, 0.0)
        total = float(present.sum())
        none = np.zeros((federation.n_clients, federation.width))
        mean = none[0]
        if total > 0.0:
            mean = weighted_sum(present, replies.rows("subgradient", none)) / total
        shrink = state.t if self.step_decay == "1/t" else math.sqrt(state.t)
        w = state.w - self.step_size / shrink * mean
        newest = 2.0 / (state.t + 1.0)
        return NoisyState(
            w=w,
            mean=(1.0 - newest) * state.mean + newest * w,
            t=state.t + 1,
            mean_length=length(mean),
            certificate=state.certificate,
        )

    def settle(self, federation: Federation, state: NoisyState) -> NoisyState:
        """There is no bound."""
        return state

    def progress(self, state: NoisyState) -> Progress:
        """The weighted mean of the iterates, since noise averages out; nothing is proved of it.

        Nothing is pending: a last evaluation would cost privacy too.
        """
        return Progress(state.mean, state.certificate, {"subgradient": state.mean_length})
