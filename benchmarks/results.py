"""Rows of one part on disk: measured once, skipped when they are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.clock import ContestantError, in_child, load

try:
    from fdrsvm_paper.rows import Row, RowFile
except ModuleNotFoundError:  # `releases` runs this under 0.1.0 too, where the paper was inside
    from fdrsvm.experiments.reproduction.rows import Row, RowFile

FOLDER = Path(__file__).parent / "results"
KEY = ("problem", "solver", "setting", "unit")
SIZES = ("N", "P", "G")
COLUMNS = (
    *("problem", "solver", "setting", *SIZES, "unit", "median", "least", "repeats"),
    *("excess", "note", "version", "load", "when"),
)
LIMIT = 60.0  # CPU seconds for all repeats of one row

# The package that a solver's version is that of.
PACKAGES = {
    "ours": "fdr-svm",
    "products": "numpy",
    "PIQP": "piqp",
    "Clarabel": "clarabel",
    "cvxpy": "cvxpy",
    "OSQP": "osqp",
    "ProxQP": "proxsuite",
    "Gurobi": "gurobipy",
    "HiGHS": "highspy",
    "dro": "dro",
    "skwdro": "skwdro",
    "LinearSVC": "scikit-learn",
}


@dataclass(frozen=True)
class Entry:
    """What a row measures: its key, and the sizes that go with it."""

    problem: str
    solver: str
    setting: str
    N: int
    P: int
    G: int = 1
    unit: str = "s"

    @property
    def key(self) -> tuple[str, ...]:
        """Tells rows apart."""
        return (self.problem, self.solver, self.setting, self.unit)


class Measured(NamedTuple):
    """Figures by repeat, the answer's relative excess over a certified bound, and remarks."""

    figures: list[float]
    excess: float | None = None
    note: str = ""


class Results:
    """The rows of one part.

    Parameters
    ----------
    path : Path
        CSV file; rows that are there are not measured again.
    """

    def __init__(self, path: Path) -> None:
        self._file = RowFile(path, COLUMNS)
        self._done = {
            tuple(row[name] for name in KEY): bool(row["median"]) for row in self._file.read()
        }

    def measure(self, entry: Entry, call: Callable[[], Measured], limit: float = LIMIT) -> bool:
        """One row, from a process of its own; a failure is a row that says so.

        Returns
        -------
        bool
            Whether there is a figure, now or from before.
        """
        if entry.key in self._done:
            return self._done[entry.key]
        busy = load()
        try:
            found = Measured(**in_child(lambda: call()._asdict(), limit))
        except ContestantError as error:
            found = Measured([], None, f"failed: {error}")
        row = _row(entry, found, busy)
        self._file.append([row])
        self._done[entry.key] = bool(found.figures)
        _show(row)
        return self._done[entry.key]


def _row(entry: Entry, found: Measured, busy: float) -> dict[str, Any]:
    figures = found.figures
    return {
        **{name: getattr(entry, name) for name in (*KEY, *SIZES)},
        "median": f"{median(figures):.6g}" if figures else "",
        "least": f"{min(figures):.6g}" if figures else "",
        "repeats": len(figures),
        "excess": "" if found.excess is None else f"{found.excess:.2g}",
        "note": " ".join(found.note.split()),
        "version": version_of(entry.solver),
        "load": busy,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def version_of(solver: str) -> str:
    """The version of the package that a solver's name begins with."""
    name = next((name for name in PACKAGES if solver.startswith(name)), None)
    try:
        return version(PACKAGES[name]) if name else ""
    except PackageNotFoundError:
        return "absent"


def _show(row: Row | dict[str, Any]) -> None:
    what = f"{row['problem']:<34} {row['solver']:<18} {row['setting']:<14}"
    print(f"{what} {row['median'] or '-':>12} {row['unit']:<3} {row['excess']:>9}  {row['note']}")
