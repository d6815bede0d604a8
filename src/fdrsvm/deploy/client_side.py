"""A client's part, whatever carries the messages: a request in, a response out, data read here.

Every request may find a new process, so everything is made from files: the data, and the memory of
the rounds before.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from fdrsvm import __version__
from fdrsvm.core.arrays import Array
from fdrsvm.core.texts import package_log
from fdrsvm.data.contract import ContractError
from fdrsvm.data.training_data import merge_equal_rows
from fdrsvm.deploy.memory_file import MemoryFile
from fdrsvm.deploy.plant import Plant
from fdrsvm.deploy.plant_data import PlantRows, read_plant, words_without_path
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.federated.client import answer
from fdrsvm.federated.client_memory import Memory
from fdrsvm.federated.joining import (
    Introduction,
    Request,
    Response,
    Task,
    TellableError,
    encode_introduction,
)
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, decode_broadcast, encode
from fdrsvm.federated.methods import OneVsRestProblem, from_description
from fdrsvm.federated.problem import make_client
from fdrsvm.federated.secure.secure_step import SecureStep

_LOG = package_log()
_AUTO = 10.0  # beta in [practical]: the paper's 1 / (beta N)


def respond(request: Request, plant: Plant) -> Response:
    """The answer to a request; an error becomes a response that says why.

    Words go to the server where they are known to hold no value and no path. Of any other error
    only the kind does, and the rest stays in the client's log.
    """
    try:
        return _respond(request, plant)
    except TellableError as error:
        _LOG.error("client %r: %s", plant.client_id, error.in_full)
        return Response("error", plant.client_id, reason=str(error))
    except ContractError as error:  # all of them are of read_plant
        _LOG.error("client %r: %s (%s)", plant.client_id, error, plant.data)
        return Response("error", plant.client_id, reason=str(error))
    except Exception as error:
        _LOG.exception("client %r", plant.client_id)
        return Response("error", plant.client_id, reason=kind_of(error))


def kind_of(error: Exception) -> str:
    """What the server may know of an error that could hold a value or a path.

    Of the system's errors also its own words, such as "No space left on device".
    """
    words = ""
    if isinstance(error, OSError) and error.errno is not None:
        words = f" ({words_without_path(error)})"
    return f"{type(error).__name__}{words}; the log of this client's node has the rest"


def _respond(request: Request, plant: Plant) -> Response:
    if request.release != __version__:
        raise TellableError(
            "fdr-svm",
            f"server and clients must have one release, here {__version__}",
            f"the server has {request.release}",
        )
    task, broadcast = _read_request(request)
    rows = read_plant(plant)
    if broadcast is None:
        return Response(
            "introduction", plant.client_id, encode_introduction(introduce(plant, rows, task))
        )
    _check_sum(plant, broadcast)
    stored = MemoryFile(plant.memory_folder, broadcast.run_id, _digest(plant, rows, task))
    problem = make_problem(plant, rows, task)
    with stored.locked():
        memory, update = answer(
            problem, stored.read(), broadcast, has_answered=request.has_answered
        )
        _remember(stored, memory)
    return Response("update", plant.client_id, encode(update))


def _remember(stored: MemoryFile, memory: Memory) -> None:
    """An answer that is not on the plant's own disk first is not sent."""
    try:
        stored.write(memory)
    except OSError as error:
        raise TellableError(
            "memory",
            "must be written at the plant before its answer is sent",
            f"{words_without_path(error)}; make room there, then resume the run",
            at_plant=str(stored.folder),
        ) from None


def _read_request(request: Request) -> tuple[Task, Broadcast | None]:
    """The task, and a round's broadcast; what is wrong with them is the server's own."""
    try:
        task = Task.from_json(request.task)
        return task, None if request.kind == "greeting" else decode_broadcast(request.payload)
    except CorruptDataError as error:
        raise TellableError("request", "must be whole, and of this release", str(error)) from None


def _check_sum(plant: Plant, broadcast: Broadcast) -> None:
    """A plant that answers in sums only says so, whatever the server asks."""
    if not plant.least_in_sum:
        return
    step = from_description(broadcast.algorithm)
    if not isinstance(step, SecureStep):
        raise TellableError(
            "least-in-sum",
            f"the answers of {plant.client_id!r} leave in masked sums only",
            "the run has none; start it with secure-aggregation=true",
        )
    named = step.members if step.phase == "upload" else step.survivors
    if named and len(named) < plant.least_in_sum:
        raise TellableError(
            "least-in-sum",
            f"a sum with {plant.client_id!r} must be over at least {plant.least_in_sum} plants",
            f"this one is over {len(named)}",
        )


def _digest(plant: Plant, rows: PlantRows, task: Task) -> str:
    """Of all that makes the problem: a run is about one, whatever the server says later."""
    own = [rows.digest, task.to_json(), plant.label, plant.clip, plant.epsilon, plant.kappa]
    return hashlib.sha256(json.dumps(own).encode()).hexdigest()


def introduce(plant: Plant, rows: PlantRows, task: Task) -> Introduction:
    """What the client says of itself."""
    return Introduction(
        profile=make_problem(plant, rows, task).profile,
        n_rows=len(rows.X),
        labels=rows.labels,
        feature_names=rows.feature_names,
        contract="" if rows.contract is None else rows.contract.fingerprint,
        release=__version__,
    )


def make_problem(plant: Plant, rows: PlantRows, task: Task) -> Any:
    """What the client solves; as long as classes are not known, with its own in their place."""
    classes = task.classes or rows.labels
    positions = {label: k for k, label in enumerate(classes)}
    unknown = [label for label in rows.labels if label not in positions]
    if unknown:
        raise TellableError(
            f"labels of client {plant.client_id!r}",
            f"must be among {list(classes)}",
            f"{len(unknown)} are not: the data changed since the client joined",
        )
    _check_limit(plant, rows, task)
    codes = np.array([positions[label] for label in rows.labels], dtype=np.intp)[rows.codes]
    X, weights = rows.X, np.ones(len(rows.X))
    if task.merge:
        X, codes, weights = merge_equal_rows(X, codes, weights)
    ball = _ball(plant, rows, task)
    positives = [1] if len(classes) <= 2 else range(len(classes))
    problems = tuple(
        make_client(
            plant.client_id,
            X,
            np.where(codes == positive, 1.0, -1.0),
            sample_weight=weights,
            **ball,
        )
        for positive in positives
    )
    return problems[0] if len(problems) == 1 else OneVsRestProblem(problems)


def _check_limit(plant: Plant, rows: PlantRows, task: Task) -> None:
    """Every plant keeps to what was agreed, or does not join; the words hold no value."""
    limits = _agreed_limits(plant, rows, task)
    outside = limits.outside(rows.X)
    if outside.size:
        column = _furthest_beyond(limits, rows.X[outside[0]])
        raise TellableError(
            f"rows of client {plant.client_id!r}",
            f"column {rows.feature_names[column]!r} may not exceed the agreed feature-limit "
            f"{limits.features[column]:g} in size, nor any other its own",
            f"{outside.size} of {len(rows.X)} rows break that, the first is row {outside[0]}",
        )
    box = _support(plant, rows, task.support)
    if isinstance(box, tuple) and limits.outside(np.array(box)).size:
        column = _furthest_beyond(limits, np.maximum(*np.abs(box)))
        raise TellableError(
            f"contract of client {plant.client_id!r}",
            f"its limits must lie within the agreed feature-limit {limits.features[column]:g}",
            f"those of {rows.feature_names[column]!r} do not",
        )


def _agreed_limits(plant: Plant, rows: PlantRows, task: Task) -> Limits:
    try:
        return Limits.checked(task.feature_limit or None, rows.X.shape[1])
    except InvalidInputError as error:  # of what the server sent
        raise TellableError(
            f"feature-limit for client {plant.client_id!r}",
            f"must be one number, or one for each of the plant's {rows.X.shape[1]} features",
            error.found,
        ) from None


def _furthest_beyond(limits: Limits, values: Array) -> int:
    """The feature of a row that is furthest beyond its limit."""
    return int(np.argmax(np.abs(values) - limits.features))


def _ball(plant: Plant, rows: PlantRows, task: Task) -> dict[str, Any]:
    epsilon = task.epsilon if plant.epsilon is None else plant.epsilon
    kappa = float(task.kappa) if plant.kappa is None else plant.kappa
    return {
        "epsilon": 1.0 / (_AUTO * len(rows.X)) if epsilon == "auto" else epsilon,
        "kappa": kappa,
        "norm": task.norm,
        "support": _support(plant, rows, task.support),
        "worst_case": task.worst_case,
        "loss": task.loss,
        "fit_intercept": task.fit_intercept,
        "blur": task.blur,
        "resolution": task.resolution,
    }


def _support(plant: Plant, rows: PlantRows, support: str) -> Any:
    if support != "contract":
        return None if support == "none" else support
    if rows.contract is None:
        raise TellableError(
            f"contract of client {plant.client_id!r}",
            "must be there, since the run's support is its limits",
            "node-config names none",
        )
    return rows.contract.box
