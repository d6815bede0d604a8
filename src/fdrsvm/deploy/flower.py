"""Messages over Flower: records in and out, and a wait that always ends.

Nothing is computed here. A message is one config record; the payload in it is the bytes of
:mod:`fdrsvm.federated.messages`, so that results have the same bits as in one process. Clients are
known by the name that they give themselves, never by Flower's node number, which changes with a
node that comes back without a key. Answers are handed over in the order of the broadcasts,
whatever order they arrive in.

Steps are idempotent, so a message that got lost with its node is simply sent again: when the node
is back, or when nothing has been heard for long.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict

from fdrsvm.errors import ClientError, CorruptDataError, InvalidInputError, QuorumError
from fdrsvm.federated.joining import Introduction, Request, Response, Task, decode_introduction
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, decode_update, encode
from fdrsvm.federated.rounds import Failure

_RECORD = "fdrsvm"
_KINDS = {"request": ("greeting", "round"), "response": ("introduction", "update", "error")}
# Flower's error codes: the message or its node is gone, so that another try can help.
_LOST = {
    3: "the message was lost",
    4: "its answer was lost",
    5: "its node is not connected",
    8: "its process was ended before it answered",
}
_NO_APP = {
    1: "its node could not load the app: install the same fdr-svm and flwr there as here",
    7: "its node did not accept the app's signature",
}
_MAX_LOSSES = 5
_GRACE = 10.0
_SHORTEST, _LONGEST = 10.0, 86_400.0  # for which a message can be fetched
# No method's update holds more numbers than this a model and feature; the rest is room for headers.
_MOST_NUMBERS, _HEADERS = 32, 1 << 20

Listener = Callable[[Mapping[str, Any]], None]


def request_to_records(request: Request) -> RecordDict:
    """A request as Flower carries it."""
    return RecordDict({_RECORD: ConfigRecord(dict(vars(request)))})


def request_from_records(records: RecordDict) -> Request:
    """The request that ``request_to_records`` wrote, or a CorruptDataError."""
    types = {"kind": str, "release": str, "task": str, "payload": bytes, "has_answered": bool}
    return Request(**_fields(records, "request", types))


def response_to_records(response: Response) -> RecordDict:
    """A response as Flower carries it."""
    return RecordDict({_RECORD: ConfigRecord(dict(vars(response)))})


def response_from_records(records: RecordDict) -> Response:
    """The response that ``response_to_records`` wrote, or a CorruptDataError."""
    types = {"kind": str, "client_id": str, "reason": str, "payload": bytes}
    return Response(**_fields(records, "response", types))


def _fields(records: RecordDict, what: str, types: Mapping[str, type]) -> dict[str, Any]:
    record = records.config_records.get(_RECORD)
    found = {} if record is None else dict(record)
    if {name: type(value) for name, value in found.items()} != types:
        raise CorruptDataError(f"{what}: its record has the fields {sorted(found)}")
    if found["kind"] not in _KINDS[what]:
        raise CorruptDataError(f"{what}: its kind is {found['kind']!r}")
    return found


@dataclass
class _Errand:
    """One broadcast on its way: to whom, since when, and under which of Flower's message ids."""

    broadcast: Broadcast
    data: bytes
    started: float
    sent_at: float = 0.0
    sent_to: str = ""  # the node and when it last started, "" if it has to be sent (again)
    message_ids: set[str] = field(default_factory=set)
    losses: list[str] = field(default_factory=list)
    ended: float = 0.0


class FlowerTransport:
    """Clients behind Flower's grid.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        As a ServerApp gets it.
    release : str
        Of this package; clients refuse another one.
    task : Task
        What clients solve; ``greet`` sends it without classes, which are set afterwards.
    expected : sequence of str
        Names of the clients that must take part; others are left out. Empty: whoever answers.
    n_clients : int
        Without ``expected``, how many clients to wait for; 0 is everybody connected at the start.
    join_deadline : float
        Seconds to wait for them.
    listener : callable, optional
        Is told who joined, what was sent and answered, and every fault, for an audit log.
    poll, resend_after : float
        Seconds between two looks for answers, and after which silence a message is sent again.
    """

    def __init__(
        self,
        grid: Any,
        *,
        release: str,
        task: Task,
        expected: Sequence[str] = (),
        n_clients: int = 0,
        join_deadline: float = 120.0,
        listener: Listener | None = None,
        poll: float = 0.1,
        look_around: float = 2.0,
        resend_after: float = 120.0,
    ) -> None:
        self.grid = grid
        self.release = release
        self.task = task
        self.expected = tuple(expected)
        self.n_clients = n_clients
        self.join_deadline = join_deadline
        self.poll = poll
        self.look_around = look_around
        self.resend_after = resend_after
        self.introductions: dict[str, Introduction] = {}
        self._tell: Listener = listener if listener is not None else _nobody
        self._node_of: dict[str, int] = {}
        self._greeted: dict[str, int] = {}  # by message id
        self._refused: dict[int, tuple[str, str]] = {}
        self._key_names: dict[int, str] = {}  # whose key a node has, as the server registered it
        self._absent: set[str] = set()
        self._has_started = False
        self._answered: set[str] = set()  # in this run, all of them if it was resumed

    # Joining

    def greet(self) -> Sequence[Introduction]:
        """Asks every node who it is, until all clients are there; sorted by name.

        Raises
        ------
        QuorumError
            With the names of those who are missing, or their number, after ``join_deadline``.
        ClientError
            If a client is there and cannot take part, with its reason.
        InvalidInputError
            If two nodes have one name.
        """
        start = time.monotonic()
        end = start + self.join_deadline
        next_look, wanted = 0.0, self.n_clients
        while True:
            now = time.monotonic()
            if now >= next_look:
                nodes = self._nodes()
                self._greet_new(nodes)
                next_look = now + self.look_around
                if not self.expected and not self.n_clients:
                    wanted = max(wanted, len(nodes))
            self._take_introductions()
            missing = self._missing(wanted)
            # Whoever is connected is heard first: it may have a name that is taken.
            if not missing and (not self._greeted or now >= min(start + _GRACE, end)):
                return self._in_order()
            self._check_refused(wanted)
            if now >= end:
                n_wanted = len(self.expected) or max(wanted, 1)
                refused = (f"{name}: {reason}" for name, reason in self._refused.values())
                raise QuorumError(0, len(self._node_of), n_wanted, (*missing, *refused))
            time.sleep(self.poll)

    def join(self) -> Sequence[ClientProfile]:
        """The clients, sorted by name."""
        found = self._in_order() if self._node_of else self.greet()
        return [introduction.profile for introduction in found]

    def _in_order(self) -> list[Introduction]:
        return [self.introductions[name] for name in sorted(self._node_of)]

    def _missing(self, wanted: int) -> tuple[str, ...]:
        """What is still to be waited for, in words."""
        if self.expected:
            return tuple(
                f"{name}: not connected, or its node does not answer"
                for name in sorted(set(self.expected) - set(self._node_of))
            )
        lacking = max(wanted, 1) - len(self._node_of)
        return (f"{lacking} more nodes were to connect and answer",) if lacking > 0 else ()

    def _check_refused(self, wanted: int) -> None:
        """There is no point in waiting for a client that is there and cannot take part."""
        for name, reason in self._refused.values():
            is_needed = (
                name in self.expected and name not in self._node_of
                if self.expected
                else len(self._node_of) + len(self._refused) >= max(wanted, 1)
            )
            if is_needed and self._missing(wanted):
                raise ClientError(name, 0, reason)

    def _nodes(self) -> dict[int, str]:
        """Nodes that are connected, each with when it last started."""
        nodes = list(self.grid.get_nodes())
        self._key_names.update({node.node_id: str(node.name) for node in nodes})
        return {node.node_id: str(node.last_activated_at) for node in nodes}

    def _greet_new(self, nodes: Mapping[int, str]) -> None:
        known = {*self._node_of.values(), *self._greeted.values(), *self._refused}
        request = Request("greeting", self.release, self.task.to_json())
        new = sorted(set(nodes) - known)
        ids = self._push([_message(request, one, "join", self.join_deadline) for one in new])
        self._greeted.update({i: one for i, one in zip(ids, new, strict=True) if i is not None})

    def _take_introductions(self) -> None:
        if not self._greeted:
            return
        for reply in self.grid.pull_messages(list(self._greeted)):
            node_id = self._greeted.pop(reply.metadata.reply_to_message_id, None)
            if node_id is None or (reply.has_error() and reply.error.code in _LOST):
                continue  # greeted again if it is still there
            name, reason = self._introduce(reply, node_id)
            if reason is not None:
                self._refused[node_id] = (name, reason)
                self._tell({"event": "refused", "client": name, "node": node_id, "reason": reason})

    def _introduce(self, reply: Message, node_id: int) -> tuple[str, str | None]:
        """Takes a client in; its name, and why not if so. A key says more than a client does."""
        owner = self._key_names.get(node_id)
        name = owner or f"node {node_id}"
        if reply.has_error():
            return name, _flower_error(reply)
        try:
            response = response_from_records(reply.content)
            name = owner or response.client_id or name
            if response.kind != "introduction":
                return name, response.reason or f"it sent {response.kind!r} to a greeting"
            introduction = decode_introduction(response.payload)
        except CorruptDataError as error:
            return name, str(error)
        if owner and owner != introduction.client_id:
            other = introduction.client_id
            return owner, f"it calls itself {other!r}; set the client-id that belongs to its key"
        if self.expected and introduction.client_id not in self.expected:
            return name, "it is not one of this run's clients"
        return name, self._admit(introduction, node_id)

    def _admit(self, introduction: Introduction, node_id: int) -> str | None:
        name = introduction.client_id
        is_new = name not in self.introductions
        if not is_new and not self._may_replace(name, introduction):
            if not self._has_started:
                raise InvalidInputError(
                    f"client-id {name!r}",
                    "every node must have one of its own",
                    f"nodes {self._node_of[name]} and {node_id} both have it; stop one of them",
                )
            return f"node {self._node_of[name]} has this client-id already"
        self.introductions[name], self._node_of[name] = introduction, node_id
        self._tell(
            {
                "event": "joined" if is_new else "rejoined",
                "client": name,
                "node": node_id,
                "release": introduction.release,
                "n_rows": introduction.n_rows,
                "n_features": introduction.profile.n_features,
                "contract": introduction.contract,
            }
        )
        return None

    def _may_replace(self, name: str, introduction: Introduction) -> bool:
        """Whether a node may take over a client: its old node is gone, its data are the same."""
        return (
            self._node_of[name] not in self._nodes()
            and introduction.profile == self.introductions[name].profile
        )

    # Rounds

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        """One answer for each broadcast, in their order, within ``deadline`` seconds."""
        if not self._has_started and broadcasts[0].round > 1:
            self._answered.update(self._node_of)
        self._has_started = True
        start = time.monotonic()
        end = float("inf") if deadline is None else start + deadline
        errands = {b.client_id: _Errand(b, encode(b), start) for b in broadcasts}
        answers: dict[str, Update | Failure] = {}
        next_look = 0.0
        while len(answers) < len(errands):
            waiting = {name: e for name, e in errands.items() if name not in answers}
            now = time.monotonic()
            if now >= next_look:
                self._send_out(waiting, self._nodes(), now, end)
                next_look = now + self.look_around
            # Who was missing last time and is still not connected is not waited for.
            gone = {name for name in waiting if name in self._absent and not waiting[name].sent_to}
            if now >= end or gone == set(waiting):
                break
            found = self._collect(waiting)
            answers.update(found)
            for name in found:
                errands[name].ended = time.monotonic()
            if len(answers) < len(errands):  # to look all the time would slow simulated clients
                time.sleep(min(self.poll, max(end - now, 0.0)))
        for name, errand in errands.items():
            if name not in answers:
                errand.ended = time.monotonic()
                answers[name] = Failure(name, _silence(errand, deadline), is_missing=True)
            self._record(errand, answers[name])
        self._answered |= {name for name, a in answers.items() if isinstance(a, Update)}
        self._absent = {
            name for name, a in answers.items() if isinstance(a, Failure) and a.is_missing
        }
        return [answers[broadcast.client_id] for broadcast in broadcasts]

    def _send_out(
        self, waiting: Mapping[str, _Errand], nodes: Mapping[int, str], now: float, end: float
    ) -> None:
        """Sends what was not sent, or is overdue, or went to a node that has restarted since."""
        if any(self._node_of[name] not in nodes for name in waiting):
            self._greet_new(nodes)  # a client without a key comes back as another node
        self._take_introductions()
        task = self.task.to_json()
        ttl = min(max(end - now, _SHORTEST), _LONGEST)
        due: list[tuple[_Errand, str, Message]] = []
        for name, errand in waiting.items():
            node_id = self._node_of[name]
            there = f"{node_id} {nodes[node_id]}" if node_id in nodes else ""
            patience = self.resend_after * 2.0 ** max(len(errand.message_ids) - 1, 0)
            overdue = now - errand.sent_at > patience
            if not there or (errand.sent_to == there and not overdue):
                continue
            has_answered = name in self._answered
            request = Request("round", self.release, task, errand.data, has_answered)
            message = _message(request, node_id, str(errand.broadcast.round), ttl)
            due.append((errand, there, message))
        ids = self._push([message for _, _, message in due])
        for (errand, there, _), message_id in zip(due, ids, strict=True):
            if message_id is not None:
                errand.message_ids.add(message_id)
                errand.sent_to, errand.sent_at = there, now

    def _collect(self, waiting: Mapping[str, _Errand]) -> dict[str, Update | Failure]:
        """What has arrived."""
        owners = {i: name for name, errand in waiting.items() for i in errand.message_ids}
        found: dict[str, Update | Failure] = {}
        if not owners:
            return found
        for reply in self.grid.pull_messages(list(owners)):
            message_id = reply.metadata.reply_to_message_id
            name = owners.get(message_id)
            if name is None or name in found:
                continue
            errand = waiting[name]
            errand.message_ids.discard(message_id)
            if reply.has_error() and reply.error.code in _LOST:
                errand.losses.append(_LOST[reply.error.code])
                if not errand.message_ids:
                    errand.sent_to = ""
                if len(errand.losses) >= _MAX_LOSSES:
                    found[name] = Failure(name, _silence(errand, None), is_missing=True)
                continue
            found[name] = _read_answer(reply, name, self._max_bytes)
        return found

    @property
    def _max_bytes(self) -> int:
        """Of an update; larger ones are not even decoded."""
        width = 1 + max(one.profile.n_features for one in self.introductions.values())
        return _HEADERS + 8 * _MOST_NUMBERS * width * max(1, len(self.task.classes))

    def _push(self, messages: Sequence[Message]) -> list[str | None]:
        """Flower's id of each message, None where it was not taken; one request for all."""
        # Not by position: Flower's simulation leaves out those that it did not take.
        taken = set(self.grid.push_messages(messages)) if messages else set()
        ids = [message.metadata.message_id for message in messages]
        return [one if one in taken else None for one in ids]

    def _record(self, errand: _Errand, answer: Update | Failure) -> None:
        event: dict[str, Any] = {
            "event": "answer",
            "round": errand.broadcast.round,
            "client": errand.broadcast.client_id,
            "bytes_down": len(errand.data),
            "sha256_down": hashlib.sha256(errand.data).hexdigest(),
        }
        if isinstance(answer, Failure):
            event.update(event="fault", reason=answer.reason, is_missing=answer.is_missing)
        else:
            data = encode(answer)
            event.update(bytes_up=len(data), sha256_up=hashlib.sha256(data).hexdigest())
        event["seconds"] = round(errand.ended - errand.started, 3)
        event["losses"] = errand.losses
        self._tell(event)


def _message(request: Request, node_id: int, group: str, ttl: float) -> Message:
    """To a node; nobody can fetch it after ``ttl`` seconds."""
    return Message(request_to_records(request), node_id, "train", group_id=group, ttl=ttl)


def _read_answer(reply: Message, name: str, max_bytes: int) -> Update | Failure:
    if reply.has_error():
        return Failure(name, _flower_error(reply))
    try:
        response = response_from_records(reply.content)
        if response.kind == "error":
            return Failure(name, response.reason or "it failed and gave no reason")
        return decode_update(response.payload, max_bytes=max_bytes)
    except CorruptDataError as error:
        return Failure(name, str(error))


def _flower_error(reply: Message) -> str:
    code, reason = reply.error.code, reply.error.reason
    return _NO_APP.get(code) or f"Flower reports error {code}: {reason}"


def _silence(errand: _Errand, deadline: float | None) -> str:
    """Why there is no answer, as far as is known."""
    seen = f" ({', then '.join(errand.losses[-3:])})" if errand.losses else ""
    if not errand.sent_to and not errand.losses:
        return "its node is not connected"
    if deadline is None:
        return f"no answer after {len(errand.losses)} tries{seen}"
    return f"no answer within {deadline:g} s{seen}"


def _nobody(event: Mapping[str, Any]) -> None:
    """Listens to nothing."""
