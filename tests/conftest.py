from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

SOURCES = Path(__file__).parents[1] / "src"

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
    shared = newest_source(package / "maths")
    for folder in (path for path in package.iterdir() if path.is_dir()):
        newest = max(shared, newest_source(folder))
        for path in folder.rglob("*.nb[ic]"):
            if path.stat().st_mtime < newest:
                path.unlink(missing_ok=True)


def newest_source(folder):
    return max((path.stat().st_mtime for path in folder.rglob("*.py")), default=0.0)
