"""Text of others is seen, not obeyed: by terminals, logs and spreadsheets."""

import csv
import io
import logging
import re
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdrsvm.core.texts import as_meant, csv_text, inert, package_log, printable, printable_lines
from fdrsvm.data.tables import parse_table, read_labels

SEEN = {
    "\x1b[31mred\x1b[0m": r"\x1b[31mred\x1b[0m",
    "two\nlines\r\n": r"two\nlines\r\n",
    "tab\tbell\x07nul\x00del\x7f": r"tab\tbell\x07nul\x00del\x7f",
    "one byte CSI \x9b2J": r"one byte CSI \x9b2J",
    "next line \x85 and \u2028": r"next line \x85 and \u2028",
    "turned \u202etxt.exe\u202c \u2066x\u2069 \u200f": (
        r"turned \u202etxt.exe\u202c \u2066x\u2069 \u200f"
    ),
    "hidden \u200b\ufeff\U000e0041": r"hidden \u200b\ufeff\U000e0041",
    "half \udcff": r"half \udcff",
    "Pumpe Süd 3 °C, 压力, 10\u00a0000": "Pumpe Süd 3 °C, 压力, 10\u00a0000",
    "[red]no markup[/red]": "[red]no markup[/red]",
    "C:\\new": "C:\\new",
}


@pytest.mark.parametrize("text", SEEN)
def test_what_is_not_seen_is_spelt(text):
    assert printable(text) == SEEN[text]
    assert printable_lines(f"a\n{text.replace(chr(10), '')}") == (
        f"a\n{printable(text.replace(chr(10), ''))}"
    )


@given(st.text())
def test_every_character_of_a_printable_text_takes_its_place(text):
    found = printable(text)
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not {unicodedata.category(letter) for letter in found} & hidden
    found.encode()  # no half of a pair
    assert printable(found) == found


def test_the_log_has_one_line_a_message(capsys):
    handler = logging.StreamHandler(sys.stderr)
    log = package_log()
    log.addHandler(handler)
    try:
        log.error("client %r: %s", "north", "bad\x1b[2J\nfdrsvm: all is well")
        try:
            raise ValueError("in a traceback \x1b]0;title\x07")
        except ValueError:
            log.exception("client %s", "so\nuth")
    finally:
        log.removeHandler(handler)
    err = capsys.readouterr().err
    assert err.splitlines()[0] == r"client 'north': bad\x1b[2J\nfdrsvm: all is well"
    assert r"client so\nuth" in err
    assert r"ValueError: in a traceback \x1b]0;title\x07" in err
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", err)


STARTS = "=+-@\t\r\n＝＋－＠"  # noqa: RUF001 - some spreadsheets take the wide ones
cells = st.text(st.sampled_from("=+-@';\t\n\r a1.e＝\""), max_size=10)  # noqa: RUF001


def runs(cell):
    """Whether a spreadsheet could take it for a formula, whichever separator it is set to."""
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", cell):
        return False
    parts = re.split(r"[;\t\r\n]", cell)
    return any(part.lstrip(" ").startswith(tuple(STARTS)) for part in parts)


@settings(max_examples=2000)
@given(cells)
def test_no_cell_runs_and_every_cell_comes_back(cell):
    assert not runs(inert(cell))
    assert as_meant(inert(cell)) == cell
    (row,) = csv.reader(io.StringIO(csv_text([[cell, 1]]), newline=""), strict=True)
    assert row == [inert(cell), "1"]


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'=1"),
        ("  =1", "'  =1"),
        ("x;=1+1", "x;'=1+1"),
        ("'=1", "''=1"),
        ("-1", "-1"),
        ("+1.5e3", "+1.5e3"),
        ("leak", "leak"),
        ("it's", "it's"),
        ("", ""),
    ],
)
def test_cells_by_example(cell, written):
    assert inert(cell) == written
    assert as_meant(written) == cell


def test_numbers_stay_numbers_and_other_peoples_apostrophes_stay():
    assert csv_text([[-1, -0.5, float("-inf"), "-3"]]) == "-1,-0.5,-inf,-3\n"
    for cell in ("'-5", "'", "'quoted'", "o'=x"):
        assert as_meant(cell) == cell


def test_labels_and_column_names_are_read_as_they_were_meant():
    labels = ["=leak", "ok", "-worn", "@x;=1"]
    text = csv_text([["=flow", "label"], *([k, name] for k, name in enumerate(labels))])
    table = parse_table(text.encode(), "a.csv")
    assert table.columns == ["=flow", "label"]
    assert read_labels(table["label"])[0].tolist() == labels
