"""Tables of the reproduction: built once, written as Markdown, LaTeX or HTML.

A :class:`Table` holds text only. The builders below make one from the stored rows of one study,
under one protocol where it has several; whatever is missing there is a dash here, and the notes
below the table say what it is.
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
)
from fdrsvm_paper.scalability_study import growth_exponents
from fdrsvm_paper.summary import (
    METHODS,
    MODELS,
    SEVERITIES,
    SHORT_METHODS,
    Gain,
    Joining,
    RoundsNeeded,
    Rows,
    Score,
    Scores,
    far_from_paper,
    in_order,
    leaks_name,
    rounds_needed,
    scaling,
    scores,
    split,
)
from fdrsvm_paper.summary import joining as summarise_joining
from fdrsvm_paper.wilcoxon import Comparison, compare_best, compare_bundle

MISSING: Final = "-"
_LISTED = 6  # incomplete cells named in a note
_PROTOCOLS = {"paper-code": "as the authors' code runs", "text": "as the paper's text says"}
_PANELS = {
    "a": "(a) clients G, N = 1000",
    "b": "(b) clients G, N = 100 G",
    "c": "(c) samples N, G = 10",
    "d": "(d) features P",
}


@dataclass(frozen=True)
class Cell:
    """Text of one cell; beside or below it, smaller, a detail. ``bold`` is of the text only."""

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
        for place, row in enumerate(self.rows):
            if len(row) != len(self.head):
                raise InvalidInputError(
                    "rows",
                    f"must have {len(self.head)} cells each, as the head has",
                    f"row {place} has {len(row)}",
                )

    def markdown(self) -> str:
        """GitHub's Markdown: a bold title, the table, a list of notes."""
        lines = [[_markdown(title) for title in self.head]]
        for row in self.rows:
            texts = [f"**{_markdown(c.text)}**" if c.bold else _markdown(c.text) for c in row]
            details = [f" / {_markdown(cell.detail)}" if cell.detail else "" for cell in row]
            lines.append([text + detail for text, detail in zip(texts, details, strict=True)])
        widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
        rule = ["-" * width for width in widths[: self.n_labels]]
        rule += ["-" * (width - 1) + ":" for width in widths[self.n_labels :]]
        table = [
            "| " + " | ".join(map(str.ljust, cells, widths)) + " |"
            for cells in [lines[0], rule, *lines[1:]]
        ]
        notes = ["", *(f"- {_markdown(note)}" for note in self.notes)] if self.notes else []
        return "\n".join([f"**{_markdown(self.title)}**", "", *table, *notes]) + "\n"

    def latex(self) -> str:
        """LaTeX with booktabs; the details of a row are on a line of their own."""
        body = []
        for row in self.rows:
            texts = [_latex(cell.text) for cell in row]
            marked = zip(row, texts, strict=True)
            body.append([rf"\textbf{{{text}}}" if cell.bold else text for cell, text in marked])
            if any(cell.detail for cell in row):
                details = [_latex(cell.detail) for cell in row]
                body.append([rf"\scriptsize {detail}" if detail else "" for detail in details])
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
                " & ".join(map(_latex, self.head)) + r" \\",
                r"\midrule",
                *(" & ".join(cells) + r" \\" for cells in body),
                r"\bottomrule",
                r"\end{tabular}",
                *([rf"\par\smallskip\raggedright {notes}"] if notes else []),
                r"\end{table}",
                "",
            ]
        )

    def html(self) -> str:
        """A table that scrolls sideways in ``div.scroll``, then notes in ``p.note``."""
        title, n = html.escape(self.title), self.n_labels
        names = [html.escape(name) for name in self.head]
        head = "".join(f'<th scope="col" class="name">{name}</th>' for name in names[:n])
        head += "".join(f'<th scope="col">{name}</th>' for name in names[n:])
        lines = []
        for row in self.rows:
            cells = [_html(cell) for cell in row]
            line = "".join(f'<th scope="row" class="name">{cell}</th>' for cell in cells[:n])
            lines.append(f"<tr>{line}{''.join(f'<td>{cell}</td>' for cell in cells[n:])}</tr>")
        body = "\n".join(lines)
        notes = "".join(f'\n<p class="note">{html.escape(note)}</p>' for note in self.notes)
        return (
            f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">\n<table>\n'
            f"<caption>{title}</caption>\n<thead>\n<tr>{head}</tr>\n</thead>\n"
            f"<tbody>\n{body}\n</tbody>\n</table>\n</div>{notes}\n"
        )


# Tables 1 and 2


def table1(rows: Rows, protocol: str, repetitions: int | None = None) -> Table:
    """Table 1: F-1 on the UCI sets, a row per method, a column per data set, beside the paper's.

    ``repetitions`` is how many a complete run has, by default the most that any cell has.
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
    """Table 2: F-1 on the industrial data beside the paper's, a table per severity set.

    A row per method, a column per setting; ``repetitions`` as in :func:`table1`.
    """
    return [
        _benchmark(
            f"Table 2: F-1 on the industrial data, {leaks_name(name)}, {_protocol(protocol)}",
            scores(part, "setting"),
            SETTING_TITLES,
            TABLE2,
            repetitions,
            REPETITIONS_TABLE2,
        )
        for name, part in split(rows, "severities", SEVERITIES).items()
    ]


def _benchmark(
    title: str,
    scored: Scores,
    columns: Mapping[str, str],
    paper: PaperTable,
    repetitions: int | None,
    paper_repetitions: int,
) -> Table:
    """A row per method: ours, the paper's, and the difference in its standard deviations."""
    shown = _present(columns, scored)
    methods = in_order([*METHODS, *(method for method, _ in scored)], METHODS)
    complete = max([repetitions or 0, *(cell.count for cell in scored.values())])
    body, short = [[Cell(method)] for method in methods], []
    for line, method in zip(body, methods, strict=True):
        for column, heading in shown.items():
            ours, printed = scored.get((method, column)), paper.get(method, {}).get(column)
            count, theirs = 0, _mean_sd(*printed) if printed else ""
            if ours is None:
                line.append(Cell(MISSING, theirs))
            else:
                count = ours.count
                partial = f" ({count} of {complete})" if count < complete else ""
                theirs += f" ({ours.difference(printed):+z.1f})" if printed else ""
                # As it is printed, so that what looks equal ties.
                best = max(round(s.mean, 3) for (_, c), s in scored.items() if c == column)
                is_best = round(ours.mean, 3) == best
                line.append(Cell(_mean_sd(ours.mean, ours.sd) + partial, theirs, is_best))
            if count < complete:
                short.append(f"{method} on {heading} has {count}")
    notes = [
        "Ours / the paper's (difference in the paper's standard deviations); mean ± standard"
        " deviation. Bold: our best in the column.",
        *(_benchmark_notes(scored, paper, complete, paper_repetitions, short) or ["No rows yet."]),
    ]
    left_out = [columns[column] for column in columns if column not in shown]
    if left_out:
        notes.append(f"Not run: {', '.join(left_out)}.")
    return Table(title, ("method", *shown.values()), tuple(map(tuple, body)), tuple(notes))


def _benchmark_notes(
    scored: Scores,
    paper: PaperTable,
    complete: int,
    paper_repetitions: int,
    short: Sequence[str],
) -> list[str]:
    """How many repetitions there are, where there are fewer, and how near the paper they come."""
    if not scored:
        return []
    notes = [f"Repetitions: {complete}; in the paper: {paper_repetitions}."]
    if short:
        others = f", and {len(short) - _LISTED} more cells" if len(short) > _LISTED else ""
        listed = ", ".join(short[:_LISTED])
        notes.append(f"Incomplete: of {complete} repetitions {listed}{others}.")
    compared = [key for key in _printed_keys(paper) if key in scored]
    return [
        *notes,
        f"{len(far_from_paper(scored, paper))} of {len(compared)} cells differ from the paper by"
        " more than one of its standard deviations.",
    ]


def table2_side_by_side(rows: Rows, protocol: str) -> Table:
    """Table 2 with the severity sets and the paper one below the other, method by method."""
    parts = split(rows, "severities", SEVERITIES)
    found = {name: scores(part, "setting") for name, part in parts.items()}
    columns = _present(SETTING_TITLES, [key for part in found.values() for key in part])
    nearest = {key: _nearest(found, key) for key in _printed_keys(TABLE2)}
    body = []
    for method in METHODS:
        paper = TABLE2.get(method, {})
        for name, part in found.items():
            line = [Cell(method), Cell(leaks_name(name))]
            for column in columns:
                ours, printed = part.get((method, column)), paper.get(column)
                text = MISSING if ours is None else _mean_sd(ours.mean, ours.sd)
                if ours and printed:
                    text += f" ({ours.difference(printed):+z.1f})"
                is_nearest = len(found) > 1 and nearest.get((method, column)) == name
                line.append(Cell(text, bold=is_nearest))
            body.append(tuple(line))
        if paper:
            theirs = [_mean_sd(*paper[c]) if c in paper else MISSING for c in columns]
            body.append((Cell(method), Cell("paper"), *map(Cell, theirs)))
    names = [name for name in nearest.values() if name is not None]
    return Table(
        title=f"Table 2, severity sets side by side, {_protocol(protocol)}",
        head=("method", "data", *columns.values()),
        rows=tuple(body),
        notes=(
            "In brackets: distance from the paper's mean, in the paper's standard deviations;"
            " bold: the nearer of the severity sets.",
            *(
                f"Nearest to the paper with {leaks_name(name)}: {names.count(name)} of"
                f" {len(names)} cells."
                for name in found
            ),
            _repetitions(
                [score.count for part in found.values() for score in part.values()],
                f"; in the paper: {REPETITIONS_TABLE2}",
            ),
        ),
        n_labels=2,
    )


def _nearest(found: Mapping[str, Scores], key: tuple[str, str]) -> str | None:
    """The severity set that is nearest to the paper in this cell of table 2."""
    paper = TABLE2[key[0]][key[1]]
    distances = {
        name: abs(part[key].difference(paper)) for name, part in found.items() if key in part
    }
    return min(distances, key=distances.__getitem__) if distances else None


def _printed_keys(paper: PaperTable) -> list[tuple[str, str]]:
    return [(method, column) for method, cells in paper.items() for column in cells]


def _present(titles: Mapping[str, str], keys: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Columns with a result and their titles; all of them if there is none at all."""
    columns = in_order((column for _, column in keys), titles) or list(titles)
    return {column: titles.get(column, column) for column in columns}


# The other tables


def wilcoxon_table(rows: Rows, protocol: str | None = None) -> Table:
    """The Wilcoxon table: which baselines ours is better than, and whether the paper agrees.

    From rows of table 1: a row per baseline, a column per data set; once for the best of ours, once
    for the bundle.
    """
    best, bundle = compare_best(rows), compare_bundle(rows)
    columns = _present(DATA_TITLES, [(c.ours, c.data) for c in [*best, *bundle]])
    chosen = {comparison.data: comparison.ours for comparison in best}
    body = [(Cell("best of ours"), *(Cell(chosen.get(data, MISSING)) for data in columns))]
    for name, comparisons in (("best of ours", best), ("Bundle", bundle)):
        by_key = {(c.baseline, c.data): c for c in comparisons}
        for baseline in BASELINES:
            cells = [_test_cell(by_key.get((baseline, data))) for data in columns]
            body.append((Cell(f"{name} > {baseline}"), *cells))
    under = "" if protocol is None else f", {_protocol(protocol)}"
    return Table(
        title=f"Wilcoxon test{under}: is ours better than the baseline?",
        head=("test", *columns.values()),
        rows=tuple(body),
        notes=(
            f"Yes: the one-sided signed-rank test at {_short(WILCOXON_ALPHA, 2)}, paired by"
            " repetition, finds ours better in F-1. Bold: the paper found otherwise.",
            f"Best of ours: of {', '.join(OURS)} the one with the highest mean on that data,"
            " chosen on the same repetitions, as in the paper; there is no correction for the"
            " number of tests.",
            *_test_counts(best, [c.n for c in [*best, *bundle]]),
        ),
    )


def _test_cell(comparison: Comparison | None) -> Cell:
    if comparison is None:
        return Cell(MISSING)
    words = {True: "yes", False: "no"}
    p = "p < .001" if comparison.p_value < 0.001 else f"p = {_short(comparison.p_value)}"
    said, theirs = words[comparison.rejected], comparison.paper_rejected
    if theirs is None:
        return Cell(said, p)
    return Cell(said, f"{p}, paper {words[theirs]}", theirs != comparison.rejected)


def _test_counts(best: Sequence[Comparison], counts: Sequence[int]) -> list[str]:
    """How often the paper agrees, and on how many pairs that rests."""
    if not counts:
        return ["No pairs yet."]
    judged = [c for c in best if c.paper_rejected is not None]
    agreed = sum(c.rejected == c.paper_rejected for c in judged)
    notes = [
        f"{agreed} of {len(judged)} agree with the paper. Pairs in a test: {_range(counts)}; in"
        f" the paper: {REPETITIONS_TABLE1}."
    ]
    if min(counts) < 5:
        notes.append("A test of fewer than five pairs cannot find anything at this level.")
    return notes


def joining(rows: Rows) -> list[Table]:
    """Whether joining the federation pays, plant by plant and leak by leak.

    For each severity set one by plant, with all plants together first, and one by leak.
    """
    tables = []
    for name, part in split(rows, "severities", SEVERITIES).items():
        by_plant = summarise_joining(part, "plant")
        plants = [
            result
            for whole in summarise_joining(part, "all")
            for result in [whole, *(each for each in by_plant if each.setting == whole.setting)]
        ]
        tables += [
            _joining_table("plant", leaks_name(name), plants),
            _joining_table("leak", leaks_name(name), summarise_joining(part, "leak")),
        ]
    return [table for table in tables if table.rows]


def _joining_table(group: str, leaks: str, results: Sequence[Joining]) -> Table:
    columns = [f"{model}, {where}" for where in ("all", "own") for model in (*MODELS, "gain")]
    body = [
        (
            Cell(SETTING_TITLES.get(result.setting, result.setting)),
            Cell(result.group),
            Cell(_plain(result.n_train)),
            *_joining_cells(result.on_all, result.gain_all),
            *_joining_cells(result.on_own, result.gain_own),
        )
        for result in results
    ]
    return Table(
        title=f"Does joining pay? By {group}, {leaks}",
        head=("setting", group, "rows", *columns),
        rows=tuple(body),
        notes=(
            "Mean F-1 on the whole common test set (all) and on its healthy rows with the plant's"
            " own leak (own).",
            "Gain: federated less local, paired over repetitions (all plants: their mean in each),"
            " mean ± standard error. It pays"
            " (bold) or costs where its 95 % t interval leaves out zero.",
            _repetitions([result.gain_all.count for result in results]),
        ),
        n_labels=2,
    )


def _joining_cells(by_model: Mapping[str, Score], gain: Gain) -> list[Cell]:
    means = [_short(by_model[model].mean) if model in by_model else MISSING for model in MODELS]
    if gain.count == 0:
        return [Cell(text) for text in [*means, MISSING]]
    sign = "+" if round(gain.mean, 3) > 0.0 else ""
    text = f"{sign}{_mean_sd(gain.mean, gain.standard_error)}"
    return [*map(Cell, means), Cell(text, gain.verdict, gain.verdict == "pays")]


def scalability(rows: Rows) -> Table:
    """How cost grows with clients, samples and features: a row for each panel and method."""

    def ends(values: Sequence[float], write: Callable[[float], str]) -> str:
        return " to ".join(write(values[place]) for place in (0, -1))

    lines = scaling(rows)
    body = []
    for panel, curves in groupby(lines, key=lambda line: line.panel):
        in_panel = list(curves)
        largest = max(line.x[-1] for line in in_panel)
        last = [line.seconds[-1] for line in in_panel if line.x[-1] == largest]
        fastest = min((seconds for seconds in last if math.isfinite(seconds)), default=math.nan)
        for line in in_panel:
            is_fastest = line.x[-1] == largest and line.seconds[-1] == fastest
            power = MISSING if math.isnan(line.exponent) else f"{line.exponent:z.2f}"
            body.append(
                (
                    Cell(_PANELS.get(panel, panel)),
                    Cell(line.method),
                    Cell(ends(line.x, _plain)),
                    Cell(ends(line.seconds, _plain), bold=is_fastest),
                    Cell(power),
                    Cell(ends(line.rounds, _plain)),
                    Cell(ends(line.mccr, _short)),
                )
            )
    return Table(
        title="Scalability: CPU seconds to the peak accuracy (mCCR)",
        head=("panel", "method", "size", "seconds", "growth", "rounds", "peak mCCR"),
        rows=tuple(body),
        notes=(
            "From the smallest size to the largest; medians over repetitions. Bold: the fastest of"
            " a panel at its largest size.",
            "Growth: the power p of size that fits the seconds best, size^p.",
            _repetitions([line.count for line in lines]),
        ),
        n_labels=2,
    )


def growth(rows: Rows) -> Table:
    """Powers of size: of a round's seconds, of those to the peak, and of the paper's stated work.

    A row for each panel and method of the scalability study.
    """
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
            for line in growth_exponents(rows)
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
    """Rounds to a certified gap: a row per norm and data set, a column per method.

    A cell has one number per target gap.
    """
    needed = rounds_needed(rows)
    targets = sorted({result.target for result in needed}, reverse=True)
    methods = in_order((result.method for result in needed), SHORT_METHODS)
    listed = ", ".join(f"{target:.0e}".replace("e-0", "e-") for target in targets)
    body = []
    for (norm, data), results in groupby(needed, key=lambda result: (result.norm, result.data)):
        by_target = {(result.method, result.target): result for result in results}
        last = [by_target[key].rounds for key in by_target if key[1] == targets[-1]]
        fewest = min(last, default=math.inf)
        cells = [
            _rounds_cell([by_target.get((method, target)) for target in targets], fewest)
            for method in methods
        ]
        body.append((Cell(DATA_TITLES.get(data, data)), Cell(norm), *cells))
    return Table(
        title=f"Rounds to a certified relative gap of {listed}" if listed else "Rounds",
        head=("data", "norm", *methods),
        rows=tuple(body),
        notes=(
            "Medians over repetitions, with the parameter that did best for each gap, picked"
            " afterwards; the one shown is that of the smallest gap.",
            "A dash: half of the repetitions or more did not get there. In brackets: how many did,"
            " where not all. Bold: fewest rounds to the smallest gap.",
            _repetitions([result.count for result in needed]),
        ),
        n_labels=2,
    )


def _rounds_cell(results: Sequence[RoundsNeeded | None], fewest: float) -> Cell:
    """Rounds to each gap, and the parameter that got to the smallest one."""
    texts = []
    for result in results:
        text = _plain(result.rounds) if result else MISSING
        is_partial = result and 0 < result.reached < result.count
        texts.append(f"{text} ({result.reached})" if result and is_partial else text)
    last = results[-1]
    if not last or not last.reached:
        return Cell(", ".join(texts))
    is_best = math.isfinite(last.rounds) and last.rounds == fewest
    try:
        values = json.loads(last.parameter)
    except ValueError:
        values = None
    parameter = last.parameter
    if isinstance(values, dict):  # of several settings
        parameter = ", ".join(f"{name}={value}" for name, value in values.items())
    return Cell(", ".join(texts), parameter, is_best)


# Words and numbers


def _protocol(name: str) -> str:
    return f"protocol {name} ({_PROTOCOLS[name]})" if name in _PROTOCOLS else f"protocol {name}"


def _short(value: float, decimals: int = 3) -> str:
    """A score as the paper prints it: ``.950``."""
    if math.isnan(value):
        return MISSING
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:z.{decimals}f}")


def _mean_sd(mean: float, sd: float) -> str:
    return _short(mean) if math.isnan(sd) else f"{_short(mean)}±{_short(sd)}"


def _plain(value: float) -> str:
    """Three digits, all digits of a whole number; a dash for what is not a number."""
    if not math.isfinite(value):
        return MISSING
    return f"{value:.0f}" if value == round(value) or abs(value) >= 1000.0 else f"{value:.3g}"


def _repetitions(counts: Sequence[int], addition: str = "") -> str:
    """A sentence that says how many there are."""
    return f"Repetitions: {_range(counts)}{addition}." if counts else "No rows yet."


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


def _latex(text: str) -> str:
    marked = _MINUS.sub("\0", text)
    escaped = "".join(_LATEX_CHARACTERS.get(character, character) for character in marked)
    return escaped.replace("\0", "$-$")


def _html(cell: Cell) -> str:
    text = html.escape(cell.text)
    text = f"<b>{text}</b>" if cell.bold else text
    return f"{text}<br><small>{html.escape(cell.detail)}</small>" if cell.detail else text
