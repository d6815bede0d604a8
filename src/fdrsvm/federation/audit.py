"""The audit log: one JSON object a line, who took part in which round and what was exchanged.

Sizes, hashes, times and faults; no model and no value of any plant's data. Lines are added as
things happen and are on disk before the run goes on, so that a run that is cut off has its log.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fdrsvm.files import read_capped

_MAX_BYTES = 1 << 30


class AuditLog:
    """Adds events to a file; a callable, as transports take a listener."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, event: Mapping[str, Any]) -> None:
        """One more line, with the time."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, **event}, sort_keys=True, default=str)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            if event.get("event") != "answer":  # a round's answers are on disk with its record
                file.flush()
                os.fsync(file.fileno())


def read_audit(path: Path) -> Iterator[dict[str, Any]]:
    """The events; a last line that was cut off is passed over."""
    if not path.exists():
        return
    for line in read_capped(path, _MAX_BYTES).decode("utf-8", "replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
