"""The table of slacks is that of the rows that were kept."""

import sys
from itertools import product
from pathlib import Path

import pytest
from benchmarks.tightness import MAPS, RADII, measure, pump, read_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
import publish_tightness


def test_the_page_has_the_table_of_the_rows():
    text = publish_tightness.PAGE.read_text(encoding="utf-8")
    assert len(publish_tightness.MARKS.findall(text)) == 1
    assert publish_tightness.page_with_table(text, read_rows()) == text


def test_every_case_was_measured_once():
    rows = read_rows()
    sets = {row.data for row in rows}
    expected = set(product(sets, MAPS, publish_tightness.NORMS, RADII))
    assert {row[:4] for row in rows} == expected
    assert len(rows) == len(expected)


def test_bounds_lie_in_their_order():
    for row in read_rows():
        assert row.mean_loss <= row.attack <= row.certified * (1.0 + 1e-6)
        # Both are proved of the same model, which was trained with the larger one.
        assert row.certified <= row.trained * (1.0 + 1e-6)


def test_a_goal_that_is_missed_is_written_as_missed():
    [row] = [row for row in read_rows() if row[:4] == ("pump", "additive", "l2", 0.001)]
    assert "missed" in publish_tightness.shown(row._replace(certified=1.06 * row.attack))
    assert publish_tightness.shown(row._replace(certified=1.04 * row.attack)) == "4.0%"
    pairs = row._replace(features="additive-pairs", certified=1.5 * row.attack)
    assert publish_tightness.shown(pairs) == "50.0%"  # nothing was wanted


@pytest.mark.slow
def test_the_kept_numbers_come_out_again():
    row = measure("pump", pump(), "additive", "l1", 0.01)
    [kept] = [one for one in read_rows() if one[:4] == row[:4]]
    # Two models within the gap of 1e-3 that training leaves.
    assert row.certified == pytest.approx(kept.certified, rel=2e-3)
    assert row.attack == pytest.approx(kept.attack, rel=2e-3)
