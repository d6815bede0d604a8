"""What is proved of a model, in numbers and in words, from its file and again from data.

Recomputed by :class:`fdrsvm.RiskOracle`, which shares no code with training's bookkeeping: each
client's worst-case risk, their weighted sum, and how far rows must move for decisions to turn.
Distances are in scaled features, as in training. With a feature map they are moves of the sensors
in front of it, [map]: what is proved is a bound, and an attack says how much of it is real.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.plain_json import from_plain
from fdrsvm.data.rows import Rows
from fdrsvm.errors import UnsupportedError
from fdrsvm.inspection.explain import flipping_perturbation
from fdrsvm.inspection.scores import POOLED, check_fits
from fdrsvm.model.linear_model import VERDICT, LinearModel
from fdrsvm.model.trained_ball import ROBUST, Overrides, balls, client_weights
from fdrsvm.model.unscaling import Scaling
from fdrsvm.risk.ball import Support, check_support
from fdrsvm.risk.radius import mowb_confidence
from fdrsvm.risk.worst_case import RiskOracle, worst_case_risk

SHARES = (0.01, 0.05, 0.1, 0.25, 0.5)
_NORM_WORDS = {
    "linf": "where every feature may be off by that much at once (norm linf).",
    "l2": "where the features' errors add up as squares (norm l2).",
    "l1": "where the features' errors add up (norm l1).",
}
_SAME = 1e-9  # relative; both sides are exact up to rounding, and a file holds folded weights


@dataclass(frozen=True)
class Proved:
    """What the file says of one model: the only one of two classes, or the one of a class."""

    label: Any  # None for two classes
    objective: float
    lower_bound: float
    gap: float
    bound_radius: float


@dataclass(frozen=True, eq=False)
class ClientRisk:
    """One client's rows under one model.

    ``worst_case`` is the worst-case risk, ``mean_loss`` the loss on the rows as they are,
    ``stated`` what the file says, or None. With a feature map ``worst_case`` is the upper bound
    that training minimised; the worst case of the sensors lies between ``at_least``, which an
    attack on them reaches, and ``at_most``, the best bound for this model; None if not asked for.
    """

    client: str
    label: Any
    n_rows: int
    epsilon: float
    worst_case: float
    mean_loss: float
    stated: float | None
    at_most: float | None = None
    at_least: float | None = None


@dataclass(frozen=True, eq=False)
class Recomputed:
    """Risks on given data; ``n_clipped`` values were moved into the support first.

    In training clients rounded their risks up to multiples of ``resolution``; 0 is not at all.
    """

    risks: tuple[ClientRisk, ...]
    objectives: tuple[float, ...]  # one per model, in the order of Proved
    n_clipped: int
    resolution: float = 0.0
    limits: tuple[tuple[float, float], ...] = ()  # as objectives: sums of at_least and of at_most

    @property
    def agrees(self) -> bool | None:
        """Whether the file states the same for every client; None if it is silent about one."""
        agrees = True
        for one in self.risks:
            if one.stated is None:
                return None
            slack = _SAME * max(1.0, abs(one.worst_case), abs(one.stated))
            agrees &= -slack <= one.stated - one.worst_case <= self.resolution + slack
        return agrees


@dataclass(frozen=True, eq=False)
class Flips:
    """How far rows must move for decisions to turn.

    ``costs`` are sorted, inf where the support rules it out; ``moves`` has for each of ``SHARES``
    the least distance within which this share of the decisions turns. With a map it is the least
    that was found, and below that of ``least`` it is proved that fewer turn.
    """

    costs: Array
    moves: dict[float, float]
    least: dict[float, float]

    @property
    def is_exact(self) -> bool:
        """Whether ``moves`` are the least there are, up to rounding."""
        return all(move <= self.least[share] * (1.0 + 1e-6) for share, move in self.moves.items())


def proved(model: LinearModel) -> list[Proved]:
    """From the file; empty if it has no certificate."""
    kept = {name: from_plain(value) for name, value in model.certificate.items()}
    if "objective" not in kept:
        return []
    columns = [
        np.atleast_1d(np.asarray(kept.get(name, np.nan), dtype=np.float64))
        for name in ("objective", "lower_bound", "gap", "bound_radius")
    ]
    labels = [None] if len(model.classes) == 2 else list(model.classes)
    return [
        Proved(label, *(float(column[k]) for column in columns)) for k, label in enumerate(labels)
    ]


def stated_risks(model: LinearModel) -> dict[str, Array]:
    """Each client's worst-case risk as the file has it, one entry per model."""
    kept = from_plain(model.certificate.get("worst_case_risk_per_client", {}))
    if model.estimator == "DRSVC":
        kept = {POOLED: from_plain(model.certificate.get("objective", np.nan))}
    return {str(name): np.atleast_1d(np.asarray(risk, dtype=float)) for name, risk in kept.items()}


def members(model: LinearModel, rows: Rows) -> dict[str, npt.NDArray[np.intp]]:
    """Each client's rows, as positions; of a central model, which has one ball, all in one."""
    if model.estimator == "DRSVC":
        return {POOLED: np.arange(len(rows.X))}
    return {name: np.flatnonzero(rows.clients == name) for name in rows.client_names}


def recompute(
    model: LinearModel, rows: Rows, given: Overrides | None = None, *, attack: bool = False
) -> Recomputed:
    """Worst-case risks of a model from a file, with its scaling folded in, on rows with labels.

    On the rows of training the numbers are those of the file, unless another radius, label price
    or norm is ``given``. With a feature map and ``attack``, how loose they are is found as well.
    """
    check_fits(model, rows)
    scaling = Scaling.of(model)
    scaled = scaling.unfold(model)
    groups, codes = members(model, rows), rows.codes(model.classes)
    counts = {name: len(group) for name, group in groups.items()}
    own, shares = balls(model, counts, given), client_weights(model, counts)
    sample_weight = class_weights(model, codes)[codes]
    stated = stated_risks(model) if given is None or given == Overrides() else {}
    risks, n_clipped = [], 0
    n_models = len(scaled.coef)
    objectives, limits = np.zeros(n_models), np.zeros((n_models, 2))
    is_bound = attack and scaled.features is not None
    for name, group in groups.items():
        X, n_outside = into_support(scaling.apply(rows.X[group]), own[name].support)
        n_clipped += n_outside
        options = {**own[name].options(), "sample_weight": sample_weight[group]}
        mapped, guarded = X, options
        if scaled.features is not None:
            mapped, guarded = scaled.features.in_front(X, options)
        for k in range(n_models):
            signs = signs_of(codes[group], k, n_models)
            w, b = scaled.coef[k], float(scaled.intercept[k])
            worst = RiskOracle(mapped, signs, **guarded).value(w, b)
            mean = RiskOracle(mapped, signs, **{**guarded, "epsilon": 0.0}).value(w, b)
            label = None if n_models == 1 else model.classes[k]
            said = float(stated[name][k]) if name in stated else np.nan
            known = None if np.isnan(said) else said  # of sums, or left out, it is not
            one = ClientRisk(name, label, len(X), own[name].epsilon, worst, mean, known)
            if is_bound:
                of_map: dict[str, Any] = {"features": scaled.features, **options}
                found = worst_case_risk(w, X, signs, intercept=b, **of_map)
                one = replace(one, at_most=found.value, at_least=found.proof)
                limits[k] += shares[name] * np.array([found.proof, found.value])
            risks.append(one)
            objectives[k] += shares[name] * worst
    resolution = float(from_plain(model.params.get("resolution", 0.0)))
    between = tuple((low, high) for low, high in limits.tolist()) if is_bound else ()
    return Recomputed(tuple(risks), tuple(objectives.tolist()), n_clipped, resolution, between)


def into_support(X: Array, support: Support) -> tuple[Array, int]:
    """Rows within the support, and how many values had to be moved."""
    box = check_support(support, X.shape[1])
    if box is None:
        return X, 0
    inside: Array = np.clip(X, box.low, box.high)
    return inside, int(np.count_nonzero(inside != X))


def signs_of(codes: Any, k: int, n_models: int) -> Array:
    """Labels -1 and +1 for a model: the second class, or class k, against the rest."""
    return np.where(codes == (1 if n_models == 1 else k), 1.0, -1.0)


def class_weights(model: LinearModel, codes: Any) -> Array:
    """One weight per class, as training had it; "balanced" is over all rows."""
    given = from_plain(model.params.get("class_weight"))
    n_classes = len(model.classes)
    if given is None:
        return np.ones(n_classes)
    if isinstance(given, str):
        counts = np.bincount(codes, minlength=n_classes)
        return np.asarray(len(codes) / (n_classes * np.maximum(counts, 1)))
    return np.array([float(given.get(label, 1.0)) for label in model.classes])


def flips(model: LinearModel, rows: Rows, norm: str | None = None) -> Flips:
    """How far rows must move, in scaled features, for the model's decisions to turn."""
    check_fits(model, rows)
    scaling, support = Scaling.of(model), from_plain(model.params.get("support"))
    X, _ = into_support(scaling.apply(rows.X), support)
    chosen: Any = norm or model.params.get("norm", "linf")
    turn = flipping_perturbation(scaling.unfold(model), X, norm=chosen, support=support)
    costs, bounds = np.sort(turn.cost), np.sort(turn.lower_bound)
    # The least cost within which at least that share of the rows turns.
    places = {share: max(math.ceil(share * len(costs)) - 1, 0) for share in SHARES}
    moves, least = (
        {share: float(each[at]) for share, at in places.items()} for each in (costs, bounds)
    )
    return Flips(costs, moves, least)


def confidence(
    model: LinearModel,
    counts: Mapping[str, int],
    c1: float,
    c2: float,
    a: float = 2.0,
    *,
    independent: bool = True,
) -> float:
    """Probability, at least, that the true mixture lies in the balls: [confidence]."""
    if model.estimator not in ROBUST:
        raise UnsupportedError(f"a {model.estimator} has no ball, and no confidence")
    own = balls(model, counts)
    if any(math.isinf(ball.kappa) for ball in own.values()):
        raise UnsupportedError(
            "with kappa = inf the balls hold only the shares of labels that were recorded, and "
            "there is no confidence: train with a finite kappa"
        )
    radii, n_rows = [ball.epsilon for ball in own.values()], list(counts.values())
    constants: dict[str, Any] = {"c1": c1, "c2": c2, "a": a, "independent": independent}
    return mowb_confidence(radii, n_rows, model.n_features, **constants)


def training_counts(model: LinearModel) -> dict[str, int]:
    """Rows of each client in training, if the file has them."""
    kept = model.record.get("data", {}).get("rows", {})
    counts = {str(name): int(count) for name, count in kept.items()}
    if model.estimator == "DRSVC" and counts:
        return {POOLED: sum(counts.values())}
    return counts


def in_words(model: LinearModel) -> list[str]:
    """What was wrong in training, if anything was, and the certificate as sentences."""
    said = model.record.get(VERDICT)
    return [*([] if said is None else [f"Warning: {said}."]), *certificate_words(model)]


def certificate_words(model: LinearModel) -> list[str]:
    """The certificate as sentences."""
    facts = proved(model)
    if not facts:
        return ["The file holds no certificate: it says nothing about how good the model is."]
    words = []
    left_out = from_plain(model.certificate.get("left_out", {}))
    if left_out:
        names = ", ".join(f"{name} (after round {round_})" for name, round_ in left_out.items())
        words.append(
            f"The run went on without {names}: what follows is true of the other clients' data, "
            "and says nothing of theirs."
        )
    cut = []
    if model.threshold != 0.0:
        cut = [
            "This is proved about the scores. Where they are cut, at a threshold of "
            f"{model.threshold:.6g}, is a decision of its own, of which nothing is proved."
        ]
    if model.estimator in ROBUST:
        about = [_objective_words(one, model) for one in facts]
        return [*words, *about, _ball_words(model), *_map_words(model), *cut]
    worst = max(one.gap for one in facts)
    return [
        *words,
        f"A {model.estimator} guards against nothing: it minimises the hinge loss and a penalty. "
        f"Its best iterate is within {worst:.1e} (relative) of the least value of that objective.",
        *cut,
    ]


def _objective_words(one: Proved, model: LinearModel) -> str:
    whose = "The model" if one.label is None else f"Class {one.label!r} against the rest"
    if not math.isfinite(one.objective):
        return f"{whose} was never evaluated by every client: nothing is proved of it."
    reach = "" if math.isinf(one.bound_radius) else f" with ||w||_* up to {one.bound_radius:.4g}"
    if model.features is not None:
        return (
            f"{whose} has a worst-case risk of at most {one.objective:.6g}. For no model of this "
            f"feature map{reach} would training have proved less than {one.lower_bound:.6g}, so "
            f"this one is within {one.gap:.2g} (relative) of the best."
        )
    return (
        f"{whose} has a worst-case risk of {one.objective:.6g}. No linear model{reach} has one "
        f"below {one.lower_bound:.6g}, so this one is within {one.gap:.2g} (relative) of the best."
    )


def _map_words(model: LinearModel) -> list[str]:
    """What the certificate of a model with a feature map covers, and what it leaves open."""
    if model.features is None:
        return []
    return [
        f"Distances are those of the sensors, in front of the model's feature map "
        f"({model.features.kind}): the certificate covers whatever sensors and labels do within "
        "the radius, also if the map makes more of it. The true worst case may be smaller; how "
        "much at most, certify says if it is given the data."
    ]


def _ball_words(model: LinearModel) -> str:
    params = {name: from_plain(value) for name, value in model.params.items()}
    try:
        radii = sorted({ball.epsilon for ball in balls(model, training_counts(model)).values()})
    except (ValueError, UnsupportedError):  # clients are not known by name
        radii = []
    radius = f"{radii[0]:.4g}" if radii else str(params["epsilon"])
    if len(radii) > 1:
        radius += f" to {radii[-1]:.4g}, by client,"
    kappa = params["kappa"]
    labels = "A wrong label costs as much of that as a move by kappa, which differs by client."
    if isinstance(kappa, float | int):
        labels = f"A wrong label costs as much of that as a move by kappa = {kappa:g}."
        if math.isinf(kappa):
            labels = "Labels are trusted (kappa = inf)."
    return (
        "Guarded against: every distribution of data that is, on average over the rows, at most "
        f"epsilon = {radius} away from what was recorded, measured in {Scaling.of(model).unit}, "
        f"{_NORM_WORDS[params['norm']]} {labels}"
    )
