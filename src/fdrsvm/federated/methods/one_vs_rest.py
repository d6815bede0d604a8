"""Several models in the same rounds: one copy of a method a class, no round more than the slowest.

Server   one state of the inner method a model; models within ``tol`` rest and are not asked again
Message  the inner method's arrays under their model's number: "0/points", "1/points", ...
Client   one problem a model, over the same samples with other labels
Stop     the largest of the models' certified relative gaps is within tol

The models know nothing of each other: each has the certificate that a run of its own would give it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import GenericAlias
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from fdrsvm.core.arrays import Array, check_non_negative
from fdrsvm.errors import InvalidInputError
from fdrsvm.federated.certificate import Standing
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import ClientProfile, Shape, Values
from fdrsvm.federated.methods.evaluation import Evaluation
from fdrsvm.federated.methods.method import describe
from fdrsvm.federated.methods.subgradient import one_cut
from fdrsvm.federated.problem import ClientProblem
from fdrsvm.federated.screen import Faults, Rules

States: TypeAlias = "tuple[Any, ...]"
_Entry = TypeVar("_Entry")


@dataclass(frozen=True, eq=False)
class OneVsRestProblem:
    """One client's problems, one a model: the same samples and ball, other labels."""

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
class OneVsRestStanding(Standing):
    """Where several models stand.

    ``model`` is all of them in a row. ``objective``, ``risks`` and the bounds are means over the
    models, ``radius`` is the smallest, and ``gap`` is the largest of the relative gaps.
    """

    models: tuple[Standing, ...]

    @property
    def parts(self) -> tuple[Standing, ...]:
        """Each model has a certificate and a proof of its own; ``proof`` is the first one's."""
        return self.models

    @property
    def gap(self) -> float:
        """Of the model that has farthest to go."""
        return max(model.gap for model in self.models)

    @property
    def contradiction(self) -> float:
        """The largest of the models'."""
        return max(model.contradiction for model in self.models)


@dataclass(frozen=True)
class OneVsRest:
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
        is_count = isinstance(self.n_models, int) and not isinstance(self.n_models, bool)
        if not is_count or self.n_models < 2:
            raise InvalidInputError(
                "n_models", "must be a whole number, at least 2", f"it is {self.n_models!r}"
            )
        if isinstance(self.inner, OneVsRest):
            raise InvalidInputError("inner", "must train one model", "it trains several")
        check_non_negative(self.tol, "tol")

    @cached_property
    def state_type(self) -> Any:
        """One state of the inner method a model."""
        return GenericAlias(tuple, (self.inner.state_type, ...))

    @property
    def patience(self) -> int | None:
        """That of the method: rounds in which no model gets on."""
        patience: int | None = self.inner.patience
        return patience

    def _is_done(self, state: Any) -> bool:
        """A state at rest changes only by a better bound, so this stays true until ``forget``."""
        is_certified = self.tol > 0.0 and self.inner.standing(state).gap <= self.tol
        return bool(is_certified or self.inner.is_settled(state))

    def start(self, federation: Federation) -> States:
        """All start alike; only the clients know how their labels differ."""
        return (self.inner.start(federation),) * self.n_models

    def ask(self, federation: Federation, state: States, client: int) -> Values:
        """What each model that is not done asks for."""
        return _joined(
            (k, self.inner.ask(federation, part, client))
            for k, part in enumerate(state)
            if not self._is_done(part)
        )

    def answer(
        self, problem: OneVsRestProblem, memory: Values, asked: Values
    ) -> tuple[Values, dict[str, Array]]:
        """An answer for each model asked for; a model at rest may be asked for again."""
        if len(problem.problems) != self.n_models:
            raise InvalidInputError(
                "problems",
                f"there must be {self.n_models}, one a model",
                f"there are {len(problem.problems)}",
            )
        numbers = _numbers(asked)
        memories = [(k, _part(memory, k)) for k in _numbers(memory) if k not in numbers]
        answers = []
        for k in numbers:
            kept, found = self.inner.answer(problem.problems[k], _part(memory, k), _part(asked, k))
            memories.append((k, kept))
            answers.append((k, found))
        return _joined(memories), _joined(answers)

    def expects(self, federation: Federation, asked: Values) -> Mapping[str, Shape]:
        """The form of the inner answers."""
        return _joined(
            (k, self.inner.expects(federation, _part(asked, k))) for k in _numbers(asked)
        )

    def judge(
        self, federation: Federation, state: States, replies: Replies, rules: Rules
    ) -> Faults:
        """The inner method's rules, model by model."""
        running = [k for k, part in enumerate(state) if not self._is_done(part)]
        return _judged(self.inner.judge, federation, state, replies, rules, running)

    def judge_evaluation(
        self, federation: Federation, state: States, replies: Replies, rules: Rules
    ) -> Faults:
        """The same for the pending models; the others' risks are known."""
        pending = [k for k, part in enumerate(state) if self.inner.pending(part) is not None]
        return _judged(self.inner.judge_evaluation, federation, state, replies, rules, pending)

    def forget(self, federation: Federation, state: States, client: int) -> States:
        """In every model: whoever is wrong in one is not believed in another."""
        return tuple(self.inner.forget(federation, part, client) for part in state)

    def advance(self, federation: Federation, state: States, replies: Replies) -> States:
        """Each model by its own part of the answers.

        A model that was at rest was not asked for, and has none, even if what was proved of it is
        forgotten by now.
        """
        answered = {k for values in replies.values.values() for k in _numbers(values)}
        return tuple(
            self.inner.advance(federation, part, _replies_part(replies, k))
            if k in answered
            else part
            for k, part in enumerate(state)
        )

    def model(self, state: States) -> Array:
        """The newest models in a row."""
        return np.concatenate([self.inner.model(part) for part in state])

    def standing(self, state: States) -> OneVsRestStanding:
        """The best models in a row, with what is proved of each."""
        models = tuple(self.inner.standing(part) for part in state)
        return OneVsRestStanding(
            model=np.concatenate([one.model for one in models]),
            objective=float(np.mean([one.objective for one in models])),
            risks=np.mean([one.risks for one in models], axis=0),
            lower_bound=float(np.mean([one.lower_bound for one in models])),
            radius=min(one.radius for one in models),
            bound_everywhere=float(np.mean([one.bound_everywhere for one in models])),
            proof=models[0].proof,
            proof_everywhere=models[0].proof_everywhere,
            models=models,
        )

    def residuals(self, state: States) -> dict[str, float]:
        """Of each number the largest over the models."""
        found = [self.inner.residuals(part) for part in state]
        return {name: max(one[name] for one in found) for name in found[0]}

    def is_settled(self, state: States) -> bool:
        """Every model is done."""
        return all(self._is_done(part) for part in state)

    def settle(self, federation: Federation, state: States) -> States:
        """A better bound for each."""
        return tuple(self.inner.settle(federation, part) for part in state)

    def pending(self, state: States) -> Array | None:
        """All newest models in a row, if the risk of one is not known yet."""
        points = [self.inner.pending(part) for part in state]
        return None if all(point is None for point in points) else self.model(state)

    def with_evaluation(self, federation: Federation, state: States, replies: Replies) -> States:
        """After the answers to ``evaluation_request``."""
        return tuple(
            part
            if self.inner.pending(part) is None
            else self.inner.with_evaluation(federation, part, _replies_part(replies, k))
            for k, part in enumerate(state)
        )


def _judged(
    judge: Callable[[Federation, Any, Replies, Rules], Faults],
    federation: Federation,
    state: States,
    replies: Replies,
    rules: Rules,
    models: Iterable[int],
) -> Faults:
    """A client's first fault, with the model's number."""
    faults: Faults = {}
    for k in models:
        for g, fault in judge(federation, state[k], _replies_part(replies, k), rules).items():
            faults.setdefault(g, replace(fault, text=f"model {k}: {fault.text}"))
    return faults


def evaluation_request(
    federation: Federation, point: Array
) -> tuple[str, Values, Mapping[str, Shape]]:
    """How to ask for risk and cut at a model, or at several in a row: method, values, form."""
    models = point.reshape(-1, federation.width)
    if len(models) == 1:
        return describe(Evaluation()), {"points": models}, one_cut(federation)
    method = OneVsRest(Evaluation(), len(models))
    asked = _joined((k, {"points": model[None]}) for k, model in enumerate(models))
    return describe(method), asked, _joined((k, one_cut(federation)) for k in range(len(models)))


def _joined(parts: Iterable[tuple[int, Mapping[str, _Entry]]]) -> dict[str, _Entry]:
    """Entries of several models, each name with its model's number in front."""
    return {f"{k}/{name}": entry for k, part in parts for name, entry in part.items()}


def _part(values: Mapping[str, _Entry], model: int) -> dict[str, _Entry]:
    """The entries of one model, under the inner method's names."""
    prefix = f"{model}/"
    return {
        name.removeprefix(prefix): entry
        for name, entry in values.items()
        if name.startswith(prefix)
    }


def _numbers(values: Mapping[str, Any]) -> Sequence[int]:
    """Which models have an entry."""
    return sorted({int(name.partition("/")[0]) for name in values})


def _replies_part(replies: Replies, model: int) -> Replies:
    return Replies(
        tuple(
            None if update is None else replace(update, values=_part(update.values, model))
            for update in replies.updates
        )
    )
