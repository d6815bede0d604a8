"""FDRSVC: the federated, distributionally robust support vector classifier."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import check_choice, check_flag, check_non_negative, check_positive
from fdrsvm.core.losses import Hinge, MarginLoss
from fdrsvm.core.vectors import Norm
from fdrsvm.data.training_data import (
    TrainingData,
    client_shares,
    per_client,
    radii,
    read_training_data,
)
from fdrsvm.errors import UnsupportedError
from fdrsvm.estimators.base import LinearClassifier, certified
from fdrsvm.estimators.degenerate import flip_share
from fdrsvm.estimators.scale_advice import scale_advice
from fdrsvm.federated.methods import ADMM, ADMMSC, Bundle, Subgradient
from fdrsvm.federated.methods.subgradient import StepDecay
from fdrsvm.federated.rounds import Result
from fdrsvm.federated.train import make_problems, standings, train
from fdrsvm.risk.ball import WORST_CASES, Support, WorstCase

__all__ = ["FDRSVC"]

_ALGORITHMS = ("bundle", "admm", "admm-sc", "subgradient")


class FDRSVC(LinearClassifier):
    """Federated distributionally robust SVM: the mixture of Wasserstein balls, with a certificate.

    Minimises the weighted sum over the clients of each client's worst-case risk: the largest
    expected loss over all distributions within transport cost epsilon_g of its rows. Clients
    exchange models, risks and cuts with the server and never rows; here all of them live in one
    process, which ``fit(X, y, clients=...)`` splits the rows into.

    Several classes are trained one-vs-rest, in the same rounds, each with its own certificate.

    Parameters
    ----------
    algorithm : {"bundle", "admm", "admm-sc", "subgradient"}
        "bundle" closes the certified gap in the fewest rounds. The others are the paper's: the two
        ADMMs for ``support=None`` and the hinge only. The model is the best of all rounds.
    epsilon : float, "auto", mapping or array
        Radius: of all clients, by client label, or one per client by sorted labels.
        "auto" is the paper's 1/(10 N_g), where N_g is the client's number of rows, or the sum of
        their sample weights.
    kappa : float, mapping or array
        Price of flipping a label, above 0; ``inf`` trusts the labels.
    norm : {"l1", "l2", "linf"}
        Transport norm on features.
    support : None, "unit-box" or (low, high)
        Where features can be; bounds are numbers or one per feature. With it a sparse X is made
        dense.
    rho : float
        ADMM's penalty.
    tau : float, optional
        Weight of ||w||^2 in ADMM's local problems. By default none for "admm", and for "admm-sc"
        the smallest for which it is proved to converge.
    step_size, step_decay : float, {"1/sqrt(t)", "1/t"}
        The subgradient method's step.
    worst_case : {"exact", "paper"}
        "paper" follows the worst case of the paper's linear program; needs "subgradient" and a
        support. Objective and certificate are of the exact worst case either way.
    loss : {"hinge", "logistic", "smooth_hinge"} or MarginLoss
        Losses other than the hinge need "bundle" or "subgradient", and no support.
    max_rounds : int
        Communication rounds at most.
    tol : float
        Stop at this certified relative gap; 0 runs all rounds.
    client_weights : "equal", "samples", mapping or array
        Weights of the clients' risks. "samples" counts rows, or sums their sample weights.
    fit_intercept : bool
        Whether the model has an intercept; the paper's has none. It is neither transported nor
        penalised.
    class_weight : None, "balanced" or mapping
        Multiplies the sample weights. "balanced" is n / (n_classes n_class) over all clients' rows.
        Weights count within a client only: a client with one class is not changed by them.
    outside : {"refuse", "clip"}
        What to do about training values outside the support. ``predict`` takes any values.
    n_threads : int
        In how many threads clients answer.
    secure_aggregation : bool
        Train on masked sums over the clients, as a server does that sees no client's answer: at
        least three clients, and the bundle's cuts are summed, which takes more rounds. The risks
        of the single clients are then not known.
    blur : int
        How many rows near the margin count by a fraction in the cuts that a client sends: they do
        not show which single rows are active, also in sums, if the clients together blur at least
        n_features + 2 (one more with an intercept). The price is a gap that closes less far; see
        docs/privacy.md. For the exact hinge risk without a support.
    resolution : float
        Clients send risks rounded up to a multiple of this and constants of cuts rounded down:
        exact ones give rows away, past a blur and out of sums. Objective and bound stay true; with
        the same models and cuts ``objective_ - lower_bound_`` grows by at most 2 resolution, so
        take less than ``tol * objective_ / 2`` where ``tol`` is to be reached. 0 sends exact
        numbers. With every loss, support and algorithm; see docs/privacy.md.
    random_state : ignored
        Nothing is random here; for the sake of code that sets it.
    verbose : int
        Above 0 prints one line per round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray
        The labels, sorted.
    objective_, lower_bound_, gap_ : float, or ndarray of shape (n_classes,)
        Certified worst-case risk of the model, a bound that no model can go below, and the relative
        gap between them; one entry per class if there are more than two.
    bound_radius_ : float, or ndarray of shape (n_classes,)
        The bound holds for models with ||w||_* up to this: infinite unless nothing bounds w, as on
        a box or at epsilon = 0.
    worst_case_risk_per_client_ : dict
        By client label: its worst-case risk, or an array with one entry per class; nan with
        ``secure_aggregation``.
    n_iter_ : int
        Rounds used.
    stop_reason_ : str
        Why training stopped.
    history_ : tuple of RoundRecord
        One a round. With several classes, objective and bound are means and the gap is the largest.
    client_labels_ : ndarray
        The clients, in the order of all arrays over clients.
    n_clipped_ : int
        How many values were moved into the support; only with a support.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names.

    Examples
    --------
    >>> from fdrsvm.estimators import FDRSVC
    >>> X = [[0.1, 0.9], [0.2, 0.7], [0.8, 0.3], [0.9, 0.2]]
    >>> y, plants = ["healthy", "healthy", "worn", "worn"], ["north", "south", "north", "south"]
    >>> model = FDRSVC(epsilon=0.05, kappa=0.5).fit(X, y, clients=plants)
    >>> model.predict([[0.7, 0.3]]).tolist()
    ['worn']
    >>> round(model.objective_, 3), model.gap_ <= 1e-4
    (0.228, True)
    """

    _kept: ClassVar[tuple[str, ...]] = (*LinearClassifier._kept, "worst_case_risk_per_client")

    def __init__(
        self,
        algorithm: str = "bundle",
        *,
        epsilon: Any = "auto",
        kappa: Any = 1.0,
        norm: Norm = "linf",
        support: Support = None,
        rho: float = 1e-2,
        tau: float | None = None,
        step_size: float = 1.0,
        step_decay: StepDecay = "1/sqrt(t)",
        worst_case: WorstCase = "exact",
        loss: str | MarginLoss = "hinge",
        max_rounds: int = 200,
        tol: float = 1e-4,
        client_weights: Any = "equal",
        fit_intercept: bool = True,
        class_weight: Any = None,
        outside: str = "refuse",
        n_threads: int = 1,
        secure_aggregation: bool = False,
        blur: int = 0,
        resolution: float = 0.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.epsilon = epsilon
        self.kappa = kappa
        self.norm = norm
        self.support = support
        self.rho = rho
        self.tau = tau
        self.step_size = step_size
        self.step_decay = step_decay
        self.worst_case = worst_case
        self.loss = loss
        self.max_rounds = max_rounds
        self.tol = tol
        self.client_weights = client_weights
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.outside = outside
        self.n_threads = n_threads
        self.secure_aggregation = secure_aggregation
        self.blur = blur
        self.resolution = resolution
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
            Masses of the rows within their client. A row of weight 2 counts as two rows, one of
            weight 0 as none.

        Returns
        -------
        FDRSVC
            This object.

        Warns
        -----
        ConvergenceWarning
            If the certified gap is above ``tol`` after ``max_rounds``.
        DegenerateModelWarning
            If the model finds fewer than one in a hundred training rows of a class, or ignores all
            features (its score varies by at most 0.02 over the training rows); with a remedy.
        """
        self._fit(X, y, clients, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, clients: Any, sample_weight: Any) -> None:
        """Warnings name the line that called the caller."""
        self._check_options()
        data = read_training_data(
            self,
            X,
            y,
            clients=clients,
            sample_weight=sample_weight,
            class_weight=self.class_weight,
            support=self.support,
            outside=self.outside,
        )
        result = train(
            self._problems(data),
            self._method(),
            data.n_models,
            client_weights=client_shares(self.client_weights, data),
            max_rounds=self.max_rounds,
            tol=self.tol,
            n_threads=self.n_threads,
            verbose=self.verbose,
            stacklevel=3,
            secure_aggregation=check_flag(self.secure_aggregation, "secure_aggregation"),
            advice=scale_advice(data),
        )
        self._set_result(result, data.classes, data.client_labels, data.n_clipped)
        epsilons = radii(self.epsilon, "epsilon", data)
        kappas = per_client(self.kappa, "kappa", data, _check_kappa)
        self._warn_if_degenerate(
            data,
            flip_share=flip_share(epsilons, kappas),
            has_radius=max(epsilons) > 0.0,
            stacklevel=3,
        )

    def _problems(self, data: TrainingData) -> list[Any]:
        return make_problems(
            data,
            radii(self.epsilon, "epsilon", data),
            per_client(self.kappa, "kappa", data, _check_kappa),
            norm=self.norm,
            support=self.support,
            worst_case=self.worst_case,
            loss=self.loss,
            fit_intercept=check_flag(self.fit_intercept, "fit_intercept"),
            blur=self.blur,
            resolution=self.resolution,
        )

    def _method(self) -> Any:
        if self.algorithm == "bundle":
            return Bundle()
        if self.algorithm == "subgradient":
            return Subgradient(check_positive(self.step_size, "step_size"), self.step_decay)
        tau = None if self.tau is None else check_non_negative(self.tau, "tau")
        method = ADMM if self.algorithm == "admm" else ADMMSC
        return method(check_positive(self.rho, "rho"), tau)

    def _check_options(self) -> None:
        """What does not go together, before any work is done."""
        check_choice(self.algorithm, "algorithm", _ALGORITHMS)
        check_choice(self.worst_case, "worst_case", WORST_CASES)
        is_hinge = self.loss == "hinge" or type(self.loss) is Hinge
        if self.algorithm.startswith("admm") and not (is_hinge and self.support is None):
            raise UnsupportedError(
                f"algorithm={self.algorithm!r} solves the clients' problems for loss='hinge' and "
                "support=None only; use algorithm='bundle' or 'subgradient'"
            )
        if not is_hinge and self.support is not None:
            raise UnsupportedError("a support is possible with loss='hinge' only")
        if self.worst_case == "paper" and (self.algorithm != "subgradient" or self.support is None):
            raise UnsupportedError(
                "worst_case='paper' is what the paper's subgradient method follows on a box: it "
                "needs algorithm='subgradient' and a support"
            )

    def _set_result(
        self,
        result: Result,
        classes: npt.NDArray[Any],
        client_labels: npt.NDArray[Any],
        n_clipped: int = 0,
    ) -> None:
        models = standings(result)
        self._set_models([one.model for one in models], classes)
        self._set_certificates([certified(one) for one in models])
        risks = np.array([one.risks for one in models])
        if self.secure_aggregation:  # there is but the sum
            risks = np.full((len(models), len(client_labels)), np.nan)
        self.worst_case_risk_per_client_ = {
            label: float(risks[0, g]) if len(models) == 1 else risks[:, g].copy()
            for g, label in enumerate(client_labels.tolist())
        }
        self._set_rounds(result, client_labels)
        if self.support is not None:
            self.n_clipped_ = n_clipped
        elif hasattr(self, "n_clipped_"):
            del self.n_clipped_  # of an earlier fit


def _check_kappa(value: Any, argument: str) -> float:
    return check_positive(value, argument, or_infinite=True)
