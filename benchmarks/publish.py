"""Puts measured rows beside the documentation.

    python -m benchmarks.publish [FOLDER]

Rows of FOLDER, if one is given, go to benchmarks/results. Then the figures are drawn again, and
every table that docs/benchmarks.md names between two marks is written there, from those rows.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.machine import FILE
from benchmarks.results import FOLDER
from benchmarks.tables import Rows, make_tables
from fdrsvm_paper.rows import Row, read_rows
from fdrsvm_paper.tables import Table

DOCS = Path(__file__).parents[1] / "docs"
PAGE, FIGURES = DOCS / "benchmarks.md", DOCS / "figures"
MARKS = re.compile(r"(<!-- (table|machine) ?(\S*) -->\n).*?(<!-- end -->)", re.DOTALL)
PARTS = ("oracle", "client", "central", "wide", "scaling", "memory", "footprint")
ROUNDS, RELEASES = "federated_rounds", "releases"


def kept_rows() -> Rows:
    """All rows in benchmarks/results that the page needs."""
    rows: dict[str, list[Row]] = {part: read_rows(FOLDER / f"{part}.csv") for part in PARTS}
    rows[ROUNDS] = plain_rows(FOLDER / f"{ROUNDS}.csv")
    rows[RELEASES] = read_rows(FOLDER / f"{RELEASES}.csv")
    return rows


def plain_rows(path: Path) -> list[Row]:
    """Of a CSV file without the ends that mark rows as whole."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def kept_machine() -> dict[str, Any]:
    """Where they were measured."""
    return dict(json.loads((FOLDER / FILE).read_text(encoding="utf-8")))


def machine_text(machine: Mapping[str, Any], rows: Rows) -> str:
    """Processor, versions, when, and how busy it was."""
    measured = [row for part in PARTS for row in rows[part]]
    loads = sorted(float(row["load"]) for row in measured)
    times = sorted(row["when"] for row in measured)
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"- Machine: {machine['processor']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}.\n"
        f"- Versions: {versions}.\n"
        f"- Rows: {len(measured)}, from {times[0]} to {times[-1]}; load of the machine when they "
        f"began {loads[0]:g} to {loads[-1]:g}, median {loads[len(loads) // 2]:g} (1 is this "
        "process alone; 2 cores).\n"
    )


def page_with_tables(text: str, tables: Mapping[str, Table], machine: str) -> str:
    """The page, with what its marks name."""

    def filled(mark: re.Match[str]) -> str:
        body = machine if mark[2] == "machine" else tables[mark[3]].markdown()
        return f"{mark[1]}{body}{mark[4]}"

    return MARKS.sub(filled, text)


def publish(source: Path | None) -> None:
    """Rows, figures and page."""
    from benchmarks.figures import draw_figures
    from fdrsvm_paper.drawing import as_svg

    if source is not None:
        measured = sorted(source.glob("*.csv"))
        if any(path.stem != RELEASES for path in measured):  # else the others' machine stays
            measured.append(source / FILE)
        for path in measured:
            shutil.copy(path, FOLDER / path.name)
    rows = kept_rows()
    for name, figure in draw_figures(rows).items():
        (FIGURES / f"{name}.svg").write_text(as_svg(figure, name), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    machine = machine_text(kept_machine(), rows)
    PAGE.write_text(page_with_tables(text, make_tables(rows), machine), encoding="utf-8")


if __name__ == "__main__":
    publish(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
