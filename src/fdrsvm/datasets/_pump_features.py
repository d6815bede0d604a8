"""Fourteen features of a flow record: spectrum, moments and extremes.

c is the record x less its mean, m_j the mean of c^j.

qMean, qVar, qRMS       mean, variance (N - 1), root of the mean square
qSkewness, qKurtosis    m_3 / m_2^1.5 and m_4 / m_2^2, biased, not in excess of 3
qPeak2Peak, qCrest      max - min; max |x| / RMS
qMAD                    mean |c|
qCSRange                range of the cumulative sum of x
fPeak                   frequency of the largest power in 2 to 250 Hz
pLow, pMid, pHigh       power summed over the grid in 10-20, 40-60 and 100-250 Hz
pKurtosis               frequency at which the spectral kurtosis is largest

Power      c under a Kaiser window (beta 20) on 4096 frequencies from 2 to 250 Hz, both included:
           2 |X|^2 / (sum of the window)^2
Kurtosis   segments of N/8 samples, rounded up, 80 % overlap, such a window, zero-padded eightfold:
           mean |S|^4 / (mean |S|^2)^2 - 2, without 10 Hz at either end, where S is nearly real
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array, check_matrix, check_positive
from fdrsvm.errors import InvalidInputError
from fdrsvm.native import pump as kernel

# fmt: off
FEATURE_NAMES = (
    "fPeak", "pLow", "pMid", "pHigh", "pKurtosis", "qMean", "qVar", "qSkewness", "qKurtosis",
    "qPeak2Peak", "qCrest", "qRMS", "qMAD", "qCSRange",
)
# fmt: on

_BAND = (2.0, 250.0)
_N_FREQUENCIES = 4096
_POWER_BANDS = ((10.0, 20.0), (40.0, 60.0), (100.0, 250.0))
_BETA = 20.0
_EDGE = 10.0  # Hz
_BATCH = 16  # records at a time: their spectra fit the cache
_MIN_SAMPLES = 64
_NEGLIGIBLE = 1e-17  # of a sum


def pump_features(flow: Any, *, sample_rate: float = 1000.0) -> Array:
    """The features ``FEATURE_NAMES`` of flow records.

    Parameters
    ----------
    flow : array of shape (n_samples,) or (n_records, n_samples)
        Flow in l/min.
    sample_rate : float, default 1000
        Samples per second, at least 500.

    Returns
    -------
    array of shape (14,) or (n_records, 14)
    """
    flow = np.asarray(flow)
    records = check_matrix(flow[None] if flow.ndim == 1 else flow, "flow")
    sample_rate = check_positive(sample_rate, "sample_rate")
    if sample_rate < 2.0 * _BAND[1]:
        raise InvalidInputError(
            "sample_rate", f"must be at least {2 * _BAND[1]:g}", f"it is {sample_rate:g}"
        )
    if records.shape[1] < _MIN_SAMPLES:
        raise InvalidInputError(
            "flow", f"must have at least {_MIN_SAMPLES} samples", f"it has {records.shape[1]}"
        )
    features = np.empty((len(records), len(FEATURE_NAMES)))
    for start in range(0, len(records), _BATCH):
        part = slice(start, start + _BATCH)
        features[part] = _batch_features(records[part], sample_rate)
    return features[0] if flow.ndim == 1 else features


def _batch_features(x: Array, sample_rate: float) -> Array:
    mean = x.mean(axis=1)
    c = x - mean[:, None]
    frequencies, power = power_spectrum(c, sample_rate)
    peak = frequencies[power.argmax(axis=1)]
    bands = []
    for low, high in _POWER_BANDS:
        first, end = np.searchsorted(frequencies, low), np.searchsorted(frequencies, high, "right")
        bands.append(power[:, first:end].sum(axis=1))
    frequencies, kurtosis = spectral_kurtosis(c, sample_rate)
    kurtosis_peak = frequencies[kurtosis.argmax(axis=1)]
    squares = c * c
    m2, m3, m4 = (values.mean(axis=1) for values in (squares, squares * c, squares * squares))
    rms = np.sqrt((x * x).mean(axis=1))
    n_samples = x.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):  # a constant record has no shape
        shape = [m3 / (m2 * np.sqrt(m2)), m4 / (m2 * m2)]
        crest = np.abs(x).max(axis=1) / rms
    variance, deviation = m2 * n_samples / (n_samples - 1), np.abs(c).mean(axis=1)
    spread, drift = np.ptp(x, axis=1), np.ptp(np.cumsum(x, axis=1), axis=1)
    columns = [peak, *bands, kurtosis_peak, mean, variance, *shape, spread, crest, rms]
    return np.stack([*columns, deviation, drift], axis=1)


@lru_cache(maxsize=16)
def _window(size: int) -> Array:
    """Kaiser's: I0(beta sqrt(1 - t^2)) / I0(beta), for t from -1 to 1.

    By the series of I0, since SciPy's takes exp from the C library, whose last bits vary.
    """
    t = (2.0 * np.arange(size) - (size - 1)) / (size - 1)
    quarter_square = np.append(0.25 * _BETA**2 * (1.0 - t * t), 0.25 * _BETA**2)
    term, bessel = np.ones_like(quarter_square), np.ones_like(quarter_square)
    k = 0
    while (term > _NEGLIGIBLE * bessel).any():  # I0(x) = sum of (x^2 / 4)^k / (k!)^2
        k += 1
        term = term * quarter_square / (k * k)
        bessel = bessel + term
    return np.asarray(bessel[:-1] / bessel[-1])


@lru_cache(maxsize=8)
def _spectrum_plan(n_samples: int, sample_rate: float) -> tuple[Array, kernel.SpectrumPlan]:
    """Frequencies of the power spectrum, and what takes it."""
    low, high = _BAND
    plan = kernel.SpectrumPlan(
        _window(n_samples),
        first=low / sample_rate,
        spacing=(high - low) / (_N_FREQUENCIES - 1) / sample_rate,
        n_frequencies=_N_FREQUENCIES,
    )
    return np.linspace(low, high, _N_FREQUENCIES), plan


def power_spectrum(c: Array, sample_rate: float) -> tuple[Array, Array]:
    """Frequencies from 2 to 250 Hz and, for each record, the power at each of them."""
    frequencies, plan = _spectrum_plan(c.shape[-1], sample_rate)
    return frequencies, plan.power(c) * (2.0 / _window(c.shape[-1]).sum() ** 2)


@lru_cache(maxsize=8)
def _kurtosis_plan(size: int, sample_rate: float) -> tuple[Array, kernel.KurtosisPlan]:
    """Frequencies, and what takes the kurtosis there from segments of this size."""
    spacing = sample_rate / (8 * size)
    first = math.ceil(_EDGE / spacing)
    last = math.floor((0.5 * sample_rate - _EDGE) / spacing)
    bins = np.arange(first, last + 1)
    hop = size - 4 * size // 5
    plan = kernel.KurtosisPlan(_window(size), hop=hop, first_bin=first, n_bins=bins.size)
    return np.asarray(bins * spacing), plan


def spectral_kurtosis(c: Array, sample_rate: float) -> tuple[Array, Array]:
    """Frequencies from 10 Hz to 10 Hz below half the rate, and each record's kurtosis there."""
    frequencies, plan = _kurtosis_plan(-(-c.shape[1] // 8), sample_rate)
    return frequencies, plan.kurtosis(c)
