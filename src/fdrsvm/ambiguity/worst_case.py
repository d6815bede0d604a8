"""The worst-case risk f(w) of one client: value, subgradient, multiplier, and a proof of the value.

Primal   sup over Q of E_Q[loss(y (w.x + b))],  Q within transport cost epsilon of the data
Dual     min over lam >= 0 of  lam epsilon + mean_n sup over (x', y') of
         loss(y' (w.x' + b)) - lam (||x_n - x'|| + kappa 1[y_n != y'])
Link     Q moves each sample to its maximisers at lam; those that tie are mixed to cost epsilon
Stop     value (dual) minus proof (the loss of the very Q found) is zero up to rounding
Cost     without a support O(N P): one product with X, one with its transpose, one selection;
         on a box some passes more, each O(N P) for l1 and up to O(N P^2) for l2 and linf
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from scipy import sparse

from fdrsvm.ambiguity._kernels.flips import hinge_worst_case, label_worst_case
from fdrsvm.ambiguity._kernels.worst import BoxWorstCase, box_worst_case, hinge_of_atoms
from fdrsvm.ambiguity.ball import Support, WassersteinBall, check_inside
from fdrsvm.ambiguity.cuts import Cut, intercept_slope
from fdrsvm.errors import InvalidInputError, NumericalError, UnsupportedError
from fdrsvm.maths.arrays import (
    Array,
    Matrix,
    check_choice,
    check_finite,
    check_labels,
    check_masses,
    check_matrix,
    check_positive,
    check_vector,
)
from fdrsvm.maths.losses import LOSSES, Hinge, Linear, MarginLoss
from fdrsvm.maths.norms import NORM_CODES, Norm, dual_norm, dual_norm_subgradient

WorstCase = Literal["exact", "paper"]
WORST_CASES: tuple[WorstCase, ...] = get_args(WorstCase)

_AT_THE_DUAL_NORM = np.array([np.inf])
_GUESS_ABOVE = 20_000  # samples
_GUESS_ROWS = 1024
_N_GUESSES = 8
_PROOF_TOLERANCE = 1e-8
_ROUNDING = 1e-15  # a few units in the last place


class WorstCaseRisk(NamedTuple):
    """The worst-case risk at one w.

    Attributes
    ----------
    value : float
        The worst-case risk f(w).
    subgradient : ndarray of shape (n_features,)
        v with f(u) >= f(w) + v.(u - w) for all u.
    multiplier : float
        The dual variable of the radius: what a slightly larger epsilon would add, per unit.
    intercept_subgradient : float
        The same as ``subgradient``, for the intercept.
    proof : float
        Expected loss of an explicit distribution inside the ball (without a support: of a sequence
        of them, in the limit). A lower bound on f(w) computed apart from ``value``; ``value -
        proof`` is zero up to rounding.
    """

    value: float
    subgradient: Array
    multiplier: float
    intercept_subgradient: float
    proof: float


class _Flips(NamedTuple):
    """The worst case without a support; constant and slopes make its cut, without the norm."""

    value: float
    proof: float
    multiplier: float
    rest: float
    slope: Array
    intercept_slope: float
    constant: float


class RiskOracle:
    """One client's data and ball, checked once; calls then cost a few passes over X.

    Takes the arguments of :func:`worst_case_risk` but ``w`` and ``intercept``. An X that is float64
    and C-ordered is not copied: it must not be changed afterwards.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        epsilon: float,
        kappa: float = 1.0,
        norm: Norm = "linf",
        support: Support = None,
        worst_case: WorstCase = "exact",
        loss: str | MarginLoss = "hinge",
        sample_weight: Any = None,
    ) -> None:
        self.X: Matrix = check_matrix(X)
        n_samples, n_features = self.X.shape
        self.y = check_labels(y, n_samples)
        self.mass = check_masses(sample_weight, n_samples)
        self.ball = WassersteinBall.checked(
            n_features, epsilon=epsilon, kappa=kappa, norm=norm, support=support
        )
        self.loss = _choose_loss(loss, worst_case, has_support=support is not None)
        if self.ball.box is not None:
            if sparse.issparse(self.X):
                # In a box a zero can move as any other value can, so zeros cannot be skipped.
                self.X = self.X.toarray()
            check_inside(self.X, self.ball.box, getattr(X, "columns", None))

    def __call__(self, w: Any, intercept: float = 0.0) -> WorstCaseRisk:
        """Worst-case risk at ``w``, checked against its own proof."""
        w = self._clean(w)
        if self.ball.box is None:
            risk = self._from_flips(w, self._worst_flips(w, intercept))
        else:
            risk = _risk_on_box(self.in_box(w, intercept))
        check_proof(risk.value, risk.proof)
        return risk

    def _clean(self, w: Any) -> Array:
        if _is_clean(w, self.X.shape[1]):
            return cast(Array, w)
        return check_vector(w, "w", self.X.shape[1], "features")

    def value(self, w: Any, intercept: float = 0.0) -> float:
        """The risk's value alone, checked against its proof; a little faster than a call."""
        w = self._clean(w)
        found: _Flips | WorstCaseRisk
        if self.ball.box is None:
            found = self._worst_flips(w, intercept)
        else:
            found = _risk_on_box(self.in_box(w, intercept))
        check_proof(found.value, found.proof)
        return found.value

    def cut(self, w: Any, intercept: float = 0.0) -> tuple[WorstCaseRisk, Cut]:
        """Risk at ``w``, and the cut that touches it there; the slope's last entry is b's.

        In the mode "paper" the cut is of the hinge under the paper's worst distribution, [paper]:
        it lies below the exact risk, and at ``w`` between the paper's risk and the exact one.
        """
        w = self._clean(w)
        is_paper = isinstance(self.loss, Linear)
        if self.ball.box is None:
            flips = self._worst_flips(w, intercept)
            risk = self._from_flips(w, flips)
            followed = self._hinge_flips(w, intercept) if is_paper else flips
            slope = np.append(followed.slope, intercept_slope(followed.intercept_slope))
            cut = Cut(followed.constant, slope, followed.rest * self.loss.lipschitz)
        else:
            found = self.in_box(w, intercept)
            risk = _risk_on_box(found)
            touched = self._hinge_on_box(w, intercept, found) if is_paper else risk
            cut = self._cut_on_box(touched, w, intercept)
        check_proof(risk.value, risk.proof)
        return risk, cut

    def _hinge_flips(self, w: Array, intercept: float) -> _Flips:
        """The hinge, with labels flipped where the paper's adversary flips them."""
        margins = self.y * (self.X @ w + intercept)
        linear, ball = self.loss, self.ball
        *_, rest, shares, _ = label_worst_case(
            linear.value(margins),
            linear.value(-margins),
            linear.slope(margins),
            linear.slope(-margins),
            self.y,
            self.mass,
            ball.epsilon,
            ball.kappa,
            dual_norm(w, ball.norm),
        )
        kept = np.where(margins < 1.0, 1.0 - shares, 0.0)
        flipped = np.where(margins > -1.0, shares, 0.0)
        residual = self.mass * self.y * (flipped - kept)
        constant = float(self.mass @ (kept + flipped))
        nothing = np.nan  # no value is asked for
        return _Flips(
            nothing, nothing, nothing, rest, residual @ self.X, float(residual.sum()), constant
        )

    def _hinge_on_box(self, w: Array, intercept: float, found: BoxWorstCase) -> WorstCaseRisk:
        """Mean and subgradient of the hinge under the distribution found."""
        ball, box = self.ball, self.ball.box
        assert box is not None
        mean, slope, slope_b = hinge_of_atoms(
            w,
            intercept,
            self.X,
            self.y,
            self.mass,
            box.low,
            box.high,
            NORM_CODES[ball.norm],
            found.shares,
            found.labels,
            found.steps,
        )
        return WorstCaseRisk(mean, slope, found.multiplier, slope_b, mean)

    def _cut_on_box(self, risk: WorstCaseRisk, w: Array, intercept: float) -> Cut:
        """The tangent, lowered by what rounding may have added to its constant."""
        box, v_b = self.ball.box, risk.intercept_subgradient
        assert box is not None
        touched = float(risk.subgradient @ w) + v_b * intercept
        farthest = np.maximum(np.abs(box.low), np.abs(box.high))
        scale = float(np.abs(w) @ farthest) + abs(intercept) + abs(risk.proof)
        constant = risk.proof - touched - _ROUNDING * scale
        return Cut(constant, np.append(risk.subgradient, intercept_slope(v_b)), 0.0)

    def _from_flips(self, w: Array, flips: _Flips) -> WorstCaseRisk:
        subgradient = flips.slope
        if flips.rest > 0.0:
            per_unit = flips.rest * self.loss.lipschitz
            subgradient = subgradient + per_unit * dual_norm_subgradient(w, self.ball.norm)
        return WorstCaseRisk(
            flips.value, subgradient, flips.multiplier, flips.intercept_slope, flips.proof
        )

    def _worst_flips(self, w: Array, intercept: float) -> _Flips:
        """Equation [flips]: labels are flipped in order of gain; the rest moves features."""
        ball, loss = self.ball, self.loss
        least = loss.lipschitz * dual_norm(w, ball.norm)
        if type(loss) is Hinge and not sparse.issparse(self.X):
            return _Flips(
                *hinge_worst_case(
                    self.X, self.y, self.mass, w, intercept, ball.epsilon, ball.kappa, least
                )
            )
        margins = self.y * (self.X @ w + intercept)
        kept, flipped = loss.value(margins), loss.value(-margins)
        kept_slope, flipped_slope = loss.slope(margins), loss.slope(-margins)
        value, proof, multiplier, rest, shares, residual = label_worst_case(
            kept,
            flipped,
            kept_slope,
            flipped_slope,
            self.y,
            self.mass,
            ball.epsilon,
            ball.kappa,
            least,
        )
        # Tangents at margin 0, less what rounding may have added: a cut must not lie too high.
        tangents = (1.0 - shares) * (kept - kept_slope * margins)
        tangents += shares * (flipped + flipped_slope * margins)
        tangents -= _ROUNDING * (np.abs(margins) + kept + flipped)
        return _Flips(
            value,
            proof,
            multiplier,
            rest,
            residual @ self.X,
            float(residual.sum()),
            float(self.mass @ tangents),
        )

    def in_box(self, w: Array, intercept: float) -> BoxWorstCase:
        """Equation [box-dual], with the moves behind the value; needs a support."""
        guesses = _AT_THE_DUAL_NORM
        if self.y.size > _GUESS_ABOVE:
            guesses = self._guess_multipliers(w, intercept)
        return self._solve_box(w, intercept, self.X, self.y, self.mass, guesses)

    def _guess_multipliers(self, w: Array, intercept: float) -> Array:
        """Multipliers of a few small samples, lowest and highest.

        They nearly always enclose that of the whole, which spares most looks at all the data; if
        they do not, only time is lost.
        """
        stride = self.y.size // _GUESS_ROWS
        found = []
        for start in range(0, stride, -(-stride // _N_GUESSES)):
            X, y, mass = (array[start::stride].copy() for array in (self.X, self.y, self.mass))
            if mass.any():
                mass /= mass.sum()
                sample = self._solve_box(w, intercept, X, y, mass, _AT_THE_DUAL_NORM)
                found.append(sample.multiplier)
        return np.unique([min(found), max(found)])

    def _solve_box(
        self, w: Array, intercept: float, X: Array, y: Array, mass: Array, guesses: Array
    ) -> BoxWorstCase:
        ball, box = self.ball, self.ball.box
        assert box is not None
        return box_worst_case(
            w,
            intercept,
            X,
            y,
            mass,
            box.low,
            box.high,
            NORM_CODES[ball.norm],
            ball.epsilon,
            ball.kappa,
            -np.inf if isinstance(self.loss, Linear) else 0.0,
            guesses,
        )


def _risk_on_box(found: BoxWorstCase) -> WorstCaseRisk:
    value, proof, multiplier, subgradient, intercept_subgradient, *_ = found
    return WorstCaseRisk(value, subgradient, multiplier, intercept_subgradient, proof)


def _is_clean(w: Any, size: int) -> bool:
    """Whether ``w`` needs no conversion, in a fraction of the time of a full check."""
    return (
        isinstance(w, np.ndarray)
        and w.dtype == np.float64
        and w.shape == (size,)
        and w.flags.c_contiguous
        and math.isfinite(w.dot(w))
    )


def _choose_loss(loss: str | MarginLoss, worst_case: str, *, has_support: bool) -> MarginLoss:
    """The loss to maximise, if the options go together."""
    check_choice(worst_case, "worst_case", WORST_CASES)
    if isinstance(loss, str):
        loss = LOSSES[check_choice(loss, "loss", tuple(LOSSES))]
    elif isinstance(loss, type) or not isinstance(loss, MarginLoss):
        raise InvalidInputError(
            "loss",
            f"must be one of {', '.join(map(repr, LOSSES))} or have name, lipschitz, value, slope",
            f"it is {loss!r}",
        )
    check_positive(loss.lipschitz, "loss.lipschitz")
    if type(loss) is Hinge:  # a subclass may be another loss
        return Linear() if worst_case == "paper" else loss
    if worst_case == "paper":
        raise UnsupportedError(
            f"worst_case='paper' is defined for the hinge only; loss is {loss.name!r}"
        )
    if has_support:
        raise UnsupportedError(
            f"a support is possible with loss='hinge' only; loss is {loss.name!r}, use support=None"
        )
    return loss


def worst_case_risk(
    w: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    kappa: float = 1.0,
    norm: Norm = "linf",
    support: Support = None,
    worst_case: WorstCase = "exact",
    loss: str | MarginLoss = "hinge",
    sample_weight: Any = None,
    intercept: float = 0.0,
) -> WorstCaseRisk:
    """Largest expected loss over all distributions in a Wasserstein ball around the data.

    Parameters
    ----------
    w : array of shape (n_features,)
        The linear model.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The samples. With a support, a sparse X is made dense.
    y : array of shape (n_samples,)
        Labels, -1 or +1.
    epsilon : float
        Radius of the ball; 0 gives the plain mean loss.
    kappa : float
        Price of flipping a label, above 0. ``inf`` trusts the labels.
    norm : {"l1", "l2", "linf"}
        Transport norm on features.
    support : None, "unit-box" or (low, high)
        Where features can be. Bounds are finite; scalars or one a feature.
    worst_case : {"exact", "paper"}
        "exact" is the worst case of the hinge. "paper" is what the FDR-SVM paper's linear program
        computes: the worst case of 1 - y w.x, without the hinge's zero piece. It is never larger.
    loss : {"hinge", "logistic", "smooth_hinge"} or MarginLoss
        Losses other than the hinge need ``support=None``.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples in the empirical distribution; scaled to sum to 1.
    intercept : float
        Added to w.x. It is not transported and not part of the norm of w.

    Returns
    -------
    WorstCaseRisk
        ``value``, ``subgradient``, ``multiplier``, ``intercept_subgradient``, ``proof``.

    Raises
    ------
    InvalidInputError
        Naming the argument, the rule, and the row or column at fault.
    UnsupportedError
        If the options do not go together.
    NumericalError
        If value and proof differ by more than rounding: float64 is not enough for this input.

    Examples
    --------
    >>> import numpy as np
    >>> from fdrsvm import worst_case_risk
    >>> X, y = np.array([[0.1, 0.9], [0.8, 0.3]]), np.array([-1, 1])
    >>> r = worst_case_risk([2.0, -1.0], X, y, epsilon=0.05, kappa=0.5, support="unit-box")
    >>> round(r.value, 6)
    0.38
    >>> round(r.multiplier, 6)
    4.6
    """
    oracle = RiskOracle(
        X,
        y,
        epsilon=epsilon,
        kappa=kappa,
        norm=norm,
        support=support,
        worst_case=worst_case,
        loss=loss,
        sample_weight=sample_weight,
    )
    intercept = check_finite(intercept, "intercept")
    with np.errstate(over="ignore", invalid="ignore"):
        return oracle(w, intercept)


def check_proof(value: float, proof: float) -> None:
    """A value is handed out only if a distribution in the ball really has that loss."""
    if not abs(value - proof) <= _PROOF_TOLERANCE * (1.0 + abs(value)):  # also if either is nan
        raise NumericalError(
            f"the worst-case risk {value:g} differs from the loss {proof:g} of the distribution "
            "found for it: w.x overflows, or features differ too much in scale; rescale them"
        )
