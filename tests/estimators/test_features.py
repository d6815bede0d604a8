"""Estimators with feature maps: what is trained, certified, kept in files and tuned."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from fdrsvm import DRSVC, FDRSVC, FDRSVCCV, AdditiveMap, FourierMap
from fdrsvm.core.codec import pack, unpack
from fdrsvm.errors import (
    CorruptDataError,
    DegenerateModelWarning,
    InvalidInputError,
    NumericalError,
    UnsupportedError,
)
from fdrsvm.estimators.search import choose
from fdrsvm.risk.feature_maps import make_features
from fdrsvm.risk.worst_case import RiskOracle

MAPS = ["additive", "additive-pairs", "fourier", AdditiveMap(n_knots=3), FourierMap(n_components=8)]


@pytest.fixture(scope="module")
def rings():
    """Faults all around the middle of two sensors: no straight line parts them."""
    rng = np.random.default_rng(0)
    X = rng.random((240, 2))
    y = np.where(np.hypot(*(X - 0.5).T) > 0.35, "fault", "ok")
    return X, y, np.repeat(["east", "north", "south", "west"], 60)


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_certified_risk_is_that_of_the_mapped_ball(rings, features, norm):
    X, y, clients = rings
    model = FDRSVC(features=features, epsilon=0.002, kappa=0.5, norm=norm, tol=1e-3)
    model.fit(X, y, clients=clients)
    placed = make_features(features, 2, None)
    stretch = placed.stretch(norm)
    total = 0.0
    for name in np.unique(clients):
        own = clients == name
        risk = RiskOracle(
            placed.apply(X[own]),
            np.where(y[own] == model.classes_[1], 1.0, -1.0),
            epsilon=stretch * 0.002,
            kappa=stretch * 0.5,
            norm=placed.norm(norm),
            groups=placed.groups,
        ).value(model.coef_[0], model.intercept_[0])
        assert model.worst_case_risk_per_client_[name] == pytest.approx(risk, rel=1e-9)
        total += risk / 4.0
    assert model.objective_ == pytest.approx(total, rel=1e-9)
    assert model.lower_bound_ <= model.objective_ <= model.lower_bound_ * (1.0 + 2e-3)


@pytest.mark.parametrize("features", MAPS)
def test_maps_bend_where_lines_cannot(rings, features):
    X, y, clients = rings
    bent = FDRSVC(features=features, epsilon=1e-4, tol=1e-3).fit(X, y, clients=clients)
    with pytest.warns(DegenerateModelWarning):
        straight = FDRSVC(epsilon=1e-4, tol=1e-3).fit(X, y, clients=clients)
    assert bent.score(X, y) > straight.score(X, y)
    assert bent.n_features_in_ == 2


@pytest.mark.parametrize("estimator", [FDRSVC, DRSVC])
@pytest.mark.parametrize("features", MAPS)
def test_files_keep_the_map(rings, features, estimator, tmp_path):
    X, y, _ = rings
    model = estimator(features=features, epsilon=0.001, tol=1e-2).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    back = estimator.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    assert back.get_params()["features"] == features
    assert back.n_features_in_ == 2
    assert clone(model).get_params()["features"] == features


@pytest.mark.parametrize(
    ("settings", "arrays"),
    [
        ({"n_knots": 4}, {}),
        ({"n_knots": "3"}, {}),
        ({"pairs": 7}, {}),
        ({"pairs": [[1, 0]]}, {}),
        ({"kind": "hats"}, {}),
        ({"more": 1}, {}),
        ({"n_knots": True}, {}),
        ({"n_knots": 10**30}, {}),
        ({"pairs": "all"}, {}),
        ({"pairs": [[0, 5]]}, {}),
        ({"kind": "fourier"}, {}),
        ({}, {"features.width": np.array([1.0, -1.0])}),
        ({}, {"features.width": np.array([1.0, 1e-320])}),
        ({}, {"features.width": np.ones((2, 2))}),
        ({}, {"features.span": np.array([1.0, 1e308])}),
        ({}, {"features.low": np.array([np.nan, 0.0])}),
        ({}, {"features.low": np.zeros(3)}),
        ({}, {"features.frequencies": np.zeros((1, 2))}),
    ],
)
def test_an_altered_map_is_refused(rings, tmp_path, settings, arrays):
    X, y, _ = rings
    model = DRSVC(features=AdditiveMap(n_knots=3), epsilon=0.001, tol=1e-2).fit(X, y)
    path = tmp_path / "model.safetensors"
    model.save(path)
    header, kept = unpack(path.read_bytes(), "model", 1, max_bytes=1 << 20)
    header["features"] = {**header["features"], **settings}
    path.write_bytes(pack("model", 1, header, {**kept, **arrays}))
    with pytest.raises(CorruptDataError, match=r"model\.safetensors"):
        DRSVC.load(path)


def test_the_direct_solver_and_the_bundle_agree(rings):
    X, y, _ = rings
    central = DRSVC(features="additive", epsilon=0.003, tol=1e-7).fit(X, y)
    bundle = FDRSVC(features="additive", epsilon=0.003, tol=1e-6).fit(X, y)
    assert bundle.objective_ == pytest.approx(central.objective_, rel=1e-5)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_a_support_never_makes_the_ball_larger(rings, norm):
    X, y, clients = rings
    given = {"features": "additive", "epsilon": 0.01, "norm": norm, "tol": 1e-3}
    model = FDRSVC(**given, support=(0.0, 1.0)).fit(X, y, clients=clients)
    free = FDRSVC(**given).fit(X, y, clients=clients)
    assert model.objective_ <= free.objective_ * (1.0 + 1e-3)
    outside = FDRSVC(**given, support=(0.0, 0.9))
    with pytest.raises(InvalidInputError, match="inside the support"):
        outside.fit(X, y, clients=clients)  # the support is that of the sensors


def test_several_classes_share_the_map():
    rng = np.random.default_rng(1)
    X = rng.random((150, 1))
    y = np.digitize(X[:, 0], [0.3, 0.7])  # the middle class is between the others
    bent = FDRSVC(features="additive", epsilon=1e-3, tol=1e-2).fit(X, y)
    assert bent.coef_.shape == (3, 6)
    assert bent.score(X, y) > 0.9


def test_secure_sums_train_the_same_model(rings):
    pytest.importorskip("cryptography")
    X, y, clients = rings
    given = {"features": "additive", "epsilon": 0.003, "tol": 1e-3}
    plain = FDRSVC(**given).fit(X, y, clients=clients)
    summed = FDRSVC(**given, secure_aggregation=True).fit(X, y, clients=clients)
    assert summed.objective_ == pytest.approx(plain.objective_, rel=2e-3)


def test_sparse_rows_have_no_map():
    from scipy import sparse

    with pytest.raises(UnsupportedError, match="dense"):
        FDRSVC(features="additive").fit(sparse.csr_array(np.eye(4)), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: AdditiveMap(n_knots=0), "n_knots: must be a whole number, at least 1; it is 0"),
        (lambda: AdditiveMap(n_knots=10**9), "at most 20000 features; 2 sensors make 2000000000"),
        (lambda: AdditiveMap(pairs=[(0, 2)]), "pairs: must be columns below 2"),
        (lambda: AdditiveMap(pairs=[(0, 0)]), "pairs: must be of two columns"),
        (lambda: AdditiveMap(pairs=[(0, 1), (1, 0)]), "pairs: must differ"),
        (lambda: AdditiveMap(pairs=[("a", "b")]), "pairs: must be a whole number"),
        (lambda: AdditiveMap(pairs="some"), "pairs: must be one of 'all'"),
        (lambda: AdditiveMap(limits=(1.0, 0.0)), "column 0 has low 1 and high 0"),
        (lambda: AdditiveMap(limits=(np.nan, 1.0)), r"limits \(low\): must be a finite number"),
        (lambda: AdditiveMap(limits=("a", 1.0)), "limits: must be numbers, or one per sensor"),
        (lambda: AdditiveMap(limits=([0.0, 0.0, 0.0], 1.0)), "one entry for each"),
        (lambda: AdditiveMap(limits=(0.0, 1e-320)), "apart by 1e-100 to 1e.100; scale the sensors"),
        (lambda: FourierMap(limits=(-1e308, 1e308)), "apart by 1e-100 to 1e.100"),
        (lambda: FourierMap(n_components=3), "n_components: must be even"),
        (lambda: FourierMap(n_components=10**8), "at most 20000 features"),
        (lambda: FourierMap(gamma="wide"), "gamma: must be one of 'scale'"),
        (lambda: FourierMap(random_state=None), "random_state: must be a whole number"),
        (lambda: "adaptive", "must be one of 'linear', 'additive', 'additive-pairs', 'fourier'"),
        (lambda: {"map": "additive", "knots": 3}, "parameters of AdditiveMap; unknown: {'knots'}"),
    ],
)
def test_impossible_maps_are_refused_before_they_are_built(rings, make, said):
    X, y, _ = rings
    with pytest.raises(InvalidInputError, match=said):
        FDRSVC(features=make(), epsilon=0.001).fit(X, y)


def test_pairs_of_too_many_sensors_are_counted_and_not_listed():
    with pytest.raises(InvalidInputError, match="100000 sensors make 20000400000"):
        make_features("additive-pairs", 100_000, None)


@pytest.mark.parametrize("features", MAPS[:3])
def test_rows_that_no_model_can_score_are_refused_in_words(rings, features):
    X, y, _ = rings
    model = FDRSVC(features=features, epsilon=0.001, tol=1e-2).fit(X, y)
    linear = model._linear_model()
    for rows, said in (
        ([[np.nan, 0.5]], "every value must be finite; row 0, column 0 is nan"),
        ([[0.5, np.inf]], "column 1 is inf"),
        ([[0.5]], "must have the 2 features of training; it has 1"),
        (np.zeros((1, linear.coef.shape[1])), "must have the 2 features of training"),
        (np.zeros((0, 2)), "at least one sample"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            linear.decision_function(rows)
    for beyond in ([[1e308, 1e308]], [[-1e308, 1e308]]):
        with pytest.raises(NumericalError, match="row 0 overflows"):
            linear.decision_function(beyond)
        with pytest.raises(NumericalError, match="row 0 overflows"):
            model.predict(beyond)
    far = linear.decision_function([[1e6, -1e6]])
    assert np.isfinite(far).all()
    assert linear.features.apply(np.zeros((0, 2))).shape == (0, linear.coef.shape[1])


@pytest.mark.parametrize("features", MAPS[:3])
def test_one_sensor_and_sensors_that_never_move_are_no_exception(rings, features):
    X, y, _ = rings
    stuck = np.column_stack([X, np.full(len(X), 0.3)])
    given = {"features": features, "epsilon": 0.001, "tol": 1e-2}
    for rows, support in (
        (X[:, :1], None),
        (stuck, None),
        (stuck, ([0.0, 0.0, 0.3], [1.0, 1.0, 0.3])),
    ):
        model = FDRSVC(**given, support=support).fit(rows, y)
        assert model.gap_ <= 1e-2
        assert model.score(rows, y) > 0.6


def test_data_frames_keep_their_names_with_maps(rings):
    pandas = pytest.importorskip("pandas")
    X, y, _ = rings
    frame = pandas.DataFrame(X, columns=["torque", "speed"])
    model = FDRSVC(features="additive", epsilon=0.001, tol=1e-2).fit(frame, y)
    assert model.score(frame, y) > 0.9
    linear = model._linear_model()
    assert linear.feature_names == ("torque", "speed")
    with pytest.raises(InvalidInputError, match="column 0 is 'speed', not 'torque'"):
        linear.predict(frame[["speed", "torque"]])


def test_the_search_chooses_the_map(rings):
    X, y, clients = rings
    search = FDRSVCCV({"features": ["linear", "additive"], "epsilon": [1e-4]}, random_state=0, cv=3)
    search.fit(X, y, clients=clients)
    assert search.best_params_["features"] == "additive"
    assert search.feature_map_.n_outputs == 12
    np.testing.assert_array_equal(
        search.decision_function(X), search.best_estimator_.decision_function(X)
    )


def grid_of(n_sensors, names):
    rng = np.random.default_rng(0)
    search = FDRSVCCV(names, cv=2, refit=False, random_state=0, max_rounds=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(rng.random((24, n_sensors)), [0, 1] * 12)
    return search.cv_results_["params"]


def test_named_alone_features_are_all_maps_without_pairs_of_many_sensors():
    few, many = grid_of(2, ["kappa", "features"]), grid_of(11, ["kappa", "features"])
    assert [one["features"] for one in few].count("linear") == 3  # each price of a wrong label
    assert [one["features"] for one in few][3:] == ["additive", "additive-pairs", "fourier"]
    assert [one["features"] for one in many][3:] == ["additive", "fourier"]
    assert {one["kappa"] for one in few[3:]} == {0.5}


def test_folds_are_trained_as_finely_as_they_are_counted(rings):
    X, y, clients = rings
    given = {"cv": 2, "random_state": 0, "features": "additive"}
    search = FDRSVCCV({"epsilon": [1e-3]}, **given).fit(X, y, clients=clients)
    assert 1e-4 < search.cv_results_["max_gap"][0] <= 1e-2
    assert search.gap_ <= 1e-4
    fine = FDRSVCCV({"epsilon": [1e-3], "tol": [1e-5]}, **given).fit(X, y, clients=clients)
    assert fine.cv_results_["max_gap"][0] <= 1e-5


def test_sensors_beyond_the_limits_are_named_with_a_remedy(rings):
    X, y, clients = rings
    raw = X * [1.0, 200.0]
    model = FDRSVC(features="additive", epsilon=1e-3, tol=1e-2)
    with pytest.warns(DegenerateModelWarning) as caught:
        model.fit(raw, y, clients=clients)
    said = [str(one.message) for one in caught if "beyond the limits" in str(one.message)]
    share = 100.0 * np.mean(raw[:, 1] > 1.0)
    assert len(said) == 1
    assert f"{share:.3g} % of the rows of column 1 " in said[0]
    assert "AdditiveMap(limits=(low, high))" in said[0]
    named = AdditiveMap(limits=(0.0, [1.0, 200.0]))
    with warnings.catch_warnings(record=True) as quiet:
        warnings.simplefilter("always")
        clone(model).set_params(features=named).fit(raw, y, clients=clients)
    assert not [one for one in quiet if "beyond the limits" in str(one.message)]


def results_of(scores, maps, flat=(False, False, False), spread=0.04):
    scores = np.array(scores)
    return {
        "rank_test_score": np.argsort(np.argsort(-scores)) + 1,
        "params": [{"features": name} for name in maps],
        "pooled_test_score": scores,
        "std_test_score": np.full(len(scores), spread),
        "is_flat": np.array(flat),
        "counts": np.zeros((len(scores), 4, 2, 2)),
    }


def test_waves_have_to_be_better_by_more_than_a_standard_error():
    """Four folds that spread by .04: the standard error is .02."""
    maps = ["linear", "additive", "fourier"]
    assert choose(results_of([0.70, 0.79, 0.80], maps)) == 1
    assert choose(results_of([0.70, 0.77, 0.80], maps)) == 2
    assert choose(results_of([0.80, 0.79, 0.70], maps)) == 0
    assert choose(results_of([0.70, 0.79, 0.80], maps, flat=(False, True, False))) == 2
    assert choose(results_of([0.8], ["fourier"], flat=(False,))) == 0
