"""Sensors out of features: what a recovered row of a map gives away."""

import numpy as np
import pytest

from fdrsvm import AdditiveMap, FourierMap
from fdrsvm.privacy.inverses import are_features, sensors_of

CURVES = [
    AdditiveMap(),
    AdditiveMap(n_knots=3, pairs="all", limits=([-4.0, 0.0, 1.0], [4.0, 0.5, 9.0])),
]


@pytest.mark.parametrize("chosen", CURVES, ids=["unit", "pairs"])
def test_ramps_give_all_readings_back_also_beyond_the_limits(chosen, rng):
    features = chosen.over(3)
    X = features.low + features.width * rng.uniform(-1.0, 2.0, (50, 3))
    Z = features.apply(X)
    np.testing.assert_allclose(sensors_of(features, Z), X, rtol=1e-12, atol=1e-12)
    assert are_features(features, Z, 1e-9).all()


@pytest.mark.parametrize("n_sensors", [1, 2, 5, 14, 30])
def test_the_usual_waves_give_readings_between_the_limits_back(n_sensors, rng):
    features = FourierMap(limits=(-1.0, 3.0)).over(n_sensors)
    X = rng.uniform(-1.0, 3.0, (200, n_sensors))
    Z = features.apply(X)
    np.testing.assert_allclose(sensors_of(features, Z), X, atol=1e-9)
    assert are_features(features, Z, 1e-9).all()


def test_fewer_waves_than_sensors_leave_readings_open(rng):
    features = FourierMap(n_components=6).over(5)
    X = rng.random((100, 5))
    Z = features.apply(X)
    found = sensors_of(features, Z)
    assert (np.abs(found - X).max(axis=1) > 1e-3).all()
    np.testing.assert_allclose(features.apply(found), Z, atol=1e-9)  # others have the same waves


@pytest.mark.parametrize("chosen", [*CURVES, FourierMap()], ids=["unit", "pairs", "waves"])
def test_means_of_unlike_rows_are_no_features(chosen, rng):
    """Of ramps a later one only rises where all earlier ones are full; waves lie on circles."""
    features = chosen.over(3)
    low, high = features.low + 0.1 * features.width, features.low + 0.9 * features.width
    Z = features.apply(np.array([low, high, low * 0.8 + high * 0.2]))
    means = np.array([Z[:2].mean(axis=0), Z[1:].mean(axis=0)])
    assert not are_features(features, means, 1e-6).any()
    assert are_features(features, Z, 1e-6).all()
    assert are_features(features, Z[:0], 1e-6).shape == (0,)


def test_without_a_map_rows_are_sensors(rng):
    rows = rng.random((3, 2))
    assert sensors_of(None, rows) is rows
    assert are_features(None, rows, 0.0).all()
