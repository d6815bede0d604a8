"""Estimators: the scikit-learn classes, and training runs from files to a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fdrsvm.estimators.drsvc import DRSVC
    from fdrsvm.estimators.fdrsvc import FDRSVC
    from fdrsvm.estimators.fdrsvccv import FDRSVCCV
    from fdrsvm.estimators.fedsvc import FedSVC
    from fdrsvm.risk.feature_maps import AdditiveMap, FeatureMap, FourierMap

__all__ = ["DRSVC", "FDRSVC", "FDRSVCCV", "AdditiveMap", "FeatureMap", "FedSVC", "FourierMap"]


def __getattr__(name: str) -> Any:
    """On first use, as in :mod:`fdrsvm`, so that scikit-learn is loaded only where it is needed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import fdrsvm

    return getattr(fdrsvm, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
