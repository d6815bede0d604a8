"""Losses: the formula in each docstring, convexity, slope and Lipschitz constant."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm.core.losses import LOSSES, Hinge, Linear, Logistic, MarginLoss, SmoothHinge

FORMULAS = {
    Hinge(): lambda m: max(0, 1 - m),
    SmoothHinge(): lambda m: 0 if m >= 1 else (1 - m) ** 2 / 2 if m > 0 else 1 / 2 - m,
    Logistic(): lambda m: math.log(1 + math.exp(-m)),
    Linear(): lambda m: 1 - m,
}
margins = st.integers(-3, 3).map(float) | st.floats(-30, 30)


@pytest.mark.parametrize("loss", FORMULAS, ids=lambda loss: loss.name)
@given(m=margins, other=margins)
def test_losses_are_their_formulas_convex_and_lipschitz(loss, m, other):
    here, there = loss.value(np.array([m, other]))
    slope = loss.slope(np.array([m]))[0]
    assert here == pytest.approx(FORMULAS[loss](m), rel=1e-12, abs=1e-12)
    assert there >= here + slope * (other - m) - 1e-12 * (1 + abs(here) + abs(there))
    assert abs(there - here) <= loss.lipschitz * abs(other - m) * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("loss", FORMULAS, ids=lambda loss: loss.name)
def test_the_lipschitz_constant_is_reached(loss):
    far = loss.value(np.array([-1e3, -1e3 - 1]))
    assert far[1] - far[0] == pytest.approx(loss.lipschitz, rel=1e-9)


def test_extreme_margins_do_not_overflow():
    for loss in LOSSES.values():
        assert isinstance(loss, MarginLoss)
        ends = np.array([-1e300, 1e300])
        assert np.isfinite(loss.value(ends)).all()
        assert np.isfinite(loss.slope(ends)).all()
