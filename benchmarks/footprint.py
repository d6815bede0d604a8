"""What a package costs before it does anything: import, first model, bytes installed.

Import     CPU seconds of the import alone in a fresh interpreter, files in the disk's cache
First fit  CPU seconds of a fresh interpreter from its start to a model of 1000 rows
Installed  bytes of all files of the package and everything it requires, without .pyc, by pip's
           records in this environment; `dro` and `skwdro` require torch
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from time import process_time

from packaging.requirements import Requirement

from benchmarks.clock import ContestantError, fresh_python
from benchmarks.results import Entry, Measured, Results

ROOT = Path(__file__).parents[1]
REPEATS = 5
LONG = 600.0  # CPU seconds for a row
IMPORTS = {
    "ours, the package": "import fdrsvm",
    "ours, a classifier": "from fdrsvm import FDRSVC",
    "dro": "from dro.linear_model.wasserstein_dro import WassersteinDRO",
    "skwdro": "from skwdro.linear_models import LogisticRegression",
    "cvxpy": "import cvxpy",
    "LinearSVC": "from sklearn.svm import LinearSVC",
}
FIRST_FITS = ("ours", "dro", "cvxpy and Clarabel")
PACKAGES = {"ours": "fdr-svm", "dro": "dro", "skwdro": "skwdro", "LinearSVC": "scikit-learn"}


def run(results: Results, quick: bool) -> None:
    """All rows of this part."""
    for solver in list(IMPORTS)[: 1 if quick else None]:
        entry = Entry("import", solver, "", 0, 0)
        results.measure(entry, lambda s=solver: importing(IMPORTS[s]))
    for solver in FIRST_FITS[: 0 if quick else None]:
        entry = Entry("first fit", solver, "", 1000, 14)
        results.measure(entry, lambda s=solver: first_fit(s), LONG)
    for solver, package in PACKAGES.items():
        entry = Entry("installed", solver, "", 0, 0, unit="MB")
        results.measure(entry, lambda p=package: installed(p))


def importing(statement: str) -> Measured:
    """Median of several interpreters; the first one fills the disk's cache."""
    code = f"from time import process_time as t; s = t(); {statement}; print(t() - s)"
    figures = [float(fresh_python("-c", code)) for _ in range(REPEATS + 1)]
    return Measured(figures[1:])


def first_fit(solver: str) -> Measured:
    """The same, from the start of the interpreter to w."""
    figures = [
        float(fresh_python("-m", "benchmarks.footprint", solver)) for _ in range(REPEATS + 1)
    ]
    return Measured(figures[1:])


def installed(package: str) -> Measured:
    """Bytes of a package and all it requires."""
    try:
        sizes = {found.name: size_of(found) for found in closure(package)}
    except PackageNotFoundError as error:
        raise ContestantError(f"{error} is not installed") from None
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    shares = ", ".join(f"{name} {sizes[name] / 1e6:.0f}" for name in largest)
    return Measured([sum(sizes.values()) / 1e6], None, f"{len(sizes)} packages: {shares}")


def closure(package: str) -> list[Distribution]:
    """A package and all that it requires here, each once."""
    found: dict[str, Distribution] = {}
    seen: set[str] = set()
    pending = [Requirement(package)]
    while pending:
        wanted = pending.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        here = distribution(wanted.name)
        found[here.name.lower()] = here
        pending += requirements(here, wanted.extras)
    return list(found.values())


def requirements(here: Distribution, extras: set[str]) -> Iterator[Requirement]:
    """Those that hold on this machine, with these extras."""
    for line in here.requires or []:
        needed = Requirement(line)
        places = [{"extra": extra} for extra in (extras or {""})]
        if needed.marker is None or any(needed.marker.evaluate(place) for place in places):
            yield needed


def size_of(here: Distribution) -> int:
    """Bytes on disk; of an editable package, its sources."""
    files = [Path(str(file.locate())) for file in here.files or []]
    source = json.loads(here.read_text("direct_url.json") or "{}")
    if source.get("dir_info", {}).get("editable"):
        files += (path for kind in ("*.py", "*.so") for path in (ROOT / "src").rglob(kind))
    return sum(p.stat().st_size for p in files if p.is_file() and p.suffix != ".pyc")


def main(solver: str) -> None:
    """A model of 1000 rows, and the CPU time of this process until then."""
    from benchmarks.central import SOLVERS
    from benchmarks.problems import central_case

    SOLVERS[solver](central_case(1000, 14, "linf"))()
    print(process_time())


if __name__ == "__main__":
    main(*sys.argv[1:])
