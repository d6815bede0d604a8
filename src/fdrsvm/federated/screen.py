"""What is checked before an answer counts: its form, and that legal data could give it, [limits].

Form     client, run, round, names, dtype, shape, finite numbers
Rules    what follows from the profile, from agreed limits on features, and from the client's own
         words: rows that give a cut have a least risk at every model, and a smaller one that the
         same client claims is wrong, now or in a later round
Proof    the same for what a certificate rests on: each client's risk at the best model and its
         mixture of cuts. If they pass, some legal data at that client make the certificate true

A fault is one client's: the others' answers count. Sums over clients, as secure aggregation gives
them, keep fewer rules, and a fault of a sum is nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.federated.certificate import Certificate, Evidence
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, Failure, Shape, Update, Values
from fdrsvm.native import screening as kernels

CONTRADICTION = "contradiction"
FORM = "form"  # an answer that cannot even be read
MISSING, ERROR = "missing", "error"  # no answer: late or gone, or an error at the client
# In place of a client's name where a bound is made of sums, as the baselines' are in the open too.
NOBODY_NAMED = (
    "the bound exceeds the objective, and sums do not tell whose answers are wrong: what was "
    "proved is forgotten"
)

ROUNDING = kernels.ROUNDING
_BLURRED = 0.125  # of 1 + S: a blurred cut lies no farther below the risk, [blurred-cut]
_NEVER_NEGATIVE = ("norm_weights", "squares")
_RULES: dict[kernels.Rule, tuple[str, str]] = {
    kernels.Rule.NORM_WEIGHT: ("norm weight", "a cut's norm_weights entry exceeds epsilon L"),
    kernels.Rule.CONSTANT_HIGH: ("constant", "a cut's constant exceeds the loss of the model 0"),
    kernels.Rule.CONSTANT_LOW: ("constant", "a cut's constant is negative"),
    kernels.Rule.SLOPE: (
        "slope",
        "a cut's slope exceeds what rows of its mass within the limits give",
    ),
    kernels.Rule.RISK_LOW: ("risk", "a risk is below that of any rows within the limits"),
    kernels.Rule.RISK_HIGH: ("risk", "a risk exceeds what the limits on features allow"),
    kernels.Rule.ABOVE: (
        "cut",
        "a cut, or rows that give it, lies above a risk of the same answer",
    ),
    kernels.Rule.APART: ("cut", "a cut does not touch the risk where it was made"),
    kernels.Rule.OVER: (
        "risk",
        "a risk exceeds that of any rows that give a cut of the same answer",
    ),
    kernels.Rule.VECTOR: ("vector", "the vector does not follow from the cut"),
    kernels.Rule.INTERCEPT: ("vector", "the vector's intercept does not follow from the cut"),
    kernels.Rule.SQUARES: ("squares", "a square is not that of its vector"),
    kernels.Rule.CONTRADICTING: (
        CONTRADICTION,
        "a cut of one round, or rows that give it, lies above its risk in another, or could not be "
        "as bad: wrong answers, or data that changed",
    ),
}


@dataclass(frozen=True)
class Fault:
    """Which rule an answer breaks, and by how much; never a row, and never a vector."""

    rule: str
    text: str
    value: float | None = None
    limit: float | None = None

    @property
    def breaks_a_rule(self) -> bool:
        """Whether there was an answer, and it could not be right."""
        return self.rule not in (MISSING, ERROR)

    def __str__(self) -> str:
        if self.value is None or self.limit is None:
            return self.text
        return f"{self.text}: {self.value:.3g}, limit {self.limit:.3g}"


Faults: TypeAlias = dict[int, Fault]
Answers: TypeAlias = kernels.Answers
Known: TypeAlias = kernels.Cuts  # and whose they are
Judge: TypeAlias = "Callable[[Federation, Any, Replies, Screen], Faults]"


class Screen:
    """What is believed of answers, and what is held against them.

    Parameters
    ----------
    limits : Limits, optional
        What all clients have agreed on; without it only the form counts, and contradictions.
    of_sums : bool
        Whether updates are weighted sums over clients, as secure aggregation gives them: rules that
        sums do not keep are left out then.
    """

    def __init__(self, limits: Limits | None = None, of_sums: bool = False) -> None:
        self.limits, self.of_sums = limits, of_sums
        if limits is None:
            self.bounds = kernels.Bounds(
                lowest_constant=-np.inf,
                highest_constant=np.inf,
                slopes=np.empty(0),
                has_slopes=False,
                is_hinge=False,
                touches=False,
                blurred=0.0,
                is_single=not of_sums,
                grid=0.0,
            )
            return
        # A cut touches the risk where it was made, unless it follows the paper's worst case. A
        # blurred one comes close, but without limits nobody knows how wide its band is.
        is_near = limits.are_finite or limits.blur == 0
        self.bounds = kernels.Bounds(
            # The package's own losses fall with the margin: their tangents are not negative at 0.
            lowest_constant=0.0 if limits.is_known_loss else -np.inf,
            highest_constant=limits.loss_at_zero,
            slopes=limits.slopes,
            has_slopes=limits.are_finite,
            is_hinge=limits.is_hinge,
            touches=is_near and limits.worst_case == "exact" and not of_sums,
            blurred=_BLURRED if limits.blur > 0 else 0.0,
            is_single=not of_sums,
            grid=limits.resolution,
        )

    # --- a round's answers ---

    def sift(
        self,
        federation: Federation,
        state: Any,
        answers: Sequence[Update | Failure],
        broadcasts: Sequence[Broadcast],
        asked: Sequence[int],
        shapes: Mapping[str, Shape],
        judge: Judge,
    ) -> tuple[Replies, Faults]:
        """The answers that count, and why the others do not.

        ``asked`` are the indices of the clients the broadcasts went to. ``judge`` is the method's
        and knows its state; its rules are for answers whose form is right, so it sees no others.
        """
        form = form_of(tuple(shapes.items()))
        faults: Faults = {}
        updates: list[Update | None] = [None] * federation.n_clients
        # Whatever a client sends, its numbers may overflow in a rule: that is for the rule to see.
        with np.errstate(over="ignore", invalid="ignore"):
            for g, answer, broadcast in zip(asked, answers, broadcasts, strict=True):
                if isinstance(answer, Failure):
                    rule = MISSING if answer.is_missing else ERROR
                    faults[g] = Fault(FORM if answer.is_unreadable else rule, answer.reason)
                    continue
                fault = check_form(answer, broadcast, form)
                if fault is None:
                    updates[g] = answer
                else:
                    faults[g] = fault
            replies = Replies(updates)
            judged = judge(federation, state, replies, self) if replies.values else {}
        if not judged:
            return replies, faults
        # Gathered again without them: whatever the method does next must not see a word of theirs.
        for g in judged:
            updates[g] = None
        return Replies(updates), {**faults, **judged}

    def judge_answers(
        self,
        federation: Federation,
        points: Array,
        answers: Answers,
        *,
        touching: bool = True,
        penalties: Array | None = None,
    ) -> Faults:
        """Rules on risks and cuts at ``points``, client by client.

        With ``touching`` the first cuts were made at the points. With ``penalties`` the risks are
        those of the baselines: a mean loss plus the penalty times ||w||^2, and the cuts are of the
        loss.
        """
        findings = kernels.judge_answers(
            self.bounds,
            federation.radii,
            self.points(points),
            answers,
            touching=touching,
            penalties=penalties,
        )
        return faults_of(findings)

    def judge_past(
        self, federation: Federation, points: Array, risks: Array, known: Known
    ) -> Faults:
        """Clients with a cut that contradicts a risk of their own; a nan is a risk not known."""
        points_seen = self.points(points)
        return faults_of(
            kernels.judge_past(self.bounds, federation.radii, points_seen, risks, known)
        )

    def judge_round(
        self,
        federation: Federation,
        evidence: Evidence,
        point: Array,
        answers: Answers,
        *,
        touching: bool = True,
    ) -> Faults:
        """One risk and one cut of each client, also against all that ``evidence`` holds of it."""
        # One call for both ways round: this round's cut against the risk at the best model, and
        # all cuts kept against this round's risk.
        best = evidence.certificate
        past = kernels.Past(
            best_risks=best.risks,
            constants=evidence.constants,
            slopes=evidence.slopes,
            norm_weights=evidence.norm_weights,
        )
        points = self.points(np.array([point, best.model]))
        return faults_of(
            kernels.judge_round(
                self.bounds, federation.radii, points, answers, past, touching=touching
            )
        )

    def points(self, models: Array) -> kernels.Points:
        """With least loss and steepness at each, where the kernels cannot know the loss."""
        limits = self.limits
        if limits is not None and limits.is_hinge:
            return kernels.Points(models)
        if limits is None or not (limits.is_known_loss and limits.are_finite):
            return kernels.Points(models, np.full((len(models), 2), (0.0, np.inf)))
        scores = [limits.score_ceiling(model) for model in models]
        others = [[limits.least_loss(score), limits.steepness(score)] for score in scores]
        return kernels.Points(models, np.array(others).reshape(-1, 2))

    # --- a certificate ---

    def judge_proof(
        self, federation: Federation, certificate: Certificate, judged: Sequence[Certificate] = ()
    ) -> Faults:
        """Clients whose part of a certificate contradicts itself; none if all of it is legal.

        Each model's certificate is judged; one that has not changed since it was ``judged`` is not
        judged again. Sums over clients have no parts to tell apart.
        """
        faults: Faults = {}
        if self.of_sums:
            return faults
        for part in certificate.parts:
            # By identity: numbers that are equal may still rest on another proof.
            if not part.objective < np.inf or id(part) in map(id, judged):
                continue
            # One cut and one risk per client, as if it had sent just these: legal data exist that
            # give both, or the certificate is not one.
            proof, everyone = part.proof, np.arange(federation.n_clients)
            known = Known(everyone, proof.constants, proof.slopes, proof.norm_weights)
            counted = np.where(federation.alphas > 0.0, part.risks, np.nan)
            unsound = self.judge_past(federation, part.model[None], counted[:, None], known)
            faults = {**unsound, **faults}
        return faults


class Form(NamedTuple):
    """Names and shapes of an answer's arrays, as messages name them and as the kernels check."""

    shapes: Mapping[str, Shape]
    triples: tuple[tuple[str, str, str], ...]  # arrays of cuts whose number is not prescribed
    compiled: kernels.Form


@lru_cache(maxsize=64)  # most rounds have the form of the one before
def form_of(items: tuple[tuple[str, Shape], ...]) -> Form:
    """What all answers of a round are held against, from the items of a mapping to shapes."""
    shapes = dict(items)
    triples = [
        (name, f"{prefix}slopes", f"{prefix}norm_weights")
        for name, shape in items
        for prefix in [name.removesuffix("constants")]
        if shape == (None,) and name.endswith("constants")
    ]
    never_negative = [name for name in shapes if name.endswith(_NEVER_NEGATIVE)]
    return Form(shapes, tuple(triples), kernels.Form(shapes, triples, never_negative))


def check_form(answer: Update, broadcast: Broadcast, form: Form) -> Fault | None:
    """Whether an answer is to this broadcast, and its arrays can be read at all."""
    if answer.client_id != broadcast.client_id:
        return Fault("client", f"the answer is from {answer.client_id!r}")
    if answer.run_id != broadcast.run_id:
        return Fault("run", "the answer is of another run")
    if answer.round != broadcast.round:
        return Fault("round", f"the answer is of round {answer.round}, not {broadcast.round}")
    # Names, types, shapes and finite numbers in one compiled pass: it sees every answer of all.
    values = answer.values
    wrong = form.compiled.fault(values if type(values) is dict else dict(values))
    return None if wrong is None else Fault(wrong[0], _words_of_form(*wrong, values, form))


def _words_of_form(rule: str, name: str | None, values: Values, form: Form) -> str:
    if name is None:
        return f"the answer holds {sorted(map(str, values))}, not {sorted(form.shapes)}"
    if rule == "dtype":
        return f"{name} is not an array of float64, plain and in C order"
    if rule == "shape":
        return f"{name} has shape {values[name].shape}, not {form.shapes[name]}"
    if rule == "finite":
        return f"{name} is not finite"
    if rule == "negative":
        return f"{name} has a negative entry"
    [triple] = [each for each in form.triples if name in each]
    return f"its cuts are {sorted({len(values[each]) for each in triple})} in number"


def faults_of(findings: list[kernels.Finding]) -> Faults:
    """In words what the kernels found."""
    faults: Faults = {}
    for finding in findings:
        rule, text = _RULES[finding.rule]
        faults[finding.client] = Fault(rule, text, finding.value, finding.limit)
    return faults


def in_words(faults: Faults, names: Sequence[str]) -> tuple[str, ...]:
    """One sentence per client, with its name."""
    if not faults:
        return ()
    return tuple([f"{names[g]}: {faults[g]}" for g in sorted(faults)])
