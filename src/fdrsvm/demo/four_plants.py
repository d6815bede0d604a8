"""Four plants, wrong labels, one model: what `make demo` shows.

Four plants run the same pump; each has seen one size of leak, and some of their labels are wrong.
They train one leak detector three times: without any guard, as is usual (FedAvg with a ridge
penalty), and robustly, by the certified bundle method, [bundle]: a few rounds, and a proof of how
far from the best possible model it can be. Rows never leave a plant.

Does joining pay? Each plant's own robust model and one of all rows pooled stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import Norm
from fdrsvm.datasets.pump import make_pump
from fdrsvm.estimators import DRSVC
from fdrsvm.federated import Bundle, FedAvg, InProcess, Result, make_client, run_rounds
from fdrsvm.risk.worst_case import RiskOracle

TOL = 1e-4  # certified relative gap
SENSOR_NOISE = 0.1  # standard deviation, in units of a feature's range
EPSILON, KAPPA = 0.01, 1.0
FEDAVG, ROBUST = "FedAvg", "FDR-SVM"
NORM: Norm = "l2"  # sensors err independently of each other
FEDAVG_ROUNDS, FEDAVG_RATE = 220, 0.1  # the paper's rounds, and the middle of its rates
RADII = np.linspace(0.0, 0.05, 26)


@dataclass(frozen=True)
class Data:
    """Plants' training data with some labels wrong, and a clean test set; features about [0, 1]."""

    plants: Sequence[tuple[Array, Array]]
    leaks: Sequence[float]  # the one that each plant has seen: its area over an inlet valve's
    X_test: Array
    y_test: Array
    leak_test: Array  # of each test row; 0 where healthy
    wrong_labels: float  # share of the training labels


@dataclass(frozen=True)
class Plant:
    """What one plant gets: F-1 of finding leaks, by model, on all leaks and on its own.

    Models are ``"alone"``, the same robust training on the plant's rows; ``"federated"``; and
    ``"pooled"``, on the rows of all plants, which they would have to share.
    """

    name: str
    n_rows: int
    leak: float
    all_leaks: Mapping[str, float]
    own_leak: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """One trained model and how it does on the clean test set."""

    name: str
    training: Result
    accuracy: float
    accuracy_noisy: float
    risk: Array  # worst-case risk on the test set, at each of RADII
    plants: Sequence[Plant] = ()  # whether joining paid, where that was asked


def make_data(seed: int) -> Data:
    """The simulated pump with a leaking seal (+1), labels flipped as in the paper."""
    pump = make_pump("noisy-labels", random_state=seed)
    wrong = float(np.mean(pump.y != pump.y_true))
    return Data(
        plants=pump.parts(normalised=True),
        leaks=pump.client_severities,
        X_test=pump.X_test_normalised,
        y_test=pump.y_test,
        leak_test=pump.severity_test,
        wrong_labels=wrong,
    )


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
        FEDAVG: replace(fedavg, certificate=replace(fedavg.certificate, model=fedavg.newest)),
        ROBUST: run_rounds(robust, Bundle(), tol=TOL),
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


def train_alone(X: Array, y: Array) -> Array:
    """The robust model of these rows and no others, intercept last; certified to the same gap."""
    model = DRSVC(epsilon=EPSILON, kappa=KAPPA, norm=NORM, tol=TOL).fit(X, y)
    return np.append(model.coef_[0], model.intercept_)


def compare_plants(data: Data, federated: Array) -> list[Plant]:
    """Whether joining pays: each plant's own model, the federated one, and one of all rows."""
    rows, labels = (np.concatenate(parts) for parts in zip(*data.plants, strict=True))
    pooled = train_alone(rows, labels)
    plants = []
    for g, ((X, y), leak) in enumerate(zip(data.plants, data.leaks, strict=True), start=1):
        models = {"alone": train_alone(X, y), "federated": federated, "pooled": pooled}
        own = (data.leak_test == 0.0) | (data.leak_test == leak)
        plants.append(
            Plant(
                name=f"plant {g}",
                n_rows=len(y),
                leak=leak,
                all_leaks={m: f1_score(w, data.X_test, data.y_test) for m, w in models.items()},
                own_leak={
                    m: f1_score(w, data.X_test[own], data.y_test[own]) for m, w in models.items()
                },
            )
        )
    return plants


def f1_score(model: Array, X: Array, y: Array) -> float:
    """F-1 of the class +1; 0 if nothing is found."""
    found, there = X @ model[:-1] + model[-1] > 0.0, y > 0.0
    counted = np.count_nonzero(found) + np.count_nonzero(there)
    return 2.0 * np.count_nonzero(found & there) / counted if counted else 0.0


def run_demo(seed: int = 0) -> tuple[Data, list[Outcome]]:
    """Train on the same plants in three ways; evaluate each model on clean test data."""
    data = make_data(seed)
    outcomes = [
        evaluate(name, data, result, seed) for name, result in train_all(data.plants).items()
    ]
    plain, usual, robust = outcomes
    plants = compare_plants(data, robust.training.model)
    return data, [plain, usual, replace(robust, plants=plants)]


def risk_at_training_radius(outcome: Outcome) -> float:
    """Worst-case risk on the test set at the radius that FDR-SVM was trained with."""
    return float(np.interp(EPSILON, RADII, outcome.risk))


def format_table(outcomes: Sequence[Outcome]) -> str:
    """Plain text: one row a model, then one row a plant."""
    head = (
        f"{'model':<12}{'accuracy':>10}{'noisy sensors':>15}{'worst-case risk':>17}"
        f"{'rounds':>8}{'certified gap':>15}"
    )
    rows = [
        f"{o.name:<12}{o.accuracy:>10.3f}{o.accuracy_noisy:>15.3f}"
        f"{risk_at_training_radius(o):>17.3f}{o.training.n_rounds:>8}{o.training.gap:>15.1e}"
        for o in outcomes
    ]
    plants = [plant for outcome in outcomes for plant in outcome.plants]
    return "\n".join([head, *rows, *_format_plants(plants)])


def _format_plants(plants: Sequence[Plant]) -> list[str]:
    if not plants:
        return []
    names = list(plants[0].all_leaks)
    columns = "".join(f"{name:>11}" for name in names * 2)
    lines = [
        f"{plant.name:<12}{_columns(plant.all_leaks)}{_columns(plant.own_leak)}" for plant in plants
    ]
    wide = 11 * len(names)
    above = f"{'':<12}{'F-1 on all leaks':>{wide}}{'on its own leak':>{wide}}"
    said = wrap(joining_pays(plants), width=12 + 2 * wide)
    return ["", "Does joining pay?", above, f"{'plant':<12}{columns}", *lines, *said]


def _columns(scores: Mapping[str, float]) -> str:
    return "".join(f"{score:>11.3f}" for score in scores.values())


def joining_pays(plants: Sequence[Plant]) -> str:
    """What the plants' numbers say, in plain words."""
    on_all = {p.name: p.all_leaks["federated"] - p.all_leaks["alone"] for p in plants}
    on_own = {p.name: p.own_leak["federated"] - p.own_leak["alone"] for p in plants}
    more = 100.0 * (plants[0].all_leaks["pooled"] - plants[0].all_leaks["federated"])
    return (
        f"On all leaks the federated model is {_better_for(on_all)}. On the leak that a plant has "
        f"seen itself it is {_better_for(on_own)}. Pooling all rows would have given "
        f"{abs(more):.1f} points {'more' if more > 0.0 else 'less'} than the federation on all "
        "leaks."
    )


def _better_for(gains: Mapping[str, float]) -> str:
    """For how many plants, and where most and least; gains are federated less alone."""
    better, worse = (sum(sign * gain > 0.0 for gain in gains.values()) for sign in (1.0, -1.0))
    least, most = (pick(gains, key=lambda name: gains[name]) for pick in (min, max))
    return (
        f"better than the plant's own for {better} of {len(gains)} plants and worse for {worse}: "
        f"from {100.0 * gains[least]:+.1f} points of F-1 ({least}) to {100.0 * gains[most]:+.1f} "
        f"({most})"
    )
