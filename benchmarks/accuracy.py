"""How accurate models are, beside others: python -m benchmarks.accuracy [--data DIR].

DIR has ``ai4i/ai4i2020.tsv`` and ``uci`` with the seven sets of the paper. One row per set,
condition, model, measure and seed, kept in benchmarks/results/accuracy.csv, from which
docs/publish_accuracy.py makes the tables of docs/maps.md; cells that are there are not measured
again.

Sets        The seven UCI sets, a third for the test, stratified, four clients with equal mixes of
            labels; the pump, whose four clients each know one size of leak; AI4I with five sensors,
            four plants by blocks of rows, a third for the test. At most 1000 rows train, of AI4I in
            "f1" all.
Conditions  "clean"; "wrong labels", 15 % of each client's training labels turned; "noise", normal,
            5 % of each sensor's range, on test rows; "stuck", one sensor of the test rows stays at
            a reading of training, mean over up to five sensors; "skewed", labels dealt to four
            clients by Dirichlet(0.5), and of the pump its setting "both". Noise and stuck sensors
            are those of the clean models; these conditions are of four quick sets. "f1" is AI4I as
            it is, all models tuned for F1.
Models      Ours are the best of each map, and the one that ``fdrsvm fit --goal accuracy`` chooses
            among them (``--goal f1`` of "f1"). Others are tuned too: FedAvg of a logistic
            regression and of a network with a hidden layer of 32, their penalty and number of
            rounds by rows that clients hold out; boosting by 3-fold cross-validation, each plant's
            own on its rows, tested on all test rows, the mean over plants; pooled ones on the rows
            of all plants together, support vectors with an RBF kernel tuned on at most 1500 rows.
            Of "f1" they have their thresholds tuned by 3 folds, FedAvg by its held-out rows.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, log_loss
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.alarms import read_ai4i
from fdrsvm import FDRSVC
from fdrsvm.core.arrays import Array
from fdrsvm.data.rows import Rows
from fdrsvm.datasets import UCI_NAMES, corrupt, load_uci, make_pump, partition
from fdrsvm.estimators.search import FEATURES
from fdrsvm.estimators.training import FitSettings, fit, wanted_estimator
from fdrsvm.model.unscaling import learn_scaling

RESULTS = Path(__file__).parent / "results" / "accuracy.csv"
SETS = (*UCI_NAMES, "pump", "AI4I")
QUICK = ("mammographic", "parkinsons", "ukm", "pump")
N_SEEDS = 5
CHOSEN, POOLED = "chosen", "pooled "
MEASURES = ("accuracy", "F1", "average precision")
# In the order of what is asked first.
PLAN = (
    ("f1", ("AI4I",)),
    ("wrong labels", SETS),
    ("clean", QUICK),  # with noise and stuck sensors
    ("skewed", QUICK),
)
_WRONG, _NOISE, _STUCK, _CONCENTRATION = 0.15, 0.05, 5, 0.5
_N_CLIENTS, _SENSORS, _FOLDS, _MOST_TUNED, _MOST_ROWS = 4, 5, 3, 1500, 1000
_HIDDEN, _PENALTIES, _ROUNDS = 32, (1e-3, 1e-1, 1.0), (5, 10, 20, 40, 80)


class Row(NamedTuple):
    """One number."""

    case: str
    condition: str
    model: str
    measure: str
    seed: int
    value: float


class Sample(NamedTuple):
    """Training rows with their clients, and test rows; labels are 0 and 1, the class looked for."""

    X: Array
    y: Any
    clients: Any
    X_test: Array
    y_test: Any
    goal: str


class Guess(NamedTuple):
    """What a model says of test rows."""

    labels: Any
    scores: Array


# --- data ---


def read_sample(name: str, condition: str, seed: int, folder: Path) -> Sample:
    """Rows of a set; those of one seed are in the same part in all conditions."""
    if name == "pump":
        setting = {"wrong labels": "noisy-labels", "skewed": "both"}.get(condition, "nominal")
        pump = make_pump(setting, random_state=seed)
        y, y_test = (pump.y > 0).astype(int), (pump.y_test > 0).astype(int)
        return Sample(pump.X, y, pump.clients, pump.X_test, y_test, "accuracy")
    if name == "AI4I":
        X, is_fault, plants = read_ai4i(folder / "ai4i" / "ai4i2020.tsv")
        X, y = X[:, :_SENSORS], is_fault.astype(int)
    else:
        data = load_uci(name, folder / "uci")
        X, y = np.asarray(data.X), (np.asarray(data.y) > 0).astype(int)
        plants = partition.stratified(y, _N_CLIENTS, random_state=seed)
    most = len(y) if condition == "f1" else _MOST_ROWS
    kept, tested = train_test_split(
        np.arange(len(y)),
        train_size=min(most, len(y) - len(y) // 3),
        test_size=len(y) // 3,
        random_state=seed,
        stratify=y,
    )
    clients, labels = plants[kept], y[kept]
    if condition == "skewed":
        clients = partition.dirichlet(
            labels, _N_CLIENTS, _CONCENTRATION, min_samples=10, random_state=seed
        )
    if condition == "wrong labels":
        turned = corrupt.flip_labels(2.0 * labels - 1.0, _WRONG, clients=clients, random_state=seed)
        labels = (turned > 0).astype(int)
    goal = "f1" if condition == "f1" else "accuracy"
    return Sample(X[kept], labels, clients, X[tested], y[tested], goal)


def test_rows(sample: Sample, condition: str, seed: int) -> dict[str, list[Array]]:
    """By condition: the test rows of that condition, in one version or several."""
    if condition != "clean":
        return {condition: [sample.X_test]}
    rng = np.random.default_rng(seed)
    spread = _NOISE * np.ptp(sample.X, axis=0)
    noisy = corrupt.add_noise(sample.X_test, spread, relative_to="unit", random_state=seed)
    stuck = []
    for sensor in rng.permutation(sample.X.shape[1])[:_STUCK]:
        stuck.append(sample.X_test.copy())
        stuck[-1][:, sensor] = rng.choice(sample.X[:, sensor])
    return {"clean": [sample.X_test], "noise": [noisy], "stuck": stuck}


# --- models: each takes a sample, and gives what says labels and scores of rows ---


def our_models(sample: Sample) -> dict[str, Any]:
    """One search, as the command makes it; the best configuration of each map, on all rows."""
    names = tuple(f"x{k}" for k in range(sample.X.shape[1]))
    plants = np.array([f"plant {g}" for g in sample.clients])
    rows = Rows(sample.X, sample.y, plants, names)
    settings = FitSettings(goal=sample.goal, fault="1")
    scaling, X = learn_scaling(rows, settings.scaling, clip=False)
    search = wanted_estimator(settings, sample.y)
    fit(search, X, rows)
    results = search.cv_results_

    def say(model: Any, threshold: float) -> Any:
        def guess(X: Array) -> Guess:
            scores = model.decision_function(scaling.apply(X))
            return Guess((scores > threshold).astype(int), scores)

        return guess

    best: dict[str, int] = {}
    for at in np.argsort(results["rank_test_score"], kind="stable"):
        best.setdefault(results["params"][at][FEATURES], int(at))
    models = {CHOSEN: say(search, search.threshold_)}
    for name, at in best.items():
        model = FDRSVC(**results["params"][at]).fit(X, sample.y, clients=plants)
        models[name] = say(model, results["threshold"][at])
    return models


def fedavg(sample: Sample, hidden: tuple[int, ...]) -> Any:
    """Penalty, rounds and, for F1, the threshold by a quarter of each client's rows."""
    scaler = StandardScaler().fit(sample.X)
    X, y = scaler.transform(sample.X), sample.y
    order = np.random.default_rng(0).permutation(len(y))
    is_kept = np.zeros(len(y), dtype=bool)
    for g in np.unique(sample.clients):
        own = order[sample.clients[order] == g]
        is_kept[own[len(own) // 4 :]] = True
    best: tuple[Any, ...] = (np.inf,)
    for penalty in _PENALTIES:
        run = averaged(X[is_kept], y[is_kept], sample.clients[is_kept], hidden, penalty)
        for n_rounds, network in run:
            shares = network.predict_proba(X[~is_kept])[:, 1]
            loss = log_loss(y[~is_kept], shares, labels=[0, 1])  # less left to chance than accuracy
            if loss < best[0]:
                cut = best_cut(y[~is_kept], shares) if sample.goal == "f1" else 0.5
                best = (loss, penalty, n_rounds, cut)
    _, penalty, n_rounds, cut = best
    run = averaged(X, y, sample.clients, hidden, penalty)
    network = next(network for at, network in run if at == n_rounds)

    def guess(X: Array) -> Guess:
        shares = network.predict_proba(scaler.transform(X))[:, 1]
        return Guess((shares > cut).astype(int), shares)

    return guess


def averaged(
    X: Array, y: Any, clients: Any, hidden: tuple[int, ...], penalty: float
) -> Iterator[tuple[int, MLPClassifier]]:
    """The mean network after so many rounds; in a round clients make two passes over their rows."""
    parts = [clients == g for g in np.unique(clients)]
    shares = [own.mean() for own in parts]
    networks = []
    for own in parts:
        network = MLPClassifier(
            hidden, alpha=penalty, batch_size=min(32, own.sum()), learning_rate_init=1e-2,
            random_state=0,  # all start from the same weights
        )  # fmt: skip
        networks.append(network.partial_fit(X[own], y[own], classes=[0, 1]))
    for at in range(1, max(_ROUNDS) + 1):
        for network, own in zip(networks, parts, strict=True):
            for _ in range(2):
                network.partial_fit(X[own], y[own])
        weights = zip(*([*one.coefs_, *one.intercepts_] for one in networks), strict=True)
        for each in weights:
            mean = sum(share * own for share, own in zip(shares, each, strict=True))
            for own in each:
                own[...] = mean  # in place: the optimiser holds these arrays
        if at in _ROUNDS:
            yield at, networks[0]


def best_cut(y: Any, shares: Array) -> float:
    """Where F1 is best."""
    cuts = np.quantile(shares, np.linspace(0.0, 1.0, 200))
    return float(max(cuts, key=lambda cut: f1_score(y, shares > cut, zero_division=0.0)))


def tuned(model: Any, grid: dict[str, Any], X: Array, y: Any, goal: str) -> Any:
    """By 3-fold cross-validation, for F1 the threshold too; the common class if one has no rows."""
    if np.bincount(y, minlength=2).min() < _FOLDS:
        common = int(y.mean() > 0.5)
        return lambda X: Guess(np.full(len(X), common), np.zeros(len(X)))
    kept = np.random.default_rng(0).permutation(len(y))
    if model.steps[-1][0] == "svc":
        kept = kept[:_MOST_TUNED]
    scoring = "average_precision" if goal == "f1" else "accuracy"
    search = GridSearchCV(model, grid, cv=_FOLDS, scoring=scoring).fit(X[kept], y[kept])
    best = search.best_estimator_
    if goal == "f1":
        best = TunedThresholdClassifierCV(best, scoring="f1", cv=_FOLDS, random_state=0)
    best.fit(X, y)

    def guess(X: Array) -> Guess:
        has_shares = hasattr(best, "predict_proba")
        scores = best.predict_proba(X)[:, 1] if has_shares else best.decision_function(X)
        return Guess(best.predict(X), scores)

    return guess


def boosting(X: Array, y: Any, goal: str) -> Any:
    """Gradient boosting."""
    model = make_pipeline(HistGradientBoostingClassifier(random_state=0))
    step = "histgradientboostingclassifier"
    grid = {f"{step}__learning_rate": [0.03, 0.1], f"{step}__max_leaf_nodes": [4, 31]}
    return tuned(model, grid, X, y, goal)


def other_models(sample: Sample) -> dict[str, Any]:
    """All of the others but those that plants have of their own."""
    X, y, _, _, _, goal = sample
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    kernel = make_pipeline(StandardScaler(), SVC())
    gammas = [share / X.shape[1] for share in (0.1, 0.3, 1.0, 3.0)]
    return {
        "FedAvg logistic regression": fedavg(sample, ()),
        "FedAvg network": fedavg(sample, (_HIDDEN,)),
        f"{POOLED}logistic regression": tuned(
            logistic, {"logisticregression__C": [0.01, 0.1, 1.0, 10.0, 100.0]}, X, y, goal
        ),
        f"{POOLED}RBF SVM": tuned(
            kernel, {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": gammas}, X, y, goal
        ),
        f"{POOLED}boosting": boosting(X, y, goal),
    }


# --- cells ---


def measure(sample: Sample, versions: dict[str, list[Array]]) -> Iterator[tuple[Any, ...]]:
    """Condition, model, measure and value."""
    models = {name: [guess] for name, guess in (our_models(sample) | other_models(sample)).items()}
    owners = [sample.clients == g for g in np.unique(sample.clients)]
    models["own boosting"] = [boosting(sample.X[own], sample.y[own], sample.goal) for own in owners]
    for name, guesses in models.items():
        for condition, rows in versions.items():
            found = [judge(sample.y_test, guess(X)) for guess in guesses for X in rows]
            for what, value in zip(MEASURES, np.mean(found, axis=0), strict=True):
                yield condition, name, what, float(value)


def judge(y: Any, guess: Guess) -> tuple[float, ...]:
    """The measures of one model on test rows."""
    return (
        float((guess.labels == y).mean()),
        float(f1_score(y, guess.labels, zero_division=0.0)),
        float(average_precision_score(y, guess.scores)),
    )


def read_rows(path: Path = RESULTS) -> list[Row]:
    """The rows that were kept."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(*names, int(seed), float(value))
            for *names, seed, value in list(csv.reader(file))[1:]
        ]


def main() -> None:
    """Measure what is missing, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help='cells such as "pump, clean, 0" with this in it')
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    is_new = not given.output.exists()
    done = set() if is_new else {(*row[:2], row.seed) for row in read_rows(given.output)}
    with given.output.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(Row._fields)
        for condition, names in PLAN:
            for seed in range(N_SEEDS):
                for name in names:
                    cell = f"{name}, {condition}, {seed}"
                    if (name, condition, seed) in done or given.only not in cell:
                        continue
                    start = time.process_time()
                    sample = read_sample(name, condition, seed, given.data)
                    for found, *what, value in measure(sample, test_rows(sample, condition, seed)):
                        writer.writerow((name, found, *what, seed, f"{value:.6g}"))
                    file.flush()
                    spent = time.process_time() - start
                    print(f"{cell}: {spent:.0f} s", flush=True)


if __name__ == "__main__":
    main()
