"""What every client's data are agreed to keep to, and what follows for its answers: [limits].

    |x_j| <= R_j for every sample of every client, in the scale that training uses

No client's data need be seen for it: a unit box, the limits of a data contract, or any number that
all plants accept. The bounds that follow hold for every transport norm, kappa and mass of samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fdrsvm.core.arrays import (
    Array,
    Matrix,
    check_choice,
    check_count,
    check_non_negative,
    check_vector,
    entry_error,
)
from fdrsvm.core.losses import LOSSES, Hinge, MarginLoss, is_known
from fdrsvm.core.vectors import dot, dual_norm
from fdrsvm.federated.messages import ClientProfile
from fdrsvm.risk.ball import WORST_CASES, Box, WorstCase
from fdrsvm.risk.feature_maps import Features

_ROUNDING = 1e-9  # a row that sits on a limit may pass it by its last digits


@dataclass(frozen=True, eq=False)
class Limits:
    """What is agreed of every client's data.

    Attributes
    ----------
    features : ndarray of shape (n_features,)
        R: |x_j| <= features[j] at every client; infinite where nothing is agreed.
    loss : MarginLoss
        What the clients' risks are made of.
    worst_case : {"exact", "paper"}
        Which worst case the clients' cuts follow.
    blur : int
        How many rows they blur in cuts, which then lie below the risk and do not touch it.
    resolution : float
        The grid to which they round risks up and constants of cuts down; 0 is exact.
    """

    features: Array
    loss: MarginLoss = field(default_factory=Hinge)
    worst_case: WorstCase = "exact"
    blur: int = 0
    resolution: float = 0.0

    @classmethod
    def checked(
        cls,
        value: Any,
        n_features: int,
        *,
        loss: str | MarginLoss = "hinge",
        worst_case: WorstCase = "exact",
        blur: int = 0,
        resolution: float = 0.0,
    ) -> Limits:
        """From one number for all features, one per feature, "unit-box", or None: no limit."""
        if isinstance(loss, str):
            loss = LOSSES[check_choice(loss, "loss", tuple(LOSSES))]
        check_choice(worst_case, "worst_case", WORST_CASES)
        return cls(
            _check_features(value, n_features),
            loss,
            worst_case,
            check_count(blur, "blur", least=0),
            check_non_negative(resolution, "resolution"),
        )

    def mapped(self, features: Features) -> Limits:
        """What follows for a map's features from these limits of its sensors, [map-limits].

        Waves have limits even where nothing is agreed of sensors, and so have all ramps of a sensor
        but the first and the last.
        """
        reached = features.box(Box(-self.features, self.features))
        return replace(self, features=np.maximum(np.abs(reached.low), np.abs(reached.high)))

    @cached_property
    def are_finite(self) -> bool:
        """Whether every feature has a limit."""
        return bool(np.isfinite(self.features).all())

    @cached_property
    def loss_at_zero(self) -> float:
        """The loss of the model 0: that of a margin of 0, whatever the data."""
        return float(self.loss.value(np.zeros(1))[0])

    @cached_property
    def slopes(self) -> Array:
        """L R_j, and L for an intercept: no entry of a cut's slope is larger."""
        return float(self.loss.lipschitz) * np.append(self.features, 1.0)

    @cached_property
    def is_hinge(self) -> bool:
        """Whether a cut's constant is the mass of the rows that it is made of: [mass]."""
        return type(self.loss) is Hinge

    @cached_property
    def is_known_loss(self) -> bool:
        """Whether the loss is one of the package's own, which fall with the margin."""
        return is_known(self.loss)

    def least_loss(self, score: float) -> float:
        """No row with |w.x + b| up to ``score`` has a smaller loss of the package's own."""
        return float(self.loss.value(np.array([score]))[0])

    def steepness(self, score: float) -> float:
        """At most this is a tangent's slope over its constant, made at margins up to ``score``.

        The ratio falls with the margin, so it is largest at -score: [mass].
        """
        margin = np.array([-score])
        slope = -float(self.loss.slope(margin)[0])
        constant = float(self.loss.value(margin)[0]) - score * slope
        return slope / constant if constant > 0.0 else np.inf

    def score_ceiling(self, model: Array) -> float:
        """|w.x + b| is at most this for every sample: sum_j R_j |w_j| + |b|."""
        if not self.are_finite:
            return np.inf
        n_features = self.features.size
        sizes = np.abs(model)
        return dot(self.features, sizes[:n_features]) + float(sizes[n_features:].sum())

    def risk_ceiling(self, profile: ClientProfile, model: Array) -> float:
        """The client's worst-case risk of ``model`` is at most this.

        loss(0) + L (sum_j R_j |w_j| + |b|) + floor ||w||_*, where floor is epsilon L, or 0 on a
        box, which must lie within the limits.
        """
        w, norm, groups = model[: self.features.size], profile.norm, profile.groups
        size = dual_norm(w, norm, groups)  # type: ignore[arg-type]
        reach = float(self.loss.lipschitz) * self.score_ceiling(model)
        return self.loss_at_zero + reach + profile.floor * size

    def outside(self, X: Matrix) -> npt.NDArray[np.intp]:
        """The rows of ``X``, dense or CSR, that do not keep to the limits."""
        allowed = self.features * (1.0 + _ROUNDING)
        if not sparse.issparse(X):
            return np.flatnonzero((np.abs(X) > allowed).any(axis=1))
        entries = X.tocoo()
        rows, columns = entries.coords
        return np.unique(rows[np.abs(entries.data) > allowed[columns]]).astype(np.intp)


def _check_features(value: Any, n_features: int) -> Array:
    if value is None:
        return np.full(n_features, np.inf)
    if isinstance(value, str):
        check_choice(value, "limits", ("unit-box",))
        return np.ones(n_features)
    if np.ndim(value) == 0:
        return np.full(n_features, check_non_negative(value, "limits"))
    features = check_vector(value, "limits", n_features, "features")
    if (features < 0.0).any():
        raise entry_error("limits", "must not be negative", features, features < 0.0, "entry")
    return features
