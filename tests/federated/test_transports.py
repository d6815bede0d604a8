"""However messages travel, the result has the same bits."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fdrsvm import InvalidInputError
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from tests.federated.cases import (
    METHODS,
    Client,
    ThroughBytes,
    assert_same_bits,
    assert_same_values,
    blobs,
    problems,
    random_clients,
    train,
)

FORMS = {
    "plain": {"n_clients": 3, "boxed": False, "fit_intercept": False, "norm": "linf"},
    "intercept": {"n_clients": 4, "boxed": False, "fit_intercept": True, "norm": "l2"},
    "box": {"n_clients": 3, "boxed": True, "fit_intercept": True, "norm": "l1"},
}

# ADMM knows no support.
PAIRS = [(m, f) for m in METHODS for f in FORMS if f != "box" or not m.startswith("admm")]


def case(form):
    clients, alphas = random_clients(21, kind="plain", **FORMS[form])
    return clients, {"alphas": alphas, "tol": 1e-5, "max_rounds": 14}


@pytest.mark.parametrize(("method", "form"), PAIRS)
def test_bytes_in_between_change_no_bit(method, form):
    clients, settings = case(form)
    direct, wired = InProcess(problems(clients)), InProcess(problems(clients))
    left = train(clients, METHODS[method], transport=direct, **settings)
    right = train(clients, METHODS[method], transport=ThroughBytes(wired), **settings)
    assert_same_bits(left, right)
    for name, memory in direct.memories.items():
        assert_same_values(memory.values, wired.memories[name].values)


@pytest.mark.parametrize(("method", "form"), PAIRS)
def test_threads_change_no_bit(method, form):
    clients, settings = case(form)
    left = train(clients, METHODS[method], **settings)
    threads = InProcess(problems(clients), n_threads=4)
    assert_same_bits(left, train(clients, METHODS[method], transport=threads, **settings))


@pytest.mark.parametrize("method", METHODS)
def test_a_run_repeats_itself(method):
    clients, settings = case("plain")
    transport = InProcess(problems(clients))  # a second run must not read the first one's memory
    first = train(clients, METHODS[method], transport=transport, **settings, run_id="one")
    second = train(clients, METHODS[method], transport=transport, **settings, run_id="two")
    assert_same_bits(first, second)


MANY_ANSWERS = """
import numpy as np
from fdrsvm.federated.methods import Bundle
from tests.federated.cases import random_clients

rng = np.random.default_rng(2)
problem = random_clients(10398)[0][1].problem("c")
asked = {"points": np.empty((0, 9)), "prox": np.array(0.0), "price": np.zeros(9)}
found, holes = set(), []
for _ in range(3000):
    holes.append([np.empty(int(rng.integers(1, 60))) for _ in range(30)][::2])
    holes = holes[-5:]
    found.add(Bundle().answer(problem, {}, asked)[1]["own"].tobytes())
print(len(found))
"""


def test_a_client_answers_with_the_same_bits_wherever_its_memory_lies():
    """A resumed run is another process: there every array has another address.

    Nine samples of nine features: odd sizes, where compiled loops have a fast and a slow way, and
    rounding tells which one was taken. In a fresh process, whose memory has many holes yet to fill.
    """
    found = subprocess.run(
        [sys.executable, "-c", MANY_ANSWERS],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
        text=True,
    )
    assert int(found.stdout) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm", [Bundle(), Bundle(cuts="summed"), ADMM(), Subgradient()], ids=repr
)
def test_a_thousand_clients_run_in_one_process(algorithm):
    rng = np.random.default_rng(0)
    direction = rng.normal(size=3)
    clients = []
    for _ in range(1000):
        X = rng.normal(size=(4, 3))
        clients.append(Client(X, np.where(X @ direction > 0.0, 1.0, -1.0), epsilon=0.05))
    result = train(clients, algorithm, max_rounds=3, tol=1e-9)
    assert result.n_rounds == 3
    assert all(record.n_answers == 1000 for record in result.history)
    assert 0.0 <= result.lower_bound <= result.objective < 1.0
    assert result.risks.shape == (1000,)


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, "2", None, True])
def test_the_number_of_threads_is_checked(n_threads):
    with pytest.raises(InvalidInputError, match="n_threads"):
        InProcess(problems(blobs(2)), n_threads=n_threads)
