"""Means over clients: the plain one to the last bit, and the trimmed one."""

import numpy as np
import pytest
from scipy import stats

from fdrsvm import InvalidInputError
from fdrsvm.core.vectors import weighted_sum
from fdrsvm.federated.aggregation import check_trim, trimmed_mean
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.messages import Update
from fdrsvm.federated.methods import ADMM, FedAvg, FedDRO, FedProx, FedSGD, Subgradient
from tests.federated.cases import blobs, problems, train, with_values
from tests.federated.test_agreement import assert_certified


@pytest.mark.parametrize("share", [0.1, 0.2, 0.25, 0.4, 0.49])
@pytest.mark.parametrize("n_clients", [1, 2, 3, 7, 10, 100])
def test_equal_weights_give_scipys_trimmed_mean(n_clients, share):
    values = np.random.default_rng(n_clients).normal(size=(n_clients, 5))
    found = trimmed_mean(values, np.full(n_clients, 1.0 / n_clients), share)
    np.testing.assert_allclose(found, stats.trim_mean(values, share + 1e-9, axis=0), rtol=1e-13)


def test_weights_count_among_those_that_are_left():
    values = np.array([[0.0, 9.0], [1.0, 5.0], [2.0, 1.0], [50.0, -50.0], [7.0, 7.0]])
    weights = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    expected = [(0.2 * 1.0 + 0.3 * 2.0) / 0.5, (0.2 * 5.0 + 0.3 * 1.0) / 0.5]
    np.testing.assert_allclose(trimmed_mean(values, weights, 0.25), expected, rtol=1e-14)


def test_nothing_trimmed_is_the_plain_mean_to_the_last_bit():
    rng = np.random.default_rng(1)
    for _ in range(50):
        values, weights = rng.normal(size=(6, 9)), rng.random(6)
        weights /= weights.sum()
        mean = weighted_sum(weights, values)
        assert trimmed_mean(values, weights, 0.0).tobytes() == mean.tobytes()
        # Six products and five sums each.
        np.testing.assert_allclose(mean, np.einsum("g,gj", weights, values), rtol=0.0, atol=1e-14)


def test_large_numbers_do_not_overflow():
    assert trimmed_mean(np.full((3, 1), 1e308), np.full(3, 1 / 3), 0.1)[0] == pytest.approx(1e308)


@pytest.mark.parametrize("share", [-0.1, 0.5, 1.0, np.nan, "0.1", None])
@pytest.mark.parametrize("method", [Subgradient, ADMM, FedSGD, FedAvg, FedProx, FedDRO])
def test_the_share_is_checked(method, share):
    with pytest.raises(InvalidInputError, match="trim"):
        method(trim=share)
    with pytest.raises(InvalidInputError, match="trim"):
        check_trim(share)
    assert check_trim(0.3) == 0.3


METHODS = {
    "subgradient": (Subgradient, "slopes"),
    "admm": (ADMM, "vector"),
    "fedsgd": (FedSGD, "slopes"),
    "fedavg": (FedAvg, "vector"),
    "fedprox": (FedProx, "vector"),
    "feddro": (FedDRO, "vector"),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_share_too_small_to_leave_anybody_out_changes_little_and_one_that_does_changes_more(name):
    method, _ = METHODS[name]
    clients = blobs(4)
    plain, small, large = (
        train(clients, method(trim=trim), max_rounds=4, tol=0.0) for trim in (0.0, 0.2, 0.3)
    )
    np.testing.assert_allclose(small.newest, plain.newest, rtol=1e-6, atol=1e-9)
    assert not np.allclose(large.newest, plain.newest, rtol=1e-3)


class Shouting:
    """One client's vector is far away."""

    def __init__(self, clients, name, size):
        self.inner, self.name, self.size = InProcess(problems(clients)), name, size

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        answers = list(self.inner.exchange(broadcasts, deadline))
        if isinstance(answers[1], Update):
            answers[1] = with_values(
                answers[1], **{self.name: answers[1].values[self.name] + self.size}
            )
        return answers


def test_one_vector_far_away_does_not_lead_a_trimmed_mean():
    clients = blobs(5)
    honest = train(clients, FedAvg(trim=0.2), max_rounds=10, tol=0.0)
    moved = [
        train(
            clients,
            FedAvg(trim=trim),
            transport=Shouting(clients, "vector", 1e6),
            max_rounds=10,
            tol=0.0,
        ).newest
        for trim in (0.0, 0.2)
    ]
    assert np.abs(moved[0]).max() > 1e4
    assert np.abs(moved[1] - honest.newest).max() < 1.0


@pytest.mark.parametrize("method", [Subgradient(trim=0.3), ADMM(rho=0.05, trim=0.3)], ids=repr)
def test_the_certificate_of_a_trimmed_run_is_true(method):
    clients = blobs(4)
    alphas = np.full(4, 0.25)
    assert_certified(clients, alphas, train(clients, method, max_rounds=20, tol=0.0))
