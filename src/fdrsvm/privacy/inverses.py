"""Sensors from features: what a recovered row of a map gives away of the readings, [map-inverse].

Ramps    add up to the reading less its lower limit: nothing is lost, and nothing to be guessed
Waves    a cosine and a sine tell a phase w.s up to whole turns. From the middle of the ranges most
         phases are off by less than half a turn; turns are set by rounding, sensors by least
         squares, again and again. Fewer waves than sensors leave readings open
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.risk.feature_maps import AdditiveFeatures, Features, FourierFeatures

_STEPS = 50  # from the middle of the ranges; most rows need five


def sensors_of(features: Features | None, rows: Array) -> Array:
    """The sensors of each row of features, as far as they can be told; without a map the rows."""
    if isinstance(features, AdditiveFeatures):
        rises = features.split(rows)[0].sum(axis=2)
        return np.asarray(features.low + features.width * rises / features.span)
    if not isinstance(features, FourierFeatures):
        return rows
    frequencies = features.frequencies
    cosines, sines = np.hsplit(rows, 2)
    phases, back = np.arctan2(sines, cosines), np.linalg.pinv(frequencies.T)
    shares = np.full((len(rows), features.n_sensors), 0.5)
    for _ in range(_STEPS):
        missed = phases - shares @ frequencies.T
        missed -= 2.0 * np.pi * np.round(missed / (2.0 * np.pi))
        step = missed @ back
        shares += step
        if not np.abs(step).max(initial=0.0) > 1e-12:
            break
    return np.asarray(features.low + features.width * shares)


def are_features(features: Features | None, rows: Array, slack: float) -> npt.NDArray[np.bool_]:
    """Which rows are features of some sensors: sums of several rows are not, where a map bends."""
    fits: npt.NDArray[np.bool_] = np.ones(len(rows), dtype=bool)
    if isinstance(features, FourierFeatures):  # quickly said of most: each pair is on a circle
        lengths = np.hypot(*np.hsplit(rows, 2))
        fits &= (np.abs(lengths - features.scale) <= slack).all(axis=1)
    if features is not None:
        likely = rows[fits]
        again = features.apply(sensors_of(features, likely))
        fits[fits] = (np.abs(again - likely) <= slack).all(axis=1)
    return fits
