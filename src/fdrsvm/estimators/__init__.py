"""Estimators: scikit-learn classes, the linear model they train, its file and its exports."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fdrsvm.estimators.drsvc import DRSVC
    from fdrsvm.estimators.fdrsvc import FDRSVC
    from fdrsvm.estimators.fdrsvccv import FDRSVCCV
    from fdrsvm.estimators.fedsvc import FedSVC

# Names are found on first use, so that a gateway can load a LinearModel without scikit-learn.
_HOME = {
    "DRSVC": "fdrsvm.estimators.drsvc",
    "FDRSVC": "fdrsvm.estimators.fdrsvc",
    "FDRSVCCV": "fdrsvm.estimators.fdrsvccv",
    "FedSVC": "fdrsvm.estimators.fedsvc",
}

__all__ = ["DRSVC", "FDRSVC", "FDRSVCCV", "FedSVC"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
