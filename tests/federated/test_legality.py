"""[mass], [pair] and [legal]: what passes is what some legal data give, by linear programs.

The programs are written out from the definition, over rows of any place within the limits; they
share no formula with the kernels.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer

from fdrsvm.core.losses import LOSSES
from fdrsvm.core.vectors import NORM_CODES
from fdrsvm.federated import ADMM, Bundle, InProcess, make_client, run_rounds
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.methods import Subgradient
from fdrsvm.federated.screen import Screen
from fdrsvm.native import screening as kernels
from tests.federated.cases import NORMS, Recorded, blobs, problems, train

TOLERANCE = 1e-7  # of HiGHS, whose feasibility tolerance is 1e-7 on rows scaled to about 1


def size_of(w, norm):
    return np.linalg.norm(w, {"l1": np.inf, "l2": 2, "linf": 1}[norm])


def radii_of(floor, flips, limits, norm="linf"):
    return kernels.Radii(
        floors=np.array([floor]),
        flips=np.array([flips]),
        n_features=limits.features.size,
        norm=NORM_CODES[norm],
    )


def span_by_kernel(cut, model, limits, norm, *, floor=None, flips=0.0):
    """Least and largest risk of a client with that cut; its radius is the cut's if not given."""
    constant, slope, norm_weight = cut
    radii = radii_of(norm_weight if floor is None else floor, flips, limits, norm)
    cuts = kernels.Cuts(np.array([0]), np.array([constant]), slope[None], np.array([norm_weight]))
    return kernels.span(Screen(limits).bounds, radii, kernels.Points(model[None]), cuts)


def rule_broken_by_cut(constant, slope, limits):
    """None if none is; its answer has no risk, and a radius of 0.1."""
    values = {
        "risks": np.empty(0),
        "constants": np.array([constant]),
        "slopes": slope[None],
        "norm_weights": np.zeros(1),
    }
    found = kernels.judge_answers(
        Screen(limits).bounds,
        radii_of(0.1, 0.0, limits),
        kernels.Points(np.empty((0, slope.size))),
        kernels.Answers({0: values}),
        touching=False,
    )
    return found[0].rule if found else None


def needed_by_kernel(cut, model, limits, norm):
    return span_by_kernel(cut, model, limits, norm)[0]


def least_loss_by_program(constant, slope, w, b, limits):
    """Least hinge at (w, b) of any legal rows that the cut is a cut of, by a linear program.

    Unknown are, for either label, the sum q of z = y x over its rows and their loss; what is not
    in the cut has the score that suits it best.
    """
    P = w.size
    # Variables: q_plus, q_minus (P each), mass_plus, mass_minus, loss_plus, loss_minus.
    n = 2 * P + 4
    cost = np.zeros(n)
    cost[-2:] = 1.0
    equal, right = [], []
    for j in range(P):  # q_plus + q_minus = -v
        row = np.zeros(n)
        row[[j, P + j]] = 1.0
        equal.append(row)
        right.append(-slope[j])
    for signs, value in (((1.0, 1.0), constant), ((1.0, -1.0), -slope[P])):
        row = np.zeros(n)
        row[2 * P : 2 * P + 2] = signs
        equal.append(row)
        right.append(value)
    above, limit = [], []
    for label, start in ((0, 0), (1, P)):
        for j in range(P):
            for sign in (1.0, -1.0):  # |q_j| <= mass R_j
                row = np.zeros(n)
                row[start + j], row[2 * P + label] = sign, -limits[j]
                above.append(row)
                limit.append(0.0)
        row = np.zeros(n)  # loss >= mass (1 - y b) - w.q
        row[start : start + P] = -w
        row[2 * P + label] = 1.0 - b if label == 0 else 1.0 + b
        row[2 * P + 2 + label] = -1.0
        above.append(row)
        limit.append(0.0)
    free = [(None, None)] * (2 * P)
    found = linprog(
        cost, above, limit, equal, right, bounds=[*free, *[(0.0, None)] * 4], method="highs"
    )
    if not found.success:
        return np.inf
    best = max(0.0, 1.0 - limits @ np.abs(w) - abs(b))
    return found.fun + (1.0 - constant) * best


def random_legal_cut(rng, limits):
    """A cut of a random part of random legal rows."""
    n, P = int(rng.integers(1, 6)), limits.size
    mass = rng.dirichlet(np.ones(n))
    share = mass * rng.random(n) * rng.choice([0.0, 1.0, 1.0], n)
    y = rng.choice([-1.0, 1.0], n)
    X = limits * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], (n, P))
    signed = -share * y
    return share.sum(), np.append(signed @ X, signed.sum())


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32 - 1), norm=st.sampled_from(NORMS))
def test_the_least_risk_of_a_cut_is_that_of_the_linear_program(seed, norm):
    rng = np.random.default_rng(seed)
    P = int(rng.integers(1, 5))
    limits = 10.0 ** rng.uniform(-1, 1, P)
    constant, slope = random_legal_cut(rng, limits)
    model = np.append(rng.normal(size=P) * rng.choice([0.05, 1.0, 5.0]), rng.normal())
    sigma = float(rng.random())
    w, b = model[:-1], model[-1]
    expected = least_loss_by_program(constant, slope, w, b, limits)
    cut = (constant, slope, sigma)
    found = needed_by_kernel(cut, model, Limits.checked(limits, P), norm)
    scale = 1.0 + limits @ np.abs(w) + abs(b)
    assert found == pytest.approx(expected + sigma * size_of(w, norm), abs=TOLERANCE * scale)


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_cut_keeps_to_its_mass_if_and_only_if_some_rows_give_it(seed):
    """Just within [mass] the linear program finds rows, just beyond it none."""
    rng = np.random.default_rng(seed)
    P = int(rng.integers(1, 5))
    limits = 10.0 ** rng.uniform(-1, 1, P)
    constant = float(rng.uniform(0.05, 1.0))
    ends = np.append(limits, 1.0) * constant
    slope = ends * rng.uniform(-1.0, 1.0, P + 1)
    j = int(rng.integers(P + 1))
    model = rng.normal(size=P + 1)
    for factor, is_legal in ((0.999, True), (1.001, False)):
        slope[j] = factor * ends[j]
        broken = rule_broken_by_cut(constant, slope, Limits.checked(limits, P))
        expected = least_loss_by_program(constant, slope, model[:-1], model[-1], limits)
        assert (expected < np.inf) == is_legal
        assert broken == (None if is_legal else kernels.Rule.SLOPE)


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"hinge"}))
def test_tangents_are_no_steeper_than_their_constant_allows(loss):
    """s/a falls with the margin, so the least margin has the largest ratio: by brute force."""
    limits = Limits.checked(1.0, 2, loss=loss)
    for score in (0.0, 0.3, 1.0, 4.0, 9.0):
        margins = np.linspace(-score, score, 2001)
        slopes = -limits.loss.slope(margins)
        constants = limits.loss.value(margins) + margins * slopes
        ratios = np.divide(slopes, constants, out=np.zeros_like(slopes), where=slopes > 0.0)
        assert limits.steepness(score) == pytest.approx(ratios.max(), rel=1e-9)
        assert limits.least_loss(score) == limits.loss.value(margins).min()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("method", [Bundle(), Bundle(cuts="summed"), ADMM(0.05), Subgradient()])
def test_a_certificate_is_true_of_rows_that_can_be_written_down(method, fit_intercept):
    """[legal]: from risks and proof alone legal rows are made, and the package grades them."""
    clients = blobs(3, kappa=np.inf, fit_intercept=fit_intercept)
    largest = np.max([np.abs(c.X).max(axis=0) for c in clients], axis=0)
    limits = Limits.checked(largest, largest.size)
    result = train(clients, method, limits=limits, max_rounds=15, tol=0.0)
    standing, model = result.standing, result.model
    w, b = (model[:-1], model[-1]) if fit_intercept else (model, 0.0)
    bound = 0.0
    for g in range(3):
        proof = standing.proof
        constant, slope = proof.constants[g], proof.slopes[g]
        if not fit_intercept:
            slope = np.append(slope, 0.0)
        least = least_loss_by_program(constant, slope, w, b, largest)
        if not fit_intercept:  # either label will do: all rows of the cut at their mean
            least = max(0.0, constant + slope[:-1] @ w)
            least += (1.0 - constant) * max(0.0, 1.0 - largest @ np.abs(w))
        moved = proof.norm_weights[g] * size_of(w, "linf")
        assert least + moved <= standing.risks[g] + TOLERANCE
        assert proof.norm_weights[g] <= clients[g].epsilon * (1.0 + 1e-12)
        bound += proof.constants[g] / 3.0
    # At the model 0 the mixture is its constant, and nothing proves more than that.
    assert result.lower_bound <= bound + 1e-12


def honest_answers(clients, method, **settings):
    transport = Recorded(InProcess(problems(clients)))
    train(clients, method, transport=transport, tol=0.0, max_rounds=12, **settings)
    for broadcasts, answers in transport.rounds:
        for broadcast, answer in zip(broadcasts, answers, strict=True):
            yield broadcast, answer.values


@pytest.mark.parametrize("kappa", [0.3, 1.0, np.inf])
@pytest.mark.parametrize("norm", NORMS)
def test_honest_cuts_are_of_legal_rows_by_the_linear_program_too(norm, kappa):
    clients = blobs(3, norm=norm, kappa=kappa, fit_intercept=True)
    largest = np.max([np.abs(c.X).max(axis=0) for c in clients], axis=0)
    n_checked = 0
    for broadcast, values in honest_answers(clients, Bundle()):
        points = broadcast.values["points"]
        points = points if len(points) else values["own"][None]
        for model, risk in zip(points, values["risks"], strict=True):
            for A, v, sigma in zip(
                values["constants"], values["slopes"], values["norm_weights"], strict=True
            ):
                least = least_loss_by_program(A, v, model[:-1], model[-1], largest)
                assert least + sigma * size_of(model[:-1], norm) <= risk + TOLERANCE * (1 + risk)
                n_checked += 1
    assert n_checked > 100


def test_the_lift_of_a_single_row_reaches_the_rule():
    """One row at a corner: its cut has |v_j| = R_j A, and [pair] is an equality."""
    features = np.array([0.5, 2.0])
    client = make_client("c", features[None], [1.0], epsilon=0.1, kappa=np.inf, fit_intercept=True)
    model = np.array([-0.3, 0.1, 0.2])
    risk, cut = client.cut_at(model)
    limits = Limits.checked(features, 2)
    needed = needed_by_kernel((cut.constant, cut.slope, cut.norm_weight), model, limits, "linf")
    np.testing.assert_allclose(np.abs(cut.slope), np.append(features, 1.0) * cut.constant)
    assert needed == pytest.approx(risk, rel=1e-14)


def largest_loss_by_program(constant, slope, w, b, limits):
    """Largest hinge at (w, b) of legal rows that a cut is made of: they sit in corners.

    Unknown is how the mass of the cut is spread over all corners of the limits.
    """
    P = w.size
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=P))) * limits
    rows = np.vstack([np.column_stack([corners, np.full(len(corners), y)]) for y in (1.0, -1.0)])
    losses = np.maximum(0.0, 1.0 - rows @ np.append(w, b))
    equal = np.vstack([np.ones(len(rows)), rows.T])
    found = linprog(-losses, A_eq=equal, b_eq=[constant, *-slope], method="highs")
    assert found.success
    return -found.fun + (1.0 - constant) * (1.0 + limits @ np.abs(w) + abs(b))


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_rows_that_give_a_cut_have_a_larger_risk_than_the_rule_says(seed):
    rng = np.random.default_rng(seed)
    P = int(rng.integers(1, 4))
    limits = 10.0 ** rng.uniform(-1, 1, P)
    constant, slope = random_legal_cut(rng, limits)
    model = np.append(rng.normal(size=P) * rng.choice([0.05, 1.0, 5.0]), rng.normal())
    cut, w = (constant, slope, 0.2), model[:-1]
    _, highest = span_by_kernel(cut, model, Limits.checked(limits, P), "linf")
    largest = largest_loss_by_program(constant, slope, w, model[-1], limits)
    scale = 1.0 + limits @ np.abs(w) + abs(model[-1])
    assert largest + 0.2 * size_of(w, "linf") <= highest + TOLERANCE * scale


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**32 - 1), norm=st.sampled_from(NORMS))
def test_every_cut_and_every_risk_of_a_client_go_together(seed, norm):
    """[pair] with flipped labels: touching cuts at one model, risks at another, any kappa."""
    rng = np.random.default_rng(seed)
    n, P = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    limits = 10.0 ** rng.uniform(-1, 1, P)
    X = limits * rng.uniform(-1.0, 1.0, (n, P)) ** rng.choice([1, 3])
    y, mass = rng.choice([-1.0, 1.0], n), rng.random(n) + 0.01
    epsilon = float(10.0 ** rng.uniform(-3, 0.5))
    kappa = float(rng.choice([0.1, 0.5, 1.0, 4.0, np.inf]))
    client = make_client(
        "c", X, y, epsilon=epsilon, kappa=kappa, norm=norm, sample_weight=mass, fit_intercept=True
    )
    scale = rng.choice([0.1, 1.0, 10.0])
    models = scale * rng.normal(size=(2, P + 1)) / np.append(limits, 1.0)
    _, cut = client.cut_at(models[0])
    risk = client.risk_of(models[1])
    lowest, highest = span_by_kernel(
        (cut.constant, cut.slope, cut.norm_weight),
        models[1],
        Limits.checked(limits, P),
        norm,
        floor=client.profile.floor,
        flips=client.profile.flips,
    )
    slack = 1e-12 * (1.0 + abs(risk) + np.append(limits, 1.0) @ np.abs(models[1]))
    assert lowest - slack <= risk <= highest + slack


def test_with_trusted_labels_nobody_can_pretend_a_smaller_radius():
    """At kappa = inf all of the radius moves features: the rule is an equality for one row."""
    client = make_client("c", [[0.5]], [1.0], epsilon=0.1, kappa=np.inf)
    model = np.array([0.7])
    limits = Limits.checked(1.0, 1)
    risk, cut = client.cut_at(model)
    claimed = (cut.constant, cut.slope, 0.0)  # as if the radius were 0
    lowest, _ = span_by_kernel(claimed, model, limits, "linf", floor=0.1, flips=0.0)
    assert lowest == pytest.approx(risk, rel=1e-14)
    assert span_by_kernel(claimed, model, limits, "linf", floor=0.0)[0] < risk


def row_out_of_reach(models, n_features):
    """A row of the unit box, label +1, that no model has inside its margin: a linear program."""
    w, b = models[:, :n_features], models[:, n_features]
    found = linprog(np.zeros(n_features), -w, b - 1.0, bounds=[(-1.0, 1.0)] * n_features)
    assert found.success
    return np.clip(found.x, -1.0, 1.0)


@pytest.mark.parametrize("factor", [0.9, 0.0])
def test_losses_scaled_down_are_those_of_legal_rows(factor):
    """What the screen lets pass in the bundle's rounds: rows that reproduce all of it are found.

    The models that a bundle asks about leave room for a row that is right with all of them. With
    the rest of its mass there, a client has 0.9 or 0 of its losses, risks and cuts alike: no rule
    could tell. (SM and ADMM begin at the model 0, where every row's loss is 1.)
    """
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    y, clients = np.where(y == 1, 1.0, -1.0), np.arange(len(y)) % 7
    ball = {"kappa": np.inf, "fit_intercept": True, "epsilon": 1e-3}
    honest = [make_client(f"c{g}", X[clients == g], y[clients == g], **ball) for g in range(7)]
    transport = Recorded(InProcess(honest))
    run_rounds(transport, Bundle(), limits=Limits.checked("unit-box", 30), tol=1e-3)
    asked = [broadcasts[0].values["points"] for broadcasts, _ in transport.rounds]
    models = np.vstack([*asked, transport.rounds[0][1][3].values["own"]])
    own_X, own_y = X[clients == 3], y[clients == 3]
    n = len(own_y)
    other = make_client(
        "c3",
        np.vstack([own_X, row_out_of_reach(models, 30)]),
        np.append(own_y, 1.0),
        sample_weight=np.append(np.full(n, factor / n), 1.0 - factor),
        **ball,
    )
    for model in models:
        risk, cut = honest[3].cut_at(model)
        lied, lied_cut = other.cut_at(model)
        moved = 1e-3 * np.abs(model[:-1]).sum()
        scale = 1.0 + np.abs(model).sum()
        assert lied - moved == pytest.approx(factor * (risk - moved), abs=1e-6 * scale)
        np.testing.assert_allclose(lied_cut.slope, factor * cut.slope, atol=1e-12)
        assert lied_cut.constant == pytest.approx(factor * cut.constant, abs=1e-12)
