"""Signals that end a command: they become an exception, so that nothing it started stays behind."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """One of the signals that end a command has come; ``number`` is the signal's."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


class _Watch:
    """Which signal has come first, and how many blocks must end before it is raised."""

    def __init__(self) -> None:
        self.seen = 0
        self.is_raised = False
        self.n_blocks = 0

    def note(self, number: int = 0, frame: FrameType | None = None) -> None:  # noqa: ARG002
        """A signal has come, or a block has ended."""
        self.seen = self.seen or number
        if self.seen and not self.n_blocks and not self.is_raised:
            self.is_raised = True
            raise Interrupted(self.seen)


_watch = _Watch()


@contextlib.contextmanager
def signals_raised() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise Interrupted, once: what is ended for it ends in peace.

    Those that are ignored already, as under nohup, stay so.
    """
    global _watch
    if threading.current_thread() is not threading.main_thread():  # only that one gets signals
        yield
        return
    _watch = _Watch()
    before = {number: signal.getsignal(number) for number in _ENDING}
    watched = [number for number in _ENDING if before[number] != signal.SIG_IGN]
    for number in watched:
        signal.signal(number, _watch.note)
    try:
        yield
    finally:
        for number in watched:
            signal.signal(number, before[number])
        _watch = _Watch()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A signal waits for the end of this block: what starts a process must live to know it."""
    watch, is_main = _watch, threading.current_thread() is threading.main_thread()
    watch.n_blocks += is_main
    try:
        yield
    finally:
        watch.n_blocks -= is_main
    if is_main:
        watch.note()
