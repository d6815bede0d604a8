"""Another path to :class:`fdrsvm.federated.client.InProcess`."""

from fdrsvm.federated.client import InProcess as InProcess
