"""Training across clients that keep their data: messages, one loop, and one file per method."""

from fdrsvm.errors import ClientError, QuorumError
from fdrsvm.federated.checkpoint import CheckpointFolder
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.methods import (
    ADMM,
    ADMMSC,
    Bundle,
    FedAvg,
    FedDRO,
    FedProx,
    FedSGD,
    Subgradient,
    register,
)
from fdrsvm.federated.methods.method import Algorithm, Progress
from fdrsvm.federated.problem import ClientProblem, make_client
from fdrsvm.federated.rounds import Result, RoundRecord, Stop, run_rounds

__all__ = [
    "ADMM",
    "ADMMSC",
    "Algorithm",
    "Bundle",
    "CheckpointFolder",
    "ClientError",
    "ClientProblem",
    "FedAvg",
    "FedDRO",
    "FedProx",
    "FedSGD",
    "InProcess",
    "Limits",
    "Progress",
    "QuorumError",
    "Result",
    "RoundRecord",
    "Stop",
    "Subgradient",
    "make_client",
    "register",
    "run_rounds",
]
