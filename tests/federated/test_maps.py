"""Runs of models that bend: what goes together, masked sums, faults, limits, blur and grids."""

import itertools
import warnings

import numpy as np
import pytest

from fdrsvm import DRSVC, FDRSVC, AdditiveMap, FourierMap, LeftOutWarning
from fdrsvm.data.training_data import Client
from fdrsvm.errors import ConvergenceWarning, UnsupportedError
from fdrsvm.federated import ADMM, Bundle, InProcess, Subgradient
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.train import make_problems, train
from fdrsvm.risk.feature_maps import make_features
from tests.federated.cases import NORMS, Tampered, with_values

MAPS = {
    "linear": "linear",
    "additive": AdditiveMap(n_knots=3),
    "pairs": AdditiveMap(n_knots=2, pairs="all"),
    "fourier": FourierMap(n_components=4),
}
BENT = [name for name in MAPS if name != "linear"]
ALGORITHMS = ("bundle", "admm", "admm-sc", "subgradient")
SUPPORTS = (None, "unit-box")
LOSSES = ("hinge", "logistic", "smooth_hinge")
NAMES = ("east", "north", "south", "west")


@pytest.fixture(scope="module")
def rings():
    rng = np.random.default_rng(0)
    X = rng.random((48, 2))
    y = np.where(np.hypot(*(X - 0.5).T) > 0.35, "fault", "ok")
    return X, y, np.repeat(NAMES, 12)


def quiet_fit(estimator, *data, **clients):
    """A few rounds are enough: no warning of these is of interest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(*data, **clients)


# --- what goes together ---


def why_not(algorithm, norm, support, loss, name, blur):
    """What a combination is refused for, if it is."""
    is_admm = algorithm.startswith("admm")
    if is_admm and (loss != "hinge" or support):
        return "use algorithm='bundle' or 'subgradient'$"
    if loss != "hinge" and support:
        return "loss='hinge' only; use support=None$"
    has_groups = name in ("additive", "pairs") and norm != "l1"  # which drop the support
    if is_admm and has_groups:
        return "steepest piece.*use algorithm='bundle' or 'subgradient', or norm='l1'$"
    if blur and (loss != "hinge" or (support and not has_groups)):
        return "use blur=0, or loss='hinge' and support=None$"
    return None


def try_combinations(rings, hidden):
    X, y, plants = rings
    for one in itertools.product(ALGORITHMS, NORMS, SUPPORTS, LOSSES, MAPS, hidden):
        algorithm, norm, support, loss, name, (is_secure, blur) = one
        model = FDRSVC(
            algorithm,
            norm=norm,
            support=support,
            loss=loss,
            features=MAPS[name],
            secure_aggregation=is_secure,
            blur=blur,
            epsilon=0.01,
            max_rounds=2,
        )
        refused = why_not(algorithm, norm, support, loss, name, blur)
        if refused:
            with pytest.raises(UnsupportedError, match=refused):
                quiet_fit(model, X, y, clients=plants)
            continue
        quiet_fit(model, X, y, clients=plants)
        assert 0.0 <= model.lower_bound_ <= model.objective_ < np.inf, one
        assert model.gap_ == pytest.approx(1.0 - model.lower_bound_ / model.objective_, abs=1e-12)


def test_each_combination_is_certified_or_refused_in_words(rings):
    try_combinations(rings, [(False, 0)])


@pytest.mark.slow
def test_so_is_each_with_masks_or_a_blur(rings):
    pytest.importorskip("cryptography")
    try_combinations(rings, [(True, 0), (False, 2), (True, 2)])


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("norm", NORMS)
def test_central_training_is_certified_or_refused_in_words(rings, norm, name):
    X, y, _ = rings
    for support, loss in itertools.product(SUPPORTS, LOSSES):
        given = {"norm": norm, "support": support, "loss": loss, "features": MAPS[name]}
        model = DRSVC(**given, epsilon=0.01, tol=1e-2)
        if support and loss != "hinge":
            with pytest.raises(UnsupportedError, match=r"only; use support=None$"):
                quiet_fit(model, X, y)
            continue
        quiet_fit(model, X, y)
        assert model.gap_ <= 1e-2
        assert model.lower_bound_ <= model.objective_


# --- problems of four plants ---


def problems_of(rings, name, *, norm="linf", **settings):
    X, y, plants = rings
    features = make_features(MAPS[name], 2, None)
    clients = [
        Client(plant, X[own], (y[own] == "ok").astype(np.intp), 2, np.ones(own.sum()), own.sum())
        for plant in NAMES
        for own in [plants == plant]
    ]
    ball = {"norm": norm, "fit_intercept": True, **settings}
    return make_problems(clients, [0.01] * 4, [1.0] * 4, features=features, **ball)


def limits_of(name, **settings):
    limits = Limits.checked("unit-box", 2, **settings)
    features = make_features(MAPS[name], 2, None)
    return limits if features is None else limits.mapped(features)


def quiet_train(*args, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", LeftOutWarning)
        return train(*args, **settings)


@pytest.mark.parametrize("name", BENT)
def test_masked_sums_are_those_of_an_open_run(rings, name):
    """Masks add integers of 2^-40 or finer; a few steps do not enlarge that much."""
    pytest.importorskip("cryptography")
    for method in (Subgradient(), Bundle(cuts="summed", metric="second-moments")):
        settings = {"max_rounds": 4, "tol": 0.0, "limits": limits_of(name)}
        given = problems_of(rings, name, moments=True)
        masked = quiet_train(given, method, secure_aggregation=True, **settings)
        plain = quiet_train(given, method, **settings)
        np.testing.assert_allclose(masked.model, plain.model, rtol=1e-6, atol=1e-9)
        assert masked.objective == pytest.approx(plain.objective, rel=1e-9)
        if isinstance(method, Bundle):  # of sums the subgradient method has no bound but 0
            assert masked.lower_bound == pytest.approx(plain.lower_bound, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", BENT)
@pytest.mark.parametrize("norm", NORMS)
def test_honest_answers_keep_to_the_limits_of_features(rings, norm, name):
    for method in (Bundle(), Bundle(cuts="summed"), Subgradient(), ADMM(rho=0.05)):
        if isinstance(method, ADMM) and norm != "l1" and name != "fourier":
            continue
        for settings in ({}, {"blur": 2}, {"resolution": 1e-3}):
            problems = problems_of(rings, name, norm=norm, **settings)
            limits = limits_of(name, **settings)
            result = quiet_train(problems, method, max_rounds=6, tol=0.0, limits=limits)
            assert result.lower_bound <= result.objective < np.inf


@pytest.mark.parametrize("name", BENT)
@pytest.mark.parametrize("method", [Bundle(), Subgradient()], ids=["bundle", "subgradient"])
def test_a_slope_that_no_sensors_within_the_limits_give_is_a_fault(rings, method, name):
    """Limits of 1 of each feature would let it pass: features are limited more tightly."""
    tight = limits_of(name).features
    j = int(np.argmin(tight))

    def steeper(update):
        slopes = update.values["slopes"].copy()
        slopes[:, j] = 1.01 * tight[j] * update.values["constants"]
        return with_values(update, slopes=slopes)

    transport = Tampered(InProcess(problems_of(rings, name)), "north", steeper, rounds=(2,))
    settings = {"max_rounds": 3, "tol": 0.0, "on_fault": "drop", "quorum": 2}
    result = quiet_train(transport, method, limits=limits_of(name), **settings)
    (fault,) = result.history[1].faults
    assert fault.startswith("north: a cut's slope exceeds what rows of its mass within the limits")
    assert not result.history[0].faults + result.history[2].faults


@pytest.mark.parametrize("name", BENT)
def test_a_plant_that_lies_always_is_left_out_and_the_others_are_certified(rings, name):
    def lie(update):
        return with_values(update, constants=update.values["constants"] + 5.0)

    problems = problems_of(rings, name)
    transport = Tampered(InProcess(problems), "north", lie, rounds=range(1, 1000))
    settings = {"tol": 1e-3, "max_rounds": 200, "limits": limits_of(name)}
    result = quiet_train(transport, Bundle(), on_fault="drop", leave_out_after=2, **settings)
    assert result.left_out == {"north": 2}
    honest = [one for one in problems if one.profile.client_id != "north"]
    alone = quiet_train(honest, Bundle(), **settings)
    assert result.gap <= 1e-3
    assert result.lower_bound <= alone.objective
    assert alone.lower_bound <= result.objective


@pytest.mark.parametrize("name", BENT)
def test_a_blur_and_a_grid_leave_the_certificate_true(rings, name):
    exact = quiet_train(problems_of(rings, name), Bundle(), tol=1e-6)
    for settings in ({"blur": 2}, {"resolution": 1e-3}, {"blur": 2, "resolution": 1e-3}):
        hidden = quiet_train(problems_of(rings, name, **settings), Bundle(), max_rounds=40)
        assert hidden.lower_bound <= exact.objective
        assert hidden.objective >= exact.lower_bound
        assert hidden.lower_bound > 0.5 * exact.lower_bound  # and still says something
