"""Flower's ClientApp: a message in, a plant's answer out."""

from __future__ import annotations

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fdrsvm.errors import FDRSVMError
from fdrsvm.federated.joining import Response
from fdrsvm.federated.transports.flower import request_from_records, response_to_records
from fdrsvm.federation.client_side import respond
from fdrsvm.federation.plant import plant_from_config

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Every message of a run; the node's settings stay here."""
    try:
        plant = plant_from_config(context.node_config, context.run_config)
        response = respond(request_from_records(message.content), plant)
    except FDRSVMError as error:
        name = str(context.node_config.get("client-id", f"node {context.node_id}"))
        response = Response("error", name, reason=str(error))
    return Message(response_to_records(response), reply_to=message)
