"""Probabilities from scores, by a sigmoid that is fitted from sums over clients, [platt].

The fit is two plain functions. ``client_sums`` runs at a client and answers a ``Question`` with a
few sums over its rows; ``fit_sigmoid`` runs at the server and needs only the sum of the answers
over the clients, so that secure sums will do. ``FederatedCalibrator`` plays both in one process.

With a share q of wrong labels the loss is not convex. The fit then starts from several places and
keeps the best end; what it certifies is that the end is stationary, with a Hessian that is not
negative in any direction. Without wrong labels the loss is strictly convex, so that a stationary
point is the only optimum.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fdrsvm.core.arrays import (
    Array,
    check_choice,
    check_count,
    check_flag,
    check_vector,
    entry_error,
)
from fdrsvm.core.vectors import dot, plain, weighted_sum
from fdrsvm.data.training_data import (
    check_clients,
    check_label_values,
    check_weights,
    rows_by_client,
)
from fdrsvm.errors import CalibrationWarning, InvalidInputError, NumericalError
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.reading import read_whole
from fdrsvm.model.sigmoids import (
    Probabilities,
    Sigmoid,
    check_noise,
    probabilities,
    probabilities_of_scores,
)
from fdrsvm.native import elementary

__all__ = [
    "FederatedCalibrator",
    "Question",
    "ScoredRows",
    "SigmoidFit",
    "ask_all",
    "brier_score",
    "calibrate",
    "client_sums",
    "expected_calibration_error",
    "fit_sigmoid",
    "probabilities",
    "probabilities_of_scores",
]

_LARGEST_SCORE = 1e300  # the difference of two such scores is finite
_LARGEST_Z = 1e100  # of which the square is finite
_FLAT = 1e-12  # scores that differ by less, relative to their size, differ by rounding
_MAX_QUESTIONS = 100  # in one descent; 6 to 12 are usual
_ARMIJO = 1e-4
_ROUNDING = 1e-15  # of a loss, relative
_SMALL = 1e-6  # a loss, about that of a million rows whose classes the scores part
# Where the search starts if labels may be wrong: sigmoids of these slopes, half-way up at these
# places, for scores whose mean is 0 and whose mean distance from it is 1.
_SLOPES = (0.5, 2.0, 8.0)
_PLACES = (-6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0)
_N_STARTS = 2
# A client's own log-odds must be known within a factor of 2, with 95 % confidence.
_LARGEST_ERROR = math.log(2.0) / 1.96
_WORTH = 2.0  # log-likelihood that two more numbers must gain, by Akaike's criterion
_DOUBTFUL = 1000.0  # times likelier without wrong labels
_EXCESS = 1e-9  # of the loss, still to be gained at the end of a search

_EQUAL = (
    "all scores are equal, so every row has the same probability of {name}: the model ignores all "
    "features; train one that does not, for instance with a smaller epsilon"
)
_FALLING = (
    "rows with a higher score for {name} are less often of it, so every row has the same "
    "probability: the model ranks these rows the wrong way round; check that labels mean what they "
    "meant in training, and use rows of the same machines"
)
_CLEANER = (
    "without wrong labels these rows would be {times:.3g} times likelier than with "
    "label_noise={q:g}: give a smaller share"
)
_UNFINISHED = (
    "the search ended before its end: the loss may fall by {excess:.1e} yet; leave out rows with "
    "extreme scores or weights"
)


# --- the client's part ---


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """One client's rows: scores, which rows are of the class in question, weights."""

    scores: Array
    is_class: npt.NDArray[np.bool_]
    weights: Array


@dataclass(frozen=True)
class Question:
    """What the server asks of every client; each answer tells it what it needs for the next.

    Attributes
    ----------
    totals : (float, float) or None
        Rows of the other classes and of the class in question, over all clients.
    centre, scale : float or None
        Mean score, and mean distance from it.
    points : tuple of (slope, intercept)
        Where to evaluate the loss.
    label_noise : float
        Share of wrong labels.
    """

    totals: tuple[float, float] | None = None
    centre: float | None = None
    scale: float | None = None
    points: tuple[tuple[float, float], ...] = ()
    label_noise: float = 0.0


def client_sums(rows: ScoredRows, question: Question) -> Array:
    """The client's part: sums over its rows, which is all that leaves it.

    Returns
    -------
    ndarray
        What the question lacks first: the totals of the two classes, the mean score, the mean
        distance from it; else for each point six numbers: loss, its gradient (slope, intercept) and
        its Hessian (slope twice, both, intercept twice). All but the totals are over the rows of
        all clients: the clients' answers add up.
    """
    if question.totals is None:
        others = np.where(rows.is_class, 0.0, rows.weights)
        return np.array([others.sum(), (rows.weights - others).sum()])
    masses = rows.weights / sum(question.totals)
    if question.centre is None:
        return np.array([dot(masses, rows.scores)])
    distances = rows.scores - question.centre
    if question.scale is None:
        return np.array([dot(masses, np.abs(distances))])
    with np.errstate(over="ignore"):
        z = np.clip(distances / question.scale, -_LARGEST_Z, _LARGEST_Z)
    doubt = np.where(rows.is_class, *(1.0 / (total + 2.0) for total in question.totals[::-1]))
    signs = np.where(rows.is_class, 1.0, -1.0)
    sums = []
    for slope, intercept in question.points:
        v = signs * (slope * z + intercept)
        loss, first, second = row_losses(v, doubt, question.label_noise)
        table = np.column_stack(
            [loss, signs * first * z, signs * first, second * z * z, second * z, second]
        )
        sums.append(weighted_sum(masses, plain(table)))
    return np.array(sums)


def row_losses(v: Array, doubt: Array, q: float) -> tuple[Array, Array, Array]:
    """Loss of each row and its two derivatives, at the log-odds v of what its label says, [platt].

    -(1 - d) log(q + (1 - 2q) sigma(v)) - d log sigma(-v), where d is ``doubt``.
    """
    e = elementary.exp(plain(-np.minimum(np.abs(v), 700.0)))
    is_up = v >= 0.0
    own = np.where(is_up, 1.0, e) / (1.0 + e)  # sigma(v)
    other = np.where(is_up, e, 1.0) / (1.0 + e)  # sigma(-v)
    softplus = elementary.log(1.0 + e) - np.minimum(v, 0.0)  # -log sigma(v)
    if q == 0.0:
        right, wrong, gain = np.ones_like(v), np.zeros_like(v), np.zeros_like(v)
    else:
        top = np.where(is_up, (1.0 - q) + q * e, (1.0 - q) * e + q)
        right = np.where(is_up, 1.0 - q, (1.0 - q) * e) / top  # P(label is right | label, score)
        wrong = np.where(is_up, q * e, q) / top
        gain = elementary.log(top) - np.minimum(v, 0.0)
    loss = (1.0 - doubt) * (softplus - gain) + doubt * (softplus + v)
    first = doubt * own - (1.0 - doubt) * (other - wrong)
    second = own * other - (1.0 - doubt) * right * wrong
    return loss, first, second


# --- the server's part ---

Ask: TypeAlias = Callable[[Question], Array]


def ask_all(clients: Sequence[ScoredRows]) -> Ask:
    """The sum of the clients' answers, where all of them are in this process."""
    return lambda question: np.asarray(
        np.sum([client_sums(rows, question) for rows in clients], axis=0)
    )


@dataclass(frozen=True)
class SigmoidFit:
    """A fitted sigmoid and what is known of it.

    Attributes
    ----------
    sigmoid : Sigmoid
    loss : float
        Mean loss of a row.
    excess : float
        How far the loss would still fall if it were the parabola that gradient and Hessian at the
        end describe. Rounding only, unless ``found`` says otherwise.
    n_questions : int
        How many questions each client answered.
    found : tuple of str
        What a user should know: each a sentence with its remedy.
    """

    sigmoid: Sigmoid
    loss: float
    excess: float
    n_questions: int
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Place:
    """Slope and intercept with the six sums there."""

    slope: float
    intercept: float
    sums: tuple[float, ...]

    @property
    def loss(self) -> float:
        return self.sums[0]

    def step(self, *, is_flat: bool) -> tuple[float, float]:
        """A direction of descent: Newton's where the loss is convex, with a shifted Hessian else.

        ``is_flat`` keeps the slope.
        """
        _, g0, g1, h00, h01, h11 = self.sums
        if is_flat:
            g0, h00, h01 = 0.0, 1.0, 0.0
        # In units in which both curvatures are 1: neither outliers nor tiny masses matter then.
        d0, d1 = (1.0 / math.sqrt(abs(h)) if h else 1.0 for h in (h00, h11))
        g0, g1, h01 = g0 * d0, g1 * d1, h01 * d0 * d1
        h00, h11 = (math.copysign(1.0, h) if h else 0.0 for h in (h00, h11))
        spread = math.hypot(h00 - h11, 2.0 * h01)
        largest, least = 0.5 * (h00 + h11 + spread), 0.5 * (h00 + h11 - spread)
        shift = max(0.0, -2.0 * least, 1e-12 * max(abs(largest), 1.0) - least)
        h00, h11 = h00 + shift, h11 + shift
        determinant = h00 * h11 - h01 * h01
        step = d0 * (h01 * g1 - h11 * g0) / determinant, d1 * (h01 * g0 - h00 * g1) / determinant
        length = math.hypot(*step)
        longest = 10.0 * (1.0 + math.hypot(self.slope, self.intercept))
        factor = min(1.0, longest / length) if length else 1.0
        return factor * step[0], factor * step[1]

    def fall(self, step: tuple[float, float]) -> float:
        """How fast the loss falls along a step."""
        return -(self.sums[1] * step[0] + self.sums[2] * step[1])


class _Search:
    """Descends from one place to the next, and counts the questions."""

    def __init__(self, ask: Ask, question: Question) -> None:
        self.ask = ask
        self.question = question
        self.n_questions = 0

    def look(self, *points: tuple[float, float]) -> list[_Place]:
        self.n_questions += 1
        sums = self.ask(replace(self.question, points=points))
        rows = zip(points, sums.tolist(), strict=True)
        return [_Place(*point, tuple(row)) for point, row in rows]

    def descend(self, start: tuple[float, float], *, is_flat: bool = False) -> _Place:
        """Damped Newton; every step lowers the loss, up to rounding."""
        last_question = self.n_questions + _MAX_QUESTIONS
        (place,) = self.look(start)
        while self.n_questions < last_question:
            step = place.step(is_flat=is_flat)
            fall, rounding = place.fall(step), _ROUNDING * max(place.loss, _SMALL)
            if not fall > rounding:
                break
            length = 1.0
            reached = self._move(place, step)
            while not reached.loss <= place.loss - _ARMIJO * length * fall + rounding:
                length *= 0.5
                if length * fall <= rounding or self.n_questions >= last_question:
                    return place
                reached = self._move(place, step, length)
            place = reached
        # The loss cannot tell any more; Newton's last step halves the number of wrong digits.
        step = place.step(is_flat=is_flat)
        last = self._move(place, step)
        left = last.fall(last.step(is_flat=is_flat))
        return last if left < place.fall(step) and last.loss <= place.loss + rounding else place

    def descend_from_many(
        self, start: tuple[float, float], n_rows: float
    ) -> tuple[list[_Place], float]:
        """The ends, lowest first, and how many times likelier the rows were if labels are right."""
        asked = self.question
        self.question = replace(asked, label_noise=0.0)
        clean = self.descend(start)
        if asked.label_noise == 0.0:
            return [clean], 1.0
        self.question = asked
        grid = [(slope, -slope * place) for slope in _SLOPES for place in _PLACES]
        seen = sorted(self.look(*grid), key=lambda place: place.loss)[:_N_STARTS]
        starts = [(clean.slope, clean.intercept), *((one.slope, one.intercept) for one in seen)]
        ends = sorted(map(self.descend, starts), key=lambda place: place.loss)
        return ends, math.exp(min(700.0, n_rows * (ends[0].loss - clean.loss)))

    def _move(self, place: _Place, step: tuple[float, float], length: float = 1.0) -> _Place:
        point = (place.slope + length * step[0], place.intercept + length * step[1])
        return self.look(point)[0]


def fit_sigmoid(ask: Ask, label_noise: float = 0.0, name: str = "the class") -> SigmoidFit:
    """The server's part: Platt's sigmoid from sums over clients.

    Parameters
    ----------
    ask : callable
        Puts a ``Question`` to all clients, and returns the sum of what ``client_sums`` answers.
    label_noise : float
        Share of wrong labels, below 1/2, the same for both classes.
    name : str
        What sentences call the class.
    """
    q = check_noise(label_noise)
    totals = _check_totals(ask(Question()), q, name)
    n_rows = sum(totals)
    centre = float(ask(Question(totals))[0])
    scale = float(ask(Question(totals, centre))[0])
    # As Platt counts: one row more of each class, so that none is certain.
    others, wanted = ((total - q * n_rows) / (1.0 - 2.0 * q) + 1.0 for total in totals)
    prior = math.log(wanted) - math.log(others)
    ranks = scale > _FLAT * abs(centre)
    search = _Search(ask, Question(totals, centre, scale if ranks else 1.0, (), q))
    found = [] if ranks else [_EQUAL.format(name=name)]
    ends: list[_Place] = []
    if ranks:
        ends, times_likelier = search.descend_from_many((0.0, prior), n_rows)
        if times_likelier > _DOUBTFUL:
            found.append(_CLEANER.format(times=times_likelier, q=q))
    rising = [end for end in ends if end.slope >= 0.0]
    if rising[:1] != ends[:1] or not ends:
        rising.append(search.descend((0.0, prior), is_flat=True))
    best = min(rising, key=lambda place: place.loss)
    if ranks and best.slope == 0.0:
        found.append(_FALLING.format(name=name))
    excess = 0.5 * max(0.0, best.fall(best.step(is_flat=best.slope == 0.0)))
    if excess > _EXCESS * max(best.loss, 1.0):
        found.append(_UNFINISHED.format(excess=excess))
    if best.slope == 0.0:  # the scores do not matter, and need not be finite on a machine
        centre, scale = 0.0, 1.0
    sigmoid = Sigmoid(best.slope, best.intercept, centre, scale, prior)
    return SigmoidFit(sigmoid, best.loss, excess, search.n_questions + 3, tuple(found))


def _check_totals(totals: Array, q: float, name: str) -> tuple[float, float]:
    others, wanted = (float(total) for total in totals)
    if not others > 0.0 or not wanted > 0.0:
        raise InvalidInputError(
            "y",
            "must hold rows of every class, over all clients together",
            f"{'none' if not wanted > 0.0 else 'every one'} is of {name}; probabilities take more "
            "rows, or leave them out",
        )
    rarer = min(others, wanted) / (others + wanted)
    if rarer <= q:
        raise InvalidInputError(
            "label_noise",
            "must be below the share of the rarer label: wrong labels alone would give it to that "
            "share of the rows",
            f"it is {q:g}, and {rarer:.3g} of the rows have the rarer label; give the share of all "
            "labels that are wrong, or 0",
        )
    return others, wanted


# --- a model with probabilities ---


@dataclass(frozen=True, eq=False)
class CalibrationRows:
    """One client's scores, as ``decision_function`` gives them, classes by position, weights."""

    scores: Array
    codes: npt.NDArray[np.intp]
    weights: Array

    def of_class(self, k: int) -> ScoredRows:
        """What the sigmoid of class k is fitted to; of two classes that is the second."""
        scores = self.scores if self.scores.ndim == 1 else self.scores[:, k]
        return ScoredRows(scores, self.codes == k, self.weights)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A model that knows probabilities, and what became of each client."""

    model: LinearModel
    fits: tuple[SigmoidFit, ...]
    clients: dict[str, str]

    @property
    def found(self) -> list[str]:
        """What a user should know, of all classes."""
        return [said for fit in self.fits for said in fit.found]


def calibrate(
    model: LinearModel,
    clients: Mapping[str, CalibrationRows],
    *,
    label_noise: float = 0.0,
    per_client: bool = False,
) -> Calibration:
    """The model with sigmoids fitted to scores of rows that it was, best, not trained on.

    Parameters
    ----------
    model : LinearModel
        Whose scores they are; of out-of-fold scores, the model trained on all rows.
    clients : mapping from names to CalibrationRows
    label_noise, per_client
        As for ``FederatedCalibrator``.
    """
    q = check_noise(label_noise)
    codes = [1] if len(model.classes) == 2 else [*range(len(model.classes))]
    if q and len(codes) > 1:
        raise InvalidInputError(
            "label_noise", "must be 0 for more than two classes", f"it is {label_noise!r}"
        )
    names = [repr(model.classes[code]) for code in codes]
    rows = [{client: own.of_class(code) for client, own in clients.items()} for code in codes]
    fits = tuple(
        fit_sigmoid(ask_all([*by_client.values()]), q, name)
        for by_client, name in zip(rows, names, strict=True)
    )
    known = Probabilities(tuple(fit.sigmoid for fit in fits), {}, q)
    told = dict.fromkeys(clients, "shared")
    if per_client:
        own, told = _fit_own(rows, names, known)
        known = replace(known, clients=own)
    return Calibration(known.keep_in(model), fits, told)


def log_odds_error(others: float, wanted: float, label_noise: float = 0.0) -> float:
    """Standard error of the log-odds of a class from its rows and the others, [platt].

    sqrt(p (1 - p) / n) / ((1 - 2q) t (1 - t)), with the share p of the label among n rows and the
    share t = (p - q) / (1 - 2q) of the class; without wrong labels sqrt(1/others + 1/wanted).
    """
    n_rows = others + wanted
    p = wanted / n_rows if n_rows else 0.0
    t = (p - label_noise) / (1.0 - 2.0 * label_noise)
    if not 0.0 < t < 1.0:
        return math.inf
    return math.sqrt(p * (1.0 - p) / n_rows) / ((1.0 - 2.0 * label_noise) * t * (1.0 - t))


def _fit_own(
    rows: Sequence[Mapping[str, ScoredRows]], names: Sequence[str], shared: Probabilities
) -> tuple[dict[str, tuple[Sigmoid, ...]], dict[str, str]]:
    """Sigmoids of the clients that have the rows for it and gain by it, and words about all."""
    own, told = {}, {}
    for client in rows[0]:
        mine = [by_client[client] for by_client in rows]
        totals = [client_sums(one, Question()) for one in mine]
        too_few = _too_few(totals, names, shared.label_noise)
        if too_few:
            told[client] = f"shared: {too_few}"
            continue
        fits = [fit_sigmoid(ask_all([one]), shared.label_noise) for one in mine]
        sigmoids = tuple(fit.sigmoid for fit in fits)
        gain = sum(
            float(sum(total)) * (_loss_of(one, old, shared) - _loss_of(one, new, shared))
            for one, total, old, new in zip(mine, totals, shared.shared, sigmoids, strict=True)
        )
        if any(fit.sigmoid.slope == 0.0 for fit in fits):
            told[client] = "shared: its own rows are not ranked by their scores"
        elif gain <= _WORTH * len(fits):
            told[client] = "shared: that fits its rows as well as a sigmoid of its own"
        else:
            own[client] = sigmoids
            counts = " and ".join(
                f"{t[1]:g} of class {n}" for t, n in zip(totals, names, strict=True)
            )
            told[client] = f"its own, from {float(sum(totals[0])):g} rows, {counts}"
    return own, told


def _too_few(totals: Sequence[Array], names: Sequence[str], q: float) -> str:
    """What a client lacks for a sigmoid of its own; nothing if it has the rows."""
    for (others, wanted), name in zip(totals, names, strict=True):
        error = log_odds_error(float(others), float(wanted), q)
        if error > _LARGEST_ERROR:
            says = f"{wanted:g} rows of class {name} and {others:g} others"
            known = (
                f"tell its odds within a factor of {math.exp(1.96 * error):.3g}"
                if error < 100.0
                else "tell nothing of its odds"
            )
            return f"{says} {known}, where 2 is asked for ({rows_needed(q)} rows of each class do)"
    return ""


def rows_needed(q: float) -> int:
    """Rows of each class that suffice for a sigmoid of a client's own: 16 without wrong labels.

    By ``log_odds_error`` with equally many of both: 2 / sqrt(2 n) / (1 - 2q) is the error.
    """
    return math.ceil(2.0 / ((1.0 - 2.0 * q) * _LARGEST_ERROR) ** 2)


def _loss_of(rows: ScoredRows, sigmoid: Sigmoid, shared: Probabilities) -> float:
    """Mean loss of a client's rows under a sigmoid."""
    others, wanted = client_sums(rows, Question()).tolist()
    point = ((sigmoid.slope, sigmoid.intercept),)
    question = Question((others, wanted), sigmoid.centre, sigmoid.scale, point, shared.label_noise)
    return float(client_sums(rows, question)[0, 0])


class FederatedCalibrator(BaseEstimator):  # type: ignore[misc]
    """Probabilities for a fitted linear classifier, from sums over clients.

    Fit it on rows that the model was not trained on: scores of its training rows are too good, and
    the probabilities would be too sure. They hold for rows with the mix of classes of ``fit``.

    Parameters
    ----------
    method : {"sigmoid"}
        Platt's sigmoid of the score; one-vs-rest and divided by the sum for more than two classes.
    label_noise : float
        The share of labels in ``fit`` that are wrong, the same for both classes, below 1/2. The
        probabilities are then those of the true class. For two classes.
    per_client : bool
        Give a sigmoid of its own to each client that has the rows for it (16 of each class, or as
        many as tell the odds of its classes within a factor of 2 with 95 % confidence) and whose
        rows it fits better than the shared one does, by Akaike's criterion.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : LinearModel
        The model with probabilities in its record: save it, export it, load it again.
    fits_ : tuple of SigmoidFit
        The shared sigmoid of ``classes_[1]``, or one per class if there are more than two.
    clients_ : dict
        For each client, by its name as text, words: whether its sigmoid is its own, and why.
    n_questions_ : int
        How many questions each client answers for the shared sigmoids.
    n_features_in_ : int

    Notes
    -----
    Privacy: a client answers with sums over its rows: two counts, two sums of scores, and six
    numbers (loss, gradient, Hessian) for each pair of slope and intercept that is tried. Only their
    sums over clients are used, so that secure sums will do. A client's own sigmoid leaves nothing
    at all until the model that holds it is handed on.

    A sigmoid never falls: if higher scores of a class are less often of it, all rows have the same
    probability, and a ``CalibrationWarning`` says so.

    Examples
    --------
    >>> import numpy as np
    >>> from fdrsvm import FDRSVC, FederatedCalibrator
    >>> rng = np.random.default_rng(0)
    >>> X, plants = rng.random((400, 2)), np.repeat(["north", "south"], 200)
    >>> y = np.where(X[:, 0] + 0.3 * rng.normal(size=400) > 0.5, "worn", "healthy")
    >>> model = FDRSVC().fit(X[::2], y[::2], clients=plants[::2])
    >>> calibrator = FederatedCalibrator().fit(model, X[1::2], y[1::2], clients=plants[1::2])
    >>> calibrator.predict_proba([[0.1, 0.5], [0.9, 0.5]]).round(2).tolist()
    [[0.92, 0.08], [0.07, 0.93]]
    """

    classes_: npt.NDArray[Any]
    model_: LinearModel
    fits_: tuple[SigmoidFit, ...]
    clients_: dict[str, str]

    def __init__(
        self, method: str = "sigmoid", label_noise: float = 0.0, per_client: bool = False
    ) -> None:
        self.method = method
        self.label_noise = label_noise
        self.per_client = per_client

    def fit(
        self, model: Any, X: Any, y: Any, clients: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit the sigmoids.

        Parameters
        ----------
        model : estimator or LinearModel
            A fitted linear classifier, of this package or of another. It is left as it is.
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Rows that the model was not trained on.
        y : array of shape (n_samples,)
            Their classes, among the model's.
        clients : array of shape (n_samples,), optional
            A client label for each row. None means one client.
        sample_weight : array of shape (n_samples,), optional
            A row of weight 2 counts as two rows.

        Warns
        -----
        CalibrationWarning
            If the scores say nothing about a class, or labels look cleaner than ``label_noise``.
        """
        check_choice(self.method, "method", ("sigmoid",))
        per_client = check_flag(self.per_client, "per_client")
        linear = read_whole(model)
        scores = linear.decision_function(X)
        largest = float(np.abs(scores).max())
        if largest > _LARGEST_SCORE:
            raise NumericalError(
                f"X: a score is {largest:.3g}, and float64 cannot tell differences of scores "
                f"beyond {_LARGEST_SCORE:g}; scale the features"
            )
        codes = class_places(y, linear, len(scores))
        weights = check_weights(sample_weight, len(scores))
        with np.errstate(over="ignore"):
            total = float(weights.sum())
        if total == math.inf:
            raise InvalidInputError(
                "sample_weight", "their sum must be finite", "it is not: divide them by the largest"
            )
        labels, groups = rows_by_client(check_clients(clients, len(scores)))
        rows = {
            str(name): CalibrationRows(scores[own], codes[own], weights[own])
            for name, own in zip(labels.tolist(), groups, strict=True)
        }
        if len(rows) < len(labels):
            raise InvalidInputError(
                "clients", "names must differ as text, as a model file has them", "some do not"
            )
        done = calibrate(linear, rows, label_noise=self.label_noise, per_client=per_client)
        self.model_, self.fits_, self.clients_ = done.model, done.fits, done.clients
        self.classes_ = np.array(linear.classes)
        self.n_features_in_ = linear.n_features
        self.n_questions_ = sum(fit.n_questions for fit in done.fits)
        for said in done.found:
            warnings.warn(said, CalibrationWarning, stacklevel=2)
        return self

    def predict_proba(self, X: Any, clients: Any = None, fault_share: float | None = None) -> Array:
        """Probabilities, of shape (n_samples, n_classes), in the order of ``classes_``.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
        clients : array of shape (n_samples,), optional
            Whose rows they are, for ``per_client``. By default, and for clients without a sigmoid
            of their own, the shared one counts.
        fault_share : float, optional
            For two classes: the share among these rows of the class looked for (the rarer one in
            training, or ``pos_label``), if it is not what it was in ``fit``.

        Warns
        -----
        CalibrationWarning
            If ``clients`` names one that ``fit`` did not see, where some have their own sigmoid.
        """
        check_is_fitted(self)
        scores = self.model_.decision_function(X)
        names, groups = rows_by_client(check_clients(clients, len(scores)))
        known = Probabilities.required(self.model_)
        unknown = [name for name in map(str, names.tolist()) if name not in self.clients_]
        if clients is not None and known.clients and unknown:
            warnings.warn(
                f"there were no rows of {', '.join(map(repr, unknown))} in fit: they have the "
                "shared probabilities; fit again with rows of theirs, or check the spelling",
                CalibrationWarning,
                stacklevel=2,
            )
        values = np.empty((len(scores), len(self.classes_)))
        for name, rows in zip(names.tolist(), groups, strict=True):
            client = None if clients is None else name
            values[rows] = probabilities_of_scores(
                self.model_, scores[rows], client, fault_share=fault_share
            )
        return values


def class_places(y: Any, model: LinearModel, n_rows: int) -> npt.NDArray[np.intp]:
    """Positions of the labels among the model's classes."""
    check_label_values(y, "y")
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InvalidInputError(
            "y", f"must have shape ({n_rows},), one label for each row", f"it has {labels.shape}"
        )
    places = {label: place for place, label in enumerate(model.classes)}
    codes = np.array([places.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise InvalidInputError(
            "y",
            f"labels must be among the model's classes {list(model.classes)}",
            f"row {row} is {labels[row].item() if hasattr(labels[row], 'item') else labels[row]!r}",
        )
    return codes


# --- how good they are ---


def brier_score(outcomes: Any, probability: Any) -> float:
    """Mean square of probability less outcome; 0 is best, and p (1 - p) for a constant p.

    Parameters
    ----------
    outcomes : array of shape (n_rows,)
        1 or True where the row is of the class, else 0.
    probability : array of shape (n_rows,)
        Of the class.
    """
    y, p = _check_outcomes(outcomes, probability)
    return float(np.mean((p - y) ** 2))


def expected_calibration_error(outcomes: Any, probability: Any, n_bins: int = 15) -> float:
    """How far stated probabilities are from what happens, on average over the rows, [platt].

    Rows are put into bins of equally many, in the order of their probability; rows of equal
    probability share a bin. The error is the mean over the rows of
    abs(mean outcome - mean probability) of their bin.

    Parameters
    ----------
    outcomes, probability
        As for ``brier_score``.
    n_bins : int
        With few rows a bin the error is mostly chance: a bin of n rows whose rate is p has about
        sqrt(p (1 - p) / n) of it.
    """
    y, p = _check_outcomes(outcomes, probability)
    order = np.argsort(p, kind="stable")
    y, p = y[order], p[order]
    # A bin ends where its last row does, or where the rows of equal probability do.
    ends = np.arange(1, check_count(n_bins, "n_bins") + 1) * len(p) // n_bins
    ends = np.unique(np.searchsorted(p, p[ends[ends > 0] - 1], side="right"))
    sums = np.diff(np.concatenate([[0.0], np.cumsum(y - p)[ends - 1]]))
    return float(np.abs(sums).sum() / len(p))


def _check_outcomes(outcomes: Any, probability: Any) -> tuple[Array, Array]:
    n_rows = np.size(probability)
    p = check_vector(probability, "probability", n_rows, "rows")
    y = check_vector(outcomes, "outcomes", n_rows, "rows")
    if n_rows == 0:
        raise InvalidInputError("probability", "must have an entry", "it is empty")
    for argument, values, rule, wrong in (
        ("probability", p, "must lie between 0 and 1", (p < 0.0) | (p > 1.0)),
        ("outcomes", y, "must be 0 or 1", (y != 0.0) & (y != 1.0)),
    ):
        if wrong.any():
            raise entry_error(argument, rule, values, wrong)
    return y, p
