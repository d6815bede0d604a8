"""What the reproduction's rows say, in sentences: nothing here is known before the rows are read.

Each function takes the rows of one study and gives a paragraph, empty where the rows say nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean, median

from fdrsvm_paper.drawing import short_name
from fdrsvm_paper.paper_values import DATA_TITLES, TABLE1, TABLE2, PaperTable
from fdrsvm_paper.summary import (
    SEVERITIES,
    SHORT_METHODS,
    Gain,
    Joining,
    RoundsNeeded,
    Rows,
    Scaling,
    Score,
    Scores,
    far_from_paper,
    in_order,
    joining,
    number,
    rounds_needed,
    scaling,
    scores,
    split,
)
from fdrsvm_paper.wilcoxon import compare_best

__all__ = [
    "best_histories",
    "convergence_says",
    "data_name",
    "growth_says",
    "joining_by_leak_says",
    "joining_says",
    "leaks_name",
    "plural",
    "rounds_compare",
    "rounds_says",
    "rows_of",
    "scalability_says",
    "sensitivity_says",
    "setting_name",
    "table1_agrees",
    "table1_leads",
    "table2_agrees",
    "table2_leads",
    "values",
    "wilcoxon_says",
]

_LEAKS = {"paper": "leaks 1, 4, 7, 10e-3", "labelling": "leaks 1, 2, 3, 4e-3"}
_SETTINGS = {
    "nominal": "nominal",
    "client-imbalance": "client imbalance",
    "class-imbalance": "class imbalance",
    "both": "both imbalances",
    "noisy-labels": "noisy labels",
}
_GROWING = {"a": "clients", "b": "clients", "c": "rows", "d": "features"}
_FLAT = 0.01  # a method whose mean accuracy moves by less does not notice the parameter


# Names and numbers


def data_name(data: str) -> str:
    """A data set's name in the paper."""
    return DATA_TITLES.get(data, data)


def setting_name(setting: str) -> str:
    """A setting of the industrial experiment, in words."""
    return _SETTINGS.get(setting, setting)


def leaks_name(severities: str) -> str:
    """A severity set by its leaks."""
    return _LEAKS.get(severities, severities)


def rows_of(rows: Mapping[str, Rows], name: str) -> Rows:
    """The rows of a file, by its name with or without ``.csv``; none if there is no such file."""
    return rows.get(name) or rows.get(f"{name}.csv") or ()


def values(rows: Rows, field: str) -> list[float]:
    """The finite numbers of a field; where a repetition is there twice the later one counts."""
    found = {row.get("repetition", ""): number(row, field) for row in rows}
    return [value for value in found.values() if value is not None]


def best_histories(rows: Rows) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Rounds and gaps by data set and method, of the parameter that gets furthest.

    Furthest is the smallest last gap; of equal ones, the one that took fewer rounds.
    """
    found = {}
    for data, of_data in split(rows, "data", DATA_TITLES).items():
        for method, of_method in split(of_data, "method", SHORT_METHODS).items():
            parameters = {row.get("parameter", "") for row in of_method}
            runs = [
                _history([row for row in of_method if row.get("parameter", "") == parameter])
                for parameter in sorted(parameters)
            ]
            runs = [run for run in runs if run]
            if runs:
                found[data, method] = min(runs, key=lambda run: (run[-1][1], len(run)))
    return found


def _history(rows: Rows) -> list[tuple[float, float]]:
    pairs = ((number(row, "round"), number(row, "gap")) for row in rows)
    return sorted((t, gap) for t, gap in pairs if t is not None and gap is not None)


# Words


def plural(count: int, one: str) -> str:
    """A count of things, in words."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def _listing(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _points(difference: float) -> str:
    return f"{100.0 * abs(difference):.1f} points"


def _seconds(seconds: float) -> str:
    return f"{1000.0 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"


def _repetitions(counts: Iterable[int]) -> str:
    """How many repetitions stand behind numbers, which may differ while a run is under way."""
    fewest, most = min(found := list(counts)), max(found)
    if fewest == most:
        return plural(most, "repetition")
    return f"{fewest} to {plural(most, 'repetition')} (the run is not complete)"


# Tables 1 and 2, and the tests


def table1_leads(rows: Rows) -> str:
    """Who has the highest mean F-1, on how many data sets."""
    found = scores(rows, "data")
    if not found:
        return ""
    counts = _repetitions(cell.count for cell in found.values())
    return f"{_who_leads(found, 'data set')} Each mean is over {counts}."


def table1_agrees(rows: Rows) -> str:
    """How near the paper's table 1 ours is."""
    return _agreement(scores(rows, "data"), TABLE1, data_name)


def table2_leads(rows: Rows) -> str:
    """Who has the highest mean F-1 in how many settings, for each severity set."""
    said, counts = [], []
    for severities, part in split(rows, "severities", SEVERITIES).items():
        found = scores(part, "setting")
        if found:
            said.append(_with_leaks(severities, _who_leads(found, "setting")))
            counts += [cell.count for cell in found.values()]
    return " ".join([*said, f"Each mean is over {_repetitions(counts)}."]) if said else ""


def table2_agrees(rows: Rows) -> str:
    """How near the paper's table 2 ours is, and with which severity set it is nearer."""
    said, distances = [], {}
    for severities, part in split(rows, "severities", SEVERITIES).items():
        found = scores(part, "setting")
        agreement = _agreement(found, TABLE2, setting_name)
        if agreement:
            said.append(_with_leaks(severities, agreement))
            distances[severities] = _distance(found, TABLE2)
    if len(distances) > 1:
        nearest = min(distances, key=distances.__getitem__)
        each = _listing([f"{_points(d)} with {leaks_name(s)}" for s, d in distances.items()])
        said.append(
            f"On average over the cells ours is off the paper's mean by {each}: "
            f"{leaks_name(nearest)} are nearer to what it prints."
        )
    return " ".join(said)


def _with_leaks(severities: str, said: str) -> str:
    return f"{leaks_name(severities).capitalize()}: {said[:1].lower()}{said[1:]}"


def wilcoxon_says(rows: Rows) -> str:
    """How many of the paper's tests come out as the paper says."""
    tests = [test for test in compare_best(rows) if test.paper_rejected is not None]
    if not tests:
        return ""
    rejected = sum(test.rejected for test in tests)
    alike = sum(test.rejected == test.paper_rejected for test in tests)
    return (
        f"The best of SM, ADMM and ADMM-SC is found better than the baseline in {rejected} of "
        f"{plural(len(tests), 'test')}; {alike} come out as in the paper, which rejects "
        f"{sum(bool(test.paper_rejected) for test in tests)} of them."
    )


def _who_leads(found: Scores, column: str) -> str:
    """How often each method has the highest mean; scores are by method and column."""
    columns = {place for _, place in found}
    wins: Counter[str] = Counter()
    for place in columns:
        means = {m: round(cell.mean, 3) for (m, where), cell in found.items() if where == place}
        highest = max(means.values())
        wins.update(short_name(method) for method, mean in means.items() if mean == highest)
    parts = [f"{name} on {count}" for name, count in sorted(wins.items(), key=_most_first)]
    return (
        f"Of {plural(len(columns), column)} the highest mean F-1 (to three decimals, ties shared) "
        f"belongs to {_listing(parts)}."
    )


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _agreement(found: Scores, paper: PaperTable, name: Callable[[str], str]) -> str:
    """How many cells lie within one of the paper's standard deviations, and which is farthest."""
    shared = _shared(found, paper)
    if not shared:
        return ""
    far = far_from_paper(found, paper)
    near = len(shared) - len(far)
    said = (
        f"{near} of {plural(len(shared), 'cell')} lie within one of the paper's standard "
        "deviations of its mean."
    )
    if far:
        (method, column), worst = max(far.items(), key=lambda item: abs(item[1]))
        said += (
            f" The farthest is {short_name(method)} on {name(column)}: "
            f"{found[method, column].mean:.3f} here, {paper[method][column].mean:.3f} there, "
            f"{abs(worst):.1f} standard deviations {'above' if worst > 0.0 else 'below'}."
        )
    return said


def _shared(found: Scores, paper: PaperTable) -> list[tuple[Score, float]]:
    return [
        (cell, paper[method][column].mean)
        for (method, column), cell in found.items()
        if column in paper.get(method, {})
    ]


def _distance(found: Scores, paper: PaperTable) -> float:
    distances = [abs(cell.mean - theirs) for cell, theirs in _shared(found, paper)]
    return fmean(distances) if distances else math.nan


# Does joining pay?


def joining_says(rows: Rows, on: str = "all") -> str:
    """For how many plants joining pays, on all leaks or their own, and what pooling adds."""
    said = []
    for severities, found in groupby(joining(rows), key=lambda each: each.severities):
        plants = [each for each in found if _gain(each, on).count]
        if plants:
            said.append(_with_leaks(severities, _joining_pays(plants, on)))
    return " ".join(said)


def joining_by_leak_says(rows: Rows) -> str:
    """Which leak's plant gains most and least from joining, on all leaks."""
    said = []
    for severities, found in groupby(joining(rows, "leak"), key=lambda each: each.severities):
        gains: dict[str, list[float]] = {}
        for each in found:
            if each.gain_all.count:
                gains.setdefault(each.group, []).append(each.gain_all.mean)
        means = {leak: fmean(of_leak) for leak, of_leak in gains.items()}
        if len(means) > 1:
            most, least = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
            said.append(
                f"{leaks_name(severities).capitalize()}: the plant that has seen a leak of "
                f"{float(most):g} gains most, {_signed(means[most])} on average over the settings; "
                f"the one with {float(least):g} gains least, {_signed(means[least])}."
            )
    return " ".join(said)


def _signed(difference: float) -> str:
    return f"{100.0 * difference:+.1f} points"


def _gain(each: Joining, on: str) -> Gain:
    return each.gain_all if on == "all" else each.gain_own


def _joining_pays(plants: Sequence[Joining], on: str) -> str:
    verdicts = Counter(_gain(each, on).verdict for each in plants)
    mean = fmean(_gain(each, on).mean for each in plants)
    best = max(plants, key=lambda each: _gain(each, on).mean)
    said = (
        f"for {verdicts['pays']} of {plural(len(plants), 'plant')} (counted in every setting) "
        f"joining pays in these repetitions, for {verdicts['costs']} it costs, for "
        f"{verdicts['unclear']} they do not tell; on average the federated model is "
        f"{_points(mean)} {'ahead of' if mean >= 0.0 else 'behind'} the plant's own."
    )
    if _gain(best, on).mean > 0.0:
        said += (
            f" Most is gained by plant {best.group} under {setting_name(best.setting)}: "
            f"{_points(_gain(best, on).mean)}."
        )
    return said + _pooling(plants, on)


def _pooling(plants: Sequence[Joining], on: str) -> str:
    tables = [each.on_all if on == "all" else each.on_own for each in plants]
    more = [
        models["central"].mean - models["federated"].mean
        for models in tables
        if {"central", "federated"} <= set(models)
    ]
    if not more:
        return ""
    mean = fmean(more)
    if mean >= 0.0:
        return f" A model of all rows pooled is {_points(mean)} ahead of it on average."
    return f" A model of all rows pooled is {_points(mean)} behind it on average."


# Sensitivity

_Curves = Mapping[tuple[str, str], Mapping[str, float]]  # method, parameter -> value -> mean mCCR


def sensitivity_says(rows: Rows, setting: str) -> str:
    """Where each method peaks beside the central line, and what hardly matters."""
    said = []
    rows = [row for row in rows if row.get("setting") == setting]
    for severities, part in split(rows, "severities", SEVERITIES).items():
        curves = _curves(part)
        if not curves:
            continue
        central = best_central(part)
        line = "" if central is None else f" The best central model has {central:.3f}."
        said.append(f"{leaks_name(severities).capitalize()}: {_peaks(curves)}.{line}")
        said.append(_slopes(curves))
    return " ".join(said)


def best_central(rows: Rows) -> float | None:
    """The largest mean mCCR in the central model's grid, if it has one."""
    curves = _all_curves([row for row in rows if row.get("method") == "Central"])
    return max((max(means.values()) for means in curves.values()), default=None)


def _curves(rows: Rows) -> _Curves:
    return _all_curves([row for row in rows if row.get("method") != "Central"])


def _all_curves(rows: Rows) -> _Curves:
    return {
        (method, parameter): means
        for method, of_method in split(rows, "method", SHORT_METHODS).items()
        for parameter, part in split(of_method, "parameter").items()
        if (
            means := {
                value: fmean(found)
                for value, cell in split(part, "value").items()
                if (found := values(cell, "mccr"))
            }
        )
    }


def _peaks(curves: _Curves) -> str:
    peaks: dict[str, tuple[float, str, str]] = {}
    for (method, parameter), means in curves.items():
        value = max(means, key=means.__getitem__)
        peaks[method] = max(peaks.get(method, (0.0, "", "")), (means[value], parameter, value))
    parts = [
        f"{method} peaks at {mean:.3f} (at {parameter} = {float(value):g})"
        for method, (mean, parameter, value) in peaks.items()
    ]
    return _listing(parts)


def _slopes(curves: _Curves) -> str:
    moves = {key: max(means.values()) - min(means.values()) for key, means in curves.items()}
    (method, parameter), most = max(moves.items(), key=lambda item: item[1])
    said = f"What matters most is {parameter} for {method}: its mean moves by {_points(most)}."
    flat = [f"{name} for {who}" for (who, name), move in moves.items() if move < _FLAT]
    if flat:
        said += f" Moving the mean by less than a point: {_listing(flat)}."
    return said


# Scalability, convergence, rounds


def scalability_says(rows: Rows) -> str:
    """Who is fastest at the largest size of each panel."""
    said = []
    for panel, curves in _timed(rows).items():
        largest = max(each.x[-1] for each in curves)
        there = [each for each in curves if each.x[-1] == largest]
        fastest = min(there, key=lambda each: each.seconds[-1])
        slowest = max(there, key=lambda each: each.seconds[-1])
        said.append(
            f"({panel}) at {largest:g} {_GROWING.get(panel, 'units')} {fastest.method} is fastest "
            f"with {_seconds(fastest.seconds[-1])}, {slowest.method} slowest with "
            f"{_seconds(slowest.seconds[-1])}."
        )
    return " ".join(said)


def growth_says(rows: Rows) -> str:
    """How each method's time grows with each size."""
    said = []
    for panel, curves in _timed(rows).items():
        grown = [each for each in curves if math.isfinite(each.exponent)]
        parts = [f"{each.exponent:.1f} for {each.method}" for each in grown]
        if parts:
            said.append(f"({panel}) {_listing(parts)}.")
    return f"The powers are: {' '.join(said)}" if said else ""


def _timed(rows: Rows) -> dict[str, list[Scaling]]:
    """Curves with a time at their largest size, by panel."""
    found: dict[str, list[Scaling]] = {}
    for each in scaling(rows):
        if each.seconds and math.isfinite(each.seconds[-1]):
            found.setdefault(each.panel, []).append(each)
    return found


def convergence_says(rows: Rows, norm: str) -> str:
    """How far each method got."""
    rows = [row for row in rows if row.get("norm") == norm]
    ends: dict[str, list[tuple[float, float]]] = {}
    for (_, method), run in best_histories(rows).items():
        ends.setdefault(method, []).append(run[-1])
    if not ends:
        return ""
    parts = [
        f"{method} ends at a gap of {median(gap for _, gap in found):.1e} after "
        f"{median(t for t, _ in found):.0f} rounds"
        for method, found in ends.items()
    ]
    return f"In the median over the data sets, {_listing(parts)}."


def rounds_says(rows: Rows, norm: str) -> str:
    """Rounds to the smallest gap asked for, by method."""
    needed = [each for each in rounds_needed(rows) if each.norm == norm]
    if not needed:
        return ""
    smallest = min(each.target for each in needed)
    at_smallest = [each for each in needed if each.target == smallest]
    methods = in_order((each.method for each in at_smallest), SHORT_METHODS)
    parts = [
        _reach(method, [each for each in at_smallest if each.method == method])
        for method in methods
    ]
    return f"To a certified gap of {smallest:g}: {'; '.join(parts)}."


def _reach(method: str, needed: Sequence[RoundsNeeded]) -> str:
    reached = [each.rounds for each in needed if math.isfinite(each.rounds)]
    total = plural(len(needed), "data set")
    if not reached:
        return f"{method} does not get there on any of {total}"
    low, high = min(reached), max(reached)
    span = f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"
    return f"{method} gets there on {len(reached)} of {total}, in {span} rounds"


def rounds_compare(rows: Rows) -> str:
    """How many times the bundle's rounds the others need to the smallest gap, in the median."""
    needed = rounds_needed(rows)
    if not needed:
        return ""
    smallest = min(each.target for each in needed)
    found = {
        (each.norm, each.data, each.method): each.rounds
        for each in needed
        if each.target == smallest and math.isfinite(each.rounds)
    }
    parts = []
    for method in in_order((each.method for each in needed), SHORT_METHODS):
        ratios = [
            rounds / found[norm, data, "Bundle"]
            for (norm, data, name), rounds in found.items()
            if name == method and found.get((norm, data, "Bundle"))
        ]
        if ratios and method != "Bundle":
            parts.append(f"{method} {median(ratios):.1f} times ({plural(len(ratios), 'case')})")
    if not parts:
        return ""
    return (
        f"Where a method gets to {smallest:g} at all it needs, in the median over data sets and "
        f"norms, this many times the rounds of the bundle: {_listing(parts)}."
    )
