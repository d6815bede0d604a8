"""What FedDRO's two forms share: the settings, and the server's side of the objective, [feddro].

With h_g = lam log M_g, the loss in J is the tilted mean of the h_g under alpha. So for any
distribution q over the clients it is at least sum_g q_g h_g - lam KL(q || alpha), and the clients'
cuts of their h_g make one of J's loss.

exp and log may differ in their last bits between C libraries and processors, and so may FedDRO's
models, objectives and bounds: [same-bits] does not hold for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fdrsvm.core.arrays import Array, check_count, check_positive
from fdrsvm.core.products import dot, weighted_sum
from fdrsvm.core.tilted_mean import tilted_mean
from fdrsvm.federated.aggregation import check_trim
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.methods.baseline import (
    Baseline,
    BaselineState,
    RidgeEvidence,
    cuts_of,
    present_weights,
)
from fdrsvm.federated.methods.batches import check_fraction
from fdrsvm.federated.screen import Faults, Screen
from fdrsvm.solvers.ridge_bound import RidgeCut

_MOMENTUM_PER_RATE = 0.1  # beta / lr in the paper's runs, but for one data set
LOG_OF_NOTHING = -1e100  # log 0, but a message must be finite


@dataclass(frozen=True)
class TiltedBaseline(Baseline):
    """The settings, and their checks."""

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


def observe_tilted(
    federation: Federation,
    evidence: RidgeEvidence,
    model: Array,
    replies: Replies,
    *,
    temperature: float,
    penalties: Array,
) -> RidgeEvidence:
    """After clients gave J_g, h_g plus their ``penalties`` times ||w||^2, and the cut of h_g."""
    w = model[: federation.n_features]
    square = dot(w, w)
    risks = replies.rows("risks", np.full((federation.n_clients, 1), np.nan))[:, 0]
    losses = np.where(replies.present, risks - penalties * square, 0.0)
    tilted = tilted_mean(losses, federation.alphas, temperature)
    constants, slopes = cuts_of(federation, replies)
    cut = RidgeCut(
        dot(tilted.shares, constants) - tilted.price, weighted_sum(tilted.shares, slopes)
    )
    is_known = bool(replies.present[federation.alphas > 0.0].all())
    objective = tilted.value + evidence.penalty * square if is_known else math.nan
    return evidence.observe(federation, model, objective, risks, cut)


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
