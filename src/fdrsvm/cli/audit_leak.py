"""``fdrsvm audit-leak``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.commands import COUNT, PATH, Command, data_options, data_settings, setting
from fdrsvm.cli.console import progress, say, say_lines
from fdrsvm.errors import UnsupportedError

if TYPE_CHECKING:
    from fdrsvm.leakage.audit import LeakAudit
    from fdrsvm.maths.arrays import Array
    from fdrsvm.workflow.rows import Rows

_BALL = ("epsilon", "kappa", "norm", "support", "loss", "fit_intercept")
_IN_UNIT_BOX = ("minmax", "limits")


@click.command(
    "audit-leak",
    cls=Command,
    epilog="""\b
example: fdrsvm audit-leak plants/ --label fault --set algorithm=subgradient --rounds 300
         fdrsvm audit-leak --recording messages plants/ --label fault
""",
)
@click.argument("data", type=PATH, nargs=-1)
@data_options
@click.option(
    "--recording", type=PATH, help="Attack the recorded messages in this folder; train nothing."
)
@click.option("--rounds", type=COUNT, default=300, show_default=True, help="Rounds to train.")
@click.option(
    "--scaling",
    metavar="none|minmax|standard",
    help="As in training [minmax, with a recording none].",
)
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of FDRSVC, such as algorithm=subgradient, or blur=1; may be repeated.",
)
def audit_leak(
    data: Sequence[Path],
    named: Sequence[str],
    client_column: str | None,
    label: str | None,
    ignore: Sequence[str],
    recording: Path | None,
    rounds: int,
    scaling: str | None,
    parameters: Sequence[str],
) -> int:
    """Attack a run as a curious server could.

    How many rows do its messages give away? Trains on DATA in this process, records all messages
    and attacks them; or attacks a recording, where DATA, if given, tell which claims are true.
    Nothing leaves this machine.
    """
    from fdrsvm.leakage.command import audit_folder, run_and_audit
    from fdrsvm.workflow.rows import read_rows
    from fdrsvm.workflow.scaling import learn_scaling

    X, rows, method = None, None, scaling or ("minmax" if recording is None else "none")
    if recording is None or data or named:
        rows = read_rows(data_settings(data, named, client_column, label, ignore))
        _, X = learn_scaling(rows, method)
    limits = (0.0, 1.0) if method in _IN_UNIT_BOX else None
    if recording is not None:
        _show(audit_folder(recording, _features(rows, X), limits=limits))
        return 0
    assert rows is not None
    given = dict(map(setting, parameters))
    blur = given.pop("blur", 0)
    algorithm, weights, ball = _task(given, rows)
    parts = _parts(rows, X)
    with progress("training with all messages recorded, then attacking them"):
        found = run_and_audit(
            parts,
            algorithm,
            rounds=rounds,
            limits=limits,
            client_weights=weights,
            blur=blur,
            **ball,
        )
    say("If the server sees each client's messages:")
    _show(found.of_clients)
    say()
    say("If it sees sums over all clients only (secure aggregation):")
    _show(found.of_sums)
    return 0


def _task(given: Mapping[str, Any], rows: Rows) -> tuple[Any, Any, dict[str, Any]]:
    """Method, client weights and ball, as FDRSVC reads them."""
    from fdrsvm.workflow.configuration import FitSettings
    from fdrsvm.workflow.training import make_estimator

    FitSettings(params=given).check()
    estimator = make_estimator("FDRSVC", given, rows.labels)
    estimator._check_options()
    ball = {name: getattr(estimator, name) for name in _BALL}
    return estimator._method(), estimator.client_weights, ball


def _features(rows: Rows | None, X: Any) -> dict[str, Array] | None:
    if rows is None:
        return None
    return {name: X[rows.clients == name] for name in rows.client_names}


def _parts(rows: Rows, X: Any) -> dict[str, tuple[Array, Array]]:
    import numpy as np

    labels = np.unique(rows.labels)
    if len(labels) != 2:
        raise UnsupportedError(f"audit-leak: is for two classes; there are {len(labels)}")
    signs = np.where(rows.labels == labels[1], 1.0, -1.0)
    return {
        name: (X[rows.clients == name], signs[rows.clients == name]) for name in rows.client_names
    }


def _show(audit: LeakAudit) -> None:
    from fdrsvm.leakage.command import leak_table

    say_lines(leak_table(audit))


COMMANDS = (audit_leak,)
