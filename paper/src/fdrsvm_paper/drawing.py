"""What all figures share: one style, the methods' colours, axes, and how a figure becomes a file.

The only module of the paper's experiments that imports matplotlib. Files are the same from run to
run; the benchmarks' figures are drawn here too, and look alike.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
)
from PIL import Image

from fdrsvm.core.files import write_atomically

__all__ = [
    "GREY",
    "LOOKS",
    "Axes",
    "Figure",
    "Line2D",
    "Look",
    "as_svg",
    "few_ticks",
    "log_counts",
    "log_scale",
    "look",
    "save_figures",
    "settle",
    "short_name",
    "style",
]

_PNG_DPI = 110
_PNG_COLOURS = 128
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
_DRAWN: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()  # drawing takes long


@dataclass(frozen=True)
class Look:
    """Colour, mark and line of one method, the same in every figure."""

    colour: str
    marker: str = "o"
    line: Any = "solid"


# Apart for colour-blind readers; marks and lines differ too.
LOOKS = {
    "Bundle": Look("#1f5f8b", "D"),
    "Bundle summed": Look("#56b4e9", "d", (0, (6, 1))),
    "ADMM": Look("#b3541e", "s", (0, (5, 1.5))),
    "ADMM-SC": Look("#e69f00", "^", (0, (3, 1, 1, 1))),
    "SM": Look("#009e73", "o", (0, (1.5, 1))),
    "Central": Look("#333333", "*", "dashed"),
    "FedSGD": Look("#8c6d31", "v"),
    "FedAvg": Look("#7a7a7a", "P"),
    "FedProx": Look("#cc79a7", "X"),
    "FedDRO": Look("#7b4fa3", "h"),
}
_OTHER = Look("#000000", ".")


def style(**settings: Any) -> AbstractContextManager[None]:
    """The figures' settings, to draw and to save within; ``font_size=9`` is ``font.size``."""
    own: dict[Any, Any] = {name.replace("_", ".", 1): value for name, value in settings.items()}
    context: AbstractContextManager[None] = mpl.rc_context({**_SETTINGS, **own})
    return context


def short_name(method: str) -> str:
    """A method's name without what explains it: that in brackets, or DR-SVM."""
    return method.split(" (")[0].removesuffix(" DR-SVM")


def look(method: str) -> Look:
    """How a method is drawn, whichever of its names is given."""
    return LOOKS.get(short_name(method), _OTHER)


def few_ticks(axis: Any, most: int = 4) -> None:
    """Few enough ticks for their labels to stay apart in a small panel."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))


def log_scale(axes: Axes, which: str, most: int = 5) -> None:
    """A logarithmic axis with few labels, all at powers of ten."""
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(numticks=most))
    axis.set_minor_locator(NullLocator())


def log_counts(axes: Axes, steps: tuple[float, ...] = (1.0, 2.0, 5.0)) -> None:
    """A logarithmic x axis for counts: 1, 2, 5, 10 and so on, written as such."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def settle(figure: Figure) -> Figure:
    """Lay the panels out for good: saving in several formats need not do it again."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
    return figure


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
    text, prefix = _plain_svg(figure), re.sub(r"[^A-Za-z0-9]+", "-", name)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', text))
    text = re.sub(
        r' id="([^"]+)"',
        lambda match: f' id="{prefix}-{match[1]}"' if match[1] in used else "",
        text,
    )
    text = re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", text)
    label = description.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg ", f'<svg role="img" aria-label="{label or name}" ', 1)


def _plain_svg(figure: Figure) -> str:
    """What matplotlib writes, without comments, line breaks and useless decimals."""
    if figure not in _DRAWN:
        buffer = io.StringIO()
        with style():
            figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
        text = re.sub(r"<!--.*?-->", "", buffer.getvalue(), flags=re.S)
        text = re.sub(r"\s*\n\s*", " ", text[text.index("<svg") :]).replace("> <", "><")
        numbers = re.compile(r"(\.\d\d)\d+")
        _DRAWN[figure] = re.sub(
            r' (?:d|x|y|transform)="[^"]*"', lambda match: numbers.sub(r"\1", match[0]), text
        ).strip()
    return _DRAWN[figure]


def save_figures(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write each figure as ``name.svg`` and ``name.png``; the folder is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures.items():
        vector, pixels = folder / f"{name}.svg", folder / f"{name}.png"
        write_atomically(vector, as_svg(figure, name).encode())
        _save_pixels(figure, pixels)
        written += [vector, pixels]
    return written


def _save_pixels(figure: Figure, path: Path) -> None:
    """A quarter of the size with a palette, and no difference to the eye."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, dpi=_PNG_DPI, format="png")
    small = io.BytesIO()
    with Image.open(buffer) as image:
        palette = image.convert("RGB").quantize(_PNG_COLOURS, dither=Image.Dither.NONE)
        palette.save(small, format="png")
    write_atomically(path, small.getvalue())
