"""Messages over Flower: records in and out, and a wait that ends at the deadline.

Nothing is computed here. A message is one config record with the fields of a request or response;
the payload in it is the bytes of :mod:`fdrsvm.federated.messages`, so that results have the same
bits as in one process. Clients are known by the name that they give themselves, never by Flower's
node number, which changes with a node that comes back without a key. Answers are handed over in the
order of the broadcasts, whatever order they arrive in.

Steps are idempotent, so a message that got lost with its node is simply sent again: when the node
is back, or when nothing has been heard for long.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar

from flwr.app import ConfigRecord, Message, RecordDict

from fdrsvm import __version__
from fdrsvm.errors import ClientError, CorruptDataError, InvalidInputError, QuorumError
from fdrsvm.federated.joining import Introduction, Request, Response, Task, decode_introduction
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, decode_update, encode
from fdrsvm.federated.moments import LARGEST_WIDTH
from fdrsvm.federated.rounds import Failure

_RECORD = "fdrsvm"
_KINDS = {Request: ("greeting", "round"), Response: ("introduction", "update", "error")}
_TYPES = {
    Request: {"kind": str, "release": str, "task": str, "payload": bytes, "has_answered": bool},
    Response: {"kind": str, "client_id": str, "reason": str, "payload": bytes},
}
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
# No method's update holds more numbers than this per model and feature; the rest is for headers.
_MOST_NUMBERS, _HEADERS = 32, 1 << 20

Listener = Callable[[Mapping[str, Any]], None]
_Message = TypeVar("_Message", Request, Response)


def to_records(message: Request | Response) -> RecordDict:
    """A request or response as Flower carries it."""
    return RecordDict({_RECORD: ConfigRecord(dict(vars(message)))})


def from_records(records: RecordDict, kind: type[_Message]) -> _Message:
    """The request or response that ``to_records`` wrote, or a CorruptDataError."""
    what = kind.__name__.lower()
    record = dict(records.config_records.get(_RECORD) or {})
    if {name: type(each) for name, each in record.items()} != _TYPES[kind]:
        raise CorruptDataError(f"{what}: its record has the fields {sorted(record)}")
    if record["kind"] not in _KINDS[kind]:
        raise CorruptDataError(f"{what}: its kind is {record['kind']!r}")
    return kind(**record)  # type: ignore[arg-type]


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

    def silence(self, deadline: float | None) -> Failure:
        """Why there is no answer, as far as is known."""
        seen = f" ({', then '.join(self.losses[-3:])})" if self.losses else ""
        if not self.sent_to and not self.losses:
            reason = "its node is not connected"
        elif deadline is None:
            reason = f"no answer after {len(self.losses)} tries{seen}"
        else:
            reason = f"no answer within {deadline:g} s{seen}"
        return Failure(self.broadcast.client_id, reason, is_missing=True)

    def event(self, answer: Update | Failure) -> dict[str, Any]:
        """For the audit log: sizes and fingerprints, no content."""
        event: dict[str, Any] = {
            "event": "answer",
            "round": self.broadcast.round,
            "client": self.broadcast.client_id,
            "bytes_down": len(self.data),
            "sha256_down": hashlib.sha256(self.data).hexdigest(),
        }
        if isinstance(answer, Failure):
            event.update(event="fault", reason=answer.reason, is_missing=answer.is_missing)
        else:
            data = encode(answer)
            event.update(bytes_up=len(data), sha256_up=hashlib.sha256(data).hexdigest())
        event["seconds"] = round(self.ended - self.started, 3)
        event["losses"] = self.losses
        return event


@dataclass(eq=False)
class FlowerTransport:
    """Clients behind Flower's grid.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        As a ServerApp gets it.
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
    poll, look_around, resend_after : float
        Seconds between two looks for answers, between two looks at who is connected, and of silence
        after which a message is sent again.
    """

    grid: Any
    _: KW_ONLY
    task: Task
    expected: Sequence[str] = ()
    n_clients: int = 0
    join_deadline: float = 120.0
    listener: Listener = lambda _: None
    poll: float = 0.1
    look_around: float = 2.0
    resend_after: float = 120.0

    def __post_init__(self) -> None:
        self.introductions: dict[str, Introduction] = {}
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
            for name, reason in self._refused.values() if missing else ():
                # There is no point in waiting for a client that is there and cannot take part.
                all_are_heard = len(self._node_of) + len(self._refused) >= max(wanted, 1)
                if name in set(self.expected) - set(self._node_of) or (
                    not self.expected and all_are_heard
                ):
                    raise ClientError(name, 0, reason)
            if now >= end:
                n_wanted = len(self.expected) or max(wanted, 1)
                refused = (f"{name}: {reason}" for name, reason in self._refused.values())
                raise QuorumError(0, len(self._node_of), n_wanted, (*missing, *refused))
            time.sleep(self.poll)

    def join(self) -> Sequence[ClientProfile]:
        """The clients, sorted by name."""
        introductions = self._in_order() if self._node_of else self.greet()
        return [introduction.profile for introduction in introductions]

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

    def _nodes(self) -> dict[int, str]:
        """Nodes that are connected, each with when it last started."""
        nodes = list(self.grid.get_nodes())
        self._key_names.update({node.node_id: str(node.name) for node in nodes})
        return {node.node_id: str(node.last_activated_at) for node in nodes}

    def _greet_new(self, nodes: Mapping[int, str]) -> None:
        known = {*self._node_of.values(), *self._greeted.values(), *self._refused}
        request = Request("greeting", __version__, self.task.to_json())
        ids = self._push(
            dict.fromkeys(sorted(set(nodes) - known), request), "join", self.join_deadline
        )
        self._greeted.update({message_id: node_id for node_id, message_id in ids.items()})

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
                self.listener(
                    {"event": "refused", "client": name, "node": node_id, "reason": reason}
                )

    def _introduce(self, reply: Message, node_id: int) -> tuple[str, str | None]:
        """Takes a client in; its name, and why not if so. A key says more than a client does."""
        owner = self._key_names.get(node_id)
        name = owner or f"node {node_id}"
        if reply.has_error():
            return name, _flower_error(reply)
        try:
            response = from_records(reply.content, Response)
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
        before = self.introductions.get(name)
        # A node may take over a client whose old node is gone and whose data are the same.
        is_taken = before is not None and (
            self._node_of[name] in self._nodes() or introduction.profile != before.profile
        )
        if is_taken:
            if not self._has_started:
                raise InvalidInputError(
                    f"client-id {name!r}",
                    "every node must have one of its own",
                    f"nodes {self._node_of[name]} and {node_id} both have it; stop one of them",
                )
            return f"node {self._node_of[name]} has this client-id already"
        self.introductions[name], self._node_of[name] = introduction, node_id
        self.listener(
            {
                "event": "joined" if before is None else "rejoined",
                "client": name,
                "node": node_id,
                "release": introduction.release,
                "n_rows": introduction.n_rows,
                "n_features": introduction.profile.n_features,
                "contract": introduction.contract,
            }
        )
        return None

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
        next_look, nodes = 0.0, {}
        while len(answers) < len(errands):
            waiting = {name: e for name, e in errands.items() if name not in answers}
            now = time.monotonic()
            if now >= next_look:
                nodes = self._nodes()
                self._send_out(waiting, nodes, now, end)
                next_look = now + self.look_around
            # Who was missing last time and is still not connected is not waited for.
            gone = {name for name in waiting if self._node_of[name] not in nodes} & self._absent
            if now >= end or gone == set(waiting):
                break
            answers.update(self._collect(waiting))
            if len(answers) < len(errands):  # to look all the time would slow simulated clients
                time.sleep(min(self.poll, max(end - now, 0.0)))
        for name, errand in errands.items():
            if name not in answers:
                errand.ended = time.monotonic()
                answers[name] = errand.silence(deadline)
            self.listener(errand.event(answers[name]))
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
        due: dict[int, tuple[_Errand, str, Request]] = {}
        for name, errand in waiting.items():
            node_id = self._node_of[name]
            there = f"{node_id} {nodes[node_id]}" if node_id in nodes else ""
            patience = self.resend_after * 2.0 ** max(len(errand.message_ids) - 1, 0)
            overdue = now - errand.sent_at > patience
            if there and (errand.sent_to != there or overdue):
                has_answered = name in self._answered
                request = Request("round", __version__, task, errand.data, has_answered)
                due[node_id] = errand, there, request
        group = str(next(iter(waiting.values())).broadcast.round)
        requests = {node_id: request for node_id, (_, _, request) in due.items()}
        for node_id, message_id in self._push(requests, group, ttl).items():
            errand, there, _ = due[node_id]
            errand.message_ids.add(message_id)
            errand.sent_to, errand.sent_at = there, now

    def _collect(self, waiting: Mapping[str, _Errand]) -> dict[str, Update | Failure]:
        """What has arrived."""
        owners = {i: name for name, errand in waiting.items() for i in errand.message_ids}
        answers: dict[str, Update | Failure] = {}
        width = 1 + max(one.profile.n_features for one in self.introductions.values())
        # Second moments are half a number per pair of features, of two words under masks.
        numbers = _MOST_NUMBERS + min(width, LARGEST_WIDTH)
        max_bytes = _HEADERS + 8 * numbers * width * max(1, len(self.task.classes))
        for reply in self.grid.pull_messages(list(owners)) if owners else ():
            message_id = reply.metadata.reply_to_message_id
            name = owners.get(message_id)
            if name is None or name in answers:
                continue
            errand = waiting[name]
            errand.message_ids.discard(message_id)
            errand.ended = time.monotonic()
            if not (reply.has_error() and reply.error.code in _LOST):
                answers[name] = read_answer(reply, name, max_bytes)
                continue
            errand.losses.append(_LOST[reply.error.code])
            if not errand.message_ids:
                errand.sent_to = ""
            if len(errand.losses) >= _MAX_LOSSES:
                answers[name] = errand.silence(None)
        return answers

    def _push(self, requests: Mapping[int, Request], group: str, ttl: float) -> dict[int, str]:
        """Send each node its request, which nobody can fetch after ``ttl`` seconds.

        Returns Flower's id of each message, without those that it did not take.
        """
        messages = [
            Message(to_records(request), node_id, "train", group_id=group, ttl=ttl)
            for node_id, request in requests.items()
        ]
        # Not by position: Flower's simulation leaves out those that it did not take.
        taken = set(self.grid.push_messages(messages)) if messages else set()
        ids = {one.metadata.dst_node_id: one.metadata.message_id for one in messages}
        return {node_id: message_id for node_id, message_id in ids.items() if message_id in taken}


def read_answer(reply: Message, name: str, max_bytes: int) -> Update | Failure:
    """What a client says in reply to a broadcast; larger updates are not even decoded."""
    if reply.has_error():
        return Failure(name, _flower_error(reply))
    try:
        response = from_records(reply.content, Response)
        if response.kind == "error":
            return Failure(name, response.reason or "it failed and gave no reason")
        return decode_update(response.payload, max_bytes=max_bytes)
    except CorruptDataError as error:
        return Failure(name, str(error), is_unreadable=True)


def _flower_error(reply: Message) -> str:
    code, reason = reply.error.code, reply.error.reason
    return _NO_APP.get(code) or f"Flower reports error {code}: {reason}"
