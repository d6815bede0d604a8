"""FDRSVC on masked sums: the same model, and no client's risk."""

import numpy as np
import pytest

from fdrsvm import FDRSVC, FDRSVCCV, InvalidInputError, UnsupportedError
from fdrsvm.federated.methods import Bundle


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.random((90, 3))
    y = np.where(X @ [1.0, -1.0, 0.5] + 0.2 * rng.normal(size=90) > 0.2, "worn", "healthy")
    return X, y, np.repeat(["east", "north", "west"], 30)


@pytest.mark.parametrize("algorithm", ["admm", "subgradient"])
def test_masks_change_the_model_by_rounding_only(algorithm, data, recwarn):
    X, y, plants = data
    settings = {"max_rounds": 15, "client_weights": {"east": 1, "north": 2, "west": 3}}
    open_ = FDRSVC(algorithm, **settings).fit(X, y, clients=plants)
    masked = FDRSVC(algorithm, secure_aggregation=True, **settings).fit(X, y, clients=plants)
    np.testing.assert_allclose(masked.coef_, open_.coef_, rtol=1e-9)
    np.testing.assert_allclose(masked.objective_, open_.objective_, rtol=1e-12)
    recwarn.clear()


def test_the_bundle_sees_sums_only(data, monkeypatch):
    X, y, plants = data
    seen = []
    advance = Bundle.advance
    monkeypatch.setattr(
        Bundle, "advance", lambda self, *args: seen.append(self.cuts) or advance(self, *args)
    )
    model = FDRSVC(secure_aggregation=True).fit(X, y, clients=plants)
    assert set(seen) == {"summed"}
    assert model.gap_ <= 1e-4
    assert set(model.worst_case_risk_per_client_) == {"east", "north", "west"}
    assert np.isnan(list(model.worst_case_risk_per_client_.values())).all()


def test_it_needs_three_clients_and_a_flag(data):
    X, y, plants = data
    with pytest.raises(InvalidInputError, match="at least 3"):
        FDRSVC(secure_aggregation=True).fit(X, y)
    with pytest.raises(InvalidInputError, match="secure_aggregation"):
        FDRSVC(secure_aggregation="yes").fit(X, y, clients=plants)


def test_a_search_tests_what_it_will_train(data, recwarn):
    """Folds run on sums too; runs that share rounds have the scores of runs of their own."""
    X, y, plants = data
    settings = {"cv": 2, "random_state": 0, "tol": 0.0, "secure_aggregation": True}
    search = FDRSVCCV({"max_rounds": [2, 5]}, **settings).fit(X, y, clients=plants)
    for k, max_rounds in enumerate((2, 5)):
        alone = FDRSVCCV({"max_rounds": [max_rounds]}, **settings).fit(X, y, clients=plants)
        np.testing.assert_array_equal(
            search.cv_results_["counts"][k], alone.cv_results_["counts"][0]
        )
    assert (search.cv_results_["error"] == "").all()
    assert search.best_estimator_.secure_aggregation is True
    two = FDRSVCCV({"kappa": [1.0]}, cv=2, secure_aggregation=True)
    with pytest.raises(UnsupportedError, match=r"none of 1 configurations.*at least 3"):
        two.fit(X[:60], y[:60], clients=plants[:60])
    recwarn.clear()


def test_it_is_part_of_the_model_file(data, tmp_path):
    X, y, plants = data
    model = FDRSVC(secure_aggregation=True).fit(X, y, clients=plants)
    model.save(tmp_path / "model")
    again = FDRSVC.load(tmp_path / "model")
    assert again.secure_aggregation is True
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert np.isnan(again.worst_case_risk_per_client_["north"])
