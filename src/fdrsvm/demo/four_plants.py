"""Four plants, wrong labels, one model: what `make demo` shows.

Four plants run the same pump; each has seen one size of leak, and some of their labels are wrong.
They train one leak detector three times: without any guard, as is usual (FedAvg with a ridge
penalty), and robustly, by the certified bundle method, [bundle]: a few rounds, and a proof of how
far from the best possible model it can be. Rows never leave a plant.

Does joining pay? Each plant's own robust model and one of all rows pooled stand beside it, and what
each plant makes of the shared one for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import Norm
from fdrsvm.datasets.pump import PumpData, make_pump
from fdrsvm.estimators import DRSVC, FDRSVC, FedSVC
from fdrsvm.inspection.robustness import risk_curve

TOL = 1e-4  # certified relative gap
SENSOR_NOISE = 0.1  # standard deviation, in units of a feature's range
EPSILON, KAPPA = 0.01, 1.0
NORM: Norm = "l2"  # sensors err independently of each other
FEDAVG_ROUNDS, FEDAVG_RATE = 220, 0.1  # the paper's rounds, and the middle of its rates
RADII = np.linspace(0.0, 0.05, 26)


@dataclass(frozen=True)
class DemoPlant:
    """What one plant gets: F-1 of finding leaks, by model, on all leaks and on its own.

    Models are ``"alone"``, the same robust training on the plant's rows; ``"federated"``;
    ``"personal"``, what the plant makes of that one by its own rows; and ``"pooled"``, on the rows
    of all plants, which they would have to share.
    """

    name: str
    leak: float
    all_leaks: Mapping[str, float]
    own_leak: Mapping[str, float]


@dataclass(frozen=True)
class DemoModel:
    """One fitted model and how it does on the clean test set."""

    name: str
    estimator: Any
    accuracy: float
    accuracy_noisy: float
    risk: Array  # worst-case risk on the test set, at each of RADII
    plants: Sequence[DemoPlant] = ()  # whether joining paid, where that was asked

    @property
    def risk_at_training_radius(self) -> float:
        """Worst-case risk on the test set at the radius that FDR-SVM was trained with."""
        return float(np.interp(EPSILON, RADII, self.risk))


def run_demo(seed: int = 0) -> tuple[PumpData, list[DemoModel]]:
    """Train on the same plants in three ways; evaluate each model on clean test data."""
    data = make_data(seed)
    clients = [f"plant {g + 1}" for g in data.clients]
    contenders: dict[str, Any] = {
        "plain SVM": FDRSVC(epsilon=0.0, kappa=np.inf, norm=NORM, tol=TOL),
        "FedAvg": FedSVC(
            "fedavg", learning_rate=FEDAVG_RATE, max_rounds=FEDAVG_ROUNDS, random_state=0
        ),
        "FDR-SVM": FDRSVC(epsilon=EPSILON, kappa=KAPPA, norm=NORM, tol=TOL, personal="auto"),
    }
    plain, usual, robust = (
        evaluate(name, data, estimator.fit(data.X_normalised, data.y, clients=clients), seed)
        for name, estimator in contenders.items()
    )
    plants = compare_plants(data, robust.estimator)
    return data, [plain, usual, replace(robust, plants=plants)]


def make_data(seed: int) -> PumpData:
    """The simulated pump with a leaking seal (+1), labels flipped as in the paper."""
    return make_pump("noisy-labels", random_state=seed)


def evaluate(name: str, data: PumpData, estimator: Any, seed: int) -> DemoModel:
    """Accuracy with good and with noisy sensors, and the worst-case risk as the radius grows."""
    X, y = data.X_test_normalised, data.y_test
    rng = np.random.default_rng(seed)
    noisy = [X + SENSOR_NOISE * rng.normal(size=X.shape) for _ in range(50)]
    inside = np.clip(X, 0.0, 1.0)  # the box is the training rows' range
    ball: dict[str, Any] = {"kappa": KAPPA, "norm": NORM, "support": "unit-box"}
    return DemoModel(
        name=name,
        estimator=estimator,
        accuracy=estimator.score(X, y),
        accuracy_noisy=float(np.mean([estimator.score(Z, y) for Z in noisy])),
        risk=risk_curve(estimator, inside, y, radii=RADII, **ball).risk,
    )


def weights(estimator: Any) -> Array:
    """Of a fitted model of two classes, the intercept last."""
    return np.append(estimator.coef_[0], estimator.intercept_)


def train_alone(X: Array, y: Array) -> Array:
    """The robust model of these rows and no others, intercept last; certified to the same gap."""
    return weights(DRSVC(epsilon=EPSILON, kappa=KAPPA, norm=NORM, tol=TOL).fit(X, y))


def compare_plants(data: PumpData, federated: FDRSVC) -> list[DemoPlant]:
    """Whether joining pays: a plant's model alone, the federated one, its own, one of all rows."""
    shared, names = weights(federated), list(federated.personal_)
    pooled = train_alone(data.X_normalised, data.y)
    X, y = data.X_test_normalised, data.y_test
    rows = data.parts(normalised=True)
    plants = []
    for g, leak in enumerate(data.client_severities):
        own_model = weights(federated.for_client(names[g]))
        models = {"alone": train_alone(*rows[g]), "federated": shared}
        models |= {"personal": own_model, "pooled": pooled}
        own = np.isin(data.severity_test, (0.0, leak))
        on_all = {name: f1_score(w, X, y) for name, w in models.items()}
        on_own = {name: f1_score(w, X[own], y[own]) for name, w in models.items()}
        plants.append(DemoPlant(names[g], leak, on_all, on_own))
    return plants


def f1_score(model: Array, X: Array, y: Array) -> float:
    """F-1 of the class +1; 0 if nothing is found."""
    predicted, actual = X @ model[:-1] + model[-1] > 0.0, y > 0.0
    n_positive = np.count_nonzero(predicted) + np.count_nonzero(actual)
    return 2.0 * np.count_nonzero(predicted & actual) / n_positive if n_positive else 0.0


def format_table(models: Sequence[DemoModel]) -> str:
    """Plain text: one row per model, then one row per plant."""
    lines = [
        f"{'model':<12}{'accuracy':>10}{'noisy sensors':>15}{'worst-case risk':>17}"
        f"{'rounds':>8}{'certified gap':>15}"
    ]
    lines += [
        f"{m.name:<12}{m.accuracy:>10.3f}{m.accuracy_noisy:>15.3f}"
        f"{m.risk_at_training_radius:>17.3f}{m.estimator.n_iter_:>8}{m.estimator.gap_:>15.1e}"
        for m in models
    ]
    plants = models[-1].plants
    names = list(plants[0].all_leaks)
    wide = 11 * len(names)
    lines += ["", "Does joining pay?"]
    lines.append(f"{'':<12}{'F-1 on all leaks':>{wide}}{'on its own leak':>{wide}}")
    lines.append(f"{'plant':<12}" + "".join(f"{name:>11}" for name in names * 2))
    for plant in plants:
        scores = [*plant.all_leaks.values(), *plant.own_leak.values()]
        lines.append(f"{plant.name:<12}" + "".join(f"{score:>11.3f}" for score in scores))
    return "\n".join([*lines, *wrap(joining_pays(plants), width=12 + 2 * wide)])


def joining_pays(plants: Sequence[DemoPlant]) -> str:
    """What the plants' numbers say, in plain words."""
    on_all = {p.name: p.all_leaks["federated"] - p.all_leaks["alone"] for p in plants}
    on_own, personal = (
        {p.name: p.own_leak[kind] - p.own_leak["alone"] for p in plants}
        for kind in ("federated", "personal")
    )
    gain = 100.0 * (plants[0].all_leaks["pooled"] - plants[0].all_leaks["federated"])
    return (
        f"On all leaks the federated model is {_better_for(on_all)}. On the leak that a plant has "
        f"seen itself it is {_better_for(on_own)}; the personal model, which a plant makes of it "
        f"by its own rows, is {_better_for(personal)}. Pooling all rows would have given "
        f"{abs(gain):.1f} points {'more' if gain > 0.0 else 'less'} than the federation on all "
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
