"""docs/first-ten-minutes.md is what its script types, and what comes back."""

import importlib.util
import math
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "first-ten-minutes.md").read_text(encoding="utf-8")


def script():
    spec = importlib.util.spec_from_file_location("transcript", DOCS / "first_ten_minutes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of(kind):
    lines = [line.split() for line in PAGE.splitlines() if line.startswith(f"{kind} ")]
    return {line[1]: float(line[-1]) for line in lines if line[1].startswith("plant-")}  # F1


def test_the_page_has_every_step_of_its_script():
    made = script()
    for text, *commands in made.STEPS:
        assert f"\n{text}\n" in PAGE
        for command in commands:
            assert f"\n$ {command}\n" in PAGE
    assert made.HEAD in PAGE
    assert made.FOOT in PAGE
    assert made.CONFIG in PAGE


def test_what_the_page_says_about_joining_is_in_its_table():
    joined, alone, pooled = rows_of("model"), rows_of("local"), rows_of("central")
    for name in ("plant-1", "plant-2", "plant-3"):
        assert joined[name] >= alone[name]
    assert joined["plant-4"] < alone["plant-4"]
    assert pooled["plant-4"] < alone["plant-4"]


def is_close(left, right):
    """The same word, or a number that differs by the rounding of another machine."""
    try:
        # Gaps are differences of nearly equal numbers.
        return math.isclose(float(left), float(right), rel_tol=1e-3, abs_tol=1e-4)
    except ValueError:
        return left == right


@pytest.mark.slow
def test_the_page_is_what_comes_back(tmp_path):
    again, kept = (re.split(r"[\s,]+", text) for text in (script().transcript(tmp_path), PAGE))
    assert len(again) == len(kept)
    assert [pair for pair in zip(again, kept, strict=True) if not is_close(*pair)] == []
