"""Units: found where plants use different ones, and not where they run at different points."""

import numpy as np
import pytest

from fdrsvm.data.units import QUANTITIES, guess_units, quantity_of, split_unit

PLANTS = ("north", "south", "west", "east")


@pytest.mark.parametrize(
    ("name", "rest", "unit", "quantity"),
    [
        ("Torque [Nm]", "Torque", "Nm", "another"),
        ("Air temperature [K]", "Air temperature", "K", "temperature"),
        ("temp (°C)", "temp", "°C", "temperature"),
        ("pressure_bar", "pressure", "bar", "pressure"),
        ("Inlet pressure kPa", "Inlet pressure", "kPa", "pressure"),
        ("speed [1/min]", "speed", "rpm", "rotation"),
        ("MDVP:Jitter(Abs)", "MDVP:Jitter(Abs)", "", None),
        ("band_1", "band_1", "", None),
        ("lubricant_min", "lubricant_min", "", None),  # a minimum, rather than minutes
        ("m", "m", "", None),
    ],
)
def test_the_unit_is_read_from_the_name(name, rest, unit, quantity):
    assert split_unit(name) == (rest, unit)
    assert quantity_of(name) == quantity


def plants(rng, base, spread, n=80, points=0.05):
    """Readings of four plants around their own operating points."""
    return {
        name: base * np.exp(rng.normal(0.0, points)) + spread * rng.normal(size=n)
        for name in PLANTS
    }


CASES = [
    ("temperature", "K", "°C", 300.0, 3.0, "temp [K]"),
    ("temperature", "K", "°C", 330.0, 8.0, "x"),
    ("temperature", "°C", "°F", 20.0, 2.0, "temperature"),
    ("pressure", "bar", "kPa", 6.0, 0.5, "pressure"),
    ("pressure", "bar", "psi", 6.0, 0.5, "pressure [bar]"),
    ("pressure", "MPa", "bar", 0.6, 0.05, "p_druck"),
    ("rotation", "rpm", "Hz", 1500.0, 50.0, "speed [rpm]"),
    ("rotation", "rpm", "rad/s", 1500.0, 50.0, "speed [rpm]"),
    ("length", "mm", "inch", 50.0, 4.0, "displacement (mm)"),
    ("length", "mm", "m", 50.0, 4.0, "gap_mm"),
]


@pytest.mark.parametrize(("quantity", "usual", "other", "base", "spread", "name"), CASES)
def test_another_unit_is_found_and_named_with_the_sum_that_undoes_it(
    quantity, usual, other, base, spread, name
):
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        samples = plants(rng, base, spread, points=0.03 if quantity != "temperature" else 0.01)
        (a, b), (c, d) = QUANTITIES[quantity][usual], QUANTITIES[quantity][other]
        given = samples["south"].copy()
        samples["south"] = (a * given + b - d) / c
        guesses = guess_units(samples, name)
        assert [one.client for one in guesses] in (["south"], [])
        if guesses and (guesses[0].unit, guesses[0].usual) == (other, usual):
            found += 1
            undone = guesses[0].factor * samples["south"] + guesses[0].offset
            np.testing.assert_allclose(undone, given, rtol=1e-9)
            words = guesses[0].relation
            assert other in words
            assert usual in words
    assert found >= 18  # of 20


def test_the_words_name_plants_units_and_the_sum(rng):
    samples = {"north": rng.normal(300.0, 3.0, 60), "south": rng.normal(27.0, 3.0, 60)}
    (guess,) = guess_units(samples, "temp [K]")
    assert guess.relation == "looks like °C in south and K in north (shift 273.15)"
    assert guess.sum == "add 273.15"
    samples["south"] = samples["north"] * 10.0
    (guess,) = guess_units(samples, "weight")
    assert guess.relation.startswith("is 10 times as large as in north")
    assert guess.sum == "multiply by 0.1"


def false_alarms(points, name, n_trials=400):
    """Share of federations in which a unit is suspected though all use the same one.

    Two to six plants, whose middles and spreads differ by factors exp(points * normal).
    """
    rng, n = np.random.default_rng(11), 0
    for _ in range(n_trials):
        base, spread = 10.0 ** rng.uniform(-1.0, 3.0), 10.0 ** rng.uniform(-2.0, -0.3)
        samples = {}
        for k in range(rng.integers(2, 7)):
            middle, width = np.exp(rng.normal(0.0, points, size=2))
            samples[f"plant-{k}"] = base * middle * (1.0 + spread * width * rng.normal(size=60))
        n += bool(guess_units(samples, name))
    return n / n_trials


@pytest.mark.parametrize("name", ["x", "pressure", "temperature", "speed", "length"])
def test_plants_that_run_at_different_points_are_left_in_peace(name):
    # The page says: none at a tenth and at a fifth, at most one in a hundred at three tenths.
    assert false_alarms(0.1, name) == 0.0
    assert false_alarms(0.2, name) == 0.0
    n = 400
    error = 3.0 * (0.01 * 0.99 / n) ** 0.5  # three standard errors of a share of one in a hundred
    assert false_alarms(0.3, name, n) <= 0.01 + error


def test_too_few_values_and_constants_say_nothing(rng):
    few = {"north": rng.normal(300.0, 3.0, 9), "south": rng.normal(27.0, 3.0, 9)}
    assert guess_units(few, "temp [K]") == []
    flat = {"north": np.full(50, 300.0), "south": np.full(50, 27.0)}
    assert guess_units(flat, "temp [K]") == []


def test_plants_that_all_differ_are_not_a_matter_of_units(rng):
    samples = {name: 3.0**k + 0.1 * 3.0**k * rng.normal(size=60) for k, name in enumerate("abcdef")}
    assert guess_units(samples, "flow") == []
