"""FDR-SVM: certified, distributionally robust classifiers for data that cannot be pooled."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fdrsvm.ambiguity.distribution import WorstCaseDistribution, worst_case_distribution
    from fdrsvm.ambiguity.radius import (
        generalisation_bound,
        mowb_confidence,
        practical_radius,
        wasserstein_radius,
    )
    from fdrsvm.ambiguity.worst_case import RiskOracle, WorstCaseRisk, worst_case_risk
    from fdrsvm.errors import (
        ClientError,
        ConvergenceWarning,
        CorruptDataError,
        DegenerateModelWarning,
        FDRSVMError,
        InvalidInputError,
        LeftOutWarning,
        NumericalError,
        QuorumError,
        UnsupportedError,
    )
    from fdrsvm.estimators.contract import ContractError, Feature, FeatureContract
    from fdrsvm.estimators.drsvc import DRSVC
    from fdrsvm.estimators.fdrsvc import FDRSVC
    from fdrsvm.estimators.fdrsvccv import FDRSVCCV
    from fdrsvm.estimators.fedsvc import FedSVC
    from fdrsvm.estimators.scaling import FederatedMinMaxScaler, FederatedStandardScaler
    from fdrsvm.evaluation.explain import feature_effects, flipping_perturbation
    from fdrsvm.maths.losses import MarginLoss

__version__ = "0.2.0.dev0"

# Names are found on first use, so that ``import fdrsvm`` loads neither NumPy nor SciPy.
_HOME = {
    "ClientError": "fdrsvm.errors",
    "ContractError": "fdrsvm.estimators.contract",
    "ConvergenceWarning": "fdrsvm.errors",
    "CorruptDataError": "fdrsvm.errors",
    "DRSVC": "fdrsvm.estimators.drsvc",
    "DegenerateModelWarning": "fdrsvm.errors",
    "FDRSVC": "fdrsvm.estimators.fdrsvc",
    "FDRSVCCV": "fdrsvm.estimators.fdrsvccv",
    "FDRSVMError": "fdrsvm.errors",
    "Feature": "fdrsvm.estimators.contract",
    "FeatureContract": "fdrsvm.estimators.contract",
    "FedSVC": "fdrsvm.estimators.fedsvc",
    "FederatedMinMaxScaler": "fdrsvm.estimators.scaling",
    "FederatedStandardScaler": "fdrsvm.estimators.scaling",
    "InvalidInputError": "fdrsvm.errors",
    "LeftOutWarning": "fdrsvm.errors",
    "MarginLoss": "fdrsvm.maths.losses",
    "NumericalError": "fdrsvm.errors",
    "QuorumError": "fdrsvm.errors",
    "RiskOracle": "fdrsvm.ambiguity.worst_case",
    "UnsupportedError": "fdrsvm.errors",
    "WorstCaseDistribution": "fdrsvm.ambiguity.distribution",
    "WorstCaseRisk": "fdrsvm.ambiguity.worst_case",
    "feature_effects": "fdrsvm.evaluation.explain",
    "flipping_perturbation": "fdrsvm.evaluation.explain",
    "generalisation_bound": "fdrsvm.ambiguity.radius",
    "mowb_confidence": "fdrsvm.ambiguity.radius",
    "practical_radius": "fdrsvm.ambiguity.radius",
    "wasserstein_radius": "fdrsvm.ambiguity.radius",
    "worst_case_distribution": "fdrsvm.ambiguity.distribution",
    "worst_case_risk": "fdrsvm.ambiguity.worst_case",
}

__all__ = [
    "DRSVC",
    "FDRSVC",
    "FDRSVCCV",
    "ClientError",
    "ContractError",
    "ConvergenceWarning",
    "CorruptDataError",
    "DegenerateModelWarning",
    "FDRSVMError",
    "Feature",
    "FeatureContract",
    "FedSVC",
    "FederatedMinMaxScaler",
    "FederatedStandardScaler",
    "InvalidInputError",
    "LeftOutWarning",
    "MarginLoss",
    "NumericalError",
    "QuorumError",
    "RiskOracle",
    "UnsupportedError",
    "WorstCaseDistribution",
    "WorstCaseRisk",
    "feature_effects",
    "flipping_perturbation",
    "generalisation_bound",
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
