"""CPU time of a call, a call in a process of its own, and how busy the machine is."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

BATCH = 5e-3  # seconds: the shortest time that is measured
ENOUGH, TOO_LONG = 1.0, 10.0  # seconds of repeats
LEAST, MOST = 3, 25  # repeats
_LOOK_EVERY = 0.5  # seconds


class ContestantError(Exception):
    """A solver that gave no answer; the message says why."""


class Timing(NamedTuple):
    """CPU seconds of one call, by repeat, and what the call gave."""

    seconds: list[float]
    answer: Any


def time_calls(call: Callable[[], Any], enough: float = ENOUGH) -> Timing:
    """Repeats a call for ``enough`` seconds; the first call, a warm-up, is not counted.

    Calls shorter than BATCH are timed many at once. At least LEAST repeats, unless they would
    take longer than TOO_LONG.
    """
    call()
    start = process_time()
    answer = call()
    once = process_time() - start
    n_calls = max(1, round(BATCH / max(once, 1e-9)))
    seconds = [] if n_calls > 1 else [once]
    while not _is_enough(seconds, n_calls, enough):
        start = process_time()
        for _ in range(n_calls):
            call()
        seconds.append((process_time() - start) / n_calls)
    return Timing(seconds, answer)


def _is_enough(seconds: Sequence[float], n_calls: int, enough: float) -> bool:
    spent = n_calls * sum(seconds)
    return (len(seconds) >= LEAST and spent >= enough) or len(seconds) >= MOST or spent >= TOO_LONG


def in_child(call: Callable[[], dict[str, Any]], limit: float) -> dict[str, Any]:
    """What a call gives, as JSON, from a fork of this process that may use this many CPU seconds.

    A crash, a leak or an endless loop stays there: whatever goes wrong is a ContestantError here.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # idle threads of a BLAS do no harm
        child = os.fork()
    if child == 0:
        os.close(reader)
        _answer(call, writer)
    os.setpgid(child, child)  # so that what it starts can be ended with it
    os.close(writer)
    try:
        text = _read_all(reader, child, limit)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not text:
        raise ContestantError(f"its process died, status {status}")
    answer: dict[str, Any] = json.loads(text)
    if "error" in answer:
        raise ContestantError(answer["error"])
    return answer


def _read_all(reader: int, child: int, limit: float) -> bytes:
    """All that the child writes, unless it takes too long.

    The limit is watched from here: under RLIMIT_CPU the kernel would count the child's time in
    ticks of some milliseconds.
    """
    parts = []
    while True:
        ready, _, _ = select.select([reader], [], [], _LOOK_EVERY)
        if ready:
            part = os.read(reader, 65536)
            if not part:
                return b"".join(parts)
            parts.append(part)
        elif _cpu_seconds(child) > limit:
            raise ContestantError(f"no answer within {limit:g} s of CPU time")


def _cpu_seconds(process: int) -> float:
    """CPU time of a process and of those it waited for (Linux only)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _answer(call: Callable[[], dict[str, Any]], writer: int) -> None:
    """The child's part: it never returns."""
    try:
        answer = call()
    except ContestantError as error:
        answer = {"error": str(error)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    with os.fdopen(writer, "w") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def fresh_python(*arguments: str, python: str = sys.executable, **variables: str) -> str:
    """What a new interpreter, started in the checkout, prints."""
    done = subprocess.run(
        [python, *arguments],
        cwd=Path(__file__).parents[1],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ContestantError(said[-1] if said else f"its process ended with {done.returncode}")
    return done.stdout


def load() -> float:
    """The load of the last minute: above 1 somebody else was running too."""
    return round(os.getloadavg()[0], 2)


def peak_memory() -> int:
    """Largest resident set of this process so far, in bytes (Linux only)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    return 1024 * int(peak.split()[1])
