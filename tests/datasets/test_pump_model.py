"""The simulated pump obeys physics, and a second integrator."""

import dataclasses
import math

import numpy as np
import pytest

from fdrsvm import InvalidInputError
from fdrsvm.datasets import PumpParameters, pump_features, simulate_pump
from fdrsvm.datasets._pump_model import kernel_pump
from fdrsvm.datasets.pump import FEATURE_NAMES

from . import reference_pump

PUMP = PumpParameters()
LEAKS = [0.0, 1e-3, 2e-3, 3e-3, 4e-3, 7e-3, 1e-2]
LITRES = 60e3  # l/min in a m^3/s
STEP = 2e-5


@pytest.fixture(scope="module")
def settled():
    return simulate_pump(LEAKS, start=0.8)


@pytest.fixture(scope="module")
def every_step():
    """A leaking pump from standstill, with each step of the integration recorded."""
    return simulate_pump(1e-2, duration=0.5, sample_rate=1 / STEP, step=STEP)


def test_a_record_has_the_samples_of_the_experiment(settled):
    assert settled.flow.shape == (7, 1201)
    assert settled.chamber_pressure.shape == (7, 1201, 3)
    assert settled.time[0] == pytest.approx(0.8)
    assert settled.time[-1] == pytest.approx(2.0)


def test_flow_and_speed_are_those_of_the_design(settled):
    # Its figures have three decimals and its integrator's bias is 0.002 l/min.
    assert settled.flow[0].mean() == pytest.approx(35.58, abs=0.01)
    assert settled.flow[0].mean() - settled.flow[1].mean() == pytest.approx(0.078, abs=0.002)
    assert settled.speed[0].mean() == pytest.approx(878, abs=1)


def test_a_tight_symmetric_pump_delivers_what_its_plungers_displace():
    tight = dataclasses.replace(PUMP, blocking=1.0, least_leak_area=0.0)
    run = simulate_pump(pump=tight, start=0.8)
    stroke = 2 * PUMP.crank_radius
    displaced = 3 * PUMP.plunger_area * stroke * run.speed.mean() / 60 * LITRES
    assert run.flow.mean() == pytest.approx(displaced, rel=0.02)


def test_flow_falls_and_low_frequencies_rise_with_the_leak(settled):
    features = pump_features(settled.flow)
    assert (np.diff(features[:, FEATURE_NAMES.index("qMean")]) < 0).all()
    assert (np.diff(features[:, FEATURE_NAMES.index("pLow")]) > 0).all()
    assert (np.diff(settled.leak_flow.mean(axis=1)) > 0).all()
    assert (np.diff(settled.speed.mean(axis=1)) > 0).all()  # the leak unloads the pump


def test_the_flow_pulsates_at_three_times_the_shaft_frequency(settled):
    for flow, speed in zip(settled.flow, settled.speed, strict=True):
        peak = pump_features(flow)[FEATURE_NAMES.index("fPeak")]
        # The window weighs the middle; the speed still creeps, and the grid has 0.06 Hz.
        middle = speed[400:800]
        assert 3 * middle.min() / 60 - 0.06 <= peak <= 3 * middle.max() / 60 + 0.06


def test_every_litre_is_accounted_for(every_step):
    """Inflow less outflow and leak is what is stored, plus what the plungers make room for."""
    run = every_step
    net = (run.inlet_flow - run.flow - run.leak_flow)[1:] / LITRES * STEP
    nodes = [run.pressure, run.inlet_pressure, *run.chamber_pressure.T]
    sizes = [PUMP.manifold_volume] * 2 + [PUMP.dead_volume] * 3
    held = sum(
        size * reference_pump.stored(PUMP, 1e5 * p)[0] for size, p in zip(sizes, nodes, strict=True)
    )
    lever = reference_pump.levers(PUMP, run.angle[1:])
    speed = run.speed[:-1, None] * math.pi / 30  # the angle moves first, at the old speed
    room = (PUMP.plunger_area * lever * speed).sum(axis=1) * STEP
    missing = net.sum() - (held[-1] - held[0]) - room.sum()
    through = run.inlet_flow[1:].sum() / LITRES * STEP
    assert abs(missing) < 1e-6 * through


def test_over_whole_revolutions_inflow_is_outflow_plus_leak(every_step):
    run = every_step
    turns = run.angle / (2 * math.pi)
    last = math.floor(turns[-1])
    whole = (turns >= last - 2) & (turns < last)
    means = [series[whole].mean() for series in (run.inlet_flow, run.flow, run.leak_flow)]
    assert means[2] > 0.4
    # In two turns the pressures rise by less than 0.2 bar; stored volume is 4e-4 m^3 times
    # a compressibility of 5e-8 / Pa at most at the inlet: 0.2 l/min over 0.15 s.
    assert means[0] == pytest.approx(means[1] + means[2], abs=0.2)


def test_levers_are_the_slopes_of_the_plungers_travel():
    angle, h = np.linspace(0, 7, 50), 1e-6
    slope = (reference_pump.travel(PUMP, angle + h) - reference_pump.travel(PUMP, angle - h)) / (
        2 * h
    )
    np.testing.assert_allclose(reference_pump.levers(PUMP, angle), slope, atol=1e-9)


def test_no_chamber_falls_below_absolute_zero(every_step):
    lowest = every_step.chamber_pressure.min()
    assert -1.01325 < lowest < -0.9  # and the floor is near enough to matter


@pytest.mark.parametrize("leak", [0.0, 1e-2])
def test_halving_the_step_hardly_changes_the_flow(leak):
    means = [simulate_pump(leak, start=0.8, step=step).flow.mean() for step in (2e-5, 1e-5)]
    assert abs(means[0] - means[1]) < 0.02


@pytest.mark.parametrize("step", [2e-5, 2e-4])
def test_newton_settles_within_ten_iterations(step):
    run = kernel_pump(PUMP, 0.0).run(step=step, every=round(1e-3 / step), n_samples=2001)
    assert run.failed_step == 0
    assert 0 < run.most_iterations <= 10


def test_agrees_with_scipys_stiff_integrator_to_first_order_in_the_step():
    times = np.arange(0, 0.1501, 1e-3)
    theirs = reference_pump.simulate(PUMP, 1e-2, times)
    errors = [
        np.sqrt(np.mean((simulate_pump(1e-2, duration=0.15, step=step).flow - theirs) ** 2))
        for step in (2e-5, 1e-5, 5e-6)
    ]
    assert errors[0] < 0.012  # what the design measured, over a longer time
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 2.0, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("leak", [0.0, 1e-3, 1e-2])
def test_agrees_with_scipys_stiff_integrator_once_the_pump_runs(leak):
    times = np.arange(0, 0.4001, 1e-3)
    error = simulate_pump(leak, duration=0.4).flow - reference_pump.simulate(PUMP, leak, times)
    assert abs(error.mean()) < 0.005
    # Apart from the samples that fall on a steep front, where a shift in time shows.
    assert np.quantile(np.abs(error), 0.95) < 0.02


@pytest.mark.parametrize("leak", [0.0, 1e-2])
def test_a_last_bit_does_not_grow(leak):
    """A step is solved or not, whatever rounding says: 1e5 of them make 1e-16 no more than 1e-9."""
    run, other = (
        simulate_pump(leak, viscosity=viscosity)
        for viscosity in (PUMP.viscosity, np.nextafter(PUMP.viscosity, 0.0))
    )
    for name in ("flow", "pressure", "chamber_pressure", "speed"):
        values = getattr(run, name)
        atol = 1e-9 * np.abs(values).max()
        np.testing.assert_allclose(getattr(other, name), values, rtol=0, atol=atol, err_msg=name)
    assert not np.array_equal(run.flow, other.flow)


def test_runs_in_a_batch_are_the_runs_alone(settled):
    alone = simulate_pump(1e-3, start=0.8)
    np.testing.assert_array_equal(settled.flow[1], alone.flow)


def test_runs_may_differ_in_more_than_the_leak():
    run = simulate_pump(
        [[0.0], [1e-2]], torque_limit=[4.8, 5.0, 5.2], duration=0.1, step=2e-4, start=0.05
    )
    assert run.flow.shape == (2, 3, 51)
    assert (np.diff(run.speed.mean(axis=-1), axis=1) > 0).all()
    heavier = simulate_pump(load_pressure=8e5, duration=1.0, start=0.8, step=2e-4)
    thicker = simulate_pump(viscosity=120e-6, duration=1.0, start=0.8, step=2e-4)
    blocked = simulate_pump(blocking=0.2, duration=1.0, start=0.8, step=2e-4)
    normal = simulate_pump(duration=1.0, start=0.8, step=2e-4)
    assert heavier.pressure.mean() > normal.pressure.mean() + 0.5
    assert thicker.flow.mean() < normal.flow.mean()
    assert blocked.flow.mean() < normal.flow.mean()


def test_the_motor_is_at_its_limit_and_a_stronger_one_is_under_control(settled):
    np.testing.assert_allclose(settled.torque, PUMP.torque_limit, rtol=1e-9)
    strong = simulate_pump(torque_limit=20.0, start=1.5, step=2e-4)
    error = PUMP.reference_speed - strong.speed.mean()
    demand = PUMP.proportional_gain * error + PUMP.integral_gain * PUMP.integral_limit
    assert strong.torque.mean() == pytest.approx(demand, rel=0.01)


BAD = {
    "negative leak": ({"leak": -1e-3}, "leak"),
    "leak NaN": ({"leak": [0.0, np.nan]}, "leak"),
    "leak as text": ({"leak": "small"}, "leak"),
    "no runs": ({"leak": []}, "leak"),
    "shapes": ({"leak": [0, 0], "viscosity": [1e-5] * 3}, "leak"),
    "viscosity zero": ({"viscosity": 0.0}, "viscosity"),
    "viscosity as text": ({"viscosity": "thick"}, "viscosity"),
    "not a pump": ({"pump": {"density": 870.0}}, "pump"),
    "duration": ({"duration": 0.0}, "duration"),
    "start": ({"start": 3.0}, "start"),
    "negative start": ({"start": -1.0}, "start"),
    "sample rate": ({"sample_rate": np.inf}, "sample_rate"),
    "a step that does not fit": ({"step": 3e-4}, "step"),
    "a step longer than a sample": ({"step": 2e-3}, "step"),
}


@pytest.mark.parametrize(("arguments", "argument"), BAD.values(), ids=BAD)
def test_bad_arguments_are_named(arguments, argument):
    with pytest.raises(InvalidInputError) as caught:
        simulate_pump(**arguments)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"density": 0.0}, "density"),
        ({"inertia": math.nan}, "inertia"),
        ({"air_fraction": -0.1}, "air_fraction"),
        ({"crank_radius": 0.1}, "crank_radius"),
        ({"crack_pressure": 2e5}, "crack_pressure"),
    ],
)
def test_an_impossible_pump_is_refused(changes, argument):
    with pytest.raises(InvalidInputError) as caught:
        PumpParameters(**changes)
    assert caught.value.argument == argument


def test_a_pump_that_cannot_be_solved_says_when():
    """Without air, a chamber that the blocked inlet cannot fill has nothing that could expand."""
    airless = dataclasses.replace(PUMP, air_fraction=0.0)
    with pytest.raises(InvalidInputError, match=r"could not be solved at t = 0\.\d+ s") as caught:
        simulate_pump(pump=airless)
    assert caught.value.argument == "step"
