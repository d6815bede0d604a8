"""Names from other people's files: a terminal shows them, and a spreadsheet does not run them."""

import ast
import csv
import io
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import fdrsvm.cli
from fdrsvm.cli import console
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import save_model
from tests.cli.cases import FEATURES, call, on_a_terminal, write_csv

FOLDER = Path(fdrsvm.cli.__file__).parent
EVIL = "\x1b]0;owned\x07\x1b[2Jnorth\nfdrsvm: all is well\u202e[red]x[/red]"
SPELT = r"\x1b]0;owned\x07\x1b[2Jnorth\nfdrsvm: all is well\u202e[red]x[/red]"
FORMULA = '=HYPERLINK("http://x")'


def controls(text):
    return {letter for letter in text if not letter.isprintable()} - {"\n"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_only_the_console_prints(path):
    """Whatever prints elsewhere would print what it is given."""
    if path.stem in ("console", "__init__"):  # the latter has a message of our own alone
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            assert node.id != "print"
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"echo", "secho", "stdout", "stderr", "print_exception"}


def test_every_way_to_print_shows_what_it_is_given(capsys):
    console.say(EVIL)
    console.say_lines([EVIL, "second"])
    console.say_words(EVIL)
    console.show_table([EVIL, "rows"], [[EVIL, "1"]])
    console.warn(EVIL)
    console.warn_lines(f"first\n{EVIL}")
    console.say_json({EVIL + "\x7f": 1})
    out, err = capsys.readouterr()
    assert not controls(out + err)
    assert out.count(SPELT) == 5  # none of them is wrapped
    assert err.splitlines()[0] == f"fdrsvm: {SPELT}"
    assert json.loads(out[out.index("{\n") :]) == {EVIL + "\x7f": 1}


def test_what_the_encoding_lacks_is_escaped_and_ends_nothing(monkeypatch):
    """A console of western Windows and a plant called 工場."""
    raw = {name: io.BytesIO() for name in ("stdout", "stderr")}
    for name, bytes_of in raw.items():
        monkeypatch.setattr(sys, name, io.TextIOWrapper(bytes_of, "cp1252", newline="\n"))
    console.say("工場 in Köln")
    console.show_table(["client"], [["工場"]])
    console.put_content("工場\n")
    console.warn("工場")
    console.warn_lines("工場\n")
    sys.stderr.flush()
    spelt = r"\u5de5\u5834"
    out, err = (raw[name].getvalue().decode("cp1252") for name in ("stdout", "stderr"))
    assert [line.strip() for line in out.splitlines()] == [
        f"{spelt} in Köln",
        "client",
        spelt,
        spelt,
    ]
    assert err.split() == ["fdrsvm:", spelt, spelt]


@pytest.fixture
def evil_model(tmp_path):
    model = LinearModel.checked(
        np.array([[1.0, -0.5, 0.1]]),
        np.array([-30.0]),
        (FORMULA, "leak" + EVIL),
        estimator="DRSVC",
        feature_names=FEATURES,
        params={},
        certificate={},
    )
    save_model(model, tmp_path / "evil.safetensors")
    return tmp_path / "evil.safetensors"


@pytest.fixture
def evil_rows(tmp_path):
    X = np.array([[10.0, 1.0, 1.0], [60.0, 1.0, 1.0]])
    labels = [FORMULA, "leak" + EVIL]
    return write_csv(tmp_path / "rows.csv", X, labels, plant=["=1+1", EVIL])


def test_scores_and_errors_show_names(evil_model, evil_rows, capsys):
    arguments = ("evaluate", evil_model, evil_rows, "--client-column", "plant")
    code, out, err = call(capsys, *arguments)
    assert (code, err) == (0, "")
    assert SPELT in out
    assert not controls(out)
    code, out, err = call(capsys, *arguments, "--positive", EVIL)
    assert code == 1
    assert len(err.splitlines()) == 1
    assert not controls(err)
    for debug in ((), ("--debug",)):
        code, _, err = call(capsys, "fit", f"{EVIL}.csv", *debug)
        assert code == 1
        assert (
            SPELT.replace(r"\n", "; ") in err.splitlines()[-1]
        )  # an error of several lines is one
        assert not controls(err)
    code, _, err = call(capsys, f"nonsense{EVIL}")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert not controls(err)


def test_a_federations_words_are_printed_by_the_console():
    from fdrsvm.cli import federation

    assert federation.say is console.say


def test_a_warning_is_one_line_without_the_program(monkeypatch, capsys):
    def warns(path):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(EVIL, UserWarning, stacklevel=1)
        raise OSError("no reason")

    monkeypatch.setattr("fdrsvm.model.model_file.load_model", warns)
    code, _, err = call(capsys, "predict", "m", "d.csv")
    assert code == 1
    assert err.splitlines()[-1] == "fdrsvm: no reason"
    assert not controls(err)
    assert "test_safe_printing.py" not in err


def test_predict_writes_no_formula_and_labels_come_back(evil_model, evil_rows, tmp_path, capsys):
    arguments = ("predict", evil_model, evil_rows, "--client-column", "plant")
    code, out, _ = call(capsys, *arguments)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert [row["client"] for row in rows] == ["'=1+1", EVIL]
    assert [row["predicted"] for row in rows] == ["'" + FORMULA, "leak" + EVIL]
    assert [row["decision"] for row in rows] == ["-20.4", "29.6"]
    lines = out.split("\n")
    assert not any(line.startswith(("=", "+", "-", "@")) for line in lines)
    X = np.array([[10.0, 1.0, 1.0], [60.0, 1.0, 1.0]])
    write_csv(tmp_path / "again.csv", X, [row["predicted"] for row in rows])
    code, out, err = call(capsys, "evaluate", evil_model, tmp_path / "again.csv", "--json")
    assert code == 0, err
    assert json.loads(out)[-1]["accuracy"] == 1.0


def test_content_is_as_it_is_for_a_file_and_printable_on_a_terminal(evil_model, evil_rows):
    arguments = ("predict", evil_model, evil_rows, "--client-column", "plant")
    err, out = on_a_terminal(*arguments)
    assert (err, EVIL in out) == ("", True)
    seen, _ = on_a_terminal(*arguments, is_output=True)
    assert not controls(seen.replace("\r\n", "\n"))
    assert r"\x1b]0;owned\x07" in seen


def test_a_page_shows_names_too(evil_model, tmp_path, capsys):
    code, _, err = call(capsys, "report", evil_model, "--output", tmp_path / "page.html")
    assert (code, err) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not controls(page)
    assert r"\x1b]0;owned" in page
