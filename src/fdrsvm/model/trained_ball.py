"""The Wasserstein ball that a model was trained for, client by client, from its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdrsvm.core.arrays import check_non_negative, check_positive
from fdrsvm.core.plain_json import from_plain
from fdrsvm.data.training_data import auto_radius, client_shares
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.ball import Support

ROBUST = ("FDRSVC", "DRSVC")


@dataclass(frozen=True, eq=False)
class TrainedBall:
    """As ``worst_case_risk`` takes it."""

    epsilon: float
    kappa: float
    norm: str
    support: Support
    loss: Any

    def options(self) -> dict[str, Any]:
        """Keyword arguments."""
        return dict(vars(self))


@dataclass(frozen=True)
class Overrides:
    """What to take in place of the model's own radius, label price and norm; None leaves it."""

    epsilon: float | None = None
    kappa: float | None = None
    norm: str | None = None


def balls(
    model: LinearModel, counts: Mapping[str, int], given: Overrides | None = None
) -> dict[str, TrainedBall]:
    """One per client; ``counts`` are its rows, which "auto" depends on if training kept no radius.

    Other rows of a client, such as those of a test, have the radius of its training.
    """
    given = given or Overrides()
    trained = model.record.get("data", {})
    if model.estimator == "DRSVC" and "rows" in trained:  # one ball around the rows of all
        counts = dict.fromkeys(counts, sum(map(int, trained["rows"].values())))
    if model.estimator not in ROBUST and given.epsilon is None:
        raise UnsupportedError(
            f"a {model.estimator} has no ball of its own: give a radius epsilon for it"
        )
    params = {name: from_plain(value) for name, value in model.params.items()}
    by_client = {}
    for client, count in counts.items():
        epsilon, kappa = given.epsilon, given.kappa
        if epsilon is None:
            epsilon = _of_client(params["epsilon"], "epsilon", client, model)
            if epsilon == "auto":
                epsilon = trained.get("epsilon", {}).get(client, auto_radius(count))
        if kappa is None:
            kappa = _of_client(params.get("kappa", 1.0), "kappa", client, model)
        by_client[client] = TrainedBall(
            epsilon=check_non_negative(epsilon, "epsilon"),
            kappa=check_positive(kappa, "kappa", or_infinite=True),
            norm=given.norm or params.get("norm", "linf"),
            support=params.get("support"),
            loss=params.get("loss", "hinge"),
        )
    return by_client


def client_weights(model: LinearModel, counts: Mapping[str, int]) -> dict[str, float]:
    """The weights alpha_g of the clients in the objective; they sum to 1."""
    weights = from_plain(model.params.get("client_weights", "equal"))
    if not isinstance(weights, str):
        weights = [_of_client(weights, "client_weights", client, model) for client in counts]
    shares = client_shares(weights, list(counts), list(counts.values())).tolist()
    total = sum(shares)
    return {client: share / total for client, share in zip(counts, shares, strict=True)}


def _of_client(value: Any, argument: str, client: str, model: LinearModel) -> Any:
    """One client's entry of a parameter that may be a single value, a mapping or a list."""
    if isinstance(value, Mapping):
        by_name = {str(name): item for name, item in value.items()}
    elif isinstance(value, str) or np.ndim(value) == 0:
        return value
    else:  # in the order of the clients of training
        labels = np.asarray(from_plain(model.certificate.get("client_labels", [])))
        by_name = dict(zip(map(str, labels.tolist()), value, strict=True))
    if client not in by_name:
        raise InvalidInputError(
            argument,
            f"is known for the clients of training, {', '.join(map(repr, by_name))}",
            f"{client!r} is none of them; if it is one under another name, give its rows that name "
            "(--client NAME=FILE)",
        )
    return by_name[client]
