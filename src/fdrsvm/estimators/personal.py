"""A plant's own model, made of the shared one at the plant: no message is sent, no row leaves.

Shared   (w, b) as it was trained
Retune   (s w, b) with the least worst-case risk over s >= 0 and b: [retune]
Prox     (u, b) with the least worst-case risk + rho/2 ||(u, b) - (w, b)||^2: [prox-plant]
Own      (u, b) with the least worst-case risk, as if the plant had stayed alone
Auto     the simplest of these, in this order, that is within one standard error of the best

Folds    The plant deals its rows as in cross-validation. What is fitted at the plant is fitted
         without the held-out rows; the shared model has seen them, among those of all plants.
Cut      Where the shared threshold is not 0, so tuned, what is fitted has its own, from the folds.
         Else it is cut at 0, and its intercept is the plant's.
Proof    Each risk is exact. What no model of the plant can go below is proved by its own optimum.
         With a map both are of its features: the worst case of the sensors is at most the risk, and
         the bound is of what models of this map can prove, [map].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np

from fdrsvm.core.arrays import Array, check_choice
from fdrsvm.core.plain_json import to_plain
from fdrsvm.core.vectors import dot, dual_norm, times
from fdrsvm.data.training_data import Client, TrainingData
from fdrsvm.decision.goals import DEFAULT_SCORING
from fdrsvm.decision.histograms import Aim
from fdrsvm.errors import UnsupportedError
from fdrsvm.estimators.advice import FLAT
from fdrsvm.estimators.search import FoldOutcome, Split, assess, held_out_counts, split_rows
from fdrsvm.federated.certificate import Certificate
from fdrsvm.federated.methods import Bundle
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.rounds import RoundRecord
from fdrsvm.federated.train import make_problems, train
from fdrsvm.model.linear_model import ALARM, PERSONAL, PROBABILITIES, TUNING, VERDICT, LinearModel
from fdrsvm.risk.worst_case import Cut, RiskOracle, WorstCaseRisk

SHARED, RETUNE, PROX, OWN, AUTO = "shared", "retune", "prox", "own", "auto"
_N_FOLDS = 5
_TOL = 1e-6  # certified relative gap
_MAX_ROUNDS = 200
# rho times the squared size of the shared model: from keeping near it to hardly seeing it.
_PULLS = (1.0, 0.1, 0.01, 0.001)
# What a model's record says of decisions that a model with other weights does not take.
_OF_DECISIONS = (ALARM, PROBABILITIES, TUNING, VERDICT)

_CHOSEN = {
    RETUNE: "as asked for: the least worst-case risk with the shared direction",
    PROX: "as asked for: near the shared model, by a weight that its folds chose",
    AUTO: "the simplest that its folds call no worse than the best by over a standard error",
}
_NO_BETTER = "no other model of this kind has a lower worst-case risk and still uses the features"

# From a plant's problems, one per score, and models, one per row, to other models.
_Fit: TypeAlias = Callable[[Sequence[ClientProblem], Array], Array]


@dataclass(frozen=True, eq=False)
class FoldScore:
    """What a plant's held-out rows say of one choice.

    Attributes
    ----------
    score : float
        By the goal of the threshold: balanced accuracy, unless another was asked for.
    error : float
        Its standard error: the deviation of the folds' scores over the root of their number.
    counts : ndarray of shape (n_classes, n_classes)
        Rows by true class, in the row, and predicted class, in the column.
    threshold : float
        Where its scores were cut.
    """

    score: float
    error: float
    counts: Array
    threshold: float

    @classmethod
    def of_folds(cls, folds: Array, threshold: float, aim: Aim) -> Self:
        """From the counts of each fold."""
        by_fold, total = [aim.score(fold) for fold in folds], folds.sum(axis=0)
        error = float(np.std(by_fold, ddof=1) / np.sqrt(len(by_fold)))
        return cls(aim.score(total), error, total, threshold)


@dataclass(frozen=True, eq=False)
class Personal:
    """What a plant has for a model, and what is proved of it.

    Risks and the bound are worst-case risks at the plant, with a map certified ones as
    ``objective_`` is; with more than two classes arrays with one entry per class.

    Attributes
    ----------
    choice : {"shared", "retune", "prox", "own"}
    reason : str
        In words.
    risk_before, risk_after : float or ndarray
        Of the shared model and of the plant's: exact, and never larger after than before.
    lower_bound, bound_radius : float or ndarray
        No model with ||w||_* up to this radius has a lower risk at this plant; the radius is
        infinite unless nothing bounds w, as on a box or at epsilon = 0.
    scale : ndarray or None
        Of a retuned model the factor s of each score.
    rho : ndarray or None
        Of "prox" the weight of the distance to the shared model, for each score.
    folds : dict of FoldScore
        By choice, those that were tried, of "prox" the best; none if the plant has too few rows.
    model : LinearModel
        In the units of training.
    """

    choice: str
    reason: str
    risk_before: Any
    risk_after: Any
    lower_bound: Any
    bound_radius: Any
    scale: Array | None
    rho: Array | None
    folds: Mapping[str, FoldScore]
    model: LinearModel = field(repr=False)

    @property
    def gap_before(self) -> Any:
        """How much of the shared model's risk another model might save: proved, 0 to 1."""
        return _gap(self.risk_before, self.lower_bound)

    @property
    def gap_after(self) -> Any:
        """How much of the risk of the plant's model another model might save."""
        return _gap(self.risk_after, self.lower_bound)

    def to_record(self) -> dict[str, Any]:
        """Plain values, for a model's record: numbers and counts, nothing of any row."""
        names = ("choice", "reason", "risk_before", "risk_after", "lower_bound", "scale", "rho")
        folds = {name: vars(one) for name, one in self.folds.items()}
        kept = {name: getattr(self, name) for name in names} | {"folds": folds}
        return _plain_values({name: value for name, value in kept.items() if value is not None})


def _gap(risk: Any, bound: Any) -> Any:
    """Relative; 0 where the risk is."""
    above = np.maximum(np.subtract(risk, bound), 0.0)
    gap = np.divide(above, risk, out=np.zeros_like(above), where=np.asarray(risk) > 0.0)
    return gap if np.ndim(risk) else float(gap)


# --- the problems ---


class RayOracle:
    """A client's worst-case risk of the models (t w, b), as of one feature: [retune].

    ``direction`` is w, with a dual norm of 1.
    """

    def __init__(self, whole: RiskOracle, direction: Array) -> None:
        self.whole, self.direction, self.loss = whole, direction, whole.loss

    def value(self, t: Array, intercept: float = 0.0) -> float:
        """The risk of (t w, b)."""
        return self.whole.value(t[0] * self.direction, intercept)

    def cut(self, t: Array, intercept: float = 0.0) -> tuple[WorstCaseRisk, Cut]:
        """The risk there, and its cut restricted to the ray: on it, ||t w||_* is |t|."""
        risk, cut = self.whole.cut(t[0] * self.direction, intercept)
        slope = np.array([dot(cut.slope[:-1], self.direction), cut.slope[-1]])
        return risk, cut._replace(slope=slope)

    def cuts(self, points: Array) -> None:
        """Not in one call."""


def _on_ray(problem: ClientProblem, direction: Array) -> ClientProblem:
    """The problem of one feature, the score along a direction; in the norm it has the price 1."""
    oracle: Any = RayOracle(problem.exact, direction)
    profile = replace(problem.profile, n_features=1, groups=None)
    # Without the solvers, which look at rows: there is only one weight to find.
    ray = {"risk": oracle, "exact": oracle, "is_hinge": False, "has_solver": False}
    return replace(problem, profile=profile, width=2, **ray)


def _solve(problem: ClientProblem) -> Certificate:
    """The plant's problem alone, by the bundle method."""

    def is_close(record: RoundRecord, _: Array) -> bool:
        return record.gap <= _TOL

    # Without a tol there is no warning: the certificate says how close it came.
    result = train([problem], Bundle(), max_rounds=_MAX_ROUNDS, tol=0.0, callbacks=[is_close])
    return result.certificate.parts[0]


# --- the choices ---


def _retuned(problem: ClientProblem, model: Array) -> Array:
    """(s w, b) for the s >= 0 and b of least risk.

    The model itself, if the rows do not bear the direction out: with s = 0 they would be best off,
    or with hardly more, and there would be no score left to decide by.
    """
    w, _ = problem.split(model)
    ball = problem.exact.ball
    price = dual_norm(w, ball.norm, ball.groups)
    if price == 0.0:
        return model
    direction = w / price
    t, intercept = _solve(_on_ray(problem, direction)).model
    spread = t * np.ptp(times(problem.exact.X, direction))
    return problem.joined(t * direction, intercept) if spread > 2.0 * FLAT else model


def _pulled(pull: float, problem: ClientProblem, model: Array) -> Array:
    """(u, b) of least risk + rho/2 ||(u, b) - model||^2; with groups of features, see [prox-plant].

    ``pull`` is rho times the squared size of the model, so that units do not matter.
    """
    client = problem.penalised(_rho(pull, model))
    solution = client.solve_quietly(*problem.split(model), None, _TOL)
    return problem.joined(solution.w, solution.intercept)


def _rho(pull: float, model: Array) -> float:
    return pull / (dot(model, model) or 1.0)


def _each(
    fit_one: Callable[[ClientProblem, Array], Array],
    problems: Sequence[ClientProblem],
    models: Array,
) -> Array:
    """Every score fitted by itself, where that lowers its risk.

    A class that the plant has no rows of, or nothing but, keeps its score: the plant knows nothing
    of it.
    """
    fitted = models.copy()
    for k, problem in enumerate(problems):
        if len(np.unique(problem.exact.y)) > 1:
            new = fit_one(problem, models[k])
            if problem.risk_of(new) < problem.risk_of(models[k]):
                fitted[k] = new
    return fitted


def check_how(how: Any, *, fit_intercept: bool, has_solver: bool) -> None:
    """A choice that the plant's problem allows; ``has_solver`` is for the hinge without a box."""
    check_choice(how, "personal", (RETUNE, PROX, AUTO))
    if how == RETUNE and not fit_intercept:
        raise UnsupportedError("personal='retune' sets an intercept: it needs fit_intercept=True")
    if how == PROX and not has_solver:
        raise UnsupportedError(
            "personal='prox' is for loss='hinge' and support=None; use 'retune' or 'auto'"
        )


def _choices(how: str, problem: ClientProblem) -> dict[str, _Fit]:
    """What can be fitted, the simplest first; "prox" once for each of its weights."""
    has_intercept, has_solver = problem.profile.fit_intercept, problem.has_solver
    check_how(how, fit_intercept=has_intercept, has_solver=has_solver)
    fits: dict[str, _Fit] = {}
    if how != PROX and has_intercept:
        fits[RETUNE] = partial(_each, _retuned)
    if how != RETUNE and has_solver:
        fits |= {f"{PROX} {pull:g}": partial(_each, partial(_pulled, pull)) for pull in _PULLS}
    if how == AUTO:
        fits[OWN] = partial(_each, lambda problem, _: _solve(problem).model)
    return fits


# --- which of them ---


@dataclass(frozen=True, eq=False)
class _Plant:
    """The shared model and one plant's rows; ``ball`` is as ``make_problems`` takes it."""

    shared: LinearModel
    client: Client
    epsilon: float
    kappa: float
    ball: Mapping[str, Any]
    aim: Aim

    @property
    def models(self) -> Array:
        """One row per score, the intercept last if there is one."""
        coef, intercept = self.shared.coef, self.shared.intercept[:, None]
        return np.hstack([coef, intercept]) if self.ball["fit_intercept"] else coef.copy()

    def problems(self, client: Client) -> Sequence[ClientProblem]:
        """Of some of the rows: one per score."""
        own = {**self.ball, "features": self.shared.features}
        [problem] = make_problems([client], [self.epsilon], [self.kappa], **own)
        return getattr(problem, "problems", (problem,))

    def with_models(self, models: Array, threshold: float) -> LinearModel:
        """The shared model with other weights, and nothing said that was true of the old ones."""
        P = self.shared.coef.shape[1]
        record = {k: v for k, v in self.shared.record.items() if k not in _OF_DECISIONS}
        new = {"coef": models[:, :P], "intercept": models[:, P:].sum(axis=1), "record": record}
        return LinearModel.checked(**{**vars(self.shared), **new, "threshold": threshold})

    def splits(self, class_weights: Array, seed: int) -> list[Split]:
        """Folds of its rows; those that are held out count as rows, whatever their class weighs."""
        client, labels = self.client, np.arange(self.client.n_classes)
        totals = np.bincount(client.codes, minlength=len(labels)).astype(float)
        names, whole = [client.name], [client.total]
        one = TrainingData(
            labels, totals, class_weights, np.array(names), (client,), 0, names, whole
        )
        splits = split_rows(one, _N_FOLDS, seed)
        return [
            replace(split, held_out=tuple(_as_rows(own, class_weights) for own in split.held_out))
            for split in splits
        ]

    def try_all(
        self, fits: Mapping[str, _Fit], class_weights: Array, seed: int
    ) -> dict[str, FoldScore]:
        """The shared model, and what can be fitted, on rows that were held out."""
        splits = self.splits(class_weights, seed)
        held_out = [own for split in splits for own in split.held_out]
        shared, cut = self.numbered(self.shared), self.shared.threshold
        counts = [held_out_counts(shared, own.X, own.codes, own.weights) for own in held_out]
        tried = {SHARED: FoldScore.of_folds(np.array(counts), cut, self.aim)}
        problems = [self.problems(*split.training) for split in splits]
        for name, fit in fits.items():
            models = [self.with_models(fit(each, self.models), 0.0) for each in problems]
            outcomes = [FoldOutcome(self.numbered(model), 0.0) for model in models]
            found, _ = assess(outcomes, splits, self.aim, is_tuned=cut != 0.0)
            tried[name] = FoldScore.of_folds(found.counts, found.threshold, self.aim)
        return tried

    def numbered(self, model: LinearModel) -> LinearModel:
        """With positions in place of labels."""
        return replace(model, classes=tuple(range(self.client.n_classes)))


def _simplest(tried: Mapping[str, FoldScore]) -> str:
    """The first that is no worse than the best by more than the standard error of the best.

    A goal of the user's own may be nan for what was counted: then that says nothing.
    """
    known = {name: one for name, one in tried.items() if not np.isnan(one.score)}
    if not known:
        return next(iter(tried))
    best = max(known.values(), key=lambda one: one.score)
    least = best.score - float(np.nan_to_num(best.error))
    return next(name for name, one in known.items() if one.score >= least)


def _as_rows(client: Client, class_weights: Array) -> Client:
    """With the weights of samples alone."""
    each = np.divide(1.0, class_weights, out=np.zeros(client.n_classes), where=class_weights > 0.0)
    return replace(client, weights=client.weights * each[client.codes])


def rebalanced(client: Client, class_weights: Array) -> tuple[Client, Array]:
    """With "balanced" weights by the plant's own rows, as it would have them alone; and these."""
    rows = _as_rows(client, class_weights).weights
    totals = np.bincount(client.codes, rows, client.n_classes)
    own = rows.sum() / (client.n_classes * np.where(totals > 0.0, totals, rows.sum()))
    return replace(client, weights=rows * own[client.codes]), own


def _nothing_to_learn(shared: LinearModel, client: Client, how: str) -> str | None:
    """Why a plant keeps the shared model whatever its rows are, in words."""
    counts = np.bincount(client.codes, minlength=client.n_classes).tolist()
    present = {
        label: count for label, count in zip(shared.classes, counts, strict=True) if count > 0
    }
    least = min(present, key=lambda label: present[label])
    if len(present) == 1:
        return f"all its rows are {least!r}, which says nothing of other classes"
    if how != RETUNE and present[least] < _N_FOLDS:
        return (
            f"its rows of {least!r} are too few to compare models: {present[least]} different "
            f"ones, and {_N_FOLDS} folds need {_N_FOLDS}"
        )
    return None


def personalise(
    shared: LinearModel,
    client: Client,
    *,
    how: str,
    epsilon: float,
    kappa: float,
    ball: Mapping[str, Any],
    class_weights: Array,
    aim: Aim | None = None,
    seed: int = 0,
) -> Personal:
    """A plant's own model, from the shared one and the plant's rows.

    Parameters
    ----------
    shared : LinearModel
        In the units of the rows.
    client : Client
        The plant's rows, equal ones merged; weights are those of samples times those of classes.
    how : {"retune", "prox", "auto"}
    epsilon, kappa, ball : float, float, mapping
        As :func:`fdrsvm.federated.train.make_problems` takes them.
    class_weights : array of shape (n_classes,)
        What is in the weights of the rows; held-out rows count without.
    aim : Aim, optional
        What is best, on folds and for thresholds; balanced accuracy if not given.
    seed : int
        Of the folds.
    """
    plant = _Plant(shared, client, epsilon, kappa, ball, aim or Aim(DEFAULT_SCORING))
    problems, models = plant.problems(client), plant.models
    fits = _choices(how, problems[0])
    reason = _nothing_to_learn(shared, client, how)
    tried: dict[str, FoldScore] = {}
    if reason is None and _nothing_to_learn(shared, client, AUTO) is None:
        tried = plant.try_all(fits, class_weights, seed)
    chosen = SHARED
    if reason is None:
        candidates = {name: one for name, one in tried.items() if how == AUTO or name in fits}
        chosen = _simplest(candidates) if candidates else RETUNE
        reason = _CHOSEN[how]
    fitted = models if chosen == SHARED else fits[chosen](problems, models)
    if chosen != SHARED and np.array_equal(fitted, models):
        chosen, reason = SHARED, _NO_BETTER
    choice, _, pull = chosen.partition(" ")
    threshold = tried[chosen].threshold if tried else 0.0
    proofs = [_solve(problem) for problem in problems]
    scale = None
    if choice == RETUNE:  # each score lies on the shared one's ray; 0 where that is 0
        coef = shared.coef
        sizes = (coef * coef).sum(axis=1)
        scale = (fitted[:, : coef.shape[1]] * coef).sum(axis=1) / np.where(
            sizes > 0.0, sizes, np.inf
        )
    # Of several weights of "prox" the chosen one is told, else the best.
    worst_first = sorted(tried, key=lambda name: (name == chosen, tried[name].score))
    best = {name.partition(" ")[0]: tried[name] for name in worst_first}
    made = Personal(
        choice=choice,
        reason=reason,
        risk_before=_by_score(map(ClientProblem.risk_of, problems, models)),
        risk_after=_by_score(map(ClientProblem.risk_of, problems, fitted)),
        lower_bound=_by_score(proof.lower_bound for proof in proofs),
        bound_radius=_by_score(proof.radius for proof in proofs),
        scale=scale,
        rho=np.array([_rho(float(pull), model) for model in models]) if pull else None,
        folds={name: best[name] for name in (SHARED, RETUNE, PROX, OWN) if name in best},
        model=shared if choice == SHARED else plant.with_models(fitted, threshold),
    )
    return replace(made, model=_certified(made, plant, class_weights))


def _certified(made: Personal, plant: _Plant, class_weights: Array) -> LinearModel:
    """The model with the plant's certificate in place of the federation's.

    Its parameters and its record of data are those of a training with this one client.
    """
    model, name = made.model, plant.client.name
    weights = dict(zip(model.classes, class_weights.tolist(), strict=True))
    params = {
        "epsilon": plant.epsilon,
        "kappa": plant.kappa,
        "client_weights": "equal",
        "class_weight": weights if (class_weights != 1.0).any() else None,
        "personal": None,
    }
    certificate = {
        "objective": made.risk_after,
        "lower_bound": made.lower_bound,
        "gap": made.gap_after,
        "bound_radius": made.bound_radius,
        "worst_case_risk_per_client": {name: made.risk_after},
        "client_labels": np.array([name]),
    }
    kept = {
        key: model.certificate[key] for key in ("n_iter", "stop_reason") if key in model.certificate
    }
    record = {key: value for key, value in model.record.items() if key != "history"}
    if "data" in record:
        own = {"rows": round(plant.client.total), "epsilon": plant.epsilon, "client_weights": 1.0}
        record["data"] = {
            **record["data"],
            **{key: {str(name): value} for key, value in own.items()},
        }
    return replace(
        model,
        params={**model.params, **_plain_values(params)},
        certificate=kept | _plain_values(certificate),
        record={**record, PERSONAL: made.to_record()},
    )


def _plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_plain(value, name) for name, value in values.items()}


def _by_score(values: Iterable[float]) -> Any:
    """A number for two classes, else an array with one entry per class."""
    each = list(values)
    return each[0] if len(each) == 1 else np.array(each)
