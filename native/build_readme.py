"""The README as a page of a package index, which has no files beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LINK_TO_A_FILE = re.compile(r"\[([^\]]+)\]\((?!https?:|#)[^)]+\)")


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """The project's field ``readme``: links to files have become their words."""
    text = Path("README.md").read_text(encoding="utf-8")
    page = _LINK_TO_A_FILE.sub(r"\1", text)
    return {"readme": {"content-type": "text/markdown", "text": page}}
