"""python -m benchmarks [part ...] [--quick] [--output FOLDER] [--old PYTHON].

Rows go to FOLDER (``bench``) as they come. Rows that are there are skipped, so an interrupted run
goes on where it was; delete a part's file to measure it again. One thread, CPU time.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

PARTS = {
    "oracle": "the worst case of one model, beside HiGHS",
    "client": "the ADMM client update, beside PIQP, Clarabel, OSQP, ProxQP, Gurobi",
    "central": "the central DR-SVM, beside dro, cvxpy, Clarabel, LinearSVC",
    "wide": "sparse data with many features",
    "scaling": "growth with rows, features, clients",
    "memory": "largest resident set",
    "footprint": "import, first model, bytes installed",
}
FEDERATED = {
    "rounds": "rounds to a certified gap: bundle, ADMM, ADMM-SC, SM (UCI data needed)",
    "speed": "seconds of federated runs",
    "absent": "gaps when clients are absent (UCI data needed)",
}
# Only if asked for: it needs an environment with that release.
OTHERS = {"releases": "this tree beside an earlier release; --old is an interpreter that has it"}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(arguments: list[str] | None = None) -> int:
    """Measure the parts asked for, or all."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if "releases" in options.parts and not options.old:
        parser.error("releases needs --old, an interpreter that has the earlier release")
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # read when NumPy is first imported
    wanted = options.parts or [*PARTS, *FEDERATED]
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            _measure([p for p in wanted if p not in FEDERATED], Path(folder), True, options.old)
    else:
        _measure(wanted, options.output, False, options.old)
    return 0


def _measure(parts: list[str], folder: Path, quick: bool, old: str) -> None:
    from benchmarks import machine, releases
    from benchmarks.results import Results

    machine.write(folder)
    for part in parts:
        print(f"{part}: {(PARTS | FEDERATED | OTHERS)[part]}", flush=True)
        if part in OTHERS:
            releases.run(folder / f"{part}.csv", old, "client 90x30" if quick else "", quick)
        elif part in FEDERATED:
            bench: Callable[[Path], None] = getattr(
                import_module("benchmarks.federated"), f"bench_{part}"
            )
            bench(folder)
        else:
            import_module(f"benchmarks.{part}").run(Results(folder / f"{part}.csv"), quick)


def _parser() -> argparse.ArgumentParser:
    parts = "\n".join(f"  {name:<10} {text}" for name, text in (PARTS | FEDERATED | OTHERS).items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Benchmarks side by side; without a part, all but the last.\n\n{parts}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, *FEDERATED, *OTHERS], metavar="part")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a few small problems, about a minute; prints, keeps nothing",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("bench"), help="folder of rows (default: bench)"
    )
    parser.add_argument("--old", default="", metavar="PYTHON", help="for the part releases")
    return parser


if __name__ == "__main__":
    sys.exit(main())
