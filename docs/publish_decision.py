"""Writes the tables of docs/decisions.md from the rows in benchmarks/results/decision.csv.

    python docs/publish_decision.py

The rows are measured by ``python -m benchmarks.decision``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.decision import GOALS, Row, read_rows  # noqa: E402

PAGE = HERE / "decisions.md"
MARKS = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
POOLED = "pooled logistic regression, tuned for "
UCI = ("default command", "--goal f1-macro", "FDRSVC()", "FDRSVCCV() as in 0.1.0")

# What was wanted: case, model, measure, the bound, and whether it is from below.
WANTED = (
    ("AI4I", "default command", "balanced accuracy", 0.80, True),
    ("AI4I", "--goal f1", "F1 of the faults", 0.47, True),
    ("AI4I", "alarm at 5 %", "false alarms", 0.03, True),
    ("AI4I", "alarm at 5 %", "false alarms", 0.06, False),
    ("AI4I", "alarm at 5 %", "found: faults", 0.70, True),
    ("AI4I", "probabilities: shared", "Brier", 0.026, False),
    ("AI4I", "probabilities: shared", "ECE", 0.015, False),
    ("pump", "probabilities: shared", "Brier", 0.05, False),
    ("UCI", "default command", "macro F1", 0.885, True),
)


def mean(rows: list[Row], case: str, model: str, measure: str) -> float:
    """Over seeds, and of the UCI sets over sets."""
    values = [
        row.value
        for row in rows
        if row.case.startswith(case) and (row.model, row.measure) == (model, measure)
    ]
    return float(np.mean(values))


def lines(headings: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown; what is typed is code."""
    ruler = ["---"] * len(headings)
    shown = [
        [f"`{cell}`" if cell[:2] == "--" else cell for cell in row] for row in (headings, *rows)
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in (shown[0], ruler, *shown[1:]))


def goals_table(rows: list[Row]) -> str:
    """What was wanted, beside what was measured."""
    table = []
    for case, model, measure, bound, is_least in WANTED:
        found = mean(rows, case, model, measure)
        is_met = found >= bound if is_least else found <= bound
        wanted = f"{'at least' if is_least else 'at most'} {bound:g}"
        data = "UCI, 7 sets, 15 % wrong labels" if case == "UCI" else case
        shown = [data, model, measure, wanted, f"{found:.4f}", "yes" if is_met else "**no**"]
        table.append(shown)
    return lines(["data", "model", "measure", "wanted", "measured", "met"], table)


def ai4i_table(rows: list[Row]) -> str:
    """Each goal, and what it gives."""
    measures = [
        "balanced accuracy",
        "F1 of the faults",
        "average precision",
        "faults found",
        "false alarms",
    ]
    models = [*GOALS, f"{POOLED}balanced accuracy", f"{POOLED}f1"]
    table = [
        [model, *(f"{mean(rows, 'AI4I', model, measure):.3f}" for measure in measures)]
        for model in models
    ]
    return lines(["model", *measures], table)


def uci_table(rows: list[Row]) -> str:
    """Macro F1 set by set."""
    sets = sorted({row.case for row in rows if row.case.startswith("UCI")})
    table = [
        [
            case.removeprefix("UCI "),
            *(f"{mean(rows, case, model, 'macro F1'):.3f}" for model in UCI),
        ]
        for case in sets
    ]
    for measure in ("macro F1", "balanced accuracy"):
        means = (f"{mean(rows, 'UCI', model, measure):.3f}" for model in UCI)
        table.append([f"**mean {measure}**", *means])
    return lines(["set", *UCI], table)


def page_with_tables(text: str, rows: list[Row]) -> str:
    """The page with its tables as the rows have them."""
    tables = {"goals": goals_table, "ai4i": ai4i_table, "uci": uci_table}
    return MARKS.sub(lambda mark: mark[1] + tables[mark[2]](rows) + mark[3], text)


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8"), read_rows()), "utf-8")
