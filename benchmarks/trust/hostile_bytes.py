"""Bytes that no file of this package should hold, made from files that it wrote.

Three sorts: altered (the SHA-256 in the file no longer fits, if it has one), forged (whoever made
it computed the right SHA-256 for hostile content), and foreign (pickles, archives and the like).
"""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fdrsvm.core.codec import pack
from fdrsvm.errors import InvalidInputError

MAX_BYTES = 1_000_000

Attack = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
_MARK = "\x01here\x01"

# As they stand in JSON text. Python's json reads some that JSON does not have.
_TOKENS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-0.0",
    "9" * 4000,
    "-" + "9" * 5000,
    "18446744073709551616",
    "-1",
    "0.5",
    "true",
    "null",
    '""',
    "[]",
    "{}",
    '{"a":1,"a":2}',
    r'"\ud800"',
    r'"\u0000"',
    '"' + "x" * 10_000 + '"',
    "[" + "0," * 20_000 + "0]",
    "[" + "[]," * 20_000 + "[]]",
    '{"$float":"inf"}',
    '{"__class__":"os.system","args":["true"]}',
)
_DEPTHS = (10, 100, 300, 900, 990, 1000, 5000, 100_000)
_SHAPES: tuple[list[Any], ...] = (
    [2**40, 2**40],
    [2**63],
    [2**64],
    [0, 2**64 - 1],
    [-1],
    [-1, -8],
    [1] * 100,
    [],
    [0.5],
    ["2"],
    [None],
)
_OFFSETS: tuple[Any, ...] = (
    [0, 2**62],
    [8, 0],
    [-8, 8],
    [0, 8],
    [1, 9],
    [0, 0],
    [2**64, 2**64 + 8],
    [0],
    "0-8",
)
_DTYPES: tuple[Any, ...] = ("F16", "BF16", "F32", "I8", "U64", "O", "f64", "", ["F64"], None, 7)


# Altered: bytes


def flip_bits(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """One to eight bits are the other way round."""
    altered = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        altered[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(altered)


def cut(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data))]


def extend(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """There is something after the end."""
    more = rng.choice([b"\0", b" ", b"\n", rng.randbytes(rng.randint(1, 4096)), data])
    return data + more


def splice(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The head of one file and the tail of another."""
    other = rng.choice(others)
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


def move_block(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A block is copied over another, or is zeros."""
    length = rng.randint(1, max(1, len(data) // 4))
    start, goal = rng.randrange(len(data)), rng.randrange(len(data))
    block = data[start : start + length] if rng.random() < 0.5 else bytes(length)
    return data[:goal] + block + data[goal + len(block) :]


def wrong_length(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The first eight bytes, in a container the length of its table, say something else."""
    lengths = (0, 1, 8, len(data), len(data) - 8, 2**31, 2**32, 2**63, 2**64 - 1)
    return struct.pack("<Q", rng.choice([*lengths, rng.randrange(len(data))])) + data[8:]


# Altered: JSON


def hostile_json(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """One value of a JSON text is replaced; in a container one of its table or its envelope."""
    if data[:1] == b"{":
        return _with_token(rng, json.loads(data)).encode("utf-8", "surrogatepass")
    table, numbers = _opened(data)
    if rng.random() < 0.5:
        return _closed(_with_token(rng, table), numbers)
    envelope = json.loads(table["__metadata__"]["fdrsvm"])
    table["__metadata__"]["fdrsvm"] = _with_token(rng, envelope)
    return _closed(json.dumps(table), numbers)


def hostile_table(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """An array of a container has another shape, offset or dtype, or is there twice."""
    if data[:1] == b"{":
        return hostile_json(rng, data, others)
    table, numbers = _opened(data)
    names = [name for name in table if name != "__metadata__"] or ["w"]
    entry = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    name = rng.choice(names)
    entry.update(table.get(name, {}))
    field, value = rng.choice(
        [
            ("shape", rng.choice(_SHAPES)),
            ("data_offsets", rng.choice(_OFFSETS)),
            ("dtype", rng.choice(_DTYPES)),
            ("spare", 1),
        ]
    )
    table[name] = {**entry, field: value}
    text = json.dumps(table)
    if rng.random() < 0.2:
        text = f"{text[:-1]},{json.dumps(name)}:{json.dumps(entry)}}}"  # the key is there twice
    return _closed(text, numbers)


def _with_token(rng: random.Random, content: Any) -> str:
    token = rng.choice(_TOKENS)
    if rng.random() < 0.2:
        depth = rng.choice(_DEPTHS)
        token = rng.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth])
    return json.dumps(_with_mark(rng, content)).replace(json.dumps(_MARK), token, 1)


def _with_mark(rng: random.Random, content: Any) -> Any:
    """A copy with the mark in place of one value, anywhere."""
    if isinstance(content, dict) and content and rng.random() < 0.9:
        key = rng.choice(list(content))
        if rng.random() < 0.1:
            return {**content, _MARK: content[key]}
        return {**content, key: _with_mark(rng, content[key])}
    if isinstance(content, list) and content and rng.random() < 0.9:
        k = rng.randrange(len(content))
        return [*content[:k], _with_mark(rng, content[k]), *content[k + 1 :]]
    return _MARK


def _opened(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def _closed(text: str, numbers: bytes) -> bytes:
    table = text.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(table)) + table + numbers


# Forged: the SHA-256 is right


def forge(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A container whose header or arrays were exchanged before its SHA-256 was computed."""
    if data[:1] == b"{":
        return hostile_json(rng, data, others)
    table, numbers = _opened(data)
    envelope = json.loads(table.pop("__metadata__")["fdrsvm"])
    arrays = {name: _array(entry, numbers) for name, entry in table.items()}
    header = envelope["header"]
    while True:
        try:
            if arrays and rng.random() < 0.5:
                return pack(envelope["kind"], 1, header, _other_arrays(rng, arrays))
            return pack(envelope["kind"], 1, _other_header(rng, header), arrays)
        except (InvalidInputError, AttributeError, TypeError, ValueError, RecursionError):
            continue  # not JSON: nobody can give that a right SHA-256


def _array(entry: dict[str, Any], numbers: bytes) -> Any:
    start, end = entry["data_offsets"]
    dtype = {"F64": "<f8", "I64": "<i8", "BOOL": "?"}[entry["dtype"]]
    return np.frombuffer(numbers[start:end], dtype).reshape(entry["shape"])


def _other_header(rng: random.Random, header: dict[str, Any]) -> dict[str, Any]:
    found = json.loads(_with_token(rng, header))
    if not isinstance(found, dict):
        raise TypeError("a header must be a mapping")
    return found


def _other_arrays(rng: random.Random, arrays: dict[str, Any]) -> dict[str, Any]:
    name = rng.choice(list(arrays))
    others: list[Any] = [
        None,
        np.array(np.nan),
        np.full(arrays[name].shape, np.inf),
        np.zeros(0),
        np.zeros((0, 3)),
        np.zeros((2, 2, 2)),
        np.array([True, False]),
        np.array(-(2**63)),
        np.arange(7),
        np.zeros((1,) * 30),
        -arrays[name] if arrays[name].dtype.kind != "b" else ~arrays[name],
    ]
    changed = {**arrays, rng.choice([name, name, "spare", "state/9.w"]): rng.choice(others)}
    return {key: array for key, array in changed.items() if array is not None}


# Foreign


def foreign(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A file of another kind, whole or damaged; nothing in it may run or unfold."""
    found = rng.choice(FOREIGN)
    return found if rng.random() < 0.3 or not found else flip_bits(rng, found, others)


def noise(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Random bytes."""
    return rng.randbytes(rng.randint(0, 4096))


def _zip_of(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def _npy(descr: str, shape: str, content: bytes) -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


# Each would make a folder or run a command if it were unpickled.
_PICKLES = (
    b"cos\nmkdir\n(Vunpickled\ntR.",
    b"cos\nsystem\n(Vtouch unpickled\ntR.",
    b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94\x8c\x04exec\x94\x93\x94.",
)
_ZEROS = bytes(50_000_000)  # what the bombs unfold to
FOREIGN: tuple[bytes, ...] = (
    b"",
    *_PICKLES,
    *(_zip_of("archive/data.pkl", one) for one in _PICKLES),
    *(_zip_of("coef.npy", _npy("|O", "(1,)", one)) for one in _PICKLES),
    _npy("|O", "(1,)", _PICKLES[0]),
    _npy("<f8", "(1000000000000,)", b""),
    _zip_of("coef.npy", _npy("<f8", "(6250000,)", _ZEROS)),
    gzip.compress(_ZEROS, mtime=0),
    b"\x7fELF\x02\x01\x01" + bytes(57),
    b"#!/bin/sh\ntouch unpickled\n",
    b"\x89PNG\r\n\x1a\n" + bytes(32),
    b"import os\nos.mkdir('unpickled')\n",
    '{"kind": "model"}'.encode("utf-16"),
    '{"kind": "model"}'.encode("utf-32"),
    b"\xef\xbb\xbf{}",
    b"[" * 500_000,
    b'{"a":' * 100_000,
    b"9" * 900_000,
    b'"' + b"\\ud800" * 100_000 + b'"',
)

ALTERED: dict[str, Attack] = {
    "bits flipped": flip_bits,
    "cut": cut,
    "extended": extend,
    "spliced": splice,
    "blocks moved": move_block,
    "length field": wrong_length,
    "hostile JSON": hostile_json,
    "hostile table": hostile_table,
    "foreign files": foreign,
    "noise": noise,
}
FORGED = "forged, with the right SHA-256"
