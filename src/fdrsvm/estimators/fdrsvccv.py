"""FDRSVCCV: cross-validation of FDRSVC's parameters, from which only counts leave a client."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from fdrsvm.core.arrays import (
    Array,
    check_choice,
    check_count,
    check_flag,
    check_non_negative,
)
from fdrsvm.core.files import PathLike
from fdrsvm.core.losses import MarginLoss
from fdrsvm.core.vectors import Norm
from fdrsvm.data.training_data import TrainingData, check_label_values, read_training_data
from fdrsvm.decision.calibration import CalibrationRows
from fdrsvm.decision.goals import Scoring, check_scoring
from fdrsvm.decision.histograms import Aim, check_label_noise
from fdrsvm.errors import ConvergenceWarning, UnsupportedError
from fdrsvm.estimators.advice import Setting, Tally, judge
from fdrsvm.estimators.base import LinearClassifier, seed_of
from fdrsvm.estimators.fdrsvc import FDRSVC
from fdrsvm.estimators.search import (
    DEFAULT_GRID,
    FoldOutcome,
    Split,
    Trial,
    assess,
    check_trial,
    choose,
    grid_points,
    held_out,
    make_trials,
    run_trial,
    split_rows,
    tabulate,
)
from fdrsvm.federated.methods.bundle import MetricName
from fdrsvm.federated.methods.subgradient import StepDecay
from fdrsvm.federated.rounds import Callback
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.ball import Support, WorstCase

__all__ = ["FDRSVCCV"]

_FOLD_TOL = 1e-2


class FDRSVCCV(LinearClassifier):
    """FDRSVC with parameters chosen by federated cross-validation.

    Every client splits its own rows into folds. For each fold and each configuration a model is
    trained across the clients on the other folds, and each client counts on its held-out rows: of
    two classes how many scores lie between which edges, of more how often the model takes which
    class for which. The server sums these counts over clients, chooses where to cut the scores of
    each configuration, and takes the best. Rows and predictions stay where they are.

    Parameters
    ----------
    param_grid : dict, list of dicts, or list of names, optional
        Lists of values by name, for any parameters of :class:`FDRSVC`. A name alone, of epsilon,
        kappa, class_weight and features, stands for its default values: 0.1, 1, 10 and 100 times
        "auto"; 0.1, 0.5 and 1; None and "balanced"; "linear", "additive", "fourier" and, of at most
        10 columns, "additive-pairs". (Maps have 0.1 to 10 times "auto", of at most 10 columns 0.03
        too, and the middle kappa only.) None tries the default values of those of the first three
        that are left as they are: 24 configurations. All values of ``max_rounds`` together cost one
        run.
    cv : int
        Number of folds.
    scoring : {"balanced_accuracy", "f1", "f1_macro", "accuracy"}, goal or callable
        "balanced_accuracy" is the mean over the classes of the share of their rows that are found;
        "f1" is that of ``pos_label_``, for two classes. ``MissCost(20)`` wants the least cost where
        a missed row of that class costs as much as 20 false alarms, ``FalseAlarmRate(0.01)`` most
        of its rows found with at most 1 % false alarms on held-out rows. A callable gets the
        counts, an array of shape (n_classes, n_classes) with the true class in the row and the
        predicted one in the column, and returns a number to be maximised. Where a class does not
        occur, as in a fold of one class, the mean is over those that do, and "f1" is 0 if it is
        neither found nor predicted.
    pos_label : label, optional
        For two classes: the one that is looked for, such as the fault. By default the rarer one in
        training, of two equals ``classes_[1]``.
    threshold : {"tuned", "zero"}
        Whether two classes are cut where the score of all held-out rows together is best, or at 0.
        With more classes the largest score wins.
    label_noise : float
        Share of the labels that are wrong, in both classes alike, if it is known: counts are
        corrected for it, [label-noise]. Below the share of the rarer class.
    refit : bool
        Whether to train the best configuration on all rows in the end. Without, there is no model.
    n_jobs : int, optional
        How many runs at a time, -1 for one per core; None is 1, unless within
        ``joblib.parallel_config``. See the notes.
    random_state : int, RandomState or None
        For the folds.
    verbose : int
        Above 0 prints one line per configuration, above 1 also one per round of the last training.
    callbacks : sequence of callables
        As for :class:`FDRSVC`, of the last training on all rows; the folds' rounds are not told.
    algorithm, features, epsilon, kappa, norm, support, rho, tau, step_size, step_decay, \
worst_case, loss, max_rounds, tol, client_weights, fit_intercept, class_weight, outside, \
n_threads, secure_aggregation, blur, resolution, metric, points_per_round, personal
        As for :class:`FDRSVC`, used where the grid does not vary them.

    Attributes
    ----------
    cv_results_ : dict
        By configuration: "params", "param_<name>", "pooled_test_score" (from the counts summed over
        all folds: this one decides), "rank_test_score", "split<k>_test_score" and their
        "mean_test_score" and "std_test_score", "max_gap" (the largest certified gap of any fold),
        "error" (empty, or why it could not be trained; the scores are nan then), "threshold",
        "is_flat" (whether scores of 98 % of the held-out rows of each class lie within 0.02: such a
        configuration never wins over one that uses its features), and "counts" of shape
        (n_configurations, n_folds, n_classes, n_classes), as recorded, not corrected.
    best_index_, best_params_, best_score_ : int, dict, float
        The configuration with the largest pooled score; the first of those with equal ones, in the
        order of ``cv_results_``, in which the name that comes last in the alphabet varies fastest.
        "fourier", which cannot be read column by column, has to be better than the others by more
        than one standard error, that of its folds' scores.
    best_estimator_ : FDRSVC
        Trained on all rows; only with ``refit``.
    coef_, intercept_, classes_, objective_, lower_bound_, gap_, bound_radius_, \
worst_case_risk_per_client_, n_iter_, stop_reason_, history_, client_labels_, personal_
        Those of ``best_estimator_``.
    scoring_ : str, goal or callable
    pos_label_ : label
        The class that is looked for; only for two classes.
    threshold_ : float
        Where ``predict`` cuts the scores: above it is ``classes_[1]``. Scores, objective and
        certificate do not depend on it.
    n_splits_ : int
    n_numbers_shared_ : int
        How many counts each client handed over.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names.

    Notes
    -----
    Privacy: beside what training itself exchanges, ``n_numbers_shared_`` counts leave a client, and
    which classes it has in which fold. Where few rows lie between two edges, which is not split
    any more below 10 rows of all clients, a count can tell of a single row; sums over clients are
    all that the server needs. In one process, as here, nobody masks them, with or without
    ``secure_aggregation``.

    The score of the best configuration is that of the rows it was chosen on, and a little too good;
    ``fdrsvm evaluate`` on other rows says how good the model is.

    Folds: each client deals its rows to the folds class by class, seeded by ``random_state`` and
    its label, so that the order of clients or rows does not matter. Equal rows of a client share a
    fold. A client may have one class, or fewer rows than folds, and then has nothing held out in
    some; its only row always trains. So does one row of a class that would be missing otherwise.

    Models of folds are trained to a gap of 1 %, or ``tol`` if that is larger or the grid varies it:
    that is enough to choose by, and takes half of the rounds. The model in the end has ``tol``.

    "auto" radii follow the rows that a fold trains on, (cv - 1) / cv of the client's. The paper's
    scripts use all rows of the client, and so does the default grid.

    Parallel runs are processes, to which joblib hands the rows in memory. With 100 rows a client
    threads are slower than one run at a time, since much of a round is Python; from some thousand
    rows on ``joblib.parallel_config(backend="threading")`` is as fast. With more than one run at a
    time, clients within a fold do not have ``n_threads`` of their own.

    A scaler can stand before it in a Pipeline, with the clients routed to both; it then sees the
    held-out rows too. With agreed limits it learns nothing from any row.

    Examples
    --------
    >>> import numpy as np
    >>> from fdrsvm.estimators import FDRSVCCV
    >>> rng = np.random.default_rng(0)
    >>> X, plants = rng.random((40, 2)), np.repeat(["north", "south"], 20)
    >>> y = np.where(X[:, 0] > 0.5, "worn", "healthy")
    >>> search = FDRSVCCV({"epsilon": [0.003, 0.3]}, cv=4, random_state=0)
    >>> search.fit(X, y, clients=plants).best_params_
    {'epsilon': 0.003}
    >>> search.cv_results_["counts"].sum(axis=1)[search.best_index_].tolist()
    [[18.0, 0.0], [0.0, 22.0]]
    """

    # Taken over from the best estimator, beside those that a model file keeps.
    _of_best: ClassVar[tuple[str, ...]] = (
        "coef_",
        "intercept_",
        "classes_",
        "threshold_",
        "pos_label_",
        "history_",
        "n_features_in_",
        "feature_names_in_",
        "client_column_",
        "feature_map_",
        "personal_",
        *(f"{name}_" for name in FDRSVC._kept),
    )

    def __init__(
        self,
        param_grid: Any = None,
        *,
        cv: int = 5,
        scoring: Scoring | None = "balanced_accuracy",
        pos_label: Any = None,
        threshold: str = "tuned",
        label_noise: float = 0.0,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        algorithm: str = "bundle",
        features: Any = "linear",
        epsilon: Any = "auto",
        kappa: Any = 1.0,
        norm: Norm = "linf",
        support: Support = None,
        rho: float = 1e-2,
        tau: float | None = None,
        step_size: float = 1.0,
        step_decay: StepDecay = "1/sqrt(t)",
        worst_case: WorstCase = "exact",
        loss: str | MarginLoss = "hinge",
        max_rounds: int = 200,
        tol: float = 1e-4,
        client_weights: Any = "equal",
        fit_intercept: bool = True,
        class_weight: Any = None,
        outside: str = "refuse",
        n_threads: int = 1,
        secure_aggregation: bool = False,
        blur: int = 0,
        resolution: float = 0.0,
        metric: MetricName = "auto",
        points_per_round: int | None = None,
        personal: str | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, *, clients: Any = None, sample_weight: Any = None) -> Self:
        """Try all configurations, then train the best one on all rows.

        Parameters
        ----------
        X, y, clients, sample_weight
            As for :meth:`FDRSVC.fit`. A row of weight 2 counts as two rows also in counts.

        Returns
        -------
        FDRSVCCV
            This object.

        Warns
        -----
        ConvergenceWarning
            If some configurations did not reach their ``tol`` in some fold, with their number.
        FitFailedWarning
            If some configurations could not be trained, with their number.
        DegenerateModelWarning
            If the best model finds fewer than one in a hundred rows of a class, or ignores all
            features; see :meth:`FDRSVC.fit`. Without ``refit`` it is about the held-out rows.
        """
        refit, n_folds = check_flag(self.refit, "refit"), check_count(self.cv, "cv", 2)
        for name in ("best_estimator_", "_held_out", *self._of_best):
            self.__dict__.pop(name, None)  # a fit without ``refit`` leaves no older model behind
        check_label_values(y, "y")
        y = column_or_1d(y, warn=True)  # here, since it is read more than once
        given = {"clients": clients, "sample_weight": sample_weight}
        rows = read_training_data(self, X, y, class_weight=None, **given)
        self.scoring_ = check_scoring(self.scoring, len(rows.classes))
        positive = self._set_positive(rows, self.pos_label)
        label_noise = check_non_negative(self.label_noise, "label_noise")
        check_label_noise(label_noise, rows.class_totals)
        is_tuned = check_choice(self.threshold, "threshold", ("tuned", "zero")) == "tuned"
        points = grid_points(self._grid(), rows)
        # Trials may run in other processes, where nobody listens.
        trials = make_trials({**self._fixed(), "tol": self._fold_tol(), "callbacks": ()}, points)
        for trial, data in _with_data(trials, partial(read_training_data, FDRSVC(), X, y, **given)):
            check_trial(trial, data)  # an option that breaks a rule is an error before any run
        splits = split_rows(rows, n_folds, seed_of(self.random_state))
        aim = Aim(self.scoring_, positive or 0, label_noise)
        trained = self._outcomes(trials, splits)
        both = [assess(folds, splits, aim, is_tuned=is_tuned) for folds in trained]
        assessed, outcomes = map(list, zip(*both, strict=True))
        self.n_numbers_shared_ = sum(one.n_numbers for one in assessed)
        results = tabulate(points, outcomes, assessed, aim)
        self._set_results(results)
        self._held_out: dict[Any, list[Any]] = {}
        for fold in zip(outcomes[self.best_index_], splits, strict=True):
            for name, *own in held_out(*fold):
                self._held_out.setdefault(name, []).append(own)
        _warn(results, [point.get("tol", self._fold_tol()) for point in points])
        best = FDRSVC(**{**self._fixed(), **self.best_params_})
        if refit:
            threshold = float(results["threshold"][self.best_index_])
            best._fit(X, y, **given, threshold=threshold, aim=aim)
            if positive is not None:
                best.pos_label_ = self.pos_label_
            self._set_best(best)
        else:
            _warn_if_degenerate(results["counts"][self.best_index_].sum(axis=0), rows, best)
        return self

    def listen(self, tell: Callable[[int, int], None]) -> None:
        """Have ``tell`` called with the number of trials done, and of all, during the next fit."""
        self._tell = tell

    def __getstate__(self) -> dict[str, Any]:
        """What pickles and copies have: no score of any row, and nobody who listens."""
        state = dict(super().__getstate__())
        return {key: value for key, value in state.items() if key not in ("_held_out", "_tell")}

    def held_out_rows(self) -> dict[str, CalibrationRows]:
        """By client, scores of rows that the model of their fold has not seen, of the best run.

        For calibration; after a fit in this process. A model file has none of them.
        """
        if not hasattr(self, "_held_out"):
            raise NotFittedError("held-out scores are there after a fit in this process only")
        return {
            str(name): CalibrationRows(*map(np.concatenate, zip(*parts, strict=True)))
            for name, parts in self._held_out.items()
        }

    def decision_function(self, X: Any) -> Array:
        """Scores of the best estimator, see :meth:`FDRSVC.decision_function`."""
        self._check_has_model()
        return super().decision_function(X)

    def for_client(self, client: Any) -> FDRSVC:
        """A client's own model, see :meth:`FDRSVC.for_client`."""
        self._check_has_model()
        return self.best_estimator_.for_client(client)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """The model that ``save`` wrote, without ``cv_results_``; see :meth:`FDRSVC.load`."""
        best = FDRSVC.load(path)
        search = cls(**best.get_params(deep=False))
        search._set_best(best)
        return search

    def _linear_model(self) -> LinearModel:
        """Model file and exports are those of the best estimator."""
        self._check_has_model()
        return self.best_estimator_._linear_model()

    def _check_has_model(self) -> None:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError("there is no model after a fit with refit=False, only scores")

    def _grid(self) -> Any:
        """What was given, else the defaults of parameters that nobody has set."""
        if self.param_grid is not None:
            return self.param_grid
        own, usual = self.get_params(deep=False), type(self)().get_params(deep=False)
        free = [
            name
            for name in DEFAULT_GRID
            # A list of one entry per client is no default, and of an array "==" gives an array.
            if np.ndim(own[name]) == 0 and own[name] == usual[name]
        ]
        return free or {"epsilon": [self.epsilon]}

    def _set_best(self, best: FDRSVC) -> None:
        self.best_estimator_ = best
        for name in self._of_best:
            if hasattr(best, name):
                setattr(self, name, getattr(best, name))

    def _fixed(self) -> dict[str, Any]:
        """FDRSVC's parameters where the grid says nothing."""
        own = {name: getattr(self, name) for name in FDRSVC().get_params(deep=False)}
        # Training draws nothing, and a generator could not be written to a model file.
        return {**own, "random_state": None, "verbose": max(0, self.verbose - 1)}

    def _fold_tol(self) -> float:
        """Counts of held-out rows tell no finer gaps apart; a tol of 0 still means all rounds."""
        tol = check_non_negative(self.tol, "tol")
        return max(tol, _FOLD_TOL) if tol > 0.0 else tol

    def _outcomes(
        self, trials: Sequence[Trial], splits: Sequence[Split]
    ) -> list[list[FoldOutcome]]:
        """By configuration and fold."""
        n_threads = self.n_threads if effective_n_jobs(self.n_jobs) == 1 else 1
        # In memory: rows are not written to a disk on the way to another process.
        runs = Parallel(n_jobs=self.n_jobs, max_nbytes=None, return_as="generator")
        by_run = runs(
            delayed(run_trial)(trial, data, len(split.classes), n_threads)
            for split in splits
            for trial, data in _with_data(trials, split.training_data)
        )
        by_point: dict[int, list[FoldOutcome]] = {}
        tell, all_runs = self.__dict__.pop("_tell", None), [*trials] * len(splits)
        for at, (trial, outcomes) in enumerate(zip(all_runs, by_run, strict=True)):
            if tell is not None:
                tell(at + 1, len(all_runs))
            for member, outcome in zip(trial.members, outcomes, strict=True):
                by_point.setdefault(member, []).append(outcome)
        return [by_point[member] for member in sorted(by_point)]

    def _set_results(self, results: dict[str, Any]) -> None:
        scores = results["pooled_test_score"]
        if np.isnan(scores).all():
            errors = results["error"]
            first = next((error for error in errors if error), "scoring gives nan")
            raise UnsupportedError(
                f"none of {len(errors)} configurations has a score; the first: {first}"
            )
        if self.verbose > 0:
            for at, params in enumerate(results["params"]):
                score, gap = scores[at], results["max_gap"][at]
                told = results["error"][at] or f"score {score:.4f}, gaps up to {gap:.1e}"
                print(f"configuration {at + 1}, {params}: {told}")  # noqa: T201 - as asked for
        self.cv_results_ = results
        self.best_index_ = choose(results)
        self.best_score_ = float(scores[self.best_index_])
        self.best_params_ = results["params"][self.best_index_]
        self.n_splits_ = results["counts"].shape[1]


def _with_data(
    trials: Sequence[Trial], read: Callable[..., TrainingData]
) -> Iterator[tuple[Trial, TrainingData]]:
    """Rows are read and checked once for all trials that read them alike."""
    known: dict[Any, TrainingData] = {}
    for trial in trials:
        key = tuple(id(value) for value in trial.reading.values())  # as for trials
        if key not in known:
            known[key] = read(**trial.reading)
        yield trial, known[key]


def _warn(results: Mapping[str, Any], tols: Sequence[Any]) -> None:
    """Once for all configurations; ``fit`` is two calls up."""
    failed = [error for error in results["error"] if error]
    if failed:
        warnings.warn(
            f"{len(failed)} of {len(tols)} configurations could not be trained and have no score; "
            f"the first: {failed[0]}",
            FitFailedWarning,
            stacklevel=3,
        )
    gaps = results["max_gap"]
    open_ = (results["error"] == "") & (np.array(tols) > 0.0) & (gaps > tols)
    if open_.any():
        warnings.warn(
            f"{open_.sum()} of {len(tols)} configurations did not reach tol in every fold, with "
            f"certified relative gaps up to {gaps[open_].max():.1e}; allow more rounds or a larger "
            "tol",
            ConvergenceWarning,
            stacklevel=3,
        )


def _warn_if_degenerate(counts: Array, rows: TrainingData, best: FDRSVC) -> None:
    """Of the best configuration on all rows that were held out; ``fit`` is two calls up."""
    n_scores = 1 if len(rows.classes) == 2 else len(rows.classes)
    unknown = np.full(n_scores, np.inf)  # scores stay with the clients here
    warning = judge(
        Tally(counts, -unknown, unknown),
        rows.classes.tolist(),
        Setting(FDRSVC.__name__, best.class_weight),
        "in the folds the best configuration",
    )
    if warning is not None:
        warnings.warn(warning, stacklevel=3)
