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

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import (
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
from fdrsvm.core.losses import LOSSES, Hinge, Linear, MarginLoss, is_known
from fdrsvm.core.vectors import (
    NORM_CODES,
    Norm,
    dot,
    dual_norm,
    dual_norm_subgradient,
    times,
    weighted_sum,
)
from fdrsvm.errors import InvalidInputError, NumericalError, UnsupportedError
from fdrsvm.native import risk as kernels
from fdrsvm.risk.ball import Support, WassersteinBall, check_inside
from fdrsvm.risk.cuts import Cut, intercept_slope

WorstCase = Literal["exact", "paper"]
WORST_CASES: tuple[WorstCase, ...] = get_args(WorstCase)

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
        ball = WassersteinBall.checked(
            n_features, epsilon=epsilon, kappa=kappa, norm=norm, support=support
        )
        self.loss = _choose_loss(loss, worst_case, has_support=support is not None)
        if ball.box is not None:
            if sparse.issparse(self.X):
                # In a box a zero can move as any other value can, so zeros cannot be skipped.
                self.X = self.X.toarray()
            check_inside(self.X, ball.box, getattr(X, "columns", None))
        self.ball = ball

    @property
    def ball(self) -> WassersteinBall:
        """The ball; another one may be set, with the same support."""
        return self._ball

    @ball.setter
    def ball(self, ball: WassersteinBall) -> None:
        self._ball = ball
        self.labels = kernels.LabelFlips(
            y=self.y, mass=self.mass, epsilon=ball.epsilon, kappa=ball.kappa
        )
        # Dense data and a loss that compiled code knows: everything is one call. Else None.
        self._data = None
        if type(self.loss) in (Hinge, Linear) and not sparse.issparse(self.X):
            self._data = kernels.RiskData(
                X=self.X,
                y=self.y,
                mass=self.mass,
                epsilon=ball.epsilon,
                kappa=ball.kappa,
                norm=NORM_CODES[ball.norm],
                low=None if ball.box is None else ball.box.low,
                high=None if ball.box is None else ball.box.high,
                floor=-np.inf if isinstance(self.loss, Linear) else 0.0,
            )

    def __getstate__(self) -> dict[str, Any]:
        """Without what compiled code made of it, which the ball's setter makes again."""
        return {name: each for name, each in vars(self).items() if name not in ("labels", "_data")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.ball = state["_ball"]

    def __call__(self, w: Any, intercept: float = 0.0) -> WorstCaseRisk:
        """Worst-case risk at ``w``, checked against its own proof."""
        w = self._clean(w)
        if self._data is not None:
            risk = _as_risk(self._data.worst_case(w, intercept))
        else:
            risk = self._from_flips(w, self._worst_flips(w, intercept))
        check_proof(risk.value, risk.proof)
        return risk

    def _clean(self, w: Any) -> Array:
        size = self.X.shape[1]
        if type(w) is np.ndarray and kernels.is_clean(w, size):
            return w
        return check_vector(w, "w", size, "features")

    def value(self, w: Any, intercept: float = 0.0) -> float:
        """The risk's value alone, checked against its proof; a little faster than a call."""
        w = self._clean(w)
        found: _Flips | kernels.RiskFound
        if self._data is not None:
            found = self._data.worst_case(w, intercept)
        else:
            found = self._worst_flips(w, intercept)
        check_proof(found.value, found.proof)
        return found.value

    def cut(self, w: Any, intercept: float = 0.0) -> tuple[WorstCaseRisk, Cut]:
        """Risk at ``w``, and the cut that touches it there; the slope's last entry is b's.

        In the mode "paper" the cut is of the hinge under the paper's worst distribution, [paper]:
        it lies below the exact risk, and at ``w`` between the paper's risk and the exact one.
        """
        w = self._clean(w)
        is_paper = isinstance(self.loss, Linear)
        if self._data is not None and not (is_paper and self.ball.box is None):
            found: kernels.CutFound = self._data.cut(w, intercept)
            risk = _as_risk(found.risk)
            cut = Cut(found.constant, found.slope, found.norm_weight)
        else:
            flips = self._worst_flips(w, intercept)
            risk = self._from_flips(w, flips)
            followed = self._hinge_flips(w, intercept) if is_paper else flips
            slope = np.append(followed.slope, intercept_slope(followed.intercept_slope))
            cut = Cut(followed.constant, slope, followed.rest * self.loss.lipschitz)
        check_proof(risk.value, risk.proof)
        return risk, cut

    def cuts(self, points: Array) -> kernels.CutsFound | None:
        """``cut`` at every row of ``points``, an intercept last, in one call of compiled code.

        None if the loss is not the exact hinge, X is sparse, or a number is not finite.
        """
        if self._data is None or type(self.loss) is not Hinge:
            return None
        found = self._data.cuts(points)
        if found is None:
            return None
        for value, proof in zip(found.risks.tolist(), found.proofs.tolist(), strict=True):
            check_proof(value, proof)
        return found

    def margins(self, w: Array, intercept: float) -> Array:
        """``y (w.x + b)`` of every sample."""
        margins: Array = self.y * (times(self.X, w) + intercept)
        return margins

    def worst_labels(self, loss: MarginLoss, margins: Array, w: Array) -> kernels.LabelsFound:
        """Which labels are flipped, for any loss, at the margins of ``w``."""
        least = loss.lipschitz * dual_norm(w, self.ball.norm)
        return self.labels.worst_case(*_losses(loss, margins), least)

    def _hinge_flips(self, w: Array, intercept: float) -> _Flips:
        """The hinge, with labels flipped where the paper's adversary flips them."""
        margins = self.margins(w, intercept)
        found = self.worst_labels(self.loss, margins, w)
        kept = np.where(margins < 1.0, 1.0 - found.shares, 0.0)
        flipped = np.where(margins > -1.0, found.shares, 0.0)
        residual = self.mass * self.y * (flipped - kept)
        nothing = np.nan  # no value is asked for
        return _Flips(
            nothing,
            nothing,
            nothing,
            found.rest,
            weighted_sum(residual, self.X),
            dot(residual, np.ones(residual.size)),
            dot(self.mass, kept + flipped),
        )

    def _from_flips(self, w: Array, flips: _Flips) -> WorstCaseRisk:
        subgradient = flips.slope
        if flips.rest > 0.0:
            per_unit = flips.rest * self.loss.lipschitz
            subgradient = subgradient + per_unit * dual_norm_subgradient(w, self.ball.norm)
        return WorstCaseRisk(
            flips.value, subgradient, flips.multiplier, flips.intercept_slope, flips.proof
        )

    def _worst_flips(self, w: Array, intercept: float) -> _Flips:
        """Equation [flips]: labels are flipped in order of gain; the rest moves features.

        The logistic loss calls exp and log, whose last bits may differ between C libraries; with
        the other losses the bits are the same everywhere.
        """
        loss, margins = self.loss, self.margins(w, intercept)
        kept, flipped, kept_slope, flipped_slope = _losses(loss, margins)
        least = loss.lipschitz * dual_norm(w, self.ball.norm)
        found = self.labels.worst_case(kept, flipped, kept_slope, flipped_slope, least)
        shares = found.shares
        # Tangents at margin 0, less what rounding may have added: a cut must not lie too high.
        tangents = (1.0 - shares) * (kept - kept_slope * margins)
        tangents += shares * (flipped + flipped_slope * margins)
        tangents -= _ROUNDING * (np.abs(margins) + kept + flipped)
        constant = dot(self.mass, tangents)
        return _Flips(
            found.value,
            found.proof,
            found.multiplier,
            found.rest,
            weighted_sum(found.residual, self.X),
            found.intercept_slope,
            max(constant, 0.0) if is_known(loss) else constant,  # below 0 it is rounding
        )

    def in_box(self, w: Array, intercept: float) -> kernels.MovesFound:
        """Equation [box-dual], with the moves behind the value; needs a support."""
        assert self._data is not None
        return self._data.worst_moves(w, intercept)

    def displaced(self, w: Array, labels: Array, steps: Array) -> Array:
        """The points that one end of a worst case's moves stands for; needs a support."""
        assert self._data is not None
        return self._data.displaced(w, labels, steps)


def _losses(loss: MarginLoss, margins: Array) -> tuple[Array, Array, Array, Array]:
    """Values of both labels and their slopes; a user's own loss may give any kind of number."""
    made = (loss.value(margins), loss.value(-margins), loss.slope(margins), loss.slope(-margins))
    kept, flipped, kept_slope, flipped_slope = (
        np.ascontiguousarray(each, dtype=np.float64) for each in made
    )
    shapes = {kept.shape, flipped.shape, kept_slope.shape, flipped_slope.shape}
    if shapes != {margins.shape}:
        raise InvalidInputError(
            "loss",
            "value and slope must give one number per margin",
            f"for {margins.size} margins they give shapes {sorted(shapes)}",
        )
    return kept, flipped, kept_slope, flipped_slope


def _as_risk(found: kernels.RiskFound) -> WorstCaseRisk:
    return WorstCaseRisk(
        found.value,
        found.subgradient,
        found.multiplier,
        found.intercept_subgradient,
        found.proof,
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
