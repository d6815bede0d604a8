"""Input as it comes: the right answer or an error that names the fault, never a silent guess."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from fdrsvm import (
    ConvergenceWarning,
    DegenerateModelWarning,
    InvalidInputError,
    NumericalError,
    UnsupportedError,
    worst_case_risk,
)
from fdrsvm.data.scaling import FederatedMinMaxScaler
from fdrsvm.errors import ClientError
from fdrsvm.estimators import DRSVC, FDRSVC, FedSVC

# Of labels that are noise, or after too few rounds.
MAY_GIVE_UP = pytest.mark.filterwarnings("ignore::fdrsvm.DegenerateModelWarning")


def name_of(model):
    return type(model).__name__


@pytest.fixture(params=[FDRSVC(), DRSVC(), FedSVC(max_rounds=20)], ids=name_of)
def model(request):
    return clone(request.param)


@pytest.fixture(params=[FDRSVC(), FedSVC(max_rounds=5)], ids=name_of)
def federated(request):
    return clone(request.param)


@pytest.fixture
def data(rng):
    X = rng.random((40, 3))
    y = (X[:, 0] + 0.2 * rng.normal(size=40) > 0.5).astype(int)
    return X, y


@pytest.fixture
def clients():
    return np.array(["north", "south"])[np.arange(40) % 2]


# --- 1 to 6: what is not a data set ---


def test_nan_is_refused_in_fit_and_predict(model, data):
    X, y = data
    spoiled = X.copy()
    spoiled[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(spoiled, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(spoiled)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(sparse.csr_array(spoiled), y)


def test_infinity_is_refused(model, data):
    X, y = data
    spoiled = X.copy()
    spoiled[3, 1] = -np.inf
    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.fit(spoiled, y)


@pytest.mark.parametrize("text", ["high", "1.5"])
def test_text_is_refused_even_if_it_reads_as_a_number(model, text, data):
    X, y = data
    written = np.full(X.shape, text)
    mixed = X.astype(object)
    mixed[2, 1] = text
    frame = pd.DataFrame(X).astype({0: str})
    for spoiled in (written, mixed, frame, written.tolist()):
        with pytest.raises(InvalidInputError, match="X: must be numeric; some of it is text"):
            model.fit(spoiled, y)
    model.fit(X, y)
    with pytest.raises(InvalidInputError, match="X: must be numeric"):
        model.predict(written)


def test_no_rows_or_no_columns_are_refused(model, data):
    X, y = data
    with pytest.raises(ValueError, match="0 sample"):
        model.fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(X[:, :0], y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])


def test_one_row_is_refused_since_it_has_one_class(model, data):
    X, y = data
    with pytest.raises(InvalidInputError, match="y: must hold two or more classes"):
        model.fit(X[:1], y[:1])


def test_one_class_over_all_clients_is_refused(model, data):
    X, y = data
    with pytest.raises(InvalidInputError, match="two or more classes over all clients"):
        model.fit(X, np.ones(len(y)))
    with pytest.raises(InvalidInputError, match="there is only one class"):
        model.fit(X, y, sample_weight=y)


# --- 7 to 12: what does not fit together ---


@MAY_GIVE_UP
def test_three_labels_work_with_every_option_there_is(data, clients):
    X, _ = data
    y = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
    X = X + 0.0
    X[:, 0] = (y == "b") * 0.5 + 0.4 * X[:, 0]
    for options in (
        {"support": "unit-box"},
        {"class_weight": "balanced"},
        {"epsilon": {"north": 0.1, "south": 0.2}},
        {"loss": "smooth_hinge"},
    ):
        model = FDRSVC(tol=1e-2, **options).fit(X, y, clients=clients)
        assert model.coef_.shape == (3, 3)
        assert (model.gap_ <= 1e-2).all()
    with pytest.raises(InvalidInputError, match="alarm_on: must be a list of labels"):
        model.to_structured_text(alarm_on=["d"])


def test_another_number_of_features_at_predict_is_refused(model, data):
    X, y = data
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        model.predict(X[0])


@pytest.mark.parametrize("radius", [-0.1, np.nan, np.inf, "small", None, [0.1, -0.1]], ids=repr)
def test_a_radius_that_is_none_is_refused(radius, data, clients):
    X, y = data
    with pytest.raises(InvalidInputError, match="epsilon"):
        FDRSVC(epsilon=radius).fit(X, y, clients=clients)
    with pytest.raises(InvalidInputError, match="penalty"):
        FedSVC(penalty=radius).fit(X, y, clients=clients)
    with pytest.raises(InvalidInputError, match="epsilon"):
        DRSVC(epsilon=radius).fit(X, y)


@pytest.mark.parametrize("argument", ["epsilon", "kappa", "client_weights"])
def test_clients_in_a_mapping_must_be_those_of_the_fit(argument, data, clients):
    X, y = data
    with pytest.raises(InvalidInputError, match=f"{argument}: .*; unknown: 'east'"):
        FDRSVC(**{argument: {"north": 1.0, "south": 1.0, "east": 1.0}}).fit(X, y, clients=clients)
    with pytest.raises(InvalidInputError, match=f"{argument}: .*; missing: 'south'"):
        FDRSVC(**{argument: {"north": 1.0}}).fit(X, y, clients=clients)
    with pytest.raises(InvalidInputError, match=f"{argument}: must have one entry for each of 2"):
        FDRSVC(**{argument: [1.0, 1.0, 1.0]}).fit(X, y, clients=clients)
    with pytest.raises(InvalidInputError, match=f"{argument} of client 'south': must be"):
        FDRSVC(**{argument: {"north": 1.0, "south": -1.0}}).fit(X, y, clients=clients)


def test_client_labels_must_be_one_a_row_and_not_missing(federated, data, clients):
    X, y = data
    with pytest.raises(InvalidInputError, match=r"clients: must have shape \(40,\)"):
        federated.fit(X, y, clients=clients[:-1])
    with pytest.raises(InvalidInputError, match=r"clients: must have shape \(40,\)"):
        federated.fit(X, y, clients=clients[:, None])
    for missing in (None, np.nan, ""):
        spoiled = clients.astype(object)
        spoiled[7] = missing
        with pytest.raises(InvalidInputError, match="clients: labels must "):
            federated.fit(X, y, clients=spoiled)
    numbers = np.where(clients == "north", 1.0, np.nan)
    with pytest.raises(InvalidInputError, match="clients: labels must not be missing"):
        federated.fit(X, y, clients=numbers)


@pytest.mark.parametrize("kind", [FDRSVC, DRSVC])
def test_values_outside_the_box_are_refused_or_clipped_and_counted(kind, data):
    X, y = data
    outside = X.copy()
    outside[5, 2], outside[9, 0], outside[9, 1] = 1.5, -0.25, 2.0
    frame = pd.DataFrame(outside, columns=["pressure", "flow", "heat"])
    model = kind(support="unit-box", tol=1e-2)
    with pytest.raises(InvalidInputError, match=r"row 5, column 2 \('heat'\) is 1.5, outside"):
        model.fit(frame, y)
    with pytest.raises(InvalidInputError, match=r"row 5, column 2 is 1.5, outside \[0, 1\]"):
        model.fit(outside, y)
    clipped = kind(support="unit-box", outside="clip", tol=1e-2).fit(outside, y)
    inside = model.fit(np.clip(outside, 0.0, 1.0), y)
    assert (clipped.n_clipped_, inside.n_clipped_) == (3, 0)
    assert_array_equal(clipped.coef_, inside.coef_)
    assert outside[5, 2] == 1.5
    with pytest.raises(InvalidInputError, match="outside: must be one of 'refuse', 'clip'"):
        kind(outside="ignore").fit(X, y)


# --- 13 to 20: unusual, and some of it fine ---


def test_complex_numbers_are_refused(model, data):
    X, y = data
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.fit(X + 1j, y)


def test_objects_that_are_numbers_are_read_and_others_refused(model, data):
    X, y = data
    expected = clone(model).fit(X, y)
    assert_array_equal(model.fit(X.astype(object), y).coef_, expected.coef_)
    spoiled = X.astype(object)
    spoiled[0, 0] = {"pressure": 1.0}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        model.fit(spoiled, y)


def test_sparse_data_work_where_zeros_may_stay_and_are_named_where_not(data):
    X, y = data
    thin = np.where(X < 0.4, 0.0, X)
    for options in ({}, {"support": "unit-box", "tol": 1e-2}):
        dense = FDRSVC(**options).fit(thin, y)
        for container in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
            found = FDRSVC(**options).fit(container(thin), y)
            assert_allclose(found.objective_, dense.objective_, rtol=2e-2)
    with pytest.raises(InvalidInputError, match="X: must be dense"):
        FederatedMinMaxScaler().fit(sparse.csr_array(thin))
    with pytest.raises((TypeError, ValueError)):
        FDRSVC().fit(thin, sparse.csr_array(y[None]))


def test_duplicate_column_names_are_refused(model, data):
    X, y = data
    frame = pd.DataFrame(X, columns=["flow", "heat", "flow"])
    with pytest.raises(InvalidInputError, match="different names; 2 are called 'flow'"):
        model.fit(frame, y)
    model.fit(X, y)
    with pytest.raises(InvalidInputError, match="different names"):
        model.predict(frame)


@MAY_GIVE_UP
def test_constant_features_do_no_harm(model, data):
    X, y = data
    expected = clone(model).fit(X, y)
    padded = np.column_stack([X, np.ones(len(y)), np.zeros(len(y))])
    model.fit(padded, y)
    if not isinstance(model, FedSVC):
        # They add nothing: both certified intervals hold one optimum.
        assert model.lower_bound_ <= expected.objective_
        assert expected.lower_bound_ <= model.objective_
    assert model.score(padded, y) >= expected.score(X, y) - 0.1


def test_constant_features_alone_predict_one_class(model, data):
    X, y = data
    with pytest.warns(DegenerateModelWarning, match="ignores all features"):
        model.fit(np.ones_like(X), y)
    assert len(set(model.predict(np.ones_like(X)))) == 1


def test_labels_in_a_column_are_read_with_a_warning(model, data):
    X, y = data
    expected = clone(model).fit(X, y)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model.fit(X, y[:, None])
    assert_array_equal(model.coef_, expected.coef_)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        model.fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize(
    "labels",
    [(0, 1), (1, 2), (-1, 1), ("healthy", "worn"), (False, True), (0.0, 1.0), (-7, 2**40)],
    ids=str,
)
def test_any_two_labels_give_the_same_model(model, labels, data):
    X, y = data
    expected = clone(model).fit(X, y)
    named = np.array(labels)[y]
    model.fit(X, named)
    assert_array_equal(model.coef_, expected.coef_)
    assert model.classes_.tolist() == list(labels)
    assert_array_equal(model.predict(X), np.array(labels)[expected.predict(X)])


def test_text_labels_may_be_objects_and_other_objects_are_refused(model, data):
    X, y = data
    named = np.array(["healthy", "worn"], dtype=object)[y]
    assert model.fit(X, named).classes_.tolist() == ["healthy", "worn"]
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X, y.astype(object))
    named[3] = None
    with pytest.raises(InvalidInputError, match="y: labels must be of one kind and not missing"):
        model.fit(X, named)


def test_labels_that_are_measurements_are_refused(model, data):
    X, _ = data
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(X, X[:, 0])


@pytest.mark.parametrize("kind", [FDRSVC, DRSVC])
def test_features_from_1e_minus_12_to_1e12_have_honest_certificates(kind, data, rng):
    X, y = data
    scales = np.array([1e-12, 1.0, 1e12])
    for factors in (scales, scales[::-1], np.full(3, 1e-12), np.full(3, 1e12)):
        model = kind(epsilon=0.01, **({"max_rounds": 30} if kind is FDRSVC else {}))
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(X * factors, y)
        except (NumericalError, ClientError):
            continue  # named
        assert model.gap_ <= model.tol or caught[0].category is ConvergenceWarning
        signs = 2.0 * y - 1.0
        ball = {"epsilon": 0.01, "kappa": 1.0}
        w, b = model.coef_[0], model.intercept_[0]
        risk = worst_case_risk(w, X * factors, signs, intercept=b, **ball).value
        assert_allclose(model.objective_, risk, rtol=1e-6)
        for _ in range(20):
            other = rng.normal(size=3) / factors
            risk = worst_case_risk(other, X * factors, signs, intercept=0.1, **ball).value
            assert risk >= model.lower_bound_ * (1.0 - 1e-9)


def test_scores_that_overflow_are_an_error_and_not_a_class(data):
    X, y = data
    model = DRSVC().fit(X, y)
    with pytest.raises(NumericalError, match="the score of row 1 overflows"):
        model.predict([[0.0, 0.0, 0.0], [1e308, -1e308, 1e308]])


# --- options ---


def test_options_that_do_not_go_together_are_named(data):
    X, y = data
    for options, sentence in (
        ({"algorithm": "admm", "support": "unit-box"}, "algorithm='admm' solves the clients'"),
        ({"algorithm": "admm-sc", "loss": "logistic"}, "algorithm='admm-sc' solves the clients'"),
        ({"loss": "logistic", "support": "unit-box"}, "a support is possible with loss='hinge'"),
        ({"worst_case": "paper"}, "worst_case='paper' is what"),
        ({"worst_case": "paper", "algorithm": "subgradient"}, "worst_case='paper' is what"),
        ({"worst_case": "paper", "support": "unit-box"}, "worst_case='paper' is what"),
    ):
        with pytest.raises(UnsupportedError, match=sentence):
            FDRSVC(**options).fit(X, y)
    with pytest.raises(UnsupportedError, match="a support is possible with loss='hinge' only"):
        DRSVC(loss="logistic", support="unit-box").fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "newton"},
        {"algorithm": None},
        {"kappa": 0.0},
        {"kappa": "cheap"},
        {"norm": "l3"},
        {"support": "box"},
        {"support": (1.0, 0.0)},
        {"support": (0.0, np.inf)},
        {"algorithm": "admm", "rho": 0.0},
        {"algorithm": "admm", "tau": -1.0},
        {"algorithm": "subgradient", "step_size": 0.0},
        {"algorithm": "subgradient", "step_decay": "1/t^2"},
        {"worst_case": "best"},
        {"loss": "squared"},
        {"max_rounds": 0},
        {"max_rounds": 2.5},
        {"tol": -1.0},
        {"client_weights": "large"},
        {"client_weights": [0.0]},
        {"fit_intercept": "no"},
        {"class_weight": "fair"},
        {"class_weight": [1.0, 2.0]},
        {"class_weight": {0: -1.0}},
        {"class_weight": {2: 1.0}},
        {"class_weight": {0: 0.0, 1: 0.0}},
        {"n_threads": 0},
    ],
    ids=str,
)
def test_options_that_break_a_rule_are_named(options, data):
    X, y = data
    argument = list(options)[-1]
    with pytest.raises(InvalidInputError, match=argument):
        FDRSVC(**options).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "bundle"},
        {"learning_rate": 0.0},
        {"algorithm": "fedavg", "n_epochs": 0},
        {"algorithm": "fedavg", "batch_fraction": 1.5},
        {"algorithm": "fedprox", "prox_weight": -1.0},
        {"algorithm": "feddro", "temperature": 0.0},
        {"algorithm": "feddro", "momentum": 2.0},
        {"max_rounds": 0},
        {"tol": -0.1},
    ],
    ids=str,
)
def test_options_of_baselines_that_break_a_rule_are_named(options, data):
    X, y = data
    with pytest.raises(InvalidInputError, match=list(options)[-1]):
        FedSVC(**options).fit(X, y)


def test_a_seed_that_is_none_is_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="cannot be used to seed"):
        FedSVC("fedavg", random_state="lucky").fit(X, y)


def test_weights_that_break_a_rule_are_named(model, data):
    X, y = data
    for weights, rule in (
        (-np.ones(40), "weights must not be negative; row 0 is -1"),
        (np.zeros(40), "some weight must be positive; all are zero"),
        (np.ones(39), r"must have shape \(40,\)"),
        (np.full(40, np.nan), "every value must be finite"),
        (np.full(40, 1e300), "must be below 1e\\+290"),
        (["heavy"] * 40, "must be numeric"),
    ):
        with pytest.raises(InvalidInputError, match=f"sample_weight: {rule}"):
            model.fit(X, y, sample_weight=weights)


def test_a_class_weight_that_leaves_a_client_nothing_is_named(data):
    X, y = data
    with pytest.raises(
        InvalidInputError, match="must leave every client some weight; client 1 has"
    ):
        FDRSVC(class_weight={0: 1.0, 1: 0.0}).fit(X, y, clients=y)


@MAY_GIVE_UP
def test_the_callers_arrays_are_not_changed(model, data, rng):
    X, y = data
    weights = rng.random(len(y))
    thin = sparse.csr_array(np.where(X < 0.5, 0.0, X))
    thin = sparse.csr_array((thin.data[::-1].copy(), thin.indices[::-1].copy(), thin.indptr * 1))
    kept = [array.copy() for array in (X, y, weights, thin.data, thin.indices)]
    model.fit(X, y, sample_weight=weights)
    model.fit(thin, y, sample_weight=weights)
    for array, copy in zip((X, y, weights, thin.data, thin.indices), kept, strict=True):
        assert_array_equal(array, copy)
