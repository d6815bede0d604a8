"""docs/joining.md: its code prints what it says, and its tables are those of the rows."""

import contextlib
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.personal import Row, demo, read_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
import publish_joining

TEXT = publish_joining.PAGE.read_text(encoding="utf-8")


def test_the_page_has_the_tables_of_the_rows():
    assert publish_joining.page_with_tables(TEXT, read_rows()) == TEXT
    assert {mark[1] for mark in publish_joining.MARKS.findall(TEXT)} == {"pump", "uci", "harm"}


def test_every_case_was_measured():
    rows = read_rows()
    assert {row.seed for row in rows if row.case == "pump"} == set(range(10))
    assert len(publish_joining.by_case(rows)) == 70
    assert {row.model for row in rows} == set(publish_joining.MODELS)
    second = publish_joining.mean([r for r in rows if r.case == "pump"], "retune", {"leak 0.004"})
    assert f"has {second:.4f}" in TEXT


def test_a_goal_that_is_missed_is_written_as_missed():
    assert publish_joining.verdict(0.86, 0.86) == "0.86"
    assert publish_joining.verdict(0.859, 0.86) == "0.86: **missed**"


def test_a_case_is_the_mean_of_its_plants():
    def row(plant, model, own, seed=0):
        return Row("uci x k-means", seed, plant, model, "", own, 0.0)

    rows = [row("a", "shared", 0.8), row("b", "shared", 0.6), row("c", "shared", float("nan"))]
    rows += [row("a", "alone", 0.9)]  # the other has rows of one class
    [models] = publish_joining.by_case(rows).values()
    assert models == {"shared": pytest.approx(0.7), "alone": pytest.approx(0.7)}
    assert publish_joining.lost({"shared": 0.7, "alone": 0.8, "auto": 0.75}, "auto") == (
        pytest.approx(0.05)
    )


def test_the_code_prints_what_the_page_says():
    [(code, printed)] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, re.S)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "docs/joining.md", "exec"), {})
    assert out.getvalue() == printed


@pytest.mark.slow
def test_the_rows_come_out_again():
    kept = {(r.plant, r.model): r for r in read_rows() if r.case == "demo"}
    for row in demo():
        old = kept[row.plant, row.model]
        assert old.choice == row.choice
        np.testing.assert_allclose([row.own, row.everywhere], [old.own, old.everywhere], atol=5e-3)
