"""A method of another package: one class, made known by its name, run and certified as ours are."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from fdrsvm import InvalidInputError
from fdrsvm.errors import ClientError, NumericalError
from fdrsvm.federated import Algorithm, InProcess, Progress, Subgradient, register, run_rounds
from fdrsvm.federated.certificate import Evidence, Proof, no_evidence
from fdrsvm.federated.methods import ALGORITHMS, describe, from_description
from fdrsvm.federated.problem import evaluate
from tests.federated.cases import blobs, problems


@dataclass(frozen=True)
class WalkState:
    w: np.ndarray
    t: int
    evidence: Evidence


def make_method(method_name="random-walk"):
    @dataclass(frozen=True)
    class RandomWalk(Algorithm[WalkState]):
        """Tries models around the best one: no good method, and still a certified one."""

        name: ClassVar[str] = method_name
        state_type: ClassVar[type] = WalkState
        step: float = 0.3

        def start(self, federation):
            return WalkState(np.zeros(federation.width), 0, no_evidence(federation))

        def ask(self, federation, state, client):
            return {"points": state.w[None]}

        def answer(self, problem, memory, asked):
            return memory, evaluate(problem, asked["points"])

        def advance(self, federation, state, replies):
            evidence = self.observed(federation, state, replies)
            rng = np.random.default_rng(state.t)
            w = evidence.certificate.model + self.step * rng.normal(size=federation.width)
            return WalkState(w, state.t + 1, evidence)

        def progress(self, state):
            return Progress(state.w, state.evidence.certificate, {"t": state.t}, pending=state.w)

    return RandomWalk


@pytest.fixture
def forgotten(monkeypatch):
    """What a test registers is not known to others."""
    from fdrsvm.federated import methods

    monkeypatch.setattr(methods, "_KNOWN", dict(methods._KNOWN))
    yield
    from_description.cache_clear()


@pytest.mark.filterwarnings("ignore::fdrsvm.errors.ConvergenceWarning")
@pytest.mark.usefixtures("forgotten")
def test_it_is_registered_run_and_certified():
    method = register(make_method())
    result = run_rounds(InProcess(problems(blobs(3))), method(step=0.2), max_rounds=60)
    best = run_rounds(InProcess(problems(blobs(3))), ALGORITHMS["bundle"](), tol=1e-6)
    assert result.lower_bound <= best.objective * (1.0 + 1e-9)
    assert best.lower_bound <= result.objective < result.history[0].objective
    assert 0.0 < result.gap < 1.0


@pytest.mark.usefixtures("forgotten")
def test_a_name_belongs_to_one_class_which_may_be_defined_again():
    first, again = register(make_method()), register(make_method())
    assert first is not again
    assert type(from_description(describe(again()))) is again
    with pytest.raises(InvalidInputError, match="name: must be the method's alone; Subgradient"):
        register(make_method("subgradient"))
    assert from_description(describe(ALGORITHMS["subgradient"]())).name == "subgradient"


def test_one_that_is_not_registered_says_what_to_do():
    with pytest.raises(ClientError, match=r"made known by fdrsvm\.federated\.methods\.register"):
        run_rounds(InProcess(problems(blobs(3))), make_method("unheard-of")())


@dataclass(frozen=True)
class Overconfident(Subgradient):
    """Whose last evaluation proves what cannot be, with nobody's words in it."""

    name: ClassVar[str] = "overconfident"

    def with_evaluation(self, federation, state, replies):
        state = super().with_evaluation(federation, state, replies)
        best = state.evidence.certificate
        unknown = Proof(*(np.full_like(each, np.nan) for each in vars(best.proof).values()))
        false = replace(best, lower_bound=best.objective + 1.0, proof=unknown)
        return replace(state, evidence=replace(state.evidence, certificate=false))


@pytest.mark.usefixtures("forgotten")
def test_a_false_proof_at_the_very_end_undoes_nothing_where_faults_are_dropped():
    register(Overconfident)
    settings = {"max_rounds": 5, "tol": 0.0}
    with pytest.raises(NumericalError, match="exceeds the objective"):
        run_rounds(InProcess(problems(blobs(3))), Overconfident(), **settings)
    result = run_rounds(InProcess(problems(blobs(3))), Overconfident(), on_fault="drop", **settings)
    assert result.objective == result.history[-1].objective
    assert 0.0 < result.lower_bound <= result.objective
