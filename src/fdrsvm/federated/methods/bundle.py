"""The certified method, [bundle]: a level bundle that also asks clients for their own best answers.

Model    M(w) = sum_g alpha_g max over the cuts of g, below F everywhere: [cut]
Lower    min M, made safe against an inexact solver: [model-bound]
Upper    F at the best point evaluated, the centre
Next     1. the point of {M <= lower + level (upper - lower)} nearest to the centre
         2. half way between the centre and the minimiser of M
         and for each client a price p_g, its slope in the best mixture less the mean slope
Client   risk and cut at both points, and the cut its own solver proves at
         argmin f_g(u) - p_g.u + (prox/2) ||u - point||^2, which is where the others' wishes pull it
Start    the clients' own optima: their mean is the first point, what they prove the first cuts
Stop     (upper - lower) / upper <= tol

Two points and one priced solve each cost a client milliseconds and save half of the rounds. With
``cuts="summed"`` the model is made of weighted sums only, as secure aggregation gives them: no
prices, one cut of F per point. Where single answers are seen they are kept, to be held against.

An absent client leaves its older cuts in the model, so the lower bound stays valid. F at the new
points is not known then; the centre moves by the model's value in its place, and is asked for until
all have answered: ``objective`` is always a sum of real answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_choice, check_count, check_finite
from fdrsvm.core.vectors import dot, length, times, weighted_sum
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.certificate import (
    Proof,
    Standing,
    cut_model,
    model_proof,
    no_standing,
    reach_of,
)
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.memory import load_warm_start, store_warm_start
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.problem import ClientProblem, evaluate, stack_cuts
from fdrsvm.federated.screen import (
    ROUNDING,
    Fault,
    Faults,
    Known,
    Rules,
    answers_of,
    judge_answers,
    judge_past,
)
from fdrsvm.risk.worst_case import Cut
from fdrsvm.solvers.cut_model import CutModel, ModelBound
from fdrsvm.solvers.master import MasterSolution, minimise_model, project_onto_level
from fdrsvm.solvers.solution import Solution

_PROX = 10.0  # times objective / ||w||^2: the weight of the proximal term in the priced solves
_ACTIVE = 1e-6  # a share above this makes a cut matter
_FARTHEST = 10.0
_LARGEST_OWN = 1000.0  # times the median size: honest clients may differ by a hundred
_ZERO_GAP = 1e-11
# The master is solved to this share of the gap, within limits: more would not show in the bound.
_MASTER_SHARE, _MASTER_TOL = 1e-3, 1e-9
_START_TOL = 1e-6
_PRICED = 2  # points at which a client also sends what its solver proves
_SOLVER_TOL = 1e-7


@dataclass(frozen=True)
class Cuts:
    """Cuts of all clients, sorted by client; ``ages`` counts rounds since one last mattered.

    For sums every client has as many, the k-th ones made in answer to the same question.
    """

    constants: Array
    slopes: Array
    norm_weights: Array
    owners: npt.NDArray[np.int64]
    ages: npt.NDArray[np.int64]

    @property
    def parts(self) -> tuple[npt.NDArray[np.generic], ...]:
        """All arrays."""
        return (self.constants, self.slopes, self.norm_weights, self.owners, self.ages)

    def selected(self, at: npt.NDArray[np.generic]) -> Cuts:
        """Some of the cuts, or all in another order."""
        return Cuts(*(part[at] for part in self.parts))


@dataclass(frozen=True)
class BundleState:
    """Between two rounds."""

    points: Array  # to ask for next; none in the first round
    prices: Array  # one row per client
    prox: float
    centre: Array
    centre_risks: Array  # one per client, nan where not known
    centre_guess: float  # objective at the centre, by the model where a risk is not known
    cuts: Cuts
    standing: Standing


@dataclass(frozen=True)
class Bundle:
    """Level bundle method.

    Parameters
    ----------
    cuts : {"per-client", "summed"}
        What the server sees: each client's cuts, or weighted sums over all clients only.
    level : float
        Between 0 and 1: how far above the lower bound the next point is sought, as a share of the
        gap.
    max_age : int
        Rounds after which a cut that has not mattered is dropped.
    max_cuts : int
        Cuts kept a client.
    """

    name: ClassVar[str] = "bundle"
    state_type: ClassVar[type] = BundleState
    patience: ClassVar[int | None] = 20
    cuts: Literal["per-client", "summed"] = "per-client"
    level: float = 0.3
    max_age: int = 8
    max_cuts: int = 200

    def __post_init__(self) -> None:
        check_choice(self.cuts, "cuts", ("per-client", "summed"))
        if not 0.0 < check_finite(self.level, "level") < 1.0:
            raise InvalidInputError("level", "must lie between 0 and 1", f"it is {self.level!r}")
        check_count(self.max_age, "max_age")
        check_count(self.max_cuts, "max_cuts")

    @property
    def _summed(self) -> bool:
        return self.cuts == "summed"

    def start(self, federation: Federation) -> BundleState:
        """The first round asks for the clients' own optima."""
        width, n_clients = federation.width, federation.n_clients
        nobody = np.empty(0, dtype=np.int64)
        return BundleState(
            points=np.empty((0, width)),
            prices=np.zeros((n_clients, width)),
            prox=0.0,
            centre=np.zeros(width),
            centre_risks=np.full(n_clients, np.nan),
            centre_guess=np.inf,
            cuts=Cuts(np.empty(0), np.empty((0, width)), np.empty(0), nobody, nobody),
            standing=no_standing(federation),
        )

    def ask(self, federation: Federation, state: BundleState, client: int) -> Values:
        """Points for all, and this client's price."""
        asked = {"points": state.points, "prox": np.array(state.prox)}
        if not self._summed:
            asked["price"] = state.prices[client]
        return asked

    # --- client ---

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """Risks and cuts; remembers where to start the next solve."""
        if asked["points"].shape[0] == 0:
            return self._own_optimum(problem)
        answer = evaluate(problem, asked["points"])
        prox = float(asked["prox"])
        if self._summed or not problem.has_solver or prox <= 0.0:
            return memory, answer
        cuts: list[Cut] = []
        client = problem.penalised(prox)
        start = load_warm_start(memory)
        for point in asked["points"][:_PRICED]:
            centre = problem.split(point + asked["price"] / prox)
            solution = client.solve_quietly(*centre, start, _SOLVER_TOL)
            start = solution.warm_start
            cuts.append(solution.cut)
        return store_warm_start(solution.warm_start), _with_cuts(answer, cuts, problem.width)

    def _own_optimum(self, problem: ClientProblem) -> tuple[Values, dict[str, Array]]:
        """The client's own best model, its risk there, what it proves; w = 0 without a solver."""
        own = np.zeros(problem.width)
        cuts: list[Cut] = []
        if problem.can_start:
            client = problem.penalised(0.0)
            solution = client.solve_quietly(*problem.split(own), None, _START_TOL)
            found = problem.joined(solution.w, _clipped_intercept(problem, solution))
            if problem.risk_of(found) <= problem.risk_of(own):  # not after a failed solve
                own = found
            if problem.has_solver and not self._summed:
                cuts.append(solution.cut)
        answer = _with_cuts(evaluate(problem, own[None]), cuts, problem.width)
        return {}, {"own": own, **answer}

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """Risks at the points, and some cuts; in the first round also a model."""
        width, n_points = federation.width, asked["points"].shape[0]
        # Sums need the same number of cuts from everybody.
        n_cuts = max(n_points, 1) if self._summed else None
        form: dict[str, Shape] = {
            "risks": (max(n_points, 1),),
            "constants": (n_cuts,),
            "slopes": (n_cuts, width),
            "norm_weights": (n_cuts,),
        }
        return {**form, "own": (width,)} if n_points == 0 else form

    # --- server ---

    def judge(
        self, federation: Federation, state: BundleState, replies: Replies, rules: Rules
    ) -> Faults:
        """Risks and cuts at the points, also against all that is known of each client."""
        n_points = state.points.shape[0]
        least = max(n_points, 1)  # one cut was made at each point: risks without one are free
        most = least + min(least, _PRICED)
        faults = {}
        for g, values in replies.values.items():
            n_cuts = values["constants"].size
            if n_cuts < least:
                text = "it sends fewer cuts than risks"
                faults[g] = Fault("cuts", text, float(n_cuts), float(least))
            elif n_cuts > most:
                faults[g] = Fault("cuts", "it sends too many cuts", float(n_cuts), float(most))
        kept = {g: values for g, values in replies.values.items() if g not in faults}
        if n_points == 0:
            return {**_judge_starts(federation, rules, kept), **faults}
        if kept:
            faults |= self._judge_points(federation, state, rules, state.points, kept)
        return faults

    def judge_evaluation(
        self, federation: Federation, state: BundleState, replies: Replies, rules: Rules
    ) -> Faults:
        """The same at the centre."""
        return self._judge_points(federation, state, rules, state.centre[None], replies.values)

    def _judge_points(
        self,
        federation: Federation,
        state: BundleState,
        rules: Rules,
        points: Array,
        values: Mapping[int, Values],
    ) -> Faults:
        answers = answers_of(values)
        faults = judge_answers(federation, rules, points, answers)
        if rules.of_sums:  # nobody could be blamed: whose cuts they are is not known
            return faults
        risks = np.full((federation.n_clients, len(points)), np.nan)
        risks[answers.clients] = answers.risks
        cuts, standing = state.cuts, state.standing
        past = Known(cuts.owners, cuts.constants, cuts.slopes, cuts.norm_weights)
        looked_at = np.array([standing.model, state.centre])
        claimed = np.column_stack([standing.risks, state.centre_risks])
        return {
            **judge_past(federation, rules, looked_at, claimed, answers.cuts),
            **judge_past(federation, rules, points, risks, past),
            **faults,
        }

    def forget(self, federation: Federation, state: BundleState, client: int) -> BundleState:
        """Without its cuts, and with nothing proved; its risk at the centre is asked for again."""
        risks = state.centre_risks.copy()
        risks[client] = np.nan
        objective = federation.objective(risks)
        return replace(
            state,
            centre_risks=risks,
            centre_guess=state.centre_guess if np.isnan(objective) else objective,
            cuts=self._without_client(federation, state.cuts, client),
            standing=state.standing.without_client(federation, client),
        )

    def _without_client(self, federation: Federation, cuts: Cuts, client: int) -> Cuts:
        """For sums its floor stands in for its cuts."""
        own = cuts.owners == client
        if not self._summed:
            return cuts.selected(~own)
        return replace(
            cuts,
            constants=np.where(own, 0.0, cuts.constants),
            slopes=np.where(own[:, None], 0.0, cuts.slopes),
            norm_weights=np.where(own, federation.floors[client], cuts.norm_weights),
        )

    def advance(self, federation: Federation, state: BundleState, replies: Replies) -> BundleState:
        """New cuts in, old ones out, a better bound, the next points."""
        state = replace(state, cuts=self._with_replies(federation, state.cuts, replies))
        if state.points.shape[0] == 0:
            return self._first_point(federation, state, replies)
        state = self._with_risks(federation, state, replies)
        return self._next_points(federation, state)

    def _with_replies(self, federation: Federation, cuts: Cuts, replies: Replies) -> Cuts:
        if not replies.values:
            return cuts
        if self._summed:
            return _joined(cuts, *_cuts_of_all(federation, replies))
        there, answers = list(replies.values), list(replies.values.values())
        constants, slopes, norm_weights = (
            np.concatenate([answer[name] for answer in answers])
            for name in ("constants", "slopes", "norm_weights")
        )
        counts = [answer["constants"].size for answer in answers]
        return _joined(cuts, constants, slopes, norm_weights, np.repeat(there, counts))

    def _first_point(
        self, federation: Federation, state: BundleState, replies: Replies
    ) -> BundleState:
        """The mean of the clients' own optima; of those who answered, if some did not."""
        present = replies.present
        weights = np.where(present, federation.alphas, 0.0)
        if not weights.sum() > 0.0:
            return state
        own = replies.rows("own", np.zeros((federation.n_clients, federation.width)))
        own = _of_usual_size(own, weights > 0.0)
        point = weighted_sum(weights, own) / weights.sum()
        if not np.isfinite(dot(point, point)):  # without limits a lie may be as large as it likes
            point = np.zeros(federation.width)
        return replace(state, points=point[None], centre=point)

    def _with_risks(
        self, federation: Federation, state: BundleState, replies: Replies
    ) -> BundleState:
        """Standing and centre after the clients' risks at the points."""
        unknown = np.full((federation.n_clients, state.points.shape[0]), np.nan)
        risks = replies.rows("risks", unknown).T
        model = self._model(federation, state.cuts)
        for point, found in zip(state.points, risks, strict=True):
            state = self._with_point(federation, state, model, point, found)
        if state.standing.objective < state.centre_guess:
            # The model thought too well of a client that was not there.
            state = replace(
                state,
                centre=state.standing.model,
                centre_risks=state.standing.risks,
                centre_guess=state.standing.objective,
            )
        return state

    def _with_point(
        self,
        federation: Federation,
        state: BundleState,
        model: CutModel,
        point: Array,
        risks: Array,
    ) -> BundleState:
        at_centre = np.array_equal(point, state.centre)
        if at_centre:  # some may have answered in an earlier round
            risks = np.where(np.isnan(risks), state.centre_risks, risks)
        objective = federation.objective(risks)
        guess = objective
        if np.isnan(objective):
            guess = self._guess(federation, model, point, risks)
        if at_centre or guess < state.centre_guess:
            state = replace(state, centre=point, centre_risks=risks, centre_guess=guess)
        standing = state.standing.with_point(federation, point, objective, risks)
        return replace(state, standing=standing)

    def _guess(self, federation: Federation, model: CutModel, point: Array, risks: Array) -> float:
        """The objective with the model's value for clients that are not there."""
        if self._summed:
            return model.value(point)
        known = ~np.isnan(risks)
        return dot(federation.alphas, np.where(known, risks, model.client_values(point)))

    def _next_points(self, federation: Federation, state: BundleState) -> BundleState:
        model = self._model(federation, state.cuts)
        lowest = self._lowest(federation, state, model)
        bound = lowest.bound
        standing = self._with_bound(federation, state, bound)
        upper = min(standing.objective, state.centre_guess)
        target = standing.lower_bound + self.level * max(upper - standing.lower_bound, 0.0)
        nearest = project_onto_level(model, state.centre, target)
        points = [_towards(state.centre, nearest.w, 1.0), _towards(state.centre, lowest.w, 0.5)]
        if self.pending(state) is not None:
            points.append(state.centre)
        active = self._by_cut(federation, np.maximum(bound.shares, nearest.shares)) > _ACTIVE
        size = dot(state.centre, state.centre)
        return replace(
            state,
            points=np.array(points),
            prices=self._prices(federation, bound.slope_by_client),
            prox=_PROX * state.centre_guess / size if 0.0 < size < np.inf else 0.0,
            cuts=self._aged(state.cuts, active),
            standing=standing,
        )

    def _lowest(
        self, federation: Federation, state: BundleState, model: CutModel
    ) -> MasterSolution:
        standing = state.standing
        return minimise_model(
            model,
            tol=min(max(_MASTER_SHARE * standing.gap, _MASTER_TOL), _MASTER_SHARE),
            radius=reach_of(federation, standing.model, model.slopes),
        )

    def _with_bound(
        self, federation: Federation, state: BundleState, bound: ModelBound
    ) -> Standing:
        def proof() -> Proof:
            return model_proof(
                _cut_model(federation, state.cuts), self._by_cut(federation, bound.shares)
            )

        return state.standing.with_bound(bound.value, bound.radius, proof)

    def _by_cut(self, federation: Federation, shares: Array) -> Array:
        """Shares of the model's cuts as shares of the clients': in a sum all have the same."""
        return np.tile(shares, federation.n_clients) if self._summed else shares

    def _prices(self, federation: Federation, slopes: Array) -> Array:
        if self._summed:
            return np.zeros((federation.n_clients, federation.width))
        return np.asarray(slopes - weighted_sum(federation.alphas, slopes))

    def _aged(self, cuts: Cuts, active: npt.NDArray[np.bool_]) -> Cuts:
        """Without the cuts that have not mattered for long, or are too many."""
        ages = np.where(active, 0, cuts.ages + 1)
        cuts = replace(cuts, ages=ages)
        cuts = cuts.selected(ages <= self.max_age)
        order = np.lexsort((cuts.ages, cuts.owners))  # by client, those that matter first
        owners = cuts.owners[order]
        rank = np.arange(owners.size) - np.searchsorted(owners, owners)
        keep = np.sort(order[rank < self.max_cuts])
        return cuts.selected(keep)

    def _model(self, federation: Federation, cuts: Cuts) -> CutModel:
        model = _cut_model(federation, cuts)
        if not self._summed:
            return model
        n_clients, alphas = federation.n_clients, federation.alphas
        n_sums = cuts.constants.size // n_clients
        return replace(
            model,
            constants=weighted_sum(alphas, cuts.constants.reshape(n_clients, n_sums)),
            slopes=weighted_sum(alphas, cuts.slopes.reshape(n_clients, -1)).reshape(n_sums, -1),
            norm_weights=weighted_sum(alphas, cuts.norm_weights.reshape(n_clients, n_sums)),
            owners=np.zeros(n_sums, dtype=np.int64),
            alphas=np.ones(1),
            floors=np.array([federation.floor]),
        )

    def model(self, state: BundleState) -> Array:
        """The centre."""
        return state.centre

    def standing(self, state: BundleState) -> Standing:
        """The best point evaluated by all."""
        return state.standing

    def residuals(self, state: BundleState) -> dict[str, float]:
        """How many cuts the model holds."""
        return {"n_cuts": float(state.cuts.constants.size)}

    def is_settled(self, state: BundleState) -> bool:
        """The gap is zero up to rounding: no round can improve on that."""
        return state.standing.gap <= _ZERO_GAP

    def settle(self, federation: Federation, state: BundleState) -> BundleState:
        """Every round does it already."""
        return state

    def pending(self, state: BundleState) -> Array | None:
        """The centre, while some client has not given its risk there."""
        has_started = state.points.shape[0] > 0
        is_known = state.centre_guess == state.standing.objective < np.inf
        return state.centre if has_started and not is_known else None

    def with_evaluation(
        self, federation: Federation, state: BundleState, replies: Replies
    ) -> BundleState:
        """The centre's risk and cut count too."""
        cuts = self._with_replies(federation, state.cuts, replies)
        state = replace(state, points=state.centre[None], cuts=cuts)
        state = self._with_risks(federation, state, replies)
        bound = self._lowest(federation, state, self._model(federation, cuts)).bound
        return replace(state, standing=self._with_bound(federation, state, bound))


def _clipped_intercept(problem: ClientProblem, solution: Solution) -> float:
    """Within 1 + max_n |w.x_n|, beyond which no intercept is better: [limits]."""
    reach = 1.0 + float(np.abs(times(problem.exact.X, solution.w)).max())
    return min(max(solution.intercept, -reach), reach)


def _judge_starts(federation: Federation, rules: Rules, values: Mapping[int, Values]) -> Faults:
    """Each client's own optimum, with risk and cut there: no worse than the model 0."""
    faults: Faults = {}
    for g, found in values.items():
        answers, own = answers_of({g: found}), found["own"]
        if rules.of_sums:  # a sum of cuts, each at another optimum
            faults |= judge_answers(federation, rules, own[None][:0], answers, touching=False)
            continue
        faults |= judge_answers(federation, rules, own[None], answers)
        if g not in faults and rules.limits is not None:
            faults |= _judge_own(federation, rules.limits, g, own, float(answers.risks[0, 0]))
    return faults


def _judge_own(
    federation: Federation, limits: Limits, client: int, own: Array, risk: float
) -> Faults:
    """Rules on a client's own optimum."""
    most = limits.loss_at_zero + limits.resolution
    if not risk <= most * (1.0 + ROUNDING):
        return {client: Fault("own", "its own optimum is worse than the model 0", risk, most)}
    P = federation.n_features
    reach = 1.0 + limits.score_ceiling(np.append(own[:P], 0.0))
    if own.size > P and not abs(own[P]) <= reach * (1.0 + ROUNDING):
        text = "the intercept of its own optimum exceeds what the limits on features allow"
        return {client: Fault("own", text, abs(float(own[P])), reach)}
    return {}


def _of_usual_size(own: Array, counted: npt.NDArray[np.bool_]) -> Array:
    """Models beyond a thousand times the median size are scaled down to that.

    Where a floor is 0 or tiny nothing bounds what one client calls its optimum, and one that is
    millions of times too large would lead everybody to where float64 keeps nothing.
    """
    sizes = np.abs(own).max(axis=1)
    # The lower one of two in the middle: one of two clients cannot make its own size the usual one.
    usual = float(np.quantile(sizes[counted], 0.5, method="lower"))
    most = min(_LARGEST_OWN * max(1.0, usual), float(np.finfo(np.float64).max))
    return np.asarray(own * (most / np.maximum(sizes, most))[:, None])


def _towards(centre: Array, goal: Array, share: float) -> Array:
    """That share of the way to a point, but no farther than ten times the centre's size.

    While nothing bounds the model from below in some direction, its minimiser is anywhere, and
    slopes that are rounding alone lead a projection as far.
    """
    step = goal - centre
    far = length(step)
    limit = _FARTHEST * max(1.0, length(centre))
    if far <= limit and share == 1.0:
        return goal
    return centre + share * step * min(1.0, limit / max(far, limit))


def _with_cuts(answer: Values, cuts: list[Cut], width: int) -> dict[str, Array]:
    """An answer with more cuts."""
    more = stack_cuts(cuts, width)
    joined = {name: np.concatenate([answer[name], more[name]]) for name in more}
    return {**answer, **joined}


def _joined(
    cuts: Cuts, constants: Array, slopes: Array, norm_weights: Array, owners: npt.NDArray[np.intp]
) -> Cuts:
    """With new cuts, still sorted by client."""
    ages = np.zeros(owners.size, dtype=np.int64)
    new = (constants, slopes, norm_weights, owners.astype(np.int64), ages)
    parts = [np.concatenate([old, more]) for old, more in zip(cuts.parts, new, strict=True)]
    return Cuts(*parts).selected(np.argsort(parts[3], kind="stable"))


def _cut_model(federation: Federation, cuts: Cuts) -> CutModel:
    return cut_model(federation, cuts.constants, cuts.slopes, cuts.norm_weights, cuts.owners)


def _cuts_of_all(
    federation: Federation, replies: Replies
) -> tuple[Array, Array, Array, npt.NDArray[np.intp]]:
    """As many cuts of every client, sorted by client; the floor of one that is absent."""
    n_clients, width = federation.n_clients, federation.width
    n_cuts = next(iter(replies.values.values()))["constants"].size
    constants, slopes = np.zeros((n_clients, n_cuts)), np.zeros((n_clients, n_cuts, width))
    norm_weights = np.repeat(federation.floors[:, None], n_cuts, axis=1)
    for g, values in replies.values.items():
        constants[g], slopes[g] = values["constants"], values["slopes"]
        norm_weights[g] = values["norm_weights"]
    owners = np.repeat(np.arange(n_clients), n_cuts)
    return constants.ravel(), slopes.reshape(-1, width), norm_weights.ravel(), owners
