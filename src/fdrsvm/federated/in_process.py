"""All clients in this process: one after the other, or in threads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

from fdrsvm.core.arrays import check_count
from fdrsvm.federated.client import answer
from fdrsvm.federated.client_memory import NO_MEMORY, Memory
from fdrsvm.federated.messages import Broadcast, ClientProfile, Failure, Update
from fdrsvm.federated.problem import ClientProblem

_LATE = "no answer within the deadline"


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
