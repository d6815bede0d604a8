"""``fdrsvm demo``."""

from __future__ import annotations

from pathlib import Path

import click

from fdrsvm.cli.commands import PATH, SEED, Command, output_option
from fdrsvm.cli.console import say, say_lines


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm demo --output report
         fdrsvm demo --data pump
""",
)
@output_option("report", "Folder for index.html.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of splits and noise.")
@click.option(
    "--data",
    type=PATH,
    metavar="FOLDER",
    help="Only write the plants' files there, for training and testing, and a data contract: "
    "something to try the other commands on.",
)
def demo(output: Path, seed: int, data: Path | None) -> int:
    """Train on four plants with wrong labels, and write a report."""
    if data is not None:
        from fdrsvm.demo.plant_files import write_files

        say_lines(map(str, write_files(data, seed)))
        return 0
    from fdrsvm.demo.demo_report import write_report
    from fdrsvm.demo.four_plants import format_table, run_demo

    output.mkdir(parents=True, exist_ok=True)  # an error now is better than one after training
    say("Training on four plants ...")
    made, outcomes = run_demo(seed)
    path = write_report(made, outcomes, output, seed)
    say_lines(format_table(outcomes).splitlines())
    say(f"Report: {path}")
    return 0
