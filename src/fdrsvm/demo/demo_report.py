"""The demo's page: one file, no network, readable on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from fdrsvm.core.files import write_atomically
from fdrsvm.datasets.pump import PumpData
from fdrsvm.demo import four_plants
from fdrsvm.demo.four_plants import DemoModel, joining_pays
from fdrsvm.federated.certificate import BOUND_REACH
from fdrsvm.inspection.charts import Series, line_chart
from fdrsvm.inspection.rendering import render

_COLOURS = {"plain SVM": 1, "FedAvg": 2, "FDR-SVM": 0}


def write_report(data: PumpData, models: Sequence[DemoModel], folder: Path, seed: int) -> Path:
    """Write ``index.html`` into ``folder`` and return its path."""
    robust, plants = models[-1].estimator, models[-1].plants
    sent = sum(record.bytes_up for record in robust.history_)
    page = render(
        "demo.html.j2",
        "fdrsvm.demo",
        wrong_labels=float(np.mean(data.y != data.y_true)),
        models=models,
        plants=plants,
        # What one plant sends in a round, envelope included, on average.
        kilobytes=sent / len(robust.history_) / len(robust.client_labels_) / 1000.0,
        demo=four_plants,
        bound_reach=BOUND_REACH,
        joining=joining_pays(plants),
        risk=draw_risk(models),
        training=draw_training(models),
        seed=seed,
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    write_atomically(path, page.encode())
    return path


def draw_risk(models: Sequence[DemoModel]) -> Markup:
    """Worst-case risk on the test set against the radius, one curve per model."""
    # Without a guard the curve leaves any picture that the other two can be told apart in.
    highest = 1.5 * max(model.risk[-1] for model in models[1:])
    curves = []
    for model in models:
        inside = model.risk <= highest
        x, y = four_plants.RADII[inside], model.risk[inside]
        if not inside.all():  # up to where it leaves the picture; risks grow with the radius
            edge = np.interp(highest, model.risk, four_plants.RADII)
            x, y = np.append(x, edge), np.append(y, highest)
        curves.append(Series(model.name, x.tolist(), y.tolist(), _COLOURS[model.name]))
    return line_chart(
        curves,
        x_label="radius epsilon (share of a feature's range)",
        y_label="worst-case risk",
        description="worst-case risk against the radius",
        from_zero=True,
        mark=(four_plants.EPSILON, "radius in training"),
    )


def draw_training(models: Sequence[DemoModel]) -> Markup:
    """What each model minimised, and the bound below which no model can get, round by round."""
    curves = []
    for model in models:
        if model.name == "FedAvg":  # it has another objective, and ten times the rounds
            continue
        history = model.estimator.history_[1:]  # at first plants only say what they do alone
        rounds = [float(record.round) for record in history]
        lower = [record.lower_bound for record in history]
        upper = [record.objective for record in history]
        colour = _COLOURS[model.name]
        curves.append(Series(model.name, rounds, upper, colour, floor=lower))
        name = f"certified lower bound, {model.name}"
        curves.append(Series(name, rounds, lower, colour, dashed=True))
    return line_chart(
        curves,
        x_label="round",
        y_label="objective",
        description="objective and certified lower bound by round",
        from_zero=True,
    )
