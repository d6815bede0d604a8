"""What the reproduction's rows say, in sentences: nothing here is known before the rows are read.

Each function takes the rows of one study and gives a paragraph, empty where the rows say nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean, median
from typing import Any

from fdrsvm_paper.drawing import short_name
from fdrsvm_paper.paper_values import DATA_TITLES, TABLE1, TABLE2, PaperTable
from fdrsvm_paper.summary import (
    SEVERITIES,
    SHORT_METHODS,
    Joining,
    Rows,
    Scaling,
    Scores,
    far_from_paper,
    frame,
    grouped,
    in_order,
    joining,
    leaks_name,
    number,
    rounds_needed,
    scaling,
    scores,
    split,
)
from fdrsvm_paper.wilcoxon import compare_best

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


def rows_of(rows: Mapping[str, Rows], name: str) -> Rows:
    """The rows of a file, by its name with or without ``.csv``; none if there is no such file."""
    return rows.get(name) or rows.get(f"{name}.csv") or ()


def values(rows: Rows, field: str) -> list[float]:
    """The finite numbers of a field; where a repetition is there twice the later one counts."""
    by_repetition = {row.get("repetition", ""): number(row, field) for row in rows}
    return [value for value in by_repetition.values() if value is not None]


def best_histories(rows: Rows) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Rounds and gaps by data set and method, of the parameter that gets furthest.

    Furthest is the smallest last gap; of equal ones, the one that took fewer rounds.
    """
    names = {"data": DATA_TITLES, "method": SHORT_METHODS, "parameter": (), "round": ()}
    table = frame(rows, names, ["gap"], may_lack=["parameter"]).dropna()
    table["round"] = table["round"].astype(float)
    best: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (data, method), of_method in grouped(table, "data", "method"):
        runs = [
            sorted(zip(run["round"], run["gap"], strict=True))
            for _, run in grouped(of_method, "parameter")
        ]
        best[data, method] = min(runs, key=lambda run: (run[-1][1], len(run)))
    return best


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
    known = list(counts)
    fewest, most = min(known), max(known)
    if fewest == most:
        return plural(most, "repetition")
    return f"{fewest} to {plural(most, 'repetition')} (the run is not complete)"


# Tables 1 and 2, and the tests


def table1_leads(rows: Rows) -> str:
    """Who has the highest mean F-1, on how many data sets."""
    cells = scores(rows, "data")
    if not cells:
        return ""
    counts = _repetitions(cell.count for cell in cells.values())
    return f"{_who_leads(cells, 'data set')} Each mean is over {counts}."


def table1_agrees(rows: Rows) -> str:
    """How near the paper's table 1 ours is."""
    return _agreement(scores(rows, "data"), TABLE1, data_name)


def table2_leads(rows: Rows) -> str:
    """Who has the highest mean F-1 in how many settings, for each severity set."""
    said, counts = [], []
    for severities, part in split(rows, "severities", SEVERITIES).items():
        cells = scores(part, "setting")
        if cells:
            said.append(_with_leaks(severities, _who_leads(cells, "setting")))
            counts += [cell.count for cell in cells.values()]
    return " ".join([*said, f"Each mean is over {_repetitions(counts)}."]) if said else ""


def table2_agrees(rows: Rows) -> str:
    """How near the paper's table 2 ours is, and with which severity set it is nearer."""
    said, distances = [], {}
    for severities, part in split(rows, "severities", SEVERITIES).items():
        cells = scores(part, "setting")
        agreement = _agreement(cells, TABLE2, setting_name)
        if agreement:
            said.append(_with_leaks(severities, agreement))
            distances[severities] = fmean(_distances(cells, TABLE2))
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


def _who_leads(cells: Scores, column: str) -> str:
    """How often each method has the highest mean; scores are by method and column."""
    columns = {place for _, place in cells}
    wins: Counter[str] = Counter()
    for place in columns:
        means = {m: round(cell.mean, 3) for (m, where), cell in cells.items() if where == place}
        highest = max(means.values())
        wins.update(short_name(method) for method, mean in means.items() if mean == highest)
    most_first = sorted(wins.items(), key=lambda item: (-item[1], item[0]))
    return (
        f"Of {plural(len(columns), column)} the highest mean F-1 (to three decimals, ties shared) "
        f"belongs to {_listing([f'{name} on {count}' for name, count in most_first])}."
    )


def _agreement(cells: Scores, paper: PaperTable, name: Callable[[str], str]) -> str:
    """How many cells lie within one of the paper's standard deviations, and which is farthest."""
    n_shared = len(_distances(cells, paper))
    if not n_shared:
        return ""
    far = far_from_paper(cells, paper)
    said = (
        f"{n_shared - len(far)} of {plural(n_shared, 'cell')} lie within one of the paper's "
        "standard deviations of its mean."
    )
    if far:
        (method, column), worst = max(far.items(), key=lambda item: abs(item[1]))
        said += (
            f" The farthest is {short_name(method)} on {name(column)}: "
            f"{cells[method, column].mean:.3f} here, {paper[method][column].mean:.3f} there, "
            f"{abs(worst):.1f} standard deviations {'above' if worst > 0.0 else 'below'}."
        )
    return said


def _distances(cells: Scores, paper: PaperTable) -> list[float]:
    """From the paper's means, of the cells that it has too."""
    return [
        abs(cell.mean - paper[method][column].mean)
        for (method, column), cell in cells.items()
        if column in paper.get(method, {})
    ]


# Does joining pay?


def joining_says(rows: Rows, on: str = "all") -> str:
    """For how many plants joining pays, on all leaks or their own, and what pooling adds."""
    said = []
    for severities, plants in groupby(joining(rows), key=lambda plant: plant.severities):
        gaining = [plant for plant in plants if _on(plant, on)[1].count]
        if gaining:
            said.append(_with_leaks(severities, _joining_pays(gaining, on)))
    return " ".join(said)


def joining_by_leak_says(rows: Rows) -> str:
    """Which leak's plant gains most and least from joining, on all leaks."""
    said = []
    for severities, results in groupby(joining(rows, "leak"), key=lambda each: each.severities):
        gains: dict[str, list[float]] = {}
        for each in results:
            if each.gain_all.count:
                gains.setdefault(each.group, []).append(each.gain_all.mean)
        means = {leak: fmean(of_leak) for leak, of_leak in gains.items()}
        if len(means) > 1:
            most, least = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
            said.append(
                f"{leaks_name(severities).capitalize()}: the plant that has seen a leak of "
                f"{float(most):g} gains most, {100.0 * means[most]:+.1f} points on average over "
                f"the settings; the one with {float(least):g} gains least, "
                f"{100.0 * means[least]:+.1f} points."
            )
    return " ".join(said)


def _on(plant: Joining, on: str) -> tuple[Any, Any]:
    """Scores by model, and the gain: on all leaks or on the plant's own."""
    if on == "all":
        return plant.on_all, plant.gain_all
    return plant.on_own, plant.gain_own


def _joining_pays(plants: Sequence[Joining], on: str) -> str:
    gains = [_on(plant, on)[1] for plant in plants]
    verdicts = Counter(gain.verdict for gain in gains)
    mean = fmean(gain.mean for gain in gains)
    said = (
        f"for {verdicts['pays']} of {plural(len(plants), 'plant')} (counted in every setting) "
        f"joining pays in these repetitions, for {verdicts['costs']} it costs, for "
        f"{verdicts['unclear']} they do not tell; on average the federated model is "
        f"{_points(mean)} {'ahead of' if mean >= 0.0 else 'behind'} the plant's own."
    )
    best = max(range(len(plants)), key=lambda place: gains[place].mean)
    if gains[best].mean > 0.0:
        said += (
            f" Most is gained by plant {plants[best].group} under "
            f"{setting_name(plants[best].setting)}: {_points(gains[best].mean)}."
        )
    models = [_on(plant, on)[0] for plant in plants]
    pooled = [
        each["central"].mean - each["federated"].mean
        for each in models
        if {"central", "federated"} <= set(each)
    ]
    if pooled:
        place = "ahead of" if fmean(pooled) >= 0.0 else "behind"
        said += f" A model of all rows pooled is {_points(fmean(pooled))} {place} it on average."
    return said


# Sensitivity


def sensitivity_says(rows: Rows, setting: str) -> str:
    """Where each method peaks beside the central line, and what hardly matters."""
    said = []
    rows = [row for row in rows if row.get("setting") == setting]
    for severities, part in split(rows, "severities", SEVERITIES).items():
        curves = _curves([row for row in part if row.get("method") != "Central"])
        if len(curves):
            central = best_central(part)
            line = "" if central is None else f" The best central model has {central:.3f}."
            said.append(f"{leaks_name(severities).capitalize()}: {_peaks(curves)}.{line}")
            said.append(_slopes(curves))
    return " ".join(said)


def best_central(rows: Rows) -> float | None:
    """The largest mean mCCR in the central model's grid, if it has one."""
    curves = _curves([row for row in rows if row.get("method") == "Central"])
    return float(curves.max()) if len(curves) else None


def _curves(rows: Rows) -> Any:
    """Mean mCCR, as a series by method, parameter and value."""
    names = {"method": SHORT_METHODS, "parameter": (), "value": (), "repetition": ()}
    table = frame(rows, names, ["mccr"], may_lack=["repetition"]).dropna()
    return grouped(table, "method", "parameter", "value")["mccr"].mean()


def _peaks(curves: Any) -> str:
    """The last of a method's equal peaks, by parameter and value, stands for all."""
    parts = []
    for method, means in curves.groupby(level="method", observed=True):
        curve_peaks = means.groupby(level="parameter", observed=True).idxmax()
        mean, parameter, value = max((means[key], *key[1:]) for key in curve_peaks)
        parts.append(f"{method} peaks at {mean:.3f} (at {parameter} = {float(value):g})")
    return _listing(parts)


def _slopes(curves: Any) -> str:
    by_curve = curves.groupby(level=["method", "parameter"], observed=True)
    moves = by_curve.max() - by_curve.min()
    method, parameter = moves.idxmax()
    said = f"What matters most is {parameter} for {method}: its mean moves by "
    said += f"{_points(moves.max())}."
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
    by_panel: dict[str, list[Scaling]] = {}
    for each in scaling(rows):
        if each.seconds and math.isfinite(each.seconds[-1]):
            by_panel.setdefault(each.panel, []).append(each)
    return by_panel


def convergence_says(rows: Rows, norm: str) -> str:
    """How far each method got."""
    rows = [row for row in rows if row.get("norm") == norm]
    ends: dict[str, list[tuple[float, float]]] = {}
    for (_, method), run in best_histories(rows).items():
        ends.setdefault(method, []).append(run[-1])
    if not ends:
        return ""
    parts = [
        f"{method} ends at a gap of {median(gap for _, gap in last):.1e} after "
        f"{median(t for t, _ in last):.0f} rounds"
        for method, last in ends.items()
    ]
    return f"In the median over the data sets, {_listing(parts)}."


def rounds_says(rows: Rows, norm: str) -> str:
    """Rounds to the smallest gap asked for, by method."""
    needed = [each for each in rounds_needed(rows) if each.norm == norm]
    if not needed:
        return ""
    smallest = min(each.target for each in needed)
    rounds: dict[str, list[float]] = {}
    for each in needed:
        if each.target == smallest:
            rounds.setdefault(each.method, []).append(each.rounds)
    parts = []
    for method in in_order(rounds, SHORT_METHODS):
        reached = [count for count in rounds[method] if math.isfinite(count)]
        total = plural(len(rounds[method]), "data set")
        if not reached:
            parts.append(f"{method} does not get there on any of {total}")
            continue
        low, high = min(reached), max(reached)
        span = f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"
        parts.append(f"{method} gets there on {len(reached)} of {total}, in {span} rounds")
    return f"To a certified gap of {smallest:g}: {'; '.join(parts)}."


def rounds_compare(rows: Rows) -> str:
    """How many times the bundle's rounds the others need to the smallest gap, in the median."""
    needed = rounds_needed(rows)
    if not needed:
        return ""
    smallest = min(each.target for each in needed)
    rounds_by_case = {
        (each.norm, each.data, each.method): each.rounds
        for each in needed
        if each.target == smallest and math.isfinite(each.rounds)
    }
    parts = []
    for method in in_order((each.method for each in needed), SHORT_METHODS):
        ratios = [
            rounds / rounds_by_case[norm, data, "Bundle"]
            for (norm, data, name), rounds in rounds_by_case.items()
            if name == method and rounds_by_case.get((norm, data, "Bundle"))
        ]
        if ratios and method != "Bundle":
            parts.append(f"{method} {median(ratios):.1f} times ({plural(len(ratios), 'case')})")
    if not parts:
        return ""
    return (
        f"Where a method gets to {smallest:g} at all it needs, in the median over data sets and "
        f"norms, this many times the rounds of the bundle: {_listing(parts)}."
    )
