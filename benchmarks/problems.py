"""The data of the benchmarks, and the one objective that grades every answer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.preprocessing import MinMaxScaler

from fdrsvm import RiskOracle
from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import Norm
from fdrsvm.solvers import PreparedClient, Solution, prepare_client, solve_central

RHO, KAPPA = 1e-2, 1.0
N_CLIENTS = 4
FIRST_WARM, N_WARM = 20, 20  # rounds
_TIGHT = 1e-12  # the bound's tolerance: whatever is reached is certified


@dataclass(frozen=True, eq=False)
class Case:
    """Minimise f(w) + (rho/2) ||w - centre||^2, f the worst-case hinge risk; rho = 0 is central."""

    X: Any
    y: Array
    epsilon: float
    centre: Array
    rho: float
    kappa: float = KAPPA
    norm: Norm = "linf"

    @property
    def ball(self) -> dict[str, Any]:
        """Arguments that every function of the package takes."""
        return {"epsilon": self.epsilon, "kappa": self.kappa, "norm": self.norm}

    def prepared(self) -> PreparedClient:
        """The client update, with all that does not depend on the centre done."""
        return prepare_client(self.X, self.y, rho=self.rho, **self.ball)

    def at(self, centre: Array) -> Case:
        """The same client with another centre."""
        return Case(self.X, self.y, self.epsilon, centre, self.rho, self.kappa, self.norm)

    def solve(self, tol: float = 1e-9) -> Solution:
        """Ours, data checked and prepared in the call."""
        if self.rho > 0.0:
            return self.prepared().solve(self.centre, tol=tol)
        return solve_central(self.X, self.y, tol=tol, **self.ball)

    def objective(self, w: Array) -> float:
        """By the risk oracle, which shares no code with the solvers."""
        risk = RiskOracle(self.X, self.y, **self.ball).value(w)
        return risk + 0.5 * self.rho * float(np.sum((w - self.centre) ** 2))

    @cached_property
    def lower_bound(self) -> float:
        """Certified: no w has a smaller objective."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solution = self.solve(_TIGHT)
        return solution.objective - solution.gap

    def excess(self, w: Any) -> float:
        """How far w may be above the optimum, relative."""
        return self.objective(np.asarray(w, dtype=float)) / self.lower_bound - 1.0


@cache
def blobs(n_samples: int, n_features: int) -> tuple[Array, Array]:
    """Two noisy classes with features in [0, 1]."""
    X, y = make_classification(
        n_samples,
        n_features=n_features,
        n_informative=8,
        n_redundant=2,
        flip_y=0.05,
        random_state=0,
    )
    return MinMaxScaler().fit_transform(X), 2.0 * y - 1.0


@cache
def uniform(n_samples: int, n_features: int) -> tuple[Array, Array, Array]:
    """(w, X, y) without structure, X in the unit box."""
    rng = np.random.default_rng(0)
    X = rng.random((n_samples, n_features))
    return rng.normal(size=n_features), X, rng.choice([-1.0, 1.0], size=n_samples)


@cache
def text(n_samples: int, n_features: int, n_words: int) -> tuple[Any, Array]:
    """Text-like CSR rows; a tenth of the words carries the label."""
    rng = np.random.default_rng(0)
    X = sparse.random_array(
        (n_samples, n_features), density=n_words / n_features, format="csr", rng=rng
    )
    w = rng.normal(size=n_features) * (rng.random(n_features) < 0.1)
    return X, np.where(X @ w + 0.3 * rng.normal(size=n_samples) > 0.0, 1.0, -1.0)


@cache
def four_clients(n_samples: int, n_features: int) -> list[tuple[Array, Array]]:
    """Equal parts of 90 rows of breast cancer, or of any number of rows of blobs."""
    if (n_samples, n_features) == (90, 30):
        X, labels = load_breast_cancer(return_X_y=True)
        keep = np.random.default_rng(0).permutation(len(labels))[: N_CLIENTS * n_samples]
        X, y = MinMaxScaler().fit_transform(X)[keep], 2.0 * labels[keep] - 1.0
    else:
        X, y = blobs(N_CLIENTS * n_samples, n_features)
    return [(np.ascontiguousarray(X[g::N_CLIENTS]), y[g::N_CLIENTS].copy()) for g in range(4)]


def cold_case(n_samples: int, n_features: int) -> Case:
    """The first client's update in the first round of ADMM, w = 0 and mu = 1."""
    X, y = four_clients(n_samples, n_features)[0]
    return Case(X, y, 0.1 / len(y), -np.ones(n_features), RHO)


@cache
def warm_cases(n_samples: int, n_features: int) -> Sequence[Case]:
    """The first client's updates in rounds 20 to 39 of ADMM, and the one before them."""
    data = four_clients(n_samples, n_features)
    clients = [
        prepare_client(X, y, rho=RHO, epsilon=0.1 / len(y), kappa=KAPPA).solve for X, y in data
    ]
    first = cold_case(n_samples, n_features)
    w, mus = np.zeros(n_features), np.ones((N_CLIENTS, n_features))
    starts: list[Any] = [None] * N_CLIENTS
    centres = []
    for _ in range(FIRST_WARM + N_WARM):
        centres.append(w - mus[0])
        answers = [
            solve(w - mu, warm_start=start)
            for solve, mu, start in zip(clients, mus, starts, strict=True)
        ]
        starts = [answer.warm_start for answer in answers]
        found = np.stack([answer.w for answer in answers])
        w = np.mean(found + mus, axis=0)
        mus = mus + found - w
    return [first.at(centre) for centre in centres[FIRST_WARM - 1 :]]


def central_case(n_samples: int, n_features: int, norm: Norm, epsilon: float = 0.01) -> Case:
    """All rows in one place."""
    return Case(*blobs(n_samples, n_features), epsilon, np.zeros(n_features), 0.0, norm=norm)


def ridge_case(n_samples: int, n_features: int, C: float) -> Case:
    """What LinearSVC(C, loss="hinge", fit_intercept=False) minimises, divided by C N."""
    X, y = blobs(n_samples, n_features)
    return Case(X, y, 0.0, np.zeros(n_features), 1.0 / (C * n_samples))
