"""Plain values: what JSON can hold, and how to write the numbers it lacks.

JSON has neither infinities nor NaN. They become ``{"$float": "inf"}``, and a key that begins with
``$`` gets a second one, so that nothing else reads as such a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fdrsvm.errors import InvalidInputError

MAX_DEPTH = 20
_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_TAG = "$float"


def check_text(value: Any, argument: str) -> str:
    """Text that every file format can hold, and that NumPy does not shorten."""
    if not isinstance(value, str):
        raise InvalidInputError(argument, "must be text", f"it is {value!r}")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidInputError(
            argument, "must be text without NUL or half characters", f"it is {value!r}"
        )
    return str(value)


def plain(value: Any, argument: str, depth: int = MAX_DEPTH) -> Any:
    """A copy made of dict (in order of its keys), list, str, bool, int, float and None only."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)):
        return _integer(int(value), argument)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, str):
        return check_text(value, argument)
    _check_depth(argument, depth)
    if isinstance(value, Mapping):
        items = ((check_text(key, argument), item) for key, item in value.items())
        return {key: plain(item, argument, depth - 1) for key, item in sorted(items, key=_key)}
    if isinstance(value, (list, tuple)):
        return [plain(item, argument, depth - 1) for item in value]
    raise InvalidInputError(
        argument,
        "must hold only text, numbers, booleans, None, lists and mappings",
        f"it holds a {type(value).__name__}",
    )


def encode(value: Any) -> Any:
    """Plain values as strict JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return {_TAG: repr(value)}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {f"${key}" if key.startswith("$") else key: encode(value[key]) for key in value}
    return value


def decode(value: Any, argument: str, depth: int = MAX_DEPTH + 1) -> Any:
    """The inverse of ``encode``, which needs one more level for the numbers JSON lacks."""
    if not isinstance(value, (dict, list)):
        return value
    _check_depth(argument, depth)
    if isinstance(value, list):
        return [decode(item, argument, depth - 1) for item in value]
    if value.keys() == {_TAG} and value[_TAG] in [*_NUMBERS]:
        return _NUMBERS[value[_TAG]]
    return {key.removeprefix("$"): decode(value[key], argument, depth - 1) for key in value}


def _key(item: tuple[str, Any]) -> str:
    return item[0]


def _integer(value: int, argument: str) -> int:
    if not -(2**63) <= value < 2**64:
        raise InvalidInputError(argument, "integers must fit in 64 bits", "one does not")
    return value


def _check_depth(argument: str, depth: int) -> None:
    if depth <= 0:
        raise InvalidInputError(
            argument, f"must nest at most {MAX_DEPTH} levels deep", "it nests deeper"
        )
