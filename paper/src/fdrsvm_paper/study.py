"""Running a study: tasks in processes, rows stored as they come, done tasks skipped."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

from joblib import Parallel, delayed, parallel_config

from fdrsvm.errors import FDRSVMError, InvalidInputError
from fdrsvm_paper.rows import Row, RowFile, read_rows

if sys.platform != "win32":
    import fcntl

Task: TypeAlias = tuple[str, ...]
Rows: TypeAlias = list[dict[str, Any]]


class Study(Protocol):
    """Tasks that give rows, each depending on the study's settings and the task alone.

    A data class of plain settings: it is sent to other processes.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def file(self) -> str:
        """Name of the row file, without its suffix."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the row file."""

    @property
    def key(self) -> tuple[str, ...]:
        """Columns that tell tasks apart."""

    def tasks(self) -> list[Task]:
        """Values of the key columns, one tuple per task."""

    def run(self, task: Task) -> Rows:
        """The task's rows."""


class Progress:
    """One line that says how far a study is and how long it will take.

    On a terminal the line is rewritten; in a file there is a new one every half minute.
    """

    def __init__(self, name: str, n_done: int, n_all: int) -> None:
        self.name, self.n_done, self.n_all = name, n_done, n_all
        self._n_before, self._start, self._last = n_done, time.monotonic(), 0.0
        self._is_terminal = sys.stderr.isatty()

    def step(self) -> None:
        """A task is done."""
        self.n_done += 1
        now = time.monotonic()
        if now - self._last < (0.2 if self._is_terminal else 30.0) and self.n_done < self.n_all:
            return
        self._last = now
        line = f"{self.name}: {self.n_done} of {self.n_all}, {self.left(now)} left"
        ends = not self._is_terminal or self.n_done == self.n_all
        sys.stderr.write((f"\r{line:<70}" if self._is_terminal else line) + "\n" * ends)
        sys.stderr.flush()

    def left(self, now: float) -> str:
        """Time left, at the pace so far."""
        pace = (now - self._start) / max(1, self.n_done - self._n_before)
        seconds = round(pace * (self.n_all - self.n_done))
        return f"{seconds // 60} min {seconds % 60:02d} s"


def missing_tasks(study: Study, folder: Path) -> list[Task]:
    """Those without a row in ``folder``."""
    done = {_key(study, row) for row in read_rows(folder / f"{study.file}.csv")}
    return [task for task in study.tasks() if task not in done]


def check_task(study: Study, task: Task) -> Task:
    """A task of the study's own."""
    if tuple(task) not in study.tasks():
        raise InvalidInputError("task", "must be one of the study's", f"it is {task!r}")
    return tuple(task)


def run_study(study: Study, folder: Path, jobs: int) -> list[Row]:
    """Runs what is missing in ``folder``; returns all rows, in the order of the tasks."""
    places = {task: place for place, task in enumerate(study.tasks())}
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder / f".{study.file}.lock"):
        file = RowFile(folder / f"{study.file}.csv", study.columns)
        todo = missing_tasks(study, folder)
        if todo:
            progress = Progress(study.file, len(places) - len(todo), len(places))
            # In processes of one thread each; the rows of each task as they come.
            with parallel_config(backend="loky", inner_max_num_threads=1):
                run = Parallel(jobs, return_as="generator_unordered")
            for rows in run(delayed(study.run)(task) for task in todo):
                file.append(rows)
                progress.step()
            # Rows of other settings, more repetitions for example, stay behind.
            stored = file.read()
            stored.sort(key=lambda row: places.get(_key(study, row), len(places)))
            file.replace(stored)
        return [row for row in file.read() if _key(study, row) in places]


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two runs on one file would do everything twice; the lock ends with its process."""
    with path.open("a") as lock:
        if sys.platform != "win32":
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FDRSVMError(
                    f"another run is at work in {path.parent}; wait for it, or use another folder"
                ) from None
        yield


def _key(study: Study, row: Row) -> Task:
    return tuple(row[column] for column in study.key)
