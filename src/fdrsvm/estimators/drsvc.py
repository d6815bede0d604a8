"""DRSVC: the central distributionally robust support vector classifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from fdrsvm.core.arrays import Array, check_count, check_flag, check_positive
from fdrsvm.core.losses import Hinge, MarginLoss
from fdrsvm.core.vectors import Norm, dual_norm
from fdrsvm.data.training_data import TrainingData, radii, read_training_data
from fdrsvm.errors import ConvergenceWarning, UnsupportedError
from fdrsvm.estimators.advice import look_at_columns
from fdrsvm.estimators.base import LinearClassifier
from fdrsvm.federated.methods import Bundle
from fdrsvm.federated.methods.bundle import POINTS_ALONE
from fdrsvm.federated.rounds import Callback, Stop
from fdrsvm.federated.train import make_problems, train
from fdrsvm.risk.ball import Support
from fdrsvm.solvers import PreparedClient, Solution, Status, prepare_client

__all__ = ["DRSVC"]

_REACH = 10.0  # at epsilon = 0 a bound holds for models this many times as large: [repair]
# Smaller gaps are rounding, and so are smaller objectives: the model 0 has 1, and where the optimum
# is 0 no relative gap would ever close.
_FINEST = 1e-12
_MAX_SOLVES = 4


class DRSVC(LinearClassifier):
    """Distributionally robust SVM: one Wasserstein ball around all rows, with a certificate.

    Minimises the worst-case risk: the largest expected loss over all distributions within transport
    cost epsilon of the rows. It is what :class:`FDRSVC` is with one client, and solved directly.
    Several classes are trained one-vs-rest, each with its own certificate.

    Parameters
    ----------
    epsilon : float or "auto"
        Radius; "auto" is 1/(10 N), where N is the number of rows, or the sum of their weights.
    kappa : float
        Price of flipping a label, above 0; ``inf`` trusts the labels.
    features, norm, support, fit_intercept, outside, random_state
        As for :class:`FDRSVC`.
    loss : {"hinge", "logistic", "smooth_hinge"} or MarginLoss
        Losses other than the hinge need ``support=None``.
    tol : float
        Stop at this certified relative gap.
    max_iter : int
        Steps of the bundle method at most, which solves what has a support or another loss.
        Otherwise there are Newton steps, about thirty of them, and no limit to set.
    class_weight : None, "balanced" or mapping
        Multiplies the sample weights; "balanced" is n / (n_classes n_class).
    verbose : int
        Above 0 prints one line per step of the bundle method.
    callbacks : sequence of callables
        As for :class:`FDRSVC`, after each step of the bundle method.

    Attributes
    ----------
    coef_, intercept_, feature_map_, classes_, objective_, lower_bound_, gap_, bound_radius_, \
stop_reason_, n_clipped_, n_features_in_, feature_names_in_
        As for :class:`FDRSVC`.
    n_iter_ : int
        Newton steps, or steps of the bundle method; of the class that took most.
    history_ : tuple of RoundRecord
        One per step of the bundle method; else empty.

    Examples
    --------
    >>> from fdrsvm.estimators import DRSVC
    >>> X, y = [[0.1, 0.9], [0.2, 0.7], [0.8, 0.3], [0.9, 0.2]], [0, 0, 1, 1]
    >>> model = DRSVC(epsilon=0.05, kappa=0.5).fit(X, y)
    >>> model.predict([[0.7, 0.3]]).tolist()
    [1]
    """

    knows_clients: ClassVar[bool] = False

    def __init__(
        self,
        *,
        features: Any = "linear",
        epsilon: float | str = "auto",
        kappa: float = 1.0,
        norm: Norm = "linf",
        support: Support = None,
        loss: str | MarginLoss = "hinge",
        tol: float = 1e-4,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        class_weight: Any = None,
        outside: str = "refuse",
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Train on all rows.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`FDRSVC.fit`.

        Returns
        -------
        DRSVC
            This object.

        Warns
        -----
        ConvergenceWarning
            If the certified gap is above ``tol``.
        DegenerateModelWarning
            As from :meth:`FDRSVC.fit`.
        """
        check_positive(self.tol, "tol")
        check_count(self.max_iter, "max_iter")
        is_hinge = self.loss == "hinge" or type(self.loss) is Hinge
        if not is_hinge and self.support is not None:
            raise UnsupportedError("a support is possible with loss='hinge' only; use support=None")
        data = read_training_data(
            self,
            X,
            y,
            clients=None,
            sample_weight=sample_weight,
            class_weight=self.class_weight,
            support=self.support,
            outside=self.outside,
        )
        names = getattr(self, "feature_names_in_", None)
        columns = look_at_columns(data.clients, names)
        self.feature_map_ = self._features(data)
        features = self.feature_map_
        # The direct solver knows no groups of features.
        has_groups = features is not None and features.ball(0.0, 1.0, self.norm, None)["groups"]
        if is_hinge and self.support is None and not has_groups:
            self._solve(data)
        else:
            self._run(data, columns.size)
        self._set_positive(data)
        self._warn_if_degenerate(data, columns, stacklevel=2)
        return self

    def _balls(self, data: TrainingData) -> tuple[list[float], list[float], dict[str, Any]]:
        """Radius and label price, in lists as of one client, and the rest of the ball."""
        return (
            radii(self.epsilon, "epsilon", data.names, data.totals),
            [check_positive(self.kappa, "kappa", or_infinite=True)],
            {
                "norm": self.norm,
                "fit_intercept": check_flag(self.fit_intercept, "fit_intercept"),
            },
        )

    def _solve(self, data: TrainingData) -> None:
        """The hinge without a support, one class after the other."""
        (rows,), ((epsilon,), (kappa,), ball) = data.clients, self._balls(data)
        X, ball = self._mapped(rows.X), {**ball, "epsilon": epsilon, "kappa": kappa}
        if self.feature_map_ is not None:
            mapped = self.feature_map_.ball(epsilon, kappa, self.norm, None)
            ball |= {name: mapped[name] for name in ("epsilon", "kappa", "norm")}
        self.__dict__.pop("n_clipped_", None)  # of an earlier fit
        self.classes_, self.history_, self.stop_reason_ = data.classes, (), Stop.TOL.value
        self.threshold_ = 0.0
        solutions, proved = [], []
        for signs in rows.signs:
            client = prepare_client(
                X, signs, rho=1.0, sample_weight=rows.weights, **ball
            ).with_penalties(0.0)
            solution = _solve_to(client, self.tol)
            solutions.append(solution)
            proved.append(_certificate_of(client, solution, epsilon, ball["norm"]))
        self.coef_ = np.array([solution.w for solution in solutions])
        self.intercept_ = np.array([float(solution.intercept) for solution in solutions])
        self._set_certificates(proved)
        self.n_iter_ = max(1, *(solution.n_iter for solution in solutions))
        for solution, (*_, gap, _radius) in zip(solutions, proved, strict=True):
            if gap > self.tol:
                status = Status.STALLED if solution.status is Status.SOLVED else solution.status
                self.stop_reason_ = status.value
                warnings.warn(
                    f"certified relative gap {gap:.1e}, above tol = {self.tol:g}: {status.value}",
                    ConvergenceWarning,
                    stacklevel=3,
                )

    def _run(self, data: TrainingData, advice: str) -> None:
        """What the direct solver is not for: the bundle method with one client."""
        epsilons, kappas, ball = self._balls(data)
        ball |= {"support": self.support, "loss": self.loss}
        result = train(
            make_problems(data.clients, epsilons, kappas, features=self.feature_map_, **ball),
            Bundle(points_per_round=2 if self.feature_map_ is None else POINTS_ALONE),
            max_rounds=self.max_iter,
            tol=self.tol,
            callbacks=self.callbacks,
            verbose=self.verbose,
            advice=advice,
            max_rounds_name="max_iter",
            stacklevel=3,
        )
        self._set_result(result, data.classes, n_clipped=data.n_clipped)


def _solve_to(client: PreparedClient, tol: float) -> Solution:
    """To a gap of tol times the objective: the solver's own rule is tol times max(1, objective)."""
    start, goal = None, tol
    origin: Array = np.zeros(client.kernel.n_features)
    for _ in range(_MAX_SOLVES):
        solution = client.solve_quietly(origin, 0.0, start, goal)
        goal = max(0.5 * tol * solution.objective, _FINEST)
        if solution.status is not Status.SOLVED or solution.gap <= 2.0 * goal:
            break
        start = solution.warm_start
    return solution


def _certificate_of(
    client: PreparedClient, solution: Solution, epsilon: float, norm: Norm
) -> tuple[float, ...]:
    """Objective, lower bound, relative gap, and the radius within which the bound holds."""
    objective = solution.objective
    bound = max(objective - solution.gap, 0.0)
    radius = np.inf
    if epsilon == 0.0:
        size = dual_norm(solution.w, norm)
        radius = _REACH * max(size, 1.0 / client.kernel.feature_scale)
    gap = (objective - bound) / objective if objective > _FINEST else 0.0
    return objective, bound, gap, radius
