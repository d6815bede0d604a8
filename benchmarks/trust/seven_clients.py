"""A data set dealt to seven clients, in the unit box, with rows held out to test on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.datasets import load_uci, partition
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.problem import ClientProblem, make_client

_N_CLIENTS = 7
_TRAINING = 0.7


@dataclass(frozen=True, eq=False)
class SevenClients:
    """Rows by client, and the rows held out."""

    parts: tuple[tuple[Array, Array], ...]
    X_test: Array
    y_test: Array

    def training(
        self, *, fit_intercept: bool = True, kappa: float = 1.0
    ) -> tuple[list[ClientProblem], Limits]:
        """The clients, and the limits that their features keep to."""
        problems = [
            make_client(f"client {g}", X, y, fit_intercept=fit_intercept, kappa=kappa)
            for g, (X, y) in enumerate(self.parts)
        ]
        return problems, Limits.checked("unit-box", self.X_test.shape[1])

    def accuracy(self, model: Array) -> float:
        """In percent, on the rows held out."""
        n_features = self.X_test.shape[1]
        with np.errstate(invalid="ignore", over="ignore"):
            scores = self.X_test @ model[:n_features] + model[n_features:].sum()
        return 100.0 * float(np.mean(np.where(scores > 0.0, 1.0, -1.0) == self.y_test))


def seven_clients(name: str, seed: int = 0) -> SevenClients:
    """One of the UCI sets; "bcw" needs no file."""
    data = load_uci(name)
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y, dtype=np.float64)
    chosen = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(chosen, [int(_TRAINING * len(y))])
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    X = np.clip((X - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
    owners = np.asarray(partition.stratified(y[train], _N_CLIENTS, random_state=seed))
    parts = tuple(
        (X[train][owners == g], y[train][owners == g]) for g in np.unique(owners).tolist()
    )
    return SevenClients(parts, X[test], y[test])
