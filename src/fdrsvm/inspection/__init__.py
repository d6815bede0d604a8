"""Evaluation: explanations of single decisions, robustness of a model, and displays of both.

Everything takes a fitted linear classifier, ours or another, and trains nothing.
"""

from __future__ import annotations

from fdrsvm.inspection.displays import (
    ClientRiskDisplay,
    ConvergenceDisplay,
    CurvesDisplay,
    FeatureWeightDisplay,
    RobustnessDisplay,
)
from fdrsvm.inspection.explain import (
    Change,
    Effect,
    FeatureEffects,
    FlippingPerturbation,
    WorstCaseAtom,
    feature_effects,
    flipping_perturbation,
    worst_case_atoms,
)
from fdrsvm.inspection.robustness import RiskCurve, risk_curve

__all__ = [
    "Change",
    "ClientRiskDisplay",
    "ConvergenceDisplay",
    "CurvesDisplay",
    "Effect",
    "FeatureEffects",
    "FeatureWeightDisplay",
    "FlippingPerturbation",
    "RiskCurve",
    "RobustnessDisplay",
    "WorstCaseAtom",
    "feature_effects",
    "flipping_perturbation",
    "risk_curve",
    "worst_case_atoms",
]
