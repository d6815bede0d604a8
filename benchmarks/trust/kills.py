"""Training processes killed, checkpoints torn and altered: the model is the same.

A run that is killed is started again with the same command and goes on from its newest whole
checkpoint. Whatever happened, the final model, certificate, history (but for seconds) and clients'
memories must have the bits of a run that was left alone.

Kills come at random times over the length of a run, one to three a run, and aimed at the places
where a write is half done. Damage is done to the newest checkpoint (the one before must be used)
and to all of them (the run must begin again).
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks.trust.killable import CASES, CHECKPOINTS, PLACES, Ended, KillableServer
from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.checkpoint import read_checkpoint

_KEPT = 2  # checkpoints, CheckpointFolder's default
_MAX_KILLS = 3  # of one run


@dataclass(frozen=True)
class Method:
    """What one method went through.

    Attributes
    ----------
    n_kills, n_sigkills : int
        Processes ended, and those of them ended by SIGKILL; the others by SIGXFSZ, in mid-write.
    places : dict
        Where kills hit, as the folder shows it afterwards.
    n_broken_runs, n_same_bits : int
        Runs that were killed once or more, and those that ended with the bits of the unbroken run.
    n_leftovers : int
        Temporary files that were still there after a run had ended.
    n_damaged, n_found, n_damaged_same_bits : int
        Newest checkpoints damaged, those after which the run went on from the one before, and those
        after which it ended with the same bits.
    n_all_damaged, n_anew, n_anew_same_bits : int
        The same with all checkpoints damaged, after which a run has to begin again.
    """

    name: str
    n_rounds: int
    seconds: float
    checkpoint_bytes: int
    n_kills: int
    n_sigkills: int
    places: dict[str, int]
    n_broken_runs: int
    n_same_bits: int
    n_leftovers: int
    n_damaged: int
    n_found: int
    n_damaged_same_bits: int
    n_all_damaged: int
    n_anew: int
    n_anew_same_bits: int


@dataclass(frozen=True)
class Kills:
    """All methods."""

    methods: tuple[Method, ...]

    @property
    def n_kills(self) -> int:
        """Over all methods."""
        return sum(method.n_kills for method in self.methods)

    @property
    def n_sigkills(self) -> int:
        """Those by SIGKILL."""
        return sum(method.n_sigkills for method in self.methods)

    @property
    def holds(self) -> bool:
        """Whether every run ended with the same bits, and left nothing behind."""
        return all(
            method.n_same_bits == method.n_broken_runs
            and method.n_leftovers == 0
            and method.n_found == method.n_damaged_same_bits == method.n_damaged
            and method.n_anew == method.n_anew_same_bits == method.n_all_damaged
            for method in self.methods
        )


@dataclass(frozen=True)
class _Effort:
    """How much of each, for each method."""

    random_kills: int
    aimed_kills: int  # at each place
    damages: int
    all_damages: int


_FULL, _QUICK = _Effort(60, 6, 20, 5), _Effort(1, 1, 1, 1)


def measure(quick: bool = False) -> Kills:
    """Kill, damage, go on, compare."""
    effort = _QUICK if quick else _FULL
    with KillableServer() as server, tempfile.TemporaryDirectory() as folder:
        trials = [_Trials(server, name, Path(folder) / str(k)) for k, name in enumerate(CASES)]
        return Kills(tuple(trial.measured(effort) for trial in trials))


class _Trials:
    """One method's runs, each in a folder of its own."""

    def __init__(self, server: KillableServer, case: str, folder: Path) -> None:
        self.server = server
        self.case = case
        self.rng = np.random.default_rng(0)
        self.places: Counter[str] = Counter()
        self.sigkills = self.broken = self.same = self.leftovers = 0
        self._folders: Iterator[Path] = (folder / str(k) for k in count())

    def measured(self, effort: _Effort) -> Method:
        folder = next(self._folders)
        whole = self.server.run(self.case, folder)
        assert whole.outcome is not None
        self.sha256, n_rounds = whole.outcome["sha256"], whole.outcome["rounds"]
        n_bytes = _newest(folder).stat().st_size
        while self.places.total() < effort.random_kills:
            self._random_trial(whole.seconds)
        for place in PLACES:
            for _ in range(effort.aimed_kills):
                self._aimed_trial(place, n_rounds, n_bytes)
        newest, newest_same = self._damaged(effort.damages, n_rounds, all_of_them=False)
        every, every_same = self._damaged(effort.all_damages, n_rounds, all_of_them=True)
        return Method(
            name=self.case,
            n_rounds=n_rounds,
            seconds=round(whole.seconds, 3),
            checkpoint_bytes=n_bytes,
            n_kills=self.places.total(),
            n_sigkills=self.sigkills,
            places=dict(sorted(self.places.items())),
            n_broken_runs=self.broken,
            n_same_bits=self.same,
            n_leftovers=self.leftovers,
            n_damaged=effort.damages,
            n_found=newest,
            n_damaged_same_bits=newest_same,
            n_all_damaged=effort.all_damages,
            n_anew=every,
            n_anew_same_bits=every_same,
        )

    def _random_trial(self, seconds: float) -> None:
        """One run, killed up to so many times, each at any time of the run's length."""
        folder, before = next(self._folders), self.places.total()
        for _ in range(self.rng.integers(1, _MAX_KILLS + 1)):
            after = float(self.rng.uniform(0.0, seconds))
            self._note(self.server.run(self.case, folder, kill_after=after), folder)
        if self.places.total() > before:  # else it was over before any kill came
            self._finish(folder)

    def _aimed_trial(self, place: str, n_rounds: int, n_bytes: int) -> None:
        """Killed at a place, in any round in which a run comes by there."""
        folder = next(self._folders)
        nth = int(self.rng.integers(1, n_rounds - _KEPT + 1))
        middle = int(self.rng.integers(1, n_bytes // 4))  # the first files are smaller
        ended = self.server.run(self.case, folder, kill_at=(place, nth, middle))
        assert ended.is_killed
        self._note(ended, folder)
        self._finish(folder)

    def _note(self, ended: Ended, folder: Path) -> None:
        if ended.is_killed:
            self.places[where_hit(folder)] += 1
            self.sigkills += ended.signal == signal.SIGKILL

    def _finish(self, folder: Path) -> None:
        ended = self.server.run(self.case, folder)
        assert ended.outcome is not None
        self.broken += 1
        self.same += ended.outcome["sha256"] == self.sha256
        self.leftovers += len(_temporaries(folder))
        shutil.rmtree(folder)

    def _damaged(self, n_times: int, n_rounds: int, *, all_of_them: bool) -> tuple[int, int]:
        """How often a run went on from the right place, and how often with the same bits."""
        right = same = 0
        for k in range(n_times):
            folder = next(self._folders)
            nth = int(self.rng.integers(_KEPT + 1, n_rounds))
            self.server.run(self.case, folder, kill_at=("before a checkpoint is written", nth, 0))
            damage = DAMAGES[k % len(DAMAGES)]
            files = _checkpoints(folder) if all_of_them else [_newest(folder)]
            for path in files:
                path.write_bytes(damage(path.read_bytes(), self.rng))
            outcome = self.server.run(self.case, folder).outcome
            assert outcome is not None
            # Killed before the nth was written, so the newest is the one before it.
            right += outcome["resumed_after"] == (0 if all_of_them else nth - 2)
            same += outcome["sha256"] == self.sha256
            shutil.rmtree(folder)
        return right, same


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(0, len(data)))]


def _one_bit(data: bytes, rng: np.random.Generator) -> bytes:
    altered = bytearray(data)
    altered[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(altered)


def _zeros(data: bytes, rng: np.random.Generator) -> bytes:
    """A block that never reached the disk, as a power failure leaves it: its end reads as zeros."""
    start = int(rng.integers(0, len(data) - 1))
    return data[:start] + bytes(len(data) - 1 - start) + bytes([data[-1] ^ 1])


def _longer(data: bytes, rng: np.random.Generator) -> bytes:
    return data + rng.bytes(int(rng.integers(1, 4096)))


DAMAGES: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    _cut,
    _one_bit,
    _zeros,
    _longer,
)


def _checkpoints(folder: Path) -> list[Path]:
    return sorted((folder / CHECKPOINTS).glob("round-*.safetensors"))


def _newest(folder: Path) -> Path:
    return _checkpoints(folder)[-1]


def _temporaries(folder: Path) -> list[Path]:
    return sorted((folder / CHECKPOINTS).glob(".*.tmp"))


def where_hit(folder: Path) -> str:
    """Where a kill hit, as far as the files show it."""
    for path in _temporaries(folder):
        try:
            read_checkpoint(path)
        except CorruptDataError:
            return "checkpoint half written"
        return "checkpoint written, not yet renamed"
    n_files = len(_checkpoints(folder))
    if n_files == 0:
        return "before the first checkpoint"
    if n_files > _KEPT:
        return "renamed, the oldest not yet dropped"
    return "between two checkpoints, or after the last"


def to_markdown(result: Kills) -> str:
    """What was done and what came of it."""
    runs = sum(method.n_broken_runs for method in result.methods)
    same = sum(method.n_same_bits for method in result.methods)
    lines = [
        f"{result.n_kills} kills in {runs} runs, up to {_MAX_KILLS} a run: {result.n_sigkills} by "
        f"SIGKILL, and {result.n_kills - result.n_sigkills} in the middle of a write, by a limit "
        "on the size of files (SIGXFSZ), since a SIGKILL hardly ever hits just there. Each run "
        f"was started again until it ended. **{same} of {runs} ended with the bits of a run that "
        "was left alone**: model, certificate, history (but for seconds) and the clients' "
        "memories.",
        "",
        "| method | rounds | s a run | bytes a checkpoint | kills | by SIGKILL | runs | "
        "same bits | temporary files left |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {one.name} | {one.n_rounds} | {one.seconds:.2f} | {one.checkpoint_bytes} | "
            f"{one.n_kills} | {one.n_sigkills} | {one.n_broken_runs} | {one.n_same_bits} | "
            f"{one.n_leftovers} |"
            for one in result.methods
        ),
        "",
        "Where the kills hit, as the folder shows afterwards:",
        "",
        f"| where | {' | '.join(one.name for one in result.methods)} |",
        f"|---|{'---|' * len(result.methods)}",
    ]
    for place in sorted({place for one in result.methods for place in one.places}):
        counts = " | ".join(str(one.places.get(place, 0)) for one in result.methods)
        lines.append(f"| {place} | {counts} |")
    lines += [
        "",
        "Checkpoints cut at any byte, with one bit flipped, with zeros for their end, or with "
        "bytes after their end:",
        "",
        "| method | newest damaged | the one before was used | same bits | all damaged | "
        "begun again | same bits |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {one.name} | {one.n_damaged} | {one.n_found} | {one.n_damaged_same_bits} | "
            f"{one.n_all_damaged} | {one.n_anew} | {one.n_anew_same_bits} |"
            for one in result.methods
        ),
    ]
    return "\n".join(lines) + "\n"
