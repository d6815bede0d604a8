"""Hostile files and messages: nothing runs, changes unseen, fills the memory or hangs.

Each load must end in one of the package's own errors, or in exactly what the bytes state. The
loads happen in a process of their own (:mod:`benchmarks.trust.hostile_loads`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.trust.hostile_loads import MEMORY_LIMIT
from fdrsvm.errors import FDRSVMError

_FULL, _QUICK = 100_000, 2_000
_SEED = 0
# For what is not there or no file at all, the operating system's own words are the best ones.
_FROM_THE_SYSTEM = ("OSError", "IsADirectoryError")


@dataclass(frozen=True)
class Kind:
    """Loads of one kind of file.

    Attributes
    ----------
    n_refused : int
        Ended in one of the package's own errors.
    n_genuine : int
        The bytes, or for a contract its content, were those of a genuine file after all.
    n_plain : int
        Forged with the right SHA-256, and loaded as exactly what they state.
    n_noticed : int
        A contract that loads but has another fingerprint, which every run compares.
    n_unseen : int
        Loaded as something else than the bytes state.
    errors : dict
        Errors of any other kind, by name.
    slowest : float
        Seconds of the slowest load.
    """

    name: str
    n_loads: int
    n_refused: int
    n_genuine: int
    n_plain: int
    n_noticed: int
    n_unseen: int
    errors: dict[str, int]
    slowest: float


@dataclass(frozen=True)
class HostileFiles:
    """All kinds.

    ``special`` says what came of devices, pipes and the like in place of a file; ``forbidden``
    counts what the watch saw: code that ran, modules that were loaded, files that were written.
    """

    kinds: tuple[Kind, ...]
    attacks: dict[str, int]
    special: dict[str, dict[str, str]]
    watch_works: bool
    forbidden: dict[str, int]
    left_marks: bool
    grown_megabytes: float
    seconds: float

    @property
    def n_loads(self) -> int:
        """Over all kinds."""
        return sum(kind.n_loads for kind in self.kinds)

    @property
    def holds(self) -> bool:
        """Whether nothing ran, nothing changed unseen, and every error was one of ours."""
        answers = [answer for kind in self.special.values() for answer in kind.values()]
        return (
            all(kind.n_unseen == 0 and not kind.errors for kind in self.kinds)
            and all(_is_good(answer) for answer in answers)
            and self.watch_works
            and not self.forbidden
            and not self.left_marks
            and self.grown_megabytes * 2**20 < MEMORY_LIMIT
        )


def _is_good(answer: str) -> bool:
    return answer in ("loaded, the same", "CorruptDataError", *_FROM_THE_SYSTEM)


def measure(quick: bool = False) -> HostileFiles:
    """Load in another process, and collect what it says."""
    n_loads = _QUICK if quick else _FULL
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry),
    }
    module = "benchmarks.trust.hostile_loads"
    done = subprocess.run(
        [sys.executable, "-m", module, str(n_loads), str(_SEED)],
        stdout=subprocess.PIPE,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        raise FDRSVMError(f"the process that loads ended with {done.returncode}; see above")
    found = json.loads(done.stdout)
    tallies = found.pop("tallies")
    kinds = tuple(Kind(name=name, **tally) for name, tally in tallies.items())
    return HostileFiles(kinds=kinds, **found)


def to_markdown(result: HostileFiles) -> str:
    """What was loaded and what came of it."""
    unseen = sum(kind.n_unseen for kind in result.kinds)
    others = sum(sum(kind.errors.values()) for kind in result.kinds)
    ran = sum(result.forbidden.values())
    slowest = max(kind.slowest for kind in result.kinds)
    lines = [
        f"{result.n_loads} loads of hostile bytes in {result.seconds:.0f} s: **{ran} times code "
        f"ran, a module was loaded or a file written; {unseen} changes unseen; {others} errors "
        f"that are not the package's own**. Peak memory grew by {result.grown_megabytes:.0f} MB "
        f"(files up to 1 MB; {MEMORY_LIMIT // 2**20} MB were allowed); the slowest load took "
        f"{1000 * slowest:.0f} ms. A watch on Python's audit events saw what ran; before, it was "
        f"tried that it sees such things ({'it does' if result.watch_works else 'IT DOES NOT'}). "
        "The standard library's UTF-8, UTF-16 and UTF-32 codecs, which json picks by a text's "
        "first bytes, were loaded beforehand.",
        "",
        "| file | loads | refused | genuine after all | loaded as stated | other fingerprint | "
        "unseen | other errors |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {kind.name} | {kind.n_loads} | {kind.n_refused} | {kind.n_genuine} | "
            f"{kind.n_plain} | {kind.n_noticed} | {kind.n_unseen} | {sum(kind.errors.values())} |"
            for kind in result.kinds
        ),
        "",
        "A SHA-256 finds accidents and blind changes. Whoever can compute one can write a file of "
        'their own ("loaded as stated"): it holds other numbers, and nothing that runs. People '
        "write data contracts, so these carry no SHA-256; every run compares their fingerprints "
        "instead.",
        "",
        f"| attack | {' | '.join(result.attacks)} |",
        f"|---|{'---|' * len(result.attacks)}",
        f"| loads | {' | '.join(str(count) for count in result.attacks.values())} |",
        "",
        "In place of a file:",
        "",
        f"| | {' | '.join(result.special)} |",
        f"|---|{'---|' * len(result.special)}",
    ]
    for name in next(iter(result.special.values())):
        answers = " | ".join(kind[name] for kind in result.special.values())
        lines.append(f"| {name} | {answers} |")
    return "\n".join(lines) + "\n"
