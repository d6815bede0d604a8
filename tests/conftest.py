from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

SOURCES = Path(__file__).parents[1] / "src"

# Where kernels stand, and the folders whose kernels they may call.
KERNELS = {
    "maths": (),
    "ambiguity": ("maths",),
    "datasets": ("maths",),
    "solvers": ("maths", "ambiguity/_kernels"),
    "federated": ("maths", "ambiguity/_kernels", "solvers/_kernels"),
    "experiments": ("maths", "federated/_kernels"),
}

# Compilation makes first calls slow, so no deadline; derandomised, so that CI repeats itself.
settings.register_profile(
    "fdrsvm",
    deadline=None,
    derandomize=True,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fdrsvm")


@pytest.fixture
def rng():
    return np.random.default_rng(20251115)


def pytest_configure():
    """Drop machine code older than its folder's sources: numba does not follow calls."""
    package = SOURCES / "fdrsvm"
    for name, below in KERNELS.items():
        folders = [package / part for part in (*below, name)]
        newest = max(newest_source(folder) for folder in folders)
        for path in (package / name).rglob("*.nb[ic]"):
            if path.stat().st_mtime < newest:
                path.unlink(missing_ok=True)


def newest_source(folder):
    return max((path.stat().st_mtime for path in folder.rglob("*.py")), default=0.0)
