"""Where rows were measured: processor, cores, versions. No names of machines."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.results import PACKAGES
from fdrsvm.files import write_atomically

FILE = "machine.json"
_LIBRARIES = ("numpy", "scipy", "numba", "torch")


def describe() -> dict[str, object]:
    """The machine and the environment that this runs in."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in (*PACKAGES.values(), *_LIBRARIES)},
    }


def write(folder: Path) -> None:
    """The description beside the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FILE, (json.dumps(describe(), indent=1) + "\n").encode())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
