"""The scalability data, and random streams."""

import numpy as np
import pytest

from fdrsvm import InvalidInputError
from fdrsvm.datasets import make_scalability
from fdrsvm.datasets._random import as_generator, spawn


@pytest.mark.parametrize(
    ("n_samples", "n_clients", "n_features"),
    [(1000, 10, 4), (1000, 50, 12), (101, 7, 1), (2, 1, 2)],
)
def test_sizes_are_those_asked_for_and_classes_are_equal(n_samples, n_clients, n_features):
    data = make_scalability(n_samples, n_clients, n_features, n_test=500, random_state=1)
    assert data.X.shape == data.X_normalised.shape == (n_samples, n_features)
    assert data.X_test.shape == data.X_test_normalised.shape == (500, n_features)
    assert abs(data.y.sum()) <= 1
    assert abs(data.y_test.sum()) <= 2
    counts = np.bincount(data.clients, minlength=n_clients)
    assert np.ptp(counts) <= 1
    assert data.X_normalised.min() == 0.0
    assert data.X_normalised.max() == 1.0


def test_classes_are_centred_on_vertices_of_a_cube_of_side_2_4():
    data = make_scalability(100_000, 1, 3, random_state=4)
    for label in (-1.0, 1.0):
        rows = data.X[data.y == label]
        # The widest feature has a deviation below sqrt(3); four standard errors of 50 000 rows.
        np.testing.assert_allclose(np.abs(rows.mean(axis=0)), 1.2, atol=4 * np.sqrt(3 / 50_000))
    centres = [np.sign(data.X[data.y == label].mean(axis=0)) for label in (-1.0, 1.0)]
    assert (centres[0] != centres[1]).any()


def test_training_and_test_rows_are_different():
    data = make_scalability(300, 3, 4, n_test=300, random_state=0)
    assert len({tuple(row) for row in np.concatenate([data.X, data.X_test])}) == 600


def test_a_test_set_is_optional():
    assert make_scalability(10, 2, 2, n_test=0, random_state=0).X_test.shape == (0, 2)


def test_the_same_seed_gives_the_same_data():
    first, again = (make_scalability(100, 4, 3, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.clients, again.clients)
    np.testing.assert_allclose(
        first.X[0], [1.0634828082061367, 1.178618205264807, 0.7446415136701555], rtol=1e-12
    )
    assert first.clients[:12].tolist() == [3, 1, 3, 2, 0, 2, 3, 1, 0, 2, 1, 3]


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"n_samples": 1}, "n_samples"),
        ({"n_samples": 10.0}, "n_samples"),
        ({"n_clients": 0}, "n_clients"),
        ({"n_samples": 5, "n_clients": 6}, "n_clients"),
        ({"n_features": 0}, "n_features"),
        ({"n_test": -1}, "n_test"),
        ({"side": 0.0}, "side"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_arguments_are_named(arguments, argument):
    with pytest.raises(InvalidInputError) as caught:
        make_scalability(**arguments)
    assert caught.value.argument == argument


def test_a_seed_and_its_sequence_give_the_same_streams_every_time():
    sequence = np.random.SeedSequence(3)
    draws = [
        [stream.integers(2**40) for stream in spawn(state, 2)] for state in (3, sequence, sequence)
    ]
    assert draws[0] == draws[1] == draws[2]
    assert draws[0][0] != draws[0][1]
    assert as_generator(3).integers(2**40) == as_generator(np.int64(3)).integers(2**40)


def test_a_generator_is_used_as_it_is_and_moves_on():
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator
    first, second = (make_scalability(20, 2, 2, random_state=generator).X for _ in range(2))
    assert (first != second).any()


def test_no_seed_gives_new_data_each_time():
    assert (make_scalability(20, 2, 2).X != make_scalability(20, 2, 2).X).any()
