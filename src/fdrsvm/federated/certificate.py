"""How good is the best model so far? Kept by the server, for every method, from cuts alone.

Upper    F(w) = sum_g alpha_g f_g(w), known wherever all clients gave their risk
Lower    each client's cuts lie below its risk, so a weighted mixture of cuts lies below F; its
least
         value over all models is a bound on the optimum: [model-bound]
Round    the newest cuts are mixed into the best mixture so far: a few vector operations
Settled  the best mixture of all cuts kept is a linear program, [master]: at the end and now and
then
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.maths.arrays import Array
from fdrsvm.maths.norms import dual_norm, norm_rows
from fdrsvm.solvers.cut_model import CutModel
from fdrsvm.solvers.master import minimise_model
from fdrsvm.solvers.model_bound import mixture_bound, model_bound

# Where nothing bounds w, bounds hold for models up to this many times the best one's size.
BOUND_REACH = 10.0
# How many cuts the last linear program sees.
_MAX_CUTS = 20_000


@dataclass(frozen=True)
class Standing:
    """The best model so far and what is proved of it.

    ``lower_bound`` holds for all models with ||w||_* up to ``radius``: infinite unless nothing
    bounds w (a box, or epsilon = 0). ``bound_everywhere`` holds for all models.
    """

    model: Array
    objective: float
    risks: Array  # of each client, at the model
    lower_bound: float
    radius: float
    bound_everywhere: float

    @property
    def gap(self) -> float:
        """(objective - lower bound) / objective: the relative gap; inf before any evaluation."""
        if not self.objective < np.inf:
            return np.inf
        excess = max(self.objective - self.lower_bound, 0.0)
        return excess / self.objective if self.objective > 0.0 else 0.0

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
            # The bound says little about models as large as this one: it must be proved anew.
            return replace(better, lower_bound=self.bound_everywhere, radius=np.inf)
        return better

    def with_bound(self, value: float, radius: float) -> Standing:
        """After a proof from below."""
        better = self
        if radius == np.inf and value > self.bound_everywhere:
            better = replace(better, bound_everywhere=value)
        if value > self.lower_bound:
            better = replace(better, lower_bound=value, radius=radius)
        return better


def no_standing(federation: Federation) -> Standing:
    """Nothing is known but that risks are not negative."""
    risks = np.full(federation.n_clients, np.nan)
    return Standing(np.zeros(federation.width), np.inf, risks, 0.0, np.inf, 0.0)


@dataclass(frozen=True)
class Evidence:
    """What subgradient method and ADMM prove on their way: one cut a client and round.

    ``mixture_*`` hold one cut a client, a mixture of that client's cuts; the others all cuts of the
    last rounds, first axis rounds, second clients, nan where a client was absent.
    """

    standing: Standing
    mixture_constants: Array
    mixture_slopes: Array
    mixture_norm_weights: Array
    constants: Array
    slopes: Array
    norm_weights: Array


def no_evidence(federation: Federation) -> Evidence:
    """Before the first round: every client's floor."""
    n_clients, width = federation.n_clients, federation.width
    return Evidence(
        no_standing(federation),
        np.zeros(n_clients),
        np.zeros((n_clients, width)),
        federation.floors,
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
    risks = replies.firsts("risks")
    constants, norm_weights = replies.firsts("constants"), replies.firsts("norm_weights")
    slopes = replies.firsts("slopes", np.full(federation.width, np.nan))
    mixed = (
        _mixed(evidence.mixture_constants, constants, newest),
        _mixed(evidence.mixture_slopes, slopes, newest),
        _mixed(evidence.mixture_norm_weights, norm_weights, newest),
    )
    standing = evidence.standing.with_point(federation, point, federation.objective(risks), risks)
    standing = _with_mixture(federation, standing, *mixed)
    window = -max(1, _MAX_CUTS // federation.n_clients)
    return Evidence(
        standing,
        *mixed,
        np.concatenate([evidence.constants, constants[None]])[window:],
        np.concatenate([evidence.slopes, slopes[None]])[window:],
        np.concatenate([evidence.norm_weights, norm_weights[None]])[window:],
    )


def _mixed(old: Array, new: Array, newest: float) -> Array:
    """The share ``newest`` of the new; the old where a client was absent."""
    mixed = new if newest == 1.0 else old + newest * (new - old)
    absent = np.isnan(new)
    return np.where(absent, old, mixed) if absent.any() else mixed


def _with_mixture(
    federation: Federation,
    standing: Standing,
    constants: Array,
    slopes: Array,
    norm_weights: Array,
) -> Standing:
    """The bound that one cut a client proves: [model-bound] with every share 1."""
    reach = reach_of(federation, standing.model, slopes)
    alphas, P = federation.alphas, federation.n_features
    if federation.width > P:  # an intercept's slope must be made to vanish first
        everyone = np.arange(federation.n_clients)
        model = cut_model(federation, constants, slopes, norm_weights, everyone)
        bound = model_bound(model, np.ones(federation.n_clients), reach)
        return standing.with_bound(bound.value, bound.radius)
    length = float(norm_rows((alphas @ slopes)[None], federation.norm)[0])
    excess = length - float(alphas @ norm_weights)
    value, radius, _ = mixture_bound(float(alphas @ constants), excess, federation.floor, reach)
    return standing.with_bound(value, radius)


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
    return replace(evidence, standing=standing.with_bound(bound.value, bound.radius))


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
    """As if the client had said nothing; what was proved with its answers has to be proved anew."""
    constants, slopes = evidence.constants.copy(), evidence.slopes.copy()
    norm_weights = evidence.norm_weights.copy()
    constants[:, client] = slopes[:, client] = norm_weights[:, client] = np.nan
    none = no_evidence(federation)
    others = np.arange(federation.n_clients) != client
    return Evidence(
        none.standing,
        np.where(others, evidence.mixture_constants, none.mixture_constants),
        np.where(others[:, None], evidence.mixture_slopes, none.mixture_slopes),
        np.where(others, evidence.mixture_norm_weights, none.mixture_norm_weights),
        constants,
        slopes,
        norm_weights,
    )
