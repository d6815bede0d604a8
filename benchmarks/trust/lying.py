"""Clients that lie: a transport that replaces the answers of some, by any function of what it sees.

A liar knows everything: all broadcasts, all answers, the rules of the screen and the model that the
honest data lead to. Some lies are single numbers that were changed; the stronger ones answer
every request of every method from one function, as if it were their risk (``told_by``), so that
nothing in an answer contradicts itself. For ADMM the transport keeps what a liar has sent: its
later answers, true or not, go on from there as the server expects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, ClientProfile, Update, Values
from fdrsvm.federated.methods import from_description
from fdrsvm.federated.methods.method import Evaluation
from fdrsvm.federated.problem import ClientProblem, stack_cuts
from fdrsvm.federated.rounds import Failure
from fdrsvm.risk.worst_case import Cut

Answer = Update | Failure


@dataclass(frozen=True, eq=False)
class Scene:
    """What a liar knows before the first round; ``goal`` is the model of the honest run."""

    problem: ClientProblem  # its own, true one
    limits: Limits
    goal: Array
    array: str  # what the server follows: slopes, or ADMM's vector
    strongest: tuple[Array, Array, Array]  # X, y and masses of the poison that raises F* most

    @property
    def reach(self) -> Array:
        """R_j, and 1 for an intercept."""
        return np.append(self.limits.features, 1.0)[: self.problem.width]

    @property
    def epsilon(self) -> float:
        """Of its ball."""
        return self.problem.profile.epsilon

    def size(self, model: Array) -> float:
        """||w||_1, the intercept left out."""
        return float(np.abs(model[: self.limits.features.size]).sum())


class Turn(NamedTuple):
    """One request to a liar: what it would answer if it were honest, and all it could know."""

    broadcast: Broadcast
    own: Update
    before: Update | None  # its true answer of the round before
    others: tuple[Answer, ...]

    @property
    def is_last(self) -> bool:
        """Whether this is the evaluation after the last round."""
        return isinstance(from_description(self.broadcast.algorithm), Evaluation)

    def said(self, values: Values) -> Update:
        """An update with the right header."""
        return replace(self.own, values=values)


Lie = Callable[[Turn], Answer]
MakeLie = Callable[[Scene], Lie]
Told = Callable[[Array], "tuple[float, Cut]"]  # a risk, and a cut that touches it


class Lying:
    """Some clients lie; the others are in this process.

    ``n_altered`` counts the answers that are not those of an honest client.
    """

    def __init__(
        self,
        inner: InProcess,
        lies: Mapping[int, Lie],
        profile: Callable[[ClientProfile], ClientProfile] = lambda profile: profile,
    ) -> None:
        self.inner, self.lies, self.profile = inner, lies, profile
        self.before: dict[int, Update] = {}
        self.sent: dict[int, tuple[Array, Array]] = {}  # ADMM's vector and dual
        self.n_altered = 0

    def join(self) -> Sequence[ClientProfile]:
        """All clients, liars with what they say of themselves."""
        return [
            self.profile(profile) if g in self.lies else profile
            for g, profile in enumerate(self.inner.join())
        ]

    def exchange(self, broadcasts: Sequence[Broadcast], deadline: float | None) -> Sequence[Answer]:
        """One answer for each broadcast."""
        asked = list(broadcasts)
        places = {broadcast.client_id: k for k, broadcast in enumerate(broadcasts)}
        names = [problem.profile.client_id for problem in self.inner.problems]
        present = {g: places[names[g]] for g in self.lies if names[g] in places}
        for g, k in present.items():
            asked[k] = self._known(g, broadcasts[k])
        answers = list(self.inner.exchange(asked, deadline))
        true = tuple(answers)
        for g, k in present.items():
            own = true[k]
            if isinstance(own, Update):
                own = self._squared(g, asked[k], own)
                turn = Turn(asked[k], own, self.before.get(g), true)
                answers[k] = self.lies[g](turn)
                self.before[g] = own
                self.n_altered += not _are_equal(answers[k], own)
            self._keep(g, asked[k], answers[k])
        return answers

    def _known(self, client: int, broadcast: Broadcast) -> Broadcast:
        """With the dual that the server has of an ADMM client, whatever that client sent."""
        values = broadcast.values
        if "rho" not in values or "dual" in values or client not in self.sent:
            return broadcast
        dual = self.sent[client][0] - values["points"][0]
        return replace(broadcast, values={**values, "dual": dual})

    def _squared(self, client: int, broadcast: Broadcast, own: Update) -> Update:
        """With the distance between the model and what the server takes for the last w_g."""
        if client not in self.sent or "squares" not in own.values:
            return own
        vector, dual = self.sent[client]
        apart = vector - dual - broadcast.values["points"][0]
        squares = np.append(apart @ apart, own.values["squares"][1:])
        return replace(own, values={**own.values, "squares": squares})

    def _keep(self, client: int, broadcast: Broadcast, answer: Answer) -> None:
        """What the server knows of an ADMM client from now on; after a fault it says so itself."""
        self.sent.pop(client, None)
        if not (isinstance(answer, Update) and "rho" in broadcast.values):
            return
        vector, w = answer.values.get("vector"), broadcast.values["points"][0]
        if vector is not None and vector.dtype == w.dtype and vector.shape == w.shape:
            self.sent[client] = (vector, dual_of(broadcast, vector))


def dual_of(broadcast: Broadcast, like: Array) -> Array:
    """mu_g of a round of ADMM; 1 at the start."""
    dual = broadcast.values.get("dual")
    return np.ones(np.shape(like)) if dual is None else dual


def _are_equal(left: Answer, right: Answer) -> bool:
    if isinstance(left, Failure) or isinstance(right, Failure):
        return False
    return (
        (left.run_id, left.round, left.client_id) == (right.run_id, right.round, right.client_id)
        and left.values.keys() == right.values.keys()
        and all(_same_array(left.values[name], right.values[name]) for name in left.values)
    )


def _same_array(left: Array, right: Array) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and bool((left == right).all())


def told_by(make: Callable[[Scene], Told]) -> MakeLie:
    """Every answer follows from one function, or what is made up as one goes along."""

    def lie(scene: Scene) -> Lie:
        told = make(scene)
        return lambda turn: turn.said(_answer(scene, told, turn))

    return lie


def _answer(scene: Scene, told: Told, turn: Turn) -> Values:
    """Risk and cut at each point, and what else the method asks for, in agreement with them."""
    asked, width = turn.broadcast.values, scene.problem.width
    points, own = asked["points"], np.zeros(width)
    if points.shape[0] == 0:  # the bundle's start: a model that is no worse than 0
        honest = turn.own.values["own"]
        own = honest if told(honest)[0] <= 1.0 else own
        points = own[None]
    found = [told(point) for point in points]
    values: dict[str, Array] = {
        "risks": np.array([risk for risk, _ in found]),
        **stack_cuts([cut for _, cut in found], width),
    }
    if "own" in turn.own.values:
        values["own"] = own
    if "vector" in turn.own.values:
        values |= _solved(scene, found[0][1], turn)
    return values


def _solved(scene: Scene, cut: Cut, turn: Turn) -> Values:
    """ADMM's vector and squares, as a local solve gives them whose risk is this cut.

    argmin A + v.u + sigma ||u||_1 + (rho/2) ||u - c||^2 is c - v/rho, moved towards 0 by sigma/rho.
    """
    asked, P = turn.broadcast.values, scene.limits.features.size
    w, rho = asked["points"][0], float(asked["rho"])
    dual = dual_of(turn.broadcast, w)
    local = w - dual - cut.slope / rho
    shrunk = np.maximum(np.abs(local[:P]) - cut.norm_weight / rho, 0.0)
    local[:P] = np.copysign(shrunk, local[:P])
    squares = np.array([turn.own.values["squares"][0], local @ local, dual @ dual])
    return {"vector": local + dual, "squares": squares}
