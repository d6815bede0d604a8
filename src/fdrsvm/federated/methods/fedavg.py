"""FedAvg, [fedavg]: clients run epochs of mini-batch subgradient descent, the server averages.

    client   from the model sent, in each epoch s = 1..E: all samples in a new order, batch by batch
             w <- w - lr/sqrt(s) v,    v = (slope of the batch's mean hinge) + 2 epsilon_g w
    server   w <- sum_g alpha_g w_g                                                  (first w = 0)

The step shrinks with the epoch and starts again every round. An intercept has no penalty. A batch
is a fraction of the client's samples, rounded down; the few left over sit out the epoch. In a
batch's mean sample weights count such that its expectation is the client's. The server's mean is
over the clients that answered, their weights scaled to sum to 1.

With its model a client sends J_g and a cut of its loss at the model it was sent: [ridge-bound].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fdrsvm.core.arrays import Array, check_count, check_positive
from fdrsvm.federated.aggregation import check_trim
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.methods.baseline import (
    Baseline,
    BaselineState,
    mean_vector,
    next_state,
    ridge_answer,
)
from fdrsvm.federated.methods.batches import (
    batch_size,
    check_fraction,
    client_generator,
    epoch_order,
    samples_of,
)
from fdrsvm.federated.methods.method import one_cut
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.native import steps


@dataclass(frozen=True)
class FedAvg(Baseline):
    """Federated averaging of the l2-regularised SVM.

    Parameters
    ----------
    learning_rate : float
        lr, the step in the first epoch of a round.
    n_epochs : int
        E, the passes over a client's samples in a round.
    batch_fraction : float
        Share of a client's samples in a batch.
    random_state : int
        Seeds the order of the samples, together with the round and the client's id.
    trim : float
        Share of the clients left out at either end of the mean, entry by entry: [trimmed].
    """

    name: ClassVar[str] = "fedavg"
    state_type: ClassVar[type] = BaselineState
    learning_rate: float = 0.1
    n_epochs: int = 5
    batch_fraction: float = 0.2
    random_state: int = 0
    trim: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self.learning_rate, "learning_rate")
        check_count(self.n_epochs, "n_epochs", 1)
        check_fraction(self.batch_fraction, "batch_fraction")
        check_count(self.random_state, "random_state", 0)
        check_trim(self.trim)

    @property
    def pull(self) -> float:
        """Weight of the term that holds clients near the model they were sent."""
        return 0.0

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """The client's own model after E epochs, with objective and cut at the one it was sent."""
        model, profile = asked["points"][0], problem.profile
        evaluated = ridge_answer(problem, model, penalty=profile.epsilon)
        rng = client_generator(self.random_state, int(asked["round"]), profile.client_id)
        descent = steps.Descent(
            epsilon=profile.epsilon,
            learning_rate=float(self.learning_rate),
            prox_weight=float(self.pull),
            n_epochs=self.n_epochs,
        )
        vector = steps.local_epochs(
            samples_of(problem),
            model,
            epoch_order(rng, self.n_epochs, profile.n_samples, self.batch_fraction),
            batch_size(profile.n_samples, self.batch_fraction),
            descent,
        )
        return memory, {"vector": vector, **evaluated}

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """A model, an objective and a cut."""
        return {"vector": (federation.width,), **one_cut(federation)}

    def advance(
        self, federation: Federation, state: BaselineState, replies: Replies
    ) -> BaselineState:
        """The mean of those who answered."""
        w = mean_vector(federation, state, replies, self.trim)
        return next_state(federation, state, w, replies)
