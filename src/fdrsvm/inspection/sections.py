"""The sections of a model's page, each from numbers to HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.plain_json import from_plain
from fdrsvm.data.rows import Rows
from fdrsvm.inspection.certifying import (
    Recomputed,
    certificate_words,
    flips,
    grouped,
    into_support,
    recompute,
    signs_of,
    stated_risks,
)
from fdrsvm.inspection.charts import (
    Dots,
    Line,
    Points,
    dot_chart,
    line_chart,
    number,
    scatter_chart,
)
from fdrsvm.inspection.explain import (
    FlippingPerturbation,
    WorstCaseAtom,
    flipping_perturbation,
    worst_case_atoms,
)
from fdrsvm.inspection.fitted import check_row
from fdrsvm.inspection.markup import escape
from fdrsvm.inspection.scores import score
from fdrsvm.inspection.verdict import ignores_features, verdict
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.trained_ball import ROBUST, Ball, Overrides, balls
from fdrsvm.model.unscaling import Scaling
from fdrsvm.risk.distribution import worst_case_distribution

_MOST_BARS = 20
_N_RADII = 16
_MOST_POINTS = 120
_MOST_DOTS = 800
_NO_FEATURE = (
    "<p>No feature matters: the model gives all rows (almost) the same score, and decides on its "
    "intercept alone.</p>"
)


def verdict_line(model: LinearModel, rows: Rows | None) -> str:
    """What is wrong with the model on these data, or on those of training; else nothing."""
    said = verdict(model, rows)
    return "" if said is None else f'<p class="verdict">Warning: {escape(said)}.</p>'


def summary(model: LinearModel, rows: Rows | None, fault: str | None = None) -> str:
    """What it is, in a table."""
    facts: list[tuple[str, str]] = [
        ("estimator", _parameter_words(model)),
        ("classes", ", ".join(map(str, model.classes))),
        ("features", f"{model.n_features}, scaling: {Scaling.of(model).method}"),
    ]
    counts = model.record.get("data", {}).get("rows", {})
    if counts:
        facts.append(("trained on", f"{sum(counts.values())} rows of {len(counts)} clients"))
    if "n_iter" in model.certificate:
        said = f"{model.certificate['n_iter']}; {model.certificate.get('stop_reason', '')}"
        facts.append(("rounds", said))
    if rows is not None:
        facts.append(("data of this page", _data_words(rows)))
        whole = score(model, rows, fault)[-1]
        f1 = "mean F1" if whole.f1_of is None else f"F1 of {whole.f1_of!r}"
        facts.append(
            (
                "on these data",
                f"accuracy {whole.accuracy:.3f}, {f1} {whole.f1:.3f}, balanced accuracy "
                f"{whole.balanced_accuracy:.3f}",
            )
        )
    body = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts
    )
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def certificate(model: LinearModel) -> str:
    """What is proved, in sentences."""
    sentences = "".join(f"<p>{escape(text)}</p>" for text in certificate_words(model))
    return f"<h2>What is proved</h2>{sentences}"


def rounds(model: LinearModel) -> str:
    """Objective, bound and gap by round, if the file has kept them."""
    history = model.record.get("history", {})
    title = "<h2>Training</h2>"
    if not history.get("round"):
        return title + '<p class="note">The file keeps no rounds of its training.</p>'
    x = [float(each) for each in history["round"]]
    tol = from_plain(model.params.get("tol"))
    upper, lower, gaps = (history[name] for name in ("objective", "lower_bound", "gap"))
    is_mean = len(model.classes) > 2
    objective = line_chart(
        [
            Line("objective of the best model so far", x, upper),
            # A bound below 0 says nothing, since no loss is negative.
            Line("no model can go below", x, [max(b, 0.0) for b in lower], 1, dashed=True),
        ],
        x_label="round",
        y_label="objective, mean over classes" if is_mean else "objective",
        description="objective and certified lower bound by round",
    )
    gap = line_chart(
        [Line("certified relative gap", x, gaps)],
        x_label="round",
        y_label="relative gap",
        description="certified relative gap by round",
        log_y=True,
        level=(tol, f"tol = {tol:g}") if isinstance(tol, float) and tol > 0.0 else None,
    )
    sent = sum(history.get("bytes_up", []))
    said = f"<p>All clients together sent {sent / 1000.0:.1f} kB in {len(x)} rounds.</p>"
    return title + said + objective + gap


def stated_clients(model: LinearModel) -> str:
    """Risk per client, as the file has it."""
    if model.estimator != "FDRSVC":
        return ""
    risks = {name: float(np.mean(each)) for name, each in stated_risks(model).items()}
    mean = " (mean over classes)" if len(model.classes) > 2 else ""
    return (
        f"<h2>Risk per client</h2><p>Worst-case risk on the rows of training{mean}, worst first."
        f"</p>{_bars(risks)}"
    )


def clients(model: LinearModel, rows: Rows) -> str:
    """Risk per client on the data, beside what the file says."""
    if model.estimator not in ROBUST:
        return ""
    again = recompute(model, rows)
    has_classes = len(model.classes) > 2
    scores = {one.client: one for one in score(model, rows)}
    head = "".join(
        f"<th>{name}</th>"
        for name in (
            "client",
            *(("class",) if has_classes else ()),
            "rows",
            "accuracy",
            "mean loss",
            "worst-case risk",
            "in the file",
        )
    )
    body = "".join(
        "<tr>"
        + f"<td>{escape(one.client)}</td>"
        + (f"<td>{escape(str(one.label))}</td>" if has_classes else "")
        + f"<td>{one.n_rows}</td>"
        + f"<td>{scores[one.client].accuracy:.3f}</td>"
        + f"<td>{number(one.mean_loss)}</td><td>{number(one.worst_case)}</td>"
        + f"<td>{'-' if one.stated is None else number(one.stated)}</td></tr>"
        for one in sorted(again.risks, key=lambda one: -one.worst_case)
    )
    return (
        "<h2>Risk per client</h2><p>The mean loss is that on the rows as they are, the worst-case "
        f"risk the largest within the radius. {_agreement(again)}</p>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def features(model: LinearModel, rows: Rows | None) -> str:
    """Which features matter: weights, in units in which features compare."""
    title = "<h2>Which features matter</h2>"
    if ignores_features(model, rows):
        return title + _NO_FEATURE
    if rows is None:
        weights = Scaling.of(model).unfold(model).coef
        unit = f"one of {Scaling.of(model).unit}"
    else:
        weights = model.coef * rows.X.std(axis=0)
        unit = "one standard deviation of it in these data"
    names = model.feature_names or tuple(f"x{p}" for p in range(model.n_features))
    said = f"<p>How much the score changes if one feature moves by {unit} and the others stay.</p>"
    if len(model.classes) == 2:
        low, high = (escape(str(label)) for label in model.classes)
        legend = f'<p class="legend"><span><i class="s0"></i>towards {high}</span>'
        legend += f'<span><i class="s1"></i>towards {low}</span></p>'
        blocks = legend + _bars(_strongest(names, weights[0]), signed=True)
    else:
        blocks = "".join(
            f"<h3>Class {escape(str(label))}</h3>{_bars(_strongest(names, row), signed=True)}"
            for label, row in zip(model.classes, weights, strict=True)
        )
    return f"{title}{said}{blocks}"


def radius(model: LinearModel, rows: Rows) -> str:
    """Worst-case risk against the radius."""
    groups = grouped(model, rows)
    counts = {name: len(part.X) for name, part in groups.items()}
    own = [0.0]
    if model.estimator in ROBUST:
        own = [ball.epsilon for ball in balls(model, counts).values()]
    widest = 3.0 * max(own)
    if widest == 0.0 and not ignores_features(model, rows):
        widest = 0.5 * float(np.median(flips(model, rows).costs))
    if not 0.0 < widest < math.inf:
        return ""
    radii = np.linspace(0.0, widest, _N_RADII)
    found = np.array([recompute(model, rows, Overrides(float(r))).objectives for r in radii])
    mark = (float(np.mean(own)), "radius in training") if max(own) > 0.0 else None
    labels = ["worst-case risk"] if found.shape[1] == 1 else list(map(str, model.classes))
    lines = [
        Line(label, radii.tolist(), found[:, k].tolist(), k % 4, dashed=k >= 4)
        for k, label in enumerate(labels)
    ]
    chart = line_chart(
        lines,
        x_label=f"radius ({Scaling.of(model).unit})",
        y_label="worst-case risk",
        description="worst-case risk against the radius",
        mark=mark,
    )
    return (
        "<h2>If data are further off than thought</h2><p>The largest mean loss over all data "
        "within a radius of these: exact, not sampled. At radius 0 it is the plain loss.</p>"
        + chart
    )


def worst_case(model: LinearModel, rows: Rows) -> str:
    """What the worst data within the radius do to each row, for two classes."""
    if model.estimator not in ROBUST or len(model.classes) > 2:
        return ""
    groups = grouped(model, rows)
    own = balls(model, {name: len(part.X) for name, part in groups.items()})
    scaling = Scaling.of(model)
    scaled, box = scaling.unfold(model), _box(model, rows)
    atoms = [_worst_margins(scaled, scaling, groups[name], own[name], box) for name in groups]
    before, after, changed = (np.concatenate(each) for each in zip(*atoms, strict=True))
    stays, moves, wrong = (changed == k for k in range(3))
    clouds = [
        Points(name, before[which].tolist(), after[which].tolist(), colour)
        for name, which, colour in (
            ("stays", stays, 0),
            ("is moved", moves, 1),
            ("has its label changed", wrong, 3),
        )
        if which.any()
    ]
    chart = scatter_chart(
        _thinned(clouds),
        x_label="margin as recorded",
        y_label="in the worst case",
        description="margins of all rows as recorded and in the worst case",
    )
    return (
        "<h2>What the worst case does</h2><p>A margin is the score, counted as positive where the "
        "model is right; below 1 there is a loss. Of the parts into which the worst data within "
        f"the radius split the rows, {int(stays.sum())} stay, {int(moves.sum())} are moved and "
        f"{int(wrong.sum())} have another label.{_range_words(model)}</p>{chart}"
    )


def _worst_margins(
    scaled: LinearModel, scaling: Scaling, rows: Rows, ball: Ball, box: Any
) -> tuple[Array, Array, Any]:
    """Margins before and after, and whether an atom stays (0), moves (1) or is relabelled (2)."""
    X, _ = into_support(scaling.apply(rows.X), ball)
    signs = signs_of(rows.codes(scaled.classes), 0, 1)
    w, b = scaled.coef[0], float(scaled.intercept[0])
    options = {**ball.options(), "support": box}
    del options["loss"]  # the distribution is that of the hinge
    worst = worst_case_distribution(w, X, signs, intercept=b, **options)
    source = worst.source_index
    is_moved = (worst.points != X[source]).any(axis=1)
    is_wrong = worst.labels != signs[source]
    before = signs * (X @ w + b)
    after = worst.labels * (worst.points @ w + b)
    return before[source], after, np.where(is_wrong, 2, is_moved.astype(int))


def _thinned(clouds: Sequence[Points]) -> list[Points]:
    """Few enough points for a page; each cloud keeps its share."""
    total = sum(len(cloud.x) for cloud in clouds)
    step = max(1, -(-total // _MOST_DOTS))
    return [Points(c.name, c.x[::step], c.y[::step], c.colour) for c in clouds]


def _box(model: LinearModel, rows: Rows) -> Any:
    """The support, or for want of one the range of the data."""
    support = from_plain(model.params.get("support"))
    if support is not None:
        return support
    X = Scaling.of(model).apply(rows.X)
    return X.min(axis=0), X.max(axis=0)


def _range_words(model: LinearModel) -> str:
    if model.params.get("support") is not None:
        return ""
    return (
        " The model knows no limits of its features; here they are held to the range of the data."
    )


def turning(model: LinearModel, rows: Rows) -> str:
    """How many decisions turn within a distance."""
    if ignores_features(model, rows):
        return "<h2>What turns decisions</h2>" + _NO_FEATURE
    found = flips(model, rows)
    costs = found.costs[np.isfinite(found.costs)]
    said = "; ".join(
        f"{part:.0%} within {number(move)}" for part, move in found.moves.items()
    ).replace("within ∞", "cannot be turned")
    if not costs.size:
        return "<h2>What turns decisions</h2><p>No decision can be turned within the support.</p>"
    places = np.unique(np.linspace(0, costs.size - 1, _MOST_POINTS).astype(int))
    chart = line_chart(
        [
            Line(
                "decisions turned",
                costs[places].tolist(),
                ((places + 1) / len(found.costs)).tolist(),
            )
        ],
        x_label=f"distance ({Scaling.of(model).unit})",
        y_label="share of the rows",
        description="share of decisions that turn within a distance",
    )
    return (
        "<h2>What turns decisions</h2><p>How far a row must move for the model to decide "
        f"otherwise, in the norm {_norm(model)}: {escape(said)} ({Scaling.of(model).unit}).</p>"
        f"{chart}"
    )


def one_sample(model: LinearModel, rows: Rows, sample: int | None) -> str:
    """One row: its score by feature, what turns it, and where the worst case sends it."""
    if sample is not None:
        check_row(sample, len(rows.X), "sample")
    if ignores_features(model, rows):
        return "<h2>One row, explained</h2>" + _NO_FEATURE
    scaling = Scaling.of(model)
    support = from_plain(model.params.get("support"))
    X, _ = into_support(scaling.apply(rows.X), Ball(0.0, 1.0, "linf", support, "hinge"))
    turn = flipping_perturbation(
        scaling.unfold(model),
        X,
        norm=_norm(model),  # type: ignore[arg-type]
        support=support,
    )
    if sample is None:
        sample = int(np.argsort(turn.cost, kind="stable")[len(turn.cost) // 2])
        why = "of all rows, half turn more easily and half less"
    else:
        why = "the row asked for"
    atoms, sign = _worst_atoms(model, rows, X, sample)
    client = str(rows.clients[sample])
    score = np.atleast_1d(model.decision_function(rows.X[[sample]])[0])
    said = (
        f"<p>Row {sample}, of client {escape(client)}: {why}. Its label is "
        f"{escape(str(rows.labels[sample]))}, the model says {escape(str(turn.labels[sample]))} "
        f"(score {', '.join(map(number, score))}).</p>"
    )
    return (
        "<h2>One row, explained</h2>"
        + said
        + _turn_words(turn, sample, scaling)
        + _sample_chart(model, rows, turn, atoms, sample)
        + _turn_table(rows, turn, sample, scaling)
        + _atom_words(atoms, sign, _range_words(model))
    )


def _worst_atoms(
    model: LinearModel, rows: Rows, X: Array, sample: int
) -> tuple[tuple[WorstCaseAtom, ...], float]:
    """What the worst case does to one row, among those that share its ball, and the row's sign.

    Nothing if there is no ball.
    """
    if model.estimator not in ROBUST:
        return (), 0.0
    mine = np.flatnonzero(
        np.ones(len(X), dtype=bool)
        if model.estimator == "DRSVC"
        else rows.clients == rows.clients[sample]
    )
    group = next(iter(grouped(model, rows))) if model.estimator == "DRSVC" else rows.clients[sample]
    ball = balls(model, {str(group): len(mine)})[str(group)]
    codes = rows.codes(model.classes)
    scaled = Scaling.of(model).unfold(model)
    k = 0 if len(scaled.coef) == 1 else int(codes[sample])
    signs = signs_of(codes[mine], k, len(scaled.coef))
    alone = LinearModel.checked(
        scaled.coef[[k]], scaled.intercept[[k]], (-1.0, 1.0), estimator=model.estimator
    )
    place = int(np.flatnonzero(mine == sample)[0])
    atoms = worst_case_atoms(
        alone,
        X[mine],
        signs,
        place,
        epsilon=ball.epsilon,
        kappa=ball.kappa,
        norm=ball.norm,  # type: ignore[arg-type]
        support=_box(model, rows),
    )
    return atoms, float(signs[place])


def _turn_words(turn: FlippingPerturbation, sample: int, scaling: Scaling) -> str:
    if not turn.is_possible[sample]:
        return "<p>Nothing within the support turns this decision.</p>"
    return (
        f"<p>A move by {number(turn.cost[sample])} ({scaling.unit}) turns it to "
        f"{escape(str(turn.flipped_labels[sample]))}; the table has the features that move.</p>"
    )


def _sample_chart(
    model: LinearModel,
    rows: Rows,
    turn: FlippingPerturbation,
    atoms: Sequence[WorstCaseAtom],
    sample: int,
) -> str:
    scaled = turn.values
    low, high = scaled.min(axis=0), scaled.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    strongest = np.argsort(-np.abs(model.coef * rows.X.std(axis=0)).max(axis=0), kind="stable")
    shown = strongest[:_MOST_BARS]
    series = [Dots("the row", _places(scaled[sample], low, span, shown))]
    if turn.is_possible[sample]:
        series.append(Dots("turned", _places(turn.points[sample], low, span, shown), 1))
    moved = next((atom for atom in atoms if (atom.point != scaled[sample]).any()), None)
    if moved is not None:
        series.append(Dots("in the worst case", _places(moved.point, low, span, shown), 3))
    names = [rows.feature_names[p] for p in shown]
    series.reverse()  # so that the row itself lies on top
    chart = dot_chart(names, series, description="the row between the ends of the data")
    return f'<p class="note">From the smallest to the largest value in the data:</p>{chart}'


def _places(point: Array, low: Array, span: Array, shown: Any) -> list[float | None]:
    return [float(place) for place in ((point - low) / span)[shown]]


def _turn_table(rows: Rows, turn: FlippingPerturbation, sample: int, scaling: Scaling) -> str:
    changes = turn.changes(sample)[:_MOST_BARS]
    if not changes:
        return ""
    before = rows.X[sample]
    after = scaling.undo(turn.points[[sample]])[0]
    places = {name: p for p, name in enumerate(turn.feature_names)}
    body = "".join(
        f"<tr><td>{escape(rows.feature_names[p])}</td><td>{number(before[p])}</td>"
        f"<td>{number(after[p])}</td><td>{number(after[p] - before[p])}</td></tr>"
        for p in (places[change.feature] for change in changes)
    )
    return (
        '<div class="scroll"><table><thead><tr><th>feature</th><th>recorded</th><th>turned</th>'
        f"<th>change</th></tr></thead><tbody>{body}</tbody></table></div>"
    )


def _deed(atom: WorstCaseAtom, sign: float) -> str:
    if atom.label != sign:
        return "gets another label"
    return "stays" if atom.cost == 0.0 else "moves"


def _atom_words(atoms: Sequence[WorstCaseAtom], sign: float, held: str) -> str:
    if not atoms:
        return ""
    whole = sum(atom.mass for atom in atoms)
    parts = "; ".join(
        f"{atom.mass / whole:.0%} {_deed(atom, sign)}"
        + (f" at a cost of {number(atom.cost)}" if atom.cost > 0.0 else "")
        for atom in atoms
    )
    return (
        "<h3>Where the worst case sends it</h3><p>The worst data within the radius spend a budget "
        f"that all rows of a client share, where it does most harm. Of this row, {parts}.{held} "
        "(For the hinge loss.)</p>"
    )


def _agreement(again: Recomputed) -> str:
    if again.agrees is None:
        return "The file says nothing about some of these clients."
    return (
        "They are those in the file."
        if again.agrees
        else "They differ from those in the file: the data are not those of training."
    )


def _data_words(rows: Rows) -> str:
    n_clients = len(rows.client_names)
    return f"{len(rows.X)} rows of {n_clients} client{'' if n_clients == 1 else 's'}"


def _parameter_words(model: LinearModel) -> str:
    shown = ("algorithm", "epsilon", "kappa", "norm", "support", "loss")
    said = [f"{name} = {_plain(model.params[name])}" for name in shown if name in model.params]
    return f"{model.estimator}({', '.join(said)})"


def _plain(value: Any) -> str:
    value = from_plain(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping | list | tuple | np.ndarray):
        return "by client" if isinstance(value, Mapping) else "given as a list"
    return str(value)


def _norm(model: LinearModel) -> str:
    return str(model.params.get("norm", "linf"))


def _strongest(names: Sequence[str], weights: Array) -> dict[str, float]:
    order = np.argsort(-np.abs(weights), kind="stable")[:_MOST_BARS]
    return {names[p]: float(weights[p]) for p in order}


def _bars(values: Mapping[str, float], *, signed: bool = False) -> str:
    """Horizontal bars, the largest first."""
    largest = max((abs(v) for v in values.values() if math.isfinite(v)), default=0.0) or 1.0
    items = []
    for name, value in sorted(values.items(), key=lambda item: -abs(item[1])):
        size = min(abs(value) / largest, 1.0) * (50.0 if signed else 100.0)
        start = (50.0 - size if value < 0.0 else 50.0) if signed else 0.0
        colour = "s1" if value < 0.0 else "s0"
        items.append(
            f'<span class="name" title="{escape(name)}">{escape(name)}</span>'
            f'<span class="track{" signed" if signed else ""}"><i class="{colour}" '
            f'style="left:{start:.1f}%;width:{size:.1f}%"></i></span>'
            f'<span class="value">{number(value)}</span>'
        )
    return f'<div class="bars">{"".join(items)}</div>'
