"""On which machine and with which releases a result was measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fdrsvm import __version__

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "clarabel", "matplotlib")


def machine() -> dict[str, Any]:
    """System, processor (its name where Linux tells it), cores and Python."""
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else platform.machine()
    return {
        "system": platform.system(),
        "processor": processor,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Of this package and of the libraries that results depend on."""
    releases = {"fdrsvm": __version__}
    for library in _LIBRARIES:
        try:
            releases[library] = version(library)
        except PackageNotFoundError:
            releases[library] = "absent"
    return releases
