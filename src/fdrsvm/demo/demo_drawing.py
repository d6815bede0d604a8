"""Figures as SVG text for a page: one style, and files that are the same from run to run.

The only module of the demo that imports matplotlib. The figures of the paper and of the benchmarks
become SVG here too, and look alike.
"""

from __future__ import annotations

import io
import re
from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakKeyDictionary

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

__all__ = ["GREY", "Figure", "as_svg", "style", "whole_ticks"]

GREY = "0.6"

_SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # text stays text: sharp, small, searchable
    "svg.hashsalt": "fdrsvm",  # the same input gives the same file
}

# Without these the file names a web address, and differs from run to run.
_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


def style(**settings: Any) -> AbstractContextManager[None]:
    """The figures' settings, to draw and to save within; ``font_size=9`` is ``font.size``."""
    own: dict[Any, Any] = {name.replace("_", ".", 1): value for name, value in settings.items()}
    context: AbstractContextManager[None] = mpl.rc_context({**_SETTINGS, **own})
    return context


def whole_ticks(axis: Any) -> None:
    """Ticks at whole numbers only, as for rounds."""
    axis.set_major_locator(MaxNLocator(integer=True))


def as_svg(figure: Figure, name: str, description: str = "") -> str:
    """The figure as an ``svg`` element for a page.

    Parameters
    ----------
    figure : Figure
        What to draw.
    name : str
        Starts every id inside, so that figures of one page do not take each other's clip paths.
    description : str
        What a screen reader says instead of the picture.
    """
    text = _own_ids(_plain_svg(figure), re.sub(r"[^A-Za-z0-9]+", "-", name))
    label = description.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg ", f'<svg role="img" aria-label="{label or name}" ', 1)


_DRAWN: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()  # drawing takes long


def _plain_svg(figure: Figure) -> str:
    """What matplotlib writes, without comments, line breaks and useless decimals."""
    if figure not in _DRAWN:
        buffer = io.StringIO()
        with style():
            figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
        text = re.sub(r"<!--.*?-->", "", buffer.getvalue(), flags=re.S)
        text = re.sub(r"\s*\n\s*", " ", text[text.index("<svg") :]).replace("> <", "><")
        _DRAWN[figure] = re.sub(r' (?:d|x|y|transform)="[^"]*"', _shorter, text).strip()
    return _DRAWN[figure]


def _shorter(attribute: re.Match[str]) -> str:
    return re.sub(r"(\.\d\d)\d+", r"\1", attribute[0])


def _own_ids(svg: str, prefix: str) -> str:
    """Ids that something refers to start with the prefix; the others go."""
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{prefix}-{match[1]}"' if match[1] in used else ""

    svg = re.sub(r' id="([^"]+)"', renamed, svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)
