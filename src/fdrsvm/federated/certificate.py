"""How good is the best model so far? Kept by the server, for every method, from cuts alone.

Upper    F(w) = sum_g alpha_g f_g(w), known wherever all clients gave their risk
Lower    each client's cuts lie below its risk, so a weighted mixture of cuts lies below F; its
         least value over all models is a bound on the optimum: [model-bound]
Proof    that mixture, one cut per client: with the clients' risks at the best model it is all that
         a certificate rests on, so it is kept, and held against the rules of [limits]
Round    the newest cuts are mixed into the best mixture so far: a few vector operations
Settled  the best mixture of all cuts kept is a linear program, [master]: at the end, and now and
         then
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import dot, dual_norm, norm_of, norm_rows, weighted_sum
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.solvers.cut_model import CutModel, mixture_bound, model_bound, slope_by_client
from fdrsvm.solvers.master import minimise_model

# Where nothing bounds w, bounds hold for models up to this many times the best one's size.
BOUND_REACH = 10.0
# How many cuts the last linear program sees.
_MAX_CUTS = 20_000
# A risk this small, of losses of about 1 at the model 0, is none: no relative gap would ever close.
_NO_RISK = 1e-12


@dataclass(frozen=True)
class Proof:
    """One cut per client, a mixture of those it sent: F >= sum_g alpha_g cut_g everywhere.

    nan where bounds are not made of clients' parts, as the baselines' are.
    """

    constants: Array
    slopes: Array  # one row per client
    norm_weights: Array


@dataclass(frozen=True)
class Standing:
    """The best model so far and what is proved of it.

    ``lower_bound`` holds for all models with ||w||_* up to ``radius``: infinite unless nothing
    bounds w (a box, or epsilon = 0). ``bound_everywhere`` holds for all models. ``proof`` and
    ``proof_everywhere`` are the cuts that show it.
    """

    model: Array
    objective: float
    risks: Array  # of each client, at the model
    lower_bound: float
    radius: float
    bound_everywhere: float
    proof: Proof
    proof_everywhere: Proof

    @property
    def parts(self) -> tuple[Standing, ...]:
        """One for each model that is trained."""
        return (self,)

    @property
    def gap(self) -> float:
        """(objective - lower bound) / objective: the relative gap; inf before any evaluation.

        0 if the objective is 1e-12 at most.
        """
        if not self.objective < np.inf:
            return np.inf
        excess = max(self.objective - self.lower_bound, 0.0)
        return excess / self.objective if self.objective > _NO_RISK else 0.0

    @property
    def contradiction(self) -> float:
        """By how much the bound exceeds the objective: more than rounding means wrong answers."""
        return max(self.lower_bound - self.objective, 0.0)

    def with_point(
        self, federation: Federation, model: Array, objective: float, risks: Array
    ) -> Standing:
        """After an evaluation; one that lacks a client is nan and changes nothing."""
        if not objective < self.objective:
            return self
        better = replace(self, model=model, objective=objective, risks=risks)
        if self.radius < BOUND_REACH * size_of(federation, model):
            # The bound says little about models as large as this one: it must be proved again.
            return replace(
                better,
                lower_bound=self.bound_everywhere,
                radius=np.inf,
                proof=self.proof_everywhere,
            )
        return better

    def with_bound(self, value: float, radius: float, proof: Callable[[], Proof]) -> Standing:
        """After a proof from below, which is only made if it proves more."""
        is_better = value > self.lower_bound
        is_better_everywhere = radius == np.inf and value > self.bound_everywhere
        if not (is_better or is_better_everywhere):
            return self
        better, made = self, proof()
        if is_better_everywhere:
            better = replace(better, bound_everywhere=value, proof_everywhere=made)
        if is_better:
            better = replace(better, lower_bound=value, radius=radius, proof=made)
        return better

    def without_client(self, federation: Federation, client: int) -> Standing:
        """As if the client had said nothing; what was proved with its cuts is not proved any more.

        The best model stays if the federation does not count the client either.
        """
        risks = self.risks.copy()
        risks[client] = np.nan
        return no_standing(federation).with_point(
            federation, self.model, federation.objective(risks), risks
        )


def no_standing(federation: Federation) -> Standing:
    """Nothing is known but that risks are not negative."""
    risks, proof = np.full(federation.n_clients, np.nan), floor_proof(federation)
    return Standing(np.zeros(federation.width), np.inf, risks, 0.0, np.inf, 0.0, proof, proof)


def floor_proof(federation: Federation) -> Proof:
    """Every client's floor: what holds before anybody has said anything."""
    n_clients = federation.n_clients
    return Proof(np.zeros(n_clients), np.zeros((n_clients, federation.width)), federation.floors)


def mixed_proof(federation: Federation, cuts: Proof, shares: Array) -> Proof:
    """The share ``shares[g]`` of client g's cut, and its floor for the rest."""
    return Proof(
        shares * cuts.constants,
        shares[:, None] * cuts.slopes,
        shares * cuts.norm_weights + (1.0 - shares) * federation.floors,
    )


def model_proof(model: CutModel, shares: Array) -> Proof:
    """That share of each cut, client by client, and what is left of 1 of the client's floor."""

    def by_client(weights: Array) -> Array:
        return np.bincount(model.owners, weights, model.alphas.size).astype(np.float64, copy=False)

    left = np.maximum(1.0 - by_client(shares), 0.0)
    return Proof(
        by_client(shares * model.constants),
        slope_by_client(model, shares),
        by_client(shares * model.norm_weights) + left * model.floors,
    )


@dataclass(frozen=True)
class Evidence:
    """What subgradient method and ADMM prove on their way: one cut per client and round.

    ``mixture`` is a mixture of each client's cuts; the others are all cuts of the last rounds,
    first axis rounds, second clients, nan where a client was absent.
    """

    standing: Standing
    mixture: Proof
    constants: Array
    slopes: Array
    norm_weights: Array


def no_evidence(federation: Federation) -> Evidence:
    """Before the first round: every client's floor."""
    n_clients, width = federation.n_clients, federation.width
    return Evidence(
        no_standing(federation),
        floor_proof(federation),
        np.empty((0, n_clients)),
        np.empty((0, n_clients, width)),
        np.empty((0, n_clients)),
    )


def observe(
    federation: Federation, evidence: Evidence, point: Array, replies: Replies, *, newest: float
) -> Evidence:
    """After a round in which clients gave their risk at ``point`` and one cut each.

    ``newest`` is the share of the new cuts in the mixture.
    """
    risks, cuts = _said(federation, replies)
    mixture = cuts
    if newest < 1.0 or not replies.are_complete:
        mixture = Proof(
            _mixed(evidence.mixture.constants, cuts.constants, newest),
            _mixed(evidence.mixture.slopes, cuts.slopes, newest),
            _mixed(evidence.mixture.norm_weights, cuts.norm_weights, newest),
        )
    standing = evidence.standing.with_point(federation, point, federation.objective(risks), risks)
    standing = _with_mixture(federation, standing, mixture)
    window = -max(1, _MAX_CUTS // federation.n_clients)
    return Evidence(
        standing,
        mixture,
        np.concatenate([evidence.constants, cuts.constants[None]])[window:],
        np.concatenate([evidence.slopes, cuts.slopes[None]])[window:],
        np.concatenate([evidence.norm_weights, cuts.norm_weights[None]])[window:],
    )


def _said(federation: Federation, replies: Replies) -> tuple[Array, Proof]:
    """Each client's risk and its one cut; nan for those who did not answer."""
    if replies.are_complete:  # gathered already, for the screen
        gathered = replies.answers
        cuts = gathered.cuts
        return gathered.risks[:, 0], Proof(cuts.constants, cuts.slopes, cuts.norm_weights)
    slopes = replies.firsts("slopes", np.full(federation.width, np.nan))
    cut_of = Proof(replies.firsts("constants"), slopes, replies.firsts("norm_weights"))
    return replies.firsts("risks"), cut_of


def _mixed(old: Array, new: Array, newest: float) -> Array:
    """The share ``newest`` of the new; the old where a client was absent."""
    mixed = new if newest == 1.0 else old + newest * (new - old)
    return np.where(np.isnan(new), old, mixed)


def _with_mixture(federation: Federation, standing: Standing, mixture: Proof) -> Standing:
    """The bound that one cut per client proves: [model-bound] with every share 1."""
    # Floors, if there are any, keep models small, and nobody asks how far a bound reaches.
    reach = np.inf
    if not federation.floor > 0.0:
        reach = reach_of(federation, standing.model, mixture.slopes)
    alphas, P = federation.alphas, federation.n_features
    if federation.width > P:  # an intercept's slope must be made to vanish first
        everyone = np.arange(federation.n_clients)
        model = cut_model(
            federation, mixture.constants, mixture.slopes, mixture.norm_weights, everyone
        )
        bound = model_bound(model, np.ones(federation.n_clients), reach)
        return standing.with_bound(
            bound.value, bound.radius, lambda: model_proof(model, bound.shares)
        )
    length = norm_of(weighted_sum(alphas, mixture.slopes), federation.norm)
    excess = length - dot(alphas, mixture.norm_weights)
    value, radius, theta = mixture_bound(
        dot(alphas, mixture.constants), excess, federation.floor, reach
    )
    shares = np.full(federation.n_clients, theta)
    return standing.with_bound(value, radius, lambda: mixed_proof(federation, mixture, shares))


def settle(federation: Federation, evidence: Evidence) -> Evidence:
    """With the best bound that all cuts kept can prove."""
    n_rounds, n_clients = evidence.constants.shape
    constants = evidence.constants.T.ravel()
    known = ~np.isnan(constants)
    model = cut_model(
        federation,
        constants[known],
        evidence.slopes.transpose(1, 0, 2).reshape(-1, federation.width)[known],
        evidence.norm_weights.T.ravel()[known],
        np.repeat(np.arange(n_clients), n_rounds)[known],
    )
    if not known.any():
        return evidence
    standing = evidence.standing
    bound = minimise_model(model, radius=reach_of(federation, standing.model, model.slopes)).bound
    standing = standing.with_bound(
        bound.value, bound.radius, lambda: model_proof(model, bound.shares)
    )
    return replace(evidence, standing=standing)


def cut_model(
    federation: Federation,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
    owners: npt.NDArray[np.int64],
) -> CutModel:
    """Cuts, sorted by client, as the master's solvers read them."""
    return CutModel(
        constants,
        slopes,
        norm_weights,
        owners,
        federation.alphas,
        federation.floors,
        federation.n_features,
        federation.norm,
    )


def reach_of(federation: Federation, model: Array, slopes: Array) -> float:
    """Up to which ||w||_* a bound must hold where nothing bounds w.

    Ten times the best model's, and at least ten and ten times a model that moves losses by one, 1
    over the largest slope: where features are small, useful models are large.
    """
    P = federation.n_features
    steepest = float(norm_rows(slopes[:, :P], federation.norm).max(initial=0.0))
    unit = 1.0 / steepest if steepest > 0.0 else 1.0
    return BOUND_REACH * max(1.0, unit, size_of(federation, model))


def size_of(federation: Federation, model: Array) -> float:
    """||w||_* of a model, its intercept left out."""
    return dual_norm(model[: federation.n_features], federation.norm)


def without_client(federation: Federation, evidence: Evidence, client: int) -> Evidence:
    """As if the client had said nothing; what its answers proved has to be proved again."""
    constants, slopes = evidence.constants.copy(), evidence.slopes.copy()
    norm_weights = evidence.norm_weights.copy()
    constants[:, client] = slopes[:, client] = norm_weights[:, client] = np.nan
    is_other = np.arange(federation.n_clients) != client
    return Evidence(
        evidence.standing.without_client(federation, client),
        mixed_proof(federation, evidence.mixture, is_other.astype(float)),
        constants,
        slopes,
        norm_weights,
    )
