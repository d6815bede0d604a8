"""``fdrsvm report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fdrsvm.cli.commands import PATH, Command, data_options, data_settings, fault_option
from fdrsvm.cli.console import say, warn


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm report run/model.safetensors plants/ --sample 17
""",
)
@click.argument("model", type=PATH)
@click.argument("data", type=PATH, nargs=-1)
@data_options
@fault_option
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    help="Number of the row to explain, from 0 in the order of the data [a middling one].",
)
@click.option(
    "--output",
    type=PATH,
    default=Path("report.html"),
    show_default=True,
    help="The page: one file, which needs no network.",
)
def report(
    model: Path,
    data: Sequence[Path],
    named: Sequence[str],
    client_column: str | None,
    label: str | None,
    ignore: Sequence[str],
    fault: str | None,
    sample: int | None,
    output: Path,
) -> int:
    """Write a page about one model.

    Training with its certified gap, risk per client, which features matter; with data also the
    worst case, and what would turn the decision on a chosen row.
    """
    from fdrsvm.core.files import write_atomically
    from fdrsvm.data.rows import read_rows
    from fdrsvm.inspection.page import model_page
    from fdrsvm.inspection.verdict import verdict
    from fdrsvm.model.model_file import load_model

    loaded = load_model(model)
    rows = None
    if data or named:
        settings = data_settings(data, named, client_column, label, ignore)
        rows = read_rows(settings, features=loaded.feature_names)
    elif sample is not None:
        raise click.UsageError("--sample needs data.")
    elif fault is not None:
        raise click.UsageError("--fault needs data.")
    page = model_page(loaded, rows, name=model.name, sample=sample, fault=fault)
    write_atomically(output, page.encode())
    say(f"Report: {output}")
    said = verdict(loaded, rows)
    if said is not None:
        warn(said)
    return 0


COMMANDS = (report,)
