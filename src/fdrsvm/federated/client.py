"""The client's side of a run: a broadcast in, an update out, and memory in between.

[resolution]  Before an answer leaves, its exact numbers are rounded: risks up to the next multiple
of the agreed resolution, constants of cuts down to one. Both stay true: a worst case is claimed
larger, a cut lies lower. With the same models and cuts an objective rises by less than one
resolution and a bound falls by less than one.
"""

from __future__ import annotations

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.federated.client_memory import Memory
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Broadcast, Update, Values
from fdrsvm.federated.methods import from_description
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.secure.secure_step import SecureStep

# A server that lost its last checkpoints may ask for rounds again, this many.
_DEPTH = 3
# Beyond this many steps a float64 has no room for the fraction of one: it is on the grid as it is.
_MOST_STEPS = 2.0**52


def answer(
    problem: ClientProblem, memory: Memory, broadcast: Broadcast, *, has_answered: bool = False
) -> tuple[Memory, Update]:
    """A client's answer to a broadcast, and what it remembers from then on.

    ``has_answered`` says that it took part in the run before: it must then have its memory still,
    if the method needs it. With another the method would lead to another model, and nobody would
    know.
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
    is_same_run = memory.run_id == broadcast.run_id
    if has_answered and not is_same_run and algorithm.needs_memory:
        raise TellableError(
            "memory",
            "must be there in a run that the client took part in before",
            "its file is gone; start a new run",
        )
    values, answered = algorithm.answer(problem, known, broadcast.values)
    # Every method's answer leaves here, also into a secure sum: no risk and no constant of a cut
    # bypasses the grid.
    if problem.resolution > 0.0:
        answered = coarsened(answered, problem.resolution)
    update = Update(broadcast.run_id, broadcast.round, broadcast.client_id, answered)
    later = memory.past[len(past) + 1 :] if is_same_run else ()
    if later:
        before = later[0][1]
        is_same = before.keys() == values.keys() and all(
            np.asarray(before[name]).tobytes() == np.asarray(values[name]).tobytes()
            for name in before
        )
        if is_same:  # a message that was sent twice: what came after it still holds
            return memory, update
    past = (*past, (broadcast.round, known))[-_DEPTH:]
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


def coarsened(values: Values, resolution: float) -> dict[str, Array]:
    """An answer's arrays with risks and cuts' constants on the grid; 0 leaves them as they are.

    Several models have their number before the names: "0/risks", "1/risks", ...
    """
    coarse = dict(values)
    for name in values if resolution > 0.0 else ():
        kind = name.rpartition("/")[2]
        if kind == "risks":
            coarse[name] = rounded_up(values[name], resolution)
        elif kind == "constants":
            coarse[name] = -rounded_up(-values[name], resolution) + 0.0  # no -0
    return coarse


def rounded_up(values: Array, resolution: float) -> Array:
    """The smallest k * resolution, as float64 computes it, that is not below each value.

    The quotient is off by at most half a unit in its last place, so k is right or one off; which of
    them is seen from the products themselves, that are what is sent.
    """
    with np.errstate(over="ignore"):
        steps = np.ceil(values / resolution)
    has_room = np.abs(steps) <= _MOST_STEPS  # not so for what is not finite either
    steps = np.where(has_room, steps, 0.0)
    steps = np.where((steps - 1.0) * resolution >= values, steps - 1.0, steps)
    steps = np.where(steps * resolution < values, steps + 1.0, steps)
    return np.where(has_room, steps * resolution, values)
