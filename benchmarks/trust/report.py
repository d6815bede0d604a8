"""Rows and page: results kept as JSON, and docs/trust.md made from them alone."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from fdrsvm.core.files import read_capped, write_atomically
from fdrsvm.core.plain_json import decode, encode, plain
from fdrsvm.errors import CorruptDataError

Kind = TypeVar("Kind")
_MAX_BYTES = 1 << 26
_ROWS, _PAGE = "trust/rows", "trust.md"

_INTRODUCTION = """# Trust, measured

The claims of [SECURITY.md](../SECURITY.md) in figures. `make trust` measures all of them and writes
this page; `python -m benchmarks.trust --only kills,files` measures some again, and
`--quick` a small part of each, as the tests do. Results are in docs/trust/rows; a test makes this
page from them.
"""


@dataclass(frozen=True)
class Row:
    """One part's result, and how it was measured; ``load`` is the machine's, with other work."""

    part: str
    quick: bool
    seconds: float
    load: float
    ended: str
    machine: dict[str, Any]
    versions: dict[str, str]
    result: Any


def to_plain(result: Any) -> Any:
    """A result (a dataclass, with others inside) as plain values; see ``from_plain``."""
    if is_dataclass(result):
        return {entry.name: to_plain(getattr(result, entry.name)) for entry in fields(result)}
    if isinstance(result, Mapping):
        if all(isinstance(key, str) for key in result):
            return {key: to_plain(item) for key, item in result.items()}
        return [[to_plain(key), to_plain(item)] for key, item in result.items()]
    if isinstance(result, (tuple, list)):
        return [to_plain(item) for item in result]
    return plain(result, "result")


def from_plain(kind: type[Kind], value: Any) -> Kind:
    """The result of that class again: tuples, dataclasses and numbers where its hints have them."""
    return _restored(kind, value)  # type: ignore[no-any-return]


def _restored(hint: Any, value: Any) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(
            **{
                entry.name: _restored(hints[entry.name], value[entry.name])
                for entry in fields(hint)
            }
        )
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (some,) = (one for one in inner if one is not type(None))  # X | None, and no other union
        return None if value is None else _restored(some, value)
    if origin is tuple:
        each = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_restored(one, item) for one, item in zip(each, value, strict=True))
    if origin is list:
        return [_restored(inner[0], item) for item in value]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = value.items() if inner[0] is str else value  # JSON has only text for keys
        return {_restored(inner[0], key): _restored(inner[1], item) for key, item in pairs}
    return float(value) if hint is float else value


def write_row(row: Row, docs: Path) -> None:
    """Keep it; an older one of the same part is replaced."""
    path = docs / _ROWS / f"{row.part}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(encode(to_plain(row)), indent=1)
    write_atomically(path, text.encode() + b"\n")


def read_row(part: str, docs: Path) -> Row | None:
    """What was kept of a part; None if it was never measured."""
    path = docs / _ROWS / f"{part}.json"
    if not path.exists():
        return None
    try:
        return from_plain(Row, decode(json.loads(read_capped(path, _MAX_BYTES)), "row"))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptDataError(f"{path}: {error}") from None


def make_page(sections: Mapping[str, tuple[Row, str]]) -> str:
    """The page: a section for each title, with how its figures were measured."""
    parts = [_INTRODUCTION]
    for title, (row, markdown) in sections.items():
        parts.append(f"\n## {title}\n\n{markdown.strip()}\n\n{_origin(row)}\n")
    return "".join(parts)


def _origin(row: Row) -> str:
    what = "A quick version, " if row.quick else "Measured in "
    versions = ", ".join(f"{name} {version}" for name, version in row.versions.items())
    return (
        f"{what}{row.seconds:.0f} s, {row.ended[:10]}, with `--only {row.part}`: "
        f"{row.machine['processor']}, {row.machine['cores']} cores, {row.machine['system']}, "
        f"load {row.load:.1f} at the end, Python {row.machine['python']}, {versions}."
    )


def write_page(text: str, docs: Path) -> Path:
    """Put the page beside its rows; its path."""
    path = docs / _PAGE
    write_atomically(path, text.encode())
    return path
