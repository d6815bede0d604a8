"""The Wasserstein ball that a model was trained for, client by client, from its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdrsvm.core.arrays import check_non_negative, check_positive
from fdrsvm.core.plain_json import from_plain
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.ball import Support
from fdrsvm.risk.radius import practical_radius

ROBUST = ("FDRSVC", "DRSVC")


@dataclass(frozen=True, eq=False)
class Ball:
    """As ``worst_case_risk`` takes it."""

    epsilon: float
    kappa: float
    norm: str
    support: Support
    loss: Any

    def options(self) -> dict[str, Any]:
        """Keyword arguments."""
        return {
            "epsilon": self.epsilon,
            "kappa": self.kappa,
            "norm": self.norm,
            "support": self.support,
            "loss": self.loss,
        }


@dataclass(frozen=True)
class Overrides:
    """What to take in place of the model's own radius, label price and norm; None leaves it."""

    epsilon: float | None = None
    kappa: float | None = None
    norm: str | None = None


def balls(
    model: LinearModel, counts: Mapping[str, int], given: Overrides | None = None
) -> dict[str, Ball]:
    """One a client; ``counts`` are the clients' rows, which "auto" depends on."""
    given = given or Overrides()
    if model.estimator not in ROBUST and given.epsilon is None:
        raise UnsupportedError(
            f"a {model.estimator} has no ball of its own: give a radius epsilon for it"
        )
    params = {name: from_plain(value) for name, value in model.params.items()}
    clients = _clients_of(model)
    ball = Ball(
        epsilon=0.0,
        kappa=1.0,
        norm=given.norm or params.get("norm", "linf"),
        support=params.get("support"),
        loss=params.get("loss", "hinge"),
    )
    found = {}
    for client, count in counts.items():
        epsilon = given.epsilon
        if epsilon is None:
            value = _of_client(params["epsilon"], "epsilon", client, clients)
            epsilon = float(practical_radius(count)) if value == "auto" else value
        kappa = given.kappa
        if kappa is None:
            kappa = _of_client(params.get("kappa", 1.0), "kappa", client, clients)
        found[client] = replace(
            ball,
            epsilon=check_non_negative(epsilon, "epsilon"),
            kappa=check_positive(kappa, "kappa", or_infinite=True),
        )
    return found


def client_weights(model: LinearModel, counts: Mapping[str, int]) -> dict[str, float]:
    """The weights alpha_g of the clients in the objective; they sum to 1."""
    value = from_plain(model.params.get("client_weights", "equal"))
    clients = _clients_of(model)
    if isinstance(value, str) and value == "equal":
        shares = dict.fromkeys(counts, 1.0)
    elif isinstance(value, str):  # "samples"
        shares = {client: float(count) for client, count in counts.items()}
    else:
        shares = {
            client: check_non_negative(
                _of_client(value, "client_weights", client, clients), "client_weights"
            )
            for client in counts
        }
    total = sum(shares.values())
    return {client: share / total for client, share in shares.items()}


def _clients_of(model: LinearModel) -> list[str]:
    """Those of training, in the order of arrays over clients."""
    labels = from_plain(model.certificate.get("client_labels", []))
    return [str(label) for label in np.asarray(labels).tolist()]


def _of_client(value: Any, argument: str, client: str, clients: list[str]) -> Any:
    """One client's entry of a parameter that may be a single value, a mapping or a list."""
    if isinstance(value, str) or (np.ndim(value) == 0 and not isinstance(value, Mapping)):
        return value
    by_name = (
        {str(name): item for name, item in value.items()} if isinstance(value, Mapping) else {}
    )
    if not by_name:
        by_name = dict(zip(clients, value, strict=True))
    if client not in by_name:
        raise InvalidInputError(
            argument,
            f"is known for the clients of training, {', '.join(map(repr, by_name))}",
            f"{client!r} is none of them",
        )
    return by_name[client]
