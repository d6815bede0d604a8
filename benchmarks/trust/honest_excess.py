"""By how much honest answers break the rules of [limits]: rounding, and nothing else.

A slack in a comparison must be above what float64 loses in the numbers that enter it. Here every
risk of a client is held against every cut of the same client, of all rounds, and the excess is
divided twice: by the sum of the sizes of the numbers compared, and by that plus 1 + L S(w), the
size of what a client sums up on its side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.losses import Hinge
from fdrsvm.core.vectors import dual_norm
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import ClientProfile, Values

Excess = Mapping[str, tuple[float, float]]  # by rule: relative to the numbers, and to more


class Said(NamedTuple):
    """All that one client said in a run; the first cuts of an answer were made at its points."""

    points: Array
    risks: Array
    constants: Array
    slopes: Array
    norm_weights: Array
    made_at: Array  # for each cut the number of its point, -1 if there is none


def gather(answers: list[tuple[Array, Values]], *, touching: bool) -> Said:
    """Answers with the points that they are about, one after the other."""
    made_at: list[int] = []
    n_points = 0
    for points, values in answers:
        n_cuts = values["constants"].size
        at = np.arange(n_cuts) + n_points
        made_at += np.where(touching & (np.arange(n_cuts) < len(points)), at, -1).tolist()
        n_points += len(points)
    return Said(
        np.concatenate([points for points, _ in answers]),
        _joined(answers, "risks"),
        _joined(answers, "constants"),
        _joined(answers, "slopes"),
        _joined(answers, "norm_weights"),
        np.array(made_at),
    )


def _joined(answers: list[tuple[Array, Values]], name: str) -> Array:
    return np.concatenate([values[name] for _, values in answers])


def excesses(profile: ClientProfile, limits: Limits, said: Said, *, boxed: bool) -> Excess:
    """For each rule the largest excess; 0 if the rule is kept to the last bit."""
    found = dict(_of_cuts(profile, limits, said, boxed))
    found |= _of_pairs(profile, limits, said, boxed)
    return {rule: (max(0.0, near), max(0.0, far)) for rule, (near, far) in found.items()}


def _of_cuts(
    profile: ClientProfile, limits: Limits, said: Said, boxed: bool
) -> dict[str, tuple[float, float]]:
    """Rules on a cut alone: relative to the limit itself, and to the largest risk of all points.

    A constant is often what is left of a risk after the slope times the model is taken away.
    """
    reach = limits.slopes[: said.slopes.shape[1]]
    largest = max(limits.risk_ceiling(profile, w) for w in said.points) / limits.loss_at_zero
    found = {
        "constant at most loss(0)": _largest(said.constants / limits.loss_at_zero - 1.0),
        "constant at least 0": _largest(-said.constants / limits.loss_at_zero),
        "slope within the limits": _largest(np.abs(said.slopes) / reach - 1.0),
    }
    if profile.floor > 0.0:
        found["norm weight at most floor"] = _largest(said.norm_weights / profile.floor - 1.0)
    if type(limits.loss) is Hinge and not boxed:
        mass = np.abs(said.slopes) / reach - said.constants[:, None]
        found["slope at most constant times limits"] = _largest(mass)
    return {rule: (value, value / largest) for rule, value in found.items()}


def _of_pairs(
    profile: ClientProfile, limits: Limits, said: Said, boxed: bool
) -> dict[str, tuple[float, float]]:
    """Rules on risks, and on cuts at the points of risks."""
    P, risks = profile.n_features, said.risks
    sizes = np.array([dual_norm(w[:P], profile.norm) for w in said.points])  # type: ignore[arg-type]
    scores = np.array([limits.score_ceiling(w) for w in said.points])
    reach = 1.0 + float(limits.loss.lipschitz) * scores
    lowest = profile.floor * sizes
    is_hinge = type(limits.loss) is Hinge and not boxed
    least = np.maximum(1.0 - scores, 0.0) if is_hinge else np.zeros(len(risks))
    ceiling = limits.loss_at_zero + (reach - 1.0) + lowest
    terms = said.slopes[:, None] * said.points[None]
    linear, moved = terms.sum(axis=2), said.norm_weights[:, None] * sizes
    values = said.constants[:, None] + linear + moved
    scale = np.abs(said.constants)[:, None] + np.abs(terms).sum(axis=2) + moved + np.abs(risks)
    found = {
        "risk at least that of the best rows": _both(lowest + least - risks, risks + lowest, reach),
        "risk at most that of the worst rows": _both(risks - ceiling, risks + ceiling, reach),
        "cut at most risk, all rounds": _both(values - risks, scale, reach),
    }
    touched = np.flatnonzero(said.made_at >= 0)
    if touched.size:
        at = said.made_at[touched]
        apart = np.abs(values[touched, at] - risks[at])
        found["cut touches risk"] = _both(apart, scale[touched, at], reach[at])
    if is_hinge:
        kept = np.maximum(said.constants[:, None] + linear, 0.0)
        rest = (1.0 - said.constants)[:, None] * least
        found["cut and what it leaves at most risk"] = _both(
            kept + rest + moved - risks, scale, reach
        )
    return found


def _largest(values: Array) -> float:
    return float(values.max(initial=0.0))


def _both(excess: Array, scale: Array, reach: Array) -> tuple[float, float]:
    near = np.divide(excess, scale, out=np.zeros_like(excess), where=scale > 0.0)
    return _largest(near), _largest(excess / (scale + reach))


def merged(left: Excess, right: Excess) -> Excess:
    """The larger of the two, rule by rule."""
    none = (0.0, 0.0)
    rules = dict.fromkeys([*left, *right])
    return {
        rule: (
            max(left.get(rule, none)[0], right.get(rule, none)[0]),
            max(left.get(rule, none)[1], right.get(rule, none)[1]),
        )
        for rule in rules
    }
