"""Whether a model has given up: it (almost) never predicts a class, or ignores all features.

Given    n_k > 0 rows of class k, r_k of them predicted as k, m_k of all rows; scores s_i
missed   m_k = 0, or r_k < n_k / 100 and n_k >= 5: it finds fewer than one in a hundred rows of a
         class that occurs. (Fewer than 5 rows may all be missed by chance: where every second one
         is found, with probability 2^-n_k, which is below 5 % from 5 rows on. Rows of training
         are all there is, and m_k = 0 is told of one row too; of other rows it takes 5 as well.)
flat     (max s_i - min s_i) / 2 <= 1/100 for each score: rows differ by 1 % of the margin 1

A flat model is as good as one with w = 0: losses are 1-Lipschitz in the score, and without weights
moving features gains the worst case nothing, so that w = 0 with the intercept (max s + min s) / 2
has a worst-case risk larger by at most the half range: [flat]. Where epsilon / kappa >= 1/2 at
every client, w = 0 is even optimal, whatever the rows: [half-flips].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, Matrix
from fdrsvm.errors import DegenerateModelWarning

SELDOM = 0.01
ENOUGH = 5
FLAT = 0.01
HALF = 0.5
RARE = 0.5
BALANCED = "balanced"


class Evidence(NamedTuple):
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

    @property
    def missed(self) -> list[int]:
        """Positions of the classes that occur but are (almost) never predicted where they are."""
        occur, predicted = self.counts.sum(axis=1), self.counts.sum(axis=0)
        seldom = (np.diag(self.counts) < SELDOM * occur) & (occur >= ENOUGH)
        found: list[int] = np.flatnonzero((occur > 0.0) & ((predicted == 0.0) | seldom)).tolist()
        return found


@dataclass(frozen=True)
class Setting:
    """What of a training decides on the remedy.

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


def client_evidence(
    coef: Array,
    intercept: Array,
    X: Matrix,
    codes: npt.NDArray[np.intp],
    weights: Array | None = None,
) -> Evidence:
    """The client's part: no row leaves it.

    Parameters
    ----------
    coef, intercept : arrays of shapes (n_scores, n_features), (n_scores,)
        One score for two classes, else one for each class.
    X, codes : arrays
        The rows, one or more, and their classes as positions.
    weights : array, optional
        A row of weight 2 counts as two.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(X @ coef.T) + intercept
    is_binary = scores.shape[1] == 1
    predicted = (scores[:, 0] > 0.0).astype(np.intp) if is_binary else scores.argmax(axis=1)
    n_classes = 2 if is_binary else scores.shape[1]
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (codes, predicted), 1.0 if weights is None else weights)
    return Evidence(counts, scores.min(axis=0), scores.max(axis=0))


def pooled(parts: Sequence[Evidence]) -> Evidence:
    """The server's part: over all clients."""
    return Evidence(
        np.sum([part.counts for part in parts], axis=0),
        np.min([part.low for part in parts], axis=0),
        np.max([part.high for part in parts], axis=0),
    )


def judge(
    evidence: Evidence,
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
    missed = [k for k in evidence.missed if evidence.counts[k].sum() >= least_rows]
    is_flat = evidence.is_flat and may_be_flat
    if not missed and not is_flat:
        return None
    found = [_class_words(evidence.counts, k, classes[k]) for k in missed]
    if is_flat:
        spread = float((evidence.high - evidence.low).max())
        found.append(f"ignores all features (its score varies by {spread:.1g} over all rows)")
    # Which class a flat model is left with is chance; the rarest is what it has given up on.
    concerned = range(len(classes)) if is_flat else missed
    shares = [_share(evidence.counts, k) for k in concerned if evidence.counts[k].any()]
    case = _Case(setting, is_flat, min(shares))
    return DegenerateModelWarning(
        f"{whose} {', and '.join(found)}", _remedy(case, _IN_PYTHON), _remedy(case, _TYPED)
    )


def _class_words(counts: Array, k: int, label: Any) -> str:
    whole, own, predicted = counts.sum(), counts[k].sum(), counts[:, k].sum()
    if predicted == 0.0:
        are = "is" if own == 1.0 else "are"
        return f"never predicts {label!r} ({own:.9g} of {whole:.9g} rows {are})"
    return (
        f"predicts {label!r} for {predicted:.9g} of {whole:.9g} rows, but for only "
        f"{counts[k, k]:.9g} of the {own:.9g} that are"
    )


def _share(counts: Array, k: int) -> float:
    """The class's rows, in parts of what it had if all classes had equally many."""
    return float(counts[k].sum() * len(counts) / counts.sum())


# --- what to do about it ---

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
_OTHER_FEATURES = "use features that tell the classes apart"

_EFFORT = {"FDRSVC": "rounds", "DRSVC": "iterations", "FedSVC": "steps"}


class _Case(NamedTuple):
    """What the remedy depends on; ``share`` is that of the rarest class concerned."""

    setting: Setting
    is_flat: bool
    share: float

    @property
    def balances(self) -> bool:
        """Whether weights of the classes are still to be tried."""
        return self.share < RARE and self.setting.class_weight != BALANCED


def _remedy(case: _Case, words: dict[str, str]) -> str:
    """One sentence; what is most likely to help comes first."""
    setting = case.setting
    if setting.flip_share >= HALF and case.is_flat:
        wanted = " and ".join([words["ball"], *([words["balance"]] if case.balances else [])])
        return (
            f"epsilon / kappa is {setting.flip_share:.3g}: from 1/2 on half of every row may have "
            f"the other label, and no model beats w = 0; {words['do']}{wanted}"
        )
    steps = [words[step] for step in _steps(case)]
    if not steps:
        return _OTHER_FEATURES
    first, *others = steps
    more = f"; if that is not enough, {', then '.join(others)}" if others else ""
    return f"{words['do']}{first}{more}"


def _steps(case: _Case) -> list[str]:
    setting = case.setting
    effort = _EFFORT.get(setting.estimator, "rounds")
    if setting.estimator == "FedSVC":  # its rounds end where they are told to
        return [*(["balance"] if case.balances else []), effort]
    # Where classes are of similar size, it is the radius that makes w = 0 the best.
    balance = ["balance"] if case.balances else []
    steps = [*balance, *(["epsilon"] if setting.has_radius else [])]
    return steps if setting.is_solved else [effort, *steps]


def flip_share(epsilons: Sequence[float], kappas: Sequence[float]) -> float:
    """The least epsilon / kappa: so much of every client's mass may change its label."""
    pairs = zip(epsilons, kappas, strict=True)
    return min((epsilon / kappa for epsilon, kappa in pairs), default=0.0)
