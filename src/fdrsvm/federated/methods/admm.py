"""ADMM and ADMM-SC, [admm]: clients solve, the server averages.

    client   mu_g <- mu_g + w_g - w                        (not in the first round, where mu_g = 1)
             w_g  <- argmin f_g(u) + (rho/2) ||u - (w - mu_g)||^2 + tau ||u||^2
             sends w_g + mu_g
    server   w <- sum_g alpha_g (w_g + mu_g)               (first w = 0)

All w_g are updated from the same w, so at tau = 0 this is the two-block consensus ADMM, which
converges for every rho > 0 and any number of clients. ADMM-SC is the paper's safeguard: tau > 0
makes the local problems strongly convex, at the price of another optimum, that of F + tau ||w||^2.

With relaxation r the w_g above is replaced by r w_g + (1 - r) w in both sums. An absent client's
last w_g + mu_g stays in the server's sum, nothing before its first; every fixed point is still
optimal. Whoever was absent is sent that sum back and goes on from it, so that the server always
knows mu_g, and w_g from the answer: that is what answers are held against, [limits].

Each answer also holds the risk at w and the cut that the client's dual solution proves, so the gap
to the optimum of F is certified every round; at tau > 0 it need not close.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fdrsvm.core.arrays import Array, check_finite, check_non_negative, check_positive
from fdrsvm.core.vectors import NORM_CODES, dot, length, weighted_sum
from fdrsvm.errors import ConvergenceWarning, InvalidInputError, UnsupportedError
from fdrsvm.federated.aggregation import check_trim, trimmed_mean
from fdrsvm.federated.certificate import Evidence, no_evidence
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.methods.method import (
    Algorithm,
    Progress,
    load_warm_start,
    one_cut,
    store_warm_start,
)
from fdrsvm.federated.problem import ClientProblem, stack_cuts
from fdrsvm.federated.screen import Faults, Screen, faults_of
from fdrsvm.native import screening as kernels
from fdrsvm.solvers.solution import Status

_IMBALANCE = 10.0  # between the residuals, before rho is changed ...
_RHO_STEP = 2.0  # ... by this factor: Boyd et al. 2011, section 3.4.1


@dataclass(frozen=True)
class Residuals:
    """How far from a fixed point, and below which size that counts as arrived: [residuals]."""

    primal: float = np.inf
    dual: float = np.inf
    primal_goal: float = 0.0
    dual_goal: float = 0.0


@dataclass(frozen=True)
class ADMMState:
    """Between two rounds."""

    w: Array
    vectors: Array  # w_g + mu_g, one row per client
    rhos: Array  # with which these were made; nan before a client's first answer
    duals: Array  # mu_g of the round to come, one row per client
    own: Array  # w_g of the last round, one row per client; nan where the answer was lost
    step: float  # ||w - previous w||
    rho: float
    tau: float
    residuals: Residuals
    evidence: Evidence


@dataclass(frozen=True)
class ADMM(Algorithm[ADMMState]):
    """Consensus ADMM.

    Parameters
    ----------
    rho : float
        Weight of the proximal term.
    tau : float
        Weight of ||w||^2 in the local problems.
    relaxation : float
        Between 0 and 2; 1 is plain ADMM, 1.5 to 1.8 is often faster.
    balance : bool
        Whether rho follows the ratio of the residuals.
    residual_tol : float
        Stop once both residuals are below their goals, [residuals], at this absolute and relative
        tolerance; 0 never does.
    solver_tol : float
        Certified relative gap of the local solves, below 1.
    trim : float
        Share of the clients left out at either end of the mean, entry by entry: [trimmed].
    """

    name: ClassVar[str] = "admm"
    state_type: ClassVar[type] = ADMMState
    needs_memory: ClassVar[bool] = True  # its duals
    rho: float = 1e-2
    tau: float | None = 0.0
    relaxation: float = 1.0
    balance: bool = False
    residual_tol: float = 0.0
    solver_tol: float = 1e-8
    trim: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self.rho, "rho")
        if self.tau is not None:
            check_non_negative(self.tau, "tau")
        check_non_negative(self.residual_tol, "residual_tol")
        if not check_positive(self.solver_tol, "solver_tol") < 1.0:
            raise InvalidInputError("solver_tol", "must be below 1", f"it is {self.solver_tol!r}")
        check_trim(self.trim)
        if not 0.0 < check_finite(self.relaxation, "relaxation") < 2.0:
            raise InvalidInputError(
                "relaxation", "must lie between 0 and 2", f"it is {self.relaxation!r}"
            )

    def start(self, federation: Federation) -> ADMMState:
        """From w = 0; the clients' mu_g = 1 is in ``vectors`` already."""
        return ADMMState(
            w=np.zeros(federation.width),
            vectors=np.ones((federation.n_clients, federation.width)),
            rhos=np.full(federation.n_clients, np.nan),
            duals=np.ones((federation.n_clients, federation.width)),
            own=np.zeros((federation.n_clients, federation.width)),
            step=np.inf,
            rho=self.rho,
            tau=self._tau(federation),
            residuals=Residuals(),
            evidence=no_evidence(federation),
        )

    def _tau(self, federation: Federation) -> float:
        return 0.0 if self.tau is None else self.tau

    def ask(self, federation: Federation, state: ADMMState, client: int) -> Values:
        """The model, and the penalties to use; after a loss also what to go on from."""
        asked = {
            "points": state.w[None],
            "rho": np.array(state.rho),
            "tau": np.array(state.tau),
        }
        if math.isnan(state.own[client, 0]):
            asked["dual"] = state.duals[client]
        return asked

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """One local solve; remembers w_g, mu_g and where to start the next solve."""
        if not problem.has_solver or problem.profile.groups is not None:
            raise UnsupportedError(
                f"{self.name} needs the exact hinge risk without a support or groups of features; "
                "use the bundle or the subgradient method"
            )
        w, rho = asked["points"][0], float(asked["rho"])
        apart, mu = np.zeros(problem.width), np.ones(problem.width)
        if memory:
            apart = memory["local"] - w
            # Duals are in units of 1/rho, and rho may have changed.
            mu = (memory["mu"] + memory["w"] - w) * (float(memory["rho"]) / rho)
        mu = asked.get("dual", mu)
        client = problem.penalised(rho, float(asked["tau"]))
        centre = problem.split(w - mu)
        solution = client.solve_quietly(*centre, load_warm_start(memory), self.solver_tol)
        if solution.status is not Status.SOLVED:
            raise TellableError(
                "local solve", f"must reach solver_tol = {self.solver_tol:g}", solution.status.value
            )
        local = problem.joined(solution.w, solution.intercept)
        relaxed = local
        if self.relaxation != 1.0:
            relaxed = self.relaxation * local + (1.0 - self.relaxation) * w
        answer = {
            "vector": relaxed + mu,
            "squares": np.array([dot(apart, apart), dot(local, local), dot(mu, mu)]),
            "risks": np.array([problem.risk_of(w)]),
            **stack_cuts([solution.cut], problem.width),
        }
        kept = {"w": relaxed, "local": local, "mu": mu, "rho": np.array(rho)}
        return {**kept, **store_warm_start(solution.warm_start)}, answer

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """A vector, three squares, a risk and a cut."""
        return {"vector": (federation.width,), "squares": (3,), **one_cut(federation)}

    def advance(self, federation: Federation, state: ADMMState, replies: Replies) -> ADMMState:
        """The weighted mean."""
        vectors = replies.rows("vector", state.vectors)
        rhos = np.where(replies.present, state.rho, state.rhos)
        has_answered = ~np.isnan(rhos)  # ever; the mean is theirs
        alphas, w = np.where(has_answered, federation.alphas, 0.0), state.w
        if has_answered.all():
            w = trimmed_mean(vectors, federation.alphas, self.trim)
        elif alphas.any():
            w = trimmed_mean(vectors, alphas / alphas.sum(), self.trim)
        own = vectors - state.duals  # w_g, from what the clients sent
        if self.relaxation != 1.0:
            own = (own - (1.0 - self.relaxation) * state.w) / self.relaxation
        own[~replies.present] = np.nan
        residuals = self._residuals(federation, state, replies)
        rho = state.rho
        if self.balance and residuals.primal < np.inf:
            if residuals.primal > _IMBALANCE * residuals.dual:
                rho = rho * _RHO_STEP
            elif residuals.dual > _IMBALANCE * residuals.primal:
                rho = rho / _RHO_STEP
        duals = vectors - w  # mu_g of the next round, in units of 1/rho
        if self.balance:  # who never answered is taken to have had this rho
            duals = duals * (np.where(np.isnan(rhos), rho, rhos) / rho)[:, None]
        return ADMMState(
            w=w,
            vectors=vectors,
            rhos=rhos,
            duals=duals,
            own=own,
            step=length(w - state.w),
            rho=rho,
            tau=state.tau,
            residuals=residuals,
            evidence=self.observed(federation, state, replies),
        )

    def _residuals(self, federation: Federation, state: ADMMState, replies: Replies) -> Residuals:
        """Of the round before: only then did clients see the w that theirs went into."""
        counted = federation.alphas > 0.0
        was_there = not np.isnan(state.own[counted]).any()
        if not (math.isfinite(state.step) and was_there and replies.present[counted].all()):
            return Residuals()
        squares = replies.rows("squares", np.zeros((federation.n_clients, 3)))
        apart, local, dual = np.sqrt(weighted_sum(federation.alphas, squares)).tolist()
        absolute = math.sqrt(federation.width) * self.residual_tol
        largest = max(local, length(state.w))
        return Residuals(
            primal=apart,
            dual=state.rho * state.step,
            primal_goal=absolute + self.residual_tol * largest,
            dual_goal=absolute + self.residual_tol * state.rho * dual,
        )

    def judge(
        self, federation: Federation, state: ADMMState, replies: Replies, screen: Screen
    ) -> Faults:
        """Risk at the model and cut against all rounds before, and the vector against the cut."""
        answers = replies.answers
        # The cut was made where the local solve ended, not at w, so it does not touch the risk.
        faults = screen.judge_round(federation, state.evidence, state.w, answers, touching=False)
        if screen.of_sums:
            return faults
        solve = kernels.Solve(
            w=state.w,
            rho=float(state.rho),
            tau=float(state.tau),
            relaxation=float(self.relaxation),
            gap=float(self.solver_tol),
            n_features=federation.n_features,
            norm=NORM_CODES[federation.norm],
        )
        findings = kernels.judge_solves(
            screen.bounds,
            federation.radii,
            solve,
            answers,
            replies.values,
            state.duals,
            state.own,
        )
        return {**faults_of(findings), **faults}

    def forget(self, federation: Federation, state: ADMMState, client: int) -> ADMMState:
        """Without its cuts, and without a say until its next answer."""
        rhos = state.rhos.copy()
        rhos[client] = np.nan
        evidence = state.evidence.without_client(federation, client)
        return replace(state, rhos=rhos, evidence=evidence)

    def progress(self, state: ADMMState) -> Progress:
        """Settled once both residuals are below their goals."""
        now = state.residuals
        arrived = now.primal <= now.primal_goal and now.dual <= now.dual_goal
        return Progress(
            state.w,
            state.evidence.certificate,
            {"primal": now.primal, "dual": now.dual, "rho": state.rho},
            pending=state.w,
            is_settled=self.residual_tol > 0.0 and arrived,
        )


@dataclass(frozen=True)
class ADMMSC(ADMM):
    """ADMM-SC: as ADMM, with strongly convex local problems.

    ``tau=None`` is the smallest that the paper's theorem allows, [smallest-tau]; a smaller one
    warns.
    """

    name: ClassVar[str] = "admm-sc"
    tau: float | None = None

    def _tau(self, federation: Federation) -> float:
        least = smallest_tau(self.rho, federation.alphas)
        if self.tau is None:
            return least
        if self.tau < least * (1.0 - 1e-12):
            warnings.warn(
                f"tau = {self.tau:g} is below {least:g}, the smallest for which ADMM-SC is proved "
                f"to converge at rho = {self.rho:g} with {federation.n_clients} clients",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self.tau


def smallest_tau(rho: float, alphas: Array) -> float:
    """The smallest common tau of the paper's theorem, [smallest-tau].

    rho <= 4 alpha_g tau / (g (2G + 1 - g)) for g < G and rho <= 4 alpha_G tau / ((G - 1)(G + 2)).
    The theorem numbers the clients; the numbering by ascending weight allows the smallest tau.
    Clients without weight do not count.
    """
    weights = np.sort(alphas[alphas > 0.0])
    n_clients = weights.size
    g = np.arange(1, n_clients + 1, dtype=np.float64)
    factors = g * (2 * n_clients + 1 - g)
    factors[-1] = (n_clients - 1) * (n_clients + 2)
    return float(rho * np.max(factors / (4.0 * weights)))
