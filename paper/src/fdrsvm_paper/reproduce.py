"""``fdrsvm reproduce``: pyproject.toml names it, and the program ``fdrsvm`` adds it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fdrsvm.cli.commands import COUNT, PATH, SEED, Command
from fdrsvm.cli.console import say
from fdrsvm.core.texts import printable

_TARGETS = ("table1", "wilcoxon", "table2", "sensitivity", "scalability", "rounds", "all")


@click.command(
    cls=Command,
    epilog="example: fdrsvm reproduce table1 --protocol both --jobs 2 --data uci",
)
@click.argument("target", type=click.Choice(_TARGETS))
@click.option(
    "--protocol",
    type=click.Choice(("paper-code", "text", "both")),
    default="paper-code",
    show_default=True,
    help="As the authors' scripts behave, or as the paper says.",
)
@click.option(
    "--repetitions",
    type=COUNT,
    help="Instead of 50 (table1, sensitivity), 10 (table2, scalability) and 5 (rounds).",
)
@click.option("--jobs", type=COUNT, default=1, show_default=True, help="Processes.")
@click.option(
    "--data",
    metavar="FOLDER",
    help="Folder of the UCI sets' CSV files [FDRSVM_DATA, or they are fetched and kept].",
)
@click.option("--quick", is_flag=True, help="A small part of everything, in a minute or two.")
@click.option(
    "--output",
    type=PATH,
    default=Path("reproduction"),
    show_default=True,
    help="Folder for rows, tables, figures and report/index.html.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all random numbers.")
@click.pass_context
def reproduce(
    context: click.Context,
    target: str,
    protocol: str,
    repetitions: int | None,
    jobs: int,
    data: str | None,
    quick: bool,
    output: Path,
    seed: int,
) -> None:
    """Repeat the paper's experiments: tables, figures and a report.

    Rows are stored as they come: run the same command again after an interruption, and what is
    done is skipped. The target wilcoxon is made from table1's rows.
    """
    from fdrsvm_paper.command import Options
    from fdrsvm_paper.command import reproduce as repeat

    options = Options(protocol, repetitions, jobs, data, quick, seed)
    command = printable(shlex.join(["fdrsvm", *context.obj["typed"]]))  # for the report
    path = repeat(target, options, output, command)
    say(f"Report: {path}")
