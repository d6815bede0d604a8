"""Data sets, and how they are spread over clients and damaged.

``partition`` and ``corrupt`` are modules: ``partition.by_shares(y, (70, 15, 10, 5))``,
``corrupt.flip_labels(y, 0.15)``.
"""

from __future__ import annotations

from fdrsvm.datasets import corrupt, partition
from fdrsvm.datasets._pump_features import FEATURE_NAMES, pump_features
from fdrsvm.datasets._pump_model import PumpParameters, PumpRun, simulate_pump
from fdrsvm.datasets.fetch import DataWarning, FetchError
from fdrsvm.datasets.pump import PumpData, PumpPool, make_pump, make_pump_pool, split_pump_pool
from fdrsvm.datasets.synthetic import ScalabilityData, make_scalability
from fdrsvm.datasets.uci import UCI_NAMES, DataError, load_uci

__all__ = [
    "FEATURE_NAMES",
    "UCI_NAMES",
    "DataError",
    "DataWarning",
    "FetchError",
    "PumpData",
    "PumpParameters",
    "PumpPool",
    "PumpRun",
    "ScalabilityData",
    "corrupt",
    "load_uci",
    "make_pump",
    "make_pump_pool",
    "make_scalability",
    "partition",
    "pump_features",
    "simulate_pump",
    "split_pump_pool",
]
