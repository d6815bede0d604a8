"""Plain values: what JSON can hold, how to write what it lacks, and how to get it back.

JSON has neither infinities nor NaN. ``encode`` writes ``{"$float": "inf"}`` for them; a key that
begins with ``$`` gets a second one, so that nothing else reads as such a number. In a log, which
people read and nobody decodes, ``text_if_infinite`` writes plain text.

Parameters hold more than lists and mappings from text. ``to_plain`` writes a mapping with one key
that says what it is: ``{"tuple": [0.0, 1.0]}``, ``{"array": [...]}``, and for mappings from other
labels than text ``{"pairs": [[key, value], ...]}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from fdrsvm.errors import CorruptDataError, InvalidInputError

MAX_DEPTH = 20
_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_TAG = "$float"
_MARKS = ("tuple", "array", "pairs")


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
        number = int(value)
        if not -(2**63) <= number < 2**64:
            raise InvalidInputError(argument, "integers must fit in 64 bits", "one does not")
        return number
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, str):
        return check_text(value, argument)
    _check_depth(argument, depth)
    if isinstance(value, Mapping):
        items = sorted(((check_text(k, argument), v) for k, v in value.items()), key=itemgetter(0))
        return {key: plain(item, argument, depth - 1) for key, item in items}
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


def _check_depth(argument: str, depth: int) -> None:
    if depth <= 0:
        raise InvalidInputError(
            argument, f"must nest at most {MAX_DEPTH} levels deep", "it nests deeper"
        )


def text_if_infinite(value: Any) -> Any:
    """``"inf"``, ``"-inf"`` or ``"nan"`` for the numbers JSON lacks; any other value is itself."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def to_plain(value: Any, argument: str) -> Any:
    """Parameters as plain values, or an InvalidInputError that names ``argument``."""
    if isinstance(value, np.ndarray):
        return {"array": plain(value, argument)}
    if isinstance(value, tuple):
        return {"tuple": [to_plain(item, argument) for item in value]}
    if isinstance(value, list):
        return [to_plain(item, argument) for item in value]
    if not isinstance(value, Mapping):
        return plain(value, argument)
    if all(isinstance(key, str) for key in value) and not _is_marked(value):
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
