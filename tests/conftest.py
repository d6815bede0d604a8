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
    """Drop machine code older than any source: numba does not follow calls between files."""
    newest = max(path.stat().st_mtime for path in SOURCES.rglob("*.py"))
    for path in SOURCES.rglob("*.nb[ic]"):
        if path.stat().st_mtime < newest:
            path.unlink(missing_ok=True)
