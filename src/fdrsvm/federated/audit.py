"""The audit log: one JSON object per line, who took part in which round and what was exchanged.

Sizes, hashes, times and faults; no model and no value of any client's data. Lines are added as
things happen and are on disk before the run goes on, so that a run that is cut off has its log.

event      when, and what it holds besides the time
start      method, run that is gone on with and its round, if any
joined     client, and how many samples and features it says it has
answer     round, client, bytes and SHA-256 of what was sent to it and of what it sent
fault      the same without an answer, and why there is none: the words of a transport, or the kind
           of a client's error, since its text may hold a value
rejected   round, client, and the rule that its answer broke
round      the round's record, with who is left out, and the SHA-256 of the newest model
end        why it stopped, certificate, who was left out after which round, SHA-256 of the model
failed     the kind of error that ended it; a client's name and the round, if it is to blame

That is what ``run_audited`` writes; a transport that talks to other machines has more to tell.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fdrsvm.core.arrays import Array
from fdrsvm.core.files import PathLike, append_whole, read_capped
from fdrsvm.core.plain_json import text_if_infinite
from fdrsvm.errors import ClientError, InvalidInputError, QuorumError
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, encode
from fdrsvm.federated.methods.method import Algorithm, describe
from fdrsvm.federated.rounds import Failure, Result, RoundRecord, Snapshot, Transport, run_rounds

_MAX_BYTES = 1 << 30


class AuditLog:
    """Adds events to a file; a callable, as transports take a listener."""

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, event: Mapping[str, Any]) -> None:
        """One more line, with the time; infinite numbers are text, since JSON has none."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        strict = {name: text_if_infinite(value) for name, value in event.items()}
        line = json.dumps({"time": now, **strict}, sort_keys=True, default=str)
        is_answer = event.get("event") == "answer"  # on disk with the record of its round
        append_whole(self.path, f"{line}\n".encode(), on_disk=not is_answer)


def read_audit(path: Path) -> Iterator[dict[str, Any]]:
    """The events; a last line that was cut off is passed over."""
    if not path.exists():
        return
    for line in read_capped(path, _MAX_BYTES).decode("utf-8", "replace").splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def round_event(record: RoundRecord, model: Array) -> dict[str, Any]:
    """A round in numbers; of the model only its hash."""
    columns = {name: value for name, value in asdict(record).items() if name != "residuals"}
    return {"event": "round", **columns, "sha256_model": _sha256_of(model)}


def end_event(result: Result) -> dict[str, Any]:
    """A run that has ended, in numbers."""
    return {
        "event": "end",
        "run": result.run_id,
        "reason": result.reason.value,
        "rounds": result.n_rounds,
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "left_out": dict(result.left_out),
    }


def run_audited(
    path: PathLike, transport: Transport, algorithm: Algorithm[Any], **settings: Any
) -> Result:
    """:func:`fdrsvm.federated.run_rounds`, with an audit log.

    ``path`` is that of the log; a file that is there is added to. Everything else, the result
    included, is as for ``run_rounds``.
    """
    log = AuditLog(path)
    witness = _Witness(transport, log)
    resumed: Snapshot | None = settings.get("resume")
    log(
        {
            "event": "start",
            "method": describe(algorithm),
            "resumed_run": resumed.run_id if resumed else None,
            "resumed_after": resumed.round if resumed else 0,
        }
    )
    settings["callbacks"] = [witness.after_round, *settings.get("callbacks", ())]
    settings["stacklevel"] = settings.get("stacklevel", 1) + 1
    try:
        result = run_rounds(witness, algorithm, **settings)
    except Exception as error:
        witness.after_failure(error)
        raise
    log({**end_event(result), "sha256_model": _sha256_of(result.model)})
    return result


class _Witness:
    """A transport that passes everything on, and writes down what passed."""

    def __init__(self, inner: Transport, log: AuditLog) -> None:
        self.inner = inner
        self.gives_sums: bool = getattr(inner, "gives_sums", False)
        self.log = log
        self._answered: list[str] = []  # in the last exchange

    @property
    def left_out(self) -> dict[str, int]:
        """Whom sums go on without."""
        left_out: dict[str, int] = getattr(self.inner, "left_out", {})
        return left_out

    def join(self) -> Sequence[ClientProfile]:
        profiles = self.inner.join()
        for profile in profiles:
            counts = {"n_samples": profile.n_samples, "n_features": profile.n_features}
            self.log({"event": "joined", "client": profile.client_id, **counts})
        return profiles

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        answers = self.inner.exchange(broadcasts, deadline)
        self._answered = []
        for broadcast, answer in zip(broadcasts, answers, strict=True):
            sent = {"round": broadcast.round, "client": broadcast.client_id}
            sent |= _measured(broadcast, "down")
            if isinstance(answer, Failure):
                fault = {"reason": self._reason(answer), "is_missing": answer.is_missing}
                self.log({"event": "fault", **sent, **fault})
            else:
                self._answered.append(broadcast.client_id)
                self.log({"event": "answer", **sent, **_measured(answer, "up")})
        return answers

    def _reason(self, failure: Failure) -> str:
        """A transport's words, or the kind of a client's error: its text may hold a value."""
        reason = failure.reason
        if not failure.is_missing:
            kind = reason.partition(":")[0]
            reason = kind if kind.isidentifier() else "an error at the client"
        # Of a sum: who was missing, with the words of their errors, stands in brackets.
        return reason.partition(" (")[0] if self.gives_sums else reason

    def after_round(self, record: RoundRecord, model: Array) -> None:
        """A callback of ``run_rounds``."""
        self._rejected(record.round, record.faults)
        # The text of other faults may hold a value; each has a line of its own by now.
        self.log({**round_event(record, model), "faults": len(record.faults)})

    def after_failure(self, error: Exception) -> None:
        blamed = {}
        if isinstance(error, ClientError):
            self._rejected(error.round, [f"{error.client_id}: {error.reason}"])
            blamed = {"client": error.client_id, "round": error.round}
        elif isinstance(error, QuorumError):
            self._rejected(error.round, error.faults)
            blamed = {"n_answers": error.n_answers, "quorum": error.quorum, "round": error.round}
        self.log({"event": "failed", "error": type(error).__name__, **blamed})

    def _rejected(self, round_: int, faults: Iterable[str]) -> None:
        """Faults of clients that did answer: the words are those of the rules they broke."""
        for client_id in self._answered:
            for fault in faults:
                if fault.startswith(f"{client_id}: "):
                    rule = fault.removeprefix(f"{client_id}: ")
                    event = {"event": "rejected", "round": round_, "client": client_id}
                    self.log({**event, "reason": rule})


def _measured(message: Broadcast | Update, way: str) -> dict[str, Any]:
    """Bytes and SHA-256 of a message; none of an answer that is to be rejected for its form."""
    try:
        data = encode(message)
    except (InvalidInputError, AttributeError, TypeError):
        return {f"bytes_{way}": None, f"sha256_{way}": None}
    return {f"bytes_{way}": len(data), f"sha256_{way}": hashlib.sha256(data).hexdigest()}


def _sha256_of(model: Array) -> str:
    return hashlib.sha256(model.astype("<f8").tobytes()).hexdigest()
