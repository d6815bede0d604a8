"""Writes the tables of rounds in docs/federated.md from the rows in benchmarks/results/rounds.csv.

    python docs/publish_rounds.py

The rows are measured by ``python -m benchmarks.rounds``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.rounds import SETTINGS, Row, read_rows  # noqa: E402

PAGE = HERE / "federated.md"
MARKS = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
# What was wanted of the fewest rounds in the open.
WANTED = {
    "UCI banknote": 6,
    "UCI bcw": 12,
    "UCI sonar": 15,
    "UCI mammographic": 7,
    "UCI parkinsons": 9,
    "UCI rice": 7,
    "UCI ukm": 7,
    "synthetic 60": 18,
    "synthetic 160": 40,
    "pump additive": 16,
    "pump Fourier 200": 16,
    "AI4I additive": 16,
    "AI4I Fourier 200": 16,
}
WANTED_SECONDS = {
    "pump additive": 0.4,
    "pump Fourier 200": 0.4,
    "AI4I additive": 0.4,
    "AI4I Fourier 200": 0.4,
    "pump Fourier 400": 1.2,
}
# With the setting that is for it: many points for few rounds, two for little time.
_FOR_ROUNDS, _FOR_TIME = "metric, 4 points", "metric"


def find(rows: list[Row], case: str, setting: str) -> Row:
    """One run."""
    [row] = [row for row in rows if (row.case, row.setting) == (case, setting)]
    return row


def names(rows: list[Row], *prefixes: str) -> list[str]:
    """Cases in the order in which they were measured."""
    return [case for case in dict.fromkeys(row.case for row in rows) if case.startswith(prefixes)]


def lines(headings: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    cells = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def shown(row: Row) -> str:
    """How many rounds it took, or that all were used."""
    return f"> {row.rounds}" if row.gap > row.tol else str(row.rounds)


def verdict(value: float, wanted: float | None) -> str:
    """What was wanted, and whether it came."""
    if wanted is None:
        return ""
    return f"{wanted:g}" if value <= wanted else f"{wanted:g}: **missed**"


def rounds_table(rows: list[Row]) -> str:
    """Rounds to 1e-4 on plain features, setting by setting."""
    cases = names(rows, "UCI", "synthetic")
    table = [
        [setting, *(shown(find(rows, case, setting)) for case in cases)] for setting in SETTINGS
    ]
    goals = [verdict(find(rows, case, _FOR_ROUNDS).rounds, WANTED[case]) for case in cases]
    table.append([f"wanted (of {_FOR_ROUNDS})", *goals])
    return lines(["setting", *(case.removeprefix("UCI ") for case in cases)], table)


def maps_table(rows: list[Row]) -> str:
    """Rounds, time and volume to 1e-3 on mapped features."""
    table = []
    for case in names(rows, "pump", "AI4I"):
        for setting in SETTINGS:
            row = find(rows, case, setting)
            rounds = verdict(row.rounds, WANTED.get(case)) if setting == _FOR_ROUNDS else ""
            seconds = verdict(row.seconds, WANTED_SECONDS[case]) if setting == _FOR_TIME else ""
            table.append(
                [
                    f"{case}, D = {row.features}" if setting == next(iter(SETTINGS)) else "",
                    setting,
                    shown(row),
                    rounds,
                    f"{row.seconds:.2f}",
                    seconds,
                    f"{row.server_seconds:.2f}",
                    f"{row.kilobytes:,.0f}",
                ]
            )
    headings = ["data", "setting", "rounds", "wanted", "CPU s", "wanted", "server's s", "kB"]
    return lines(headings, table)


def cost_table(rows: list[Row]) -> str:
    """Time and volume on plain features, summed over the seven sets, and of the synthetic ones."""
    groups = {"seven UCI sets": names(rows, "UCI")}
    groups |= {case: [case] for case in names(rows, "synthetic")}
    table = []
    for setting in SETTINGS:
        cells = [setting]
        for cases in groups.values():
            found = [find(rows, case, setting) for case in cases]
            cells.append(f"{sum(row.seconds for row in found):.2f}")
            cells.append(f"{sum(row.kilobytes for row in found):,.0f}")
        table.append(cells)
    headings = ["setting"]
    for name in groups:
        headings += [f"{name}: CPU s", "kB"]
    return lines(headings, table)


def page_with_tables(text: str, rows: list[Row]) -> str:
    """The page with its tables as the rows have them."""
    tables = {"rounds": rounds_table, "maps": maps_table, "costs": cost_table}
    return MARKS.sub(lambda mark: mark[1] + tables[mark[2]](rows) + mark[3], text)


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8"), read_rows()), "utf-8")
