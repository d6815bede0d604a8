"""Dual norms and their subgradients against the definition sup {w.d : ||d|| <= 1}."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fdrsvm.core.vectors import NORMS, dual_norm, dual_norm_subgradient, norm_of, norm_rows

vectors = st.lists(
    st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6), min_size=1, max_size=6
).map(np.array)


def dual_norm_by_program(w, norm):
    """Largest w.d with ||d|| <= 1, by linear program: the definition."""
    size = w.size
    pairs = np.block([[np.eye(size), -np.eye(size)], [-np.eye(size), -np.eye(size)]])
    if norm == "l1":  # variables d, |d|
        total = np.concatenate([np.zeros(size), np.ones(size)])
        rows, bound = np.vstack([pairs, total]), np.append(np.zeros(2 * size), 1.0)
        result = linprog(np.append(-w, np.zeros(size)), rows, bound, bounds=(None, None))
    else:
        result = linprog(-w, bounds=(-1, 1))
    return -result.fun


@pytest.mark.parametrize("norm", ["l1", "linf"])
@given(w=vectors)
def test_the_dual_norm_is_the_definition(norm, w):
    size = np.abs(w).max() or 1.0  # the solver drops costs below 1e-7
    expected = size * dual_norm_by_program(w / size, norm)
    assert dual_norm(w, norm) == pytest.approx(expected, rel=1e-6)


@given(w=vectors, u=st.lists(st.floats(-5, 5), min_size=6, max_size=6).map(np.array))
def test_subgradients_touch_and_stay_below(w, u):
    u = u[: w.size]
    for norm in NORMS:
        s = dual_norm_subgradient(w, norm)
        size = dual_norm(w, norm)
        assert s @ w == pytest.approx(size, rel=1e-12, abs=1e-300)
        assert norm_rows(s[None], norm)[0] <= 1 + 1e-12 or size < 1e-290  # subnormal: few digits
        assert dual_norm(u, norm) >= s @ u - 1e-12 * (1 + np.abs(u).sum())


@given(w=vectors, exponent=st.integers(-200, 200))
def test_the_l2_norm_neither_overflows_nor_vanishes(w, exponent):
    scale = 2.0**exponent
    assert dual_norm(w * scale, "l2") == pytest.approx(
        math.hypot(*(w * scale)), rel=1e-12, abs=1e-300
    )


@pytest.mark.parametrize("norm", NORMS)
@given(d=vectors)
def test_the_norm_of_one_vector_is_that_of_one_row(norm, d):
    assert norm_of(d, norm) == pytest.approx(norm_rows(d[None], norm)[0], rel=1e-14)


# -------------------------------------------------------------------- groups, [grouped-norm]

partitions = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def by_group(x, groups):
    return np.split(np.abs(x), np.cumsum(groups)[:-1])


@given(groups=partitions, seed=st.integers(0, 10_000), coarse=st.booleans())
def test_grouped_norms_are_those_of_the_groups(groups, seed, coarse):
    x = np.random.default_rng(seed).normal(size=sum(groups))
    x = np.round(x) if coarse else x
    sums = np.array([part.sum() for part in by_group(x, groups)])
    largest = np.array([part.max() for part in by_group(x, groups)])
    for norm, order, dual in (("l1", 1, np.inf), ("l2", 2, 2), ("linf", np.inf, 1)):
        assert norm_of(x, norm, groups) == pytest.approx(np.linalg.norm(sums, order), rel=1e-14)
        assert norm_rows(x[None], norm, groups)[0] == norm_of(x, norm, groups)
        expected = np.linalg.norm(largest, dual)
        assert dual_norm(x, norm, groups) == pytest.approx(expected, rel=1e-14)


@given(groups=partitions, seed=st.integers(0, 10_000), coarse=st.booleans())
def test_grouped_norms_are_dual_to_each_other(groups, seed, coarse):
    """s.w = ||w||_* for a move s of length 1, and u.d <= ||u||_* ||d|| for any other."""
    rng = np.random.default_rng(seed)
    w, u = rng.normal(size=(2, sum(groups)))
    w = np.round(w) if coarse else w
    for norm in NORMS:
        s, size = dual_norm_subgradient(w, norm, groups), dual_norm(w, norm, groups)
        assert s @ w == pytest.approx(size, rel=1e-12)
        assert norm_of(s, norm, groups) == pytest.approx(1.0 if size > 0.0 else 0.0)
        assert u @ w <= dual_norm(u, norm, groups) * norm_of(w, norm, groups) * (1.0 + 1e-12)


@given(w=vectors)
def test_groups_of_one_feature_change_no_bit(w):
    alone = (1,) * w.size
    for norm in NORMS:
        assert dual_norm(w, norm, alone) == dual_norm(w, norm)
        found, expected = (dual_norm_subgradient(w, norm, groups) for groups in (alone, None))
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("groups", [(), (2,), (2, 2), (3, 0), (-1, 4), (3, 1)])
def test_groups_that_do_not_add_up_are_refused_by_the_kernels(groups):
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        dual_norm(np.ones(3), "linf", groups)
