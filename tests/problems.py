"""Random clients, small enough to solve by brute force, with the awkward cases well represented."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

NORMS = ("l1", "l2", "linf")


@dataclass(frozen=True)
class Problem:
    w: np.ndarray
    X: np.ndarray
    y: np.ndarray
    epsilon: float
    kappa: float
    norm: str
    boxed: bool
    worst_case: str = "exact"
    mass: np.ndarray | None = None
    intercept: float = 0.0

    @property
    def arguments(self) -> dict:
        """Keyword arguments of worst_case_risk."""
        return {
            "epsilon": self.epsilon,
            "kappa": self.kappa,
            "norm": self.norm,
            "support": "unit-box" if self.boxed else None,
            "worst_case": self.worst_case,
            "sample_weight": self.mass,
            "intercept": self.intercept,
        }

    @property
    def reference_arguments(self) -> dict:
        n_features = self.X.shape[1]
        return {
            "epsilon": self.epsilon,
            "kappa": self.kappa,
            "norm": self.norm,
            "box": (np.zeros(n_features), np.ones(n_features)) if self.boxed else None,
            "zero_piece": self.worst_case == "exact",
            "mass": None if self.mass is None else self.mass / self.mass.sum(),
            "intercept": self.intercept,
        }

    def with_(self, **changes) -> Problem:
        return replace(self, **changes)


def random_problem(rng, norm, boxed, worst_case, n_features=None) -> Problem:
    """Ties, points on the box's faces, zero weights, flips beyond price: each turns up often."""
    n_samples = int(rng.integers(1, 11))
    n_features = int(rng.integers(1, 6)) if n_features is None else n_features
    X = rng.random((n_samples, n_features))
    if rng.random() < 0.4:
        X = np.round(3 * X) / 3
    w = rng.normal(size=n_features) * rng.choice([0.1, 1.0, 5.0])
    if rng.random() < 0.3:
        w = np.round(w)
    return Problem(
        w=w,
        X=X,
        y=rng.choice([-1.0, 1.0], size=n_samples),
        epsilon=float(rng.choice([0.0, 0.01, 0.1, 0.3, 1.0])),
        kappa=float(rng.choice([0.01, 0.1, 0.5, 2.0, np.inf])),
        norm=norm,
        boxed=boxed,
        worst_case=worst_case,
        mass=rng.random(n_samples) + 0.01 if rng.random() < 0.4 else None,
        intercept=float(rng.normal()) if rng.random() < 0.3 else 0.0,
    )


@st.composite
def problems(draw, boxed=None, worst_case=None) -> Problem:
    """The same through Hypothesis, which likes round numbers and therefore ties."""
    n_samples, n_features = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    unit = st.integers(0, 8).map(lambda k: k / 8) | st.floats(0, 1, width=32)
    weight = st.integers(-3, 3).map(float) | st.floats(-4, 4, width=32)
    rows = st.lists(unit, min_size=n_features, max_size=n_features)
    return Problem(
        w=np.array(draw(st.lists(weight, min_size=n_features, max_size=n_features))),
        X=np.array(draw(st.lists(rows, min_size=n_samples, max_size=n_samples))),
        y=np.array(
            draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n_samples, max_size=n_samples))
        ),
        epsilon=draw(st.sampled_from([0.0, 0.125, 0.25, 1.0]) | st.floats(0, 2, width=32)),
        kappa=draw(st.sampled_from([0.25, 0.5, 1.0, np.inf]) | st.floats(2**-20, 4, width=32)),
        norm=draw(st.sampled_from(NORMS)),
        boxed=draw(st.booleans()) if boxed is None else boxed,
        worst_case=draw(st.sampled_from(["exact", "paper"])) if worst_case is None else worst_case,
    )
