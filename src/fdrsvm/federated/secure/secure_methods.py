"""Which methods run on sums, and what stands in a sum for a client that is absent.

risks         at most the client's ceiling, [limits]: an objective is never claimed too small
cuts          its floor, f_g(w) >= floor_g ||w||_*: constant 0, slope 0, norm weight floor_g
vector        ADMM's w_g + mu_g: the model w itself, as if the client did not pull
own, squares  nothing: they are means, over the weight that is present
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import dot, weighted_sum
from fdrsvm.errors import UnsupportedError
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Values
from fdrsvm.federated.methods import (
    ADMM,
    Bundle,
    FedAvg,
    FedDRO,
    FedDROPublished,
    FedSGD,
    OneVsRest,
    Subgradient,
)
from fdrsvm.federated.methods.method import Evaluation

_BASELINES = (FedSGD, FedAvg)


def on_sums(method: Any, members: Federation, *, all_present: bool) -> Any:
    """The method as a server runs it that sees weighted sums only, or an UnsupportedError.

    The bundle's cuts are summed. ADMM's tau, which depends on the weights, is fixed. FedDRO's
    logarithm of a mean is no mean of what clients could send.
    """
    if isinstance(method, OneVsRest):
        return replace(method, inner=on_sums(method.inner, members, all_present=all_present))
    if getattr(method, "trim", 0.0) > 0.0:
        raise UnsupportedError("a trimmed mean needs every client's own answer: trim must be 0")
    if isinstance(method, Evaluation | Subgradient):
        return method
    if isinstance(method, Bundle):
        return replace(method, cuts="summed")
    if isinstance(method, ADMM):
        return replace(method, tau=method._tau(members))
    if isinstance(method, FedDRO | FedDROPublished):
        raise UnsupportedError(
            f"{method.name} takes the logarithm of a mean over the clients, which cannot be had "
            "from sums of what they know alone; use it without secure aggregation"
        )
    if not isinstance(method, _BASELINES):
        raise UnsupportedError(f"{method.name} is not known to work on sums over the clients")
    if not all_present:
        raise UnsupportedError(
            f"{method.name} has no bound for what an absent client would add to a sum: secure "
            "aggregation needs every client in every round, a quorum of all"
        )
    return method


def completed(
    sums: Values,
    asked: Values,
    members: Federation,
    present: npt.NDArray[np.bool_],
    limits: Limits | None,
) -> dict[str, Array]:
    """Sums over the clients present, with what is provable of the others."""
    if present.all():
        return dict(sums)
    return {
        name: _completed(name, array, asked, members, present, limits)
        for name, array in sums.items()
    }


def _completed(
    name: str,
    array: Array,
    asked: Values,
    members: Federation,
    present: npt.NDArray[np.bool_],
    limits: Limits | None,
) -> Array:
    model, slash, kind = name.rpartition("/")  # one-vs-rest has its models' numbers before names
    points = asked[model + slash + "points"]
    absent = np.where(present, 0.0, members.alphas)
    if kind == "risks":
        assert limits is not None  # SecureSum asks for them where clients may be absent
        # The first points of a bundle are each client's own; there nobody does worse than at 0.
        at = points if len(points) else np.zeros((1, members.width))
        ceilings = [
            [limits.risk_ceiling(profile, point) for point in at] for profile in members.profiles
        ]
        return np.asarray(array + weighted_sum(absent, ceilings))
    if kind == "norm_weights":
        return np.asarray(array + dot(absent, members.floors))
    if kind == "vector":
        return np.asarray(array + absent.sum() * points[0])
    if kind in ("own", "squares"):
        return np.asarray(array / members.alphas[present].sum())
    return array
