"""The figures of docs/benchmarks.md, drawn from rows alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.growth import fit_growth
from benchmarks.tables import QP_SOLVERS, Rows
from fdrsvm_paper.drawing import Axes, Figure, Look, log_scale, settle, style
from fdrsvm_paper.rows import Row

_WIDTH, _FONT = 4.6, 9.0
_SOLVERS: Mapping[str, Look] = {
    "ours": Look("#1f5f8b", "D"),
    "PIQP": Look("#b3541e", "s"),
    "Clarabel": Look("#e69f00", "^"),
    "OSQP": Look("#009e73", "o"),
    "ProxQP": Look("#cc79a7", "X"),
    "Gurobi": Look("#7a7a7a", "P"),
}
_CURVES: Mapping[str, Look] = {
    "oracle": Look("#1f5f8b", "D"),
    "oracle on a box": Look("#56b4e9", "d"),
    "client": Look("#b3541e", "s"),
    "central": Look("#009e73", "o"),
    "bundle": Look("#7b4fa3", "h"),
}
_VARIABLES = {"N": "rows N", "P": "features P", "G": "clients G"}


def draw_figures(rows: Rows) -> dict[str, Figure]:
    """By name of the file."""
    with style(font_size=_FONT, axes_titlesize=_FONT):
        return {
            "bench-client": settle(client(rows["client"])),
            "bench-growth": settle(growth(rows["scaling"])),
        }


def client(rows: Sequence[Row]) -> Figure:
    """Time of a client update by size, cold and warm."""
    figure = Figure(figsize=(_WIDTH, 5.4), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    sizes = list(dict.fromkeys(row["problem"] for row in rows))
    for axes, setting in zip(panels, ("cold", "warm"), strict=True):
        for solver in ("ours", *QP_SOLVERS):
            own = {
                row["problem"]: float(row["median"])
                for row in rows
                if (row["solver"], row["setting"]) == (solver, setting) and row["median"]
            }
            places = [sizes.index(problem) for problem in own]
            _line(axes, _SOLVERS[solver], solver, places, [1e3 * t for t in own.values()])
        axes.set(title=f"{setting} start", ylabel="CPU time, ms")
        log_scale(axes, "y")
    names = [problem.split()[1].replace("x", " x ") for problem in sizes]
    panels[1].set_xticks(range(len(sizes)), names)
    panels[1].set_xlabel("rows x features")
    figure.legend(
        *panels[0].get_legend_handles_labels(), frameon=False, ncols=3, loc="outside upper center"
    )
    return figure


def _line(
    axes: Axes, look: Look, name: str, x: Sequence[float], y: Sequence[float], line: str = "-"
) -> None:
    axes.plot(x, y, color=look.colour, marker=look.marker, label=name, linestyle=line, markersize=5)


def growth(rows: Sequence[Row]) -> Figure:
    """Points and fitted powers, one panel a variable."""
    figure = Figure(figsize=(_WIDTH, 8.4), layout="constrained")
    panels = figure.subplots(3, 1)
    for axes, (variable, title) in zip(panels, _VARIABLES.items(), strict=True):
        for name, look in _CURVES.items():
            own = [r for r in rows if (r["problem"], r["unit"]) == (f"{name}, {variable}", "s")]
            if own:
                _curve(axes, look, name, own, variable)
        axes.set(xlabel=title, ylabel="CPU time, s")
        log_scale(axes, "x")
        log_scale(axes, "y")
        axes.legend(
            frameon=False, fontsize=_FONT - 1.5, loc="upper left", bbox_to_anchor=(1.0, 1.0)
        )
    return figure


def _curve(axes: Axes, look: Look, name: str, rows: Sequence[Row], variable: str) -> None:
    x = np.array([float(row[variable]) for row in rows])
    y = np.array([float(row["median"]) for row in rows])
    fit = fit_growth(x, y)
    _line(axes, look, f"{name}: {fit.exponent:.2f}", x, y, "none")
    level = np.exp(np.mean(np.log(y)) - fit.exponent * np.mean(np.log(x)))
    axes.plot(x, level * x**fit.exponent, color=look.colour, linewidth=1)
