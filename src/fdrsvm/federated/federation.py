"""Who takes part and with which weight, and the answers of one round, in client order."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_choice, check_non_negative, check_vector
from fdrsvm.core.vectors import NORM_CODES, Norm, dot
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.messages import ClientProfile, Update, Values
from fdrsvm.native import screening

# Beside risks of about 1 float64 keeps nothing of the others if one client's is 1e16.
_LARGEST_RADIUS = 1e9


@dataclass(frozen=True)
class Federation:
    """The clients, always in the same order, and their weights alpha_g."""

    profiles: tuple[ClientProfile, ...]
    alphas: Array

    @classmethod
    def checked(cls, profiles: Sequence[ClientProfile], client_weights: Any) -> Federation:
        """From what the clients said of themselves; they must agree on the model's shape."""
        if not profiles:
            raise InvalidInputError("clients", "at least one must take part", "there is none")
        for client_id, n_times in Counter(profile.client_id for profile in profiles).items():
            if n_times > 1:
                raise InvalidInputError(
                    "clients", "each must have an id of its own", f"{client_id!r} is there twice"
                )
        first = profiles[0]
        for profile in profiles[1:]:
            for rule in ("n_features", "fit_intercept", "norm"):
                if getattr(profile, rule) != getattr(first, rule):
                    raise InvalidInputError(
                        f"client {profile.client_id!r}",
                        f"all clients must have the same {rule}",
                        f"it has {getattr(profile, rule)!r} and {first.client_id!r} has "
                        f"{getattr(first, rule)!r}",
                    )
        return cls(tuple(profiles), check_client_weights(client_weights, profiles))

    @cached_property
    def client_ids(self) -> tuple[str, ...]:
        """In the order of all arrays over clients."""
        return tuple(profile.client_id for profile in self.profiles)

    @cached_property
    def n_clients(self) -> int:
        """G in the paper."""
        return len(self.profiles)

    @cached_property
    def n_features(self) -> int:
        """P in the paper; these entries of a model are in its norm."""
        return self.profiles[0].n_features

    @cached_property
    def width(self) -> int:
        """Length of a model: features, and one for an intercept."""
        return self.n_features + int(self.profiles[0].fit_intercept)

    @cached_property
    def norm(self) -> Norm:
        """The transport norm on features."""
        return self.profiles[0].norm  # type: ignore[return-value]

    @cached_property
    def floors(self) -> Array:
        """f_g(w) >= floors[g] ||w||_* for every w."""
        return np.array([profile.floor for profile in self.profiles])

    @cached_property
    def radii(self) -> screening.Radii:
        """What the rules know of each client's radius: its floor, and the mass it can flip."""
        return screening.Radii(
            floors=self.floors,
            flips=np.array([profile.flips for profile in self.profiles]),
            n_features=self.n_features,
            norm=NORM_CODES[self.norm],
        )

    @cached_property
    def floor(self) -> float:
        """F(w) >= floor ||w||_* for every w."""
        return dot(self.alphas, self.floors)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that is known of the clients, and of their weights."""
        known = [[asdict(profile) for profile in self.profiles], self.alphas.tolist()]
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()

    def without(self, clients: Collection[str]) -> Federation:
        """The same clients, of whom these do not count; the others' weights are scaled to 1."""
        counted = np.array([client_id not in clients for client_id in self.client_ids])
        alphas = np.where(counted, self.alphas, 0.0)
        if not alphas.sum() > 0.0:
            raise InvalidInputError(
                "clients", "some client with weight must remain", f"without {sorted(clients)} none"
            )
        return replace(self, alphas=alphas / alphas.sum())

    def objective(self, risks: Array) -> float:
        """sum_g alpha_g risk_g; nan if that of a client with weight is not known."""
        if self._all_count:
            return dot(self.alphas, risks)
        counted = self.alphas > 0.0
        return dot(self.alphas[counted], risks[counted])

    @cached_property
    def _all_count(self) -> bool:
        return bool((self.alphas > 0.0).all())


def check_radii(profiles: Sequence[ClientProfile], lipschitz: float, *, of_sums: bool) -> None:
    """A floor follows from the radius: epsilon L, or 0 on a box; for sums anything between.

    It enters every bound, so a client's word for it is not enough. Nor may a radius be so large
    that the others' numbers are lost beside it.
    """
    for profile in profiles:
        if not profile.epsilon <= _LARGEST_RADIUS:
            raise InvalidInputError(
                f"client {profile.client_id!r}",
                f"its radius must be at most {_LARGEST_RADIUS:g}",
                f"it is {profile.epsilon:g}",
            )
        floor, highest = profile.floor, profile.epsilon * lipschitz
        is_legal = floor in (0.0, highest) or (of_sums and 0.0 <= floor <= highest * (1.0 + 1e-12))
        if not is_legal:
            raise InvalidInputError(
                f"client {profile.client_id!r}",
                f"its floor must be epsilon L = {highest:g}, or 0 on a box",
                f"it is {floor:g}; limits say what L is, where the loss is one's own",
            )


def check_client_weights(client_weights: Any, profiles: Sequence[ClientProfile]) -> Array:
    """Weights that sum to 1 from "equal", "samples", a mapping by client id, or one per client."""
    if isinstance(client_weights, str):
        check_choice(client_weights, "client_weights", ("equal", "samples"))
        sizes = [profile.n_samples for profile in profiles]
        weights = np.ones(len(profiles)) if client_weights == "equal" else np.array(sizes, float)
    elif isinstance(client_weights, Mapping):
        ids = {profile.client_id for profile in profiles}
        if set(client_weights) != ids:
            wrong = sorted(map(str, set(client_weights) ^ ids))
            raise InvalidInputError(
                "client_weights", "must name every client once", f"see {', '.join(wrong)}"
            )
        weights = np.array(
            [check_non_negative(client_weights[p.client_id], "client_weights") for p in profiles]
        )
    else:
        weights = check_vector(client_weights, "client_weights", len(profiles), "clients")
    if (weights < 0.0).any() or not weights.sum() > 0.0:
        raise InvalidInputError(
            "client_weights",
            "must not be negative, and some must be positive",
            f"they are {weights.tolist()}",
        )
    shares = weights / weights.max()  # first, so that no sum can overflow
    return np.asarray(shares / shares.sum(), dtype=np.float64)


@dataclass(frozen=True)
class Replies:
    """The updates of one round that passed the checks, by client; None where there is none."""

    updates: tuple[Update | None, ...]

    @cached_property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which clients answered."""
        return np.array([update is not None for update in self.updates])

    @cached_property
    def values(self) -> dict[int, Values]:
        """What each client that answered said, by its index."""
        return {g: update.values for g, update in enumerate(self.updates) if update is not None}

    @cached_property
    def are_complete(self) -> bool:
        """Whether every client answered."""
        return len(self.values) == len(self.updates)

    @cached_property
    def answers(self) -> screening.Answers:
        """Risks and cuts of those who answered, at least one, gathered for the kernels."""
        return screening.Answers(self.values)

    def rows(self, name: str, missing: Array) -> Array:
        """One array of every client as rows; for absent clients the rows of ``missing``."""
        return np.array(
            [
                missing[g] if update is None else update.values[name]
                for g, update in enumerate(self.updates)
            ]
        )

    def firsts(self, name: str, missing: Array | float = np.nan) -> Array:
        """The first entry of one array of every client; ``missing`` for absent clients."""
        return np.array(
            [missing if update is None else update.values[name][0] for update in self.updates]
        )
