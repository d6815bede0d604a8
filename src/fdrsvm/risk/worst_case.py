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

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fdrsvm.core.arrays import (
    Array,
    Matrix,
    check_finite,
    check_labels,
    check_masses,
    check_matrix,
    check_vector,
)
from fdrsvm.core.losses import Hinge, Linear, MarginLoss, is_known
from fdrsvm.core.vectors import (
    NORM_CODES,
    Norm,
    dot,
    dual_norm,
    dual_norm_subgradient,
    plain,
    times,
    weighted_sum,
)
from fdrsvm.errors import InvalidInputError, NumericalError, UnsupportedError
from fdrsvm.native import risk as kernels
from fdrsvm.risk.ball import Ball, Support, WorstCase, check_inside
from fdrsvm.risk.feature_maps import Features, make_features
from fdrsvm.risk.sensor_attack import Target, attack_sensors

# Value and proof are sums of the same losses by two routes, so only rounding can tell them apart;
# where it does by more, features differ too much in scale for float64.
_PROOF_TOLERANCE = 1e-8
_ROUNDING = 1e-15  # a few units in the last place
# Masses sum to 1, so a smaller slope of the intercept is rounding; a server that followed it would
# end at intercepts of 1e15.
NO_SLOPE = 1e-15


class Cut(NamedTuple):
    """f(u, b) >= constant + slope.(u, b) + norm_weight ||u||_* for every model (u, b): [cut].

    Attributes
    ----------
    constant : float
        What is left of the bound at u = 0, b = 0.
    slope : ndarray of shape (n_features,) or (n_features + 1,)
        The linear part; the intercept's entry, if there is one, comes last.
    norm_weight : float
        At least 0: the part of the radius that moves features, times the loss's Lipschitz constant.
        0 on a box.
    """

    constant: float
    slope: Array
    norm_weight: float


class WorstCaseRisk(NamedTuple):
    """The worst-case risk at one w.

    Attributes
    ----------
    value : float
        The worst-case risk f(w).
    subgradient : ndarray of shape (n_features,)
        v with f(u) >= f(w) + v.(u - w) for all u; with ``features`` of the bound that training
        minimises, which ``value`` may be below.
    multiplier : float
        The dual variable of the radius: what a slightly larger epsilon would add, per unit.
    intercept_subgradient : float
        The same as ``subgradient``, for the intercept.
    proof : float
        Expected loss of an explicit distribution inside the ball (without a support: of a sequence
        of them, in the limit). A lower bound on f(w) computed apart from ``value``; ``value -
        proof`` is zero up to rounding, but with ``features`` as much as the bound is loose.
    """

    value: float
    subgradient: Array
    multiplier: float
    intercept_subgradient: float
    proof: float


class RiskOracle:
    """One client's data and ball, checked once; calls then cost a few passes over X.

    Takes the arguments of :func:`worst_case_risk` but ``w`` and ``intercept``, and the ``groups``
    of :class:`~fdrsvm.risk.ball.Ball`. An X that is float64 and C-ordered is not copied: it must
    not be changed afterwards.
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
        groups: Any = None,
    ) -> None:
        self.X: Matrix = check_matrix(X)
        n_samples, n_features = self.X.shape
        self.y = check_labels(y, n_samples)
        self.mass = check_masses(sample_weight, n_samples)
        self.ball = Ball.checked(
            n_features,
            epsilon=epsilon,
            kappa=kappa,
            norm=norm,
            support=support,
            worst_case=worst_case,
            loss=loss,
            groups=groups,
        )
        if self.ball.box is not None:
            if sparse.issparse(self.X):
                # In a box a zero can move as any other value can, so zeros cannot be skipped.
                self.X = self.X.toarray()
            check_inside(self.X, self.ball.box, getattr(X, "columns", None))
        self._compile()

    def with_ball(self, ball: Ball) -> RiskOracle:
        """The same samples in another ball, whose support must be the same."""
        other = object.__new__(RiskOracle)
        other.__setstate__({**self.__getstate__(), "ball": ball})
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Without what compiled code made of the rest, which can be neither copied nor stored."""
        return {name: each for name, each in vars(self).items() if name not in ("_labels", "_data")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._compile()

    def _compile(self) -> None:
        """Hands samples and ball to compiled code."""
        ball = self.ball
        # The paper's adversary does not see the hinge's zero piece.
        self.loss: MarginLoss = Linear() if ball.worst_case == "paper" else ball.loss
        self._labels = kernels.LabelFlips(
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
                groups=ball.groups,
                low=None if ball.box is None else ball.box.low,
                high=None if ball.box is None else ball.box.high,
                floor=-np.inf if type(self.loss) is Linear else 0.0,
            )

    def __call__(self, w: Any, intercept: float = 0.0) -> WorstCaseRisk:
        """Worst-case risk at ``w``, checked against its own proof."""
        w = check_vector(w, "w", self.X.shape[1], "features")
        if self._data is not None:
            risk = _as_risk(self._data.worst_case(w, intercept))
        else:
            risk, _ = self._by_flips(w, intercept)
        check_proof(risk.value, risk.proof)
        return risk

    def value(self, w: Any, intercept: float = 0.0) -> float:
        """The risk's value alone, checked against its proof; a little faster than a call."""
        w = check_vector(w, "w", self.X.shape[1], "features")
        worst: kernels.RiskFound | kernels.LabelsFound
        if self._data is not None:
            worst = self._data.worst_case(w, intercept)
        else:
            worst = self.worst_labels(self.loss, self.margins(w, intercept), w)
        check_proof(worst.value, worst.proof)
        return worst.value

    def cut(self, w: Any, intercept: float = 0.0) -> tuple[WorstCaseRisk, Cut]:
        """Risk at ``w``, and the cut that touches it there; the slope's last entry is b's.

        In the mode "paper" the cut is of the hinge under the paper's worst distribution, [paper]:
        it lies below the exact risk, and at ``w`` between the paper's risk and the exact one.
        """
        w = check_vector(w, "w", self.X.shape[1], "features")
        is_paper = self.ball.worst_case == "paper"
        # Without a support the compiled cut is that of the loss itself, not of the hinge under it.
        if self._data is not None and not (is_paper and self.ball.box is None):
            touching: kernels.CutFound = self._data.cut(w, intercept)
            risk = _as_risk(touching.risk)
            cut = Cut(touching.constant, touching.slope, touching.norm_weight)
        else:
            risk, cut = self._by_flips(w, intercept)
            if is_paper:
                # The hinge, with labels flipped where the paper's adversary flips them. On its zero
                # piece a sample has no slope, and adds nothing to the constant.
                margins = self.margins(w, intercept)
                worst = self.worst_labels(self.loss, margins, w)
                kept = np.where(margins < 1.0, 1.0 - worst.shares, 0.0)
                flipped = np.where(margins > -1.0, worst.shares, 0.0)
                residual = self.mass * self.y * (flipped - kept)
                tilt = dot(residual, np.ones(residual.size))
                slope = with_tilt(weighted_sum(residual, self.X), tilt)
                cut = Cut(dot(self.mass, kept + flipped), slope, worst.rest)
        check_proof(risk.value, risk.proof)
        return risk, cut

    def cuts(self, points: Array) -> kernels.CutsFound | None:
        """``cut`` at every row of ``points``, an intercept last, in one call of compiled code.

        None if the loss is not the exact hinge, X is sparse, or a number is not finite.
        """
        if self._data is None or type(self.loss) is not Hinge:
            return None
        touching = self._data.cuts(points)
        if touching is None:
            return None
        # A server must not be told a risk that no distribution in the ball has, not even one.
        for value, proof in zip(touching.risks.tolist(), touching.proofs.tolist(), strict=True):
            check_proof(value, proof)
        return touching

    def margins(self, w: Array, intercept: float) -> Array:
        """``y (w.x + b)`` of every sample."""
        margins: Array = self.y * (times(self.X, w) + intercept)
        return margins

    def worst_labels(self, loss: MarginLoss, margins: Array, w: Array) -> kernels.LabelsFound:
        """Which labels are flipped, for any loss, at the margins of ``w``."""
        least = loss.lipschitz * dual_norm(w, self.ball.norm, self.ball.groups)
        return self._labels.worst_case(*_losses(loss, margins), least)

    def _by_flips(self, w: Array, intercept: float) -> tuple[WorstCaseRisk, Cut]:
        """Equation [flips]: labels are flipped in order of gain; the rest moves features.

        The logistic loss calls exp and log, whose last bits may differ between C libraries; with
        the other losses the bits are the same everywhere.
        """
        loss, margins = self.loss, self.margins(w, intercept)
        kept, flipped, kept_slope, flipped_slope = _losses(loss, margins)
        # Sending one unit of transport cost into features raises the loss by this much, whatever
        # the sample; flips that gain less per unit of cost are not worth their price.
        least = loss.lipschitz * dual_norm(w, self.ball.norm, self.ball.groups)
        worst = self._labels.worst_case(kept, flipped, kept_slope, flipped_slope, least)
        shares, norm_weight = worst.shares, worst.rest * loss.lipschitz
        # Tangents at margin 0, less what rounding may have added: a cut must not lie too high.
        tangents = (1.0 - shares) * (kept - kept_slope * margins)
        tangents += shares * (flipped + flipped_slope * margins)
        tangents -= _ROUNDING * (np.abs(margins) + kept + flipped)
        constant = dot(self.mass, tangents)
        if is_known(loss):
            constant = max(constant, 0.0)  # below 0 it is rounding
        slope = subgradient = weighted_sum(worst.residual, self.X)
        if norm_weight > 0.0:
            of_norm = dual_norm_subgradient(w, self.ball.norm, self.ball.groups)
            subgradient = slope + norm_weight * of_norm
        tilt = worst.intercept_slope
        risk = WorstCaseRisk(worst.value, subgradient, worst.multiplier, tilt, worst.proof)
        return risk, Cut(constant, with_tilt(slope, tilt), norm_weight)

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
    swapped = -margins
    kept, flipped = plain(loss.value(margins)), plain(loss.value(swapped))
    kept_slope, flipped_slope = plain(loss.slope(margins)), plain(loss.slope(swapped))
    shapes = {kept.shape, flipped.shape, kept_slope.shape, flipped_slope.shape}
    if shapes != {margins.shape}:
        raise InvalidInputError(
            "loss",
            "value and slope must give one number per margin",
            f"for {margins.size} margins they give shapes {sorted(shapes)}",
        )
    return kept, flipped, kept_slope, flipped_slope


def with_tilt(slope: Array, tilt: float) -> Array:
    """A cut's slope with the intercept's entry, which is 0 where it is rounding alone."""
    whole = np.empty(slope.size + 1)
    whole[:-1], whole[-1] = slope, tilt if abs(tilt) > NO_SLOPE else 0.0
    return whole


def _as_risk(risk: kernels.RiskFound) -> WorstCaseRisk:
    return WorstCaseRisk(
        risk.value, risk.subgradient, risk.multiplier, risk.intercept_subgradient, risk.proof
    )


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
    features: Any = "linear",
) -> WorstCaseRisk:
    """Largest expected loss over all distributions in a Wasserstein ball around the data.

    Parameters
    ----------
    w : array of shape (n_features,)
        The linear model; with ``features`` one weight for each that the map makes.
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
        Where features can be. Bounds are finite; scalars or one per feature.
    worst_case : {"exact", "paper"}
        "exact" is the worst case of the hinge. "paper" is what the FDR-SVM paper's linear program
        computes: the worst case of 1 - y w.x, without the hinge's zero piece. It is never larger.
    loss : {"hinge", "logistic", "smooth_hinge"} or MarginLoss
        Losses other than the hinge need ``support=None``.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples in the empirical distribution; scaled to sum to 1.
    intercept : float
        Added to w.x. It is not transported and not part of the norm of w.
    features : "linear", "additive", "additive-pairs", "fourier", a map, or ``feature_map_``
        What the model is linear in. Samples, radius, label price, norm and support stay those of
        the sensors, and moves are moves of sensors. Then ``value`` is a certified upper bound, the
        worst case being *at most* that, and ``proof`` is what an attack on the sensors reaches: the
        worst case is *at least* that, [map] and [attack].

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
    ball: dict[str, Any] = {"epsilon": epsilon, "kappa": kappa, "norm": norm, "support": support}
    ball |= {"worst_case": worst_case, "loss": loss}
    intercept = check_finite(intercept, "intercept")
    made = features
    if not isinstance(features, Features):
        made = make_features(features, check_matrix(X).shape[1], support)
    with np.errstate(over="ignore", invalid="ignore"):
        if made is None:
            return RiskOracle(X, y, **ball, sample_weight=sample_weight)(w, intercept)
        if worst_case == "paper":
            raise UnsupportedError("worst_case='paper' is for features='linear' only; use 'exact'")
        return _bounds_of_sensors(made, w, intercept, X, y, ball, sample_weight)


def _bounds_of_sensors(
    made: Features,
    w: Any,
    intercept: float,
    X: Any,
    y: Any,
    ball: dict[str, Any],
    sample_weight: Any,
) -> WorstCaseRisk:
    """From above what is certified, from below what an attack reaches, [map] and [attack]."""
    if not np.allclose(made.width, made.span, rtol=1e-9, atol=0.0):
        raise InvalidInputError(
            "features",
            "must be of sensors in the unit of epsilon, as in training",
            "they are of readings in other units: scale X as in training, and give that map",
        )
    sensors = check_matrix(X)
    guarded = Ball.checked(made.n_sensors, **ball)
    if guarded.box is not None:
        check_inside(sensors, guarded.box, getattr(X, "columns", None))
    rows, of_features = made.in_front(sensors, ball)
    oracle = RiskOracle(rows, y, **of_features, sample_weight=sample_weight)
    certified = oracle(w, intercept)
    weights = check_vector(w, "w", made.n_outputs, "features")
    # What is known of this score may be less than L times the norm of its weights.
    least = oracle.loss.lipschitz * made.steepness(weights, guarded.norm)
    flips = kernels.LabelFlips(
        y=oracle.y, mass=oracle.mass, epsilon=guarded.epsilon, kappa=guarded.kappa
    )
    steep = flips.worst_case(*_losses(oracle.loss, oracle.margins(weights, intercept)), least)
    target = Target(made, weights, intercept, sensors, oracle.y, oracle.mass, guarded)
    reached = attack_sensors(target).risk
    value = min(certified.value, steep.value)
    if not reached <= value + _PROOF_TOLERANCE * (1.0 + abs(value)):
        raise NumericalError(
            f"an attack on the sensors reaches {reached:g}, above the certified {value:g}: "
            "sensors or weights differ too much in scale; rescale them"
        )
    # Per unit of the sensors' radius, which is L units of the features'.
    multiplier = certified.multiplier * made.stretch(guarded.norm)
    if steep.value < certified.value:
        multiplier = steep.multiplier
    return certified._replace(value=value, multiplier=multiplier, proof=reached)


def check_proof(value: float, proof: float) -> None:
    """A value is handed out only if a distribution in the ball really has that loss."""
    if not abs(value - proof) <= _PROOF_TOLERANCE * (1.0 + abs(value)):  # also if either is nan
        raise NumericalError(
            f"the worst-case risk {value:g} differs from the loss {proof:g} of the distribution "
            "found for it: w.x overflows, or features differ too much in scale; rescale them"
        )
