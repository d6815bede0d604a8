"""The opening of a model's page, for whoever runs a plant: what it finds, what it costs, why.

Numbers are counts of rows on the page, with 95 % limits by Clopper and Pearson
(:func:`fdrsvm.decision.goals.share_limits`); a rate of rows turns false alarms into such per week.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.plain_json import from_plain
from fdrsvm.data.rows import Rows
from fdrsvm.data.units import split_unit
from fdrsvm.decision.goals import share_limits
from fdrsvm.errors import InvalidInputError
from fdrsvm.inspection import certifying
from fdrsvm.inspection.comparison import LOCAL
from fdrsvm.inspection.fitted import names_for
from fdrsvm.inspection.rendering import number
from fdrsvm.inspection.scores import MODEL, POOLED, Score, found_words, percent
from fdrsvm.inspection.shapes import Shapes
from fdrsvm.inspection.stragglers import LEVEL, is_clearly_below
from fdrsvm.inspection.terms import term_names, term_sizes
from fdrsvm.model.linear_model import ALARM, PROBABILITIES, TUNING, LinearModel
from fdrsvm.model.trained_ball import ROBUST
from fdrsvm.model.unscaling import Scaling
from fdrsvm.risk.feature_maps import FourierFeatures

_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0}
_WEEK = 7.0 * _SECONDS["day"]
_STRONGEST = 3
_MOST_CLASSES = 8
_STEPS = {
    "none": "one unit",
    "minmax": "the range in training",
    "limits": "the agreed range",
    "standard": "one standard deviation in training",
}


@dataclass(frozen=True)
class RowRate:
    """How often each plant gets a row: as it was said, and how many that makes in a week."""

    said: str
    per_week: float

    @classmethod
    def parse(cls, text: str, argument: str) -> Self:
        """From a number and a unit, such as "1 min", "30s" or "0.5 h"."""
        match = re.fullmatch(r"\s*([0-9.]+(?:e[-+]?\d+)?)\s*(s|min|h|day)s?\s*", text, re.I)
        try:
            amount = float(match[1]) if match else 0.0
        except ValueError:
            amount = 0.0
        if match is None or not 0.0 < amount < 1e12:
            units = ", ".join(_SECONDS)
            raise InvalidInputError(
                argument,
                f"must be a number above 0 and a unit ({units}), such as '1 min'",
                f"it is {text!r}",
            )
        unit = match[2].lower()
        return cls(f"{amount:g} {unit}", _WEEK / (amount * _SECONDS[unit]))


@dataclass(frozen=True)
class PlantLine:
    """One plant in the opening's table; ``weekly`` are its false alarms a week."""

    score: Score
    weekly: str | None
    alone: float | None
    joining: str


def finding_words(one: Score) -> list[str]:
    """Whether it finds faults."""
    if one.counts is None:
        return []
    counts = np.array(one.counts, dtype=float)
    if one.n_faults is None:
        worst = min(
            (name for name, value in one.recalls.items() if value == value),
            key=lambda name: one.recalls[name],
        )
        k = list(one.recalls).index(worst)
        return [
            f"It names the right class for {percent(one.accuracy)} of the {one.n_rows} rows. The "
            f"class that it finds least often is {worst!r}: {counts[k, k]:.0f} of "
            f"{counts[k].sum():.0f} rows."
        ]
    if not one.n_faults:
        return [f"No row of these data is {one.f1_of!r}: nobody can say what it finds."]
    limits = _limits(one.n_found, one.n_faults)
    words = [
        f"It finds {found_words(one)} rows that are {one.f1_of!r} ({percent(one.recall)}; with "
        f"95 % confidence {percent(limits[0])} to {percent(limits[1])})."
    ]
    n_alarms = (one.n_found or 0) + (one.n_false_alarms or 0)
    if n_alarms:
        words.append(f"Of {n_alarms} alarms {one.n_found} are right ({percent(one.precision)}).")
    return words


def alarm_words(one: Score, every: RowRate | None) -> list[str]:
    """How many false alarms it raises."""
    if one.n_false_alarms is None:
        return []
    if not one.n_healthy:
        return [
            "All rows of these data are faults: nobody can say how often it raises a false one."
        ]
    rate = one.false_alarm_rate
    limits = _limits(one.n_false_alarms, one.n_healthy)
    other = next(name for name in one.recalls if name != one.f1_of)
    words = (
        f"{one.n_false_alarms} of {one.n_healthy} healthy rows ({other!r}) set off an alarm: "
        f"{rounded(1000.0 * rate)} in 1000 (with 95 % confidence {rounded(1000.0 * limits[0])} to "
        f"{rounded(1000.0 * limits[1])})."
    )
    if every is None:
        return [words, 'For false alarms a week say how often a row comes: --row-every "1 min".']
    low, high = (rounded(each * every.per_week) for each in limits)
    return [
        words,
        f"At one row every {every.said} that is about {weekly_alarms(rate, every)} false alarms a "
        f"week at a plant (with 95 % confidence {low} to {high}), if rows are healthy and like "
        "these.",
    ]


def weekly_alarms(rate: float, every: RowRate) -> str:
    """False alarms a week at a plant."""
    return "-" if rate != rate else rounded(rate * every.per_week)


def rounded(value: float) -> str:
    """To three digits, and never as a power of ten where people count."""
    return f"{float(f'{value:.3g}'):,.10g}"


def plant_lines(
    scores: Sequence[Score], others: Sequence[Score], every: RowRate | None
) -> list[PlantLine]:
    """Each plant, and whether it gains by joining if models of its own are among ``others``."""
    alone = {one.client: one for one in others if one.model == LOCAL}
    lines = []
    for one in scores:
        if one.client == POOLED or one.model != MODEL:
            continue
        own = alone.get(one.client)
        lines.append(
            PlantLine(
                one,
                None if every is None else weekly_alarms(one.false_alarm_rate, every),
                None if own is None else own.balanced_accuracy,
                "" if own is None else gain_words(one, own),
            )
        )
    return lines


def gain_words(joined: Score, alone: Score) -> str:
    """In points of balanced accuracy; clear if chance does not explain it, at 95 %."""
    if alone.counts is None or joined.counts is None:
        return f"cannot be alone: {alone.note}"
    one, other = (np.array(each.counts, dtype=float) for each in (alone, joined))
    points = 100.0 * (joined.balanced_accuracy - alone.balanced_accuracy)
    if is_clearly_below(one, other, LEVEL):
        return f"gains {points:.1f} points"
    if is_clearly_below(other, one, LEVEL):
        return f"loses {-points:.1f} points"
    return f"{points:+.1f}, not clear"


def joining_words(
    model: LinearModel, lines: Sequence[PlantLine], *, is_compared: bool
) -> list[str]:
    """Which plant gains or loses by joining."""
    if is_compared:
        told = {
            verb: [line.score.client for line in lines if line.joining.startswith(verb)]
            for verb in ("gains", "loses", "cannot")
        }
        said = [
            f"{words}: {', '.join(told[verb])}."
            for verb, words in (
                ("gains", "Clearly better with this model than alone"),
                ("loses", "Clearly better alone"),
                ("cannot", "Could not have trained alone"),
            )
            if told[verb]
        ]
        return said or ["No plant is clearly better off alone, or with this model."]
    risks = {name: float(np.mean(risk)) for name, risk in certifying.stated_risks(model).items()}
    risks = {name: risk for name, risk in risks.items() if risk == risk}
    words = []
    if len(risks) > 1 and lines == []:
        hardest = max(risks, key=lambda name: risks[name])
        mean = float(np.mean(list(risks.values())))
        words.append(
            f"Served worst in training is {hardest}: a worst-case risk of "
            f"{number(risks[hardest])}, beside {number(mean)} on average over the clients."
        )
    if model.estimator in ROBUST:
        words.append(
            "Whether a plant would do better alone is shown by --compare with training rows."
        )
    return words


def sensor_words(model: LinearModel, rows: Rows | None, place: int | None) -> list[str]:
    """The strongest features in words: which way, and how much; of more classes for each."""
    if model.features is not None:
        return _map_words(model, rows, place)
    names, scaling = names_for(model), Scaling.of(model)
    if rows is None:
        spread, unit = scaling.scale, _STEPS[scaling.method]
    else:
        spread, unit = rows.X.std(axis=0), "one standard deviation in these data"
    if place is not None:
        pull = model.coef[0] if place == 1 else -model.coef[0]
        return [
            f"{names[p]}: {'high' if pull[p] > 0.0 else 'low'} values mean "
            f"{str(model.classes[place])!r} "
            f"({f'{number(float(spread[p]))} {split_unit(names[p])[1]}'.rstrip()}, "
            f"{unit}, moves the score by {number(abs(float(pull[p] * spread[p])))})"
            for p in _strongest(pull * spread)
        ]
    pulls = (model.coef - model.coef.mean(axis=0)) * spread
    return [
        f"{str(label)!r}: "
        + ", ".join(f"{'high' if pull[p] > 0.0 else 'low'} {names[p]}" for p in _strongest(pull))
        for label, pull in zip(model.classes[:_MOST_CLASSES], pulls, strict=False)
    ]


def _map_words(model: LinearModel, rows: Rows | None, place: int | None) -> list[str]:
    names, sizes = term_names(model), term_sizes(model, rows)
    if isinstance(model.features, FourierFeatures):
        largest = sizes.max(axis=0)
        return [
            "Waves run across all sensors at once: none can be read by itself. While one alone "
            "moves over its range and the others stay, the score changes, on average, by:",
            *(f"{names[p]}: {number(float(largest[p]))}" for p in _strongest(largest)),
        ]
    if place is not None:
        return Shapes(model, rows, place).words(_STRONGEST)
    return [
        f"{str(label)!r}: {', '.join(names[at] for at in _strongest(own))}"
        for label, own in zip(model.classes[:_MOST_CLASSES], sizes, strict=False)
    ]


def proved_words(model: LinearModel) -> str:
    """What is proved, in one sentence."""
    facts = [one for one in certifying.proved(model) if np.isfinite(one.objective)]
    if not facts:
        return "Nothing: the file holds no certificate."
    gap = max(one.gap for one in facts)
    if model.estimator not in ROBUST:
        return f"Training came within {gap:.1e} (relative) of its best; no guard was asked for."
    kind = "linear model" if model.features is None else "model with these features"
    words = (
        f"No other {kind} does better by more than {gap:.1e} (relative) when the data are "
        "off by as much as was guarded against"
    )
    if model.threshold != 0.0:
        words += "; this is about the scores, and where to cut them was chosen apart from it"
    return f"{words}."


def kept_words(model: LinearModel) -> list[str]:
    """What else the file says: of its alarm, its probabilities, and its cross-validation."""
    words = []
    for key, heading in ((ALARM, "Alarm"), (PROBABILITIES, "Probabilities")):
        kept = model.record.get(key)
        if isinstance(kept, dict):
            said = kept.get("statement")
            if said is None and key == PROBABILITIES:
                said = "the file also turns scores into probabilities"
            if isinstance(said, str):
                words.append(f"{heading}: {said.rstrip('.')}.")
    tuning = model.record.get(TUNING)
    if isinstance(tuning, dict) and "goal" in tuning:
        score = from_plain(tuning.get("score"))
        reached = f", which reached {number(score)}" if isinstance(score, float) else ""
        words.append(f"Chosen in training for {tuning['goal']}, by cross-validation{reached}.")
    return words


def settings_words(model: LinearModel, place: int | None) -> dict[str, str]:
    """Fault class, threshold and goal for the table of facts."""
    if place is None:
        return {}
    side = "above" if place == 1 else "not above"
    goal = (model.record.get(TUNING) or {}).get("goal", "not tuned")
    return {
        "fault class": f"{str(model.classes[place])!r}: a score {side} the threshold",
        "threshold": f"{number(model.threshold)}, goal: {goal}",
    }


def _limits(part: int | None, whole: int) -> tuple[float, float]:
    low, high = share_limits(part or 0, whole, LEVEL / 2.0)
    return float(low), float(high)


def _strongest(effects: Array) -> list[int]:
    order = np.argsort(-np.abs(effects), kind="stable")[:_STRONGEST]
    return [int(p) for p in order if effects[p] != 0.0]


def opening(
    model: LinearModel,
    rows: Rows | None,
    place: int | None,
    scores: Sequence[Score],
    others: Sequence[Score],
    every: RowRate | None,
    *,
    is_flat: bool,
) -> dict[str, Any]:
    """All of it, for the template; ``scores`` are the model's, empty without rows."""
    lines = plant_lines(scores, others, every)
    unknown = (
        ["Not known from the file alone: give rows with labels that it was not trained on."]
        if rows is None
        else []
    )
    total = scores[-1] if scores else None
    return {
        "finds": unknown if total is None else finding_words(total),
        "alarms": unknown if total is None else alarm_words(total, every),
        "lines": lines,
        "joining": joining_words(model, lines, is_compared=bool(others)),
        "sensors": [] if is_flat else sensor_words(model, rows, place),
        "proved": proved_words(model),
        "kept": kept_words(model),
    }
