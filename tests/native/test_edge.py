"""Whatever the compiled module is called with, it answers or raises; it never takes Python down."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native import fuzz

ROOT = Path(__file__).parents[2]
MOST_RESTARTS = 20  # calls that were still running after their time


def run_calls(log, first):
    """The exit code of a process that makes the calls from ``first`` on, and what it said."""
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.native.fuzz", log, str(first)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    return run.returncode, run.stderr[-3000:]


def test_wrong_arguments_never_end_the_process(tmp_path):
    log, first = tmp_path / "calls", 0
    log.touch()
    for _ in range(MOST_RESTARTS):
        code, said = run_calls(log, first)
        last = log.read_text().splitlines()[-1]
        if last == "done":
            return
        assert code == -signal.SIGALRM, f"{last}\nended the process with {code}:\n{said}"
        first = int(last.split()[0])
    pytest.fail(f"{MOST_RESTARTS} calls took longer than {fuzz.LIMIT} s, the last one {last}")


def test_most_functions_are_also_called_with_arguments_that_work():
    names = [function.name for function in fuzz.functions()]
    unreached = fuzz.unreached()
    assert {"norms.dual_norm", "products.times"} <= set(names) - set(unreached)
    assert len(unreached) <= len(names) / 4, unreached


def test_a_crash_would_be_seen(tmp_path):
    """The same machinery on a module whose only function reads where it may not."""
    log = tmp_path / "calls"
    code = (
        "import ctypes, sys; from tests.native import fuzz; "
        "crash = fuzz.Function('crash', lambda x: ctypes.string_at(1), None, {'x': 'int'}); "
        "fuzz.functions = lambda: [crash]; "
        "fuzz.Caller.working_arguments = lambda self, function: ({'x': 1}, True); "
        "fuzz.main(sys.argv[1])"
    )
    run = subprocess.run([sys.executable, "-c", code, log], cwd=ROOT, capture_output=True)
    assert run.returncode != 0  # of a signal, or of the sanitizer
    assert [line.split("(")[0] for line in log.read_text().splitlines()] == ["1 crash"]
