"""``fdrsvm predict``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fdrsvm.cli.commands import PATH, Command, data_options, data_settings
from fdrsvm.cli.console import put_content, say, warn


@click.command(
    cls=Command,
    epilog="example: fdrsvm predict run/model.safetensors new.csv --output labels.csv",
)
@click.argument("model", type=PATH)
@click.argument("data", type=PATH, nargs=-1)
@data_options
@click.option("--output", type=PATH, help="CSV file to write [standard output].")
def predict(
    model: Path,
    data: Sequence[Path],
    named: Sequence[str],
    client_column: str | None,
    label: str | None,
    ignore: Sequence[str],
    output: Path | None,
) -> int:
    """Label rows by a model: one line per row, in the order of the data.

    Columns are client, predicted, and decision (of two classes, above 0 for the second) or one
    decision for each class. Columns that the model does not know are left out; labels are not
    needed. A client or label that a spreadsheet would run as a formula has an apostrophe before it.
    What was wrong with the model in training is said on stderr.
    """
    from fdrsvm.core.files import write_atomically
    from fdrsvm.core.texts import csv_text
    from fdrsvm.data.rows import read_rows
    from fdrsvm.inspection.scores import check_fits
    from fdrsvm.inspection.verdict import verdict
    from fdrsvm.model.model_file import load_model

    loaded = load_model(model)
    settings = data_settings(data, named, client_column, label, ignore)
    rows = read_rows(settings, features=loaded.feature_names, with_labels=False)
    check_fits(loaded, rows)
    scores = loaded.decision_function(rows.X)
    headings = ["client", "predicted", "decision"]
    if scores.ndim == 2:
        headings = ["client", "predicted", *(f"decision {name}" for name in loaded.classes)]
    values = scores.reshape(len(rows.X), -1).tolist()
    answers = zip(rows.clients, loaded.predict(rows.X), values, strict=True)
    text = csv_text([headings, *([client, label, *scored] for client, label, scored in answers)])
    if output is None:
        put_content(text)
    else:
        write_atomically(output, text.encode())
        say(f"{len(rows.X)} rows: {output}")
    said = verdict(loaded)
    if said is not None:
        warn(said)
    return 0


COMMANDS = (predict,)
