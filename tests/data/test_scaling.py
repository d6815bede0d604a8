"""Scalers fitted from summaries are those of pooled rows, and only summaries leave a client."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fdrsvm import InvalidInputError, NumericalError
from fdrsvm.data.scaling import (
    FederatedMinMaxScaler,
    FederatedStandardScaler,
    MinMaxSummary,
    MomentSummary,
)

EPS = np.finfo(np.float64).eps
SCALERS = [FederatedMinMaxScaler, FederatedStandardScaler]


@st.composite
def tables(draw):
    """Rows and a client for each; offsets up to 1e9 on top of values up to 1e3."""
    shape = draw(st.tuples(st.integers(1, 25), st.integers(1, 3)))
    values = draw(arrays(np.float64, shape, elements=st.integers(-1000, 1000)))
    offsets = draw(arrays(np.float64, shape[1], elements=st.sampled_from([0.0, 0.1, -3e4, 1e9])))
    clients = draw(arrays(np.int64, shape[0], elements=st.integers(0, 4)))
    return values / 8 + offsets, clients


def weights_for(n_rows):
    return arrays(np.float64, n_rows, elements=st.integers(0, 9)).filter(lambda w: w.sum() > 0)


def exact_moments(column, weights):
    """Mean and variance in rational arithmetic: no rounding but the last."""
    values, weights = [Fraction(float(x)) for x in column], [Fraction(float(w)) for w in weights]
    total = sum(weights)
    mean = sum(w * x for w, x in zip(weights, values, strict=True)) / total
    square = sum(w * (x - mean) ** 2 for w, x in zip(weights, values, strict=True))
    return float(mean), float(square / total)


def assert_exact_moments(scaler, X, weights):
    """To within what rounding can do.

    A client's mean is off by one rounding of its size and a few of the column's range; no deviation
    is then off by more than twice that, d, and a variance v not by more than 4 d sqrt(v) + 4 d^2.
    Sums of n products of rounded shares add 2 n roundings, relatively.
    """
    n = len(X)
    for j, column in enumerate(X.T):
        mean, variance = exact_moments(column, weights)
        d = 4 * EPS * (np.abs(column).max() + np.ptp(column))
        assert abs(scaler.mean_[j] - mean) <= d
        slack = 4 * d * np.sqrt(variance) + 4 * d**2 + 2 * n * EPS * variance
        assert abs(scaler.var_[j] - variance) <= slack


# --- scikit-learn's contract ---------------------------------------------------------------------


@parametrize_with_checks(
    [
        FederatedMinMaxScaler(),
        FederatedMinMaxScaler(limits=(-1e3, 1e3), clip=True),
        FederatedStandardScaler(),
        FederatedStandardScaler(with_mean=False),
        FederatedStandardScaler(with_std=False),
    ]
)
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("scaler", SCALERS)
def test_column_names_come_from_frames_and_go_into_them(scaler, rng):
    frame = pd.DataFrame(rng.normal(size=(9, 2)), columns=["pressure", "flow"])
    fitted = (
        scaler().set_output(transform="pandas").fit(frame, clients=pd.Series(list("aabbbccca")))
    )
    assert fitted.feature_names_in_.tolist() == ["pressure", "flow"]
    assert fitted.get_feature_names_out().tolist() == ["pressure", "flow"]
    scaled = fitted.transform(frame)
    assert scaled.columns.tolist() == ["pressure", "flow"]
    # Sums over three clients and over one round differently; a value is a quotient of such sums.
    np.testing.assert_allclose(scaled, scaler().fit(frame.to_numpy()).transform(frame.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame[["flow", "pressure"]])


@pytest.mark.parametrize("scaler", SCALERS)
def test_polars_frames_are_frames(scaler, rng):
    pl = pytest.importorskip("polars")
    X = rng.normal(size=(9, 2))
    frame = pl.DataFrame(X, schema=["pressure", "flow"])
    fitted = scaler().set_output(transform="polars")
    scaled = fitted.fit_transform(frame, clients=pl.Series(list("aabbbccca")))
    assert fitted.feature_names_in_.tolist() == ["pressure", "flow"]
    assert isinstance(scaled, pl.DataFrame)
    expected = scaler().fit_transform(X, clients=list("aabbbccca"))
    np.testing.assert_array_equal(scaled.to_numpy(), expected)


@pytest.mark.parametrize("scaler", SCALERS)
def test_a_pipeline_routes_clients(scaler, rng):
    X, clients = rng.normal(5, 3, size=(40, 3)), np.arange(40) % 3
    y = (X[:, 0] > 5).astype(int)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(scaler().set_fit_request(clients=True), LogisticRegression())
        model.fit(X, y, clients=clients)
        with pytest.raises(InvalidInputError, match="clients"):
            model.fit(X, y, clients=clients[1:])
    expected = scaler().fit(X, clients=clients)
    np.testing.assert_array_equal(model[0].transform(X), expected.transform(X))


@pytest.mark.parametrize("scaler", SCALERS)
def test_a_scaler_can_be_cloned_and_fitted_again(scaler, rng):
    frame = pd.DataFrame(rng.normal(size=(9, 2)), columns=["pressure", "flow"])
    fitted = scaler().fit(frame)
    again = clone(fitted)
    assert not hasattr(again, "n_features_in_")
    fitted.fit_summaries([scaler.summarise(rng.normal(size=(5, 3)))])
    assert fitted.n_features_in_ == 3
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.get_feature_names_out().tolist() == ["x0", "x1", "x2"]


# --- the federation ------------------------------------------------------------------------------


@pytest.mark.parametrize("scaler", SCALERS)
def test_summaries_from_elsewhere_give_the_same_bits_as_fit(scaler, rng):
    X, clients = rng.normal(size=(60, 4)) * [1, 10, 1e-3, 1e6], np.arange(60) % 4
    summaries = [scaler.summarise(X[clients == g]) for g in range(4)]
    apart = scaler().fit_summaries(summaries, feature_names=list("abcd"))
    together = scaler().fit(pd.DataFrame(X, columns=list("abcd")), clients=clients)
    assert vars(apart).keys() == vars(together).keys()
    for name, value in vars(together).items():
        np.testing.assert_array_equal(getattr(apart, name), value)


@pytest.mark.parametrize("scaler", SCALERS)
def test_summaries_of_summaries_are_summaries_of_rows(scaler, rng):
    X = rng.normal(size=(60, 4))
    halves = [
        scaler.combine([scaler.summarise(X[i : i + 15]) for i in (j, j + 15)]) for j in (0, 30)
    ]
    whole, apart = scaler().fit(X), scaler().fit_summaries(halves)
    # Means of means are within 2 d of the exact ones, with d as in assert_exact_moments, and roots
    # of variances within 4 d + n roundings, relatively; deviations here are near 1.
    d = 4 * EPS * 3 * np.abs(X).max()
    scaled = whole.transform(X)
    atol = 4 * d + (8 * d + 2 * 60 * EPS) * np.abs(scaled).max()
    np.testing.assert_allclose(apart.transform(X), scaled, rtol=0, atol=2 * atol)


def test_what_leaves_a_client_does_not_grow_with_its_rows(rng):
    for n_rows in (1, 7, 500):
        X = rng.normal(size=(n_rows, 6))
        assert count_numbers(FederatedMinMaxScaler.summarise(X)) == 2 * 6
        assert count_numbers(FederatedStandardScaler.summarise(X)) == 2 * 6 + 1


def count_numbers(summary):
    return sum(np.size(value) for value in vars(summary).values())


def test_a_summary_is_a_value_that_nobody_can_change(rng):
    low, high = np.zeros(2), np.ones(2)
    summary = MinMaxSummary(low, high)
    low[0] = 5.0  # still the caller's own
    assert summary.low.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        summary.low[0] = 5.0
    X = rng.normal(size=(4, 2))
    before = X.copy()
    FederatedStandardScaler.summarise(X, sample_weight=[1, 0, 2, 1])
    np.testing.assert_array_equal(X, before)
    assert X.flags.writeable


# --- min and max ---------------------------------------------------------------------------------


@given(tables())
def test_min_max_is_the_same_however_rows_are_split(table):
    X, clients = table
    fitted = FederatedMinMaxScaler().fit(X, clients=clients)
    np.testing.assert_array_equal(fitted.low_, X.min(axis=0))
    np.testing.assert_array_equal(fitted.high_, X.max(axis=0))
    permuted = FederatedMinMaxScaler().fit(X, clients=-clients)
    np.testing.assert_array_equal(permuted.transform(X), fitted.transform(X))


@given(tables())
def test_min_max_is_that_of_scikit_learn_on_pooled_rows(table):
    X, clients = table
    ours = FederatedMinMaxScaler().fit(X, clients=clients)
    theirs = MinMaxScaler().fit(X)
    # They compute x * scale - low * scale: three roundings of numbers up to |x| / range.
    atol = 4 * EPS * (np.abs(X).max(axis=0) / ours.range_ + 1)
    assert (np.abs(ours.transform(X) - theirs.transform(X)) <= atol).all()


@given(arrays(np.float64, (6, 1), elements=st.floats(-1e100, 1e100)))
def test_training_rows_map_into_the_unit_interval_exactly(X):
    scaled = FederatedMinMaxScaler().fit_transform(X)
    assert scaled.min() == 0.0
    assert scaled.max() == (0.0 if np.ptp(X) == 0 else 1.0)


def test_features_in_tiny_units_are_scaled_and_constant_ones_are_not():
    X = np.array([[1e-300, 7.3, 5e-324], [3e-300, 7.3, 0.0]])
    fitted = FederatedMinMaxScaler().fit(X)
    np.testing.assert_array_equal(fitted.transform(X), [[0, 0, 1], [1, 0, 0]])
    assert fitted.range_[1] == 1.0
    assert fitted.transform([[1e-300, 8.0, 0.0]])[0, 1] == 8.0 - 7.3


def test_unseen_values_may_lie_outside_a_learnt_range_unless_clipped():
    X, unseen = [[0.0, 10.0], [4.0, 20.0]], [[-4.0, 25.0]]
    assert FederatedMinMaxScaler().fit(X).transform(unseen).tolist() == [[-1.0, 1.5]]
    clipped = FederatedMinMaxScaler(clip=True).fit(X)
    assert clipped.transform(unseen).tolist() == [[0.0, 1.0]]
    assert clipped.count_outside([[-4.0, 25.0], [5.0, 15.0]]).tolist() == [2, 1]


@given(tables())
def test_the_inverse_of_min_max_undoes_it(table):
    X, clients = table
    fitted = FederatedMinMaxScaler().fit(X, clients=clients)
    # Four roundings, none of a number above |x| + range.
    atol = 4 * EPS * (np.abs(X).max(axis=0) + fitted.range_)
    assert (np.abs(fitted.inverse_transform(fitted.transform(X)) - X) <= atol).all()


def test_agreed_limits_need_no_rows():
    at_plant = FederatedMinMaxScaler(limits=(0.0, [25.0, 50.0])).fit([[1.0, 2.0]])
    assert at_plant.transform([[5.0, 50.0]]).tolist() == [[0.2, 1.0]]
    for limits, names in [
        ((0.0, [25.0, 50.0]), None),
        ((np.zeros(2), np.array([25.0, 50.0])), ["pressure", "flow"]),
    ]:
        at_server = FederatedMinMaxScaler(limits=limits).fit_summaries(feature_names=names)
        np.testing.assert_array_equal(at_server.range_, at_plant.range_)
    numbers = FederatedMinMaxScaler(limits=(0, np.array(10))).fit_summaries(
        feature_names=["a", "b"]
    )
    assert numbers.high_.tolist() == [10.0, 10.0]


def test_values_outside_agreed_limits_are_refused_without_being_told():
    frame = pd.DataFrame({"pressure": [1.0, 77.7, 66.6], "flow": [-55.5, 1.0, 1.0]})
    strict = FederatedMinMaxScaler(limits=(0.0, 25.0)).fit(frame)
    with pytest.raises(InvalidInputError) as caught:
        strict.transform(frame)
    message = str(caught.value)
    assert "column 0 ('pressure') has 2 outside [0, 25]" in message
    assert "column 1 ('flow') has 1 outside" in message
    assert not any(reading in message for reading in ("77.7", "66.6", "55.5"))
    assert strict.count_outside(frame).tolist() == [2, 1]
    clipped = clone(strict).set_params(clip=True).fit_transform(frame)
    np.testing.assert_array_equal(clipped, [[0.04, 0.0], [1.0, 0.04], [1.0, 0.04]])


def test_a_message_names_five_columns_and_counts_the_rest():
    with pytest.raises(InvalidInputError, match=r"column 4 has 1 .*, and 3 more columns$"):
        FederatedMinMaxScaler(limits=(0, 1)).fit_transform(np.full((1, 8), 2.0))


# --- mean and variance ---------------------------------------------------------------------------


@given(tables(), st.data())
def test_moments_are_exact_up_to_rounding_however_rows_are_split(table, data):
    X, clients = table
    weights = data.draw(st.one_of(st.none(), weights_for(len(X))))
    counts = np.ones(len(X)) if weights is None else weights
    for split in (None, clients, -clients, np.arange(len(X))):
        fitted = FederatedStandardScaler().fit(X, clients=split, sample_weight=weights)
        assert_exact_moments(fitted, X, counts)
        assert fitted.n_samples_seen_ == counts.sum()


@given(tables(), st.data())
def test_sparse_moments_are_exact_up_to_rounding(table, data):
    X, clients = table
    X = X * data.draw(arrays(np.bool_, X.shape))
    weights = data.draw(weights_for(len(X)))
    scaler = FederatedStandardScaler(with_mean=False)
    fitted = scaler.fit(sparse.csr_array(X), clients=clients, sample_weight=weights)
    assert_exact_moments(fitted, X, weights)


def test_standard_is_that_of_scikit_learn_on_pooled_rows(rng):
    X = rng.normal(size=(300, 4)) * [1, 1e-6, 1e6, 3] + [0, 1, 1e3, 1e5]
    clients, weights = rng.integers(0, 6, 300), rng.uniform(0, 2, 300)
    for options in ({}, {"with_mean": False}, {"with_std": False}):
        ours = FederatedStandardScaler(**options).fit(X, clients=clients, sample_weight=weights)
        theirs = StandardScaler(**options).fit(X, sample_weight=weights)
        # Their mean may be off by n roundings of the largest value, hence every deviation too;
        # a deviation's root mean square moves by no more.
        off = 2 * 300 * EPS * np.abs(X).max(axis=0)
        np.testing.assert_allclose((ours.mean_ - theirs.mean_) / off, 0, atol=1)
        expected = theirs.transform(X)
        atol = (1 + np.abs(expected).max(axis=0)) * off / ours.scale_
        assert (np.abs(ours.transform(X) - expected) <= atol).all()


def test_large_offsets_do_not_cancel(rng):
    noise = rng.normal(size=(4000, 1))
    for offset in (1e6, 1e9, -1e12):
        X = noise + offset
        fitted = FederatedStandardScaler().fit(X, clients=np.arange(4000) % 7)
        assert_exact_moments(fitted, X, np.ones(4000))
        assert abs(fitted.transform(X).std() - 1) < 1e-3  # 1e12 is 1e-4 between neighbours


def test_a_weightless_far_row_does_no_harm():
    X = np.array([[1e15], [0.1], [0.2], [0.4]])
    fitted = FederatedStandardScaler().fit(X, sample_weight=[1e-40, 1, 1, 1])
    assert_exact_moments(FederatedStandardScaler().fit(X[1:]), X[1:], np.ones(3))
    # Its share of the variance is 1e-40 1e30 / 3; that of the others 0.0156.
    np.testing.assert_allclose(fitted.var_, np.var(X[1:]), rtol=1e-7)


@pytest.mark.parametrize("value", [0.1, 1e9 + 0.1, -7e-30])
def test_constant_features_are_not_scaled(value, rng):
    X = np.full((1000, 1), value)
    X[:5] = value * (1 + EPS)  # some plants round otherwise
    clients = rng.integers(0, 9, 1000)
    for rows in (X, sparse.csr_array(X)):
        scaler = FederatedStandardScaler(with_mean=rows is X).fit(rows, clients=clients)
        assert scaler.scale_[0] == 1.0
    exact = FederatedStandardScaler().fit(X[5:], clients=clients[5:])
    assert exact.mean_[0] == value
    assert exact.var_[0] == 0.0


def test_many_rows_do_not_make_a_constant_sparse_feature_vary():
    X = sparse.csr_array(np.full((200_000, 1), 0.1))  # the sum of which is off by 1e5 roundings
    assert FederatedStandardScaler(with_mean=False).fit(X).scale_[0] == 1.0


def test_sparse_rows_are_scaled_like_dense_ones(rng):
    X = rng.normal(size=(50, 4)) * (rng.random((50, 4)) < 0.3)
    clients = np.arange(50) % 3
    scaler = FederatedStandardScaler(with_mean=False)
    dense = scaler.fit(X, clients=clients).transform(X)
    for kind in (sparse.csr_array, sparse.csc_matrix):
        fitted = clone(scaler).fit(kind(X), clients=clients)
        scaled = fitted.transform(kind(X))
        assert scaled.format == "csr"
        # Variances within 2 n roundings; the root halves that, the division adds one.
        np.testing.assert_allclose(scaled.toarray(), dense, rtol=2 * 50 * EPS)
        back = fitted.inverse_transform(scaled)
        np.testing.assert_allclose(back.toarray(), X, rtol=4 * EPS)


@pytest.mark.parametrize("with_mean", [True, False])
def test_the_inverse_of_standard_undoes_it(with_mean, rng):
    X = rng.normal(size=(30, 3)) * [1, 1e3, 0] + [1, 1e4, 7]
    scaler = FederatedStandardScaler(with_mean=with_mean).fit(X, clients=np.arange(30) % 2)
    atol = 4 * EPS * 2 * np.abs(X).max(axis=0)
    assert (np.abs(scaler.inverse_transform(scaler.transform(X)) - X) <= atol).all()


def test_a_client_whose_weights_are_zero_counts_for_nothing():
    X, clients = np.array([[1.0], [3.0], [100.0]]), ["a", "a", "b"]
    fitted = FederatedStandardScaler().fit(X, clients=clients, sample_weight=[1, 1, 0])
    assert fitted.mean_.tolist() == [2.0]
    assert fitted.var_.tolist() == [1.0]
    assert FederatedStandardScaler.summarise(X, sample_weight=[0, 0, 0]).weight == 0.0


@given(tables(), st.sampled_from([2.0**-80, 2.0**80]))
def test_the_unit_of_the_weights_does_not_matter(table, unit):
    X, clients = table
    one = FederatedStandardScaler().fit(X, clients=clients)
    other = FederatedStandardScaler().fit(X, clients=clients, sample_weight=np.full(len(X), unit))
    np.testing.assert_array_equal(other.transform(X), one.transform(X))


# --- errors --------------------------------------------------------------------------------------

TWO = [[0.0, 1.0], [2.0, 3.0]]
CSR = sparse.csr_array(np.eye(2))
ONE_RANGE = MinMaxSummary([0.0], [1.0])
TWO_RANGES = MinMaxSummary([0.0, 0.0], [1.0, 1.0])
NO_WEIGHT = MomentSummary(0.0, [0.0], [0.0])


def min_max(**options):
    return FederatedMinMaxScaler(**options)


def standard(**options):
    return FederatedStandardScaler(**options)


BAD = {
    "too few clients": (lambda: min_max().fit(TWO, clients=["a"]), "clients"),
    "clients a table": (lambda: standard().fit(TWO, clients=[["a"], ["b"]]), "clients"),
    "client NaN": (lambda: min_max().fit(TWO, clients=[1.0, np.nan]), "clients"),
    "client None": (lambda: min_max().fit(TWO, clients=["a", None]), "clients"),
    "client NA": (
        lambda: min_max().fit(TWO, clients=pd.Series(["a", pd.NA], dtype=object)),
        "clients",
    ),
    "clients of two kinds": (
        lambda: standard().fit(TWO, clients=np.array([1, "a"], dtype=object)),
        "clients",
    ),
    "limits one number": (lambda: min_max(limits=3).fit(TWO), "limits"),
    "limits three": (lambda: min_max(limits=(0, 1, 2)).fit(TWO), "limits"),
    "limits text": (lambda: min_max(limits="unit-box").fit(TWO), "limits"),
    "limits crossed": (lambda: min_max(limits=(0, [1, -1])).fit(TWO), "limits"),
    "low NaN": (lambda: min_max(limits=(np.nan, 1)).fit(TWO), "limits (low)"),
    "high infinite": (lambda: min_max(limits=(0, [1, np.inf])).fit(TWO), "limits (high)"),
    "high too long": (lambda: min_max(limits=(0, [1, 1, 1])).fit(TWO), "limits (high)"),
    "limits unsized": (lambda: min_max(limits=(0, 1)).fit_summaries(), "feature_names"),
    "limits and summaries": (
        lambda: min_max(limits=(0, 1)).fit_summaries([ONE_RANGE]),
        "summaries",
    ),
    "clip": (lambda: min_max(clip="yes").fit(TWO), "clip"),
    "with_mean": (lambda: standard(with_mean=1).fit(TWO), "with_mean"),
    "with_std": (lambda: standard(with_std=None).fit(TWO), "with_std"),
    "no summaries": (lambda: min_max().fit_summaries([]), "summaries"),
    "other summaries": (lambda: standard().fit_summaries([ONE_RANGE]), "summaries"),
    "summaries differ": (lambda: min_max().fit_summaries([ONE_RANGE, TWO_RANGES]), "summaries"),
    "names too few": (lambda: min_max().fit_summaries([TWO_RANGES], ["a"]), "feature_names"),
    "names twice": (lambda: min_max().fit_summaries([TWO_RANGES], ["a", "a"]), "feature_names"),
    "names numbers": (lambda: min_max().fit_summaries([TWO_RANGES], [0, 1]), "feature_names"),
    "nobody has weight": (lambda: standard().fit_summaries([NO_WEIGHT]), "sample_weight"),
    "weight negative": (lambda: standard().fit(TWO, sample_weight=[1, -1]), "sample_weight"),
    "weights too few": (lambda: standard().fit(TWO, sample_weight=[1]), "sample_weight"),
    "weight NaN": (lambda: standard().fit(TWO, sample_weight=[1, np.nan]), "sample_weight"),
    "summary crossed": (lambda: MinMaxSummary([2.0], [1.0]), "low"),
    "summary NaN": (lambda: MinMaxSummary([np.nan], [1.0]), "low"),
    "summary lopsided": (lambda: MinMaxSummary([0.0], [1.0, 2.0]), "high"),
    "summary empty": (lambda: MinMaxSummary([], []), "low"),
    "summary a matrix": (lambda: MinMaxSummary(TWO, TWO), "low"),
    "summary weight": (lambda: MomentSummary(-1.0, [0.0], [1.0]), "weight"),
    "summary mean": (lambda: MomentSummary(1.0, [np.inf], [1.0]), "mean"),
    "summary variance": (lambda: MomentSummary(1.0, [0.0], [-1.0]), "variance"),
    "sparse range": (lambda: min_max().summarise(CSR), "X"),
    "sparse range fit": (lambda: min_max().fit(CSR), "X"),
    "sparse range transform": (lambda: min_max().fit(TWO).transform(CSR), "X"),
    "sparse range inverse": (lambda: min_max().fit(TWO).inverse_transform(CSR), "X"),
    "sparse shift": (lambda: standard().fit(CSR), "with_mean"),
    "sparse shift transform": (lambda: standard().fit(TWO).transform(CSR), "with_mean"),
    "sparse shift inverse": (lambda: standard().fit(TWO).inverse_transform(CSR), "with_mean"),
    "inverse too wide": (lambda: standard().fit(TWO).inverse_transform([[1.0]]), "X"),
    "summarise NaN": (lambda: standard().summarise([[np.nan]]), "X"),
}


@pytest.mark.parametrize(("call", "argument"), BAD.values(), ids=BAD)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert caught.value.argument == argument


FAR = [[1e308], [-1e308]]
NEAR = [[0.0], [1e-300]]
OVERFLOWS = {
    "range": lambda: min_max().fit(FAR),
    "scaled by range": lambda: min_max().fit(NEAR).transform([[1e10]]),
    "unscaled by range": lambda: min_max().fit([[0.0], [1e300]]).inverse_transform([[1e10]]),
    "variance": lambda: standard().fit(FAR),
    "variance between clients": lambda: standard().fit(FAR, clients=[0, 1]),
    "scaled by deviation": lambda: standard().fit([[0.0], [1e-150]]).transform([[1e200]]),
    "sparse": lambda: (
        standard(with_mean=False)
        .fit([[0.0], [1e-150]])
        .transform(sparse.csr_array(np.array([[1e200]])))
    ),
    "unscaled by deviation": lambda: standard().fit([[0.0], [1e150]]).inverse_transform([[1e200]]),
}


@pytest.mark.parametrize("call", OVERFLOWS.values(), ids=OVERFLOWS)
def test_what_overflows_is_named_by_column(call):
    with pytest.raises(NumericalError, match=r"column 0: a .* overflows float64"):
        call()


def test_weights_whose_sum_overflows_are_refused():
    with pytest.raises(NumericalError, match="sum of the weights"):
        FederatedStandardScaler.combine([MomentSummary(1e308, [0.0], [1.0])] * 2)
