"""Why a sample was classified as it was, and what it would take to change that.

``feature_effects`` splits a score into features, ``flipping_perturbation`` finds the least change
that turns a decision, ``worst_case_atoms`` shows what the worst case in the ball does to a sample.
All take any fitted linear classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_choice, check_count, check_vector
from fdrsvm.core.vectors import NORMS, Norm, norm_rows
from fdrsvm.errors import InvalidInputError, NumericalError, UnsupportedError
from fdrsvm.inspection.bent_moves import bent_moves
from fdrsvm.inspection.fitted import (
    check_row,
    check_signs,
    class_index,
    names_for,
    read_with_rows,
)
from fdrsvm.inspection.moves import moves_to_other_classes, moves_to_plane
from fdrsvm.inspection.terms import sensor_shares
from fdrsvm.risk.ball import Support, check_inside, check_support
from fdrsvm.risk.distribution import worst_case_distribution


class Effect(NamedTuple):
    """What one feature of one sample adds to its score."""

    feature: str
    value: float
    effect: float


class Change(NamedTuple):
    """How far one feature of one sample has to go."""

    feature: str
    before: float
    after: float


class WorstCaseAtom(NamedTuple):
    """Where the worst case sends a sample, or a part of it.

    Attributes
    ----------
    point : ndarray of shape (n_features,)
        The features there.
    label : object
        The label there, one of the model's classes.
    mass : float
        Probability of this atom; the atoms of a sample add up to its mass (1/N without weights).
    cost : float
        What the way there costs for each unit of mass: the distance, and kappa if the label
        differs.
    """

    point: Array
    label: Any
    mass: float
    cost: float


@dataclass(frozen=True, eq=False)
class FeatureEffects:
    """Scores split into features: ``score`` equals ``effects.sum(axis=1) + intercept``.

    Attributes
    ----------
    effects : ndarray of shape (n_samples, n_features), or (n_samples, n_features, n_classes)
        w_p x_p, or w_p (x_p - baseline_p); with curves, what the sensor's curve adds, or by how
        much more than at the baseline. Of a pair's surface both sensors have half. Of more than
        two classes, for the score of each class.
    intercept : float, or ndarray of shape (n_classes,)
        What the features add to: the model's intercept (curves are 0 at the lower limit), or the
        score of the baseline.
    score : ndarray of shape (n_samples,), or (n_samples, n_classes)
        As from ``decision_function``. Of two classes, it is above 0 for ``classes[1]``.
    values : ndarray of shape (n_samples, n_features)
        The samples.
    feature_names : tuple of str
        One per column.
    classes : ndarray
        The labels.
    """

    effects: Array
    intercept: Any
    score: Array
    values: Array
    feature_names: tuple[str, ...]
    classes: npt.NDArray[Any]

    def top(self, k: int = 5, *, class_of_interest: Any = None) -> tuple[tuple[Effect, ...], ...]:
        """The ``k`` strongest effects of each row, strongest first.

        Parameters
        ----------
        k : int
            How many per row at most.
        class_of_interest : label, optional
            For more than two classes: whose score to explain. By default that of the class that
            wins the row. For two classes there is one score, and no choice.
        """
        k = check_count(k, "k")
        effects = self.effects
        if effects.ndim == 2 and class_of_interest is not None:
            raise InvalidInputError(
                "class_of_interest",
                "is for more than two classes; of two there is one score",
                f"it is {class_of_interest!r}",
            )
        if effects.ndim == 3 and class_of_interest is None:
            effects = effects[np.arange(len(effects)), :, self.score.argmax(axis=1)]
        elif effects.ndim == 3:
            effects = effects[:, :, class_index(self.classes.tolist(), class_of_interest)]
        order = np.argsort(-np.abs(effects), axis=1, kind="stable")[:, :k]
        return tuple(
            tuple(
                Effect(self.feature_names[p], float(self.values[n, p]), float(effects[n, p]))
                for p in columns
            )
            for n, columns in enumerate(order)
        )


@dataclass(frozen=True, eq=False)
class FlippingPerturbation:
    """The least change of each sample that brings it to the point where its decision turns.

    At ``points`` two classes tie, up to rounding; any step further in the same direction turns the
    decision. So ``cost`` is the greatest lower bound of what turning it costs.

    With curves or waves the decision at ``points`` is turned, by a hair. Of curves without pairs
    in the norm linf the cost is the least there is, up to a share of 1e-9; else it is that of the
    cheapest move found, and none costs less than ``lower_bound``: [flip-curves].

    Attributes
    ----------
    points : ndarray of shape (n_samples, n_features)
        The points reached; nan where the support rules out a change of decision.
    cost : ndarray of shape (n_samples,)
        Distance from the sample in the transport norm; inf where it is impossible.
    lower_bound : ndarray of shape (n_samples,)
        Proved: no move that costs less turns the decision. Of a linear model it is the cost.
    is_possible : ndarray of shape (n_samples,)
        Whether the decision can be turned inside the support; with pairs or waves, whether a move
        was found. Where ``lower_bound`` is inf there is none.
    moved : ndarray of shape (n_samples, n_features)
        Which features change.
    labels, flipped_labels : ndarray of shape (n_samples,)
        The decision now, and beyond the point; where it cannot be turned, twice the same.
    values : ndarray of shape (n_samples, n_features)
        The samples.
    feature_names : tuple of str
        One per column.
    """

    points: Array
    cost: Array
    lower_bound: Array
    is_possible: npt.NDArray[np.bool_]
    moved: npt.NDArray[np.bool_]
    labels: npt.NDArray[Any]
    flipped_labels: npt.NDArray[Any]
    values: Array
    feature_names: tuple[str, ...]

    def changes(self, row: int) -> tuple[Change, ...]:
        """The features of one row that change, the largest change first; none if impossible."""
        row = check_row(row, len(self.points), "row")
        before, after = self.values[row], self.points[row]
        columns = np.flatnonzero(self.moved[row])
        columns = columns[np.argsort(-np.abs(after - before)[columns], kind="stable")]
        return tuple(
            Change(self.feature_names[p], float(before[p]), float(after[p])) for p in columns
        )


def feature_effects(model: Any, X: Any, *, baseline: Any = None) -> FeatureEffects:
    """What each feature of each sample adds to the score.

    Parameters
    ----------
    model : fitted linear classifier
        With ``coef_``, ``intercept_`` and ``classes_``.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The samples. The answer is dense.
    baseline : array of shape (n_features,), optional
        A sample to compare with, say a healthy machine: effects are those of the difference from
        it, and ``intercept`` is its score. By default effects are not compared with anything.

    Returns
    -------
    FeatureEffects
        ``effects``, ``intercept``, ``score``, ``feature_names``; ``top(k)`` lists the strongest.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import LinearSVC
    >>> from fdrsvm.inspection import feature_effects
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.2]]), ["ok", "fault", "fault"]
    >>> model = LinearSVC(C=100.0).fit(X, y)
    >>> found = feature_effects(model, X)
    >>> bool((found.score == found.effects.sum(axis=1) + found.intercept).all())
    True
    >>> [[effect.feature for effect in row] for row in found.top(1)]
    [['x1'], ['x0'], ['x0']]
    """
    linear, values, _ = read_with_rows(model, X)
    is_binary, at_start = len(linear.classes) == 2, linear.intercept
    with np.errstate(over="ignore", invalid="ignore"):
        effects = sensor_shares(linear, values)
        if baseline is not None:
            start = check_vector(baseline, "baseline", values.shape[1], "features")
            from_start = sensor_shares(linear, start[None])
            at_start, effects = at_start + from_start[0].sum(axis=0), effects - from_start
        score = effects.sum(axis=1) + at_start
    if not np.isfinite(score).all():
        row = int(np.argwhere(~np.isfinite(score))[0, 0])
        raise NumericalError(f"X: the score of row {row} overflows float64")
    return FeatureEffects(
        effects=effects[:, :, 0] if is_binary else effects,
        intercept=float(at_start[0]) if is_binary else at_start,
        score=score[:, 0] if is_binary else score,
        values=values.copy(),
        feature_names=names_for(linear, X),
        classes=np.array(linear.classes),
    )


def flipping_perturbation(
    model: Any, X: Any, *, norm: Norm = "linf", support: Support = None
) -> FlippingPerturbation:
    """The least change of features that turns the decision on each sample, and its cost.

    Without a support the cost is |score - threshold| / ||w||_*, [flip-cost]; on a box features stop
    at its bounds, [flip-on-box]. Of curves and waves it is that of moves of the sensors,
    [flip-curves]. Of more than two classes, the change is the cheapest that lets
    another class win. "l1" changes few features much, "linf" many features little.

    Parameters
    ----------
    model, X
        As in :func:`feature_effects`.
    norm : {"l1", "l2", "linf"}
        The transport norm: costs are distances in it, in the units of X.
    support : None, "unit-box" or (low, high)
        Where features can be. Samples must lie inside.

    Returns
    -------
    FlippingPerturbation
        ``points``, ``cost``, ``is_possible``, ``moved``; ``changes(row)`` lists the features.

    Raises
    ------
    InvalidInputError
        If the model is not fitted, columns are not those of training, the norm is unknown, or a
        sample lies outside the support.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import LinearSVC
    >>> from fdrsvm.inspection import flipping_perturbation
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.2]]), ["ok", "fault", "fault"]
    >>> model = LinearSVC(C=100.0).fit(X, y)
    >>> flip = flipping_perturbation(model, X, norm="linf", support="unit-box")
    >>> bool(np.abs(model.decision_function(flip.points)).max() < 1e-12)
    True
    >>> list(map(str, flip.flipped_labels))
    ['fault', 'ok', 'ok']
    """
    norm = cast(Norm, check_choice(norm, "norm", NORMS))
    linear, values, scores = read_with_rows(model, X)
    box = check_support(support, values.shape[1])
    if box is not None:
        check_inside(values, box, getattr(X, "columns", None))
    is_binary = scores.ndim == 1
    now = (scores > linear.threshold).astype(np.intp) if is_binary else scores.argmax(axis=1)
    then, bound = 1 - now, None
    if linear.features is not None:
        moves, cost, bound = bent_moves(linear, values, now, norm, box)
    elif is_binary:
        above = scores - linear.threshold
        moves, cost = moves_to_plane(values, linear.coef[0], above, norm, box)
    else:
        moves, cost, then = moves_to_other_classes(
            values, linear.coef, linear.intercept, now, norm, box
        )
    points = values + moves
    if box is not None:
        points = np.clip(points, box.low, box.high)
    is_possible, classes = np.isfinite(cost), np.array(linear.classes)
    if bound is not None and not is_binary and is_possible.any():  # who wins there may be a third
        then[is_possible] = linear.decision_function(points[is_possible]).argmax(axis=1)
    return FlippingPerturbation(
        points=points,
        cost=cost,
        lower_bound=cost if bound is None else bound,
        is_possible=is_possible,
        moved=(moves != 0.0) & is_possible[:, None],
        labels=classes[now],
        flipped_labels=classes[np.where(is_possible, then, now)],
        values=values.copy(),
        feature_names=names_for(linear, X),
    )


def worst_case_atoms(
    model: Any,
    X: Any,
    y: Any,
    index: int,
    *,
    epsilon: float,
    kappa: float = 1.0,
    norm: Norm = "linf",
    support: Support,
    sample_weight: Any = None,
) -> tuple[WorstCaseAtom, ...]:
    """What the worst distribution in the Wasserstein ball does to one sample.

    Parameters
    ----------
    model : fitted linear classifier of two classes
        As in :func:`feature_effects`.
    X, y : array of shape (n_samples, n_features), array of shape (n_samples,)
        All samples of the ball; the radius is a budget that they share. Labels are the model's.
    index : int
        The row to look at.
    epsilon, kappa, norm, support, sample_weight
        The ball, as in :func:`fdrsvm.worst_case_distribution`; a support is needed.

    Returns
    -------
    tuple of WorstCaseAtom
        One or two, the heavier first: a sample may be split. None if it has no weight.
    """
    linear, values, _ = read_with_rows(model, X)
    if linear.features is not None:
        raise UnsupportedError(
            "model: the worst case of curves and waves is a bound, which no distribution of rows "
            "need attain; worst_case_risk(..., features=...) gives both, and flipping_perturbation "
            "moves that turn a row"
        )
    signs = check_signs(linear, y, len(values))
    index = check_row(index, len(values), "index")
    worst = worst_case_distribution(
        linear.coef[0],
        X,
        signs,
        epsilon=epsilon,
        kappa=kappa,
        norm=norm,
        support=support,
        sample_weight=sample_weight,
        intercept=float(linear.intercept[0]),
    )
    mine = np.flatnonzero(worst.source_index == index)
    mine = mine[np.argsort(-worst.weights[mine], kind="stable")]
    distances = norm_rows(worst.points[mine] - values[index], norm)
    return tuple(
        WorstCaseAtom(
            point=worst.points[at],
            label=linear.classes[int(worst.labels[at] > 0.0)],
            mass=float(worst.weights[at]),
            cost=float(distance) + (kappa if worst.labels[at] != signs[index] else 0.0),
        )
        for at, distance in zip(mine, distances, strict=True)
    )
