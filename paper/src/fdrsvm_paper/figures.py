"""The reproduction's figures, drawn from its rows.

Every figure is narrow enough to be read on a phone: two columns of panels at most, and more rows
where there is more to show. Whatever rows are missing, the figures of the others are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fdrsvm_paper.drawing import (
    Axes,
    Figure,
    Line2D,
    few_ticks,
    log_counts,
    log_scale,
    look,
    settle,
    short_name,
    style,
)
from fdrsvm_paper.findings import (
    best_central,
    best_histories,
    data_name,
    rows_of,
    setting_name,
    values,
)
from fdrsvm_paper.paper_values import (
    DATA_TITLES,
    SETTING_TITLES,
    TABLE1,
    TABLE2,
    PaperTable,
)
from fdrsvm_paper.protocols import PROTOCOLS
from fdrsvm_paper.summary import (
    METHODS,
    SEVERITIES,
    SHORT_METHODS,
    Joining,
    RoundsNeeded,
    Rows,
    Score,
    Scores,
    in_order,
    joining,
    leaks_name,
    rounds_needed,
    score,
    scores,
    split,
)

__all__ = ["draw_figures"]

_WIDTH = 4.6  # inches; on a phone 360 px wide the text is about as large as in print
_FONT = 9.0
_PALE = "0.92"
_PAPER = "0.45"
_SMALLEST_GAP = 1e-12  # less is rounding, and a logarithmic axis has no zero
_QUARTERS = (0.25, 0.5, 0.75)
_LOGARITHMIC = ("rho", "gamma", "beta")
_PARAMETERS = {
    "T": "rounds T",
    "rho": "ADMM penalty rho",
    "gamma": "SM step gamma",
    "beta": "beta: the radius is 1/(beta N)",
    "kappa": "price of a wrong label kappa",
}
_PANELS = {
    "a": "(a) clients G, N = 1000",
    "b": "(b) clients G, N = 100 G",
    "c": "(c) rows N, G = 10",
    "d": "(d) features P",
}
_MODELS = {
    "local": ("plant alone", look("SM").colour, "o"),
    "federated": ("federated", look("Bundle").colour, "D"),
    "central": ("all rows pooled", look("Central").colour, "s"),
}

Grid = Mapping[tuple[str, str], Axes]  # by names of row and column
_Mark = dict[str, Any]  # how matplotlib is told
Named = Iterator[tuple[str, Figure]]


def draw_figures(rows: Mapping[str, Rows]) -> dict[str, Figure]:
    """All figures that the rows allow, by name.

    Bands and bars are one standard deviation over repetitions, but in the figure of scalability,
    where they are the middle half.

    Parameters
    ----------
    rows : mapping
        From the name of a row file, as ``"table1-text"``, to its rows. Files may be missing.

    Returns
    -------
    dict of str to Figure
        Names begin with the study, then the protocol: ``"sensitivity-text-nominal"``.
    """
    with style(font_size=_FONT, axes_titlesize=_FONT):
        return {name: settle(figure) for name, figure in _all_figures(rows)}


def _all_figures(rows: Mapping[str, Rows]) -> Named:
    by_study = {
        "table1": _draw_table1,
        "table2": _draw_table2,
        "joining": _draw_joining,
        "sensitivity": _draw_sensitivity,
        "scalability": _draw_scalability,
    }
    for study, draw in by_study.items():
        for protocol in PROTOCOLS:
            name = f"{study}-{protocol}"
            for part, figure in draw(rows_of(rows, name)):
                yield f"{name}{part}", figure
    for norm, of_norm in split(rows_of(rows, "convergence"), "norm").items():
        yield from _draw_convergence(of_norm, norm)
    for norm, of_norm in split(rows_of(rows, "rounds"), "norm").items():
        yield from _draw_rounds(of_norm, norm)


# Tables at a glance


def _draw_table1(rows: Rows) -> Named:
    """Ours and the paper's F-1, one panel per data set."""
    ours = scores(rows, "data")
    columns = in_order((data for _, data in ours), DATA_TITLES)
    methods = in_order((method for method, _ in ours), METHODS)
    if not ours:
        return
    figure, panels = _panels(len(columns), 2, 0.45 + 0.2 * len(methods), sharey=True)
    for axes, data in zip(panels, columns, strict=True):
        _dots_beside_the_paper(axes, ours, TABLE1, data, methods)
        axes.set_title(data_name(data))
    _label_outer(panels, "F-1", "")
    _legend(figure, _paper_keys())
    yield "", figure


def _draw_table2(rows: Rows) -> Named:
    """Ours and the paper's F-1: one row of panels per setting, one column per severity set."""
    ours = {
        severities: scores(of_set, "setting")
        for severities, of_set in split(rows, "severities", SEVERITIES).items()
    }
    keys = [key for each in ours.values() for key in each]
    settings = in_order((setting for _, setting in keys), SETTING_TITLES)
    methods = in_order((method for method, _ in keys), METHODS)
    if not keys:
        return
    figure, grid = _grid(
        settings, list(ours), 0.4 + 0.19 * len(methods), sharex="row", sharey="all"
    )
    for (setting, severities), axes in grid.items():
        _dots_beside_the_paper(axes, ours[severities], TABLE2, setting, methods)
    _title_grid(grid, setting_name)
    _label_outer(list(grid.values()), "F-1", "")
    _legend(figure, _paper_keys())
    yield "", figure


def _dots_beside_the_paper(
    axes: Axes, ours: Scores, paper: PaperTable, column: str, methods: Sequence[str]
) -> None:
    for place, method in enumerate(methods):
        axes.axhspan(place - 0.42, place + 0.42, color="0.96", linewidth=0, zorder=0)
        printed = paper.get(method, {}).get(column)
        if printed is not None:
            theirs: _Mark = {"fmt": "D", "markersize": 3.5, "markerfacecolor": "white"}
            height = place + 0.18
            axes.errorbar(printed.mean, height, xerr=printed.sd, color=_PAPER, **theirs)
        own = ours.get((method, column))
        if own is not None:
            mark: _Mark = {"fmt": "o", "markersize": 4, "color": look(method).colour}
            axes.errorbar(own.mean, place - 0.18, xerr=_spread(own), elinewidth=1.2, **mark)
    axes.set_yticks(range(len(methods)), [short_name(method) for method in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    few_ticks(axes.xaxis)


def _spread(cell: Score) -> float:
    return 0.0 if math.isnan(cell.sd) else cell.sd


def _paper_keys() -> list[Line2D]:
    return [
        _key("ours", "0.1", marker="o", size=4),
        _key("paper", _PAPER, marker="D", size=3.5, hollow=True),
    ]


# Joining


def _draw_joining(rows: Rows) -> Named:
    """F-1 of each plant: alone, federated, pooled; on all leaks and on its own."""
    joined = joining(rows)
    severities = in_order((each.severities for each in joined), SEVERITIES)
    settings = in_order((each.setting for each in joined), SETTING_TITLES)
    if not joined:
        return
    for part in ("all", "own"):
        figure, grid = _grid(settings, severities, 1.45, sharey="all")
        for (setting, level), axes in grid.items():
            plants = [
                each for each in joined if (each.setting, each.severities) == (setting, level)
            ]
            _dots_by_plant(axes, plants, part)
        _title_grid(grid, setting_name)
        _label_outer(list(grid.values()), "plant, and its rows", "F-1")
        _legend(figure, [_key(n, c, marker=m, size=4) for n, c, m in _MODELS.values()])
        yield f"-{part}", figure


def _dots_by_plant(axes: Axes, plants: Sequence[Joining], part: str) -> None:
    for place, plant in enumerate(plants):
        models = plant.on_all if part == "all" else plant.on_own
        for shift, (model, (_, colour, marker)) in zip(
            (-0.22, 0.0, 0.22), _MODELS.items(), strict=True
        ):
            if model in models:
                mark: _Mark = {"fmt": marker, "markersize": 4, "color": colour, "elinewidth": 1.2}
                spread = _spread(models[model])
                axes.errorbar(place + shift, models[model].mean, yerr=spread, **mark)
    axes.set_xticks(range(len(plants)), [f"{plant.group}\n{plant.n_train:.0f}" for plant in plants])
    axes.set_xlim(-0.5, max(len(plants), 1) - 0.5)
    axes.grid(axis="y", color=_PALE)
    few_ticks(axes.yaxis)


# Sensitivity


def _draw_sensitivity(rows: Rows) -> Named:
    """Accuracy against each parameter, one figure per setting, one column per severity set."""
    for setting, part in split(rows, "setting", SETTING_TITLES).items():
        levels = split(part, "severities", SEVERITIES)
        parameters = in_order((row.get("parameter", "") for row in part), _PARAMETERS)
        parameters = [parameter for parameter in parameters if parameter in _PARAMETERS]
        if not parameters:
            continue
        figure, grid = _grid(parameters, list(levels), 1.35, sharex="row", sharey="all")
        for (parameter, severities), axes in grid.items():
            _curves_over(axes, levels[severities], parameter)
            axes.set_xlabel(_PARAMETERS[parameter], labelpad=1)
            if severities == next(iter(levels)):
                axes.set_ylabel("mCCR")
        _title_grid(grid)
        methods = in_order((row.get("method", "") for row in part), SHORT_METHODS)
        _legend(figure, [_curve_key(method) for method in methods])
        yield f"-{setting}", figure


def _curves_over(axes: Axes, rows: Rows, parameter: str) -> None:
    of_method = split(rows, "method", SHORT_METHODS)
    central = best_central(of_method.pop("Central", []))
    if central is not None:
        axes.axhline(central, color=look("Central").colour, linestyle="--", linewidth=1)
    for method, part in of_method.items():
        over = split([row for row in part if row.get("parameter") == parameter], "value")
        cells = [(float(x), score(y)) for x, r in over.items() if (y := values(r, "mccr"))]
        if cells:
            table = sorted((x, cell.mean, _spread(cell)) for x, cell in cells)
            x, middle, spread = np.array(table).T
            _draw_curve(axes, method, x, (middle - spread, middle, middle + spread))
    if parameter in _LOGARITHMIC:
        log_scale(axes, "x", 4)
    else:
        few_ticks(axes.xaxis)
    few_ticks(axes.yaxis)
    axes.grid(axis="y", color=_PALE)


def _draw_curve(axes: Axes, method: str, x: Any, band: tuple[Any, Any, Any]) -> None:
    drawn = look(method)
    low, middle, high = band
    axes.fill_between(x, low, high, color=drawn.colour, alpha=0.15, linewidth=0)
    line: _Mark = {"color": drawn.colour, "linestyle": drawn.line, "linewidth": 1.2}
    axes.plot(x, middle, marker=drawn.marker, markersize=3, **line)


# Scalability


def _draw_scalability(rows: Rows) -> Named:
    """CPU seconds to the peak accuracy, in four panels: median, and the middle half."""
    by_panel = split(rows, "panel", _PANELS)
    if not by_panel:
        return
    figure, panels = _panels(len(by_panel), 2, 1.9, sharey=True)
    for axes, (panel, part) in zip(panels, by_panel.items(), strict=True):
        for method, of_method in split(part, "method", SHORT_METHODS).items():
            sizes = split(of_method, "x")
            cells = sorted((float(x), y) for x, r in sizes.items() if (y := values(r, "seconds")))
            if cells:
                low, middle, high = np.array([np.quantile(y, _QUARTERS) for _, y in cells]).T
                _draw_curve(axes, method, [x for x, _ in cells], (low, middle, high))
        log_scale(axes, "y")
        few_ticks(axes.xaxis)
        axes.grid(axis="y", color=_PALE)
        axes.set_title(_PANELS.get(panel, panel))
    _label_outer(panels, "", "CPU seconds to peak")
    methods = in_order((row.get("method", "") for row in rows), SHORT_METHODS)
    _legend(figure, [_curve_key(method) for method in methods])
    yield "", figure


# Convergence and rounds


def _draw_convergence(rows: Rows, norm: str) -> Named:
    """Certified relative gap by round, one panel per data set."""
    histories = best_histories(rows)
    columns = in_order((data for data, _ in histories), DATA_TITLES)
    methods = in_order((method for _, method in histories), SHORT_METHODS)
    if not histories:
        return
    figure, panels = _panels(len(columns), 2, 1.6, sharex=True, sharey=True)
    for axes, data in zip(panels, columns, strict=True):
        for method in methods:
            if (data, method) in histories:
                x, gaps = np.array(histories[data, method]).T
                drawn = look(method)
                line: _Mark = {"color": drawn.colour, "linestyle": drawn.line, "linewidth": 1.3}
                axes.plot(x, np.maximum(gaps, _SMALLEST_GAP), **line)
        log_counts(axes, steps=(1.0, 3.0))
        log_scale(axes, "y")
        axes.grid(axis="y", color=_PALE)
        axes.set_title(data_name(data))
    _label_outer(panels, "round", "certified gap")
    _legend(figure, [_curve_key(method, marked=False) for method in methods])
    yield f"convergence-{norm}", figure


def _draw_rounds(rows: Rows, norm: str) -> Named:
    """Rounds to a certified gap, one panel per target, one row per data set."""
    needed = rounds_needed(rows)
    targets = sorted({each.target for each in needed}, reverse=True)
    columns = in_order((each.data for each in needed), DATA_TITLES)
    methods = in_order((each.method for each in needed), SHORT_METHODS)
    if not needed:
        return
    reached = [each.rounds for each in needed if math.isfinite(each.rounds)]
    beyond = 2.0 * max(reached, default=1.0)
    figure, panels = _panels(len(targets), 1, 0.45 + 0.32 * len(columns), sharex=True)
    for axes, target in zip(panels, targets, strict=True):
        at_target = [each for each in needed if each.target == target]
        _round_dots(axes, at_target, columns, methods, beyond)
        axes.set_title(f"to a certified gap of {target:g}")
    _label_outer(panels, "rounds", "")
    keys = [_key(m, look(m).colour, marker=look(m).marker, size=4) for m in methods]
    _legend(figure, [*keys, _key("not reached", "0.4", marker=">", size=5, hollow=True)])
    yield f"rounds-{norm}", figure


def _round_dots(
    axes: Axes,
    needed: Sequence[RoundsNeeded],
    columns: Sequence[str],
    methods: Sequence[str],
    beyond: float,
) -> None:
    step = 0.7 / len(methods)
    for place in range(len(columns)):
        axes.axhspan(place - 0.42, place + 0.42, color="0.96", linewidth=0, zorder=0)
    for each in needed:
        drawn = look(each.method)
        shift = step * (methods.index(each.method) - (len(methods) - 1) / 2.0)
        height = columns.index(each.data) + shift
        if math.isfinite(each.rounds):
            axes.plot(each.rounds, height, marker=drawn.marker, color=drawn.colour, markersize=4)
        else:
            hollow: _Mark = {"marker": ">", "markerfacecolor": "white", "markersize": 5}
            axes.plot(beyond, height, color=drawn.colour, **hollow)
    axes.set_yticks(range(len(columns)), [data_name(data) for data in columns])
    axes.set_ylim(len(columns) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="0.85")
    log_counts(axes)


# Panels, titles, legends


def _panels(
    count: int, columns: int, height: float, *, sharex: bool = False, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """``count`` panels, row by row; the height is that of one, in inches."""
    columns = min(columns, count)
    n_rows = -(-count // columns)
    figure = Figure(figsize=(_WIDTH, 0.4 + height * n_rows), layout="constrained")
    drawn = figure.subplots(n_rows, columns, sharex=sharex, sharey=sharey, squeeze=False).ravel()
    for unused in drawn[count:]:
        unused.remove()
    for axes in drawn[max(count - columns, 0) : count]:  # the lowest of each column
        axes.tick_params(labelbottom=True)
    return figure, list(drawn[:count])


def _grid(
    names: Sequence[str],
    columns: Sequence[str],
    height: float,
    *,
    sharey: Literal["all", "row"],
    sharex: Literal["none", "row"] = "none",
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """A panel for each pair of a row's and a column's name."""
    figure = Figure(figsize=(_WIDTH, 0.6 + height * len(names)), layout="constrained")
    shape = len(names), len(columns)
    drawn = figure.subplots(*shape, sharex=sharex, sharey=sharey, squeeze=False)
    return figure, {
        (name, column): drawn[i, j]
        for i, name in enumerate(names)
        for j, column in enumerate(columns)
    }


def _title_grid(grid: Grid, name_row: Any = None) -> None:
    """The rows' names above each panel, and the leaks above the first row."""
    first = next(iter(grid))[0]
    for (name, severities), axes in grid.items():
        lines = [leaks_name(severities)] if name == first else []
        lines += [name_row(name)] if name_row else []
        axes.set_title("\n".join(lines))


def _label_outer(panels: Sequence[Axes], x: str, y: str) -> None:
    """Name the axes at the left and at the lower edge; panels are in reading order."""
    place = panels[0].get_subplotspec()
    columns = place.get_gridspec().ncols if place else 1
    for axes in panels[-columns:]:
        axes.set_xlabel(x)
    for axes in panels[::columns]:
        axes.set_ylabel(y)


def _key(name: str, colour: str, *, marker: str, size: float, hollow: bool = False) -> Line2D:
    face = "white" if hollow else colour
    mark: _Mark = {"marker": marker, "markersize": size, "markerfacecolor": face}
    return Line2D([], [], color=colour, linestyle="", label=name, **mark)


def _curve_key(method: str, *, marked: bool = True) -> Line2D:
    drawn = look(method)
    is_line = method == "Central"
    return Line2D(
        [],
        [],
        color=drawn.colour,
        linestyle=drawn.line,
        marker="" if is_line or not marked else drawn.marker,
        markersize=4,
        linewidth=1.2,
        label="best central" if is_line else method,
    )


def _legend(figure: Figure, keys: Sequence[Line2D]) -> None:
    figure.legend(
        handles=list(keys),
        loc="outside upper center",
        ncols=3 if len(keys) > 4 else len(keys),
        frameon=False,
        handlelength=2.4,
        columnspacing=1.2,
    )
