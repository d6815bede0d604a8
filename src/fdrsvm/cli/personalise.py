"""``fdrsvm personalise``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fdrsvm.cli.commands import (
    PATH,
    Command,
    fault_option,
    json_option,
    say_dropped,
    takes_data,
)
from fdrsvm.cli.console import number, say, say_json, say_words, share, show_table
from fdrsvm.errors import InvalidInputError, UnsupportedError

if TYPE_CHECKING:
    from fdrsvm.data.rows import DataSettings, Rows
    from fdrsvm.estimators.personal import Personal
    from fdrsvm.model.linear_model import LinearModel

_FILE = "personal.safetensors"
_NAMES = {
    "shared": "shared",
    "retune": "shared, retuned",
    "prox": "near the shared one",
    "own": "of its own rows",
}


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm personalise run/model.safetensors plant-4.csv
         fdrsvm personalise run/model.safetensors --client plant-4=today.csv --how retune
         fdrsvm evaluate run/personal.safetensors plant-4-later.csv
""",
)
@click.argument("model", type=PATH)
@takes_data
@click.option(
    "--how",
    type=click.Choice(("retune", "prox", "auto")),
    default="auto",
    show_default=True,
    help="retune scales the score and moves its zero; prox trains near the shared model; auto "
    "takes the simplest of the shared model, these two and one of the plant's rows alone that its "
    "held-out rows do not call clearly worse.",
)
@click.option(
    "--goal",
    metavar="GOAL",
    default="balanced",
    show_default=True,
    help="What held-out rows are counted for, as for fit: balanced, f1, cost=20, false-alarms=1%.",
)
@fault_option
@click.option("--output", type=PATH, help=f"File to write [beside the model: {_FILE}].")
@json_option
def personalise(
    model: Path,
    data: DataSettings,
    how: str,
    goal: str,
    fault: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Fit a shared model to one plant, at the plant: nothing is sent.

    DATA are rows of one plant with their labels, such as those that it trained with. What is
    written is a model like any other: predict, evaluate, report, alarm and export take it. Radius
    and price of a wrong label are those that the plant had in training.
    """
    from fdrsvm.core.files import write_atomically
    from fdrsvm.data.rows import read_rows
    from fdrsvm.decision.goals import positive_class
    from fdrsvm.model.linear_model import POSITIVE
    from fdrsvm.model.model_file import load_model, model_bytes

    loaded = load_model(model)
    if fault is not None:
        place = positive_class(loaded.classes, (0, 0), fault, "--fault")
        loaded = loaded.with_record(**{POSITIVE: loaded.classes[place or 0]})
    rows = read_rows(data.as_trained(loaded.record), features=loaded.feature_names)
    say_dropped(rows)
    _check_limits(rows)
    made, written = _at_plant(loaded, rows, how, goal)
    path = output or model.parent / _FILE
    if path.is_dir():
        path /= _FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, model_bytes(written))
    if as_json:
        say_json({**made.to_record(), "file": str(path)})
    else:
        _show(made, written, rows.client_names[0], goal)
        say(f"Model: {path}")
        say(f"Next:  fdrsvm evaluate {path} NEW.csv, or fdrsvm report {path} NEW.csv")


def _check_limits(rows: Rows) -> None:
    """Rows that train keep to the contract of training, as far as the model remembers it."""
    import numpy as np

    for name, values in zip(rows.feature_names, rows.X.T, strict=True):
        if rows.settings is None or rows.row_numbers is None:
            continue
        rule = rows.settings.rule_of(name)
        low = -np.inf if rule.low is None else rule.low
        high = np.inf if rule.high is None else rule.high
        outside = np.flatnonzero((values < low) | (values > high))
        if outside.size:
            raise InvalidInputError(
                rows.client_names[0],
                f"column {name!r}: values must keep to the contract of training, from {low:g} to "
                f"{high:g}",
                f"row {rows.row_numbers[outside[0]]} does not ({outside.size} in all); leave such "
                "rows out, or agree on wider limits and train again",
            )


def _at_plant(model: LinearModel, rows: Rows, how: str, goal: str) -> tuple[Personal, LinearModel]:
    """What the plant chose, and its model with the scaling folded in."""
    import numpy as np

    from fdrsvm.core.plain_json import from_plain
    from fdrsvm.data.training_data import Client, merge_equal_rows
    from fdrsvm.decision.goals import check_scoring, read_goal
    from fdrsvm.decision.histograms import Aim
    from fdrsvm.estimators import personal
    from fdrsvm.inspection.certifying import class_weights, into_support
    from fdrsvm.inspection.scores import check_fits
    from fdrsvm.model.trained_ball import balls
    from fdrsvm.model.unscaling import Scaling

    if model.estimator != "FDRSVC":
        raise UnsupportedError(
            f"a {model.estimator} is not personalised: train the shared model with fdrsvm fit"
        )
    if len(rows.client_names) > 1:
        raise InvalidInputError(
            "data",
            "must be rows of one plant: run personalise for each, with an --output of its own",
            f"it holds {', '.join(map(repr, rows.client_names))}",
        )
    check_fits(model, rows)
    [name] = rows.client_names
    scaling, codes = Scaling.of(model), rows.codes(model.classes)
    ball = balls(model, rows.counts())[name]
    by_class = class_weights(model, codes)
    X, _ = into_support(scaling.apply(rows.X), ball.support)
    X, codes, weights = merge_equal_rows(X, codes, np.ones(len(X)))
    plant = Client(name, X, codes, len(model.classes), weights * by_class[codes], len(rows.X))
    fit_intercept = from_plain(model.params.get("fit_intercept", True))
    made = personal.personalise(
        scaling.unfold(model),
        plant,
        how=how,
        epsilon=ball.epsilon,
        kappa=ball.kappa,
        ball={
            "norm": ball.norm,
            "support": ball.support,
            "loss": ball.loss,
            "fit_intercept": fit_intercept,
        },
        class_weights=by_class,
        aim=Aim(check_scoring(read_goal(goal), len(by_class)), model.positive or 0),
    )
    # A model that stays is the file's to the last bit, not one that was unscaled and scaled.
    folded = scaling.fold(made.model)
    if made.choice == personal.SHARED:
        same = {name: getattr(model, name) for name in ("coef", "intercept", "features")}
        folded = replace(folded, **same)
    return made, folded


def _show(made: Personal, model: LinearModel, name: str, goal: str) -> None:
    """What changes for the plant, in a table and in words."""
    import numpy as np

    from fdrsvm.decision.goals import goal_in_words, read_goal

    fault = None if model.positive is None else str(model.classes[model.positive])
    say_words(f"{name}: {_NAMES[made.choice]} ({made.reason})")
    if made.scale is not None:
        say(f"score: times {', '.join(map(number, made.scale.tolist()))}, and its zero is moved")
    say()
    risks = {"shared": made.risk_before, made.choice: made.risk_after}
    rows = []
    for choice in dict.fromkeys([*made.folds, *risks]):
        cells = [f"{_NAMES[choice]}{' *' if choice == made.choice else ''}"]
        if made.folds:
            cells += _counted(made.folds[choice].counts, model.positive)
            cells.append(share(made.folds[choice].score))
        cells.append(number(float(np.mean(risks[choice]))) if choice in risks else "")
        rows.append(cells)
    counted = ["rows right", "score by the goal"] if made.folds else []
    if made.folds and fault is not None:
        counted = [f"{fault!r} found", "false alarms", "score by the goal"]
    mean = "" if fault is not None else ", mean over classes"
    at_most = "" if model.features is None else " at most"
    show_table(["model", *counted, f"worst-case risk{at_most}{mean}"], rows, spare=counted[-1:])
    say()
    if made.folds:
        say_words(
            "* is taken. Counts are of rows that what is fitted here has not seen, one fold of "
            "five after the other; the shared model may have trained with all of them. The goal is "
            f"{goal_in_words(read_goal(goal), fault)}: the higher the score, the better."
        )
    bound, gap = float(np.mean(made.lower_bound)), float(np.mean(made.gap_after))
    proved = (
        "The worst-case risk is exact, for this plant's rows. No linear model of these features "
        f"has one below {number(bound)} here: proved"
    )
    if model.features is not None:
        proved = (
            "The worst-case risk of this plant's sensors is at most what the table says: proved. "
            f"For no model of this feature map can less than {number(bound)} be proved so here"
        )
    say_words(f"{proved}; {100.0 * gap:.3g} % is the most that another model could save.")


def _counted(counts: object, positive: int | None) -> list[str]:
    """Faults found and false alarms, as counts with their shares; of more classes rows right."""
    import numpy as np

    table = np.asarray(counts)
    parts = [(np.trace(table), table.sum())]
    if positive is not None:
        parts = [(row[positive], row.sum()) for row in (table[positive], table[1 - positive])]
    return [f"{part:g} of {whole:g} ({100.0 * part / whole:.1f} %)" for part, whole in parts]
