"""The command line through a real process."""

import re
import subprocess
import sys


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "fdrsvm", *arguments], capture_output=True, text=True, check=False
    )


def test_help_and_version():
    assert "demo" in run("--help").stdout
    assert "example:" in run("demo", "--help").stdout
    assert run("--version").stdout.startswith("fdrsvm ")


def test_wrong_usage_exits_2():
    for arguments in ((), ("nonsense",), ("demo", "--seed", "x"), ("demo", "--seed", "-1")):
        done = run(*arguments)
        assert done.returncode == 2
        assert "usage: fdrsvm" in done.stderr


def test_the_demo_prints_its_table_and_writes_its_report(tmp_path):
    done = run("demo", "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["model", "plain", "FedAvg", "FDR-SVM"]
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    for number in lines[4].split()[1:]:
        assert f"<td>{number}</td>" in page
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?https?:""", page)  # opens offline


def test_a_folder_that_cannot_be_made_is_one_line_on_stderr(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = run("demo", "--output", str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr.startswith("fdrsvm: ")
    assert len(done.stderr.splitlines()) == 1
