"""Where rows were measured: processor, cores, versions. No names of machines."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.results import PACKAGES
from fdrsvm.core.files import write_atomically
from fdrsvm_paper.provenance import machine

FILE = "machine.json"
_LIBRARIES = ("numpy", "scipy", "torch")


def describe() -> dict[str, object]:
    """The machine and the environment that this runs in."""
    return {
        **machine(),
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
