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
    """Which signal has come, and how many blocks must end before it is raised."""

    seen: int | None = None
    is_raised = False
    n_blocks = 0

    def note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.seen is None:
            self.seen = number
        self.raise_once()

    def raise_once(self) -> None:
        if self.seen is not None and self.n_blocks == 0 and not self.is_raised:
            self.is_raised = True
            raise Interrupted(self.seen)

    def forget(self) -> None:
        self.seen, self.is_raised = None, False


_WATCH = _Watch()


@contextlib.contextmanager
def signals_raised() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise Interrupted, once: what is ended for it ends in peace.

    Those that are ignored already, as under nohup, stay so.
    """
    if threading.current_thread() is not threading.main_thread():  # only that one gets signals
        yield
        return
    _WATCH.forget()
    before = {number: signal.getsignal(number) for number in _ENDING}
    watched = [number for number in _ENDING if before[number] != signal.SIG_IGN]
    for number in watched:
        signal.signal(number, _WATCH.note)
    try:
        yield
    finally:
        for number in watched:
            signal.signal(number, before[number])
        _WATCH.forget()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A signal waits for the end of this block: what starts a process must live to know it."""
    is_main = threading.current_thread() is threading.main_thread()
    _WATCH.n_blocks += is_main
    try:
        yield
    finally:
        _WATCH.n_blocks -= is_main
    if is_main:
        _WATCH.raise_once()
