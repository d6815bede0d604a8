"""What travels in a round; what travels before the first one, and in errors, is in joining.py.

A message is named arrays plus who, which run and which round: float64, or int64 where values are
masked. Values are shared, not copied, when both ends live in one process: nobody may change them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.codec import pack, unpack
from fdrsvm.core.vectors import NORMS, Groups
from fdrsvm.errors import CorruptDataError

VERSION = 1
MAX_BYTES = 1 << 30
LARGEST_COUNT = 2**53  # of rows or features: beyond, float64 cannot tell neighbours apart
Values: TypeAlias = Mapping[str, Array]
Shape: TypeAlias = "tuple[int | None, ...]"
_shape_of = attrgetter("shape")
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Broadcast:
    """From the server to one client.

    ``algorithm`` is the method and its settings as JSON, so that a client needs no other
    configuration than its own data.
    """

    run_id: str
    round: int
    client_id: str
    algorithm: str
    values: Values = field(repr=False)


@dataclass(frozen=True)
class Update:
    """From one client to the server, in answer to the broadcast of the same run and round."""

    run_id: str
    round: int
    client_id: str
    values: Values = field(repr=False)


@dataclass(frozen=True)
class Failure:
    """In place of an update: no answer in time, an error at the client, or nothing readable."""

    client_id: str
    reason: str
    is_missing: bool = False  # late or gone, rather than at fault
    is_unreadable: bool = False  # there was an answer, and it breaks the form of messages


@dataclass(frozen=True)
class ClientProfile:
    """What a client says of itself when it joins; all that the server knows of its data.

    ``floor`` is a number with f(w) >= floor ||w||_* for every w: the radius times the loss's
    Lipschitz constant, or 0 on a box. ``flips`` is the mass of labels that the radius can flip,
    epsilon / kappa. ``groups`` are the norm's groups of features, [grouped-norm].
    """

    client_id: str
    n_samples: int
    n_features: int
    fit_intercept: bool
    norm: str
    epsilon: float
    floor: float
    flips: float
    groups: Groups = None

    def known(self) -> dict[str, Any]:
        """By name; groups only where there are any, so that others' bytes stay what they were."""
        fields = asdict(self)
        if self.groups is None:
            del fields["groups"]
        return fields


def add_prefix(prefix: str, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The entries as "prefix/name", so that several sets of arrays share one message or file."""
    return {f"{prefix}/{name}": entry for name, entry in entries.items()}


def split_prefixes(entries: Mapping[str, Entry]) -> dict[str, dict[str, Entry]]:
    """The sets that ``add_prefix`` joined, by prefix; under "" what has none.

    In one pass: a checkpoint of a thousand clients has tens of thousands of arrays.
    """
    groups: dict[str, dict[str, Entry]] = {}
    for path, entry in entries.items():
        prefix, slash, name = path.partition("/")
        if not slash:
            prefix, name = "", path
        groups.setdefault(prefix, {})[name] = entry
    return groups


def encode(message: Broadcast | Update) -> bytes:
    """Stable bytes of a message; equal messages give equal bytes."""
    header = {name: value for name, value in vars(message).items() if name != "values"}
    return pack(type(message).__name__.lower(), VERSION, header, message.values)


def decode_broadcast(data: bytes) -> Broadcast:
    """The broadcast that ``encode`` wrote, or a CorruptDataError."""
    header, values = unpack(data, "broadcast", VERSION)
    _check_header(header, "broadcast", {"run_id": str, "client_id": str, "algorithm": str})
    return Broadcast(values=values, **header)


def decode_update(data: bytes, *, max_bytes: int = MAX_BYTES) -> Update:
    """The update that ``encode`` wrote, or a CorruptDataError; nothing larger is looked at."""
    header, values = unpack(data, "update", VERSION, max_bytes=max_bytes)
    _check_header(header, "update", {"run_id": str, "client_id": str})
    return Update(values=values, **header)


def encode_profile(profile: ClientProfile) -> bytes:
    """Stable bytes of a profile."""
    return pack("profile", VERSION, profile.known(), {})


def decode_profile(data: bytes) -> ClientProfile:
    """The profile that ``encode_profile`` wrote, or a CorruptDataError."""
    header, _ = unpack(data, "profile", VERSION)
    header.setdefault("groups", None)
    wrong = sorted(
        name
        for name, holds in _PROFILE_RULES.items()
        if name not in header or not holds(header[name])
    )
    if wrong or set(header) != set(_PROFILE_RULES):
        raise CorruptDataError(f"profile: see {wrong or sorted(header)}")
    groups = header.pop("groups")
    if groups is not None and sum(groups) != header["n_features"]:
        raise CorruptDataError("profile: its groups do not add up to its features")
    return ClientProfile(**header, groups=None if groups is None else tuple(groups))


def _is_count(value: object) -> bool:
    return type(value) is int and 1 <= value <= LARGEST_COUNT


def _is_size(value: object) -> bool:
    return type(value) is float and 0.0 <= value < math.inf


_PROFILE_RULES: dict[str, Callable[[Any], bool]] = {
    "client_id": lambda value: type(value) is str and value != "",
    "n_samples": _is_count,
    "n_features": _is_count,
    "fit_intercept": lambda value: type(value) is bool,
    "norm": lambda value: value in NORMS,
    "epsilon": _is_size,
    "floor": _is_size,
    "flips": _is_size,
    "groups": lambda value: (
        value is None or (type(value) is list and value != [] and all(map(_is_count, value)))
    ),
}


def _check_header(header: Mapping[str, Any], kind: str, texts: Mapping[str, type]) -> None:
    expected = {**texts, "round": int}
    if {name: type(value) for name, value in header.items()} != expected:
        raise CorruptDataError(f"{kind}: its header has the fields {sorted(header)}")


def encoded_size(message: Broadcast | Update) -> int:
    """len(encode(message)), without encoding again what has the same form."""
    shapes = tuple(map(_shape_of, message.values.values()))
    return _size_of_form(
        _stand_in(message.run_id),
        _stand_in(message.client_id),
        len(str(message.round)),
        message.algorithm if isinstance(message, Broadcast) else None,
        tuple(message.values),
        shapes,
    )


@lru_cache(maxsize=65536)
def _stand_in(name: str) -> str:
    """A plain name that takes as many bytes: a header is JSON, and a string in another JSON.

    So a thousand clients, and all runs, share a few sizes.
    """
    return "x" * (len(json.dumps(json.dumps(name))) - len(json.dumps(json.dumps(""))))


@lru_cache(maxsize=4096)
def _size_of_form(
    run_id: str,
    client_id: str,
    digits: int,
    algorithm: str | None,
    names: tuple[str, ...],
    shapes: tuple[tuple[int, ...], ...],
) -> int:
    values = dict(zip(names, map(np.zeros, shapes), strict=True))
    round_ = 10 ** (digits - 1)
    if algorithm is None:
        return len(encode(Update(run_id, round_, client_id, values)))
    return len(encode(Broadcast(run_id, round_, client_id, algorithm, values)))
