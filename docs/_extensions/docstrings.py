"""Docstrings as they are: plain mathematics is no markup, and what scikit-learn adds is its own."""

from __future__ import annotations

import re
from typing import Any

_PROPERTIES: dict[str, list[str]] = {}  # between the two handlers
_MARKUP = re.compile(r"\||(?<=_)\*(?!\*)|(?<=\w)_(?![\w`])")
_LITERAL = re.compile(r"(``.+?``|:\w+:`.+?`)")


def escape(line: str) -> str:
    """||w||_* and coef_ are no markup; literals and roles stay as they are."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = _LITERAL.split(line)
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def _keep(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Napoleon takes what stands before a colon for the type of a property: keep its words."""
    if what == "property":
        _PROPERTIES[name] = list(lines)


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    lines[:] = [escape(line) for line in _PROPERTIES.pop(name, lines)]


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:  # noqa: ARG001
    """Leave out what a class has from scikit-learn; None leaves the question open."""
    return True if (getattr(obj, "__module__", None) or "").startswith("sklearn") else None


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _keep, priority=100)
    app.connect("autodoc-process-docstring", _process, priority=900)  # napoleon has 500
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
