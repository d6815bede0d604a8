"""How good is the best model so far, by the baselines' own objective? Kept by the server.

Upper    J(w) = sum_g alpha_g J_g(w), known wherever all clients gave theirs
Lower    each round's cuts, summed over the clients, lie below J's loss; so does every mixture of
         such sums, and what it proves of J is [ridge-bound]
Round    the newest sum is blended into the best mixture so far: a few vector operations
Settled  the best mixture of all sums kept is a quadratic program: at the end and now and then
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.federated.certificate import Proof, Standing, no_standing, reach_of
from fdrsvm.federated.federation import Federation
from fdrsvm.solvers.ridge_bound import (
    RidgeCut,
    best_mixture,
    blend,
    level_pair,
    ridge_bound,
    search_curvature,
)

# How many cuts are kept, and how many numbers in them.
_MAX_CUTS, _MAX_ENTRIES = 1000, 4_000_000


@dataclass(frozen=True)
class RidgeEvidence:
    """What is proved so far.

    ``penalty`` is e, the weight of ||w||^2 in J. ``constant`` and ``slope`` are the best mixture of
    cuts; its slope in the intercept is 0. The others are the cuts of the last rounds.
    """

    standing: Standing
    penalty: float
    constant: float
    slope: Array
    constants: Array
    slopes: Array


def no_evidence(federation: Federation, penalty: float) -> RidgeEvidence:
    """Nothing is known but that no loss is negative."""
    width, n_clients = federation.width, federation.n_clients
    # Bounds are of sums over clients, and of another objective: no client has a part in a proof.
    unknown = np.full(n_clients, np.nan)
    nothing = Proof(unknown, np.full((n_clients, width), np.nan), unknown)
    standing = replace(no_standing(federation), proof=nothing, proof_everywhere=nothing)
    return RidgeEvidence(standing, penalty, 0.0, np.zeros(width), np.empty(0), np.empty((0, width)))


def observe(
    federation: Federation,
    evidence: RidgeEvidence,
    point: Array,
    objective: float,
    risks: Array,
    cut: RidgeCut,
) -> RidgeEvidence:
    """After a round in which clients gave their J_g and their cuts at ``point``.

    ``objective`` is nan if a client with weight is absent; ``cut`` is the sum of the cuts.
    """
    has_intercept = federation.width > federation.n_features
    level = level_pair(cut, evidence.constants, evidence.slopes) if has_intercept else cut
    window = -max(1, min(_MAX_CUTS, _MAX_ENTRIES // federation.width))
    evidence = replace(
        evidence,
        standing=evidence.standing.with_point(federation, point, objective, risks),
        constants=np.append(evidence.constants, cut.constant)[window:],
        slopes=np.concatenate([evidence.slopes, cut.slope[None]])[window:],
    )
    if level is None:
        return evidence
    best = RidgeCut(evidence.constant, evidence.slope)
    return _with_mixture(federation, evidence, blend(best, level, _curvature(federation, evidence)))


def settle(federation: Federation, evidence: RidgeEvidence) -> RidgeEvidence:
    """With the best mixture of all cuts kept, if it proves more."""
    if evidence.constants.size == 0:
        return evidence
    mixture = best_mixture(
        evidence.constants,
        evidence.slopes,
        federation.n_features,
        _curvature(federation, evidence),
    )
    if mixture is None:
        return evidence
    settled = _with_mixture(federation, evidence, mixture)
    is_better = settled.standing.lower_bound > evidence.standing.lower_bound
    return settled if is_better else evidence


def _curvature(federation: Federation, evidence: RidgeEvidence) -> float:
    return search_curvature(
        evidence.penalty, reach_of(federation, evidence.standing.model, evidence.slopes)
    )


def _with_mixture(
    federation: Federation, evidence: RidgeEvidence, mixture: RidgeCut
) -> RidgeEvidence:
    bound = ridge_bound(
        mixture,
        federation.n_features,
        evidence.penalty,
        federation.norm,
        reach_of(federation, evidence.standing.model, evidence.slopes),
    )
    return replace(
        evidence,
        standing=evidence.standing.with_bound(
            bound.value, bound.radius, lambda: evidence.standing.proof
        ),
        constant=mixture.constant,
        slope=mixture.slope,
    )
