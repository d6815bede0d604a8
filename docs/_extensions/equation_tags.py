"""Makes a link of every equation tag, such as [risk], that a page or a docstring cites."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes

_HEADING = re.compile(r"^### \[([a-z]+(?:-[a-z]+)*)\]", re.M)
_CITED = re.compile(r"(?<!\w)\[([a-z]+(?:-[a-z]+)*)\]")
_NOT_RUNNING_TEXT = (nodes.title, nodes.literal, nodes.literal_block, nodes.reference)


def find_tags(docs: Path) -> dict[str, str]:
    """The page of each equation: tags are headings of the third level, in square brackets."""
    return {
        tag: page.stem
        for page in sorted(docs.glob("*.md"))
        for tag in _HEADING.findall(page.read_text(encoding="utf-8"))
    }


def cited_tags(text: str) -> list[str]:
    """All that looks like a tag, in order."""
    return _CITED.findall(text)


def _is_running_text(node: nodes.Node) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, _NOT_RUNNING_TEXT):
            return False
        parent = parent.parent
    return True


def _link_tags(app: Any, doctree: nodes.document, docname: str) -> None:
    tags = find_tags(Path(app.srcdir))
    for text in list(doctree.findall(nodes.Text)):
        if not _is_running_text(text):
            continue
        parts: list[nodes.Node] = []
        end = 0
        for found in _CITED.finditer(text):
            if found[1] in tags:
                parts.append(nodes.Text(text[end : found.start()]))
                page = app.builder.get_relative_uri(docname, tags[found[1]])
                address = f"{page}#{found[1]}"
                parts.append(nodes.reference("", found[0], internal=True, refuri=address))
                end = found.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", _link_tags)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
