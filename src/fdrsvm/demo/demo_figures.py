"""The demo's figures, as SVG text to be put into a page."""

from __future__ import annotations

from collections.abc import Sequence

from fdrsvm.demo.demo_drawing import GREY, Figure, as_svg, style, whole_ticks
from fdrsvm.demo.four_plants import EPSILON, FEDAVG, RADII, Outcome

_SIZE = (5.0, 3.2)  # inches; text is still legible 360 pixels wide
_COLOURS = ("#b3541e", "#7a7a7a", "#1f5f8b")  # plain, FedAvg, robust


def draw_risk(outcomes: Sequence[Outcome]) -> str:
    """Worst-case risk on the test set against the radius, a curve a model."""
    with style():
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        for outcome, colour in zip(outcomes, _COLOURS, strict=True):
            axes.plot(RADII, outcome.risk, color=colour, label=outcome.name)
        axes.axvline(EPSILON, color=GREY, linestyle=":", label="radius in training")
        # Without a guard the curve leaves any picture that the other two can be told apart in.
        highest = 1.5 * max(outcome.risk[-1] for outcome in outcomes[1:])
        axes.set(xlabel="radius epsilon", ylabel="worst-case risk", ylim=(0, highest))
        axes.legend(frameon=False)
        return as_svg(figure, "risk", "worst-case risk against the radius")


def draw_training(outcomes: Sequence[Outcome]) -> str:
    """What each model minimised, and the bound below which no model can get, round by round."""
    with style():
        figure = Figure(figsize=_SIZE, layout="constrained")
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
        whole_ticks(axes.xaxis)
        axes.legend(frameon=False)
        return as_svg(figure, "training", "objective and certified lower bound by round")
