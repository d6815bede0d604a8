"""What a federated method is: pure functions on explicit state, and nothing about transport.

Server   start -> ask, advance, ask, advance, ... ; ``ask`` says what to send to a client
Client   answer(problem, memory, asked) -> new memory and values to send; memory stays at the client
State    a frozen dataclass of arrays and numbers, so that it can be stored and resumed
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.federated.certificate import Standing
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.screen import Faults, Rules

State = TypeVar("State")


class Algorithm(Protocol[State]):
    """A method; its dataclass fields are its settings."""

    name: ClassVar[str]
    state_type: ClassVar[type]

    @property
    def patience(self) -> int | None:
        """After this many rounds that change neither model nor bound none will; None: one may."""

    def start(self, federation: Federation) -> State:
        """The server's state before the first round."""

    def ask(self, federation: Federation, state: State, client: int) -> Values:
        """What to send to the client with that index."""

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """A client's new memory, and what it sends; the only function that sees data."""

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """Name and shape of every array in an answer; None is any length."""

    def judge(self, federation: Federation, state: State, replies: Replies, rules: Rules) -> Faults:
        """Clients whose answers, right in form, no legal data could give: [limits]."""

    def advance(self, federation: Federation, state: State, replies: Replies) -> State:
        """The server's state after a round."""

    def forget(self, federation: Federation, state: State, client: int) -> State:
        """As if the client, which contradicted itself or is left out, had never answered.

        ``federation`` has the weights from now on.
        """

    def model(self, state: State) -> Array:
        """The newest model."""

    def standing(self, state: State) -> Standing:
        """The best model so far and its certificate."""

    def residuals(self, state: State) -> dict[str, float]:
        """Numbers worth a column in the history."""

    def is_settled(self, state: State) -> bool:
        """Whether the method's own stopping rule holds, apart from the certified gap."""

    def settle(self, federation: Federation, state: State) -> State:
        """Spend some time on a better lower bound from what is known already."""

    def pending(self, state: State) -> Array | None:
        """The newest model, if its risk is not known yet."""

    def judge_evaluation(
        self, federation: Federation, state: State, replies: Replies, rules: Rules
    ) -> Faults:
        """``judge`` for risk and cut at the pending model."""

    def with_evaluation(self, federation: Federation, state: State, replies: Replies) -> State:
        """After clients gave risk and cut at the pending model, once training is over."""


def describe(algorithm: Any) -> str:
    """Method and settings as JSON, the same text every time."""
    settings = _settings(algorithm)
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), default=_plain_number)


def _settings(algorithm: Any) -> dict[str, Any]:
    """Name and settings; a setting that is itself a method has a name too."""
    values = {entry.name: getattr(algorithm, entry.name) for entry in fields(algorithm)}
    inner = {name: _settings(value) for name, value in values.items() if is_dataclass(value)}
    return {"name": algorithm.name, **values, **inner}


def _plain_number(value: Any) -> Any:
    """What JSON asks for where it meets a number of NumPy's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a setting must be a number, text or a method, not {value!r}")
