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
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fdrsvm import __version__
from fdrsvm.core.arrays import Array
from fdrsvm.core.files import write_together
from fdrsvm.core.losses import LOSSES
from fdrsvm.core.plain_json import encode, plain
from fdrsvm.data.contract import FeatureContract, check_all_clients
from fdrsvm.deploy.run_folder import (
    AUDIT,
    CERTIFICATE,
    CHECKPOINTS,
    MODEL,
    RunRecord,
    check_output,
    claimed,
    room_for_failure,
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
from fdrsvm.federated.audit import AuditLog, round_event
from fdrsvm.federated.checkpoint import CheckpointFolder
from fdrsvm.federated.joining import Introduction, Label, Task
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.methods import OneVsRest
from fdrsvm.federated.rounds import Result, RoundRecord, Transport, run_rounds
from fdrsvm.model.model_file import model_bytes

if TYPE_CHECKING:
    from fdrsvm.federated.secure.secure_sums import SecureSum


_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


class GreetingTransport(Transport, Protocol):
    """A transport whose clients introduce themselves, and are told a task."""

    task: Task

    def greet(self) -> Sequence[Introduction]:
        """Who takes part, always in the same order."""


@dataclass(frozen=True)
class Agreement:
    """What all clients have in common."""

    classes: tuple[Label, ...]
    feature_names: tuple[str, ...]
    contract: str

    @property
    def n_models(self) -> int:
        """One for two classes, else one per class."""
        return 1 if len(self.classes) == 2 else len(self.classes)


def agree(introductions: Sequence[Introduction]) -> Agreement:
    """What the clients have in common, or a ClientError that names the one that differs."""
    first = introductions[0]
    for other in introductions:
        if other.release != __version__:
            raise ClientError(
                other.client_id,
                0,
                f"it has fdr-svm {other.release}, the server {__version__}; install the same",
            )
        if other.profile.n_features != first.profile.n_features:
            raise ClientError(
                other.client_id,
                0,
                f"it has {other.profile.n_features} features and {first.client_id!r} has "
                f"{first.profile.n_features}; give all the same contract",
            )
        if other.feature_names != first.feature_names:
            column = _first_difference(other.feature_names, first.feature_names)
            raise ClientError(
                other.client_id,
                0,
                f"its column {column} is {other.feature_names[column]!r} and that of "
                f"{first.client_id!r} {first.feature_names[column]!r}; use a contract, which puts "
                "columns in order",
            )
        if other.contract != first.contract:
            raise ClientError(
                other.client_id,
                0,
                f"its data contract is not that of {first.client_id!r}; send all the same file",
            )
    classes = check_all_clients({one.client_id: list(one.labels) for one in introductions})
    return Agreement(classes, first.feature_names, first.contract)


def check_contract(introductions: Sequence[Introduction], contract: FeatureContract) -> None:
    """Whether all clients have the server's own contract; a ClientError names one that has not."""
    for one in introductions:
        if one.contract != contract.fingerprint:
            found = "is not the server's" if one.contract else "is missing"
            raise ClientError(
                one.client_id, 0, f"its data contract {found}; send it the file that the server has"
            )


def check_profile(introduction: Introduction, task: Task) -> None:
    """Whether what a client says of itself follows from the task, or a ClientError that names it.

    Lower bounds rest on the floor: it must be the radius times the loss's Lipschitz constant, or 0
    on a box, and nothing that a client may choose.
    """
    profile, n_rows = introduction.profile, introduction.n_rows
    lipschitz = float(LOSSES[task.loss].lipschitz)
    floor = profile.epsilon * lipschitz if task.support == "none" else 0.0
    n_limits = len(task.feature_limit) if isinstance(task.feature_limit, tuple) else 0
    rules = (
        (profile.norm == task.norm, f"its norm is {profile.norm}, the run's {task.norm}"),
        (
            profile.fit_intercept == task.fit_intercept,
            f"fit-intercept is {profile.fit_intercept} there and {task.fit_intercept} in the run",
        ),
        (
            profile.floor == floor,
            f"its floor is {profile.floor!r}; from its radius {profile.epsilon!r}, the loss and "
            f"the support follows {floor!r}",
        ),
        (
            profile.n_samples <= n_rows if task.merge else profile.n_samples == n_rows,
            f"it says that it has {profile.n_samples} samples in {n_rows} rows",
        ),
        (
            n_limits in (0, profile.n_features),
            f"it has {profile.n_features} features and feature-limit is for {n_limits}",
        ),
    )
    for holds, words in rules:
        if not holds:
            raise ClientError(introduction.client_id, 0, words)


def _first_difference(left: Sequence[str], right: Sequence[str]) -> int:
    return next(k for k, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)


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


def train(
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
            return _train_and_log(make_transport, settings, folder, tell)


def _train_and_log(
    make_transport: Callable[[AuditLog], GreetingTransport],
    settings: RunSettings,
    folder: Path,
    tell: Callable[[str], None],
) -> Result:
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
        return _train(make_transport(audit), settings, folder, audit, tell)
    except Exception as error:
        reason = _in_words(error, folder)
        try:
            audit({"event": "failed", "error": type(error).__name__, "reason": reason})
        except OSError:  # the disk is full, which may be the very reason
            write_failure(folder, reason)
        raise


def _in_words(error: Exception, folder: Path) -> str:
    """Of a disk that takes nothing more what it means for the run, with the file if it is known."""
    if isinstance(error, FDRSVMError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return (
            f"the server cannot write {error.filename or f'in {folder}'}: {error.strerror}; make "
            "room there, then `fdrsvm federation resume` goes on"
        )
    return repr(error)


def _train(
    transport: GreetingTransport,
    settings: RunSettings,
    folder: Path,
    audit: AuditLog,
    tell: Callable[[str], None],
) -> Result:
    record = _record(folder, settings)
    introductions = transport.greet()
    agreement = agree(introductions)
    contract = settings.read_contract()
    if contract is not None:
        check_contract(introductions, contract)
    for one in introductions:
        check_profile(one, transport.task)
        settings.check_radius(one.client_id, one.profile.epsilon, one.n_rows)
    transport.task = replace(transport.task, classes=agreement.classes)
    if record is None:
        record = RunRecord(uuid.uuid4().hex, settings.to_config(), transport.task)
        record.write(folder)
    record.check_task(transport.task)
    names = [one.client_id for one in introductions]
    tell(f"{len(names)} clients: {', '.join(names)}; classes {list(agreement.classes)}")
    checkpoints = CheckpointFolder(folder / CHECKPOINTS)
    resumed = checkpoints.latest(record.run_id) if settings.resume else None
    if settings.resume:
        _tell_resumed(resumed, audit, tell)
        if resumed is None:  # clients may be rounds ahead, and would not answer the first again
            record = replace(record, run_id=uuid.uuid4().hex)
            record.write(folder)
    estimator = settings.estimator()
    method: Any = estimator._method()
    if agreement.n_models > 1:
        method = OneVsRest(method, agreement.n_models, settings.tol)
    reach: Transport = transport
    limits = settings.limits(len(agreement.feature_names))
    weights, quorum = _weights(settings, introductions), settings.quorum or None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("always", LeftOutWarning)
        if settings.secure_aggregation:
            reach = sums = _secure_sum(transport, settings, weights, limits, audit)
            method, weights, quorum = sums.method(method), np.ones(1), None
        result = run_rounds(
            reach,
            method,
            max_rounds=settings.max_rounds,
            tol=settings.tol,
            client_weights=weights,
            quorum=quorum,
            deadline=settings.deadline,
            on_fault=settings.on_fault,  # type: ignore[arg-type]
            leave_out_after=settings.leave_out_after or None,
            callbacks=[_RoundTeller(audit, tell)],
            checkpoint=checkpoints,
            resume=resumed,
            run_id=record.run_id,
            limits=limits,
        )
    for warning in caught:
        tell(f"warning: {warning.message}")
    _write_results(result, estimator, agreement, names, folder, audit, caught)
    tell(
        f"{result.reason.value} after {result.n_rounds} rounds: worst-case risk "
        f"{result.objective:.6g}, certified gap {result.gap:.1e}; model in {folder / MODEL}"
    )
    return result


def _secure_sum(
    transport: GreetingTransport,
    settings: RunSettings,
    weights: Array,
    limits: Limits,
    audit: AuditLog,
) -> SecureSum:
    """The clients as one; an extra is needed for it."""
    from fdrsvm.federated.secure.secure_sums import SecureSum

    return SecureSum(
        transport,
        weights,
        quorum=settings.quorum or None,
        on_fault=settings.on_fault,  # type: ignore[arg-type]
        limits=limits,
        listener=audit,
        leave_out_after=settings.leave_out_after or None if settings.on_fault == "drop" else None,
    )


def _record(folder: Path, settings: RunSettings) -> RunRecord | None:
    """Of the run to be resumed; None if it is new."""
    if not settings.resume:
        return None
    record = RunRecord.read(folder)
    if record is not None:
        record.check_settings(settings)
    elif (folder / CHECKPOINTS).exists():
        raise InvalidInputError(
            "resume", "the run must have kept its settings", f"there is no run.json in {folder}"
        )
    return record


def _tell_resumed(resumed: Any, audit: AuditLog, tell: Callable[[str], None]) -> None:
    if resumed is None:
        tell("no checkpoint to resume: the run starts from the beginning")
        return
    audit({"event": "resumed", "run": resumed.run_id, "round": resumed.round})
    tell(f"resumed after round {resumed.round}")


def _weights(settings: RunSettings, introductions: Sequence[Introduction]) -> Array:
    """As the estimators have them: "samples" counts rows, equal ones each."""
    if settings.client_weights == "equal":
        return np.ones(len(introductions))
    return np.array([float(one.n_rows) for one in introductions])


class _RoundTeller:
    """One line per round, for people and for the audit log; and who is left out, once."""

    def __init__(self, audit: AuditLog, tell: Callable[[str], None]) -> None:
        self.audit = audit
        self.tell = tell
        self.left_out: frozenset[str] = frozenset()

    def __call__(self, record: RoundRecord, model: Array) -> None:
        self.audit(round_event(record, model))
        faults = f", faults: {'; '.join(record.faults)}" if record.faults else ""
        self.tell(
            f"round {record.round}: worst-case risk {record.objective:.6g}, certified gap "
            f"{record.gap:.1e}, {record.n_answers} answers, {record.seconds:.1f} s{faults}"
        )
        new = sorted(set(record.left_out) - self.left_out)
        if new:
            self.left_out = frozenset(record.left_out)
            self.tell(f"from now on without {', '.join(new)}: the certificate is the others'")


def _write_results(
    result: Result,
    estimator: Any,
    agreement: Agreement,
    names: Sequence[str],
    folder: Path,
    audit: AuditLog,
    warned: Sequence[warnings.WarningMessage],
) -> None:
    estimator.n_features_in_ = len(agreement.feature_names)
    estimator.feature_names_in_ = np.array(agreement.feature_names, dtype=object)
    estimator._set_result(result, np.array(agreement.classes), np.array(names))
    model = estimator._linear_model()
    certificate = {
        "model_sha256": model.fingerprint,
        "contract": agreement.contract,
        "release": __version__,
        "run": result.run_id,
        "clients": list(names),
        **model.certificate,
    }
    text = json.dumps(encode(plain(certificate, "certificate")), indent=2, sort_keys=True)
    write_together(  # a model without its certificate is worth nothing
        (folder / MODEL, model_bytes(model)),
        (folder / CERTIFICATE, text.encode() + b"\n"),
    )
    if not np.isfinite(result.objective):
        raise InvalidInputError(
            "quorum",
            "some model must have been evaluated by every client for a certificate",
            "none was; the newest is in the model file without one",
        )
    audit(
        {
            "event": "end",
            "run": result.run_id,
            "reason": result.reason.value,
            "rounds": result.n_rounds,
            "objective": result.objective,
            "lower_bound": result.lower_bound,
            "gap": result.gap,
            "left_out": dict(result.left_out),
            "warnings": [str(one.message) for one in warned],
            "is_above_tol": any(issubclass(one.category, ConvergenceWarning) for one in warned),
            "model_sha256": model.fingerprint,
            "file_sha256": hashlib.sha256((folder / MODEL).read_bytes()).hexdigest(),
        }
    )
