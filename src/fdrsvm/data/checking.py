"""All that is wrong with clients' files, at once: ``fdrsvm check``.

Written here, since what there is answers other questions: skrub's TableReport and ydata-profiling
describe one pandas table on a page, and pandera and Great Expectations hold a table against rules
that somebody has written first. None compares plants with each other (units, names, rows in two of
them), looks for columns that give the label away, or knows what to type; and each needs pandas and
more, several times the size of this package's own dependencies. Taken from them: pandera's way to
list all failures instead of the first one, and its guess of rules from data, here a contract.

"stop" is exactly what ``read_rows`` refuses, or labels of one class: a report without it can be
trained on with the same settings.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.texts import listed
from fdrsvm.data.classes import check_labels, check_leaks, propose_label
from fdrsvm.data.columns import check_columns, check_sizes, column_names
from fdrsvm.data.comparing import check_same_columns, check_twice, check_units
from fdrsvm.data.contract import Feature, FeatureContract, Missing, read_contract
from fdrsvm.data.findings import (
    MOST_NAMED,
    SEVERITIES,
    Finding,
    Notebook,
    Sheet,
    read_sheets,
    to_ignore,
)
from fdrsvm.data.rows import DataSettings
from fdrsvm.data.tables import read_labels
from fdrsvm.data.units import split_unit
from fdrsvm.errors import FDRSVMError

__all__ = ["Finding", "Report", "check_data"]

_MARGIN = 0.1  # of the range of what was seen
_BY_CONTRACT = ("missing",)  # kinds that a contract settles


@dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes
    ----------
    findings : tuple of Finding
        Worst first.
    settings : DataSettings
        What was checked.
    ignore : tuple of str
        Columns that it proposes to leave out, those that the settings leave out included.
    contract : FeatureContract or None
        A proposal: the other columns, with limits from the readings; None where no feature or no
        two labels are left.
    fault : str or None
        As given.
    """

    findings: tuple[Finding, ...]
    settings: DataSettings
    ignore: tuple[str, ...]
    contract: FeatureContract | None
    fault: str | None = None

    @property
    def can_train(self) -> bool:
        """Whether training takes these data with these settings."""
        return not any(finding.severity == "stop" for finding in self.findings)

    @property
    def to_mend(self) -> tuple[Finding, ...]:
        """What no option helps against: the files themselves must be mended."""
        return tuple(
            finding
            for finding in self.findings
            if finding.severity == "stop"
            and finding.column not in self.ignore
            and (finding.kind not in _BY_CONTRACT or self.contract is None)
            and (finding.kind != "label" or finding.column == self.settings.label)
        )

    @property
    def lacks_values(self) -> bool:
        """Whether rows lack a value, and nothing says what becomes of them."""
        return any(one.kind == "missing" and one.severity == "stop" for one in self.findings)

    def command(self, contract: Path | None = None) -> str:
        """What to type next, with a contract that ``contract.save`` wrote there."""
        given = self.settings
        parts = ["fdrsvm", "fit", *(shlex.quote(str(path)) for path in given.paths)]
        parts += [f"--client {shlex.quote(f'{name}={path}')}" for name, path in given.named.items()]
        if given.client_column is not None:
            parts.append(f"--client-column {shlex.quote(given.client_column)}")
        if given.label != DataSettings.label:
            parts.append(f"--label {shlex.quote(given.label)}")
        if self.fault is not None:
            parts.append(f"--fault {shlex.quote(self.fault)}")
        chosen = contract or given.contract
        if chosen is None and (given.missing == "drop" or self.lacks_values):
            parts.append("--missing drop")
        if chosen is not None:
            parts.append(f"--contract {shlex.quote(str(chosen))}")
        return " ".join([*parts, to_ignore(*self.ignore)]).rstrip()


def check_data(settings: DataSettings, *, fault: str | None = None) -> Report:
    """Check every file, and all of them together; nothing is raised for what data hold.

    Parameters
    ----------
    settings : DataSettings
        The files and what their columns mean, as ``fit`` would get them. With a contract, its
        rules are checked too.
    fault : str, optional
        The class looked for; by default the rarer one.

    Examples
    --------
    >>> from pathlib import Path
    >>> from fdrsvm.data.checking import check_data
    >>> from fdrsvm.data.rows import DataSettings
    >>> report = check_data(DataSettings(paths=(Path("there-is-none.csv"),)))
    >>> report.can_train, report.findings[0].kind, report.findings[0].client
    (False, 'unreadable', 'there-is-none')
    """
    notes = Notebook()
    contract = read_given_contract(settings, notes)
    settings, sheets = read_with_labels(settings, notes)
    classes = check_labels(sheets, settings.label, fault, notes)
    drops = settings.missing == "drop"
    excluded = check_columns(sheets, notes, has_rules=contract is not None, drops=drops)
    leaks = check_leaks(sheets, excluded, classes, notes)
    to_rename: set[str] = set()
    if contract is None:
        to_rename = check_same_columns(sheets, notes)
    else:
        hold_against(contract, sheets, settings, notes)
    if sheets and not column_names(sheets):
        notes.add("column", "stop", "there is no column of readings", "ignore fewer columns")
    check_units(sheets, excluded, notes)
    check_twice(sheets, excluded, notes)
    check_sizes(sheets, {*excluded, *leaks}, notes)
    if contract is None:
        # What only some files have, or is missing mostly.
        useless = {
            one.column for one in notes.findings if one.remedy == to_ignore(one.column or "")
        }
        excluded |= {*leaks, *(name for name in column_names(sheets) if name in useless)}
        contract = propose_contract(sheets, excluded, list(classes))
    # What a stroke of the pen makes a feature is not proposed to be left out.
    to_mend = {one.column for one in notes.findings if one.kind == "text" and one.row is not None}
    kept = {*to_rename, *to_mend} - excluded | set(() if contract is None else contract.names)
    left_out = [
        name
        for name in column_names(sheets)
        if (name in excluded if contract is None else name not in kept)
    ]
    ignore = tuple(dict.fromkeys([*settings.ignore, *left_out]))
    ordered = sorted(notes.findings, key=lambda one: SEVERITIES.index(one.severity))
    return Report(tuple(ordered), settings, ignore, contract, fault)


def read_with_labels(settings: DataSettings, notes: Notebook) -> tuple[DataSettings, list[Sheet]]:
    """All files; if none has the column of labels, with one that may be meant in its place."""
    sheets = read_sheets(settings, notes)
    if sheets and not any(settings.label in sheet.table.by_name for sheet in sheets):
        assumed = propose_label(sheets, settings.label, notes)
        if assumed is not None:
            settings = replace(settings, label=assumed)
            sheets = read_sheets(settings, Notebook())
    unseen = set(settings.ignore).difference(*(sheet.table.columns for sheet in sheets))
    if unseen and sheets:
        what = f"--ignore: no file has {listed(map(repr, sorted(unseen)), MOST_NAMED)}"
        notes.add("option", "stop", what, "leave it away, or correct the name")
    return settings, [sheet.without_alike(settings.label) for sheet in sheets]


def read_given_contract(settings: DataSettings, notes: Notebook) -> FeatureContract | None:
    """The contract to hold against the data, if one is named and can be read."""
    if settings.contract is None:
        return None
    try:
        return read_contract(settings.contract)
    except FDRSVMError as error:
        remedy = "--contract FILE: name another (--write-contract FILE proposes one)"
        notes.add("contract", "stop", f"cannot be read: {error}", remedy)
        return None


def hold_against(
    contract: FeatureContract, sheets: Sequence[Sheet], settings: DataSettings, notes: Notebook
) -> None:
    """Every breach of a contract, as a finding."""
    for sheet in sheets:
        others = (settings.label, settings.client_column or settings.label, *settings.ignore)
        y = None
        if sheet.labels is not None and (sheet.labels != "").all():
            y = read_labels(sheet.table[settings.label])[0]
        rest = sheet.table.without(*others)
        for one in contract.violations(rest, y, client=sheet.where, clip=settings.clip):
            count = "" if one.example_row is None else f"; {one.count} of {sheet.table.n_rows} not"
            notes.add(
                "contract",
                "stop",
                f"contract: {one.rule}{count}",
                against(one.rule, one.column),
                client=sheet.where,
                column=settings.label
                if one.column == "y" and "y" not in contract.names
                else one.column,
                row=one.example_row,
            )


def against(rule: str, column: str | None) -> str:
    """What helps where a rule of a contract is broken."""
    if rule.startswith("must not be there"):
        return to_ignore(column or "")
    if rule.startswith("must be there"):
        return "add the column, or rename the one that is meant"
    if rule.startswith(("must be at", "must lie")):
        return "correct the readings; or --clip, which moves them to the limit"
    return "correct these cells, or agree on another contract"


def propose_contract(
    sheets: Sequence[Sheet], excluded: Iterable[str], classes: Sequence[str]
) -> FeatureContract | None:
    """Features that all files have, with units from their names and limits from the readings."""
    left_out = set(excluded)
    features = []
    for name in column_names(sheets):
        cells = [sheet.cells[name] for sheet in sheets if name in sheet.cells]
        values = np.concatenate([one.good for one in cells])
        if name not in left_out and len(cells) == len(sheets) and len(values):
            is_missing = any(one.missing.any() for one in cells)
            features.append(propose_feature(name, values, is_missing=is_missing))
    if not features or len(classes) < 2:
        return None
    are_numbers = all(sheet.has_numbers for sheet in sheets if sheet.labels is not None)
    labels = sorted(map(int, classes)) if are_numbers else classes
    return FeatureContract(tuple(features), tuple(labels))


def propose_feature(name: str, values: Array, *, is_missing: bool) -> Feature:
    low, high = round_limits(float(values.min()), float(values.max()))
    limits: dict[str, Any] = {"name": name, "unit": split_unit(name)[1], "low": low, "high": high}
    if is_missing and "drop" in get_args(Missing):
        limits["missing"] = "drop"
    elif is_missing:
        limits |= {"missing": "fill", "fill": float(f"{np.median(values):.3g}")}
        limits["fill"] = min(max(limits["fill"], low), high)
    return Feature(**limits)


def round_limits(least: float, largest: float) -> tuple[float, float]:
    """Limits a tenth of the range wider than what was seen, rounded outward to few digits.

    What is never negative stays so.

    >>> round_limits(1168.0, 2886.0), round_limits(0.0, 253.0), round_limits(295.3, 304.5)
    ((900.0, 3100.0), (0.0, 300.0), (294.0, 306.0))
    """
    width = largest - least or max(abs(largest), 1.0)
    step = 10.0 ** math.floor(math.log10(width / 2.0))
    low = math.floor((least - _MARGIN * width) / step) * step
    high = math.ceil((largest + _MARGIN * width) / step) * step
    if least >= 0.0:
        low = max(low, 0.0)
    return min(float(f"{low:.12g}"), least), max(float(f"{high:.12g}"), largest)
