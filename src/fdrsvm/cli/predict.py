"""``fdrsvm predict``."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import click

from fdrsvm.cli.commands import PATH, Command, data_options, data_settings
from fdrsvm.cli.console import say


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
    """Label rows by a model: a line a row, in the order of the data.

    Columns are client, predicted, and decision (of two classes, above 0 for the second) or one
    decision for each class. Columns that the model does not know are left out; labels are not
    needed.
    """
    from fdrsvm.estimators.model_file import load_model
    from fdrsvm.files import write_atomically
    from fdrsvm.workflow.rows import read_rows
    from fdrsvm.workflow.scores import check_fits

    loaded = load_model(model)
    settings = data_settings(data, named, client_column, label, ignore)
    rows = read_rows(settings, features=loaded.feature_names, with_labels=False)
    check_fits(loaded, rows)
    scores = loaded.decision_function(rows.X)
    headings = ["client", "predicted", "decision"]
    if scores.ndim == 2:
        headings = ["client", "predicted", *(f"decision {name}" for name in loaded.classes)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    table = scores.reshape(len(rows.X), -1).tolist()
    for client, found, values in zip(rows.clients, loaded.predict(rows.X), table, strict=True):
        writer.writerow([client, found, *map(repr, values)])
    if output is None:
        click.echo(text.getvalue(), nl=False)
    else:
        write_atomically(output, text.getvalue().encode())
        say(f"{len(rows.X)} rows: {output}")
    return 0


COMMANDS = (predict,)
