"""The tables of rounds are those of the rows that were kept."""

import sys
from pathlib import Path

import numpy as np
from benchmarks.rounds import SETTINGS, additive, fourier, read_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
import publish_rounds


def test_the_page_has_the_tables_of_the_rows():
    text = publish_rounds.PAGE.read_text(encoding="utf-8")
    assert publish_rounds.page_with_tables(text, read_rows()) == text
    assert {mark[1] for mark in publish_rounds.MARKS.findall(text)} == {"rounds", "maps", "costs"}


def test_every_case_has_a_row_of_each_setting():
    rows = read_rows()
    cases = {row.case for row in rows}
    assert set(publish_rounds.WANTED) <= cases
    assert {(row.case, row.setting) for row in rows} == {(c, s) for c in cases for s in SETTINGS}
    assert len(rows) == len(cases) * len(SETTINGS)


def test_a_goal_that_is_missed_is_written_as_missed():
    assert publish_rounds.verdict(16, 16) == "16"
    assert publish_rounds.verdict(17, 16) == "16: **missed**"


def test_the_maps_are_what_they_are_called():
    X = np.random.default_rng(0).random((20, 3)) * 1.4 - 0.2
    ramps = additive(X, 6).reshape(20, 6, 3)
    # Ramps begin at 0, so their sum is the sensor's value, also outside [0, 1].
    np.testing.assert_allclose(ramps.sum(axis=1), X, atol=1e-12)
    waves = fourier(X, 200)
    assert waves.shape == (20, 200)
    np.testing.assert_allclose((waves**2).sum(axis=1), 1.0)
