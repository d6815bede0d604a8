"""Writes the tables of docs/joining.md from the rows in benchmarks/results/personal.csv.

    python docs/publish_joining.py

The rows are measured by ``python -m benchmarks.personal``.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.personal import KINDS, Row, read_rows  # noqa: E402

PAGE = HERE / "joining.md"
MARKS = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
MODELS = ("shared", "alone", *KINDS)
SMALLEST, OTHERS = "leak 0.001", "the other three"
POINT = 0.01


def mean(rows: list[Row], model: str, plants: set[str], column: str = "own") -> float:
    """Over plants and seeds."""
    chosen = [row for row in rows if row.model == model and row.plant in plants]
    return float(np.mean([getattr(row, column) for row in chosen]))


def verdict(value: float, wanted: float) -> str:
    """What was wanted, and whether it came."""
    return f"{wanted:g}" if value >= wanted else f"{wanted:g}: **missed**"


def lines(headings: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    cells = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def pump_table(rows: list[Row]) -> str:
    """Four plants with wrong labels, mean of the seeds; and the demo's files."""
    pump, demo = ([row for row in rows if row.case == case] for case in ("pump", "demo"))
    every = {row.plant for row in pump}
    asked = {
        f"its own leak: {SMALLEST.removeprefix('leak ')}, the smallest": (
            (pump, {SMALLEST}, "own"),
            0.86,
        ),
        f"their own leaks: {OTHERS}": ((pump, every - {SMALLEST}, "own"), 0.998),
        "all leaks: mean over the plants": ((pump, every, "everywhere"), 0.879),
        "files of `demo --data`: plant 4, its own leak": ((demo, {"plant-4"}, "own"), 0.88),
    }
    table = []
    for name, ((found, plants, column), wanted) in asked.items():
        values = {model: mean(found, model, plants, column) for model in MODELS}
        cells = [f"{values[model]:.3f}" for model in MODELS]
        table.append([name, *cells, verdict(round(values["retune"], 3), wanted)])
    return lines(["balanced accuracy", *MODELS, "wanted of retune"], table)


def by_case(rows: list[Row]) -> dict[tuple[str, int], dict[str, float]]:
    """Of each UCI draw the mean over the plants whose test rows have both classes, by model.

    A plant whose training rows have one class cannot train alone: it guesses, .5.
    """
    found: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.case.startswith("uci") and not np.isnan(row.own):
            found[row.case, row.seed][row.model].append(row.own)
    cases = {}
    for case, models in found.items():
        n_plants = len(models["shared"])
        models["alone"] += [0.5] * (n_plants - len(models["alone"]))
        cases[case] = {model: float(np.mean(values)) for model, values in models.items()}
    return cases


def lost(models: dict[str, float], model: str) -> float:
    """How much worse than the better of the shared model and one alone."""
    return max(models["shared"], models["alone"]) - models[model]


def averaged(cases: dict[tuple[str, int], dict[str, float]]) -> dict[str, dict[str, float]]:
    """Over the draws of each set and split."""
    names = dict.fromkeys(case for case, _ in cases)
    return {
        name: {
            model: float(np.mean([one[model] for (case, _), one in cases.items() if case == name]))
            for model in MODELS
        }
        for name in names
    }


def uci_table(rows: list[Row]) -> str:
    """Seven sets, two ways to make unlike plants."""
    draws = by_case(rows)
    table = [
        [name.removeprefix("uci "), *(f"{models[model]:.3f}" for model in MODELS)]
        for name, models in averaged(draws).items()
    ]
    whole = [np.mean([one[model] for one in draws.values()]) for model in MODELS]
    table.append(["**mean**", *(f"**{value:.3f}**" for value in whole)])
    return lines(["set and split, mean of 5 draws", *MODELS], table)


def harm_table(rows: list[Row]) -> str:
    """How often a model is worse than the better of shared and alone by more than a point."""
    draws = by_case(rows)
    table = []
    for name, found in (("single draws", draws), ("means of 5 draws", averaged(draws))):
        shares = {
            model: np.mean([lost(one, model) > POINT for one in found.values()]) for model in MODELS
        }
        wanted = "5 %" if shares["auto"] <= 0.05 else "5 %: **missed**"
        cells = [f"{100.0 * shares[model]:.0f} %" for model in MODELS]
        table.append([f"{name} ({len(found)})", *cells, wanted])
    return lines(["worse by more than one point", *MODELS, "wanted of auto, at most"], table)


def page_with_tables(text: str, rows: list[Row]) -> str:
    """The page with its tables as the rows have them."""
    tables = {"pump": pump_table, "uci": uci_table, "harm": harm_table}
    return MARKS.sub(lambda mark: mark[1] + tables[mark[2]](rows) + mark[3], text)


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8"), read_rows()), "utf-8")
