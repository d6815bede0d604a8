"""Leak detection on a triplex plunger pump: records, features and the paper's five settings.

Healthy is -1, a leak +1. The physics of a condition is deterministic, so that records of one
condition differ by measurement noise alone: each distinct waveform is simulated once and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_choice, check_non_negative
from fdrsvm.data.scaling import FederatedMinMaxScaler
from fdrsvm.datasets._pump_features import FEATURE_NAMES, pump_features
from fdrsvm.datasets._pump_model import SAMPLE_RATE, STEP, simulate_pump
from fdrsvm.datasets._random import RandomState, spawn
from fdrsvm.datasets.corrupt import flip_labels
from fdrsvm.errors import InvalidInputError

IntArray = npt.NDArray[np.int64]

# The paper's text and its generating script; its labelling script, which the printed federated
# figures fit better.
SEVERITIES = {
    "paper": (1e-3, 4e-3, 7e-3, 1e-2),
    "labelling": (1e-3, 2e-3, 3e-3, 4e-3),
}

# Healthy and leaking training records of each client.
SETTINGS = {
    "nominal": ((50, 50), (50, 50), (50, 50), (50, 50)),
    "client-imbalance": ((140, 140), (30, 30), (20, 20), (10, 10)),
    "class-imbalance": ((90, 10), (90, 10), (90, 10), (90, 10)),
    "both": ((252, 28), (54, 6), (36, 4), (18, 2)),
    "noisy-labels": ((50, 50), (50, 50), (50, 50), (50, 50)),
}

NOISE = 1.0  # standard deviation of a flow reading, l/min
KEPT_FROM = 0.8  # s: before it the pump is starting up
N_CLIENTS = 4

_N_HEALTHY, _N_LEAKING = 1500, 300  # in a pool: healthy, and of each severity
_TEST_HEALTHY, _TEST_LEAKING = 500, 125
_FLIPPED = 0.15
_BATCH = 64  # records whose waveforms are in memory at a time


@dataclass(frozen=True)
class PumpPool:
    """Features of 1500 healthy records, then 300 of each severity.

    ``severity`` is 0 where healthy, else the leak's area over that of an inlet valve.
    """

    X: Array
    y: Array
    severity: Array
    severities: tuple[float, ...]
    noise: float
    feature_names: tuple[str, ...] = FEATURE_NAMES


@dataclass(frozen=True)
class PumpData:
    """Four clients' training rows and a test set.

    ``clients`` holds the client, 0 to 3, of each of the 400 training rows. Normalised features are
    scaled to [0, 1] by the pooled training rows; test rows may leave that range. ``y`` holds the
    labels to train with, ``y_true`` those before any were flipped. Test labels are never flipped.
    """

    X: Array
    y: Array
    clients: IntArray
    X_normalised: Array
    X_test: Array
    y_test: Array
    X_test_normalised: Array
    y_true: Array
    severity: Array
    severity_test: Array
    client_severities: tuple[float, ...]
    setting: str
    feature_names: tuple[str, ...] = FEATURE_NAMES

    def parts(self, *, normalised: bool = False) -> list[tuple[Array, Array]]:
        """X and y of each client."""
        X = self.X_normalised if normalised else self.X
        return [(X[self.clients == g], self.y[self.clients == g]) for g in range(N_CLIENTS)]


def make_pump(
    setting: str = "nominal",
    *,
    random_state: RandomState = None,
    severities: str | Sequence[float] = "paper",
    noise: float = NOISE,
) -> PumpData:
    """The industrial experiment: four clients that each know one severity of a leak.

    The severities go to the clients in random order. The same seed gives the same 1000 test rows
    in all settings, and the same records to draw the training rows from.

    Parameters
    ----------
    setting : {"nominal", "client-imbalance", "class-imbalance", "both", "noisy-labels"}
        How healthy and leaking rows are spread over clients. With "noisy-labels" each client draws
        15 % of its rows with replacement and flips each one hit once (about 14 % of the labels).
    random_state : int, SeedSequence, Generator or None
        Seed of records, split and flips.
    severities : {"paper", "labelling"} or four numbers
        Leak areas over an inlet valve's: 1, 4, 7, 10e-3, or 1, 2, 3, 4e-3, or one's own.
    noise : float, default 1.0
        Standard deviation of a flow reading in l/min.

    Returns
    -------
    PumpData

    Examples
    --------
    >>> from fdrsvm.datasets import make_pump
    >>> data = make_pump("both", random_state=0)
    >>> data.X.shape, data.X_test.shape
    ((400, 14), (1000, 14))
    >>> [len(y) for X, y in data.parts()]
    [280, 60, 40, 20]
    """
    check_choice(setting, "setting", tuple(SETTINGS))
    levels = _check_severities(severities)
    noise = check_non_negative(noise, "noise")
    records, split = spawn(random_state, 2)
    if isinstance(random_state, int | np.integer):  # only then can a pool be asked for again
        pool = _kept_pool(int(random_state), levels, noise)
    else:
        pool = _draw_pool(records, levels, noise)
    return split_pump_pool(pool, setting, random_state=split)


def make_pump_pool(
    *,
    random_state: RandomState = None,
    severities: str | Sequence[float] = "paper",
    noise: float = NOISE,
) -> PumpPool:
    """All 2700 records that ``make_pump`` with the same arguments draws from.

    To repeat an experiment on one set of records, as the authors do, make one pool and split it
    again each time with ``split_pump_pool``.
    """
    levels = _check_severities(severities)
    noise = check_non_negative(noise, "noise")
    return _draw_pool(spawn(random_state, 2)[0], levels, noise)


def split_pump_pool(
    pool: PumpPool, setting: str = "nominal", *, random_state: RandomState = None
) -> PumpData:
    """Test set and four clients from a pool; the parameters are those of ``make_pump``.

    Healthy rows keep their order: the first 500 are for testing, the next ones for the clients.
    Leaking rows are shuffled first.
    """
    check_choice(setting, "setting", tuple(SETTINGS))
    draws, flips = spawn(random_state, 2)
    order = draws.permutation(N_CLIENTS)
    shuffled = [
        _N_HEALTHY + k * _N_LEAKING + draws.permutation(_N_LEAKING) for k in range(N_CLIENTS)
    ]
    test = np.concatenate([np.arange(_TEST_HEALTHY), *(rows[:_TEST_LEAKING] for rows in shuffled)])
    rows, healthy = [], _TEST_HEALTHY
    for (n_healthy, n_leaking), k in zip(SETTINGS[setting], order, strict=True):
        rows.append(np.arange(healthy, healthy + n_healthy))
        rows.append(shuffled[k][_TEST_LEAKING : _TEST_LEAKING + n_leaking])
        healthy += n_healthy
    train = np.concatenate(rows)
    clients = np.repeat(np.arange(N_CLIENTS), [sum(pair) for pair in SETTINGS[setting]])
    y = pool.y[train]
    if setting == "noisy-labels":
        y = flip_labels(y, _FLIPPED, clients=clients, replace=True, random_state=flips)
    scaler = FederatedMinMaxScaler().fit(pool.X[train])
    return PumpData(
        X=pool.X[train],
        y=y,
        clients=clients,
        X_normalised=scaler.transform(pool.X[train]),
        X_test=pool.X[test],
        y_test=pool.y[test],
        X_test_normalised=scaler.transform(pool.X[test]),
        y_true=pool.y[train],
        severity=pool.severity[train],
        severity_test=pool.severity[test],
        client_severities=tuple(pool.severities[k] for k in order),
        setting=setting,
    )


def _check_severities(severities: Any) -> tuple[float, ...]:
    if isinstance(severities, str):
        return SEVERITIES[check_choice(severities, "severities", tuple(SEVERITIES))]
    rule = f"must be one of {', '.join(map(repr, SEVERITIES))}, or four different numbers above 0"
    try:
        levels = tuple(float(level) for level in severities)
    except (TypeError, ValueError):
        levels = ()
    if len(set(levels)) != N_CLIENTS or not all(0.0 < level < np.inf for level in levels):
        raise InvalidInputError("severities", rule, f"it is {severities!r}")
    return levels


@lru_cache(maxsize=16)
def _kept_pool(seed: int, severities: tuple[float, ...], noise: float) -> PumpPool:
    return _draw_pool(spawn(seed, 2)[0], severities, noise)


def _draw_pool(rng: np.random.Generator, severities: tuple[float, ...], noise: float) -> PumpPool:
    levels = (0.0, *severities)
    counts = (_N_HEALTHY, *(_N_LEAKING for _ in severities))
    parts = []
    for level, count in zip(levels, counts, strict=True):
        waveform = _waveform(level)
        for start in range(0, count, _BATCH):
            shape = min(_BATCH, count - start), waveform.size
            parts.append(pump_features(waveform + noise * rng.standard_normal(shape)))
    X = np.concatenate(parts)
    severity = np.repeat(levels, counts)
    y = np.where(severity > 0.0, 1.0, -1.0)
    for array in (X, y, severity):
        array.flags.writeable = False  # pools are kept and handed out again
    return PumpPool(X, y, severity, severities, noise)


@lru_cache(maxsize=256)
def _waveform(leak: float) -> Array:
    """Outlet flow of the default pump, settled; 1201 samples in l/min."""
    run = simulate_pump(leak, start=KEPT_FROM, sample_rate=SAMPLE_RATE, step=STEP)
    run.flow.flags.writeable = False
    return run.flow
