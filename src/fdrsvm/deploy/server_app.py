"""Flower's ServerApp: a run from run-config to the model file."""

from __future__ import annotations

import logging

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fdrsvm import __version__
from fdrsvm.core.texts import printable
from fdrsvm.deploy.flower import FlowerTransport
from fdrsvm.deploy.server_side import read_settings, train
from fdrsvm.federated.audit import AuditLog

app = ServerApp()
_LOG = logging.getLogger("flwr")  # what `flwr log` shows


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One run."""
    settings = read_settings(context.run_config)

    def connect(audit: AuditLog) -> FlowerTransport:
        return FlowerTransport(
            grid,
            release=__version__,
            task=settings.task(),
            expected=settings.expected,
            n_clients=settings.n_clients,
            join_deadline=settings.join_deadline,
            listener=audit,
        )

    train(connect, settings, _tell)


def _tell(line: str) -> None:
    """Names in it come from the plants."""
    _LOG.info("%s", printable(line))
