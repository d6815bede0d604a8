"""All drawing. Figures come back as SVG text, to be put into a page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fdrsvm.experiments.demo import EPSILON, FEDAVG, RADII, Outcome

_COLOURS = ("#b3541e", "#7a7a7a", "#1f5f8b")
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
        # Without a guard the curve leaves any picture that the other two can be told apart in.
        highest = 1.5 * max(outcome.risk[-1] for outcome in outcomes[1:])
        axes.set(xlabel="radius epsilon", ylabel="worst-case risk", ylim=(0, highest))
        axes.legend(frameon=False)
        return _as_svg(figure)


def draw_training(outcomes: Sequence[Outcome]) -> str:
    """What each model minimised, and the bound below which no model can get, round by round."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for outcome, colour in zip(outcomes, _COLOURS, strict=True):
            if outcome.name == FEDAVG:  # it has another objective, and ten times the rounds
                continue
            # In the first round plants only say what they would do alone.
            history = outcome.training.history[1:]
            rounds = [record.round for record in history]
            upper = [record.objective for record in history]
            lower = [record.lower_bound for record in history]
            axes.fill_between(rounds, lower, upper, color=colour, alpha=0.15, linewidth=0)
            axes.plot(rounds, upper, color=colour, label=outcome.name)
            axes.plot(rounds, lower, color=colour, linestyle="--", linewidth=1)
        axes.plot([], [], color="0.4", linestyle="--", linewidth=1, label="certified lower bound")
        axes.set(xlabel="round", ylabel="objective", ylim=(0, None))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(frameon=False)
        return _as_svg(figure)


def _as_svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    text = buffer.getvalue()
    return text[text.index("<svg") :]
