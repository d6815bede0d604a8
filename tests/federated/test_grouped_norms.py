"""Federations whose norm has groups of features: optimum, bounds, profiles, rules, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fdrsvm import ClientError, InvalidInputError
from fdrsvm.core.vectors import dual_norm
from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import decode_profile, encode_profile
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from fdrsvm.federated.problem import evaluate
from fdrsvm.solvers.cut_model import CutModel, model_bound
from tests.federated.cases import METHODS, blobs, problems, random_clients, train
from tests.federated.reference import reference_optimum

TOL = 1e-6
GROUPED = ("l2", "linf")


def grouped_clients(seed, norm, **shape):
    """Random clients whose features are cut into groups."""
    clients, alphas = random_clients(seed, norm=norm, boxed=False, kind="plain", **shape)
    rng, n_features = np.random.default_rng(seed), clients[0].X.shape[1]
    groups = []
    while sum(groups) < n_features:
        groups.append(min(int(rng.integers(1, 4)), n_features - sum(groups)))
    return [client.with_(groups=tuple(groups)) for client in clients], alphas


@pytest.mark.parametrize("norm", GROUPED)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("cuts", ["per-client", "summed"])
def test_the_bundle_finds_the_optimum_of_the_whole_program(norm, fit_intercept, cuts):
    for seed in range(5):
        clients, alphas = grouped_clients(seed, norm, fit_intercept=fit_intercept)
        optimum = reference_optimum(clients, alphas)
        result = train(clients, Bundle(cuts=cuts), alphas=alphas, tol=TOL, max_rounds=100)
        assert result.gap <= TOL
        assert result.objective >= optimum.low
        assert result.lower_bound <= optimum.high
        assert result.objective <= optimum.high * (1.0 + 2.0 * TOL) + 1e-9


@pytest.mark.parametrize("norm", GROUPED)
def test_subgradients_and_baselines_never_claim_more_than_is_true(norm):
    clients, alphas = grouped_clients(3, norm)
    optimum = reference_optimum(clients, alphas)
    result = train(clients, Subgradient(step_size=0.5), alphas=alphas, tol=0.0, max_rounds=300)
    assert result.lower_bound <= optimum.high
    assert optimum.low <= result.objective <= 1.2 * optimum.high
    for name in ("fedsgd", "fedavg"):
        train(clients, METHODS[name], alphas=alphas, tol=0.0, max_rounds=3)


@settings(max_examples=30)
@given(seed=st.integers(0, 500), norm=st.sampled_from(GROUPED), noise=st.sampled_from([0.0, 1.0]))
def test_no_shares_of_real_cuts_prove_more_than_the_optimum(seed, norm, noise):
    clients, alphas = grouped_clients(seed, norm, fit_intercept=False)
    optimum, rng = reference_optimum(clients, alphas), np.random.default_rng(seed)
    points = rng.normal(size=(4, clients[0].X.shape[1]))
    points = np.vstack([points, optimum.w + 1e-6 * points])
    found = [evaluate(problem, points) for problem in problems(clients)]
    model = CutModel(
        np.concatenate([each["constants"] for each in found]),
        np.concatenate([each["slopes"] for each in found]),
        np.concatenate([each["norm_weights"] for each in found]),
        np.repeat(np.arange(len(clients)), len(points)),
        alphas,
        np.array([client.epsilon for client in clients]),
        points.shape[1],
        norm,
        clients[0].groups,
    )
    for _ in range(10):
        shares = rng.dirichlet(np.full(len(points), 0.3), size=len(clients)).ravel()
        shares += noise * rng.normal(size=shares.size)
        bound = model_bound(model, shares)
        assert bound.value <= optimum.high + 1e-9
        assert bound.radius == np.inf


@pytest.mark.parametrize("norm", GROUPED)
@pytest.mark.parametrize("kappa", [0.3, np.inf])
def test_what_solvers_prove_without_groups_lies_below_the_risk_with_them(norm, kappa, rng):
    """The masses of any solution give a cut in any norm; only the price of its point differs."""
    client = blobs(1, n_features=6, norm=norm, kappa=kappa, groups=(4, 2), fit_intercept=True)[0]
    problem = client.problem("one")
    for rho in (0.0, 0.5):
        centre = rng.normal(size=6)
        cut = problem.penalised(rho).solve_quietly(centre, 0.3, None, 1e-7).cut
        for scale in (0.0, 0.1, 1.0, 10.0):
            u = centre + scale * rng.normal(size=7)[:6]
            model = np.append(u, scale * rng.normal())
            below = cut.constant + cut.slope @ model
            below += cut.norm_weight * dual_norm(u, norm, client.groups)
            assert below <= problem.risk_of(model) + 1e-12 * (1.0 + np.abs(model).sum())


@pytest.mark.parametrize("norm", GROUPED)
@pytest.mark.parametrize("kappa", [0.5, np.inf])
@pytest.mark.parametrize("blur", [0, 2])
def test_no_rule_finds_fault_with_honest_answers(norm, kappa, blur):
    """[limits], [mass] and [pair] know a model's size by the same norm as the clients."""
    clients = blobs(3, n_features=6, norm=norm, kappa=kappa, groups=(3, 1, 2), fit_intercept=True)
    largest = max(np.abs(client.X).max() for client in clients)
    limits = Limits.checked(1.01 * largest, 6, blur=blur)
    for method in (Bundle(), Subgradient(step_size=0.5)):
        result = train(clients, method, limits=limits, tol=1e-4, max_rounds=15)
        assert result.lower_bound <= result.objective


def test_the_ceiling_of_a_risk_knows_of_groups():
    client, limits = blobs(1, groups=(4,), epsilon=0.5)[0], Limits.checked(4.0, 4)
    profiles = [client.with_(groups=groups).problem("one").profile for groups in ((4,), None)]
    low, high = (limits.risk_ceiling(profile, np.ones(4)) for profile in profiles)
    assert high - low == pytest.approx(0.5 * 3.0)  # epsilon times four weights, or the largest


@pytest.mark.parametrize("norm", GROUPED)
def test_a_client_that_prices_every_feature_is_found_out(norm):
    """Its risk is too large for the cut that it makes there, as the server prices it."""
    honest = blobs(2, norm=norm, kappa=np.inf, groups=(3, 1))
    given = problems(honest)
    liar = honest[1].with_(groups=None).problem(given[1].profile.client_id)
    given[1] = replace(liar, profile=given[1].profile)
    with pytest.raises(ClientError, match="does not touch the risk"):
        train(honest, Bundle(), transport=InProcess(given), limits=Limits.checked(10.0, 4))


def test_a_profile_carries_its_groups():
    client = blobs(1, norm="l2", groups=(3, 1))[0]
    profile = client.problem("north").profile
    assert profile.groups == (3, 1)
    assert decode_profile(encode_profile(profile)) == profile
    plain = client.with_(groups=None).problem("north").profile
    assert b"groups" not in encode_profile(plain)
    assert decode_profile(encode_profile(plain)) == plain


@pytest.mark.parametrize("groups", [[3], [3, 0, 1], [2.0, 2.0], "31", []])
def test_groups_that_cannot_be_are_not_read(groups):
    profile = blobs(1, norm="l2", groups=(3, 1))[0].problem("north").profile
    object.__setattr__(profile, "groups", groups)
    with pytest.raises(CorruptDataError, match="profile"):
        decode_profile(encode_profile(profile))


def test_all_clients_must_have_the_same_groups():
    first, second = blobs(2, norm="l2", groups=(3, 1))
    given = [first.problem("north"), second.with_(groups=(2, 2)).problem("south")]
    with pytest.raises(InvalidInputError, match="the same groups"):
        Federation.checked([problem.profile for problem in given], "equal")


def test_a_federation_with_groups_has_another_fingerprint():
    def fingerprint(groups):
        client = blobs(1, norm="l2", groups=groups)[0]
        return Federation.checked([client.problem("north").profile], "equal").fingerprint

    assert len({fingerprint(groups) for groups in (None, (3, 1), (2, 2))}) == 3


def test_admm_needs_solvers_that_know_of_groups():
    with pytest.raises(ClientError, match="groups of features"):
        train(blobs(2, groups=(3, 1)), ADMM(), max_rounds=3)


@pytest.mark.parametrize("norm", ["l1", *GROUPED])
def test_groups_of_one_feature_change_no_bit_of_a_run(norm):
    plain = blobs(2, norm=norm, fit_intercept=True)
    runs = [
        train([client.with_(groups=groups) for client in plain], Bundle(), max_rounds=6)
        for groups in (None, (1, 1, 1, 1))
    ]
    assert runs[0].model.tobytes() == runs[1].model.tobytes()
    assert_allclose(runs[0].lower_bound, runs[1].lower_bound, rtol=0.0)
