"""The model after each round of every method: what tables and figures are read off.

A grid over T costs one run to the largest T. Messages, screening and certificates are left out:
they do not change a model, and with clients this small they cost more than the steps. Tests hold
every run here against :func:`fdrsvm.federated.run_rounds`, model by model. Arguments are clean.

A loop over the methods' own ``ask``, ``answer`` and ``advance`` was tried in place of the loops
below. It keeps the certificate's evidence in each round: 220 rounds on the breast cancer set took
0.041 s of CPU time in place of 0.015 s (ADMM) and 0.060 s in place of 0.028 s (SM), and the last
bits of the models were others. Hence the twelve lines for each.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.federated import Bundle, InProcess, make_client, run_rounds
from fdrsvm.federated.methods.subgradient import StepDecay
from fdrsvm.native import steps
from fdrsvm.risk.ball import WorstCase
from fdrsvm.risk.worst_case import RiskOracle
from fdrsvm.solvers import prepare_client, solve_central
from fdrsvm.solvers.solution import WarmStart
from fdrsvm_paper.clients import N_ROUNDS, Clients

CERTIFIED = 1e-4  # relative gap of the bundle
_ADMM_TOL = 1e-8  # relative gap of the local solves, as in fdrsvm.federated.ADMM
_CENTRAL_TOL = 1e-6  # relative gap


class Certified(NamedTuple):
    """A model with its certificate."""

    model: Array
    rounds: int
    gap: float


def admm(
    clients: Clients,
    epsilons: Array,
    kappa: float,
    rho: float,
    tau: float,
    n_rounds: int = N_ROUNDS,
) -> Array:
    """[admm] with equal weights; tau > 0 is ADMM-SC."""
    solvers = [
        prepare_client(X, y, rho=rho, tau=tau, epsilon=float(epsilon), kappa=kappa)
        for (X, y), epsilon in zip(clients.parts(), epsilons, strict=True)
    ]
    shape = clients.n_clients, clients.X.shape[1]
    w, local, mu = np.zeros(shape[1]), np.empty(shape), np.ones(shape)
    starts: list[WarmStart | None] = [None] * clients.n_clients
    models = np.empty((n_rounds, shape[1]))
    for t in range(n_rounds):
        if t > 0:
            mu += local - w
        for g, solver in enumerate(solvers):
            solution = solver.solve_quietly(w - mu[g], 0.0, starts[g], _ADMM_TOL)
            local[g], starts[g] = solution.w, solution.warm_start
        w = (local + mu).mean(axis=0)
        models[t] = w
    return models


def subgradient(
    clients: Clients,
    epsilons: Array,
    kappa: float,
    gamma: float,
    decay: StepDecay,
    worst_case: WorstCase,
    n_rounds: int = N_ROUNDS,
) -> Array:
    """[sm] with equal weights, on the unit box, where SM's features lie."""
    oracles = [
        RiskOracle(
            X, y, epsilon=float(epsilon), kappa=kappa, support="unit-box", worst_case=worst_case
        )
        for (X, y), epsilon in zip(clients.parts(), epsilons, strict=True)
    ]
    w = np.zeros(clients.X.shape[1])
    models = np.empty((n_rounds, w.size))
    for t in range(1, n_rounds + 1):
        # On a box a cut's slope is the subgradient; with "paper" it is that of the hinge, [paper].
        mean = np.mean([oracle.cut(w)[1].slope[:-1] for oracle in oracles], axis=0)
        w = w - gamma / (t if decay == "1/t" else math.sqrt(t)) * mean
        models[t - 1] = w
    return models


def fedsgd(clients: Clients, epsilons: Array, learning_rate: float) -> Array:
    """[fedsgd]."""
    return steps.fedsgd_run(clients.compiled, epsilons, learning_rate, N_ROUNDS)


def fedprox(clients: Clients, epsilons: Array, learning_rate: float, prox_weight: float) -> Array:
    """[fedprox]; [fedavg] at ``prox_weight`` 0."""
    return steps.fedprox_run(clients.compiled, clients.epochs, epsilons, learning_rate, prox_weight)


def feddro(
    clients: Clients, epsilons: Array, learning_rate: float, temperature: float, momentum: float
) -> Array:
    """[feddro]."""
    run = steps.TiltedRun(learning_rate=learning_rate, temperature=temperature, momentum=momentum)
    return steps.feddro_run(clients.compiled, clients.steps, epsilons, run)


def feddro_published(
    clients: Clients, learning_rate: float, temperature: float, momentum: float
) -> Array:
    """[feddro-published]; here a round is one of the authors', E steps."""
    run = steps.TiltedRun(learning_rate=learning_rate, temperature=temperature, momentum=momentum)
    return steps.feddro_published_run(clients.compiled, clients.steps, run)


def central(clients: Clients, epsilon: float, kappa: float) -> Array:
    """The central DR-SVM on all rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve_central(clients.X, clients.y, epsilon=epsilon, kappa=kappa, tol=_CENTRAL_TOL).w


def bundle(clients: Clients, epsilons: Array, kappa: float, tol: float = CERTIFIED) -> Certified:
    """The federated optimum, certified; messages and all."""
    problems = [
        make_client(f"client {g}", X, y, epsilon=float(epsilon), kappa=kappa)
        for g, ((X, y), epsilon) in enumerate(zip(clients.parts(), epsilons, strict=True))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is in the row
        result = run_rounds(InProcess(problems), Bundle(), max_rounds=N_ROUNDS, tol=tol)
    return Certified(result.model, result.n_rounds, result.gap)
