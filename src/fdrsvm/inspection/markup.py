"""Text in a page."""

from __future__ import annotations

import html

from fdrsvm.core.texts import printable


def escape(text: str) -> str:
    """A name as it is read: no tag and no quote, and control characters as words.

    A page with half a surrogate pair could not be written, and an override of direction would turn
    what comes after it.
    """
    return html.escape(printable(text), quote=True)
