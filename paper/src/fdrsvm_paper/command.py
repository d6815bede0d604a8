"""From one command to rows, tables, figures and a page: the paper's experiments, repeated.

Rows are results and are kept; everything else is made from them and can be made again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fdrsvm.core.arrays import check_choice, check_count
from fdrsvm.core.files import write_atomically
from fdrsvm.datasets.pump import SEVERITIES
from fdrsvm.errors import InvalidInputError
from fdrsvm_paper import tables
from fdrsvm_paper.drawing import save_figures
from fdrsvm_paper.figures import draw_figures
from fdrsvm_paper.industrial_study import IndustrialStudy, JoiningStudy
from fdrsvm_paper.protocols import PROTOCOLS
from fdrsvm_paper.provenance import machine, versions
from fdrsvm_paper.report import write_report
from fdrsvm_paper.rounds_study import ConvergenceStudy, RoundsStudy
from fdrsvm_paper.rows import Row, read_rows
from fdrsvm_paper.scalability_study import ScalabilityStudy
from fdrsvm_paper.sensitivity_study import SensitivityStudy
from fdrsvm_paper.study import Study, missing_tasks, run_study
from fdrsvm_paper.summary import split
from fdrsvm_paper.tables import Table
from fdrsvm_paper.uci_study import UciStudy

TARGETS = ("table1", "wilcoxon", "table2", "sensitivity", "scalability", "rounds")
PROTOCOL_CHOICES = (*PROTOCOLS, "both")

_QUICK_SETS = ("mammographic", "parkinsons", "ukm")
_QUICK_SETTINGS = ("nominal", "noisy-labels")
_ROWS, _RUNS = "rows", "run.json"


@dataclass(frozen=True)
class Options:
    """How to run.

    Attributes
    ----------
    protocol : {"paper-code", "text", "both"}
    repetitions : int, optional
        The paper's if not given: 50 for table 1 and the sensitivity study, 10 for table 2.
    jobs : int
        Processes.
    data_home : str, optional
        Folder of the UCI sets.
    quick : bool
        A few repetitions of a part of everything, to see it work.
    seed : int
        Of all random numbers.
    """

    protocol: str = "paper-code"
    repetitions: int | None = None
    jobs: int = 1
    data_home: str | None = None
    quick: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.protocol, "protocol", PROTOCOL_CHOICES)
        check_count(self.jobs, "jobs")
        check_count(self.seed, "seed", 0)
        if self.repetitions is not None:
            check_count(self.repetitions, "repetitions")

    @property
    def protocols(self) -> tuple[str, ...]:
        """One, or both."""
        return tuple(PROTOCOLS) if self.protocol == "both" else (self.protocol,)

    def settings(self, usual: int, few: int, **others: Any) -> dict[str, Any]:
        """Repetitions and seed of a study, with what else it takes."""
        repetitions = self.repetitions or (few if self.quick else usual)
        return {"repetitions": repetitions, "seed": self.seed, **others}


def studies_of(target: str, options: Options) -> Iterator[Study]:
    """The studies that a table or figure needs."""
    check_choice(target, "target", TARGETS)
    if target == "rounds":
        common: dict[str, Any] = {"quick": options.quick, "data_home": options.data_home}
        yield RoundsStudy(**options.settings(5, 1, **common))
        yield ConvergenceStudy(seed=options.seed, **common)
        return
    few = {"settings": _QUICK_SETTINGS} if options.quick else {}
    for protocol in options.protocols:
        pump: dict[str, Any] = {"protocol": protocol, **few}
        if target in ("table1", "wilcoxon"):
            names = {"names": _QUICK_SETS} if options.quick else {}
            settings = options.settings(50, 2, data_home=options.data_home, **names)
            yield UciStudy(protocol=protocol, **settings)
        elif target == "table2":
            yield IndustrialStudy(**options.settings(10, 1, **pump))
            yield JoiningStudy(**options.settings(10, 2, **pump))
        elif target == "sensitivity":
            yield SensitivityStudy(**options.settings(50, 1, **pump))
        else:
            settings = options.settings(10, 1, quick=options.quick)
            yield ScalabilityStudy(protocol=protocol, **settings)


def reproduce(target: str, options: Options, folder: Path, command: str) -> Path:
    """Run what is missing for ``target`` (or ``"all"``), then write everything; the page's path.

    ``command`` is what the user typed, for the record.
    """
    check_choice(target, "target", (*TARGETS, "all"))
    # Rows of two seeds in one file would not be repetitions of one experiment.
    for path in sorted((folder / _ROWS).glob("*.csv")):
        others = {row["seed"] for row in read_rows(path)} - {str(options.seed)}
        if others:
            raise InvalidInputError(
                "seed", "must be that of the rows already there", f"{path} has {min(others)}"
            )
    for each in TARGETS if target == "all" else (target,):
        for study in studies_of(each, options):
            _run_and_record(study, options, folder, command)
    return render(folder)


def _run_and_record(study: Study, options: Options, folder: Path, command: str) -> None:
    """Runs a study; what was done is recorded, whether or not it was interrupted."""
    rows = folder / _ROWS
    before, n_missing = os.times(), len(missing_tasks(study, rows))
    if not n_missing:
        return
    try:
        run_study(study, rows, options.jobs)
    finally:
        after = os.times()
        entry = {
            "command": command,
            "settings": {name: getattr(study, name) for name in study.__dataclass_fields__},
            "jobs": options.jobs,
            "tasks_done": n_missing - len(missing_tasks(study, rows)),
            "seconds": round(after.elapsed - before.elapsed, 1),
            "cpu_seconds": round(sum(after[:4]) - sum(before[:4]), 1),
            "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": machine(),
            "versions": versions(),
        }
        runs = _recorded(folder)
        runs[study.file] = [*runs.get(study.file, []), entry]
        write_atomically(folder / _RUNS, json.dumps(runs, indent=1).encode())


def _recorded(folder: Path) -> dict[str, Any]:
    path = folder / _RUNS
    return dict(json.loads(path.read_bytes())) if path.exists() else {}


def render(folder: Path) -> Path:
    """Tables, figures and page from the rows in ``folder``; the page's path."""
    rows = {path.stem: read_rows(path) for path in sorted((folder / _ROWS).glob("*.csv"))}
    made = make_tables(rows)
    write_tables(made, folder / "tables")
    figures = draw_figures(rows)
    save_figures(figures, folder / "figures")
    return write_report(rows, made, figures, _recorded(folder), folder / "report")


def make_tables(rows: Mapping[str, list[Row]]) -> dict[str, Table]:
    """Every table that the rows allow, by name."""
    made: dict[str, Table] = {}
    for protocol in PROTOCOLS:
        if part := rows.get(f"table1-{protocol}"):
            made[f"table1-{protocol}"] = tables.table1(part, protocol)
            made[f"wilcoxon-{protocol}"] = tables.wilcoxon_table(part, protocol)
        if part := rows.get(f"table2-{protocol}"):
            made[f"table2-{protocol}-side-by-side"] = tables.table2_side_by_side(part, protocol)
            for severities, leaks in split(part, "severities", SEVERITIES).items():
                made[f"table2-{protocol}-{severities}"] = tables.table2(leaks, protocol)[0]
        part = rows.get(f"joining-{protocol}", [])
        for severities, leaks in split(part, "severities", SEVERITIES).items():
            for by, table in zip(("plant", "leak"), tables.joining(leaks), strict=True):
                made[f"joining-{protocol}-{severities}-{by}"] = table
        if part := rows.get(f"scalability-{protocol}"):
            made[f"scalability-{protocol}"] = tables.scalability(part)
            made[f"scalability-{protocol}-growth"] = tables.growth(part)
    if rows.get("rounds"):
        made["rounds"] = tables.rounds(rows["rounds"])
    return made


def write_tables(made: Mapping[str, Table], folder: Path) -> None:
    """Each as ``name.md`` and ``name.tex``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in made.items():
        write_atomically(folder / f"{name}.md", table.markdown().encode())
        write_atomically(folder / f"{name}.tex", table.latex().encode())
