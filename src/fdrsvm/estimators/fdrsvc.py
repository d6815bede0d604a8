"""FDRSVC: the federated, distributionally robust support vector classifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fdrsvm.core.arrays import check_choice, check_flag, check_non_negative, check_positive
from fdrsvm.core.losses import Hinge, MarginLoss
from fdrsvm.core.texts import listed
from fdrsvm.core.vectors import Norm
from fdrsvm.data.training_data import TrainingData, per_client, radii
from fdrsvm.decision.histograms import Aim
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.estimators.base import FederatedClassifier, LinearClassifier
from fdrsvm.federated.methods import ADMM, ADMMSC, Bundle, Subgradient
from fdrsvm.federated.methods.bundle import METRICS, POINTS_ALONE, MetricName
from fdrsvm.federated.methods.subgradient import StepDecay
from fdrsvm.federated.rounds import Callback
from fdrsvm.risk.ball import WORST_CASES, Support, WorstCase
from fdrsvm.risk.feature_maps import AdditiveMap, read_map

__all__ = ["FDRSVC"]

_ALGORITHMS = ("bundle", "admm", "admm-sc", "subgradient")


class FDRSVC(FederatedClassifier):
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
    features : {"linear", "additive", "additive-pairs", "fourier"}, AdditiveMap or FourierMap
        What the model is linear in: the columns themselves; one curve per column
        (:class:`AdditiveMap`), with a surface for each pair of them; or waves across all of them
        (:class:`FourierMap`). For columns scaled to 0 to 1, or with limits given to the map, or a
        support, which are its limits then. ``epsilon``, ``kappa``, ``norm`` and ``support`` stay in
        units of X; the certified worst case is then an upper bound on it, see docs/maps.md.
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
        In the cuts that a client sends, this many rows near the margin count by a fraction, so that
        cuts do not show which single rows are active. In sums too, if the clients together blur at
        least n_features + 2 rows (one more with an intercept). The price is a gap that closes less
        far; see docs/privacy.md. For the exact hinge risk without a support.
    resolution : float
        Clients send risks rounded up to a multiple of this and constants of cuts rounded down:
        exact ones give rows away, past a blur and out of sums. Objective and bound stay true; with
        the same models and cuts ``objective_ - lower_bound_`` grows by at most 2 resolution, so
        take less than ``tol * objective_ / 2`` where ``tol`` is to be reached. 0 sends exact
        numbers. With every loss, support and algorithm; see docs/privacy.md.
    metric : {"auto", "none", "second-moments"}
        Of the bundle: "second-moments" makes fewer rounds of the clients' second moments, the sum
        of x x' over a client's rows, which each gives once. "auto" does so from 100 features on,
        and with ``secure_aggregation``; there only clients with two rows for each feature, of which
        none stands alone, give them, as plants do over Flower. Not with a blur or a resolution,
        which exact sums would undo. Up to 1000 features.
    points_per_round : int, optional
        Of the bundle: at how many models, up to 6, clients are asked in a round. More are fewer
        rounds and more work in each: 4 or 6 where an answer takes seconds to travel. By default 2,
        and 6 where a map bends the model of a single client: one client's cuts are few for that
        many weights.
    personal : {None, "retune", "prox", "auto"}
        Whether each client gets a model of its own in the end, made at the client, without a
        message. "retune" scales the shared score and sets its intercept for the least worst-case
        risk there; "prox" is the model of least risk near the shared one, in a distance whose
        weight the client's folds choose; "auto" has the simplest of the shared one, these two, and
        one of its own rows alone, of those within one standard error of the best on its folds. A
        client with rows of one class, or too few for folds, keeps the shared model. Models with
        another threshold than 0 have another for each client. See docs/joining.md.
    random_state : ignored
        Nothing is random here; for the sake of code that sets it.
    verbose : int
        Above 0 prints one line per round.
    callbacks : sequence of callables
        Each is called after every round with its :class:`RoundRecord` and the newest model (weights
        and intercept, all classes in a row); one that returns True ends the training. A model file
        does not keep them.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        With a map one weight for each of its outputs; names and number of features stay those of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    feature_map_ : Features or None
        What the model is linear in, if not the columns of X: ``feature_map_.apply(X)``.
    classes_ : ndarray
        The labels, sorted.
    objective_, lower_bound_, gap_ : float, or ndarray of shape (n_classes,)
        Certified worst-case risk of the model, a bound that no model can go below, and the relative
        gap between them; one entry per class if there are more than two. With a map: the worst case
        of the sensors is at most ``objective_``, and the bound is of what models of this map can
        prove.
    bound_radius_ : float, or ndarray of shape (n_classes,)
        The bound holds for models with ||w||_* up to this: infinite unless nothing bounds w, as on
        a box or at epsilon = 0.
    worst_case_risk_per_client_ : dict
        By client label: its worst-case risk, or an array with one entry per class; nan with
        ``secure_aggregation``.
    personal_ : dict of Personal
        By client label, with ``personal``: what it chose and why, its worst-case risk before and
        after with what no model goes below, and what its folds said. ``for_client(label)`` is the
        model. A model file does not keep them: each client's model has its own.
    n_iter_ : int
        Rounds used.
    stop_reason_ : str
        Why training stopped.
    history_ : tuple of RoundRecord
        One per round. With several classes, objective and bound are means, the gap the largest.
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
    _per_client: ClassVar[str] = "worst_case_risk_per_client_"

    def __init__(
        self,
        algorithm: str = "bundle",
        *,
        features: Any = "linear",
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
        metric: MetricName = "auto",
        points_per_round: int | None = None,
        personal: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self._store(locals())

    def for_client(self, client: Any) -> FDRSVC:
        """A client's own model, as ``personal`` made it: fitted, to be saved and exported.

        Its certificate is the client's: ``objective_`` is its worst-case risk at the client, and
        ``lower_bound_`` what no model goes below there.

        Parameters
        ----------
        client : label
            As in ``clients`` of ``fit``.
        """
        check_is_fitted(self)
        known = getattr(self, "personal_", None)
        if known is None:
            raise NotFittedError(
                "there is a model of each client after a fit in this process with "
                "personal='retune', 'prox' or 'auto'"
            )
        if client not in known:
            rule = f"must be one of the clients of training, {listed(map(repr, known), 12)}"
            raise InvalidInputError("client", rule, f"it is {client!r}")
        own = FDRSVC._of_model(known[client].model, f"the model of {client!r}")
        if hasattr(self, "pos_label_"):  # a search may set another one in the end
            own.pos_label_ = self.pos_label_
        return own

    def _set_personal(self, data: TrainingData, aim: Aim | None) -> None:
        # It needs the search, which needs this class.
        from fdrsvm.estimators.personal import personalise, rebalanced

        epsilons, kappas, same = self._balls(data)
        # Nothing leaves a client here, so nothing is blurred or rounded.
        ball = {**same, "worst_case": "exact", "blur": 0, "resolution": 0.0, "moments": False}
        shared, is_balanced = self._linear_model(), isinstance(self.class_weight, str)
        self.personal_ = {}
        for client, epsilon, kappa in zip(data.clients, epsilons, kappas, strict=True):
            own, weights = client, data.class_weights
            if is_balanced:
                own, weights = rebalanced(client, weights)
            self.personal_[client.name] = personalise(
                shared,
                own,
                how=str(self.personal),
                epsilon=epsilon,
                kappa=kappa,
                ball=ball,
                class_weights=weights,
                aim=aim,
            )

    def _balls(self, data: TrainingData) -> tuple[list[float], list[float], dict[str, Any]]:
        kappa_above_0 = partial(check_positive, or_infinite=True)
        is_asked = self.metric == "second-moments"
        same = {
            "norm": self.norm,
            "support": self.support,
            "worst_case": self.worst_case,
            "loss": self.loss,
            "fit_intercept": check_flag(self.fit_intercept, "fit_intercept"),
            "blur": self.blur,
            "resolution": self.resolution,
            # By "auto" clients keep to the rule of plants, so that both have the same bits. Who
            # asks by name is in one process, where nothing leaves, blurred or rounded sums apart.
            "moments": True if is_asked and not (self.blur or self.resolution) else None,
        }
        return (
            radii(self.epsilon, "epsilon", data.names, data.totals),
            per_client(self.kappa, "kappa", data.names, kappa_above_0),
            same,
        )

    def _method(self, data: TrainingData | None = None) -> Any:
        if self.algorithm == "bundle":
            n_points = self.points_per_round
            if n_points is None:
                is_alone = data is not None and len(data.clients) == 1
                n_points = POINTS_ALONE if is_alone and read_map(self.features) else 2
            return Bundle(metric=self.metric, points_per_round=n_points)
        if self.algorithm == "subgradient":
            return Subgradient(check_positive(self.step_size, "step_size"), self.step_decay)
        tau = None if self.tau is None else check_non_negative(self.tau, "tau")
        method = ADMM if self.algorithm == "admm" else ADMMSC
        return method(check_positive(self.rho, "rho"), tau)

    def _check_options(self) -> None:
        check_choice(self.algorithm, "algorithm", _ALGORITHMS)
        check_choice(self.worst_case, "worst_case", WORST_CASES)
        check_choice(self.metric, "metric", METRICS)
        is_hinge = self.loss == "hinge" or type(self.loss) is Hinge
        if self.personal is not None:
            from fdrsvm.estimators.personal import check_how

            self._plain_params()  # each client's model keeps them
            has_solver = is_hinge and self.support is None
            check_how(self.personal, fit_intercept=self.fit_intercept, has_solver=has_solver)
        if self.algorithm.startswith("admm") and not (is_hinge and self.support is None):
            raise UnsupportedError(
                f"algorithm={self.algorithm!r} solves the clients' problems for loss='hinge' and "
                "support=None only; use algorithm='bundle' or 'subgradient'"
            )
        has_curves = isinstance(read_map(self.features), AdditiveMap)
        if self.algorithm.startswith("admm") and has_curves and self.norm != "l1":
            raise UnsupportedError(
                f"algorithm={self.algorithm!r} cannot price a curve by its steepest piece, as "
                f"norm={self.norm!r} does; use algorithm='bundle' or 'subgradient', or norm='l1'"
            )
        if not is_hinge and self.support is not None:
            raise UnsupportedError("a support is possible with loss='hinge' only; use support=None")
        if self.worst_case == "paper" and (self.algorithm != "subgradient" or self.support is None):
            raise UnsupportedError(
                "worst_case='paper' is what the paper's subgradient method follows on a box: it "
                "needs algorithm='subgradient' and a support"
            )
