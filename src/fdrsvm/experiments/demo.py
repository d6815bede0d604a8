"""Four plants, wrong labels, one model: what `make demo` shows.

scikit-learn's breast cancer data stand in for sensor data. They are spread over four plants and one
training label in ten is flipped. Each round every plant sends its worst-case risk and a
subgradient, P + 2 numbers; the server takes a step. Rows never leave a plant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from fdrsvm.ambiguity.worst_case import RiskOracle
from fdrsvm.maths.arrays import Array

N_PLANTS = 4
N_ROUNDS = 300
STEP_SIZE = 10.0
WRONG_LABELS = 0.1
SENSOR_NOISE = 0.1  # standard deviation, in units of a feature's range
EPSILON, KAPPA = 0.01, 1.0
RADII = np.linspace(0.0, 0.05, 26)


@dataclass(frozen=True)
class Data:
    """Plants' training data with some labels wrong, and a clean test set, scaled to [0, 1]."""

    plants: Sequence[tuple[Array, Array]]
    X_test: Array
    y_test: Array


@dataclass(frozen=True)
class Outcome:
    """One trained model and how it does on the clean test set."""

    name: str
    objective: Array  # sum of the plants' worst-case risks, round by round
    accuracy: float
    accuracy_noisy: float
    risk: Array  # worst-case risk on the test set, at each of RADII


def make_data(seed: int) -> Data:
    """Malignant is +1. Training ranges scale the features; the test set is clipped to them."""
    X, benign = load_breast_cancer(return_X_y=True)
    y = np.where(benign == 0, 1.0, -1.0)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    low, high = X.min(axis=0), X.max(axis=0)
    X, X_test = ((Z - low) / (high - low) for Z in (X, X_test))
    rng = np.random.default_rng(seed)
    wrong = rng.choice(y.size, size=int(WRONG_LABELS * y.size), replace=False)
    y[wrong] = -y[wrong]
    parts = np.array_split(rng.permutation(y.size), N_PLANTS)
    return Data([(X[part], y[part]) for part in parts], np.clip(X_test, 0.0, 1.0), y_test)


def train(oracles: Sequence[RiskOracle], n_features: int) -> tuple[Array, float, Array]:
    """The paper's subgradient method, steps gamma/sqrt(t); returns the best round's model."""
    w, b = np.zeros(n_features), 0.0
    best_w, best_b = w, b
    objective = np.empty(N_ROUNDS)
    for t in range(N_ROUNDS):
        risks = [oracle(w, b) for oracle in oracles]
        objective[t] = np.mean([risk.value for risk in risks])
        if objective[t] <= objective[: t + 1].min():
            best_w, best_b = w, b
        step = STEP_SIZE / np.sqrt(t + 1.0)
        w = w - step * np.mean([risk.subgradient for risk in risks], axis=0)
        b = b - step * float(np.mean([risk.intercept_subgradient for risk in risks]))
    return best_w, best_b, objective


def evaluate(name: str, data: Data, w: Array, b: float, objective: Array, seed: int) -> Outcome:
    """Accuracy with good and with noisy sensors, and the worst-case risk as the radius grows."""
    X, y = data.X_test, data.y_test
    rng = np.random.default_rng(seed)
    noisy = [np.clip(X + SENSOR_NOISE * rng.normal(size=X.shape), 0.0, 1.0) for _ in range(50)]
    risk = [
        RiskOracle(X, y, epsilon=epsilon, kappa=KAPPA, support="unit-box")(w, b).value
        for epsilon in RADII
    ]
    return Outcome(
        name=name,
        objective=objective,
        accuracy=float(np.mean(y * (X @ w + b) > 0)),
        accuracy_noisy=float(np.mean([y * (Z @ w + b) > 0 for Z in noisy])),
        risk=np.array(risk),
    )


def run_demo(seed: int = 0) -> list[Outcome]:
    """Train with and without robustness on the same plants; evaluate both on clean test data."""
    data = make_data(seed)
    outcomes = []
    for name, epsilon, kappa in (("plain SVM", 0.0, np.inf), ("FDR-SVM", EPSILON, KAPPA)):
        oracles = [
            RiskOracle(X, y, epsilon=epsilon, kappa=kappa, support="unit-box")
            for X, y in data.plants
        ]
        w, b, objective = train(oracles, data.X_test.shape[1])
        outcomes.append(evaluate(name, data, w, b, objective, seed))
    return outcomes


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
