"""The tables of docs/benchmarks.md, made of rows alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.growth import fit_growth
from fdrsvm_paper.paper_values import DATA_TITLES
from fdrsvm_paper.rows import Row
from fdrsvm_paper.tables import Cell, Table

Rows = Mapping[str, Sequence[Row]]  # by part

DASH = Cell("-")
QP_SOLVERS = ("PIQP", "Clarabel", "OSQP", "ProxQP", "Gurobi")
METHODS = ("bundle", "bundle, summed", "ADMM", "ADMM-SC", "SM")
# What the design asked for: seconds of the client update, and times faster than HiGHS.
CLIENT_GOALS = {
    ("client 90x30", "cold"): 0.25e-3,
    ("client 90x30", "warm"): 0.08e-3,
    ("client 1000x14", "cold"): 1.2e-3,
    ("client 1000x14", "warm"): 0.4e-3,
    ("client 1000x60", "cold"): 6e-3,
    ("client 1000x60", "warm"): 2e-3,
    ("client 10000x14", "cold"): 15e-3,
    ("client 10000x14", "warm"): 4e-3,
}
ORACLE_GOAL = 1000.0
PRODUCTS_GOALS = {"free": 5.0, "box": 25.0}
_EXACT = 1e-12  # less is rounding


def make_tables(rows: Rows) -> dict[str, Table]:
    """Every table that the page may name."""
    makers: dict[str, Callable[[Rows], Table]] = {
        "oracle": oracle,
        "products": products,
        "client": client,
        "client-excess": client_excess,
        "central": central,
        "ridge": ridge,
        "wide": wide,
        "growth": growth,
        "memory": memory,
        "footprint": footprint,
        "rounds": rounds,
        "releases": releases,
        "releases-growth": releases_growth,
    }
    return {name: make(rows) for name, make in makers.items()}


def duration(seconds: float) -> str:
    """Three digits with the unit that suits."""
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{digits(seconds * factor)} {unit}"
    return f"{digits(seconds)} s"


def digits(value: float, places: int = 3) -> str:
    """A number with this many significant digits, without an exponent."""
    power = int(f"{value:.{places - 1}e}".partition("e")[2])
    return f"{value:.{max(0, places - 1 - power)}f}"


def excess_text(row: Row) -> str:
    """How far above the certified bound, or what happened."""
    if not row["excess"]:
        return "-"
    excess = float(row["excess"])
    return "< 1e-12" if excess < _EXACT else f"{excess:.0e}"


def oracle(rows: Rows) -> Table:
    """Beside HiGHS."""
    solvers = ("ours, oracle", "ours, function", "HiGHS simplex", "HiGHS interior point")
    found = _by(rows["oracle"], "problem", "setting", "solver")
    lines = []
    for problem, setting in _ordered(rows["oracle"], "problem", "setting"):
        row = [found.get((problem, setting, solver)) for solver in solvers]
        if row[2] is None:
            continue  # too large for a linear program
        best = _median(row[0])
        cells = [_time(row[0]), _time(row[1]), *(_time(r, best) for r in row[2:])]
        speedup = _median(row[2]) / best
        verdict = Cell("met") if speedup >= ORACLE_GOAL else Cell("missed", bold=True)
        lines.append((_size(problem), Cell(setting.removeprefix("epsilon ")), *cells, verdict))
    head = ("N x P", "epsilon", *solvers, "goal: 1000 x simplex")
    return Table(
        "The worst case on the unit box, transport linf: CPU time",
        head,
        tuple(lines),
        (_worst_excess(row for row in rows["oracle"]),),
        n_labels=2,
    )


def products(rows: Rows) -> Table:
    """Beside the two products with X."""
    measure = _median(next(row for row in rows["oracle"] if row["solver"] == "products"))
    lines = []
    for support in ("free", "box"):
        for norm in ("l1", "l2", "linf"):
            own = [
                _median(row)
                for row in rows["oracle"]
                if row["problem"].endswith(f" {norm} {support}") and row["N"] == "1000000"
            ]
            goal = PRODUCTS_GOALS[support]
            ratio = f"{digits(min(own) / measure, 2)} - {digits(max(own) / measure, 2)}"
            times = f"{duration(min(own))} - {duration(max(own))}"
            met = max(own) / measure <= goal
            verdict = Cell(f"{goal:g}: {'met' if met else 'missed'}", bold=not met)
            name = {"free": "none", "box": "unit box"}[support]
            lines.append((Cell(name), Cell(norm), Cell(times), Cell(ratio), verdict))
    return Table(
        "The worst case of 10^6 rows of 14 features, checks included, over all radii",
        ("support", "norm", "CPU time", "over the products", "goal"),
        tuple(lines),
        (f"The two products X @ w and X.T @ r take {duration(measure)}.",),
        n_labels=2,
    )


def client(rows: Rows) -> Table:
    """Times of the client update."""
    found = _by(rows["client"], "problem", "setting", "solver")
    lines = []
    for problem, setting in _ordered(rows["client"], "problem", "setting"):
        ours = found[problem, setting, "ours"]
        goal = CLIENT_GOALS[problem, setting]
        missed = _median(ours) > goal
        others = (_time(found.get((problem, setting, s)), _median(ours)) for s in QP_SOLVERS)
        verdict = Cell(f"{duration(goal)}{': missed' if missed else ''}", bold=missed)
        lines.append((_size(problem), Cell(setting), _time(ours), *others, verdict))
    return Table(
        "The ADMM client update: CPU time, and how many times ours",
        ("N x P", "", "ours", *_with_versions(rows["client"], QP_SOLVERS), "goal"),
        tuple(lines),
        tuple(_failures(rows["client"])),
        n_labels=2,
    )


def client_excess(rows: Rows) -> Table:
    """How good their answers are."""
    found = _by(rows["client"], "problem", "setting", "solver")
    solvers = ("ours", *QP_SOLVERS)
    lines = []
    for problem, setting in _ordered(rows["client"], "problem", "setting"):
        own = [found.get((problem, setting, solver)) for solver in solvers]
        cells = [Cell(excess_text(row)) if row else DASH for row in own]
        lines.append((_size(problem), Cell(setting), *cells))
    return Table(
        "The ADMM client update: objective above the certified lower bound, relative",
        ("N x P", "", *solvers),
        tuple(lines),
        n_labels=2,
    )


def central(rows: Rows) -> Table:
    """Times and excess of the central problem."""
    own = [row for row in rows["central"] if row["problem"].startswith("central")]
    return _side_by_side(own, "The central DR-SVM, 10^4 x 14: CPU time", "norm")


def ridge(rows: Rows) -> Table:
    """At epsilon = 0."""
    own = [row for row in rows["central"] if row["problem"].startswith("hinge")]
    return _side_by_side(own, "Hinge loss and a ridge term, 10^4 x 14: CPU time", "penalty")


def _side_by_side(rows: Sequence[Row], title: str, label: str) -> Table:
    """One line a solver and setting: time, ratio, excess, remark."""
    ours = {row["setting"]: _median(row) for row in rows if row["solver"] == "ours"}
    lines = []
    for row in rows:
        if row["median"]:
            ratio = Cell(f"{digits(_median(row) / ours[row['setting']], 2)} x")
            time = Cell(duration(_median(row)))
        else:
            time, ratio = Cell("failed"), DASH
        solver = f"{row['solver']} ({row['version']})"
        excess = Cell(excess_text(row))
        lines.append((Cell(row["setting"]), Cell(solver), time, ratio, excess, Cell(row["note"])))
    head = (label, "solver", "CPU time", "times ours", "above the bound", "remark")
    return Table(title, head, tuple(lines), n_labels=2)


def wide(rows: Rows) -> Table:
    """Sparse problems."""
    lines = []
    for row in rows["wide"]:
        cells = (row["problem"].split()[2], row["setting"], duration(_median(row)))
        lines.append(
            (_size(row["problem"]), *map(Cell, cells), Cell(excess_text(row)), Cell(row["note"]))
        )
    head = ("N x P", "norm", "problem", "CPU time", "above the bound", "remark")
    return Table("Sparse rows, many features: ours, once", head, tuple(lines), n_labels=3)


def growth(rows: Rows) -> Table:
    """Fitted exponents."""
    lines = []
    for problem, unit in _ordered(rows["scaling"], "problem", "unit"):
        own = [r for r in rows["scaling"] if (r["problem"], r["unit"]) == (problem, unit)]
        name, variable = problem.split(", ")
        x = [float(row[variable]) for row in own]
        y = [_median(row) for row in own]
        fit = fit_growth(x, y)
        what = f"{name}, a round" if unit == "s a round" else name
        power = f"{fit.exponent:.2f} ± {fit.error:.2f}"
        span = f"{x[0]:.0f} - {x[-1]:.0f}"
        cells = (what, variable, span, duration(y[0]), duration(y[-1]), power)
        lines.append(tuple(map(Cell, cells)))
    return Table(
        "Growth: CPU time is about size to this power",
        ("what", "grows", "from - to", "first", "last", "power"),
        tuple(lines),
        ("Least squares on logarithms, over all sizes; ± one standard error of the fit.",),
        n_labels=3,
    )


def memory(rows: Rows) -> Table:
    """Peaks."""
    found = _by(rows["memory"], "problem", "solver", "setting")
    lines = []
    for problem, solver in _ordered(rows["memory"], "problem", "solver"):
        pair = [found[problem, solver, name] for name in ("whole process", "while solving")]
        cells = [
            Cell(f"{digits(_median(r), 2)} MB") if r["median"] else Cell("failed") for r in pair
        ]
        lines.append((Cell(problem), Cell(solver), *cells))
    return Table(
        "Largest resident set of a fresh process",
        ("problem", "solver", "whole process", "while solving"),
        tuple(lines),
        tuple(_failures(rows["memory"])),
        n_labels=2,
    )


def footprint(rows: Rows) -> Table:
    """Import, first model, size."""
    lines = []
    for row in rows["footprint"]:
        value = DASH
        if row["median"]:
            figure = _median(row)
            value = Cell(f"{figure:.0f} MB" if row["unit"] == "MB" else duration(figure))
        what = f"{row['problem']}, {row['setting']}" if row["setting"] else row["problem"]
        lines.append((Cell(what), Cell(row["solver"]), value, Cell(row["note"])))
    return Table(
        "Before anything is solved",
        ("what", "package", "CPU time or size", "remark"),
        tuple(lines),
        n_labels=2,
    )


def rounds(rows: Rows) -> Table:
    """Rounds to a certified gap of 1e-4."""
    found = _by(rows["federated_rounds"], "norm", "method", "data")
    lines = []
    for norm in ("linf", "l2", "l1"):
        for method in METHODS:
            own = [found[norm, method, data]["rounds to 1e-4"] or "> 220" for data in DATA_TITLES]
            cells = [Cell(text, bold=method == "bundle") for text in own]
            lines.append((Cell(norm), Cell(method), *cells))
    return Table(
        "Rounds to a certified relative gap of 1e-4, four clients",
        ("norm", "method", *DATA_TITLES.values()),
        tuple(lines),
        n_labels=2,
    )


def releases(rows: Rows) -> Table:
    """The checkout beside the release before, but for the long curves."""
    own = [row for row in rows["releases"] if not row["case"].startswith(_LONG)]
    title = "Both releases in turns: rows with goals, and the others of this page"
    return _two_columns(own, title, *_summary(rows["releases"]))


def _summary(rows: Sequence[Row]) -> tuple[str, str]:
    """How many rows are not what was asked for, and how busy the machine was."""
    verdicts = [row["verdict"] for row in rows]
    missed, slower, failed = map(verdicts.count, ("missed", "slower", "failed"))
    loads = sorted(float(row["load"]) for row in rows)
    times = sorted(row["when"] for row in rows)
    return (
        f"Of {len(rows)} rows here and in the next table, {missed} miss their goal, {slower} are "
        f"slower than before, {failed} failed.",
        f"Load of the machine when rows began {loads[0]:g} to {loads[-1]:g}, median "
        f"{loads[len(loads) // 2]:g}; {times[0]} to {times[-1]}.",
    )


def releases_growth(rows: Rows) -> Table:
    """The curves and the sparse problems."""
    own = [row for row in rows["releases"] if row["case"].startswith(_LONG)]
    return _two_columns(own, "Both releases in turns: growth, and sparse rows")


_LONG = ("growth", "csr")


def _two_columns(rows: Sequence[Row], title: str, *notes: str) -> Table:
    """Old and new, how many times faster (or less), and what was asked for."""
    lines = []
    for row in rows:
        bad = row["verdict"] != "met"
        remark = Cell(row["remark"])
        if row["verdict"] == "failed":
            cells = (DASH, DASH, DASH, DASH)
        else:
            goal = _with_unit(row["goal"], row["unit"]) if row["goal"] else "no slower"
            figures = (_with_unit(row[name], row["unit"]) for name in ("old", "now"))
            ratio = f"{digits(float(row['ratio']), 2)} x"
            cells = (*map(Cell, figures), Cell(ratio), Cell(goal))
        lines.append((Cell(row["case"]), *cells, Cell(row["verdict"], bold=bad), remark))
    old = rows[0]["old_version"] if rows else ""
    head = ("case", old, "now", "times faster", "goal", "", "remark")
    return Table(title, head, tuple(lines), notes, n_labels=1)


def _with_unit(figure: str, unit: str) -> str:
    """Seconds as durations; wall time says so."""
    if unit in ("s", "s wall"):
        return duration(float(figure)) + unit.removeprefix("s")
    return f"{digits(float(figure))} {unit}"


def _by(rows: Iterable[Row], *names: str) -> dict[tuple[str, ...], Row]:
    return {tuple(row[name] for name in names): row for row in rows}


def _ordered(rows: Iterable[Row], *names: str) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(row[name] for name in names) for row in rows))


def _median(row: Row | None) -> float:
    return float(row["median"] or math.nan) if row else math.nan


def _size(problem: str) -> Cell:
    return Cell(problem.split()[1].replace("x", " x "))


def _time(row: Row | None, ours: float | None = None) -> Cell:
    """The time, and how many times ours it is."""
    if row is None:
        return DASH
    if not row["median"]:
        return Cell("failed")
    time = _median(row)
    return Cell(duration(time), f"{digits(time / ours, 2)} x" if ours else "")


def _with_versions(rows: Iterable[Row], solvers: Sequence[str]) -> list[str]:
    versions = {row["solver"]: row["version"] for row in rows}
    return [f"{solver} {versions.get(solver, '')}".strip() for solver in solvers]


def _failures(rows: Iterable[Row]) -> list[str]:
    """Why there is no figure, once for each reason."""
    where: dict[str, list[str]] = {}
    for row in rows:
        if not row["median"]:
            reason = f"{row['solver']} {row['note']}"
            where.setdefault(reason, []).append(f"{row['problem']} {row['setting']}".strip())
    return [f"{', '.join(places)}: {reason}" for reason, places in where.items()]


def _worst_excess(rows: Iterable[Row]) -> str:
    worst = max(abs(float(row["excess"])) for row in rows if row["excess"])
    return f"All values agree with the proof of ours within {worst:.0e}, relative."
