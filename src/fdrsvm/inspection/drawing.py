"""What the displays share: axes, colours, legends, bars. matplotlib is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.errors import UnsupportedError

# Apart for colour-blind readers and in print; lines differ in style too.
COLOURS = ("#1f5f8b", "#b3541e", "#009e73", "#cc79a7", "#56b4e9", "#4d4d4d")
STYLES: tuple[Any, ...] = ("solid", "dashed", "dashdot", (0, (3, 1, 1, 1)), (0, (6, 1)), "dotted")
GREY, PALE = "0.45", "#8ab6d6"

_LONGEST = 40  # characters of a name
_LETTER_INCHES = 0.07
_BAR_INCHES, _NARROW_BAR_INCHES, _MANY_BARS = 0.22, 0.17, 30
_FEWEST_PLACES = 3  # so that a single bar is no block
_SMALLEST_TEXT = 4.0  # points


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt  # noqa: TID251
    except ImportError as error:
        raise UnsupportedError(
            f"plot: needs the package matplotlib ({error}); run pip install 'fdr-svm[experiments]'"
        ) from None
    return plt


def new_axes(width: float = 6.4, height: float = 4.0) -> Any:
    """Axes in a figure of their own; sizes are inches."""
    return _pyplot().figure(figsize=(width, height), layout="constrained").add_subplot()


def new_pair() -> tuple[Any, Any]:
    """Two axes, one above the other, over the same rounds."""
    figure = _pyplot().figure(figsize=(6.4, 5.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    return upper, lower


def new_grid(count: int, columns: int = 3) -> list[Any]:
    """So many axes in a figure, row by row."""
    rows = -(-count // columns)
    size = (2.9 * min(count, columns), 2.4 * rows)
    figure = _pyplot().figure(figsize=size, layout="constrained")
    return [figure.add_subplot(rows, min(count, columns), at + 1) for at in range(count)]


def plain_text(text: str, longest: int = _LONGEST) -> str:
    """Text as it is, but without its middle if too long; no dollar sign starts a formula."""
    if len(text) > longest:
        text = f"{text[: longest // 2]}…{text[-(longest // 2 - 1) :]}"
    return text.replace("$", r"\$")


def short_names(names: Sequence[str], numbers: Iterable[int]) -> list[str]:
    """Names that fit beside an axis and still tell things apart, if need be by their numbers."""
    if max(map(len, names)) > _LONGEST:
        # Letters that all names start with say nothing; whole words of them are left out.
        first, last = min(names), max(names)
        pairs = enumerate(zip(first, last, strict=False))
        start = next((at for at, (one, other) in pairs if one != other), 0)
        while start > 0 and first[start - 1].isalnum():
            start -= 1
        names = [name if start < 2 else f"…{name[start:]}" for name in names]
    texts = [plain_text(name) for name in names]
    return [
        text if texts.count(text) == 1 else f"{plain_text(name, _LONGEST - 8)} [{number}]"
        for text, name, number in zip(texts, names, numbers, strict=True)
    ]


def count(ax: Any, gid: str) -> int:
    """How many lines with that mark are there already."""
    return sum(line.get_gid() == gid for line in ax.lines)


def draw_bars(
    ax: Any,
    values: Array,
    names: Sequence[str],
    shown: npt.NDArray[np.intp],
    colours: Sequence[str],
) -> tuple[Any, Any]:
    """Horizontal bars, the first on top, each with its name, in a size that fits.

    Values are of those ``shown``, names of all. Without ``ax``, on axes of their own, as high and
    as wide as they need. Returns axes and bars.
    """
    texts = short_names([names[at] for at in shown], shown.tolist())
    n_places = max(len(values), _FEWEST_PLACES)
    if ax is None:
        each = _BAR_INCHES if len(values) <= _MANY_BARS else _NARROW_BAR_INCHES
        longest = min(max(map(len, texts)), _LONGEST)
        ax = new_axes(5.0 + _LETTER_INCHES * longest, 1.5 + each * n_places)
    places = np.arange(len(values))
    bars = ax.barh(places, values, color=colours)
    ax.set_yticks(places, texts)
    middle, half = (len(values) - 1) / 2.0, n_places / 2.0 + 0.1
    ax.set_ylim(middle + half, middle - half)
    ax.tick_params(axis="y", length=0)
    points_each = 72.0 * ax.get_window_extent().height / ax.figure.dpi / (2.0 * half)
    for label in ax.get_yticklabels():
        label.set_fontsize(min(label.get_fontsize(), max(0.85 * points_each, _SMALLEST_TEXT)))
    return ax, bars


def finish(ax: Any, *, legend: bool = False) -> None:
    """The house style: no box around the picture; a legend where there is room, if asked for."""
    ax.spines[["top", "right"]].set_visible(False)
    if legend and ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)


def draw_legend_above(ax: Any, handles: Sequence[Any], title: str | None) -> None:
    """Finish axes with bars: their legend stands where no bar can run into it."""
    finish(ax)
    title = plain_text(title or "")
    if not handles:
        ax.set_title(title, loc="left")
        return
    ax.legend(
        handles=handles,
        title=title,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        alignment="left",
        frameon=False,
    )


def note(ax: Any, text: str) -> None:
    """Says why there is nothing to see."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=GREY)
