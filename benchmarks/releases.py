"""The checkout beside an earlier release: the same cases under two interpreters, in turns.

    python -m benchmarks releases --old path/to/python [--output FOLDER]

Old        an environment of its own with that release installed; its machine code, if it compiles
           on the user's clock, is on disk before anything is measured, but for *first process*
Turns      both columns of a case one after the other, again and again, so that a busy neighbour
           meets both; medians of CPU time in one thread, or of wall time where the row says so.
           Ratios are medians too, over pairs of neighbours
Goals      at most so much: a number, or a multiple of something measured beside it (HiGHS, two
           products with X, the second process). Rows without one must be no slower than before;
           SLACK is for noise
Scaled     table 1 is one repetition, times 50, over two cores
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.clock import ContestantError, fresh_python, load
from benchmarks.release_cases import long_cases, main_cases
from fdrsvm_paper.rows import RowFile

ROOT = Path(__file__).parents[1]
COLUMNS = (
    *("case", "unit", "old", "now", "ratio", "goal", "verdict", "remark"),
    *("old_least", "now_least", "difference", "repeats", "old_version", "load", "when"),
)
ENOUGH, TOO_LONG = 3.0, 40.0  # wall seconds of repeats, both columns together
LEAST, MOST = 5, 25  # repeats
SLACK = 1.05  # what takes up to this many times as long as before is not slower

# Seconds, at most; MB for what is installed.
GOALS = {
    "client 90x30 cold": 150e-6,
    "client 90x30 warm": 40e-6,
    "client 90x30 raw function": 200e-6,
    "client 1000x14 cold": 400e-6,
    "client 1000x14 warm": 120e-6,
    "client 1000x60 cold": 1.8e-3,
    "client 1000x60 warm": 300e-6,
    "client 10000x14 cold": 4e-3,
    "client 10000x14 warm": 1e-3,
    "ADMM 220 rounds, 4 clients": 30e-3,
    "SM 220 rounds, 4 clients": 15e-3,
    "ADMM 50 rounds, 1000 clients, two threads, wall": 2.0,
    "table 1, 50 repetitions": 360.0,
    "environment of pip install": 250.0,
    "memory, oracle 1000000x14, over X": 0.3,
    "memory, oracle 1000000x14 box, over X": 0.3,
}


@dataclass(frozen=True)
class Multiple:
    """At most this many times a yardstick."""

    factor: float
    words: str

    def remark(self, figure: float, yardstick: float) -> str:
        """How many times it is."""
        ratio = figure / yardstick
        if ratio < 0.1:
            return f"{1.0 / ratio:.0f} times faster than {self.words}"
        return f"{ratio:.1f} times {self.words}"


HIGHS = Multiple(1e-3, "HiGHS")
FREE, BOX = Multiple(2.5, "the two products"), Multiple(10.0, "the two products")
SECOND = Multiple(1.5, "the second process")


def multiple_of(case: str) -> Multiple | None:
    """The yardstick of a case that is asked for a multiple."""
    if case.startswith("oracle 50x4"):
        return HIGHS
    if case.startswith("oracle 1000000x14"):
        return BOX if " box " in case else FREE
    return SECOND if case.endswith("first process") else None


class Release:
    """One column: an interpreter that has a release of the package.

    Parameters
    ----------
    python : str
        The interpreter.
    path : str
        PYTHONPATH of its processes.
    """

    def __init__(self, python: str, path: str = "") -> None:
        self.python = python
        self.variables = {**os.environ, "PYTHONPATH": path}
        self._worker: subprocess.Popen[str] | None = None
        code = "import fdrsvm; print(fdrsvm.__version__, fdrsvm.__file__)"
        self.version, self.file = self.fresh("-c", code).split(maxsplit=1)

    def fresh(self, *arguments: str, **variables: str) -> str:
        """What a new interpreter, started in the checkout, prints."""
        return fresh_python(*arguments, python=self.python, **(self.variables | variables)).strip()

    def repeat(self, case: str) -> dict[str, float]:
        """One more repeat of a case, by a process that stays."""
        if self._worker is None:
            self._worker = subprocess.Popen(
                [self.python, "-m", "benchmarks.release_cases"],
                cwd=ROOT,
                env=self.variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(case + "\n")
        self._worker.stdin.flush()
        line = self._worker.stdout.readline()
        if not line:
            raise ContestantError(f"its process died, status {self.close()}")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise ContestantError(found["error"])
        return found

    def close(self) -> int:
        """Ends the process that stays; its status."""
        if self._worker is None:
            return 0
        with self._worker as worker:
            assert worker.stdin is not None
            worker.stdin.close()
        self._worker = None
        return worker.returncode


Figures = dict[str, float]
Turn = Callable[[Release], Figures]


def run(path: Path, old_python: str, wanted: str = "", quick: bool = False) -> None:
    """The release that ``old_python`` has beside this one."""
    now = Release(sys.executable, os.environ.get("PYTHONPATH", ""))
    compare(Release(old_python), now, path, wanted, quick)


def compare(old: Release, now: Release, path: Path, wanted: str = "", quick: bool = False) -> None:
    """All rows whose case begins with ``wanted``; those in the file are not measured again.

    Quickly, each case has one repeat.
    """
    if old.file == now.file:
        raise SystemExit(f"both interpreters import {old.file}: nothing to compare")
    file = RowFile(path, COLUMNS)
    done = {row["case"] for row in file.read()}
    for group in (worker_cases(main_cases), process_cases(), worker_cases(long_cases)):
        for case, turn in group:
            if case.startswith(wanted) and case not in done:
                rows = measure(case, turn, old, now, quick)
                file.append(rows)
                for row in rows:
                    show(row)
        old.close()
        now.close()


def worker_cases(cases: Callable[[], Iterable[str]]) -> Iterator[tuple[str, Turn]]:
    """Those of release_cases."""
    for case in cases():
        yield case, lambda release, c=case: release.repeat(c)


def process_cases() -> Iterator[tuple[str, Turn]]:
    """Those that need a new process for each repeat."""
    for name, statement in IMPORTS.items():
        yield name, lambda release, s=statement: {"cpu": importing(release, s)}
    yield "first fit, 1000x14", first_fit
    for name, code in FITS.items():
        yield f"{name}, first process", lambda release, c=code: first_process(release, c)
    yield "federation up, first process", federation_up
    for problem in ("oracle 1000000x14", "oracle 1000000x14 box"):
        yield f"memory, {problem}, over X", lambda release, p=problem: memory(release, p)


IMPORTS = {"import fdrsvm": "import fdrsvm", "import a classifier": "from fdrsvm import FDRSVC"}
DATA = """
import numpy as np
from fdrsvm import FDRSVC
rng = np.random.default_rng(0)
X = rng.random((400, 14))
y = np.where((X - 0.5) @ rng.normal(size=14) > 0.0, 1, -1)
clients = np.arange(400) % 4
"""
SPENT = "\nfrom time import process_time; print(process_time())"
FITS = {
    "import and fit": DATA + "FDRSVC().fit(X, y, clients=clients)" + SPENT,
    "import and box fit": DATA + "FDRSVC(support='unit-box').fit(X, y, clients=clients)" + SPENT,
}


def importing(release: Release, statement: str) -> float:
    """CPU seconds of the statement alone."""
    code = f"from time import process_time as t; s = t(); {statement}; print(t() - s)"
    return float(release.fresh("-c", code))


def first_fit(release: Release) -> Figures:
    """From the start of the interpreter to a model, machine code at hand."""
    return {"cpu": float(release.fresh("-m", "benchmarks.footprint", "ours"))}


def first_process(release: Release, code: str) -> Figures:
    """CPU seconds where nobody has run it before, and again."""
    with tempfile.TemporaryDirectory() as empty:
        first, second = (float(release.fresh("-c", code, NUMBA_CACHE_DIR=empty)) for _ in range(2))
    return {"cpu": first, "yardstick": second}


def federation_up(release: Release) -> Figures:
    """Wall seconds of `fdrsvm federation up` with two plants, the first time and the second."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {"NUMBA_CACHE_DIR": f"{folder}/machine-code"}

        def command(*words: str) -> None:
            release.fresh("-m", "fdrsvm", "federation", *words, **variables)

        plants = {name: Path(folder) / f"{name}.csv" for name in ("a", "b")}
        for path in plants.values():
            _write_plant(path)
        named = (f"--plant={name}={path}" for name, path in plants.items())
        command("init", f"{folder}/fed", *named)
        seconds = []
        for _ in range(2):
            start = perf_counter()
            command("up", f"{folder}/fed", "--timeout", "900")
            seconds.append(perf_counter() - start)
            command("down", f"{folder}/fed")
    return {"wall": seconds[0], "yardstick": seconds[1]}


def _write_plant(path: Path) -> None:
    lines = [f"{k / 40},{(7 * k % 40) / 40},{1 if k >= 20 else -1}" for k in range(40)]
    path.write_text("\n".join(["x,z,label", *lines]) + "\n", encoding="utf-8")


def memory(release: Release, problem: str) -> Figures:
    """How far solving rises above interpreter, libraries and data, in sizes of X."""
    rise = int(release.fresh("-m", "benchmarks.memory", problem, "ours").split()[1])
    return {"X": rise / (8 * 1_000_000 * 14)}


def measure(case: str, turn: Turn, old: Release, now: Release, quick: bool) -> list[dict[str, Any]]:
    """Rows of a case, one for each unit; a failure is a row that says so."""
    busy = load()
    try:
        pairs = in_turns(lambda: turn(old), lambda: turn(now), quick)
    except ContestantError as error:
        row = {"case": case, "verdict": "failed", "remark": " ".join(str(error).split())}
        return [_stamped(row, old, busy, 0)]
    units = [unit for unit in ("cpu", "wall", "MB", "X") if unit in pairs[0][0]]
    return [_stamped(row_of(case, unit, units, pairs), old, busy, len(pairs)) for unit in units]


def in_turns(
    old: Callable[[], Figures], now: Callable[[], Figures], quick: bool
) -> list[tuple[Figures, Figures]]:
    """Both, again and again, each first every other time.

    The first turn of both is a warm-up and is not counted, unless it is long.
    """
    start = perf_counter()
    pairs = [(old(), now())]
    if quick:
        return pairs
    if perf_counter() - start < TOO_LONG / LEAST:
        pairs.clear()
        start = perf_counter()
    while not _is_enough(len(pairs), perf_counter() - start):
        if len(pairs) % 2:
            later = now()
            pairs.append((old(), later))
        else:
            pairs.append((old(), now()))
    return pairs


def _is_enough(n_pairs: int, spent: float) -> bool:
    if n_pairs < 1:
        return False
    return (n_pairs >= LEAST and spent >= ENOUGH) or n_pairs >= MOST or spent >= TOO_LONG


def row_of(
    case: str, unit: str, units: list[str], pairs: list[tuple[Figures, Figures]]
) -> dict[str, Any]:
    """Medians, and whether they are what was asked for."""
    old, now = (median(pair[k][unit] for pair in pairs) for k in range(2))
    # Of neighbours in time, so that what slows the machine down for a while slows down both.
    ratio = median(before[unit] / after[unit] for before, after in pairs)
    name = case if unit == units[0] else f"{case}, {unit}"
    goal, remark = GOALS.get(name), ""
    yardsticks = [pair[1]["yardstick"] for pair in pairs if "yardstick" in pair[1]]
    if yardsticks:
        wanted = multiple_of(case)
        yardstick = median(yardsticks)
        shown = wanted or HIGHS
        remark = shown.remark(now, yardstick)
        goal = wanted.factor * yardstick if wanted else None
    return {
        "case": name,
        "unit": {"cpu": "s", "wall": "s wall"}.get(unit, unit),
        "old": f"{old:.6g}",
        "now": f"{now:.6g}",
        "ratio": f"{ratio:.4g}",
        "goal": "" if goal is None else f"{goal:.6g}",
        "verdict": verdict(now, goal, ratio),
        "remark": remark,
        "old_least": f"{min(pair[0][unit] for pair in pairs):.6g}",
        "now_least": f"{min(pair[1][unit] for pair in pairs):.6g}",
        "difference": _difference(pairs),
    }


def verdict(now: float, goal: float | None, ratio: float) -> str:
    """Slower than before is a miss, whatever the goal."""
    if ratio * SLACK < 1.0:
        return "slower"
    return "met" if goal is None or now <= goal else "missed"


def _difference(pairs: list[tuple[Figures, Figures]]) -> str:
    """Between the answers of the two, relative, at worst."""
    answers = [(one["answer"], other["answer"]) for one, other in pairs if "answer" in one]
    if not answers:
        return ""
    return f"{max(abs(b - a) / max(abs(a), 1e-300) for a, b in answers):.1g}"


def _stamped(row: dict[str, Any], old: Release, busy: float, repeats: int) -> dict[str, Any]:
    when = datetime.now(UTC).isoformat(timespec="seconds")
    stamps = {"repeats": repeats, "old_version": old.version, "load": busy, "when": when}
    return dict.fromkeys(COLUMNS, "") | row | stamps


def show(row: dict[str, Any]) -> None:
    """One line."""
    figures = f"{row['old']:>12} {row['now']:>12} {row['unit']:<6} x {row['ratio']:<7}"
    print(f"{row['case']:<52} {figures} {row['verdict']:<7} {row['remark']}", flush=True)
