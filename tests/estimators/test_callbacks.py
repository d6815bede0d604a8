"""callbacks: every estimator that trains in rounds tells of them, and can be asked to stop."""

import numpy as np
import pytest
from sklearn.base import clone

from fdrsvm import DRSVC, FDRSVC, FDRSVCCV, FedSVC, InvalidInputError
from fdrsvm.data.rows import Rows
from fdrsvm.estimators.training import FitSettings, parameter_names, train
from fdrsvm.federated import RoundRecord
from tests.estimators.test_fdrsvccv import make_data

pytestmark = pytest.mark.filterwarnings(
    "ignore::fdrsvm.DegenerateModelWarning", "ignore::fdrsvm.ConvergenceWarning"
)
MODELS = {
    "bundle": FDRSVC(),
    "admm": FDRSVC("admm", max_rounds=8),
    "secure": FDRSVC(secure_aggregation=True, max_rounds=8),
    "baseline": FedSVC(max_rounds=8),
    "search": FDRSVCCV({"kappa": [0.5, 1.0]}, cv=2, max_rounds=8, random_state=0),
}


def heard(seen):
    def callback(record, model):
        seen.append((record, model.copy()))

    return callback


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_each_round_is_told_with_its_record_and_the_newest_model(name, n_classes, rng):
    X, y, clients = make_data(rng, n_classes=n_classes)
    seen, again = [], []
    model = clone(MODELS[name]).set_params(callbacks=[heard(seen), heard(again)])
    model.fit(X, y, clients=clients)
    records = tuple(record for record, _ in seen)
    assert [record.round for record in records] == list(range(1, model.n_iter_ + 1))
    assert all(isinstance(record, RoundRecord) for record in records)
    assert [one.objective for one in model.history_] == [one.objective for one in records]
    width = (1 if n_classes == 2 else n_classes) * (X.shape[1] + 1)
    assert {newest.shape for _, newest in seen} == {(width,)}
    assert len(again) == len(seen)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_they_change_nothing_and_may_end_a_run(name, n_classes, rng):
    X, y, clients = make_data(rng, n_classes=n_classes)
    plain = clone(MODELS[name]).fit(X, y, clients=clients)
    told = clone(MODELS[name]).set_params(callbacks=(heard([]),)).fit(X, y, clients=clients)
    np.testing.assert_array_equal(plain.coef_, told.coef_)
    short = clone(MODELS[name]).set_params(callbacks=(lambda record, _: record.round == 2,))
    short.fit(X, y, clients=clients)
    assert short.n_iter_ == 2
    assert short.stop_reason_ == "a callback asked for it"


def test_the_central_classifier_tells_of_the_steps_of_its_bundle(rng):
    X, y, _ = make_data(rng)
    seen = []
    model = DRSVC(support="unit-box", callbacks=(heard(seen),)).fit(X, y)
    assert len(seen) == model.n_iter_ > 1


def test_a_clone_keeps_them_and_a_file_does_not(rng, tmp_path):
    X, y, clients = make_data(rng)
    told = heard([])
    model = clone(FDRSVC(callbacks=(told,)))
    assert model.get_params()["callbacks"] == (told,)
    model.fit(X, y, clients=clients).save(tmp_path / "model.safetensors")
    loaded = FDRSVC.load(tmp_path / "model.safetensors")
    assert loaded.get_params()["callbacks"] == ()
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    plain = FDRSVC().fit(X, y, clients=clients)
    assert plain.to_json() == model.to_json()


@pytest.mark.parametrize("callbacks", [print, "print", [print, 3], None])
def test_what_is_no_list_of_functions_is_refused(callbacks, rng):
    X, y, clients = make_data(rng)
    with pytest.raises(InvalidInputError, match="callbacks: must be a list or tuple of functions"):
        FDRSVC(callbacks=callbacks).fit(X, y, clients=clients)


@pytest.mark.parametrize("estimator", ["FDRSVC", "FedSVC"])
def test_a_training_run_passes_its_watcher_on(estimator, rng):
    X, y, clients = make_data(rng)
    seen = []
    settings = FitSettings(estimator=estimator, params={"max_rounds": 5})
    training = train(settings, Rows(X, y, clients, ("a", "b", "c")), heard(seen))
    assert len(seen) == len(training.model.record["history"]["round"]) > 1
    assert "callbacks" not in training.model.params
    assert "callbacks" not in parameter_names(estimator)
