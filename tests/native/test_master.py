"""The master's kernels: the same bits on every level, values by hand, and what they refuse."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fdrsvm.core.vectors import NORM_CODES
from fdrsvm.native import master
from fdrsvm.native._choice import runnable_levels
from tests.solvers.masters import DUAL_ORDER, hinge_model, model_value

NORMS = ("l1", "l2", "linf")
EUCLIDEAN = {"metric": None, "least": 1.0}
ORDER = {"l1": 1, "l2": 2, "linf": np.inf}
SOLVE = """
import hashlib
import numpy as np
from fdrsvm.solvers.cut_model import Metric
from fdrsvm.solvers.master import minimise_model, project_onto_level
from fdrsvm.solvers.ridge_bound import best_mixture
from tests.solvers.masters import hinge_model

digest = hashlib.sha256()
for seed in range(24):
    shape = np.random.default_rng(seed)
    model = hinge_model(
        seed, ("l1", "l2", "linf")[seed % 3], fit_intercept=bool(seed % 2),
        n_clients=int(shape.integers(1, 6)), n_cuts=int(shape.integers(1, 40)),
        n_features=int(shape.integers(1, 70)), epsilon=(0.0, 1e-3, 0.1)[seed // 2 % 3],
    )
    lowest = minimise_model(model)
    centre = lowest.w + 0.1 * shape.normal(size=model.width)
    level = lowest.value + 0.1 * (model.value(centre) - lowest.value)
    rows = shape.normal(size=(5, model.width))
    metric = Metric(np.eye(model.width) + rows.T @ rows, 0.5)
    projections = (project_onto_level(model, centre, level, metric=one) for one in (None, metric))
    for found in (lowest, *projections):
        numbers = [found.value, found.gap, found.bound.value, found.level_multiplier, found.n_iter]
        for part in (found.w, found.shares, found.bound.slope_by_client, np.array(numbers, float)):
            digest.update(part.tobytes())
    mixture = best_mixture(model.constants, model.slopes, model.n_normed, 0.1)
    digest.update(mixture.slope.tobytes())
print(digest.hexdigest())
"""


def arrays_of(model):
    return {
        "constants": model.constants,
        "slopes": model.slopes,
        "norm_weights": model.norm_weights,
        "owners": model.owners,
        "alphas": model.alphas,
        "floors": model.floors,
        "n_normed": model.n_normed,
        "norm": NORM_CODES[model.norm],
    }


def solved_at(level):
    environment = {**os.environ, "FDRSVM_LEVEL": level}
    run = subprocess.run(
        [sys.executable, "-c", SOLVE], capture_output=True, text=True, env=environment, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_every_instruction_set_gives_the_same_bits():
    levels = runnable_levels()
    if len(levels) == 1:
        pytest.skip("only one level was compiled or runs here")
    assert len({solved_at(level) for level in levels}) == 1


def bound_by_hand(model, shares, radius):
    """[model-bound], steps 1 to 5, client by client."""
    shares = np.where(np.isfinite(shares), np.clip(shares, 0.0, 1.0), 0.0)
    for g in range(model.n_clients):
        own = model.owners == g
        shares[own] /= max(1.0, shares[own].sum())
    weights = model.alphas[model.owners]
    if model.width > model.n_normed:
        pulls = weights * shares * model.slopes[:, -1]
        up, down = pulls[pulls > 0].sum(), -pulls[pulls < 0].sum()
        heavier = model.slopes[:, -1] > 0 if up > down else model.slopes[:, -1] < 0
        if up != down:
            shares[heavier] *= min(up, down) / max(up, down)
    slope = (weights * shares) @ model.slopes[:, : model.n_normed]
    left = np.array([1.0 - shares[model.owners == g].sum() for g in range(model.n_clients)])
    norm_weight = (weights * shares) @ model.norm_weights + model.alphas @ (left * model.floors)
    excess = np.linalg.norm(slope, ORDER[model.norm]) - norm_weight
    constant, floor = (weights * shares) @ model.constants, model.alphas @ model.floors
    if excess > 0 and floor > 0:
        constant *= floor / (excess + floor)
    elif excess > 0:
        constant -= radius * excess
    return max(constant, 0.0)


@given(
    seed=st.integers(0, 10_000),
    norm=st.sampled_from(NORMS),
    fit_intercept=st.booleans(),
    epsilon=st.sampled_from([0.0, 0.02, 0.5]),
    size=st.sampled_from([0.1, 0.5, 2.0]),
)
def test_the_bound_is_the_one_by_hand(seed, norm, fit_intercept, epsilon, size):
    model = hinge_model(seed, norm, fit_intercept=fit_intercept, epsilon=epsilon)
    rng = np.random.default_rng(seed)
    shares = size * rng.normal(size=model.owners.size)
    shares[rng.random(shares.size) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    bound = master.model_bound(master.Cuts(**arrays_of(model)), shares, 0.3)
    # Sums of up to 36 terms below 1, in whatever order: 36 roundings of 1e-16, times the radius.
    assert bound.value == pytest.approx(bound_by_hand(model, shares, 0.3), abs=1e-13)


@pytest.mark.parametrize("norm", NORMS)
def test_the_distance_bound_is_the_least_lagrangian(norm, rng):
    """Below the Lagrangian everywhere, and equal to it where its proximal step leads."""
    model = hinge_model(3, norm, n_clients=1, fit_intercept=True)
    shares = rng.dirichlet(np.ones(model.owners.size))
    centre, level, multiplier = rng.normal(size=model.width), 0.1, 0.7
    cuts = master.Cuts(**arrays_of(model))
    bound = master.distance_bound(cuts, centre, level, shares, multiplier, **EUCLIDEAN, near=centre)

    def lagrangian(u):
        size = np.linalg.norm(u[: model.n_normed], DUAL_ORDER[norm])
        combined = shares @ (model.constants + model.slopes @ u + model.norm_weights * size)
        return 0.5 * np.sum((u - centre) ** 2) + multiplier * (combined - level)

    # Strongly convex with modulus 1, so a subgradient step of 1/k comes within 2 G^2 / k of it.
    u, steps, steepest = centre.copy(), 20_000, 0.0
    best = lagrangian(u)
    for k in range(1, steps + 1):
        w = u[: model.n_normed]
        if norm == "linf":
            of_norm = np.sign(w)
        elif norm == "l2":
            of_norm = w / np.linalg.norm(w)
        else:
            of_norm = np.sign(w) * (np.arange(w.size) == np.abs(w).argmax())
        slope = u - centre + multiplier * (shares @ model.slopes)
        slope[: model.n_normed] += multiplier * (shares @ model.norm_weights) * of_norm
        steepest = max(steepest, slope @ slope)
        u = u - slope / k
        value = lagrangian(u)
        assert value >= bound - 1e-12
        best = min(best, value)
    assert best <= bound + 2.0 * steepest * (1.0 + np.log(steps)) / steps


@pytest.mark.parametrize("norm", NORMS)
def test_answers_that_are_not_numbers_change_nothing(norm):
    cuts = master.Cuts(**arrays_of(hinge_model(1, norm)))
    lowest = master.minimise(cuts, radius=np.inf, tol=1e-10, max_iter=100)
    before, problem = (lowest.value, lowest.bound.value), lowest.problem()
    for number in (np.nan, np.inf, -np.inf):
        lowest.offer(np.full(problem.centre.size, number), np.full(problem.constants.size, number))
        assert (lowest.value, lowest.bound.value) == before
        assert np.isfinite(lowest.w).all()
    aim = cuts, lowest.w + 1.0, 2.0 * lowest.value
    task = master.project(*aim, **EUCLIDEAN, tol=1e-10, max_iter=100)
    graded = task.grade(np.full(5, np.nan), np.full(problem.constants.size, np.nan), np.nan)
    assert not abs(graded.gap) < np.inf
    assert graded.bound.value <= lowest.value
    assert np.isfinite(graded.shares).all()


@given(
    numbers=st.lists(st.floats(), min_size=42, max_size=42),
    has_metric=st.booleans(),
    norm=st.sampled_from(NORMS),
    n_normed=st.sampled_from([2, 3]),
    owners=st.sampled_from([[0, 0, 0], [0, 1, 1], [1, 1, 1]]),
)
def test_any_numbers_give_a_finite_point_and_end(numbers, has_metric, norm, n_normed, owners):
    given = np.array(numbers)
    cuts = master.Cuts(
        constants=given[:3],
        slopes=given[3:12].reshape(3, 3),
        norm_weights=given[12:15],
        owners=np.array(owners),
        alphas=np.abs(given[15:17]),
        floors=np.abs(given[17:19]),
        n_normed=n_normed,
        norm=NORM_CODES[norm],
    )
    lowest = master.minimise(cuts, radius=float(given[19]), tol=1e-10, max_iter=100)
    assert np.isfinite(lowest.w).all()
    assert not lowest.bound.value < 0.0
    metric = {"metric": given[29:38].reshape(3, 3), "least": float(given[38])}
    distance = metric if has_metric else EUCLIDEAN
    aim = cuts, given[20:23], float(given[23])
    task = master.project(*aim, **distance, tol=1e-10, max_iter=100)
    assert np.isfinite(task.first.shares).all()
    bound = master.model_bound(cuts, given[24:27], 1.0)
    assert not bound.value < 0.0
    proved = master.distance_bound(
        cuts, given[20:23], 0.0, given[24:27], float(given[28]), **distance, near=given[39:42]
    )
    assert not np.isnan(proved)


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_a_norm_weight_that_no_client_has_proves_nothing_in_a_metric(weight):
    arrays = arrays_of(hinge_model(2, "linf"))
    arrays["norm_weights"] = np.full_like(arrays["norm_weights"], weight)
    shares, w = np.full(arrays["constants"].size, 0.1), np.ones(5)
    metric = {"metric": np.eye(5), "least": 1.0}
    bound = master.distance_bound(master.Cuts(**arrays), w, 0.0, shares, 1.0, **metric, near=w)
    assert bound == -np.inf


def test_no_cuts_and_no_clients_are_a_model_too():
    for n_clients in (0, 2):
        cuts = master.Cuts(
            constants=np.zeros(0),
            slopes=np.zeros((0, 2)),
            norm_weights=np.zeros(0),
            owners=np.zeros(0, dtype=np.int64),
            alphas=np.full(n_clients, 0.5),
            floors=np.ones(n_clients),
            n_normed=2,
            norm=2,
        )
        lowest = master.minimise(cuts, radius=np.inf, tol=1e-10, max_iter=100)
        assert lowest.is_trivial
        assert lowest.value == lowest.bound.value == 0.0
        with pytest.raises(ValueError, match="nothing to solve"):
            lowest.problem()


def test_arrays_that_may_not_be_written_to_are_read(rng):
    model, w = hinge_model(2, "l2"), rng.normal(size=5)
    arrays = arrays_of(model)
    for array in (w, *arrays.values()):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    assert_allclose(master.Cuts(**arrays).value(w), model_value(model, w), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "wrong", "error"),
    [
        ("constants", lambda x: x.astype(np.float32), TypeError),
        ("constants", lambda x: np.repeat(x, 2)[::2], TypeError),
        ("constants", lambda x: x[:, None], TypeError),
        ("constants", lambda x: list(x), TypeError),
        ("constants", lambda x: x[1:], ValueError),
        ("slopes", lambda x: np.asfortranarray(x), TypeError),
        ("slopes", lambda x: x[1:], ValueError),
        ("slopes", lambda x: x[:, :2].copy(), ValueError),
        ("norm_weights", lambda x: x[1:], ValueError),
        ("owners", lambda x: x.astype(np.int32), TypeError),
        ("owners", lambda x: x[::-1].copy(), ValueError),
        ("owners", lambda x: x - 1, ValueError),
        ("owners", lambda x: x + 1, ValueError),
        ("alphas", lambda x: x[1:], ValueError),
        ("floors", lambda x: x.astype(complex), TypeError),
        ("floors", lambda x: np.append(x, 1.0), ValueError),
        ("n_normed", lambda x: 0, ValueError),
        ("n_normed", lambda x: x + 1, ValueError),
        ("n_normed", lambda x: -1, TypeError),
        ("norm", lambda x: 4, ValueError),
    ],
)
def test_arrays_that_kernels_could_not_read_are_refused(name, wrong, error):
    arrays = arrays_of(hinge_model(2, "l2"))
    arrays[name] = wrong(arrays[name])
    with pytest.raises(error):
        master.Cuts(**arrays)


def test_points_shares_and_answers_of_another_size_are_refused():
    model = hinge_model(2, "l2")
    cuts, w, shares = master.Cuts(**arrays_of(model)), np.zeros(5), np.zeros(36)
    lowest = master.minimise(cuts, radius=np.inf, tol=1e-9, max_iter=100)
    effort = {"tol": 1e-9, "max_iter": 100}
    task = master.project(cuts, w + 9.0, 2.0 * lowest.value, **EUCLIDEAN, **effort)
    narrow = {"metric": np.eye(4), "least": 1.0}
    calls = [
        lambda: cuts.value(np.zeros(4)),
        lambda: cuts.cut_values(np.zeros(6)),
        lambda: cuts.client_values(np.zeros(0)),
        lambda: master.model_bound(cuts, shares[1:], 1.0),
        lambda: master.slope_by_client(cuts, shares[1:]),
        lambda: master.distance_bound(cuts, w[1:], 0.0, shares, 1.0, **EUCLIDEAN, near=w),
        lambda: master.distance_bound(cuts, w, 0.0, shares[1:], 1.0, **EUCLIDEAN, near=w),
        lambda: master.distance_bound(cuts, w, 0.0, shares, 1.0, **EUCLIDEAN, near=w[1:]),
        lambda: master.distance_bound(cuts, w, 0.0, shares, 1.0, **narrow, near=w),
        lambda: master.project(cuts, w[1:], 0.0, **EUCLIDEAN, **effort),
        lambda: master.project(cuts, w, 0.0, **narrow, **effort),
        lambda: lowest.offer(w[1:], np.zeros(39)),
        lambda: lowest.offer(w, np.zeros(38)),
        lambda: task.grade(w[1:], np.zeros(39), 1.0),
        lambda: task.grade(w, np.zeros(40), 1.0),
        lambda: task.grade_point(w[1:]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="entries"):
            call()
    with pytest.raises(TypeError, match="float64"):
        cuts.value(np.zeros(5, dtype=np.float32))
