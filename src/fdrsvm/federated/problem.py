"""One client's data, checked once: what its answers are computed from. It never leaves the client.

A model travels as one vector: the weights of the features and, with ``fit_intercept``, the
intercept last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array, check_count, check_matrix, check_non_negative
from fdrsvm.core.losses import Hinge, MarginLoss
from fdrsvm.core.vectors import Norm
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.federated.messages import ClientProfile
from fdrsvm.risk.ball import Support
from fdrsvm.risk.blurred_cuts import blurred_cut
from fdrsvm.risk.cuts import Cut
from fdrsvm.risk.radius import practical_radius
from fdrsvm.risk.worst_case import RiskOracle, WorstCase
from fdrsvm.solvers import PreparedClient, prepare_client


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
    blur : int
        In cuts that are sent, this many rows near the margin count by a fraction.
    resolution : float
        Risks are sent rounded up to a multiple of it and cuts' constants down, [resolution]; 0 is
        exact.
    """

    profile: ClientProfile
    risk: RiskOracle
    exact: RiskOracle
    blur: int = 0
    resolution: float = 0.0
    _penalised: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without the solvers' problems, which are made again when they are needed."""
        kept = {name: each for name, each in vars(self).items() if name != "prepared"}
        return {**kept, "_penalised": {}}

    @cached_property
    def width(self) -> int:
        """Length of a model."""
        return self.profile.n_features + int(self.profile.fit_intercept)

    @cached_property
    def can_start(self) -> bool:
        """Whether the client has a model of its own to start from: the hinge's, box or not."""
        return type(self.exact.loss) is Hinge

    @cached_property
    def has_solver(self) -> bool:
        """Whether the client solvers apply: the exact hinge risk without a support."""
        return self.can_start and self.risk is self.exact and self.risk.ball.box is None

    @cached_property
    def sends_touching_cuts(self) -> bool:
        """Whether cuts leave as they touch the risk that is certified."""
        return self.risk is self.exact and self.blur == 0

    @cached_property
    def prepared(self) -> PreparedClient:
        """Ready for the solvers, at rho = 1; on a box it is the problem without that support."""
        ball = self.exact.ball
        return prepare_client(
            self.exact.X,
            self.exact.y,
            rho=1.0,
            epsilon=ball.epsilon,
            kappa=ball.kappa,
            norm=ball.norm,
            sample_weight=self.exact.mass,
            fit_intercept=self.profile.fit_intercept,
        )

    def penalised(self, rho: float, tau: float = 0.0) -> PreparedClient:
        """``prepared`` with these penalties; the last one is kept, for rounds that repeat it."""
        if self._penalised.get("at") != (rho, tau):
            self._penalised["client"] = self.prepared.with_penalties(rho, tau)
            self._penalised["at"] = (rho, tau)
        client: PreparedClient = self._penalised["client"]
        return client

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
) -> ClientProblem:
    """A client from its data, checked; arguments as in :func:`fdrsvm.worst_case_risk`.

    ``epsilon="auto"`` is the paper's 1/(10 N), [practical]. With ``blur`` at 1 or more the
    cuts that it sends do not show which single rows are active, [blurred-cut]; they stay valid, and
    a little less tight. For the exact hinge risk without a support. With a ``resolution`` above 0
    it sends risks rounded up to a multiple of that and constants of cuts rounded down, for every
    loss and support: still valid, and the certified gap pays for it, at most twice the resolution.
    """
    if not isinstance(client_id, str) or not client_id:
        raise InvalidInputError("client_id", "must be a non-empty string", f"it is {client_id!r}")
    if isinstance(epsilon, str):
        if epsilon != "auto":
            raise InvalidInputError("epsilon", "must be a number or 'auto'", f"it is {epsilon!r}")
        X = check_matrix(X)
        epsilon = float(practical_radius(X.shape[0]))
    ball: dict[str, Any] = {
        "epsilon": epsilon,
        "kappa": kappa,
        "norm": norm,
        "support": support,
        "sample_weight": sample_weight,
    }
    risk = RiskOracle(X, y, worst_case=worst_case, loss=loss, **ball)
    _check_never_negative(risk.loss if worst_case == "exact" else Hinge())
    exact = risk if worst_case == "exact" else RiskOracle(risk.X, risk.y, loss=loss, **ball)
    rows, n_features = risk.X.shape
    profile = ClientProfile(
        client_id=client_id,
        n_samples=rows,
        n_features=n_features,
        fit_intercept=bool(fit_intercept),
        norm=risk.ball.norm,
        epsilon=risk.ball.epsilon,
        floor=risk.ball.epsilon * risk.loss.lipschitz if risk.ball.box is None else 0.0,
        flips=risk.ball.epsilon / risk.ball.kappa,
    )
    problem = ClientProblem(
        profile,
        risk,
        exact,
        check_count(blur, "blur", least=0),
        check_non_negative(resolution, "resolution"),
    )
    if problem.blur > 0 and not problem.has_solver:
        raise UnsupportedError("blur: needs the exact hinge risk without a support")
    return problem


def _check_never_negative(loss: MarginLoss) -> None:
    """Every lower bound starts from 0, so a loss that can fall below has no certificate."""
    margins = np.concatenate([-np.logspace(8, -8, 65), [0.0], np.logspace(-8, 8, 65)])
    if not (loss.value(margins) >= 0.0).all():
        raise UnsupportedError(
            f"federated training needs a loss that is never negative; {loss.name!r} is, somewhere"
        )


def evaluate(problem: ClientProblem, points: Array) -> dict[str, Array]:
    """Certified risk and cut at each of ``points`` (rows): what every certificate is made of."""
    points = np.ascontiguousarray(points)
    # Whatever else may have been asked for takes the long way, which says what is wrong with it.
    is_plain = points.dtype == np.float64 and points.shape[1:] == (problem.width,)
    at_once = problem.exact.cuts(points) if problem.sends_touching_cuts and is_plain else None
    if at_once is not None:
        return {
            "risks": at_once.risks,
            "constants": at_once.constants,
            "slopes": at_once.slopes,
            "norm_weights": at_once.norm_weights,
        }
    found = [problem.cut_at(point) for point in points]
    return {
        "risks": np.array([risk for risk, _ in found]),
        **stack_cuts([cut for _, cut in found], problem.width),
    }


def stack_cuts(cuts: Sequence[Cut], width: int) -> dict[str, Array]:
    """Cuts as the arrays of a message."""
    slopes = cuts[0].slope[None] if len(cuts) == 1 else np.array([cut.slope for cut in cuts])
    return {
        "constants": np.array([cut.constant for cut in cuts]),
        "slopes": slopes.reshape(len(cuts), width),
        "norm_weights": np.array([cut.norm_weight for cut in cuts]),
    }
