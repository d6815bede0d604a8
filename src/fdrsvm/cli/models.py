"""The commands for a trained model: ``fdrsvm evaluate``, ``report`` and ``export``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.commands import (
    PATH,
    Command,
    fault_option,
    json_option,
    load_with_rows,
    output_option,
    put_result,
    repeated_option,
    say_dropped,
    takes_data,
    warn_of,
)
from fdrsvm.cli.console import say, say_json, say_words, share, show_table, steps, warn

if TYPE_CHECKING:
    from fdrsvm.data.rows import DataSettings, Rows
    from fdrsvm.inspection.scores import Score
    from fdrsvm.model.linear_model import LinearModel


_compare_option = repeated_option(
    "--compare",
    type=PATH,
    metavar="DATA",
    what="Training rows, files or folders: train other models on them (ours at each plant alone, "
    "jointly and on pooled rows; logistic regression and gradient boosting at each plant alone) "
    "and show how they do on the same rows",
)


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm evaluate run/model.safetensors test/
         fdrsvm evaluate run/model.safetensors test/ --compare train/
""",
)
@click.argument("model", type=PATH)
@takes_data
@fault_option
@_compare_option
@json_option
def evaluate(
    model: Path, data: DataSettings, fault: str | None, compare: Sequence[Path], as_json: bool
) -> None:
    """Score a model on data, client by client and over all rows.

    Of two classes: faults found, false alarms, precision, recall, balanced accuracy, average
    precision and F1 of the fault, which is the rarer class in training or that of --fault. Of more:
    the recall of each, and means. Scores on training rows say how well the model fits them, only
    those on other rows how good it is. Classes that are (almost) never predicted and plants at
    which the model does clearly worse are named on stderr, with a remedy.
    """
    from fdrsvm.data.rows import read_rows
    from fdrsvm.inspection.comparison import compare as compare_models
    from fdrsvm.inspection.comparison import comparison_words
    from fdrsvm.inspection.scores import counting_words, fault_place, one_class_words, score
    from fdrsvm.model.model_file import load_model

    loaded = load_model(model)
    data = data.as_trained(loaded.record)
    rows = read_rows(data, features=loaded.feature_names)
    say_dropped(rows)
    scores = score(loaded, rows, fault)
    if compare:
        training = _training_rows(loaded, data, compare)
        with steps("training other models") as tell:
            scores += compare_models(loaded, rows, training, fault, tell=tell)
    _warn_of_plants(loaded, rows, scores)
    if as_json:  # null where a model could not be trained, or a share is of no rows
        say_json([_without_nan(asdict(one)) for one in scores])
        return
    spare = ("precision", "recall", "average precision") if scores[0].f1_of is not None else ()
    show_table(*_score_table(scores, loaded), n_left=2, spare=spare)
    say()
    place = fault_place(loaded, rows, fault)
    say_words(counting_words(loaded, place, was_asked_for=fault is not None))
    for sentence in one_class_words(scores):
        say_words(sentence)
    for sentence in comparison_words(loaded, scores) if compare else ():
        say_words(sentence)


def _training_rows(model: LinearModel, data: DataSettings, paths: Sequence[Path]) -> Rows:
    """Rows to train other models on, with the columns of the rows to score on."""
    from fdrsvm.data.rows import read_rows

    others = replace(data.as_trained(model.record), paths=tuple(paths), named={})
    return read_rows(others, features=model.feature_names)


def _warn_of_plants(model: LinearModel, rows: Rows, scores: Sequence[Score]) -> None:
    """What is wrong with a model; if nothing is, at which plants something is."""
    from fdrsvm.inspection.stragglers import stragglers
    from fdrsvm.inspection.verdict import verdict

    fault = verdict(model, rows)
    for sentence in stragglers(model, rows, scores).values() if fault is None else (fault,):
        warn(sentence)


def _without_nan(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    return None if isinstance(content, float) and content != content else content


def _score_table(scores: Sequence[Score], model: LinearModel) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: of two classes the fault's, of more one recall per class."""
    from fdrsvm.inspection.scores import false_alarm_words, found_words

    fault = scores[0].f1_of
    if fault is None:
        names = list(map(str, model.classes))
        headings = ["accuracy", *(f"recall of {name!r}" for name in names)]
        headings += ["balanced accuracy (mean recall)", "mean F1"]
        values = [
            [one.accuracy, *(one.recalls[name] for name in names), one.balanced_accuracy, one.f1]
            for one in scores
        ]
        cells = [list(map(share, row)) for row in values]
    else:
        headings = [f"{fault!r} found", "false alarms", "precision", "recall"]
        headings += ["balanced accuracy", "average precision", f"F1 of {fault!r}"]
        cells = []
        for one in scores:
            values_ = (one.precision, one.recall, one.balanced_accuracy, one.average_precision)
            shares = [share(value) for value in (*values_, one.f1)]
            cells.append([found_words(one), false_alarm_words(one), *shares])
    rows = [
        [one.model, one.client, str(one.n_rows), *row]
        for one, row in zip(scores, cells, strict=True)
    ]
    return ["model", "client", "rows", *headings], rows


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm report run/model.safetensors test/ --row-every "1 min" --compare train/
         fdrsvm report run/model.safetensors test/ --sample 17
""",
)
@click.argument("model", type=PATH)
@takes_data
@fault_option
@click.option(
    "--row-every",
    metavar="TIME",
    help="How often each plant gets a row, such as '1 min' or '30 s' (s, min, h, day): says how "
    "many false alarms a week that makes.",
)
@_compare_option
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    help="Number of the row to explain, from 0 in the order of the data [one with a usual score].",
)
@output_option("report.html", "The page: one file, which needs no network.")
def report(
    model: Path,
    data: DataSettings,
    fault: str | None,
    row_every: str | None,
    compare: Sequence[Path],
    sample: int | None,
    output: Path,
) -> None:
    """Write a page about one model.

    It opens with what matters at a plant: faults found, false alarms, which plant gains by joining
    (--compare), which sensors matter, what is proved. Then training with its certified gap, risk
    per client, and with data the worst case and what would turn the decision on a chosen row.
    """
    from fdrsvm.inspection.comparison import compare as compare_models
    from fdrsvm.inspection.page import model_page
    from fdrsvm.inspection.scores import score
    from fdrsvm.inspection.summary import RowRate

    every = None if row_every is None else RowRate.parse(row_every, "--row-every")
    loaded, rows = load_with_rows(model, data)
    given = {
        "--sample": sample,
        "--fault": fault,
        "--row-every": every,
        "--compare": compare or None,
    }
    for option, value in given.items():
        if rows is None and value is not None:
            raise click.UsageError(f"{option} needs data.")
    with steps("computing the page") as tell:
        others: list[Score] = []
        if rows is not None and compare:
            training = _training_rows(loaded, data, compare)
            others = compare_models(loaded, rows, training, fault, tell=tell)
            tell("computing the page")
        options: Any = {"sample": sample, "fault": fault, "every": every, "others": others}
        page = model_page(loaded, rows, name=model.name, **options)
    put_result(page.encode(), output, "Report")
    if rows is None:
        warn_of(loaded)
    else:
        _warn_of_plants(loaded, rows, score(loaded, rows, fault))


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm export onnx run/model.safetensors --output leak.onnx
         fdrsvm export st run/model.safetensors --name LeakScore --alarm-on leak > leak.st
""",
)
@click.argument("kind", type=click.Choice(("onnx", "st", "json")))
@click.argument("model", type=PATH)
@click.option("--output", type=PATH, help="File to write; needed for onnx [standard output].")
@click.option("--name", default="FDRSVM_Score", show_default=True, help="Name of the block (st).")
@repeated_option("--alarm-on", metavar="LABEL", what="A class that sets the alarm (st)")
def export(kind: str, model: Path, output: Path | None, name: str, alarm_on: Sequence[str]) -> None:
    """Write a model as ONNX, structured text or JSON.

    Structured text is that of IEC 61131-3, for a PLC. Scaling, curves, surfaces and waves are part
    of the model: an export takes readings as they are. What was wrong with the model in training is
    reported on stderr.
    """
    from fdrsvm.model.export import to_json, to_onnx, to_structured_text
    from fdrsvm.model.model_file import load_model

    if kind == "onnx" and output is None:
        raise click.UsageError("onnx is binary: --output FILE is needed.")
    loaded = load_model(model)
    if kind == "onnx":
        content = to_onnx(loaded)
    elif kind == "json":
        content = to_json(loaded).encode()
    else:
        # A label that the model does not know is left for it to refuse.
        known = {str(label): label for label in loaded.classes}
        alarms = [known.get(text, text) for text in alarm_on] or None
        content = to_structured_text(loaded, name=name, alarm_on=alarms).encode()
    put_result(content, output, kind)
    warn_of(loaded)
