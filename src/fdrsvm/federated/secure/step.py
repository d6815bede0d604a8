"""One step of a secure sum, as a broadcast's ``algorithm`` describes it: [secure-sum].

upload   the inner method's answer, weighted and masked, and a share of the mask's seed for each
         other client, sealed; from a client that the members do not name with its key of this
         session: that key
unmask   for the survivors their shares, for the other members the masks in common with them
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from fdrsvm.errors import InvalidInputError

FEWEST = 3
_KEY = re.compile("[0-9a-f]{64}")


class Member(NamedTuple):
    """A client with its public key, in hexadecimal, and its weight alpha_g."""

    client_id: str
    public: str
    weight: float


def threshold(n_members: int) -> int:
    """How many clients must unmask, and so how many shares give a seed.

    Large enough that 2 threshold - n >= 2: whatever survivors a server names to whom, it can strip
    the masks of no client alone.
    """
    return (n_members + 3) // 2


@dataclass(frozen=True)
class SecureStep:
    """What a client is to do.

    Attributes
    ----------
    phase : {"upload", "unmask"}
        As above.
    session : str
        Names a set of keys.
    number : int
        Of the sum within its session, from 1 on: each is for one upload.
    method : str
        The inner method, as ``describe`` has it.
    members : tuple of Member
        Who masks with whom, in upload; nobody if only keys are wanted.
    survivors : tuple of int
        Which members' answers are summed, in unmask.
    """

    name: ClassVar[str] = "secure-sum"
    phase: Literal["upload", "unmask"]
    session: str
    number: int
    method: str = ""
    members: tuple[Member, ...] = ()
    survivors: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(Member(*entry) for entry in self.members))
        object.__setattr__(self, "survivors", tuple(self.survivors))
        holds = (
            self.phase in ("upload", "unmask")
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
    whole = all(_is_member(member) for member in members)
    n_names, n_keys = len({m.client_id for m in members}), len({m.public for m in members})
    if not whole or not n_names == n_keys == len(members):
        raise InvalidInputError(
            "secure-sum",
            "every member must have a name and a key of its own, and a weight above 0",
            "one has not",
        )


def _is_member(member: tuple[Any, ...]) -> bool:
    client_id, public, weight = member
    return (
        type(client_id) is str
        and type(public) is str
        and _KEY.fullmatch(public) is not None
        and isinstance(weight, float | int)
        and math.isfinite(weight)
        and 0.0 < weight <= 1.0  # else fewer are in the sum than seem to be
    )
