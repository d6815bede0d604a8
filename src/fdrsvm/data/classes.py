"""Checks of the labels, and of columns that give them away.

Leak      a column that alone tells one class from the rest: with D the largest difference between
          the two distribution functions (of columns with at most 20 values: half the sum of the
          differences of their shares), the best single threshold has the balanced accuracy
          (1 + D) / 2. It is reported from 0.99 on, where both sides have 10 rows or more.
Flag      a column with one usual value in half of its rows or more, whose other rows are of one
          class, of at most half of all rows, in 98 %; unlikely by chance below 1e-6: with k such
          rows, m of the class, whose share is p, P(at least m of k) by the binomial distribution.
          A rare 0/1 column beside two such flags is taken for one of them.
Misspelt  two labels that are equal but for case, spaces and marks; or a third class with at most
          10 rows or 2 % of another's, one letter (or two that changed places) away from it, both
          of 4 letters or more and with the same digits.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy import stats

from fdrsvm.core.arrays import Array
from fdrsvm.core.texts import listed
from fdrsvm.data.columns import column_names, most_frequent, pooled
from fdrsvm.data.findings import (
    MOST_NAMED,
    Notebook,
    Sheet,
    Texts,
    alike_names,
    number_of,
    percent,
    to_ignore,
)
from fdrsvm.data.tables import Mask

_LEAK, _LEAK_ROWS = 0.99, 10
_PURE, _CHANCE = 0.98, 1e-6
_CODES = 20
_RARE = 0.05
_SOME = 0.2
_MOST_CLASSES = 20
_FOLDS = 10  # two rows of a class in each of five folds
_ALARM = {"5 %": 19, "1 %": 99}  # rate: the least n with ceil((n + 1) (1 - rate)) <= n
_SMALL = 10
_UNLIKE = 0.4  # of classes that are more alike in size nobody knows which is the fault
_LABEL_NAME = re.compile(
    r"fail|fault|label|class|target|status|state|leak|defect|quality|diagnos|anomal|broken|"
    r"condition|outcome|result|^y$",
    re.IGNORECASE,
)


def all_labels(sheets: Sequence[Sheet]) -> Texts:
    """Of all rows, "" where a row has none."""
    none = [np.full(sheet.table.n_rows, "", dtype=object) for sheet in sheets]
    parts = [
        n if sheet.labels is None else sheet.labels for n, sheet in zip(none, sheets, strict=True)
    ]
    return np.concatenate([np.zeros(0, dtype=object), *parts])


def check_labels(
    sheets: Sequence[Sheet], label: str, fault: str | None, notes: Notebook
) -> dict[str, int]:
    """How labels are written and spread; returns the rows of each class."""
    lacking = [sheet for sheet in sheets if label not in sheet.table.by_name]
    if len(lacking) == len(sheets):
        return {}
    for sheet in lacking:
        alike = alike_names(label, sheet.table.columns)
        remedy = f"call {alike[0]!r} {label!r} in this file" if alike else "add the labels"
        what = "the column of labels is not there, which other files have"
        notes.add("label", "stop", what, remedy, client=sheet.where, column=label)
    counts = Counter(text for text in all_labels(sheets).tolist() if text)
    classes = dict(sorted(counts.items()))
    if len(classes) == 1:
        (only,) = classes
        what = f"every label is {only!r}, and a model needs two classes"
        notes.add("one class", "stop", what, "add rows of another class", column=label)
    distinct = check_spelling(classes, label, notes)
    if fault is not None and fault not in classes and classes:
        what = f"--fault {fault!r} is no label; there are {listed(map(repr, classes), MOST_NAMED)}"
        notes.add("option", "stop", what, "--fault LABEL: give one of them", column=label)
    if fault is not None and len(classes) > 2:
        what = f"--fault is for two classes, and there are {len(classes)}"
        notes.add("option", "stop", what, "leave --fault away", column=label)
    check_balance(distinct, label, fault, notes)
    check_clients(sheets, classes, label, fault, notes)
    return classes


def propose_label(sheets: Sequence[Sheet], label: str, notes: Notebook) -> str | None:
    """Which columns could be the labels, if none is called so; the one that its name speaks for."""
    columns = column_names(sheets)
    sizes = {name: count_labels(sheets, name) for name in columns}
    speaking = [name for name in columns if sizes[name] and _LABEL_NAME.search(name)]
    silent = sorted((name for name in columns if sizes[name]), key=lambda name: sizes[name])
    names = list(dict.fromkeys([*alike_names(label, columns), *speaking, *silent]))
    assumed = names[0] if names and (names[0] in speaking or names[0] not in silent) else None
    what = "no file has this column of labels"
    remedy = "--label COLUMN: name it; no column has only a few different values"
    if names:
        what += f"; it could be {listed(map(repr, names), MOST_NAMED)}"
        remedy = f"--label {shlex.quote(names[0])}" + ", or another" * (len(names) > 1)
    if assumed is not None:
        what += f" (the rest is checked as if it were {assumed!r})"
    notes.add("label", "stop", what, remedy, column=label)
    return assumed


def count_labels(sheets: Sequence[Sheet], name: str) -> int:
    """How many labels a column has, if it can be one of labels; else 0."""
    cells = [sheet.cells[name] for sheet in sheets if name in sheet.cells]
    n = sum(one.n for one in cells)
    values = np.concatenate([one.good for one in cells])
    texts = {str(item) for one in cells for item in one.raw[one.text].tolist()}
    n_labels = len(texts) + len(np.unique(values))
    is_whole = bool((values == np.round(values)).all())
    n_missing = sum(int(one.missing.sum()) for one in cells)
    is_one = 2 <= n_labels <= _CODES and is_whole and 2 * n_missing < n and 2 * n_labels < n
    return n_labels if is_one else 0


def check_spelling(classes: Mapping[str, int], label: str, notes: Notebook) -> dict[str, int]:
    """Labels that may be one, written in two ways; returns the classes if they are."""
    if len(classes) > _MOST_CLASSES:
        what = f"there are {len(classes)} different labels; is this the column of labels?"
        notes.add("label", "warn", what, "--label COLUMN, if it is another", column=label)
        return {}
    left = dict(classes)
    by_size = sorted(classes, key=lambda one: -classes[one])
    for rare in reversed(by_size):
        for common in by_size[: by_size.index(rare)]:
            limit = min(max(10.0, 0.02 * classes[common]), classes[common] / 4.0)
            is_rare = classes[rare] <= limit and len(classes) > 2
            if _plain(rare) == _plain(common) or (is_rare and one_slip(rare, common)):
                notes.add(
                    "misspelt label",
                    "warn",
                    f"{rare!r} ({classes[rare]} rows) may be {common!r} ({classes[common]} rows) "
                    "written in another way; they count as two classes",
                    "write one label in one way",
                    column=label,
                )
                left[common] += left.pop(rare)
                break
    return left


def _plain(text: str) -> str:
    """Without case, spaces and marks; numbers as they are, whose signs and points matter."""
    is_number = re.fullmatch(r"[\W\d_]*", text) is not None
    return text if is_number else re.sub(r"[\W_]", "", text.casefold())


def one_slip(one: str, other: str) -> bool:
    """Whether one letter is missing, added or wrong, or two have changed places."""
    a, b = sorted((one.casefold(), other.casefold()), key=len)
    if len(a) < 4 or re.sub(r"\D", "", a) != re.sub(r"\D", "", b) or len(b) - len(a) > 1:
        return False
    k = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    if len(a) < len(b):
        return a[k:] == b[k + 1 :]
    swapped = a[:k] + a[k + 1 : k + 2] + a[k : k + 1] + a[k + 2 :]
    return a[k + 1 :] == b[k + 1 :] or swapped == b


def rarer(classes: Mapping[str, int], fault: str | None) -> str:
    """The class looked for: the one named, or that with the fewest rows."""
    names = sorted(classes)
    if fault is not None and fault in classes:
        return fault
    return min(reversed(names), key=lambda one: classes[one])


def check_balance(
    classes: Mapping[str, int], label: str, fault: str | None, notes: Notebook
) -> None:
    """How many rows each class has."""
    total = sum(classes.values())
    if len(classes) < 2:
        return
    sought = rarer(classes, fault)
    share = classes[sought] / total
    said = ", ".join(f"{name!r} {percent(n, total)}" for name, n in classes.items())
    if share < _RARE:
        notes.add(
            "imbalance",
            "warn",
            f"{sought!r} is rare: {classes[sought]} of {total} rows ({percent(share, 1.0)}); a "
            f"model that never finds it is right in {percent(1.0 - share, 1.0)}",
            "judge by balanced accuracy, not by accuracy: fdrsvm fit tunes for it unless --goal "
            "says otherwise",
            column=label,
        )
    else:
        severity, remedy = "note", ""
        if share < _SOME and len(classes) == 2:
            remedy = "judge by balanced accuracy, not by accuracy"
        notes.add("classes", severity, f"{total} rows: {said}", remedy, column=label)  # type: ignore[arg-type]
    for name, n in classes.items():
        if n < _FOLDS:
            notes.add(
                "few rows",
                "warn",
                f"{name!r} has {number_of(n, 'row')}; cross-validation in five folds needs "
                f"{_FOLDS}, two in each",
                "collect more such rows, or train without tuning",
                column=label,
            )


def check_clients(
    sheets: Sequence[Sheet],
    classes: Mapping[str, int],
    label: str,
    fault: str | None,
    notes: Notebook,
) -> None:
    """What each client has of each class."""
    tally: Counter[tuple[str, str]] = Counter()
    for sheet in sheets:
        if sheet.labels is not None:
            tally.update(zip(sheet.clients.tolist(), sheet.labels.tolist(), strict=True))
    clients = list(dict.fromkeys(client for client, _ in tally if client))
    if len(classes) < 2:
        return
    sought = rarer(classes, fault)
    healthy = {
        client: sum(tally[client, name] for name in classes if name != sought) for client in clients
    }
    for client in clients:
        own = {name: tally[client, name] for name in classes if tally[client, name]}
        n = sum(own.values())
        if n < _SMALL:
            what = f"has {number_of(n, 'row')} with a label; below {_SMALL} chance decides"
            notes.add("few rows", "warn", what, "collect more rows", client=client, column=label)
        if len(own) == 1 and len(clients) > 1:
            (only,) = own
            notes.add(
                "one class",
                "warn",
                f"{'its only row is' if n == 1 else f'all its {n} rows are'} {only!r}; what it "
                "would lose by joining cannot be seen from them",
                "fine for training; keep rows of other clients to judge by",
                client=client,
                column=label,
            )
    is_told = fault is not None or classes[sought] < _UNLIKE * sum(classes.values())
    if len(classes) == 2 and clients and is_told:
        note_alarms(healthy, sought, notes)


def note_alarms(healthy: Mapping[str, int], sought: str, notes: Notebook) -> None:
    """For which false-alarm rates the healthy rows suffice."""
    least = min(healthy, key=healthy.__getitem__)
    n = healthy[least]
    enough = " and ".join(rate for rate, needed in _ALARM.items() if n >= needed)
    lacking = [f"{needed} for {rate}" for rate, needed in _ALARM.items() if n < needed]
    fewest = ", the fewest of all" if len(healthy) > 1 else ""
    what = f"{least} has {number_of(n, 'row')} that {'is' if n == 1 else 'are'} not {sought!r}"
    what += fewest
    what += f": enough for alarm thresholds at {enough} false alarms" if enough else ""
    what += f"; it takes {' and '.join(lacking)} false alarms" if lacking else ""
    notes.add("alarms", "note", what, "more healthy rows" if lacking else "")


# --- columns that give the label away ---


def check_leaks(
    sheets: Sequence[Sheet],
    excluded: Iterable[str],
    classes: Mapping[str, int],
    notes: Notebook,
) -> list[str]:
    """Columns that alone tell a class; returns their names."""
    labels = all_labels(sheets)
    if not 2 <= len(classes) <= _MOST_CLASSES:
        return []
    masks = {name: labels == name for name in classes}
    has_label = labels != ""
    skipped, leaks, rare = set(excluded), {}, {}
    for name in column_names(sheets):
        if name in skipped:
            continue
        values = pooled(sheets, name)
        known = np.isfinite(values) & has_label
        leaks[name] = leak_words(values[known], {one: mask[known] for one, mask in masks.items()})
        if leaks[name] is None and is_rare_flag(values[known]):
            rare[name] = int(np.count_nonzero(values[known] != most_frequent(values[known])[0]))
    found = {name: words for name, words in leaks.items() if words is not None}
    flags = [name for name, words in found.items() if words is not None and words[0]]
    for name, (_, words) in found.items():
        what = f"gives the label away: {words}. Is it known before the fault?"
        notes.add("leak", "warn", what, f"if not, {to_ignore(name)}", column=name)
    if len(flags) > 1:
        for name, n in rare.items():
            what = (
                f"is a flag set in {n} rows only, like {listed(flags, MOST_NAMED)}, which give the "
                "label away; probably one of them"
            )
            notes.add("leak", "warn", what, f"if so, {to_ignore(name)}", column=name)
            found[name] = (True, what)
    return list(found)


def is_rare_flag(values: Array) -> bool:
    """Whether a column is 0 but for a few rows, where it is 1."""
    distinct = np.unique(values)
    return distinct.tolist() == [0.0, 1.0] and bool(np.mean(values != 0.0) < 0.01)


def leak_words(values: Array, masks: Mapping[str, Mask]) -> tuple[bool, str] | None:
    """Whether it is a flag, and in words how it tells a class; None if it does not."""
    if not len(values):
        return None
    usual, count = most_frequent(values)
    off = values != usual
    for name, mask in masks.items():
        share, k = float(mask.mean()), int(np.count_nonzero(off))
        m = int(np.count_nonzero(off & mask))
        if 2 * count < len(values) or k == 0 or share > 0.5 or m < _PURE * k:
            continue
        if stats.binom.sf(m - 1, k, share) < _CHANCE:
            every = f"all {k}" if m == k else f"{m} of {k}"
            whole = int(np.count_nonzero(mask))
            return True, (
                f"{every} rows where it is not {usual:g} are {name!r} ({percent(m, whole)} of "
                f"those that are)"
            )
    order = np.argsort(values, kind="stable")
    best, told = 0.0, ""
    for name, mask in masks.items():
        n_in, n_out = np.count_nonzero(mask), np.count_nonzero(~mask)
        if min(n_in, n_out) >= _LEAK_ROWS:
            accuracy = (1.0 + distance(values[order], mask[order])) / 2.0
            best, told = max((best, told), (accuracy, name))
    if best < _LEAK:
        return None
    return False, f"alone it tells {told!r} from the rest with balanced accuracy {best:.3f}"


def distance(values: Array, mask: Mask) -> float:
    """Between the distributions of two classes, of sorted values."""
    ends = np.append(np.flatnonzero(np.diff(values) > 0.0), len(values) - 1)
    inside = np.cumsum(mask)[ends] / np.count_nonzero(mask)
    outside = np.cumsum(~mask)[ends] / np.count_nonzero(~mask)
    if len(ends) <= _CODES:
        shares = np.diff(inside - outside, prepend=0.0)
        return float(np.abs(shares).sum() / 2.0)
    return float(np.abs(inside - outside).max())
