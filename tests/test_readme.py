"""The README's code runs as printed, and the commands it names exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def run_blocks(text, name):
    scope = {}
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
    return scope


def test_the_readme_code_runs_and_says_what_its_comments_say(capsys):
    scope = run_blocks(README, "README.md")
    assert scope["model"].gap_ <= 1e-4
    assert scope["result"].gap <= 1e-4
    assert scope["admm"].gap < 1.0
    risk, worst = scope["r"], scope["q"]
    assert risk.value == pytest.approx(risk.proof, rel=1e-12)
    assert worst.transport_cost == pytest.approx(0.05, rel=1e-12)
    assert worst.risk == pytest.approx(risk.value, rel=1e-9)
    assert scope["s"].status.name == scope["step"].status.name == "SOLVED"
    assert scope["s"].gap <= 1e-9
    assert capsys.readouterr().out.count("\n") >= 5


def test_the_commands_of_the_readme_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.M))
    assert {"demo", "test"} <= named <= targets


def test_the_code_of_the_estimators_page_runs(capsys):
    name = "docs/estimators.md"
    scope = run_blocks((ROOT / name).read_text(encoding="utf-8"), name)
    assert scope["model"].gap_ <= 1e-4
    assert scope["tuned"].gap_ <= 1e-4
    assert (scope["again"].coef_ == scope["model"].coef_).all()
    printed = capsys.readouterr().out
    assert "client 'north', column 'flow'" in printed
    assert "99" not in printed.split("client 'north'")[1].split("label must")[0]  # no value leaks


def test_the_demo_prints_what_the_readme_shows(tmp_path):
    """But for the plain SVM, whose optimum is flat: its last digits are the machine's."""
    command = [sys.executable, "-m", "fdrsvm", "demo", "--output", str(tmp_path / "report")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shown = README.split("of it installing and compiling the package) prints\n\n```\n")[1]
    lines = [line for line in shown.split("```")[0].splitlines() if line]
    assert len(lines) == 11
    printed = done.stdout.splitlines()
    assert [line for line in lines if line not in printed and "plain SVM" not in line] == []
