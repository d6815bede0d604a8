"""The attacks by name: what one client, or two, of seven could send in place of an honest answer.

illegal  no rows within the limits give these answers, or they are no answers at all
legal    poison: the answers of rows, or of a radius, that the client might have; no screen can tell
absent   no answer, or one that comes late
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from benchmarks.trust.faulty_updates import FAULTS, Change
from benchmarks.trust.lying import (
    Answer,
    Lie,
    MakeLie,
    Scene,
    Told,
    Turn,
    dual_of,
    told_by,
)
from fdrsvm.core.arrays import Array
from fdrsvm.federated.client import answer
from fdrsvm.federated.client_memory import NO_MEMORY
from fdrsvm.federated.messages import ClientProfile, Update, Values
from fdrsvm.federated.problem import ClientProblem, make_client
from fdrsvm.federated.rounds import Failure
from fdrsvm.risk.worst_case import Cut

Kind = Literal["illegal", "legal", "absent"]
LATE = "no answer within the deadline"
LIARS = (3, 5)
ADMM_ONLY, LAST_ONLY = ("ADMM",), ("ADMM", "SM")  # the others' last model needs no evaluation
_FIRST_LIE = 5
_RAISED = 0.003


@dataclass(frozen=True)
class Attack:
    """Who says what: one lie for each liar."""

    group: str
    lies: tuple[MakeLie, ...]
    kind: Kind = "illegal"
    methods: tuple[str, ...] = ()  # all of them
    limit: float = 1.0  # on every feature
    profile: Callable[[ClientProfile], ClientProfile] = lambda profile: profile

    @property
    def liars(self) -> tuple[int, ...]:
        """Their places among the clients."""
        return LIARS[: len(self.lies)]

    @property
    def is_poison(self) -> bool:
        """Whether it is nothing but other rows within the limits."""
        return self.kind == "legal" and self.group != "profile"


# Other functions than the risk, and cuts that touch them


def _cut(scene: Scene, point: Array, constant: float, slope: Array) -> tuple[float, Cut]:
    """(constant + slope.w)_+ + epsilon ||w||_1 and its cut: the risk of one row -slope/constant."""
    value, moved = constant + float(slope @ point), scene.epsilon * scene.size(point)
    if value > 0.0:
        return value + moved, Cut(constant, slope, scene.epsilon)
    return moved, Cut(0.0, np.zeros(point.size), scene.epsilon)


def _sizes(scale: float) -> Callable[[Scene], Told]:
    """A multiple of ||w||_1."""

    def make(scene: Scene) -> Told:
        def told(point: Array) -> tuple[float, Cut]:
            slope = scale * np.sign(point)
            slope[scene.limits.features.size :] = 0.0
            return scale * scene.size(point), Cut(0.0, slope, 0.0)

        return told

    return make


def _scores(scale: float) -> Callable[[Scene], Told]:
    """A multiple of S(w), the largest score that the limits allow."""

    def make(scene: Scene) -> Told:
        def told(point: Array) -> tuple[float, Cut]:
            return _cut(scene, point, 0.0, scale * scene.reach * np.sign(point))

        return told

    return make


def _always_worst(scene: Scene) -> Told:
    """At every model what rows would give that are the worst just there."""
    return lambda point: _cut(scene, point, 1.0, scene.reach * np.sign(point))


def _ray(constant: float) -> Callable[[Scene], Told]:
    """Falls from the honest model towards its opposite as fast as limits allow."""

    def make(scene: Scene) -> Told:
        slope = scene.reach * np.sign(scene.goal)
        return lambda point: _cut(scene, point, constant, slope)

    return make


def _steered(scene: Scene) -> Told:
    """The worst direction for a step, at a height that hides it: the honest risk if possible."""
    slope = scene.reach * np.sign(scene.goal)

    def told(point: Array) -> tuple[float, Cut]:
        height = scene.problem.risk_of(point) - scene.epsilon * scene.size(point)
        return _cut(scene, point, float(np.clip(height - slope @ point, 0.0, 1.0)), slope)

    return told


def _random_slopes(scene: Scene) -> Told:
    """Another legal row each time."""
    rng = np.random.default_rng(0)
    return lambda point: _cut(scene, point, 1.0, scene.reach * rng.uniform(-1.0, 1.0, point.size))


def _high_without_mass(scene: Scene) -> Told:
    """The highest risk that limits allow, and a cut of no rows."""
    profile = scene.problem.profile
    return lambda point: (
        scene.limits.risk_ceiling(profile, point),
        Cut(0.0, np.zeros(point.size), scene.epsilon),
    )


def _no_loss(scene: Scene) -> Told:
    return lambda point: _cut(scene, point, 0.0, np.zeros(point.size))


def _at_least(height: float) -> Callable[[Scene], Told]:
    """max(f, height)."""

    def make(scene: Scene) -> Told:
        def told(point: Array) -> tuple[float, Cut]:
            risk, cut = scene.problem.cut_at(point)
            return (risk, cut) if risk >= height else (height, Cut(height, 0.0 * point, 0.0))

        return told

    return make


def _times(factor: float) -> Callable[[Scene], Told]:
    """The losses are larger or smaller; what the radius adds stays."""

    def make(scene: Scene) -> Told:
        def told(point: Array) -> tuple[float, Cut]:
            risk, cut = scene.problem.cut_at(point)
            more = (factor - 1.0) * (cut.constant + cut.slope @ point)
            return risk + float(more), Cut(
                factor * cut.constant, factor * cut.slope, cut.norm_weight
            )

        return told

    return make


def _all_times(factor: float) -> Callable[[Scene], Told]:
    def make(scene: Scene) -> Told:
        def told(point: Array) -> tuple[float, Cut]:
            risk, cut = scene.problem.cut_at(point)
            return factor * risk, Cut(
                factor * cut.constant, factor * cut.slope, factor * cut.norm_weight
            )

        return told

    return make


def _raised(height: float) -> Callable[[Scene], Told]:
    def make(scene: Scene) -> Told:
        def told(point: Array) -> tuple[float, Cut]:
            risk, cut = scene.problem.cut_at(point)
            return risk + height, cut._replace(constant=cut.constant + height)

        return told

    return make


def _shifted(scene: Scene) -> Told:
    """The loss as it is half an honest model away."""

    def told(point: Array) -> tuple[float, Cut]:
        away = 0.5 * scene.goal
        risk, cut = scene.problem.cut_at(point - away)
        moved = cut.norm_weight * (scene.size(point) - scene.size(point - away))
        return risk + moved, cut._replace(constant=cut.constant - float(cut.slope @ away))

    return told


def _re_sloped(slope_of: Callable[[Scene, Cut], Array]) -> Callable[[Scene], Told]:
    """The honest risk, and a cut that touches it with another slope."""

    def make(scene: Scene) -> Told:
        def told(point: Array) -> tuple[float, Cut]:
            risk, cut = scene.problem.cut_at(point)
            slope = slope_of(scene, cut)
            rest = cut.norm_weight * scene.size(point)
            return risk, Cut(risk - rest - float(slope @ point), slope, cut.norm_weight)

        return told

    return make


def _steepest(factor: float) -> Callable[[Scene, Cut], Array]:
    """Its largest entry is at ``factor`` times the limits."""

    def slope_of(scene: Scene, cut: Cut) -> Array:
        largest = float(np.max(np.abs(cut.slope) / scene.reach))
        return np.asarray(cut.slope * (factor / largest)) if largest > 0.0 else cut.slope

    return slope_of


def _tilted(scene: Scene, cut: Cut) -> Array:
    return np.clip(cut.slope + 0.3 * scene.reach * np.sign(scene.goal), -scene.reach, scene.reach)


def _flat(scene: Scene, cut: Cut) -> Array:
    return np.zeros(cut.slope.size)


def _with_norm(extra: float) -> Callable[[Scene], Told]:
    """The honest risk and ``extra`` ||w||_1."""

    def make(scene: Scene) -> Told:
        def told(point: Array) -> tuple[float, Cut]:
            risk, cut = scene.problem.cut_at(point)
            return risk + extra * scene.size(point), cut._replace(
                norm_weight=cut.norm_weight + extra
            )

        return told

    return make


# Honest answers with other numbers


def edited(edit: Callable[[Values], Mapping[str, Array]]) -> MakeLie:
    """Some arrays of an honest answer are replaced."""

    def make(scene: Scene) -> Lie:
        return lambda turn: turn.said({**turn.own.values, **edit(turn.own.values)})

    return make


def _faulty(change: Change) -> MakeLie:
    """One of the fifteen faults, in every answer."""

    def make(scene: Scene) -> Lie:
        def lie(turn: Turn) -> Answer:
            name = scene.array if scene.array in turn.own.values else "slopes"
            return change(turn.own, turn.before or replace(turn.own, round=0), name)

        return lie

    return make


def _highest_risk(scene: Scene) -> Lie:
    """The largest risk that limits allow, with honest cuts."""

    def lie(turn: Turn) -> Answer:
        points = turn.broadcast.values["points"]
        points = points if len(points) else turn.own.values["own"][None]
        profile = scene.problem.profile
        risks = [scene.limits.risk_ceiling(profile, point) for point in points]
        return turn.said({**turn.own.values, "risks": np.array(risks)})

    return lie


def _good_only_where_bad(scene: Scene) -> Lie:
    """Leads the start to a bad model; the least risk there, the highest elsewhere, and no cut."""
    bad, profile = -0.03 * scene.goal, scene.problem.profile

    def risk_at(point: Array) -> float:
        if not np.allclose(point, bad):
            return scene.limits.risk_ceiling(profile, point)
        score = scene.limits.score_ceiling(point)
        return max(0.0, 1.0 - score) + scene.epsilon * scene.size(point)

    def lie(turn: Turn) -> Answer:
        values, points = dict(turn.own.values), turn.broadcast.values["points"]
        if "own" in values:
            values["own"] = _own_that_leads_to(bad, turn)
            risks = np.array([max(0.0, 1.0 - scene.limits.score_ceiling(values["own"]))])
            risks += scene.epsilon * scene.size(values["own"])
        else:
            risks = np.array([risk_at(point) for point in points])
        none = {name: values[name][:0] for name in ("constants", "slopes", "norm_weights")}
        return turn.said({**values, "risks": risks, **none})

    return lie


def _own_that_leads_to(goal: Array, turn: Turn) -> Array:
    """What makes the mean of all own optima that model."""
    others = [one for one in turn.others if isinstance(one, Update)]
    rest = [one.values["own"] for one in others if one.client_id != turn.own.client_id]
    return np.asarray(len(others) * goal - np.sum(rest, axis=0))


# When


def timed(when: Callable[[Turn], bool], make: MakeLie) -> MakeLie:
    """Honest at other times."""

    def made(scene: Scene) -> Lie:
        lie = make(scene)
        return lambda turn: lie(turn) if when(turn) else turn.own

    return made


def _replayed(scene: Scene) -> Lie:
    """The numbers of the round before under the right header, if they have the form asked for."""

    def lie(turn: Turn) -> Answer:
        before = turn.before
        if before is None or before.values.keys() != turn.own.values.keys():
            return turn.own
        return turn.said(before.values)

    return lie


def _copied(scene: Scene) -> Lie:
    """Another client's answer."""

    def lie(turn: Turn) -> Answer:
        other = turn.others[0]
        return turn.said(other.values) if isinstance(other, Update) else turn.own

    return lie


def _silent(scene: Scene) -> Lie:
    return lambda turn: Failure(turn.own.client_id, LATE, is_missing=True)


def _overdue(scene: Scene) -> Lie:
    """Each answer arrives a round later."""

    def lie(turn: Turn) -> Answer:
        if turn.before is None:
            return Failure(turn.own.client_id, LATE, is_missing=True)
        return turn.before

    return lie


# Of ADMM


def _reset_dual(scene: Scene) -> Lie:
    """Starts again from mu = 1, as if it had lost its memory."""

    def lie(turn: Turn) -> Answer:
        asked = turn.broadcast
        if "rho" not in asked.values:
            return turn.own
        fresh = {**asked.values, "dual": np.ones(scene.problem.width)}
        values = answer(scene.problem, NO_MEMORY, replace(asked, values=fresh))[1].values
        squares = np.append(turn.own.values["squares"][0], values["squares"][1:])
        return turn.said({**values, "squares": squares})

    return lie


def _moved_vector(scene: Scene) -> Lie:
    """w_g is half an honest model away; squares and cut are those of the answer."""

    def lie(turn: Turn) -> Answer:
        values = turn.own.values
        if "vector" not in values:
            return turn.own
        vector = values["vector"] + 0.5 * scene.goal
        local = vector - dual_of(turn.broadcast, vector)
        squares = values["squares"].copy()
        squares[1] = local @ local
        return turn.said({**values, "vector": vector, "squares": squares})

    return lie


# Poison: honest answers of other rows


def poison(rows_of: Callable[[Scene], tuple[Any, ...]], **settings: Any) -> MakeLie:
    """An honest client with other rows (X, y and perhaps masses), the radius unchanged."""

    def make(scene: Scene) -> Lie:
        X, y, *masses = rows_of(scene)
        return _answering(_client(scene, X, y, *masses, **settings))

    return make


def _client(
    scene: Scene, X: Array, y: Array, masses: Array | None = None, **settings: Any
) -> ClientProblem:
    profile, ball = scene.problem.profile, scene.problem.exact.ball
    given: dict[str, Any] = {
        "epsilon": profile.epsilon,
        "kappa": ball.kappa,
        "norm": profile.norm,
    } | settings
    return make_client(
        profile.client_id,
        np.ascontiguousarray(X),
        y,
        sample_weight=masses,
        fit_intercept=profile.fit_intercept,
        **given,
    )


def _answering(problem: ClientProblem) -> Lie:
    memory = NO_MEMORY

    def lie(turn: Turn) -> Answer:
        nonlocal memory
        memory, update = answer(problem, memory, turn.broadcast)
        return _with_apart(turn, update)

    return lie


def _with_apart(turn: Turn, update: Update) -> Update:
    """ADMM's first square is known to the transport; it holds for whatever was sent before."""
    if "squares" not in update.values:
        return update
    squares = np.append(turn.own.values["squares"][0], update.values["squares"][1:])
    return replace(update, values={**update.values, "squares": squares})


def _own_rows(scene: Scene) -> tuple[Array, Array]:
    return scene.problem.exact.X, scene.problem.exact.y


def flipped(scene: Scene) -> tuple[Array, Array]:
    """All labels wrong."""
    X, y = _own_rows(scene)
    return X, -y


def half_flipped(scene: Scene) -> tuple[Array, Array]:
    """Every other label wrong."""
    X, y = _own_rows(scene)
    return X, np.where(np.arange(len(y)) % 2 == 0, -y, y)


def opposite(scene: Scene) -> tuple[Array, Array]:
    """All rows in the corner where the honest model is most wrong, half of them on either side."""
    corner = scene.limits.features * np.sign(scene.goal[: scene.limits.features.size])
    return np.array([corner, -corner]), np.array([-1.0, 1.0])


def opposite_one_class(scene: Scene) -> tuple[Array, Array]:
    """The same with one label only."""
    X, y = opposite(scene)
    return X[:1], y[:1]


def stretched(scene: Scene) -> tuple[Array, Array]:
    """Wrong labels on rows that are pushed out to the limits, away from the middle."""
    X, y = flipped(scene)
    middle = np.median(X, axis=0)
    return scene.limits.features * np.where(middle < X, 1.0, -1.0), y


def strongest(scene: Scene) -> tuple[Array, Array, Array]:
    """The poison that raises the optimum most."""
    return scene.strongest


def random_rows(scene: Scene) -> tuple[Array, Array]:
    """Any rows within the limits."""
    rng = np.random.default_rng(0)
    X = scene.limits.features * rng.uniform(-1.0, 1.0, (57, scene.limits.features.size))
    return X, rng.choice([-1.0, 1.0], 57)


def _ever_worst_rows(scene: Scene) -> Lie:
    """In each round the row that is worst at that round's model: the rows contradict themselves."""
    memory, P = NO_MEMORY, scene.limits.features.size

    def lie(turn: Turn) -> Answer:
        nonlocal memory
        points = turn.broadcast.values["points"]
        model = points[0] if len(points) else scene.goal
        x = scene.limits.features * np.where(model[:P] >= 0.0, 1.0, -1.0)
        memory, update = answer(_client(scene, x[None], -np.ones(1)), memory, turn.broadcast)
        return _with_apart(turn, update)

    return lie


def _is_from(first: int) -> Callable[[Turn], bool]:
    return lambda turn: turn.broadcast.round >= first


def _is_odd(turn: Turn) -> bool:
    return turn.broadcast.round % 2 == 1


def _floor(value: float) -> Callable[[ClientProfile], ClientProfile]:
    return lambda profile: replace(profile, floor=value)


def _radius(value: float) -> Callable[[ClientProfile], ClientProfile]:
    return lambda profile: replace(profile, epsilon=value, floor=value)


def _changed(name: str, change: Callable[[Array], Array]) -> MakeLie:
    """One array of every answer that has it."""
    return edited(lambda values: {name: change(values[name])} if name in values else {})


def _plus(name: str, number: float) -> MakeLie:
    return _changed(name, lambda array: array + number)


def _scaled(name: str, factor: float) -> MakeLie:
    return _changed(name, lambda array: factor * array)


_TRUTH: MakeLie = edited(lambda values: {})
_LOUDER = told_by(_times(1.5))
_QUIETER = told_by(_times(0.5))


def _one(group: str, lie: MakeLie, **settings: Any) -> Attack:
    return Attack(group, (lie,), **settings)


def _two(first: MakeLie, second: MakeLie, **settings: Any) -> Attack:
    return Attack("two liars", (first, second), **settings)


ATTACKS: dict[str, Attack] = {
    **{f"fault: {name}": _one("faults", _faulty(change)) for name, change in FAULTS.items()},
    # One function in place of the risk
    "||w||_1, cuts without constant": _one("functions", told_by(_sizes(1.0))),
    "0.3 ||w||_1": _one("functions", told_by(_sizes(0.3))),
    "10 ||w||_1": _one("functions", told_by(_sizes(10.0))),
    "0.9 S(w)": _one("functions", told_by(_scores(0.9))),
    "ray towards -w*, constant 0.2": _one("functions", told_by(_ray(0.2))),
    "ray towards -w*, constant 0.9": _one("functions", told_by(_ray(0.9))),
    "max(f, 0.3)": _one("functions", told_by(_at_least(0.3))),
    "max(f, 0.9)": _one("functions", told_by(_at_least(0.9))),
    "losses x 0.9": _one("functions", told_by(_times(0.9))),
    "losses x 1.01": _one("functions", told_by(_times(1.01))),
    "losses x 1.5": _one("functions", _LOUDER),
    "risk and cuts x 0.9": _one("functions", told_by(_all_times(0.9))),
    "risk and cuts x 1.5": _one("functions", told_by(_all_times(1.5))),
    "risk and cuts + 0.05": _one("functions", told_by(_raised(0.05))),
    "no loss at all": _one("functions", told_by(_no_loss)),
    "f(w - w*/2)": _one("functions", told_by(_shifted)),
    "everywhere the worst row": _one("functions", told_by(_always_worst)),
    "steered away from w*": _one("functions", told_by(_steered)),
    "random rows, others each time": _one("functions", told_by(_random_slopes)),
    # Single numbers
    "cuts + 0.003": _one("numbers", _plus("constants", _RAISED)),
    "risks - 0.003": _one("numbers", _plus("risks", -_RAISED)),
    "cuts + 0.003, limit 1000": _one("numbers", _plus("constants", _RAISED), limit=1000.0),
    "risks - 0.003, limit 1000": _one("numbers", _plus("risks", -_RAISED), limit=1000.0),
    "risks x 0.5": _one("numbers", _scaled("risks", 0.5)),
    "risks x 1.5": _one("numbers", _scaled("risks", 1.5)),
    "risks as high as limits allow": _one("numbers", _highest_risk),
    "good only where it is bad, no cuts": _one(
        "numbers", _good_only_where_bad, methods=("bundle",)
    ),
    "slopes 1 % above the limits": _one("numbers", told_by(_re_sloped(_steepest(1.01)))),
    "slopes at the limits": _one("numbers", told_by(_re_sloped(_steepest(1.0)))),
    "slopes reversed": _one("numbers", told_by(_re_sloped(lambda _, cut: -cut.slope))),
    "slopes tilted against w*": _one("numbers", told_by(_re_sloped(_tilted))),
    "flat cuts": _one("numbers", told_by(_re_sloped(_flat))),
    "norm weights 0": _one("numbers", _scaled("norm_weights", 0.0)),
    "norm weights + 1 %": _one("numbers", _scaled("norm_weights", 1.01)),
    "norm weights 0.1 too large": _one("numbers", told_by(_with_norm(0.1))),
    # What a client says of itself
    "floor 1, answers agree": _one("profile", told_by(_with_norm(1.0)), profile=_floor(1.0)),
    "floor 1, honest answers": _one("profile", _TRUTH, profile=_floor(1.0)),
    "floor 1e300, honest answers": _one("profile", _TRUTH, profile=_floor(1e300)),
    "floor 0, honest answers": _one("profile", _TRUTH, profile=_floor(0.0)),
    "epsilon 1e300, honest answers": _one("profile", _TRUTH, profile=_radius(1e300)),
    "epsilon 1e-9": _one(
        "profile", poison(_own_rows, epsilon=1e-9), kind="legal", profile=_radius(1e-9)
    ),
    "epsilon 1": _one(
        "profile", poison(_own_rows, epsilon=1.0), kind="legal", profile=_radius(1.0)
    ),
    # Now and then
    "losses x 1.5 in round 1 only": _one("times", timed(lambda t: t.broadcast.round == 1, _LOUDER)),
    "losses x 1.5 from round 5 on": _one("times", timed(_is_from(_FIRST_LIE), _LOUDER)),
    "losses x 1.5 in odd rounds": _one("times", timed(_is_odd, _LOUDER)),
    "||w||_1 from round 5 on": _one("times", timed(_is_from(_FIRST_LIE), told_by(_sizes(1.0)))),
    "no loss from round 5 on": _one("times", timed(_is_from(_FIRST_LIE), told_by(_no_loss))),
    "last evaluation: no loss": _one(
        "times", timed(lambda turn: turn.is_last, told_by(_no_loss)), methods=LAST_ONLY
    ),
    "last evaluation: cuts + 0.003": _one(
        "times", timed(lambda turn: turn.is_last, _plus("constants", _RAISED)), methods=LAST_ONLY
    ),
    "the round before again, right header": _one("times", _replayed),
    "another client's answers": _one("times", _copied, kind="legal"),
    # ADMM's own
    "squares x 2": _one("ADMM", _scaled("squares", 2.0), methods=ADMM_ONLY),
    "dual reset from round 5 on": _one(
        "ADMM", timed(_is_from(_FIRST_LIE), _reset_dual), methods=ADMM_ONLY
    ),
    "highest risks, solves of no rows": _one(
        "ADMM", told_by(_high_without_mass), methods=ADMM_ONLY
    ),
    "vector moved by w*/2": _one("ADMM", _moved_vector, methods=ADMM_ONLY),
    # Poison
    "labels flipped": _one("poison", poison(flipped), kind="legal"),
    "half of the labels flipped": _one("poison", poison(half_flipped), kind="legal"),
    "rows opposite to w*": _one("poison", poison(opposite), kind="legal"),
    "rows opposite to w*, one class": _one("poison", poison(opposite_one_class), kind="legal"),
    "flipped rows at the limits": _one("poison", poison(stretched), kind="legal"),
    "the poison that raises F* most": _one("poison", poison(strongest), kind="legal"),
    "random rows": _one("poison", poison(random_rows), kind="legal"),
    "rows that change: ever the worst": _one("poison", _ever_worst_rows),
    # Two
    "both losses x 1.5": _two(_LOUDER, _LOUDER),
    "both ||w||_1": _two(told_by(_sizes(1.0)), told_by(_sizes(1.0))),
    "losses x 1.5 and x 0.5": _two(_LOUDER, _QUIETER),
    "risk and cuts + 0.5, and no loss": _two(told_by(_raised(0.5)), told_by(_no_loss)),
    "both everywhere the worst row": _two(told_by(_always_worst), told_by(_always_worst)),
    "both flip labels": _two(poison(flipped), poison(flipped), kind="legal"),
    "both opposite to w*": _two(poison(opposite), poison(opposite), kind="legal"),
    "both the poison that raises F* most": _two(poison(strongest), poison(strongest), kind="legal"),
    # No answers
    "absent from round 5 on": _one("absent", timed(_is_from(_FIRST_LIE), _silent), kind="absent"),
    "absent in odd rounds": _one("absent", timed(_is_odd, _silent), kind="absent"),
    "every answer a round late": _one("absent", _overdue),
}
