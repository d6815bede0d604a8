"""FedSVC: the federated baselines, for comparison."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import (
    check_choice,
    check_count,
    check_flag,
    check_non_negative,
    check_positive,
)
from fdrsvm.data.training_data import TrainingData, client_shares, radii
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.estimators.advice import ColumnAdvice, mean_hinge
from fdrsvm.estimators.base import FederatedClassifier, LinearClassifier, seed_of
from fdrsvm.federated.methods import FedAvg, FedDRO, FedProx, FedSGD
from fdrsvm.federated.rounds import Callback, Result

__all__ = ["FedSVC"]

_ALGORITHMS = ("fedsgd", "fedavg", "fedprox", "feddro")


class FedSVC(FederatedClassifier):
    """Federated SVM by FedSGD, FedAvg, FedProx or FedDRO: what FDRSVC is compared with.

    They minimise the weighted sum over the clients of mean hinge loss plus penalty ||w||^2 (FedDRO:
    of an exponentially tilted mean), not a worst-case risk. The model is the last iterate, as in
    the papers. Several classes are trained one-vs-rest, in the same rounds.

    Parameters
    ----------
    algorithm : {"fedsgd", "fedavg", "fedprox", "feddro"}
    learning_rate : float
        Step of the first round (FedSGD), the first epoch of a round (FedAvg, FedProx), or the first
        local step of the run (FedDRO).
    penalty : float, "auto", mapping or array
        Weight of ||w||^2: of all clients, by client label, or one per client in the order of the
        sorted labels. "auto" is 1/(10 N_g), where N_g is the client's number of rows, or the sum of
        their sample weights.
    n_epochs : int
        Passes over a client's rows in a round; for FedDRO local steps in a round. Not for FedSGD.
    batch_fraction : float
        Share of a client's rows in a batch. Not for FedSGD.
    prox_weight : float
        FedProx's mu.
    temperature, momentum : float
        FedDRO's; a momentum of None is a tenth of the learning rate.
    max_rounds, client_weights, class_weight, n_threads, verbose, callbacks
        As for :class:`FDRSVC`.
    tol : float
        Stop at this certified relative gap of the methods' own objective; 0 runs all rounds.
    fit_intercept : bool
        Whether the model has an intercept. It is not penalised.
    random_state : int, RandomState or None
        Seeds the batches. A client's batches depend on the seed, the round and the client's label.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_models, n_features), ndarray of shape (n_models,)
        Of the last iterate; one model for two classes, else one per class.
    classes_, n_iter_, stop_reason_, history_, client_labels_, n_features_in_, feature_names_in_
        As for :class:`FDRSVC`.
    objective_, lower_bound_, gap_ : float, or ndarray of shape (n_classes,)
        The method's own objective at the best iterate that the clients evaluated, a bound that no
        model can go below, and the relative gap. A model is evaluated one round after it was made,
        so this is not the objective of ``coef_``.
    best_coef_, best_intercept_ : ndarray
        The iterate that ``objective_`` is of.
    bound_radius_ : float, or ndarray of shape (n_classes,)
        The bound holds for models with ||w||_1 up to this: infinite unless the penalty is 0.
    objective_per_client_ : dict
        By client label: its own objective at the best iterate, or an array, one entry per class.

    Examples
    --------
    >>> from fdrsvm.estimators import FedSVC
    >>> X, y = [[0.1, 0.9], [0.2, 0.7], [0.8, 0.3], [0.9, 0.2]], [0, 0, 1, 1]
    >>> FedSVC("fedavg", random_state=0).fit(X, y, clients=["a", "b", "a", "b"]).score(X, y)
    1.0
    """

    _kept: ClassVar[tuple[str, ...]] = (
        *LinearClassifier._kept,
        "best_coef",
        "best_intercept",
        "objective_per_client",
    )
    _per_client: ClassVar[str] = "objective_per_client_"
    merges_rows: ClassVar[bool] = False  # batches are drawn from rows as they are

    def __init__(
        self,
        algorithm: str = "fedsgd",
        *,
        learning_rate: float = 0.1,
        penalty: Any = "auto",
        n_epochs: int = 5,
        batch_fraction: float = 0.2,
        prox_weight: float = 1.0,
        temperature: float = 10.0,
        momentum: float | None = None,
        max_rounds: int = 200,
        tol: float = 0.0,
        client_weights: Any = "equal",
        fit_intercept: bool = True,
        class_weight: Any = None,
        n_threads: int = 1,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self._store(locals())

    def _check_options(self) -> None:
        check_choice(self.algorithm, "algorithm", _ALGORITHMS)

    def _balls(self, data: TrainingData) -> tuple[list[float], list[float], dict[str, Any]]:
        # The penalty takes the place of the radius: the baselines have no ball.
        penalties = radii(self.penalty, "penalty", data.names, data.totals)
        same = {"fit_intercept": check_flag(self.fit_intercept, "fit_intercept")}
        return penalties, [np.inf] * len(penalties), same

    def _method(self, data: TrainingData | None = None) -> Any:  # noqa: ARG002 - the same for all
        rate = check_positive(self.learning_rate, "learning_rate")
        if self.algorithm == "fedsgd":
            return FedSGD(rate)
        drawn: dict[str, Any] = {
            "batch_fraction": check_positive(self.batch_fraction, "batch_fraction"),
            "random_state": seed_of(self.random_state),
        }
        n_epochs = check_count(self.n_epochs, "n_epochs")
        if self.algorithm == "fedavg":
            return FedAvg(rate, n_epochs, **drawn)
        if self.algorithm == "fedprox":
            prox_weight = check_non_negative(self.prox_weight, "prox_weight")
            return FedProx(rate, n_epochs, prox_weight=prox_weight, **drawn)
        momentum = None if self.momentum is None else check_positive(self.momentum, "momentum")
        temperature = check_positive(self.temperature, "temperature")
        return FedDRO(rate, temperature, momentum, n_steps=n_epochs, **drawn)

    def _set_result(self, result: Result, classes: npt.NDArray[Any], *who: Any) -> None:
        super()._set_result(result, classes, *who)
        self.best_coef_, self.best_intercept_ = self.coef_, self.intercept_
        newest, P = result.newest.reshape(len(self.coef_), -1), self.n_features_in_
        self.coef_, self.intercept_ = newest[:, :P].copy(), newest[:, P:].sum(axis=1)

    def _warn_if_degenerate(
        self, data: TrainingData, columns: ColumnAdvice, stacklevel: int
    ) -> None:
        """Steps that are too long for the features leave a model worse than none.

        One remedy then, not two that contradict each other.
        """
        shares = client_shares(self.client_weights, data.names, data.totals)
        models = np.column_stack([self.coef_, self.intercept_])
        loss = float(mean_hinge(data, models, shares).max())
        if loss < 1.0:
            super()._warn_if_degenerate(data, columns, stacklevel + 1)
            return
        remedy = columns.size or "try a smaller learning_rate or more rounds"
        warnings.warn(
            f"{self.algorithm}: after {self.n_iter_} rounds the mean hinge loss is {loss:.2g}, "
            f"no better than that of the model 0, with a certified relative gap of "
            f"{np.max(self.gap_):.1e}; {remedy}",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
