"""The client's side of a run: a broadcast in, an update out, and memory in between."""

from __future__ import annotations

import numpy as np

from fdrsvm.federated.client_memory import Memory
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Broadcast, Update, Values
from fdrsvm.federated.methods import from_description
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.resolution import coarsened
from fdrsvm.federated.secure.secure_step import SecureStep

# A server that lost its last checkpoints may ask for rounds again, this many.
_DEPTH = 3


def answer(
    problem: ClientProblem, memory: Memory, broadcast: Broadcast, *, has_answered: bool = False
) -> tuple[Memory, Update]:
    """A client's answer to a broadcast, and what it remembers from then on.

    ``has_answered`` says that it took part in the run before: it must then have its duals still, if
    the method has any. With others the method would go on to another model, and nobody would know.
    """
    if broadcast.client_id != problem.profile.client_id:
        raise TellableError(
            "client_id",
            f"the message must be for {problem.profile.client_id!r}",
            f"it is for {broadcast.client_id!r}",
        )
    algorithm = from_description(broadcast.algorithm)
    if isinstance(algorithm, SecureStep):
        from fdrsvm.federated.secure.secure_client import respond  # needs an extra

        # It masks what this function answers to the method within the step.
        return respond(answer, problem, memory, broadcast, algorithm, has_answered=has_answered)
    known, past = _before(memory, broadcast)
    values, found = algorithm.answer(problem, known, broadcast.values)
    if has_answered and memory.run_id != broadcast.run_id and _has_duals(values):
        raise TellableError(
            "memory",
            "must be there in a run that the client took part in before",
            "its file is gone; start a new run",
        )
    # Every method's answer leaves here, also into a secure sum: nothing exact can bypass the grid.
    found = coarsened(found, problem.resolution)
    update = Update(broadcast.run_id, broadcast.round, broadcast.client_id, found)
    later = memory.past[len(past) + 1 :] if memory.run_id == broadcast.run_id else ()
    if later and _are_equal(later[0][1], values):
        return memory, update  # a message that was sent twice: what came after it still holds
    past = (*past, (broadcast.round, known))[-_DEPTH:]
    return Memory(broadcast.run_id, values, past), update


def _has_duals(values: Values) -> bool:
    """Several models have theirs each, with the model's number before the name."""
    return any(name.endswith("mu") for name in values)


def _are_equal(left: Values, right: Values) -> bool:
    return left.keys() == right.keys() and all(
        np.asarray(left[name]).tobytes() == np.asarray(right[name]).tobytes() for name in left
    )


def _before(memory: Memory, broadcast: Broadcast) -> tuple[Values, tuple[tuple[int, Values], ...]]:
    """What was remembered before the round asked for, and the rounds before it."""
    if memory.run_id != broadcast.run_id:
        return {}, ()
    for k, (answered, known) in enumerate(memory.past):
        if answered >= broadcast.round:
            if k == 0 and len(memory.past) == _DEPTH and answered > broadcast.round:
                raise TellableError(
                    "round", f"must not be older than {answered}", f"it is {broadcast.round}"
                )
            return known, memory.past[:k]
    return memory.values, memory.past
