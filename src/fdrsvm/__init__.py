"""FDR-SVM: certified, distributionally robust classifiers for data that cannot be pooled."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fdrsvm.ambiguity.distribution import WorstCaseDistribution, worst_case_distribution
    from fdrsvm.ambiguity.radius import mowb_confidence, practical_radius, wasserstein_radius
    from fdrsvm.ambiguity.worst_case import RiskOracle, WorstCaseRisk, worst_case_risk
    from fdrsvm.errors import (
        ConvergenceWarning,
        CorruptDataError,
        FDRSVMError,
        InvalidInputError,
        NumericalError,
        UnsupportedError,
    )
    from fdrsvm.maths.losses import MarginLoss

__version__ = "0.1.0.dev0"

# Names are found on first use, so that ``import fdrsvm`` loads neither numba nor SciPy.
_HOME = {
    "ConvergenceWarning": "fdrsvm.errors",
    "CorruptDataError": "fdrsvm.errors",
    "FDRSVMError": "fdrsvm.errors",
    "InvalidInputError": "fdrsvm.errors",
    "MarginLoss": "fdrsvm.maths.losses",
    "NumericalError": "fdrsvm.errors",
    "RiskOracle": "fdrsvm.ambiguity.worst_case",
    "UnsupportedError": "fdrsvm.errors",
    "WorstCaseDistribution": "fdrsvm.ambiguity.distribution",
    "WorstCaseRisk": "fdrsvm.ambiguity.worst_case",
    "mowb_confidence": "fdrsvm.ambiguity.radius",
    "practical_radius": "fdrsvm.ambiguity.radius",
    "wasserstein_radius": "fdrsvm.ambiguity.radius",
    "worst_case_distribution": "fdrsvm.ambiguity.distribution",
    "worst_case_risk": "fdrsvm.ambiguity.worst_case",
}

__all__ = [
    "ConvergenceWarning",
    "CorruptDataError",
    "FDRSVMError",
    "InvalidInputError",
    "MarginLoss",
    "NumericalError",
    "RiskOracle",
    "UnsupportedError",
    "WorstCaseDistribution",
    "WorstCaseRisk",
    "mowb_confidence",
    "practical_radius",
    "wasserstein_radius",
    "worst_case_distribution",
    "worst_case_risk",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
