"""Four plants, wrong labels, one model: what `make demo` shows.

Four plants run the same pump; each has seen one size of leak, and some of their labels are wrong.
They train one leak detector by the paper's ADMM: each round a plant sends its own solution plus its
scaled dual, P + 1 numbers, and the server averages. Rows never leave a plant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdrsvm.ambiguity.worst_case import RiskOracle
from fdrsvm.datasets.pump import make_pump
from fdrsvm.maths.arrays import Array
from fdrsvm.solvers import WarmStart, prepare_client

N_ROUNDS = 100
RHO = 1e-2
SENSOR_NOISE = 0.1  # standard deviation, in units of a feature's range
EPSILON, KAPPA = 0.01, 1.0
RADII = np.linspace(0.0, 0.05, 26)


@dataclass(frozen=True)
class Data:
    """Plants' training data with some labels wrong, and a clean test set; features about [0, 1]."""

    plants: Sequence[tuple[Array, Array]]
    X_test: Array
    y_test: Array
    wrong_labels: float  # share of the training labels


@dataclass(frozen=True)
class Outcome:
    """One trained model and how it does on the clean test set."""

    name: str
    objective: Array  # mean of the plants' worst-case risks, round by round
    accuracy: float
    accuracy_noisy: float
    risk: Array  # worst-case risk on the test set, at each of RADII


def make_data(seed: int) -> Data:
    """The simulated pump with a leaking seal (+1), labels flipped as in the paper."""
    pump = make_pump("noisy-labels", random_state=seed)
    wrong = float(np.mean(pump.y != pump.y_true))
    return Data(pump.parts(normalised=True), pump.X_test_normalised, pump.y_test, wrong)


def train(
    plants: Sequence[tuple[Array, Array]], epsilon: float, kappa: float
) -> tuple[Array, float, Array]:
    """Consensus ADMM with equal weights, from w = 0 and scaled duals of 1 as in the paper."""
    clients = [
        prepare_client(X, y, rho=RHO, epsilon=epsilon, kappa=kappa, fit_intercept=True)
        for X, y in plants
    ]
    oracles = [RiskOracle(X, y, epsilon=epsilon, kappa=kappa) for X, y in plants]
    n_features = plants[0][0].shape[1]
    model, objective = np.zeros(n_features + 1), np.empty(N_ROUNDS)  # the intercept comes last
    duals = [np.ones(n_features + 1) for _ in clients]
    starts: list[WarmStart | None] = [None for _ in clients]
    for t in range(N_ROUNDS):
        local = []
        for g, client in enumerate(clients):
            centre = model - duals[g]
            solution = client.solve(
                centre[:-1], centre_intercept=centre[-1], warm_start=starts[g], tol=1e-8
            )
            starts[g] = solution.warm_start
            local.append(np.append(solution.w, solution.intercept))
        model = np.mean([w + dual for w, dual in zip(local, duals, strict=True)], axis=0)
        duals = [dual + w - model for w, dual in zip(local, duals, strict=True)]
        objective[t] = np.mean([oracle(model[:-1], model[-1]).value for oracle in oracles])
    return model[:-1], float(model[-1]), objective


def evaluate(name: str, data: Data, w: Array, b: float, objective: Array, seed: int) -> Outcome:
    """Accuracy with good and with noisy sensors, and the worst-case risk as the radius grows."""
    X, y = data.X_test, data.y_test
    rng = np.random.default_rng(seed)
    noisy = [X + SENSOR_NOISE * rng.normal(size=X.shape) for _ in range(50)]
    inside = np.clip(X, 0.0, 1.0)  # the box is the training rows' range
    risk = [
        RiskOracle(inside, y, epsilon=epsilon, kappa=KAPPA, support="unit-box")(w, b).value
        for epsilon in RADII
    ]
    return Outcome(
        name=name,
        objective=objective,
        accuracy=float(np.mean(y * (X @ w + b) > 0)),
        accuracy_noisy=float(np.mean([y * (Z @ w + b) > 0 for Z in noisy])),
        risk=np.array(risk),
    )


def run_demo(seed: int = 0) -> tuple[Data, list[Outcome]]:
    """Train with and without robustness on the same plants; evaluate both on clean test data."""
    data = make_data(seed)
    outcomes = []
    for name, epsilon, kappa in (("plain SVM", 0.0, np.inf), ("FDR-SVM", EPSILON, KAPPA)):
        w, b, objective = train(data.plants, epsilon, kappa)
        outcomes.append(evaluate(name, data, w, b, objective, seed))
    return data, outcomes


def risk_at_training_radius(outcome: Outcome) -> float:
    """Worst-case risk on the test set at the radius that FDR-SVM was trained with."""
    return float(np.interp(EPSILON, RADII, outcome.risk))


def format_table(outcomes: Sequence[Outcome]) -> str:
    """Plain text, one row a model."""
    head = f"{'model':<12}{'accuracy':>10}{'noisy sensors':>15}{'worst-case risk':>17}"
    rows = [
        f"{o.name:<12}{o.accuracy:>10.3f}{o.accuracy_noisy:>15.3f}"
        f"{risk_at_training_radius(o):>17.3f}"
        for o in outcomes
    ]
    return "\n".join([head, *rows])
