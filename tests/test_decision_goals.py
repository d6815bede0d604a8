"""docs/decisions.md has the numbers of the rows that were kept, and says which goals are missed."""

import csv
import sys
from pathlib import Path

import numpy as np
from benchmarks.decision import RESULTS, read_rows

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import publish_decision  # noqa: E402


def test_the_tables_are_those_of_the_rows():
    text = publish_decision.PAGE.read_text(encoding="utf-8")
    assert publish_decision.page_with_tables(text, read_rows()) == text
    assert {mark[1] for mark in publish_decision.MARKS.findall(text)} == {"goals", "ai4i", "uci"}


def test_a_miss_is_written_as_a_miss():
    """By reading the file once more, without the code that writes the page."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = publish_decision.PAGE.read_text(encoding="utf-8")
    table = page.split("<!-- table goals -->\n")[1].split("<!-- end -->")[0].splitlines()[2:]
    assert len(table) == len(publish_decision.WANTED)
    for line in table:
        cells = [cell.strip(" `") for cell in line.split("|")[1:-1]]
        data, model, measure, wanted, found, met = cells
        values = [
            float(row["value"])
            for row in rows
            if row["case"].startswith(data.split(",")[0])
            and (data != "pump" or row["case"] == "pump")
            and (row["model"], row["measure"]) == (model, measure)
        ]
        value, bound = np.mean(values), float(wanted.split()[-1])
        assert f"{value:.4f}" == found
        is_met = value >= bound if wanted.startswith("at least") else value <= bound
        assert met == ("yes" if is_met else "**no**")
    assert page.count("**no**") == 2
    assert "Two goals are missed" in page
