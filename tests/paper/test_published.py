"""What docs/reproduction.md prints is what its rows say, and the rows are complete."""

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

from fdrsvm.datasets import UCI_NAMES
from fdrsvm.datasets.pump import SETTINGS, SEVERITIES
from fdrsvm_paper.command import make_tables
from fdrsvm_paper.summary import METHODS

DOCS = Path(__file__).parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("publish", DOCS / "publish_reproduction.py")
publish = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(publish)


@pytest.fixture(scope="module")
def rows():
    return publish.kept_rows()


def test_every_table_on_the_page_is_made_of_its_rows(rows):
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert len(publish.MARKS.findall(text)) >= 8
    assert publish.page_with_tables(text, make_tables(rows)) == text


@pytest.mark.parametrize(("protocol", "repetitions"), [("paper-code", 50), ("text", 20)])
def test_table_1_has_all_its_repetitions(rows, protocol, repetitions):
    cells = Counter((row["data"], row["method"]) for row in rows[f"table1-{protocol}"])
    assert cells == dict.fromkeys([(data, m) for data in UCI_NAMES for m in METHODS], repetitions)


def test_table_2_and_sensitivity_have_all_their_repetitions(rows):
    cells = Counter(
        (row["severities"], row["setting"], row["method"]) for row in rows["table2-paper-code"]
    )
    every = [(s, setting, m) for s in SEVERITIES for setting in SETTINGS for m in METHODS]
    assert cells == dict.fromkeys(every, 10)
    points = Counter(
        (row["severities"], row["setting"], row["method"], row["parameter"], row["value"])
        for row in rows["sensitivity-paper-code"]
    )
    assert set(points.values()) == {50}
    assert {point[:2] for point in points} == {(s, t) for s in SEVERITIES for t in SETTINGS}


def test_every_certified_model_of_the_tables_is_certified(rows):
    tables = [
        float(row["gap"])
        for name in rows
        if name.startswith("table")
        for row in rows[name]
        if row["gap"]
    ]
    assert len(tables) >= 7 * (50 + 20) + 10 * 10
    assert max(tables) <= 1e-4


def test_pictures_named_on_the_page_are_there():
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    names = [part.split(")")[0] for part in text.split("](reproduction/")[1:]]
    assert names
    for name in names:
        assert (DOCS / "reproduction" / name).exists(), name


def test_what_is_kept_is_small():
    files = [path for path in (DOCS / "reproduction").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 5_000_000
