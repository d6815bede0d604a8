"""FDR-SVM: certified, distributionally robust classifiers for data that cannot be pooled."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fdrsvm.errors import (
    CalibrationWarning,
    ClientError,
    ConvergenceWarning,
    CorruptDataError,
    DegenerateModelWarning,
    FDRSVMError,
    InvalidInputError,
    LeftOutWarning,
    MixedInFaultsWarning,
    NumericalError,
    QuorumError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from fdrsvm.core.losses import MarginLoss
    from fdrsvm.data.contract import ContractError, Feature, FeatureContract
    from fdrsvm.data.scaling import FederatedMinMaxScaler, FederatedStandardScaler
    from fdrsvm.decision.alarms import AlarmThreshold
    from fdrsvm.decision.calibration import FederatedCalibrator
    from fdrsvm.decision.goals import FalseAlarmRate, MissCost
    from fdrsvm.estimators.drsvc import DRSVC
    from fdrsvm.estimators.fdrsvc import FDRSVC
    from fdrsvm.estimators.fdrsvccv import FDRSVCCV
    from fdrsvm.estimators.fedsvc import FedSVC
    from fdrsvm.inspection.explain import feature_effects, flipping_perturbation
    from fdrsvm.risk.ball import WorstCaseDistribution
    from fdrsvm.risk.distribution import worst_case_distribution
    from fdrsvm.risk.feature_maps import AdditiveMap, FeatureMap, FourierMap
    from fdrsvm.risk.radius import (
        generalisation_bound,
        mowb_confidence,
        practical_radius,
        wasserstein_radius,
    )
    from fdrsvm.risk.worst_case import RiskOracle, WorstCaseRisk, worst_case_risk

__version__ = "0.2.0.dev0"

# Names are found on first use, so that ``import fdrsvm`` loads neither NumPy nor SciPy.
_HOME = {
    "AdditiveMap": "fdrsvm.risk.feature_maps",
    "AlarmThreshold": "fdrsvm.decision.alarms",
    "ContractError": "fdrsvm.data.contract",
    "DRSVC": "fdrsvm.estimators.drsvc",
    "FDRSVC": "fdrsvm.estimators.fdrsvc",
    "FDRSVCCV": "fdrsvm.estimators.fdrsvccv",
    "FalseAlarmRate": "fdrsvm.decision.goals",
    "Feature": "fdrsvm.data.contract",
    "FeatureContract": "fdrsvm.data.contract",
    "FeatureMap": "fdrsvm.risk.feature_maps",
    "FourierMap": "fdrsvm.risk.feature_maps",
    "FedSVC": "fdrsvm.estimators.fedsvc",
    "FederatedCalibrator": "fdrsvm.decision.calibration",
    "FederatedMinMaxScaler": "fdrsvm.data.scaling",
    "FederatedStandardScaler": "fdrsvm.data.scaling",
    "MarginLoss": "fdrsvm.core.losses",
    "MissCost": "fdrsvm.decision.goals",
    "RiskOracle": "fdrsvm.risk.worst_case",
    "WorstCaseDistribution": "fdrsvm.risk.ball",
    "WorstCaseRisk": "fdrsvm.risk.worst_case",
    "feature_effects": "fdrsvm.inspection.explain",
    "flipping_perturbation": "fdrsvm.inspection.explain",
    "generalisation_bound": "fdrsvm.risk.radius",
    "mowb_confidence": "fdrsvm.risk.radius",
    "practical_radius": "fdrsvm.risk.radius",
    "wasserstein_radius": "fdrsvm.risk.radius",
    "worst_case_distribution": "fdrsvm.risk.distribution",
    "worst_case_risk": "fdrsvm.risk.worst_case",
}

__all__ = [
    "DRSVC",
    "FDRSVC",
    "FDRSVCCV",
    "AdditiveMap",
    "AlarmThreshold",
    "CalibrationWarning",
    "ClientError",
    "ContractError",
    "ConvergenceWarning",
    "CorruptDataError",
    "DegenerateModelWarning",
    "FDRSVMError",
    "FalseAlarmRate",
    "Feature",
    "FeatureContract",
    "FeatureMap",
    "FedSVC",
    "FederatedCalibrator",
    "FederatedMinMaxScaler",
    "FederatedStandardScaler",
    "FourierMap",
    "InvalidInputError",
    "LeftOutWarning",
    "MarginLoss",
    "MissCost",
    "MixedInFaultsWarning",
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
