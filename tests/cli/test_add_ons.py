"""Commands of other packages: found by entry points, ours first, a broken one spoils nothing."""

import os

import pytest

from fdrsvm.cli.add_ons import ENTRY_POINTS, PACKAGES
from tests.cli.cases import error_line, run

MODULE = """
import click

@click.command()
@click.argument("word")
def shout(word):
    \"\"\"Say it aloud.\"\"\"
    click.echo(word.upper())

VOLUME = 11
"""


@pytest.fixture
def run_with(tmp_path):
    """The program beside an installed package ``loud`` with these entry points."""

    def installed(entries):
        (tmp_path / "loud.py").write_text(MODULE, encoding="utf-8")
        (tmp_path / "ending.py").write_text("raise SystemExit(3)", encoding="utf-8")
        records = tmp_path / "loud-1.0.dist-info"
        records.mkdir()
        (records / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
        lines = [f"[{ENTRY_POINTS}]", *(f"{name} = {value}" for name, value in entries.items())]
        (records / "entry_points.txt").write_text("\n".join(lines))
        return lambda *typed: run(*typed, env=os.environ | {"PYTHONPATH": str(tmp_path)})

    return installed


def test_a_package_adds_a_command(run_with):
    program = run_with({"shout": "loud:shout"})
    assert "shout Say it aloud." in " ".join(program("--help").stdout.split())
    done = program("shout", "hello")
    assert (done.returncode, done.stdout, done.stderr) == (0, "HELLO\n", "")
    wrong = program("shout")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("fdrsvm shout: Missing argument 'WORD'.")


def test_no_package_takes_the_place_of_a_command_of_ours(run_with):
    program = run_with({"demo": "loud:shout"})
    assert "Train on four plants" in program("demo", "--help").stdout
    assert "aloud" not in program("--help").stdout


@pytest.mark.parametrize(
    "value", ["loud:whisper", "no_such_module_at_all:shout", "loud:VOLUME", "ending:shout"]
)
def test_a_package_that_is_broken_is_named_and_spoils_no_other_command(run_with, value):
    program = run_with({"shout": value})
    listed = program("--help")
    assert listed.returncode == 0
    assert "Cannot be loaded; install loud again." in listed.stdout
    assert "Train on four plants" in listed.stdout
    done = program("shout", "hello", "--twice")
    assert done.returncode == 1
    assert done.stderr.startswith("fdrsvm: shout: the package loud cannot be loaded (")
    assert done.stderr.endswith("); install it again\n")
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" in program("shout", "--debug").stderr


@pytest.mark.parametrize("command", PACKAGES)
def test_a_command_that_is_not_installed_names_its_package(capsys, monkeypatch, command):
    """As if it were not there; tests/test_release.py tries it in an environment without it."""
    monkeypatch.setattr("fdrsvm.cli.add_ons.ENTRY_POINTS", "nobody.has.these")
    for arguments in ((command,), (command, "--help"), (command, "table1", "--quick")):
        line = error_line(capsys, *arguments, code=2)
        package = PACKAGES[command]
        assert line == (
            f"fdrsvm: {command} needs the package {package}; run pip install {package}. "
            "See 'fdrsvm --help'."
        )
