"""Cross-validation of FDRSVC's parameters across clients: the grid, folds, counts and their table.

Folds     are drawn inside each client: it deals its rows, class after class in random order, to the
          folds in turn. So numbers of rows differ by at most one between folds, in all and in each
          class, and a client with two rows or more has training rows in every fold. One with fewer
          rows than folds has nothing held out in some.
Counts    are all that a client hands over about its held-out rows: of two classes how many scores
          lie between which edges, of more how often which class was taken for which. The server
          sums them over clients, and of two classes chooses where to cut.
Trials    Configurations that differ in ``max_rounds`` only share a run: its rounds do not depend on
          how many are allowed, so that the model after T rounds is the one of a run that ends
          there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import rankdata
from sklearn.model_selection import ParameterGrid

from fdrsvm.core.arrays import Array, Matrix, check_choice, check_count, check_non_negative
from fdrsvm.data.training_data import Client, Codes, TrainingData, auto_radius, read_training_data
from fdrsvm.decision.goals import count_rows
from fdrsvm.decision.histograms import Aim, ask_histogram, best_cut, count_scores
from fdrsvm.errors import FDRSVMError, InvalidInputError, UnsupportedError
from fdrsvm.estimators.advice import BALANCED, FLAT
from fdrsvm.estimators.fdrsvc import FDRSVC
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.methods import OneVsRest
from fdrsvm.federated.rounds import Result, RoundRecord, Snapshot
from fdrsvm.federated.train import train
from fdrsvm.model.linear_model import LinearModel

Folds: TypeAlias = npt.NDArray[np.intp]

# The paper's grids: radii 1/(beta N_g) for beta = 100, 10, 1 and 0.1.
_RADII = (0.1, 1.0, 10.0, 100.0)
_KAPPAS = (0.1, 0.5, 1.0)
_CLASS_WEIGHTS = (None, BALANCED)
DEFAULT_GRID = ("epsilon", "kappa", "class_weight")  # parameters that have default values
FEATURES = "features"  # so have maps, where they are asked for
_PAIRS, WAVES = "additive-pairs", "fourier"
_MAPS = ("linear", "additive", _PAIRS, WAVES)
_FEW_SENSORS = 10  # what pairs and the smallest radius of more cost does not pay
_MAP_RADII = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # what bends depends more on the radius
# What decides how rows are read; the other parameters come after that.
_READING = ("class_weight", "support", "outside")
ALWAYS_TRAINS = -1  # in place of a fold, for a row that is never held out


@dataclass(frozen=True, eq=False)
class Trial:
    """Configurations that differ in ``max_rounds`` only, as positions in the grid."""

    members: tuple[int, ...]
    estimators: tuple[FDRSVC, ...]

    @property
    def reading(self) -> dict[str, Any]:
        """How rows are read, the same for all."""
        return {name: getattr(self.estimators[0], name) for name in _READING}


@dataclass(frozen=True, eq=False)
class Split:
    """One fold: rows that train and rows that are held out, client by client.

    The weights of both are sample weights; those of classes come later.
    """

    classes: npt.NDArray[Any]
    training: tuple[Client, ...]
    held_out: tuple[Client, ...]

    def training_data(self, **reading: Any) -> TrainingData:
        """What FDRSVC would read from the training rows alone."""
        clients = self.training
        matrices = [client.X for client in clients]
        is_sparse = sparse.issparse(matrices[0])
        names = np.array([client.name for client in clients])
        return read_training_data(
            FDRSVC(),
            sparse.vstack(matrices, format="csr") if is_sparse else np.vstack(matrices),
            self.classes[np.concatenate([client.codes for client in clients])],
            clients=np.repeat(names, [client.codes.size for client in clients]),
            sample_weight=np.concatenate([client.weights for client in clients]),
            **reading,
        )


class FoldOutcome(NamedTuple):
    """One configuration in one fold; ``error`` says why it has no model."""

    model: LinearModel | None
    gap: float
    error: str = ""


class HeldOut(NamedTuple):
    """Rows of a client that a model has not seen, with its scores: they stay with the client."""

    name: Any
    scores: Array
    codes: Codes
    weights: Array


class Assessment(NamedTuple):
    """One configuration on all held-out rows: what its clients counted, and where it is cut.

    ``counts`` has shape (n_folds, n_classes, n_classes); ``n_numbers`` is how many counts a client
    handed over. A flat model ignores all features, so that its ranking rests on nothing much.
    """

    counts: Array
    threshold: float
    n_numbers: int
    is_flat: bool


# --- the grid ---


def grid_points(param_grid: Any, data: TrainingData) -> list[dict[str, Any]]:
    """All points in the order of scikit-learn's ParameterGrid.

    Names alone stand for the default values of these parameters.
    """
    is_listed = hasattr(param_grid, "__iter__") and not isinstance(param_grid, str | Mapping)
    grids = list(param_grid) if is_listed else [param_grid]
    if is_listed and grids and all(isinstance(name, str) for name in grids):
        grids = default_grids(grids, data)
    for grid in grids:
        _check_grid(grid, "has" if is_listed else "is")
    if not grids:
        raise InvalidInputError("param_grid", "must vary a parameter", "it is empty")
    return [dict(point) for point in ParameterGrid(grids)]


def default_grids(names: Sequence[str], data: TrainingData) -> list[dict[str, Any]]:
    """The paper's small grid, with and without balanced classes; and maps, if they are named.

    Its radii are multiples of "auto": one number where that is the same for all clients. A map has
    more weights, and takes longer: it is tried with the price of a wrong label in the middle, and
    with more radii, 0.1 to 10 times "auto". Few sensors have their pairs too, and 0.03 times
    "auto": that needs most rounds, and of rare faults with true labels it ranks best.
    """
    for name in names:
        check_choice(name, "param_grid", (*DEFAULT_GRID, FEATURES))
    straight = _own_grid(names, data, _RADII, _KAPPAS)
    if FEATURES not in names:
        return [straight]
    has_few = data.clients[0].X.shape[1] <= _FEW_SENSORS
    bent = _own_grid(names, data, _MAP_RADII if has_few else _MAP_RADII[1:], _KAPPAS[1:2])
    maps = [name for name in _MAPS if name != _PAIRS or has_few]
    return [{**(straight if name == _MAPS[0] else bent), FEATURES: [name]} for name in maps]


def _own_grid(
    names: Sequence[str], data: TrainingData, factors: Sequence[float], kappas: Sequence[float]
) -> dict[str, Any]:
    auto = np.array([auto_radius(total) for total in data.totals])
    radii: list[Any] = [float(factor * auto[0]) for factor in factors]
    if (auto != auto[0]).any():
        radii = [dict(zip(data.names, (factor * auto).tolist(), strict=True)) for factor in factors]
    values = {"epsilon": radii, "kappa": kappas, "class_weight": _CLASS_WEIGHTS}
    return {name: values[name] for name in names if name != FEATURES}


def _check_grid(grid: Any, verb: str) -> None:
    if not isinstance(grid, Mapping):
        raise InvalidInputError(
            "param_grid", "must be a mapping or a list of mappings", f"it {verb} {grid!r}"
        )
    if not grid:
        raise InvalidInputError("param_grid", "must vary a parameter", "it is empty")
    known = FDRSVC().get_params(deep=False)
    unknown = [name for name in grid if name not in known]
    if unknown:
        raise InvalidInputError(
            "param_grid",
            "must name parameters of FDRSVC",
            f"unknown: {', '.join(map(repr, unknown))}",
        )
    for name, values in grid.items():
        is_array = isinstance(values, np.ndarray) and values.ndim == 1
        if not is_array and not isinstance(values, list | tuple):
            raise InvalidInputError(
                "param_grid", f"the values of {name} must be a list", f"they are {values!r}"
            )
        if len(values) == 0:
            raise InvalidInputError("param_grid", f"{name} must have a value", "it has none")


def make_trials(fixed: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> list[Trial]:
    """Grid points by run."""
    groups: dict[Any, list[int]] = {}
    for at, point in enumerate(points):
        # Values may be arrays or mappings, which have no hash; one object is one value.
        key = frozenset((name, id(value)) for name, value in point.items() if name != "max_rounds")
        groups.setdefault(key, []).append(at)
    return [
        Trial(tuple(members), tuple(FDRSVC(**{**fixed, **points[at]}) for at in members))
        for members in groups.values()
    ]


# --- folds ---


def split_rows(data: TrainingData, n_folds: int, seed: int) -> list[Split]:
    """All folds of all clients; neither the order of clients nor that of rows matters.

    ``data`` must have its equal rows merged: they share a fold then, and rows have an order of
    their own.
    """
    folds = []
    for client in data.clients:
        # A generator of its own, whoever else takes part.
        rng = np.random.default_rng([seed, *str(client.name).encode()])
        folds.append(client_folds(client.codes, n_folds, rng))
    folds = keep_every_class(folds, data)
    if all((drawn == ALWAYS_TRAINS).all() for drawn in folds):
        raise InvalidInputError(
            "X",
            "some client must have two different rows, so that one can be held out",
            f"none of {len(folds)} has",
        )
    return [
        Split(
            data.classes,
            _selected(data, [drawn != fold for drawn in folds]),
            _selected(data, [drawn == fold for drawn in folds]),
        )
        for fold in range(n_folds)
    ]


def client_folds(codes: Codes, n_folds: int, rng: np.random.Generator) -> Folds:
    """The client's part: a fold for each row. A client's only row always trains."""
    if codes.size == 1:
        return np.array([ALWAYS_TRAINS])
    shuffled = rng.permutation(codes.size)
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds = np.empty(codes.size, dtype=np.intp)
    # Else all clients with few rows would have them in the first folds.
    first = rng.integers(n_folds)
    folds[order] = (first + np.arange(codes.size)) % n_folds
    return folds


def keep_every_class(folds: Sequence[Folds], data: TrainingData) -> list[Folds]:
    """The server's part: a class that is in one fold only would be missing when that is held out.

    It then has at most one row per client, and the first client that has one always trains on it.
    """
    kept = [drawn.copy() for drawn in folds]
    for code in range(len(data.classes)):
        rows = [client.codes == code for client in data.clients]
        used = np.concatenate([drawn[own] for drawn, own in zip(kept, rows, strict=True)])
        if len(set(used.tolist())) == 1:
            first = next(g for g, own in enumerate(rows) if own.any())
            kept[first][rows[first]] = ALWAYS_TRAINS
    return kept


def _selected(data: TrainingData, rows: Sequence[npt.NDArray[np.bool_]]) -> tuple[Client, ...]:
    selected = []
    for one, own in zip(data.clients, rows, strict=True):
        weights = one.weights[own]
        total = float(weights.sum())
        selected.append(Client(one.name, one.X[own], one.codes[own], one.n_classes, weights, total))
    return tuple(selected)


# --- one trial ---


def check_trial(trial: Trial, data: TrainingData) -> None:
    """An option that breaks a rule is an error; options that do not go together can wait."""
    for estimator in trial.estimators:
        check_count(estimator.max_rounds, "max_rounds")
    check_count(trial.estimators[0].n_threads, "n_threads")
    with suppress(UnsupportedError):
        settings = _settings(trial.estimators[0], data)
        profiles = [problem.profile for problem in settings["clients"]]
        Federation.checked(profiles, settings["client_weights"])


def run_trial(
    trial: Trial, data: TrainingData, n_classes: int, n_threads: int
) -> list[FoldOutcome]:
    """Train across the clients on ``data``, a fold's training rows."""
    outcomes = []
    try:
        for result in train_once(trial.estimators, data, n_threads):
            models = np.array([one.model for one in result.certificate.parts])
            n_features = result.federation.n_features
            model = LinearModel.checked(
                models[:, :n_features],
                models[:, n_features:].sum(axis=1),  # 0 where there is no intercept
                range(n_classes),
                estimator=FDRSVC.__name__,
                features=trial.estimators[0]._features(data),
            )
            outcomes.append(FoldOutcome(model, result.gap))
    except FDRSVMError as error:
        return [_failed(error)] * len(trial.members)
    return outcomes


def _failed(error: FDRSVMError) -> FoldOutcome:
    return FoldOutcome(None, np.inf, f"{type(error).__name__}: {error}")


def train_once(
    estimators: Sequence[FDRSVC], data: TrainingData, n_threads: int = 1
) -> Iterator[Result]:
    """What each would train, bit for bit, from one run; they differ in ``max_rounds`` only.

    Of a single client with a map ``fit`` itself asks at more points a round.
    """
    settings = _settings(estimators[0], data)
    ends = [int(estimator.max_rounds) for estimator in estimators]
    snapshots: dict[int, Snapshot] = {}

    def keep(snapshot: Snapshot) -> None:
        if snapshot.round in ends:
            snapshots[snapshot.round] = snapshot

    def is_last(record: RoundRecord, model: Array) -> bool:  # noqa: ARG001
        return record.round >= max(ends)

    # The callback ends it one round early, and spares every fold a warning.
    settings["max_rounds"] = max(ends) + 1
    longest = train(**settings, n_threads=n_threads, callbacks=[is_last], checkpoint=keep)
    for end in ends:
        if end >= longest.n_rounds:
            yield longest
        else:
            # As if no more rounds had been allowed: its last model is evaluated, and no more. With
            # a tol it would warn.
            settings |= {"max_rounds": end, "tol": 0.0}
            yield train(**settings, resume=snapshots[end])


def _settings(estimator: FDRSVC, data: TrainingData) -> dict[str, Any]:
    """Of the estimator's own run, with a method that knows its ``tol`` whatever the run's is."""
    estimator._check_options()
    # Models of folds are loose: more points a round, which a last fit may have, save no time there.
    settings = estimator._settings(data) | {"method": estimator._method()}
    tol = check_non_negative(estimator.tol, "tol")
    if len(data.classes) > 2:
        settings["method"] = OneVsRest(settings["method"], len(data.classes), tol)
    return settings


# --- counts ---


def assess(
    outcomes: Sequence[FoldOutcome], splits: Sequence[Split], aim: Aim, *, is_tuned: bool
) -> tuple[Assessment, list[FoldOutcome]]:
    """One configuration on the rows that each fold's model has not seen.

    With ``is_tuned``, two classes are cut where the aim is met best, else at 0. The outcomes come
    back, with an error where scores overflow.
    """
    n_classes = len(splits[0].classes)
    nothing = Assessment(np.zeros((len(splits), n_classes, n_classes)), 0.0, 0, False)
    if any(one.model is None for one in outcomes):
        return nothing, list(outcomes)
    try:
        if n_classes > 2:
            tables = np.zeros_like(nothing.counts)
            for table, fold, split in zip(tables, outcomes, splits, strict=True):
                assert fold.model is not None
                for c in split.held_out:
                    table += held_out_counts(fold.model, c.X, c.codes, c.weights)
            return Assessment(tables, 0.0, tables.size, False), list(outcomes)
        folds = [held_out(*fold) for fold in zip(outcomes, splits, strict=True)]
    except FDRSVMError as error:
        return nothing, [_failed(error)] * len(splits)

    def ask(edges: Array) -> Array:
        nothing = np.zeros((2, len(edges) + 1))  # of a fold in which no client has rows
        return np.array(
            [sum((count_scores(*one[1:], edges) for one in own), nothing) for own in folds]
        )

    histogram = ask_histogram(ask)
    at, threshold = best_cut(histogram, aim) if is_tuned else (histogram.zero, 0.0)
    is_flat = histogram.is_flat(2.0 * FLAT)
    return (
        Assessment(histogram.tables(at), threshold, histogram.n_numbers, is_flat),
        list(outcomes),
    )


def held_out(outcome: FoldOutcome, split: Split) -> list[HeldOut]:
    """The clients' part: the scores of their own rows."""
    assert outcome.model is not None
    return [
        HeldOut(c.name, outcome.model.decision_function(c.X), c.codes, c.weights)
        for c in split.held_out
        if len(c.codes)
    ]


def held_out_counts(
    model: LinearModel, X: Matrix, y: Codes, sample_weight: Array | None = None
) -> Array:
    """The client's part: how many rows of each class the model takes for each class.

    Parameters
    ----------
    model : LinearModel
        Its classes are 0, 1, ..., n_classes - 1.
    X, y : arrays
        Rows that the model was not trained on; ``y`` in the model's classes.
    sample_weight : array, optional
        A row of weight 2 counts as two.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        All that leaves the client: the true class has the row, the predicted one the column.
    """
    predicted = model.predict(X) if len(y) else y  # of no row there is no score either
    return count_rows(y, predicted, len(model.classes), sample_weight)


# --- the table ---


def tabulate(
    points: Sequence[Mapping[str, Any]],
    outcomes: Sequence[Sequence[FoldOutcome]],
    assessed: Sequence[Assessment],
    aim: Aim,
) -> dict[str, Any]:
    """Columns with an entry for each configuration, as in scikit-learn's ``cv_results_``.

    ``outcomes`` are by configuration and fold.
    """
    counts = np.array([one.counts for one in assessed])
    errors = [next((fold.error for fold in folds if fold.error), "") for folds in outcomes]
    by_fold = np.array([[aim.score(fold) for fold in folds] for folds in counts])
    pooled = np.array([aim.score(folds.sum(axis=0)) for folds in counts])
    pooled[[error != "" for error in errors]] = np.nan
    mean, std = np.full((2, len(points)), np.nan)
    for k, scores in enumerate(by_fold):
        known = scores[~np.isnan(scores)]
        if known.size and not np.isnan(pooled[k]):
            mean[k], std[k] = known.mean(), known.std()
    is_flat = np.array([one.is_flat for one in assessed])
    ranked = np.nan_to_num(pooled, nan=-np.inf)
    if (~is_flat & ~np.isnan(pooled)).any():  # one that failed is no better than a flat one
        # Whatever their score: nothing is proved about a ranking by w = 0.
        ranked[is_flat] = -np.inf
    return {
        "params": [dict(point) for point in points],
        **_parameter_columns(points),
        **{f"split{k}_test_score": scores for k, scores in enumerate(by_fold.T.copy())},
        "mean_test_score": mean,
        "std_test_score": std,
        "pooled_test_score": pooled,
        "rank_test_score": rankdata(-ranked, "min").astype(np.int32),
        "threshold": np.array([one.threshold for one in assessed]),
        "is_flat": is_flat,
        "max_gap": np.array([max(fold.gap for fold in folds) for folds in outcomes]),
        "error": np.array(errors, dtype=object),
        "counts": counts,
    }


def choose(results: Mapping[str, Any]) -> int:
    """The configuration with the best pooled score, the first of equal ones.

    Waves cannot be read sensor by sensor: they have to be better by more than one standard error,
    that of their folds.
    """
    order = np.argsort(results["rank_test_score"], kind="stable")
    first, params = int(order[0]), results["params"]
    readable = [int(at) for at in order if params[at].get(FEATURES) != WAVES]
    if params[first].get(FEATURES) != WAVES or not readable:
        return first
    second, scores = readable[0], results["pooled_test_score"]
    error = results["std_test_score"][first] / np.sqrt(results["counts"].shape[1])
    is_fair = results["is_flat"][first] or not results["is_flat"][second]
    return second if is_fair and scores[second] >= scores[first] - error else first


def _parameter_columns(points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One column per parameter, masked where a configuration leaves it as it is."""
    columns = {}
    for name in sorted({name for point in points for name in point}):
        values = np.empty(len(points), dtype=object)
        for at, point in enumerate(points):
            values[at] = point.get(name)  # one by one, since a value may be a list
        masked = [name not in point for point in points]
        columns[f"param_{name}"] = np.ma.array(values, mask=masked)
    return columns
