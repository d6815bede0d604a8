"""The first process of a new installation beside the second: nothing may be compiled on the way.

    python -m benchmarks.first_process [PACKAGE] [--only fit box federation]

PACKAGE is a wheel or a folder (default: this checkout). Each case has an environment of its own,
so that its first process is the very first. Import and fit, import and a fit on a box, and
`federation up` until both plants are connected; CPU seconds are those of the command itself, not
of the processes that `up` leaves running. The goal is a ratio of at most 1.5.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

GOAL = 1.5
FIT = """
import numpy as np
from fdrsvm import FDRSVC
rng = np.random.default_rng(0)
X = rng.random((400, 14))
y = np.where(X @ rng.normal(size=14) > 0, 1, -1)
FDRSVC(epsilon=0.01, kappa=1.0{options}).fit(X, y, clients=np.arange(400) % 4)
"""
FITS = {"fit": FIT.format(options=""), "box": FIT.format(options=', support="unit-box"')}


class Spent(NamedTuple):
    """Seconds of a command and of all that it waited for."""

    cpu: float
    wall: float


def spend(commands: Path, *command: str | Path) -> Spent:
    """Run one of the environment's programs."""
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    start, before = perf_counter(), _children()
    subprocess.run(
        [commands / command[0], *command[1:]],
        cwd=commands.parent,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return Spent(_children() - before, perf_counter() - start)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def install(folder: Path, package: str) -> Path:
    """The programs of a new environment."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, package], check=True)
    return folder / "bin"


def twice(case: str, folder: Path, package: str) -> list[Spent]:
    """The first and the second process."""
    if case in FITS:
        commands = install(folder, package)
        return [spend(commands, "python", "-c", FITS[case]) for _ in range(2)]
    commands = install(folder, f"{package}[flower]")
    for name, shift in (("north", 0.0), ("south", 0.1)):
        rows = [f"{k / 40 + shift},{k % 7},{'worn' if k > 20 else 'healthy'}" for k in range(40)]
        (folder / f"{name}.csv").write_text("\n".join(["flow,load,label", *rows]) + "\n")
    plants = [word for n in ("north", "south") for word in ("--plant", f"{n}={n}.csv")]
    subprocess.run(
        [commands / "fdrsvm", "federation", "init", "fed", *plants], cwd=folder, check=True
    )
    spent = []
    for _ in range(2):
        up = spend(commands, "fdrsvm", "federation", "up", "fed")
        down = spend(commands, "fdrsvm", "federation", "down", "fed")
        spent.append(Spent(up.cpu + down.cpu, up.wall))
    return spent


def main() -> int:
    """Print the table; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    cases = [*FITS, "federation"]
    parser.add_argument("package", nargs="?", default=str(Path(__file__).parents[1]))
    parser.add_argument("--only", nargs="+", choices=cases, default=cases)
    options = parser.parse_args()
    missed = False
    print("case        first (CPU, wall)   second (CPU, wall)   ratio of wall")
    for case in options.only:
        with tempfile.TemporaryDirectory() as folder:
            first, second = twice(case, Path(folder) / "env", options.package)
        ratio = first.wall / second.wall
        missed |= ratio > GOAL
        print(
            f"{case:<10}  {first.cpu:6.2f} s {first.wall:6.2f} s  {second.cpu:7.2f} s "
            f"{second.wall:6.2f} s  {ratio:6.2f}",
            flush=True,
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
