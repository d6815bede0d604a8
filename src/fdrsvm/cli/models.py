"""The commands for a trained model: ``fdrsvm evaluate``, ``report`` and ``export``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

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
from fdrsvm.cli.console import progress, say_json, share, show_table

if TYPE_CHECKING:
    from fdrsvm.data.rows import DataSettings


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
@repeated_option(
    "--compare",
    type=PATH,
    metavar="DATA",
    what="Train local, federated and central models on these files or folders, with the model's "
    "parameters, and score them beside it",
)
@json_option
def evaluate(
    model: Path, data: DataSettings, fault: str | None, compare: Sequence[Path], as_json: bool
) -> None:
    """Score a model on data, over all rows and client by client.

    Accuracy, F1 (of the rarer class in training or that of --fault; of more than two classes the
    mean) and balanced accuracy. Scores on training rows say how well the model fits them, only
    those on other rows how good it is. A class that is (almost) never predicted is named on stderr,
    with a remedy.
    """
    from fdrsvm.data.rows import read_rows
    from fdrsvm.inspection.scores import compare as compare_models
    from fdrsvm.inspection.scores import score
    from fdrsvm.model.model_file import load_model

    loaded = load_model(model)
    data = data.as_trained(loaded.record)
    rows = read_rows(data, features=loaded.feature_names)
    say_dropped(rows)
    scores = score(loaded, rows, fault)
    if compare:
        others = replace(data, paths=tuple(compare), named={})
        training = read_rows(others, features=loaded.feature_names)
        with progress("training local, federated and central models"):
            scores += compare_models(loaded, rows, training, fault)
    warn_of(loaded, rows)
    if as_json:  # null where a model could not be trained
        content = [asdict(one) for one in scores]
        say_json([{k: None if v != v else v for k, v in one.items()} for one in content])
        return
    f1_of = scores[0].f1_of
    f1 = "mean F1" if f1_of is None else f"F1 of {f1_of!r}"
    lines = []
    for one in scores:
        shares = [share(value) for value in (one.accuracy, one.f1, one.balanced_accuracy)]
        lines.append([one.model, one.client, str(one.n_rows), *shares])
    show_table(["model", "client", "rows", "accuracy", f1, "balanced accuracy"], lines, n_left=2)


@click.command(
    cls=Command,
    epilog="example: fdrsvm report run/model.safetensors plants/ --sample 17",
)
@click.argument("model", type=PATH)
@takes_data
@fault_option
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    help="Number of the row to explain, from 0 in the order of the data [one with a usual score].",
)
@output_option("report.html", "The page: one file, which needs no network.")
def report(
    model: Path, data: DataSettings, fault: str | None, sample: int | None, output: Path
) -> None:
    """Write a page about one model.

    Training with its certified gap, risk per client, which features matter; with data also the
    worst case, and what would turn the decision on a chosen row.
    """
    from fdrsvm.inspection.page import model_page

    loaded, rows = load_with_rows(model, data)
    for option, value in (("--sample", sample), ("--fault", fault)):
        if rows is None and value is not None:
            raise click.UsageError(f"{option} needs data.")
    page = model_page(loaded, rows, name=model.name, sample=sample, fault=fault)
    put_result(page.encode(), output, "Report")
    warn_of(loaded, rows)


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

    Structured text is that of IEC 61131-3, for a PLC. The scaling is part of the weights: an export
    takes readings as they are. What was wrong with the model in training is reported on stderr.
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
