"""Is a certificate true? What the best legal poison could have made of the same honest data.

The honest clients' rows are known here, those of a liar are not: any rows within the limits would
have been legal. So a certificate (model w, objective, lower bound) is true of *some* legal data, or
it is false. For the hinge without a support, with the linf transport, all of it is linear. With
z = y (x, 1), |x_j| <= R_j, S(u) = sum_j R_j |u_j| + |b|, H(u) the honest clients' weighted risk,
alpha the liars' weight and f_nu their risk for rows distributed as nu, F_nu = H + alpha f_nu:

(i)    lower bound <= max over nu of min over u of F_nu(u) = min over u of H(u) + alpha ceiling(u)
(ii)   H(w) + alpha floor(w) <= objective <= H(w) + alpha ceiling(w)
(iii)  lower bound <= max over nu with f_nu(w) <= r of min over u of F_nu(u), H(w) + alpha r the
       objective that was claimed

with ceiling(u) = 1 + S(u) + epsilon ||u||_1 and floor(u) = (1 - S(u))_+ + epsilon ||u||_1.

*Why (i) and (iii) are linear programs.* f_nu(u) = min over lam >= ||u||_1 of epsilon lam +
E psi(u.z, lam) with psi(m, lam) = max(0, 1 - m, 1 + m - kappa lam) ([flips]; the last term is a
flipped label, and there is none at kappa = inf). This is convex in (u, lam) and linear in nu, and
the distributions on a compact set are weakly compact, so max and min may be exchanged (Sion). With
a multiplier mu >= 0 for E (1 - w.z)_+ <= r - epsilon ||w||_1 what is left is

    min over u, lam, mu of  H(u) + alpha (epsilon lam + mu (r - epsilon ||w||_1)
                                          + max over z of psi(u.z, lam) - mu (1 - w.z)_+).

The innermost maximum is one of: -mu (1 - S(w))_+, for psi's 0; and for c = 1, or c = -1 with a
price of kappa lam, and each label y, the maximum over the box of the concave 1 - c u.z - mu
(1 - w.z)_+. As (.)_+ = max over s in [0, 1] of s (.), that is the minimum over 0 <= theta <= mu of

    1 - theta - y (c u_b - theta w_b) + sum_j R_j |c u_j - theta w_j|    (less kappa lam, c = -1),

so "at most t" means that some theta has it at most t: linear in all variables. At mu = 0 this is
1 + S(u), hence (i). One label will do without an intercept.

At kappa = inf this is exact. At a finite kappa f_nu(w) is at least E (1 - w.z)_+ + epsilon ||w||_1,
so (iii) allows liars a little more than legal data do; what it calls false is false all the same.
Two liars are one with the sum of their weights and the mean of their epsilons. Nothing here shares
code with the solvers, the screen or the clients' risks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import linprog

from fdrsvm.core.arrays import Array
from fdrsvm.errors import NumericalError

_ROUNDING = 1e-9  # of a number, and of the linear programs
_UNBOUNDED = 3  # as scipy calls it


@dataclass(frozen=True, eq=False)
class HonestRows:
    """One honest client: rows z = y (x, 1), or y x without an intercept; its weight and radius."""

    signed: Array
    weight: float
    epsilon: float


@dataclass(frozen=True, eq=False)
class Poisoned:
    """The honest clients, and what is agreed of the liars.

    ``limits`` holds R_j, and 1 for an intercept; ``n_features`` of its entries are features.
    ``weight`` and ``epsilon`` are the liars'; a weight of 0 means that nobody's lie counts.
    """

    honest: tuple[HonestRows, ...]
    limits: Array
    n_features: int
    kappa: float
    weight: float
    epsilon: float

    def size(self, model: Array) -> float:
        """||w||_1, the intercept left out."""
        return float(np.abs(model[: self.n_features]).sum())

    def reach(self, model: Array) -> float:
        """S(w)."""
        return float(self.limits @ np.abs(model))

    def honest_risk(self, model: Array) -> float:
        """H(w)."""
        return sum(
            client.weight
            * worst_case_mean(client.signed @ model, client.epsilon, self.kappa, self.size(model))
            for client in self.honest
        )

    def floor(self, model: Array) -> float:
        """No legal data have a smaller risk."""
        return max(0.0, 1.0 - self.reach(model)) + self.epsilon * self.size(model)

    def ceiling(self, model: Array) -> float:
        """No legal data have a larger risk."""
        return 1.0 + self.reach(model) + self.epsilon * self.size(model)

    @cached_property
    def strongest(self) -> tuple[float, Array]:
        """V*, and the mean z of a poison that reaches it: see ``strongest_rows``."""
        return _Program(self, None, 0.0).solve()

    def largest_bound(self, model: Array, risk: float) -> float:
        """Max over legal data with risk at most ``risk`` at ``model`` of the optimum; -inf if none.

        At most V*, see (iii).
        """
        excess = risk - self.epsilon * self.size(model)
        least = max(0.0, 1.0 - self.reach(model))
        if excess < least - _ROUNDING * (1.0 + least):
            return -np.inf
        return _Program(self, model, max(excess, least)).solve()[0]


def worst_case_mean(margins: Array, epsilon: float, kappa: float, size: float) -> float:
    """Min over lam >= size of epsilon lam + mean psi(m, lam): its kinks are tried one by one."""
    losses = np.maximum(1.0 - margins, 0.0)
    if kappa == np.inf:
        return epsilon * size + float(losses.mean())
    kinks = np.minimum(2.0 * margins, 1.0 + margins) / kappa
    tried = np.append(kinks[kinks > size], size)
    flipped = 1.0 + margins - kappa * tried[:, None]
    return float((epsilon * tried + np.maximum(losses, flipped).mean(axis=1)).min())


def strongest_rows(problem: Poisoned) -> tuple[Array, Array, Array]:
    """X, y and masses of legal rows whose optimum is V*.

    Let u* attain V* and zbar be minus a subgradient of S at u* for which u* is optimal: zbar_j =
    -R_j sign(u*_j), and in between where u*_j = 0. If all rows have z = zbar, f_nu(u*) =
    ceiling(u*), and u* is a minimiser of F_nu too. An intercept's zbar is met by two rows, (x, 1)
    and -(-x, 1) in the shares (1 +- zbar_b)/2: their slope is zbar wherever both have a loss.
    """
    P = problem.n_features
    mean = np.clip(problem.strongest[1], -problem.limits, problem.limits)
    x = mean[:P]
    share = 0.5 * (1.0 + mean[P]) if mean.size > P else 1.0
    masses = np.array([share, 1.0 - share])
    X, y = np.array([x, -x]), np.array([1.0, -1.0])
    return X[masses > 0.0], y[masses > 0.0], masses[masses > 0.0]


def judge(problem: Poisoned, model: Array, objective: float, lower_bound: float) -> str:
    """Which of (i), (ii), (iii) a certificate breaks; "" if it is true of some legal data.

    An objective of inf claims nothing but the bound.
    """
    if lower_bound > problem.strongest[0] * (1.0 + _ROUNDING):
        return "i"
    if not np.isfinite(objective):
        return ""
    known = problem.honest_risk(model)
    slack = _ROUNDING * (1.0 + abs(objective) + known)
    low = known + problem.weight * problem.floor(model)
    high = known + problem.weight * problem.ceiling(model)
    if not low - slack <= objective <= high + slack:
        return "ii"
    if problem.weight == 0.0:
        return "" if lower_bound <= problem.strongest[0] + slack else "iii"
    risk = (objective - known + slack) / problem.weight
    return "" if lower_bound <= problem.largest_bound(model, risk) + slack else "iii"


class _Program:
    """The linear program of (iii), or of (i) without a model."""

    def __init__(self, problem: Poisoned, model: Array | None, excess: float) -> None:
        self.problem, self.model = problem, model
        self.costs: list[float] = []
        self.lows: list[float | None] = []
        self.rows: list[dict[int, float]] = []
        self.sides: list[float] = []
        width, P = problem.limits.size, problem.n_features
        self.u = self.new(width, low=None)
        self.sizes = self.absolute([{j: 1.0} for j in self.u])
        for client in problem.honest:
            self._add_honest(client)
        alpha = problem.weight
        self.lam = self._add_radius(alpha * problem.epsilon, P)
        self.t = self.new(1, cost=alpha, low=None)[0]
        self.mu = self.new(1, cost=alpha * excess)[0]
        least = 0.0
        if model is None:
            self.at_most({self.mu: 1.0}, 0.0)
        else:
            least = max(0.0, 1.0 - problem.reach(model))
        self.at_most({self.t: -1.0, self.mu: -least}, 0.0)
        self.steepest = [
            self._add_loss(side, label)
            for side in ((1.0, -1.0) if problem.kappa < np.inf else (1.0,))
            for label in ((1.0, -1.0) if width > P else (1.0,))
        ]

    def new(self, count: int, cost: float = 0.0, low: float | None = 0.0) -> list[int]:
        """Variables."""
        first = len(self.costs)
        self.costs += [cost] * count
        self.lows += [low] * count
        return list(range(first, first + count))

    def at_most(self, row: dict[int, float], side: float) -> int:
        """A constraint; its number."""
        self.rows.append(row)
        self.sides.append(side)
        return len(self.rows) - 1

    def absolute(self, terms: Sequence[dict[int, float]]) -> list[int]:
        """Variables that are at least the absolute values of some sums."""
        sizes = self.new(len(terms))
        for size, term in zip(sizes, terms, strict=True):
            self.at_most({**term, size: -1.0}, 0.0)
            self.at_most({**{j: -value for j, value in term.items()}, size: -1.0}, 0.0)
        return sizes

    def _add_radius(self, cost: float, n_features: int) -> int:
        """Lam >= ||u||_1."""
        lam = self.new(1, cost=cost)[0]
        self.at_most({**dict.fromkeys(self.sizes[:n_features], 1.0), lam: -1.0}, 0.0)
        return lam

    def _add_honest(self, client: HonestRows) -> None:
        """Weight times min over lam of epsilon lam + mean psi."""
        lam = self._add_radius(client.weight * client.epsilon, self.problem.n_features)
        for row in client.signed:
            loss = self.new(1, cost=client.weight / len(client.signed))[0]
            terms = dict(zip(self.u, row.tolist(), strict=True))
            self.at_most({**{j: -value for j, value in terms.items()}, loss: -1.0}, -1.0)
            if self.problem.kappa < np.inf:
                self.at_most({**terms, lam: -self.problem.kappa, loss: -1.0}, -1.0)

    def _add_loss(self, side: float, label: float) -> int:
        """T >= the largest 1 - side u.z - mu (1 - w.z)_+ over rows with this label."""
        problem, P = self.problem, self.problem.n_features
        w = np.zeros(problem.limits.size) if self.model is None else self.model
        theta = self.new(1)[0]
        self.at_most({theta: 1.0, self.mu: -1.0}, 0.0)
        terms = [{self.u[j]: side, theta: -float(w[j])} for j in range(w.size)]
        sizes = self.absolute(terms[:P])
        row = {theta: -1.0, self.t: -1.0}
        row |= {size: float(problem.limits[j]) for j, size in enumerate(sizes)}
        for term in terms[P:]:
            for j, value in term.items():
                row[j] = row.get(j, 0.0) - label * value
        if side < 0.0:
            row[self.lam] = -problem.kappa
        return self.at_most(row, -1.0)

    def solve(self) -> tuple[float, Array]:
        """The minimum, and minus the slope of the liars' part at it."""
        matrix = np.zeros((len(self.rows), len(self.costs)))
        for i, row in enumerate(self.rows):
            matrix[i, list(row)] = list(row.values())
        found = linprog(
            self.costs,
            A_ub=matrix,
            b_ub=self.sides,
            bounds=[(low, None) for low in self.lows],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status == _UNBOUNDED:
            return -np.inf, np.zeros(self.problem.limits.size)
        if found.status != 0:
            raise NumericalError(f"the legal poison's linear program: {found.message}")
        return float(found.fun), self._mean(found.ineqlin.marginals, matrix)

    def _mean(self, marginals: Array, matrix: Array) -> Array:
        """zbar: minus what the constraints of the liars' losses add to the slope in u."""
        if not self.problem.weight > 0.0:
            return np.zeros(self.problem.limits.size)
        first = min(i for i, row in enumerate(self.rows) if self.t in row)
        slopes = marginals[first:] @ matrix[first:][:, self.u]
        return np.asarray(slopes / self.problem.weight)
