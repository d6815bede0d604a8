"""Flower's ClientApp: a message in, a plant's answer out."""

from __future__ import annotations

from collections.abc import Callable

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fdrsvm.core.texts import package_log
from fdrsvm.deploy.client_side import kind_of, respond
from fdrsvm.deploy.flower import from_records, to_records
from fdrsvm.deploy.plant import plant_from_config
from fdrsvm.errors import CorruptDataError, FDRSVMError
from fdrsvm.federated.joining import Request, Response

app = ClientApp()
# Hears the task of each request that was answered: a warm client has it ready for the next one.
on_answer: Callable[[str], None] | None = None
_LOG = package_log()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Every message of a run; the node's settings stay here."""
    name = str(context.node_config.get("client-id", f"node {context.node_id}"))
    try:
        request = from_records(message.content, Request)
        response = respond(request, plant_from_config(context.node_config, context.run_config))
        if response.kind != "error" and on_answer is not None:
            on_answer(request.task)
    except CorruptDataError as error:  # of what the server sent
        response = Response("error", name, reason=str(error))
    except FDRSVMError as error:  # of the node's own settings, which nobody else has to know
        _LOG.error("client %r: %s", name, error)
        response = Response("error", name, reason=kind_of(error))
    except Exception as error:  # Flower would send all its words
        _LOG.exception("client %r", name)
        response = Response("error", name, reason=kind_of(error))
    return Message(to_records(response), reply_to=message)
