"""The client's side of a run: a broadcast in, an update out, and memory in between.

``answer`` is one client's, wherever it runs; ``InProcess`` reaches those that run in this process.

[resolution]  Before an answer leaves, its exact numbers are rounded: risks up to the next multiple
of the agreed resolution, constants of cuts down to one. Both stay true: a worst case is claimed
larger, a cut lies lower. With the same models and cuts an objective rises by less than one
resolution and a bound falls by less than one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array, check_count
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Broadcast, ClientProfile, Failure, Update, Values
from fdrsvm.federated.methods import from_description
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.secure.secure_step import SecureStep

# A server that lost its last checkpoints may ask for rounds again, this many.
_DEPTH = 3
# Beyond this many steps a float64 has no room for the fraction of one: it is on the grid as it is.
_MOST_STEPS = 2.0**52
_LATE = "no answer within the deadline"


class Memory(NamedTuple):
    """What a client remembers of a run.

    ``past`` holds the last rounds answered, oldest first, each with what was remembered before it:
    a round can be asked for again and is answered with the same bits.
    """

    run_id: str
    values: Values
    past: tuple[tuple[int, Values], ...]


NO_MEMORY = Memory("", {}, ())


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
        from fdrsvm.federated.secure.secure_client import respond  # needs an extra, and this module

        return respond(problem, memory, broadcast, algorithm, has_answered=has_answered)
    known, past = _before(memory, broadcast)
    values, answered = algorithm.answer(problem, known, broadcast.values)
    is_same_run = memory.run_id == broadcast.run_id
    if has_answered and not is_same_run and algorithm.needs_memory:
        raise TellableError(
            "memory",
            "must be there in a run that the client took part in before",
            "its file is gone; start a new run",
        )
    # Every method's answer leaves here, also into a secure sum: nothing exact can bypass the grid.
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


class InProcess:
    """Clients in this process.

    Parameters
    ----------
    problems : iterable of ClientProblem
        One per client, from :func:`fdrsvm.federated.make_client`.
    n_threads : int
        Clients answer in this many threads; 1 needs none. The heavy work releases the global lock.

    A client whose thread is still busy with an earlier round counts as missing. One after the
    other, clients cannot be interrupted: those that come after the deadline are not asked.
    """

    def __init__(self, problems: Iterable[ClientProblem], *, n_threads: int = 1) -> None:
        self.problems = tuple(problems)
        self.n_threads = check_count(n_threads, "n_threads")
        self._profiles: list[ClientProfile] = []
        self._by_id: dict[str, ClientProblem] = {}
        for problem in self.problems:
            self._profiles.append(problem.profile)
            self._by_id[problem.profile.client_id] = problem
        self.memories: dict[str, Memory] = {}
        self._busy: set[str] = set()
        self._pool: ThreadPoolExecutor | None = None

    def join(self) -> Sequence[ClientProfile]:
        """All clients."""
        return list(self._profiles)

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        """One answer for each broadcast."""
        if self.n_threads > 1:
            return self._in_threads(broadcasts, deadline)
        end = time.monotonic() + deadline if deadline is not None else float("inf")
        answers: list[Update | Failure] = []
        for broadcast in broadcasts:
            reply = self._answer(broadcast) if time.monotonic() < end else None
            if reply is None or time.monotonic() > end:
                reply = Failure(broadcast.client_id, _LATE, is_missing=True)
            answers.append(reply)
        return answers

    def _in_threads(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> list[Update | Failure]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="fdrsvm-client")
        waiting = deque(one for one in broadcasts if one.client_id not in self._busy)
        self._busy.update(one.client_id for one in waiting)
        answers: dict[str, Update | Failure] = {}

        def answer_in_turn() -> None:
            """One thread's part of a round: client after client, until nobody is waiting."""
            while True:
                try:
                    broadcast = waiting.popleft()
                except IndexError:
                    return
                try:
                    answers[broadcast.client_id] = self._answer(broadcast)
                finally:
                    self._busy.discard(broadcast.client_id)

        # One task per thread, not per client: a short answer takes less time than starting a task.
        tasks = [self._pool.submit(answer_in_turn) for _ in range(self.n_threads)]
        wait(tasks, timeout=deadline)
        while waiting:  # whoever has not begun by now is not asked
            with suppress(IndexError):  # a thread may have been faster
                self._busy.discard(waiting.popleft().client_id)
        for task in tasks:
            if task.done():
                task.result()  # what is no error of a client's, such as an interruption, goes on
        in_time = answers.copy()
        return [
            in_time.get(one.client_id) or Failure(one.client_id, _LATE, is_missing=True)
            for one in broadcasts
        ]

    def _answer(self, broadcast: Broadcast) -> Update | Failure:
        """A client's own errors become a failure that names it; the loop decides what follows."""
        client_id = broadcast.client_id
        try:
            memory, update = answer(
                self._by_id[client_id], self.memories.get(client_id, NO_MEMORY), broadcast
            )
        except Exception as error:
            return Failure(client_id, f"{type(error).__name__}: {error}")
        self.memories[client_id] = memory
        return update
