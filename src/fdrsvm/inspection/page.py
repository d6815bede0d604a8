"""A model's page: one file, no network. This module computes, ``model.html.j2`` writes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from fdrsvm.core.arrays import Array
from fdrsvm.core.plain_json import from_plain
from fdrsvm.data.rows import Rows
from fdrsvm.inspection import certifying
from fdrsvm.inspection.charts import Series, dot_chart, line_chart, scatter_chart
from fdrsvm.inspection.explain import flipping_perturbation, worst_case_atoms
from fdrsvm.inspection.fitted import check_row, names_for
from fdrsvm.inspection.rendering import render
from fdrsvm.inspection.scores import (
    Score,
    counting_words,
    false_alarm_words,
    fault_place,
    found_words,
    one_class_words,
    score,
)
from fdrsvm.inspection.shapes import Shapes
from fdrsvm.inspection.stragglers import stragglers
from fdrsvm.inspection.summary import RowRate, opening, settings_words
from fdrsvm.inspection.terms import sensor_shares, term_names, term_sizes
from fdrsvm.inspection.verdict import ignores_features, verdict
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.trained_ball import ROBUST, Overrides, balls
from fdrsvm.model.unscaling import Scaling
from fdrsvm.risk.distribution import worst_case_distribution
from fdrsvm.risk.feature_maps import AdditiveFeatures, FourierFeatures

_MOST_BARS = 20
_LEAST_VISIBLE = 1e-3  # of the largest bar
_N_RADII = 16
_MOST_POINTS = 120
_MOST_DOTS = 800
_FAR = 100.0  # times the range of the data: a move that no machine makes
_SHOWN = ("algorithm", "epsilon", "kappa", "norm", "support", "loss", "class_weight")


def model_page(
    model: LinearModel,
    rows: Rows | None = None,
    *,
    name: str = "model",
    sample: int | None = None,
    fault: str | None = None,
    every: RowRate | None = None,
    others: Sequence[Score] = (),
) -> str:
    """A page about one model: HTML without references to anything outside it.

    Parameters
    ----------
    model : LinearModel
        From a model file.
    rows : Rows, optional
        Data with labels; without them the page shows what the file alone tells.
    name : str
        What to call the model.
    sample : int, optional
        Row to explain, from 0; by default one that is neither easy nor hard to turn.
    fault : str, optional
        Of two classes the one looked for; by default the rarer one in training.
    every : RowRate, optional
        How often a plant gets a row, to tell false alarms a week.
    others : sequence of Score
        Of models to compare with, on the same rows.
    """
    is_flat = ignores_features(model, rows)
    scores = [] if rows is None else score(model, rows, fault)
    place = model.positive if rows is None else fault_place(model, rows, fault)
    wrong = verdict(model, rows)
    weak = {} if rows is None or wrong is not None else stragglers(model, rows, scores)
    values: dict[str, Any] = {
        "title": f"FDR-SVM: {name}",
        "model": model,
        "verdict": wrong,
        "weak": weak,
        "short": opening(model, rows, place, scores, others, every, is_flat=is_flat),
        "settings": settings_words(model, place),
        "params": {key: _in_short(model.params[key]) for key in _SHOWN if key in model.params},
        "row_counts": model.record.get("data", {}).get("rows", {}),
        "certificate": certifying.certificate_words(model),
        "training": training(model),
        "ignores_features": is_flat,
        "features": None if is_flat else feature_bars(model, rows),
        "map_kind": None if model.features is None else model.features.kind,
        "shapes": None,
        "scaling": Scaling.of(model),
        "has_support": model.params.get("support") is not None,
        "norm": model.params.get("norm", "linf"),
    }
    if isinstance(model.features, AdditiveFeatures) and not is_flat:
        values["shapes"] = Shapes(model, rows, place).charts()
    if rows is None:
        values["clients"] = stated_bars(model)
    else:
        if sample is not None:
            check_row(sample, len(rows.X), "sample")
        subject = _Subject(model, rows)
        asked, one_sided = fault is not None, one_class_words(scores)
        values |= {
            "score": scores[-1],
            "counting": " ".join([counting_words(model, place, was_asked_for=asked), *one_sided]),
            "clients": client_table(model, rows, scores),
            "radius": radius_chart(subject, is_flat=is_flat),
            "worst_case": worst_case(subject),
            "turning": None if is_flat else turning(model, rows, subject.reach),
            "sample": None if is_flat else one_sample(subject, sample),
        }
    values |= {"found_words": found_words, "false_alarm_words": false_alarm_words}
    return str(render("model.html.j2", rows=rows, **values))


class _Subject:
    """Model and rows in scaled features, as in training, and the ball of each group of rows."""

    def __init__(self, model: LinearModel, rows: Rows) -> None:
        self.model, self.rows = model, rows
        self.scaling, self.support = Scaling.of(model), from_plain(model.params.get("support"))
        self.scaled = self.scaling.unfold(model)
        X = self.scaling.apply(rows.X)
        # Without a support, features are held to the range of the data.
        self.box = (X.min(axis=0), X.max(axis=0)) if self.support is None else self.support
        self.X, _ = certifying.into_support(X, self.support)
        spread = X.max(axis=0) - X.min(axis=0)
        # No distance far beyond the data means anything; of equal rows nobody knows what is far.
        self.reach = float(spread.max()) or math.inf
        self.members = certifying.members(model, rows)
        counts = {name: len(group) for name, group in self.members.items()}
        trained = balls(model, counts) if model.estimator in ROBUST else {}
        self.balls: dict[str, dict[str, Any]] = {}  # as keyword arguments; the loss is the hinge
        for name, ball in trained.items():
            self.balls[name] = {**ball.options(), "support": self.box}
            del self.balls[name]["loss"]


def _in_short(value: Any) -> str:
    value = from_plain(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return "by client"
    return "given as a list" if isinstance(value, list | tuple | np.ndarray) else str(value)


def training(model: LinearModel) -> dict[str, Any] | None:
    """Objective, bound and gap by round, if the file has kept them."""
    history = model.record.get("history", {})
    if not history.get("round"):
        return None
    x = [float(each) for each in history["round"]]
    tol = from_plain(model.params.get("tol"))
    # A bound below 0 says nothing, since no loss is negative.
    lower = [max(bound, 0.0) for bound in history["lower_bound"]]
    objective = line_chart(
        [
            Series("objective of the best model so far", x, history["objective"]),
            Series("no model can go below", x, lower, 1, dashed=True),
        ],
        x_label="round",
        y_label="objective, mean over classes" if len(model.classes) > 2 else "objective",
        description="objective and certified lower bound by round",
    )
    gap = line_chart(
        [Series("certified relative gap", x, history["gap"])],
        x_label="round",
        y_label="relative gap",
        description="certified relative gap by round",
        log_y=True,
        level=(tol, f"tol = {tol:g}") if isinstance(tol, float) and tol > 0.0 else None,
    )
    sent = sum(history.get("bytes_up", []))
    return {"kilobytes": sent / 1000.0, "n_rounds": len(x), "charts": [objective, gap]}


def stated_bars(model: LinearModel) -> list[dict[str, Any]] | None:
    """Risk per client, as the file has it."""
    if model.estimator != "FDRSVC":
        return None
    risks = certifying.stated_risks(model)
    return _bars(list(risks), [float(np.mean(each)) for each in risks.values()])


def client_table(model: LinearModel, rows: Rows, scores: Sequence[Score]) -> dict[str, Any] | None:
    """Risk per client on the data, beside what the file says, worst first."""
    if model.estimator not in ROBUST:
        return None
    again = certifying.recompute(model, rows)
    return {
        "risks": sorted(again.risks, key=lambda one: -one.worst_case),
        "accuracy": {one.client: one.accuracy for one in scores},
        "has_classes": len(model.classes) > 2,
        "agrees": again.agrees,
    }


def feature_bars(model: LinearModel, rows: Rows | None) -> list[list[dict[str, Any]]]:
    """Weights in units in which features compare, the strongest first, for each score.

    With a map: how much sensors and pairs matter, which has no sign.
    """
    if model.features is not None:
        names, sizes = term_names(model), term_sizes(model, rows)
        counts = (sizes > _LEAST_VISIBLE * sizes.max(axis=1, keepdims=True)).sum(axis=1).tolist()
        return [
            _bars(names, row, most=min(count, _MOST_BARS))
            for row, count in zip(sizes, counts, strict=True)
        ]
    weights = Scaling.of(model).unfold(model).coef
    if rows is not None:
        weights = model.coef * rows.X.std(axis=0)
    return [_bars(names_for(model), row, signed=True, most=_MOST_BARS) for row in weights]


def _bars(
    names: Sequence[str],
    values: Sequence[float] | Array,
    *,
    signed: bool = False,
    most: int | None = None,
) -> list[dict[str, Any]]:
    """Horizontal bars, the largest first."""
    sizes = np.nan_to_num(np.abs(values), posinf=np.inf)
    order = np.argsort(-sizes, kind="stable")[:most]
    largest = float(np.max(sizes, where=np.isfinite(sizes), initial=0.0)) or 1.0
    bars = []
    for at in order:
        size = min(float(sizes[at]) / largest, 1.0) * (50.0 if signed else 100.0)
        start = (50.0 - size if values[at] < 0.0 else 50.0) if signed else 0.0
        bars.append({"name": names[at], "value": float(values[at]), "start": start, "size": size})
    return bars


def radius_chart(subject: _Subject, *, is_flat: bool) -> Markup | None:
    """Worst-case risk against the radius."""
    model, rows = subject.model, subject.rows
    own = [ball["epsilon"] for ball in subject.balls.values()] or [0.0]
    widest = 3.0 * max(own)
    if widest == 0.0 and not is_flat:
        widest = 0.5 * float(np.median(certifying.flips(model, rows).costs))
    if not 0.0 < widest < _FAR * subject.reach:
        return None
    radii = np.linspace(0.0, widest, _N_RADII)
    again = [certifying.recompute(model, rows, Overrides(float(radius))) for radius in radii]
    risks = np.array([one.objectives for one in again])
    labels = ["worst-case risk"] if risks.shape[1] == 1 else list(map(str, model.classes))
    return line_chart(
        [
            Series(label, radii.tolist(), risks[:, k].tolist(), k % 4, dashed=k >= 4)
            for k, label in enumerate(labels)
        ],
        x_label=f"radius ({subject.scaling.unit})",
        y_label="worst-case risk",
        description="worst-case risk against the radius",
        mark=(float(np.mean(own)), "radius in training") if max(own) > 0.0 else None,
    )


def worst_case(subject: _Subject) -> dict[str, Any] | None:
    """What the worst data within the radius do to each row, for two classes and no map."""
    is_linear = subject.model.features is None
    if not subject.balls or len(subject.model.classes) > 2 or not is_linear:
        return None
    w, b = subject.scaled.coef[0], float(subject.scaled.intercept[0])
    codes = subject.rows.codes(subject.model.classes)
    signs = certifying.signs_of(codes, 0, 1)
    weights = certifying.class_weights(subject.model, codes)[codes]
    atoms = []  # margins before and after; 0 for an atom that stays, 1 moves, 2 is relabelled
    for group, ball in subject.balls.items():
        own = subject.members[group]
        X, y = subject.X[own], signs[own]
        worst = worst_case_distribution(w, X, y, intercept=b, sample_weight=weights[own], **ball)
        source = worst.source_index
        is_moved = (worst.points != X[source]).any(axis=1)
        before, after = y * (X @ w + b), worst.labels * (worst.points @ w + b)
        atoms.append((before[source], after, np.where(worst.labels != y[source], 2, is_moved)))
    before, after, change = (np.concatenate(each) for each in zip(*atoms, strict=True))
    step = -(-len(before) // _MOST_DOTS)  # few enough for a page; each cloud keeps its share
    kinds = ((0, "stays", 0), (1, "is moved", 1), (2, "has its label changed", 3))
    clouds = [
        Series(name, before[change == k][::step], after[change == k][::step], colour)
        for k, name, colour in kinds
        if (change == k).any()
    ]
    chart = scatter_chart(
        clouds,
        x_label="margin as recorded",
        y_label="in the worst case",
        description="margins of all rows as recorded and in the worst case",
    )
    return {"counts": np.bincount(change, minlength=3).tolist(), "chart": chart}


def turning(model: LinearModel, rows: Rows, reach: float) -> dict[str, Any]:
    """How many decisions turn within a distance; no chart if no row near the data turns one."""
    turns = certifying.flips(model, rows)
    costs = turns.costs[turns.costs < _FAR * reach]
    if not costs.size:
        return {"moves": {}, "chart": None, "least": None}
    places = np.unique(np.linspace(0, costs.size - 1, _MOST_POINTS).astype(int))
    shares = (places + 1) / len(turns.costs)
    chart = line_chart(
        [Series("decisions turned", costs[places].tolist(), shares.tolist())],
        x_label=f"distance ({Scaling.of(model).unit})",
        y_label="share of the rows",
        description="share of decisions that turn within a distance",
    )
    moves = {share: move if move < _FAR * reach else None for share, move in turns.moves.items()}
    return {"moves": moves, "chart": chart, "least": None if turns.is_exact else turns.least}


def one_sample(subject: _Subject, asked: int | None) -> dict[str, Any]:
    """One row: its score by feature, what turns it, and where the worst case sends it."""
    model, rows, scaling = subject.model, subject.rows, subject.scaling
    norm, support = model.params.get("norm", "linf"), subject.support
    turn = flipping_perturbation(subject.scaled, subject.X, norm=norm, support=support)
    middling = int(np.argsort(turn.cost, kind="stable")[len(turn.cost) // 2])
    sample = middling if asked is None else asked
    after = scaling.undo(turn.points[[sample]])[0]
    places = {name: p for p, name in enumerate(turn.feature_names)}
    changed = [places[change.feature] for change in turn.changes(sample)[:_MOST_BARS]]
    parts, moved_to = worst_parts(subject, sample)
    points = {"the row": (subject.X[sample], 0)}
    is_near = bool(turn.cost[sample] < _FAR * subject.reach)
    if is_near:
        points["turned"] = (turn.points[sample], 1)
    if moved_to is not None:
        points["in the worst case"] = (moved_to, 3)
    return {
        "row": sample,
        "was_asked_for": asked is not None,
        "client": str(rows.clients[sample]),
        "label": str(rows.labels[sample]),
        "decision": str(turn.labels[sample]),
        "score": np.atleast_1d(model.decision_function(rows.X[[sample]])[0]).tolist(),
        "cost": float(turn.cost[sample]) if is_near else None,
        "least": float(turn.lower_bound[sample]),
        "turned_to": str(turn.flipped_labels[sample]),
        "changes": [
            (rows.feature_names[p], rows.X[sample, p], after[p]) for p in changed if is_near
        ],
        "chart": sample_chart(subject, points),
        "parts": parts,
    }


def worst_parts(
    subject: _Subject, sample: int
) -> tuple[list[tuple[float, str, float]], Array | None]:
    """What the worst case does to one row, among those that share its ball.

    Shares of the row with what becomes of them and its cost, and the point of the first that moves.
    There are none without a ball; with a map a bound is known, and no distribution.
    """
    if not subject.balls or subject.model.features is not None:
        return [], None
    client = str(subject.rows.clients[sample])
    group = client if client in subject.balls else next(iter(subject.balls))
    members, ball, scaled = subject.members[group], subject.balls[group], subject.scaled
    codes = subject.rows.codes(subject.model.classes)
    k = 0 if len(scaled.coef) == 1 else int(codes[sample])
    signs = certifying.signs_of(codes[members], k, len(scaled.coef))
    place = int(np.flatnonzero(members == sample)[0])
    one_class = LinearModel.checked(
        scaled.coef[[k]], scaled.intercept[[k]], (-1.0, 1.0), estimator=scaled.estimator
    )
    weights = certifying.class_weights(subject.model, codes)[codes[members]]
    atoms = worst_case_atoms(
        one_class, subject.X[members], signs, place, sample_weight=weights, **ball
    )
    whole = sum(atom.mass for atom in atoms)
    parts, moved_to = [], None
    for atom in atoms:
        deed = "stays" if atom.cost == 0.0 else "moves"
        if atom.label != signs[place]:
            deed = "gets another label"
        parts.append((atom.mass / whole, deed, atom.cost))
        if moved_to is None and (atom.point != subject.X[sample]).any():
            moved_to = atom.point
    return parts, moved_to


def sample_chart(subject: _Subject, points: Mapping[str, tuple[Array, int]]) -> Markup:
    """Points between the smallest and the largest value of the features that matter most."""
    low, high = subject.X.min(axis=0), subject.X.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    model, rows = subject.model, subject.rows
    if isinstance(model.features, FourierFeatures):
        effects = term_sizes(model, rows).max(axis=0)
    else:
        effects = sensor_shares(model, rows.X).std(axis=0).max(axis=1)
    shown = np.argsort(-effects, kind="stable")[:_MOST_BARS]
    series = [
        Series(name, ((point - low) / span)[shown].tolist(), range(len(shown)), colour)
        for name, (point, colour) in points.items()
    ]
    return dot_chart(
        [subject.rows.feature_names[p] for p in shown],
        series[::-1],  # so that the row itself lies on top
        description="the row between the ends of the data",
    )
