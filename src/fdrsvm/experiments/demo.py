"""Four plants, wrong labels, one model: what `make demo` shows.

Four plants run the same pump; each has seen one size of leak, and some of their labels are wrong.
They train one leak detector three times: without any guard, as is usual (FedAvg with a ridge
penalty), and robustly, by the certified bundle method, [bundle]: a few rounds, and a proof of how
far from the best possible model it can be. Rows never leave a plant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdrsvm.ambiguity.worst_case import RiskOracle
from fdrsvm.datasets.pump import make_pump
from fdrsvm.federated import Bundle, FedAvg, InProcess, Result, make_client, run_rounds
from fdrsvm.maths.arrays import Array
from fdrsvm.maths.norms import Norm

TOL = 1e-4  # certified relative gap
SENSOR_NOISE = 0.1  # standard deviation, in units of a feature's range
EPSILON, KAPPA = 0.01, 1.0
FEDAVG = "FedAvg"
NORM: Norm = "l2"  # sensors err independently of each other
FEDAVG_ROUNDS, FEDAVG_RATE = 220, 0.1  # the paper's rounds, and the middle of its rates
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
    training: Result
    accuracy: float
    accuracy_noisy: float
    risk: Array  # worst-case risk on the test set, at each of RADII


def make_data(seed: int) -> Data:
    """The simulated pump with a leaking seal (+1), labels flipped as in the paper."""
    pump = make_pump("noisy-labels", random_state=seed)
    wrong = float(np.mean(pump.y != pump.y_true))
    return Data(pump.parts(normalised=True), pump.X_test_normalised, pump.y_test, wrong)


def make_plants(
    plants: Sequence[tuple[Array, Array]], epsilon: float | str, kappa: float
) -> InProcess:
    """The plants, each with its own rows; models have an intercept."""
    return InProcess(
        make_client(f"plant {g}", X, y, epsilon=epsilon, kappa=kappa, norm=NORM, fit_intercept=True)
        for g, (X, y) in enumerate(plants, start=1)
    )


def train_all(plants: Sequence[tuple[Array, Array]]) -> dict[str, Result]:
    """Three models; what FedAvg gives is its last iterate, as usual."""
    plain, usual, robust = (
        make_plants(plants, epsilon, kappa)
        for epsilon, kappa in ((0.0, np.inf), ("auto", np.inf), (EPSILON, KAPPA))
    )
    fedavg = run_rounds(usual, FedAvg(learning_rate=FEDAVG_RATE), max_rounds=FEDAVG_ROUNDS, tol=0.0)
    return {
        "plain SVM": run_rounds(plain, Bundle(), tol=TOL),
        FEDAVG: replace(fedavg, model=fedavg.newest),
        "FDR-SVM": run_rounds(robust, Bundle(), tol=TOL),
    }


def evaluate(name: str, data: Data, training: Result, seed: int) -> Outcome:
    """Accuracy with good and with noisy sensors, and the worst-case risk as the radius grows."""
    X, y = data.X_test, data.y_test
    w, b = training.model[:-1], float(training.model[-1])
    rng = np.random.default_rng(seed)
    noisy = [X + SENSOR_NOISE * rng.normal(size=X.shape) for _ in range(50)]
    inside = np.clip(X, 0.0, 1.0)  # the box is the training rows' range
    ball: dict[str, Any] = {"kappa": KAPPA, "norm": NORM, "support": "unit-box"}
    risk = [RiskOracle(inside, y, epsilon=epsilon, **ball)(w, b).value for epsilon in RADII]
    return Outcome(
        name=name,
        training=training,
        accuracy=float(np.mean(y * (X @ w + b) > 0)),
        accuracy_noisy=float(np.mean([y * (Z @ w + b) > 0 for Z in noisy])),
        risk=np.array(risk),
    )


def run_demo(seed: int = 0) -> tuple[Data, list[Outcome]]:
    """Train on the same plants in three ways; evaluate each model on clean test data."""
    data = make_data(seed)
    trained = train_all(data.plants)
    return data, [evaluate(name, data, result, seed) for name, result in trained.items()]


def risk_at_training_radius(outcome: Outcome) -> float:
    """Worst-case risk on the test set at the radius that FDR-SVM was trained with."""
    return float(np.interp(EPSILON, RADII, outcome.risk))


def format_table(outcomes: Sequence[Outcome]) -> str:
    """Plain text, one row a model."""
    head = (
        f"{'model':<12}{'accuracy':>10}{'noisy sensors':>15}{'worst-case risk':>17}"
        f"{'rounds':>8}{'certified gap':>15}"
    )
    rows = [
        f"{o.name:<12}{o.accuracy:>10.3f}{o.accuracy_noisy:>15.3f}"
        f"{risk_at_training_radius(o):>17.3f}{o.training.n_rounds:>8}{o.training.gap:>15.1e}"
        for o in outcomes
    ]
    return "\n".join([head, *rows])
