"""Stand-ins for fitted models: the attributes that evaluation reads, and nothing else."""

from dataclasses import dataclass

import numpy as np


class Linear:
    """A linear classifier that somebody else trained."""

    def __init__(self, coef, intercept=0.0, classes=None, feature_names=None):
        self.coef_ = np.atleast_2d(np.asarray(coef, dtype=float))
        n_scores = len(self.coef_)
        self.intercept_ = np.broadcast_to(np.asarray(intercept, dtype=float), n_scores)
        self.classes_ = np.arange(max(2, n_scores)) if classes is None else np.array(classes)
        if feature_names is not None:
            self.feature_names_in_ = np.array(feature_names, dtype=object)

    def decision_function(self, X):
        scores = np.asarray(X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.coef_) == 1 else scores

    def predict(self, X):
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]


@dataclass(frozen=True)
class Record:
    """What a display reads of a round."""

    round: int
    objective: float
    lower_bound: float

    @property
    def gap(self):
        if not self.objective < np.inf:
            return np.inf
        excess = max(self.objective - self.lower_bound, 0.0)
        return excess / self.objective if self.objective > 0.0 else 0.0


class Trained(Linear):
    """A linear classifier with the attributes and parameters of this package's estimators."""

    def __init__(self, coef=(1.0, -2.0), *, params=None, **attributes):
        super().__init__(coef)
        self.params = {"epsilon": 0.01, "kappa": 0.5, "norm": "l2", "support": None, "tol": 1e-4}
        self.params |= params or {}
        vars(self).update(attributes)

    def get_params(self, deep=True):
        return self.params


def history(objective, lower_bound):
    pairs = zip(objective, lower_bound, strict=True)
    return tuple(Record(t, *pair) for t, pair in enumerate(pairs, start=1))
