"""The client's kernels: the same bits on every level, and checks at the edge to Python."""

import json
import os
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

from fdrsvm.native import client as kernels
from fdrsvm.native._choice import LEVELS, _is_compiled
from fdrsvm.solvers import Status, prepare_client
from tests.solvers.cases import NORMS, random_data

# Solves many problems and prints every number of every answer, as hexadecimal text.
_SOLVE_MANY = """
import json, sys, warnings
import numpy as np
from scipy import sparse
from fdrsvm.native import LEVEL
from fdrsvm.solvers import prepare_client
warnings.simplefilter("ignore")
answers = []
for seed in range(60):
    rng = np.random.default_rng(seed)
    n, p = int(rng.choice([1, 7, 8, 40, 130])), int(rng.choice([1, 7, 8, 15, 70, 140]))
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    y = np.where(X @ rng.normal(size=p) + rng.normal(size=n) > 0, 1.0, -1.0)
    weights = rng.random(n) * (rng.random(n) < 0.8) + (np.arange(n) == 0)
    X = sparse.csr_array(X * (rng.random(X.shape) < 0.4)) if seed % 4 == 0 else X
    client = prepare_client(
        X, y, rho=0.1, tau=0.01 * (seed % 2), epsilon=float(rng.choice([0.0, 0.01, 0.3])),
        kappa=float(rng.choice([0.3, 1.0, np.inf])), norm=("l1", "l2", "linf")[seed % 3],
        sample_weight=weights, fit_intercept=bool(seed % 5 < 2),
    )
    for one in (client, client.with_penalties(0.0)):
        start = None
        for _ in range(2):
            s = one.solve(rng.normal(size=p), warm_start=start)
            start = s.warm_start
            numbers = [s.objective, s.gap, s.multiplier, s.intercept, s.n_iter, *s.w, *start.kept]
            answers.append([float(v).hex() for v in [*numbers, *s.cut.slope, *start.flipped]])
json.dump([LEVEL, answers], sys.stdout)
"""


def usable_levels():
    runs_here = import_module("fdrsvm.native._processor").levels()
    return [level for level in LEVELS if level in runs_here and _is_compiled(level)]


def test_every_level_gives_the_same_bits():
    found = {}
    for level in usable_levels():
        run = subprocess.run(
            [sys.executable, "-c", _SOLVE_MANY],
            env={**os.environ, "FDRSVM_LEVEL": level},
            capture_output=True,
            text=True,
            check=True,
        )
        loaded, found[level] = json.loads(run.stdout)
        assert loaded == level
    first = next(iter(found.values()))
    assert len(first) == 240
    assert all(answers == first for answers in found.values())


def dense(X, y, mass, **changes):
    constants = {
        "largest": 1.0,
        "fit_intercept": False,
        "epsilon": 0.1,
        "kappa": 1.0,
        "norm": 3,
        "rho": 1.0,
        "tau": 0.0,
    }
    return kernels.ClientProblem.dense(X, y, mass, **(constants | changes))


@pytest.fixture
def problem(rng):
    X, y = random_data(rng, 12, 3)
    return dense(X, y, np.full(12, 1 / 12))


@pytest.mark.parametrize(
    ("error", "bad"),
    [
        (TypeError, np.ones((12, 3), dtype=np.float32)),
        (TypeError, np.ones((12, 6))[:, ::2]),
        (TypeError, np.ones(12)),
        (TypeError, [[1.0]]),
        (ValueError, np.ones((11, 3))),
        (ValueError, np.ones((0, 3))),
    ],
)
def test_wrong_rows_are_refused(error, bad):
    with pytest.raises(error):
        dense(bad, np.ones(12), np.full(12, 1 / 12))


def test_wrong_constants_are_refused():
    X, y, mass = np.ones((12, 3)), np.ones(12), np.full(12, 1 / 12)
    for changes in ({"norm": 4}, {"epsilon": -1.0}, {"kappa": 0.0}, {"largest": 0.0}):
        with pytest.raises(ValueError, match=next(iter(changes))):
            dense(X, y, mass, **changes)
    with pytest.raises(ValueError, match="mass"):
        dense(X, y, mass[1:])


@pytest.mark.parametrize(
    ("data", "indices", "indptr"),
    [
        ([1.0, 2.0], [0, 3], [0, 1, 2]),  # beyond the width
        ([1.0, 2.0], [0, -1], [0, 1, 2]),
        ([1.0, 2.0], [1, 0], [0, 2, 2]),  # descends
        ([1.0, 2.0], [0, 1], [0, 2, 1]),
        ([1.0, 2.0], [0, 1], [0, 1, 3]),
    ],
)
def test_wrong_sparse_rows_are_refused(data, indices, indptr):
    csr = (np.array(data), np.array(indices, np.int32), np.array(indptr, np.int32), 3)
    constants = {"epsilon": 0.1, "kappa": 1.0, "norm": 3, "rho": 1.0, "tau": 0.0}
    with pytest.raises(ValueError, match="ind"):
        kernels.ClientProblem.sparse(
            csr, np.ones(2), np.full(2, 0.5), scale=1.0, fit_intercept=False, **constants
        )


def test_wrong_starts_and_centres_are_refused(problem):
    answer = kernels.solve(problem, np.zeros(3), 0.0, None, 1e-9, 1000)
    for k in (0, 2, 3, 4):  # w, kept, flipped, pull
        for error, bad in ((ValueError, np.ones(1)), (TypeError, np.ones(12, dtype=np.float32))):
            start = (*answer.start[:k], bad, *answer.start[k + 1 :])
            with pytest.raises(error):
                kernels.solve(problem, np.zeros(3), 0.0, start, 1e-9, 1000)
    with pytest.raises(ValueError, match="start"):
        kernels.solve(problem, np.zeros(3), 0.0, answer.start[:5], 1e-9, 1000)
    with pytest.raises(ValueError, match="centre"):
        kernels.solve(problem, np.zeros(4), 0.0, None, 1e-9, 1000)


def test_a_start_may_be_read_only_and_is_left_alone(problem):
    answer = kernels.solve(problem, np.zeros(3), 0.0, None, 1e-9, 1000)
    before = [np.copy(part) for part in answer.start]
    for part in (0, 2, 3, 4):
        answer.start[part].flags.writeable = False
    again = kernels.solve(problem, np.ones(3), 0.0, answer.start, 1e-9, 1000)
    assert again.solved
    assert all(np.array_equal(a, b) for a, b in zip(before, answer.start, strict=True))


@pytest.mark.parametrize("norm", NORMS)
def test_many_samples_near_a_kink_fill_several_blocks(norm, rng):
    """600 equal rows at the kink: more than one block of the Gram matrix, and its last partial."""
    X = np.ones((600, 3)) + 1e-3 * rng.normal(size=(600, 3))
    y = np.where(rng.random(600) < 0.6, 1.0, -1.0)
    s = prepare_client(X, y, rho=1.0, epsilon=0.1, norm=norm).solve(np.zeros(3))
    sparse_s = prepare_client(sparse.csr_array(X), y, rho=1.0, epsilon=0.1, norm=norm).solve(
        np.zeros(3)
    )
    assert s.status is sparse_s.status is Status.SOLVED
    assert abs(s.objective - sparse_s.objective) <= max(s.gap, sparse_s.gap) + 1e-13


def test_the_pull_of_masses_is_their_signed_sum_of_rows(rng):
    X, y = random_data(rng, 150, 5)
    problem = dense(X, y, np.full(150, 1 / 150), largest=np.abs(X).max(), fit_intercept=True)
    signed = np.hstack([y[:, None] * X / problem.feature_scale, y[:, None]])
    masses = rng.normal(size=150) * (rng.random(150) < 0.5)
    bound = 150 * np.finfo(float).eps * (np.abs(signed).T @ np.abs(masses))
    assert (np.abs(problem.pull_of(masses) - signed.T @ masses) <= bound).all()
    assert np.array_equal(problem.dense_rows(), signed)
