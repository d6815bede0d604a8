"""Federations from the plain to the degenerate, transports that misbehave, and how to compare."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from fdrsvm import ConvergenceWarning
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.messages import Update, decode_broadcast, decode_update, encode
from fdrsvm.federated.methods import ADMM, ADMMSC, ALGORITHMS, Bundle, Subgradient
from fdrsvm.federated.problem import ClientProblem, make_client
from fdrsvm.federated.rounds import Failure, run_rounds

NORMS = ("l1", "l2", "linf")
KINDS = (
    "plain",
    "plain",
    "one class",
    "duplicates",
    "constant columns",
    "one sample",
    "wide",
    "separable",
)
DUAL_ORDER = {"linf": 1, "l2": 2, "l1": np.inf}


@dataclass(frozen=True)
class Client:
    """One client's data and ball: what both the reference and the package are given."""

    X: np.ndarray
    y: np.ndarray
    epsilon: float = 0.05
    kappa: float = 1.0
    norm: str = "linf"
    weight: np.ndarray | None = None
    fit_intercept: bool = False
    box: tuple | None = None
    worst_case: str = "exact"
    groups: tuple | None = None

    @property
    def masses(self):
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return weight / weight.sum()

    @property
    def ball(self) -> dict:
        """Keyword arguments of worst_case_risk."""
        return {
            "epsilon": self.epsilon,
            "kappa": self.kappa,
            "norm": self.norm,
            "support": self.box,
            "sample_weight": self.weight,
            "worst_case": self.worst_case,
        }

    @property
    def local(self) -> dict:
        """Keyword arguments of solve_central and solve_client_prox."""
        return {
            "epsilon": self.epsilon,
            "kappa": self.kappa,
            "norm": self.norm,
            "sample_weight": self.weight,
            "fit_intercept": self.fit_intercept,
        }

    def split(self, model):
        return (model[:-1], float(model[-1])) if self.fit_intercept else (model, 0.0)

    def problem(self, client_id) -> ClientProblem:
        settings = {"fit_intercept": self.fit_intercept, "groups": self.groups, **self.ball}
        return make_client(client_id, self.X, self.y, **settings)

    def with_(self, **changes) -> Client:
        return replace(self, **changes)


def random_clients(
    seed, *, n_clients=None, norm=None, boxed=None, fit_intercept=None, kind=None, kinds=KINDS
):
    """Clients and weights, small enough for the reference; unequal in everything that may be."""
    rng = np.random.default_rng(seed)
    n_clients = int(rng.integers(1, 5)) if n_clients is None else n_clients
    kind = str(rng.choice(kinds)) if kind is None else kind
    norm = str(rng.choice(NORMS)) if norm is None else norm
    boxed = bool(rng.random() < 0.3) if boxed is None else boxed
    fit_intercept = bool(rng.random() < 0.4) if fit_intercept is None else fit_intercept
    n_features = int(rng.integers(8, 12)) if kind == "wide" else int(rng.integers(1, 5))
    direction = rng.normal(size=n_features)
    box = None
    if boxed:
        box = (np.zeros(n_features), np.ones(n_features))
        if rng.random() < 0.5:
            box = (-rng.random(n_features), 1.0 + rng.random(n_features))
    clients = []
    for _ in range(n_clients):
        n = 1 if kind == "one sample" else int(rng.integers(2, 13))
        X = rng.random((n, n_features)) if boxed else rng.normal(size=(n, n_features))
        score = (X - X.mean()) @ direction
        y = np.where(score + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)
        if kind == "one class":
            y = np.full(n, rng.choice([-1.0, 1.0]))
        elif kind == "duplicates":
            X = X[rng.integers(0, max(1, n // 3), size=n)]
        elif kind == "constant columns":
            X[:, 0], X[:, -1] = 0.5, 0.0
        elif kind == "separable":
            y = np.where(X @ direction - (0.5 * direction.sum() if boxed else 0.0) > 0.0, 1.0, -1.0)
        clients.append(
            Client(
                X,
                y,
                epsilon=0.0 if kind == "separable" else float(rng.choice([1e-3, 0.02, 0.1, 0.4])),
                kappa=float(rng.choice([0.1, 0.7, 1.0, 3.0, np.inf])),
                norm=norm,
                weight=rng.random(n) + 0.05 if rng.random() < 0.4 else None,
                fit_intercept=fit_intercept,
                box=box,
            )
        )
    alphas = rng.random(n_clients) + 0.1
    return clients, alphas / alphas.sum()


def blobs(n_clients, n_samples=30, n_features=4, seed=0, **settings):
    """A plain federation whose clients see shifted data."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=n_features)
    clients = []
    for g in range(n_clients):
        X = rng.normal(size=(n_samples + g, n_features)) + 0.3 * rng.normal(size=n_features)
        y = np.where(X @ direction + rng.normal(size=len(X)) > 0.0, 1.0, -1.0)
        clients.append(Client(X, y, **{"epsilon": 0.02 * (g + 1), **settings}))
    return clients


def names(n_clients):
    return [f"client-{g}" for g in range(n_clients)]


def problems(clients):
    return [c.problem(name) for c, name in zip(clients, names(len(clients)), strict=True)]


def train(clients, algorithm, *, transport=None, alphas="equal", **settings):
    """A run whose gap may stay open; other warnings are errors as ever."""
    transport = InProcess(problems(clients)) if transport is None else transport
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[a-z-]+: certified relative gap", ConvergenceWarning)
        return run_rounds(
            transport,
            algorithm,
            **{"client_weights": alphas, "run_id": "a-run", **settings},
        )


METHODS = {
    "bundle": Bundle(),
    "summed": Bundle(cuts="summed"),
    "admm": ADMM(rho=0.05),
    "admm-relaxed": ADMM(rho=0.05, relaxation=1.6, balance=True),
    "admm-sc": ADMMSC(rho=0.01),
    "subgradient": Subgradient(step_size=0.5),
}
# Whatever else is registered: the baselines.
METHODS |= {name: method() for name, method in ALGORITHMS.items() if name not in METHODS}
CERTIFYING = ("bundle", "summed", "admm", "admm-relaxed", "admm-sc", "subgradient")


# --- transports ---


class Recorded:
    """Keeps all that passes."""

    def __init__(self, inner):
        self.inner = inner
        self.rounds = []

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        answers = self.inner.exchange(broadcasts, deadline)
        self.rounds.append((broadcasts, answers))
        return answers


class ThroughBytes:
    """Every message is encoded and decoded on its way."""

    def __init__(self, inner):
        self.inner = inner

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        arrived = [decode_broadcast(encode(broadcast)) for broadcast in broadcasts]
        return [
            decode_update(encode(answer)) if isinstance(answer, Update) else answer
            for answer in self.inner.exchange(arrived, deadline)
        ]


class Absent:
    """Some clients are not asked in some rounds, and do not know of them."""

    def __init__(self, inner, is_absent):
        self.inner = inner
        self.is_absent = is_absent

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        asked = [b for b in broadcasts if not self.is_absent(b.round, b.client_id)]
        found = {a.client_id: a for a in self.inner.exchange(asked, deadline)}
        return [
            found.get(b.client_id, Failure(b.client_id, "away", is_missing=True))
            for b in broadcasts
        ]


class Tampered:
    """All clients are asked; one client's answer is changed on its way, in some rounds."""

    def __init__(self, inner, client_id, change, rounds=(2,)):
        self.inner = inner
        self.client_id = client_id
        self.change = change
        self.rounds = rounds

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        return [
            self.change(answer)
            if broadcast.client_id == self.client_id and broadcast.round in self.rounds
            else answer
            for broadcast, answer in zip(
                broadcasts, self.inner.exchange(broadcasts, deadline), strict=True
            )
        ]


def with_values(update, **changes):
    """An update with other arrays; None takes one out."""
    values = {**update.values, **changes}
    kept = {name: array for name, array in values.items() if array is not None}
    return replace(update, values=kept)


def gone(update):
    return Failure(update.client_id, "away", is_missing=True)


# --- comparison ---


def timeless(history):
    """All of a history but how long things took."""
    return [replace(record, seconds=0.0, server_seconds=0.0) for record in history]


def assert_same_bits(left, right):
    """Two results are equal to the last bit, the clock apart."""
    for name in ("model", "newest", "risks"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    for name in ("objective", "lower_bound", "bound_radius", "gap", "n_rounds", "reason"):
        assert getattr(left, name) == getattr(right, name), name
    assert timeless(left.history) == timeless(right.history)


def assert_same_values(left, right):
    """Named arrays, equal to the last bit."""
    assert set(left) == set(right)
    for name in left:
        assert left[name].dtype == right[name].dtype, name
        np.testing.assert_array_equal(left[name], right[name])


def copied(values):
    return {name: np.array(array, copy=True) for name, array in values.items()}
