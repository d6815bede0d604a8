"""Checks of each column by itself: text, dates, ids, constants, missing and infinite values.

Rules, for a column of n cells over all files:

Id        whole numbers, all different, at least 10, and either called an id or so dense that a
          reading would repeat itself: with g the least distance of two of them, 10 repeats or more
          are expected of multiples of g, n (n - 1) / (2 (range / g + 1)). Training says it too.
Counter   at least 20 rows, and values rise (or fall) from row to row in every file; whole numbers
          that never fall by and rise by at most 1 count too. Of n rows in random order 2 in n! do.
Rare      one value has 99.5 % of at least 200 cells.
Stuck     a client's 20 or more values are one, where other clients have 10 or more different ones.
Sentinel  a usual mark for "no reading" (-999, 9999 and so on) at the end of the range, more than
          5 times the range of all other values away from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.data.findings import ColumnCells, Notebook, Severity, Sheet, counted, percent, to_ignore
from fdrsvm.data.tables import kind_of_text

_RISING = 20
_DISTINCT = 10
_REPEATS = 10.0
_RARE, _RARE_ROWS = 0.995, 200
_STUCK_ROWS = 20
_MARKS = (-9999.0, -999.0, -99.0, -1.0, 999.0, 9999.0, 99999.0, 32767.0, -32768.0, 65535.0)
_APART = 5.0
_SCALES = 1e3
_FEW = 20
_ID_NAME = re.compile(
    r"(^|[\W_])(u?id|udi|uuid|guid|index|idx|serial|serial ?number|nr|row|no)($|[\W_])",
    re.IGNORECASE,
)


def check_columns(
    sheets: Sequence[Sheet], notes: Notebook, *, has_rules: bool, drops: bool = False
) -> set[str]:
    """All columns by themselves; returns those that should be left out.

    ``has_rules`` is whether a contract says what becomes of missing and infinite values and text,
    ``drops`` whether rows that lack a value are left out.
    """
    excluded = set()
    for name in column_names(sheets):
        held = [(sheet, sheet.cells[name]) for sheet in sheets if name in sheet.cells]
        found = is_no_reading(name, held, notes, has_rules=has_rules)
        if found != "stop" and not has_rules:
            check_cells(name, held, notes, drops=drops)
        if found is not None:
            excluded.add(name)
            continue
        check_stuck(name, held, notes)
        check_marks(name, held, notes)
    return excluded


def check_sizes(sheets: Sequence[Sheet], skipped: Iterable[str], notes: Notebook) -> None:
    """Columns that hardly vary, or vary much more than others, of those that are not left out."""
    sizes, left_out = {}, set(skipped)
    for name in column_names(sheets):
        values = pooled(sheets, name)
        values = values[np.isfinite(values)]
        if name in left_out or not len(values):
            continue
        sizes[name] = float(np.ptp(values)) or np.nan
        usual, count = most_frequent(values)
        others = len(values) - count
        if len(values) >= _RARE_ROWS and _RARE <= count / len(values) < 1.0:
            what = f"differs from {usual:.6g} in only {others} of {len(values)} rows"
            share = percent(others, len(values))
            remedy = f"{to_ignore(name)}, unless these rows matter"
            notes.add("near constant", "note", f"{what} ({share})", remedy, column=name)
    sizes = {name: size for name, size in sizes.items() if size == size}
    if not sizes:
        return
    least, largest = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[largest] > _SCALES * sizes[least]:
        notes.add(
            "scale",
            "note",
            f"columns are not on one scale: {largest!r} ranges over {sizes[largest]:.3g}, "
            f"{least!r} over {sizes[least]:.3g}",
            "none needed: fdrsvm fit scales all of them by default (--scaling)",
        )


def column_names(sheets: Sequence[Sheet]) -> list[str]:
    """All that would be features, in the order of their first file."""
    return list(dict.fromkeys(name for sheet in sheets for name in sheet.cells))


def pooled(sheets: Sequence[Sheet], name: str) -> Array:
    """A column of all files, one below the other; nan where one has no number or no column."""
    parts = [
        sheet.cells[name].values if name in sheet.cells else np.full(sheet.table.n_rows, np.nan)
        for sheet in sheets
    ]
    return np.concatenate(parts)


def is_no_reading(
    name: str, held: Sequence[tuple[Sheet, ColumnCells]], notes: Notebook, *, has_rules: bool
) -> Severity | None:
    """How bad it is if a column is text, dates, ids, a counter, empty or constant; says which."""
    every = [cells for _, cells in held]
    n = sum(cells.n for cells in every)
    n_text = sum(int(cells.text.sum()) for cells in every)
    values = np.concatenate([cells.good for cells in every])
    first = held[0][0].where if len(held) == 1 else None
    ignore = to_ignore(name)

    def say(kind: str, severity: Severity, what: str, remedy: str) -> Severity:
        notes.add(kind, severity, what, remedy, client=first, column=name)
        return severity

    if not len(values) and not n_text:
        return say("empty", "warn" if has_rules else "stop", "has no value at all", ignore)
    if n_text >= max(n / 2, 1) and not any(why_text(sheet, name) for sheet, _ in held):
        return say(*words_of_text(every, n), ignore)
    if n_text:
        return None
    n_distinct = len(np.unique(values))
    if n_distinct == 1 and n > 1:
        return say("constant", "warn", f"is the same in all {len(values)} rows", ignore)
    if is_id(name, values):
        what = f"looks like an id: {n_distinct} whole numbers, all different"
        return say("id", "warn", f"{what}; a model would learn rows by heart", ignore)
    is_whole = bool((values == np.round(values)).all())
    if all(rises(cells, is_whole) for cells in every):
        what = "rises from row to row, as a counter, a time or a row number does"
        return say("counter", "warn", f"{what}; a model would learn when, not what", ignore)
    return None


def is_id(name: str, values: Array) -> bool:
    """Whether a column numbers the rows: it is whole, never repeats itself, and a reading would."""
    n = len(values)
    if n < _DISTINCT or (values != np.round(values)).any():
        return False
    least = np.diff(np.sort(values)).min()
    if least == 0.0:
        return False
    repeats = n * (n - 1) / (2.0 * (np.ptp(values) / least + 1.0))
    return bool(repeats >= _REPEATS) or _ID_NAME.search(name) is not None


def words_of_text(every: Sequence[ColumnCells], n: int) -> tuple[str, Severity, str]:
    """Of a column of text its kind, that it stops training, and words."""
    texts = [item for cells in every for item in cells.raw[cells.text]]
    kind, n_distinct = kind_of_text(texts), len(set(map(str, texts)))
    if kind == "date":
        return "date", "stop", "holds dates or times, and no reading"
    if kind == "id":
        return "id", "stop", f"looks like an id: {n_distinct} texts, all different"
    share = "" if len(texts) == n else f" in {percent(len(texts), n)} of the rows"
    return "text", "stop", f"holds text{share}, {n_distinct} different, where numbers are needed"


def rises(cells: ColumnCells, is_whole: bool) -> bool:
    """Whether values go up or down from row to row, or count."""
    if len(cells.good) < max(_RISING, cells.n):
        return False
    steps = np.diff(cells.values)
    if (steps > 0.0).all() or (steps < 0.0).all():
        return True
    n_rises = np.count_nonzero(steps)
    return bool(is_whole and n_rises >= _RISING and steps.min() >= 0.0 and steps.max() <= 1.0)


def why_text(sheet: Sheet, name: str) -> str:
    """What a file's reader says of numbers that it left as text; "" if nothing."""
    return sheet.table.notes.get(name, "")


def check_cells(
    name: str, held: Sequence[tuple[Sheet, ColumnCells]], notes: Notebook, *, drops: bool
) -> None:
    """Missing, infinite and stray text, file by file."""
    ask = (
        "--missing drop leaves such rows out; --contract FILE says what becomes of them "
        "(--write-contract FILE proposes one)"
    )
    for sheet, cells in held:
        most = cells.missing.mean() > 0.5
        why = why_text(sheet, name)
        text = f"no number that is understood: {why}" if why else "no number"
        gaps = "missing" + "; rows that lack a value are left out" * drops
        for kind, mask, state, remedy in (
            ("missing", cells.missing, gaps, to_ignore(name) if most else ask),
            ("infinite", cells.infinite, "infinite", "empty these cells, or mend what wrote them"),
            ("text", cells.text, text, "write plain numbers there, or empty these cells"),
        ):
            if mask.any():
                be = "is" if np.count_nonzero(mask) == 1 else "are"
                notes.add(
                    kind,
                    "note" if drops and kind == "missing" and not most else "stop",
                    f"{counted(mask, 'value')} {be} {state}",
                    remedy,
                    client=sheet.where,
                    column=name,
                    row=sheet.row(mask.argmax()),
                )


def check_stuck(name: str, held: Sequence[tuple[Sheet, ColumnCells]], notes: Notebook) -> None:
    """A constant in one client only."""
    parts = by_client(held)
    for client, values in parts.items():
        others = [each for one, each in parts.items() if one != client]
        is_one = len(values) >= _STUCK_ROWS and values.min() == values.max()
        if is_one and any(len(np.unique(each)) >= _DISTINCT for each in others):
            notes.add(
                "constant",
                "warn",
                f"is the same in all {len(values)} rows here, but not elsewhere",
                f"is the sensor stuck or not fitted? if so {to_ignore(name)}",
                client=client,
                column=name,
            )


def by_client(held: Sequence[tuple[Sheet, ColumnCells]]) -> Mapping[str, Array]:
    """A column's numbers, one array per client."""
    parts: dict[str, list[Array]] = {}
    for sheet, cells in held:
        for client, places in sheet.places.items():
            values = cells.values[places]
            parts.setdefault(client, []).append(values[np.isfinite(values)])
    return {client: np.concatenate(each) for client, each in parts.items()}


def most_frequent(values: Array) -> tuple[float, int]:
    """The value that occurs most often, and how often."""
    if not len(values):
        return np.nan, 0
    distinct, counts = np.unique(values, return_counts=True)
    return float(distinct[counts.argmax()]), int(counts.max())


def check_marks(name: str, held: Sequence[tuple[Sheet, ColumnCells]], notes: Notebook) -> None:
    """Numbers that mean "no reading"."""
    values = np.concatenate([cells.good for _, cells in held])
    if len(values) < _DISTINCT:
        return
    for mark in {float(values.min()), float(values.max())} & set(_MARKS):
        rest = values[values != mark]
        if len(rest) < _DISTINCT or not 2 <= len(values) - len(rest) <= len(values) / 2:
            continue
        if min(abs(rest - mark)) > _APART * np.ptp(rest) > 0.0:
            for sheet, cells in held:
                is_mark = cells.values == mark
                if is_mark.any():
                    notes.add(
                        "mark",
                        "warn",
                        f"{counted(is_mark, 'value')} are {mark:g}, far from all others: a mark "
                        "for a missing reading?",
                        "empty these cells, so that they count as missing",
                        client=sheet.where,
                        column=name,
                        row=sheet.row(is_mark.argmax()),
                    )
