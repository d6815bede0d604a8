"""Summaries of rows against numbers worked out by hand."""

import math

import pytest

from fdrsvm.errors import InvalidInputError
from fdrsvm_paper.paper_values import TABLE1, Printed
from fdrsvm_paper.summary import (
    Gain,
    Score,
    by_repetition,
    far_from_paper,
    in_order,
    joining,
    number,
    rounds_needed,
    scaling,
    score,
    scores,
)


def row(method, data, repetition, f1):
    return {"method": method, "data": data, "repetition": str(repetition), "f1": f1}


def plant_row(repetition, plant, model, f1_all, f1_own="0.5", *, setting="nominal", leak="0.001"):
    return {
        "severities": "paper",
        "setting": setting,
        "repetition": str(repetition),
        "plant": str(plant),
        "leak": leak,
        "n_train": str(100 * plant),
        "model": model,
        "f1_all": f1_all,
        "f1_own": f1_own,
    }


def rounds_row(method, parameter, repetition, target, rounds):
    return {
        "data": "bcw",
        "norm": "linf",
        "method": method,
        "parameter": parameter,
        "repetition": str(repetition),
        "target": target,
        "rounds": rounds,
    }


def test_mean_deviation_and_count():
    rows = [row("SM", "bcw", r, f1) for r, f1 in enumerate(["0.8", "0.9", "1.0"])]
    rows += [row("SM", "ukm", 0, "0.7"), row("ADMM", "bcw", 0, "")]
    found = scores(rows, "data")
    assert set(found) == {("SM", "bcw"), ("SM", "ukm")}
    whole, single = found["SM", "bcw"], found["SM", "ukm"]
    assert (whole.mean, whole.sd, whole.count) == (pytest.approx(0.9), pytest.approx(0.1), 3)
    assert (single.mean, single.count) == (0.7, 1)
    assert math.isnan(single.sd)


def test_the_later_of_two_rows_counts_and_cut_rows_do_not():
    rows = [row("SM", "bcw", 0, "0.1"), row("SM", "bcw", 0, "0.3")]
    rows += [{"method": "SM", "data": "bcw", "repetition": "1", "f1": None}, {"method": "SM"}]
    rows += [row("SM", "bcw", 2, "nan"), row("SM", "bcw", 3, "inf")]
    assert by_repetition(rows, "data").to_dict() == {("SM", "bcw", "0"): 0.3}
    assert scores([], "data") == {}


def test_other_fields_and_columns():
    rows = [{"method": "SM", "setting": "both", "repetition": "0", "accuracy": "0.5"}]
    assert scores(rows, "setting", "accuracy")["SM", "both"].mean == 0.5


def test_what_is_no_number_is_refused():
    assert number({"f1": " "}, "f1") is None
    assert number({"f1": "1e-3"}, "f1") == 0.001
    with pytest.raises(InvalidInputError, match="f1: must be a number or empty; found 'good'"):
        number({"f1": "good"}, "f1")
    with pytest.raises(InvalidInputError, match="values"):
        score([])


def test_difference_is_in_the_papers_deviations():
    assert Score(0.92, 0.5, 3).difference(Printed(0.90, 0.01)) == pytest.approx(2.0)
    assert Score(0.728, 0.02, 50).difference(TABLE1["FedDRO (KL)"]["ukm"]) == pytest.approx(10.0)


def test_cells_far_from_the_paper():
    found = {
        ("SM", "bcw"): Score(0.957 + 0.015, 0.1, 2),  # exactly one away
        ("SM", "ukm"): Score(0.840 - 0.062, 0.1, 2),
        ("Mine", "bcw"): Score(0.0, 0.1, 2),
    }
    assert far_from_paper(found, TABLE1) == {("SM", "ukm"): pytest.approx(-2.0)}
    assert list(far_from_paper(found, TABLE1, limit=0.5)) == [("SM", "bcw"), ("SM", "ukm")]


def test_known_names_come_first():
    assert in_order("zbzab", "abc") == ["a", "b", "z"]


def test_joining_by_plant():
    rows = [
        plant_row(0, 1, "local", "0.70"),
        plant_row(0, 1, "federated", "0.80"),
        plant_row(1, 1, "local", "0.60"),
        plant_row(1, 1, "federated", "0.80"),
        plant_row(1, 1, "central", "0.90"),
        plant_row(2, 1, "federated", "0.10"),  # without its pair
    ]
    (found,) = joining(rows)
    assert (found.severities, found.setting, found.group) == ("paper", "nominal", "1")
    assert found.n_train == 100.0
    assert found.on_all["local"].mean == pytest.approx(0.65)
    assert found.on_all["central"].count == 1
    # Differences 0.1 and 0.2: mean 0.15, deviation 0.0707, standard error 0.05.
    assert found.gain_all.mean == pytest.approx(0.15)
    assert found.gain_all.standard_error == pytest.approx(0.05)
    assert found.gain_all.count == 2
    assert found.gain_own == Gain(0.0, 0.0, 2)


def test_joining_of_all_plants_averages_within_a_repetition():
    rows = []
    for repetition, gain in ((0, 0.1), (1, 0.3)):
        for plant in (1, 2):
            rows.append(plant_row(repetition, plant, "local", repr(0.1 * plant)))
            rows.append(plant_row(repetition, plant, "federated", repr(0.1 * plant + gain)))
    rows.append(plant_row(2, 1, "local", "0.9"))  # the other plant is yet to come
    rows.append(plant_row(2, 1, "federated", "0.0"))
    (found,) = joining(rows, "all")
    assert found.group == "all"
    assert found.on_all["local"].mean == pytest.approx(0.15)
    assert found.gain_all.mean == pytest.approx(0.2)
    assert found.gain_all.standard_error == pytest.approx(0.1)
    assert found.gain_all.count == 2


def test_joining_by_leak_follows_the_leak_from_plant_to_plant():
    rows = [
        plant_row(repetition, plant, model, f1, leak=leak)
        for repetition in (0, 1)
        for plant, leak in ((1 + repetition, "0.01"), (2 - repetition, "0.002"))
        for model, f1 in (("local", "0.5"), ("federated", "0.6" if leak == "0.01" else "0.4"))
    ]
    small, large = joining(rows, "leak")
    assert (small.group, large.group) == ("0.002", "0.01")
    assert small.gain_all.mean == pytest.approx(-0.1)
    assert large.gain_all.mean == pytest.approx(0.1)
    assert large.gain_all.count == 2
    with pytest.raises(InvalidInputError, match="by"):
        joining(rows, "colour")


def test_a_plant_without_a_pair_has_no_gain():
    (found,) = joining([plant_row(0, 1, "local", "0.7")])
    assert math.isnan(found.gain_all.mean)
    assert found.gain_all.count == 0
    assert found.gain_all.verdict == "unclear"


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (Gain(0.10, 0.04, 10), "pays"),  # the t quantile is 2.26
        (Gain(0.09, 0.04, 10), "unclear"),
        (Gain(-0.10, 0.04, 10), "costs"),
        (Gain(0.10, 0.04, 2), "unclear"),  # the t quantile is 12.7
        (Gain(0.10, math.nan, 1), "unclear"),
        (Gain(0.0, 0.0, 10), "unclear"),
        (Gain(0.1, 0.0, 10), "pays"),
    ],
)
def test_verdicts(gain, verdict):
    assert gain.verdict == verdict


def test_scaling_takes_medians_and_fits_a_power():
    rows = [
        {
            "panel": "b",
            "method": "SM",
            "x": str(x),
            "repetition": str(repetition),
            "seconds": repr(0.5 * x**2 * factor),
            "rounds": "7",
            "mccr": "" if x == 20 else "0.9",
        }
        for x in (40, 10, 20)
        for repetition, factor in enumerate((1.0, 0.01, 100.0))
        if not (x == 10 and repetition)
    ]
    (found,) = scaling(rows)
    assert (found.panel, found.method, found.count) == ("b", "SM", 1)
    assert found.x == (10.0, 20.0, 40.0)
    assert found.seconds == pytest.approx((50.0, 200.0, 800.0))
    assert found.exponent == pytest.approx(2.0)
    assert found.mccr[0] == 0.9
    assert math.isnan(found.mccr[1])


def test_a_single_size_or_no_seconds_have_no_power():
    fields = {"panel": "a", "method": "SM", "repetition": "0", "rounds": "1"}
    (single,) = scaling([{**fields, "x": "10", "seconds": "1.0"}])
    (instant,) = scaling([{**fields, "x": x, "seconds": "0.0"} for x in ("10", "20")])
    assert math.isnan(single.exponent)
    assert math.isnan(instant.exponent)


def test_rounds_with_the_best_parameter_for_each_target():
    rows = [
        rounds_row("ADMM", parameter, repetition, target, rounds)
        for parameter, target, measured in [
            ("0.1", "0.01", ["4", "6", "8"]),
            ("0.1", "0.0001", ["", "", "9"]),
            ("1.0", "0.01", ["10", "20", "30"]),
            ("1.0", "0.0001", ["50", "60", ""]),
        ]
        for repetition, rounds in enumerate(measured)
    ]
    rows += [rounds_row("SM", "", 0, "0.01", "")]
    never, loose, tight = rounds_needed(rows)
    assert (loose.target, loose.parameter, loose.rounds) == (0.01, "0.1", 6.0)
    assert (loose.reached, loose.count) == (3, 3)
    assert (tight.target, tight.parameter, tight.rounds) == (0.0001, "1.0", 60.0)
    assert (tight.reached, tight.count) == (2, 3)
    assert (never.method, never.rounds, never.reached) == ("SM", math.inf, 0)
