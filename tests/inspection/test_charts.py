"""No two texts of a chart overlap, ticks tell apart what they stand for, nothing leaves the box."""

import math
import re
from html import unescape
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm.inspection.charts import (
    Series,
    dot_chart,
    line_chart,
    nice_ticks,
    scatter_chart,
    tick_texts,
)

# Of 12 px in DejaVu Sans and Verdana, the widest of usual fonts: a digit is 7.6 wide, a capital or
# a bracket no wider, letters in words 7 on average; a line is 13 high.
DIGIT, LETTER, ABOVE, BELOW = 7.65, 7.0, 10.0, 3.0
TEXT = re.compile(r'<text x="([-\d.e]+)" y="([-\d.e]+)" class="(\w*)">(.*?)</text>')
BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def boxes(chart):
    """Left, top, right, bottom and words of each text; and the size of the whole."""
    found = []
    for x, y, kind, text in TEXT.findall(str(chart)):
        words = unescape(text)
        each = DIGIT if re.fullmatch(r"[-+.\de∞]+", words) else LETTER
        left = float(x) - {"": 0.0, "mid": 0.5, "end": 1.0}[kind] * each * len(words)
        right = left + each * len(words)
        found.append((left, float(y) - ABOVE, right, float(y) + BELOW, words))
    return found, tuple(map(float, BOX.search(str(chart)).groups()))


def check(chart):
    found, (width, height) = boxes(chart)
    assert found
    for one, other in combinations(found, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)
    for left, top, right, bottom, words in found:
        assert left >= 0.0, words
        assert right <= width, words
        assert top >= 0.0, words
        assert bottom <= height + 1.0, words
    assert "nan" not in str(chart)
    return [words for *_, words in found]


sizes = st.floats(-280.0, 280.0).map(lambda power: 10.0**power)
numbers = st.one_of(
    st.floats(-1e280, 1e280, allow_subnormal=False),
    st.builds(lambda base, step: base + step, sizes, sizes),
    st.builds(lambda base, part: base * (1.0 + part), sizes, st.floats(-1e-6, 1e-6)),
)
ranges = st.one_of(
    st.tuples(numbers, numbers),
    st.builds(lambda base, part: (base, base * (1.0 + part)), sizes, st.floats(1e-14, 1e-2)),
)
names = st.sampled_from(
    ["y", "objective, mean over classes", "worst-case risk " * 6, "x" * 90, "distance (rpm)"]
)


@given(ranges, ranges, names, names, st.booleans())
def test_texts_of_a_line_chart_do_not_overlap(x, y, x_label, y_label, log_y):
    line = Series("a", list(x), list(y))
    chart = line_chart([line], x_label=x_label, y_label=y_label, description="d", log_y=log_y)
    if "nothing to draw" not in chart:
        check(chart)


@given(ranges, ranges)
def test_texts_of_a_scatter_chart_do_not_overlap(x, y):
    cloud = Series("a", list(x), list(y))
    check(scatter_chart([cloud], x_label="margin", y_label="in the worst case", description="d"))


@given(st.lists(st.text("ab [m]", min_size=1, max_size=60), min_size=1, max_size=20))
def test_names_of_a_dot_chart_do_not_overlap(features):
    dots = Series("row", [0.5] * len(features), range(len(features)))
    found, _ = boxes(dot_chart(features, [dots], description="d"))
    for one, other in combinations(found, 2):
        assert one[3] <= other[1] or other[3] <= one[1]
    assert all(left >= -2.0 for left, *_ in found)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.604414, 0.604462), (1.0000001e-7, 1.0000004e-7), (1e6, 1e6 + 1e-3), (-5.00001, -5.0)],
)
def test_ticks_of_a_narrow_range_differ_and_add_up(low, high):
    ticks = nice_ticks(low, high)
    texts, above = tick_texts(ticks)
    assert len(set(texts)) == len(texts) >= 2
    assert max(map(len, texts)) <= 9
    base = float(above.removeprefix(", above ")) if above else 0.0
    step = ticks[1] - ticks[0]
    for tick, text in zip(ticks, texts, strict=True):
        assert abs(base + float(text) - tick) <= 0.01 * step
    assert high - low < 1.0


def test_usual_ticks_are_short():
    assert tick_texts([0.0, 0.5, 1.0]) == (["0", "0.5", "1"], "")
    assert tick_texts([0.0, 1000.0, 2000.0]) == (["0", "1000", "2000"], "")
    assert tick_texts([0.6044, 0.60442, 0.60444])[1] == ""


@given(ranges)
def test_ticks_lie_within_and_are_evenly_spaced(pair):
    low, high = sorted(pair)
    if high - low <= 1e-12 * max(abs(low), abs(high)) or not math.isfinite(high - low):
        return
    ticks = nice_ticks(low, high)
    slack = 1e-6 * (high - low)
    assert 2 <= len(ticks) <= 7
    assert low - slack <= ticks[0] < ticks[-1] <= high + slack
    steps = [b - a for a, b in pairwise(ticks)]
    rounding = 8.0 * math.ulp(max(abs(low), abs(high)))
    assert max(steps) - min(steps) <= rounding + 1e-9 * max(steps)
