"""`fdrsvm reproduce` through a real process."""

import json
import re

import pytest

from fdrsvm_paper.rows import read_rows
from tests.cli.cases import run


def test_help_names_targets_protocols_and_an_example():
    text = run("reproduce", "--help").stdout
    for word in ("table1", "wilcoxon", "sensitivity", "paper-code", "--quick", "example:"):
        assert word in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("reproduce",),
        ("reproduce", "table3"),
        ("reproduce", "table1", "--protocol", "mine"),
        ("reproduce", "table1", "--repetitions", "0"),
        ("reproduce", "table1", "--jobs", "two"),
        ("reproduce", "table1", "--seed", "-1"),
    ],
)
def test_wrong_usage_exits_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("fdrsvm reproduce: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_data_folder_is_named_in_one_line(tmp_path):
    folder = tmp_path / "nowhere"
    done = run(
        *("reproduce", "table1", "--quick", "--data", str(folder)),
        *("--output", str(tmp_path / "out")),
    )
    assert done.returncode == 1
    assert done.stderr.startswith("fdrsvm: data_home: must be a folder")
    assert str(folder) in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_target_gives_rows_tables_figures_page_and_record_and_is_not_run_twice(tmp_path):
    command = ("reproduce", "sensitivity", "--quick", "--jobs", "2", "--output", str(tmp_path))
    done = run(*command)
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path / "rows" / "sensitivity-paper-code.csv")
    assert {row["severities"] for row in rows} == {"paper", "labelling"}
    assert {row["method"] for row in rows} == {"SM", "ADMM", "ADMM-SC", "Bundle", "Central"}
    for suffix in ("svg", "png"):
        assert len(list((tmp_path / "figures").glob(f"*.{suffix}"))) == 2
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?https?:""", page)  # opens offline
    (record,) = json.loads((tmp_path / "run.json").read_text())["sensitivity-paper-code"]
    assert record["command"].startswith("fdrsvm reproduce sensitivity --quick")
    assert record["settings"]["seed"] == 0
    assert record["versions"]["numpy"]
    assert record["machine"]["cores"] >= 1

    again = run(*command)
    assert again.returncode == 0
    assert " of " not in again.stderr  # no progress: nothing was left to do
    assert read_rows(tmp_path / "rows" / "sensitivity-paper-code.csv") == rows
    assert len(json.loads((tmp_path / "run.json").read_text())["sensitivity-paper-code"]) == 1

    other = run(*command, "--seed", "1")
    assert other.returncode == 1
    assert "seed: must be that of the rows already there" in other.stderr
