"""CPU time of a call, a call in a process of its own, and how busy the machine is."""

from __future__ import annotations

import json
import os
import resource
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


def in_child(call: Callable[[], dict[str, Any]], limit: int) -> dict[str, Any]:
    """What a call gives, as JSON, from a fork of this process that may use so many CPU seconds.

    A crash, a leak or an endless loop stays there: whatever goes wrong is a ContestantError here.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # idle threads of a BLAS do no harm
        child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        _answer(call, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGXCPU:
        raise ContestantError(f"no answer within {limit} s of CPU time")
    if not text:
        raise ContestantError(f"its process died, status {status}")
    answer: dict[str, Any] = json.loads(text)
    if "error" in answer:
        raise ContestantError(answer["error"])
    return answer


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


def fresh_python(*arguments: str, **variables: str) -> str:
    """What a new interpreter, started in the checkout, prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
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
