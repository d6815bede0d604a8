"""Server states and histories as named arrays, and back, with the same bits.

A state is a frozen dataclass of arrays, numbers and other such dataclasses, or a tuple of states;
nothing else is stored, so nothing in a file can run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import count, takewhile
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.rounds import RoundRecord

Stored = dict[str, npt.NDArray[Any]]
State = TypeVar("State")

_RESIDUAL = "residual "
TEXTS = ("faults", "faulty", "absent", "left_out")  # of a record: kept in a header
_COLUMNS: dict[str, type] = {
    "round": int,
    "objective": float,
    "lower_bound": float,
    "gap": float,
    "n_answers": int,
    "bytes_down": int,
    "bytes_up": int,
    "seconds": float,
    "server_seconds": float,
}


def state_to_arrays(state: Any, prefix: str = "") -> Stored:
    """Every array and number of a state, by the path to it."""
    stored: Stored = {}
    if isinstance(state, tuple):
        for k, part in enumerate(state):
            stored.update(state_to_arrays(part, f"{prefix}{k}."))
        return stored
    for entry in fields(state):
        value, path = getattr(state, entry.name), prefix + entry.name
        if is_dataclass(value):
            stored.update(state_to_arrays(value, f"{path}."))
        else:
            stored[path] = np.asarray(value)
    return stored


def state_from_arrays(kind: type[State], stored: Mapping[str, Any], prefix: str = "") -> State:
    """The state of that class that ``state_to_arrays`` took apart."""
    if get_origin(kind) is tuple:
        return _states_from_arrays(get_args(kind)[0], stored, prefix)  # type: ignore[return-value]
    values = {}
    for name, hint in _hints(kind).items():  # type: ignore[arg-type]
        path = prefix + name
        if isinstance(hint, type) and is_dataclass(hint):
            values[name] = state_from_arrays(hint, stored, f"{path}.")
            continue
        if path not in stored:
            raise CorruptDataError(f"state: {path} is missing")
        array = stored[path]
        values[name] = array.item() if hint in (int, float, bool) else array
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Of a state's fields: read once, so that nothing is evaluated while a file is."""
    return get_type_hints(kind)


def _states_from_arrays(
    kind: type[State], stored: Mapping[str, Any], prefix: str
) -> tuple[State, ...]:
    """As many as there are, numbered from 0."""
    paths = (f"{prefix}{k}." for k in count())
    there = takewhile(lambda path: any(name.startswith(path) for name in stored), paths)
    return tuple(state_from_arrays(kind, stored, path) for path in there)


def history_to_arrays(history: Sequence[RoundRecord]) -> Stored:
    """One array per column."""
    stored: Stored = {
        name: np.array([getattr(record, name) for record in history], dtype=kind)
        for name, kind in _COLUMNS.items()
    }
    for name in history[0].residuals if history else ():
        column = [record.residuals[name] for record in history]
        stored[_RESIDUAL + name] = np.array(column, dtype=float)
    return stored


def history_texts(history: Sequence[RoundRecord]) -> dict[str, Any]:
    """What of a history is text: one list per round."""
    return {name: [getattr(record, name) for record in history] for name in TEXTS}


def history_from_arrays(
    stored: Mapping[str, Any], texts: Mapping[str, Sequence[Sequence[str]]]
) -> tuple[RoundRecord, ...]:
    """The records, from ``history_to_arrays`` and ``history_texts``."""
    names = [name for name in stored if name.startswith(_RESIDUAL)]
    records = []
    for k in range(len(texts[TEXTS[0]])):
        columns: dict[str, Any] = {name: stored[name][k].item() for name in _COLUMNS}
        columns |= {name: tuple(str(text) for text in texts[name][k]) for name in TEXTS}
        residuals = {name.removeprefix(_RESIDUAL): stored[name][k].item() for name in names}
        records.append(RoundRecord(**columns, residuals=residuals))
    return tuple(records)
