"""How accuracy depends on T, rho, gamma, beta and kappa: the paper's sensitivity figures.

One parameter moves, the others stay: gamma = 100 and T = 220 (SM), rho = 1e-3 and T = 100 (ADMM,
ADMM-SC with tau = 18 rho), radius 1/(10 N_g), kappa = 0.5. Nothing is tuned. The bundle has no T,
rho or gamma. The central model has its whole grid; the line to hold the others against is the one
that does best on the test rows, on average over repetitions: nobody can pick it in practice, it
shows what the data allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm_paper import trajectories
from fdrsvm_paper.clients import N_ROUNDS, Clients
from fdrsvm_paper.industrial_study import (
    BETA,
    KAPPA,
    IndustrialStudy,
    draw_pump,
)
from fdrsvm_paper.methods import TAU_PER_RHO
from fdrsvm_paper.protocols import Protocol, protocol
from fdrsvm_paper.samples import Fold, sample_pump
from fdrsvm_paper.scores import score
from fdrsvm_paper.study import Rows, Task

ROUNDS = (5, 10, 20, 60, 100, 140, 180, 220)
STEPS = (1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3)
BETAS = (0.1, 1.0, 10.0, 100.0)
KAPPAS = (0.1, 0.25, 0.5, 0.75, 1.0)
GAMMA, RHO = 100.0, 1e-3
SM_ROUNDS, ADMM_ROUNDS = N_ROUNDS, 100
CENTRAL_EPSILONS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class SensitivityStudy(IndustrialStudy):
    """Every point of every curve, on the data of :class:`IndustrialStudy`."""

    repetitions: int = 50

    columns: ClassVar[tuple[str, ...]] = (
        *("severities", "setting", "repetition", "method"),
        *("parameter", "value", "mccr", "seed"),
    )

    @property
    def file(self) -> str:
        """By protocol."""
        return f"sensitivity-{self.protocol}"

    def run(self, task: Task) -> Rows:
        """Every point of every curve."""
        severities, setting, repetition = task
        chosen = protocol(self.protocol)
        data = draw_pump(chosen, self.seed, severities, setting, int(repetition))
        whole = sample_pump(data, (self.seed,)).whole()
        names = dict(zip(self.key, task, strict=True))
        return [{**names, **row, "seed": self.seed} for row in _curves(chosen, whole)]


def _curves(chosen: Protocol, whole: Fold) -> Iterator[dict[str, Any]]:
    """Every curve of one setting."""
    clients, X = whole.clients(chosen.all_normalised), whole.rows_out(chosen.all_normalised)
    admm = _Admm(clients, X, whole.y_out)
    yield from admm.curves("ADMM", 0.0)
    yield from admm.curves("ADMM-SC", TAU_PER_RHO)
    yield from _sm_curves(chosen, whole.normalised, whole.X_out_normalised, whole.y_out)
    yield from _bundle_curves(whole.normalised, whole.X_out_normalised, whole.y_out)
    yield from _central_grid(clients, X, whole.y_out)


def _row(method: str, parameter: str, value: float | str, mccr: float) -> dict[str, Any]:
    return {"method": method, "parameter": parameter, "value": value, "mccr": float(mccr)}


def _points(method: str, parameter: str, values: Any, found: Any) -> Iterator[dict[str, Any]]:
    for value, mccr in zip(values, found, strict=True):
        yield _row(method, parameter, value, mccr)


@dataclass(frozen=True)
class _Admm:
    clients: Clients
    X: Array
    y: Array

    def curves(self, method: str, tau_per_rho: float) -> Iterator[dict[str, Any]]:
        models = self._run(RHO, tau_per_rho, n_rounds=N_ROUNDS)
        at = models[np.array(ROUNDS) - 1]
        yield from _points(method, "T", ROUNDS, score(at, self.X, self.y).accuracy)
        for rho in STEPS:
            yield _row(method, "rho", rho, self._last(rho, tau_per_rho))
        for beta in BETAS:
            yield _row(method, "beta", beta, self._last(RHO, tau_per_rho, beta=beta))
        for kappa in KAPPAS:
            yield _row(method, "kappa", kappa, self._last(RHO, tau_per_rho, kappa=kappa))

    def _last(
        self, rho: float, tau_per_rho: float, *, beta: float = BETA, kappa: float = KAPPA
    ) -> float:
        models = self._run(rho, tau_per_rho, beta=beta, kappa=kappa)
        return float(score(models[-1:], self.X, self.y).accuracy[0])

    def _run(
        self,
        rho: float,
        tau_per_rho: float,
        *,
        beta: float = BETA,
        kappa: float = KAPPA,
        n_rounds: int = ADMM_ROUNDS,
    ) -> Array:
        radii = self.clients.radii(beta)
        return trajectories.admm(self.clients, radii, kappa, rho, tau_per_rho * rho, n_rounds)


def _sm_curves(chosen: Protocol, clients: Clients, X: Array, y: Array) -> Iterator[dict[str, Any]]:
    def run(gamma: float = GAMMA, beta: float = BETA, kappa: float = KAPPA) -> Array:
        models = trajectories.subgradient(
            clients, clients.radii(beta), kappa, gamma, chosen.step_decay, chosen.worst_case
        )
        return score(models, X, y).accuracy

    last = SM_ROUNDS - 1
    yield from _points("SM", "T", ROUNDS, run()[np.array(ROUNDS) - 1])
    yield from _points("SM", "gamma", STEPS, [run(gamma=gamma)[last] for gamma in STEPS])
    yield from _points("SM", "beta", BETAS, [run(beta=beta)[last] for beta in BETAS])
    yield from _points("SM", "kappa", KAPPAS, [run(kappa=kappa)[last] for kappa in KAPPAS])


def _bundle_curves(clients: Clients, X: Array, y: Array) -> Iterator[dict[str, Any]]:
    def accuracy(beta: float, kappa: float) -> float:
        found = trajectories.bundle(clients, clients.radii(beta), kappa)
        return float(score(found.model[None], X, y).accuracy[0])

    yield from _points("Bundle", "beta", BETAS, [accuracy(beta, KAPPA) for beta in BETAS])
    yield from _points("Bundle", "kappa", KAPPAS, [accuracy(BETA, kappa) for kappa in KAPPAS])


def _central_grid(clients: Clients, X: Array, y: Array) -> Iterator[dict[str, Any]]:
    for epsilon in CENTRAL_EPSILONS:
        models = [trajectories.central(clients, epsilon, kappa) for kappa in KAPPAS]
        found = score(np.array(models), X, y).accuracy
        yield from _points("Central", f"kappa at epsilon {epsilon:g}", KAPPAS, found)
