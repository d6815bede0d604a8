"""A client's part, whatever carries the messages: a request in, a response out.

Every request may reach a new process, so all that a run depends on is in files: the data, and the
memory of the rounds before. What is costly to make from them, the rows and the problem, stays in
the process, and is made again only when files, settings or task change.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from fdrsvm import __version__
from fdrsvm.core.texts import package_log
from fdrsvm.data.contract import ContractError
from fdrsvm.data.training_data import Client, merge_equal_rows, radii
from fdrsvm.deploy.memory_file import MemoryFile
from fdrsvm.deploy.plant import Plant, PlantRows, rows_of, words_without_path
from fdrsvm.errors import CorruptDataError, FDRSVMError, InvalidInputError
from fdrsvm.federated.client import answer
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
from fdrsvm.federated.methods import from_description
from fdrsvm.federated.secure.secure_step import SecureStep
from fdrsvm.federated.train import make_problems

_LOG = package_log()


def respond(request: Request, plant: Plant) -> Response:
    """The answer to a request; an error becomes a response that says why.

    Words go to the server where they are known to hold no value and no path. Of any other error
    only the kind does, and the rest stays in the client's log.
    """
    try:
        return answer_request(request, plant)
    except TellableError as error:
        _LOG.error("client %r: %s", plant.client_id, error.in_full)
        return Response("error", plant.client_id, reason=str(error))
    except ContractError as error:  # only reading the table raises it
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


def answer_request(request: Request, plant: Plant) -> Response:
    """An introduction to a greeting, or an update to a round's broadcast."""
    if request.release != __version__:
        raise TellableError(
            "fdr-svm",
            f"server and clients must have one release, here {__version__}",
            f"the server has {request.release}",
        )
    try:
        task = Task.from_json(request.task)
        broadcast = None if request.kind == "greeting" else decode_broadcast(request.payload)
    except CorruptDataError as error:  # of the server's own words
        raise TellableError("request", "must be whole, and of this release", str(error)) from None
    rows = rows_of(plant)
    if broadcast is None:
        introduction = introduce(plant, rows, task)
        return Response("introduction", plant.client_id, encode_introduction(introduction))
    check_sum_size(plant, broadcast)
    # Of all that makes the problem: a run is about one, whatever the server says later.
    own = [rows.digest, task.to_json(), plant.label, plant.clip, plant.epsilon, plant.kappa]
    digest = hashlib.sha256(json.dumps(own).encode()).hexdigest()
    stored = MemoryFile(plant.memory_folder, broadcast.run_id, digest)
    problem = make_problem(plant, rows, task)
    with stored.locked():
        memory, update = answer(
            problem, stored.read(), broadcast, has_answered=request.has_answered
        )
        try:
            stored.write(memory)
        except OSError as error:
            raise TellableError(
                "memory",
                "must be written at the plant before its answer is sent",
                f"{words_without_path(error)}; make room there, then resume the run",
                at_plant=str(stored.folder),
            ) from None
    return Response("update", plant.client_id, encode(update))


def check_plant(plant: Plant) -> str:
    """One line about the data for the plant's own terminal, or an error that names the file."""
    try:
        rows = rows_of(plant)
    except TellableError as error:
        raise FDRSVMError(error.in_full) from None
    except ContractError as error:
        raise FDRSVMError(f"{error} ({plant.data})") from None
    dropped = f" ({rows.n_dropped} more lack a value and are left out)" if rows.n_dropped else ""
    return (
        f"{plant.client_id}: {len(rows.X)} rows{dropped}, {rows.X.shape[1]} features, "
        "data as agreed"
    )


def keep_ready(plant: Plant, task: str) -> None:
    """Have the rows and the problem of a task in this process, for those that it will fork."""
    with contextlib.suppress(Exception):  # whoever answers says what is wrong
        make_problem(plant, rows_of(plant), Task.from_json(task))


def check_sum_size(plant: Plant, broadcast: Broadcast) -> None:
    """A plant that answers only in sums says so, whatever the server asks."""
    if not plant.least_in_sum:
        return
    step = from_description(broadcast.algorithm)
    if not isinstance(step, SecureStep):
        raise TellableError(
            "least-in-sum",
            f"the answers of {plant.client_id!r} leave in masked sums only",
            "the run has none; start it with secure-aggregation=true",
        )
    summed = step.members if step.phase == "upload" else step.survivors
    if summed and len(summed) < plant.least_in_sum:
        raise TellableError(
            "least-in-sum",
            f"a sum with {plant.client_id!r} must be over at least {plant.least_in_sum} plants",
            f"this one is over {len(summed)}",
        )


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
    return _make_problem(plant, rows, replace(task, classes=task.classes or rows.labels))


@lru_cache(maxsize=1)  # rounds of a run ask for the same one, and two could fill the memory
def _make_problem(plant: Plant, rows: PlantRows, task: Task) -> Any:
    positions = {label: k for k, label in enumerate(task.classes)}
    unknown = [label for label in rows.labels if label not in positions]
    if unknown:
        raise TellableError(
            f"labels of client {plant.client_id!r}",
            f"must be among {list(task.classes)}",
            f"{len(unknown)} are not: the data changed since the client joined",
        )
    box = _support(plant, rows, task)
    check_limits(plant, rows, task, box)
    codes = np.array([positions[label] for label in rows.labels], dtype=np.intp)[rows.codes]
    X, weights = rows.X, np.ones(len(rows.X))
    if task.merge:
        X, codes, weights = merge_equal_rows(X, codes, weights)
    n_rows, name = float(len(rows.X)), plant.client_id
    [epsilon] = radii(_first_given(plant.epsilon, task.epsilon), "epsilon", [name], [n_rows])
    [problem] = make_problems(
        [Client(name, X, codes, len(task.classes), weights, n_rows)],
        [epsilon],
        [float(_first_given(plant.kappa, task.kappa))],
        norm=task.norm,
        support=box,
        worst_case=task.worst_case,
        loss=task.loss,
        fit_intercept=task.fit_intercept,
        blur=task.blur,
        resolution=task.resolution,
    )
    return problem


def _first_given(own: Any, agreed: Any) -> Any:
    """A plant may have a ball of its own."""
    return agreed if own is None else own


def check_limits(plant: Plant, rows: PlantRows, task: Task, box: Any) -> None:
    """Every plant keeps to what was agreed, or does not join; the words hold no value."""
    n_features = rows.X.shape[1]
    try:
        limits = Limits.checked(task.feature_limit or None, n_features)
    except InvalidInputError as error:  # of what the server sent
        raise TellableError(
            f"feature-limit for client {plant.client_id!r}",
            f"must be one number, or one for each of the plant's {n_features} features",
            error.found,
        ) from None
    outside = limits.outside(rows.X)
    if outside.size:
        column = np.argmax(np.abs(rows.X[outside[0]]) - limits.features)
        raise TellableError(
            f"rows of client {plant.client_id!r}",
            f"column {rows.feature_names[column]!r} may not exceed the agreed feature-limit "
            f"{limits.features[column]:g} in size, nor any other its own",
            f"{outside.size} of {len(rows.X)} rows break that, the first is row "
            f"{rows.row_numbers[outside[0]]}",
        )
    if isinstance(box, tuple) and limits.outside(np.array(box)).size:
        column = np.argmax(np.maximum(*np.abs(box)) - limits.features)
        raise TellableError(
            f"contract of client {plant.client_id!r}",
            f"its limits must lie within the agreed feature-limit {limits.features[column]:g}",
            f"those of {rows.feature_names[column]!r} do not",
        )


def _support(plant: Plant, rows: PlantRows, task: Task) -> Any:
    if task.support != "contract":
        return None if task.support == "none" else task.support
    if rows.contract is None:
        raise TellableError(
            f"contract of client {plant.client_id!r}",
            "must be there, since the run's support is its limits",
            "node-config names none",
        )
    return rows.contract.box
