"""Clients to solve, from the known to the degenerate."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.preprocessing import MinMaxScaler

from fdrsvm.solvers import prepare_client, solve_central, solve_client_prox

NORMS = ("l1", "l2", "linf")


def random_data(rng, n, p):
    X = rng.normal(size=(n, p)) * 10 ** rng.uniform(-1, 1) + rng.normal(size=p)
    y = np.where(X @ rng.normal(size=p) + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


def synthetic(n):
    X, y = make_classification(
        n, n_features=14, n_informative=8, n_redundant=2, flip_y=0.05, random_state=0
    )
    return MinMaxScaler().fit_transform(X), 2.0 * y - 1.0


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return MinMaxScaler().fit_transform(X), 2.0 * y - 1.0


def solve_either(X, y, *, rho, centre=None, **settings):
    """The client update, or the central problem at rho = 0."""
    if rho == 0.0:
        return solve_central(X, y, **settings)
    centre = np.ones(X.shape[1]) if centre is None else centre
    return solve_client_prox(X, y, centre=centre, rho=rho, **settings)


def prepared(X, y, *, rho, tau=0.0, **settings):
    """A client at any penalties, 0 among them."""
    return prepare_client(X, y, rho=1.0, **settings).with_penalties(rho, tau)


def random_case(seed):
    """A small problem: data, and every argument of the reference."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 150)), int(rng.integers(1, 30))
    X, y = random_data(rng, n, p)
    norm, fit_intercept = str(rng.choice(NORMS)), bool(rng.random() < 0.4)
    epsilon = float(rng.choice([0, 1e-6, 1e-3, 1e-2, 0.1, 1, 0.1 / n]))
    kappa = float(rng.choice([0.01, 0.1, 1, 5, np.inf]))
    rho = float(rng.choice([0, 1e-3, 1e-2, 1, 100]))
    tau = float(rng.choice([0, 0, 0.018, 1])) if rho > 0.0 else 0.0
    weight = rng.random(n) if rng.random() < 0.4 else np.ones(n)
    case = {
        "centre": rng.normal(size=p + fit_intercept),
        "rho": rho,
        "tau": tau,
        "epsilon": epsilon,
        "kappa": kappa if epsilon > 0.0 else np.inf,
        "norm": norm,
        "mass": weight / weight.sum(),
        "fit_intercept": fit_intercept,
    }
    return X, y, case


def solve_case(X, y, case):
    """Ours, on a ``random_case``."""
    p = X.shape[1]
    settings = {key: case[key] for key in ("epsilon", "kappa", "norm", "fit_intercept")}
    settings["sample_weight"] = case["mass"]
    if case["rho"] == 0.0:
        return solve_central(X, y, **settings)
    centre = case["centre"]
    return solve_client_prox(
        X,
        y,
        centre=centre[:p],
        centre_intercept=float(centre[p]) if case["fit_intercept"] else 0.0,
        rho=case["rho"],
        tau=case["tau"],
        **settings,
    )


def degenerate_data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    constant = X.copy()
    constant[:, 3], constant[:, 4] = 1.0, 0.0
    return {
        "one class": (X, np.ones(60)),
        "duplicates that disagree": (np.repeat(X[:6], 10, axis=0), y),
        "duplicates that agree": (np.repeat(X[:6], 10, axis=0), np.repeat(y[:6], 10)),
        "constant columns": (constant, y),
        "one sample": (X[:1], y[:1]),
        "all zero": (np.zeros((60, 8)), y),
        "rank deficient": (X[:, :3] @ rng.normal(size=(3, 8)), y),
        "separable": (X, np.sign(X[:, 0])),
        "more features than samples": (rng.normal(size=(10, 50)), y[:10]),
        "repeated columns": (np.c_[X, X, X], y),
        "scales 1e-3 to 1e3": (X * 10.0 ** np.linspace(-3, 3, 8), y),
    }
