"""The leak test as a command: train with a recorder, or take a recording, then attack and print."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array, check_positive
from fdrsvm.core.files import PathLike
from fdrsvm.core.vectors import Norm
from fdrsvm.data.training_data import Client, per_client, radii
from fdrsvm.errors import ConvergenceWarning
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods.method import Algorithm
from fdrsvm.federated.rounds import Result
from fdrsvm.federated.train import make_problems, train
from fdrsvm.privacy.leak_audit import LeakAudit, audit_leak, audit_sums
from fdrsvm.privacy.observations import FeatureRange
from fdrsvm.privacy.recording import Recorded, read_recording
from fdrsvm.risk.feature_maps import Features, make_features

_HALF_SEED = 20251116


class Audits(NamedTuple):
    """What a server learns that sees every client's messages, or weighted sums over clients."""

    of_clients: LeakAudit
    of_sums: LeakAudit
    half_known_of_clients: LeakAudit  # by an attacker that has every other row already
    half_known_of_sums: LeakAudit
    result: Result  # of the run


def run_and_audit(
    parts: Mapping[str, tuple[Array, Array]],
    algorithm: Algorithm[Any],
    *,
    rounds: int = 300,
    limits: FeatureRange | None = None,
    client_weights: Any = "equal",
    features: Any = "linear",
    **client_settings: Any,
) -> Audits:
    """Train in this process while all messages are recorded, then attack them.

    Parameters
    ----------
    parts : mapping from client id to (X, y)
        The clients' data, labels -1 and +1, scaled as in training.
    algorithm : Algorithm
        Any method.
    rounds : int
        Rounds to run; a bundle may be done before.
    limits : (low, high), optional
        What the attacker knows of the sensors' range.
    client_weights : "equal", "samples", mapping or array
        The weights alpha_g.
    features : str, AdditiveMap or FourierMap
        What the model is linear in, as for :class:`fdrsvm.FDRSVC`. The attacker knows the map, and
        what counts as recovered are sensors.
    **client_settings
        Of :func:`fdrsvm.federated.make_client`: epsilon, kappa, norm, fit_intercept, blur,
        resolution, ...
    """
    n_sensors = next(iter(parts.values()))[0].shape[1]
    placed = make_features(features, n_sensors, client_settings.get("support"))
    clients = _problems(parts, placed, **client_settings)
    with tempfile.TemporaryDirectory(prefix="fdrsvm-leak-") as folder:
        transport = Recorded(InProcess(clients), folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = train(
                transport, algorithm, max_rounds=rounds, tol=0.0, client_weights=client_weights
            )
        recording = read_recording(folder)
    rows = {name: X for name, (X, _) in parts.items()}
    known = half_of(parts)
    resolution = float(client_settings.get("resolution", 0.0))
    shared: dict[str, Any] = {"limits": limits, "resolution": resolution, "features": placed}
    of_sums = {**shared, "client_weights": client_weights}
    return Audits(
        audit_leak(recording, rows, **shared),
        audit_sums(recording, rows, **of_sums),
        audit_leak(recording, rows, known_rows=known, **shared),
        audit_sums(recording, rows, known_rows=known, **of_sums),
        result,
    )


def _problems(
    parts: Mapping[str, tuple[Array, Array]],
    features: Features | None,
    *,
    epsilon: Any = "auto",
    kappa: Any = 1.0,
    norm: Norm = "linf",
    **others: Any,
) -> list[Any]:
    """What FDRSVC makes of the same parts: radii and prices by client, the map applied."""
    clients, names = [], list(parts)
    for name, (X, y) in parts.items():
        codes, weights = (y > 0.0).astype(np.intp), np.ones(len(y))
        clients.append(Client(name, X, codes, 2, weights, float(len(y))))
    return make_problems(
        clients,
        radii(epsilon, "epsilon", names, [client.total for client in clients]),
        per_client(kappa, "kappa", names, partial(check_positive, or_infinite=True)),
        features=features,
        norm=norm,
        **others,
    )


def half_of(parts: Mapping[str, tuple[Array, Array]]) -> dict[str, tuple[Array, Array]]:
    """Half of each client's rows, drawn by a fixed seed: what an insider may have."""
    rng = np.random.default_rng(_HALF_SEED)
    chosen = {name: rng.permutation(len(y))[: len(y) // 2] for name, (_, y) in parts.items()}
    return {name: (X[chosen[name]], y[chosen[name]]) for name, (X, y) in parts.items()}


def audit_folder(
    folder: PathLike,
    clients_rows: Mapping[str, Array] | None = None,
    *,
    limits: FeatureRange | None = None,
    resolution: float = 0.0,
) -> LeakAudit:
    """Attack a recording that :class:`fdrsvm.privacy.Recorded` wrote.

    ``clients_rows`` are the features by client id, as they were trained on; without them claims are
    counted but not graded. ``resolution`` is that of the run.
    """
    recording = read_recording(folder)
    return audit_leak(recording, clients_rows, limits=limits, resolution=resolution)


def leak_table(audit: LeakAudit, half_known: LeakAudit | None = None) -> list[str]:
    """The table of :func:`leak_cells` as lines of text."""
    table = [(cells := leak_cells(audit, half_known))[0], *cells[1]]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in table
    ]


def leak_cells(
    audit: LeakAudit, half_known: LeakAudit | None = None
) -> tuple[list[str], list[list[str]]]:
    """Headings, then a line per client: rows, cuts seen, rows claimed and recovered, share.

    "from cuts" are rows that cuts alone give away, "recovered" those of cuts and risks together.
    With ``half_known``, by an attacker that has half of the rows: the other ones, and how many of
    them it recovers.
    """
    header = ["client", "rows", "cuts", "claimed", "from cuts", "recovered", "share"]
    lines: list[list[Any]] = []
    for one in audit.clients:
        counts = (one.n_claimed, one.n_from_cuts, one.n_recovered, one.share)
        lines.append([one.client_id, one.n_rows, one.n_cuts, *counts])
    if len(lines) > 1:
        counts = (audit.n_claimed, audit.n_from_cuts, audit.n_recovered, audit.share)
        n_cuts = sum(one.n_cuts for one in audit.clients)
        lines.append(["in all", audit.n_rows, n_cuts, *counts])
    if half_known is not None:
        header += ["other half", "its recovered", "its share"]
        others: list[Any] = [*half_known.clients, half_known]
        for line, other in zip(lines, others, strict=False):  # one client has no line for all
            line += [other.n_rows, other.n_recovered, other.share]
    return header, [[_text(cell) for cell in line] for line in lines]


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{100.0 * cell:.1f} %" if isinstance(cell, float) else str(cell)
