"""Shows links to folders and to files outside the site as plain paths: a site has neither."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((?!https?:)([^)#\s]+)(#[^)\s]*)?\)")


def plain_paths(text: str, folder: Path, docs: Path) -> str:
    """The text of a page in ``folder`` with such links replaced by what they say."""

    def shown(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        in_site = target.is_relative_to(docs.resolve()) and not target.is_dir()
        return link[0] if in_site else f"`{link[1].strip('`')}`"

    return _LINK.sub(shown, text)


def _read(app: Any, docname: str, content: list[str]) -> None:
    page = Path(app.srcdir) / f"{docname}.md"
    if page.exists():
        content[0] = plain_paths(content[0], page.parent, Path(app.srcdir))


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
