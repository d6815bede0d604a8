"""Nobody changes what was handed to them, and the same question gets the same answer."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fdrsvm.federated
from fdrsvm import InvalidInputError
from fdrsvm.federated.checkpoint import state_to_arrays
from fdrsvm.federated.client import answer
from fdrsvm.federated.client_memory import NO_MEMORY
from fdrsvm.federated.federation import Federation, Replies
from fdrsvm.federated.messages import Broadcast
from fdrsvm.federated.methods import describe
from tests.federated.cases import (
    METHODS,
    assert_same_values,
    blobs,
    copied,
    problems,
    random_clients,
)


def lock_step(algorithm, n_rounds):
    """Every call of a run, with copies of what went in: yields (what, before, after)."""
    clients, alphas = random_clients(41, n_clients=3, boxed=False, kind="plain")
    made = problems(clients)
    federation = Federation.checked([problem.profile for problem in made], alphas)
    state, memories = algorithm.start(federation), [{}, {}, {}]
    data = [(p.exact.X.copy(), p.exact.y.copy()) for p in made]
    for _ in range(n_rounds):
        before = copied(state_to_arrays(state))
        updates = []
        for g, problem in enumerate(made):
            asked = algorithm.ask(federation, state, g)
            sent, known = copied(asked), copied(memories[g])
            remembered, found = algorithm.answer(problem, memories[g], asked)
            again_remembered, again = algorithm.answer(problem, copied(known), copied(sent))
            yield "a question", sent, asked
            yield "a memory", known, memories[g]
            yield "an answer, asked for twice", again, found
            yield "a memory, made twice", again_remembered, remembered
            memories[g] = remembered
            updates.append(_Update(found))
        yield "a state, when asking", before, state_to_arrays(state)
        answers = [copied(update.values) for update in updates]
        moved = algorithm.advance(federation, state, Replies(tuple(updates)))
        twice = algorithm.advance(federation, state, Replies(tuple(updates)))
        yield "a state, when advancing", before, state_to_arrays(state)
        yield "a state, made twice", state_to_arrays(moved), state_to_arrays(twice)
        for update, values in zip(updates, answers, strict=True):
            yield "an answer, when advancing", values, update.values
        kept = copied(state_to_arrays(moved))
        settled = algorithm.settle(federation, moved)
        after = copied(state_to_arrays(settled))
        algorithm.progress(settled)
        yield "a state, when settling", kept, state_to_arrays(moved)
        yield "a state, when looked at", after, state_to_arrays(settled)
        state = settled
    for (X, y), problem in zip(data, made, strict=True):
        yield "a client's data", {"X": X, "y": y}, {"X": problem.exact.X, "y": problem.exact.y}


class _Update:
    def __init__(self, values):
        self.values = values


@pytest.mark.parametrize("method", METHODS)
def test_nothing_handed_over_is_changed(method):
    for what, before, after in lock_step(METHODS[method], 6):
        try:
            assert_same_values(before, after)
        except AssertionError as error:
            raise AssertionError(f"{what} was changed") from error


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_holds_what_the_method_expects(method):
    clients, alphas = random_clients(42, n_clients=2, boxed=False, kind="plain")
    made = problems(clients)
    algorithm = METHODS[method]
    federation = Federation.checked([problem.profile for problem in made], alphas)
    state = algorithm.start(federation)
    for _ in range(4):
        updates = []
        for g, problem in enumerate(made):
            asked = algorithm.ask(federation, state, g)
            _, found = algorithm.answer(problem, {}, asked)
            form = algorithm.expects(federation, asked)
            assert set(found) == set(form)
            for name, shape in form.items():
                assert found[name].dtype == np.float64
                assert len(shape) == found[name].ndim
                assert all(s in (None, n) for s, n in zip(shape, found[name].shape, strict=True))
            updates.append(_Update(found))
        state = algorithm.advance(federation, state, Replies(tuple(updates)))


# --- the client's memory ---


def asked_of(method, values, round_, run_id="a-run"):
    return Broadcast(run_id, round_, "client-0", describe(METHODS[method]), values)


def admm_question(w):
    return {"points": np.full((1, 4), w), "rho": np.array(0.05), "tau": np.array(0.0)}


def test_a_round_asked_again_is_answered_with_the_same_bits():
    (problem,) = problems(blobs(1))
    memory, answers = NO_MEMORY, {}
    for t in range(1, 7):
        memory, answers[t] = answer(problem, memory, asked_of("admm", admm_question(0.1 * t), t))
    for t in (6, 5, 4):
        redone, update = answer(problem, memory, asked_of("admm", admm_question(0.1 * t), t))
        assert_same_values(update.values, answers[t].values)
        # A message sent twice: what came after it still holds ...
        assert_same_values(redone.values, memory.values)
        # ... and from there on the run goes as it went.
        if t < 6:
            _, after = answer(
                problem, redone, asked_of("admm", admm_question(0.1 * (t + 1)), t + 1)
            )
            assert_same_values(after.values, answers[t + 1].values)
    with pytest.raises(InvalidInputError, match="round"):
        answer(problem, memory, asked_of("admm", admm_question(0.3), 3))


def test_rounds_missed_in_between_are_no_rounds():
    (problem,) = problems(blobs(1))
    memory, first = answer(problem, NO_MEMORY, asked_of("admm", admm_question(0.1), 2))
    memory, _ = answer(problem, memory, asked_of("admm", admm_question(0.3), 5))
    # Round 3 was never answered: it is answered now from what was known after round 2.
    fresh, _ = answer(problem, NO_MEMORY, asked_of("admm", admm_question(0.1), 2))
    _, expected = answer(problem, fresh, asked_of("admm", admm_question(0.2), 3))
    _, found = answer(problem, memory, asked_of("admm", admm_question(0.2), 3))
    assert_same_values(found.values, expected.values)
    _, again = answer(problem, memory, asked_of("admm", admm_question(0.1), 1))
    assert_same_values(again.values, first.values)


def test_another_run_starts_without_memory():
    (problem,) = problems(blobs(1))
    memory, first = answer(problem, NO_MEMORY, asked_of("admm", admm_question(0.1), 1))
    memory, _ = answer(problem, memory, asked_of("admm", admm_question(0.2), 2))
    _, other = answer(problem, memory, asked_of("admm", admm_question(0.1), 1, run_id="other"))
    assert_same_values(other.values, first.values)


def test_a_message_for_someone_else_is_refused():
    (problem,) = problems(blobs(1))
    stray = replace(asked_of("admm", admm_question(0.1), 1), client_id="client-9")
    with pytest.raises(InvalidInputError, match="client-9"):
        answer(problem, NO_MEMORY, stray)


# --- what is imported ---


def test_nothing_federated_can_unpickle():
    folder = Path(fdrsvm.federated.__file__).parent
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found = [node.module or ""]
            for name in found:
                assert name.split(".")[0] not in {"pickle", "marshal", "shelve", "joblib", "dill"}
