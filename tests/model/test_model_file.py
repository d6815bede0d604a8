"""A model file gives back the model that was saved, or an error that names the file."""

import json
import os
import stat
import struct

import numpy as np
import pytest
from hypothesis import given, settings

from fdrsvm import CorruptDataError, InvalidInputError
from fdrsvm.core.codec import pack, unpack
from fdrsvm.core.files import write_atomically
from fdrsvm.model import model_file
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import load_model, save_model
from fdrsvm.risk.feature_maps import AdditiveMap, FourierMap
from tests.estimators.models import models, same_model

HEADER = {
    "classes": ["ok", "fault"],
    "feature_names": ["a", "b"],
    "estimator": "FDRSVC",
    "params": {"kappa": {"$float": "inf"}},
    "certificate": {"gap": {"$float": "nan"}},
}
ARRAYS = {"coef": np.array([[1.0, -2.0]]), "intercept": np.array([0.5])}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pump.safetensors"


@pytest.fixture
def small():
    return LinearModel.checked(
        ARRAYS["coef"],
        ARRAYS["intercept"],
        ["ok", "fault"],
        feature_names=["a", "b"],
        estimator="FDRSVC",
        params={"kappa": np.inf},
        certificate={"gap": np.nan},
    )


def assert_refused(path, data, match=None):
    path.write_bytes(data)
    with pytest.raises(CorruptDataError, match=match) as caught:
        load_model(path)
    assert str(path) in str(caught.value)


@settings(max_examples=100)
@given(model=models())
def test_what_is_saved_is_loaded(model, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round.safetensors"
    save_model(model, path)
    loaded = load_model(path)
    assert same_model(model, loaded)
    assert loaded.fingerprint == model.fingerprint
    first = path.read_bytes()
    save_model(loaded, str(path))
    assert path.read_bytes() == first


def test_infinity_survives_at_the_deepest_level(path):
    deep = np.inf
    for _ in range(19):
        deep = [deep]
    model = LinearModel.checked([[1.0]], [0.0], [0, 1], estimator="x", params={"kappa": deep})
    save_model(model, path)
    assert same_model(load_model(path), model)


def test_the_file_says_what_it_is(small, path):
    save_model(small, path)
    packed = unpack(path.read_bytes(), "model", 1)
    assert packed.header == HEADER
    assert path.read_bytes() == pack("model", 1, HEADER, ARRAYS)


FIRST = (
    struct.pack("<Q", 464)
    + rb'{"__metadata__":{"fdrsvm":"{\"header\":{\"certificate\":{\"gap\":{\"$float\":\"nan\"}},'
    rb"\"classes\":[\"ok\",\"fault\"],\"estimator\":\"FDRSVC\",\"feature_names\":[\"a\",\"b\"],"
    rb"\"params\":{\"kappa\":{\"$float\":\"inf\"}}},\"kind\":\"model\",\"sha256\":"
    rb'\"0d2b6f441316ba7c86799162f9927b941d0871cfb7f101017e10427fc2c1ce67\",\"version\":1}"},'
    rb'"coef":{"dtype":"F64","shape":[1,2],"data_offsets":[0,16]},'
    rb'"intercept":{"dtype":"F64","shape":[1],"data_offsets":[16,24]}}      '
    + struct.pack("<3d", 1.0, -2.0, 0.5)
)


def test_files_of_the_first_release_are_read_and_written(small, path):
    # If this is refused, so is every file in use.
    path.write_bytes(FIRST)
    assert same_model(load_model(path), small)
    save_model(small, path)
    assert path.read_bytes() == FIRST


def put(file, at, byte):
    file.seek(at)
    file.write(bytes([byte]))


def test_every_bit_counts(small, path):
    save_model(small, path)
    data = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for at, byte in enumerate(data):
            for bit in range(8):
                put(file, at, byte ^ 1 << bit)
                with pytest.raises(CorruptDataError, match=path.name):
                    load_model(path)
            put(file, at, byte)
    assert same_model(load_model(path), small)


def test_every_cut_and_every_addition_is_refused(small, path):
    save_model(small, path)
    data = path.read_bytes()
    for length in range(len(data)):
        assert_refused(path, data[:length])
    for more in (b"\0", b" ", data):
        assert_refused(path, data + more)


WRONG = [None, True, 7, -1.5, "x", [], {}, [1], ["a", "b", "c"], [["a"], "b"], {"a": 1}, [None] * 2]
LEGAL = {"feature_names": [None], "estimator": ["x"], "params": [{}, {"a": 1}]}
LEGAL["certificate"] = LEGAL["params"]
FIELDS = [
    (field, value)
    for field in HEADER
    for value in WRONG
    if not any(value is other or value == other for other in LEGAL.get(field, []))
]


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_a_field_of_the_wrong_type_is_refused(field, value, path):
    assert_refused(path, pack("model", 1, {**HEADER, field: value}, ARRAYS))


@pytest.mark.parametrize("field", HEADER)
def test_a_missing_field_is_refused(field, path):
    header = {name: value for name, value in HEADER.items() if name != field}
    assert_refused(path, pack("model", 1, header, ARRAYS), match=field)


def nested(depth):
    return json.loads("[" * depth + "]" * depth)


HEADERS = {
    "a spare field": {"note": "x"},
    "one class": {"classes": ["ok"]},
    "equal classes": {"classes": ["ok", "ok"]},
    "classes of two types": {"classes": ["ok", 1]},
    "a class too many": {"classes": ["ok", "fault", "worn"]},
    "a huge class": {"classes": [0, 10**30]},
    "a name too few": {"feature_names": ["a"]},
    "equal names": {"feature_names": ["a", "a"]},
    "deep parameters": {"params": {"a": nested(30)}},
    "very deep parameters": {"params": {"a": nested(400)}},
    "a tagged number that JSON has": {"params": {"a": {"$float": "7.0"}}},
    "a tagged number in other words": {"params": {"a": {"$float": "Infinity"}}},
    "a tagged list": {"params": {"a": {"$float": []}}},
    "a tag and more": {"params": {"a": {"$float": "inf", "b": 1}}},
    "an unknown tag": {"certificate": {"a": {"$complex": "1j"}}},
    "parameters that are a number": {"params": {"$float": "inf"}},
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_at_odds_with_itself_is_refused(name, path):
    assert_refused(path, pack("model", 1, {**HEADER, **HEADERS[name]}, ARRAYS))


CONTENTS = {
    "no coefficients": {"coef": None},
    "no intercept": {"intercept": None},
    "a spare array": {"extra": np.zeros(1)},
    "integers": {"coef": np.array([[1, -2]])},
    "booleans": {"intercept": np.array([True])},
    "a NaN": {"coef": np.array([[np.nan, 1.0]])},
    "an infinity": {"intercept": np.array([np.inf])},
    "a scalar": {"intercept": np.array(0.5)},
    "a vector": {"coef": np.array([1.0, -2.0])},
    "three dimensions": {"coef": np.ones((1, 2, 1))},
    "a feature too many": {"coef": np.ones((1, 3))},
    "a row too many": {"coef": np.ones((2, 2))},
    "an intercept too many": {"intercept": np.ones(2)},
    "nothing": {"coef": np.ones((1, 0))},
}


@pytest.mark.parametrize("name", CONTENTS)
def test_arrays_at_odds_with_the_header_are_refused(name, path):
    arrays = {key: array for key, array in (ARRAYS | CONTENTS[name]).items() if array is not None}
    assert_refused(path, pack("model", 1, HEADER, arrays))


def test_another_kind_and_a_newer_version_are_refused(path):
    assert_refused(path, pack("checkpoint", 1, HEADER, ARRAYS), match="kind 'checkpoint'")
    assert_refused(path, pack("model", 2, HEADER, ARRAYS), match="format 2, this release reads 1")


def safetensors_bytes(table, numbers=b""):
    text = json.dumps(table).encode()
    return struct.pack("<Q", len(text)) + text + numbers


def entry(dtype="F64", shape=(1, 2), size=16):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [0, size]}


TABLES = {
    "a huge shape": entry(shape=(2**40, 2**40)),
    "a size beyond 64 bits": entry(shape=(0, 2**64 - 1), size=0),
    "a negative size": entry(shape=(-1, -2)),
    "100 dimensions": entry(shape=[1] * 100, size=8),
    "objects": entry(dtype="O"),
    "half precision": entry(dtype="F16", shape=(1, 8)),
    "offsets outside": entry(shape=(1, 2**20), size=2**23),
    "a dtype that is a list": entry(dtype=["F64"]),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_hostile_table_is_refused(name, path):
    envelope = {"kind": "model", "version": 1, "header": HEADER, "sha256": "0" * 64}
    table = {"__metadata__": {"fdrsvm": json.dumps(envelope)}, "coef": TABLES[name]}
    assert_refused(path, safetensors_bytes(table, b"\0" * 16))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 64,
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 200_000) + b"[" * 200_000,
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        b"PK\x03\x04" + b"\0" * 60,
        safetensors_bytes({"coef": entry()}, b"\0" * 16),
        safetensors_bytes({"__metadata__": {"format": "pt"}, "coef": entry()}, b"\0" * 16),
    ],
)
def test_other_files_are_refused(data, path):
    assert_refused(path, data)


def test_a_pickle_is_refused_unread(path, small, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("it was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", forbidden)
    mark = path.with_name("mark")
    assert_refused(path, f"cos\nmkdir\n(V{mark}\ntR.".encode())
    assert not mark.exists()
    save_model(small, path)
    load_model(path)


@pytest.mark.parametrize("cut", [0.25, -1e-300])
def test_a_threshold_is_kept_and_a_zero_one_takes_no_room(cut, small, path):
    save_model(small.cut_at(cut), path)
    assert load_model(path).threshold == cut
    assert b"decision_function_threshold" in path.read_bytes()
    save_model(small.cut_at(-0.0), path)
    assert load_model(path).threshold == 0.0
    assert b"decision_function_threshold" not in path.read_bytes()


@pytest.mark.parametrize("cut", [float("inf"), "0.5", True, None])
def test_a_threshold_that_is_none_is_refused(cut, path):
    value = {"$float": "inf"} if cut == float("inf") else cut
    header = {**HEADER, "decision_function_threshold": value}
    assert_refused(path, pack("model", 1, header, ARRAYS), "threshold|content")


def test_a_folder_in_place_of_a_file_is_said_to_be_one(tmp_path):
    with pytest.raises(CorruptDataError, match=r"give the model\.safetensors in it"):
        load_model(tmp_path)


def test_a_missing_file_is_said_to_be_missing(path):
    with pytest.raises(FileNotFoundError, match=path.name):
        load_model(path)


def test_a_large_file_is_refused_before_it_is_read(path, small, monkeypatch):
    path.touch()
    os.truncate(path, 1 << 36)  # a hole: it takes no space
    with pytest.raises(CorruptDataError, match="at most"):
        load_model(path)
    path.unlink()
    monkeypatch.setattr(model_file, "_MAX_BYTES", 100)
    with pytest.raises(InvalidInputError, match="at most 100 bytes"):
        save_model(small, path)
    assert not path.exists()


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(call, error, path, small, monkeypatch):
    path.write_bytes(b"old")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(error)):
        save_model(small, path)
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_the_file_is_complete_before_it_has_its_name(path, small, monkeypatch):
    seen, replace = [], os.replace

    def spy(source, target):
        seen.append((os.path.dirname(source), same_model(load_model(source), small)))
        replace(source, target)

    monkeypatch.setattr(os, "replace", spy)
    save_model(small, path)
    assert seen == [(str(path.parent), True)]
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_folder_is_an_error(path, small):
    with pytest.raises(FileNotFoundError):
        save_model(small, path.parent / "nowhere" / "pump.safetensors")


@pytest.mark.skipif(os.name != "posix", reason="about file modes and links")
def test_the_file_has_the_usual_mode_and_links_are_followed(path):
    plain, link = path.with_name("plain"), path.with_name("current")
    plain.touch()
    link.symlink_to(path)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def with_map(chosen):
    features = chosen.over(2).rescaled(np.array([10.0, -3.0]), np.array([2.0, 0.5]))
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(1, features.n_outputs))
    kept = {"estimator": "FDRSVC", "params": {}, "certificate": {}}
    return LinearModel.checked(weights, [0.5], ["ok", "fault"], features=features, **kept)


MAPPED = [AdditiveMap(n_knots=3), AdditiveMap(pairs="all"), FourierMap(n_components=4)]


@pytest.mark.parametrize("chosen", MAPPED, ids=["curves", "pairs", "waves"])
def test_a_map_is_kept_to_the_last_bit(chosen, path):
    model = with_map(chosen)
    save_model(model, path)
    again = load_model(path)
    X = np.random.default_rng(1).normal(size=(20, 2)) * 5.0 + [10.0, -3.0]
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.fingerprint == model.fingerprint


@pytest.mark.parametrize(
    ("record", "left_out"),
    [
        ("curves", ()),
        ([3], ()),
        ({"n_knots": 3, "pairs": [], "pair_knots": 2}, ()),  # no kind
        ({"kind": "splines", "n_knots": 3, "pairs": [], "pair_knots": 2}, ()),
        ({"kind": "fourier"}, ()),
        ({"kind": "additive", "n_knots": 3, "pairs": [], "pair_knots": 2, "more": 1}, ()),
        ({"kind": "additive", "n_knots": 3, "pairs": [], "pair_knots": 2}, ("features.span",)),
        ({"kind": "additive", "n_knots": 4, "pairs": [], "pair_knots": 2}, ()),  # other weights
    ],
)
def test_a_map_at_odds_with_itself_is_refused(record, left_out, path):
    save_model(with_map(MAPPED[0]), path)
    kind, version = model_file._KIND, model_file._VERSION
    packed = unpack(path.read_bytes(), kind, version)
    arrays = {name: array for name, array in packed.arrays.items() if name not in left_out}
    assert_refused(
        path, pack(kind, version, packed.header | {"features": record}, arrays), "features|kind"
    )
