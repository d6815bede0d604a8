"""Each claim of SECURITY.md that has a figure, in its quick version; and docs/trust.md itself."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from benchmarks.trust import hostile_bytes, hostile_loads
from benchmarks.trust.command import PARTS, page, run_trust
from benchmarks.trust.hostile_loads import Reader, Tally, load_once
from benchmarks.trust.killable import CASES, CHECKPOINTS, train
from benchmarks.trust.kills import DAMAGES, where_hit
from benchmarks.trust.report import Row, from_plain, read_row, to_plain, write_row

from fdrsvm import CorruptDataError, FDRSVMError, InvalidInputError
from fdrsvm.federated.checkpoint import CheckpointFolder

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_the_quick_version_of_each_part_holds_what_is_claimed(part, tmp_path):
    told = []
    path = run_trust(tmp_path, quick=True, only=[part.name], tell=told.append)
    assert len(told) == 2
    row = read_row(part.name, tmp_path)
    assert row.quick
    assert part.result(row).holds, row
    text = path.read_text(encoding="utf-8")
    assert text == page(tmp_path)
    assert [other.title for other in PARTS if f"## {other.title}" in text] == [part.title]
    assert "A quick version" in text


def test_the_page_is_made_of_its_rows():
    assert (DOCS / "trust.md").read_text(encoding="utf-8") == page(DOCS)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_part_was_measured_in_full_and_holds(part):
    row = read_row(part.name, DOCS)
    assert row is not None
    assert not row.quick
    assert part.result(row).holds


def test_the_kills_and_loads_are_as_many_as_claimed():
    kills, files = read_row("kills", DOCS), read_row("files", DOCS)
    assert sum(method["n_sigkills"] for method in kills.result["methods"]) >= 200
    assert {method["name"] for method in kills.result["methods"]} == set(CASES)
    assert sum(kind["n_loads"] for kind in files.result["kinds"]) >= 100_000


# The command


def test_a_part_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"must be one of .*'kills'"):
        run_trust(tmp_path, only=["kill"])
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Inner:
    name: str
    value: float | None


@dataclass(frozen=True)
class Outer:
    rows: tuple[Inner, ...]
    pair: tuple[int, float]
    names: list[str]
    by_name: dict[str, Inner]
    by_pair: Mapping[tuple[str, int], bool]


def test_results_come_back_from_rows(tmp_path):
    result = Outer(
        (Inner("a", math.inf), Inner("b", None)),
        (1, 2.0),
        ["x", "y"],
        {"c": Inner("c", -0.0)},
        {("x", 1): True, ("y", 2): False},
    )
    row = Row("outer", False, 1.5, 0.1, "2025-01-01T00:00:00Z", {"cores": 2}, {}, to_plain(result))
    assert read_row("outer", tmp_path) is None
    write_row(row, tmp_path)
    kept = read_row("outer", tmp_path)
    assert kept == row
    assert from_plain(Outer, kept.result) == result
    (tmp_path / "trust" / "rows" / "outer.json").write_text('{"part": "outer"}')
    with pytest.raises(CorruptDataError, match=r"outer\.json"):
        read_row("outer", tmp_path)


# The measurements themselves can fail


def test_where_a_kill_hit_is_told_from_the_files(tmp_path):
    folder = tmp_path / CHECKPOINTS
    folder.mkdir()
    assert where_hit(tmp_path) == "before the first checkpoint"
    train("SM", tmp_path)
    whole = max(folder.iterdir()).read_bytes()
    assert where_hit(tmp_path).startswith("between two checkpoints")
    (folder / "round-000001.safetensors").write_bytes(whole)
    assert where_hit(tmp_path) == "renamed, the oldest not yet dropped"
    (folder / ".0-1.tmp").write_bytes(whole)
    assert where_hit(tmp_path) == "checkpoint written, not yet renamed"
    (folder / ".0-1.tmp").write_bytes(whole[:-1])
    assert where_hit(tmp_path) == "checkpoint half written"


def test_training_goes_on_from_a_checkpoint_with_the_same_digest(tmp_path):
    whole = train("SM", tmp_path / "a")
    for path in sorted((tmp_path / "a" / CHECKPOINTS).iterdir())[1:]:
        path.unlink()
    assert CheckpointFolder(tmp_path / "a" / CHECKPOINTS).latest().round == whole["rounds"] - 1
    again = train("SM", tmp_path / "a")
    assert again["resumed_after"] == whole["rounds"] - 1
    assert again["sha256"] == whole["sha256"]
    assert train("ADMM", tmp_path / "b")["sha256"] != whole["sha256"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_changes_the_bytes(damage, rng):
    data = rng.bytes(500)
    for _ in range(200):
        assert damage(data, rng) != data


class Off:
    """A watch that sees nothing, for the judge alone."""

    def on(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def judged(load, data=b"altered", *, is_forged=False, write=lambda content: content):
    tally = Tally()
    load_once(Reader("x", [b"genuine"], load, write), data, is_forged, Off(), tally)
    return tally


def refuse(data):
    raise CorruptDataError("no")


def fail(data):
    raise KeyError("oops")


def test_a_loader_that_does_not_look_is_found_out():
    assert judged(lambda data: b"genuine").n_unseen == 1
    assert judged(lambda data: data).n_unseen == 1
    assert judged(lambda data: b"genuine", is_forged=True).n_unseen == 1
    assert judged(lambda data: data, is_forged=True).n_plain == 1
    assert judged(lambda data: data, b"genuine").n_genuine == 1
    assert judged(refuse).n_refused == 1
    assert judged(fail).errors == {"KeyError": 1}


def test_the_watch_knows_reading_from_writing_and_running():
    forbidden = hostile_loads._is_forbidden
    assert not forbidden("open", ("a", "r", 0))
    assert forbidden("open", ("a", "w", hostile_loads.os.O_WRONLY | hostile_loads.os.O_CREAT))
    for event in ("exec", "import", "os.system", "subprocess.Popen", "pickle.find_class"):
        assert forbidden(event, ())
    assert not forbidden("os.listdir", ("a",))


@pytest.mark.parametrize("name", hostile_bytes.ALTERED)
def test_attacks_are_many_and_small_enough(name, tmp_path):
    readers = hostile_loads.make_readers(tmp_path)
    genuine = [data for reader in readers for data in reader.originals]
    rng = random.Random(5)
    made = {hostile_bytes.ALTERED[name](rng, data, genuine) for data in genuine for _ in range(3)}
    assert len(made) > len(genuine)
    assert max(map(len, made)) <= hostile_bytes.MAX_BYTES
    assert len(made - set(genuine)) > 0.9 * len(made)


def test_a_child_that_fails_is_an_error(monkeypatch):
    from benchmarks.trust import hostile_files

    monkeypatch.setattr(hostile_files, "_QUICK", "many")
    with pytest.raises(FDRSVMError, match="ended with 1"):
        hostile_files.measure(quick=True)
    assert np.isfinite(hostile_loads._grown())
