"""What entries of a model's record must be, whoever wrote its file: nothing reads a wrong kind.

A record may hold anything plain beside them. Scaling, probabilities, and the rules and columns of
the data are checked where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fdrsvm.errors import CorruptDataError
from fdrsvm.model.linear_model import ALARM, TUNING, VERDICT

_Test: TypeAlias = Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """Whether it is one, which truth values are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: Any) -> bool:
    """Whether it is a whole number, 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_text(value: Any) -> bool:
    """Whether it is text."""
    return isinstance(value, str)


def are_numbers(value: Any) -> bool:
    """Whether it is a list of them."""
    return isinstance(value, list) and all(map(is_number, value))


def by_name(is_one: _Test) -> _Test:
    """Whether it is a mapping to such values."""
    return lambda value: isinstance(value, dict) and all(map(is_one, value.values()))


_KINDS: dict[str, dict[str, _Test]] = {
    "data": {"rows": by_name(is_count), "epsilon": by_name(is_number)},
    "history": dict.fromkeys(
        ("round", "objective", "lower_bound", "gap", "n_answers", "bytes_up"), are_numbers
    ),
    TUNING: {"goal": is_text, "label_noise": is_number, "score_by_map": by_name(is_number)},
    ALARM: {"rate": is_number, "statement": is_text},
}
_DRAWN = ("round", "objective", "lower_bound", "gap")  # by round, if any of them is there


def check_record(record: Mapping[str, Any]) -> None:
    """A CorruptDataError that names the entry of a wrong kind, if there is one."""
    if not is_text(record.get(VERDICT, "")):
        raise CorruptDataError(f"record: {VERDICT!r} is of another kind")
    for name, kinds in _KINDS.items():
        part = record.get(name, {})
        if not isinstance(part, dict):
            raise CorruptDataError(f"record: {name!r} is of another kind")
        for key, is_right in kinds.items():
            if key in part and not is_right(part[key]):
                raise CorruptDataError(f"record: {key!r} of {name!r} is of another kind")
    history = record.get("history", {})
    if history and len({len(history.get(name, [])) for name in _DRAWN}) > 1:
        raise CorruptDataError("record: 'history' has columns of unlike length")
