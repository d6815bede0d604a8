"""Where the seven UCI files are, if they are at hand."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[3] / "shared" / "data" / "uci"


def find_folder() -> Path | None:
    named = os.environ.get("FDRSVM_DATA")
    if named:
        return Path(named)
    return _BESIDE if _BESIDE.is_dir() else None


FOLDER = find_folder()
needs_folder = pytest.mark.skipif(
    FOLDER is None,
    reason="the UCI files are not here: set FDRSVM_DATA to a folder that has them",
)
