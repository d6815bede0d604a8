"""One client's data, checked once: what its answers are computed from. It never leaves the client.

A model travels as one vector: the weights of the features and, with ``fit_intercept``, the
intercept last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fdrsvm.core.arrays import (
    Array,
    check_count,
    check_masses,
    check_matrix,
    check_non_negative,
)
from fdrsvm.core.losses import LOSSES, Hinge, MarginLoss
from fdrsvm.core.vectors import Norm
from fdrsvm.data.training_data import auto_radius
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.federated.messages import ClientProfile
from fdrsvm.risk.ball import Support, WorstCase
from fdrsvm.risk.blurred_cuts import blurred_cut
from fdrsvm.risk.worst_case import Cut, RiskOracle
from fdrsvm.solvers import PreparedClient

ROWS_PER_ENTRY = 2  # of a model; with fewer a client keeps its second moments to itself


@dataclass(frozen=True, eq=False)
class ClientProblem:
    """A client's samples and its ball.

    Attributes
    ----------
    profile : ClientProfile
        What the server may know.
    risk : RiskOracle
        The worst case that training follows.
    exact : RiskOracle
        The worst case that is certified: ``risk`` itself but for ``worst_case="paper"``.
    width : int
        Length of a model.
    is_hinge : bool
        Whether the loss is: then the client has a model of its own to start from, box or not.
    has_solver : bool
        Whether the client solvers apply: the exact hinge risk without a support. They know nothing
        of groups: where there are any they look at a dearer problem, but what they find proves as
        valid a cut, [grouped-norm].
    blur : int
        In cuts that are sent, this many rows near the margin count by a fraction.
    resolution : float
        Risks are sent rounded up to a multiple of it and cuts' constants down, [resolution]; 0 is
        exact.
    gives_moments : bool or None
        Whether it gives its second moments to a method that asks for them, [moments]; None is if no
        row stands alone in them, [lone-rows].
    """

    profile: ClientProfile
    risk: RiskOracle
    exact: RiskOracle
    width: int
    is_hinge: bool
    has_solver: bool
    blur: int
    resolution: float
    gives_moments: bool | None
    _solver: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without the solver's problem, which is made again when it is needed."""
        return {**vars(self), "_solver": {}}

    def penalised(self, rho: float, tau: float = 0.0) -> PreparedClient:
        """Ready for the solvers; on a box, or with groups, it is the problem without these.

        The last one is kept: rounds often repeat its penalties, and others share its rows.
        """
        if self._solver.get("penalties") != (rho, tau):
            client = self._solver.get("client")
            if client is None:
                exact, fit_intercept = self.exact, self.profile.fit_intercept
                # Scaled to sum 1 again, which moves last bits, as in every model trained so far.
                mass = check_masses(exact.mass, exact.mass.size)
                client = PreparedClient.within(
                    exact.ball, exact.X, exact.y, mass, fit_intercept=fit_intercept
                )
            self._solver["client"] = client.with_penalties(rho, tau)
            self._solver["penalties"] = (rho, tau)
        prepared: PreparedClient = self._solver["client"]
        return prepared

    def split(self, model: Array) -> tuple[Array, float]:
        """Weights and intercept of a model."""
        if self.profile.fit_intercept:
            return np.ascontiguousarray(model[:-1]), float(model[-1])
        return model, 0.0

    def joined(self, w: Array, intercept: float) -> Array:
        """A model from weights and intercept."""
        return np.append(w, intercept) if self.profile.fit_intercept else w

    def risk_of(self, model: Array) -> float:
        """The certified worst-case risk of a model."""
        return self.exact.value(*self.split(model))

    def cut_at(self, model: Array) -> tuple[float, Cut]:
        """The certified risk of a model, and the cut of the risk that training follows."""
        followed, cut = self.risk.cut(*self.split(model))
        if self.blur > 0:
            cut = blurred_cut(self.risk, *self.split(model), self.blur)
        if not self.profile.fit_intercept:
            cut = cut._replace(slope=cut.slope[:-1])
        value = followed.value if self.risk is self.exact else self.risk_of(model)
        return value, cut


def make_client(
    client_id: str,
    X: Any,
    y: Any,
    *,
    epsilon: float | str = "auto",
    kappa: float = 1.0,
    norm: Norm = "linf",
    support: Support = None,
    worst_case: WorstCase = "exact",
    loss: str | MarginLoss = "hinge",
    sample_weight: Any = None,
    fit_intercept: bool = False,
    blur: int = 0,
    resolution: float = 0.0,
    groups: Any = None,
    moments: bool | None = None,
) -> ClientProblem:
    """A client from its data, checked; arguments as in :func:`fdrsvm.worst_case_risk`.

    ``epsilon="auto"`` is the paper's 1/(10 N), [practical]. With ``blur`` at 1 or more the
    cuts that it sends do not show which single rows are active, [blurred-cut]; they stay valid, and
    a little less tight. For the exact hinge risk without a support. With a ``resolution`` above 0
    it sends risks rounded up to a multiple of that and constants of cuts rounded down, for every
    loss and support: still valid, and the certified gap pays for it, at most twice the resolution.
    ``groups`` are sizes of groups of neighbouring features, such as the ramps of one sensor: within
    one, moves add up, and of its weights only the largest has a price, [grouped-norm].

    ``moments`` says whether the client gives its second moments to a method that asks for them,
    [moments]; otherwise it answers with zeros. If not given, it does with two rows or more for each
    entry of a model, of which none stands alone, neither blurred nor rounded.
    """
    if not isinstance(client_id, str) or not client_id:
        raise InvalidInputError("client_id", "must be a non-empty string", f"it is {client_id!r}")
    if isinstance(epsilon, str):
        if epsilon != "auto":
            raise InvalidInputError("epsilon", "must be a number or 'auto'", f"it is {epsilon!r}")
        X = check_matrix(X)
        epsilon = auto_radius(X.shape[0])
    risk = RiskOracle(
        X,
        y,
        epsilon=epsilon,
        kappa=kappa,
        norm=norm,
        support=support,
        worst_case=worst_case,
        loss=loss,
        sample_weight=sample_weight,
        groups=groups,
    )
    ball = risk.ball
    if ball.loss not in LOSSES.values():
        # Every lower bound starts from 0, so a loss that can fall below has no certificate.
        margins = np.concatenate([-np.logspace(8, -8, 65), [0.0], np.logspace(-8, 8, 65)])
        if not (ball.loss.value(margins) >= 0.0).all():
            raise UnsupportedError(
                "federated training needs a loss that is never negative; "
                f"{ball.loss.name!r} is, somewhere"
            )
    is_exact, is_hinge = ball.worst_case == "exact", type(ball.loss) is Hinge
    n_samples, n_features = risk.X.shape
    profile = ClientProfile(
        client_id=client_id,
        n_samples=n_samples,
        n_features=n_features,
        fit_intercept=bool(fit_intercept),
        norm=ball.norm,
        epsilon=ball.epsilon,
        floor=ball.epsilon * ball.loss.lipschitz if ball.box is None else 0.0,
        flips=ball.epsilon / ball.kappa,
        groups=ball.groups,
    )
    problem = ClientProblem(
        profile=profile,
        risk=risk,
        exact=risk if is_exact else risk.with_ball(replace(ball, worst_case="exact")),
        width=n_features + int(profile.fit_intercept),
        is_hinge=is_hinge,
        has_solver=is_hinge and is_exact and ball.box is None,
        blur=check_count(blur, "blur", least=0),
        resolution=check_non_negative(resolution, "resolution"),
        gives_moments=moments is True,
    )
    if moments is None:
        # Exact sums would undo what a blur or a grid is for, and of few rows they say too much.
        is_plain = problem.blur == 0 and problem.resolution == 0.0
        is_many = n_samples >= ROWS_PER_ENTRY * problem.width
        problem = replace(problem, gives_moments=None if is_plain and is_many else False)
    if problem.blur > 0 and not problem.has_solver:
        raise UnsupportedError(
            "blur: needs the exact hinge risk without a support; use blur=0, or loss='hinge' and "
            "support=None"
        )
    return problem


def evaluate(problem: ClientProblem, points: Array) -> dict[str, Array]:
    """Certified risk and cut at each of ``points`` (rows): what every certificate is made of."""
    points = np.ascontiguousarray(points)
    # Cuts that touch the certified risk come from one call. Whatever else may have been asked for
    # takes the long way, which says what is wrong with it.
    is_plain = points.dtype == np.float64 and points.shape[1:] == (problem.width,)
    if is_plain and problem.blur == 0 and problem.risk is problem.exact:
        touching = problem.exact.cuts(points)
        if touching is not None:
            return {
                "risks": touching.risks,
                "constants": touching.constants,
                "slopes": touching.slopes,
                "norm_weights": touching.norm_weights,
            }
    risks, cuts = np.empty(len(points)), []
    for k, point in enumerate(points):
        risks[k], cut = problem.cut_at(point)
        cuts.append(cut)
    return {"risks": risks, **stack_cuts(cuts, problem.width)}


def stack_cuts(cuts: Sequence[Cut], width: int) -> dict[str, Array]:
    """Cuts as the arrays of a message."""
    constants, norm_weights = np.empty(len(cuts)), np.empty(len(cuts))
    slopes = np.empty((len(cuts), width))
    for k, cut in enumerate(cuts):
        constants[k], slopes[k], norm_weights[k] = cut
    return {"constants": constants, "slopes": slopes, "norm_weights": norm_weights}
