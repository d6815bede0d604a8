"""How good is the best model so far, and how do we know? Kept by the server, from cuts alone.

Upper    F(w) = sum_g alpha_g f_g(w), known wherever all clients gave their risk
Lower    each client's cuts lie below its risk, so a weighted mixture of cuts lies below F; its
         least value over all models is a bound on the optimum, [model-bound]
Proof    that mixture, one cut per client. It and the clients' risks at the best model are all that
         a certificate rests on, so they are kept, and held against the rules of [limits]
Round    the newest cuts are mixed into a running mixture: a few vector operations
Settled  the best mixture of all cuts kept is a linear program, [master]: solved at the end, and in
         a few rounds before

Nothing here trusts a solver: whatever shares of the cuts one proposes are made feasible first, and
the bound is computed from the shares alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

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
# Losses are about 1 at the model 0. Of a risk this small no relative gap would ever close, so it
# counts as no risk at all.
_NO_RISK = 1e-12
# Bound and objective are sums of thousands of numbers of about 1: a bound may exceed the objective
# by this share through rounding. By more, and some answer was wrong.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Proof:
    """One cut per client, a mixture of those it sent: F >= sum_g alpha_g cut_g everywhere.

    nan where bounds are not made of clients' parts, as the baselines' are.
    """

    constants: Array
    slopes: Array  # one row per client
    norm_weights: Array


@dataclass(frozen=True)
class Certificate:
    """The best model so far and what is proved of it.

    Attributes
    ----------
    model : ndarray
        Weights, and the intercept last if there is one.
    objective : float
        F at the model; inf before any model was evaluated by all.
    risks : ndarray of shape (n_clients,)
        Each client's risk at the model.
    lower_bound, radius : float
        F is at least the bound for all models with ||w||_* up to the radius, which is infinite
        unless nothing bounds w (a box, or epsilon = 0).
    bound_everywhere : float
        A bound that holds for all models.
    proof, proof_everywhere : Proof
        The cuts that show either bound.
    """

    model: Array
    objective: float
    risks: Array
    lower_bound: float
    radius: float
    bound_everywhere: float
    proof: Proof
    proof_everywhere: Proof

    @property
    def parts(self) -> tuple[Certificate, ...]:
        """One certificate for each model that is trained."""
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
    def is_refuted(self) -> bool:
        """Whether the bound exceeds the objective by more than rounding: some answer was wrong."""
        return self.lower_bound - self.objective > _ROUNDING * (1.0 + abs(self.objective))

    def with_point(
        self, federation: Federation, model: Array, objective: float, risks: Array
    ) -> Certificate:
        """After an evaluation; one that lacks a client is nan and changes nothing."""
        if not objective < self.objective:
            return self
        better = replace(self, model=model, objective=objective, risks=risks)
        size = dual_norm(model[: federation.n_features], federation.norm, federation.groups)
        if self.radius < BOUND_REACH * size:
            # The bound says little about models as large as this one: it must be proved again.
            return replace(
                better,
                lower_bound=self.bound_everywhere,
                radius=np.inf,
                proof=self.proof_everywhere,
            )
        return better

    def with_bound(self, value: float, radius: float, prove: Callable[[], Proof]) -> Certificate:
        """After a bound was computed; its proof is only made if it proves more."""
        # Where nothing bounds w a bound holds up to a radius only, and may be higher than any that
        # holds everywhere. Both are kept: a larger model voids the first, never the second.
        is_better = value > self.lower_bound
        is_better_everywhere = radius == np.inf and value > self.bound_everywhere
        if not (is_better or is_better_everywhere):
            return self
        better, proof = self, prove()
        if is_better_everywhere:
            better = replace(better, bound_everywhere=value, proof_everywhere=proof)
        if is_better:
            better = replace(better, lower_bound=value, radius=radius, proof=proof)
        return better

    def without_client(self, federation: Federation, client: int) -> Certificate:
        """As if the client had said nothing; what was proved with its cuts is not proved any more.

        The best model stays if the federation does not count the client either.
        """
        # Every bound so far may rest on the client's cuts: only the evaluation of the others stays.
        risks = self.risks.copy()
        risks[client] = np.nan
        return no_certificate(federation).with_point(
            federation, self.model, federation.objective(risks), risks
        )


@dataclass(frozen=True)
class JointCertificate(Certificate):
    """Of several models, trained together.

    ``model`` is all of them in a row. ``objective``, ``risks`` and the bounds are means over the
    models, ``radius`` is the smallest, and ``gap`` is the largest of the relative gaps. Each model
    has a certificate and a proof of its own in ``models``; ``proof`` is the first one's.
    """

    models: tuple[Certificate, ...]

    @property
    def parts(self) -> tuple[Certificate, ...]:
        """The models' own."""
        return self.models

    @property
    def is_refuted(self) -> bool:
        """Whether that of some model is."""
        return any(one.is_refuted for one in self.models)

    @property
    def gap(self) -> float:
        """Of the model that has farthest to go."""
        return max(one.gap for one in self.models)


def join_certificates(models: Sequence[Certificate]) -> JointCertificate:
    """One certificate for models that are trained together."""
    return JointCertificate(
        model=np.concatenate([one.model for one in models]),
        objective=float(np.mean([one.objective for one in models])),
        risks=np.mean([one.risks for one in models], axis=0),
        lower_bound=float(np.mean([one.lower_bound for one in models])),
        radius=min(one.radius for one in models),
        bound_everywhere=float(np.mean([one.bound_everywhere for one in models])),
        proof=models[0].proof,
        proof_everywhere=models[0].proof_everywhere,
        models=tuple(models),
    )


def no_certificate(federation: Federation) -> Certificate:
    """Nothing is known but that risks are not negative: the floors prove a bound of 0."""
    n_clients, width = federation.n_clients, federation.width
    floors = Proof(np.zeros(n_clients), np.zeros((n_clients, width)), federation.floors)
    risks = np.full(n_clients, np.nan)
    return Certificate(np.zeros(width), np.inf, risks, 0.0, np.inf, 0.0, floors, floors)


@dataclass(frozen=True)
class Evidence:
    """What subgradient method and ADMM prove on their way: one cut per client and round.

    ``mixture`` is a mixture of each client's cuts; the others are all cuts of the last rounds,
    first axis rounds, second clients, nan where a client was absent.
    """

    certificate: Certificate
    mixture: Proof
    constants: Array
    slopes: Array
    norm_weights: Array

    def observe(
        self, federation: Federation, point: Array, replies: Replies, *, newest: float
    ) -> Evidence:
        """After a round in which clients gave their risk at ``point`` and one cut each.

        ``newest`` is the share of the new cuts in the mixture.
        """
        risks, cuts = _risks_and_cuts(federation, replies)
        mixture = cuts
        if newest < 1.0 or not replies.are_complete:
            old = self.mixture
            mixture = Proof(
                _mix(old.constants, cuts.constants, newest),
                _mix(old.slopes, cuts.slopes, newest),
                _mix(old.norm_weights, cuts.norm_weights, newest),
            )
        # The point first: how far a bound has to reach depends on the best model.
        objective = federation.objective(risks)
        certificate = self.certificate.with_point(federation, point, objective, risks)
        window = -max(1, _MAX_CUTS // federation.n_clients)
        return Evidence(
            _with_mixture(federation, certificate, mixture),
            mixture,
            np.concatenate([self.constants, cuts.constants[None]])[window:],
            np.concatenate([self.slopes, cuts.slopes[None]])[window:],
            np.concatenate([self.norm_weights, cuts.norm_weights[None]])[window:],
        )

    def settle(self, federation: Federation) -> Evidence:
        """With the best bound that all cuts kept can prove."""
        n_rounds, n_clients = self.constants.shape
        constants = self.constants.T.ravel()
        known = ~np.isnan(constants)
        if not known.any():
            return self
        model = cut_model(
            federation,
            constants[known],
            self.slopes.transpose(1, 0, 2).reshape(-1, federation.width)[known],
            self.norm_weights.T.ravel()[known],
            np.repeat(np.arange(n_clients), n_rounds)[known],
        )
        reach = reach_of(federation, self.certificate.model, model.slopes)
        bound = minimise_model(model, radius=reach).bound
        certificate = self.certificate.with_bound(
            bound.value, bound.radius, partial(model_proof, model, bound.shares)
        )
        return replace(self, certificate=certificate)

    def without_client(self, federation: Federation, client: int) -> Evidence:
        """As if the client had said nothing; what its answers proved has to be proved again."""
        constants, slopes = self.constants.copy(), self.slopes.copy()
        norm_weights = self.norm_weights.copy()
        constants[:, client] = slopes[:, client] = norm_weights[:, client] = np.nan
        is_other = np.arange(federation.n_clients) != client
        return Evidence(
            self.certificate.without_client(federation, client),
            _mixed_proof(federation, self.mixture, is_other.astype(float)),
            constants,
            slopes,
            norm_weights,
        )


def no_evidence(federation: Federation) -> Evidence:
    """Before the first round: every client's floor."""
    n_clients, width = federation.n_clients, federation.width
    certificate = no_certificate(federation)
    return Evidence(
        certificate,
        certificate.proof,
        np.empty((0, n_clients)),
        np.empty((0, n_clients, width)),
        np.empty((0, n_clients)),
    )


def _risks_and_cuts(federation: Federation, replies: Replies) -> tuple[Array, Proof]:
    """Each client's risk and its one cut; nan for those who did not answer."""
    if replies.are_complete:  # gathered already, for the screen
        answers = replies.answers
        cuts = answers.cuts
        return answers.risks[:, 0], Proof(cuts.constants, cuts.slopes, cuts.norm_weights)
    unknown = np.full((federation.n_clients, 1), np.nan)
    slopes = replies.rows("slopes", np.full((federation.n_clients, 1, federation.width), np.nan))
    constants, norm_weights = (
        replies.rows("constants", unknown),
        replies.rows("norm_weights", unknown),
    )
    risks = replies.rows("risks", unknown)
    return risks[:, 0], Proof(constants[:, 0], slopes[:, 0], norm_weights[:, 0])


def _mix(old: Array, new: Array, newest: float) -> Array:
    """The share ``newest`` of the new; the old where a client was absent."""
    mixed = new if newest == 1.0 else old + newest * (new - old)
    return np.where(np.isnan(new), old, mixed)


def _with_mixture(federation: Federation, certificate: Certificate, mixture: Proof) -> Certificate:
    """The bound that one cut per client proves: [model-bound] with every share 1."""
    # Floors, if there are any, keep models small, and nobody asks how far a bound reaches.
    reach = np.inf
    if not federation.floor > 0.0:
        reach = reach_of(federation, certificate.model, mixture.slopes)
    alphas, n_clients = federation.alphas, federation.n_clients
    if federation.width > federation.n_features:
        # An intercept's slope must be made to vanish first, which takes the general repair.
        model = cut_model(
            federation,
            mixture.constants,
            mixture.slopes,
            mixture.norm_weights,
            np.arange(n_clients),
        )
        bound = model_bound(model, np.ones(n_clients), reach)
        return certificate.with_bound(
            bound.value, bound.radius, partial(model_proof, model, bound.shares)
        )
    # Without one the same repair is one number, theta: how much of the mixture may be kept before
    # its mean slope is longer than its norm weights carry. The floors take the rest.
    length = norm_of(weighted_sum(alphas, mixture.slopes), federation.norm, federation.groups)
    excess = length - dot(alphas, mixture.norm_weights)
    value, radius, theta = mixture_bound(
        dot(alphas, mixture.constants), excess, federation.floor, reach
    )
    prove = partial(_mixed_proof, federation, mixture, np.full(n_clients, theta))
    return certificate.with_bound(value, radius, prove)


def _mixed_proof(federation: Federation, cuts: Proof, shares: Array) -> Proof:
    """The share ``shares[g]`` of client g's cut, and its floor for the rest."""
    return Proof(
        shares * cuts.constants,
        shares[:, None] * cuts.slopes,
        shares * cuts.norm_weights + (1.0 - shares) * federation.floors,
    )


def model_proof(model: CutModel, shares: Array) -> Proof:
    """That share of each cut, client by client, and what is left of 1 of the client's floor."""
    owners, n_clients = model.owners, model.alphas.size
    left = np.maximum(1.0 - np.bincount(owners, shares, n_clients), 0.0)
    constants = np.bincount(owners, shares * model.constants, n_clients)
    norm_weights = np.bincount(owners, shares * model.norm_weights, n_clients)
    return Proof(
        constants.astype(np.float64, copy=False),  # of no cuts at all NumPy makes integers
        slope_by_client(model, shares),
        norm_weights + left * model.floors,
    )


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
        federation.groups,
    )


def reach_of(federation: Federation, model: Array, slopes: Array) -> float:
    """Up to which ||w||_* a bound must hold where nothing bounds w.

    Ten times the best model's, and at least ten and ten times a model that moves losses by one, 1
    over the largest slope: where features are small, useful models are large.
    """
    P, norm, groups = federation.n_features, federation.norm, federation.groups
    steepest = float(norm_rows(slopes[:, :P], norm, groups).max(initial=0.0))
    unit = 1.0 / steepest if steepest > 0.0 else 1.0
    return BOUND_REACH * max(1.0, unit, dual_norm(model[:P], norm, groups))
