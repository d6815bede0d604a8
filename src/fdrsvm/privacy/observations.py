"""What a server knows of one client after a run: its cuts, where each was taken, and its risks.

A cut is a sum over the client's rows, [row-difference]: with z_n = (y_n x_n, and y_n if there is an
intercept),

    (-slope, constant) = sum_n p_n (kept_n (z_n, 1) + flipped_n (-z_n, 1)),

kept_n and flipped_n between 0 and 1. A difference of two cuts is a sum over the rows whose shares
changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import dual_norm
from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, split_prefixes
from fdrsvm.federated.moments import n_moments, unpacked
from fdrsvm.risk.feature_maps import Features

Exchanges = Sequence[tuple[Broadcast, Update]]
FeatureRange: TypeAlias = "tuple[Array | float, Array | float]"  # low, high
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
    limits : (low, high), optional
        Agreed limits of the sensors: they tell rows from sums of rows, and labels.
    features : Features, optional
        The map that all clients share, if there is one: what it makes of no sensors is no row.
    moments : ndarray of shape (width, width), optional
        sum_n p_n z_n z_n' over all rows, if they were sent, [moments].
    """

    states: Array
    points: Array
    are_whole: npt.NDArray[np.bool_]
    masses: Array
    fit_intercept: bool
    risks: Risks | None = None
    resolution: float = 0.0
    error: float = 0.0
    limits: FeatureRange | None = None
    features: Features | None = None
    moments: Array | None = None

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return int(self.points.shape[1]) - int(self.fit_intercept)


class _Turn(NamedTuple):
    """What concerns one model in a question and its answer."""

    settings: Mapping[str, Any]  # of the method, or of the one within it
    asked: dict[str, Array]
    answered: dict[str, Array]

    @property
    def method(self) -> str:
        return str(self.settings.get("name", ""))

    @property
    def is_admm(self) -> bool:
        """Whether its cut is a local solution's, and not that at the model asked about."""
        return "squares" in self.answered or self.method.startswith("admm")

    @property
    def points(self) -> Array:
        """Where the client evaluated: its own start in a bundle's first round, or as asked."""
        return self.answered["own"][None] if "own" in self.answered else self.asked["points"]

    def check(self, width: int) -> None:
        """A recording may come from anywhere: shapes and numbers are looked at before use."""
        answered, asked = self.answered, self.asked
        n_cuts = answered["slopes"].shape[:1]
        forms: dict[str, tuple[int, ...]] = {"slopes": (*n_cuts, width), "constants": n_cuts}
        questions: dict[str, tuple[int, ...]] = {"points": (len(asked.get("points", ())), width)}
        if "squares" in answered:
            forms["vector"], questions["rho"] = (width,), ()
        if "own" in answered:
            forms["own"] = (width,)
        for name in ("risks", "norm_weights"):
            if name in answered:
                forms[name] = answered[name].shape[:1]
        if "moments" in answered:
            forms["moments"] = (n_moments(width),)
        for values, shapes in ((answered, forms), (asked, questions)):
            for name, shape in shapes.items():
                array = values.get(name)
                if array is None or array.shape != shape or not np.isfinite(array).all():
                    raise CorruptDataError(f"recording: {name} is missing or not {shape} numbers")

    def local_solution(self, before: _Turn | None) -> Array:
        """w_g of ADMM from what it sent: its dual is that of the round before, [admm]."""
        w, rho = self.asked["points"][0], float(self.asked["rho"])
        dual = np.ones_like(w)
        if before is not None:
            dual = (before.answered["vector"] - w) * (float(before.asked["rho"]) / rho)
        try:
            relaxation = float(self.settings["relaxation"])
        except (KeyError, TypeError, ValueError):
            raise CorruptDataError(
                f"recording: no method of ADMM's kind: {str(self.settings)[:80]!r}"
            ) from None
        relaxed = self.answered["vector"] - dual
        return np.asarray((relaxed - (1.0 - relaxation) * w) / relaxation)


def observe(
    exchanges: Exchanges, profile: ClientProfile, masses: Array, *, resolution: float = 0.0
) -> list[Observations]:
    """What the server has of one client, one entry per model (several with one-vs-rest)."""
    turns_of: dict[str, list[_Turn]] = {}  # by the model's number, "" if there is one model
    for question, update in exchanges:
        asked = split_prefixes(question.values)
        try:
            settings = json.loads(question.algorithm)
            settings = dict(settings.get("inner", settings))
        except (ValueError, TypeError, AttributeError, RecursionError):
            settings = {}  # not a method: it has none
        for model, answered in split_prefixes(update.values).items():
            if "slopes" in answered:
                turn = _Turn(settings, asked.get(model, {}), answered)
                turn.check(profile.n_features + int(profile.fit_intercept))
                turns_of.setdefault(model, []).append(turn)
    observed = []
    for _, turns in sorted(turns_of.items()):
        states, points, are_whole = map(np.concatenate, zip(*_all_cuts(turns), strict=True))
        settings = (masses, profile.fit_intercept, _all_risks(turns, profile), resolution)
        one = Observations(states, points, are_whole, *settings)
        sent = [turn.answered["moments"] for turn in turns if "moments" in turn.answered]
        if sent and sent[0].any():  # a client that keeps its moments to itself sends zeros
            one = replace(one, moments=unpacked(sent[0]))
        observed.append(one)
    return observed


def _all_cuts(turns: Sequence[_Turn]) -> Iterator[tuple[Array, Array, npt.NDArray[np.bool_]]]:
    """States, points and whether they are whole, of each answer."""
    before: _Turn | None = None
    for turn in turns:
        slopes, constants = turn.answered["slopes"], turn.answered["constants"]
        points = np.full(slopes.shape, np.nan)
        are_whole = np.zeros(len(constants), dtype=bool)
        if "squares" in turn.answered:  # ADMM: one cut, at the local solution
            points[0] = turn.local_solution(before)
            before = turn
        elif not turn.is_admm:  # of a sum of ADMM's cuts nobody knows the local solutions
            n_points = len(turn.points)
            points[:n_points] = turn.points[: len(points)]
            are_whole[:n_points] = True
        yield np.column_stack([-slopes, constants]), points, are_whole


def _all_risks(turns: Sequence[_Turn], profile: ClientProfile) -> Risks | None:
    """Risks at the models asked about, of methods whose risk is a mean hinge and a norm term.

    In the first round of a bundle each client is at a model of its own, which sums do not tell.
    """
    norm: Any = profile.norm
    rows = []
    for turn in turns:
        points, risks = turn.points, turn.answered.get("risks")
        if risks is None or len(risks) != len(points) or turn.method.startswith("feddro"):
            continue
        features = points[:, : profile.n_features]
        given = turn.answered.get("norm_weights", np.empty(0))[: len(points)]
        has_cuts_here = not turn.is_admm and len(given) == len(points)
        weights = given if has_cuts_here else np.full(len(points), profile.floor)
        if turn.method in _WITH_PENALTY:
            risks = risks - profile.epsilon * (features**2).sum(axis=1)
            weights = np.zeros(len(points))
        sizes = np.array([dual_norm(w, norm, profile.groups) for w in features])
        rows.append((points, risks, sizes, weights))
    return Risks(*map(np.concatenate, zip(*rows, strict=True))) if rows else None
