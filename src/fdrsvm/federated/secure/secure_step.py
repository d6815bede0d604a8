"""What server and clients agree on in a secure sum: its steps, and which weights hide a client.

A step is what a broadcast's ``algorithm`` describes, [secure-sum]; what each one asks for is in
secure_round.py. Nothing here needs ``cryptography``: a client without it can still say that it
lacks it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy.typing as npt

from fdrsvm.core.codec import pack
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.messages import Broadcast

Arrays = Mapping[str, npt.NDArray[Any]]
# Names in messages: what the inner method is asked, what it answers, and a 1 to count clients by.
ASKED, MASKED, PRESENT = "asked", "masked", "n_present"

FEWEST = 3
# [weights in a sum]: of one client, of two together, of the smallest beside the largest, and how
# much of the variance of an answer the sum must leave.
LARGEST_SHARE, LARGEST_PAIR, SMALLEST_PART, LEAST_HIDDEN = 0.5, 0.9, 1e-3, 0.1
_ROUNDING = 1e-9
_PHASES = ("upload", "agree", "unmask")
_KEY = re.compile("[0-9a-f]{64}")


class Member(NamedTuple):
    """A client with its public key, in hexadecimal, and its weight alpha_g."""

    client_id: str
    public: str
    weight: float


def threshold(n_members: int) -> int:
    """How many clients must unmask, and so how many shares give a seed.

    More than two thirds, so that 3 threshold - 2 n >= 1: whatever survivors a server names to whom
    in however many tries of a round, no combination of the sums is one client's answer.
    """
    return 2 * n_members // 3 + 1


def broken_weight_rule(weights: Sequence[float]) -> str:
    """What is wrong with a sum of such weights, in words; "" if it hides every client.

    With more than half of the weight a client's answer is narrowed down by every sum, whatever it
    is; many small ones on the other side cancel each other; two with nearly all of the weight know
    each other's answer; and one with next to nothing only seems to be in the sum.
    """
    total, in_order = math.fsum(weights), sorted(weights, reverse=True)
    largest, both = in_order[0] / total, math.fsum(in_order[:2]) / total
    squares = [(weight / in_order[0]) ** 2 for weight in in_order]
    hidden = 1.0 - 1.0 / math.fsum(squares)
    if largest > LARGEST_SHARE + _ROUNDING:
        return f"one client has {largest:.3g} of the weight, more than {LARGEST_SHARE:g}"
    if both > LARGEST_PAIR + _ROUNDING:
        return f"two clients have {both:.3g} of the weight, more than {LARGEST_PAIR:g}"
    if in_order[-1] < SMALLEST_PART * in_order[0] * (1.0 - _ROUNDING):
        return f"a weight is {in_order[-1] / in_order[0]:.2g} of another, below {SMALLEST_PART:g}"
    if hidden < LEAST_HIDDEN - _ROUNDING:
        return f"of one answer the others hide {hidden:.2g}, less than {LEAST_HIDDEN:g}"
    return ""


@dataclass(frozen=True)
class SecureStep:
    """What a client is to do.

    Attributes
    ----------
    phase : {"upload", "agree", "unmask"}
        See secure_round.py.
    session : str
        Names a set of keys.
    number : int
        Of the sum within its session, from 1 on: each is for one upload.
    method : str
        The inner method, as ``describe`` has it.
    members : tuple of Member
        Who masks with whom, in upload; nobody if only keys are wanted.
    survivors : tuple of int
        Which members' answers are summed, in agree and unmask.
    """

    name: ClassVar[str] = "secure-sum"
    phase: Literal["upload", "agree", "unmask"]
    session: str
    number: int
    method: str = ""
    members: tuple[Member, ...] = ()
    survivors: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(Member(*entry) for entry in self.members))
        object.__setattr__(self, "survivors", tuple(self.survivors))
        holds = (
            self.phase in _PHASES
            and type(self.session) is str
            and type(self.number) is int
            and self.number >= 1
            and type(self.method) is str
            and all(type(k) is int and k >= 0 for k in self.survivors)
            and list(self.survivors) == sorted(set(self.survivors))
        )
        if not holds:
            raise InvalidInputError("secure-sum", "must be a whole step", "it is not")
        if self.members:
            _check_members(self.members)

    def position(self, client_id: str, public: bytes) -> int | None:
        """Which of the members a client is, if it is there with that key."""
        for k, member in enumerate(self.members):
            if (member.client_id, member.public) == (client_id, public.hex()):
                return k
        return None


def _check_members(members: tuple[Member, ...]) -> None:
    if len(members) < FEWEST:
        raise InvalidInputError(
            "secure-sum",
            f"there must be at least {FEWEST} members: of two each knows the other's part",
            f"there are {len(members)}",
        )
    are_whole = all(
        type(client_id) is str
        and type(public) is str
        and _KEY.fullmatch(public) is not None
        and isinstance(weight, float | int)
        and 0.0 < weight <= 1.0
        for client_id, public, weight in members
    )
    n_names, n_keys = len({m.client_id for m in members}), len({m.public for m in members})
    if not are_whole or not n_names == n_keys == len(members):
        raise InvalidInputError(
            "secure-sum",
            "every member must have a name and a key of its own, and a weight above 0",
            "one has not",
        )
    if math.fsum(member.weight for member in members) > 1.0 + _ROUNDING:
        raise InvalidInputError("secure-sum", "weights must sum to 1 at most", "they do not")


def context_of(broadcast: Broadcast) -> bytes:
    """The hash of all that an upload's broadcast says, except for whom it is."""
    header = {"run_id": broadcast.run_id, "round": broadcast.round, "step": broadcast.algorithm}
    return hashlib.sha256(pack("secure sum", 1, header, broadcast.values)).digest()


def digest_of(upload: Arrays) -> bytes:
    """The hash of all that an upload says."""
    return hashlib.sha256(pack("secure upload", 1, {}, upload)).digest()
