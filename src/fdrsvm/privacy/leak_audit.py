"""How many rows a run gave away: every client attacked, and claims compared with the true rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_matrix
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.federation import check_client_weights
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update
from fdrsvm.privacy.attack import Claims, KnownRows, Limits, recover_rows
from fdrsvm.privacy.observations import Observations, observe
from fdrsvm.privacy.recording import Recording

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
        Rows that the attacker claims, with labels where they are known (else 0 and y x).
    n_recovered : int or None
        True rows among them; None if the true rows were not given.
    n_right : int or None
        Claims that are a true row, to a thousandth of each feature's largest value.
    claims_from_cuts, n_from_cuts : Claims, int or None
        The same of an attacker that looks at the cuts alone, and not at the risks.
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

    @property
    def n_claimed(self) -> int:
        """Rows claimed in all."""
        return sum(client.n_claimed for client in self.clients)

    @property
    def n_recovered(self) -> int | None:
        """Rows recovered in all; None if the true rows were not given."""
        counts = [client.n_recovered for client in self.clients]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def n_from_cuts(self) -> int | None:
        """Rows recovered from cuts alone, in all."""
        counts = [client.n_from_cuts for client in self.clients]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def share(self) -> float | None:
        """Part of all rows that was recovered."""
        return None if self.n_recovered is None else self.n_recovered / self.n_rows

    @property
    def precision(self) -> float | None:
        """Part of all claims that is right."""
        right = [client.n_right for client in self.clients]
        if None in right or self.n_claimed == 0:
            return None
        return sum(count for count in right if count is not None) / self.n_claimed


def audit_leak(
    recording: Recording,
    clients_rows: Mapping[str, Array] | None = None,
    *,
    limits: Limits | None = None,
    row_masses: Mapping[str, Array] | None = None,
    with_risks: bool = True,
    known_rows: KnownParts | None = None,
    resolution: float = 0.0,
) -> LeakAudit:
    """Attack every client of a recorded run with all that the server has.

    Parameters
    ----------
    recording : Recording
        From :func:`fdrsvm.privacy.read_recording`.
    clients_rows : mapping from client id to matrix, optional
        The features as the clients trained on them, scaled if they scaled: to grade the claims.
    limits : (low, high), optional
        What the attacker knows of the features, as (0, 1) after agreed scaling.
    row_masses : mapping from client id to array, optional
        What one row may weigh where that is not 1/N, as in sums over clients of unequal size:
        alpha_g/N_g of each.
    with_risks : bool
        Whether risks are attacked too, and not the cuts alone.
    known_rows : mapping from client id to (X, y), optional
        Rows that the attacker has already, of weight 1/N each, y of -1 and +1. Only others count.
    resolution : float
        The grid to which the clients rounded, which the server knows.

    Notes
    -----
    The attacker is passive: it looks at messages and asks for nothing of its own. One that chooses
    models to be evaluated learns more.
    """
    found = []
    for profile in recording.profiles:
        equal = np.array([1.0 / profile.n_samples])
        masses = np.asarray((row_masses or {}).get(profile.client_id, equal), dtype=np.float64)
        exchanges = recording.of_client(profile.client_id)
        known = _known(known_rows, [profile], equal)
        observed = observe(exchanges, profile, masses, resolution=resolution)
        found.append(_attacked(observed, profile, limits, with_risks, known))
    return LeakAudit(tuple(_graded(leak, clients_rows, known_rows) for leak in found))


def audit_sums(
    recording: Recording,
    clients_rows: Mapping[str, Array] | None = None,
    *,
    client_weights: object = "equal",
    limits: Limits | None = None,
    with_risks: bool = True,
    known_rows: KnownParts | None = None,
    resolution: float = 0.0,
) -> LeakAudit:
    """The same if the server had seen weighted sums over the clients only, one "client" in all.

    What secure aggregation would have left of a run without it. Rounds that lack a client, or in
    which clients sent different numbers of cuts, are left out.
    """
    alphas = check_client_weights(client_weights, recording.profiles)
    sizes = np.array([profile.n_samples for profile in recording.profiles])
    profile = replace(
        recording.profiles[0],
        client_id=SUM,
        n_samples=int(sizes.sum()),
        epsilon=float(alphas @ [p.epsilon for p in recording.profiles]),
        floor=float(alphas @ [p.floor for p in recording.profiles]),
        flips=float(alphas @ [p.flips for p in recording.profiles]),
    )
    masses = np.unique((alphas / sizes)[alphas > 0.0])
    known = _known(known_rows, recording.profiles, alphas / sizes)
    observed = observe(_summed(recording, alphas), profile, masses, resolution=resolution)
    leak = _attacked(observed, profile, limits, with_risks, known)
    rows = None
    if clients_rows is not None:
        parts = [_rows_of(clients_rows, p) for p in recording.profiles]
        rows = {SUM: np.concatenate(parts)}
    if known_rows is not None:
        X, y = (np.concatenate(part) for part in zip(*known_rows.values(), strict=True))
        known_rows = {SUM: (X, y)}
    return LeakAudit((_graded(leak, rows, known_rows),))


def _known(
    known_rows: KnownParts | None, profiles: Sequence[ClientProfile], masses: Array
) -> KnownRows | None:
    """Known rows of some clients as an attack reads them; each row of a client weighs the same."""
    if known_rows is None:
        return None
    signed, weights = [], []
    for profile, mass in zip(profiles, masses, strict=True):
        X, y = known_rows[profile.client_id]
        rows = np.column_stack([X, np.ones(len(X))]) if profile.fit_intercept else np.asarray(X)
        signed.append(np.asarray(y)[:, None] * rows)
        weights.append(np.full(len(X), mass))
    return KnownRows(np.concatenate(signed), np.concatenate(weights))


def _attacked(
    observed: Sequence[Observations],
    profile: ClientProfile,
    limits: Limits | None,
    with_risks: bool,
    known: KnownRows | None,
) -> ClientLeak:
    """Claims of all models together; each row once."""
    parts = [recover_rows(seen, limits, with_risks=with_risks, known=known) for seen in observed]
    return ClientLeak(
        profile.client_id,
        profile.n_samples - (0 if known is None else len(known.signed)),
        sum(len(seen.states) for seen in observed),
        _together([part.from_all for part in parts], profile.n_features),
        _together([part.from_cuts for part in parts], profile.n_features),
    )


def _together(parts: Sequence[Claims], n_features: int) -> Claims:
    rows, labels = np.empty((0, n_features)), np.empty(0)
    for part in parts:
        for row, label in zip(*part, strict=True):
            if not _matches(row, rows).any():
                rows, labels = np.vstack([rows, row]), np.append(labels, label)
    return Claims(rows, labels)


def _matches(row: Array, rows: Array) -> Array:
    """Where ``rows`` hold this one, or its negative: without a label only y x is known."""
    tolerance = _MATCH * np.abs(rows).max(axis=0, initial=0.0)
    near = (np.abs(rows - row) <= tolerance).all(axis=1)
    return np.asarray(near | (np.abs(rows + row) <= tolerance).all(axis=1))


def _graded(
    leak: ClientLeak, clients_rows: Mapping[str, Array] | None, known_rows: KnownParts | None
) -> ClientLeak:
    if clients_rows is None:
        return leak
    true = _rows_of(clients_rows, leak)
    if known_rows is not None:
        known = np.asarray(known_rows[leak.client_id][0])
        true = true[[not (known == row).all(axis=1).any() for row in true]]
    hits, hits_of_cuts = _hits(leak.claims, true), _hits(leak.claims_from_cuts, true)
    return replace(
        leak,
        n_rows=len(true),
        n_recovered=int(hits.any(axis=0).sum()),
        n_right=int(hits.any(axis=1).sum()),
        n_from_cuts=int(hits_of_cuts.any(axis=0).sum()),
    )


def _hits(claims: Claims, true: Array) -> npt.NDArray[np.bool_]:
    """Which claim, in rows, is which true row."""
    hits = np.array([_matches(row, true) for row in claims.rows], dtype=bool)
    return hits.reshape(len(claims.rows), len(true))


def _rows_of(clients_rows: Mapping[str, Array], client: ClientProfile | ClientLeak) -> Array:
    if client.client_id not in clients_rows:
        raise InvalidInputError(
            "clients_rows", "must hold every client", f"{client.client_id!r} is not there"
        )
    rows: Array = check_matrix(clients_rows[client.client_id], "clients_rows")
    n_features = (
        client.n_features if isinstance(client, ClientProfile) else client.claims.rows.shape[1]
    )
    if rows.shape[1] != n_features:
        raise InvalidInputError(
            "clients_rows",
            f"rows of {client.client_id!r} must have {n_features} features",
            f"they have {rows.shape[1]}",
        )
    return rows


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
        }
        sums.append((asked, replace(first, client_id=SUM, values=values)))
    if not sums:
        raise InvalidInputError(
            "recording", "must have a round whose answers can be summed", "it has none"
        )
    return sums
