"""The study of rounds: its rows against runs made here, by hand."""

import time
from contextlib import nullcontext
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

from fdrsvm import InvalidInputError
from fdrsvm.datasets import UCI_NAMES, load_uci
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.federated import ADMM, Bundle, InProcess, Subgradient, make_client, run_rounds
from fdrsvm_paper.rounds_study import (
    METHODS,
    TARGETS,
    ConvergenceStudy,
    RoundsStudy,
    deal,
    rounds_to,
    timed_run,
)

# Breast cancer comes with scikit-learn, so no folder of data is needed.
CANCER = RoundsStudy(repetitions=2, names=("bcw",), max_rounds=25)
HISTORY = ConvergenceStudy(names=("bcw",), max_rounds=25)


def clients_of(parts, norm):
    return [make_client(f"client {g}", X, y, norm=norm) for g, (X, y) in enumerate(parts)]


def run_by_hand(algorithm, norm="linf", repetition=1):
    """The same data, and run_rounds itself."""
    clients = clients_of(deal("bcw", 0, repetition), norm)
    unfinished = not isinstance(algorithm, Bundle)
    with pytest.warns(ConvergenceWarning) if unfinished else nullcontext():
        return run_rounds(InProcess(clients), algorithm, max_rounds=25, tol=1e-4)


def without_seconds(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_clients_hold_seventy_percent_of_the_rows_normalised_with_classes_in_proportion():
    whole = load_uci("bcw")
    parts = deal("bcw", 0, 1)
    sizes = [y.size for _, y in parts]
    assert len(parts) == 4
    assert max(sizes) - min(sizes) <= 1
    assert 0.69 * whole.y.size < sum(sizes) <= 0.7 * whole.y.size
    X = np.concatenate([X for X, _ in parts])
    np.testing.assert_allclose([X.min(axis=0), X.max(axis=0)], [[0.0] * 30, [1.0] * 30])
    for _, y in parts:
        assert abs(np.mean(y > 0) - np.mean(whole.y > 0)) < 0.02


def test_repetitions_and_seeds_have_other_splits():
    first, second, reseeded = (deal("bcw", *which) for which in ((0, 1), (0, 2), (1, 1)))
    assert not np.array_equal(first[0][0], second[0][0])
    assert not np.array_equal(first[0][0], reseeded[0][0])


@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_rounds_are_the_first_in_the_history_to_reach_the_target(norm):
    rows = CANCER.run(("bcw", norm, "2", "Bundle"))
    result = run_by_hand(Bundle(), norm, repetition=2)
    assert [row["target"] for row in rows] == list(TARGETS)
    for row in rows:
        reached = [record.round for record in result.history if record.gap <= row["target"]]
        assert row["rounds"] == reached[0]
        assert row["gap"] == result.gap <= 1e-4
        assert row["parameter"] == ""
    assert sorted(row["seconds"] for row in rows) == [row["seconds"] for row in rows]
    assert rows[0]["seconds"] > 0.0


def test_every_parameter_has_rows_and_an_unreached_target_has_no_rounds():
    rows = CANCER.run(("bcw", "linf", "1", "SM"))
    assert [row["parameter"] for row in rows] == np.repeat([1.0, 10.0, 100.0, 1000.0], 3).tolist()
    result = run_by_hand(Subgradient(step_size=100.0))
    mine = [row for row in rows if row["parameter"] == 100.0]
    for row in mine:
        assert row["rounds"] == ""
        assert row["gap"] == result.gap > 0.1
        assert row["seconds"] == mine[0]["seconds"] > 0.0


def test_rows_repeat_but_for_the_seconds_and_fill_the_columns():
    for study, task in (
        (CANCER, ("bcw", "linf", "1", "Bundle summed")),
        (HISTORY, ("bcw", "linf", "Bundle")),
    ):
        rows, again = study.run(task), study.run(task)
        assert without_seconds(rows) == without_seconds(again)
        assert all(tuple(sorted(row)) == tuple(sorted(study.columns)) for row in rows)
        assert {tuple(str(row[name]) for name in study.key) for row in rows} == {task}


def test_the_history_is_that_of_the_best_parameter():
    rows = HISTORY.run(("bcw", "linf", "ADMM"))
    results = {rho: run_by_hand(method) for rho, method in METHODS["ADMM"].items()}
    best = min(results, key=lambda rho: results[rho].gap)  # none gets to 1e-4 in 25 rounds
    assert all(result.gap > 1e-4 for result in results.values())
    assert {row["parameter"] for row in rows} == {best}
    assert [row["round"] for row in rows] == list(range(1, 26))
    states = [*results[best].history[:-1], results[best]]
    for row, state in zip(rows, states, strict=True):
        assert (row["gap"], row["objective"], row["lower_bound"]) == (
            state.gap,
            state.objective,
            state.lower_bound,
        )


def test_before_a_model_is_evaluated_its_cells_are_empty():
    rows = HISTORY.run(("bcw", "linf", "Bundle"))
    assert rows[0]["gap"] == rows[0]["objective"] == ""
    gaps = [row["gap"] for row in rows[1:]]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] <= 1e-4
    assert len(rows) == CANCER.run(("bcw", "linf", "1", "Bundle"))[-1]["rounds"]


def test_a_target_reached_by_the_last_evaluation_counts_for_the_last_round():
    result = run_by_hand(ADMM(rho=1e-3))
    between = 0.5 * (result.gap + result.history[-1].gap)
    assert result.gap < between < result.history[-1].gap
    assert rounds_to(result, between) == 25
    assert rounds_to(result, 0.5 * result.gap) is None
    assert rounds_to(result, result.history[4].gap) <= 5


def test_a_timed_run_is_the_run_itself_with_seconds_and_models_of_every_round():
    start = time.process_time()
    run = timed_run(clients_of(deal("bcw", 0, 1), "linf"), Bundle(), max_rounds=25, tol=1e-4)
    spent = time.process_time() - start
    result = run_by_hand(Bundle())
    np.testing.assert_array_equal(run.result.model, result.model)
    np.testing.assert_array_equal(run.models[-1], result.newest)
    assert run.models.shape == (result.n_rounds, 30)
    assert (np.diff([0.0, *run.seconds, spent]) >= 0.0).all()


@pytest.mark.parametrize("study", [RoundsStudy(), ConvergenceStudy()])
def test_tasks_are_distinct_and_quick_ones_are_some_of_them(study):
    tasks = study.tasks()
    assert len(set(tasks)) == len(tasks)
    assert {task[0] for task in tasks} == set(UCI_NAMES)
    quick = type(study)(quick=True).tasks()
    assert set(quick) < set(tasks)
    assert {task[-1] for task in quick} == set(METHODS)
    assert {task[1] for task in quick} == {"linf"}


def test_all_norms_and_repetitions_are_run():
    tasks = RoundsStudy(repetitions=3, names=("ukm",)).tasks()
    assert len(tasks) == 3 * 3 * len(METHODS)
    assert {task[1:3] for task in tasks} == {
        (norm, repetition) for norm in ("linf", "l2", "l1") for repetition in "123"
    }


def test_studies_travel_to_other_processes():
    for study in (CANCER, HISTORY):
        assert ForkingPickler.loads(ForkingPickler.dumps(study)) == study


@pytest.mark.parametrize(
    "settings",
    [{"repetitions": 0}, {"seed": -1}, {"names": ("iris",)}, {"max_rounds": 0}],
)
def test_bad_settings_are_named(settings):
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        RoundsStudy(**settings)


def test_a_task_of_another_study_is_refused():
    with pytest.raises(InvalidInputError, match="task"):
        CANCER.run(("bcw", "linf", "3", "Bundle"))
    with pytest.raises(InvalidInputError, match="task"):
        HISTORY.run(("bcw", "l2", "Bundle"))
