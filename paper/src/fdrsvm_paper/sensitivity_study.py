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
from fdrsvm_paper.industrial_study import BETA, KAPPA, IndustrialStudy
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
        *(*IndustrialStudy.key, "method", "parameter", "value", "mccr", "seed"),
    )

    prefix: ClassVar[str] = "sensitivity"

    def run(self, task: Task) -> Rows:
        """Every point of every curve."""
        chosen, data = protocol(self.protocol), self.draw(task)
        whole = sample_pump(data, (self.seed,)).whole()
        names = dict(zip(self.key, task, strict=True))
        return [{**names, **row, "seed": self.seed} for row in _curves(chosen, whole)]


def _curves(chosen: Protocol, whole: Fold) -> Iterator[dict[str, Any]]:
    """Every curve of one setting."""
    clients, X = whole.clients(chosen.all_normalised), whole.rows_out(chosen.all_normalised)
    boxed, X_boxed, y = whole.normalised, whole.X_out_normalised, whole.y_out

    def admm(
        tau_per_rho: float, rho: float = RHO, beta: float = BETA, kappa: float = KAPPA
    ) -> float:
        models = _admm(clients, tau_per_rho, rho, beta, kappa, ADMM_ROUNDS)
        return float(score(models[-1:], X, y).accuracy[0])

    def sm(gamma: float = GAMMA, beta: float = BETA, kappa: float = KAPPA) -> Array:
        """After each round."""
        models = trajectories.subgradient(
            boxed, boxed.radii(beta), kappa, gamma, chosen.step_decay, chosen.worst_case
        )
        return score(models, X_boxed, y).accuracy

    def bundle(beta: float = BETA, kappa: float = KAPPA) -> float:
        model = trajectories.bundle(boxed, boxed.radii(beta), kappa).model
        return float(score(model[None], X_boxed, y).accuracy[0])

    at = np.array(ROUNDS) - 1
    for method, tau_per_rho in (("ADMM", 0.0), ("ADMM-SC", TAU_PER_RHO)):
        models = _admm(clients, tau_per_rho, RHO, BETA, KAPPA, N_ROUNDS)
        yield from _points(method, "T", ROUNDS, score(models[at], X, y).accuracy)
        yield from _points(method, "rho", STEPS, [admm(tau_per_rho, rho=v) for v in STEPS])
        yield from _points(method, "beta", BETAS, [admm(tau_per_rho, beta=v) for v in BETAS])
        yield from _points(method, "kappa", KAPPAS, [admm(tau_per_rho, kappa=v) for v in KAPPAS])
    yield from _points("SM", "T", ROUNDS, sm()[at])
    yield from _points("SM", "gamma", STEPS, [sm(gamma=v)[SM_ROUNDS - 1] for v in STEPS])
    yield from _points("SM", "beta", BETAS, [sm(beta=v)[SM_ROUNDS - 1] for v in BETAS])
    yield from _points("SM", "kappa", KAPPAS, [sm(kappa=v)[SM_ROUNDS - 1] for v in KAPPAS])
    yield from _points("Bundle", "beta", BETAS, [bundle(beta=v) for v in BETAS])
    yield from _points("Bundle", "kappa", KAPPAS, [bundle(kappa=v) for v in KAPPAS])
    for epsilon in CENTRAL_EPSILONS:
        central = [trajectories.central(clients, epsilon, kappa) for kappa in KAPPAS]
        accuracy = score(np.array(central), X, y).accuracy
        yield from _points("Central", f"kappa at epsilon {epsilon:g}", KAPPAS, accuracy)


def _admm(
    clients: Clients, tau_per_rho: float, rho: float, beta: float, kappa: float, n_rounds: int
) -> Array:
    radii = clients.radii(beta)
    return trajectories.admm(clients, radii, kappa, rho, tau_per_rho * rho, n_rounds)


def _points(method: str, parameter: str, values: Any, accuracies: Any) -> Iterator[dict[str, Any]]:
    for value, mccr in zip(values, accuracies, strict=True):
        yield {"method": method, "parameter": parameter, "value": value, "mccr": float(mccr)}
