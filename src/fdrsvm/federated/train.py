"""From problems to certified models: the one place that assembles a run from its settings.

Estimators, cross-validation, the Flower server, the leak audit and the demo differ in who carries
the messages and what is kept of a run. What they share is here: several models in the same rounds
for several classes, masked sums over the clients, the loss that bounds follow from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array, check_count, check_non_negative
from fdrsvm.data.training_data import Client
from fdrsvm.errors import ClientError, InvalidInputError
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.methods import OneVsRest
from fdrsvm.federated.methods.one_vs_rest import OneVsRestProblem
from fdrsvm.federated.problem import make_client
from fdrsvm.federated.rounds import (
    Callback,
    OnFault,
    Result,
    RoundRecord,
    Transport,
    run_rounds,
)
from fdrsvm.risk.feature_maps import Features


def make_problems(
    clients: Sequence[Client],
    epsilons: Sequence[float],
    kappas: Sequence[float],
    *,
    features: Features | None = None,
    **ball: Any,
) -> list[Any]:
    """What each client solves; several models make one :class:`OneVsRestProblem` per client.

    ``ball`` are other settings of :func:`fdrsvm.federated.make_client`, the same for all clients.
    Rows, radii and what else is told of the ball are those of the sensors; ``features`` are what
    the model is linear in.
    """
    problems: list[Any] = []
    for client, epsilon, kappa in zip(clients, epsilons, kappas, strict=True):
        X, own = client.X, {**ball, "epsilon": epsilon, "kappa": kappa}
        if features is not None:
            X, own = features.in_front(X, own)
        with_labels = partial(make_client, str(client.name), X, sample_weight=client.weights, **own)
        models = tuple(map(with_labels, client.signs))
        problems.append(models[0] if len(models) == 1 else OneVsRestProblem(models))
    return problems


def train(
    clients: Sequence[Any] | Transport,
    method: Any,
    *,
    n_models: int = 1,
    client_weights: Any = "equal",
    max_rounds: int = 200,
    tol: float = 1e-4,
    callbacks: Sequence[Callback] = (),
    n_threads: int = 1,
    verbose: int = 0,
    secure_aggregation: bool = False,
    quorum: int | None = None,
    on_fault: OnFault = "stop",
    leave_out_after: int | None = 3,
    limits: Limits | None = None,
    listener: Callable[[Mapping[str, Any]], None] | None = None,
    advice: str = "",
    max_rounds_name: str = "max_rounds",
    stacklevel: int = 1,
    **others: Any,
) -> Result:
    """One run, for all classes together.

    Parameters
    ----------
    clients : sequence of problems, or Transport
        Problems from ``make_problems`` or :func:`fdrsvm.federated.make_client` answer in this
        process; a transport reaches clients anywhere.
    method : Algorithm
        As for one model; it is wrapped in :class:`OneVsRest` where there are several.
    n_models : int
        How many models are trained. Problems tell, a transport does not.
    client_weights, max_rounds, tol, callbacks, quorum, on_fault, leave_out_after, limits
        As for :func:`fdrsvm.federated.run_rounds`. Without limits, problems still tell the loss
        that floors follow from.
    n_threads : int
        In how many threads problems answer in this process.
    verbose : int
        Above 0 prints one line per round.
    secure_aggregation : bool
        Train on masked sums over the clients, see :class:`SecureSum`, whose events
        ``listener`` gets.
    advice : str
        What may help where the run fails or ends above ``tol``, beyond more rounds.
    max_rounds_name : str
        What the caller calls ``max_rounds``, for that advice.
    stacklevel : int
        Whose line a warning names: 1 is the caller's, 2 that of the caller's caller.
    **others
        Of ``run_rounds``: deadline, checkpoint, resume, run_id.
    """
    tol = check_non_negative(tol, "tol")
    if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
        raise InvalidInputError(
            "callbacks", "must be a list or tuple of functions", f"it is {callbacks!r}"
        )
    transport: Any = clients
    known_limits = limits
    if not hasattr(clients, "exchange"):
        if not clients:
            raise InvalidInputError("clients", "at least one must take part", "there is none")
        transport = InProcess(clients, n_threads=check_count(n_threads, "n_threads"))
        models = getattr(transport.problems[0], "problems", transport.problems[:1])
        n_models = len(models)
        loss = models[0].exact.loss
        # The loop takes floors for epsilon, as the hinge's are, unless limits name another loss.
        if limits is None and loss.lipschitz != 1.0:
            known_limits = Limits.checked(None, models[0].profile.n_features, loss=loss)
    if n_models > 1 and not isinstance(method, OneVsRest):
        method = OneVsRest(method, n_models, tol)
    if secure_aggregation:
        from fdrsvm.federated.secure.secure_sums import SecureSum  # needs an extra

        transport = SecureSum(
            transport,
            client_weights,
            quorum=quorum,
            on_fault=on_fault,
            limits=limits,
            listener=listener,
            leave_out_after=leave_out_after if on_fault == "drop" else None,
        )
        method, client_weights, quorum = transport.method(method), np.ones(1), None
    try:
        return run_rounds(
            transport,
            method,
            max_rounds=check_count(max_rounds, "max_rounds"),
            tol=tol,
            client_weights=client_weights,
            callbacks=[*callbacks, *([print_round] if verbose else [])],
            quorum=quorum,
            on_fault=on_fault,
            leave_out_after=leave_out_after,
            limits=known_limits,
            stacklevel=stacklevel + 1,
            advice=f"{max_rounds_name} is {max_rounds}{'; ' if advice else ''}{advice}",
            **others,
        )
    except ClientError as error:
        if not advice:
            raise
        raise ClientError(error.client_id, error.round, f"{error.reason}; {advice}") from error


def print_round(record: RoundRecord, model: Array) -> None:  # noqa: ARG001
    """One line; a callback of ``run_rounds``."""
    print(  # noqa: T201 - what verbose asks for
        f"round {record.round:4d}: objective {record.objective:.6g}, "
        f"lower bound {record.lower_bound:.6g}, gap {record.gap:.1e}"
    )
