"""``fdrsvm certify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.commands import PATH, Command, json_option, load_with_rows, takes_data
from fdrsvm.cli.console import number, say, say_json, say_words, show_table

if TYPE_CHECKING:
    from fdrsvm.data.rows import DataSettings, Rows
    from fdrsvm.inspection.certifying import Flips, Recomputed
    from fdrsvm.model.linear_model import LinearModel


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm certify run/model.safetensors
         fdrsvm certify run/model.safetensors plants/
         fdrsvm certify run/model.safetensors --c1 2 --c2 1
""",
)
@click.argument("model", type=PATH)
@takes_data
@click.option("--epsilon", type=float, help="Recompute at this radius, not the model's own.")
@click.option("--kappa", type=float, help="Recompute at this price of a wrong label.")
@click.option("--norm", type=click.Choice(("l1", "l2", "linf")), help="Recompute in this norm.")
@click.option("--c1", type=float, help="Constant of the paper's Proposition 2; needs --c2.")
@click.option("--c2", type=float, help="Constant of the paper's Proposition 2; needs --c1.")
@click.option(
    "--tail", type=float, default=2.0, show_default=True, help="Its tail exponent a, above 1."
)
@json_option
def certify(
    model: Path,
    data: DataSettings,
    epsilon: float | None,
    kappa: float | None,
    norm: str | None,
    c1: float | None,
    c2: float | None,
    tail: float,
    as_json: bool,
) -> None:
    """Say what is proved about a model, in words and numbers.

    Worst-case risk, gap, radius and confidence come from the file alone. With data, each client's
    worst-case risk is computed again, exactly, and how far rows must move for decisions to change.
    On the training rows the risks are those in the file. Of a model with a feature map they are
    upper bounds: an attack on the sensors then says how much of them is real.
    """
    from fdrsvm.inspection.certifying import flips, in_words, recompute
    from fdrsvm.inspection.verdict import ignores_features
    from fdrsvm.model.trained_ball import Overrides

    if (c1 is None) != (c2 is None):
        raise click.UsageError("--c1 and --c2 go together.")
    given = Overrides(epsilon, kappa, norm)
    if given != Overrides() and not (data.paths or data.named):
        raise click.UsageError("--epsilon, --kappa and --norm need data to recompute on.")
    loaded, rows = load_with_rows(model, data)
    words = [*in_words(loaded), _confidence(loaded, rows, c1, c2, tail)]
    again = None if rows is None else recompute(loaded, rows, given, attack=True)
    turns = None if rows is None else flips(loaded, rows, norm)
    if as_json:
        say_json(_content(loaded, words, again, turns))
        return
    for sentence in words:
        say_words(sentence)
    if rows is not None and again is not None and turns is not None:
        _show_recomputed(again, is_other_ball=given != Overrides())
        _show_flips(loaded, turns, is_flat=ignores_features(loaded, rows))


def _confidence(
    model: LinearModel, rows: Rows | None, c1: float | None, c2: float | None, tail: float
) -> str:
    from fdrsvm.inspection.certifying import confidence, members, training_counts

    if c1 is None or c2 is None:
        return (
            "Confidence: not stated. How likely the truth lies within the radius depends on "
            "constants of the data (Proposition 2 of the paper) that nobody knows; with --c1 and "
            "--c2 it is computed from yours."
        )
    counts = training_counts(model)
    if not counts and rows is not None:
        counts = {name: len(group) for name, group in members(model, rows).items()}
    if not counts:
        raise click.UsageError("The file does not say how many rows there were: give the data.")
    value, in_any_case = (
        confidence(model, counts, c1, c2, tail, independent=independent)
        for independent in (True, False)
    )
    return (
        f"Confidence: with c1 = {c1:g}, c2 = {c2:g} and tail exponent {tail:g}, the truth lies "
        f"within the radius with probability {value:.4g} at least if clients are independent of "
        f"each other, {in_any_case:.4g} in any case; the true risk is then no larger than the "
        "worst-case risk (Proposition 2 of the paper, with the exponent of docs/maths.md)."
    )


def _show_recomputed(again: Recomputed, *, is_other_ball: bool) -> None:
    say()
    say("Recomputed on the data given:")
    has_classes = any(one.label is not None for one in again.risks)
    names = ["client", "class"] if has_classes else ["client"]
    lines = []
    for one in again.risks:
        stated = "-" if one.stated is None else number(one.stated, 6)
        risks = [number(one.mean_loss, 6), number(one.worst_case, 6), stated]
        labels = [one.client, str(one.label)][: len(names)]
        lines.append([*labels, str(one.n_rows), number(one.epsilon), *risks])
    headings = [*names, "rows", "epsilon", "mean loss", "worst-case risk", "in the file"]
    show_table(headings, lines, n_left=len(names))
    say(f"Weighted sum: {', '.join(number(value, 6) for value in again.objectives)}")
    if is_other_ball:
        say("The radius, label price or norm is not that of training: compare nothing with it.")
    elif again.agrees is not None:
        rounded = f", rounded up by less than {again.resolution:g} each" * (again.resolution > 0.0)
        say(
            f"These are the numbers in the file{rounded}."
            if again.agrees
            else "These are not the numbers in the file: the data are not those of training."
        )
    if again.limits:
        _show_slack(again, names)
    if again.n_clipped:
        say(f"{again.n_clipped} values lay outside the support and were moved to its edge.")


def _show_slack(again: Recomputed, names: list[str]) -> None:
    """How much of the bounds is real, client by client."""
    say()
    said = "The worst case of the sensors lies between what an attack reaches and what is"
    say_words(f"How loose that is. {said} certified for this very model:")
    lines = []
    for one in again.risks:
        assert one.at_least is not None
        assert one.at_most is not None
        # Of nothing there is no share; and rounding is no slack.
        slack = max(one.at_most / one.at_least - 1.0, 0.0) if one.at_least else float("nan")
        limits = [number(one.at_least, 6), number(one.at_most, 6), f"{slack:.2%}"]
        lines.append([*[one.client, str(one.label)][: len(names)], *limits])
    show_table([*names, "at least", "at most", "slack"], lines, n_left=len(names))
    sums = (f"{number(low, 6)} to {number(high, 6)}" for low, high in again.limits)
    say(f"Weighted sum: {', '.join(sums)}")


def _show_flips(model: LinearModel, turns: Flips, *, is_flat: bool) -> None:
    from fdrsvm.model.unscaling import Scaling

    say()
    if is_flat:
        say("No feature matters: the model gives all rows (almost) the same score.")
        return
    say(f"How far rows must move for decisions to turn ({Scaling.of(model).unit}):")
    rows = [
        [f"{part:.0%}", number(move) if move < float("inf") else "cannot be turned"]
        for part, move in turns.moves.items()
    ]
    headings = ["share of the rows", "distance"]
    if not turns.is_exact:
        headings.append("proved: at least")
        rows = [
            [*row, number(turns.least[part])] for row, part in zip(rows, turns.moves, strict=True)
        ]
    show_table(headings, rows)
    if not turns.is_exact:
        say("Moves were searched for and tried: each turns its row, and a shorter one may as well.")


def _content(
    model: LinearModel, words: Sequence[str], again: Recomputed | None, turns: Flips | None
) -> dict[str, Any]:
    from fdrsvm.core.plain_json import encode, plain
    from fdrsvm.inspection.certifying import proved

    content: dict[str, Any] = {
        "model_sha256": model.fingerprint,
        "estimator": model.estimator,
        "words": list(words),
        "proved": [asdict(one) for one in proved(model)],
    }
    if again is not None and turns is not None:
        content["recomputed"] = [asdict(one) for one in again.risks]
        content["weighted_sums"] = list(again.objectives)
        content["weighted_limits"] = [list(limits) for limits in again.limits]
        content["agrees_with_file"] = again.agrees
        content["n_clipped"] = again.n_clipped
        content["flips"] = {str(part): move for part, move in turns.moves.items()}
        content["flips_at_least"] = {str(part): move for part, move in turns.least.items()}
    return dict(encode(plain(content, "certificate")))
