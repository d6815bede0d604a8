"""The reproduction's page: one file, no network, no scripts, readable on a phone.

Every figure and table has a paragraph: how to read it, which ``templates/report.toml`` has, and
what it says, which is computed from the rows. ``templates/report.html.j2`` writes the page.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from markupsafe import Markup

from fdrsvm.core.files import write_atomically
from fdrsvm.inspection.rendering import render
from fdrsvm_paper import findings
from fdrsvm_paper.drawing import Figure, as_svg
from fdrsvm_paper.findings import plural, rows_of, setting_name
from fdrsvm_paper.protocols import PROTOCOLS
from fdrsvm_paper.summary import SEVERITIES, Rows

__all__ = ["Printable", "write_report"]

_PROTOCOL_WORDS = {
    "paper-code": "as the authors' scripts behave",
    "text": "as the paper's text describes",
}
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

Says = Callable[[Rows, str], str]  # rows of a file and what follows in the name -> sentences
_FIGURES_SAY: dict[str, Says] = {
    "table1": lambda rows, _: findings.table1_agrees(rows),
    "table2": lambda rows, _: findings.table2_agrees(rows),
    "joining": lambda rows, part: findings.joining_says(rows, part or "all"),
    "sensitivity": findings.sensitivity_says,
    "scalability": lambda rows, _: findings.scalability_says(rows),
    "convergence": findings.convergence_says,
    "rounds": findings.rounds_says,
}
_TABLES_SAY: dict[str, Says] = {
    "table1": lambda rows, _: findings.table1_leads(rows),
    "wilcoxon": lambda rows, _: findings.wilcoxon_says(rows),
    "table2": lambda rows, part: (
        findings.table2_agrees(rows) if "side" in part else findings.table2_leads(rows)
    ),
    "joining": lambda rows, part: (
        findings.joining_says(rows) if "plant" in part else findings.joining_by_leak_says(rows)
    ),
    "scalability": lambda rows, _: findings.growth_says(rows),
    "rounds": lambda rows, _: findings.rounds_compare(rows),
}


class Printable(Protocol):
    """A table that can be put into a page."""

    @property
    def title(self) -> str:
        """Its caption."""
        ...

    def html(self) -> str:
        """The table in a ``div`` of class ``scroll``, and its notes."""
        ...


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
    present = [name for name in PROTOCOLS if any(_protocol_of(key) == name for key in rows)]
    agreement = [
        f"{title}, {protocol}: {text}"
        for title, agrees in (
            ("Table 1", findings.table1_agrees),
            ("Table 2", findings.table2_agrees),
        )
        for protocol in present
        if (text := agrees(rows_of(rows, f"{title.lower().replace(' ', '')}-{protocol}")))
    ]
    page = render(
        "report.html.j2",
        "fdrsvm_paper",
        n_figures=plural(len(figures), "figure"),
        n_tables=plural(len(tables), "table"),
        n_rows=plural(sum(map(len, rows.values())), "row"),
        protocols={name: _PROTOCOL_WORDS[name] for name in present},
        agreement=agreement,
        sections=_sections(rows, tables, figures),
        run=run,
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    write_atomically(path, page.encode())
    return path


def _sections(
    rows: Mapping[str, Rows], tables: Mapping[str, Printable], figures: Mapping[str, Figure]
) -> list[dict[str, Any]]:
    """The sections that have something to show, each protocol by protocol."""
    text = files("fdrsvm_paper").joinpath("templates/report.toml").read_text(encoding="utf-8")
    left_figures, left_tables = dict(figures), dict(tables)
    sections = []
    for section in tomllib.loads(text)["section"]:
        groups = []
        for protocol in (*PROTOCOLS, ""):
            drawn = [
                _figure(name, left_figures.pop(name), kind["reading"], says)
                for kind in section.get("figures", ())
                for name, says in _said(left_figures, kind, protocol, rows, _FIGURES_SAY)
            ]
            printed = [
                _table(left_tables.pop(name), kind["reading"], says)
                for kind in section.get("tables", ())
                for name, says in _said(left_tables, kind, protocol, rows, _TABLES_SAY)
            ]
            if drawn or printed:
                words = _PROTOCOL_WORDS.get(protocol)
                groups.append(
                    {"protocol": protocol, "words": words, "figures": drawn, "tables": printed}
                )
        if groups:
            sections.append({**section, "about": _one_line(section["about"]), "groups": groups})
    if left_figures or left_tables:
        drawn = [_figure(name, figure) for name, figure in left_figures.items()]
        printed = [_table(table) for table in left_tables.values()]
        group = {"protocol": "", "words": None, "figures": drawn, "tables": printed}
        about = "What belongs to none of the studies above."
        sections.append({"key": "more", "title": "More", "about": about, "groups": [group]})
    return sections


def _said(
    names: Iterable[str],
    kind: Mapping[str, str],
    protocol: str,
    rows: Mapping[str, Rows],
    say: Mapping[str, Says],
) -> list[tuple[str, str]]:
    """Names of a kind and a protocol, each with what its rows say."""
    prefix, suffix = kind["prefix"], f"-{protocol}" if protocol else ""
    of_file = rows_of(rows, kind.get("file", prefix) + suffix)
    said = []
    for name in names:
        if re.match(rf"{prefix}\b", name) and _protocol_of(name) == protocol:
            part = name.removeprefix(prefix).removeprefix(suffix).removeprefix("-")
            levels = [word for word in part.split("-") if word in SEVERITIES]
            own = [row for row in of_file if not levels or row.get("severities") in levels]
            said.append((name, say[prefix](own, part)))
    return said


def _protocol_of(name: str) -> str:
    """The protocol in a name; empty if it has none."""
    for protocol in PROTOCOLS:
        if re.search(rf"-{protocol}(?:-|\.|$)", name):
            return protocol
    return ""


def _figure(name: str, figure: Figure, reading: str = "", says: str = "") -> dict[str, Any]:
    study, _, rest = name.partition("-")
    part = f"-{rest}".replace(f"-{_protocol_of(name)}", "", 1).strip("-") if rest else ""
    title = _STUDIES.get(study, study)
    if part:
        is_norm = study in ("convergence", "rounds")
        title += f", norm {part}" if is_norm else f", {_PARTS.get(part, setting_name(part))}"
    svg = Markup(as_svg(figure, name, title))  # noqa: S704
    return {"name": name, "title": title, "svg": svg, "reading": _one_line(reading), "says": says}


def _table(table: Printable, reading: str = "", says: str = "") -> dict[str, Any]:
    content = Markup(table.html())  # noqa: S704
    return {"title": table.title, "html": content, "reading": _one_line(reading), "says": says}


def _one_line(text: str) -> str:
    return " ".join(text.split())
