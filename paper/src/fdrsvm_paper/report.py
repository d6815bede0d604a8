"""The reproduction's page: one file, no network, no scripts, readable on a phone.

Every figure and table has a paragraph: how to read it, which is fixed, and what it says, which is
computed from the rows.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fdrsvm.core.files import write_atomically
from fdrsvm_paper import findings
from fdrsvm_paper.drawing import Figure, as_svg
from fdrsvm_paper.findings import plural, rows_of, setting_name
from fdrsvm_paper.protocols import PROTOCOLS
from fdrsvm_paper.summary import SEVERITIES, Rows

__all__ = ["Printable", "write_report"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>FDR-SVM: the paper, reproduced</title>
<link rel="icon" href="data:,">
<style>
body {{ font: 16px/1.55 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 68rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; }}
h2 {{ font-size: 1.3rem; margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem; }}
h3 {{ font-size: 1.1rem; margin-top: 2rem; }}
h4 {{ font-size: 1rem; margin: 0 0 .3rem; }}
p, ul, dl {{ max-width: 44rem; }}
a {{ color: #1f5f8b; }}
nav ul {{ padding-left: 1.2rem; }}
.figures {{ display: grid; gap: 2rem;
           grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }}
figure {{ margin: 0; max-width: 36rem; min-width: 0; }}
figcaption {{ font-size: .92rem; }}
@media (min-width: 60rem) {{
  figure:only-child {{ display: grid; grid-template-columns: 34rem 1fr; column-gap: 2rem;
                      max-width: none; }}
  figure:only-child h4 {{ grid-column: 1 / -1; }}
}}
svg {{ width: 100%; height: auto; }}
.table {{ margin-top: 2rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }}
caption {{ display: none; }}
th, td {{ text-align: right; padding: .3rem .6rem; border-bottom: 1px solid #ddd;
         white-space: nowrap; vertical-align: top; font-weight: normal; }}
thead th {{ font-weight: bold; }}
th.name {{ text-align: left; }}
th.name:first-child {{ position: sticky; left: 0; background: #fff; }}
@media (max-width: 40rem) {{
  th.name {{ white-space: normal; min-width: 4.5rem; max-width: 7.5rem; }}
}}
td small {{ color: #666; }}
p.note {{ color: #666; font-size: .85rem; margin: .3rem 0; }}
footer {{ margin-top: 3rem; border-top: 1px solid #ddd; font-size: .9rem; }}
dt {{ font-weight: bold; margin-top: .6rem; }}
dd {{ margin-left: 1rem; }}
dd ul {{ margin: 0; padding-left: 1rem; }}
code {{ overflow-wrap: anywhere; }}
</style>
</head>
<body>
<h1>The paper, reproduced</h1>
{lead}
<nav aria-label="Contents">
<h2>Contents</h2>
<ul>
{contents}
</ul>
</nav>
<main>
{sections}
</main>
<footer>
<h2 id="run">How this was made</h2>
<p>{made}</p>
{run}
</footer>
</body>
</html>
"""

_LEAD = (
    "Experiments of the paper on the federated distributionally robust SVM (FDR-SVM, UAI 2025), "
    "run again and shown beside the numbers it prints. A further method, "
    "the certified bundle, is in every comparison: after each round it knows how far from the best "
    "possible model it can still be."
)
_PROTOCOL_WORDS = {
    "paper-code": "as the authors' scripts behave",
    "text": "as the paper's text describes",
}
_MADE = (
    "All numbers come from stored rows, one for each repetition; tables, figures and the sentences "
    "about them are computed from these rows and nothing else."
)


class Printable(Protocol):
    """A table that can be put into a page."""

    @property
    def title(self) -> str:
        """Its caption."""
        ...

    def html(self) -> str:
        """The table in a ``div`` of class ``scroll``, and its notes."""
        ...


Says = Callable[[Rows, str], str]  # rows of a file and what follows in the name -> sentences


@dataclass(frozen=True)
class _Kind:
    """Figures or tables whose names begin alike."""

    prefix: str
    file: str  # whose rows they show, without the protocol
    reading: str
    says: Says


@dataclass(frozen=True)
class _Section:
    key: str
    title: str
    about: str
    figures: tuple[_Kind, ...] = ()
    tables: tuple[_Kind, ...] = ()


def _joining_figure_says(rows: Rows, part: str) -> str:
    return findings.joining_says(rows, part or "all")


def _joining_table_says(rows: Rows, part: str) -> str:
    if "plant" in part:
        return findings.joining_says(rows)
    return findings.joining_by_leak_says(rows)


def _table2_says(rows: Rows, part: str) -> str:
    return findings.table2_agrees(rows) if "side" in part else findings.table2_leads(rows)


_SECTIONS = (
    _Section(
        "table1",
        "Table 1: seven public data sets",
        "Rows of seven data sets of the UCI repository are dealt to four clients; eight methods of "
        "the paper and ours are tuned by cross-validation and tested on rows held back. F-1 is 1 "
        "for a perfect classifier, and 0 for one that finds nothing.",
        figures=(
            _Kind(
                "table1",
                "table1",
                "One panel a data set, one line a method; to the right is better. Filled: ours. "
                "Hollow: the paper. Bars are one standard deviation over repetitions.",
                lambda rows, _: findings.table1_agrees(rows),
            ),
        ),
        tables=(
            _Kind(
                "table1",
                "table1",
                "The same in numbers: our mean and standard deviation, and below them the paper's "
                "with the difference in the paper's standard deviations.",
                lambda rows, _: findings.table1_leads(rows),
            ),
        ),
    ),
    _Section(
        "wilcoxon",
        "Wilcoxon tests: is ours better than the usual?",
        "On each data set the best of the paper's three methods is compared with each federated "
        "baseline, repetition by repetition, by a one-sided signed-rank test.",
        tables=(
            _Kind(
                "wilcoxon",
                "table1",
                'A yes means that the test rejects "no better" at the level 0.05; there are many '
                "tests, and nothing is corrected for that.",
                lambda rows, _: findings.wilcoxon_says(rows),
            ),
        ),
    ),
    _Section(
        "table2",
        "Table 2: leak detection at four plants",
        "Four plants run the same simulated pump and have each seen one size of leak. The paper's "
        "scripts contradict each other about these sizes, so both sets are run and shown side by "
        "side. Five settings: nominal, plants of unequal size, few faults, both, wrong labels.",
        figures=(
            _Kind(
                "table2",
                "table2",
                "One row of panels a setting, one column a set of leaks; within a panel one line a "
                "method, to the right is better. Filled: ours. Hollow: the paper, the same in both "
                "columns. Bars are one standard deviation over repetitions.",
                lambda rows, _: findings.table2_agrees(rows),
            ),
        ),
        tables=(
            _Kind(
                "table2",
                "table2",
                "Numbers behind the figure: our mean and standard deviation of F-1 beside the "
                "paper's, the difference in the paper's standard deviations.",
                _table2_says,
            ),
        ),
    ),
    _Section(
        "joining",
        "Does joining pay?",
        "What a plant gets from training on its own rows, from the federation, and from a model of "
        "all rows pooled, which is what the federation avoids. A plant alone has never seen the "
        "other plants' leaks.",
        figures=(
            _Kind(
                "joining",
                "joining",
                "F-1 upwards, plant by plant, with the number of its training rows; bars are one "
                "standard deviation over repetitions. Joining pays where the blue diamond lies "
                "above the green dot.",
                _joining_figure_says,
            ),
        ),
        tables=(
            _Kind(
                "joining",
                "joining",
                "The gain is the federated model's F-1 less that of the plant alone, paired over "
                "repetitions.",
                _joining_table_says,
            ),
        ),
    ),
    _Section(
        "sensitivity",
        "Sensitivity: how much do the parameters matter?",
        "One parameter is changed, the others stay. mCCR is the share of test rows classified "
        "correctly, averaged over repetitions. T: rounds; rho: ADMM's penalty; gamma: SM's step; "
        "beta: the radius is 1/(beta N), so small beta means much caution; kappa: what a wrong "
        "label costs the adversary.",
        figures=(
            _Kind(
                "sensitivity",
                "sensitivity",
                "mCCR upwards, a row of panels a parameter, a column a set of leaks, a curve a "
                "method. Bands are one standard deviation over repetitions; the dashed line is the "
                "best central model. A flat curve needs no tuning.",
                findings.sensitivity_says,
            ),
        ),
    ),
    _Section(
        "scalability",
        "Scalability: how does time grow?",
        "CPU seconds of server and clients together until a method first has the best accuracy of "
        "its run, on artificial data. (a) more clients share 1000 rows; (b) more clients with 100 "
        "rows each; (c) more rows for ten clients; (d) more features.",
        figures=(
            _Kind(
                "scalability",
                "scalability",
                "Seconds upwards, each grid line ten times the one below; lower is better. Lines "
                "are medians, bands the middle half of the repetitions. A steeper line grows "
                "faster.",
                lambda rows, _: findings.scalability_says(rows),
            ),
        ),
        tables=(
            _Kind(
                "scalability",
                "scalability",
                "From the smallest size to the largest. Growth is a power: at 1, twice the size "
                "takes twice the time; at 0 size does not matter.",
                lambda rows, _: findings.growth_says(rows),
            ),
        ),
    ),
    _Section(
        "rounds",
        "Rounds to a certified gap",
        "Between plants a round costs far more than computing. The certified gap is proved from "
        "the clients' answers: a gap of 1e-4 means that no model can have a worst-case risk lower "
        "by more than 0.01 %. The parameters of ADMM, ADMM-SC and SM are picked afterwards, which "
        "nobody can do in practice; the bundle has none to pick.",
        figures=(
            _Kind(
                "convergence",
                "convergence",
                "Certified relative gap downwards against rounds, both on logarithmic axes; one "
                "panel a data set, one curve a method. Further down and further left is better.",
                findings.convergence_says,
            ),
            _Kind(
                "rounds",
                "rounds",
                "One panel a target, one line a data set; to the left is better. A mark is the "
                "median over repetitions, a hollow arrow at the right edge means that at least "
                "half of them did not get there.",
                findings.rounds_says,
            ),
        ),
        tables=(
            _Kind(
                "rounds",
                "rounds",
                "The same in numbers, with the parameter that did best.",
                lambda rows, _: findings.rounds_compare(rows),
            ),
        ),
    ),
)


def write_report(
    rows: Mapping[str, Rows],
    tables: Mapping[str, Printable],
    figures: Mapping[str, Figure],
    run: Mapping[str, Any],
    folder: Path,
) -> Path:
    """Write ``index.html`` into ``folder`` and return its path.

    Parameters
    ----------
    rows : mapping
        From the name of a row file, as ``"table1-text"``, to its rows.
    tables, figures : mapping
        By name. A name begins with the study (``table1``, ``wilcoxon``, ``table2``, ``joining``,
        ``sensitivity``, ``scalability``, ``rounds``, ``convergence``), then the protocol if it has
        one, then a severity set, a setting or what else tells it from others
        (``"table2-text-labelling"``, ``"joining-text-paper-plant"``). Anything else stands at the
        end, under "More".
    run : mapping
        How it was made: machine, versions, seeds, commands, seconds. Shown as it is.
    folder : Path
        Made if need be.

    Returns
    -------
    Path
        Of the page, which needs no other file.
    """
    sections = _sections(rows, tables, figures)
    contents = "\n".join(
        f'<li><a href="#{key}">{html.escape(title)}</a></li>'
        for key, title in [*((key, title) for key, title, _ in sections), _MADE_ENTRY]
    )
    page = _PAGE.format(
        lead=f"<p>{html.escape(_LEAD)}</p>\n{_overview(rows, tables, figures)}",
        contents=contents,
        sections="\n".join(text for _, _, text in sections),
        made=html.escape(_MADE),
        run=_describe(run),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    write_atomically(path, page.encode())
    return path


_MADE_ENTRY = ("run", "How this was made")


def _overview(
    rows: Mapping[str, Rows], tables: Mapping[str, Printable], figures: Mapping[str, Figure]
) -> str:
    n_rows = sum(map(len, rows.values()))
    present = [name for name in PROTOCOLS if any(_protocol_of(key) == name for key in rows)]
    words = [f"<b>{name}</b> ({html.escape(_PROTOCOL_WORDS[name])})" for name in present]
    protocols = f" Protocols: {' and '.join(words)}." if words else ""
    said = [
        f"{title}, {protocol}: {text}"
        for title, agrees in (
            ("Table 1", findings.table1_agrees),
            ("Table 2", findings.table2_agrees),
        )
        for protocol in present
        if (text := agrees(rows_of(rows, f"{title.lower().replace(' ', '')}-{protocol}")))
    ]
    found = "".join(f"\n<p>{html.escape(text)}</p>" for text in said)
    return (
        f"<p>This page has {plural(len(figures), 'figure')} and {plural(len(tables), 'table')} "
        f"from {plural(n_rows, 'row')}."
        f"{protocols}</p>{found}"
    )


def _sections(
    rows: Mapping[str, Rows], tables: Mapping[str, Printable], figures: Mapping[str, Figure]
) -> list[tuple[str, str, str]]:
    """Key, title and text of each section that has something to show."""
    shown: set[str] = set()
    found = []
    for section in _SECTIONS:
        parts, used = _section_parts(section, rows, tables, figures)
        shown |= used
        if parts:
            found.append((section.key, section.title, _as_section(section, parts)))
    rest = [
        _figure_html(name, figures[name], "", "") for name in figures if f"f:{name}" not in shown
    ]
    rest += [
        _table_html(table, "", "") for name, table in tables.items() if f"t:{name}" not in shown
    ]
    if rest:
        more = _Section("more", "More", "What belongs to none of the studies above.")
        found.append((more.key, more.title, _as_section(more, rest)))
    return found


def _as_section(section: _Section, parts: Iterable[str]) -> str:
    return (
        f'<section id="{section.key}">\n<h2>{html.escape(section.title)}</h2>\n'
        f"<p>{html.escape(section.about)}</p>\n" + "\n".join(parts) + "\n</section>"
    )


def _section_parts(
    section: _Section,
    rows: Mapping[str, Rows],
    tables: Mapping[str, Printable],
    figures: Mapping[str, Figure],
) -> tuple[list[str], set[str]]:
    """Blocks of a section, protocol by protocol, and what was used for them."""
    parts: list[str] = []
    used: set[str] = set()
    for protocol in (*PROTOCOLS, ""):
        drawn = [
            _figure_html(name, figures[name], kind.reading, _says(kind, rows, name))
            for kind in section.figures
            for name in _named(figures, kind.prefix, protocol)
        ]
        printed = [
            _table_html(tables[name], kind.reading, _says(kind, rows, name))
            for kind in section.tables
            for name in _named(tables, kind.prefix, protocol)
        ]
        for mark, kinds, source in (("f", section.figures, figures), ("t", section.tables, tables)):
            for kind in kinds:
                used |= {f"{mark}:{name}" for name in _named(source, kind.prefix, protocol)}
        if (drawn or printed) and protocol:
            words = _PROTOCOL_WORDS[protocol]
            parts.append(f"<h3>Protocol {protocol}: {html.escape(words)}</h3>")
        if drawn:
            parts.append('<div class="figures">\n' + "\n".join(drawn) + "\n</div>")
        parts += printed
    return parts, used


def _named(names: Iterable[str], prefix: str, protocol: str) -> list[str]:
    return [
        name
        for name in names
        if re.match(rf"{prefix}\b", name) and (_protocol_of(name) or "") == protocol
    ]


def _protocol_of(name: str) -> str | None:
    for protocol in PROTOCOLS:
        if re.search(rf"-{protocol}(?:-|\.|$)", name):
            return protocol
    return None


def _says(kind: _Kind, rows: Mapping[str, Rows], name: str) -> str:
    protocol = _protocol_of(name)
    file = f"{kind.file}-{protocol}" if protocol else kind.file
    part = name.removeprefix(kind.prefix).removeprefix(f"-{protocol}" if protocol else "")
    return kind.says(_in_set(rows_of(rows, file), part.split("-")), part.removeprefix("-"))


def _in_set(rows: Rows, words: Iterable[str]) -> Rows:
    """The rows of the severity set that is named, or all."""
    named = [word for word in words if word in SEVERITIES]
    return [row for row in rows if row.get("severities") in named] if named else rows


def _figure_html(name: str, figure: Figure, reading: str, says: str) -> str:
    title = _figure_title(name)
    return (
        f'<figure id="figure-{html.escape(name)}">\n<h4>{html.escape(title)}</h4>\n'
        f"{as_svg(figure, name, title)}\n"
        f"<figcaption>{_paragraph(reading, says)}</figcaption>\n</figure>"
    )


def _table_html(table: Printable, reading: str, says: str) -> str:
    """The title stands outside the box that scrolls, in full."""
    return (
        f'<div class="table">\n<h4>{html.escape(table.title)}</h4>\n{_paragraph(reading, says)}\n'
        f"{table.html()}\n</div>"
    )


_PARTS = {"all": "on all leaks", "own": "on the plant's own leak"}
_STUDIES = {
    "table1": "Table 1 at a glance",
    "table2": "Table 2 at a glance",
    "joining": "F-1 by plant",
    "sensitivity": "Sensitivity",
    "scalability": "Time to the best accuracy",
    "convergence": "Certified gap by round",
    "rounds": "Rounds needed",
}


def _figure_title(name: str) -> str:
    study, _, rest = name.partition("-")
    protocol = _protocol_of(name)
    part = f"-{rest}".replace(f"-{protocol}", "", 1).strip("-") if rest else ""
    word = _PARTS.get(part, setting_name(part))
    norm = f"norm {part}" if study in ("convergence", "rounds") else word
    title = _STUDIES.get(study, study)
    return f"{title}, {norm}" if part else title


def _paragraph(reading: str, says: str) -> str:
    told = f" <b>Here:</b> {html.escape(says)}" if says else ""
    return f"<p>{html.escape(reading)}{told}</p>" if reading or told else ""


def _describe(value: Any) -> str:
    """Nested mappings as lists of terms, sequences as lists, the rest as text."""
    if isinstance(value, Mapping):
        if not any(isinstance(each, Mapping | list | tuple) for each in value.values()):
            return _bullets(f"{_words(name)}: {_describe(each)}" for name, each in value.items())
        terms = (
            f"<dt>{_words(name)}</dt><dd>{_describe(each)}</dd>" for name, each in value.items()
        )
        return f"<dl>{''.join(terms)}</dl>"
    if isinstance(value, list | tuple):
        return _bullets(map(_describe, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"<code>{html.escape(str(value))}</code>"


def _words(name: object) -> str:
    return html.escape(str(name).replace("_", " "))


def _bullets(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
