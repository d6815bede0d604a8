"""Messages: the same bytes everywhere, what comes back is what went in, and nothing else does."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fdrsvm import CorruptDataError, InvalidInputError
from fdrsvm.core.codec import pack
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.messages import (
    VERSION,
    Broadcast,
    Update,
    decode_broadcast,
    decode_profile,
    decode_update,
    encode,
    encode_profile,
    encoded_size,
)
from fdrsvm.federated.methods import Bundle, describe, from_description
from tests.federated.cases import METHODS, Recorded, assert_same_values, blobs, problems, train

NUMBERS = st.floats(width=64)  # nan and inf too: refusing them is the screen's business
ARRAYS = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    elements=NUMBERS,
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.dictionaries(TEXTS.filter(lambda name: name != "__metadata__"), ARRAYS, max_size=4)
UPDATES = st.builds(Update, TEXTS, st.integers(0, 10**7), TEXTS, VALUES)
BROADCASTS = st.builds(Broadcast, TEXTS, st.integers(0, 10**7), TEXTS, TEXTS, VALUES)


def assert_equal_messages(left, right):
    assert type(left) is type(right)
    assert replace(left, values={}) == replace(right, values={})
    assert_same_values(left.values, right.values)


@given(UPDATES)
def test_an_update_comes_back_as_it_went(update):
    assert_equal_messages(decode_update(encode(update)), update)


@given(BROADCASTS)
def test_a_broadcast_comes_back_as_it_went(broadcast):
    assert_equal_messages(decode_broadcast(encode(broadcast)), broadcast)


@given(st.one_of(UPDATES, BROADCASTS))
def test_the_size_is_that_of_the_bytes(message):
    assert encoded_size(message) == len(encode(message))


def test_the_size_is_that_of_the_bytes_when_a_digit_is_added():
    for message in (
        Update("run", 9, "Werk Süd · 工場", {"a": np.zeros(3)}),
        Broadcast("run", 9, "Werk Süd · 工場", '{"name":"ß"}', {"a": np.zeros((2, 3))}),
    ):
        for round_ in (0, 9, 10, 99, 100, 99_999, 100_000):
            moved = replace(message, round=round_)
            assert encoded_size(moved) == len(encode(moved))


@pytest.mark.parametrize("method", METHODS)
def test_the_history_counts_the_bytes_of_real_messages(method):
    clients = blobs(3)
    transport = Recorded(InProcess(problems(clients)))
    result = train(clients, METHODS[method], transport=transport, max_rounds=11, tol=0.0)
    assert result.n_rounds == 11
    for record, (broadcasts, answers) in zip(result.history, transport.rounds, strict=False):
        assert record.bytes_down == sum(len(encode(message)) for message in broadcasts)
        assert record.bytes_up == sum(len(encode(message)) for message in answers)


def test_equal_messages_have_equal_bytes_whatever_the_order_of_names():
    a, b = np.arange(3.0), np.eye(2)
    left = Update("run", 3, "c", {"a": a, "b": b})
    right = Update("run", 3, "c", {"b": np.asfortranarray(b), "a": a[::-1][::-1].copy()})
    assert encode(left) == encode(right)
    assert encode(left) != encode(replace(left, round=4))
    assert encode(left) != encode(replace(left, client_id="d"))


def test_another_process_writes_the_same_bytes():
    script = (
        "import sys, numpy as np\n"
        "from fdrsvm.federated.messages import *\n"
        "u = Update('run', 7, 'Süd', {'z': np.arange(3.0), 'a': np.array(0.1), 'm': np.eye(2)})\n"
        "sys.stdout.write(encode(u).hex())"
    )
    here = encode(
        Update("run", 7, "Süd", {"m": np.eye(2), "a": np.array(0.1), "z": np.arange(3.0)})
    )
    for seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-X", "utf8", "-c", script],
            capture_output=True,
            check=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        assert bytes.fromhex(there) == here


def test_one_kind_does_not_pass_for_another():
    update = Update("run", 1, "c", {"a": np.zeros(2)})
    broadcast = Broadcast("run", 1, "c", "{}", {"a": np.zeros(2)})
    profile = problems(blobs(1))[0].profile
    for data, decoders in (
        (encode(update), (decode_broadcast, decode_profile)),
        (encode(broadcast), (decode_update, decode_profile)),
        (encode_profile(profile), (decode_update, decode_broadcast)),
    ):
        for decode in decoders:
            with pytest.raises(CorruptDataError):
                decode(data)


def test_a_change_of_any_byte_is_seen():
    data = encode(Update("run", 1, "c", {"a": np.arange(2.0)}))
    for k in range(len(data)):
        for change in (1, 128):
            broken = bytearray(data)
            broken[k] ^= change
            with pytest.raises(CorruptDataError):
                decode_update(bytes(broken))


def test_cut_or_lengthened_bytes_are_refused():
    data = encode(Broadcast("run", 1, "c", "{}", {"a": np.arange(2.0)}))
    for k in range(0, len(data), 7):
        with pytest.raises(CorruptDataError):
            decode_broadcast(data[:k])
    with pytest.raises(CorruptDataError):
        decode_broadcast(data + b"\0")


@given(st.binary(max_size=300))
def test_noise_is_refused(data):
    for decode in (decode_update, decode_broadcast, decode_profile):
        with pytest.raises(CorruptDataError):
            decode(data)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"run_id": "r", "round": 1},
        {"run_id": "r", "round": 1, "client_id": "c", "more": 1},
        {"run_id": "r", "round": "1", "client_id": "c"},
        {"run_id": "r", "round": 1.0, "client_id": "c"},
        {"run_id": "r", "round": True, "client_id": "c"},
        {"run_id": None, "round": 1, "client_id": "c"},
        {"run_id": "r", "round": 1, "client_id": ["c"]},
    ],
    ids=str,
)
def test_a_header_of_another_form_is_refused(header):
    with pytest.raises(CorruptDataError):
        decode_update(pack("update", VERSION, header, {}))


def test_another_version_is_refused():
    header = {"run_id": "r", "round": 1, "client_id": "c"}
    with pytest.raises(CorruptDataError, match="format"):
        decode_update(pack("update", VERSION + 1, header, {}))


# --- profiles ---


def test_a_profile_comes_back_as_it_went():
    for client in (blobs(1)[0], blobs(1, fit_intercept=True, norm="l2", kappa=np.inf)[0]):
        profile = client.problem("Werk Süd").profile
        back = decode_profile(encode_profile(profile))
        assert back == profile
        assert {type(v) for v in asdict(back).values()} == {
            type(v) for v in asdict(profile).values()
        }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("client_id", 3),
        ("client_id", ""),
        ("n_samples", "12"),
        ("n_samples", 0),
        ("n_samples", True),
        ("n_features", -1),
        ("n_features", 2.5),
        ("fit_intercept", "yes"),
        ("norm", "l3"),
        ("epsilon", -0.1),
        ("epsilon", None),
        ("floor", -1.0),
        ("floor", [0.0]),
    ],
)
def test_a_profile_that_cannot_be_is_refused(field, value):
    header = {**asdict(blobs(1)[0].problem("c").profile), field: value}
    with pytest.raises(CorruptDataError):
        decode_profile(pack("profile", VERSION, header, {}))


def test_a_profile_says_what_it_should():
    client = blobs(1, n_samples=12, fit_intercept=True, norm="l1", epsilon=0.25)[0]
    profile = client.problem("c").profile
    assert (profile.n_samples, profile.n_features) == (12, 4)
    assert (profile.fit_intercept, profile.norm) == (True, "l1")
    assert profile.epsilon == profile.floor == 0.25
    boxed = client.with_(box=(client.X.min(axis=0), client.X.max(axis=0)))
    assert boxed.problem("c").profile.floor == 0.0


# --- methods in words ---


@pytest.mark.parametrize("method", METHODS)
def test_a_method_comes_back_from_its_description(method):
    text = describe(METHODS[method])
    assert from_description(text) == METHODS[method]
    assert describe(from_description(text)) == text
    assert json.loads(text)["name"] == METHODS[method].name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "3",
        "{}",
        '{"name":"nobody"}',
        '{"name":["bundle"]}',
        '{"name":"bundle","level":2.0}',
        '{"name":"bundle","colour":"red"}',
        '{"name":"admm","rho":-1.0}',
        '{"name":"admm","rho":NaN}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:30],
)
def test_a_description_of_nothing_is_refused(text):
    with pytest.raises(InvalidInputError, match="algorithm"):
        from_description(text)


def test_numbers_of_numpy_are_settings_too():
    algorithm = Bundle(level=np.float64(0.3), max_age=np.int64(8), max_cuts=np.int64(200))
    assert describe(algorithm) == describe(Bundle())
