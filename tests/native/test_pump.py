"""The pump's kernels at their edge, and their bits on every level. tests/datasets has the rest."""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fdrsvm.datasets import PumpParameters, pump_features
from fdrsvm.datasets._pump_model import kernel_pump
from fdrsvm.native import LEVEL, pump
from fdrsvm.native._choice import runnable_levels

PROGRAM = "from tests.native.test_pump import digest; print(digest())"


def make_pump(leak=1e-2):
    return kernel_pump(PumpParameters(), leak)


def digest():
    """Of a record, both of its spectra and the features of three records."""
    record = make_pump().run(step=2e-5, every=50, n_samples=400).record
    flow = np.ascontiguousarray(record[:, pump.FLOW])[None]
    window = np.linspace(0.0, 1.0, 400)
    power = pump.SpectrumPlan(window, first=0.01, spacing=1e-4, n_frequencies=100).power(flow)
    plan = pump.KurtosisPlan(window[:50], hop=10, first_bin=3, n_bins=101)
    noisy = flow + np.random.default_rng(0).uniform(size=(3, 400))
    arrays = record, power, plan.kurtosis(flow), pump_features(noisy)
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def digest_with(**settings):
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | settings,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return found.stdout.strip()


@pytest.mark.parametrize("level", runnable_levels())
def test_every_level_gives_the_same_bits(level):
    assert digest_with(FDRSVM_LEVEL=level) == digest(), f"{level} and {LEVEL}"


def test_an_older_processor_as_numpy_and_the_c_library_see_it_changes_nothing():
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    settings = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(simd.get("found", [])),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    }
    assert digest_with(**settings) == digest()


def test_threads_give_the_same_bits():
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(lambda _: digest(), range(8)))) == 1


@pytest.mark.parametrize(
    "changes", [{"step": 0.0}, {"step": np.nan}, {"step": np.inf}, {"every": 0}, {"n_samples": 0}]
)
def test_impossible_runs_are_refused(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        make_pump().run(**{"step": 1e-4, "every": 1, "n_samples": 2} | changes)


def test_parts_are_made_by_name_and_completely():
    with pytest.raises(TypeError):
        pump.Valve(closed=0.0, opened=1.0, crack=1.0)
    with pytest.raises(TypeError):
        pump.Valve(0.0, 1.0, 1.0, 2.0)
    with pytest.raises(TypeError):
        pump.Valve(closed=0.0, opened=1.0, crack=1.0, full="wide")


@pytest.mark.parametrize(
    ("n_samples", "n_frequencies"), [(1, 1), (2, 3), (7, 5), (64, 200), (301, 16)]
)
def test_power_is_the_squared_fourier_sum(rng, n_samples, n_frequencies):
    window, records = rng.uniform(size=n_samples), rng.normal(size=(3, n_samples))
    grid = {"first": 0.013, "spacing": 0.0007}
    found = pump.SpectrumPlan(window, **grid, n_frequencies=n_frequencies).power(records)
    turns = np.outer(
        grid["first"] + grid["spacing"] * np.arange(n_frequencies), np.arange(n_samples)
    )
    expected = np.abs((records * window) @ np.exp(-2j * np.pi * turns).T) ** 2
    # A transform's error is a few roundings for each of its at most 2 * 10 stages.
    scale = (np.abs(records * window).sum(axis=1) ** 2)[:, None]
    assert (np.abs(found - expected) <= 100 * np.finfo(float).eps * scale).all()


@pytest.mark.parametrize(("size", "hop"), [(1, 1), (2, 1), (9, 4), (10, 3)])
def test_kurtosis_is_that_of_the_segments_transforms(rng, size, hop):
    window, records = rng.uniform(0.5, 1.0, size), rng.normal(size=(2, 40))
    plan = pump.KurtosisPlan(window, hop=hop, first_bin=0, n_bins=4 * size + 1)
    segments = np.lib.stride_tricks.sliding_window_view(records, size, axis=1)[:, ::hop]
    symmetric = np.where(np.arange(size) < (size + 1) // 2, window, window[::-1])
    squares = np.abs(np.fft.rfft(segments * symmetric, 8 * size, axis=2)) ** 2
    expected = (squares**2).mean(axis=1) / squares.mean(axis=1) ** 2 - 2
    np.testing.assert_allclose(plan.kurtosis(records), expected, atol=1e-11)


def test_a_silent_frequency_has_the_least_kurtosis():
    plan = pump.KurtosisPlan(np.ones(8), hop=2, first_bin=1, n_bins=9)
    np.testing.assert_array_equal(plan.kurtosis(np.zeros((1, 30))), np.full((1, 9), -2.0))


@pytest.mark.parametrize(
    ("window", "arguments", "error"),
    [
        (np.ones(8, np.float32), {}, TypeError),
        (np.ones(16)[::2], {}, TypeError),
        (np.ones((2, 4)), {}, TypeError),
        (np.ones(0), {}, ValueError),
        (np.ones(8), {"hop": 0}, ValueError),
        (np.ones(8), {"n_bins": 33}, ValueError),
        (np.ones(8), {"first_bin": 2**64 - 2}, ValueError),
        (np.ones(8), {"hop": -1}, TypeError),
    ],
)
def test_impossible_kurtosis_plans_are_refused(window, arguments, error):
    with pytest.raises(error):
        pump.KurtosisPlan(window, **{"hop": 2, "first_bin": 1, "n_bins": 4} | arguments)


@pytest.mark.parametrize(
    ("window", "arguments", "error"),
    [
        (np.ones(8, np.float32), {}, TypeError),
        (np.ones(0), {}, ValueError),
        (np.ones(8), {"first": np.nan}, ValueError),
        (np.ones(8), {"spacing": np.inf}, ValueError),
        (np.ones(8), {"n_frequencies": 0}, ValueError),
    ],
)
def test_impossible_spectra_are_refused(window, arguments, error):
    with pytest.raises(error):
        pump.SpectrumPlan(window, **{"first": 0.0, "spacing": 0.1, "n_frequencies": 4} | arguments)


def test_records_that_do_not_fit_are_refused():
    spectrum = pump.SpectrumPlan(np.ones(8), first=0.0, spacing=0.1, n_frequencies=4)
    kurtosis = pump.KurtosisPlan(np.ones(8), hop=2, first_bin=1, n_bins=4)
    for records in (np.ones((2, 7)), np.ones((2, 0))):
        with pytest.raises(ValueError, match="records"):
            spectrum.power(records)
        with pytest.raises(ValueError, match="records"):
            kurtosis.kurtosis(records)
    for records in (np.ones(8), np.ones((2, 16))[:, ::2], np.ones((2, 8), np.float32)):
        with pytest.raises(TypeError, match="records"):
            spectrum.power(records)
        with pytest.raises(TypeError, match="records"):
            kurtosis.kurtosis(records)
    assert spectrum.power(np.ones((0, 8))).shape == (0, 4)
