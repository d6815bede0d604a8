"""The nine methods of the tables: what they are tuned over, and the models they give.

``grid`` lists a method's parameters, ``marks`` the rounds T its models are read off at; a method
without rounds has one model and no mark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm_paper import trajectories
from fdrsvm_paper.clients import N_ROUNDS, Clients
from fdrsvm_paper.paper_values import BASELINES, CENTRAL, OURS
from fdrsvm_paper.protocols import Protocol
from fdrsvm_paper.summary import BUNDLE, METHODS

Parameters: TypeAlias = Mapping[str, float]

SM, ADMM, ADMM_SC = OURS
FEDSGD, FEDAVG, FEDPROX, FEDDRO = BASELINES

TAU_PER_RHO = 18.0  # the smallest that the paper's theorem allows with four equal clients
_UCI_MARKS = (5, 10, 20, 60, 100, 140, 180, 220)
_SM_MARKS = (100, 140, 180, 220)


@dataclass(frozen=True)
class Trained:
    """Models, one per mark (or one), and what is certified of them."""

    models: Array
    rounds: tuple[int | None, ...]
    gap: float | None = None


@dataclass(frozen=True)
class Method:
    """A method with its grid.

    Attributes
    ----------
    n_marks : int
        Models in a run.
    train : callable
        From clients and parameters to models.
    normalised : bool
        Which features it sees.
    refit : mapping
        Parameters that replace the tuned ones in the final fit.
    """

    name: str
    grid: tuple[Parameters, ...]
    n_marks: int
    normalised: bool
    train: Callable[[Clients, Parameters], Trained]
    refit: Parameters | None = None


def _grid(**values: Sequence[float]) -> tuple[Parameters, ...]:
    return tuple(dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


def _models(name: str, protocol: Protocol, clients: Clients, p: Parameters, n_rounds: int) -> Array:
    """The model after each round of a method that has rounds."""
    radii = clients.radii(p["beta"])
    if name == SM:
        decay, worst_case = protocol.step_decay, protocol.worst_case
        return trajectories.subgradient(
            clients, radii, p["kappa"], p["gamma"], decay, worst_case, n_rounds
        )
    if name in (ADMM, ADMM_SC):
        rho, tau = p["rho"], p["tau_per_rho"] * p["rho"]
        return trajectories.admm(clients, radii, p["kappa"], rho, tau, n_rounds)
    rate = p["learning_rate"]
    if name == FEDSGD:
        return trajectories.fedsgd(clients, radii, rate)
    if name in (FEDAVG, FEDPROX):
        return trajectories.fedprox(clients, radii, rate, p.get("prox_weight", 0.0))
    momentum = p["momentum_per_rate"] * rate
    if protocol.published_feddro:
        return trajectories.feddro_published(clients, rate, p["temperature"], momentum)
    return trajectories.feddro(clients, radii, rate, p["temperature"], momentum)


def _training(
    name: str, protocol: Protocol, marks: tuple[int, ...]
) -> Callable[[Clients, Parameters], Trained]:
    def train(clients: Clients, p: Parameters) -> Trained:
        if name == CENTRAL:
            return Trained(trajectories.central(clients, p["epsilon"], p["kappa"])[None], (None,))
        if name == BUNDLE:
            run = trajectories.bundle(clients, clients.radii(p["beta"]), p["kappa"])
            return Trained(run.model[None], (run.rounds,), run.gap)
        models = _models(name, protocol, clients, p, max(marks))
        return Trained(models[np.array(marks) - 1], marks)

    return train


def _assemble(
    protocol: Protocol,
    grids: Mapping[str, tuple[Parameters, ...]],
    *,
    marks: tuple[int, ...],
    sm_marks: tuple[int, ...],
    scaled: Sequence[str],
    safeguard_dropped: bool,
) -> tuple[Method, ...]:
    normalised = METHODS if protocol.all_normalised else (SM, *scaled)
    own_marks = {SM: sm_marks, CENTRAL: (), BUNDLE: ()}
    refit = {ADMM_SC: {"tau_per_rho": 0.0}} if safeguard_dropped else {}
    methods = []
    for name in METHODS:
        read_at = own_marks.get(name, marks)
        train = _training(name, protocol, read_at)
        n_models = len(read_at) or 1
        methods.append(
            Method(name, grids[name], n_models, name in normalised, train, refit.get(name))
        )
    return tuple(methods)


# FedDRO's temperature in the authors' runs, and beta over the learning rate.
TEMPERATURES = {
    "banknote": 1e2,
    "bcw": 1e4,
    "sonar": 1e1,
    "mammographic": 1e2,
    "parkinsons": 5e3,
    "rice": 1e0,
    "ukm": 1e1,
}
_SMALL_RATES = (1e-3, 1e-2, 1e-1, 1e0)


def uci_methods(protocol: Protocol, data: str) -> tuple[Method, ...]:
    """Table 1: radii 1/(10 N_g) and kappa = 1 but for the central model."""
    ball = {"beta": (10.0,), "kappa": (1.0,)}
    rates = {"learning_rate": _SMALL_RATES, "beta": (10.0,)}
    tilt = {
        "temperature": (TEMPERATURES[data],),
        "momentum_per_rate": (0.01 if data == "ukm" else 0.1,),
    }
    grids = {
        CENTRAL: _grid(epsilon=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1), kappa=(0.1, 0.25, 0.5, 0.75, 1.0)),
        FEDSGD: _grid(**rates),
        FEDAVG: _grid(**rates),
        FEDPROX: _grid(**rates, prox_weight=(1.0,)),
        FEDDRO: _grid(**rates, **tilt),
        SM: _grid(gamma=(1e0, 1e1, 1e2, 1e3), **ball),
        ADMM: _grid(rho=_SMALL_RATES, tau_per_rho=(0.0,), **ball),
        ADMM_SC: _grid(rho=_SMALL_RATES, tau_per_rho=(TAU_PER_RHO,), **ball),
        BUNDLE: _grid(**ball),
    }
    return _assemble(
        protocol,
        grids,
        marks=_UCI_MARKS,
        sm_marks=_SM_MARKS,
        # On Rice the authors' baselines saw normalised features, on the other sets raw ones.
        scaled=BASELINES if data == "rice" else (),
        safeguard_dropped=protocol.safeguard_dropped,
    )


def industrial_methods(protocol: Protocol) -> tuple[Method, ...]:
    """Table 2: T = 220, radii 1/(10 N_g) or 1/(100 N_g)."""
    ball = {"beta": (10.0, 100.0), "kappa": (0.1, 0.5, 1.0)}
    rates = {"learning_rate": (1e-2, 1e-1, 1e0), "beta": (10.0, 100.0)}
    rhos = (1e-3, 1e-2, 1e-1)
    grids = {
        CENTRAL: _grid(epsilon=(1e-4, 1e-1), kappa=(0.1, 0.5, 1.0)),
        FEDSGD: _grid(**rates),
        FEDAVG: _grid(**rates),
        FEDPROX: _grid(**rates, prox_weight=(0.1, 1.0)),
        FEDDRO: _grid(**rates, temperature=(10.0,), momentum_per_rate=(0.01, 0.1)),
        SM: _grid(gamma=(1e1, 1e2, 1e3), **ball),
        ADMM: _grid(rho=rhos, tau_per_rho=(0.0,), **ball),
        ADMM_SC: _grid(rho=rhos, tau_per_rho=(TAU_PER_RHO,), **ball),
        BUNDLE: _grid(**ball),
    }
    return _assemble(
        protocol,
        grids,
        marks=(N_ROUNDS,),
        sm_marks=(N_ROUNDS,),
        # The bundle is not in the authors' code, and raw features here are nearly collinear.
        scaled=(*BASELINES, BUNDLE),
        safeguard_dropped=False,
    )
