"""From problems to certified models: the run behind the classifiers that train in rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array, check_count, check_non_negative
from fdrsvm.data.training_data import ClientRows, TrainingData
from fdrsvm.errors import ClientError
from fdrsvm.federated.certificate import Certificate
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.methods import OneVsRest
from fdrsvm.federated.methods.one_vs_rest import OneVsRestProblem
from fdrsvm.federated.problem import make_client
from fdrsvm.federated.rounds import Callback, Result, RoundRecord, Transport, run_rounds

_watchers: ContextVar[tuple[Callback, ...]] = ContextVar("watchers", default=())


@contextmanager
def watched(callback: Callback) -> Iterator[None]:
    """Within the block every fit in rounds tells ``callback`` about each round, as it comes."""
    token = _watchers.set((*_watchers.get(), callback))
    try:
        yield
    finally:
        _watchers.reset(token)


def make_problems(
    data: TrainingData, epsilons: Sequence[float], kappas: Sequence[float], **ball: Any
) -> list[Any]:
    """What each client solves; several models make one :class:`OneVsRestProblem` a client."""
    return [
        _make_problem(data, client, epsilon=epsilon, kappa=kappa, **ball)
        for client, epsilon, kappa in zip(data.clients, epsilons, kappas, strict=True)
    ]


def _make_problem(data: TrainingData, client: ClientRows, **ball: Any) -> Any:
    problems = tuple(
        make_client(str(client.label), client.X, signs, sample_weight=client.weights, **ball)
        for signs in data.signs(client.codes)
    )
    return problems[0] if len(problems) == 1 else OneVsRestProblem(problems)


def train(
    problems: Sequence[Any],
    method: Any,
    n_models: int,
    *,
    client_weights: Array,
    max_rounds: int,
    tol: float,
    n_threads: int,
    verbose: int,
    stacklevel: int,
    secure_aggregation: bool = False,
    advice: str = "",
    limit: str = "max_rounds",
) -> Result:
    """One run in this process, for all classes together; ``stacklevel`` counts from the caller.

    ``advice`` is what may help where the run fails or ends above ``tol``, beyond more rounds;
    ``limit`` is the estimator's name for the most rounds.
    """
    tol = check_non_negative(tol, "tol")
    algorithm: Any = method if n_models == 1 else OneVsRest(method, n_models, tol)
    callbacks: list[Callback] = [*_watchers.get(), *([print_round] if verbose else [])]
    transport: Transport = InProcess(problems, n_threads=check_count(n_threads, "n_threads"))
    if secure_aggregation:
        transport, algorithm, client_weights = summed(transport, algorithm, client_weights)
    try:
        return run_rounds(
            transport,
            algorithm,
            max_rounds=check_count(max_rounds, "max_rounds"),
            tol=tol,
            client_weights=client_weights,
            callbacks=callbacks,
            limits=_of_loss(problems[0]),
            stacklevel=stacklevel + 1,
            advice=f"{limit} is {max_rounds}{'; ' if advice else ''}{advice}",
        )
    except ClientError as error:
        if not advice:
            raise
        raise ClientError(error.client_id, error.round, f"{error.reason}; {advice}") from error


def _of_loss(problem: Any) -> Limits | None:
    """No limits, but the loss that floors follow from, if it is steeper or flatter than ours."""
    first = problem.problems[0] if isinstance(problem, OneVsRestProblem) else problem
    loss = first.exact.loss
    if loss.lipschitz == 1.0:
        return None
    return Limits.checked(None, first.profile.n_features, loss=loss)


def summed(
    transport: Transport, algorithm: Any, client_weights: Array
) -> tuple[Transport, Any, Array]:
    """Transport, method and weights of the same run on masked sums."""
    from fdrsvm.federated.secure.secure_sums import SecureSum  # needs an extra

    sums = SecureSum(transport, client_weights)
    return sums, sums.method(algorithm), np.ones(1)


def standings(result: Result) -> tuple[Certificate, ...]:
    """One for each model."""
    return result.certificate.parts


def print_round(record: RoundRecord, model: Array) -> None:  # noqa: ARG001
    """One line; a callback of ``run_rounds``."""
    print(  # noqa: T201 - what verbose asks for
        f"round {record.round:4d}: objective {record.objective:.6g}, "
        f"lower bound {record.lower_bound:.6g}, gap {record.gap:.1e}"
    )
