"""Damage is of the size asked for, within each client, and leaves the original alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fdrsvm import InvalidInputError
from fdrsvm.datasets import corrupt

Y = np.where(np.arange(200) % 3 == 0, 1.0, -1.0)
CLIENTS = np.repeat(["a", "b", "c"], [100, 60, 40])
X = np.random.default_rng(0).normal(size=(200, 5)) * [1, 2, 3, 4, 5] + 10


@given(share=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_exactly_the_share_is_flipped_in_every_client(share, seed):
    flipped = corrupt.flip_labels(Y, share, clients=CLIENTS, random_state=seed)
    for name, size in (("a", 100), ("b", 60), ("c", 40)):
        assert (flipped != Y)[name == CLIENTS].sum() == round(share * size)
    assert set(np.abs(flipped)) == {1.0}


def test_with_replacement_a_row_hit_twice_is_flipped_once():
    shares = [
        np.mean(corrupt.flip_labels(Y, 0.15, replace=True, random_state=seed) != Y)
        for seed in range(400)
    ]
    assert max(shares) <= 0.15
    expected = 1 - (1 - 1 / 200) ** 30
    # 30 draws, each a new row with chance above .86: variance of the count below 30 * .12.
    assert np.mean(shares) == pytest.approx(expected, abs=4 * np.sqrt(3.6) / 200 / np.sqrt(400))


def test_noise_has_the_deviation_asked_for():
    for relative_to, unit in (
        ("unit", np.ones(5)),
        ("std", X.std(axis=0)),
        ("range", np.ptp(X, axis=0)),
    ):
        repeats = [
            corrupt.add_noise(X, 0.1, relative_to=relative_to, random_state=seed) - X
            for seed in range(20)
        ]
        # 4000 readings: a standard deviation is known to 1.1 %; four of those.
        np.testing.assert_allclose(np.std(repeats, axis=(0, 1)), 0.1 * unit, rtol=0.045)


def test_noise_may_differ_between_sensors():
    noisy = corrupt.add_noise(X, [0, 0, 1, 0, 0], relative_to="unit", random_state=0)
    assert (noisy != X).any(axis=0).tolist() == [False, False, True, False, False]


def test_every_client_lacks_its_own_sensors():
    lost = np.isnan(corrupt.drop_sensors(X, 2, clients=CLIENTS, random_state=1))
    for name in "abc":
        whole = lost[name == CLIENTS]
        assert (whole == whole[0]).all()  # a missing sensor is missing in every row
        assert whole[0].sum() == 2
    patterns = {
        tuple(np.isnan(corrupt.drop_sensors(X, 2, random_state=seed))[0]) for seed in range(40)
    }
    assert len(patterns) > 5  # of ten


def test_missing_sensors_may_be_filled():
    assert (corrupt.drop_sensors(X, 5, fill=0.0, random_state=0) == 0.0).all()
    np.testing.assert_array_equal(corrupt.drop_sensors(X, 0, random_state=0), X)


def test_the_original_is_left_alone_and_the_same_seed_gives_the_same():
    before_x, before_y = X.copy(), Y.copy()
    for call in (
        lambda: corrupt.flip_labels(Y, 0.3, random_state=3),
        lambda: corrupt.flip_labels(Y, 0.3, replace=True, random_state=3),
        lambda: corrupt.add_noise(X, 0.3, random_state=3),
        lambda: corrupt.drop_sensors(X, 3, random_state=3),
    ):
        np.testing.assert_array_equal(call(), call())
    np.testing.assert_array_equal(X, before_x)
    np.testing.assert_array_equal(Y, before_y)


def test_flips_are_what_they_were_when_this_was_written():
    y = np.repeat([-1.0, 1.0], [30, 10])
    exact = corrupt.flip_labels(y, 0.15, random_state=0)
    assert np.flatnonzero(exact != y).tolist() == [2, 4, 11, 23, 24, 27]
    drawn = corrupt.flip_labels(y, 0.15, replace=True, random_state=0)
    assert np.flatnonzero(drawn != y).tolist() == [1, 10, 12, 20, 25, 34]


BAD = {
    "share above 1": (lambda: corrupt.flip_labels(Y, 1.5), "share"),
    "share NaN": (lambda: corrupt.flip_labels(Y, np.nan), "share"),
    "labels 0 and 1": (lambda: corrupt.flip_labels([0, 1], 0.5), "y"),
    "no labels": (lambda: corrupt.flip_labels([], 0.5), "y"),
    "clients too short": (lambda: corrupt.flip_labels(Y, 0.5, clients=[1]), "clients"),
    "negative scale": (lambda: corrupt.add_noise(X, -1.0), "scale"),
    "a scale for each of other sensors": (lambda: corrupt.add_noise(X, [1.0, 2.0]), "scale"),
    "one negative scale": (lambda: corrupt.add_noise(X, [0, 0, -1, 0, 0]), "scale[2]"),
    "unknown unit": (lambda: corrupt.add_noise(X, 1.0, relative_to="volt"), "relative_to"),
    "sparse": (lambda: corrupt.add_noise(sparse.csr_array(X), 1.0), "X"),
    "NaN in X": (lambda: corrupt.drop_sensors([[np.nan]], 0), "X"),
    "too many sensors": (lambda: corrupt.drop_sensors(X, 6), "n_sensors"),
    "half a sensor": (lambda: corrupt.drop_sensors(X, 0.5), "n_sensors"),
}


@pytest.mark.parametrize(("call", "argument"), BAD.values(), ids=BAD)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert caught.value.argument == argument
