"""What server and clients say to each other besides rounds: who they are and what is to be solved.

Greeting   server -> client: release, and the task without its classes
Answer     client -> server: an Introduction
Round      server -> client: the task, now with all classes, and a broadcast; client -> server: an
           update

A client that cannot do what it is asked for answers with a reason, in words only if they are known
to hold no value: those of a TellableError. Nothing here is data: an introduction holds counts,
column names and the labels that occur, and no value of any row.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Literal, TypeAlias

from fdrsvm.core.codec import pack, unpack
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.federated.messages import (
    LARGEST_COUNT,
    ClientProfile,
    decode_profile,
    encode_profile,
)

Label: TypeAlias = "str | int"
RequestKind = Literal["greeting", "round"]
ResponseKind = Literal["introduction", "update", "error"]

_KIND, _VERSION = "introduction", 1
_LARGEST_NUMBER = 1e300  # of a task: no radius or limit, and safe to multiply
_LARGEST_LABEL = 2**63 - 1


class TellableError(InvalidInputError):
    """An error of a client whose words may leave it: they hold no value of its data, and no path.

    ``at_plant`` is for the plant's own terminal and log, such as the path of a file.
    """

    def __init__(self, argument: str, rule: str, found: str, *, at_plant: str = "") -> None:
        super().__init__(argument, rule, found)
        self.at_plant = at_plant

    @property
    def in_full(self) -> str:
        """For the plant itself: nothing of it may leave."""
        return f"{self} ({self.at_plant})" if self.at_plant else str(self)


@dataclass(frozen=True)
class Task:
    """What every client solves, as the server says it; each knows its own data.

    ``epsilon`` is a radius or "auto", ``support`` one of "none", "unit-box" and "contract" (the
    limits of the data contract). No feature may exceed ``feature_limit`` in size, one number for
    all or one per feature; 0 is no limit. ``blur`` rows count by a fraction in cuts; ``resolution``
    is the grid of risks and of constants of cuts, 0 for exact ones. ``merge`` makes equal rows one.
    ``classes`` are those of all clients, sorted; empty as long as the server does not know them.
    """

    epsilon: float | str = "auto"
    kappa: float | str = 1.0
    norm: str = "linf"
    support: str = "none"
    feature_limit: float | tuple[float, ...] = 0.0
    worst_case: str = "exact"
    loss: str = "hinge"
    fit_intercept: bool = True
    blur: int = 0
    resolution: float = 0.0
    merge: bool = True
    classes: tuple[Label, ...] = ()

    def to_json(self) -> str:
        """Equal tasks give equal text."""
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The task that ``to_json`` wrote, or a CorruptDataError."""
        try:
            content = json.loads(text)
            known = {entry.name for entry in fields(cls)}
            if set(content) != known:
                raise ValueError(f"see {sorted(set(content) ^ known)}")
            lists = {name: tuple(v) for name, v in content.items() if isinstance(v, list)}
            task = cls(**{**content, **lists})
            _check_task(task)
            return task
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CorruptDataError(f"task: of another release ({error})") from None


def _check_task(task: Task) -> None:
    """Types and sizes as a client will use them: the other side may be anybody's program."""
    limit = task.feature_limit
    rules = {
        "epsilon": task.epsilon == "auto" or _is_number(task.epsilon),
        "kappa": task.kappa == "inf" or _is_number(task.kappa),
        "feature_limit": all(map(_is_number, limit if isinstance(limit, tuple) else (limit,))),
        "blur": type(task.blur) is int and 0 <= task.blur <= LARGEST_COUNT,
        "resolution": _is_number(task.resolution),
        "classes": type(task.classes) is tuple and all(map(_is_label, task.classes)),
    }
    for kind, names in (
        (bool, ("fit_intercept", "merge")),
        (str, ("norm", "support", "worst_case", "loss")),
    ):
        rules |= {name: type(getattr(task, name)) is kind for name in names}
    wrong = sorted(name for name, holds in rules.items() if not holds)
    if wrong:
        raise ValueError(
            f"see {wrong}; counts go up to {LARGEST_COUNT}, numbers up to {_LARGEST_NUMBER:g}"
        )


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER  # type: ignore[operator]


def _is_label(value: object) -> bool:
    return type(value) is str or (type(value) is int and abs(value) <= _LARGEST_LABEL)


@dataclass(frozen=True)
class Introduction:
    """What a client says of itself when it is greeted.

    Attributes
    ----------
    profile : ClientProfile
        What training needs to know.
    n_rows : int
        Rows of the table; the profile counts equal ones once.
    labels : tuple
        The distinct labels that occur at the client, sorted.
    feature_names : tuple of str
        Columns, in order.
    contract : str
        Fingerprint of the data contract that the rows were checked against, or "".
    release : str
        Of this package at the client.
    """

    profile: ClientProfile
    n_rows: int
    labels: tuple[Label, ...]
    feature_names: tuple[str, ...]
    contract: str
    release: str

    @property
    def client_id(self) -> str:
        """Its name in the federation."""
        return self.profile.client_id


@dataclass(frozen=True)
class Request:
    """From the server to a client, whatever carries it.

    ``has_answered`` is False if the client cannot have a memory of the run yet, as far as is known.
    """

    kind: RequestKind
    release: str
    task: str
    payload: bytes = b""
    has_answered: bool = False


@dataclass(frozen=True)
class Response:
    """From a client to the server; ``reason`` is for errors."""

    kind: ResponseKind
    client_id: str
    payload: bytes = b""
    reason: str = ""


def encode_introduction(introduction: Introduction) -> bytes:
    """Stable bytes of an introduction."""
    header = {**asdict(introduction), "profile": encode_profile(introduction.profile).hex()}
    return pack(_KIND, _VERSION, header, {})


def decode_introduction(data: bytes) -> Introduction:
    """The introduction that ``encode_introduction`` wrote, or a CorruptDataError."""
    header, _ = unpack(data, _KIND, _VERSION)
    try:
        introduction = Introduction(
            **{
                **header,
                "profile": decode_profile(bytes.fromhex(header["profile"])),
                "labels": tuple(header["labels"]),
                "feature_names": tuple(header["feature_names"]),
            }
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptDataError(
            f"{_KIND}: its content does not fit together ({error}); counts go up to {LARGEST_COUNT}"
        ) from None
    # Types as the server will use them: the other side may be anybody's program.
    holds = (
        type(introduction.n_rows) is int
        and 1 <= introduction.n_rows <= LARGEST_COUNT
        and len(introduction.labels) >= 1
        and all(map(_is_label, introduction.labels))
        and all(type(name) is str and name for name in introduction.feature_names)
        and len(set(introduction.feature_names)) == introduction.profile.n_features
        and type(introduction.contract) is str
        and type(introduction.release) is str
    )
    if not holds:
        raise CorruptDataError(
            f"{_KIND}: its fields do not fit together; counts go up to {LARGEST_COUNT}, labels to "
            f"{_LARGEST_LABEL}"
        )
    # Text or a mapping in place of a list makes a tuple too, of its letters or keys.
    if encode_introduction(introduction) != data:
        raise CorruptDataError(f"{_KIND}: its content is not what this package writes")
    return introduction
