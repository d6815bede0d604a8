"""A search over FDRSVC's parameters: which configurations there are, and how one fold tests them.

Configurations that differ in ``max_rounds`` only share a run: its rounds do not depend on how many
are allowed, so that the model after T rounds is the one of a run that ends there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import ParameterGrid

from fdrsvm.core.arrays import Array, check_count, check_flag, check_non_negative
from fdrsvm.data.training_data import TrainingData, client_shares, radii
from fdrsvm.errors import FDRSVMError, InvalidInputError, UnsupportedError
from fdrsvm.estimators.counts import held_out_counts
from fdrsvm.estimators.fdrsvc import FDRSVC
from fdrsvm.estimators.folds import Split
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods import OneVsRest
from fdrsvm.federated.rounds import Result, RoundRecord, Snapshot, Transport, run_rounds
from fdrsvm.federated.train import standings, summed
from fdrsvm.model.linear_model import LinearModel

# The paper's grids: radii 1/(beta N_g) for beta = 100, 10, 1 and 0.1.
_RADII = (0.1, 1.0, 10.0, 100.0)
_KAPPAS = (0.1, 0.5, 1.0)
# What decides how rows are read; the other parameters come after that.
_READING = ("class_weight", "support", "outside")


@dataclass(frozen=True, eq=False)
class Trial:
    """Configurations that differ in ``max_rounds`` only, as positions in the grid."""

    members: tuple[int, ...]
    estimators: tuple[FDRSVC, ...]

    @property
    def reading(self) -> dict[str, Any]:
        """How rows are read, the same for all."""
        return {name: getattr(self.estimators[0], name) for name in _READING}


class Outcome(NamedTuple):
    """One configuration in one fold; ``error`` says why it has no counts."""

    counts: Array
    gap: float
    error: str = ""


class _Training(NamedTuple):
    """All that a run needs, checked."""

    problems: Sequence[Any]
    algorithm: Any
    client_weights: Array
    tol: float
    secure_aggregation: bool

    def run(self, n_threads: int = 1, **settings: Any) -> Result:
        """One run, with settings of ``run_rounds``."""
        transport: Transport = InProcess(self.problems, n_threads=n_threads)
        algorithm, client_weights = self.algorithm, self.client_weights
        if self.secure_aggregation:
            transport, algorithm, client_weights = summed(transport, algorithm, client_weights)
        return run_rounds(transport, algorithm, client_weights=client_weights, **settings)


# --- the grid ---


def grid_points(param_grid: Any, data: TrainingData) -> list[dict[str, Any]]:
    """All points in the order of scikit-learn's ParameterGrid; None is the paper's small grid."""
    if param_grid is None:
        param_grid = {"epsilon": _default_radii(data), "kappa": _KAPPAS}
    grids = [param_grid] if isinstance(param_grid, Mapping) else param_grid
    if isinstance(grids, str) or not hasattr(grids, "__iter__"):
        raise InvalidInputError(
            "param_grid", "must be a mapping or a list of mappings", f"it is {param_grid!r}"
        )
    grids = list(grids)
    for grid in grids:
        _check_grid(grid)
    if not grids:
        raise InvalidInputError("param_grid", "must vary a parameter", "it is empty")
    return [dict(point) for point in ParameterGrid(grids)]


def _check_grid(grid: Any) -> None:
    if not isinstance(grid, Mapping):
        raise InvalidInputError(
            "param_grid", "must be a mapping or a list of mappings", f"it has {grid!r}"
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


def _default_radii(data: TrainingData) -> list[Any]:
    """Multiples of "auto": one number where that is the same for all clients."""
    auto = np.array(radii("auto", "epsilon", data))
    if (auto == auto[0]).all():
        return [float(factor * auto[0]) for factor in _RADII]
    labels = data.client_labels.tolist()
    return [dict(zip(labels, (factor * auto).tolist(), strict=True)) for factor in _RADII]


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


# --- one trial ---


def check_trial(trial: Trial, data: TrainingData) -> None:
    """An option that breaks a rule is an error; options that do not go together can wait."""
    for estimator in trial.estimators:
        check_count(estimator.max_rounds, "max_rounds")
    with suppress(UnsupportedError):
        _prepared(trial.estimators[0], data)


def run_trial(trial: Trial, data: TrainingData, split: Split, n_threads: int) -> list[Outcome]:
    """Train across the clients on ``data``, then each client counts on its held-out rows."""
    n_classes = len(split.classes)
    try:
        return [
            Outcome(_pooled_counts(result, split), result.gap)
            for result in train_once(trial.estimators, data, n_threads)
        ]
    except FDRSVMError as error:
        failed = Outcome(np.zeros((n_classes, n_classes)), np.inf, _told(error))
        return [failed] * len(trial.members)


def train_once(
    estimators: Sequence[FDRSVC], data: TrainingData, n_threads: int = 1
) -> Iterator[Result]:
    """What each would train, bit for bit, from one run; they differ in ``max_rounds`` only."""
    training = _prepared(estimators[0], data)
    ends = [int(estimator.max_rounds) for estimator in estimators]
    snapshots: dict[int, Snapshot] = {}

    def keep(snapshot: Snapshot) -> None:
        if snapshot.round in ends:
            snapshots[snapshot.round] = snapshot

    def is_last(record: RoundRecord, model: Array) -> bool:  # noqa: ARG001
        return record.round >= max(ends)

    longest = training.run(
        n_threads,
        max_rounds=max(ends) + 1,  # the callback ends it, and spares every fold a warning
        tol=training.tol,
        callbacks=[is_last],
        checkpoint=keep,
    )
    for end in ends:
        if end >= longest.n_rounds:
            yield longest
        else:
            yield _ended_at(snapshots[end], training)


def _ended_at(snapshot: Snapshot, training: _Training) -> Result:
    """The run as if no more rounds had been allowed: its last model is evaluated, and no more."""
    # With a tol it would warn.
    return training.run(max_rounds=snapshot.round, tol=0.0, resume=snapshot)


def _prepared(estimator: FDRSVC, data: TrainingData) -> _Training:
    """As FDRSVC prepares its own run."""
    estimator._check_options()
    check_count(estimator.n_threads, "n_threads")
    tol = check_non_negative(estimator.tol, "tol")
    method = estimator._method()
    algorithm = method if data.n_models == 1 else OneVsRest(method, data.n_models, tol)
    problems = estimator._problems(data)
    client_weights = client_shares(estimator.client_weights, data)
    Federation.checked([problem.profile for problem in problems], client_weights)
    secure = check_flag(estimator.secure_aggregation, "secure_aggregation")
    return _Training(problems, algorithm, client_weights, tol, secure)


def _pooled_counts(result: Result, split: Split) -> Array:
    """The server's sum of what the clients counted."""
    model = _broadcast_model(result, len(split.classes))
    counts = [held_out_counts(model, own.X, own.codes, own.weights) for own in split.held_out]
    return np.asarray(np.sum(counts, axis=0))


def _broadcast_model(result: Result, n_classes: int) -> LinearModel:
    rows = np.array([one.model for one in standings(result)])
    n_features = result.federation.n_features
    intercept = rows[:, n_features] if rows.shape[1] > n_features else np.zeros(len(rows))
    return LinearModel.checked(
        rows[:, :n_features], intercept, range(n_classes), estimator=FDRSVC.__name__
    )


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
