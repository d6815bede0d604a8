"""Numbers that no float64 holds, in every place of everything that is read: never a bare error."""

import contextlib
import json

import numpy as np
import pytest

from fdrsvm import DRSVC, CorruptDataError, FDRSVMError, Feature, FeatureContract
from fdrsvm.core.codec import pack, unpack
from fdrsvm.federated.checkpoint import CheckpointFolder, read_checkpoint
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.joining import (
    Introduction,
    Task,
    decode_introduction,
    encode_introduction,
)
from fdrsvm.federated.messages import (
    LARGEST_COUNT,
    Broadcast,
    ClientProfile,
    Update,
    decode_broadcast,
    decode_profile,
    decode_update,
    encode,
    encode_profile,
)
from fdrsvm.federated.methods import ADMM, describe, from_description
from fdrsvm.federated.rounds import run_rounds
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import load_model, save_model
from tests.federated.cases import blobs, problems

PROFILE = ClientProfile("north", 10, 2, True, "linf", 0.1, 0.1, 0.1)
INTRODUCTION = Introduction(PROFILE, 12, (0, 1), ("a", "b"), "", "0.1.0")
# As JSON text: what Python reads as infinite, whole numbers beyond float64, and nesting.
HUGE = ["1e400", "-1e400", "1" + "0" * 400, "-1" + "0" * 400, "[[1" + "0" * 400 + "]]", "2e308"]


def spoiled(document, number):
    """The document with ``number`` in place of each of its leaves in turn, as JSON text."""
    marker = "\x00here\x00"
    text = json.dumps(marker)
    for place in places(document):
        yield json.dumps(replaced(document, place, marker)).replace(text, number)


def places(document, path=()):
    if isinstance(document, dict):
        for name, part in document.items():
            yield from places(part, (*path, name))
    elif isinstance(document, list) and document:
        for k, part in enumerate(document):
            yield from places(part, (*path, k))
    else:
        yield path


def replaced(document, path, value):
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


def packed_again(data, kind, number):
    """A container with one number of its header changed, its SHA-256 made right again."""
    version = {"checkpoint": 2}.get(kind, 1)
    header, arrays = unpack(data, kind, version)
    for text in spoiled(header, number):
        changed = json.loads(text)
        try:
            yield pack(kind, version, changed, arrays)
        except ValueError:
            continue  # pack writes no infinite numbers


def assert_refused_or_read(read, data):
    with contextlib.suppress(FDRSVMError):  # anything else fails the test
        read(data)


@pytest.mark.parametrize("number", HUGE)
def test_messages(number):
    point = {"points": np.zeros((1, 3))}
    for message, read in [
        (Update("run", 3, "north", point), decode_update),
        (Broadcast("run", 3, "north", describe(ADMM(0.1)), point), decode_broadcast),
    ]:
        for data in packed_again(encode(message), type(message).__name__.lower(), number):
            assert_refused_or_read(read, data)


@pytest.mark.parametrize("number", HUGE)
def test_profiles_and_introductions(number):
    """Whatever passes can be used as a number: the server makes weights and radii of it."""
    for data in packed_again(encode_profile(PROFILE), "profile", number):
        with pytest.raises(CorruptDataError):
            decode_profile(data)
    for data in packed_again(encode_introduction(INTRODUCTION), "introduction", number):
        with pytest.raises(CorruptDataError):
            decode_introduction(data)


@pytest.mark.parametrize("n_rows", [10**400, LARGEST_COUNT + 1])
def test_a_count_that_is_too_large_is_refused_with_the_largest(n_rows):
    wrong = Introduction(**{**vars(INTRODUCTION), "n_rows": n_rows})
    with pytest.raises(CorruptDataError, match=f"counts go up to {LARGEST_COUNT}"):
        decode_introduction(encode_introduction(wrong))
    many = ClientProfile(**{**vars(PROFILE), "n_samples": n_rows})
    with pytest.raises(CorruptDataError, match="n_samples"):
        decode_profile(encode_profile(many))
    wrong = Introduction(**{**vars(INTRODUCTION), "profile": many, "n_rows": n_rows})
    with pytest.raises(CorruptDataError, match=f"n_samples.*counts go up to {LARGEST_COUNT}"):
        decode_introduction(encode_introduction(wrong))
    largest = Introduction(**{**vars(INTRODUCTION), "n_rows": LARGEST_COUNT})
    assert decode_introduction(encode_introduction(largest)) == largest


@pytest.mark.parametrize("number", HUGE)
def test_tasks(number):
    content = json.loads(Task(classes=(0, 1)).to_json())
    for text in spoiled(content, number):
        with pytest.raises(CorruptDataError, match="task"):
            Task.from_json(text)
    whole = Task(epsilon=0.5, kappa="inf", blur=3, classes=("a", "b"))
    assert Task.from_json(whole.to_json()) == whole


@pytest.mark.parametrize("number", HUGE)
def test_methods(number):
    for text in spoiled(json.loads(describe(ADMM(0.1))), number):
        assert_refused_or_read(from_description, text)


@pytest.mark.parametrize("number", HUGE)
def test_model_files(number, tmp_path):
    path = tmp_path / "model.safetensors"
    save_model(
        LinearModel.checked(
            np.ones((1, 2)),
            np.ones(1),
            [0, 1],
            estimator="DRSVC",
            params={"epsilon": 0.1},
            certificate={"objective": 0.5, "n_iter": 3},
            record={"data": {"rows": {"north": 10}}},
        ),
        path,
    )
    for data in packed_again(path.read_bytes(), "model", number):
        path.write_bytes(data)
        for read in (load_model, DRSVC.load):
            assert_refused_or_read(read, path)


@pytest.mark.parametrize("number", HUGE)
def test_checkpoints(number, tmp_path):
    transport = InProcess(problems(blobs(2)))
    folder = CheckpointFolder(tmp_path, transport)
    run_rounds(transport, ADMM(0.1), max_rounds=2, tol=0.0, checkpoint=folder)
    path = sorted(tmp_path.iterdir())[-1]
    for data in packed_again(path.read_bytes(), "checkpoint", number):
        path.write_bytes(data)
        assert_refused_or_read(read_checkpoint, path)


@pytest.mark.parametrize("number", HUGE)
def test_contracts(number):
    contract = FeatureContract((Feature("p", "bar", 0.0, 1.0, "fill", 0.5),), (0, 1))
    for text in spoiled(json.loads(contract.to_json()), number):
        assert_refused_or_read(FeatureContract.from_json, text)
