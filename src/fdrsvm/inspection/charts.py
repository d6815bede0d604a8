"""Charts as SVG, in the page's own colours, so that they follow its light and dark side.

Colours are CSS classes (``s0``, ``s1``, ...), sizes are units of the view box. This module computes
the shapes; ``chart.svg.j2`` writes them down. Which font the reader has is not known: room is made
for wide ones, so that no two texts overlap.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from fdrsvm.core.arrays import Array
from fdrsvm.inspection.rendering import number, render

_WIDTH = 400.0
_TOP, _FOOT = 30.0, 230.0  # of what is drawn; above is the name of the y axis
_EDGE, _NEAR = 6.0, 6.0  # free at the sides, and between a text and what is next to it
_LINE = 14.0  # of text
_ROW = 20.0
_STEPS = (1.0, 2.0, 5.0, 10.0)
_LETTER, _DIGIT = 7.0, 7.7  # of 12 px in wide fonts; letters on average
_LONGEST = 24  # letters of a name
_LONG = 7  # characters of a tick; beyond, what all have in common is said once
_MOST_TICKS = 5
_SHADES = 5  # of each colour of a surface
_LEAST, _MOST = 1e-290, 1e300  # nothing is drawn beyond


@dataclass(frozen=True)
class Series:
    """Points that belong together: a curve, a cloud, or a dot in each row.

    Points of a curve that are not finite leave a gap. ``floor`` shades what lies between it and
    ``y``.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0
    dashed: bool = False
    floor: Sequence[float] | None = None


@dataclass(frozen=True)
class _Axis:
    """From numbers to the view box."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    @classmethod
    def around(
        cls, values: Sequence[float], start: float, end: float, *, is_log: bool = False
    ) -> _Axis:
        low, high = (min(max(edge(values), -_MOST), _MOST) for edge in (min, max))
        size = max(abs(low), abs(high))
        if is_log:
            low, high = (max(each, _LEAST) for each in (low, high))
            low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
            high = high if high > low else 10.0 * low
        elif high - low <= max(1e-12 * size, _LEAST):  # nothing but rounding
            room = size / 2.0 if size > _LEAST else 0.5
            low, high = low - room, high + room
        return cls(low, high, start, end, is_log)

    def place(self, value: float) -> float:
        low, high, value = (
            math.log10(max(each, _LEAST)) if self.is_log else min(max(each, -_MOST), _MOST)
            for each in (self.low, self.high, value)
        )
        return round(self.start + (value - low) / (high - low) * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        if not self.is_log:
            return nice_ticks(self.low, self.high)
        powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
        every = max(1, math.ceil(len(powers) / _MOST_TICKS))
        return [10.0**power for power in powers if power % every == 0]


@dataclass
class _Canvas:
    """The shapes of one chart: a class, then where; and what the legend says."""

    description: str
    height: float = _FOOT
    paths: list[tuple[str, str]] = field(default_factory=list)
    circles: list[tuple[str, float, float, float]] = field(default_factory=list)
    texts: list[tuple[str, float, float, str]] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)

    def draw_axes(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        x_label: str,
        y_label: str,
        *,
        log_y: bool = False,
    ) -> tuple[_Axis, _Axis]:
        """Axes around these numbers, with ticks, their texts and both names."""
        y_axis = _Axis.around(ys, _FOOT, _TOP, is_log=log_y)
        values, base = y_axis.ticks(), ""
        texts = list(map(number, values))
        if not log_y:
            texts, base = tick_texts(values)
        left = _EDGE + _NEAR + _DIGIT * max(map(len, texts))
        for value, text in zip(values, texts, strict=True):
            y = y_axis.place(value)
            self.texts.append(("end", left - _NEAR, round(y + 4.0, 1), text))
        x_axis, x_ticks, x_base = fit_ticks(xs, left)
        self.paths += [("grid", f"M{left} {y_axis.place(y)}H{x_axis.end}") for y in values]
        for x, text in x_ticks:
            self.paths.append(("grid", f"M{x} {_FOOT}v4"))
            self.texts.append(("mid", x, _FOOT + 20.0, text))
        self.height = self._write(x_label + x_base, "mid", _WIDTH / 2.0, _FOOT + 40.0)
        self._write(y_label + base, "", _EDGE, 12.0, most_lines=1)
        return x_axis, y_axis

    def _write(self, text: str, kind: str, x: float, y: float, most_lines: int = 9) -> float:
        """In lines that fit; where the next text may begin."""
        n_letters = int((_WIDTH - 2.0 * _EDGE) / _LETTER)
        lines = textwrap.wrap(text, n_letters)
        if len(lines) > most_lines:
            lines = [shorten(text, n_letters)]
        for n, line in enumerate(lines):
            self.texts.append((kind, x, y + n * _LINE, line))
        return y + _LINE * (len(lines) - 1) + _EDGE

    def markup(self) -> Markup:
        return render("chart.svg.j2", width=_WIDTH, **vars(self))


def fit_ticks(xs: Sequence[float], left: float) -> tuple[_Axis, list[tuple[float, str]], str]:
    """The x axis with as many ticks as have room beside each other."""
    values = _Axis.around(xs, left, _WIDTH).ticks()
    for every in range(1, len(values) + 1):
        texts, base = tick_texts(values[::every])
        half = _DIGIT * max(map(len, texts)) / 2.0
        axis = _Axis.around(xs, left, _WIDTH - max(half, 10.0) - _EDGE)
        places = list(map(axis.place, values[::every]))
        if all(b - a >= 2.0 * half + _NEAR for a, b in pairwise(places)):
            break  # one alone has room
    return axis, list(zip(places, texts, strict=True)), base


def tick_texts(ticks: Sequence[float]) -> tuple[list[str], str]:
    """Texts that tell ticks apart, and what to append to the axis' name.

    Long numbers that differ in the last digits only are counted from the first of them.
    """
    step = min((b - a for a, b in pairwise(ticks)), default=abs(ticks[0]) or 1.0)

    def exact(values: Sequence[float]) -> list[str]:
        for digits in range(4, 18):
            texts = [f"{value:.{digits}g}" for value in values]
            if all(abs(float(t) - v) <= 1e-3 * step for t, v in zip(texts, values, strict=True)):
                break
        return texts

    texts = exact(ticks)
    if max(map(len, texts)) <= _LONG or len(ticks) < 2:
        return texts, ""
    shorter = exact([round((tick - ticks[0]) / step) * step for tick in ticks])
    if max(map(len, shorter)) >= max(map(len, texts)):
        return texts, ""
    return shorter, f", above {texts[0]}"


def shorten(text: str, longest: int) -> str:
    """The beginning and the end of a text that is too long."""
    return text if len(text) <= longest else f"{text[: longest - 6]}…{text[-5:]}"


def nice_ticks(low: float, high: float, most: int = _MOST_TICKS) -> list[float]:
    """Round numbers within a range, about this many."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * s for s in _STEPS if power * s >= rough * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = 1 - math.floor(math.log10(step))  # as decimals, without the rounding of k * step
    return [round(k * step, digits) + 0.0 for k in range(first, last + 1)]


def line_chart(
    lines: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    description: str,
    log_y: bool = False,
    from_zero: bool = False,
    mark: tuple[float | Sequence[float], str] | None = None,
    level: tuple[float, str] | None = None,
) -> Markup:
    """Curves over one pair of axes.

    Parameters
    ----------
    lines : sequence of Series
        The curves.
    x_label, y_label, description : str
        Names of the axes, and what a screen reader says.
    log_y : bool
        Logarithmic; values that are not above 0 are left out.
    from_zero : bool
        Whether the y axis starts at 0 wherever the curves do.
    mark, level : pair of number and name, optional
        A vertical or a horizontal line to compare with; there may be several vertical ones.
    """
    points = [point for line in lines for each in _stretches(line, log_y) for point in each]
    if not points:
        return Markup('<p class="note">There is nothing to draw.</p>')
    guides_x = [] if mark is None else [mark[0]] if isinstance(mark[0], float) else [*mark[0]]
    guides_y = [*([] if level is None else [level[0]]), *([0.0] if from_zero else [])]
    xs, ys = [*(x for x, _ in points), *guides_x], [*(y for _, y in points), *guides_y]
    canvas = _Canvas(description)
    x_axis, y_axis = canvas.draw_axes(xs, ys, x_label, y_label, log_y=log_y)
    for line in lines:
        if line.floor is not None:
            sides = [*zip(line.x, line.y, line.floor, strict=True)]
            sides = [side for side in sides if all(map(math.isfinite, side))]
            outline = [(x, y) for x, y, _ in sides] + [(x, low) for x, _, low in reversed(sides)]
            canvas.paths.append((f"band s{line.colour}", _path(outline, x_axis, y_axis)))
        style = f"s{line.colour}{' dashed' if line.dashed else ''}"
        curve = "".join(_path(each, x_axis, y_axis) for each in _stretches(line, log_y))
        canvas.paths.append((f"line {style}", curve))
        canvas.legend.append((line.name, style))
    if mark is not None:
        canvas.paths += [("mark", f"M{x_axis.place(each)} {_TOP}V{_FOOT}") for each in guides_x]
        canvas.legend.append((mark[1], "mark"))
    if level is not None:
        canvas.paths.append(("mark", f"M{x_axis.start} {y_axis.place(level[0])}H{x_axis.end}"))
        canvas.legend.append((level[1], "mark"))
    return canvas.markup()


def scatter_chart(
    clouds: Sequence[Series], *, x_label: str, y_label: str, description: str
) -> Markup:
    """Clouds of points over one pair of axes, and the diagonal on which y is x."""
    xs = [x for cloud in clouds for x in cloud.x]
    ys = [*(y for cloud in clouds for y in cloud.y), *xs]
    canvas = _Canvas(description)
    x_axis, y_axis = canvas.draw_axes(xs, ys, x_label, y_label)
    diagonal = [(x_axis.low, x_axis.low), (x_axis.high, x_axis.high)]
    canvas.paths.append(("mark", _path(diagonal, x_axis, y_axis)))
    for cloud in clouds:
        for x, y in zip(cloud.x, cloud.y, strict=True):
            canvas.circles.append((f"s{cloud.colour}", x_axis.place(x), y_axis.place(y), 2.5))
        canvas.legend.append((cloud.name, f"s{cloud.colour} dot"))
    return canvas.markup()


def heat_chart(
    surface: Array,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    cloud: Series,
    *,
    x_label: str,
    y_label: str,
    description: str,
) -> Markup:
    """A surface in shades of two colours, above and below 0, and points on it.

    ``surface`` has its middles of cells by x and y, evenly over both ranges.
    """
    canvas = _Canvas(description)
    x_axis, y_axis = canvas.draw_axes(x_range, y_range, x_label, y_label)
    largest = max(float(np.abs(surface).max()), _LEAST)
    shades = np.rint(_SHADES * surface / largest).astype(int)
    x_ends, y_ends = (
        [axis.place(float(end)) for end in np.linspace(axis.low, axis.high, size + 1)]
        for axis, size in zip((x_axis, y_axis), surface.shape, strict=True)
    )
    for shade in np.unique(shades[shades != 0]).tolist():
        cells = "".join(
            f"M{x_ends[i]} {y_ends[j]}H{x_ends[i + 1]}V{y_ends[j + 1]}H{x_ends[i]}Z"
            for i, j in np.argwhere(shades == shade).tolist()
        )
        canvas.paths.append((f"heat s{int(shade > 0)} o{abs(shade)}", cells))
    for x, y in zip(cloud.x, cloud.y, strict=True):
        if x_range[0] <= x <= x_range[1] and y_range[0] <= y <= y_range[1]:
            canvas.circles.append(("soft", x_axis.place(x), y_axis.place(y), 1.3))
    ends = [("adds up to", surface.max(), "s1"), ("takes up to", -surface.min(), "s0")]
    canvas.legend += [(f"{what} {number(end)}", kind) for what, end, kind in ends if end > 0.0]
    if canvas.circles:
        canvas.legend.append((cloud.name, "soft dot"))
    return canvas.markup()


def dot_chart(names: Sequence[str], series: Sequence[Series], *, description: str) -> Markup:
    """A row for each name, with dots between its ends; x is from 0 to 1, y the row's number."""
    left = 18.0 + _LETTER * min(_LONGEST, max(map(len, names)))
    axis = _Axis(0.0, 1.0, left, _WIDTH - 12.0)
    canvas = _Canvas(description, height=_ROW * len(names) + 12.0)
    for row, name in enumerate(names):
        height = _ROW * (row + 0.5) + 6.0
        canvas.paths.append(("grid", f"M{left} {height}H{axis.end}"))
        canvas.texts.append(("end", left - 14.0, height + 4.0, shorten(name, _LONGEST)))
    for dots in series:
        for x, y in zip(dots.x, dots.y, strict=True):
            place = axis.place(min(max(x, -0.02), 1.02))
            canvas.circles.append((f"s{dots.colour}", place, _ROW * (y + 0.5) + 6.0, 4.5))
        canvas.legend.append((dots.name, f"s{dots.colour} dot"))
    return canvas.markup()


def _stretches(line: Series, log_y: bool) -> Iterator[list[tuple[float, float]]]:
    """The curve's points between those that cannot be drawn."""
    stretch: list[tuple[float, float]] = []
    for x, y in zip(line.x, line.y, strict=True):
        if math.isfinite(x) and math.isfinite(y) and (y > 0.0 or not log_y):
            stretch.append((x, y))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _path(points: Sequence[tuple[float, float]], x_axis: _Axis, y_axis: _Axis) -> str:
    return "M" + "L".join(f"{x_axis.place(x)} {y_axis.place(y)}" for x, y in points)
