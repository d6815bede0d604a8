"""FedDRO with a KL ball, [feddro]: averaging, with a running estimate of the mean exponential loss.

    J(w) = lam log sum_g alpha_g M_g(w) + e ||w||^2,   M_g(w) = sum_n p_n exp(loss_n(w) / lam)

with the hinge as loss, e = sum_g alpha_g epsilon_g and lam the temperature. The mean is inside the
logarithm, so a step along J needs an estimate z of it:

    client   E steps, numbered k = (t-1) E + 1, ..., t E over the whole run, each on a new batch B
             m <- N/|B| sum_B p_n exp(loss_n/lam)
             z <- (1 - beta) z + beta m                            (in the run's first step z <- m)
             v <- N/|B| sum_B p_n exp(loss_n/lam) grad loss_n / z + 2 epsilon_g w
             w <- w - lr/sqrt(k) v
             and sends w and z
    server   w and z <- weighted means                                               (first w = 0)

z is kept as its logarithm, and the factors exp(loss_n/lam) / z sum to 1/beta at most, so no loss is
too large. An intercept has no penalty. The means are over the clients that answered, their weights
scaled to sum to 1. A client also sends J_g and a cut of its loss at the model it was sent:
[ridge-bound].

Where this is our reading: Khanduri et al. (2023, arXiv 2311.12652) and the FDR-SVM authors' code
average z over the clients at every local step, which takes E more exchanges per round. Here a
client goes on with its own z until the round ends. The penalty is that of the other baselines, so
that they compare; the authors' code has none. [feddro-published] is that code.

At the server, with h_g = lam log M_g, the loss in J is the tilted mean of the h_g under alpha. So
for any distribution q over the clients it is at least sum_g q_g h_g - lam KL(q || alpha), and the
clients' cuts of their h_g make one of J's loss.

exp and log may differ in their last bits between C libraries and processors, and so may FedDRO's
models, objectives and bounds: [same-bits] does not hold for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fdrsvm.core.arrays import Array, check_count, check_positive
from fdrsvm.core.losses import tilted_mean
from fdrsvm.core.vectors import dot, length, weighted_sum
from fdrsvm.federated.aggregation import check_trim
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.methods.baseline import (
    Baseline,
    BaselineState,
    RidgeEvidence,
    cuts_of,
    mean_vector,
    penalties,
    present_weights,
    ridge_answer,
)
from fdrsvm.federated.methods.batches import (
    check_fraction,
    client_generator,
    samples_of,
    step_batches,
)
from fdrsvm.federated.methods.method import one_cut
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.screen import Faults, Screen
from fdrsvm.native import steps
from fdrsvm.solvers.ridge_bound import RidgeCut

_MOMENTUM_PER_RATE = 0.1  # beta / lr in the paper's runs, but for one data set
LOG_OF_NOTHING = -1e100  # log 0, but a message must be finite
_ALL_LOSSES = -1.0  # every loss is above it


@dataclass(frozen=True)
class FedDROState(BaselineState):
    """Before round ``t``; ``log_moment`` is log z, and means nothing before round 2."""

    log_moment: float


@dataclass(frozen=True)
class FedDRO(Baseline):
    """FedDRO for the l2-regularised SVM, with a KL ball.

    Parameters
    ----------
    learning_rate : float
        lr, the run's first step.
    temperature : float
        lam: large means the mean loss, small the largest loss.
    momentum : float, optional
        beta, above 0 and at most 1. If not given, a tenth of the learning rate, at most 1.
    n_steps : int
        E, the local steps in a round.
    batch_fraction : float
        Share of a client's samples in a batch.
    random_state : int
        Seeds the batches, together with the round and the client's id.
    trim : float
        Share of the clients left out at either end of the mean, entry by entry: [trimmed].
    """

    name: ClassVar[str] = "feddro"
    state_type: ClassVar[type] = FedDROState
    learning_rate: float = 0.1
    temperature: float = 10.0
    momentum: float | None = None
    n_steps: int = 5
    batch_fraction: float = 0.2
    random_state: int = 0
    trim: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self.learning_rate, "learning_rate")
        check_positive(self.temperature, "temperature")
        if self.momentum is not None:
            check_fraction(self.momentum, "momentum")
        check_count(self.n_steps, "n_steps", 1)
        check_fraction(self.batch_fraction, "batch_fraction")
        check_count(self.random_state, "random_state", 0)
        check_trim(self.trim)

    def judge(
        self, federation: Federation, state: BaselineState, replies: Replies, screen: Screen
    ) -> Faults:
        """Nothing beyond the form: moments and tilted losses grow without a limit of use."""
        return {}

    @property
    def beta(self) -> float:
        """The momentum, given or not."""
        if self.momentum is not None:
            return float(self.momentum)
        return min(1.0, _MOMENTUM_PER_RATE * self.learning_rate)

    def start(self, federation: Federation) -> FedDROState:
        """From w = 0, without an estimate z."""
        state = super().start(federation)
        return FedDROState(state.w, state.t, state.step, state.evidence, 0.0)

    def ask(self, federation: Federation, state: FedDROState, client: int) -> Values:
        """The model, the round, and log z."""
        return {**super().ask(federation, state, client), "log_moment": np.array(state.log_moment)}

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """The client's own model and log z, with objective and cut at the model it was sent."""
        profile, t = problem.profile, int(asked["round"])
        model = np.ascontiguousarray(asked["points"][0])
        evaluated = ridge_answer(
            problem, model, penalty=profile.epsilon, temperature=self.temperature
        )
        rng = client_generator(self.random_state, t, profile.client_id)
        momentums, log_moment = np.full(self.n_steps, self.beta), float(asked["log_moment"])
        if t == 1:
            momentums[0], log_moment = 1.0, -math.inf
        tilt = steps.Tilt(
            epsilon=profile.epsilon,
            learning_rate=float(self.learning_rate),
            temperature=float(self.temperature),
            least=_ALL_LOSSES,
            log_moment=log_moment,
            first_step=(t - 1) * self.n_steps + 1,
        )
        batches = step_batches(rng, self.n_steps, profile.n_samples, self.batch_fraction)
        w, log_moment = steps.tilted_steps(samples_of(problem), model, batches, momentums, tilt)
        log_moment = max(log_moment, LOG_OF_NOTHING)
        return memory, {"vector": w, "log_moment": np.array(log_moment), **evaluated}

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """A model, log z, an objective and a cut."""
        return {"vector": (federation.width,), "log_moment": (), **one_cut(federation)}

    def advance(self, federation: Federation, state: FedDROState, replies: Replies) -> FedDROState:
        """The means of those who answered."""
        w = mean_vector(federation, state, replies, self.trim)
        log_moment = log_mean(federation, replies, "log_moment")
        return FedDROState(
            w=w,
            t=state.t + 1,
            step=length(w - state.w),
            evidence=self.observe_tilted(federation, state, replies, penalties(federation)),
            log_moment=state.log_moment if log_moment is None else log_moment,
        )

    def observe_tilted(
        self, federation: Federation, state: BaselineState, replies: Replies, penalties: Array
    ) -> RidgeEvidence:
        """After clients gave J_g, h_g plus ``penalties[g]`` ||w||^2, and the cut of h_g."""
        w = state.w[: federation.n_features]
        square = dot(w, w)
        risks = replies.rows("risks", np.full((federation.n_clients, 1), np.nan))[:, 0]
        losses = np.where(replies.present, risks - penalties * square, 0.0)
        tilted = tilted_mean(losses, federation.alphas, self.temperature)
        constants, slopes = cuts_of(federation, replies)
        cut = RidgeCut(
            dot(tilted.shares, constants) - tilted.price, weighted_sum(tilted.shares, slopes)
        )
        is_known = bool(replies.present[federation.alphas > 0.0].all())
        objective = tilted.value + state.evidence.penalty * square if is_known else math.nan
        return state.evidence.observe(federation, state.w, objective, risks, cut)


def log_mean(federation: Federation, replies: Replies, name: str) -> float | None:
    """Log of the mean, over those who answered, of what they sent the logarithm of.

    None if they have no weight.
    """
    weights = present_weights(federation, replies)
    counted = weights > 0.0
    if not counted.any():
        return None
    logs = replies.rows(name, np.zeros(federation.n_clients))[counted]
    top = float(logs.max())
    return top + math.log(dot(weights[counted], np.exp(logs - top)))
