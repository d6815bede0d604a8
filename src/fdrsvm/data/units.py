"""Units: which one a column's name states, and whether clients seem to use different ones.

Two clients' readings of one quantity, in two units, are related by y = a x + b with known a and b.
So a client is reported only if its middle value *and* its spread both become those of the others by
one such pair: a change of unit moves both together.

Given    m, s     median and interquartile range / 1.349 of a client; M, S those of the others
Alike    |m - M| <= 2 max(s, S), or m and M of one sign and within a factor 2; and s, S within a
         factor 4. Clients that are alike merely run at different points, and are not compared.
Pair     m' = a m + b and s' = a s, with |a| or 1/|a| of 5 at least where b = 0
Near     |m' - M| <= t |M| + 3 (standard error), and s', S within a factor u; where a column's name
         says what it measures t = 0.35, u = 2, else t = 0.15, u = 1.5. Where b is not 0 (kelvin,
         °C, °F) t |M| is 60 K, else 6 K or four spreads; °F is asked for where the name says
         temperature only, within 8 K or two spreads and u = 1.3: plants may well be 1.8 apart.

Nothing is reported if more than a third of the clients are neither alike nor explained by a pair,
or fewer are alike than are explained: plants that differ that much differ for other reasons.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array

_ENOUGH = 10  # values, for a median that means something
_CLEAR = 5.0  # smaller factors occur between plants as they are
_POWERS = (1, 2, 3, 4, 5, 6)

# Of each quantity its units, with (factor, offset) to a common one; the usual ones come first.
QUANTITIES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "temperature": {"K": (1.0, 0.0), "°C": (1.0, 273.15), "°F": (5.0 / 9.0, 459.67 * 5.0 / 9.0)},
    "pressure": {
        "bar": (1.0, 0.0),
        "kPa": (1e-2, 0.0),
        "MPa": (10.0, 0.0),
        "psi": (6894.757293168e-5, 0.0),
        "mbar": (1e-3, 0.0),
        "Pa": (1e-5, 0.0),
    },
    "rotation": {
        "Hz": (1.0, 0.0),
        "rpm": (1.0 / 60.0, 0.0),
        "rad/s": (0.5 / math.pi, 0.0),
    },
    "length": {
        "mm": (1e-3, 0.0),
        "m": (1.0, 0.0),
        "inch": (0.0254, 0.0),
        "µm": (1e-6, 0.0),
        "cm": (1e-2, 0.0),
    },
}
_QUANTITY_OF = {unit: quantity for quantity, units in QUANTITIES.items() for unit in units}
_SPELLINGS = {
    **{unit.casefold(): unit for unit in _QUANTITY_OF},
    **dict.fromkeys(("kelvin", "degk"), "K"),
    **dict.fromkeys(("c", "degc", "deg c", "celsius", "grad c"), "°C"),
    **dict.fromkeys(("f", "degf", "deg f", "fahrenheit"), "°F"),
    **dict.fromkeys(("1/min", "min-1", "u/min", "r/min"), "rpm"),
    **dict.fromkeys(("in", "zoll"), "inch"),
    **dict.fromkeys(("um", "micron"), "µm"),
    **{unit.casefold(): unit for unit in ("Nm", "N", "kN", "%", "°", "dB", "g", "kg")},
    **{unit.casefold(): unit for unit in ("s", "ms", "min", "h", "m/s", "mm/s", "m/s²")},
    **{unit.casefold(): unit for unit in ("A", "mA", "V", "mV", "W", "kW", "l/min", "m³/h")},
}
# As the last word of a name only spellings that are hardly words of their own.
_SHORT = {"k", "c", "f", "m", "s", "h", "a", "v", "w", "g", "n", "in", "min", "°", "%"}
_BRACKETS = re.compile(r"\s*[\[(]\s*([^\[\]()]{1,12}?)\s*[\])]\s*$")
_HINTS = {
    "temperature": re.compile(r"temp|therm|(^|_)t(_|$)", re.IGNORECASE),
    "pressure": re.compile(r"press|druck", re.IGNORECASE),
    "rotation": re.compile(r"rotat|rpm|drehzahl|freq|speed", re.IGNORECASE),
    "length": re.compile(
        r"length|displace|distance|diameter|width|height|thick|stroke|gap", re.IGNORECASE
    ),
}


def split_unit(name: str) -> tuple[str, str]:
    """A column's name without its unit, and the unit; "" where it states none.

    >>> split_unit("Torque [Nm]"), split_unit("temp (degC)"), split_unit("inlet_pressure_bar")
    (('Torque', 'Nm'), ('temp', '°C'), ('inlet_pressure', 'bar'))
    >>> split_unit("Jitter(Abs)"), split_unit("flow")
    (('Jitter(Abs)', ''), ('flow', ''))
    """
    found = _BRACKETS.search(name)
    if found:
        text = found[1]
        unit = _SPELLINGS.get(text.casefold(), text if "[" in found[0] else "")
        return (name[: found.start()], unit) if unit else (name, "")
    head, _, last = name.rstrip().replace(" ", "_").rpartition("_")
    key = last.casefold()
    if head and key in _SPELLINGS and key not in _SHORT:
        return name.rstrip()[: len(head)], _SPELLINGS[key]
    return name, ""


def bare_name(name: str) -> str:
    """What is left of a name without unit, case, spaces and marks: equal for names of one thing."""
    bare = re.sub(r"[\W_]", "", split_unit(name)[0].casefold())
    return bare or name


def quantity_of(name: str) -> str | None:
    """What a column measures, by its unit or by words in its name."""
    bare, unit = split_unit(name)
    if unit:
        return _QUANTITY_OF.get(unit, "another")
    return next((what for what, words in _HINTS.items() if words.search(bare)), None)


class Middle(NamedTuple):
    """A client's values in three numbers."""

    median: float
    spread: float
    n: int

    def is_like(self, other: Middle) -> bool:
        """Whether both may be in one unit."""
        near = abs(self.median - other.median) <= 2.0 * max(self.spread, other.spread)
        has_one_sign = self.median * other.median > 0.0
        near = near or (has_one_sign and _within(self.median / other.median, 2.0))
        return near and _within(self.spread / other.spread, 4.0)


class UnitGuess(NamedTuple):
    """A client that seems to use another unit: values * factor + offset are like the others'."""

    client: str
    factor: float
    offset: float
    unit: str
    usual: str
    others: tuple[str, ...]
    is_named: bool

    @property
    def relation(self) -> str:
        """In words."""
        large = max(self.factor, 1.0 / self.factor)
        by = f"factor {large:.4g}"
        if self.offset:
            by = "shift 273.15" if self.factor == 1.0 else f"{by} and a shift"
        if not self.is_named:
            size = "as small" if self.factor > 1.0 else "as large"
            known = f", as {self.usual} beside {self.unit}" if self.unit else ""
            return f"is {large:.4g} times {size} as in {_some(self.others)}{known}"
        return (
            f"looks like {self.unit} in {self.client} and {self.usual} in {_some(self.others)} "
            f"({by})"
        )

    @property
    def sum(self) -> str:
        """What to do with the client's values."""
        steps = [] if self.factor == 1.0 else [f"multiply by {self.factor:.7g}"]
        if self.offset:
            verb = "add" if self.offset > 0.0 else "subtract"
            steps.append(f"{verb} {abs(self.offset):.7g}")
        return ", then ".join(steps)


class UnitPair(NamedTuple):
    """A change of unit: values * factor + offset, from one unit to the usual one."""

    factor: float
    offset: float
    unit: str
    usual: str


def _some(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def middle_of(values: Array) -> Middle:
    """Median and robust spread."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return Middle(float(median), float((high - low) / 1.349), len(values))


def guess_units(samples: Mapping[str, Array], name: str) -> list[UnitGuess]:
    """The clients whose readings look like the others' in another unit.

    Parameters
    ----------
    samples : mapping from client to array
        Finite readings of one column.
    name : str
        The column's.
    """
    middles = {c: middle_of(values) for c, values in samples.items() if len(values) >= _ENOUGH}
    middles = {client: one for client, one in middles.items() if one.spread > 0.0}
    if len(middles) < 2:
        return []
    friends = {
        client: [name for name, other in middles.items() if one.is_like(other)]
        for client, one in middles.items()
    }
    usual = max(friends.values(), key=len)
    whole = Middle(
        float(np.median([middles[one].median for one in usual])),
        float(np.median([middles[one].spread for one in usual])),
        sum(middles[one].n for one in usual),
    )
    guesses, n_strange = [], 0
    for client, middle in middles.items():
        if client in usual:
            continue
        pairs = [(misfit_of(middle, whole, pair, name), pair) for pair in possible_pairs(name)]
        misfit, best = min(pairs, key=lambda one: one[0])
        is_named = bool(best.unit) and (bool(best.offset) or quantity_of(name) is not None)
        if misfit < np.inf:
            guesses.append(UnitGuess(client, *best, tuple(usual), is_named))
        n_strange += misfit == np.inf
    return [] if 3 * n_strange > len(middles) or len(guesses) > len(usual) else guesses


def _within(ratio: float, factor: float) -> bool:
    return 1.0 / factor <= ratio <= factor


def possible_pairs(name: str) -> Iterator[UnitPair]:
    """Changes of unit that are possible for a column."""
    quantity = quantity_of(name)
    known = [one for one in QUANTITIES if quantity in (None, one)]
    for one in known:
        units = QUANTITIES[one]
        for usual in units:
            for unit in units:
                (a, b), (c, d) = units[unit], units[usual]
                is_clear = b != d if one == "temperature" else not _within(a / c, _CLEAR)
                if unit != usual and is_clear and (quantity or "°F" not in (unit, usual)):
                    yield UnitPair(a / c, (b - d) / c, unit, usual)
    for power in _POWERS:
        yield UnitPair(10.0**power, 0.0, "", "")
        yield UnitPair(10.0**-power, 0.0, "", "")


def misfit_of(one: Middle, whole: Middle, pair: UnitPair, name: str) -> float:
    """How far a client is from the others after a change of unit; inf if too far."""
    is_hinted = bool(pair.unit) and quantity_of(name) is not None
    median, spread = pair.factor * one.median + pair.offset, pair.factor * one.spread
    noise = 3.0 * 1.25 * (spread / math.sqrt(one.n) + whole.spread / math.sqrt(whole.n))
    wide = max(spread, whole.spread)
    kelvin = QUANTITIES["temperature"].get(pair.usual, (1.0, 0.0))[0]
    if "°F" in (pair.unit, pair.usual):
        reach, factor = max(8.0 / kelvin, 2.0 * wide), 1.3
    elif pair.offset:
        hottest = max(one.median, whole.median)  # the one in kelvin
        if not 180.0 <= hottest <= 2000.0:
            return math.inf
        reach, factor = (60.0, 3.0) if is_hinted else (max(6.0, 4.0 * wide), 2.0)
    else:
        reach = (0.35 if is_hinted else 0.15) * abs(whole.median) + noise
        factor = 2.0 if is_hinted else 1.5
        if abs(whole.median) < whole.spread:  # around 0 only the spread can tell
            factor = 1.15 + 3.0 * 1.2 * (1.0 / math.sqrt(one.n) + 1.0 / math.sqrt(whole.n))
            factor = min(factor, 2.0)
    gap = abs(median - whole.median)
    if gap > reach or not _within(spread / whole.spread, factor):
        return math.inf
    # Of pairs that fit alike, the one with the stated unit, then the more common units.
    units = list(QUANTITIES.get(_QUANTITY_OF.get(pair.unit, ""), ()))
    rarity = sum(map(units.index, (pair.unit, pair.usual))) if units else 20
    is_stated = split_unit(name)[1] in ("", pair.usual)
    misfit = gap / reach + abs(math.log(spread / whole.spread))
    return misfit + 0.01 * rarity + (0.0 if is_stated else 0.2)
