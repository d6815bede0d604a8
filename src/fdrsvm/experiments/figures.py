"""All drawing. Figures come back as SVG text, to be put into a page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from fdrsvm.experiments.demo import EPSILON, RADII, Outcome

_COLOURS = ("#b3541e", "#1f5f8b")
_SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # text stays text: sharp, small, searchable
    "svg.hashsalt": "fdrsvm",  # the same input gives the same file
}


# Without these the file names a web address, and differs from run to run.
_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


def draw_risk(outcomes: Sequence[Outcome]) -> str:
    """Worst-case risk on the test set against the radius, a curve a model."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for outcome, colour in zip(outcomes, _COLOURS, strict=True):
            axes.plot(RADII, outcome.risk, color=colour, label=outcome.name)
        axes.axvline(EPSILON, color="0.6", linestyle=":", label="radius in training")
        axes.set(xlabel="radius epsilon", ylabel="worst-case risk", ylim=(0, None))
        axes.legend(frameon=False)
        return _as_svg(figure)


def draw_training(outcomes: Sequence[Outcome]) -> str:
    """What each model minimised, round by round."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for outcome, colour in zip(outcomes, _COLOURS, strict=True):
            rounds = range(1, outcome.objective.size + 1)
            axes.plot(rounds, outcome.objective, color=colour, label=outcome.name, linewidth=1)
        axes.set(xlabel="round", ylabel="objective", xscale="log", yscale="log")
        axes.minorticks_off()
        axes.xaxis.set_major_formatter("{x:g}")
        ticks = [0.25, 0.5, 1, 2, 4, 8]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        lowest = min(outcome.objective.min() for outcome in outcomes)
        axes.set_ylim(0.8 * lowest, 1.2 * max(outcome.objective.max() for outcome in outcomes))
        axes.legend(frameon=False)
        return _as_svg(figure)


def _as_svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    text = buffer.getvalue()
    return text[text.index("<svg") :]
