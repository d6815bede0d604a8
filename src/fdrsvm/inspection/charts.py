"""Charts as SVG text, in the page's own colours, so that they follow its light and dark side.

Colours are CSS classes (``s0``, ``s1``, ...), sizes are units of the view box. Nothing here needs
another package.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fdrsvm.inspection.markup import escape

_WIDTH, _HEIGHT = 400.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 20.0, 10.0, 40.0
_ROW = 20.0
_STEPS = (1.0, 2.0, 5.0, 10.0)
_LETTER = 7.0
_LONGEST = 18


@dataclass(frozen=True)
class Line:
    """One curve; points that are not finite leave a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Points:
    """A cloud of points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0


@dataclass(frozen=True)
class Dots:
    """One dot in every row, at a place from 0 to 1; None leaves it out."""

    name: str
    places: Sequence[float | None]
    colour: int = 0


@dataclass(frozen=True)
class _Axis:
    """From numbers to the view box."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def place(self, value: float) -> float:
        low, high = self._scaled(self.low), self._scaled(self.high)
        return self.start + (self._scaled(value) - low) / (high - low) * (self.end - self.start)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.is_log else value

    def ticks(self) -> list[float]:
        if not self.is_log:
            return nice_ticks(self.low, self.high)
        powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
        every = max(1, math.ceil(len(powers) / 5))
        return [10.0**power for power in powers if power % every == 0]


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers within a range, at most so many."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * s for s in _STEPS if power * s >= rough * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def line_chart(
    lines: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    description: str,
    log_y: bool = False,
    mark: tuple[float, str] | None = None,
    level: tuple[float, str] | None = None,
) -> str:
    """Curves over one pair of axes.

    Parameters
    ----------
    lines : sequence of Line
        The curves.
    x_label, y_label, description : str
        Names of the axes, and what a screen reader says.
    log_y : bool
        Logarithmic; values that are not above 0 are left out.
    mark, level : pair of number and name, optional
        A vertical or a horizontal line to compare with.
    """
    points = [
        (x, y)
        for line in lines
        for x, y in zip(line.x, line.y, strict=True)
        if _can_be_drawn(x, y, log_y)
    ]
    if not points:
        return '<p class="note">There is nothing to draw.</p>'
    levels = [level[0]] if level is not None else []
    marks = [mark[0]] if mark is not None else []
    x_axis = _axis([x for x, _ in points] + marks, _LEFT, _WIDTH - _RIGHT, is_log=False)
    y_axis = _axis([y for _, y in points] + levels, _HEIGHT - _BOTTOM, _TOP, is_log=log_y)
    parts = [*_grid(x_axis, y_axis, x_label, y_label)]
    if mark is not None:
        at = x_axis.place(mark[0])
        parts.append(f'<path class="mark" d="M{at:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
    if level is not None:
        at = y_axis.place(level[0])
        parts.append(f'<path class="mark" d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}"/>')
    parts += [_curve(line, x_axis, y_axis, log_y) for line in lines]
    named = [(line.name, f"s{line.colour}{' dashed' if line.dashed else ''}") for line in lines]
    named += [(each[1], "mark") for each in (mark, level) if each is not None]
    return _svg(parts, _HEIGHT, description) + _legend(named)


def scatter_chart(clouds: Sequence[Points], *, x_label: str, y_label: str, description: str) -> str:
    """Clouds of points over one pair of axes, and the diagonal on which y is x."""
    xs = [x for cloud in clouds for x in cloud.x]
    ys = [y for cloud in clouds for y in cloud.y]
    x_axis = _axis(xs, _LEFT, _WIDTH - _RIGHT, is_log=False)
    y_axis = _axis([*ys, *xs], _HEIGHT - _BOTTOM, _TOP, is_log=False)
    low, high = x_axis.low, x_axis.high
    parts = [*_grid(x_axis, y_axis, x_label, y_label)]
    parts.append(
        f'<path class="mark" d="M{x_axis.place(low):.1f} {y_axis.place(low):.1f}'
        f'L{x_axis.place(high):.1f} {y_axis.place(high):.1f}"/>'
    )
    for cloud in clouds:
        parts += [
            f'<circle class="s{cloud.colour}" cx="{x_axis.place(x):.1f}" '
            f'cy="{y_axis.place(y):.1f}" r="2.5"/>'
            for x, y in zip(cloud.x, cloud.y, strict=True)
        ]
    named = [(cloud.name, f"s{cloud.colour} dot") for cloud in clouds]
    return _svg(parts, _HEIGHT, description) + _legend(named)


def dot_chart(names: Sequence[str], series: Sequence[Dots], *, description: str) -> str:
    """A row for each name, with a dot of each series between its ends."""
    left = 18.0 + _LETTER * min(_LONGEST, max(map(len, names)))
    axis = _Axis(0.0, 1.0, left, _WIDTH - 12.0)
    height = _ROW * len(names) + 12.0
    parts = []
    for row, name in enumerate(names):
        y = _ROW * (row + 0.5) + 6.0
        parts.append(f'<path class="grid" d="M{left:.1f} {y:.1f}H{_WIDTH - 12.0}"/>')
        parts.append(
            f'<text x="{left - 14.0:.1f}" y="{y + 4.0:.1f}" class="end">{short(name)}</text>'
        )
        for dots in series:
            place = dots.places[row]
            if place is not None:
                x = axis.place(min(max(place, -0.02), 1.02))
                parts.append(f'<circle class="s{dots.colour}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
    return _svg(parts, height, description) + _legend(
        [(d.name, f"s{d.colour} dot") for d in series]
    )


def short(name: str, longest: int = _LONGEST) -> str:
    """A name that fits, escaped."""
    text = name if len(name) <= longest else f"{name[: longest - 6]}…{name[-5:]}"
    return escape(text)


def number(value: float) -> str:
    """For a tick or a cell."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else ("∞" if value > 0.0 else "-∞")
    return f"{value:.4g}"


def _can_be_drawn(x: float, y: float, log_y: bool) -> bool:
    return math.isfinite(x) and math.isfinite(y) and (y > 0.0 or not log_y)


def _axis(values: Sequence[float], start: float, end: float, *, is_log: bool) -> _Axis:
    low, high = min(values), max(values)
    if is_log:
        low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
        high = high if high > low else 10.0 * low
    elif high == low:
        low, high = low - (abs(low) or 1.0) / 2.0, high + (abs(high) or 1.0) / 2.0
    return _Axis(low, high, start, end, is_log)


def _grid(x_axis: _Axis, y_axis: _Axis, x_label: str, y_label: str) -> list[str]:
    parts = []
    for value in y_axis.ticks():
        y = y_axis.place(value)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(
            f'<text x="{_LEFT - 6.0}" y="{y + 4.0:.1f}" class="end">{number(value)}</text>'
        )
    foot = _HEIGHT - _BOTTOM
    for value in x_axis.ticks():
        x = x_axis.place(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {foot}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{foot + 16.0}" class="mid">{number(value)}</text>')
    middle = (_TOP + foot) / 2.0
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2.0}" y="{_HEIGHT - 6.0}" class="mid">'
        f"{escape(x_label)}</text>"
    )
    parts.append(
        f'<text transform="translate(11 {middle}) rotate(-90)" class="mid">{escape(y_label)}</text>'
    )
    return parts


def _curve(line: Line, x_axis: _Axis, y_axis: _Axis, log_y: bool) -> str:
    steps, is_down = [], False
    for x, y in zip(line.x, line.y, strict=True):
        if _can_be_drawn(x, y, log_y):
            letter = "L" if is_down else "M"
            steps.append(f"{letter}{x_axis.place(x):.1f} {y_axis.place(y):.1f}")
            is_down = True
        else:
            is_down = False
    style = f"s{line.colour}{' dashed' if line.dashed else ''}"
    return f'<path class="line {style}" d="{"".join(steps)}"/>'


def _svg(parts: Sequence[str], height: float, description: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(description)}">{"".join(parts)}</svg>'
    )


def _legend(entries: Sequence[tuple[str, str]]) -> str:
    items = [f'<span><i class="{style}"></i>{escape(name)}</span>' for name, style in entries]
    return f'<p class="legend">{"".join(items)}</p>'
