"""The search on a box where samples are too many to be kept ready made from look to look."""

import numpy as np
import pytest

from fdrsvm.native import risk


@pytest.mark.parametrize("n_rows", [12_000, 30_000])
@pytest.mark.parametrize("norm", [1, 2, 3])
def test_the_worst_case_proves_its_value_however_samples_are_kept(n_rows, norm, rng):
    X, y = rng.random((n_rows, 14)), rng.choice([-1.0, 1.0], size=n_rows)
    data = risk.RiskData(
        X=X,
        y=y,
        mass=np.full(n_rows, 1.0 / n_rows),
        epsilon=0.05,
        kappa=0.5,
        norm=norm,
        low=np.zeros(14),
        high=np.ones(14),
    )
    found = data.worst_case(rng.normal(size=14), 0.1)
    assert abs(found.value - found.proof) <= 1e-12 * found.value
