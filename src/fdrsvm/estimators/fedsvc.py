"""FedSVC: the federated baselines, for comparison."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from fdrsvm.core.arrays import (
    Array,
    check_choice,
    check_count,
    check_flag,
    check_non_negative,
    check_positive,
)
from fdrsvm.data.training_data import (
    TrainingData,
    client_shares,
    radii,
    read_training_data,
)
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.estimators.base import LinearClassifier, certified
from fdrsvm.estimators.scale_advice import mean_hinge, scale_advice
from fdrsvm.federated.methods import FedAvg, FedDRO, FedProx, FedSGD
from fdrsvm.federated.rounds import Result
from fdrsvm.federated.train import make_problems, standings, train

__all__ = ["FedSVC"]

_ALGORITHMS = ("fedsgd", "fedavg", "fedprox", "feddro")
_MAX_SEED = 2**31 - 1


class FedSVC(LinearClassifier):
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
    max_rounds : int
        Communication rounds at most.
    tol : float
        Stop at this certified relative gap of the methods' own objective; 0 runs all rounds.
    client_weights : "equal", "samples", mapping or array
        Weights of the clients. "samples" counts rows, or sums their sample weights.
    fit_intercept : bool
        Whether the model has an intercept. It is not penalised.
    class_weight : None, "balanced" or mapping
        Multiplies the sample weights; "balanced" is n / (n_classes n_class) over all clients' rows.
        Weights count within a client only.
    n_threads : int
        In how many threads clients answer.
    random_state : int, RandomState or None
        Seeds the batches. A client's batches depend on the seed, the round and the client's label.
    verbose : int
        Above 0 prints one line per round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Of the last iterate.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray
        The labels, sorted.
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
    n_iter_ : int
        Rounds used.
    stop_reason_ : str
        Why training stopped.
    history_ : tuple of RoundRecord
        One a round. With several classes, objective and bound are means and the gap is the largest.
    client_labels_ : ndarray
        The clients, in the order of all arrays over clients.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names.

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
    ) -> None:
        self.algorithm = algorithm
        self.learning_rate = learning_rate
        self.penalty = penalty
        self.n_epochs = n_epochs
        self.batch_fraction = batch_fraction
        self.prox_weight = prox_weight
        self.temperature = temperature
        self.momentum = momentum
        self.max_rounds = max_rounds
        self.tol = tol
        self.client_weights = client_weights
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, *, clients: Any = None, sample_weight: Any = None) -> Self:
        """Train across the clients.

        Parameters
        ----------
        X : array, DataFrame or CSR of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels, two or more over all clients. A client may have rows of one class only.
        clients : array of shape (n_samples,), optional
            A client label for each row. None means one client, called "all".
        sample_weight : array of shape (n_samples,), optional
            Masses of the rows within their client. For FedSGD a row of weight 2 counts as two; the
            others draw batches of rows, so that this holds on average only. Weight 0 is no row.

        Returns
        -------
        FedSVC
            This object.

        Warns
        -----
        ConvergenceWarning
            If the model is no better than the model 0: steps are too long for the features.
            If the certified gap is above a ``tol`` that is not 0 after ``max_rounds``.
        DegenerateModelWarning
            If the model finds fewer than one in a hundred training rows of a class, or ignores all
            features (its score varies by at most 0.02 over the training rows); with a remedy.
        """
        method = self._method()
        data = read_training_data(
            self,
            X,
            y,
            clients=clients,
            sample_weight=sample_weight,
            class_weight=self.class_weight,
            merge=False,  # batches are drawn of rows as they are
        )
        penalties = radii(self.penalty, "penalty", data)
        problems = make_problems(
            data,
            penalties,  # in place of the radius: the baselines have no ball
            [np.inf] * len(penalties),
            fit_intercept=check_flag(self.fit_intercept, "fit_intercept"),
        )
        shares = client_shares(self.client_weights, data)
        result = train(
            problems,
            method,
            data.n_models,
            client_weights=shares,
            max_rounds=self.max_rounds,
            tol=self.tol,
            n_threads=self.n_threads,
            verbose=self.verbose,
            stacklevel=2,
            advice=scale_advice(data),
        )
        self._set_result(result, data.classes, data.client_labels)
        if self._is_useful(data, result, shares):  # one remedy, not two that contradict each other
            self._warn_if_degenerate(data, flip_share=0.0, has_radius=False, stacklevel=2)
        return self

    def _method(self) -> Any:
        check_choice(self.algorithm, "algorithm", _ALGORITHMS)
        rate = check_positive(self.learning_rate, "learning_rate")
        if self.algorithm == "fedsgd":
            return FedSGD(rate)
        drawn: dict[str, Any] = {
            "batch_fraction": check_positive(self.batch_fraction, "batch_fraction"),
            "random_state": _seed(self.random_state),
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

    def _is_useful(self, data: TrainingData, result: Result, shares: Array) -> bool:
        """Steps that are too long for the features leave a model worse than none: a warning."""
        loss = float(mean_hinge(data, result.newest.reshape(data.n_models, -1), shares).max())
        if loss < 1.0:
            return True
        remedy = scale_advice(data) or "try a smaller learning_rate or more rounds"
        warnings.warn(
            f"{self.algorithm}: after {result.n_rounds} rounds the mean hinge loss is {loss:.2g}, "
            f"no better than that of the model 0, with a certified relative gap of "
            f"{result.gap:.1e}; {remedy}",
            ConvergenceWarning,
            stacklevel=3,
        )
        return False

    def _set_result(
        self, result: Result, classes: npt.NDArray[Any], client_labels: npt.NDArray[Any]
    ) -> None:
        models = standings(result)
        self._set_models([one.model for one in models], classes)
        self.best_coef_, self.best_intercept_ = self.coef_, self.intercept_
        self._set_models(list(result.newest.reshape(len(models), -1)), classes)
        self._set_certificates([certified(one) for one in models])
        own = np.array([one.risks for one in models])
        self.objective_per_client_ = {
            label: float(own[0, g]) if len(models) == 1 else own[:, g].copy()
            for g, label in enumerate(client_labels.tolist())
        }
        self._set_rounds(result, client_labels)


def _seed(random_state: Any) -> int:
    """A whole number, as messages carry it."""
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(_MAX_SEED))
