"""Scaling that a model takes along: learnt across clients, then folded into its weights.

    w.((x - offset) / scale) + b  =  v.x + c   with   v = w / scale,  c = b - v.offset

The file holds v and c, or a feature map whose limits are in the readings' units, so that whoever
loads the model, or an export of it, feeds it readings as they are and cannot forget to scale.
Radius, norm and certificate belong to the scaled features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np

from fdrsvm.core.arrays import Array, check_choice
from fdrsvm.core.vectors import times
from fdrsvm.data.rows import Rows
from fdrsvm.data.scaling import FederatedMinMaxScaler, FederatedStandardScaler
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.model.linear_model import LinearModel

Method = Literal["none", "minmax", "limits", "standard"]
METHODS: tuple[Method, ...] = get_args(Method)
UNITS = {
    "none": "units of the features",
    "minmax": "shares of each feature's range",
    "limits": "shares of each feature's agreed range",
    "standard": "standard deviations of each feature",
}


@dataclass(frozen=True, eq=False)
class Scaling:
    """(x - offset) / scale, feature by feature."""

    method: str
    offset: Array
    scale: Array

    @property
    def unit(self) -> str:
        """What a distance of 1 means for one feature."""
        return UNITS[self.method]

    def apply(self, X: Array) -> Array:
        """Scaled features."""
        return np.asarray((X - self.offset) / self.scale)

    def undo(self, X: Array) -> Array:
        """What was scaled to X."""
        return np.asarray(X * self.scale + self.offset)

    def fold(self, model: LinearModel) -> LinearModel:
        """The model of readings that answers as ``model`` does on scaled features."""
        if model.features is not None:  # the map takes readings, and its features are the same
            return replace(model, features=model.features.rescaled(self.offset, self.scale))
        coef = model.coef / self.scale
        return _with_weights(model, coef, model.intercept - times(coef, self.offset))

    def unfold(self, model: LinearModel) -> LinearModel:
        """The model of scaled features; the inverse of ``fold``, up to rounding."""
        if model.features is not None:
            back = model.features.rescaled(-self.offset / self.scale, 1.0 / self.scale)
            return replace(model, features=back)
        intercept = model.intercept + times(model.coef, self.offset)
        return _with_weights(model, model.coef * self.scale, intercept)

    def to_record(self) -> dict[str, Any]:
        """Plain values, for a model's ``record``."""
        return {
            "method": self.method,
            "offset": self.offset.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def of(cls, model: LinearModel) -> Self:
        """What a model took along; none if it says nothing of it."""
        kept = model.record.get("scaling")
        if kept is None:
            return cls("none", np.zeros(model.n_features), np.ones(model.n_features))
        try:
            method = check_choice(kept["method"], "scaling", METHODS)
            offset = np.array(kept["offset"], dtype=np.float64)
            scale = np.array(kept["scale"], dtype=np.float64)
            fits = offset.shape == scale.shape == (model.n_features,)
            if not fits or not np.isfinite(offset).all() or not (scale > 0.0).all():
                raise ValueError("its numbers do not fit")
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(f"record: the scaling is broken ({error})") from None
        return cls(method, offset, scale)


def _with_weights(model: LinearModel, coef: Array, intercept: Array) -> LinearModel:
    return LinearModel.checked(**{**vars(model), "coef": coef, "intercept": intercept})


def learn_scaling(rows: Rows, method: str, *, clip: bool = False) -> tuple[Scaling, Array]:
    """A scaling from the clients' summaries or from agreed limits, and the scaled rows.

    Parameters
    ----------
    rows : Rows
        What the clients have.
    method : {"none", "minmax", "limits", "standard"}
        "minmax" is the range over all clients' rows, "limits" that of the contract (nothing leaves
        a client), "standard" mean and variance over all rows.
    clip : bool
        With "limits": move values outside to the nearer end rather than refuse them.
    """
    check_choice(method, "scaling", METHODS)
    P = rows.X.shape[1]
    if method == "none":
        return Scaling("none", np.zeros(P), np.ones(P)), rows.X
    scaler: Any
    if method == "standard":
        scaler = FederatedStandardScaler().fit(rows.X, clients=rows.clients)
        return Scaling(method, scaler.mean_, scaler.scale_), scaler.transform(rows.X)
    limits = None
    if method == "limits":
        if rows.contract is None:
            raise InvalidInputError(
                "scaling", "'limits' needs a contract, whose limits it takes", "none is given"
            )
        limits = rows.contract.box
    scaler = FederatedMinMaxScaler(limits=limits, clip=clip).fit(rows.X, clients=rows.clients)
    return Scaling(method, scaler.low_, scaler.range_), scaler.transform(rows.X)
