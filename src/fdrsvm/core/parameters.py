"""Parameters and fitted attributes as plain values, and back with their types.

JSON has lists and mappings from text. What else parameters may hold is written as a mapping with
one key that says what it is: ``{"tuple": [0.0, 1.0]}``, ``{"array": [...]}``, and for mappings from
other labels than text ``{"pairs": [[key, value], ...]}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fdrsvm.core.plain_json import plain
from fdrsvm.errors import CorruptDataError

_MARKS = ("tuple", "array", "pairs")


def to_plain(value: Any, argument: str) -> Any:
    """Plain values, or an InvalidInputError that names ``argument``."""
    if isinstance(value, np.ndarray):
        return {"array": plain(value, argument)}
    if isinstance(value, tuple):
        return {"tuple": [to_plain(item, argument) for item in value]}
    if isinstance(value, list):
        return [to_plain(item, argument) for item in value]
    if isinstance(value, Mapping):
        return _mapping_to_plain(value, argument)
    return plain(value, argument)


def _mapping_to_plain(value: Mapping[Any, Any], argument: str) -> Any:
    is_plain = all(isinstance(key, str) for key in value) and not _is_marked(value)
    if is_plain:
        return {key: to_plain(item, argument) for key, item in value.items()}
    pairs = [[plain(key, argument), to_plain(item, argument)] for key, item in value.items()]
    return {"pairs": pairs}


def from_plain(value: Any) -> Any:
    """The inverse of ``to_plain``."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if not _is_marked(value):
        return {key: from_plain(item) for key, item in value.items()}
    ((mark, content),) = value.items()
    if not isinstance(content, list):
        raise CorruptDataError(f"parameters: {mark!r} must hold a list")
    if mark == "array":
        return np.array(content)
    if mark == "tuple":
        return tuple(from_plain(item) for item in content)
    return {key: from_plain(item) for key, item in content}


def _is_marked(value: Mapping[Any, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in _MARKS
