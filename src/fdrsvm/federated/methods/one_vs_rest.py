"""Several models in the same rounds: one copy of a method per class, in as many as the slowest.

Server   one state of the inner method per model; models within ``tol`` rest and are not asked again
Message  the inner method's arrays under their model's number: "0/points", "1/points", ...
Client   one problem per model, over the same samples with other labels
Stop     the largest of the models' certified relative gaps is within tol

The models know nothing of each other: each has the certificate that a run of its own would give it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import GenericAlias
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fdrsvm.core.arrays import Array, check_count, check_non_negative
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.certificate import join_certificates
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import (
    ClientProfile,
    Entry,
    Shape,
    Values,
    add_prefix,
    split_prefixes,
)
from fdrsvm.federated.methods.method import Algorithm, Evaluation, Progress, describe
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.screen import Faults, Judge, Screen

States: TypeAlias = "tuple[Any, ...]"


@dataclass(frozen=True, eq=False)
class OneVsRestProblem:
    """One client's problems, one per model: the same samples and ball, other labels."""

    problems: tuple[ClientProblem, ...]

    def __post_init__(self) -> None:
        if not self.problems:
            raise InvalidInputError("problems", "there must be at least one", "there is none")
        for k, problem in enumerate(self.problems):
            if problem.profile != self.profile:
                raise InvalidInputError(
                    "problems", "must differ in their labels only", f"problem {k} is another"
                )

    @property
    def profile(self) -> ClientProfile:
        """That of the first, and of every other."""
        return self.problems[0].profile

    @property
    def resolution(self) -> float:
        """The coarsest of the problems'."""
        return max(problem.resolution for problem in self.problems)


@dataclass(frozen=True)
class OneVsRest(Algorithm[States]):
    """Several models by one method, in the same rounds.

    Parameters
    ----------
    inner : Algorithm
        The method; each model is trained as if it were the only one.
    n_models : int
        How many, at least two.
    tol : float
        A model with this certified relative gap is left as it is; 0 goes on with all of them.
    """

    name: ClassVar[str] = "one-vs-rest"
    inner: Any
    n_models: int
    tol: float = 0.0

    def __post_init__(self) -> None:
        check_count(self.n_models, "n_models", least=2)
        if isinstance(self.inner, OneVsRest):
            raise InvalidInputError("inner", "must train one model", "it trains several")
        check_non_negative(self.tol, "tol")
        # What is said of a method is said of several of it; one state of the method per model.
        state_type = GenericAlias(tuple, (self.inner.state_type, ...))
        object.__setattr__(self, "state_type", state_type)
        object.__setattr__(self, "patience", self.inner.patience)
        object.__setattr__(self, "needs_memory", self.inner.needs_memory)

    def start(self, federation: Federation) -> States:
        """All start alike; only the clients know how their labels differ."""
        return (self.inner.start(federation),) * self.n_models

    def ask(self, federation: Federation, state: States, client: int) -> Values:
        """What each model that is not done asks for."""
        running = self._running(state)
        return _join({k: self.inner.ask(federation, state[k], client) for k in running})

    def answer(  # type: ignore[override]  # a client of several models has several problems
        self, problem: OneVsRestProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """An answer for each model asked for; a model at rest may be asked for again."""
        if len(problem.problems) != self.n_models:
            raise InvalidInputError(
                "problems",
                f"there must be {self.n_models}, one per model",
                f"there are {len(problem.problems)}",
            )
        memories, questions = dict(sorted(_split(memory).items())), _split(asked)
        answers = {}
        for k in sorted(questions):
            known = memories.pop(k, {})
            # Back in at the end: models that were not asked for come first.
            memories[k], answers[k] = self.inner.answer(problem.problems[k], known, questions[k])
        return _join(memories), _join(answers)

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """The form of the inner answers."""
        questions = sorted(_split(asked).items())
        return _join({k: self.inner.expects(federation, question) for k, question in questions})

    def advance(self, federation: Federation, state: States, replies: Replies) -> States:
        """Each model by its own part of the answers.

        A model that was at rest was not asked for, and has none, even if what was proved of it is
        forgotten by now.
        """
        by_model = _by_model(replies)
        return tuple(
            self.inner.advance(federation, part, by_model[k]) if k in by_model else part
            for k, part in enumerate(state)
        )

    def progress(self, state: States) -> Progress:
        """Models in a row, with what is proved of each; of each residual the largest."""
        each = [self.inner.progress(part) for part in state]
        model = np.concatenate([one.model for one in each])
        is_pending = any(one.pending is not None for one in each)
        return Progress(
            model,
            join_certificates([one.certificate for one in each]),
            {name: max(one.residuals[name] for one in each) for name in each[0].residuals},
            pending=model if is_pending else None,
            is_settled=all(self._is_done(one) for one in each),
        )

    def judge(
        self, federation: Federation, state: States, replies: Replies, screen: Screen
    ) -> Faults:
        """The inner method's rules, model by model."""
        models = self._running(state)
        return _judge_each(self.inner.judge, models, federation, state, replies, screen)

    def settle(self, federation: Federation, state: States) -> States:
        """A better bound for each."""
        return tuple(self.inner.settle(federation, part) for part in state)

    def forget(self, federation: Federation, state: States, client: int) -> States:
        """In every model: whoever is wrong in one is not believed in another."""
        return tuple(self.inner.forget(federation, part, client) for part in state)

    def evaluation(
        self, federation: Federation, point: Array
    ) -> tuple[str, Values, Mapping[str, Shape]]:
        """Of all newest models at once."""
        models = point.reshape(self.n_models, federation.width)
        each = [self.inner.evaluation(federation, model) for model in models]
        values = _join({k: values for k, (_, values, _) in enumerate(each)})
        form = _join({k: form for k, (_, _, form) in enumerate(each)})
        return describe(OneVsRest(Evaluation(), self.n_models)), values, form

    def judge_evaluation(
        self, federation: Federation, state: States, replies: Replies, screen: Screen
    ) -> Faults:
        """The same for the pending models; the others' risks are known."""
        models = self._pending(state)
        return _judge_each(self.inner.judge_evaluation, models, federation, state, replies, screen)

    def with_evaluation(self, federation: Federation, state: States, replies: Replies) -> States:
        """After the answers to ``evaluation``."""
        evaluated, by_model = list(state), _by_model(replies)
        for k in self._pending(state):
            evaluated[k] = self.inner.with_evaluation(federation, state[k], by_model[k])
        return tuple(evaluated)

    def _is_done(self, now: Progress) -> bool:
        """A state at rest changes only by a better bound, so this stays true until ``forget``."""
        is_certified = self.tol > 0.0 and now.certificate.gap <= self.tol
        return is_certified or now.is_settled

    def _running(self, state: States) -> list[int]:
        """Models that are not done."""
        return [k for k, part in enumerate(state) if not self._is_done(self.inner.progress(part))]

    def _pending(self, state: States) -> list[int]:
        """Models whose newest form nobody has evaluated."""
        return [k for k, part in enumerate(state) if self.inner.progress(part).pending is not None]


def _judge_each(
    judge: Judge,
    models: Iterable[int],
    federation: Federation,
    state: States,
    replies: Replies,
    screen: Screen,
) -> Faults:
    """A client's first fault, with the model's number."""
    faults: Faults = {}
    by_model = _by_model(replies)
    for k in models:
        for g, fault in judge(federation, state[k], by_model[k], screen).items():
            faults.setdefault(g, replace(fault, text=f"model {k}: {fault.text}"))
    return faults


def _join(by_model: Mapping[int, Mapping[str, Entry]]) -> dict[str, Entry]:
    """Entries of several models, each name with its model's number in front."""
    joined: dict[str, Entry] = {}
    for k, entries in by_model.items():
        joined |= add_prefix(str(k), entries)
    return joined


def _split(values: Mapping[str, Entry]) -> dict[int, dict[str, Entry]]:
    """The entries of each model, under the inner method's names."""
    return {int(number): entries for number, entries in split_prefixes(values).items()}


def _by_model(replies: Replies) -> dict[int, Replies]:
    """The answers of each model that has one."""
    split = {g: _split(values) for g, values in replies.values.items()}
    models = {k for parts in split.values() for k in parts}
    return {
        k: Replies(
            [
                None if update is None else replace(update, values=split[g].get(k, {}))
                for g, update in enumerate(replies.updates)
            ]
        )
        for k in sorted(models)
    }
