"""How many rows a run gave away: every client attacked, and claims compared with the true rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from fdrsvm.core.arrays import Array, check_matrix
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update
from fdrsvm.privacy.attack import Claims, KnownRows, recover_rows
from fdrsvm.privacy.observations import FeatureRange, Observations, observe
from fdrsvm.privacy.recording import Recording
from fdrsvm.risk.feature_maps import Features

KnownParts: TypeAlias = Mapping[str, tuple[Array, Array]]  # client id -> (X, y)
SUM = "all"  # the id of a sum over clients

_MATCH = 1e-3  # of a feature's largest value: closer than most sensors are


@dataclass(frozen=True)
class ClientLeak:
    """What an attack made of one client's messages.

    Attributes
    ----------
    client_id : str
        The client, or "all" for a sum.
    n_rows : int
        Its rows.
    n_cuts : int
        How many cuts the attacker had; without any there is nothing to attack.
    claims : Claims
        Rows that the attacker claims, as readings of sensors, with labels where they are known
        (else 0 and y x).
    n_recovered : int or None
        True rows among them; None if the true rows were not given.
    n_right : int or None
        Claims that are a true row, to a thousandth of each feature's largest value.
    claims_from_cuts, n_from_cuts : Claims, int or None
        The same of an attacker that looks at the cuts alone, and not at risks and second moments.
    """

    client_id: str
    n_rows: int
    n_cuts: int
    claims: Claims
    claims_from_cuts: Claims
    n_recovered: int | None = None
    n_right: int | None = None
    n_from_cuts: int | None = None

    @property
    def n_claimed(self) -> int:
        """How many rows are claimed."""
        return len(self.claims.rows)

    @property
    def share(self) -> float | None:
        """Part of the client's rows that was recovered."""
        return None if self.n_recovered is None else self.n_recovered / self.n_rows

    @property
    def precision(self) -> float | None:
        """Part of the claims that is right; None without claims."""
        if self.n_right is None or self.n_claimed == 0:
            return None
        return self.n_right / self.n_claimed


@dataclass(frozen=True)
class LeakAudit:
    """What a curious server could have learnt from a run, client by client."""

    clients: tuple[ClientLeak, ...]

    @property
    def n_rows(self) -> int:
        """Rows of all clients."""
        return sum(client.n_rows for client in self.clients)

    def _total(self, name: str) -> int | None:
        counts = [getattr(client, name) for client in self.clients]
        return None if None in counts else sum(counts)

    @property
    def n_claimed(self) -> int:
        """Rows claimed in all."""
        return sum(client.n_claimed for client in self.clients)

    @property
    def n_recovered(self) -> int | None:
        """Rows recovered in all; None if the true rows were not given."""
        return self._total("n_recovered")

    @property
    def n_from_cuts(self) -> int | None:
        """Rows recovered from cuts alone, in all."""
        return self._total("n_from_cuts")

    @property
    def share(self) -> float | None:
        """Part of all rows that was recovered."""
        return None if self.n_recovered is None else self.n_recovered / self.n_rows

    @property
    def precision(self) -> float | None:
        """Part of all claims that is right."""
        n_right = self._total("n_right")
        return None if n_right is None or self.n_claimed == 0 else n_right / self.n_claimed


def audit_leak(
    recording: Recording,
    clients_rows: Mapping[str, Array] | None = None,
    *,
    limits: FeatureRange | None = None,
    row_masses: Mapping[str, Array] | None = None,
    with_risks: bool = True,
    known_rows: KnownParts | None = None,
    resolution: float = 0.0,
    features: Features | None = None,
) -> LeakAudit:
    """Attack every client of a recorded run with all that the server has.

    Parameters
    ----------
    recording : Recording
        From :func:`fdrsvm.privacy.read_recording`.
    clients_rows : mapping from client id to matrix, optional
        The rows as the clients trained on them, scaled if they scaled: to grade the claims.
    limits : (low, high), optional
        What the attacker knows of the sensors, as (0, 1) after agreed scaling.
    row_masses : mapping from client id to array, optional
        What one row may weigh where that is not 1/N, as in sums over clients of unequal size:
        alpha_g/N_g of each.
    with_risks : bool
        Whether risks are attacked too, and not the cuts alone.
    known_rows : mapping from client id to (X, y), optional
        Rows that the attacker has already, of weight 1/N each, y of -1 and +1. Only others count.
    resolution : float
        The grid to which the clients rounded, which the server knows.
    features : Features, optional
        The map that the clients share, which the server knows too, such as the ``feature_map_`` of
        an estimator. Claims are of sensors all the same.

    Notes
    -----
    The attacker is passive: it looks at messages and asks for nothing of its own. One that chooses
    models to be evaluated learns more.
    """
    leaks = []
    for profile in recording.profiles:
        equal = np.array([1.0 / profile.n_samples])
        masses = np.asarray((row_masses or {}).get(profile.client_id, equal), dtype=np.float64)
        exchanges = recording.of_client(profile.client_id)
        known = _known(known_rows, [profile], equal, features)
        true = _true_rows(clients_rows, [profile], known_rows, features)
        observed = observe(exchanges, profile, masses, resolution=resolution)
        leaks.append(_attack(observed, profile, limits, with_risks, known, true, features))
    return LeakAudit(tuple(leaks))


def audit_sums(
    recording: Recording,
    clients_rows: Mapping[str, Array] | None = None,
    *,
    client_weights: object = "equal",
    limits: FeatureRange | None = None,
    with_risks: bool = True,
    known_rows: KnownParts | None = None,
    resolution: float = 0.0,
    features: Features | None = None,
) -> LeakAudit:
    """The same if the server had seen weighted sums over the clients only, one "client" in all.

    What secure aggregation would have left of a run without it. Rounds that lack a client, or in
    which clients sent different numbers of cuts, are left out.
    """
    federation = Federation.checked(recording.profiles, client_weights)
    alphas, profile = federation.alphas, federation.profile_of_sum(SUM)
    sizes = np.array([each.n_samples for each in recording.profiles])
    masses = np.unique((alphas / sizes)[alphas > 0.0])
    known = _known(known_rows, recording.profiles, alphas / sizes, features)
    true = _true_rows(clients_rows, recording.profiles, known_rows, features)
    observed = observe(_summed(recording, alphas), profile, masses, resolution=resolution)
    return LeakAudit((_attack(observed, profile, limits, with_risks, known, true, features),))


def _known(
    known_rows: KnownParts | None,
    profiles: Sequence[ClientProfile],
    masses: Array,
    features: Features | None,
) -> KnownRows | None:
    """Known rows of some clients as an attack reads them; each row of a client weighs the same."""
    if known_rows is None:
        return None
    signed, weights = [], []
    for profile, mass in zip(profiles, masses, strict=True):
        X, y = known_rows[profile.client_id]
        X = X if features is None else features.apply(X)
        rows = np.column_stack([X, np.ones(len(X))]) if profile.fit_intercept else np.asarray(X)
        signed.append(np.asarray(y)[:, None] * rows)
        weights.append(np.full(len(X), mass))
    return KnownRows(np.concatenate(signed), np.concatenate(weights))


def _true_rows(
    clients_rows: Mapping[str, Array] | None,
    profiles: Sequence[ClientProfile],
    known_rows: KnownParts | None,
    features: Features | None,
) -> Array | None:
    """The rows of some clients that an attack could find, without those that are known."""
    if clients_rows is None:
        return None
    parts: list[Array] = []
    for profile in profiles:
        name = profile.client_id
        n_sensors = profile.n_features if features is None else features.n_sensors
        if name not in clients_rows:
            raise InvalidInputError(
                "clients_rows", "must hold every client", f"{name!r} is not there"
            )
        parts.append(check_matrix(clients_rows[name], "clients_rows"))
        if parts[-1].shape[1] != n_sensors:
            raise InvalidInputError(
                "clients_rows",
                f"rows of {name!r} must have {n_sensors} features",
                f"they have {parts[-1].shape[1]}",
            )
    true = np.concatenate(parts)
    if known_rows is None:
        return true
    known = np.concatenate([np.asarray(known_rows[profile.client_id][0]) for profile in profiles])
    return np.asarray(true[[not (known == row).all(axis=1).any() for row in true]])


def _attack(
    observed: Sequence[Observations],
    profile: ClientProfile,
    limits: FeatureRange | None,
    with_risks: bool,
    known: KnownRows | None,
    true: Array | None,
    features: Features | None,
) -> ClientLeak:
    """Claims of all models together, each row once, graded if the true rows are there."""
    if features is not None and features.n_outputs != profile.n_features:
        raise InvalidInputError(
            "features",
            f"must make the {profile.n_features} features of the recorded models",
            f"it makes {features.n_outputs}",
        )
    given: dict[str, Any] = {"with_risks": with_risks, "known": known, "features": features}
    recovered = [recover_rows(one, limits, **given) for one in observed]
    n_sensors = profile.n_features if features is None else features.n_sensors
    n_known = 0 if known is None else len(known.signed)
    leak = ClientLeak(
        profile.client_id,
        profile.n_samples - n_known,
        sum(len(one.states) for one in observed),
        _merge_claims([one.from_all for one in recovered], n_sensors),
        _merge_claims([one.from_cuts for one in recovered], n_sensors),
    )
    if true is None:
        return leak
    hits, hits_of_cuts = (
        np.array([_matches(row, true) for row in claims.rows], dtype=bool).reshape(-1, len(true))
        for claims in (leak.claims, leak.claims_from_cuts)
    )
    return replace(
        leak,
        n_rows=len(true),
        n_recovered=int(hits.any(axis=0).sum()),
        n_right=int(hits.any(axis=1).sum()),
        n_from_cuts=int(hits_of_cuts.any(axis=0).sum()),
    )


def _merge_claims(models: Sequence[Claims], n_sensors: int) -> Claims:
    """A row that several models give away is claimed once."""
    rows, labels = np.empty((0, n_sensors)), np.empty(0)
    for claims in models:
        for row, label in zip(*claims, strict=True):
            if not _matches(row, rows).any():
                rows, labels = np.vstack([rows, row]), np.append(labels, label)
    return Claims(rows, labels)


def _matches(row: Array, rows: Array) -> Array:
    """Where ``rows`` hold this one, or its negative: without a label only y x is known."""
    tolerance = _MATCH * np.abs(rows).max(axis=0, initial=0.0)
    near = (np.abs(rows - row) <= tolerance).all(axis=1)
    return np.asarray(near | (np.abs(rows + row) <= tolerance).all(axis=1))


def _summed(recording: Recording, alphas: Array) -> list[tuple[Broadcast, Update]]:
    """Weighted sums of the cuts of each exchange in which all clients took part."""
    by_round: dict[tuple[str, int], dict[str, tuple[Broadcast, Update]]] = {}
    for asked, got in recording.exchanges:
        by_round.setdefault((got.run_id, got.round), {})[got.client_id] = (asked, got)
    sums = []
    for together in by_round.values():
        pairs = [together.get(profile.client_id) for profile in recording.profiles]
        whole = [pair for pair in pairs if pair is not None]
        forms = {frozenset((n, a.shape) for n, a in got.values.items()) for _, got in whole}
        if len(whole) < len(pairs) or len(forms) > 1:
            continue
        asked, first = whole[0]
        values = {
            name: np.asarray(
                sum(alpha * got.values[name] for alpha, (_, got) in zip(alphas, whole, strict=True))
            )
            for name in first.values
            if not name.endswith(("squares", "own"))
            # Sums that lack somebody's rows bound nobody's; who gives is known from N and P.
            and (not name.endswith("moments") or all(got.values[name].any() for _, got in whole))
        }
        sums.append((asked, replace(first, client_id=SUM, values=values)))
    if not sums:
        raise InvalidInputError(
            "recording", "must have a round whose answers can be summed", "it has none"
        )
    return sums
