"""The benchmarks grade by one objective, and the page says what their rows say."""

import json
import math
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks import __main__ as command
from benchmarks import central, client, footprint, oracle, publish, releases
from benchmarks.clock import BATCH, LEAST, MOST, ContestantError, fresh_python, in_child, time_calls
from benchmarks.growth import fit_growth
from benchmarks.problems import Case, central_case, cold_case, ridge_case, uniform, warm_cases
from benchmarks.quadratic_programs import clarabel_solver, linear_term, quadratic_program
from benchmarks.results import COLUMNS, Entry, Measured, Results
from benchmarks.tables import duration, make_tables
from scipy import optimize, stats

from fdrsvm import worst_case_risk
from fdrsvm_paper.rows import read_rows

ROOT = Path(__file__).parents[1]
ENTRY = Entry("problem 3x2", "ours", "cold", 3, 2)


@pytest.fixture(scope="module")
def small_case():
    return cold_case(40, 12)


def test_the_bound_is_below_every_objective_and_close_to_ours(small_case, rng):
    answer = small_case.solve()
    assert small_case.excess(answer.w) <= 1e-9 / small_case.lower_bound + 1e-12
    for _ in range(20):
        assert small_case.excess(answer.w + rng.normal(size=12)) > 0.0


def test_the_objective_is_that_of_the_quadratic_program(small_case, rng):
    """At any w the program's best lam, s, t give risk and proximal term, but for a constant."""
    w = rng.normal(size=12)
    H, A, b = quadratic_program(small_case)
    q = linear_term(small_case, small_case.centre)
    found = optimize.linprog(
        q[12:], A_ub=A[:, 12:], b_ub=b - A[:, :12] @ w, bounds=(None, None), method="highs"
    )
    value = found.fun + q[:12] @ w + 0.5 * w @ (H[:12, :12] @ w)
    constant = 0.5 * small_case.rho * float(small_case.centre @ small_case.centre)
    assert value + constant == pytest.approx(small_case.objective(w), rel=1e-8)


def test_a_general_solver_is_graded_close_to_the_bound(small_case):
    w = clarabel_solver(small_case, warm=False)(small_case.centre)
    assert -1e-9 < small_case.excess(w) < 1e-6


def test_warm_rounds_are_those_of_admm():
    cases = warm_cases(40, 12)
    assert len(cases) == 21
    moves = [np.linalg.norm(b.centre - a.centre) for a, b in pairwise(cases)]
    assert max(moves) < np.linalg.norm(cases[0].centre - cold_case(40, 12).centre)
    measured = client.warm("ours", cases)
    assert len(measured.figures) >= 20
    assert measured.excess < 1e-8


def test_our_client_solves_as_the_others_do(small_case):
    solve = client.prepare("ours", small_case, warm=True)
    first, again = solve(small_case.centre), solve(small_case.centre)
    assert small_case.excess(first) < 1e-8
    assert small_case.excess(again) < 1e-8


def test_linear_svc_has_the_objective_it_is_graded_by():
    """Its own, divided by C N, is ours with epsilon = 0; and it comes close to the bound."""
    case, w = ridge_case(200, 10, 10.0), np.linspace(-1.0, 1.0, 10)
    hinge = np.maximum(0.0, 1.0 - case.y * (case.X @ w)).sum()
    assert case.objective(w) == pytest.approx((0.5 * w @ w + 10.0 * hinge) / (10.0 * 200))
    assert -1e-12 < central.ridge("LinearSVC, tol = 1e-9", case, 10.0).excess < 1e-6


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_problem_written_in_cvxpy_is_ours(norm):
    pytest.importorskip("cvxpy", reason="in the benchmarks' own environment")
    case = central_case(100, 10, norm)
    assert -1e-9 < case.excess(central.cvxpy_model(case)()) < 1e-6


@pytest.mark.parametrize("solver", ["PIQP", "OSQP", "ProxQP", "Gurobi"])
def test_every_solver_that_is_here_solves_the_client_update(small_case, solver):
    module = {"PIQP": "piqp", "OSQP": "osqp", "ProxQP": "proxsuite", "Gurobi": "gurobipy"}[solver]
    pytest.importorskip(module, reason="in the benchmarks' own environment")
    w = client.prepare(solver, small_case, warm=False)(small_case.centre)
    # Interior points stop at 1e-9; OSQP at residuals of 1e-4, each over hundreds of constraints.
    assert -1e-9 < small_case.excess(w) < (1e-2 if solver == "OSQP" else 1e-6)


def test_the_linear_program_is_the_worst_case():
    pytest.importorskip("highspy", reason="in the benchmarks' own environment")
    w, X, y = uniform(20, 3)
    model = oracle.paper_program(w, X, y, 0.1, 0.5)
    risk = worst_case_risk(w, X, y, epsilon=0.1, kappa=0.5, norm="linf", support="unit-box")
    assert oracle.solve_with_highs(model, "simplex") == pytest.approx(risk.value, rel=1e-9)


def test_short_calls_are_timed_many_at_once_and_long_ones_a_few_times():
    calls = []
    timing = time_calls(lambda: calls.append(0) or len(calls), enough=0.01)
    assert LEAST <= len(timing.seconds) <= MOST
    assert len(calls) > 5 * len(timing.seconds)  # some hundred, on a machine that is not busy
    assert timing.answer == 2  # the first call is the warm-up
    assert 0.0 < min(timing.seconds) < 1e-3


def test_a_call_in_a_child_gives_its_answer_or_says_what_went_wrong():
    assert in_child(lambda: {"a": [1.5, None]}, 60) == {"a": [1.5, None]}
    with pytest.raises(ContestantError, match="ZeroDivisionError"):
        in_child(lambda: {"a": 1 / 0}, 60)
    with pytest.raises(ContestantError, match="died, status 3"):
        in_child(lambda: os._exit(3), 60)
    with pytest.raises(ContestantError, match=r"within 0\.2 s of CPU time"):
        in_child(_spin, 0.2)


def test_the_clock_of_a_child_sees_microseconds():
    """A limit on its CPU time must not turn its clock into one of ticks."""
    found = in_child(lambda: {"seconds": time_calls(lambda: sum(range(1000)), 0.01).seconds}, 60.0)
    assert all(0.0 < seconds < BATCH for seconds in found["seconds"])


def _spin():
    while True:
        pass


def test_a_fresh_interpreter_says_what_went_wrong():
    assert fresh_python("-c", "import os; print(os.environ['A'])", A="b") == "b\n"
    with pytest.raises(ContestantError, match="NameError: name 'x'"):
        fresh_python("-c", "x")
    with pytest.raises(ContestantError, match="ended with 3"):
        fresh_python("-c", "raise SystemExit(3)")


def test_rows_are_measured_once_and_failures_are_rows(tmp_path, capsys):
    path, calls = tmp_path / "part.csv", tmp_path / "calls"
    for _ in range(2):
        results = Results(path)
        assert results.measure(ENTRY, lambda: _counted(calls))
        assert not results.measure(Entry("problem 3x2", "PIQP", "cold", 3, 2), _fail)
    assert calls.read_text() == "x"
    ours, theirs = read_rows(path)
    assert tuple(ours) == COLUMNS
    assert (ours["median"], ours["least"], ours["repeats"]) == ("0.25", "0.125", "2")
    assert ours["version"]
    assert float(ours["excess"]) == 1e-11
    assert (theirs["median"], theirs["note"]) == ("", "failed: no licence for this")
    assert capsys.readouterr().out.count("\n") == 2


def _counted(path):
    with path.open("a") as file:
        file.write("x")
    return Measured([0.125, 0.375], 1e-11)


def _fail():
    raise ContestantError("no licence\nfor this")


def test_growth_is_the_usual_regression(rng):
    x = np.array([10.0, 30.0, 100.0, 300.0])
    y = 2e-5 * x**1.3 * np.exp(0.1 * rng.normal(size=4))
    fit, known = fit_growth(x, y), stats.linregress(np.log(x), np.log(y))
    assert fit.exponent == pytest.approx(known.slope)
    assert fit.error == pytest.approx(known.stderr)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5.94e-6, "5.94 µs"),
        (0.000284, "284 µs"),
        (0.0123, "12.3 ms"),
        (0.99996, "1.00 s"),
        (61, "61.0 s"),
    ],
)
def test_durations_have_three_digits(seconds, text):
    assert duration(seconds) == text


def test_the_closure_of_a_package_is_what_pip_would_install():
    names = {found.name.lower() for found in footprint.closure("scikit-learn")}
    assert {"scikit-learn", "numpy", "scipy", "joblib", "threadpoolctl"} <= names
    assert "pytest" not in names  # only wanted by extras
    size = footprint.installed("scikit-learn")
    assert size.figures[0] > footprint.installed("numpy").figures[0] > 1.0
    with pytest.raises(ContestantError, match="not installed"):
        footprint.installed("no-such-package-at-all")


def test_the_sources_of_an_editable_install_are_counted():
    sources = sum(path.stat().st_size for path in (ROOT / "src").rglob("*.py")) / 1e6
    alone = sum(footprint.size_of(d) for d in footprint.closure("fdr-svm") if d.name == "fdr-svm")
    assert alone / 1e6 >= 0.9 * sources


def test_the_command_measures_a_part_quickly_and_keeps_nothing(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks", "wide", "--quick", "--output", tmp_path / "bench"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    first, *lines = run.stdout.splitlines()
    assert first.startswith("wide:")
    assert len(lines) == 3 * 2  # norms; client and central
    assert all("SOLVED" in line for line in lines)
    assert not (tmp_path / "bench").exists()


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["nonsense"])
    assert "nonsense" in capsys.readouterr().err


def test_releases_need_another_interpreter(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["releases"])
    assert "--old" in capsys.readouterr().err
    here = releases.Release(sys.executable, os.environ.get("PYTHONPATH", ""))
    with pytest.raises(SystemExit, match="nothing to compare"):
        releases.compare(here, here, tmp_path / "releases.csv")


@pytest.fixture
def here():
    """The release that is being tested, in processes of its own."""
    release = releases.Release(sys.executable, os.environ.get("PYTHONPATH", ""))
    yield release
    release.close()


def test_a_release_repeats_a_case_and_says_what_went_wrong(here):
    first, second = (here.repeat("oracle 50x4 epsilon 0.05, function") for _ in range(2))
    assert 0.0 < min(first["cpu"], second["cpu"]) < 0.1
    w, X, y = uniform(50, 4)
    risk = worst_case_risk(w, X, y, epsilon=0.05, kappa=0.5, norm="linf", support="unit-box")
    assert first["answer"] == second["answer"] == risk.value
    with pytest.raises(ContestantError, match="KeyError: 'nonsense'"):
        here.repeat("nonsense")
    assert here.repeat("oracle 50x4 epsilon 0.05, function")["answer"] == risk.value
    with pytest.raises(ContestantError, match="ValueError: so it is"):
        here.fresh("-c", "raise ValueError('so it is')")


def test_two_releases_take_turns():
    """Each is first every other time; the warm-up is not counted."""
    order = []

    def turn(name):
        order.append(name)
        return {"cpu": float(len(order))}

    pairs = releases.in_turns(lambda: turn("old"), lambda: turn("now"), quick=False)
    assert len(pairs) == releases.MOST
    assert order[:6] == ["old", "now", "old", "now", "now", "old"]
    assert [pairs[0], pairs[1]] == [({"cpu": 3.0}, {"cpu": 4.0}), ({"cpu": 6.0}, {"cpu": 5.0})]
    assert len(releases.in_turns(lambda: turn("old"), lambda: turn("now"), quick=True)) == 1


@pytest.mark.parametrize(
    ("now", "goal", "ratio", "said"),
    [
        (1.0, 2.0, 1.5, "met"),
        (3.0, 2.0, 1.5, "missed"),
        (1.0, None, 0.96, "met"),
        (1.0, None, 0.95, "slower"),
        (1.0, 2.0, 0.9, "slower"),
    ],
)
def test_a_release_that_is_slower_meets_no_goal(now, goal, ratio, said):
    assert releases.verdict(now, goal, ratio) == said


def test_rows_of_two_releases_have_medians_and_goals():
    """A goal that is a multiple is one of the yardstick beside the new figure."""
    figures = ((4.0, 1.0), (6.0, 2.0), (100.0, 4.0))
    pairs = [
        ({"cpu": old, "answer": 1.0}, {"cpu": now, "yardstick": 1.0, "answer": 1.5})
        for old, now in figures
    ]
    row = releases.row_of("oracle 1000000x14 l1 free epsilon 0.5", "cpu", ["cpu"], pairs)
    assert (row["old"], row["now"], row["ratio"]) == ("6", "2", "4")
    assert (row["goal"], row["verdict"], row["difference"]) == ("2.5", "met", "0.5")
    assert row["remark"] == "2.0 times the two products"
    plain = [({"cpu": 1.0, "wall": 9.0}, {"cpu": 1.0, "wall": 4.0})]
    name = "ADMM 50 rounds, 1000 clients, two threads"
    row = releases.row_of(name, "wall", ["cpu", "wall"], plain)
    assert (row["case"], row["unit"], row["goal"]) == (f"{name}, wall", "s wall", "2")
    assert row["verdict"] == "missed"


def test_every_goal_is_that_of_a_case_that_is_measured():
    names = {*releases.main_cases(), *releases.long_cases(), *dict(releases.process_cases())}
    assert {goal.removesuffix(", wall") for goal in releases.GOALS} <= names
    kept = {row["case"] for row in publish.kept_rows()["releases"]}
    assert set(releases.GOALS) <= kept
    assert {case.removesuffix(", wall") for case in kept} <= names


def test_every_table_on_the_page_is_made_of_its_rows():
    text = publish.PAGE.read_text(encoding="utf-8")
    rows = publish.kept_rows()
    tables = make_tables(rows)
    assert {mark[2] for mark in publish.MARKS.findall(text) if mark[1] == "table"} == set(tables)
    machine = publish.machine_text(publish.kept_machine(), rows)
    assert publish.page_with_tables(text, tables, machine) == text


def test_the_rows_are_complete_and_no_certified_bound_is_beaten():
    rows = publish.kept_rows()
    for part in publish.PARTS:
        assert rows[part], part
        for row in rows[part]:
            assert row["median"] or row["note"].startswith("failed: "), row
            assert row["solver"].split(",")[0] != "ours" or float(row["median"]) > 0.0
            assert not row["excess"] or float(row["excess"]) > -1e-8, row
    solvers = {row["solver"] for row in rows["client"]}
    assert solvers == {"ours", "PIQP", "Clarabel", "OSQP", "ProxQP", "Gurobi"}
    cold = [row for row in rows["client"] if row["setting"] == "cold"]
    assert len(cold) == 4 * len(solvers)
    assert len(rows["client"]) == len(cold) + sum(bool(row["median"]) for row in cold)


def test_what_ours_claims_it_proves():
    """Rows of ours that stopped as solved are within 1e-8 of their bound."""
    rows = publish.kept_rows()
    ours = [r for part in ("client", "central") for r in rows[part] if r["solver"] == "ours"]
    assert len(ours) >= 8 + 3 + 2
    assert max(float(row["excess"]) for row in ours) < 1e-8


def test_pictures_named_on_the_page_are_small_and_there():
    text = publish.PAGE.read_text(encoding="utf-8")
    names = [part.split(")")[0] for part in text.split("](figures/")[1:]]
    assert sorted(names) == ["bench-client.svg", "bench-growth.svg"]
    for name in names:
        assert 1000 < (publish.FIGURES / name).stat().st_size < 100_000
    draw = pytest.importorskip("benchmarks.figures").draw_figures
    assert {f"{name}.svg" for name in draw(publish.kept_rows())} == set(names)


def test_the_machine_is_described_without_its_name():
    kept = publish.kept_machine()
    assert set(kept) == {"processor", "cores", "system", "python", "versions"}
    assert "/" not in json.dumps(kept)


def test_a_case_at_another_centre_is_the_same_client(small_case):
    moved = small_case.at(np.zeros(12))
    assert isinstance(moved, Case)
    assert (moved.X is small_case.X, moved.rho) == (True, small_case.rho)
    assert not math.isclose(moved.lower_bound, small_case.lower_bound)
