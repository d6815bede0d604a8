"""Who takes part and with which weight, and the answers of one round, in client order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_choice, check_non_negative, check_vector
from fdrsvm.core.vectors import NORM_CODES, Groups, Norm, dot
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.messages import ClientProfile, Update, Values
from fdrsvm.native import screening

# Beside risks of about 1 float64 keeps nothing of the others if one client's is 1e16.
_LARGEST_RADIUS = 1e9


class Federation:
    """The clients, always in the same order, and their weights alpha_g. Nobody changes it.

    Attributes
    ----------
    profiles : tuple of ClientProfile
        What the clients said of themselves.
    alphas : ndarray of shape (n_clients,)
        Their weights, with sum 1.
    client_ids : tuple of str
        In the order of all arrays over clients.
    n_clients, n_features : int
        G and P in the paper; the first P entries of a model are in its norm.
    width : int
        Length of a model: features, and one for an intercept.
    norm : {"l1", "l2", "linf"}
        The transport norm on features.
    groups : tuple of int or None
        Sizes of its groups of features, [grouped-norm].
    floors : ndarray of shape (n_clients,)
        f_g(w) >= floors[g] ||w||_* for every w.
    floor : float
        F(w) >= floor ||w||_* for every w.
    radii : Radii
        What the rules know of each client's radius: its floor, and the mass it can flip.
    """

    def __init__(self, profiles: Sequence[ClientProfile], alphas: Array) -> None:
        first, ids, floors, flips = profiles[0], [], [], []
        for profile in profiles:
            ids.append(profile.client_id)
            floors.append(profile.floor)
            flips.append(profile.flips)
        self.profiles, self.alphas = tuple(profiles), alphas
        self.client_ids, self.n_clients = tuple(ids), len(ids)
        self.n_features = first.n_features
        self.width = first.n_features + int(first.fit_intercept)
        self.norm: Norm = first.norm  # type: ignore[assignment]
        self.groups: Groups = first.groups
        self.floors = np.array(floors)
        self.floor = dot(alphas, self.floors)
        self.radii = screening.Radii(
            floors=self.floors,
            flips=np.array(flips),
            n_features=self.n_features,
            norm=NORM_CODES[self.norm],
            groups=self.groups,
        )
        self._counted = alphas > 0.0
        self._all_count = bool(self._counted.all())

    @classmethod
    def checked(cls, profiles: Sequence[ClientProfile], client_weights: Any) -> Federation:
        """From what the clients said of themselves; they must agree on the model's shape."""
        if not profiles:
            raise InvalidInputError("clients", "at least one must take part", "there is none")
        first, seen = profiles[0], set()
        for profile in profiles:
            if profile.client_id in seen:
                raise InvalidInputError(
                    "clients",
                    "each must have an id of its own",
                    f"{profile.client_id!r} is there twice",
                )
            seen.add(profile.client_id)
            for rule in ("n_features", "fit_intercept", "norm", "groups"):
                if getattr(profile, rule) != getattr(first, rule):
                    raise InvalidInputError(
                        f"client {profile.client_id!r}",
                        f"all clients must have the same {rule}",
                        f"it has {getattr(profile, rule)!r} and {first.client_id!r} has "
                        f"{getattr(first, rule)!r}",
                    )
        return cls(profiles, check_client_weights(client_weights, profiles))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that is known of the clients, and of their weights."""
        known = [[profile.known() for profile in self.profiles], self.alphas.tolist()]
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()

    def without(self, clients: Collection[str]) -> Federation:
        """The same clients, of whom these do not count; the others' weights are scaled to 1."""
        counted = np.array([client_id not in clients for client_id in self.client_ids])
        alphas = np.where(counted, self.alphas, 0.0)
        if not alphas.sum() > 0.0:
            raise InvalidInputError(
                "clients", "some client with weight must remain", f"without {sorted(clients)} none"
            )
        return Federation(self.profiles, alphas / alphas.sum())

    def profile_of_sum(self, client_id: str) -> ClientProfile:
        """All clients as one, whose answers are the weighted sums of theirs."""
        return replace(
            self.profiles[0],
            client_id=client_id,
            n_samples=sum(profile.n_samples for profile in self.profiles),
            epsilon=dot(self.alphas, [profile.epsilon for profile in self.profiles]),
            floor=self.floor,
            flips=dot(self.alphas, [profile.flips for profile in self.profiles]),
        )

    def __reduce__(self) -> Any:
        """From what it was made of: the kernels' own objects cannot be pickled or copied."""
        return Federation, (self.profiles, self.alphas)

    def objective(self, risks: Array) -> float:
        """sum_g alpha_g risk_g; nan if that of a client with weight is not known."""
        if self._all_count:
            return dot(self.alphas, risks)
        return dot(self.alphas[self._counted], risks[self._counted])


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


class Replies:
    """The updates of one round that passed the checks, by client; None where there is none.

    Attributes
    ----------
    updates : tuple of Update or None
        One entry per client.
    values : dict
        What each client that answered said, by its index.
    present : ndarray of bool of shape (n_clients,)
        Which clients answered.
    are_complete : bool
        Whether every client did.
    """

    def __init__(self, updates: Sequence[Update | None]) -> None:
        self.updates = tuple(updates)
        self.values: dict[int, Values] = {}
        present = []
        for g, update in enumerate(self.updates):
            present.append(update is not None)
            if update is not None:
                self.values[g] = update.values
        self.present: npt.NDArray[np.bool_] = np.array(present)
        self.are_complete = len(self.values) == len(self.updates)

    @cached_property
    def answers(self) -> screening.Answers:
        """Risks and cuts of those who answered, at least one, gathered for the kernels."""
        return screening.Answers(self.values)

    def rows(self, name: str, missing: Array) -> Array:
        """One array of every client as rows; for absent clients the rows of ``missing``."""
        rows = list(missing)
        for g, values in self.values.items():
            rows[g] = values[name]
        return np.array(rows)
