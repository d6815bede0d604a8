"""Checks between rows and between clients: columns, units, rows that occur twice.

Twice     rows with the same readings in all columns that are readings. If columns have few values,
          rows meet by chance: with V possible rows, n (n - 1) / (2 V) pairs are expected even if
          all are equally likely. Where that is 0.01 or more, equal rows are only a note.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.data.classes import all_labels
from fdrsvm.data.columns import by_client, column_names, pooled
from fdrsvm.data.findings import (
    Notebook,
    Sheet,
    Texts,
    alike_names,
    listed,
    percent,
    to_ignore,
)
from fdrsvm.data.units import guess_units, split_unit

_BY_CHANCE = 0.01
_COPIES = 0.01


def check_same_columns(sheets: Sequence[Sheet], notes: Notebook) -> None:
    """Every file must have the same features; one that is called otherwise is named."""
    wanted = column_names(sheets)
    for name in wanted:
        lacking = [sheet for sheet in sheets if name not in sheet.cells]
        n_having = len(sheets) - len(lacking)
        # Told once: at those that lack it, or at the few that have more than the others.
        if not lacking or (n_having < len(lacking) and has_twin(name, sheets, wanted)):
            continue
        if n_having < len(lacking):
            having = [sheet.where for sheet in sheets if name in sheet.cells]
            what = f"only {listed(having)} {'has' if n_having == 1 else 'have'} this column"
            notes.add("column", "stop", what, to_ignore(name), client=having[0], column=name)
            continue
        for sheet in lacking:
            others = [
                other
                for other in sheet.cells
                if sum(other in one.cells for one in sheets) <= n_having
                and not any(other in one.cells and name in one.cells for one in sheets)
            ]
            alike = alike_names(name, others)
            if alike:
                here, there = split_unit(alike[0])[1], split_unit(name)[1]
                unit = f"; and in {here} in place of {there}" if here and there != here else ""
                what = f"is called {alike[0]!r} in this file{unit if there else ''}"
                remedy = f"rename it to {name!r}" + (" and convert it" if unit and there else "")
                notes.add("name", "stop", what, remedy, client=sheet.where, column=name)
            else:
                what = f"is not in this file, but in {n_having} of {len(sheets)}"
                remedy = f"add the column, or {to_ignore(name)}"
                notes.add("column", "stop", what, remedy, client=sheet.where, column=name)


def has_twin(name: str, sheets: Sequence[Sheet], names: Sequence[str]) -> bool:
    """Whether it is another column under another name, which is told there."""
    apart = [
        other
        for other in names
        if other != name and not any(name in one.cells and other in one.cells for one in sheets)
    ]
    return bool(alike_names(name, apart))


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
    clients = _all_clients(sheets)
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


def _all_clients(sheets: Sequence[Sheet]) -> Texts:
    return np.concatenate([sheet.clients for sheet in sheets])


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
