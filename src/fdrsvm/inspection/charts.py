"""Charts as SVG, in the page's own colours, so that they follow its light and dark side.

Colours are CSS classes (``s0``, ``s1``, ...), sizes are units of the view box. This module computes
the shapes; ``chart.svg.j2`` writes them down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from fdrsvm.inspection.rendering import number, render

_WIDTH, _HEIGHT = 400.0, 250.0
_LEFT, _RIGHT, _TOP, _FOOT = 52.0, 380.0, 10.0, 210.0  # the edges of what is drawn
_ROW = 20.0
_STEPS = (1.0, 2.0, 5.0, 10.0)
_LETTER = 7.0
_LONGEST = 18  # letters of a name


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
        low, high = min(values), max(values)
        if is_log:
            low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
            high = high if high > low else 10.0 * low
        elif high == low:
            low, high = low - (abs(low) or 1.0) / 2.0, high + (abs(high) or 1.0) / 2.0
        return cls(low, high, start, end, is_log)

    def place(self, value: float) -> float:
        low, high, value = (
            math.log10(each) if self.is_log else each for each in (self.low, self.high, value)
        )
        return round(self.start + (value - low) / (high - low) * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        if not self.is_log:
            return nice_ticks(self.low, self.high)
        powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
        every = max(1, math.ceil(len(powers) / 5))
        return [10.0**power for power in powers if power % every == 0]


@dataclass
class _Canvas:
    """The shapes of one chart: a class, then where; and what the legend says."""

    description: str
    height: float = _HEIGHT
    y_label: str = ""
    paths: list[tuple[str, str]] = field(default_factory=list)
    circles: list[tuple[str, float, float, float]] = field(default_factory=list)
    texts: list[tuple[str, float, float, str]] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)

    def draw_axes(self, x_axis: _Axis, y_axis: _Axis, x_label: str) -> None:
        for value in y_axis.ticks():
            y = y_axis.place(value)
            self.paths.append(("grid", f"M{_LEFT} {y}H{_RIGHT}"))
            self.texts.append(("end", _LEFT - 6.0, round(y + 4.0, 1), number(value)))
        for value in x_axis.ticks():
            x = x_axis.place(value)
            self.paths.append(("grid", f"M{x} {_FOOT}v4"))
            self.texts.append(("mid", x, _FOOT + 16.0, number(value)))
        self.texts.append(("mid", (_LEFT + _RIGHT) / 2.0, _HEIGHT - 6.0, x_label))

    def markup(self) -> Markup:
        return render("chart.svg.j2", width=_WIDTH, middle=(_TOP + _FOOT) / 2.0, **vars(self))


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers within a range, about this many."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * s for s in _STEPS if power * s >= rough * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def line_chart(
    lines: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    description: str,
    log_y: bool = False,
    from_zero: bool = False,
    mark: tuple[float, str] | None = None,
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
        A vertical or a horizontal line to compare with.
    """
    points = [point for line in lines for each in _stretches(line, log_y) for point in each]
    if not points:
        return Markup('<p class="note">There is nothing to draw.</p>')
    guides_x = [] if mark is None else [mark[0]]
    guides_y = [*([] if level is None else [level[0]]), *([0.0] if from_zero else [])]
    x_axis = _Axis.around([*(x for x, _ in points), *guides_x], _LEFT, _RIGHT)
    y_axis = _Axis.around([*(y for _, y in points), *guides_y], _FOOT, _TOP, is_log=log_y)
    canvas = _Canvas(description, y_label=y_label)
    canvas.draw_axes(x_axis, y_axis, x_label)
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
        canvas.paths.append(("mark", f"M{x_axis.place(mark[0])} {_TOP}V{_FOOT}"))
        canvas.legend.append((mark[1], "mark"))
    if level is not None:
        canvas.paths.append(("mark", f"M{_LEFT} {y_axis.place(level[0])}H{_RIGHT}"))
        canvas.legend.append((level[1], "mark"))
    return canvas.markup()


def scatter_chart(
    clouds: Sequence[Series], *, x_label: str, y_label: str, description: str
) -> Markup:
    """Clouds of points over one pair of axes, and the diagonal on which y is x."""
    xs = [x for cloud in clouds for x in cloud.x]
    x_axis = _Axis.around(xs, _LEFT, _RIGHT)
    y_axis = _Axis.around([*(y for cloud in clouds for y in cloud.y), *xs], _FOOT, _TOP)
    canvas = _Canvas(description, y_label=y_label)
    canvas.draw_axes(x_axis, y_axis, x_label)
    diagonal = [(x_axis.low, x_axis.low), (x_axis.high, x_axis.high)]
    canvas.paths.append(("mark", _path(diagonal, x_axis, y_axis)))
    for cloud in clouds:
        for x, y in zip(cloud.x, cloud.y, strict=True):
            canvas.circles.append((f"s{cloud.colour}", x_axis.place(x), y_axis.place(y), 2.5))
        canvas.legend.append((cloud.name, f"s{cloud.colour} dot"))
    return canvas.markup()


def dot_chart(names: Sequence[str], series: Sequence[Series], *, description: str) -> Markup:
    """A row for each name, with dots between its ends; x is from 0 to 1, y the row's number."""
    left = 18.0 + _LETTER * min(_LONGEST, max(map(len, names)))
    axis = _Axis(0.0, 1.0, left, _WIDTH - 12.0)
    canvas = _Canvas(description, height=_ROW * len(names) + 12.0)
    for row, name in enumerate(names):
        height = _ROW * (row + 0.5) + 6.0
        text = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 6]}…{name[-5:]}"
        canvas.paths.append(("grid", f"M{left} {height}H{axis.end}"))
        canvas.texts.append(("end", left - 14.0, height + 4.0, text))
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
