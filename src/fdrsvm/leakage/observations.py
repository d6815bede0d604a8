"""What a server knows of one client after a run: its cuts, and where each was taken.

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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, Values
from fdrsvm.maths.arrays import Array

Exchanges = Sequence[tuple[Broadcast, Update]]


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
    """

    states: Array
    points: Array
    are_whole: npt.NDArray[np.bool_]
    masses: Array
    fit_intercept: bool

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


def observe(exchanges: Exchanges, profile: ClientProfile, masses: Array) -> list[Observations]:
    """What the server has of one client, a model at a time (several with one-vs-rest)."""
    names = {name for _, update in exchanges for name in update.values if name.endswith("slopes")}
    width = profile.n_features + int(profile.fit_intercept)
    found = []
    for name in sorted(names):
        prefix = name.removesuffix("slopes")
        parts = [
            _Part(asked.algorithm, _part(asked.values, prefix), _part(got.values, prefix))
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
            )
        )
    return found


def _part(values: Values, prefix: str) -> dict[str, Array]:
    """One model's arrays, without its number in front."""
    return {
        name.removeprefix(prefix): array
        for name, array in values.items()
        if name.startswith(prefix)
    }


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
        else:
            there = part.asked["points"]
            if "own" in part.answered:
                there = part.answered["own"][None]
            points[: len(there)] = there[: len(points)]
            are_whole[: len(there)] = True
        yield _Cuts(np.column_stack([-slopes, constants]), points, are_whole)


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
    for values, shapes in ((part.answered, forms), (part.asked, asked)):
        for name, shape in shapes.items():
            array = values.get(name)
            if array is None or array.shape != shape or not np.isfinite(array).all():
                raise CorruptDataError(f"recording: {name} is missing or not {shape} numbers")
