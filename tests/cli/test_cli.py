"""The program as such: help, exit codes, errors in one line, pipes, interruption."""

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import click
import pytest

from fdrsvm.cli.application import root
from fdrsvm.data.rows import DataSettings, read_rows
from fdrsvm.model.model_file import load_model
from tests.cli.cases import call, error_line, on_a_terminal, run

CONTEXT = click.Context(root)
COMMANDS = {name: root.get_command(CONTEXT, name) for name in root.list_commands(CONTEXT)}


def test_help_lists_every_command_and_the_exit_codes():
    done = run("--help")
    assert done.returncode == 0
    for name in (*COMMANDS, "Exit codes: 0 done, 1 failed, 2 wrong usage", "example:"):
        assert name in done.stdout
    assert run("--version").stdout.startswith("fdrsvm ")


def test_help_imports_no_numbers_and_no_plots():
    code = "import sys; from fdrsvm.cli import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"numpy", "numba", "scipy", "sklearn", "matplotlib", "flwr", "rich"}


def helps():
    for name, command in COMMANDS.items():
        yield (name,)
        yield from ((name, verb) for verb in getattr(command, "commands", ()))


@pytest.mark.parametrize("path", list(helps()), ids=" ".join)
def test_every_command_has_help_with_an_example(path, capsys):
    code, out, err = call(capsys, *path, "--help")
    assert (code, err) == (0, "")
    assert f"example: fdrsvm {' '.join(path)}" in out
    assert "--debug" in out


def test_nothing_at_all_prints_the_help_and_exits_2(capsys):
    code, out, err = call(capsys)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: fdrsvm")


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("nonsense",), "No such command 'nonsense'"),
        (("demo", "--seed", "x"), "'x' is not a valid integer"),
        (("demo", "--seed", "-1"), "-1 is not in the range"),
        (("fit", "--sett", "x"), "No such option '--sett'"),
        (("predict",), "Missing argument 'MODEL'"),
        (("export", "pdf", "model"), "'pdf' is not one of 'onnx', 'st', 'json'"),
        (("export", "onnx", "model"), "--output FILE is needed"),
        (("report", "model", "--sample", "-1"), "-1 is not in the range"),
        (("certify", "model", "--c1", "2"), "--c1 and --c2 go together"),
        (("reproduce",), "Missing argument"),
        (("federation", "run", "fed"), "Missing option '--output'"),
    ],
)
def test_wrong_usage_is_one_line_and_exits_2(capsys, arguments, rule):
    line = error_line(capsys, *arguments, code=2)
    assert line.startswith(f"fdrsvm{'' if arguments[0] == 'nonsense' else ' ' + arguments[0]}")
    assert rule in line
    assert "--help" in line


def test_a_traceback_is_shown_only_if_asked_for(tmp_path, capsys):
    line = error_line(capsys, "fit", tmp_path / "none.csv")
    assert line.startswith("fdrsvm: ")
    for arguments in (("--debug", "fit"), ("fit", "--debug")):
        code, _, err = call(capsys, *arguments, tmp_path / "none.csv")
        assert code == 1
        assert "Traceback" in err
        assert err.splitlines()[-1] == line


def test_an_unexpected_error_is_one_line_with_its_kind(capsys, monkeypatch):
    def broken(path):
        raise KeyError("oops")

    monkeypatch.setattr("fdrsvm.model.model_file.load_model", broken)
    line = error_line(capsys, "predict", "m", "d.csv")
    assert line == "fdrsvm: KeyError: 'oops'; run again with --debug to see where"


def test_a_missing_library_is_named_with_its_remedy():
    code = "import sys; sys.modules['click'] = None; from fdrsvm.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "fdrsvm: click is missing: pip install click\n"


def test_the_demo_prints_its_table_and_writes_its_report(tmp_path):
    done = run("demo", "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["model", "plain", "FedAvg", "FDR-SVM"]
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    for number in lines[4].split()[1:]:
        assert f"<td>{number}</td>" in page
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?https?:""", page)  # opens offline


def test_the_demo_writes_files_that_keep_their_contract(tmp_path, capsys):
    code, out, err = call(capsys, "demo", "--data", tmp_path / "pump")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 9
    for part, counts in (("train", 100), ("test", 250)):
        settings = DataSettings(
            paths=(tmp_path / "pump" / part,), contract=tmp_path / "pump" / "contract.json"
        )
        assert set(read_rows(settings).counts().values()) == {counts}
    assert "must be a new or empty folder" in error_line(
        capsys, "demo", "--data", tmp_path / "pump"
    )


def test_a_folder_that_cannot_be_made_is_one_line_on_stderr(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = run("demo", "--output", tmp_path / "file")
    assert done.returncode == 1
    assert done.stderr.startswith("fdrsvm: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_pipe_that_closes_early_is_no_error(home, model):
    command = f"{sys.executable} -m fdrsvm predict {model} {home / 'plants'} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "client,row,predicted,decision,reason\n"
    assert done.stderr == ""


def test_progress_is_for_terminals_and_colours_can_be_refused(home, tmp_path):
    arguments = ("fit", home / "plants", "--output", tmp_path)
    # A fit may be through its first round before the first picture is drawn.
    seen, out = on_a_terminal(*arguments)
    assert re.search(r"training|round \d+", seen)
    assert "\x1b[" in seen
    assert "\x1b" not in out
    seen, _ = on_a_terminal(*arguments, NO_COLOR="1")
    assert re.search(r"training|round \d+", seen)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", seen)  # no colour of letters


def test_an_interrupted_fit_says_so_and_leaves_nothing(home, tmp_path):
    endless = ("algorithm=subgradient", "tol=0", "max_rounds=10000000", "verbose=1")
    options = [part for each in endless for part in ("--set", each)]
    command = [sys.executable, "-m", "fdrsvm", "fit", str(home / "plants"), "--no-tune", *options]
    process = subprocess.Popen(
        [*command, "--output", str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout.readline().startswith("round")  # it trains
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip() == "fdrsvm: interrupted"
    assert not (tmp_path / "run").exists()


needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")


@needs_full
def test_a_full_disk_under_standard_output_is_one_line(home, model):
    for arguments in (("predict", model, home / "plants"), ("certify", model)):
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-m", "fdrsvm", *map(str, arguments)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1
        assert done.stderr == (
            "fdrsvm: standard output: the disk is full; make room, or write elsewhere\n"
        )


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small file system may not be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def files_in(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("free", [0, 1])  # pages: none, or one for the model alone
def test_a_full_disk_leaves_model_and_certificate_or_neither(home, small_disk, capsys, free):
    fit = ("fit", home / "plants", "--set", "epsilon=0.02", "--output", small_disk / "run")
    assert call(capsys, *fit)[0] == 0
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    os.truncate(filler, filler.stat().st_size - 4096 * free)
    before = files_in(small_disk)
    again = (*fit[:2], "--set", "epsilon=0.03", "--output")  # another model, and no degenerate one
    for folder in ("run", "new"):
        line = error_line(capsys, *again, small_disk / folder)
        assert line.startswith(f"fdrsvm: {small_disk / folder}")
        assert line.endswith(": the disk is full; make room, or write elsewhere")
        assert files_in(small_disk) == before
    assert not (small_disk / "new").exists()
    filler.unlink()
    assert call(capsys, *again, small_disk / "run")[0] == 0
    kept = json.loads((small_disk / "run" / "certificate.json").read_text())
    model = load_model(small_disk / "run" / "model.safetensors")
    assert kept["model_sha256"] == model.fingerprint


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "a"), "a: the disk is full; make room"),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "a"), "a: your share of the disk is used up"),
        (OSError(errno.EFBIG, "File too large", "a"), "a: the file would be larger than it may be"),
        (PermissionError(errno.EACCES, "Permission denied", "a"), "a: Permission denied"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (OSError("only words"), "only words"),
        (OSError(), "OSError"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_every_error_of_the_system_is_one_line(capsys, monkeypatch, error, words):
    def broken(path):
        raise error

    monkeypatch.setattr("fdrsvm.model.model_file.load_model", broken)
    line = error_line(capsys, "predict", "m", "d.csv")
    assert line.startswith(f"fdrsvm: {words}")


def test_commands_leave_no_temporary_files(home, model, tmp_path):
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    plants = home / "plants"
    for arguments in (
        ("fit", plants, "--output", tmp_path / "run"),
        ("report", model, plants, "--output", tmp_path / "page.html"),
        ("demo", "--data", tmp_path / "pump"),
        ("audit-leak", plants, "--rounds", "3"),
        ("evaluate", model, plants),
    ):
        done = run(*arguments, env={**os.environ, "TMPDIR": str(scratch)})
        assert done.returncode == 0, done.stderr
        assert list(scratch.iterdir()) == []
