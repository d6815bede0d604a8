"""Tables of the reproduction: built once, written as Markdown, LaTeX or HTML.

A :class:`Table` holds text only. The builders below make one from stored rows; whatever is missing
there is a dash here, and the notes below the table say what it is.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from fdrsvm.errors import InvalidInputError
from fdrsvm_paper.paper_values import (
    BASELINES,
    DATA_TITLES,
    OURS,
    REPETITIONS_TABLE1,
    REPETITIONS_TABLE2,
    SETTING_TITLES,
    TABLE1,
    TABLE2,
    WILCOXON_ALPHA,
    PaperTable,
    Printed,
)
from fdrsvm_paper.scalability_study import growth_exponents
from fdrsvm_paper.summary import (
    METHODS,
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
    rounds_needed,
    scaling,
    scores,
    split,
)
from fdrsvm_paper.summary import joining as summarise_joining
from fdrsvm_paper.wilcoxon import Comparison, compare_best, compare_bundle

__all__ = [
    "Cell",
    "Table",
    "growth",
    "joining",
    "rounds",
    "scalability",
    "table1",
    "table2",
    "table2_side_by_side",
    "wilcoxon_table",
]

MISSING: Final = "-"
_MODELS = ("local", "federated", "central")
_LISTED = 6  # incomplete cells named in a note
_PROTOCOLS = {"paper-code": "as the authors' code runs", "text": "as the paper's text says"}
_SEVERITIES = {"paper": "leaks 1, 4, 7, 10e-3", "labelling": "leaks 1, 2, 3, 4e-3"}
_PANELS = {
    "a": "(a) clients G, N = 1000",
    "b": "(b) clients G, N = 100 G",
    "c": "(c) samples N, G = 10",
    "d": "(d) features P",
}


@dataclass(frozen=True)
class Cell:
    """Text of one cell.

    Attributes
    ----------
    text : str
        What the cell says.
    detail : str
        What is said beside or below it, smaller.
    bold : bool
        Whether the text, not the detail, stands out.
    """

    text: str
    detail: str = ""
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table that can be written in three forms.

    Attributes
    ----------
    title : str
        Its caption.
    head : tuple of str
        Column titles.
    rows : tuple of tuple of Cell
        Each as long as the head.
    notes : tuple of str
        Sentences for below the table.
    n_labels : int
        Leading columns that name a row; they are set flush left, the others flush right.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    n_labels: int = 1

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.head):
                raise InvalidInputError(
                    "rows",
                    f"must have {len(self.head)} cells each, as the head has",
                    f"row {number} has {len(row)}",
                )

    def markdown(self) -> str:
        """GitHub's Markdown: a bold title, the table, a list of notes."""
        lines = [[_markdown(title) for title in self.head]]
        lines += [[_markdown_cell(cell) for cell in row] for row in self.rows]
        widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
        rule = [
            "-" * width if place < self.n_labels else "-" * (width - 1) + ":"
            for place, width in enumerate(widths)
        ]
        table = [
            "| " + " | ".join(map(str.ljust, cells, widths)) + " |"
            for cells in [lines[0], rule, *lines[1:]]
        ]
        notes = ["", *(f"- {_markdown(note)}" for note in self.notes)] if self.notes else []
        return "\n".join([f"**{_markdown(self.title)}**", "", *table, *notes]) + "\n"

    def latex(self) -> str:
        """LaTeX with booktabs; the details of a row are on a line of their own."""
        body = [line for row in self.rows for line in _latex_lines(row)]
        columns = "l" * self.n_labels + "r" * (len(self.head) - self.n_labels)
        notes = " ".join(map(_latex, self.notes))
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_latex(self.title)}}}",
                r"\footnotesize",
                r"\setlength{\tabcolsep}{3pt}",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                _latex_line(map(_latex, self.head)),
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                *([rf"\par\smallskip\raggedright {notes}"] if notes else []),
                r"\end{table}",
                "",
            ]
        )

    def html(self) -> str:
        """A table that scrolls sideways in ``div.scroll``, then notes in ``p.note``."""
        title = html.escape(self.title)
        head = "".join(
            f'<th scope="col"{_html_class(place < self.n_labels)}>{html.escape(name)}</th>'
            for place, name in enumerate(self.head)
        )
        body = "\n".join(f"<tr>{self._html_row(row)}</tr>" for row in self.rows)
        notes = "".join(f'\n<p class="note">{html.escape(note)}</p>' for note in self.notes)
        return (
            f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">\n<table>\n'
            f"<caption>{title}</caption>\n<thead>\n<tr>{head}</tr>\n</thead>\n"
            f"<tbody>\n{body}\n</tbody>\n</table>\n</div>{notes}\n"
        )

    def _html_row(self, row: Sequence[Cell]) -> str:
        labels, values = row[: self.n_labels], row[self.n_labels :]
        return "".join(
            [f'<th scope="row" class="name">{_html_cell(cell)}</th>' for cell in labels]
            + [f"<td>{_html_cell(cell)}</td>" for cell in values]
        )


# Builders


def table1(rows: Rows, protocol: str, repetitions: int | None = None) -> Table:
    """Table 1: F-1 on the UCI sets, ours beside the paper's.

    Parameters
    ----------
    rows : sequence of dict
        Rows of table 1 under one protocol.
    protocol : str
        Its name.
    repetitions : int, optional
        How many a complete run has. By default the most that any cell has.

    Returns
    -------
    Table
        A row a method, a column a data set.
    """
    return _benchmark(
        f"Table 1: F-1 on the UCI data sets, {_protocol(protocol)}",
        scores(rows, "data"),
        DATA_TITLES,
        TABLE1,
        repetitions,
        REPETITIONS_TABLE1,
    )


def table2(rows: Rows, protocol: str, repetitions: int | None = None) -> list[Table]:
    """Table 2: F-1 on the industrial data, ours beside the paper's.

    Parameters
    ----------
    rows : sequence of dict
        Rows of table 2 under one protocol.
    protocol : str
        Its name.
    repetitions : int, optional
        How many a complete run has. By default the most that any cell has.

    Returns
    -------
    list of Table
        One for each severity set that has rows: a row a method, a column a setting.
    """
    return [
        _benchmark(
            f"Table 2: F-1 on the industrial data, {_severities(name)}, {_protocol(protocol)}",
            scores(part, "setting"),
            SETTING_TITLES,
            TABLE2,
            repetitions,
            REPETITIONS_TABLE2,
        )
        for name, part in split(rows, "severities", SEVERITIES).items()
    ]


def table2_side_by_side(rows: Rows, protocol: str) -> Table:
    """Table 2 with the severity sets and the paper one below the other, method by method.

    Parameters
    ----------
    rows : sequence of dict
        Rows of table 2 under one protocol.
    protocol : str
        Its name.

    Returns
    -------
    Table
        For each method a row a severity set, and one for the paper where it has the method.
    """
    parts = split(rows, "severities", SEVERITIES)
    found = {name: scores(part, "setting") for name, part in parts.items()}
    columns = _present(SETTING_TITLES, (key for part in found.values() for key in part))
    body = []
    for method in METHODS:
        for name in found:
            cells = [_nearer_cell(found, name, (method, column)) for column in columns]
            body.append((Cell(method), Cell(_severities(name)), *cells))
        if method in TABLE2:
            theirs = [_printed_cell(TABLE2[method].get(column)) for column in columns]
            body.append((Cell(method), Cell("paper"), *theirs))
    nearest = [_nearest(found, key) for key in _printed_keys(TABLE2)]
    counts = [score.count for part in found.values() for score in part.values()]
    compared = sum(name is not None for name in nearest)
    notes = [
        "In brackets: distance from the paper's mean, in the paper's standard deviations; bold: the"
        " nearer of the severity sets.",
        *(
            f"Nearest to the paper with {_severities(name)}: {nearest.count(name)} of {compared}"
            " cells."
            for name in found
        ),
        _repetitions(counts, REPETITIONS_TABLE2),
    ]
    return Table(
        title=f"Table 2, severity sets side by side, {_protocol(protocol)}",
        head=("method", "data", *columns.values()),
        rows=tuple(body),
        notes=tuple(notes),
        n_labels=2,
    )


def wilcoxon_table(rows: Rows, protocol: str | None = None) -> Table:
    """The Wilcoxon table: which baselines ours is better than, and whether the paper agrees.

    Parameters
    ----------
    rows : sequence of dict
        Rows of table 1 under one protocol.
    protocol : str, optional
        Its name, for the title.

    Returns
    -------
    Table
        A row a baseline, a column a data set; once for the best of ours, once for the bundle.
    """
    best, bundle = compare_best(rows), compare_bundle(rows)
    columns = _present(DATA_TITLES, ((c.ours, c.data) for c in [*best, *bundle]))
    chosen = {comparison.data: comparison.ours for comparison in best}
    body = [(Cell("best of ours"), *(Cell(chosen.get(data, MISSING)) for data in columns))]
    for name, comparisons in (("best of ours", best), ("Bundle", bundle)):
        by_key = {(c.baseline, c.data): c for c in comparisons}
        body += [
            (
                Cell(f"{name} > {baseline}"),
                *(_test_cell(by_key.get((baseline, data))) for data in columns),
            )
            for baseline in BASELINES
        ]
    under = "" if protocol is None else f", {_protocol(protocol)}"
    return Table(
        title=f"Wilcoxon test{under}: is ours better than the baseline?",
        head=("test", *columns.values()),
        rows=tuple(body),
        notes=tuple(_test_notes(best, bundle)),
    )


def joining(rows: Rows) -> list[Table]:
    """Whether joining the federation pays, plant by plant and leak by leak.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the joining study.

    Returns
    -------
    list of Table
        For each severity set one by plant, with all plants together first, and one by leak.
    """
    tables = []
    for name, part in split(rows, "severities", SEVERITIES).items():
        together = summarise_joining(part, "all")
        plants = _interleaved(together, summarise_joining(part, "plant"))
        leaks = summarise_joining(part, "leak")
        tables += [
            _joining_table(f"Does joining pay? By plant, {_severities(name)}", "plant", plants),
            _joining_table(f"Does joining pay? By leak, {_severities(name)}", "leak", leaks),
        ]
    return [table for table in tables if table.rows]


def scalability(rows: Rows) -> Table:
    """How cost grows with clients, samples and features.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the scalability study.

    Returns
    -------
    Table
        A row for each panel and method: from the smallest size to the largest.
    """
    lines = [line for line in scaling(rows) if line.x]
    body = []
    for _, grouped in groupby(lines, key=lambda line: line.panel):
        panel = list(grouped)
        largest = max(line.x[-1] for line in panel)
        last = [line.seconds[-1] if line.x[-1] == largest else math.nan for line in panel]
        fastest = _best(last, min)
        body += [_scaling_row(line, place in fastest) for place, line in enumerate(panel)]
    counts = [line.count for line in lines]
    return Table(
        title="Scalability: CPU seconds to the peak accuracy (mCCR)",
        head=("panel", "method", "size", "seconds", "growth", "rounds", "peak mCCR"),
        rows=tuple(body),
        notes=(
            "From the smallest size to the largest; medians over repetitions. Bold: the fastest of"
            " a panel at its largest size.",
            "Growth: the power p of size that fits the seconds best, size^p.",
            _repetitions(counts),
        ),
        n_labels=2,
    )


def growth(rows: Rows) -> Table:
    """Powers of size: of a round's seconds, of those to the peak, and of the paper's stated work.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the scalability study.

    Returns
    -------
    Table
        A row for each panel and method.
    """
    found = growth_exponents(rows)
    return Table(
        title="Scalability: how seconds grow with size",
        head=("panel", "method", "a round", "to the peak", "stated"),
        rows=tuple(
            (
                Cell(_PANELS[line.panel]),
                Cell(line.method),
                Cell(f"{line.seconds_per_round:.2f}"),
                Cell(f"{line.seconds:.2f}"),
                Cell(MISSING if line.stated is None else f"{line.stated:.2f}"),
            )
            for line in found
        ),
        notes=(
            "The power p of the law size^p that fits best, over all sizes and repetitions. The peak"
            " is a maximum over a noisy curve, so the cost of a round is the steadier measure.",
            "Stated: of the work that the paper states, N^3.5 P^3.5 + G P for SM and"
            " (N + P)^3.5 + G P for ADMM-SC; it states none for ADMM.",
        ),
        n_labels=2,
    )


def rounds(rows: Rows) -> Table:
    """Rounds to a certified gap, by data set and method.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the study of rounds.

    Returns
    -------
    Table
        A row for each norm and data set, a column a method; a number a target gap.
    """
    needed = rounds_needed(rows)
    targets = sorted({result.target for result in needed}, reverse=True)
    methods = in_order((result.method for result in needed), SHORT_METHODS)
    listed = ", ".join(f"{target:.0e}".replace("e-0", "e-") for target in targets)
    body = []
    for (norm, data), grouped in groupby(needed, key=lambda result: (result.norm, result.data)):
        found = {(result.method, result.target): result for result in grouped}
        fewest = _best(
            [_finite_rounds(found.get((method, targets[-1]))) for method in methods], min
        )
        cells = [
            _rounds_cell([found.get((method, target)) for target in targets], place in fewest)
            for place, method in enumerate(methods)
        ]
        body.append((Cell(DATA_TITLES.get(data, data)), Cell(norm), *cells))
    counts = [result.count for result in needed]
    return Table(
        title=f"Rounds to a certified relative gap of {listed}" if listed else "Rounds",
        head=("data", "norm", *methods),
        rows=tuple(body),
        notes=(
            "Medians over repetitions, with the parameter that did best for each gap, picked"
            " afterwards; the one shown is that of the smallest gap.",
            "A dash: half of the repetitions or more did not get there. In brackets: how many did,"
            " where not all. Bold: fewest rounds to the smallest gap.",
            _repetitions(counts),
        ),
        n_labels=2,
    )


# Parts of tables 1 and 2


def _benchmark(
    title: str,
    found: Scores,
    columns: Mapping[str, str],
    paper: PaperTable,
    repetitions: int | None,
    paper_repetitions: int,
) -> Table:
    """A row a method: ours, the paper's, and the difference in its standard deviations."""
    shown = _present(columns, found)
    methods = in_order([*METHODS, *(method for method, _ in found)], METHODS)
    complete = max([repetitions or 0, *(cell.count for cell in found.values())])
    best = {
        column: _best([_printed_mean(found.get((method, column))) for method in methods], max)
        for column in shown
    }
    body = [
        (
            Cell(method),
            *(
                _score_cell(
                    found.get((method, column)),
                    paper.get(method, {}).get(column),
                    complete,
                    place in best[column],
                )
                for column in shown
            ),
        )
        for place, method in enumerate(methods)
    ]
    notes = _benchmark_notes(found, methods, shown, paper, complete, paper_repetitions)
    left_out = [columns[column] for column in columns if column not in shown]
    if left_out:
        notes.append(f"Not run: {', '.join(left_out)}.")
    return Table(title, ("method", *shown.values()), tuple(body), tuple(notes))


def _benchmark_notes(
    found: Scores,
    methods: Sequence[str],
    columns: Mapping[str, str],
    paper: PaperTable,
    complete: int,
    paper_repetitions: int,
) -> list[str]:
    notes = [
        "Ours / the paper's (difference in the paper's standard deviations); mean ± standard"
        " deviation. Bold: our best in the column."
    ]
    if not found:
        return [*notes, "No rows yet."]
    compared = [key for key in _printed_keys(paper) if key in found]
    far = far_from_paper(found, paper)
    return [
        *notes,
        f"Repetitions: {complete}; in the paper: {paper_repetitions}.",
        *_incomplete(found, methods, columns, complete),
        f"{len(far)} of {len(compared)} cells differ from the paper by more than one of its"
        " standard deviations.",
    ]


def _incomplete(
    found: Scores, methods: Iterable[str], columns: Mapping[str, str], complete: int
) -> list[str]:
    """A sentence that names cells with too few repetitions, if there are any."""
    counts = {
        f"{method} on {title}": found[method, column].count if (method, column) in found else 0
        for method in methods
        for column, title in columns.items()
    }
    short = [f"{name} has {count}" for name, count in counts.items() if count < complete]
    if not short:
        return []
    more = f", and {len(short) - _LISTED} more cells" if len(short) > _LISTED else ""
    return [f"Incomplete: of {complete} repetitions {', '.join(short[:_LISTED])}{more}."]


def _score_cell(ours: Score | None, paper: Printed | None, complete: int, best: bool) -> Cell:
    if ours is None:
        return Cell(MISSING, _mean_sd(*paper) if paper else "")
    partial = f" ({ours.count} of {complete})" if ours.count < complete else ""
    theirs = f"{_mean_sd(*paper)} ({ours.difference(paper):+z.1f})" if paper else ""
    return Cell(_mean_sd(ours.mean, ours.sd) + partial, theirs, best)


def _printed_cell(paper: Printed | None) -> Cell:
    return Cell(_mean_sd(*paper) if paper else MISSING)


def _nearer_cell(found: Mapping[str, Scores], name: str, key: tuple[str, str]) -> Cell:
    ours = found[name].get(key)
    if ours is None:
        return Cell(MISSING)
    paper = _printed_in_table2(key)
    distance = f" ({ours.difference(paper):+z.1f})" if paper else ""
    nearest = len(found) > 1 and _nearest(found, key) == name
    return Cell(_mean_sd(ours.mean, ours.sd) + distance, bold=nearest)


def _nearest(found: Mapping[str, Scores], key: tuple[str, str]) -> str | None:
    """The severity set that is nearest to the paper in this cell."""
    paper = _printed_in_table2(key)
    if paper is None:
        return None
    distances = {
        name: abs(part[key].difference(paper)) for name, part in found.items() if key in part
    }
    return min(distances, key=distances.__getitem__) if distances else None


def _printed_in_table2(key: tuple[str, str]) -> Printed | None:
    method, column = key
    return TABLE2.get(method, {}).get(column)


def _printed_keys(paper: PaperTable) -> list[tuple[str, str]]:
    return [(method, column) for method, cells in paper.items() for column in cells]


def _present(titles: Mapping[str, str], keys: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Columns with a result and their titles; all of them if there is none at all."""
    columns = in_order((column for _, column in keys), titles) or list(titles)
    return {column: titles.get(column, column) for column in columns}


# Parts of the other tables


def _test_cell(comparison: Comparison | None) -> Cell:
    if comparison is None:
        return Cell(MISSING)
    p = "p < .001" if comparison.p_value < 0.001 else f"p = {_short(comparison.p_value)}"
    if comparison.paper_rejected is None:
        return Cell(_yes(comparison.rejected), p)
    detail = f"{p}, paper {_yes(comparison.paper_rejected)}"
    differs = comparison.rejected != comparison.paper_rejected
    return Cell(_yes(comparison.rejected), detail, differs)


def _test_notes(best: Sequence[Comparison], bundle: Sequence[Comparison]) -> list[str]:
    notes = [
        f"Yes: the one-sided signed-rank test at {_short(WILCOXON_ALPHA, 2)}, paired by repetition,"
        " finds ours better in F-1. Bold: the paper found otherwise.",
        f"Best of ours: of {', '.join(OURS)} the one with the highest mean on that data, chosen on"
        " the same repetitions, as in the paper; there is no correction for the number of tests.",
    ]
    judged = [c for c in best if c.paper_rejected is not None]
    agreed = sum(c.rejected == c.paper_rejected for c in judged)
    counts = [c.n for c in [*best, *bundle]]
    if not counts:
        return [*notes, "No pairs yet."]
    notes.append(
        f"{agreed} of {len(judged)} agree with the paper. Pairs in a test: {_range(counts)}; in"
        f" the paper: {REPETITIONS_TABLE1}."
    )
    if min(counts) < 5:
        notes.append("A test of fewer than five pairs cannot find anything at this level.")
    return notes


def _interleaved(together: Sequence[Joining], parts: Sequence[Joining]) -> list[Joining]:
    """For each setting first all plants, then each."""
    return [
        result
        for whole in together
        for result in [whole, *(part for part in parts if part.setting == whole.setting)]
    ]


def _joining_table(title: str, group: str, results: Sequence[Joining]) -> Table:
    columns = [f"{model}, {where}" for where in ("all", "own") for model in (*_MODELS, "gain")]
    counts = [result.gain_all.count for result in results]
    return Table(
        title=title,
        head=("setting", group, "rows", *columns),
        rows=tuple(_joining_row(result) for result in results),
        notes=(
            "Mean F-1 on the whole common test set (all) and on its healthy rows with the plant's"
            " own leak (own).",
            "Gain: federated less local, paired over repetitions (all plants: their mean in each),"
            " mean ± standard error. It pays"
            " (bold) or costs where its 95 % t interval leaves out zero.",
            _repetitions(counts),
        ),
        n_labels=2,
    )


def _joining_row(result: Joining) -> tuple[Cell, ...]:
    def means(by_model: Mapping[str, Score]) -> list[Cell]:
        return [
            Cell(_short(by_model[model].mean) if model in by_model else MISSING)
            for model in _MODELS
        ]

    return (
        Cell(SETTING_TITLES.get(result.setting, result.setting)),
        Cell(result.group),
        Cell(_plain(result.n_train)),
        *means(result.on_all),
        _gain_cell(result.gain_all),
        *means(result.on_own),
        _gain_cell(result.gain_own),
    )


def _gain_cell(gain: Gain) -> Cell:
    if gain.count == 0:
        return Cell(MISSING)
    sign = "+" if round(gain.mean, 3) > 0.0 else ""
    text = f"{sign}{_mean_sd(gain.mean, gain.standard_error)}"
    return Cell(text, gain.verdict, gain.verdict == "pays")


def _scaling_row(line: Scaling, fastest: bool) -> tuple[Cell, ...]:
    def ends(values: Sequence[float], write: Callable[[float], str]) -> str:
        return " to ".join(write(values[place]) for place in (0, -1))

    exponent = line.exponent
    return (
        Cell(_PANELS.get(line.panel, line.panel)),
        Cell(line.method),
        Cell(ends(line.x, _plain)),
        Cell(ends(line.seconds, _plain), bold=fastest),
        Cell(MISSING if math.isnan(exponent) else f"{exponent:z.2f}"),
        Cell(ends(line.rounds, _plain)),
        Cell(ends(line.mccr, _short)),
    )


def _rounds_cell(results: Sequence[RoundsNeeded | None], fewest: bool) -> Cell:
    last = results[-1]
    text = ", ".join(map(_rounds_text, results))
    return Cell(text, _parameter(last.parameter) if last and last.reached else "", fewest)


def _rounds_text(result: RoundsNeeded | None) -> str:
    if result is None or result.reached == 0:
        return MISSING
    median = _plain(result.rounds)
    return median if result.reached == result.count else f"{median} ({result.reached})"


def _finite_rounds(result: RoundsNeeded | None) -> float:
    return result.rounds if result and math.isfinite(result.rounds) else math.nan


def _parameter(text: str) -> str:
    """A JSON object as ``name=value``; anything else as it is."""
    try:
        values = json.loads(text)
    except ValueError:
        return text
    if not isinstance(values, dict):
        return text
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _best(values: Sequence[float], pick: Callable[[list[float]], float]) -> set[int]:
    """Places of the best value, ties included; nan is never one."""
    known = [value for value in values if not math.isnan(value)]
    return {place for place, value in enumerate(values) if known and value == pick(known)}


# Words and numbers


def _protocol(name: str) -> str:
    return f"protocol {name} ({_PROTOCOLS[name]})" if name in _PROTOCOLS else f"protocol {name}"


def _severities(name: str) -> str:
    return _SEVERITIES.get(name, name)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _short(value: float, decimals: int = 3) -> str:
    """A score as the paper prints it: ``.950``."""
    if math.isnan(value):
        return MISSING
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:z.{decimals}f}")


def _mean_sd(mean: float, sd: float) -> str:
    return _short(mean) if math.isnan(sd) else f"{_short(mean)}±{_short(sd)}"


def _printed_mean(score: Score | None) -> float:
    """As it is printed, so that what looks equal ties."""
    return math.nan if score is None else round(score.mean, 3)


def _plain(value: float) -> str:
    """Three digits, all digits of a whole number; a dash for what is not a number."""
    if not math.isfinite(value):
        return MISSING
    return f"{value:.0f}" if value == round(value) or abs(value) >= 1000.0 else f"{value:.3g}"


def _repetitions(counts: Sequence[int], in_paper: int | None = None) -> str:
    """A sentence that says how many there are."""
    if not counts:
        return "No rows yet."
    paper = "" if in_paper is None else f"; in the paper: {in_paper}"
    return f"Repetitions: {_range(counts)}{paper}."


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


# Markdown, LaTeX, HTML

_LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    "[": "{[}",  # else an argument to the line break before it
    "]": "{]}",
    "*": "{*}",
    '"': "''",
    "±": r"$\pm$",
    "\n": " ",
}
_MINUS = re.compile(r"(?<![\w)])-(?=[\d.])")


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_|<\[\]~$])", r"\\\1", " ".join(text.split()))


def _markdown_cell(cell: Cell) -> str:
    text = _markdown(cell.text)
    text = f"**{text}**" if cell.bold and text else text
    return f"{text} / {_markdown(cell.detail)}" if cell.detail else text


def _latex(text: str) -> str:
    marked = _MINUS.sub("\0", text)
    escaped = "".join(_LATEX_CHARACTERS.get(character, character) for character in marked)
    return escaped.replace("\0", "$-$")


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_lines(row: Sequence[Cell]) -> list[str]:
    texts = [_latex(cell.text) for cell in row]
    bold = [
        rf"\textbf{{{text}}}" if cell.bold else text for cell, text in zip(row, texts, strict=True)
    ]
    lines = [_latex_line(bold)]
    if any(cell.detail for cell in row):
        small = [rf"\scriptsize {_latex(cell.detail)}" if cell.detail else "" for cell in row]
        lines.append(_latex_line(small))
    return lines


def _html_class(names_rows: bool) -> str:
    return ' class="name"' if names_rows else ""


def _html_cell(cell: Cell) -> str:
    text = html.escape(cell.text)
    text = f"<b>{text}</b>" if cell.bold else text
    return f"{text}<br><small>{html.escape(cell.detail)}</small>" if cell.detail else text
