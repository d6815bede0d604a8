"""One assembly for all callers: problems or a transport, one model or several, sums or not."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fdrsvm.data.training_data import Client, auto_radius, client_shares, radii
from fdrsvm.errors import ClientError, InvalidInputError
from fdrsvm.federated import Bundle, InProcess, run_rounds
from fdrsvm.federated.methods import OneVsRest
from fdrsvm.federated.secure.secure_sums import SecureSum
from fdrsvm.federated.train import make_problems, train
from fdrsvm.privacy.recording import Recorded, read_recording
from fdrsvm.risk.radius import practical_radius


def clients(rng, n_classes=2):
    made = []
    for name in ("north", "south", "west", "east"):
        X, codes = rng.random((20, 3)), np.arange(20) % n_classes
        made.append(Client(name, X, codes, n_classes, np.ones(20), 20.0))
    return made


def problems(rng, n_classes=2):
    return make_problems(clients(rng, n_classes), [0.05] * 4, [1.0] * 4, fit_intercept=True)


def test_problems_a_transport_and_the_loop_itself_give_the_same_bits(rng, tmp_path):
    given = problems(rng)
    plain = run_rounds(InProcess(given), Bundle())
    here = train(given, Bundle())
    recorded = train(Recorded(InProcess(given), tmp_path), Bundle())
    for result in (here, recorded):
        assert_array_equal(result.model, plain.model)
        assert result.gap == plain.gap
    assert len(read_recording(tmp_path).profiles) == 4


def test_several_models_are_trained_in_the_same_rounds(rng):
    given = problems(rng, 3)
    expected = run_rounds(InProcess(given), OneVsRest(Bundle(), 3, 1e-2), tol=1e-2)
    for result in (
        train(given, Bundle(), tol=1e-2),
        train(InProcess(given), Bundle(), n_models=3, tol=1e-2),
        train(given, OneVsRest(Bundle(), 3, 1e-2), tol=1e-2),
    ):
        assert_array_equal(result.model, expected.model)
        assert len(result.standing.parts) == 3


def test_masked_sums_are_those_of_the_transport_with_its_own_rules(rng):
    given = problems(rng)
    sums = SecureSum(InProcess(given), [1.0, 1.0, 1.0, 3.0])
    expected = run_rounds(sums, sums.method(Bundle()), tol=1e-2)
    weights = [1.0, 1.0, 1.0, 3.0]
    result = train(given, Bundle(), tol=1e-2, client_weights=weights, secure_aggregation=True)
    assert_array_equal(result.model, expected.model)


def test_an_error_at_a_client_ends_with_the_advice(rng, monkeypatch):
    def broken(*given, **settings):
        raise ClientError("north", 3, "it is broken")

    monkeypatch.setattr("fdrsvm.federated.train.run_rounds", broken)
    with pytest.raises(ClientError, match=r"it is broken; scale the features$"):
        train(problems(rng), Bundle(), advice="scale the features")
    with pytest.raises(ClientError, match=r"it is broken$"):
        train(problems(rng), Bundle())


def test_labels_weights_and_radii_have_one_home(rng):
    (two, *_), (three, *_) = clients(rng), clients(rng, 3)
    assert_array_equal(two.signs, [np.where(two.codes == 1, 1.0, -1.0)])
    assert_array_equal(three.signs, [np.where(three.codes == k, 1.0, -1.0) for k in range(3)])
    assert auto_radius(70) == practical_radius(70)
    assert radii("auto", "epsilon", ["a", "b"], [10, 20]) == [0.01, 0.005]
    assert radii({"a": "auto", "b": 0.3}, "epsilon", ["a", "b"], [10, 20]) == [0.01, 0.3]
    assert client_shares("samples", ["a", "b"], [10, 20]).tolist() == [10.0, 20.0]
    assert client_shares("equal", ["a", "b"], [10, 20]).tolist() == [1.0, 1.0]
    assert client_shares({"b": 2, "a": 1}, ["a", "b"], [10, 20]).tolist() == [1.0, 2.0]


def test_nobody_to_train_with_is_an_error_that_says_so():
    with pytest.raises(InvalidInputError, match="clients: at least one must take part"):
        train([], Bundle())
