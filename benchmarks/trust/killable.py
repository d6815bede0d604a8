"""A process that trains and can be killed: all is imported once, then forked.

The server reads a JSON object a line from standard input, forks a child that trains with a
checkpoint a round, kills it with SIGKILL if so asked, and answers with a line.

case        one of ``CASES``
folder      of the run: checkpoints are in it, and ``outcome.json`` once it is over
kill_after  seconds, or null
kill_at     [place, count, bytes] or null: kill when the child is there for the count-th time

A place is one of ``PLACES``; Python tells of each in advance, so a child can be killed just there.
Only a write has no middle that Python knows of: there the system is told to end the process (by
SIGXFSZ in place of SIGKILL) when a file has so many bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fdrsvm.errors import ConvergenceWarning, FDRSVMError
from fdrsvm.federated.certificate import Certificate
from fdrsvm.federated.checkpoint import CheckpointFolder, history_to_arrays, state_to_arrays
from fdrsvm.federated.client_memory import memory_to_arrays
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods import ADMM, Bundle, OneVsRest, OneVsRestProblem, Subgradient
from fdrsvm.federated.problem import ClientProblem, make_client
from fdrsvm.federated.rounds import Result, run_rounds

CHECKPOINTS, OUTCOME = "checkpoints", "outcome.json"
_N_CLIENTS, _N_ROWS, _N_FEATURES, _N_CLASSES = 4, 250, 12, 3
_TOL = 1e-9


@dataclass(frozen=True)
class Case:
    """What is trained: a method, and for how many rounds."""

    method: Any
    max_rounds: int

    def clients(self) -> list[Any]:
        """The same data each time: shifted blobs with noisy labels."""
        rng = np.random.default_rng(9)
        directions = rng.normal(size=(_N_FEATURES, _N_CLASSES))
        return [self._client(f"plant {g}", rng, directions) for g in range(_N_CLIENTS)]

    def _client(self, name: str, rng: np.random.Generator, directions: Any) -> Any:
        X = rng.normal(size=(_N_ROWS, _N_FEATURES)) + 0.3 * rng.normal(size=_N_FEATURES)
        scores = X @ directions + rng.normal(size=(_N_ROWS, _N_CLASSES))

        def problem(positive: npt.NDArray[np.bool_]) -> ClientProblem:
            y = np.where(positive, 1.0, -1.0)
            return make_client(name, X, y, epsilon=0.01, fit_intercept=True)

        if not isinstance(self.method, OneVsRest):
            return problem(scores[:, 0] > 0.0)
        classes = scores.argmax(axis=1)
        return OneVsRestProblem(tuple(problem(classes == k) for k in range(_N_CLASSES)))


CASES = {
    "SM": Case(Subgradient(step_size=0.5), 30),
    "ADMM": Case(ADMM(rho=0.05), 25),
    "bundle": Case(Bundle(), 15),
    "bundle, 3 classes": Case(OneVsRest(Bundle(), _N_CLASSES, _TOL), 10),
}

# What Python calls the step in its audit events, and how the file's name ends.
PLACES = {
    "before a checkpoint is written": ("open", ".tmp"),
    "in the middle of a write": ("open", ".tmp"),
    "between write and rename": ("os.rename", ".tmp"),
    "between rename and clearing up": ("os.remove", ".safetensors"),
}
_MIDDLE = "in the middle of a write"


def train(name: str, folder: Path) -> dict[str, Any]:
    """Train, or go on where the folder's newest whole checkpoint ends; what came of it."""
    case = CASES[name]
    transport = InProcess(case.clients())
    checkpoints = CheckpointFolder(folder / CHECKPOINTS, transport)
    resumed = checkpoints.latest()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = run_rounds(
            transport,
            case.method,
            max_rounds=case.max_rounds,
            tol=_TOL,
            client_weights="samples",
            checkpoint=checkpoints,
            resume=resumed,
            run_id="killed",
        )
    return {
        "sha256": digest(result, transport),
        "rounds": result.n_rounds,
        "resumed_after": resumed.round if resumed else 0,
    }


def digest(result: Result, transport: InProcess) -> str:
    """Of every bit of model, certificate, history (but for the clock) and clients' memories."""
    found = hashlib.sha256()
    for name, array in _parts(result, transport):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    found.update(json.dumps([record.faults for record in result.history]).encode())
    found.update(result.reason.name.encode())
    return found.hexdigest()


def _parts(result: Result, transport: InProcess) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    yield "newest", result.newest
    yield "gap", np.asarray(result.gap)
    for standing in (result.certificate, *getattr(result.certificate, "models", ())):
        parts = {entry.name: getattr(standing, entry.name) for entry in fields(Certificate)}
        for name in ("proof", "proof_everywhere"):
            yield from state_to_arrays(parts.pop(name), name).items()
        for name, value in parts.items():
            yield name, np.asarray(value)
    for name, column in sorted(history_to_arrays(result.history).items()):
        if not name.endswith("seconds"):
            yield name, column
    for client_id, memory in sorted(transport.memories.items()):
        header, arrays = memory_to_arrays(memory)
        yield json.dumps([client_id, header]), np.zeros(0)
        yield from sorted(arrays.items())


# The parent's side


@dataclass(frozen=True)
class Ended:
    """How a child ended; ``outcome`` is what ``train`` gave, if no signal ended it."""

    signal: int | None
    seconds: float
    outcome: dict[str, Any] | None

    @property
    def is_killed(self) -> bool:
        """Whether a signal ended it."""
        return self.signal is not None


class KillableServer:
    """The process that forks; a context manager."""

    def __enter__(self) -> Self:
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",  # threads do not survive a fork
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()  # closes its input, which ends it

    def run(
        self,
        case: str,
        folder: Path,
        *,
        kill_after: float | None = None,
        kill_at: tuple[str, int, int] | None = None,
    ) -> Ended:
        """Train in a child until it ends, one way or the other."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {
            "case": case,
            "folder": str(folder),
            "kill_after": kill_after,
            "kill_at": kill_at,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise FDRSVMError("the process that trains has ended; see its messages above")
        return Ended(**json.loads(line))


# The server's side


def serve() -> None:
    """Answer requests until the input ends."""
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            train(name, Path(folder) / name)  # loads all machine code, for the children
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(json.dumps(_forked(request)) + "\n")
        sys.stdout.flush()


def _forked(request: dict[str, Any]) -> dict[str, Any]:
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        _be_child(request)
    if request["kill_after"] is not None:
        time.sleep(request["kill_after"])
        os.kill(child, signal.SIGKILL)  # not waited for yet, so the number is still its own
    _, status = os.waitpid(child, 0)
    seconds = time.perf_counter() - start
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXFSZ):
        return {"signal": os.WTERMSIG(status), "seconds": seconds, "outcome": None}
    if os.WEXITSTATUS(status) != 0:
        sys.exit("a child failed")
    outcome = json.loads((Path(request["folder"]) / OUTCOME).read_bytes())
    return {"signal": None, "seconds": seconds, "outcome": outcome}


def _be_child(request: dict[str, Any]) -> None:
    """Never returns: what follows in the code is the parent's."""
    failed = True
    try:
        if request["kill_at"] is not None:
            _kill_at(*request["kill_at"])
        folder = Path(request["folder"])
        outcome = train(request["case"], folder)
        (folder / OUTCOME).write_text(json.dumps(outcome), encoding="utf-8")
        failed = False
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(int(failed))


def _kill_at(place: str, count: int, n_bytes: int) -> None:
    event, suffix = PLACES[place]
    left = count

    def hook(name: str, args: Any) -> None:
        nonlocal left
        if name == event and str(args[0]).endswith(suffix):
            left -= 1
            if left == 0 and place == _MIDDLE:
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))
            elif left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if __name__ == "__main__":
    serve()
