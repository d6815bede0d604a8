"""The Wasserstein ball around a client's data, and what its worst case is the worst case of."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import (
    Array,
    check_choice,
    check_finite,
    check_non_negative,
    check_positive,
    check_vector,
    column_label,
)
from fdrsvm.core.losses import LOSSES, Hinge, MarginLoss
from fdrsvm.core.vectors import NORMS, Groups, Norm, dot
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.native import risk as kernels

Support: TypeAlias = "str | tuple[Any, Any] | None"
WorstCase = Literal["exact", "paper"]
WORST_CASES: tuple[WorstCase, ...] = get_args(WorstCase)

_WIDEST = 1e150  # beyond, squared distances overflow


@dataclass(frozen=True)
class Box:
    """low <= x <= high, feature by feature."""

    low: Array
    high: Array


@dataclass(frozen=True)
class Ball:
    """All distributions whose transport from the data costs at most ``epsilon`` on average.

    Moving a sample costs ``||x - x'||`` in the transport ``norm``, plus ``kappa`` if its label is
    flipped. ``box`` is the support, or None for all of space. The worst case is that of ``loss``,
    or, in the mode "paper", of the hinge without its zero piece. ``groups`` are the sizes of groups
    of neighbouring features within which moves add up, [grouped-norm]; only without a box.
    """

    epsilon: float
    kappa: float
    norm: Norm
    box: Box | None = None
    worst_case: WorstCase = "exact"
    loss: MarginLoss = LOSSES["hinge"]
    groups: Groups = None

    @classmethod
    def checked(
        cls,
        n_features: int,
        *,
        epsilon: Any,
        kappa: Any,
        norm: Any,
        support: Support = None,
        worst_case: Any = "exact",
        loss: Any = "hinge",
        groups: Any = None,
    ) -> Ball:
        """From user arguments, or an error that names the one at fault."""
        epsilon = check_non_negative(epsilon, "epsilon")
        kappa = check_positive(kappa, "kappa", or_infinite=True)
        check_choice(norm, "norm", NORMS)
        box = check_support(support, n_features)
        check_choice(worst_case, "worst_case", WORST_CASES)
        if isinstance(loss, str):
            loss = LOSSES[check_choice(loss, "loss", tuple(LOSSES))]
        elif isinstance(loss, type) or not isinstance(loss, MarginLoss):
            names = ", ".join(map(repr, LOSSES))
            raise InvalidInputError(
                "loss",
                f"must be one of {names} or have name, lipschitz, value, slope",
                f"it is {loss!r}",
            )
        check_positive(loss.lipschitz, "loss.lipschitz")
        is_hinge = type(loss) is Hinge  # a subclass may be another loss
        if worst_case == "paper" and not is_hinge:
            raise UnsupportedError(
                f"worst_case='paper' is defined for the hinge only; loss is {loss.name!r}"
            )
        if box is not None and not is_hinge:
            raise UnsupportedError(
                f"a support is possible with loss='hinge' only; loss is {loss.name!r}, "
                "use support=None"
            )
        if groups is not None:
            groups = check_groups(groups, n_features)
            if norm == "l1":  # it adds up all moves anyway
                groups = None
            if box is not None and groups is not None:
                raise UnsupportedError("groups of features need support=None")
        return cls(epsilon, kappa, cast(Norm, norm), box, cast(WorstCase, worst_case), loss, groups)


class WorstCaseDistribution(NamedTuple):
    """A worst distribution Q* in a ball: at most two atoms for each sample.

    Attributes
    ----------
    points : ndarray of shape (n_atoms, n_features)
        Where the atoms are, inside the support.
    labels : ndarray of shape (n_atoms,)
        Their labels, -1 or +1.
    weights : ndarray of shape (n_atoms,)
        Their masses; they sum to 1.
    source_index : ndarray of shape (n_atoms,)
        The sample each atom came from.
    transport_cost : float
        Mean cost of the transport: epsilon where the radius binds (multiplier above 0), else less.
    risk : float
        Expected hinge loss under Q*. It equals the worst-case risk if ``worst_case="exact"``.
    """

    points: Array
    labels: Array
    weights: Array
    source_index: npt.NDArray[np.intp]
    transport_cost: float
    risk: float

    @classmethod
    def between(cls, ends: Sequence[tuple[Array, ...]], shares: Array, mass: Array) -> Self:
        """Of every sample's mass a share goes to the first end, and the rest to the second.

        Ends are points, labels, costs and losses, with an entry for every sample.
        """
        n_samples = len(mass)
        weights = np.concatenate([shares * mass, (1.0 - shares) * mass])
        atoms = np.flatnonzero(weights > 0.0)
        atoms = atoms[np.argsort(atoms % n_samples, kind="stable")]  # sample by sample
        points, labels, costs, losses = (
            np.concatenate(both)[atoms] for both in zip(*ends, strict=True)
        )
        own = weights[atoms]
        return cls(points, labels, own, atoms % n_samples, dot(own, costs), dot(own, losses))


def check_groups(groups: Any, n_features: int) -> Groups:
    """Sizes that add up to the number of features; None where all are 1."""
    try:
        sizes = tuple(operator.index(size) for size in groups)
    except TypeError:
        sizes = ()
    if sum(sizes) != n_features or min(sizes, default=0) < 1:
        raise InvalidInputError(
            "groups",
            f"must be None or sizes, at least 1, that add up to {n_features} features",
            f"they are {groups!r}",
        )
    return sizes if max(sizes) > 1 else None


def check_support(support: Support, n_features: int) -> Box | None:
    """None, the unit box, or a pair of finite bounds with low <= high."""
    if support is None:
        return None
    if isinstance(support, str):
        check_choice(support, "support", ("unit-box",))
        return Box(np.zeros(n_features), np.ones(n_features))
    check_pair(support, "support", "must be None, 'unit-box' or a pair (low, high)")
    low, high = check_bounds(support, "support", n_features)
    with np.errstate(over="ignore"):
        too_wide = ~(high - low <= _WIDEST)
    if too_wide.any():
        column = int(np.flatnonzero(too_wide)[0])
        raise InvalidInputError(
            "support", f"no feature may range over more than {_WIDEST:g}", f"column {column} does"
        )
    return Box(low, high)


def check_pair(value: Any, argument: str, rule: str = "must be None or a pair (low, high)") -> Any:
    """The two ends of an interval, whatever they are."""
    if not isinstance(value, tuple | list | np.ndarray) or len(value) != 2:
        raise InvalidInputError(argument, rule, f"it is {value!r}")
    return value


def check_bounds(pair: Any, argument: str, n_features: int) -> tuple[Array, Array]:
    """Finite bounds of each feature with low <= high, from two numbers or vectors."""
    ends = []
    for bound, end in zip(pair, ("low", "high"), strict=True):
        name = f"{argument} ({end})"
        if np.isscalar(bound) or (isinstance(bound, np.ndarray) and bound.ndim == 0):
            ends.append(np.full(n_features, check_finite(bound, name)))
        else:
            ends.append(check_vector(bound, name, n_features, "features"))
    low, high = ends
    if (low > high).any():
        column = int(np.flatnonzero(low > high)[0])
        raise InvalidInputError(
            argument,
            "low must not exceed high",
            f"column {column} has low {low[column]:.17g} and high {high[column]:.17g}",
        )
    return low, high


def check_inside(X: Array, box: Box, names: Any = None, argument: str = "X") -> None:
    """Refuses samples outside the support; ``names`` is what X's columns are called, if known."""
    row = kernels.first_outside(X, box.low, box.high)
    if row < 0:
        return
    column = int(np.flatnonzero((X[row] < box.low) | (X[row] > box.high))[0])
    raise InvalidInputError(
        argument,
        "every sample must lie inside the support",
        f"row {row}, {column_label(names, column)} is {X[row, column]:.17g}, "
        f"outside [{box.low[column]:.17g}, {box.high[column]:.17g}]",
    )
