"""Models of clients' own: what is solved, proved, chosen and kept, against linear programs."""

import warnings
from copy import deepcopy

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score

from fdrsvm import DRSVC, FDRSVC, FDRSVCCV, RiskOracle
from fdrsvm.core.vectors import dual_norm
from fdrsvm.data.training_data import Client
from fdrsvm.datasets import make_pump
from fdrsvm.decision.histograms import Aim
from fdrsvm.errors import DegenerateModelWarning, InvalidInputError, UnsupportedError
from fdrsvm.estimators.personal import RayOracle, personalise, rebalanced
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import load_model
from tests.estimators.structured_text import FunctionBlock
from tests.reference import reference_risk

HOWS = ("retune", "prox", "auto")
seeds = st.integers(0, 2**32 - 1)


def draw(seed, n_rows=30, n_features=3):
    """Rows with some wrong labels, and a direction that is right but for its size and zero."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n_rows, n_features)), rng.normal(size=n_features)
    y = np.where(X @ w + 0.5 * rng.normal(size=n_rows) > 0.2, 1.0, -1.0)
    y[:2] = [-1.0, 1.0]
    return X, y, rng.uniform(0.01, 5.0) * w, rng.normal()


def plant_of(X, y, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    return Client("here", X, (y > 0).astype(np.intp), 2, weights, float(weights.sum()))


def at_plant(X, y, w, b, how, *, epsilon=0.02, kappa=0.5, norm="linf", threshold=0.0, **ball):
    shared = LinearModel.checked([w], [b], ["bad", "good"], estimator="FDRSVC", threshold=threshold)
    return personalise(
        shared,
        plant_of(X, y),
        how=how,
        epsilon=epsilon,
        kappa=kappa,
        ball={"norm": norm, "fit_intercept": True, **ball},
        class_weights=np.ones(2),
    )


def model_of(personal):
    return personal.model.coef[0], float(personal.model.intercept[0])


# ---------------------------------------------------------------- retune


@given(seeds, st.sampled_from(["l1", "l2", "linf"]), st.sampled_from([0.3, np.inf]))
def test_on_a_ray_the_risk_is_that_of_one_feature(seed, norm, kappa):
    X, y, w, b = draw(seed, n_features=4)
    loss = ("hinge", "logistic", "smooth_hinge")[seed % 3]
    groups = None if norm == "l1" else (1, 3)
    ball = {"epsilon": 0.05, "kappa": kappa, "loss": loss}
    direction = w / dual_norm(w, norm, groups)
    ray = RayOracle(RiskOracle(X, y, norm=norm, groups=groups, **ball), direction)
    one = RiskOracle((X @ direction)[:, None], y, norm=norm, **ball)
    for t in (0.0, 0.4, 3.0):
        expected = one.value(np.array([t]), b)
        assert ray.value(np.array([t]), b) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(seeds, st.booleans())
def test_cuts_on_a_ray_lie_below_the_risk_and_touch_it(seed, is_boxed):
    X, y, w, b = draw(seed)
    X = np.clip(0.5 + 0.2 * X, 0.0, 1.0)
    whole = RiskOracle(X, y, epsilon=0.1, kappa=0.4, support="unit-box" if is_boxed else None)
    ray = RayOracle(whole, w / dual_norm(w, "linf"))
    risk, cut = ray.cut(np.array([1.5]), b)

    def at(t, c):
        return cut.constant + cut.slope @ [t, c] + cut.norm_weight * abs(t)

    assert at(1.5, b) == pytest.approx(risk.value, abs=1e-9)
    for t, c in np.random.default_rng(seed).normal(scale=3.0, size=(5, 2)):
        assert at(t, c) <= ray.value(np.array([t]), c) + 1e-9


def retune_by_lp(X, y, w, *, epsilon, kappa, norm):
    """min over s >= 0, b, lam >= s ||w||_* of lam epsilon + mean max(0, 1 - m, 1 + m - kappa lam).

    Variables: s, b, lam, then one excess per row.
    """
    n, scores = len(y), y * (X @ w)
    ones, zeros, each = np.ones(n), np.zeros(n), -np.eye(n)
    kept = np.column_stack([-scores, -y, zeros, each])
    flipped = np.column_stack([scores, y, -kappa * ones, each])
    price = np.concatenate([[dual_norm(w, norm), 0.0, -1.0], zeros])
    cost = np.concatenate([[0.0, 0.0, epsilon], ones / n])
    bounds = [(0, None), (None, None), (0, None), *[(0, None)] * n]
    limits = np.concatenate([-ones, -ones, [0.0]])
    found = linprog(cost, A_ub=np.vstack([kept, flipped, price]), b_ub=limits, bounds=bounds)
    return found.fun


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(3))
def test_retune_is_the_optimum_of_the_linear_program(seed, norm):
    X, y, w, b = draw(seed, n_rows=40)
    personal = at_plant(X, y, w, b, "retune", norm=norm)
    least = retune_by_lp(X, y, w, epsilon=0.02, kappa=0.5, norm=norm)
    assert personal.choice == "retune"
    assert personal.risk_after == pytest.approx(least, rel=2e-6)  # the gap is 1e-6
    u, _ = model_of(personal)
    np.testing.assert_allclose(u, personal.scale[0] * w, rtol=1e-9)
    assert personal.scale[0] > 0.0


def test_retune_on_a_box_is_below_every_point_of_a_grid():
    rng = np.random.default_rng(5)
    X, w = rng.random((8, 2)), np.array([1.0, -2.0])
    y = np.where(X @ w > np.median(X @ w), 1.0, -1.0)
    ball = {"epsilon": 0.03, "kappa": 0.5, "norm": "linf"}
    personal = at_plant(X, y, w, 0.3, "retune", support="unit-box", **ball)
    u, b = model_of(personal)
    here = reference_risk(u, X, y, box=(np.zeros(2), np.ones(2)), intercept=b, **ball)
    assert personal.risk_after == pytest.approx(here, abs=1e-7)
    oracle = RiskOracle(X, y, support="unit-box", **ball)
    around = [oracle.value(s * w, c) for s in np.linspace(0, 6, 25) for c in np.linspace(-3, 3, 25)]
    assert personal.risk_after <= min(around) + 2e-6


def test_other_losses_are_retuned_too():
    X, y, w, b = draw(1, n_rows=60)
    for loss in ("logistic", "smooth_hinge"):
        personal = at_plant(X, y, w, b, "retune", loss=loss)
        oracle = RiskOracle(X, y, epsilon=0.02, kappa=0.5, loss=loss)
        u, c = model_of(personal)
        for s, d in ((1.01, 0.0), (0.99, 0.0), (1.0, 0.01), (1.0, -0.01)):
            assert oracle.value(s * u, c + d) >= personal.risk_after * (1.0 - 2e-6)


# ---------------------------------------------------------------- prox


def prox_by_qp(X, y, w, b, rho, *, epsilon, kappa):
    """The least risk + rho/2 distance^2 for linf, by a conic solver: u, b, lam, |u|, excess."""
    n, P = X.shape
    size = 2 * P + 2 + n
    quadratic = np.zeros(size)
    quadratic[: P + 1] = rho
    cost = np.concatenate([-rho * w, [-rho * b, epsilon], np.zeros(P), np.ones(n) / n])
    signed, none = y[:, None] * X, np.zeros((n, P))
    eye = np.eye(P)
    rows = np.vstack(
        [
            np.column_stack([-signed, -y, np.zeros(n), none, -np.eye(n)]),
            np.column_stack([signed, y, -kappa * np.ones(n), none, -np.eye(n)]),
            np.column_stack([np.zeros((n, size - n)), -np.eye(n)]),
            np.column_stack([eye, np.zeros((P, 2)), -eye, np.zeros((P, n))]),
            np.column_stack([-eye, np.zeros((P, 2)), -eye, np.zeros((P, n))]),
            np.concatenate([np.zeros(P + 1), [-1.0], np.ones(P), np.zeros(n)]),
        ]
    )
    limits = np.concatenate([-np.ones(2 * n), np.zeros(len(rows) - 2 * n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    matrices = sparse.diags_array(quadratic).tocsc(), cost, sparse.csc_array(rows), limits
    found = clarabel.DefaultSolver(*matrices, [clarabel.NonnegativeConeT(len(rows))], settings)
    return found.solve().obj_val + 0.5 * rho * (w @ w + b * b)


@pytest.mark.parametrize("seed", range(3))
def test_prox_is_the_optimum_of_the_quadratic_program(seed):
    X, y, w, b = draw(seed, n_rows=40)
    personal = at_plant(X, y, w, b, "prox")
    (rho,), (u, c) = personal.rho, model_of(personal)
    assert rho * (w @ w + b * b) == pytest.approx(
        next(pull for pull in (1.0, 0.1, 0.01, 0.001) if rho * (w @ w + b * b) > 0.9 * pull)
    )
    value = personal.risk_after + 0.5 * rho * ((u - w) @ (u - w) + (c - b) ** 2)
    assert value <= personal.risk_before + 1e-9  # the shared model is one of those it is least of
    assert value == pytest.approx(prox_by_qp(X, y, w, b, rho, epsilon=0.02, kappa=0.5), abs=3e-6)


# ---------------------------------------------------------------- what is proved


@settings(max_examples=20)  # each is a cross-validation
@given(seeds, st.sampled_from(HOWS), st.sampled_from([0.0, 0.05, 1.0]), st.floats(0.0, 0.6))
def test_the_risk_never_rises_and_stays_above_the_bound(seed, how, epsilon, wrong):
    X, y, w, b = draw(seed, n_rows=25)
    flipped = np.random.default_rng(seed).random(25) < wrong
    y[flipped] *= -1.0
    y[:2] = [-1.0, 1.0]
    personal = at_plant(X, y, w, b, how, epsilon=epsilon)
    oracle = RiskOracle(X, y, epsilon=epsilon, kappa=0.5)
    assert personal.risk_before == pytest.approx(oracle.value(w, b), rel=1e-9)
    assert personal.risk_after == pytest.approx(oracle.value(*model_of(personal)), rel=1e-9)
    assert personal.risk_after <= personal.risk_before
    assert personal.lower_bound <= personal.risk_after * (1.0 + 1e-9) + 1e-9
    assert 0.0 <= personal.gap_after <= personal.gap_before <= 1.0


def test_the_bound_is_that_of_the_plants_own_optimum():
    X, y, w, b = draw(3)
    personal = at_plant(X, y, w, b, "retune")
    alone = DRSVC(epsilon=0.02, kappa=0.5, tol=1e-7).fit(X, y)
    assert personal.lower_bound <= alone.objective_ * (1.0 + 1e-9)
    assert personal.lower_bound == pytest.approx(alone.objective_, rel=3e-6)


# ---------------------------------------------------------------- plants that teach nothing


def test_rows_against_the_direction_keep_the_shared_model():
    X, y, w, b = draw(4, n_rows=200)
    personal = at_plant(X, -y, w, b, "retune")
    assert (personal.choice, personal.scale) == ("shared", None)
    assert "still uses the features" in personal.reason
    assert model_of(personal)[0].tolist() == w.tolist()
    assert personal.risk_after == personal.risk_before
    # With s >= 0 the best is s = 0: no better than the best constant score, which decides nothing.
    least = retune_by_lp(X, -y, w, epsilon=0.02, kappa=0.5, norm="linf")
    constant = RiskOracle(X, -y, epsilon=0.02, kappa=0.5)
    assert least == pytest.approx(
        min(constant.value(np.zeros(3), c) for c in np.linspace(-1, 1, 201)), abs=1e-6
    )


def test_a_model_of_no_weight_has_nothing_to_retune():
    X, y, _, _ = draw(5)
    personal = at_plant(X, y, np.zeros(3), 0.5, "retune")
    assert personal.choice == "shared"
    assert at_plant(X, y, np.zeros(3), 0.5, "auto").choice in ("prox", "own")


@pytest.mark.parametrize("how", HOWS)
def test_rows_of_one_class_keep_the_shared_model(how):
    X, y, w, b = draw(6)
    personal = at_plant(X, np.ones_like(y), w, b, how)
    assert personal.choice == "shared"
    assert personal.reason == "all its rows are 'good', which says nothing of other classes"
    assert personal.folds == {}


def test_few_rows_are_retuned_but_not_compared():
    X, y, w, b = draw(7, n_rows=6, n_features=10)
    y[:] = [1, -1, 1, -1, 1, 1]
    w[:] = X.T @ y
    assert at_plant(X, y, w, b, "retune").choice == "retune"
    personal = at_plant(X, y, w, b, "auto")
    assert personal.choice == "shared"
    assert personal.reason == (
        "its rows of 'bad' are too few to compare models: 2 different ones, and 5 folds need 5"
    )


def test_fewer_rows_than_features_are_no_obstacle():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(30, 80)), rng.normal(size=80)
    y = np.where(X @ w > 0.0, 1.0, -1.0)
    for how in HOWS:
        personal = at_plant(X, y, w, 5.0, how)
        assert personal.risk_after < personal.risk_before


def test_forty_percent_of_wrong_labels_do_not_spoil_a_good_model():
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(400, 3)), np.array([3.0, -2.0, 1.0])
    true = np.where(X @ w > 0.0, 1.0, -1.0)
    y = np.where(rng.random(400) < 0.4, -true, true)
    labels = np.where(true > 0, "good", "bad")
    for how in HOWS:
        personal = at_plant(X, y, w, 0.0, how)
        found = balanced_accuracy_score(labels, personal.model.predict(X))
        assert personal.risk_after <= personal.risk_before
        assert found >= 0.75 or how != "auto"
        assert len(set(personal.model.predict(X))) == 2


# ---------------------------------------------------------------- what folds choose


def test_auto_moves_a_zero_that_is_wrong_and_leaves_what_is_right():
    X, y, w, _ = draw(8, n_rows=200)
    own = DRSVC(epsilon=0.001, kappa=1.0).fit(X, y)
    w, b = own.coef_[0], float(own.intercept_[0])
    assert at_plant(X, y, w, b, "auto", epsilon=0.001).choice == "shared"
    moved = at_plant(X, y, w, b + 10.0, "auto", epsilon=0.001)
    assert moved.choice == "retune"
    assert list(moved.folds) == ["shared", "retune", "prox", "own"]
    assert moved.folds["retune"].score > moved.folds["shared"].score + moved.folds["retune"].error
    turned = at_plant(X, y, np.cross(w, [1.0, 0.0, 0.0]), b, "auto", epsilon=0.001)
    assert turned.choice in ("prox", "own")


def test_fold_scores_are_counts_of_held_out_rows():
    X, y, w, b = draw(9, n_rows=60)
    personal = at_plant(X, y, w, b, "retune")
    labels = np.where(y > 0, "good", "bad")
    for one in personal.folds.values():
        assert one.counts.sum() == 60
        assert one.counts.sum(axis=1).tolist() == [(labels == k).sum() for k in ("bad", "good")]
        shares = np.diag(one.counts) / one.counts.sum(axis=1)
        assert one.score == pytest.approx(shares.mean())
    shared = np.where(X @ w + b > 0.0, "good", "bad")
    assert personal.folds["shared"].score == balanced_accuracy_score(labels, shared)


def test_a_tuned_threshold_gives_way_to_the_plants_own():
    X, y, w, b = draw(10, n_rows=120)
    shared = at_plant(X, y, w, b, "retune", threshold=0.7)
    assert shared.model.threshold != 0.7
    # What it is tuned for is met at least as well on the folds as at 0.
    plain = at_plant(X, y, w, b, "retune")
    assert plain.model.threshold == 0.0
    assert shared.folds["retune"].score >= plain.folds["retune"].score
    counts = shared.folds["shared"].counts
    assert counts[1, 1] == np.sum((X @ w + b > 0.7) & (y > 0))
    assert Aim("balanced_accuracy").score(counts) == shared.folds["shared"].score


def test_a_goal_that_says_nothing_takes_the_simplest():
    X, y, w, b = draw(12, n_rows=40)
    aim = Aim(lambda counts: np.nan)
    shared = LinearModel.checked([w], [b], ["bad", "good"], estimator="FDRSVC")
    ball = {"norm": "linf", "fit_intercept": True}
    options = {"epsilon": 0.02, "kappa": 0.5, "ball": ball, "class_weights": np.ones(2)}
    assert personalise(shared, plant_of(X, y), how="auto", aim=aim, **options).choice == "shared"


def test_balanced_classes_are_those_of_the_plant():
    X, y, _, _ = draw(11, n_rows=40)
    codes, federation = (y > 0).astype(np.intp), np.array([0.3, 4.0])
    client = plant_of(X, y, weights=federation[codes])
    own, weights = rebalanced(client, federation)
    totals = np.bincount(codes)
    np.testing.assert_allclose(weights, 40 / (2 * totals))
    np.testing.assert_allclose(own.weights, weights[codes])


# ---------------------------------------------------------------- estimators


@pytest.fixture(scope="module")
def pump():
    data = make_pump("noisy-labels", random_state=0)
    labels = np.where(data.y > 0, "leak", "healthy")
    plants = np.array(["north", "south", "west", "east"])[data.clients]
    return data, labels, plants


def fitted(pump, **options):
    data, labels, plants = pump
    model = FDRSVC(**{"epsilon": 0.01, "norm": "l2", **options})
    return model.fit(data.X_normalised, labels, clients=plants)


def own_leak(data, model, client):
    g = ("north", "south", "west", "east").index(client)
    mine = np.isin(data.severity_test, (0.0, data.client_severities[g]))
    truth = np.where(data.y_test[mine] > 0, "leak", "healthy")
    return balanced_accuracy_score(truth, model.predict(data.X_test_normalised[mine]))


def test_the_plant_with_the_smallest_leak_is_served(pump):
    data = pump[0]
    model = fitted(pump, personal="auto")
    assert model.personal_["east"].choice == "retune"
    assert own_leak(data, model, "east") < 0.6
    assert own_leak(data, model.for_client("east"), "east") > 0.8
    for client in ("north", "south", "west"):
        assert own_leak(data, model.for_client(client), client) >= 0.998


def test_a_clients_model_is_a_classifier_like_any_other(pump, tmp_path):
    data, labels, plants = pump
    model = fitted(pump, personal="retune")
    own, personal = model.for_client("east"), model.personal_["east"]
    mine = plants == "east"
    X = data.X_normalised[mine]
    risk = RiskOracle(X, np.where(labels[mine] == "leak", 1, -1), epsilon=0.01, norm="l2")
    assert own.objective_ == personal.risk_after
    assert own.objective_ == pytest.approx(risk.value(own.coef_[0], own.intercept_[0]), rel=1e-9)
    assert own.worst_case_risk_per_client_ == {"east": own.objective_}
    assert own.lower_bound_ == personal.lower_bound
    assert own.gap_ == pytest.approx((own.objective_ - own.lower_bound_) / own.objective_)
    assert own.client_labels_.tolist() == ["east"]
    assert own.epsilon == 0.01
    assert 0.0 <= own.score(X, labels[mine]) <= 1.0
    own.save(tmp_path / "own.safetensors")
    again = FDRSVC.load(tmp_path / "own.safetensors")
    assert (again.predict(X) == own.predict(X)).all()
    assert again.lower_bound_ == own.lower_bound_
    record = load_model(tmp_path / "own.safetensors").record["personal"]
    assert (record["choice"], record["risk_before"]) == ("retune", personal.risk_before)
    assert set(record["folds"]) == {"shared", "retune"}
    scores = ReferenceEvaluator(own.to_onnx()).run(["score"], {"X": X})[0]
    np.testing.assert_allclose(np.ravel(scores), own.decision_function(X), rtol=1e-9)
    block = FunctionBlock(own.to_structured_text())
    assert block(X[0])["SCORE"] == pytest.approx(own.decision_function(X[:1])[0])


def test_only_clients_of_training_have_a_model(pump):
    model = fitted(pump, personal="retune")
    with pytest.raises(InvalidInputError, match=r"one of the clients.*'east', 'north'.*'plant 4'"):
        model.for_client("plant 4")
    with pytest.raises(NotFittedError, match="personal='retune'"):
        fitted(pump).for_client("east")
    with pytest.raises(NotFittedError):
        FDRSVC(personal="retune").for_client("east")
    assert not hasattr(fitted(pump), "personal_")
    model.set_params(personal=None).fit(pump[0].X_normalised, pump[1], clients=pump[2])
    assert not hasattr(model, "personal_")


def test_what_cannot_be_is_refused_before_training(pump):
    for options, said in (
        ({"personal": "best"}, "personal"),
        ({"personal": "retune", "fit_intercept": False}, "fit_intercept=True"),
        ({"personal": "prox", "support": "unit-box"}, "support=None"),
        ({"personal": "prox", "loss": "logistic"}, "loss='hinge'"),
    ):
        with pytest.raises((InvalidInputError, UnsupportedError), match=said):
            fitted(pump, **options)


def test_the_shared_model_and_its_bits_do_not_depend_on_it(pump):
    plain, personal = fitted(pump), fitted(pump, personal="auto")
    assert (plain.coef_ == personal.coef_).all()
    assert (plain.intercept_ == personal.intercept_).all()
    again = deepcopy(personal)
    assert again.for_client("east").intercept_ == personal.for_client("east").intercept_
    assert clone(personal).personal == "auto"


def test_secure_sums_know_no_risk_of_a_client_and_the_client_does(pump):
    model = fitted(pump, personal="retune", secure_aggregation=True)
    assert np.isnan(model.worst_case_risk_per_client_["east"])
    assert model.personal_["east"].risk_after < 0.8 * model.personal_["east"].risk_before
    assert model.for_client("east").objective_ == model.personal_["east"].risk_after


@pytest.mark.parametrize("features", ["additive", "fourier"])
def test_maps_are_personal_too(pump, features):
    options = {"epsilon": 0.002, "norm": "linf", "tol": 1e-2}
    model = fitted(pump, features=features, personal="retune", **options)
    own = model.for_client("east")
    assert own.feature_map_ is not None
    assert model.personal_["east"].choice == "retune"
    assert own_leak(pump[0], own, "east") > own_leak(pump[0], model, "east")
    data, labels, plants = pump
    mine = plants == "east"
    ball = own.feature_map_.ball(0.002, 1.0, "linf", None)
    X = own.feature_map_.apply(data.X_normalised[mine])
    oracle = RiskOracle(X, np.where(labels[mine] == "leak", 1, -1), **ball)
    value = oracle.value(own.coef_[0], own.intercept_[0])
    assert own.objective_ == pytest.approx(value, rel=1e-9)


def test_prox_with_groups_of_features_lowers_the_risk(pump):
    model = fitted(pump, features="additive", epsilon=0.002, tol=1e-2, personal="prox")
    for one in model.personal_.values():
        assert one.risk_after <= one.risk_before


def three_classes(n_rows=60):
    rng = np.random.default_rng(2)
    centres = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]])
    codes = np.tile([0, 1, 2], n_rows)
    X = centres[codes] + 0.4 * rng.normal(size=(len(codes), 2))
    plants = np.repeat(["a", "b"], len(codes) // 2)
    X[plants == "b"] += [0.8, 0.8]  # its sensors stand elsewhere
    return X, np.array(["fine", "leak", "worn"])[codes], plants


def test_of_several_classes_each_is_retuned():
    X, y, plants = three_classes()
    model = FDRSVC(epsilon=0.005, personal="retune").fit(X, y, clients=plants)
    personal = model.personal_["b"]
    assert personal.scale.shape == personal.risk_after.shape == personal.gap_after.shape == (3,)
    assert (personal.risk_after <= personal.risk_before).all()
    own, mine = model.for_client("b"), plants == "b"
    for k, label in enumerate(model.classes_):
        signs = np.where(y[mine] == label, 1, -1)
        least = retune_by_lp(X[mine], signs, model.coef_[k], epsilon=0.005, kappa=1.0, norm="linf")
        assert personal.risk_after[k] == pytest.approx(least, rel=2e-6)
    assert own.objective_.tolist() == personal.risk_after.tolist()
    assert own.score(X[mine], y[mine]) > model.score(X[mine], y[mine])


def test_a_class_that_a_plant_has_not_seen_keeps_its_score():
    X, y, plants = three_classes()
    seen = (plants == "a") | (y != "worn")
    model = FDRSVC(epsilon=0.005, personal="auto").fit(X[seen], y[seen], clients=plants[seen])
    own = model.for_client("b")
    assert (own.coef_[2] == model.coef_[2]).all()
    assert own.intercept_[2] == model.intercept_[2]


def test_a_tuned_model_has_personal_ones_with_their_own_cut(pump):
    data, labels, plants = pump
    search = FDRSVCCV(
        {"epsilon": [0.01]},
        norm="l2",
        label_noise=0.14,
        pos_label="healthy",
        cv=3,
        random_state=0,
        personal="retune",
    )
    search.fit(data.X_normalised, labels, clients=plants)
    assert search.threshold_ != 0.0
    own = search.for_client("east")
    assert own.threshold_ == search.personal_["east"].model.threshold != search.threshold_
    assert own.pos_label_ == "healthy"
    folds = search.personal_["east"].folds
    assert folds["retune"].score > folds["shared"].score
    search.refit = False
    search.fit(data.X_normalised, labels, clients=plants)
    with pytest.raises(NotFittedError):
        search.for_client("east")


def test_weights_are_rows_and_class_weights_count(pump):
    data, labels, plants = pump
    X = data.X_normalised
    twice = FDRSVC(epsilon=0.01, personal="retune").fit(
        np.vstack([X, X]), np.tile(labels, 2), clients=np.tile(plants, 2)
    )
    weighted = FDRSVC(epsilon=0.01, personal="retune").fit(
        X, labels, clients=plants, sample_weight=np.full(len(X), 2.0)
    )
    for name, one in twice.personal_.items():
        assert one.risk_after == weighted.personal_[name].risk_after
    balanced = FDRSVC(epsilon=0.01, class_weight="balanced", personal="retune")
    own = balanced.fit(X, labels, clients=plants).for_client("east")
    counts = [np.sum((plants == "east") & (labels == label)) for label in own.classes_]
    assert own.class_weight == pytest.approx(
        {label: 50 / count for label, count in zip(own.classes_, counts, strict=True)}
    )


def test_no_radius_and_a_radius_of_one(pump):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateModelWarning)
        for epsilon in (0.0, 1.0):
            model = fitted(pump, epsilon=epsilon, personal="retune", tol=1e-2)
            for personal in model.personal_.values():
                assert personal.risk_after <= personal.risk_before
