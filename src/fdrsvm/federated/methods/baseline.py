"""What the baselines have in common: their objective, what is proved of it, and the server's books.

Objective  J(w) = sum_g alpha_g J_g(w) in place of the worst-case risk, with
           J_g(w, b) = sum_n p_n max(0, 1 - m_n) + epsilon_g ||w||^2,     m_n = y_n (w.x_n + b)
           or, with a temperature lam (FedDRO), lam log sum_n p_n exp(max(0, 1 - m_n) / lam) as loss
Cut        either loss lies above sum_n q_n a_n (1 - m_n) minus the price of q, whatever q is and
           for all a_n in [0, 1]: a client takes a_n = 1 where 1 - m_n > 0, and the q that touches
           the loss at the model, p itself for the mean. Constant and slope are sums of their own,
           never differences of large numbers
Upper      J at the best model that all clients have evaluated. A model is evaluated when it is
           sent, a round after it was made: the last one never is
Lower      each round's cuts, summed over the clients, lie below J's loss; so does every mixture of
           such sums, and what it proves of J is [ridge-bound]
Round      the newest sum is blended into the best mixture so far: a few vector operations
Settled    the best mixture of all sums kept is a quadratic program: at the end and now and then
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.losses import tilted_mean
from fdrsvm.core.vectors import dot, length, times, weighted_sum
from fdrsvm.errors import UnsupportedError
from fdrsvm.federated.aggregation import trimmed_mean
from fdrsvm.federated.certificate import Certificate, Proof, no_certificate, reach_of
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Values
from fdrsvm.federated.methods.method import Algorithm, Progress
from fdrsvm.federated.problem import ClientProblem, stack_cuts
from fdrsvm.federated.screen import Faults, Screen
from fdrsvm.risk.worst_case import Cut
from fdrsvm.solvers.ridge_bound import (
    RidgeCut,
    best_mixture,
    blend,
    level_pair,
    ridge_bound,
    search_curvature,
)

_LARGEST_SQUARE = 1e200  # of a model: beyond it risks with their penalty overflow
# How many cuts are kept, and how many numbers in them.
_MAX_CUTS, _MAX_ENTRIES = 1000, 4_000_000


@dataclass(frozen=True)
class RidgeEvidence:
    """What is proved of J so far.

    ``penalty`` is e, the weight of ||w||^2 in J. ``constant`` and ``slope`` are the best mixture of
    cuts; its slope in the intercept is 0. The others are the cuts of the last rounds.
    """

    certificate: Certificate
    penalty: float
    constant: float
    slope: Array
    constants: Array
    slopes: Array

    def observe(
        self, federation: Federation, point: Array, objective: float, risks: Array, cut: RidgeCut
    ) -> RidgeEvidence:
        """After a round in which clients gave their J_g and their cuts at ``point``.

        ``objective`` is nan if a client with weight is absent; ``cut`` is the sum of the cuts.
        """
        has_intercept = federation.width > federation.n_features
        level = level_pair(cut, self.constants, self.slopes) if has_intercept else cut
        window = -max(1, min(_MAX_CUTS, _MAX_ENTRIES // federation.width))
        evidence = replace(
            self,
            certificate=self.certificate.with_point(federation, point, objective, risks),
            constants=np.append(self.constants, cut.constant)[window:],
            slopes=np.concatenate([self.slopes, cut.slope[None]])[window:],
        )
        if level is None:
            return evidence
        best = RidgeCut(self.constant, self.slope)
        curvature = search_curvature(self.penalty, evidence._reach(federation))
        return evidence._with_mixture(federation, blend(best, level, curvature))

    def settle(self, federation: Federation) -> RidgeEvidence:
        """With the best mixture of all cuts kept, if it proves more."""
        if self.constants.size == 0:
            return self
        curvature = search_curvature(self.penalty, self._reach(federation))
        mixture = best_mixture(self.constants, self.slopes, federation.n_features, curvature)
        if mixture is None:
            return self
        settled = self._with_mixture(federation, mixture)
        is_better = settled.certificate.lower_bound > self.certificate.lower_bound
        return settled if is_better else self

    def _reach(self, federation: Federation) -> float:
        return reach_of(federation, self.certificate.model, self.slopes)

    def _with_mixture(self, federation: Federation, mixture: RidgeCut) -> RidgeEvidence:
        bound = ridge_bound(
            mixture,
            federation.n_features,
            self.penalty,
            federation.norm,
            self._reach(federation),
            federation.groups,
        )
        certificate = self.certificate
        return replace(
            self,
            certificate=certificate.with_bound(
                bound.value, bound.radius, lambda: certificate.proof
            ),
            constant=mixture.constant,
            slope=mixture.slope,
        )


@dataclass(frozen=True)
class BaselineState:
    """Before round ``t``."""

    w: Array
    t: int
    step: float  # how far w moved in the last round
    evidence: RidgeEvidence


class Baseline(Algorithm[Any]):
    """A method that follows J; objective, bound and gap are those of J."""

    def start(self, federation: Federation) -> Any:
        """From w = 0; nothing is known but that no loss is negative."""
        width, n_clients = federation.width, federation.n_clients
        # Bounds are of sums over clients, and of another objective: no client has part in a proof.
        unknown = np.full(n_clients, np.nan)
        nothing = Proof(unknown, np.full((n_clients, width), np.nan), unknown)
        nobody = replace(no_certificate(federation), proof=nothing, proof_everywhere=nothing)
        penalty = dot(federation.alphas, penalties(federation))
        no_cuts = np.empty(0), np.empty((0, width))
        evidence = RidgeEvidence(nobody, penalty, 0.0, np.zeros(width), *no_cuts)
        return BaselineState(np.zeros(width), 1, np.inf, evidence)

    def ask(self, federation: Federation, state: Any, client: int) -> Values:
        """The model, and the round, which is in the seed of clients that draw batches."""
        return {"points": state.w[None], "round": np.array(float(state.t))}

    def judge(self, federation: Federation, state: Any, replies: Replies, screen: Screen) -> Faults:
        """Objective and cut at the model; of the vectors of local steps nothing is proved."""
        return screen.judge_answers(
            federation, state.w[None], replies.answers, penalties=penalties(federation)
        )

    def forget(self, federation: Federation, state: Any, client: int) -> Any:
        """Nothing of a client is kept; what was proved with its cuts has to be proved again."""
        return replace(state, evidence=self.start(federation).evidence)

    def progress(self, state: Any) -> Progress:
        """Nothing is pending: a last evaluation would give the worst-case risk, not J."""
        return Progress(state.w, state.evidence.certificate, {"step": state.step})


def next_state(
    federation: Federation, state: BaselineState, w: Array, replies: Replies
) -> BaselineState:
    """After a round that led to ``w``, where J is a weighted mean over the clients."""
    risks = replies.rows("risks", np.full((federation.n_clients, 1), np.nan))[:, 0]
    constants, slopes = cuts_of(federation, replies)
    cut = RidgeCut(dot(federation.alphas, constants), weighted_sum(federation.alphas, slopes))
    objective = federation.objective(risks)
    evidence = state.evidence.observe(federation, state.w, objective, risks, cut)
    return BaselineState(w, state.t + 1, length(w - state.w), evidence)


def ridge_answer(
    problem: ClientProblem, model: Array, *, penalty: float, temperature: float | None = None
) -> dict[str, Array]:
    """J_g at ``model`` and the cut of its loss, as the arrays of a message."""
    if not problem.is_hinge:
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
