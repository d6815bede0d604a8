"""Writes the table of docs/maps.md from the rows in benchmarks/results/tightness.csv.

    python docs/publish_tightness.py

The rows are measured by ``python -m benchmarks.tightness``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.tightness import MAPS, RADII, Row, read_rows  # noqa: E402

from fdrsvm.core.vectors import NORMS  # noqa: E402

PAGE = HERE / "maps.md"
MARKS = re.compile(r"(<!-- table tightness -->\n).*?(<!-- end -->)", re.DOTALL)
# What was wanted: of a map at most so much between the certificate and the attack.
WANTED = {
    ("additive", "l1"): 1e-6,
    ("additive", "l2"): 0.05,
    **{("fourier", norm): 0.15 for norm in NORMS},
}


def shown(row: Row) -> str:
    """The slack of one model, and whether it was wanted smaller."""
    slack = max(row.slack, 0.0)
    text = "exact" if slack <= WANTED["additive", "l1"] else f"{slack:.1%}"
    is_missed = slack > WANTED.get((row.features, row.norm), 1.0)
    return f"{text}: **missed**" if is_missed else text


def wanted(features: str, norm: str) -> str:
    """In words."""
    share = WANTED.get((features, norm))
    if share is None:
        return ""
    return "exact" if share < 1e-3 else f"{share:.0%}"


def table(rows: list[Row]) -> str:
    """One line per map and norm, one column per data set and radius."""
    sets = list(dict.fromkeys(row.data for row in rows))
    found = {row[:4]: shown(row) for row in rows}
    headings = ["features", "norm", *(f"{name}, {eps:g}" for name in sets for eps in RADII)]
    lines = [
        [
            f"`{features}`",
            norm,
            *(found[name, features, norm, eps] for name in sets for eps in RADII),
            wanted(features, norm),
        ]
        for features in MAPS
        for norm in NORMS
    ]
    cells = [[*headings, "wanted"], ["---"] * (len(headings) + 1), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def page_with_table(text: str, rows: list[Row]) -> str:
    """The page with its table as the rows have it."""
    return MARKS.sub(lambda mark: mark[1] + table(rows) + mark[2], text)


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8"), read_rows()), "utf-8")
