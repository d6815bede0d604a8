"""The server's part, whatever carries the messages: clients agree, rounds run, files are written.

A run leaves a folder: ``model.safetensors`` (read by ``FDRSVC.load``), ``certificate.json``,
``audit.jsonl``, ``run.json`` (its settings, for ``resume``) and the newest checkpoints.
"""

from __future__ import annotations

import errno
import hashlib
import json
import platform
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fdrsvm import __version__
from fdrsvm.core.arrays import Array
from fdrsvm.core.files import write_together
from fdrsvm.core.losses import LOSSES
from fdrsvm.core.plain_json import encode, plain
from fdrsvm.data.contract import FeatureContract, check_all_clients
from fdrsvm.data.training_data import client_shares
from fdrsvm.deploy.run_folder import (
    AUDIT,
    CERTIFICATE,
    CHECKPOINTS,
    MODEL,
    RunRecord,
    check_output,
    claimed,
    room_for_failure,
    tell_event,
    write_failure,
)
from fdrsvm.deploy.settings import RunSettings
from fdrsvm.errors import (
    ClientError,
    ConvergenceWarning,
    FDRSVMError,
    InvalidInputError,
    LeftOutWarning,
)
from fdrsvm.federated.audit import AuditLog, end_event, round_event
from fdrsvm.federated.checkpoint import CheckpointFolder
from fdrsvm.federated.joining import Introduction, Label, Task
from fdrsvm.federated.rounds import Result, RoundRecord, Transport
from fdrsvm.federated.train import train
from fdrsvm.model.model_file import model_bytes

_ROUNDING = 1e-9
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


class GreetingTransport(Transport, Protocol):
    """A transport whose clients introduce themselves, and are told a task."""

    task: Task

    def greet(self) -> Sequence[Introduction]:
        """Who takes part, always in the same order."""


def agree(introductions: Sequence[Introduction]) -> tuple[Label, ...]:
    """The classes of all clients, or a ClientError that names one that differs in what it has."""
    first = introductions[0]
    who, n_features = repr(first.client_id), first.profile.n_features
    for one in introductions:
        if one.release != __version__:
            words = f"it has fdr-svm {one.release}, the server {__version__}; install the same"
        elif one.profile.n_features != n_features:
            words = (
                f"it has {one.profile.n_features} features and {who} has {n_features}; give all "
                "the same contract"
            )
        elif one.feature_names != first.feature_names:
            pairs = zip(one.feature_names, first.feature_names, strict=True)
            column, (here, there) = next((k, p) for k, p in enumerate(pairs) if p[0] != p[1])
            words = (
                f"its column {column} is {here!r} and that of {who} {there!r}; use a contract, "
                "which puts columns in order"
            )
        elif one.contract != first.contract:
            words = f"its data contract is not that of {who}; send all the same file"
        else:
            continue
        raise ClientError(one.client_id, 0, words)
    return check_all_clients({one.client_id: list(one.labels) for one in introductions})


def check_introduction(
    one: Introduction, task: Task, largest: float, contract: FeatureContract | None
) -> None:
    """Whether what a client says of itself follows from the run, or a ClientError that names it.

    Lower bounds rest on the floor: it must be the radius times the loss's Lipschitz constant, or 0
    on a box, and nothing that a client may choose. The radius may not exceed ``largest``, and the
    contract must be the server's, if that has one.
    """
    profile = one.profile
    lipschitz = float(LOSSES[task.loss].lipschitz)
    floor = profile.epsilon * lipschitz if task.support == "none" else 0.0
    n_limits = len(task.feature_limit) if isinstance(task.feature_limit, tuple) else 0
    foreign = "is not the server's" if one.contract else "is missing"
    rules = {
        f"its data contract {foreign}; send it the file that the server has": (
            contract is None or one.contract == contract.fingerprint
        ),
        f"its norm is {profile.norm}, the run's {task.norm}": profile.norm == task.norm,
        "its norm is of groups of features, the run's is not": profile.groups is None,
        f"fit-intercept is {profile.fit_intercept} there and {task.fit_intercept} in the run": (
            profile.fit_intercept == task.fit_intercept
        ),
        f"its floor is {profile.floor!r}; from its radius {profile.epsilon!r}, the loss and the "
        f"support follows {floor!r}": profile.floor == floor,
        f"it says that it has {profile.n_samples} samples in {one.n_rows} rows": (
            profile.n_samples == one.n_rows or (task.merge and profile.n_samples < one.n_rows)
        ),
        f"it has {profile.n_features} features and feature-limit is for {n_limits}": (
            n_limits in (0, profile.n_features)
        ),
        f"its radius {profile.epsilon:g} exceeds {largest:g}; the run's largest-epsilon may allow "
        "it": profile.epsilon <= largest * (1.0 + _ROUNDING),
    }
    for words, holds in rules.items():
        if not holds:
            raise ClientError(one.client_id, 0, words)


def read_settings(config: Mapping[str, Any]) -> RunSettings:
    """From run-config; an error is in the audit log, where whoever started the run looks."""
    try:
        return RunSettings.from_config(config)
    except FDRSVMError as error:
        output = config.get("output")
        if isinstance(output, str) and output:
            audit = AuditLog(Path(output).expanduser().resolve() / AUDIT)
            audit({"event": "failed", "error": type(error).__name__, "reason": str(error)})
        raise


def conduct_run(
    make_transport: Callable[[AuditLog], GreetingTransport],
    settings: RunSettings,
    tell: Callable[[str], None],
) -> Result:
    """One run from joining to the model file; ``tell`` gets a line for people now and then.

    An error is in the audit log before it is raised, with the clients' names that it has. The log
    of another run is left alone: its folder is refused, unless it is to be resumed.
    """
    folder = settings.output_folder
    with claimed(folder):
        if not settings.resume:
            check_output(folder, resume=False)
        with room_for_failure(folder):
            audit = AuditLog(folder / AUDIT)
            try:
                audit(
                    {
                        "event": "start",
                        "release": __version__,
                        "machine": platform.machine(),
                        "python": platform.python_version(),
                        "settings": settings.to_config(),
                    }
                )
                return train_audited(make_transport(audit), settings, audit, tell)
            except Exception as error:
                reason = in_words(error, folder)
                try:
                    audit({"event": "failed", "error": type(error).__name__, "reason": reason})
                except OSError:  # the disk is full, which may be the very reason
                    write_failure(folder, reason)
                raise


def in_words(error: Exception, folder: Path) -> str:
    """Of a full or broken disk what it means for the run, with the file if it is known."""
    if isinstance(error, FDRSVMError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return (
            f"the server cannot write {error.filename or f'in {folder}'}: {error.strerror}; make "
            "room there, then `fdrsvm federation resume` goes on"
        )
    return repr(error)


def train_audited(
    transport: GreetingTransport,
    settings: RunSettings,
    audit: AuditLog,
    tell: Callable[[str], None],
) -> Result:
    """Clients join and agree, rounds run, and the results are written."""
    folder = settings.output_folder
    record = RunRecord.to_resume(folder, settings) if settings.resume else None
    introductions = transport.greet()
    classes = agree(introductions)
    contract = settings.read_contract()
    for one in introductions:
        check_introduction(one, transport.task, settings.largest_radius(one.n_rows), contract)
    transport.task = replace(transport.task, classes=classes)
    if record is None:
        record = RunRecord(uuid.uuid4().hex, settings.to_config(), transport.task)
        record.write(folder)
    record.check_task(transport.task)
    names = [one.client_id for one in introductions]
    tell(f"{len(names)} clients: {', '.join(names)}; classes {list(classes)}")
    checkpoints = CheckpointFolder(folder / CHECKPOINTS)
    resumed = checkpoints.latest(record.run_id) if settings.resume else None
    if resumed is not None:
        audit({"event": "resumed", "run": resumed.run_id, "round": resumed.round})
        tell(f"resumed after round {resumed.round}")
    elif settings.resume:
        tell("no checkpoint to resume: the run starts from the beginning")
        # Clients may be rounds ahead, and would not answer the first ones again.
        record = replace(record, run_id=uuid.uuid4().hex)
        record.write(folder)
    estimator = settings.estimator()
    left_out = frozenset(resumed.history[-1].left_out) if resumed is not None else frozenset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("always", LeftOutWarning)
        result = train(
            transport,
            estimator._method(),
            n_models=1 if len(classes) == 2 else len(classes),
            client_weights=client_shares(
                settings.client_weights, names, [float(one.n_rows) for one in introductions]
            ),
            max_rounds=settings.max_rounds,
            tol=settings.tol,
            callbacks=[_RoundTeller(audit, tell, left_out)],
            secure_aggregation=settings.secure_aggregation,
            quorum=settings.quorum or None,
            deadline=settings.deadline,
            on_fault=settings.on_fault,  # type: ignore[arg-type]
            leave_out_after=settings.leave_out_after or None,
            limits=settings.limits(introductions[0].profile.n_features),
            listener=audit,
            checkpoint=checkpoints,
            resume=resumed,
            run_id=record.run_id,
            max_rounds_name="max-rounds",
        )
    for warning in caught:
        tell(f"warning: {warning.message}")
    write_results(result, estimator, introductions, classes, folder, audit, caught)
    tell(
        f"{result.reason.value} after {result.n_rounds} rounds: worst-case risk "
        f"{result.objective:.6g}, certified gap {result.gap:.1e}; model in {folder / MODEL}"
    )
    return result


@dataclass
class _RoundTeller:
    """One line per round, for people and for the audit log; and who is left out, once."""

    audit: AuditLog
    tell: Callable[[str], None]
    left_out: frozenset[str] = frozenset()

    def __call__(self, record: RoundRecord, model: Array) -> None:
        event = round_event(record, model)
        self.audit(event)
        tell_event(event, self.tell)
        for fault in record.faults:
            self.tell(f"round {record.round}, fault: {fault}")
        new = sorted(set(record.left_out) - self.left_out)
        if new:
            self.left_out = frozenset(record.left_out)
            self.tell(f"from now on without {', '.join(new)}: the certificate is the others'")


def write_results(
    result: Result,
    estimator: Any,
    introductions: Sequence[Introduction],
    classes: Sequence[Label],
    folder: Path,
    audit: AuditLog,
    warned: Sequence[warnings.WarningMessage],
) -> None:
    """Model and certificate, and the run's end in the audit log."""
    first, names = introductions[0], [one.client_id for one in introductions]
    estimator.n_features_in_ = len(first.feature_names)
    estimator.feature_names_in_ = np.array(first.feature_names, dtype=object)
    estimator._set_result(result, np.array(classes), np.array(names))
    model = estimator._linear_model()
    certificate = {
        "model_sha256": model.fingerprint,
        "contract": first.contract,
        "release": __version__,
        "run": result.run_id,
        "clients": names,
        **model.certificate,
    }
    if not np.isfinite(result.objective):
        write_together((folder / MODEL, model_bytes(model)))
        raise InvalidInputError(
            "quorum",
            "some model must have been evaluated by every client for a certificate",
            "none was; the newest is in the model file without one",
        )
    text = json.dumps(encode(plain(certificate, "certificate")), indent=2, sort_keys=True)
    write_together(  # both or neither: a model without its certificate is worth little
        (folder / MODEL, model_bytes(model)),
        (folder / CERTIFICATE, text.encode() + b"\n"),
    )
    audit(
        {
            **end_event(result),
            "warnings": [str(one.message) for one in warned],
            "is_above_tol": any(issubclass(one.category, ConvergenceWarning) for one in warned),
            "model_sha256": model.fingerprint,
            "file_sha256": hashlib.sha256((folder / MODEL).read_bytes()).hexdigest(),
        }
    )
