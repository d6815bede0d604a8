"""Checks between rows and between clients: columns, units, rows that occur twice.

Twice     rows with the same readings in all columns that are readings. If columns have few values,
          rows meet by chance: with V possible rows, n (n - 1) / (2 V) pairs are expected even if
          all are equally likely. Where that is 0.01 or more, equal rows are only a note.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.texts import listed
from fdrsvm.data.classes import all_labels
from fdrsvm.data.columns import by_client, column_names, pooled
from fdrsvm.data.findings import (
    MOST_NAMED,
    Notebook,
    Sheet,
    alike_names,
    number_of,
    percent,
    to_ignore,
)
from fdrsvm.data.units import bare_name, guess_units, split_unit

_BY_CHANCE = 0.01
_COPIES = 0.01
_MOST_PAIRS = 10_000  # of names, compared letter by letter
_MOST_TOLD = 20  # columns, one by one


def check_same_columns(sheets: Sequence[Sheet], notes: Notebook) -> set[str]:
    """Every file must have the same features; returns those that have two names, with both."""
    counts = Counter(name for sheet in sheets for name in sheet.cells)
    usual = [name for name in counts if 2 * counts[name] >= len(sheets)]
    renamed: set[str] = set()
    meant: set[str] = set()
    for sheet in sheets:
        lacking = [name for name in usual if name not in sheet.cells and name not in renamed]
        own = [name for name in sheet.cells if counts[name] < len(sheets)]
        twins = find_twins(lacking, own, sheets)
        for name, twin in twins.items():
            if twin not in renamed:
                renamed.add(twin)
                meant.add(name)
                say_renamed(sheet.where, twin, name, notes)
        say_lacking(sheet, [name for name in lacking if name not in twins], counts, notes)
    rare = [name for name in counts if 2 * counts[name] < len(sheets) and name not in renamed]
    for name in rare:
        having = [sheet.where for sheet in sheets if name in sheet.cells]
        what = (
            f"only {listed(having, MOST_NAMED)} {'has' if len(having) == 1 else 'have'} this column"
        )
        notes.add("column", "stop", what, to_ignore(name), client=having[0], column=name)
    return renamed | meant


def find_twins(
    lacking: Sequence[str], own: Sequence[str], sheets: Sequence[Sheet]
) -> dict[str, str]:
    """Columns that are there under another name; whoever has both means two things by them."""
    by_bare = {bare_name(name): name for name in own}
    few = len(lacking) * len(own) <= _MOST_PAIRS
    found = {}
    for name in lacking:
        same = by_bare.get(bare_name(name))
        alike = [same] if same is not None else alike_names(name, own) if few else []
        if alike and not any(name in one.cells and alike[0] in one.cells for one in sheets):
            found[name] = alike[0]
    return found


def say_lacking(
    sheet: Sheet, names: Sequence[str], counts: Mapping[str, int], notes: Notebook
) -> None:
    """Columns that a file has under no name; very many of them in one finding."""
    if len(names) > _MOST_TOLD:
        what = f"lacks {len(names)} columns that other files have: {listed(names, MOST_NAMED)}"
        remedy = "is it of the same machine? if so, add them"
        notes.add("column", "stop", what, remedy, client=sheet.where)
        return
    for name in names:
        what = f"is not in this file, but in {number_of(counts[name], 'other')}"
        remedy = f"add the column, or {to_ignore(name)}"
        notes.add("column", "stop", what, remedy, client=sheet.where, column=name)


def say_renamed(where: str, found: str, name: str, notes: Notebook) -> None:
    """A column that one file calls otherwise, perhaps in another unit."""
    here, there = split_unit(found)[1], split_unit(name)[1]
    differs = here and there and here != there
    what = f"is called {found!r} in this file" + (
        f", in {here} and not in {there}" if differs else ""
    )
    remedy = f"rename it to {name!r}" + (" and convert it" if differs else "")
    notes.add("name", "stop", what, remedy, client=where, column=name)


def check_units(sheets: Sequence[Sheet], skipped: Iterable[str], notes: Notebook) -> None:
    """Columns in which a client seems to use another unit than the others."""
    left_out = set(skipped)
    for name in column_names(sheets):
        held = [(sheet, sheet.cells[name]) for sheet in sheets if name in sheet.cells]
        if name in left_out:
            continue
        for guess in guess_units(by_client(held), name):
            remedy = f"if so, {guess.sum} in {guess.client}"
            notes.add("units", "warn", guess.relation, remedy, client=guess.client, column=name)


def check_twice(sheets: Sequence[Sheet], skipped: Iterable[str], notes: Notebook) -> None:
    """Rows that are there twice, and equal readings with different labels."""
    names = [name for name in column_names(sheets) if name not in set(skipped)]
    table = np.column_stack([pooled(sheets, name) for name in names]) if names else None
    if table is None or len(table) < 2:
        return
    # Rows without any reading are equal, but say nothing.
    table = np.where(np.isfinite(table), table, np.inf) + 0.0
    possible = sum(math.log(len(np.unique(column))) for column in table.T)
    n = len(table)
    by_chance = math.log(n * (n - 1) / 2.0) - possible > math.log(_BY_CHANCE)
    readings = codes_of_rows(table)
    labels = all_labels(sheets)
    has_label = labels != ""
    _, labelled = np.unique(labels.astype(np.str_), return_inverse=True)
    both = readings * (int(labelled.max()) + 1) + labelled
    say_twice(sheets, both, notes, by_chance=by_chance)
    say_contradicting(sheets, readings, np.where(has_label, both, -1), notes, by_chance=by_chance)


def codes_of_rows(table: Array) -> npt.NDArray[np.int64]:
    """The same number for the same row."""
    whole = np.ascontiguousarray(table)
    as_one = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()
    return np.unique(as_one, return_inverse=True)[1].astype(np.int64)


def _place(sheets: Sequence[Sheet], place: int) -> tuple[Sheet, int]:
    """The file, and the number in it, of a row of all files together."""
    for sheet in sheets:
        if place < sheet.table.n_rows:
            return sheet, sheet.row(place)
        place -= sheet.table.n_rows
    raise AssertionError("a row beyond the last")


def say_twice(
    sheets: Sequence[Sheet], codes: npt.NDArray[np.int64], notes: Notebook, *, by_chance: bool
) -> None:
    """Copies of rows, and the first of them."""
    n = len(codes)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    copies = np.flatnonzero(first[inverse] != np.arange(n))
    if not len(copies):
        return
    clients = np.concatenate([sheet.clients for sheet in sheets])
    across = np.count_nonzero(clients[copies] != clients[first[inverse[copies]]])
    sheet, row = _place(sheets, int(copies[0]))
    original, line = _place(sheets, int(first[inverse[copies[0]]]))
    at = f"row {line}" if original is sheet else f"row {line} of {original.where}"
    what = (
        f"{len(copies)} of {n} rows ({percent(len(copies), n)}) are copies of an earlier one, the "
        f"first one of {at}" + (f"; {across} across clients" if across else "")
    )
    if by_chance:
        what += "; columns have few values, so rows may be equal by chance"
    notes.add(
        "twice",
        "note" if by_chance or (len(copies) < _COPIES * n and not across) else "warn",
        what,
        "none, if they were all measured"
        if by_chance
        else "delete copies: one in training and one in "
        "testing make a model look better than it is",
        client=sheet.where,
        row=row,
    )


def say_contradicting(
    sheets: Sequence[Sheet],
    readings: npt.NDArray[np.int64],
    both: npt.NDArray[np.int64],
    notes: Notebook,
    *,
    by_chance: bool,
) -> None:
    """Equal readings with different labels, and the first of them."""
    known = np.flatnonzero(both >= 0)
    if not len(known):
        return
    _, first, inverse = np.unique(readings[known], return_index=True, return_inverse=True)
    differs = both[known] != both[known][first[inverse]]
    places = known[differs]
    if not len(places):
        return
    sheet, row = _place(sheets, int(places[0]))
    original, line = _place(sheets, int(known[first[inverse[differs][0]]]))
    at = f"row {line}" if original is sheet else f"row {line} of {original.where}"
    notes.add(
        "contradiction",
        "note" if by_chance else "warn",
        f"{len(places)} rows ({percent(len(places), len(both))}) have the readings of an earlier "
        f"row and another label; the first is like {at}",
        "none, if columns have few values; else correct the labels"
        if by_chance
        else "correct the labels, or delete these rows",
        client=sheet.where,
        row=row,
    )
