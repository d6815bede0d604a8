"""What a server knows of one client after a run: its cuts, where each was taken, and its risks.

A cut is a sum over the client's rows, [row-difference]: with z_n = (y_n x_n, and y_n if there is an
intercept),

    (-slope, constant) = sum_n p_n (kept_n (z_n, 1) + flipped_n (-z_n, 1)),

kept_n and flipped_n between 0 and 1. A difference of two cuts is a sum over the rows whose shares
changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.norms import dual_norm
from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, strip_prefix

Exchanges = Sequence[tuple[Broadcast, Update]]
_WITH_PENALTY = ("fedsgd", "fedavg", "fedprox")  # their risks have epsilon ||w||^2 in place of it


class Risks(NamedTuple):
    """Risks at models: values, the models' sizes ||w||_*, and the weight of each size in them."""

    points: Array
    values: Array
    sizes: Array
    norm_weights: Array


@dataclass(frozen=True)
class Observations:
    """All cuts of one client, or of a sum over clients, for one model.

    Attributes
    ----------
    states : ndarray of shape (n_cuts, width + 1)
        (-slope, constant) of each cut.
    points : ndarray of shape (n_cuts, width)
        Where each cut was taken; nan where the server cannot know.
    are_whole : ndarray of bool, shape (n_cuts,)
        Whether the cut is the worst case's at the point, where a row counts wholly or not at all; a
        solver's cut has fractions of those on the margin.
    masses : ndarray
        What one row may weigh: 1/N_g, in sums alpha_g/N_g.
    fit_intercept : bool
        Whether the last entry of a model is an intercept.
    risks : Risks, optional
        Risks at the models that were asked about.
    resolution : float
        The grid of risks and constants; 0 if they are exact.
    error : float
        How far any entry of ``states`` may be off, besides the grid.
    """

    states: Array
    points: Array
    are_whole: npt.NDArray[np.bool_]
    masses: Array
    fit_intercept: bool
    risks: Risks | None = None
    resolution: float = 0.0
    error: float = 0.0

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return int(self.points.shape[1]) - int(self.fit_intercept)


class _Part(NamedTuple):
    """What concerns one model in a question and its answer."""

    settings: str
    asked: dict[str, Array]
    answered: dict[str, Array]


class _Cuts(NamedTuple):
    """The cuts of one answer."""

    states: Array
    points: Array
    are_whole: npt.NDArray[np.bool_]


def observe(
    exchanges: Exchanges, profile: ClientProfile, masses: Array, *, resolution: float = 0.0
) -> list[Observations]:
    """What the server has of one client, a model at a time (several with one-vs-rest)."""
    names = {name for _, update in exchanges for name in update.values if name.endswith("slopes")}
    width = profile.n_features + int(profile.fit_intercept)
    found = []
    for name in sorted(names):
        prefix = name.removesuffix("slopes")
        parts = [
            _Part(
                asked.algorithm,
                strip_prefix(prefix, asked.values),
                strip_prefix(prefix, got.values),
            )
            for asked, got in exchanges
            if name in got.values
        ]
        cuts = list(_all_cuts(parts, width))
        found.append(
            Observations(
                states=np.concatenate([one.states for one in cuts]),
                points=np.concatenate([one.points for one in cuts]),
                are_whole=np.concatenate([one.are_whole for one in cuts]),
                masses=masses,
                fit_intercept=profile.fit_intercept,
                risks=_all_risks(parts, profile),
                resolution=resolution,
            )
        )
    return found


def _all_cuts(parts: Sequence[_Part], width: int) -> Iterator[_Cuts]:
    before: _Part | None = None
    for part in parts:
        _check(part, width)
        slopes, constants = part.answered["slopes"], part.answered["constants"]
        points = np.full((len(constants), width), np.nan)
        are_whole = np.zeros(len(constants), dtype=bool)
        if "squares" in part.answered:  # ADMM: one cut, at the local solution
            points[0] = _local_solution(part, before)
            before = part
        elif not _is_admm(part):  # of a sum of ADMM's cuts nobody knows the local solutions
            there = part.asked["points"]
            if "own" in part.answered:
                there = part.answered["own"][None]
            points[: len(there)] = there[: len(points)]
            are_whole[: len(there)] = True
        yield _Cuts(np.column_stack([-slopes, constants]), points, are_whole)


def _all_risks(parts: Sequence[_Part], profile: ClientProfile) -> Risks | None:
    """Risks at the models asked about, of methods whose risk is a mean hinge and a norm term.

    In the first round of a bundle each client is at a model of its own, which sums do not tell.
    """
    norm: Any = profile.norm
    points, values, sizes, weights = [], [], [], []
    for part in parts:
        there = part.answered["own"][None] if "own" in part.answered else part.asked["points"]
        name = _method_name(part.settings)
        risks = part.answered.get("risks")
        if risks is None or len(risks) != len(there) or name.startswith("feddro"):
            continue
        norms = np.array([dual_norm(w, norm) for w in there[:, : profile.n_features]])
        given = part.answered.get("norm_weights", np.empty(0))[: len(there)]
        has_cuts_here = not _is_admm(part) and len(given) == len(there)
        weight = given if has_cuts_here else np.full(len(there), profile.floor)
        if name in _WITH_PENALTY:
            squares = (there[:, : profile.n_features] ** 2).sum(axis=1)
            risks, weight = risks - profile.epsilon * squares, np.zeros(len(there))
        points.append(there)
        values.append(risks)
        sizes.append(norms)
        weights.append(weight)
    if not points:
        return None
    return Risks(*(np.concatenate(part) for part in (points, values, sizes, weights)))


def _is_admm(part: _Part) -> bool:
    """Whether its cut is a local solution's, and not that at the model asked about."""
    return "squares" in part.answered or _method_name(part.settings).startswith("admm")


def _method_name(settings: str) -> str:
    """Of the method, or of the one within it; "" if it has none."""
    try:
        found = json.loads(settings)
        return str(found.get("inner", found)["name"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""


def _local_solution(part: _Part, before: _Part | None) -> Array:
    """w_g of ADMM from what it sent: its dual is that of the round before, [admm]."""
    w, rho = part.asked["points"][0], float(part.asked["rho"])
    dual = np.ones_like(w)
    if before is not None:
        dual = (before.answered["vector"] - w) * (float(before.asked["rho"]) / rho)
    relaxation = _relaxation(part.settings)
    relaxed = part.answered["vector"] - dual
    return np.asarray((relaxed - (1.0 - relaxation) * w) / relaxation)


def _relaxation(settings: str) -> float:
    try:
        found = json.loads(settings)
        return float(found.get("inner", found)["relaxation"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CorruptDataError(f"recording: no method of ADMM's kind: {settings[:80]!r}") from None


def _check(part: _Part, width: int) -> None:
    """A recording may come from anywhere: shapes and numbers are looked at before use."""
    n_cuts = part.answered["slopes"].shape[:1]
    forms: dict[str, tuple[int, ...]] = {"slopes": (*n_cuts, width), "constants": n_cuts}
    asked: dict[str, tuple[int, ...]] = {"points": (len(part.asked.get("points", ())), width)}
    if "squares" in part.answered:
        forms["vector"], asked["rho"] = (width,), ()
    if "own" in part.answered:
        forms["own"] = (width,)
    for name in ("risks", "norm_weights"):
        if name in part.answered:
            forms[name] = part.answered[name].shape[:1]
    for values, shapes in ((part.answered, forms), (part.asked, asked)):
        for name, shape in shapes.items():
            array = values.get(name)
            if array is None or array.shape != shape or not np.isfinite(array).all():
                raise CorruptDataError(f"recording: {name} is missing or not {shape} numbers")
