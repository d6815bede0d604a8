"""The methods by name, ours and the baselines alike."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.methods.admm import ADMM, ADMMSC
from fdrsvm.federated.methods.bundle import Bundle
from fdrsvm.federated.methods.fedavg import FedAvg
from fdrsvm.federated.methods.feddro import FedDRO
from fdrsvm.federated.methods.fedprox import FedProx
from fdrsvm.federated.methods.fedsgd import FedSGD
from fdrsvm.federated.methods.method import Algorithm, Evaluation, describe
from fdrsvm.federated.methods.one_vs_rest import OneVsRest, OneVsRestProblem
from fdrsvm.federated.methods.private_subgradient import PrivateSubgradient
from fdrsvm.federated.methods.subgradient import Subgradient
from fdrsvm.federated.secure.secure_step import SecureStep

__all__ = [
    "ADMM",
    "ADMMSC",
    "ALGORITHMS",
    "Algorithm",
    "Bundle",
    "FedAvg",
    "FedDRO",
    "FedProx",
    "FedSGD",
    "OneVsRest",
    "OneVsRestProblem",
    "PrivateSubgradient",
    "Subgradient",
    "describe",
    "from_description",
    "register",
]

ALGORITHMS: dict[str, type[Any]] = {
    method.name: method
    for method in (Bundle, ADMM, ADMMSC, Subgradient, FedSGD, FedAvg, FedProx, FedDRO)
}
# Not by name alone: these need settings that have no default.
_KNOWN = {
    **ALGORITHMS,
    **{kind.name: kind for kind in (Evaluation, OneVsRest, PrivateSubgradient, SecureStep)},
}


def register(method: type[Any]) -> type[Any]:
    """Makes another package's method known by its name; a class decorator.

    For ``run_rounds`` and ``train`` in this process: clients elsewhere must import it as well, and
    estimators have their own lists. A name belongs to one class, which may be defined again.
    """
    known = _KNOWN.get(method.name, method)
    if (known.__module__, known.__qualname__) != (method.__module__, method.__qualname__):
        raise InvalidInputError(
            "name", "must be the method's alone", f"{known.__qualname__} is called {method.name!r}"
        )
    _KNOWN[method.name] = method
    from_description.cache_clear()
    return method


@lru_cache(maxsize=64)
def from_description(text: str) -> Any:
    """The method that ``describe`` wrote down, or an error that names what is wrong with it."""
    try:
        return _made(json.loads(text))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise InvalidInputError(
            "algorithm",
            f"must be one of {', '.join(_KNOWN)}, or made known by "
            "fdrsvm.federated.methods.register, with its settings",
            str(error),
        ) from None


def _made(settings: dict[str, Any]) -> Any:
    """A method from its name and settings, one of which may be a method too."""
    values = {
        name: _made(value) if isinstance(value, dict) else value for name, value in settings.items()
    }
    return _KNOWN[values.pop("name")](**values)
