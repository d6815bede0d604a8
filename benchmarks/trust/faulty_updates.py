"""Fifteen faulty updates, one at a time, from one client of seven, and whether they are stopped.

Stopped means: the round's record names that client and no other, every other round has all answers,
no round is lost, and the model has the same bits as if the client had been away in that round.
Each is tried on what clients hand over in one process and, as far as it can be written at all, on
the bytes that travel.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from benchmarks.trust.seven_clients import seven_clients
from fdrsvm.errors import ConvergenceWarning, CorruptDataError, InvalidInputError
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, decode_update, encode
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.rounds import Failure, Result, run_rounds

_WIRES = ("objects", "bytes")
_N_ROUNDS = 5
_BAD_ROUND = 3
_MAX_BYTES = 1 << 20
Wire = Literal["objects", "bytes"]
Change = Callable[[Update, Update, str], Update]

METHODS: dict[str, tuple[Any, str]] = {  # with the array that the server follows
    "SM": (Subgradient(), "slopes"),
    "ADMM": (ADMM(), "vector"),
    "bundle": (Bundle(), "slopes"),
}


def _with(update: Update, name: str, array: Any) -> Update:
    return replace(update, values={**update.values, name: array})


def _filled(number: float) -> Change:
    return lambda update, _, name: _with(update, name, np.full_like(update.values[name], number))


def _shaped(shape: Callable[[int], tuple[int, ...]]) -> Change:
    def change(update: Update, _: Update, name: str) -> Update:
        return _with(update, name, np.ones(shape(update.values[name].shape[-1])))

    return change


def _cast(dtype: Any) -> Change:
    return lambda update, _, name: _with(update, name, update.values[name].astype(dtype))


def _counted(n_samples: float) -> Change:
    return lambda update, *_: _with(update, "n", np.array([n_samples]))


FAULTS: dict[str, Change] = {
    "NaN": _filled(np.nan),
    "inf": _filled(np.inf),
    "1e30": _filled(1e30),
    "sign flip x10": lambda update, _, name: _with(update, name, -10.0 * update.values[name]),
    "shape (1,)": _shaped(lambda _: (1,)),
    "shape (P, 1)": _shaped(lambda P: (P, 1)),
    "shape (P + 1,)": _shaped(lambda P: (P + 1,)),
    "wrong dtype": _cast(np.int64),
    "object": _cast(object),
    "n = 1e9": _counted(1e9),
    "n = -100": _counted(-100.0),
    "n = NaN": _counted(np.nan),
    "duplicate": lambda _, before, __: before,
    "stale round": lambda update, *_: replace(update, round=update.round - 1),
    "oversized": lambda update, *_: _with(update, "constants", np.zeros(1_000_000)),
}


@dataclass(frozen=True)
class FaultyUpdates:
    """``stopped[fault][method, wire]``, and what was written into the round's record."""

    stopped: Mapping[str, Mapping[tuple[str, str], bool]]
    reasons: Mapping[str, Mapping[tuple[str, str], str]]
    rounds_lost: int

    @property
    def n_stopped(self) -> int:
        """Faults that were stopped everywhere."""
        return sum(all(found.values()) for found in self.stopped.values())

    @property
    def holds(self) -> bool:
        """All faults were stopped, and no round was lost."""
        return self.n_stopped == len(self.stopped) and self.rounds_lost == 0


class _Tampered:
    """One client's answer of one round is changed on its way; None is an answer that got lost."""

    def __init__(
        self, inner: InProcess, client: int, change: Change | None, array: str, wire: str
    ) -> None:
        self.inner, self.client, self.change = inner, client, change
        self.array, self.wire = array, wire
        self.before: Update | None = None

    def join(self) -> Sequence[ClientProfile]:
        return self.inner.join()

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        answers = list(self.inner.exchange(broadcasts, deadline))
        own = answers[self.client]
        assert isinstance(own, Update)
        if broadcasts[0].round == _BAD_ROUND:
            answers[self.client] = self._changed(own)
        self.before = own
        return answers

    def _changed(self, own: Update) -> Update | Failure:
        if self.change is None or self.before is None:
            return Failure(own.client_id, "lost", is_missing=True)
        changed = self.change(own, self.before, self.array)
        return changed if self.wire == "objects" else _through_bytes(changed)


def _through_bytes(update: Update) -> Update | Failure:
    """As a transport reads it."""
    try:
        return decode_update(encode(update), max_bytes=_MAX_BYTES)
    except (CorruptDataError, InvalidInputError) as error:
        return Failure(update.client_id, str(error))


def measure(quick: bool = False) -> FaultyUpdates:
    """Every fault; the quick version has one method."""
    return faulty_updates(("bundle",)) if quick else faulty_updates()


def faulty_updates(methods: Sequence[str] = tuple(METHODS), client: int = 2) -> FaultyUpdates:
    """All faults, by all methods, in one process and through bytes."""
    problems, limits = seven_clients("bcw").training()
    stopped: dict[str, dict[tuple[str, str], bool]] = {name: {} for name in FAULTS}
    reasons: dict[str, dict[tuple[str, str], str]] = {name: {} for name in FAULTS}
    rounds_lost = 0
    for method in methods:
        away = _run(problems, limits, method, client, None, "objects")
        for name, change in FAULTS.items():
            for wire in _WIRES:
                found = _run(problems, limits, method, client, change, wire)
                rounds_lost += _N_ROUNDS - found.n_rounds
                stopped[name][method, wire] = _is_stopped(found, away, problems, client)
                reasons[name][method, wire] = "; ".join(found.history[_BAD_ROUND - 1].faults)
    return FaultyUpdates(stopped, reasons, rounds_lost)


def _run(
    problems: Sequence[ClientProblem],
    limits: Limits,
    method: str,
    client: int,
    change: Change | None,
    wire: str,
) -> Result:
    algorithm, array = METHODS[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run_rounds(
            _Tampered(InProcess(problems), client, change, array, wire),
            algorithm,
            max_rounds=_N_ROUNDS,
            tol=0.0,
            quorum=len(problems) - 1,
            on_fault="drop",
            limits=limits,
            run_id="faulty updates",
        )


def _is_stopped(
    found: Result, away: Result, problems: Sequence[ClientProblem], client: int
) -> bool:
    everybody = len(problems)
    for record in found.history:
        bad = record.round == _BAD_ROUND
        named = [fault.startswith(problems[client].profile.client_id) for fault in record.faults]
        if named != [True] * bad or record.n_answers != everybody - bad:
            return False
    return found.n_rounds == _N_ROUNDS and np.array_equal(found.newest, away.newest)


def to_markdown(result: FaultyUpdates) -> str:
    """A Markdown table."""
    columns = list(next(iter(result.stopped.values())))
    heads = [f"{method}, {wire}" for method, wire in columns]
    lines = [f"| fault | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name, found in result.stopped.items():
        cells = ["stopped" if found[column] else "**passed**" for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append("")
    lines.append(
        f"{result.n_stopped} of {len(result.stopped)} stopped, only that client dropped; "
        f"{result.rounds_lost} rounds lost."
    )
    return "\n".join(lines) + "\n"
