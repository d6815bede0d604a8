"""Row files, resuming, and the choice of parameters."""

import gzip
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from fdrsvm import FDRSVMError, InvalidInputError
from fdrsvm_paper.clients import Clients
from fdrsvm_paper.industrial_study import JoiningStudy
from fdrsvm_paper.methods import Method, Trained
from fdrsvm_paper.rounds_study import RoundsStudy
from fdrsvm_paper.rows import RowFile, read_rows
from fdrsvm_paper.samples import Fold
from fdrsvm_paper.scalability_study import ScalabilityStudy
from fdrsvm_paper.sensitivity_study import SensitivityStudy
from fdrsvm_paper.study import Progress, run_study
from fdrsvm_paper.tuning import choose
from fdrsvm_paper.uci_study import UciStudy

COLUMNS = ("name", "value")


# ------------------------------------------------------------------------------------- row files


def test_rows_come_back_as_text(tmp_path):
    file = RowFile(tmp_path / "new" / "rows.csv", COLUMNS)
    file.append([{"name": 'a,"b"\n', "value": 0.1}, {"name": "", "value": 3}])
    rows = file.read()
    assert rows == [{"name": 'a,"b"\n', "value": "0.1"}, {"name": "", "value": "3"}]
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(file.path.read_bytes()))
    assert read_rows(packed) == rows
    assert read_rows(tmp_path / "none.csv") == []


@pytest.mark.parametrize("cut", range(1, 19))
def test_rows_that_belong_together_are_all_there_or_none(tmp_path, cut):
    """Wherever the second write was torn off, at the end of a line for example."""
    file = RowFile(tmp_path / "rows.csv", COLUMNS)
    file.append([{"name": "first", "value": 1}, {"name": "second", "value": 2}])
    file.append([{"name": "third", "value": 3}, {"name": "fourth", "value": 4}])
    content = file.path.read_bytes()
    assert content.endswith(b"third,3\nfourth,4\n\n")
    file.path.write_bytes(content[:-cut])
    assert [row["name"] for row in read_rows(file.path)] == ["first", "second"]
    again = RowFile(file.path, COLUMNS)
    again.append([{"name": "fifth", "value": 5}])
    assert [row["name"] for row in again.read()] == ["first", "second", "fifth"]


def test_a_torn_header_starts_the_file_again(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"name,val")
    RowFile(path, COLUMNS).append([{"name": "a", "value": 1}])
    assert read_rows(path) == [{"name": "a", "value": "1"}]


def test_rows_of_another_version_are_refused(tmp_path):
    RowFile(tmp_path / "rows.csv", COLUMNS)
    with pytest.raises(InvalidInputError, match="must have the columns name, other"):
        RowFile(tmp_path / "rows.csv", ("name", "other"))


# --------------------------------------------------------------------------------------- studies


@dataclass(frozen=True)
class Squares:
    """Task n gives two rows; every run leaves a trace in a folder."""

    count: int
    trace: str
    fails_at: int = -1

    file = "squares"
    columns = ("n", "power", "result")
    key = ("n",)

    def tasks(self):
        return [(str(n),) for n in range(self.count)]

    def run(self, task):
        n = int(task[0])
        if n == self.fails_at:
            raise RuntimeError("stopped")
        with open(f"{self.trace}/{n}", "a", encoding="utf-8") as file:
            file.write("x")
        return [{"n": n, "power": p, "result": n**p} for p in (2, 3)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_study_gives_all_rows_in_the_order_of_its_tasks(tmp_path, jobs):
    rows = run_study(Squares(7, str(tmp_path)), tmp_path, jobs)
    assert [(row["n"], row["result"]) for row in rows] == [
        (str(n), str(n**p)) for n in range(7) for p in (2, 3)
    ]
    assert rows == read_rows(tmp_path / "squares.csv")


def test_a_study_goes_on_where_it_stopped_and_repeats_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="stopped"):
        run_study(Squares(6, str(tmp_path), fails_at=4), tmp_path, 1)
    assert len(read_rows(tmp_path / "squares.csv")) == 8
    rows = run_study(Squares(6, str(tmp_path)), tmp_path, 1)
    assert len(rows) == 12
    assert [(tmp_path / str(n)).read_text() for n in range(6)] == ["x"] * 6


def test_a_small_study_does_not_stand_for_a_large_one():
    """Quick rows in a folder leave the full study with what they lack."""
    for few, full in (
        (SensitivityStudy(repetitions=1, settings=("nominal",)), SensitivityStudy(repetitions=1)),
        (JoiningStudy(repetitions=1, settings=("nominal",)), JoiningStudy(repetitions=1)),
        (UciStudy(repetitions=1, names=("ukm",)), UciStudy(repetitions=1)),
        (RoundsStudy(repetitions=1, quick=True), RoundsStudy(repetitions=1)),
        (ScalabilityStudy(repetitions=1, quick=True), ScalabilityStudy(repetitions=1)),
    ):
        assert set(few.tasks()) < set(full.tasks())
        assert few.key == full.key
        assert set(few.key) <= set(few.columns)


def test_repetitions_count_in_a_quick_study_too():
    for study in (RoundsStudy, ScalabilityStudy):
        assert len(study(repetitions=3, quick=True).tasks()) == 3 * len(
            study(repetitions=1, quick=True).tasks()
        )


def test_fewer_tasks_than_stored_rows_leave_the_others_in_the_file(tmp_path):
    run_study(Squares(5, str(tmp_path)), tmp_path, 1)
    rows = run_study(Squares(2, str(tmp_path)), tmp_path, 1)
    assert [row["n"] for row in rows] == ["0", "0", "1", "1"]
    assert len(read_rows(tmp_path / "squares.csv")) == 10


@pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")
def test_two_runs_do_not_share_a_file(tmp_path):
    import fcntl

    with (tmp_path / ".squares.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(FDRSVMError, match="another run is at work"):
            run_study(Squares(2, str(tmp_path)), tmp_path, 1)
    assert len(run_study(Squares(2, str(tmp_path)), tmp_path, 1)) == 4


def test_progress_tells_the_time_left(monkeypatch, capsys):
    clock = iter([0.0, 100.0, 200.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    progress = Progress("study", 0, 4)
    progress.step()
    progress.step()
    assert capsys.readouterr().err.splitlines() == [
        "study: 1 of 4, 5 min 00 s left",
        "study: 2 of 4, 3 min 20 s left",
    ]


# ---------------------------------------------------------------------------------------- tuning


def fold_with(y_out):
    X = np.array([[1.0], [-1.0]])
    clients = Clients(X, np.array([1.0, -1.0]), np.array([0, 2]), np.array([2.0]), (0,))
    return Fold(clients, clients, X, X, np.array(y_out))


def method_with(models, grid=None):
    """Parameters k gives the models of row k."""
    grid = grid or tuple({"k": float(k)} for k in range(len(models)))
    return Method(
        "test",
        grid,
        len(models[0]),
        normalised=False,
        train=lambda _, p: Trained(
            np.array(models[int(p["k"])])[:, None], tuple(range(len(models[0])))
        ),
    )


def test_the_best_mean_over_folds_is_chosen_and_of_equals_the_first():
    right, wrong = 1.0, -1.0  # w = 1 gets both rows of the fold right
    folds = [fold_with([1.0, -1.0]), fold_with([1.0, -1.0])]
    assert choose(method_with([[wrong, right], [right, right]]), folds) == ({"k": 0.0}, 1, 1.0)
    assert choose(method_with([[wrong, wrong], [wrong, right]]), folds) == ({"k": 1.0}, 1, 1.0)


def test_folds_count_by_their_mean():
    folds = [fold_with([1.0, -1.0]), fold_with([1.0, -1.0]), fold_with([-1.0, 1.0])]
    chosen, mark, mean = choose(method_with([[-1.0], [1.0]]), folds)
    assert (chosen, mark) == ({"k": 1.0}, 0)
    assert mean == pytest.approx(2.0 / 3.0)


def test_with_nothing_to_choose_nothing_is_trained():
    method = Method("test", ({"k": 0.0},), 1, False, train=lambda *_: pytest.fail("trained"))
    assert choose(method, []) == ({"k": 0.0}, 0, "")
