"""The leak test as a command: train with a recorder, or take a recording, then attack and print."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fdrsvm.errors import ConvergenceWarning
from fdrsvm.federated.algorithms.base import Algorithm
from fdrsvm.federated.problem import make_client
from fdrsvm.federated.rounds import Result, run_rounds
from fdrsvm.federated.transports.in_process import InProcess
from fdrsvm.files import PathLike
from fdrsvm.leakage.attack import Limits
from fdrsvm.leakage.audit import LeakAudit, audit_leak, audit_sums
from fdrsvm.leakage.recording import Recorded, read_recording
from fdrsvm.maths.arrays import Array


class Audits(NamedTuple):
    """What a server learns that sees every client's messages, or weighted sums over clients."""

    of_clients: LeakAudit
    of_sums: LeakAudit
    result: Result  # of the run


def run_and_audit(
    parts: Mapping[str, tuple[Array, Array]],
    algorithm: Algorithm[Any],
    *,
    rounds: int = 300,
    limits: Limits | None = None,
    client_weights: Any = "equal",
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
        What the attacker knows of the features' range.
    client_weights : "equal", "samples", mapping or array
        The weights alpha_g.
    **client_settings
        Of :func:`fdrsvm.federated.make_client`: epsilon, kappa, norm, fit_intercept, blur, ...
    """
    clients = [make_client(name, X, y, **client_settings) for name, (X, y) in parts.items()]
    with tempfile.TemporaryDirectory(prefix="fdrsvm-leak-") as folder:
        transport = Recorded(InProcess(clients), folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = run_rounds(
                transport, algorithm, max_rounds=rounds, tol=0.0, client_weights=client_weights
            )
        recording = read_recording(folder)
    rows = {name: X for name, (X, _) in parts.items()}
    return Audits(
        audit_leak(recording, rows, limits=limits),
        audit_sums(recording, rows, client_weights=client_weights, limits=limits),
        result,
    )


def audit_folder(
    folder: PathLike,
    clients_rows: Mapping[str, Array] | None = None,
    *,
    limits: Limits | None = None,
) -> LeakAudit:
    """Attack a recording that :class:`fdrsvm.leakage.Recorded` wrote.

    ``clients_rows`` are the features by client id, as they were trained on; without them claims are
    counted but not graded.
    """
    return audit_leak(read_recording(Path(folder)), clients_rows, limits=limits)


def leak_table(audit: LeakAudit) -> list[str]:
    """Lines of text: a client a line, with rows, cuts seen, rows claimed and recovered, share."""
    header = ("client", "rows", "cuts", "claimed", "recovered", "share")
    cells = [
        (c.client_id, c.n_rows, c.n_cuts, c.n_claimed, c.n_recovered, c.share)
        for c in audit.clients
    ]
    if len(cells) > 1:
        n_cuts = sum(client.n_cuts for client in audit.clients)
        total = (audit.n_rows, n_cuts, audit.n_claimed, audit.n_recovered, audit.share)
        cells.append(("in all", *total))
    return _aligned([header, *([_text(cell) for cell in line] for line in cells)])


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{100.0 * cell:.1f} %" if isinstance(cell, float) else str(cell)


def _aligned(lines: Iterable[Sequence[str]]) -> list[str]:
    """The first column to the left, numbers to the right."""
    table = [list(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in table
    ]
