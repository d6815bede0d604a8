"""The scalability study: peaks recomputed round by round, exponents of known laws recovered."""

from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

from fdrsvm import InvalidInputError
from fdrsvm.datasets import make_scalability
from fdrsvm.federated import ADMM, Bundle, InProcess, Subgradient, make_client, run_rounds
from fdrsvm_paper.protocols import PROTOCOLS, protocol
from fdrsvm_paper.scalability_study import (
    METHODS,
    PANELS,
    ScalabilityStudy,
    Size,
    contestants,
    growth_exponents,
    size_at,
    stated_work,
    train,
)

TEXT = ScalabilityStudy(protocol="text", repetitions=2, max_rounds=30)
CODE = ScalabilityStudy(protocol="paper-code", repetitions=2, max_rounds=30)


def data_of(repetition, size):
    sequence = np.random.SeedSequence((0, 4, repetition))
    return make_scalability(*size, random_state=sequence)


def peak_by_hand(data, algorithm, *, normalised, tol=0.0, **ball):
    """Round of the peak and the peak itself, from run_rounds and a count of right answers."""
    X = data.X_normalised if normalised else data.X
    X_test = data.X_test_normalised if normalised else data.X_test
    clients = [
        make_client(str(g), X[data.clients == g], data.y[data.clients == g], kappa=0.25, **ball)
        for g in range(10)
    ]
    right = []

    def count(record, model):
        right.append(int(np.sum(np.where(X_test @ model >= 0.0, 1.0, -1.0) == data.y_test)))

    run_rounds(InProcess(clients), algorithm, max_rounds=30, tol=tol, callbacks=[count])
    best = max(right)
    return right.index(best) + 1, best / data.y_test.size


def rows_by_method(study, task):
    rows = study.run(task)
    assert [row["method"] for row in rows] == list(METHODS)
    return {row["method"]: row for row in rows}


def test_the_peak_is_the_largest_accuracy_of_all_rounds_as_the_text_has_it():
    found = rows_by_method(TEXT, ("d", "6", "2"))
    data = data_of(2, (1000, 10, 6))
    by_hand = {
        "SM": peak_by_hand(data, Subgradient(100.0, "1/t"), normalised=True, support="unit-box"),
        "ADMM": peak_by_hand(data, ADMM(rho=1e-3), normalised=True),
        "ADMM-SC": peak_by_hand(data, ADMM(rho=1e-3, tau=0.27), normalised=True),
        "Bundle": peak_by_hand(data, Bundle(), normalised=True, tol=1e-4),
    }
    for method, (rounds, mccr) in by_hand.items():
        assert (found[method]["rounds"], found[method]["mccr"]) == (rounds, mccr)
        assert found[method]["seconds"] > 0.0


def test_the_peak_as_the_authors_code_has_it():
    found = rows_by_method(CODE, ("a", "10", "1"))
    data = data_of(1, (1000, 10, 4))
    sm = Subgradient(100.0, "1/sqrt(t)")
    ball = {"support": "unit-box", "worst_case": "paper"}
    by_hand = {
        "SM": peak_by_hand(data, sm, normalised=True, **ball),
        "ADMM": peak_by_hand(data, ADMM(rho=1e-3), normalised=False),
        "ADMM-SC": peak_by_hand(data, ADMM(rho=1e-3, tau=0.018), normalised=False),
        "Bundle": peak_by_hand(data, Bundle(), normalised=False, tol=1e-4),
    }
    for method, (rounds, mccr) in by_hand.items():
        assert (found[method]["rounds"], found[method]["mccr"]) == (rounds, mccr)


def test_the_bundle_runs_to_its_certificate_and_the_others_to_the_last_round():
    data = data_of(1, (1000, 10, 4))
    for method, contestant in contestants(protocol("text")).items():
        run = train(data, contestant, 40)
        assert (run.result.gap <= 1e-4) == (method == "Bundle")
        assert (run.result.n_rounds < 40) == (method == "Bundle")
        assert len(run.seconds) == len(run.models) == run.result.n_rounds


def test_rows_repeat_but_for_the_seconds_and_fill_the_columns():
    task = ("a", "20", "1")
    rows, again = TEXT.run(task), TEXT.run(task)
    for row, other in zip(rows, again, strict=True):
        assert tuple(row)[:3] == TEXT.key
        assert set(row) == set(TEXT.columns)
        assert {**row, "seconds": 0.0} == {**other, "seconds": 0.0}
        assert tuple(str(row[name]) for name in TEXT.key) == task


def test_repetitions_have_their_own_data_and_equal_sizes_the_same():
    at_a, at_c, other = (
        [(row["rounds"], row["mccr"]) for row in TEXT.run(task)]
        for task in (("a", "10", "1"), ("c", "1000", "1"), ("a", "10", "2"))
    )
    assert at_a == at_c != other


def test_sizes_are_those_of_the_paper():
    sizes = {panel: [size_at(panel, x) for x in points] for panel, points in PANELS.items()}
    assert sizes["a"] == [(1000, G, 4) for G in (10, 20, 30, 40, 50)]
    assert sizes["b"] == [(100 * G, G, 4) for G in (10, 20, 30, 40, 50)]
    assert sizes["c"] == [(N, 10, 4) for N in (1000, 1500, 2000, 2500, 3000)]
    assert sizes["d"] == [(1000, 10, P) for P in (4, 6, 8, 10, 12)]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_tasks_are_distinct_and_quick_ones_are_some_of_them(name):
    study = ScalabilityStudy(protocol=name)
    tasks = study.tasks()
    assert study.file == f"scalability-{name}"
    assert len(set(tasks)) == len(tasks) == 10 * 20
    quick = ScalabilityStudy(protocol=name, repetitions=1, quick=True).tasks()
    assert set(quick) < set(tasks)
    assert [task[:2] for task in quick if task[0] in "ad"] == [
        ("a", "10"),
        ("a", "50"),
        ("d", "4"),
        ("d", "12"),
    ]
    assert ForkingPickler.loads(ForkingPickler.dumps(study)) == study


def law(panel, method, exponent, per_round, n_repetitions=3):
    """Rows whose seconds follow a power law; noise is the same at every x, so it cancels."""
    noise = 1.0 + 0.1 * np.arange(n_repetitions)
    return [
        {
            "panel": panel,
            "x": str(x),
            "repetition": str(repetition),
            "method": method,
            "seconds": repr(float(0.01 * x**exponent * noise[repetition])),
            "rounds": repr(float(x ** (exponent - per_round))),
            "mccr": "0.9",
            "seed": "0",
        }
        for x in PANELS[panel]
        for repetition in range(n_repetitions)
    ]


def test_exponents_of_power_laws_are_recovered():
    rows = [*law("c", "SM", 1.5, 1.0), *law("a", "ADMM-SC", -0.5, -0.75), *law("d", "Bundle", 0, 0)]
    found = {(each.panel, each.method): each for each in growth_exponents(rows)}
    assert list(found) == [("a", "ADMM-SC"), ("c", "SM"), ("d", "Bundle")]
    for place, variable, exponent, per_round in (
        (("c", "SM"), "N", 1.5, 1.0),
        (("a", "ADMM-SC"), "G", -0.5, -0.75),
        (("d", "Bundle"), "P", 0.0, 0.0),
    ):
        assert found[place].variable == variable
        assert found[place].seconds == pytest.approx(exponent, abs=1e-9)
        assert found[place].seconds_per_round == pytest.approx(per_round, abs=1e-9)
    assert found["d", "Bundle"].stated is None
    assert found["c", "SM"].stated == pytest.approx(3.5, abs=1e-6)
    assert found["a", "ADMM-SC"].stated == pytest.approx(0.0, abs=1e-6)


def test_exponents_need_two_points_and_skip_rows_without_seconds():
    one = [row for row in law("b", "ADMM", 1.0, 1.0) if row["x"] == "10"]
    assert growth_exponents(one) == []
    rows = law("b", "ADMM", 1.0, 1.0)
    damaged = [*rows, {**rows[0], "seconds": ""}, {**rows[0], "seconds": "0.0"}]
    assert growth_exponents(damaged) == growth_exponents(rows)
    assert growth_exponents(rows)[0].seconds == pytest.approx(1.0)
    assert growth_exponents([]) == []


def test_the_stated_work_is_the_papers_formula():
    size = Size(n_samples=100, n_clients=7, n_features=4)
    assert stated_work("SM", size) == pytest.approx(100**3.5 * 4**3.5 + 28)
    assert stated_work("ADMM-SC", size) == pytest.approx(104**3.5 + 28)
    assert stated_work("ADMM", size) is None
    assert stated_work("Bundle", size) is None


@pytest.mark.parametrize(
    "settings", [{"protocol": "paper"}, {"repetitions": 0}, {"seed": -1}, {"max_rounds": 0}]
)
def test_bad_settings_are_named(settings):
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        ScalabilityStudy(**settings)


def test_a_task_of_another_study_is_refused():
    with pytest.raises(InvalidInputError, match="task"):
        TEXT.run(("a", "15", "1"))
