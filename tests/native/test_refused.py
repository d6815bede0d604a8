"""Inputs that once ended the process, or were taken for good."""

import numpy as np
import pytest

from fdrsvm.native import client, master, steps

BALL = {"epsilon": 0.1, "kappa": 1.0, "norm": 3, "rho": 1.0, "tau": 0.0}


def sparse_problem(indptr, width=3, scale=1.0):
    csr = (np.ones(2), np.array([0, 1], np.int32), np.array(indptr, np.int32), width)
    n_rows = len(indptr) - 1
    mass = np.full(n_rows, 1.0 / n_rows)
    return client.ClientProblem.sparse(
        csr, np.ones(n_rows), mass, scale=scale, fit_intercept=True, **BALL
    )


def test_rows_must_not_go_beyond_their_entries():
    with pytest.raises(ValueError, match="nor go beyond the entries"):
        sparse_problem([0, 2**30, 2])


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_a_scale_is_positive(scale):
    with pytest.raises(ValueError, match="scale"):
        sparse_problem([0, 1, 2], scale=scale)


def test_an_intercept_alone_is_no_problem_to_solve():
    csr = (np.empty(0), np.empty(0, np.int32), np.zeros(2, np.int32), 0)
    with pytest.raises(ValueError, match="at least one"):
        client.ClientProblem.sparse(
            csr, np.ones(1), np.ones(1), scale=1.0, fit_intercept=True, **BALL
        )


def test_what_is_not_a_number_is_never_proved():
    X, y, mass = np.full((4, 2), np.nan), np.ones(4), np.full(4, 0.25)
    problem = client.ClientProblem.dense(X, y, mass, largest=1.0, fit_intercept=False, **BALL)
    grade = client.grade(problem, np.zeros(2), 0.0, np.ones(2), mass, np.zeros(4))
    assert not grade.gap <= 1.0


@pytest.mark.parametrize(("n_rounds", "n_local"), [(2**32, 2**32), (3, 0xAAAAAAAAAAAAAAAB)])
def test_products_of_counts_do_not_wrap(n_rounds, n_local):
    numbers = np.zeros(6, np.int64)
    with pytest.raises(ValueError, match="draws"):
        steps.Draws(
            batches=numbers,
            drawn=np.array([0, 6]),
            sizes=np.array([1]),
            n_rounds=n_rounds,
            n_local=n_local,
        )


def test_numbers_of_rows_cannot_change_after_they_were_checked():
    owners = np.zeros(2, np.int64)
    cuts = master.Cuts(
        constants=np.ones(2),
        slopes=np.ones((2, 1)),
        norm_weights=np.zeros(2),
        owners=owners,
        alphas=np.ones(1),
        floors=np.zeros(1),
        n_normed=1,
        norm=3,
    )
    before = cuts.client_values(np.ones(1))
    owners[:] = 10**8
    np.testing.assert_array_equal(cuts.client_values(np.ones(1)), before)
