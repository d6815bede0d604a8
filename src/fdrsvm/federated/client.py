"""The client's side of a run: a broadcast in, an update out, and memory in between."""

from __future__ import annotations

from typing import NamedTuple

from fdrsvm.federated.algorithms import from_description
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Broadcast, Update, Values
from fdrsvm.federated.problem import ClientProblem

# A server that lost its last checkpoints may ask for rounds again, this many.
_DEPTH = 3


class Memory(NamedTuple):
    """What a client remembers of a run.

    ``past`` holds the last rounds answered, oldest first, each with what was remembered before it:
    a round can be asked for again and is answered with the same bits.
    """

    run_id: str
    values: Values
    past: tuple[tuple[int, Values], ...]


NO_MEMORY = Memory("", {}, ())


def answer(problem: ClientProblem, memory: Memory, broadcast: Broadcast) -> tuple[Memory, Update]:
    """A client's answer to a broadcast, and what it remembers from then on."""
    if broadcast.client_id != problem.profile.client_id:
        raise TellableError(
            "client_id",
            f"the message must be for {problem.profile.client_id!r}",
            f"it is for {broadcast.client_id!r}",
        )
    known, past = _before(memory, broadcast)
    algorithm = from_description(broadcast.algorithm)
    values, found = algorithm.answer(problem, known, broadcast.values)
    past = (*past, (broadcast.round, known))[-_DEPTH:]
    update = Update(broadcast.run_id, broadcast.round, broadcast.client_id, found)
    return Memory(broadcast.run_id, values, past), update


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
