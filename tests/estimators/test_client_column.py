"""Clients named by a column of a data frame: the same model as with their labels apart."""

import numpy as np
import pytest

from fdrsvm import FDRSVC, FDRSVCCV, FedSVC, InvalidInputError

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
FAST = {
    FDRSVC: FDRSVC(tol=1e-2),
    FedSVC: FedSVC(random_state=0, max_rounds=20, tol=0.0),
    FDRSVCCV: FDRSVCCV({"epsilon": [0.01, 0.1]}, cv=2, random_state=0, tol=1e-2),
}


@pytest.fixture
def data(rng):
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=60) > 0.0, "leak", "ok")
    return X, y, np.repeat(["north", "south", "west"], 20)


@pytest.mark.parametrize("kind", list(FAST))
@pytest.mark.parametrize("frames", [pandas, polars])
@pytest.mark.filterwarnings("ignore::fdrsvm.errors.ConvergenceWarning")
def test_a_column_of_clients_is_no_feature(kind, frames, data, tmp_path):
    X, y, plants = data
    frame = frames.DataFrame({"u": X[:, 0], "plant": plants, "v": X[:, 1]})
    bare = frame[["u", "v"]]
    model = FAST[kind]
    apart = model.fit(bare, y, clients=plants).decision_function(bare)
    assert not hasattr(model, "client_column_")
    model.fit(frame, y, clients="plant")
    assert model.client_labels_.tolist() == ["north", "south", "west"]
    assert (model.client_column_, model.n_features_in_) == ("plant", 2)
    assert model.feature_names_in_.tolist() == ["u", "v"]
    for given in (frame, bare, X):
        if given is X:
            with pytest.warns(UserWarning, match="does not have valid feature names"):
                found = model.decision_function(given)
        else:
            found = model.decision_function(given)
        np.testing.assert_array_equal(found, apart)
    assert model.score(frame, y) == model.score(bare, y)
    model.save(tmp_path / "m.safetensors")
    loaded = kind.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.decision_function(frame), apart)
    weighted = model.fit(frame, y, clients="plant", sample_weight=np.ones(60))
    np.testing.assert_array_equal(weighted.decision_function(bare), apart)
    model.fit(X, y, clients=plants)
    assert not hasattr(model, "client_column_")


def test_what_is_no_column_of_a_frame_is_refused_in_words(data):
    X, y, plants = data
    frame = pandas.DataFrame({"u": X[:, 0], "plant": plants})
    cases = (
        (X, "can name a column only if X is a data frame; it is 'plant', and X is a ndarray"),
        (X.tolist(), "only if X is a data frame"),
        (frame[["u"]], "X has 0 columns called 'plant'; its columns are 'u'"),
        (frame[["u", "plant", "plant"]], "X has 2 columns called 'plant'"),
        (frame[["plant"]], "must have a feature; its only column is 'plant'"),
        (polars.DataFrame({"u": X[:, 0], "plant": plants}).lazy(), "it is lazy; collect it"),
    )
    for given, words in cases:
        with pytest.raises(InvalidInputError) as caught:
            FDRSVC().fit(given, y, clients="plant")
        assert words in str(caught.value)


@pytest.mark.parametrize("missing", [None, np.nan, pandas.NA])
def test_a_row_without_a_client_is_named(data, missing):
    X, y, plants = data
    frame = pandas.DataFrame({"u": X[:, 0], "plant": plants.astype(object)})
    frame.loc[[3, 7], "plant"] = missing
    with pytest.raises(
        InvalidInputError, match=r"clients: .*that of row 3 is missing \(2 in all\)"
    ):
        FDRSVC().fit(frame, y, clients="plant")
