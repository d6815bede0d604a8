"""``fdrsvm audit-leak``."""

from __future__ import annotations

COMMANDS = ()
