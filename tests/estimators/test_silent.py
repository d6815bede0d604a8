"""No model that decides nothing is silent: made problems of many kinds, with rare faults.

What a model decides is counted here, by loops and from its predictions alone.
"""

import functools
import warnings

import numpy as np
import pytest
from scipy import sparse

from fdrsvm import DRSVC, FDRSVC, FDRSVCCV, DegenerateModelWarning

GRID = {"epsilon": [1e-3, 0.1], "class_weight": [None, "balanced"]}
KINDS = {
    "FDRSVC": FDRSVC,
    "DRSVC": DRSVC,
    "FDRSVCCV": functools.partial(FDRSVCCV, GRID, cv=2, tol=1e-2, max_rounds=60, random_state=0),
}
LABELS = [("Fault", "ok"), ("ok", "worn"), (0, 1), (1, 0), (False, True), (-1, 1), ("a b", "c")]
N_PROBLEMS, N_QUICK = 210, 15
N_LEAST = 20  # with fewer degenerate ones the problems would be too easy to tell anything


def make_problem(seed):
    """Rows, labels and plants, and in words what they are like."""
    rng = np.random.default_rng([2026, seed])
    share = np.exp(rng.uniform(np.log(0.005), np.log(0.2)))
    sizes = rng.integers(30, 401, size=rng.integers(1, 7))
    n_rows, n_features = sizes.sum(), rng.integers(1, 9)
    n_faults = max(1, round(share * n_rows))
    is_fault = np.isin(np.arange(n_rows), rng.permutation(n_rows)[:n_faults])
    shift, tails = rng.choice([0.0, 0.5, 1.0, 2.0, 8.0]), rng.choice(["normal", "heavy"])
    X = rng.normal(size=(n_rows, n_features))
    if tails == "heavy":
        X = rng.standard_t(1.5, size=X.shape)
    X[is_fault, : rng.integers(1, n_features + 1)] += shift  # the others are useless
    sizing = rng.choice(["minmax", "standard", "raw", "wild", "sparse"])
    if sizing == "minmax":
        X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    elif sizing == "standard":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    elif sizing == "wild":
        X = X * 10.0 ** rng.uniform(-6, 6, size=n_features) + 10.0 ** rng.uniform(-3, 4)
    elif sizing == "sparse":
        X = sparse.csr_array(np.where(rng.random(X.shape) < 0.8, 0.0, X))
    wrong = rng.choice([0.0, 0.0, 0.05])
    is_fault = is_fault ^ (rng.random(n_rows) < wrong)
    is_fault[rng.integers(n_rows)] = True
    pair = LABELS[rng.integers(len(LABELS))]
    fault, healthy = pair if rng.random() < 0.5 else pair[::-1]
    y = np.array([fault if one else healthy for one in is_fault.tolist()])
    plants = np.repeat(np.arange(len(sizes)), sizes)
    if rng.random() < 0.5:
        plants = rng.permutation(plants)
    words = (
        f"seed {seed}: {is_fault.sum()} of {n_rows} rows, {len(sizes)} plants, "
        f"{n_features} {sizing} {tails} features, shift {shift}, {wrong:.0%} wrong"
    )
    return X, y, plants, words


def decides_nothing(model, X, y):
    """Whether it finds fewer than 1 in 100 rows of a class (of 5 or more), or none of any."""
    predicted, scores = model.predict(X).tolist(), model.decision_function(X)
    for label in set(y.tolist()):
        own = [guess for guess, truth in zip(predicted, y.tolist(), strict=True) if truth == label]
        found = sum(guess == label for guess in own)
        if label not in predicted or (len(own) >= 5 and 100 * found < len(own)):
            return True
    return bool(scores.max() - scores.min() <= 1e-6 * max(1.0, abs(scores).max()))


def fit_and_listen(kind, seed):
    """Whether the model decides nothing, and what was said of that at fit."""
    X, y, plants, words = make_problem(seed)
    model = KINDS[kind]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **({} if kind == "DRSVC" else {"clients": plants}))
    said = [one.message for one in caught if one.category is DegenerateModelWarning]
    return decides_nothing(model, X, y), [one for one in said if one.has_given_up], words


def check_none_is_silent(kind, seeds):
    """How many decide nothing; each of them must have said so, with a remedy."""
    n_degenerate, silent = 0, []
    for seed in seeds:
        is_degenerate, said, words = fit_and_listen(kind, seed)
        n_degenerate += is_degenerate
        if is_degenerate and not said:
            silent.append(words)
        for one in said:
            sentence = str(one)
            assert "; " in sentence, sentence
            assert sentence.split("; ", 1)[1].strip(), sentence
            assert "fdrsvm fit" in one.for_command_line or "features that" in one.for_command_line
    assert silent == []
    return n_degenerate


@pytest.mark.parametrize("kind", KINDS)
def test_no_model_that_decides_nothing_is_silent(kind):
    check_none_is_silent(kind, range(N_QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_of_two_hundred_problems_none_is_silent(kind):
    n_degenerate = check_none_is_silent(kind, range(N_PROBLEMS))
    assert kind == "FDRSVCCV" or n_degenerate >= N_LEAST
