"""Probabilities that a model takes along: one sigmoid per score, from its record.

    P(class | score s)  =  sigma(slope (s - centre) / scale + intercept),  sigma(u) = 1/(1 + e^-u)

[platt]. Two classes have one sigmoid, for ``classes[1]``; more have one each, and their values are
divided by their sum. The log-odds are cut at 700 on either side, so that no e^-u overflows and no
probability is 0, here and in every export.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from fdrsvm.core.arrays import Array, check_finite, check_non_negative, check_positive
from fdrsvm.core.vectors import plain
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.model.linear_model import PROBABILITIES, LinearModel
from fdrsvm.native import elementary

LARGEST_LOG_ODDS = 700.0


@dataclass(frozen=True)
class Sigmoid:
    """What turns a score into a probability.

    Attributes
    ----------
    slope : float
        At least 0: a higher score is never less likely to be of the class.
    intercept : float
        The log-odds at the centre.
    centre, scale : float
        The score less its centre, over its scale, is of the order of 1, whatever the model's units.
    prior : float
        Log-odds of the class over all rows that were calibrated on, whatever their scores.
    """

    slope: float
    intercept: float
    centre: float
    scale: float
    prior: float

    def log_odds(self, scores: Array) -> Array:
        """log(p / (1 - p)) of each score; infinite where float64 has no room for it."""
        with np.errstate(over="ignore"):
            z = (scores - self.centre) / self.scale
            return np.asarray(self.slope * z + self.intercept)

    @classmethod
    def checked(cls, content: Mapping[str, Any]) -> Self:
        """From plain values, such as those of a file."""
        sigmoid = cls(
            slope=check_non_negative(content["slope"], "slope"),
            intercept=check_finite(content["intercept"], "intercept"),
            centre=check_finite(content["centre"], "centre"),
            scale=check_positive(content["scale"], "scale"),
            prior=check_finite(content["prior"], "prior"),
        )
        if len(content) != len(vars(sigmoid)):
            raise ValueError(f"a sigmoid has {', '.join(vars(sigmoid))} and nothing else")
        return sigmoid


@dataclass(frozen=True)
class Probabilities:
    """The sigmoids of a model: those that clients share, and those that some have of their own."""

    shared: tuple[Sigmoid, ...]
    clients: Mapping[str, tuple[Sigmoid, ...]] = field(default_factory=dict)
    label_noise: float = 0.0

    def keep_in(self, model: LinearModel) -> LinearModel:
        """The model with these in its record."""
        content = {
            "label_noise": self.label_noise,
            "shared": [vars(one) for one in self.shared],
            "clients": {name: [vars(one) for one in own] for name, own in self.clients.items()},
        }
        return model.with_record(**{PROBABILITIES: content})

    @classmethod
    def of(cls, model: LinearModel) -> Self | None:
        """What a model took along; None if it has no probabilities."""
        kept = model.record.get(PROBABILITIES)
        if kept is None:
            return None
        try:
            return cls(
                shared=_read_sigmoids(kept["shared"], model),
                clients={
                    str(name): _read_sigmoids(own, model)
                    for name, own in dict(kept["clients"]).items()
                },
                label_noise=check_noise(kept["label_noise"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(f"record: the probabilities are broken ({error})") from None

    @classmethod
    def required(cls, model: LinearModel) -> Self:
        """What a model took along, or an error that says how to give it some."""
        known = cls.of(model)
        if known is None:
            raise InvalidInputError(
                "model",
                "must have probabilities: calibrate it with FederatedCalibrator, or train it with "
                "fdrsvm fit --probabilities",
                "it has none",
            )
        return known


def _read_sigmoids(kept: Any, model: LinearModel) -> tuple[Sigmoid, ...]:
    sigmoids = tuple(Sigmoid.checked(content) for content in kept)
    if len(sigmoids) != len(model.intercept):
        raise ValueError(f"{len(sigmoids)} sigmoids for {len(model.intercept)} scores")
    return sigmoids


def probabilities(
    model: LinearModel, X: Any, client: Any = None, *, fault_share: float | None = None
) -> Array:
    """Probabilities of the classes, of shape (n_samples, n_classes), in the order of ``classes``.

    Parameters
    ----------
    model : LinearModel
        With probabilities in its record.
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    client : label, optional
        Whose rows they are. A client without sigmoids of its own has the shared ones.
    fault_share : float, optional
        See ``probabilities_of_scores``.
    """
    return probabilities_of_scores(
        model, model.decision_function(X), client, fault_share=fault_share
    )


def probabilities_of_scores(
    model: LinearModel, scores: Array, client: Any = None, *, fault_share: float | None = None
) -> Array:
    """The same from scores, as ``decision_function`` gives them.

    Parameters
    ----------
    fault_share : float, optional
        For two classes: the share of the class looked for (``model.positive``) among these rows, if
        it differs from that of the rows calibrated on. The log-odds then move by the difference of
        the log-odds of the two shares, [platt].
    """
    known = Probabilities.required(model)
    own = None if client is None else known.clients.get(str(client))
    sigmoids = own or known.shared
    if len(sigmoids) > 1:
        if fault_share is not None:
            raise InvalidInputError(
                "fault_share", "is for two classes", f"there are {len(sigmoids)}"
            )
        columns = [one.log_odds(scores[:, k]) for k, one in enumerate(sigmoids)]
        values = sigma(np.column_stack(columns))
        return np.asarray(values / values.sum(axis=1, keepdims=True))
    odds = sigmoids[0].log_odds(scores)
    if fault_share is not None:
        share = check_share(fault_share, "fault_share")
        share = 1.0 - share if model.positive == 0 else share
        odds = odds + logit(share) - sigmoids[0].prior
    return sigma(np.column_stack([-odds, odds]))


def at_client(model: LinearModel, client: Any) -> LinearModel:
    """The model with one client's probabilities as the shared ones: for an export to its machines.

    Exports know no clients, and have the shared probabilities. A client that has none of its own
    leaves the model as it is.
    """
    known = Probabilities.required(model)
    own = known.clients.get(str(client), known.shared)
    return Probabilities(own, {}, known.label_noise).keep_in(model)


def sigma(log_odds: Array) -> Array:
    """1 / (1 + e^-u), with u cut at 700 on either side."""
    cut = np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    return np.asarray(1.0 / (1.0 + elementary.exp(plain(-cut.ravel())))).reshape(cut.shape)


def logit(share: float) -> float:
    """log(p / (1 - p))."""
    return math.log(share) - math.log1p(-share)


def check_share(value: Any, argument: str) -> float:
    """A number above 0 and below 1."""
    share = check_positive(value, argument)
    if not share < 1.0:
        raise InvalidInputError(argument, "must be above 0 and below 1", f"it is {value!r}")
    return share


def check_noise(label_noise: Any) -> float:
    """A share of wrong labels, below one half."""
    q = check_non_negative(label_noise, "label_noise")
    if q >= 0.5:
        raise InvalidInputError(
            "label_noise",
            "must be below 0.5: if half of the labels are wrong, they say nothing",
            f"it is {label_noise!r}",
        )
    return q


def shared_sigmoids(model: LinearModel) -> Sequence[Sigmoid]:
    """What an export writes: none if the model has no probabilities."""
    known = Probabilities.of(model)
    return known.shared if known else ()
