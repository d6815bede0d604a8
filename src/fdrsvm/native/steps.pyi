from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array

Indices = npt.NDArray[np.int64]

class Samples:
    @staticmethod
    def dense(X: Array, y: Array, mass: Array) -> Samples: ...
    @staticmethod
    def sparse(
        csr: tuple[Array, npt.NDArray[Any], npt.NDArray[Any]],
        n_features: int,
        y: Array,
        mass: Array,
    ) -> Samples: ...

class Descent:
    def __init__(
        self, *, epsilon: float, learning_rate: float, prox_weight: float, n_epochs: int
    ) -> None: ...

class Tilt:
    def __init__(
        self,
        *,
        epsilon: float,
        learning_rate: float,
        temperature: float,
        least: float,
        log_moment: float,
        first_step: int,
    ) -> None: ...

def local_epochs(
    samples: Samples, start: Array, order: Indices, batch_size: int, descent: Descent
) -> Array: ...
def tilted_steps(
    samples: Samples, start: Array, batches: Indices, momentums: Array, tilt: Tilt
) -> tuple[Array, float]: ...
def log_mix(log_a: float, log_b: float, share: float) -> float: ...

class Clients:
    def __init__(self, X: Array, y: Array, first: Indices) -> None: ...

class Draws:
    def __init__(
        self, *, batches: Indices, drawn: Indices, sizes: Indices, n_rounds: int, n_local: int
    ) -> None: ...
    @property
    def batches(self) -> Indices: ...
    @property
    def drawn(self) -> Indices: ...
    @property
    def sizes(self) -> Indices: ...

class TiltedRun:
    def __init__(self, *, learning_rate: float, temperature: float, momentum: float) -> None: ...

def fedsgd_run(clients: Clients, epsilons: Array, learning_rate: float, n_rounds: int) -> Array: ...
def fedprox_run(
    clients: Clients, draws: Draws, epsilons: Array, learning_rate: float, prox_weight: float
) -> Array: ...
def feddro_run(clients: Clients, draws: Draws, epsilons: Array, run: TiltedRun) -> Array: ...
def feddro_published_run(clients: Clients, draws: Draws, run: TiltedRun) -> Array: ...
def deal(shares: Array, n_rows: int) -> Indices: ...
