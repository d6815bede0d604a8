"""What can be wrong with a trained model or the size of its features, and what to do about it.

A model has given up if it (almost) never predicts a class, or ignores all features:

Given    n_k > 0 rows of class k, r_k of them predicted as k, m_k of all rows; scores s_i
missed   m_k = 0, or r_k < n_k / 100 and n_k >= 5: it finds fewer than one in a hundred rows of a
         class that occurs. (Fewer than 5 rows may all be missed by chance: where every second one
         is found, with probability 2^-n_k, which is below 5 % from 5 rows on. Training rows are
         all there is, so m_k = 0 counts for a single one of them; of other rows it takes 5.)
flat     (max s_i - min s_i) / 2 <= 1/100 for each score: rows differ by 1 % of the margin 1

A flat model is as good as one with w = 0: losses are 1-Lipschitz in the score, and without weights
moving features gains the worst case nothing, so that w = 0 with the intercept (max s + min s) / 2
has a worst-case risk larger by at most the half range: [flat]. Where epsilon / kappa >= 1/2 at
every client, w = 0 is even optimal, whatever the rows: [half-flips].

Radius, label price, penalties and step sizes are all in the features' unit. The problem itself is
the same in every unit, if they are given in it; the defaults are made for features of about 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import Array, Matrix
from fdrsvm.core.vectors import dot, times
from fdrsvm.data.columns import is_id
from fdrsvm.data.findings import to_ignore
from fdrsvm.data.training_data import TrainingData
from fdrsvm.decision.goals import count_rows
from fdrsvm.errors import DegenerateModelWarning
from fdrsvm.risk.feature_maps import Features

SELDOM = 0.01
ENOUGH = 5
FLAT = 0.01
HALF = 0.5
RARE = 0.5
BALANCED = "balanced"
_LARGE, _SMALL = 1e3, 1e-3
_UNLIKE = 100.0
_ENOUGH_IDS, _FIRST_ROWS = 20, 32

_IN_PYTHON = {
    "do": "use ",
    "balance": "class_weight='balanced'",
    "epsilon": "a smaller epsilon (FDRSVCCV can choose it)",
    "ball": "a smaller epsilon or a larger kappa",
    "rounds": "more rounds (max_rounds)",
    "iterations": "more iterations (max_iter)",
    "steps": "a larger learning_rate, or FDRSVC",
}
_TYPED = {  # commands other than fit say it too: it must be clear where to type it
    "do": "train again: fdrsvm fit ... ",
    "balance": "--class-weight balanced",
    "epsilon": "--set epsilon=... (a smaller one)",
    "ball": "--set epsilon=... (a smaller one) or --set kappa=... (a larger one)",
    "rounds": "--set max_rounds=... (more)",
    "iterations": "--set max_iter=... (more)",
    "steps": "--set learning_rate=... (another one) or --estimator FDRSVC",
}
_EFFORT = {"FDRSVC": "rounds", "DRSVC": "iterations", "FedSVC": "steps"}


class Tally(NamedTuple):
    """What a client says of a model on its rows: counts and the range of each score.

    ``counts`` has the true class in the row and the predicted one in the column.
    """

    counts: Array
    low: Array
    high: Array

    @property
    def is_flat(self) -> bool:
        """Whether the scores hardly differ between rows."""
        return bool((self.high - self.low <= 2.0 * FLAT).all())


@dataclass(frozen=True)
class Setting:
    """The facts of a training run that decide which remedy is offered.

    Attributes
    ----------
    estimator : str
        Its name.
    class_weight : None, "balanced" or mapping
        As trained.
    flip_share : float
        The least epsilon / kappa of all clients; 0 where there is no ball.
    has_radius : bool
        Whether some client has a radius above 0.
    is_solved : bool
        Whether the certified gap reached ``tol``.
    """

    estimator: str
    class_weight: Any
    flip_share: float = 0.0
    has_radius: bool = True
    is_solved: bool = True


def flip_share(epsilons: Sequence[float], kappas: Sequence[float]) -> float:
    """The least epsilon / kappa: this much of every client's mass may change its label."""
    return float(np.min(np.divide(epsilons, kappas))) if len(epsilons) else 0.0


def tally_rows(
    coef: Array,
    intercept: Array,
    threshold: float,
    X: Matrix,
    codes: npt.NDArray[np.intp],
    weights: Array | None = None,
) -> Tally:
    """The client's part: no row leaves it.

    Parameters
    ----------
    coef, intercept : arrays of shapes (n_scores, n_features), (n_scores,)
        One score for two classes, else one for each class.
    threshold : float
        Where two classes part.
    X, codes : arrays
        The rows, one or more, and their classes as positions.
    weights : array, optional
        A row of weight 2 counts as two.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(X @ coef.T) + intercept
    is_binary = scores.shape[1] == 1
    predicted = (scores[:, 0] > threshold).astype(np.intp) if is_binary else scores.argmax(axis=1)
    counts = count_rows(codes, predicted, 2 if is_binary else scores.shape[1], weights)
    return Tally(counts, scores.min(axis=0), scores.max(axis=0))


def pool_tallies(tallies: Sequence[Tally]) -> Tally:
    """The server's part: over all clients."""
    counts, low, high = zip(*tallies, strict=True)
    return Tally(np.sum(counts, axis=0), np.min(low, axis=0), np.max(high, axis=0))


def judge(
    tally: Tally,
    classes: Sequence[Any],
    setting: Setting,
    whose: str = "the model",
    *,
    least_rows: int = 1,
    may_be_flat: bool = True,
) -> DegenerateModelWarning | None:
    """A warning with its remedy, or None for a model that has not given up.

    For rows other than those of training, which may be few or equal: classes with fewer than
    ``least_rows`` are not judged, and ``may_be_flat`` is whether the weights allow it.
    """
    counts, is_flat = tally.counts, tally.is_flat and may_be_flat
    occur, predicted = counts.sum(axis=1), counts.sum(axis=0)
    seldom = (np.diag(counts) < SELDOM * occur) & (occur >= ENOUGH)
    is_missed = (occur > 0.0) & (occur >= least_rows) & ((predicted == 0.0) | seldom)
    if not is_missed.any() and not is_flat:
        return None
    faults = [_missed_words(counts, k, classes[k]) for k in np.flatnonzero(is_missed).tolist()]
    if is_flat:
        spread = float((tally.high - tally.low).max())
        faults.append(f"ignores all features (its score varies by {spread:.1g} over all rows)")
    # Which class a flat model is left with is chance; the rarest is what it has given up on.
    concerned = (occur > 0.0) & (is_missed | is_flat)
    # Rows of the rarest class, beside what it would have if all classes had equally many.
    share = float(occur[concerned].min() * len(counts) / counts.sum())
    balances = share < RARE and setting.class_weight != BALANCED
    return DegenerateModelWarning(
        f"{whose} {', and '.join(faults)}",
        _remedy(setting, is_flat, balances, _IN_PYTHON),
        _remedy(setting, is_flat, balances, _TYPED),
    )


def _missed_words(counts: Array, k: int, label: Any) -> str:
    whole, own, predicted = counts.sum(), counts[k].sum(), counts[:, k].sum()
    if predicted == 0.0:
        are = "is" if own == 1.0 else "are"
        return f"never predicts {label!r} ({own:.9g} of {whole:.9g} rows {are})"
    return (
        f"predicts {label!r} for {predicted:.9g} of {whole:.9g} rows, but for only "
        f"{counts[k, k]:.9g} of the {own:.9g} that are"
    )


def _remedy(setting: Setting, is_flat: bool, balances: bool, words: dict[str, str]) -> str:
    """One sentence; what is most likely to help comes first.

    ``balances`` is whether weights of the classes are still to be tried.
    """
    balance = [words["balance"]] if balances else []
    if setting.flip_share >= HALF and is_flat:
        return (
            f"epsilon / kappa is {setting.flip_share:.3g}: from 1/2 on half of every row may have "
            f"the other label, and no model beats w = 0; {words['do']}"
            f"{' and '.join([words['ball'], *balance])}"
        )
    effort = words[_EFFORT.get(setting.estimator, "rounds")]
    if setting.estimator == "FedSVC":  # its rounds end where they are told to
        steps = [*balance, effort]
    else:
        # Where classes are of similar size, it is the radius that makes w = 0 the best.
        steps = [] if setting.is_solved else [effort]
        steps += [*balance, *([words["epsilon"]] if setting.has_radius else [])]
    if not steps:
        return "use features that tell the classes apart"
    others = f"; if that is not enough, {', then '.join(steps[1:])}" if steps[1:] else ""
    return f"{words['do']}{steps[0]}{others}"


# --- columns ---


class ColumnAdvice(NamedTuple):
    """What is odd about columns of features, and what to do about it.

    ``size`` is a sentence about the size of all, empty if nothing is wrong with it; ``scales`` is
    about features of very different size, ``ids`` about columns that count the rows.
    """

    size: str
    scales: DegenerateModelWarning | None
    ids: DegenerateModelWarning | None


class HasRows(Protocol):
    """A client's data, or anybody's."""

    @property
    def X(self) -> Matrix:  # noqa: N802 - a matrix
        """Rows by columns."""


def look_at_columns(clients: Sequence[HasRows], names: Sequence[str] | None) -> ColumnAdvice:
    """Advice about the columns of all clients' rows together."""
    low, high = column_ranges(clients)
    unnamed = map("column {}".format, range(len(low)))
    labels = list(unnamed if names is None else map(repr, names))
    largest = max(0.0, float(high.max()), -float(low.min()))
    size = ""
    if largest != 0.0 and not _SMALL <= largest <= _LARGE:
        size = (
            f"features are up to {largest:.1e} in size, and epsilon, kappa, rho and step sizes are "
            "in their unit: scale them to about 1, say with FederatedMinMaxScaler (fdrsvm fit "
            "--scaling minmax)"
        )
    return ColumnAdvice(size, unlike_scales(high - low, labels), find_ids(clients, names, labels))


def column_ranges(clients: Sequence[HasRows]) -> tuple[Array, Array]:
    """The least and the largest value of each column."""
    lows, highs = [], []
    for client in clients:
        low, high = client.X.min(axis=0), client.X.max(axis=0)
        is_sparse = sparse.issparse(client.X)
        lows.append(low.toarray().ravel() if is_sparse else low)
        highs.append(high.toarray().ravel() if is_sparse else high)
    return np.min(lows, axis=0), np.max(highs, axis=0)


def unlike_scales(spread: Array, labels: Sequence[str]) -> DegenerateModelWarning | None:
    """Of one column that spreads over 100 times as much as another.

    In one radius for all, the smaller ones do not count.
    """
    some = np.flatnonzero(spread > 0.0)
    if not some.size or spread[some].max() <= _UNLIKE * spread[some].min():
        return None
    wide, narrow = some[spread[some].argmax()], some[spread[some].argmin()]
    return DegenerateModelWarning(
        f"features are not on one scale ({labels[wide]} spreads over {spread[wide]:.3g}, "
        f"{labels[narrow]} over {spread[narrow]:.3g}), and the radius is the same for all",
        "scale them, say with FederatedMinMaxScaler",
        "train again: fdrsvm fit ... --scaling minmax",
        has_given_up=False,
    )


def beyond_limits(
    clients: Sequence[HasRows], features: Features | None, names: Sequence[str] | None
) -> DegenerateModelWarning | None:
    """Of columns most of whose rows lie where a map has no curve any more."""
    if features is None:
        return None
    low, high = features.low, features.low + features.width
    beyond = sum(((low > one.X) | (high < one.X)).sum(axis=0) for one in clients)
    shares = np.asarray(beyond) / sum(one.X.shape[0] for one in clients)
    at = int(shares.argmax())
    if shares[at] <= HALF:
        return None
    label = f"column {at}" if names is None else repr(names[at])
    return DegenerateModelWarning(
        f"{100.0 * shares[at]:.3g} % of the rows of {label} lie beyond the limits of the map, "
        f"{low[at]:.3g} to {high[at]:.3g}, where there are no curves",
        "scale features to 0 to 1, say with FederatedMinMaxScaler, or give the map their limits, "
        "as in AdditiveMap(limits=(low, high))",
        "train again: fdrsvm fit ... --scaling minmax",
        has_given_up=False,
    )


def find_ids(
    clients: Sequence[HasRows], names: Sequence[str] | None, labels: Sequence[str]
) -> DegenerateModelWarning | None:
    """Of columns that number the rows, by the rule of ``fdrsvm check``."""
    first = clients[0].X
    if sparse.issparse(first):
        return None
    found = []
    few = first[:_FIRST_ROWS]
    for at in np.flatnonzero((few == np.round(few)).all(axis=0)).tolist():
        if len(np.unique(few[:, at])) < len(few):
            continue  # hardly any column of readings goes further
        name = "" if names is None else names[at]
        columns = [client.X[:, at] for client in clients]
        # Numbers may begin again at each client; those with few rows tell nothing.
        long = [one for one in columns if len(one) >= _ENOUGH_IDS]
        if is_id(name, np.concatenate(columns)) or (long and all(is_id(name, one) for one in long)):
            found.append(at)
    if not found:
        return None
    own = " of a client" if len(clients) > 1 else ""
    typed = " ".join([] if names is None else [to_ignore(names[at]) for at in found])
    return DegenerateModelWarning(
        f"{', '.join(labels[at] for at in found)} {'looks' if len(found) == 1 else 'look'} like an "
        f"identifier or a clock: whole numbers, of which no two rows{own} share one",
        "leave out what is no reading",
        f"leave out what is no reading: fdrsvm fit ... {typed}",
        has_given_up=False,
    )


def mean_hinge(data: TrainingData, models: Array, shares: Array) -> Array:
    """Of each model, with the intercept last if it has one: the clients' mean losses, weighted."""
    totals = np.zeros(len(models))
    for client, share in zip(data.clients, shares / shares.sum(), strict=True):
        masses = client.weights / client.weights.sum()
        n_features = client.X.shape[1]
        for k, signs in enumerate(client.signs):
            intercept = float(models[k, n_features:].sum())
            with np.errstate(over="ignore", invalid="ignore"):
                margins = signs * (times(client.X, models[k, :n_features]) + intercept)
                totals[k] += share * dot(masses, np.maximum(0.0, 1.0 - margins))
    return totals
