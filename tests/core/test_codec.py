"""A container gives back what was packed, bit for bit, or refuses."""

import hashlib
import json
import os
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fdrsvm import CorruptDataError, InvalidInputError
from fdrsvm.core.codec import pack, unpack

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.none() | st.booleans() | st.integers() | texts
json_values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
headers = st.dictionaries(texts, json_values, max_size=4)
any_array = st.sampled_from(["<f8", "<i8", "?"]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
)
arrays = st.dictionaries(texts, any_array, max_size=4)

HEADER = {"b": [1, 2.5, None, True], "a": {"é": "x"}}
ARRAYS = {
    "w": np.array([[1.0, -2.0], [0.0, 5e-324]]),
    "count": np.array(3),
    "mask": np.array([True, False, True]),
    "none": np.zeros((0, 2)),
}
DIGEST = "d41f0f0f5c812c236f422a755d996b711a8ddb6a1c8e595ea5d45c22f33c2539"


def small():
    return pack("update", 1, HEADER, ARRAYS)


def bits(array):
    return array.dtype, array.shape, array.tobytes()


@given(header=headers, content=arrays)
def test_what_is_packed_is_unpacked(header, content):
    packed = unpack(pack("update", 3, header, content), "update", 3)
    assert json.dumps(packed.header, sort_keys=True) == json.dumps(header, sort_keys=True)
    assert packed.arrays.keys() == content.keys()
    for name, array in content.items():
        assert bits(packed.arrays[name]) == bits(array)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -0.0, 5e-324, 1.7976931348623157e308])
def test_every_float_survives(value):
    payload = np.array([value, -value])
    assert bits(unpack(pack("x", 1, {}, {"a": payload}), "x", 1).arrays["a"]) == bits(payload)


def test_views_are_packed_as_what_they_show():
    base = np.arange(12.0).reshape(3, 4)
    for view in (base.T, base[::-1], base[:, ::2], np.asfortranarray(base), base[1, 2]):
        expected = np.array(view, order="C")
        found = unpack(pack("x", 1, {}, {"a": np.asarray(view)}), "x", 1).arrays["a"]
        assert bits(found) == bits(expected)


def test_unpacked_arrays_are_writable_and_share_nothing():
    data = small()
    array = unpack(data, "update", 1).arrays["w"]
    array[:] = 7.0
    assert unpack(data, "update", 1).arrays["w"][0, 0] == 1.0


def test_bytes_do_not_depend_on_the_order_of_keys():
    turned = pack(
        "update",
        1,
        dict(reversed(HEADER.items())),
        {name: ARRAYS[name] for name in reversed(ARRAYS)},
    )
    assert turned == small()


def test_bytes_are_a_promise():
    # Files in use were written with these bytes; a change here would have them refused.
    assert hashlib.sha256(small()).hexdigest() == DIGEST


@pytest.mark.parametrize("seed", ["1", "2"])
def test_bytes_do_not_depend_on_the_process(seed):
    program = "from tests.core.test_codec import small; import sys; sys.stdout.write(small().hex())"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert bytes.fromhex(run.stdout) == small()


def test_any_safetensors_reader_opens_it():
    found = safetensors.numpy.load(small())
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert bits(found[name]) == bits(array)


def test_every_bit_counts():
    data = small()
    for bit in range(8 * len(data)):
        altered = bytearray(data)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptDataError):
            unpack(bytes(altered), "update", 1)


def test_every_cut_and_every_addition_is_refused():
    data = small()
    for length in range(len(data)):
        with pytest.raises(CorruptDataError):
            unpack(data[:length], "update", 1)
    for more in (b"\0", b" ", data):
        with pytest.raises(CorruptDataError):
            unpack(data + more, "update", 1)


@settings(max_examples=300)
@given(noise=st.binary(max_size=200), at=st.integers(0, 400), length=st.integers(0, 40))
def test_noise_is_refused(noise, at, length):
    data = small()
    for altered in (noise, data[:at] + noise + data[at + length :]):
        if altered != data:
            with pytest.raises(CorruptDataError):
                unpack(altered, "update", 1)


def test_a_character_beyond_the_first_plane_survives():
    header = {"client": "Werk \U0001f3ed", "text": r"\ud800"}
    assert unpack(pack("update", 1, header, {}), "update", 1).header == header


def test_a_long_kind_or_version_is_not_repeated_in_full():
    for fields in ({"kind": "x" * 10**6}, {"version": "x" * 10**6}):
        envelope = {"kind": "update", "version": 1, "header": {}, "sha256": "", **fields}
        with pytest.raises(CorruptDataError) as caught:
            unpack(forge(envelope=json.dumps(envelope)), "update", 1)
        assert len(str(caught.value)) < 200


def test_another_kind_is_named():
    with pytest.raises(CorruptDataError, match="model: the content is of kind 'update'"):
        unpack(small(), "model", 1)


@pytest.mark.parametrize("version", [0, 2, 10**20])
def test_another_version_is_named(version):
    data = pack("update", version, HEADER, ARRAYS)
    with pytest.raises(CorruptDataError, match=f"format {version}, this release reads 1"):
        unpack(data, "update", 1)


def test_a_version_that_only_equals_ours_is_refused():
    for version in (True, 1.0):
        with pytest.raises(CorruptDataError):
            unpack(pack("update", version, HEADER, ARRAYS), "update", 1)


def test_too_many_bytes_are_refused():
    data = small()
    unpack(data, "update", 1, max_bytes=len(data))
    with pytest.raises(CorruptDataError, match="at most"):
        unpack(data, "update", 1, max_bytes=len(data) - 1)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u8", "c16", "O", "U3", "S3", "M8[s]", ">f8"])
def test_other_dtypes_are_not_packed(dtype):
    with pytest.raises(InvalidInputError, match="must be float64, int64 or bool") as caught:
        pack("update", 1, {}, {"w": np.zeros(2, dtype)})
    assert caught.value.argument == "w"


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def loop():
    value = []
    value.append(value)
    return value


BAD_HEADERS = {
    "NaN": {"a": np.nan},
    "infinity": {"a": [-np.inf]},
    "bytes": {"a": b"x"},
    "an array": {"a": np.zeros(2)},
    "a set": {"a": {1}},
    "an integer of NumPy": {"a": np.int64(1)},
    "keys that do not sort": {"a": 1, 2: 3},
    "a loop": {"a": loop()},
    "too deep": {"a": nested(100_000)},
    "too long a number": {"a": 10**5000},
    "half a character": {"a": "\ud83d"},
    "half a character in a key": {"\udc00": 1},
}


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_a_header_that_is_not_json_is_not_packed(name):
    with pytest.raises(InvalidInputError, match="header: must be plain JSON"):
        pack("update", 1, BAD_HEADERS[name], {})


@pytest.mark.parametrize("name", ["__metadata__", "\ud800"])
def test_an_array_with_a_name_that_cannot_be_read_is_not_packed(name):
    with pytest.raises(InvalidInputError):
        pack("update", 1, {}, {name: np.zeros(2)})


def forge(header="{}", table=None, numbers=b"", *, envelope=None):
    """A container by hand, whose SHA-256 is never right."""
    text = f'{{"kind":"update","version":1,"header":{header},"sha256":"{"0" * 64}"}}'
    entries = {"__metadata__": {"fdrsvm": text if envelope is None else envelope}, **(table or {})}
    encoded = json.dumps(entries).encode()
    encoded += b" " * (-len(encoded) % 8)
    return struct.pack("<Q", len(encoded)) + encoded + numbers


def entry(dtype="F64", shape=(2,), size=16):
    return {"w": {"dtype": dtype, "shape": list(shape), "data_offsets": [0, size]}}


FORGED = {
    "wrong SHA-256": forge(),
    "NaN": forge('{"a":NaN}'),
    "infinity": forge('{"a":[-Infinity]}'),
    "infinity in digits": forge('{"a":1e999}'),
    "a long number": forge(f'{{"a":{"9" * 5000}}}'),
    "half a character": forge(r'{"a":"\ud800"}'),
    "a header that is a list": forge("[]"),
    "a header that is text": forge('"x"'),
    "an envelope that is a list": forge(envelope="[]"),
    "an envelope that is text": forge(envelope='"kind"'),
    "an envelope that is not JSON": forge(envelope="{"),
    "an envelope that is no text": forge(envelope={"kind": "update"}),
    "an envelope with more": forge(envelope='{"kind":"update","version":1,"header":{},"more":1}'),
    "a kind that is a list": forge(envelope='{"kind":[],"version":1,"header":{},"sha256":""}'),
    "a version that is a list": forge(
        envelope='{"kind":"update","version":[1],"header":{},"sha256":""}'
    ),
    "no metadata": struct.pack("<Q", 2) + b"{}",
    "a table that is a list": struct.pack("<Q", 2) + b"[]",
    "a table in UTF-16": struct.pack("<Q", 6) + "{}".encode("utf-16"),
    "a huge length": struct.pack("<Q", 2**63) + b"{}",
    "a huge shape": forge(table=entry(shape=(2**40, 2**40))),
    "a shape beyond 64 bits": forge(table=entry(shape=(0, 2**64 - 1), size=0)),
    "a negative shape": forge(table=entry(shape=(-2,)), numbers=b"\0" * 16),
    "100 dimensions": forge(table=entry(shape=[1] * 100, size=8), numbers=b"\0" * 8),
    "half precision": forge(table=entry("F16", (8,)), numbers=b"\0" * 16),
    "objects": forge(table=entry("O"), numbers=b"\0" * 16),
    "offsets outside": forge(table=entry(shape=(2**20,), size=2**23)),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_bytes_are_refused(name):
    with pytest.raises(CorruptDataError, match=r"^update: "):
        unpack(FORGED[name], "update", 1)


def test_deep_nesting_is_refused_at_any_depth():
    # Reading and writing run out of stack at depths that differ by a few.
    limit = sys.getrecursionlimit()
    for depth in [*range(limit - 200, limit + 20), 100_000]:
        for data in (forge(f'{{"a":{"[" * depth}{"]" * depth}}}'), forge(envelope="[" * depth)):
            with pytest.raises(CorruptDataError):
                unpack(data, "update", 1)


def test_a_boolean_is_nought_or_one():
    odd = np.array([0, 1, 2], dtype=np.uint8).view(bool)
    with pytest.raises((CorruptDataError, InvalidInputError)):
        unpack(pack("update", 1, {}, {"mask": odd}), "update", 1)


def crowded(n_arrays, *, spelt=False):
    """Empty arrays by the hundred thousand; ``spelt`` hides them from whoever counts letters."""
    entry = '{"dtype":"F64","shape":[0],"data_offsets":[0,0]}'
    if spelt:
        entry = entry.replace("data_offsets", r"data\u005foffsets")
    table = ",".join(f'"{k}":{entry}' for k in range(n_arrays))
    encoded = f'{{"__metadata__":{{"fdrsvm":"{{}}"}},{table}}}'.encode()
    return struct.pack("<Q", len(encoded)) + encoded


@pytest.mark.parametrize("kind", ["update", "model", "introduction", "checkpoint", "memory"])
def test_a_crowd_of_arrays_or_a_huge_header_is_refused_at_once(kind):
    n_bytes = 100_000_001
    wide = struct.pack("<Q", n_bytes) + b"[" + b"0," * (n_bytes // 2)
    for data in (crowded(300_000), wide):
        begin = time.process_time()
        with pytest.raises(CorruptDataError, match=r"(arrays|bytes), at most \d+ are allowed"):
            unpack(data, kind, 1)
        assert time.process_time() - begin < 0.5  # 20 s before there was a limit


def test_arrays_are_counted_however_they_are_spelt():
    with pytest.raises(CorruptDataError, match="10001 arrays, at most 10000 are allowed"):
        unpack(crowded(10_001, spelt=True), "update", 1)


def test_what_could_not_be_read_again_is_not_packed():
    full = {f"{k:05d}": np.zeros(0) for k in range(10_000)}
    assert len(unpack(pack("update", 1, {}, full), "update", 1).arrays) == 10_000
    with pytest.raises(InvalidInputError, match="10001 arrays, at most 10000 are allowed"):
        pack("update", 1, {}, {**full, "more": np.zeros(0)})
    with pytest.raises(InvalidInputError, match="at most 4194304 are allowed"):
        pack("update", 1, {"long": "x" * (1 << 22)}, {})
    pack("model", 1, {"long": "x" * (1 << 22)}, {})  # has names and rounds
