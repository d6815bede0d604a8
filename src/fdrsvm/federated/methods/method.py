"""What a federated method is: four functions and a state, and nothing about transport.

Server   start -> ask, advance, ask, advance, ... ; ``ask`` says what to send to a client
Client   answer(problem, memory, asked) -> new memory and values to send; memory stays at the client
State    a frozen dataclass of arrays and numbers, so that it can be stored and resumed
Show     ``progress`` tells the loop where a state stands; subgradient.py is the method to copy

What all methods share is the ``Certifier``'s: the certificate, better bounds from what is known
already, forgetting a client, and the evaluation of the last model once training is over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.federated.certificate import Certificate
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Shape, Values
from fdrsvm.federated.problem import ClientProblem, evaluate
from fdrsvm.federated.screen import Faults, Screen
from fdrsvm.solvers import WarmStart

State = TypeVar("State")


class Progress(NamedTuple):
    """Where a run stands.

    Attributes
    ----------
    model : ndarray
        The newest model.
    certificate : Certificate
        The best model so far, and what is proved of it.
    residuals : mapping
        Numbers worth a column in the history.
    pending : ndarray, optional
        The newest model, if its risk is not known yet: clients are asked for it at the end.
    is_settled : bool
        Whether the method's own stopping rule holds, apart from the certified gap.
    """

    model: Array
    certificate: Certificate
    residuals: Mapping[str, float]
    pending: Array | None = None
    is_settled: bool = False


class Certifier:
    """What every method has in common: what is proved of its models, and by whose words.

    It reads a state's ``w``, the newest model, and its ``evidence``: the certificate and the cuts
    that it was made from. A method that keeps other books overrides what it must.
    """

    def newest_share(self, state: Any) -> float:
        """The share of the newest cuts in the mixture that each round proves a bound with.

        With 1 only the newest count; the best mixture of all cuts is found in rounds that settle,
        8, 10, 13, 17, ..., and at the end.
        """
        return 1.0

    def observed(self, federation: Federation, state: Any, replies: Replies) -> Any:
        """The evidence after clients gave risk and cut at the state's model."""
        newest = self.newest_share(state)
        return state.evidence.observe(federation, state.w, replies, newest=newest)

    def judge(self, federation: Federation, state: Any, replies: Replies, screen: Screen) -> Faults:
        """Clients whose answers, right in form, no legal data could give: [limits]."""
        return self.judge_evaluation(federation, state, replies, screen)

    def settle(self, federation: Federation, state: Any) -> Any:
        """Spend some time on a better lower bound from what is known already."""
        return replace(state, evidence=state.evidence.settle(federation))

    def forget(self, federation: Federation, state: Any, client: int) -> Any:
        """As if the client, which contradicted itself or is left out, had never answered.

        ``federation`` has the weights from now on.
        """
        return replace(state, evidence=state.evidence.without_client(federation, client))

    # --- the last model: clients see a model in the round after its own, so nobody has seen it ---

    def evaluation(
        self, federation: Federation, point: Array
    ) -> tuple[str, Values, Mapping[str, Shape]]:
        """How to ask for risk and cut at the pending model: method, values, form."""
        return describe(Evaluation()), {"points": point[None]}, one_cut(federation)

    def judge_evaluation(
        self, federation: Federation, state: Any, replies: Replies, screen: Screen
    ) -> Faults:
        """``judge`` for risk and cut at the pending model, also against all rounds before."""
        return screen.judge_round(federation, state.evidence, state.w, replies.answers)

    def with_evaluation(self, federation: Federation, state: Any, replies: Replies) -> Any:
        """After clients gave risk and cut at the pending model, once training is over."""
        return replace(state, evidence=self.observed(federation, state, replies))


class Algorithm(Certifier, Generic[State]):
    """A method: a frozen dataclass whose fields are its settings.

    Its states have ``w``, the newest model, and ``evidence``, at first ``no_evidence(federation)``;
    ``advance`` gets the next one from ``observed``. A state that keeps anything else of a client
    overrides ``forget``. A client's subgradient at w is its slope plus its norm weight times one of
    the norm's, see subgradient.py.

    Attributes
    ----------
    name : str
        What it is called in messages, files and settings.
    state_type : type
        The class of its states.
    patience : int, optional
        The run stops after this many rounds in a row that change neither model nor bound.
    needs_memory : bool
        Whether a client that has lost its memory of a run must not go on with it: with another
        memory the method would lead to another model, and nobody would know.
    """

    name: ClassVar[str]
    state_type: ClassVar[Any] = None
    patience: ClassVar[int | None] = None
    needs_memory: ClassVar[bool] = False

    def start(self, federation: Federation) -> State:
        """The server's state before the first round."""
        raise NotImplementedError

    def ask(self, federation: Federation, state: State, client: int) -> Values:
        """What to send to the client with that index."""
        raise NotImplementedError

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """A client's new memory, and what it sends; the only function that sees data."""
        raise NotImplementedError

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """Name and shape of every array in an answer; None is any length."""
        return one_cut(federation)

    def advance(self, federation: Federation, state: State, replies: Replies) -> State:
        """The server's state after a round."""
        raise NotImplementedError

    def progress(self, state: State) -> Progress:
        """Where the run stands."""
        raise NotImplementedError


@dataclass(frozen=True)
class Evaluation(Algorithm[Any]):
    """Not training: clients give risk and cut at one model, so that the last one is certified too.

    Only the client's part; the method whose model it is does the server's.
    """

    name: ClassVar[str] = "evaluation"

    def answer(
        self, problem: ClientProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """Risk and cut at each point; nothing is remembered."""
        return memory, evaluate(problem, asked["points"])


def one_cut(federation: Federation) -> dict[str, Shape]:
    """Form of an answer with the risk of one model and one cut."""
    return {
        "risks": (1,),
        "constants": (1,),
        "slopes": (1, federation.width),
        "norm_weights": (1,),
    }


def describe(algorithm: Any) -> str:
    """Method and settings as JSON, the same text every time."""
    settings = _settings(algorithm)
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), default=_plain_number)


def _settings(algorithm: Any) -> dict[str, Any]:
    """Name and settings; a setting that is itself a method has a name too."""
    settings = {"name": algorithm.name}
    for entry in fields(algorithm):
        value = getattr(algorithm, entry.name)
        settings[entry.name] = _settings(value) if is_dataclass(value) else value
    return settings


def _plain_number(value: Any) -> Any:
    """What JSON asks for where it meets a number of NumPy's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a setting must be a number, text or a method, not {value!r}")


def store_warm_start(start: WarmStart) -> dict[str, Array]:
    """Where a client's solver should start the next time, as arrays of its memory."""
    return {
        "start_w": start.w,
        "start_kept": start.kept,
        "start_flipped": start.flipped,
        "start_pull": start.pull,
        "start_scalars": np.array([start.lam, start.sigma]),
    }


def load_warm_start(memory: Values) -> WarmStart | None:
    """The start that ``store_warm_start`` put there, if any."""
    if "start_w" not in memory:
        return None
    lam, sigma = memory["start_scalars"].tolist()
    return WarmStart(
        w=memory["start_w"],
        lam=lam,
        kept=memory["start_kept"],
        flipped=memory["start_flipped"],
        pull=memory["start_pull"],
        sigma=sigma,
    )
