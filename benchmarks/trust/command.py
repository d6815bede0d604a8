"""From one command to docs/trust.md: every claim of SECURITY.md that has a figure, measured."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from benchmarks.trust.report import (
    Row,
    from_plain,
    make_page,
    read_row,
    to_plain,
    write_page,
    write_row,
)
from fdrsvm.core.arrays import check_choice
from fdrsvm_paper.provenance import machine, versions


@dataclass(frozen=True)
class Part:
    """One section of the page.

    ``module`` has ``measure(quick: bool) -> R`` and ``to_markdown(result: R) -> str``, where R is a
    dataclass of numbers, text, tuples, lists, mappings and such dataclasses. Its property ``holds``
    says whether it bears out what SECURITY.md claims.
    """

    name: str
    title: str
    module: str

    def measure(self, quick: bool) -> Any:
        """The module's result; it is imported only now."""
        return self._function("measure")(quick=quick)

    def result(self, row: Row) -> Any:
        """The module's result again, from what was kept."""
        hints = get_type_hints(self._function("to_markdown"))
        (kind,) = (hint for name, hint in hints.items() if name != "return")
        return from_plain(kind, row.result)

    def to_markdown(self, row: Row) -> str:
        """The section, from what was kept."""
        return str(self._function("to_markdown")(self.result(row)))

    def _function(self, name: str) -> Callable[..., Any]:
        module = importlib.import_module(f"benchmarks.trust.{self.module}")
        found: Callable[..., Any] = getattr(module, name)
        return found


PARTS = (
    Part("faulty", "Faulty updates", "faulty_updates"),
    Part("honest", "Honest updates", "honest_updates"),
    Part("attacks", "Attacks of one client in seven, or two", "attacks"),
    Part("screening", "What the screen costs", "screening_cost"),
    Part("leaks", "Rows that messages give away", "leak_figures"),
    Part("sums", "Secure aggregation", "secure_sums"),
    Part("privacy", "Differential privacy", "privacy_figures"),
    Part("kills", "Killed processes", "kills"),
    Part("files", "Hostile files", "hostile_files"),
)


def run_trust(
    output: Path, quick: bool = False, only: Sequence[str] = (), tell: Callable[[str], Any] = print
) -> Path:
    """Measure, keep the rows and write the page.

    Parameters
    ----------
    output : Path
        The folder that gets ``trust.md`` and ``trust/rows``; ``docs`` in a checkout.
    quick : bool
        A small part of each measurement.
    only : sequence of str
        Names of parts; all of them if empty. The page shows also what was kept of the others.
    tell : callable
        Gets a line before and after each part.

    Returns
    -------
    Path
        Of the page.
    """
    for name in only:
        check_choice(name, "only", tuple(part.name for part in PARTS))
    for part in PARTS:
        if only and part.name not in only:
            continue
        tell(f"{part.title} ...")
        start = time.perf_counter()
        result = part.measure(quick)
        seconds = round(time.perf_counter() - start, 1)
        row = Row(
            part=part.name,
            quick=quick,
            seconds=seconds,
            load=round(os.getloadavg()[0], 1),
            ended=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            machine=machine(),
            versions=versions(),
            result=to_plain(result),
        )
        write_row(row, output)
        tell(f"{part.title}: {seconds} s")
    return write_page(page(output), output)


def page(output: Path) -> str:
    """The page as the kept rows make it."""
    kept = [(part, read_row(part.name, output)) for part in PARTS]
    return make_page(
        {part.title: (row, part.to_markdown(row)) for part, row in kept if row is not None}
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line of ``python -m benchmarks.trust``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trust",
        description="Measure the claims of SECURITY.md and write trust.md.",
        epilog=f"parts: {', '.join(part.name for part in PARTS)}",
    )
    parser.add_argument("--output", type=Path, default=Path("docs"), help="folder (docs)")
    parser.add_argument("--quick", action="store_true", help="a small part of each")
    parser.add_argument("--only", default="", help="parts to measure, with commas between them")
    parsed = parser.parse_args(arguments)
    only = [name for name in parsed.only.split(",") if name]
    path = run_trust(parsed.output, parsed.quick, only, tell=_say)
    _say(f"Page: {path}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
