"""Loads hostile files in a process of its own, watched: what ran, what was opened, how much memory.

    python -m benchmarks.trust.hostile_loads LOADS SEED

prints what was found as JSON. The watch is one of Python's audit hooks, which cannot be taken off
again; the limit on memory cannot either. So nothing else should happen in this process.
"""

from __future__ import annotations

import codecs
import json
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trust.hostile_bytes import ALTERED, FORGED, MAX_BYTES, forge
from fdrsvm import __version__
from fdrsvm.data.contract import Feature, FeatureContract
from fdrsvm.deploy.memory_file import MemoryFile
from fdrsvm.errors import ConvergenceWarning, FDRSVMError
from fdrsvm.federated.checkpoint import CheckpointFolder, read_checkpoint
from fdrsvm.federated.client_memory import Memory
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.joining import Introduction, decode_introduction, encode_introduction
from fdrsvm.federated.messages import (
    Broadcast,
    Update,
    decode_broadcast,
    decode_profile,
    decode_update,
    encode,
    encode_profile,
)
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from fdrsvm.federated.problem import ClientProblem, make_client
from fdrsvm.federated.rounds import Failure, Snapshot, run_rounds
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import load_model, save_model

MEMORY_LIMIT = 200 * 2**20
_PATIENCE = 30.0  # seconds after which a load counts as hanging
_FORGED_SHARE = 0.2
# The standard library's json picks one by a text's first bytes, and it is loaded when first used.
_JSON_CODECS = ("utf-8-sig", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le")

# Running, loading or changing something: reading a file needs none of these.
_FORBIDDEN = (
    "code.__new__",
    "compile",
    "ctypes.",
    "exec",
    "import",
    "marshal.",
    "os.chmod",
    "os.exec",
    "os.fork",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.spawn",
    "os.symlink",
    "os.system",
    "os.truncate",
    "pickle.",
    "shutil.",
    "socket.",
    "subprocess.",
    "urllib.",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Notes what a load does that it should not."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self._is_on = False
        sys.addaudithook(self._hook)

    @contextmanager
    def on(self) -> Iterator[None]:
        """For the time of one load."""
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self._is_on and _is_forbidden(event, args):
            self.seen[f"import of {args[0]}" if event == "import" else event] += 1


def _is_forbidden(event: str, args: tuple[Any, ...]) -> bool:
    if event == "open":
        return bool(args[2] & _WRITING)
    return event.startswith(_FORBIDDEN)


# What is read


class Reader:
    """One kind of file or message: genuine ones, how to load one, and how to write it again."""

    def __init__(
        self,
        name: str,
        originals: Sequence[bytes],
        load: Callable[[bytes], Any],
        write: Callable[[Any], bytes],
    ) -> None:
        self.name = name
        self.originals = tuple(originals)
        self.load = load
        self.write = write

    def place(self, data: bytes) -> None:
        """Put it where ``read`` looks."""
        self._data = data

    def read(self) -> Any:
        """The content, or one of the package's own errors."""
        return self.load(self._data)


class FileReader(Reader):
    """The same for what is read from a path."""

    def __init__(
        self,
        name: str,
        contents: Sequence[Any],
        load: Callable[[Path], Any],
        write: Callable[[Any, Path], None],
        path: Path,
    ) -> None:
        again = path.with_name("again")

        def written(content: Any) -> bytes:
            write(content, again)
            return again.read_bytes()

        originals = [written(content) for content in contents]
        super().__init__(name, originals, lambda _: load(path), written)
        self.path = path

    def place(self, data: bytes) -> None:
        """Into the file."""
        self._data = data
        self.path.write_bytes(data)


def make_readers(folder: Path) -> list[Reader]:
    """Models, checkpoints, memories, messages and contracts, all genuine."""
    recorded = _Recorded(InProcess(_problems()))
    snapshots = [_trained(recorded, method) for method in (Bundle(), ADMM(), Subgradient())]
    return [
        _model_reader(folder),
        _checkpoint_reader(folder, snapshots),
        _memory_reader(folder, [memory for _, known in snapshots for memory in known.values()]),
        Reader("broadcasts", recorded.broadcasts, decode_broadcast, encode),
        Reader("updates", recorded.updates, decode_update, encode),
        _profile_reader(recorded),
        _introduction_reader(recorded),
        _contract_reader(),
    ]


def _problems() -> list[ClientProblem]:
    rng = np.random.default_rng(3)
    found = []
    for g in range(2):
        X = rng.normal(size=(6, 3))
        y = np.where(X[:, 0] + 0.3 * rng.normal(size=6) > 0.0, 1.0, -1.0)
        found.append(make_client(f"plant {g}", X, y, epsilon=0.05))
    return found


class _Recorded:
    """Keeps the bytes of what passes."""

    def __init__(self, inner: InProcess) -> None:
        self.inner = inner
        self.broadcasts: list[bytes] = []
        self.updates: list[bytes] = []

    def join(self) -> Any:
        return self.inner.join()

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        answers = self.inner.exchange(broadcasts, deadline)
        self.broadcasts += [encode(broadcast) for broadcast in broadcasts]
        self.updates += [encode(answer) for answer in answers if isinstance(answer, Update)]
        return answers


def _trained(transport: _Recorded, method: Any) -> tuple[Snapshot, dict[str, Memory]]:
    """After four rounds."""
    kept: list[Snapshot] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run_rounds(transport, method, max_rounds=4, checkpoint=kept.append, run_id=method.name)
    return kept[-1], dict(transport.inner.memories)


def _model_reader(folder: Path) -> Reader:
    rng = np.random.default_rng(4)
    models = [
        LinearModel.checked(rng.normal(size=(1, 3)), [0.5], ["ok", "worn"], estimator="FDRSVC"),
        LinearModel.checked(
            rng.normal(size=(3, 2)),
            rng.normal(size=3),
            [0, 1, 2],
            estimator="FDRSVC",
            feature_names=["pressure", "flow"],
            params={"kappa": np.inf, "clients": [1, 2]},
            certificate={"gap": 1e-5, "risks": [0.1, 0.2]},
        ),
    ]
    path = folder / "model.safetensors"
    return FileReader("model files", models, load_model, save_model, path)


def _checkpoint_reader(
    folder: Path, snapshots: Sequence[tuple[Snapshot, dict[str, Memory]]]
) -> Reader:
    def write(content: tuple[Snapshot, dict[str, Memory]], path: Path) -> None:
        snapshot, memories = content
        transport = InProcess([])
        transport.memories = memories
        CheckpointFolder(folder / "written", transport, keep=1)(snapshot)
        (folder / "written" / f"round-{snapshot.round:06d}.safetensors").replace(path)

    path = folder / "round-000004.safetensors"
    return FileReader("checkpoints", snapshots, read_checkpoint, write, path)


def _memory_reader(folder: Path, memories: Sequence[Memory]) -> Reader:
    file = MemoryFile(folder / "memory", "run", "digest")

    def write(memory: Memory, path: Path) -> None:
        other = MemoryFile(folder / "written", "run", "digest")
        other.write(memory)
        other.path.replace(path)

    (folder / "memory").mkdir()
    return FileReader("client memories", memories, lambda _: file.read(), write, file.path)


def _profile_reader(recorded: _Recorded) -> Reader:
    originals = [encode_profile(profile) for profile in recorded.join()]
    return Reader("profiles", originals, decode_profile, encode_profile)


def _introduction_reader(recorded: _Recorded) -> Reader:
    names = ("pressure", "flow", "speed")
    originals = [
        encode_introduction(Introduction(profile, 9, ("ok", "worn"), names, "", __version__))
        for profile in recorded.join()
    ]
    return Reader("introductions", originals, decode_introduction, encode_introduction)


def _contract_reader() -> Reader:
    """A contract has no SHA-256 inside: people write it. Its fingerprint is what sides compare."""
    contract = FeatureContract(
        (
            Feature("pressure", "bar", low=0.0, high=25.0),
            Feature("temperature", "degC", low=-20.0, missing="fill", fill=20.0),
        ),
        ("healthy", "worn"),
    )
    original = contract.to_json().encode()
    return Reader(
        "data contracts",
        [original],
        FeatureContract.from_json,
        lambda found: original if found.fingerprint == contract.fingerprint else b"another",
    )


# Loading


@dataclass
class Tally:
    """What came of the loads of one kind of file."""

    n_loads: int = 0
    n_refused: int = 0
    n_genuine: int = 0  # the bytes were those of a genuine file after all
    n_plain: int = 0  # forged with the right SHA-256, and loaded as exactly what they state
    n_noticed: int = 0  # a contract that loads, with another fingerprint
    n_unseen: int = 0
    errors: Counter[str] = field(default_factory=Counter)  # of any other kind
    slowest: float = 0.0

    @property
    def as_json(self) -> dict[str, Any]:
        """For the parent."""
        return {**vars(self), "errors": dict(self.errors)}


class HangError(Exception):
    """A load took longer than anyone would wait."""


def _stop_hanging(number: int, frame: Any) -> None:
    raise HangError


def load_once(reader: Reader, data: bytes, is_forged: bool, watch: Watch, tally: Tally) -> None:
    """One load, judged."""
    reader.place(data)
    tally.n_loads += 1
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        with watch.on():
            content = reader.read()
    except FDRSVMError:
        tally.n_refused += 1
        return
    except Exception as error:
        tally.errors[type(error).__name__] += 1
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        tally.slowest = max(tally.slowest, time.perf_counter() - start)
    _judge_loaded(reader, data, content, is_forged, tally)


def _judge_loaded(reader: Reader, data: bytes, content: Any, is_forged: bool, tally: Tally) -> None:
    written = reader.write(content)
    if written == b"another":
        tally.n_noticed += 1
    elif written != data and reader.name != "data contracts":
        tally.n_unseen += 1
    elif written in reader.originals:
        tally.n_genuine += 1
    elif is_forged:
        tally.n_plain += 1
    else:
        tally.n_unseen += 1


def load_many(readers: Sequence[Reader], n_loads: int, seed: int, watch: Watch) -> dict[str, Any]:
    """Hostile bytes for each reader in turn."""
    rng = random.Random(seed)
    tallies = {reader.name: Tally() for reader in readers}
    attacks: Counter[str] = Counter()
    genuine = [data for reader in readers for data in reader.originals]
    for k in range(n_loads):
        reader = readers[k % len(readers)]
        original = rng.choice(reader.originals)
        if rng.random() < _FORGED_SHARE:
            name, data = FORGED, forge(rng, original, genuine)
        else:
            name = rng.choice(list(ALTERED))
            data = ALTERED[name](rng, original, genuine)
        attacks[name] += 1
        load_once(reader, data[:MAX_BYTES], name == FORGED, watch, tallies[reader.name])
    return {
        "tallies": {name: tally.as_json for name, tally in tallies.items()},
        "attacks": dict(attacks),
    }


# Files that are no files


def load_special(readers: Sequence[Reader], watch: Watch) -> dict[str, dict[str, str]]:
    """What is said about devices, pipes, folders and links in place of a file."""
    found: dict[str, dict[str, str]] = {}
    for reader in readers:
        if isinstance(reader, FileReader):
            found[reader.name] = {
                name: _answer_to(reader, make, watch) for name, make in _SPECIAL.items()
            }
    return found


def _answer_to(reader: FileReader, make: Callable[[Path, bytes], Any], watch: Watch) -> str:
    path = reader.path
    path.unlink(missing_ok=True)
    held = make(path, reader.originals[0])
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        with watch.on():
            content = reader.read()
    except Exception as error:
        return type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        if held is not None:
            held.close()
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
    return "loaded, the same" if reader.write(content) == reader.originals[0] else "CHANGED"


def _socket_at(path: Path, data: bytes) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.bind(str(path))
    return found


def _link_to_whole(path: Path, data: bytes) -> None:
    target = path.with_name("target")
    target.write_bytes(data)
    path.symlink_to(target)


def _hole(path: Path, data: bytes) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


_SPECIAL: dict[str, Callable[[Path, bytes], Any]] = {
    "/dev/zero": lambda path, data: path.symlink_to("/dev/zero"),
    "/dev/urandom": lambda path, data: path.symlink_to("/dev/urandom"),
    "a pipe nobody writes to": lambda path, data: os.mkfifo(path),
    "a socket": _socket_at,
    "a folder": lambda path, data: path.mkdir(),
    "a hole of 1 TB": _hole,
    "a link to itself": lambda path, data: path.symlink_to(path),
    "a link to a genuine file": _link_to_whole,
}


# The process


def _grown() -> float:
    """Peak memory so far, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _limit_memory() -> None:
    """So many bytes more than now; beyond, allocations fail."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return  # only Linux tells how much there is now
    limit = pages * resource.getpagesize() + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _watch_works(watch: Watch) -> bool:
    """Whether it sees code that runs, modules that are loaded and files that are written."""
    with watch.on(), tempfile.TemporaryFile() as file:
        exec("1")
        sys.modules.pop("this_module_does_not_exist", None)
        try:
            __import__("this_module_does_not_exist")
        except ModuleNotFoundError:
            file.write(b"seen")
    seen = set(watch.seen)
    watch.seen.clear()
    return {"exec", "compile", "import of this_module_does_not_exist", "open"} <= seen


def main(n_loads: int, seed: int) -> None:
    """Print what was found."""
    for name in _JSON_CODECS:
        codecs.lookup(name)
    signal.signal(signal.SIGALRM, _stop_hanging)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)  # where a pickle that ran would leave its mark
        readers = make_readers(folder)
        for reader in readers:
            for data in reader.originals:
                reader.place(data)
                if reader.write(reader.read()) != data:
                    raise FDRSVMError(f"{reader.name}: a genuine file does not load")
        watch = Watch()
        works = _watch_works(watch)
        _limit_memory()
        before, start = _grown(), time.perf_counter()
        found = load_many(readers, n_loads, seed, watch)
        special = load_special(readers, watch)
        found |= {
            "special": special,
            "watch_works": works,
            "forbidden": dict(watch.seen),
            "left_marks": (folder / "unpickled").exists(),
            "grown_megabytes": round(_grown() - before, 1),
            "seconds": round(time.perf_counter() - start, 1),
        }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
