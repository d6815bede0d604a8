"""FedDRO as in the FDR-SVM authors' code, [feddro-published]: to reproduce the paper's rows.

    for k = 1, 2, ...:  every client g draws a batch B of its samples and, at its own w_g,
        m_g <- N/|B| sum of p_n exp(loss_n/lam) over the samples of B with loss_n > 0
        z   <- (1 - beta) z + beta sum_g alpha_g m_g                                 (first z = 0)
        w_g <- w_g - lr/sqrt(k) N/|B| sum_B p_n exp(loss_n/lam) grad loss_n / (lam z)
        and if E divides k:  w <- sum_g alpha_g w_g, then all w_g <- w               (first w = 0)

So, other than in [feddro]: z is shared at every step; there is no penalty; the steps are along
J/lam; z starts from 0, which makes the first steps up to 1/beta times longer; and samples without
loss do not count in m, though exp(0) = 1. Objective and bound are of J(w) = lam log sum_g alpha_g
M_g(w), all samples counted; without a penalty the bound holds for models up to a radius.

Messages: E steps take E + 1 exchanges, and each exchange is a round to the loop. In exchange 0 the
server sends w, and clients answer with m_g (and J_g and a cut at w); in exchange j = 1, ..., E it
sends z, clients take step j and answer with their next m_g, in the last exchange with w_g. A client
that missed one goes on from w, which is sent every time. Means are over the clients that answered,
their weights scaled to sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import length
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.methods import register
from fdrsvm.federated.methods.baseline import Baseline, mean_vector, ridge_answer
from fdrsvm.federated.methods.batches import (
    Batches,
    client_generator,
    samples_of,
    step_batches,
)
from fdrsvm.federated.methods.feddro import (
    LOG_OF_NOTHING,
    FedDRO,
    FedDROState,
    log_mean,
)
from fdrsvm.federated.methods.method import one_cut
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.native import steps

_POSITIVE_LOSSES = 0.0
_NO_PENALTY = 0.0


@dataclass(frozen=True)
class PublishedState(FedDROState):
    """Before exchange ``exchange`` of round ``t``."""

    exchange: int


@register
@dataclass(frozen=True)
class FedDROPublished(FedDRO):
    """FedDRO as the FDR-SVM authors ran it; ``max_rounds = (n_steps + 1) T`` is their T rounds.

    Parameters
    ----------
    learning_rate, temperature, momentum, n_steps, batch_fraction, random_state, trim
        As in :class:`FedDRO`.
    """

    name: ClassVar[str] = "feddro-published"
    state_type: ClassVar[type] = PublishedState

    def start(self, federation: Federation) -> PublishedState:
        """From w = 0 and z = 0."""
        state = super().start(federation)
        evidence = replace(state.evidence, penalty=_NO_PENALTY)
        return PublishedState(state.w, state.t, state.step, evidence, LOG_OF_NOTHING, 0)

    def ask(  # type: ignore[override]  # of its own states
        self, federation: Federation, state: PublishedState, client: int
    ) -> Values:
        """The model of this round, its number, the exchange, and log z."""
        return {
            **Baseline.ask(self, federation, state, client),
            "exchange": np.array(float(state.exchange)),
            "log_moment": np.array(state.log_moment),
        }

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """A step, if there is a z for it, and what the next one needs."""
        j, t, profile = int(asked["exchange"]), int(asked["round"]), problem.profile
        # All batches of a round are drawn in each of its exchanges: they are the same in each.
        rng = client_generator(self.random_state, t, profile.client_id)
        batches = step_batches(rng, self.n_steps, profile.n_samples, self.batch_fraction)
        w, evaluated = np.array(asked["points"][0]), {}
        if memory and memory["at"].tolist() == [float(t), float(j) - 1.0]:
            w = np.array(memory["w"])  # it took part in the exchange before
        if j == 0:
            evaluated = ridge_answer(problem, w, penalty=_NO_PENALTY, temperature=self.temperature)
        else:  # step k, with the z that was sent: a momentum of 0 leaves it as it is
            rate, k = self.learning_rate / self.temperature, (t - 1) * self.n_steps + j
            batch, log_moment = batches[j - 1 : j], float(asked["log_moment"])
            w, _ = self._step(problem, batch, w, 0.0, rate, log_moment, k)
        kept = {"w": w, "at": np.array([float(t), float(j)])}
        if j == self.n_steps:
            return kept, {"vector": w}
        # A step of length 0 that forgets all z before it gives log m_g.
        _, log_moment = self._step(problem, batches[j : j + 1], w, 1.0, 0.0, -math.inf, 1)
        return kept, {"log_moment": np.array(max(log_moment, LOG_OF_NOTHING)), **evaluated}

    def _step(
        self,
        problem: ClientProblem,
        batch: Batches,
        w: Array,
        momentum: float,
        learning_rate: float,
        log_moment: float,
        number: int,
    ) -> tuple[Array, float]:
        """Model and log z after step ``number``."""
        tilt = steps.Tilt(
            epsilon=_NO_PENALTY,
            learning_rate=learning_rate,
            temperature=float(self.temperature),
            least=_POSITIVE_LOSSES,
            log_moment=log_moment,
            first_step=number,
        )
        return steps.tilted_steps(samples_of(problem), w, batch, np.array([momentum]), tilt)

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """Log m_g or, in the last exchange of a round, w_g; in the first also J_g and a cut."""
        j = int(asked["exchange"])
        if j == self.n_steps:
            return {"vector": (federation.width,)}
        return {"log_moment": (), **(one_cut(federation) if j == 0 else {})}

    def advance(  # type: ignore[override]  # of its own states
        self, federation: Federation, state: PublishedState, replies: Replies
    ) -> PublishedState:
        """The estimate z moves with every m, the model after the last step of a round."""
        if state.exchange == self.n_steps:
            w = mean_vector(federation, state, replies, self.trim)
            step = length(w - state.w)
            return replace(state, w=w, t=state.t + 1, step=step, exchange=0)
        newest = log_mean(federation, replies, "log_moment")
        if newest is not None:
            mixed = steps.log_mix(state.log_moment, newest, self.beta)
            state = replace(state, log_moment=max(mixed, LOG_OF_NOTHING))
        if state.exchange == 0:
            no_penalties = np.zeros(federation.n_clients)
            evidence = self.observe_tilted(federation, state, replies, no_penalties)
            state = replace(state, evidence=evidence)
        return replace(state, exchange=state.exchange + 1)
