"""FedProx, [fedprox]: FedAvg whose clients are held near the model they were sent.

    client   as in [fedavg], with (prox_weight/2) ||w - w_sent||^2 added to J_g: every v gets
             prox_weight (w - w_sent) more; an intercept is part of w here
    server   as in [fedavg]

The certificate is FedAvg's: the objective is still J, without the proximal term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fdrsvm.core.arrays import check_non_negative
from fdrsvm.federated.methods.fedavg import FedAvg


@dataclass(frozen=True)
class FedProx(FedAvg):
    """FedAvg with a proximal term.

    Parameters
    ----------
    learning_rate, n_epochs, batch_fraction, random_state, trim
        As in :class:`FedAvg`.
    prox_weight : float
        mu in the FedProx paper; 0 is FedAvg, to the last bit.
    """

    name: ClassVar[str] = "fedprox"
    prox_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_non_negative(self.prox_weight, "prox_weight")

    @property
    def pull(self) -> float:
        """The prox weight."""
        return self.prox_weight
