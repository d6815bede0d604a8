"""The certified method, [bundle]: a level bundle that also asks clients for their own best answers.

Model    M(w) = sum_g alpha_g max over the cuts of g, below F everywhere: [cut]
Lower    min M, made safe against an inexact solver: [model-bound]
Upper    F at the best point evaluated, the centre
Next     1. the point of {M <= lower + level (upper - lower)} nearest to the centre
         2. half way between the centre and the minimiser of M
         and for each client a price p_g, its slope in the best mixture less the mean slope
Client   risk and cut at both points, and the cut its own solver proves at
         argmin f_g(u) - p_g.u + (prox/2) ||u - point||^2: the price stands for the pull of the
         other clients, so the solver looks where the federation's optimum may be, not its own
Start    the clients' own optima: their mean is the first point, what they prove the first cuts
Stop     (upper - lower) / upper <= tol
Cost     two evaluations and two solves per client and round, milliseconds, which save half of the
         rounds; at the server one linear and one quadratic program over the cuts kept

Where a round trip costs more than that, ``points_per_round`` asks at more points, on other levels
and at another share of the way. With second moments, [moments], "nearest" is by what the rows make
of a step: ||u - centre||^2 is the mean of their squared changes of score.

With ``cuts="summed"`` the model is made of weighted sums only, as secure aggregation gives them: no
prices, one cut of F per point. Where single answers are seen they are kept, to be held against
later ones.

An absent client leaves its older cuts in the model, so the lower bound stays valid. F at the new
points is not known then; the centre moves by the model's value in its place, and is asked for until
all have answered: ``objective`` is always a sum of real answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_choice, check_count, check_finite
from fdrsvm.core.vectors import dot, length, times, weighted_sum
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.certificate import (
    Certificate,
    cut_model,
    model_proof,
    no_certificate,
    reach_of,
)
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.methods.method import (
    Algorithm,
    Progress,
    load_warm_start,
    store_warm_start,
)
from fdrsvm.federated.moments import (
    LARGEST_WIDTH,
    judge_moments,
    metric_of,
    n_moments,
    packed_moments,
    sum_of_moments,
)
from fdrsvm.federated.problem import ClientProblem, evaluate, stack_cuts
from fdrsvm.federated.screen import ROUNDING, Answers, Fault, Faults, Known, Screen
from fdrsvm.risk.worst_case import Cut
from fdrsvm.solvers.cut_model import CutModel
from fdrsvm.solvers.master import MasterSolution, minimise_model, project_onto_level

MetricName = Literal["none", "second-moments", "auto"]
METRICS = ("none", "second-moments", "auto")

_PROX = 10.0  # times objective / ||w||^2: the weight of the proximal term in the priced solves
_ACTIVE = 1e-6  # a share above this makes a cut matter
_FARTHEST = 10.0  # times the centre's size: where a step ends that nothing else bounds
_LARGEST_OWN = 1000.0  # times the median size: honest clients may differ by a hundred
_ZERO_GAP = 1e-11  # what float64 leaves of a gap that is closed
# The master is solved to this share of the gap, within limits: more would not show in the bound.
_MASTER_SHARE, _MASTER_TOL = 1e-3, 1e-9
_START_TOL = 1e-6  # relative gap of a client's own optimum, only where to start from
# Of a projection, relative to the squared distance. In a metric a thousand times as close costs a
# quarter of the Newton steps and saves no round; in the Euclidean distance it saves one in thirty.
_PROJECTION_TOL, _METRIC_TOL = 1e-9, 1e-6
_MOST_POINTS = POINTS_ALONE = 6  # one client's cuts are few for the weights of a map
_PAYS_FROM = (
    100  # entries of a model: below, the metric saves a round in ten, and clients tell less
)
_SOLVER_TOL = 1e-7  # of a priced solve: any point it ends at gives a valid cut


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

    def select(self, at: npt.NDArray[np.generic]) -> Cuts:
        """Some of the cuts, or all in another order."""
        return Cuts(
            self.constants[at],
            self.slopes[at],
            self.norm_weights[at],
            self.owners[at],
            self.ages[at],
        )

    def join(self, federation: Federation, replies: Replies, *, summed: bool) -> Cuts:
        """With those of a round, still sorted by client."""
        if not replies.values:
            return self
        new = replies.answers.cuts
        constants, slopes, norm_weights = new.constants, new.slopes, new.norm_weights
        owners = new.owners.astype(np.int64)
        if summed and not replies.are_complete:
            # A sum over clients needs a cut of everybody: the floor of one that is absent.
            absent = np.flatnonzero(~replies.present)
            n_cuts = constants.size // len(replies.values)
            rest = np.zeros(absent.size * n_cuts)
            constants = np.concatenate([constants, rest])
            slopes = np.concatenate([slopes, np.zeros((rest.size, federation.width))])
            floors = np.repeat(federation.floors[absent], n_cuts)
            norm_weights = np.concatenate([norm_weights, floors])
            owners = np.concatenate([owners, np.repeat(absent, n_cuts)])
        joined = Cuts(
            np.concatenate([self.constants, constants]),
            np.concatenate([self.slopes, slopes]),
            np.concatenate([self.norm_weights, norm_weights]),
            np.concatenate([self.owners, owners]),
            np.concatenate([self.ages, np.zeros(owners.size, dtype=np.int64)]),
        )
        return joined.select(np.argsort(joined.owners, kind="stable"))

    def age(self, active: npt.NDArray[np.bool_], max_age: int, max_cuts: int) -> Cuts:
        """A round later: without cuts that have not mattered for long, or are too many."""
        ages = np.where(active, 0, self.ages + 1)
        cuts = replace(self, ages=ages).select(ages <= max_age)
        # Of each client the youngest max_cuts: a rank is the place among its own, by age.
        order = np.lexsort((cuts.ages, cuts.owners))
        owners = cuts.owners[order]
        rank = np.arange(owners.size) - np.searchsorted(owners, owners)
        return cuts.select(np.sort(order[rank < max_cuts]))


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
    moments: Array  # of the clients' rows, summed; none if they were not asked for, or are disowned
    certificate: Certificate


@dataclass(frozen=True)
class Bundle(Algorithm[BundleState]):
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
        Cuts kept per client.
    metric : {"none", "second-moments", "auto"}
        By which distance to project: the Euclidean one, or that of the clients' second moments,
        which they send in the first round, up to 1000 features. "auto" asks for them where the
        server sees sums only, and from a width of 100 on.
    points_per_round : int
        At how many points, up to 6, clients are asked in a round: more are fewer rounds, and more
        work and bytes in each.
    """

    name: ClassVar[str] = "bundle"
    state_type: ClassVar[type] = BundleState
    patience: ClassVar[int | None] = 20
    cuts: Literal["per-client", "summed"] = "per-client"
    level: float = 0.3
    max_age: int = 8
    max_cuts: int = 200
    metric: MetricName = "none"
    points_per_round: int = 2

    def __post_init__(self) -> None:
        check_choice(self.cuts, "cuts", ("per-client", "summed"))
        if not 0.0 < check_finite(self.level, "level") < 1.0:
            raise InvalidInputError("level", "must lie between 0 and 1", f"it is {self.level!r}")
        check_count(self.max_age, "max_age")
        check_count(self.max_cuts, "max_cuts")
        check_choice(self.metric, "metric", METRICS)
        if check_count(self.points_per_round, "points_per_round") > _MOST_POINTS:
            rule = f"must be at most {_MOST_POINTS}"
            raise InvalidInputError("points_per_round", rule, f"it is {self.points_per_round}")

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
            moments=np.empty(0),
            certificate=no_certificate(federation),
        )

    def ask(self, federation: Federation, state: BundleState, client: int) -> Values:
        """Points for all, and this client's price."""
        asked = {"points": state.points, "prox": np.array(state.prox)}
        if self.cuts != "summed":
            asked["price"] = state.prices[client]
        return asked

    def _wants_moments(self, width: int) -> bool:
        """Server and client must agree on it, so it follows from what both know."""
        if self.metric == "none" or width > LARGEST_WIDTH:
            return False
        return self.metric != "auto" or self.cuts == "summed" or width >= _PAYS_FROM

    # --- client ---

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """Risks and cuts; remembers where to start the next solve."""
        if asked["points"].shape[0] == 0:
            return self._own_optimum(problem)
        answer = evaluate(problem, asked["points"])
        prox = float(asked["prox"])
        if self.cuts == "summed" or not problem.has_solver or prox <= 0.0:
            return memory, answer
        cuts: list[Cut] = []
        client = problem.penalised(prox)
        start = load_warm_start(memory)
        for point in asked["points"][: self.points_per_round]:
            centre = problem.split(point + asked["price"] / prox)
            solution = client.solve_quietly(*centre, start, _SOLVER_TOL)
            start = solution.warm_start
            cuts.append(solution.cut)
        for name, rows in stack_cuts(cuts, problem.width).items():
            answer[name] = np.concatenate([answer[name], rows])
        return store_warm_start(solution.warm_start), answer

    def _own_optimum(self, problem: ClientProblem) -> tuple[Values, dict[str, Array]]:
        """The client's own best model, its risk there, what it proves; w = 0 without a solver."""
        own, proved = np.zeros(problem.width), {}
        if problem.is_hinge:
            client = problem.penalised(0.0)
            solution = client.solve_quietly(*problem.split(own), None, _START_TOL)
            # Beyond 1 + max_n |w.x_n| no intercept is better, [limits]: a wrong one is pulled back.
            reach = 1.0 + float(np.abs(times(problem.exact.X, solution.w)).max())
            intercept = min(max(solution.intercept, -reach), reach)
            solved = problem.joined(solution.w, intercept)
            if problem.risk_of(solved) <= problem.risk_of(own):  # not after a failed solve
                own = solved
            if problem.has_solver and self.cuts != "summed":
                proved = stack_cuts([solution.cut], problem.width)
        answer = evaluate(problem, own[None])
        for name, rows in proved.items():
            answer[name] = np.concatenate([answer[name], rows])
        if self._wants_moments(problem.width):
            answer["moments"] = packed_moments(problem)
        return {}, {"own": own, **answer}

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """Risks at the points, and some cuts; in the first round also a model."""
        width, n_points = federation.width, asked["points"].shape[0]
        # Sums need the same number of cuts from everybody.
        n_cuts = max(n_points, 1) if self.cuts == "summed" else None
        form: dict[str, Shape] = {
            "risks": (max(n_points, 1),),
            "constants": (n_cuts,),
            "slopes": (n_cuts, width),
            "norm_weights": (n_cuts,),
        }
        if n_points == 0:
            form["own"] = (width,)
            if self._wants_moments(width):
                form["moments"] = (n_moments(width),)
        return form

    # --- server: what is believed ---

    def judge(
        self, federation: Federation, state: BundleState, replies: Replies, screen: Screen
    ) -> Faults:
        """Risks and cuts at the points, also against all that is known of each client."""
        n_points = state.points.shape[0]
        least = max(n_points, 1)  # one cut was made at each point: risks without one are free
        most = least + min(least, self.points_per_round)
        kept, faults = {}, {}
        for g, values in replies.values.items():
            n_cuts = values["constants"].size
            if n_cuts < least:
                text = "it sends fewer cuts than risks"
                faults[g] = Fault("cuts", text, float(n_cuts), float(least))
            elif n_cuts > most:
                faults[g] = Fault("cuts", "it sends too many cuts", float(n_cuts), float(most))
            else:
                kept[g] = values
        if n_points == 0:
            return {**_judge_starts(federation, screen, kept), **faults}
        if kept:
            answers = Answers(kept) if faults else replies.answers
            faults |= self._judge_points(federation, state, screen, state.points, answers)
        return faults

    def judge_evaluation(
        self, federation: Federation, state: BundleState, replies: Replies, screen: Screen
    ) -> Faults:
        """The same at the centre."""
        point = state.centre[None]
        return self._judge_points(federation, state, screen, point, replies.answers)

    def _judge_points(
        self,
        federation: Federation,
        state: BundleState,
        screen: Screen,
        points: Array,
        answers: Answers,
    ) -> Faults:
        faults = screen.judge_answers(federation, points, answers)
        if screen.of_sums:  # nobody could be blamed: whose cuts they are is not known
            return faults
        # New cuts against the risks that earlier answers claimed at the two models that matter, and
        # old cuts against the new risks: rows that give one must be able to have the other.
        risks = np.full((federation.n_clients, len(points)), np.nan)
        risks[answers.clients] = answers.risks
        cuts, best = state.cuts, state.certificate
        past = Known(cuts.owners, cuts.constants, cuts.slopes, cuts.norm_weights)
        earlier = np.array([best.model, state.centre])
        claimed = np.column_stack([best.risks, state.centre_risks])
        return {
            **screen.judge_past(federation, earlier, claimed, answers.cuts),
            **screen.judge_past(federation, points, risks, past),
            **faults,
        }

    def forget(self, federation: Federation, state: BundleState, client: int) -> BundleState:
        """Without its cuts, and with nothing proved; its risk at the centre is asked for again."""
        risks = state.centre_risks.copy()
        risks[client] = np.nan
        objective = federation.objective(risks)
        cuts = state.cuts
        own = cuts.owners == client
        if self.cuts == "summed":  # its floor stands in for its cuts: every sum needs one of all
            cuts = replace(
                cuts,
                constants=np.where(own, 0.0, cuts.constants),
                slopes=np.where(own[:, None], 0.0, cuts.slopes),
                norm_weights=np.where(own, federation.floors[client], cuts.norm_weights),
            )
        else:
            cuts = cuts.select(~own)
        return replace(
            state,
            centre_risks=risks,
            centre_guess=state.centre_guess if np.isnan(objective) else objective,
            cuts=cuts,
            moments=np.empty(0),  # the client's are in the sum
            certificate=state.certificate.without_client(federation, client),
        )

    # --- server: the next points ---

    def advance(self, federation: Federation, state: BundleState, replies: Replies) -> BundleState:
        """New cuts in, old ones out, a better bound, the next points."""
        cuts = state.cuts.join(federation, replies, summed=self.cuts == "summed")
        if state.points.shape[0] == 0:
            return self._first_point(federation, replace(state, cuts=cuts), replies)
        model = self._model(federation, cuts)
        state = self._with_risks(federation, replace(state, cuts=cuts), model, replies)
        lowest, certificate = self._lowest(federation, state, model)
        centre, lower, objective = state.centre, certificate.lower_bound, certificate.objective
        upper = min(objective, state.centre_guess)
        points, shares = self._next_points(state, model, lowest, lower, max(upper - lower, 0.0))
        if not state.centre_guess == objective < np.inf:  # somebody's risk there is a guess
            points.append(centre)
        active = shares > _ACTIVE
        # At the optimum the clients' slopes cancel on average. A price takes off by how much one
        # client's differs from the mean: so priced, its own optimum is near the common one.
        prices = np.zeros(state.prices.shape)
        if self.cuts == "summed":  # in a sum the cuts of all clients have the same share
            active = np.tile(active, federation.n_clients)
        else:
            slopes = lowest.bound.slope_by_client
            prices = np.asarray(slopes - weighted_sum(federation.alphas, slopes))
        # A step as long as the centre itself then costs _PROX/2 objectives.
        size = dot(centre, centre)
        return replace(
            state,
            points=np.array(points),
            prices=prices,
            prox=_PROX * state.centre_guess / size if 0.0 < size < np.inf else 0.0,
            cuts=cuts.age(active, self.max_age, self.max_cuts),
            certificate=certificate,
        )

    def _next_points(
        self, state: BundleState, model: CutModel, lowest: MasterSolution, lower: float, gap: float
    ) -> tuple[list[Array], Array]:
        """Where to ask, and each cut's largest share in any of the problems solved for it."""
        # The projection is the safe step: near the centre, where the model is good, and below it by
        # a fixed share of the gap. The minimiser of M is often far off, but cuts on the way to it
        # are what lifts the bound: so clients are asked half way. Further points, in the order in
        # which they save rounds: deeper, shallower, nearer.
        ways = (
            ("level", self.level),
            ("way", 0.5),
            ("level", self.level / 3.0),
            ("level", 0.5 * (1.0 + self.level)),
            ("way", 0.2),
            ("level", 0.25 * (3.0 + self.level)),
        )
        metric = metric_of(state.moments) if state.moments.size else None
        tol = _PROJECTION_TOL if metric is None else _METRIC_TOL
        points, shares = [], lowest.bound.shares
        for kind, share in ways[: self.points_per_round]:
            if kind == "way":
                points.append(_towards(state.centre, lowest.w, share))
                continue
            nearest = project_onto_level(
                model, state.centre, lower + share * gap, tol=tol, metric=metric
            )
            points.append(_towards(state.centre, nearest.w, 1.0))
            shares = np.maximum(shares, nearest.shares)
        return points, shares

    def _first_point(
        self, federation: Federation, state: BundleState, replies: Replies
    ) -> BundleState:
        """The mean of the clients' own optima; of those who answered, if some did not."""
        weights = np.where(replies.present, federation.alphas, 0.0)
        if not weights.sum() > 0.0:
            return state
        if self._wants_moments(federation.width):
            state = replace(state, moments=sum_of_moments(federation, replies))
        own = replies.rows("own", np.zeros((federation.n_clients, federation.width)))
        # Where a floor is 0 or tiny nothing bounds what one client calls its optimum, and one that
        # is millions of times too large would lead everybody to where float64 keeps nothing. So
        # models are scaled down to a thousand times the median size. Of two in the middle the lower
        # one counts: one of two clients cannot make its own size the usual one.
        sizes = np.abs(own).max(axis=1)
        usual = float(np.quantile(sizes[weights > 0.0], 0.5, method="lower"))
        most = min(_LARGEST_OWN * max(1.0, usual), float(np.finfo(np.float64).max))
        own = own * (most / np.maximum(sizes, most))[:, None]
        point = weighted_sum(weights, own) / weights.sum()
        if not np.isfinite(dot(point, point)):  # without limits a lie may be as large as it likes
            point = np.zeros(federation.width)
        return replace(state, points=point[None], centre=point)

    def _model(self, federation: Federation, cuts: Cuts) -> CutModel:
        """M: of each client's cuts, or of their sums, as if there were one client."""
        model = cut_model(federation, cuts.constants, cuts.slopes, cuts.norm_weights, cuts.owners)
        if self.cuts != "summed":
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

    def _with_risks(
        self, federation: Federation, state: BundleState, model: CutModel, replies: Replies
    ) -> BundleState:
        """Certificate and centre after the clients' risks at the points."""
        unknown = np.full((federation.n_clients, state.points.shape[0]), np.nan)
        centre, centre_risks, centre_guess = state.centre, state.centre_risks, state.centre_guess
        certificate = state.certificate
        for point, risks in zip(state.points, replies.rows("risks", unknown).T, strict=True):
            at_centre = np.array_equal(point, centre)
            if at_centre:  # some may have answered in an earlier round
                risks = np.where(np.isnan(risks), centre_risks, risks)
            objective = guess = federation.objective(risks)
            if np.isnan(objective) and self.cuts == "summed":
                guess = model.value(point)
            elif np.isnan(objective):  # the model speaks for clients that are not there
                spoken = np.where(np.isnan(risks), model.client_values(point), risks)
                guess = dot(federation.alphas, spoken)
            if at_centre or guess < centre_guess:
                centre, centre_risks, centre_guess = point, risks, guess
            certificate = certificate.with_point(federation, point, objective, risks)
        if certificate.objective < centre_guess:
            # The model thought too well of a client that was not there.
            centre, centre_risks = certificate.model, certificate.risks
            centre_guess = certificate.objective
        return replace(
            state,
            centre=centre,
            centre_risks=centre_risks,
            centre_guess=centre_guess,
            certificate=certificate,
        )

    def _lowest(
        self, federation: Federation, state: BundleState, model: CutModel
    ) -> tuple[MasterSolution, Certificate]:
        """The minimiser of M, and the certificate with what it proves."""
        best, cuts = state.certificate, state.cuts
        lowest = minimise_model(
            model,
            tol=min(max(_MASTER_SHARE * best.gap, _MASTER_TOL), _MASTER_SHARE),
            radius=reach_of(federation, best.model, model.slopes),
        )
        shares = lowest.bound.shares
        if self.cuts == "summed":  # a proof is made of the clients' own cuts
            model = cut_model(
                federation, cuts.constants, cuts.slopes, cuts.norm_weights, cuts.owners
            )
            shares = np.tile(shares, federation.n_clients)
        prove = partial(model_proof, model, shares)
        return lowest, best.with_bound(lowest.bound.value, lowest.bound.radius, prove)

    # --- server: where it stands ---

    def progress(self, state: BundleState) -> Progress:
        """The centre, pending while some client has not given its risk there.

        Settled once the gap is zero up to rounding: no round can improve on that.
        """
        best = state.certificate
        # The best objective is of answers only, so where the guess equals it nothing was guessed.
        is_known = state.centre_guess == best.objective < np.inf
        has_started = state.points.shape[0] > 0
        return Progress(
            state.centre,
            best,
            {"n_cuts": float(state.cuts.constants.size)},
            pending=state.centre if has_started and not is_known else None,
            is_settled=best.gap <= _ZERO_GAP,
        )

    def settle(self, federation: Federation, state: BundleState) -> BundleState:
        """Every round does it already."""
        return state

    def with_evaluation(
        self, federation: Federation, state: BundleState, replies: Replies
    ) -> BundleState:
        """The centre's risk and cut count too."""
        cuts = state.cuts.join(federation, replies, summed=self.cuts == "summed")
        state = replace(state, points=state.centre[None], cuts=cuts)
        model = self._model(federation, cuts)
        state = self._with_risks(federation, state, model, replies)
        return replace(state, certificate=self._lowest(federation, state, model)[1])


def _judge_starts(federation: Federation, screen: Screen, values: Mapping[int, Values]) -> Faults:
    """Each client's own optimum, with risk and cut there: no worse than the model 0."""
    faults: Faults = {}
    limits, P = screen.limits, federation.n_features
    for g, sent in values.items():
        answers, own = Answers({g: sent}), sent["own"]
        fault = judge_moments(federation, screen, sent) if "moments" in sent else None
        if fault is not None:
            faults[g] = fault
            continue
        if screen.of_sums:  # a sum of cuts, each at another optimum
            faults |= screen.judge_answers(federation, own[None][:0], answers, touching=False)
            continue
        faults |= screen.judge_answers(federation, own[None], answers)
        if g in faults or limits is None:
            continue
        risk, most = float(answers.risks[0, 0]), limits.loss_at_zero + limits.resolution
        reach = 1.0 + limits.score_ceiling(np.append(own[:P], 0.0))
        if not risk <= most * (1.0 + ROUNDING):
            faults[g] = Fault("own", "its own optimum is worse than the model 0", risk, most)
        elif own.size > P and not abs(own[P]) <= reach * (1.0 + ROUNDING):
            text = "the intercept of its own optimum exceeds what the limits on features allow"
            faults[g] = Fault("own", text, abs(float(own[P])), reach)
    return faults


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
