"""The README's code runs as printed, and the commands it names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_code_runs_and_says_what_its_comments_say(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    assert blocks
    scope = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), scope)
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
