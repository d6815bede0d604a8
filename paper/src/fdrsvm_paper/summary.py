"""From stored rows to the numbers of a table.

Rows are dictionaries of text, as ``csv.DictReader`` gives them. A run may be cut short and taken up
again, so any row may be missing; every number here comes with the count of repetitions behind it.
Should a row be there twice, the later one counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Final, Literal

import numpy as np
from scipy import stats

from fdrsvm.errors import InvalidInputError
from fdrsvm_paper.paper_values import (
    DATA_TITLES,
    PAPER_METHODS,
    SETTING_TITLES,
    PaperTable,
    Printed,
)

__all__ = [
    "BUNDLE",
    "METHODS",
    "SEVERITIES",
    "SHORT_METHODS",
    "Gain",
    "Joining",
    "RoundsNeeded",
    "Rows",
    "Scaling",
    "Score",
    "Scores",
    "far_from_paper",
    "in_order",
    "joining",
    "number",
    "rounds_needed",
    "scaling",
    "score",
    "scores",
    "split",
    "values_by_repetition",
]

Rows = Sequence[Mapping[str, str]]

BUNDLE: Final = "Bundle (FDR-SVM, certified)"
METHODS: Final = (*PAPER_METHODS, BUNDLE)
SHORT_METHODS: Final = ("SM", "ADMM", "ADMM-SC", "Bundle")  # in all but tables 1 and 2
SEVERITIES: Final = ("paper", "labelling")
_CONFIDENCE = 0.95  # of the interval that must leave out zero


@dataclass(frozen=True)
class Score:
    """A score over repetitions.

    Attributes
    ----------
    mean : float
        Their mean.
    sd : float
        Their standard deviation, with n - 1; nan for a single one.
    count : int
        How many there are.
    """

    mean: float
    sd: float
    count: int

    def difference(self, paper: Printed) -> float:
        """How far above the paper's mean, in the paper's standard deviations."""
        return (self.mean - paper.mean) / paper.sd


Scores = Mapping[tuple[str, str], Score]  # by method and column


@dataclass(frozen=True)
class Gain:
    """What one model has over another, paired over repetitions.

    Attributes
    ----------
    mean : float
        Mean difference; nan if there is no pair.
    standard_error : float
        Of that mean; nan with fewer than two pairs.
    count : int
        Pairs.
    """

    mean: float
    standard_error: float
    count: int

    @property
    def verdict(self) -> Literal["pays", "costs", "unclear"]:
        """Whether a 95 % t interval of the mean lies above zero, below, or around it."""
        if self.count < 2:
            return "unclear"
        quantile = float(stats.t.ppf(0.5 + _CONFIDENCE / 2.0, self.count - 1))
        margin = quantile * self.standard_error
        if self.mean > margin:
            return "pays"
        return "costs" if self.mean < -margin else "unclear"


@dataclass(frozen=True)
class Joining:
    """What plants get alone, together, and if they pooled their data.

    Attributes
    ----------
    severities, setting : str
        The experiment.
    group : str
        Number of the plant, or size of its leak, or ``"all"``.
    n_train : float
        Mean number of a plant's training rows.
    on_all, on_own : dict of str to Score
        F-1 by model (``local``, ``federated``, ``central``), on the common test set and on its
        healthy rows with the plant's own leak.
    gain_all, gain_own : Gain
        Federated less local.
    """

    severities: str
    setting: str
    group: str
    n_train: float
    on_all: Mapping[str, Score]
    on_own: Mapping[str, Score]
    gain_all: Gain
    gain_own: Gain


@dataclass(frozen=True)
class Scaling:
    """Cost of one method along one panel of the scalability study.

    Attributes
    ----------
    panel, method : str
        Which curve.
    x : tuple of float
        What grows: clients, samples or features.
    seconds, rounds, mccr : tuple of float
        Medians over repetitions at each x; nan where nothing was recorded.
    count : int
        Repetitions at the x that has fewest.
    """

    panel: str
    method: str
    x: tuple[float, ...]
    seconds: tuple[float, ...]
    rounds: tuple[float, ...]
    mccr: tuple[float, ...]
    count: int

    @property
    def exponent(self) -> float:
        """The p of the power law ``seconds = c x^p`` that fits best; nan without one."""
        points = [
            (math.log(x), math.log(seconds))
            for x, seconds in zip(self.x, self.seconds, strict=True)
            if x > 0.0 and seconds > 0.0
        ]
        if len(points) < 2:
            return math.nan
        log_x, log_seconds = np.array(points).T
        return float(np.polyfit(log_x, log_seconds, 1)[0])


@dataclass(frozen=True)
class RoundsNeeded:
    """Rounds that a method needs, with the parameter that did best.

    Attributes
    ----------
    data, norm, method : str
        What was run.
    target : float
        The certified relative gap to reach.
    parameter : str
        The one with the lowest median.
    rounds : float
        Median over repetitions, where one that did not get there counts as infinite.
    reached, count : int
        Repetitions that got there, and all.
    """

    data: str
    norm: str
    method: str
    target: float
    parameter: str
    rounds: float
    reached: int
    count: int


def number(row: Mapping[str, str], field: str) -> float | None:
    """A field as a finite number, or None where there is none.

    Parameters
    ----------
    row : dict
        A row; it may have been cut short.
    field : str
        Name of the field.

    Returns
    -------
    float or None
        None for an absent or empty field, nan and infinities.
    """
    text = row.get(field) or ""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        raise InvalidInputError(field, "must be a number or empty", f"found {text!r}") from None
    return value if math.isfinite(value) else None


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names, each once: those known in the order given, then others as they come."""
    present = list(dict.fromkeys(names))
    first = [name for name in known if name in present]
    return first + [name for name in present if name not in first]


def split(rows: Rows, field: str, known: Iterable[str] = ()) -> dict[str, list[Mapping[str, str]]]:
    """Rows by the value of a field, in the order of :func:`in_order`; those without it are out."""
    parts: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        if row.get(field):
            parts.setdefault(row[field], []).append(row)
    return {name: parts[name] for name in in_order(parts, known)}


def score(values: Iterable[float]) -> Score:
    """Mean, standard deviation and count of at least one value."""
    collected = list(values)
    if not collected:
        raise InvalidInputError("values", "must not be empty", "found none")
    sd = stdev(collected) if len(collected) > 1 else math.nan
    return Score(fmean(collected), sd, len(collected))


def values_by_repetition(
    rows: Rows, column: str, value: str = "f1"
) -> dict[tuple[str, str], dict[str, float]]:
    """Values by method and column, then by repetition.

    Parameters
    ----------
    rows : sequence of dict
        Rows of table 1 or of one severity set of table 2.
    column : str
        The field that names a table's column: ``data`` or ``setting``.
    value : str, default="f1"
        The field to collect.

    Returns
    -------
    dict
        ``(method, column) -> repetition -> value``. Rows without a value are left out.
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        method, place, repetition = row.get("method"), row.get(column), row.get("repetition")
        measured = number(row, value)
        if method and place and repetition and measured is not None:
            found.setdefault((method, place), {})[repetition] = measured
    return found


def scores(rows: Rows, column: str, value: str = "f1") -> dict[tuple[str, str], Score]:
    """Mean, standard deviation and count by method and column.

    Parameters
    ----------
    rows, column, value
        As in :func:`values_by_repetition`.

    Returns
    -------
    dict
        ``(method, column) -> Score``, without those that have no row.
    """
    found = values_by_repetition(rows, column, value)
    return {key: score(values.values()) for key, values in found.items()}


def far_from_paper(
    found: Scores, paper: PaperTable, limit: float = 1.0
) -> dict[tuple[str, str], float]:
    """The cells that differ from the paper by more than ``limit`` of its standard deviations.

    Parameters
    ----------
    found : dict
        Scores by method and column.
    paper : dict
        The paper's table.
    limit : float, default=1.0
        In the paper's standard deviations.

    Returns
    -------
    dict
        ``(method, column) -> difference``, in the order of the paper's table.
    """
    differences = {
        (method, column): found[method, column].difference(printed)
        for method, cells in paper.items()
        for column, printed in cells.items()
        if (method, column) in found
    }
    # A difference of exactly one is within it, whatever the rounding of .951 - .950.
    return {key: value for key, value in differences.items() if abs(value) > limit + 1e-9}


def joining(rows: Rows, by: Literal["plant", "leak", "all"] = "plant") -> list[Joining]:
    """Local, federated and central models side by side, to see whether joining pays.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the joining study.
    by : {"plant", "leak", "all"}, default="plant"
        One result a plant, or a size of leak (these change plants with the repetition), or one for
        all plants. Plants of one repetition share the federated model, so for all of them they are
        averaged first, and only repetitions that have every plant count.

    Returns
    -------
    list of Joining
        By severity set, setting and group.
    """
    return [
        _joined(part, severities, setting, group)
        for severities, in_set in split(rows, "severities", SEVERITIES).items()
        for setting, in_setting in split(in_set, "setting", SETTING_TITLES).items()
        for group, part in _groups(in_setting, by).items()
    ]


def scaling(rows: Rows) -> list[Scaling]:
    """Cost against size, by panel and method.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the scalability study.

    Returns
    -------
    list of Scaling
        By panel, then by method.
    """
    return [
        _scaling(panel, method, part)
        for panel, in_panel in split(rows, "panel", "abcd").items()
        for method, part in split(in_panel, "method", SHORT_METHODS).items()
    ]


def rounds_needed(rows: Rows) -> list[RoundsNeeded]:
    """Rounds to a certified gap, each with the parameter that did best for it.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the study of rounds.

    Returns
    -------
    list of RoundsNeeded
        By norm, data set and method, then from the largest target gap to the smallest.
    """
    return [
        _best_parameter(part, target)
        for in_norm in split(rows, "norm", ("linf", "l2", "l1")).values()
        for in_data in split(in_norm, "data", DATA_TITLES).values()
        for in_method in split(in_data, "method", SHORT_METHODS).values()
        for target, part in _by_target(in_method).items()
    ]


def _groups(rows: Rows, by: str) -> dict[str, list[Mapping[str, str]]]:
    if by == "all":
        return {"all": list(rows)}
    if by not in ("plant", "leak"):
        raise InvalidInputError("by", "must be 'plant', 'leak' or 'all'", f"found {by!r}")
    parts = split(rows, by)
    return {name: parts[name] for name in sorted(parts, key=_numeric)}


def _numeric(text: str) -> tuple[float, str]:
    """Key that sorts numbers by size and puts other names after them."""
    try:
        return (float(text), text)
    except ValueError:
        return (math.inf, text)


def _joined(rows: Rows, severities: str, setting: str, group: str) -> Joining:
    models = split(rows, "model", ("local", "federated", "central"))
    plants = {row["plant"] for row in rows if row.get("plant")}
    # A size of leak is at one plant in each repetition, not at all of those where it ever was.
    needed = len(plants) if group == "all" else 1
    sizes = [size for row in rows if (size := number(row, "n_train")) is not None]

    def means(model: str, field: str) -> dict[str, float]:
        return _means_over_plants(models.get(model, []), field, needed)

    def models_on(field: str) -> dict[str, Score]:
        return {
            model: score(values.values()) for model in models if (values := means(model, field))
        }

    return Joining(
        severities=severities,
        setting=setting,
        group=group,
        n_train=fmean(sizes) if sizes else math.nan,
        on_all=models_on("f1_all"),
        on_own=models_on("f1_own"),
        gain_all=_gain(means("federated", "f1_all"), means("local", "f1_all")),
        gain_own=_gain(means("federated", "f1_own"), means("local", "f1_own")),
    )


def _means_over_plants(rows: Rows, field: str, needed: int) -> dict[str, float]:
    """By repetition, of those that have all plants needed."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        repetition, plant, value = row.get("repetition"), row.get("plant"), number(row, field)
        if repetition and plant and value is not None:
            found.setdefault(repetition, {})[plant] = value
    return {r: fmean(plants.values()) for r, plants in found.items() if len(plants) >= needed}


def _gain(ahead: Mapping[str, float], behind: Mapping[str, float]) -> Gain:
    differences = [value - behind[key] for key, value in ahead.items() if key in behind]
    if not differences:
        return Gain(math.nan, math.nan, 0)
    paired = score(differences)
    return Gain(paired.mean, paired.sd / math.sqrt(paired.count), paired.count)


def _scaling(panel: str, method: str, rows: Rows) -> Scaling:
    parts = split(rows, "x")
    xs = sorted(parts, key=_numeric)

    def medians(field: str) -> tuple[float, ...]:
        return tuple(_median(_field_by_repetition(parts[x], field).values()) for x in xs)

    return Scaling(
        panel=panel,
        method=method,
        x=tuple(_numeric(x)[0] for x in xs),
        seconds=medians("seconds"),
        rounds=medians("rounds"),
        mccr=medians("mccr"),
        count=min((len(_field_by_repetition(parts[x], "seconds")) for x in xs), default=0),
    )


def _field_by_repetition(rows: Rows, field: str) -> dict[str, float]:
    found = {row.get("repetition", ""): number(row, field) for row in rows}
    return {repetition: value for repetition, value in found.items() if value is not None}


def _median(values: Iterable[float]) -> float:
    collected = list(values)
    return median(collected) if collected else math.nan


def _by_target(rows: Rows) -> dict[float, list[Mapping[str, str]]]:
    """From the largest to the smallest, which takes longest."""
    parts: dict[float, list[Mapping[str, str]]] = {}
    for row in rows:
        target = number(row, "target")
        if target is not None:
            parts.setdefault(target, []).append(row)
    return {target: parts[target] for target in sorted(parts, reverse=True)}


def _best_parameter(rows: Rows, target: float) -> RoundsNeeded:
    by_parameter: dict[str, dict[str, float]] = {}
    for row in rows:
        rounds = number(row, "rounds")
        runs = by_parameter.setdefault(row.get("parameter") or "", {})
        runs[row.get("repetition") or ""] = math.inf if rounds is None else rounds
    parameter, runs = min(
        by_parameter.items(), key=lambda item: (median(item[1].values()), sum(item[1].values()))
    )
    return RoundsNeeded(
        data=rows[0]["data"],
        norm=rows[0]["norm"],
        method=rows[0]["method"],
        target=target,
        parameter=parameter,
        rounds=median(runs.values()),
        reached=sum(map(math.isfinite, runs.values())),
        count=len(runs),
    )
