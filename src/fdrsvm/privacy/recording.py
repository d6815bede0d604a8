"""All messages of a run in one file, as a curious server would keep them.

The file is a mark of eight bytes and then entries: one byte for the kind, eight for the length, the
encoded message. Messages carry their own SHA-256 (codec.py), so a change does not go unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fdrsvm.core.files import PathLike
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.federated.messages import (
    Broadcast,
    ClientProfile,
    Update,
    decode_broadcast,
    decode_profile,
    decode_update,
    encode,
    encode_profile,
)
from fdrsvm.federated.rounds import Failure, Transport

FILE_NAME = "messages.fdrsvm"
MAX_BYTES = 1 << 32
MAX_MESSAGE_BYTES = 1 << 28

_MARK = b"FDRSVMR1"
_LENGTH_BYTES = 8
_DECODERS: dict[bytes, Callable[[bytes], Any]] = {
    b"P": decode_profile,
    b"B": decode_broadcast,
    b"U": decode_update,
}


@dataclass(frozen=True)
class Recording:
    """What passed between server and clients in a run.

    Attributes
    ----------
    profiles : tuple of ClientProfile
        The clients, as they introduced themselves.
    exchanges : tuple of (Broadcast, Update)
        Every question that was answered, with its answer, in the order of the answers.
    """

    profiles: tuple[ClientProfile, ...]
    exchanges: tuple[tuple[Broadcast, Update], ...]

    def of_client(self, client_id: str) -> list[tuple[Broadcast, Update]]:
        """One client's questions and answers, in order."""
        return [pair for pair in self.exchanges if pair[1].client_id == client_id]


class Recorded:
    """A transport that also writes down all that passes through another one.

    Parameters
    ----------
    transport : Transport
        Any: clients in this process, Flower's, sums.
    folder : path
        Made if missing; it must not hold a recording yet. What is written there is as secret as the
        run's messages are.
    """

    def __init__(self, transport: Transport, folder: PathLike) -> None:
        self.transport = transport
        self.gives_sums: bool = getattr(transport, "gives_sums", False)
        self.path = Path(folder) / FILE_NAME
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.path.open("xb") as file:
                file.write(_MARK)
        except FileExistsError:
            raise InvalidInputError(
                "folder", "must not hold a recording yet", f"{self.path.name} is there"
            ) from None

    @property
    def left_out(self) -> dict[str, int]:
        """Whom the sums of the other transport go on without, if it gives sums."""
        return getattr(self.transport, "left_out", {})

    def join(self) -> Sequence[ClientProfile]:
        """The other transport's clients."""
        profiles = self.transport.join()
        self._append([(b"P", encode_profile(profile)) for profile in profiles])
        return profiles

    def exchange(
        self, broadcasts: Sequence[Broadcast], deadline: float | None
    ) -> Sequence[Update | Failure]:
        """The other transport's answers; failures hold no numbers and are not written."""
        self._append([(b"B", encode(broadcast)) for broadcast in broadcasts])
        answers = self.transport.exchange(broadcasts, deadline)
        self._append([(b"U", encode(a)) for a in answers if isinstance(a, Update)])
        return answers

    def _append(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        with self.path.open("ab") as file:
            for kind, data in entries:
                file.write(kind + len(data).to_bytes(_LENGTH_BYTES, "little") + data)


def read_recording(
    folder: PathLike,
    *,
    max_bytes: int = MAX_BYTES,
    max_message_bytes: int = MAX_MESSAGE_BYTES,
) -> Recording:
    """The recording in a folder, or a CorruptDataError; nothing in it can run.

    ``max_bytes`` limits the file, ``max_message_bytes`` each message: a length that a file merely
    claims costs no memory.
    """
    path = Path(folder) / FILE_NAME
    if not path.is_file():
        raise InvalidInputError("folder", "must hold a recording", f"no {FILE_NAME} is there")
    size = path.stat().st_size
    if size > max_bytes:
        raise CorruptDataError(f"recording: {size} bytes, at most {max_bytes} are allowed")
    profiles: dict[str, ClientProfile] = {}
    asked: dict[tuple[str, int, str], Broadcast] = {}
    exchanges: list[tuple[Broadcast, Update]] = []
    for message in _messages(path, size, max_message_bytes):
        if isinstance(message, ClientProfile):
            profiles[message.client_id] = message
            continue
        key = (message.run_id, message.round, message.client_id)
        if message.client_id not in profiles:
            raise CorruptDataError(f"recording: client {message.client_id!r} never joined")
        if isinstance(message, Broadcast):
            asked[key] = message
        elif key in asked:
            exchanges.append((asked[key], message))
        else:
            raise CorruptDataError(f"recording: round {message.round} was never asked for")
    return Recording(tuple(profiles.values()), tuple(exchanges))


def _messages(
    path: Path, left: int, max_message_bytes: int
) -> Iterator[ClientProfile | Broadcast | Update]:
    """The messages in a file of ``left`` bytes, one by one."""
    with path.open("rb") as file:
        if file.read(len(_MARK)) != _MARK:
            raise CorruptDataError("recording: not a file of this package")
        left -= len(_MARK)
        while left > 0:
            kind, stated = file.read(1), file.read(_LENGTH_BYTES)
            length = int.from_bytes(stated, "little")
            left -= 1 + _LENGTH_BYTES + length
            if len(stated) < _LENGTH_BYTES or left < 0:
                raise CorruptDataError("recording: it is cut short")
            if length > max_message_bytes:
                raise CorruptDataError(
                    f"recording: a message of {length} bytes, at most {max_message_bytes} are "
                    "allowed"
                )
            if kind not in _DECODERS:
                raise CorruptDataError(f"recording: a message of kind {kind!r}")
            yield _DECODERS[kind](file.read(length))
