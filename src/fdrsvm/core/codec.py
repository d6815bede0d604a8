"""Arrays and a JSON header as bytes, for messages, checkpoints and model files alike.

The container is safetensors: a length, a JSON table of names, dtypes, shapes and offsets, then the
raw little-endian numbers. Any safetensors reader opens it, and nothing in it can run. Ours adds one
metadata entry: what kind of thing this is, its version, a header of plain JSON, and the SHA-256 of
all of that and of every array. Equal content gives equal bytes, and bytes other than those that
``pack`` would write are refused, so no change goes unseen.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from fdrsvm.errors import CorruptDataError, InvalidInputError

_ENTRY = "fdrsvm"
_DTYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8"), "BOOL": np.dtype("?")}
_MAX_BYTES = 1 << 30


# How many arrays, and how many bytes before them: reading those takes longest.
_USUAL = (10_000, 1 << 22)
_BY_KIND = {
    "introduction": (10_000, 1 << 24),  # has the names of all columns
    "model": (10_000, 1 << 26),  # and the rounds
    "checkpoint": (250_000, 100_000_000),  # of a thousand clients; safetensors reads no more
}


class Packed(NamedTuple):
    """What a container holds."""

    header: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def pack(
    kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> bytes:
    """Bytes of a container; arrays are float64, int64 or bool, the header is plain JSON."""
    clean = {name: _check_array(name, arrays[name]) for name in sorted(arrays)}
    table = {name: [array.dtype.str, list(array.shape)] for name, array in clean.items()}
    envelope = {"kind": kind, "version": version, "header": dict(header)}
    try:
        stated = json.dumps([envelope, table], sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(stated.encode())
        for array in clean.values():
            digest.update(array.tobytes())
        envelope["sha256"] = digest.hexdigest()
        text = json.dumps(envelope, sort_keys=True, separators=(",", ":"), allow_nan=False)
        if "\\ud" in text:  # half a pair is legal JSON, but no file system or other reader takes it
            json.dumps(json.loads(text), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError("header", "must be plain JSON", str(error)) from None
    data = bytes(safetensors.numpy.save(clean, metadata={_ENTRY: text}))
    try:
        _check_size(kind, len(clean), int.from_bytes(data[:8], "little"))
    except ValueError as error:
        raise InvalidInputError(kind, "must be of a size that is read again", str(error)) from None
    return data


def unpack(data: bytes, kind: str, version: int, *, max_bytes: int = _MAX_BYTES) -> Packed:
    """The content of a container that ``pack`` wrote, or a CorruptDataError."""
    if len(data) > max_bytes:
        raise CorruptDataError(f"{kind}: {len(data)} bytes, at most {max_bytes} are allowed")
    envelope = _read_envelope(data, kind)
    if envelope["version"] != version:
        raise CorruptDataError(
            f"{kind}: written in format {reprlib.repr(envelope['version'])}, this release reads "
            f"{version}"
        )
    try:
        entries = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
        arrays = {
            name: np.frombuffer(entry["data"], dtype=_DTYPES[entry["dtype"]])
            .reshape(entry["shape"])
            .copy()
            for name, entry in entries
        }
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise CorruptDataError(f"{kind}: {error}") from None
    header = envelope["header"]
    try:
        intact = isinstance(header, dict) and pack(kind, version, header, arrays) == data
    except InvalidInputError:
        intact = False  # it holds what pack would not write, say a nan in the header
    if not intact:
        raise CorruptDataError(f"{kind}: the content does not match its SHA-256")
    return Packed(header, arrays)


def _check_array(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array as safetensors stores it, little-endian and in C order."""
    if name == "__metadata__" or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise InvalidInputError(
            "arrays", "names must be whole characters and not '__metadata__'", f"one is {name!r}"
        )
    for dtype in _DTYPES.values():
        if array.dtype == dtype:
            if dtype.kind == "b" and (array.view(np.uint8) > 1).any():
                raise InvalidInputError(name, "booleans must be bytes 0 or 1", "one is not")
            # Not ascontiguousarray: it makes a scalar a vector.
            return np.asarray(array, dtype=dtype, order="C")
    raise InvalidInputError(name, "must be float64, int64 or bool", f"its dtype is {array.dtype}")


def _check_size(kind: str, n_arrays: int, n_bytes: int) -> None:
    most_arrays, most_bytes = _BY_KIND.get(kind, _USUAL)
    if n_bytes > most_bytes:
        raise ValueError(f"its header has {n_bytes} bytes, at most {most_bytes} are allowed")
    if n_arrays > most_arrays:
        raise ValueError(f"it has {n_arrays} arrays, at most {most_arrays} are allowed")


def _read_envelope(data: bytes, kind: str) -> dict[str, Any]:
    try:
        length = int.from_bytes(data[:8], "little")
        if length > len(data):
            raise ValueError("it is cut short")
        _check_size(kind, data.count(b'"data_offsets"', 8, 8 + length), length)
        table = json.loads(data[8 : 8 + length].decode())
        _check_size(kind, len(table) - 1, length)  # who escapes letters was not counted before
        envelope = json.loads(table["__metadata__"][_ENTRY])
        found = envelope["kind"]
        complete = {"kind", "version", "header", "sha256"} == set(envelope)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptDataError(f"{kind}: not a file of this package ({error})") from None
    if not complete or found != kind:
        raise CorruptDataError(f"{kind}: the content is of kind {reprlib.repr(found)}")
    return dict(envelope)
