"""What a certificate must not say: no proof beyond its reach, no gap of 0 for a contradiction."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from fdrsvm import FDRSVC, ClientError, InvalidInputError, NumericalError
from fdrsvm.federated import ADMM, Bundle, CheckpointFolder, InProcess
from fdrsvm.federated.rounds import Failure
from tests.federated.cases import blobs, problems, train


def stopped_run(folder, clients, n_rounds, method=None):
    """A run of some rounds, with its checkpoints."""
    method = Bundle() if method is None else method
    transport = InProcess(problems(clients))
    checkpoints = CheckpointFolder(folder, transport)
    train(clients, method, transport=transport, checkpoint=checkpoints, max_rounds=n_rounds)
    return checkpoints.latest()


def test_a_client_that_goes_on_with_easier_data_contradicts_itself(tmp_path):
    """Three times the features, the same radius: its old cuts are above its new risk."""
    clients = blobs(4)
    snapshot = stopped_run(tmp_path, clients, 5)
    changed = [*clients[:2], clients[2].with_(X=3.0 * clients[2].X), clients[3]]
    with pytest.raises(ClientError, match="data that changed") as caught:
        train(changed, Bundle(), resume=snapshot, tol=1e-6)
    assert caught.value.client_id == "client-2"


def test_sums_that_contradict_each_other_are_no_gap_of_zero(tmp_path):
    """Nobody can tell whose answers they are, but the old bound is above the new optimum."""
    clients, summed = blobs(4), Bundle(cuts="summed")

    class Sums(InProcess):
        """One client that is the sum of all, as far as the loop knows."""

        gives_sums = True

    one = clients[0].with_(
        X=np.concatenate([client.X for client in clients]),
        y=np.concatenate([client.y for client in clients]),
    )
    checkpoints = CheckpointFolder(tmp_path)
    honest = Sums(problems([one]))
    train([one], summed, transport=honest, checkpoint=checkpoints, max_rounds=12, tol=0.0)
    changed = Sums(problems([one.with_(X=3.0 * one.X)]))
    with pytest.raises(NumericalError, match="data changed"):
        train([one], summed, transport=changed, resume=checkpoints.latest(), tol=1e-6)


def test_sums_in_the_open_name_who_contradicts_itself(tmp_path):
    clients, summed = blobs(4), Bundle(cuts="summed")
    snapshot = stopped_run(tmp_path, clients, 12, summed)
    changed = [*clients[:3], clients[3].with_(X=3.0 * clients[3].X)]
    with pytest.raises(ClientError, match="data that changed") as caught:
        train(changed, summed, resume=snapshot, tol=1e-6)
    assert caught.value.client_id == "client-3"


def test_a_cut_above_the_risk_of_the_same_answer_names_its_client():
    class Lifted(InProcess):
        def exchange(self, broadcasts, deadline):
            answers = super().exchange(broadcasts, deadline)
            answers[1].values["constants"][:] += 5.0
            return answers

    clients = blobs(3)
    with pytest.raises(ClientError, match="above a risk of the same answer") as caught:
        train(clients, Bundle(), transport=Lifted(problems(clients)), max_rounds=10)
    assert caught.value.client_id == "client-1"


def test_a_resumed_run_keeps_its_id(tmp_path):
    clients = blobs(3)
    snapshot = stopped_run(tmp_path, clients, 2)
    with pytest.raises(InvalidInputError, match="run_id"):
        train(clients, Bundle(), resume=snapshot, run_id="another")


@pytest.mark.parametrize("loss", ["logistic", "smooth_hinge"])
def test_small_features_do_not_make_a_useless_model_certified(loss):
    """Without a radius useful models are as large as features are small: bounds must reach them."""
    X, y = make_classification(200, 5, random_state=0)
    clients = np.arange(200) % 4
    plain = FDRSVC(epsilon=0.0, loss=loss, tol=1e-3).fit(X, y, clients=clients)
    small = FDRSVC(epsilon=0.0, loss=loss, tol=1e-3).fit(1e-6 * X, y, clients=clients)
    assert small.objective_ == pytest.approx(plain.objective_, rel=5e-3)
    assert small.bound_radius_ >= 10.0 * np.abs(small.coef_).sum()


def test_a_client_that_never_answers_leaves_the_newest_model_without_an_objective():
    class Gone(InProcess):
        def exchange(self, broadcasts, deadline):
            answers = list(super().exchange(broadcasts, deadline))
            answers[0] = Failure(broadcasts[0].client_id, "gone", is_missing=True)
            return answers

    clients = blobs(4)
    for method in (Bundle(), ADMM(rho=0.1)):
        transport = Gone(problems(clients))
        result = train(clients, method, transport=transport, quorum=3, max_rounds=10)
        assert result.objective == np.inf
        assert result.gap == np.inf
        np.testing.assert_array_equal(result.model, result.newest)
        assert result.model.any()


def test_a_fault_in_the_last_evaluation_is_in_the_last_record():
    class Late(InProcess):
        def exchange(self, broadcasts, deadline):
            answers = list(super().exchange(broadcasts, deadline))
            if '"evaluation"' in broadcasts[0].algorithm:
                answers[1] = Failure(broadcasts[1].client_id, "power cut")
            return answers

    clients = blobs(3)
    result = train(clients, ADMM(), transport=Late(problems(clients)), max_rounds=3, tol=0.0)
    assert "power cut" in result.history[-1].faults[-1]
    assert "client-1" in result.history[-1].faults[-1]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_label_in_a_list_is_not_a_client_called_nan(missing):
    X, y = [[0.0], [1.0], [0.2], [0.9]], [0, 1, 0, 1]
    with pytest.raises(InvalidInputError, match="clients"):
        FDRSVC().fit(X, y, clients=["a", missing, "a", "b"])
    with pytest.raises(InvalidInputError, match="y"):
        FDRSVC().fit(X, ["a", missing, "a", "b"])
