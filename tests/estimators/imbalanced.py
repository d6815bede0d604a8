"""Made data with rare faults, like a first file from a plant: rare, and hard to tell apart."""

import numpy as np

FAULT, OK = "Fault", "ok"
PLANTS = ("east", "north", "south", "west")


def make_faults(seed=0, n_rows=1200, share=0.03, shift=1.0, n_features=4):
    """Rows in [0, 1], labels and plants; a fault moves two features by ``shift`` deviations.

    With 3 % faults a shift of 1 leaves them rare among rows like them, so that a constant model
    has the least hinge loss.
    """
    rng = np.random.default_rng(seed)
    is_fault = np.zeros(n_rows, dtype=bool)
    is_fault[rng.permutation(n_rows)[: round(share * n_rows)]] = True
    X = rng.normal(size=(n_rows, n_features))
    X[is_fault, :2] += shift
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return X, np.where(is_fault, FAULT, OK), np.array(PLANTS)[np.arange(n_rows) % 4]
