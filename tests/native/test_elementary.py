"""The package's own sin, cos, exp, log, tanh and powers against decimal arithmetic."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from fdrsvm.native import elementary

DIGITS = 60  # beyond what cancellation takes from multiples of pi up to 2^20
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
ULPS = 2.0


@pytest.fixture(autouse=True)
def many_digits():
    with localcontext() as context:
        context.prec = DIGITS
        yield


def decimals(x):
    return [Decimal(float(value)) for value in x]


def errors_in_ulps(found, exact):
    """Distance of each result from the exact one, in units of the last place of that one."""
    gaps = [abs(Decimal(float(value)) - true) for value, true in zip(found, exact, strict=True)]
    places = np.spacing(np.abs(np.array([float(true) for true in exact])))
    return np.array(
        [float(gap / Decimal(float(place))) for gap, place in zip(gaps, places, strict=True)]
    )


def sine(x):
    """Taylor's series within half a turn of 0."""
    x = x - (x / (2 * PI)).to_integral_value() * 2 * PI
    term, total, k = x, x, 1
    while abs(term) > Decimal(10) ** -(DIGITS - 5):
        term *= -x * x / ((k + 1) * (k + 2))
        total += term
        k += 2
    return total


def tangent(x):
    grown = (2 * x).exp()
    return (grown - 1) / (grown + 1)


@pytest.mark.parametrize("largest", [1e-8, 0.3, 1.0, 50.0, 700.0])
def test_exp(rng, largest):
    x = rng.uniform(-largest, largest, 400)
    assert errors_in_ulps(elementary.exp(x), [value.exp() for value in decimals(x)]).max() < ULPS


def test_exp_at_its_ends():
    x = np.array([0.0, 709.78, 709.79, 710.0, np.inf, -708.0, -708.1, -np.inf, np.nan])
    np.testing.assert_allclose(
        elementary.exp(x),
        [
            1.0,
            1.7928227943945155e308,
            np.inf,
            np.inf,
            np.inf,
            3.307553003638408e-308,
            0.0,
            0.0,
            np.nan,
        ],
        rtol=4e-16,
    )


@pytest.mark.parametrize("spread", [1e-9, 1e-3, 0.5, 20.0, 690.0])
def test_log(rng, spread):
    x = np.exp(rng.uniform(-spread, spread, 400))
    exact = [value.ln() for value in decimals(x)]
    assert errors_in_ulps(elementary.log(x), exact).max() < ULPS


def test_log_and_power_of_what_is_not_above_0_are_nan():
    x = np.array([-1.0, 0.0, -0.0, np.nan, -np.inf])
    assert np.isnan(elementary.log(x)).all()
    assert np.isnan(elementary.power(x, 0.7)).all()
    assert elementary.log(np.ones(1)) == 0.0


@pytest.mark.parametrize("exponent", [1 / 1.4, 0.1, 1.0, -2.3, 7.9])
def test_power(rng, exponent):
    x = np.exp(rng.uniform(-20.0, 20.0, 400))
    exact = [(Decimal(exponent) * value.ln()).exp() for value in decimals(x)]
    assert errors_in_ulps(elementary.power(x, exponent), exact).max() < ULPS


@pytest.mark.parametrize("largest", [1e-6, 0.54, 0.56, 3.0, 40.0])
def test_tanh(rng, largest):
    x = rng.uniform(-largest, largest, 400)
    assert (
        errors_in_ulps(elementary.tanh(x), [tangent(value) for value in decimals(x)]).max() < ULPS
    )


def test_tanh_is_odd_and_ends_at_1():
    x = np.array([0.0, 0.2, 0.55, 0.7, 300.0, 1e300, np.inf])
    np.testing.assert_array_equal(elementary.tanh(-x), -elementary.tanh(x))
    np.testing.assert_array_equal(elementary.tanh(x)[4:], 1.0)
    assert np.isnan(elementary.tanh(np.array([np.nan])))


@pytest.mark.parametrize("largest", [1e-5, 1.0, 200.0, 2.0**20])
def test_sin_and_cos(rng, largest):
    x = rng.uniform(-largest, largest, 400)
    quarter = PI / 2
    sines = [sine(value) for value in decimals(x)]
    cosines = [sine(value + quarter) for value in decimals(x)]
    assert errors_in_ulps(elementary.sin(x), sines).max() < ULPS
    assert errors_in_ulps(elementary.cos(x), cosines).max() < ULPS


def test_sin_and_cos_at_multiples_of_a_quarter_turn():
    """Where all that is left is what rounding took from the multiple."""
    x = np.concatenate([np.arange(-40, 41), 2 ** np.arange(6, 20)]) * (np.pi / 2)
    sines, cosines = (
        [sine(value + shift) for value in decimals(x)] for shift in (Decimal(0), PI / 2)
    )
    assert errors_in_ulps(elementary.sin(x), sines).max() < ULPS
    assert errors_in_ulps(elementary.cos(x), cosines).max() < ULPS


@pytest.mark.parametrize("function", ["exp", "log", "tanh", "sin", "cos"])
@pytest.mark.parametrize("x", [np.ones(3, np.float32), np.ones((2, 2)), np.ones(6)[::2], [1.0]])
def test_other_arrays_are_refused(function, x):
    with pytest.raises(TypeError, match="x: must be"):
        getattr(elementary, function)(x)
