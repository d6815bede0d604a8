"""Flower's ServerApp: a run from run-config to the model file."""

from __future__ import annotations

import logging

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fdrsvm.core.texts import printable
from fdrsvm.deploy.flower import FlowerTransport
from fdrsvm.deploy.server_side import conduct_run, read_settings
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
            task=settings.task(),
            expected=settings.expected,
            n_clients=settings.n_clients,
            join_deadline=settings.join_deadline,
            listener=audit,
        )

    def tell(line: str) -> None:
        _LOG.info("%s", printable(line))  # names in it come from the plants

    conduct_run(connect, settings, tell)
