"""Masked values, dates and durations: NumPy takes them for numbers, and no door here may."""

import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from fdrsvm import (
    DRSVC,
    FDRSVC,
    FDRSVCCV,
    FederatedMinMaxScaler,
    FederatedStandardScaler,
    InvalidInputError,
    worst_case_risk,
)
from fdrsvm.solvers import solve_central

X = np.random.default_rng(0).random((8, 2))
Y = np.where(np.arange(8) % 2, 1, -1)
DAYS = np.datetime64("2026-01-01") + np.arange(8)


def matrices():
    """Name, X, and how its place is named."""
    masked = np.ma.masked_array(X.copy(), mask=np.zeros_like(X, dtype=bool))
    masked[3, 1] = np.ma.masked
    times = {"dates": DAYS, "durations": DAYS - DAYS[0]}
    found = [
        ("masked", masked, "row 3, column 1"),
        ("rows masked", list(masked), "row 3, column 1"),
    ]
    for name, column in times.items():
        mixed = X.astype(object)
        mixed[5, 1] = column[5]
        stamps = pd.Series(column)
        found += [
            (name, np.column_stack([column, column]), "row 0, column 0"),
            (f"objects with {name}", mixed, "row 5, column 1"),
            (f"frame of {name}", pd.DataFrame({"p": X[:, 0], "when": stamps}), "column 1 ('when')"),
            (f"only {name}", pd.DataFrame({"when": stamps, "then": stamps}), "column 0 ('when')"),
        ]
    frame = pd.DataFrame({"p": X[:, 0], "q": X[:, 1]})
    zoned = frame.assign(q=pd.Series(DAYS).dt.tz_localize("UTC"))
    periods = frame.assign(q=pd.period_range("2026", periods=8))
    python = frame.assign(q=[datetime.date(2026, 1, 1)] * 8)
    whole = frame.assign(q=pd.array([1, 2, None, 4, 5, 6, 7, 8], dtype="Int64"))
    real = frame.assign(q=pd.array([1, 2, None, 4, 5, 6, 7, 8], dtype="Float64"))
    holes = frame.copy()
    holes.loc[2, "p"] = np.nan
    return [
        *found,
        *((name, X, "column 1 ('q')") for name, X in [("zoned", zoned), ("periods", periods)]),
        ("python dates", python, "column 1 ('q')"),
        ("missing whole numbers", whole, "row 2, column 1 ('q')"),
        ("missing numbers", real, "row 2, column 1 ('q')"),
        (
            "nan in a frame",
            holes,
            "row 2, column 0 ('p')",
        ),
    ]


MATRICES = {name: (spoiled, place) for name, spoiled, place in matrices()}
DOORS = {
    "worst_case_risk": lambda X: worst_case_risk([1.0, 1.0], X, Y, epsilon=0.1),
    "solve_central": lambda X: solve_central(X, Y, epsilon=0.1),
    "DRSVC.fit": lambda X: DRSVC().fit(X, Y),
    "FDRSVC.fit": lambda X: FDRSVC().fit(X, Y),
    "min-max": lambda X: FederatedMinMaxScaler().fit(X),
    "standard": lambda X: FederatedStandardScaler().fit(X),
    "min-max part": FederatedMinMaxScaler.summarise,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", MATRICES)
def test_no_door_takes_them(door, name):
    spoiled, place = MATRICES[name]
    with pytest.raises(InvalidInputError) as caught:
        DOORS[door](spoiled)
    assert place in str(caught.value)
    assert "leave" in caught.value.rule  # the remedy


@pytest.mark.parametrize("name", MATRICES)
def test_nor_does_a_fitted_model_or_scaler(name):
    spoiled, place = MATRICES[name]
    for use in (DRSVC().fit(X, Y).predict, FederatedMinMaxScaler().fit(X).transform):
        with pytest.raises(InvalidInputError) as caught:
            use(spoiled)
        assert place in str(caught.value)


def test_a_mask_that_hides_nothing_is_no_obstacle():
    plain = DRSVC().fit(X, Y)
    masked = DRSVC().fit(np.ma.masked_array(X), np.ma.masked_array(Y))
    np.testing.assert_array_equal(plain.coef_, masked.coef_)


def test_labels_weights_and_clients():
    hidden = np.ma.masked_array(np.ones(8), mask=np.arange(8) == 2)
    some = np.ma.masked_array(Y, mask=np.arange(8) == 2)
    for fit in (DRSVC().fit, FDRSVC().fit, FDRSVCCV(cv=2).fit):
        with pytest.raises(InvalidInputError, match="y: labels must not be masked"):
            fit(X, some)
        for times in (DAYS, DAYS - DAYS[0]):
            with pytest.raises(InvalidInputError, match=r"y: labels must be text.* dates"):
                fit(X, times)
        with pytest.raises(InvalidInputError, match=r"sample_weight: .*entry 2 is masked"):
            fit(X, Y, sample_weight=hidden)
    with pytest.raises(InvalidInputError, match="clients: labels must not be masked"):
        FDRSVC().fit(X, Y, clients=some)
    with pytest.raises(InvalidInputError, match=r"y: .*entry 2 is masked"):
        worst_case_risk([1.0, 1.0], X, some, epsilon=0.1)
    with pytest.raises(InvalidInputError, match=r"w: .*not dates or durations"):
        worst_case_risk(DAYS[:2], X, Y, epsilon=0.1)


def test_a_refused_fit_leaves_no_model():
    model = DRSVC()
    with pytest.raises(InvalidInputError):
        model.fit(np.column_stack([DAYS, DAYS]), Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
