"""Every row goes to one client, in the numbers that were asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm import InvalidInputError
from fdrsvm.datasets import partition
from fdrsvm.native import steps

labels = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=80)
seeds = st.integers(0, 2**32 - 1)


def table(clients, y, n_clients):
    """Rows of each class in each client."""
    names = np.unique(y)
    return np.array(
        [np.bincount(clients[np.asarray(y) == name], minlength=n_clients) for name in names]
    )


def assert_covers(clients, n_rows, n_clients):
    assert clients.shape == (n_rows,)
    assert clients.dtype == np.int64
    assert set(clients) <= set(range(n_clients))


@given(y=labels, n_clients=st.integers(1, 10), seed=seeds)
def test_stratified_clients_differ_by_a_row_in_all_and_in_each_class(y, n_clients, seed):
    n_clients = min(n_clients, len(y))
    clients = partition.stratified(y, n_clients, random_state=seed)
    assert_covers(clients, len(y), n_clients)
    counts = table(clients, y, n_clients)
    assert np.ptp(counts.sum(axis=0)) <= 1
    assert (np.ptp(counts, axis=1) <= 1).all()


@given(
    n_rows=st.integers(1, 300),
    weights=st.lists(st.integers(1, 100), min_size=1, max_size=12),
)
def test_dealing_keeps_every_client_within_a_row_of_its_share(n_rows, weights):
    shares = np.array(weights) / sum(weights)
    turns = steps.deal(shares, n_rows)
    counts = np.cumsum(turns[:, None] == np.arange(shares.size), axis=0)
    owed = np.arange(1, n_rows + 1)[:, None] * shares
    assert np.abs(counts - owed).max() < 1.0


@given(y=st.lists(st.sampled_from([-1, 1]), min_size=40, max_size=120), seed=seeds)
def test_shares_hold_in_all_and_in_each_class(y, seed):
    shares = np.array([0.7, 0.15, 0.1, 0.05])
    clients = partition.by_shares(y, 100 * shares, random_state=seed)
    assert_covers(clients, len(y), 4)
    counts = table(clients, y, 4)
    assert (np.abs(counts.sum(axis=0) - shares * len(y)) < 1).all()
    sizes = counts.sum(axis=1, keepdims=True)
    assert (np.abs(counts - shares * sizes) < 2).all()


def test_whole_shares_are_exact():
    y = np.repeat([-1, 1], 200)
    clients = partition.by_shares(y, (70, 15, 10, 5), random_state=1)
    assert np.bincount(clients).tolist() == [280, 60, 40, 20]
    assert np.bincount(clients[y == 1]).tolist() == [140, 30, 20, 10]


@given(
    y=labels, n_clients=st.integers(1, 6), concentration=st.sampled_from([0.1, 1, 100]), seed=seeds
)
def test_dirichlet_clients_cover_every_row_once(y, n_clients, concentration, seed):
    n_clients = min(n_clients, len(y))
    clients = partition.dirichlet(y, n_clients, concentration, min_samples=0, random_state=seed)
    assert_covers(clients, len(y), n_clients)


def test_a_small_concentration_skews_labels_and_a_large_one_does_not():
    y = np.repeat([0, 1], 5000)

    def skew(concentration):
        spreads = []
        for seed in range(20):
            clients = partition.dirichlet(y, 4, concentration, random_state=seed)
            shares = table(clients, y, 4) / 5000
            spreads.append(np.abs(shares - 0.25).mean())
        return np.mean(spreads)

    assert skew(0.1) > 0.25 > 0.02 > skew(1000.0)


def test_dirichlet_repeats_its_draw_until_every_client_has_enough():
    y = np.repeat([0, 1], 50)
    for seed in range(30):
        clients = partition.dirichlet(y, 4, 0.3, min_samples=10, random_state=seed)
        assert np.bincount(clients, minlength=4).min() >= 10


def test_dirichlet_says_when_it_cannot():
    with pytest.raises(InvalidInputError, match="min_samples: must be met within 1000 draws"):
        partition.dirichlet(np.zeros(40), 20, 1e-3, min_samples=2, random_state=0)


def test_each_group_is_a_client():
    groups = np.array(["b", "a", "b", "c"])
    assert partition.by_group(groups).tolist() == [1, 0, 1, 2]


@given(groups=st.lists(st.integers(0, 12), min_size=1, max_size=80), seed=seeds)
def test_groups_stay_whole_and_clients_are_balanced(groups, seed):
    groups = np.array(groups)
    n_groups = len(set(groups.tolist()))
    n_clients = max(1, n_groups // 2)
    clients = partition.by_group(groups, n_clients, random_state=seed)
    assert_covers(clients, groups.size, n_clients)
    for group in set(groups.tolist()):
        assert len(set(clients[groups == group])) == 1
    counts = np.bincount(clients, minlength=n_clients)
    # The fullest client was the emptiest before its last group came.
    assert np.ptp(counts) <= np.bincount(groups).max()
    assert counts.min() > 0


@pytest.mark.parametrize(
    "spread",
    [
        lambda y, seed: partition.stratified(y, 3, random_state=seed),
        lambda y, seed: partition.by_shares(y, (3, 2, 1), random_state=seed),
        lambda y, seed: partition.dirichlet(y, 3, 1.0, random_state=seed),
        lambda y, seed: partition.by_group(np.arange(60) // 4, 3, random_state=seed),
    ],
    ids=["stratified", "by_shares", "dirichlet", "by_group"],
)
def test_the_same_seed_gives_the_same_clients(spread):
    y = np.arange(60) % 2
    np.testing.assert_array_equal(spread(y, 5), spread(y, 5))
    assert any((spread(y, 5) != spread(y, other)).any() for other in range(6, 10))


GOLDEN = {
    "stratified": [0, 3, 0, 2, 1, 3, 0, 2, 2, 1, 3, 1, 1, 2, 0, 3],
    "by_shares": [0, 0, 0, 2, 1, 0, 0, 2, 2, 1, 0, 1, 1, 2, 0, 0],
    "dirichlet": [1, 2, 0, 2, 0, 0, 2, 0, 2, 0, 2, 1, 2, 2, 0, 2],
}


def test_clients_are_what_they_were_when_this_was_written():
    y = np.repeat([-1.0, 1.0], [12, 4])
    assert partition.stratified(y, 4, random_state=0).tolist() == GOLDEN["stratified"]
    assert partition.by_shares(y, (2, 1, 1), random_state=0).tolist() == GOLDEN["by_shares"]
    assert partition.dirichlet(y, 3, 0.5, random_state=0).tolist() == GOLDEN["dirichlet"]


BAD = {
    "no clients": (lambda: partition.stratified([0, 1], 0), "n_clients"),
    "more clients than rows": (lambda: partition.stratified([0, 1], 3), "n_clients"),
    "half a client": (lambda: partition.stratified([0, 1], 1.5), "n_clients"),
    "no rows": (lambda: partition.stratified([], 1), "y"),
    "y a matrix": (lambda: partition.stratified([[0, 1]], 1), "y"),
    "y missing": (lambda: partition.stratified([0.0, np.nan], 1), "y"),
    "mixed labels": (lambda: partition.stratified(np.array([1, "a"], dtype=object), 1), "y"),
    "share zero": (lambda: partition.by_shares([0] * 9, (1, 0)), "shares"),
    "share NaN": (lambda: partition.by_shares([0] * 9, (1, np.nan)), "shares"),
    "no shares": (lambda: partition.by_shares([0] * 9, ()), "shares"),
    "shares as text": (lambda: partition.by_shares([0] * 9, "half"), "shares"),
    "more shares than rows": (lambda: partition.by_shares([0], (1, 1)), "shares"),
    "a share too small": (lambda: partition.by_shares([0] * 10, (1000, 1)), "shares"),
    "concentration": (lambda: partition.dirichlet([0, 1], 2, 0.0), "concentration"),
    "min_samples": (lambda: partition.dirichlet([0, 1], 2, 1.0, min_samples=2), "min_samples"),
    "more clients than groups": (lambda: partition.by_group([1, 1, 2], 3), "n_clients"),
    "seed": (lambda: partition.stratified([0, 1], 2, random_state="now"), "random_state"),
}


@pytest.mark.parametrize(("call", "argument"), BAD.values(), ids=BAD)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert caught.value.argument == argument
