"""A recording holds what passed, bit for bit, and a hostile one is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.messages import encode, encode_profile
from fdrsvm.privacy import Recorded, read_recording
from fdrsvm.privacy.recording import FILE_NAME
from tests.federated.cases import METHODS, Absent, assert_same_bits, blobs, problems, train
from tests.federated.cases import Recorded as InMemory

METHOD_NAMES = ("bundle", "admm", "subgradient", "fedavg")


def recorded(folder, method="subgradient", inner=None, **settings):
    clients = blobs(3)
    inner = InMemory(InProcess(problems(clients)) if inner is None else inner)
    transport = Recorded(inner, folder)
    result = train(clients, METHODS[method], transport=transport, max_rounds=4, tol=0, **settings)
    return inner, result


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_all_that_passes_is_written_and_nothing_is_changed(method, tmp_path):
    inner, result = recorded(tmp_path, method)
    assert_same_bits(result, train(blobs(3), METHODS[method], max_rounds=4, tol=0))
    found = read_recording(tmp_path)
    assert list(found.profiles) == list(inner.join())
    passed = [pair for asked, got in inner.rounds for pair in zip(asked, got, strict=True)]
    assert len(found.exchanges) == len(passed)
    for (asked, got), (true_asked, true_got) in zip(found.exchanges, passed, strict=True):
        assert encode(asked) == encode(true_asked)
        assert encode(got) == encode(true_got)
    assert len(found.of_client("client-1")) == len(passed) // 3


def test_who_did_not_answer_is_not_in_it(tmp_path):
    away = Absent(InProcess(problems(blobs(3))), lambda t, name: t == 2 and name == "client-0")
    recorded(tmp_path, inner=away, quorum=2)
    found = read_recording(tmp_path)
    assert [asked.round for asked, _ in found.of_client("client-0")] == [1, 3, 4, 5]
    assert all(asked.round == got.round for asked, got in found.exchanges)


def test_a_folder_holds_one_recording(tmp_path):
    recorded(tmp_path)
    with pytest.raises(InvalidInputError, match="must not hold a recording yet"):
        Recorded(InProcess(problems(blobs(2))), tmp_path)


def test_a_folder_without_one_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=FILE_NAME):
        read_recording(tmp_path)
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(InvalidInputError, match=FILE_NAME):
        read_recording(tmp_path)


@pytest.fixture(scope="module")
def bytes_of_a_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    recorded(folder)
    return (folder / FILE_NAME).read_bytes()


def read_bytes(folder, data, **caps):
    (folder / FILE_NAME).write_bytes(data)
    return read_recording(folder, **caps)


def test_no_byte_can_be_cut_off(bytes_of_a_run, tmp_path):
    whole = len(read_bytes(tmp_path, bytes_of_a_run).exchanges)
    for length in range(0, len(bytes_of_a_run), 97):
        # A cut between two messages leaves a shorter recording; any other is seen.
        try:
            found = read_bytes(tmp_path, bytes_of_a_run[:length])
        except CorruptDataError:
            continue
        assert len(found.exchanges) < whole


@given(st.data())
def test_no_changed_bit_goes_unseen(tmp_path_factory, bytes_of_a_run, data):
    folder = tmp_path_factory.getbasetemp()
    at = data.draw(st.integers(0, len(bytes_of_a_run) - 1))
    bit = data.draw(st.integers(0, 7))
    altered = bytearray(bytes_of_a_run)
    altered[at] ^= 1 << bit
    with pytest.raises(CorruptDataError):
        read_bytes(folder, bytes(altered))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(tmp_path_factory, noise):
    folder = tmp_path_factory.getbasetemp()
    for start in (b"", b"FDRSVMR1", b"FDRSVMR1U", b"FDRSVMR1P\x10" + bytes(7)):
        try:
            found = read_bytes(folder, start + noise)
        except CorruptDataError:
            continue
        assert start + noise == b"FDRSVMR1"
        assert found.exchanges == ()


def entry(kind, data):
    return kind + len(data).to_bytes(8, "little") + data


def test_a_length_that_is_only_claimed_costs_nothing(tmp_path):
    huge = (1 << 60).to_bytes(8, "little")
    with pytest.raises(CorruptDataError, match="cut short"):
        read_bytes(tmp_path, b"FDRSVMR1U" + huge + b"x")
    with pytest.raises(CorruptDataError, match="at most 10"):
        read_bytes(tmp_path, b"FDRSVMR1" + entry(b"U", b"x" * 11), max_message_bytes=10)
    with pytest.raises(CorruptDataError, match="at most 100"):
        read_bytes(tmp_path, b"FDRSVMR1" + bytes(93), max_bytes=100)


def test_messages_must_belong_together(bytes_of_a_run, tmp_path):
    found = read_bytes(tmp_path, bytes_of_a_run)
    (asked, got), profile = found.exchanges[0], found.profiles[0]
    start = b"FDRSVMR1"
    joined = start + entry(b"P", encode_profile(profile))
    with pytest.raises(CorruptDataError, match="never joined"):
        read_bytes(tmp_path, start + entry(b"B", encode(asked)))
    with pytest.raises(CorruptDataError, match="never asked for"):
        read_bytes(tmp_path, joined + entry(b"U", encode(got)))
    with pytest.raises(CorruptDataError, match="kind"):
        read_bytes(tmp_path, joined + entry(b"X", encode(got)))
    with pytest.raises(CorruptDataError, match="of kind 'update'"):
        read_bytes(tmp_path, joined + entry(b"B", encode(got)))
    whole = joined + entry(b"B", encode(asked)) + entry(b"U", encode(got))
    ((_, again),) = read_bytes(tmp_path, whole).exchanges
    np.testing.assert_array_equal(again.values["slopes"], got.values["slopes"])
