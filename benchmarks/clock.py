"""CPU time of a call, a call in a process of its own, and how busy the machine is."""

from __future__ import annotations

import json
import os
import select
import signal
import statistics
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

    @property
    def median(self) -> float:
        """What the tables show."""
        return statistics.median(self.seconds)


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


def in_child(call: Callable[[], dict[str, Any]], timeout: float) -> dict[str, Any]:
    """What a call gives, as JSON, from a fork of this process.

    A crash, a leak or a hang stays there: whatever goes wrong is a ContestantError here.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # idle threads of a BLAS do no harm
        child = os.fork()
    if child == 0:
        os.close(reader)
        _answer(call, writer)
    os.close(writer)
    try:
        text = _read_all(reader, timeout)
    except TimeoutError:
        os.kill(child, signal.SIGKILL)
        raise ContestantError(f"no answer within {timeout:g} s") from None
    finally:
        os.close(reader)
        _, status = os.waitpid(child, 0)
    if not text:
        raise ContestantError(f"its process died, status {os.waitstatus_to_exitcode(status)}")
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


def _read_all(reader: int, timeout: float) -> bytes:
    parts = []
    while True:
        ready, _, _ = select.select([reader], [], [], timeout)
        if not ready:
            raise TimeoutError
        part = os.read(reader, 65536)
        if not part:
            return b"".join(parts)
        parts.append(part)


def load() -> float:
    """The load of the last minute: above 1 somebody else was running too."""
    return round(os.getloadavg()[0], 2)


def peak_memory() -> int:
    """Largest resident set of this process so far, in bytes (Linux only)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    return 1024 * int(peak.split()[1])
