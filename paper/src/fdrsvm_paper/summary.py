"""From stored rows to the numbers of a table.

Rows are dictionaries of text, as ``csv.DictReader`` gives them. A run may be cut short and taken up
again, so any row may be missing; every number here comes with the count of repetitions behind it.
Should a row be there twice, the later one counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from fdrsvm.core.arrays import check_choice
from fdrsvm.errors import InvalidInputError
from fdrsvm_paper.paper_values import (
    DATA_TITLES,
    PAPER_METHODS,
    SETTING_TITLES,
    PaperTable,
    Printed,
)

Rows = Sequence[Mapping[str, str]]

BUNDLE: Final = "Bundle (FDR-SVM, certified)"
METHODS: Final = (*PAPER_METHODS, BUNDLE)
SHORT_METHODS: Final = ("SM", "ADMM", "ADMM-SC", "Bundle")  # in all but tables 1 and 2
SEVERITIES: Final = ("paper", "labelling")
MODELS: Final = ("local", "federated", "central")
NORMS: Final = ("linf", "l2", "l1")
_LEAKS = {"paper": "leaks 1, 4, 7, 10e-3", "labelling": "leaks 1, 2, 3, 4e-3"}
_CONFIDENCE = 0.95  # of the interval that must leave out zero


@dataclass(frozen=True)
class Score:
    """Mean, standard deviation (with n - 1; nan for a single one) and count of repetitions."""

    mean: float
    sd: float
    count: int

    def difference(self, paper: Printed) -> float:
        """How far above the paper's mean, in the paper's standard deviations."""
        return (self.mean - paper.mean) / paper.sd


Scores = Mapping[tuple[str, str], Score]  # by method and column


@dataclass(frozen=True)
class Gain:
    """What one model has over another, paired over ``count`` repetitions; nan without a pair."""

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


class Joining(NamedTuple):
    """What plants get alone, together, and if they pooled their data."""

    severities: str
    setting: str
    group: str  # number of the plant, or size of its leak, or "all"
    n_train: float  # mean number of a plant's training rows
    on_all: Mapping[str, Score]  # F-1 by model, on the common test set
    on_own: Mapping[str, Score]  # on its healthy rows with the plant's own leak
    gain_all: Gain  # federated less local
    gain_own: Gain


@dataclass(frozen=True)
class Scaling:
    """Cost of one method along one panel of the scalability study, in medians at each x."""

    panel: str
    method: str
    x: tuple[float, ...]  # what grows: clients, samples or features
    seconds: tuple[float, ...]
    rounds: tuple[float, ...]
    mccr: tuple[float, ...]
    count: int  # repetitions at the x that has fewest

    @property
    def exponent(self) -> float:
        """The p of the power law ``seconds = c x^p`` that fits best; nan without one."""
        return power_law(self.x, self.seconds)


@dataclass(frozen=True)
class RoundsNeeded:
    """Rounds that a method needs, with the parameter that did best."""

    data: str
    norm: str
    method: str
    target: float  # the certified relative gap to reach
    parameter: str  # the one with the lowest median
    rounds: float  # median over repetitions, where one that did not get there counts as infinite
    reached: int
    count: int


def leaks_name(severities: str) -> str:
    """A severity set by its leaks."""
    return _LEAKS.get(severities, severities)


def number(row: Mapping[str, str], field: str) -> float | None:
    """A field as a finite number; None where it is absent, empty, nan or infinite."""
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


def frame(
    rows: Rows,
    names: Mapping[str, Iterable[str]],
    numbers: Sequence[str],
    may_lack: Sequence[str] = (),
) -> Any:
    """Rows as a data frame without repeated ones.

    Parameters
    ----------
    rows : sequence of dict
        A row is left out if it lacks a name; of those with the same names the last one counts.
    names : mapping
        Columns that tell rows apart, each with its known values in the order to sort by.
    numbers : sequence of str
        Columns of numbers; nan where there is none.
    may_lack : sequence of str
        Names that may be empty.

    Returns
    -------
    DataFrame
        With the index 0, 1, ...; names are categories in the order of :func:`in_order`.
    """
    table = pd.DataFrame({name: [row.get(name) or "" for row in rows] for name in names})
    for field in numbers:
        table[field] = np.array([number(row, field) for row in rows], dtype=np.float64)
    needed = [name for name in names if name not in may_lack]
    table = table[(table[needed] != "").all(axis=1)]
    table = table.drop_duplicates(list(names), keep="last", ignore_index=True)
    for name, known in names.items():
        table[name] = pd.Categorical(table[name], in_order(table[name], known), ordered=True)
    return table


def grouped(table: Any, *columns: str) -> Any:
    """The groups there are, in the order of their categories."""
    return table.groupby(list(columns), observed=True)


def score(values: Iterable[float]) -> Score:
    """Mean, standard deviation and count of at least one value."""
    series = pd.Series(list(values), dtype=np.float64)
    if series.empty:
        raise InvalidInputError("values", "must not be empty", "found none")
    return Score(float(series.mean()), float(series.std()), len(series))


def by_repetition(rows: Rows, column: str, value: str = "f1") -> Any:
    """Values of tables 1 or 2, as a series by method, column (data or setting) and repetition."""
    names = {"method": METHODS, column: (*DATA_TITLES, *SETTING_TITLES), "repetition": ()}
    return frame(rows, names, [value]).set_index(list(names))[value].dropna()


def scores(rows: Rows, column: str, value: str = "f1") -> dict[tuple[str, str], Score]:
    """Mean, standard deviation and count by method and column; without those that have no row."""
    by_cell = by_repetition(rows, column, value).groupby(level=[0, 1], observed=True)
    cells = by_cell.agg(["mean", "std", "count"])
    return {key: Score(mean, sd, count) for key, mean, sd, count in cells.itertuples()}


def far_from_paper(
    ours: Scores, paper: PaperTable, limit: float = 1.0
) -> dict[tuple[str, str], float]:
    """Cells more than ``limit`` of the paper's standard deviations from it, in the paper's order.

    Values are differences in these standard deviations.
    """
    differences = {
        (method, column): ours[method, column].difference(printed)
        for method, cells in paper.items()
        for column, printed in cells.items()
        if (method, column) in ours
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
        One result per plant, or per size of leak (these change plants with the repetition), or one
        for all plants. Plants of one repetition share the federated model, so for all of them they
        are averaged first, and only repetitions that have every plant count.

    Returns
    -------
    list of Joining
        By severity set, setting and group.
    """
    check_choice(by, "by", ("plant", "leak", "all"))
    names = {"severities": SEVERITIES, "setting": SETTING_TITLES, "repetition": (), "plant": ()}
    names |= {"leak": ()} if by == "leak" else {}
    names |= {"model": MODELS}
    table = frame(rows, names, ["n_train", "f1_all", "f1_own"])
    table["group"] = "all" if by == "all" else table[by].astype(str)
    results = []
    for (severities, setting), part in grouped(table, "severities", "setting"):
        for group in sorted(set(part["group"]), key=_numeric):
            members = part[part["group"] == group]
            # A size of leak is at one plant in each repetition, not at all where it ever was.
            needed = members["plant"].nunique() if by == "all" else 1
            on_all, gain_all = _compare_models(members, "f1_all", needed)
            on_own, gain_own = _compare_models(members, "f1_own", needed)
            n_train = float(members["n_train"].mean())
            results.append(
                Joining(severities, setting, group, n_train, on_all, on_own, gain_all, gain_own)
            )
    return results


def _numeric(text: str) -> tuple[float, str]:
    """Key that sorts numbers by size and puts other names after them."""
    try:
        return (float(text), text)
    except ValueError:
        return (math.inf, text)


def _compare_models(table: Any, field: str, needed: int) -> tuple[dict[str, Score], Gain]:
    """Scores by model, and federated less local, of repetitions with this many plants."""
    cells = grouped(table, "repetition", "model")[field].agg(["mean", "count"])
    means = cells["mean"].where(cells["count"] >= needed).unstack()
    known = {model: score(means[model].dropna()) for model in means if means[model].notna().any()}
    both = means.reindex(columns=["federated", "local"])
    gains = (both["federated"] - both["local"]).dropna()
    return known, Gain(float(gains.mean()), float(gains.sem()), len(gains))


def scaling(rows: Rows) -> list[Scaling]:
    """Cost against size, by panel and method."""
    names = {"panel": "abcd", "method": SHORT_METHODS, "x": (), "repetition": ()}
    measured = ["seconds", "rounds", "mccr"]
    table = frame(rows, names, measured, may_lack=["repetition"])
    table["x"] = table["x"].astype(float)
    curves = []
    for (panel, method), part in grouped(table, "panel", "method"):
        sizes = part.groupby("x")
        seconds, rounds, mccr = (tuple(sizes[field].median()) for field in measured)
        fewest = int(sizes["seconds"].count().min())
        curves.append(Scaling(panel, method, tuple(sizes.groups), seconds, rounds, mccr, fewest))
    return curves


def power_law(x: Any, y: Any) -> float:
    """The p of the law c x^p that fits best, by least squares on logarithms of what is above 0.

    nan with fewer than two sizes.
    """
    points = pd.DataFrame({"x": x, "y": y}, dtype=np.float64)
    logarithms = np.log(points[(points > 0.0).all(axis=1)])
    centred = logarithms - logarithms.mean()
    if logarithms["x"].nunique() < 2:
        return math.nan
    return float(centred["x"] @ centred["y"] / (centred["x"] @ centred["x"]))


def rounds_needed(rows: Rows) -> list[RoundsNeeded]:
    """Rounds to a certified gap, each with the parameter that did best for it.

    By norm, data set and method, then from the largest target gap to the smallest.
    """
    names = {"norm": NORMS, "data": DATA_TITLES, "method": SHORT_METHODS, "target": ()}
    of_a_run = {"parameter": (), "repetition": ()}
    table = frame(rows, {**names, **of_a_run}, ["rounds"], may_lack=list(of_a_run))
    table["target"] = -table["target"].astype(float)  # sorts the largest first
    table["rounds"] = table["rounds"].fillna(math.inf)
    table["reached"] = np.isfinite(table["rounds"])
    table["place"] = table.index
    runs = grouped(table, *names, "parameter").agg(
        place=("place", "min"),
        rounds=("rounds", "median"),
        total=("rounds", "sum"),
        reached=("reached", "sum"),
        count=("rounds", "count"),
    )
    ranked = runs.sort_values(["rounds", "total", "place"])  # of equals the first is chosen
    best = ranked.groupby(level=list(names), observed=True).head(1).sort_index()
    return [
        RoundsNeeded(data, norm, method, -target, parameter, rounds, reached, count)
        for (norm, data, method, target, parameter), _, rounds, _, reached, count in (
            best.itertuples()
        )
    ]
