"""Maps in structured text: curves as tables, surfaces as products of ramps, and waves.

Each sensor x first becomes the share (x - low) / width of its range, as in training: no digit is
lost where a range is narrow and far from 0. Readings and values stand beside, in comments. How
numbers and comments are written is here too, for the rest of the text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.errors import NumericalError
from fdrsvm.risk.feature_maps import AdditiveFeatures, Features, FourierFeatures

MAX_COMMENT = 160
_FARTHEST = "1.0E+12"  # ranges


def map_variables(features: Features) -> list[str]:
    """Variables that a map needs, sensors counted from 1."""
    names = [f"Share_{at}" for at in range(1, features.n_sensors + 1)]
    if isinstance(features, AdditiveFeatures):
        pieces = range(features.pair_knots)
        return names + [_ramp(at, a) for at in _paired(features) for a in pieces]
    return [*names, "Phase"]


def _paired(features: AdditiveFeatures) -> list[int]:
    """The sensors that are in a pair."""
    return sorted({at for pair in features.pairs for at in pair})


def _ramp(at: int, piece: int) -> str:
    return f"Ramp_{at + 1}_{piece + 1}"


def sensor_shares(features: Features, inputs: Sequence[str], said: Sequence[str]) -> Iterator[str]:
    """What the map is made of; ``said`` is what comments call the inputs."""
    limits = zip(inputs, said, features.low, features.width, strict=True)
    for at, (word, name, low, width) in enumerate(limits, start=1):
        yield comment(f"{name}: its share of the range from {low:.6g} to {low + width:.6g}")
        yield f"Share_{at} := ({word} {plus(-low)}) / {literal(width)};"


def curves(
    features: AdditiveFeatures, coef: Array, scores: Sequence[str], said: Sequence[str]
) -> Iterator[str]:
    """For each sensor one piece after the other, each with its line."""
    n_knots = features.n_knots
    slopes = features.split(coef)[0] * features.span[:, None]
    tables = [features.curves(weights) for weights in coef]
    for at, name in enumerate(said):
        yield comment(f"The curve of {name}: straight between its knots, and beyond the last ones")
        readings = tables[0][0][at]
        for k in range(n_knots):
            span = comment(f"{readings[k]:.6g} to {readings[k + 1]:.6g}")
            until = f"Share_{at + 1} <= {literal((k + 1) / n_knots)} THEN"
            keyword = "IF" if k == 0 else "ELSIF"
            yield f"{keyword} {until} {span}" if k < n_knots - 1 else f"{'ELSE ' * (k > 0)}{span}"
            for score, slope, (_, values) in zip(scores, slopes[:, at], tables, strict=True):
                base, rise = "", f"Share_{at + 1}"  # curves begin with 0, at the share 0
                if k > 0:
                    base, rise = f" {plus(values[at, k])}", f"({rise} - {literal(k / n_knots)})"
                ends = comment(f"{values[at, k] + 0.0:.6g} to {values[at, k + 1] + 0.0:.6g}")
                yield f"    {score} := {score}{base} {plus(slope[k])} * {rise}; {ends}"
        yield from ["END_IF;"] * (n_knots > 1)


def surfaces(
    features: AdditiveFeatures, coef: Array, scores: Sequence[str], said: Sequence[str]
) -> Iterator[str]:
    """Ramps of the sensors that are in pairs, then their products."""
    m = features.pair_knots
    for at, a in itertools.product(_paired(features), range(m)):
        word, top = _ramp(at, a), literal(1.0 / m)
        yield f"{word} := Share_{at + 1} {plus(-a / m)};"
        yield from (f"IF {word} <= 0.0 THEN", f"    {word} := 0.0;")
        yield from (f"ELSIF {word} > {top} THEN", f"    {word} := {top};", "END_IF;")
    _, weights = features.split(coef)
    tables = [features.surfaces(row) for row in coef]
    knots = features.low + features.width * np.linspace(0.0, 1.0, m + 1)[:, None]
    for at, (i, j) in enumerate(features.pairs):
        for score, own, values in zip(scores, weights[:, at], tables, strict=True):
            # A row for each knot of the first sensor, a column for each of the second.
            yield comment(f"{score} of {said[i]} (down) and {said[j]} (across), constant beyond")
            yield comment(" " * 13 + "".join(f"{reading:13.6g}" for reading in knots[:, j]))
            for reading, row in zip(knots[:, i], values[at] + 0.0, strict=True):
                yield comment(f"{reading:13.6g}" + "".join(f"{value:13.6g}" for value in row))
            for a, b in itertools.product(range(m), repeat=2):
                yield f"{score} := {score} {plus(own[a, b])} * {_ramp(i, a)} * {_ramp(j, b)};"


def waves(features: FourierFeatures, coef: Array, scores: Sequence[str]) -> Iterator[str]:
    """One phase after the other, for inputs of which COS and SIN can be told."""
    shares = [f"Share_{at}" for at in range(1, features.n_sensors + 1)]
    yield comment("Farther out waves say nothing, and COS and SIN may stop the PLC")
    for share in shares:  # the comparison is FALSE for NaN
        yield f"Valid := Valid AND (ABS({share}) <= {_FARTHEST});"
    yield "IF Valid THEN"
    cosines, sines = np.split(coef * features.scale, 2, axis=1)
    for at, direction in enumerate(features.frequencies):
        yield f"    {comment(f'Wave {at + 1} of {len(features.frequencies)}')}"
        yield "    Phase := 0.0;"
        for share, frequency in zip(shares, direction, strict=True):
            yield f"    Phase := Phase {plus(frequency)} * {share};"
        for score, c, s in zip(scores, cosines[:, at], sines[:, at], strict=True):
            yield f"    {score} := {score} {plus(c)} * COS(Phase) {plus(s)} * SIN(Phase);"
    yield "END_IF;"


def comment(text: str) -> str:
    """A comment that its content can neither end nor, where comments nest, open again."""
    safe = text.replace("*", "\\u002a")
    cut = safe if len(safe) <= MAX_COMMENT else safe[:MAX_COMMENT] + " ..."
    return f"(* {cut} *)"


def plus(value: float) -> str:
    """To be added: two operators in a row, as in "+ -1.0", are not legal everywhere."""
    return f"{'-' if value < 0.0 else '+'} {literal(abs(value))}"


def literal(value: float) -> str:
    """17 significant digits, which name one float64 and no other."""
    if not np.isfinite(value):
        raise NumericalError(
            "structured text: a number of the model overflows float64; scale the sensors to shares "
            "of their ranges, and train again"
        )
    return f"{value:.16E}"
