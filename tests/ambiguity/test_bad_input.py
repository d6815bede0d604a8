"""Each kind of bad input gives the package's own error, naming argument, rule and place."""

import numpy as np
import pytest
from scipy import sparse

from fdrsvm import FDRSVMError, InvalidInputError, worst_case_distribution, worst_case_risk

X = np.array([[0.1, 0.9], [0.8, 0.3], [0.5, 0.5]])
Y = np.array([-1, 1, 1])
W = np.array([2.0, -1.0])


def changed(array, at, value):
    array = np.array(array, dtype=object if isinstance(value, str) else float)
    array[at] = value
    return array


BAD = {
    "NaN in X": ({"X": changed(X, (1, 0), np.nan)}, "X", "finite", "row 1, column 0 is nan"),
    "inf in X": ({"X": changed(X, (2, 1), -np.inf)}, "X", "finite", "row 2, column 1 is -inf"),
    "text in X": ({"X": changed(X, (0, 0), "warm")}, "X", "numeric", "dtype"),
    "numbers as text": ({"X": X.astype(str)}, "X", "numeric", "dtype"),
    "complex X": ({"X": X + 1j}, "X", "numeric", "complex"),
    "ragged X": ({"X": [[1.0], [1.0, 2.0]]}, "X", "regular", ""),
    "X a vector": ({"X": X[0]}, "X", "two dimensions", "it has 1"),
    "X a cube": ({"X": X[None]}, "X", "two dimensions", "it has 3"),
    "no samples": ({"X": X[:0], "y": Y[:0]}, "X", "at least one sample", "(0, 2)"),
    "no features": ({"X": X[:, :0], "w": []}, "X", "at least one", "(3, 0)"),
    "NaN in a sparse X": (
        {"X": sparse.csr_array(changed(X, (1, 1), np.nan))},
        "X",
        "finite",
        "row 1, column 1",
    ),
    "labels 0 and 1": ({"y": [0, 1, 1]}, "y", "-1 or +1", "row 0 is 0"),
    "a third label": ({"y": [-1, 1, 2]}, "y", "-1 or +1", "row 2 is 2"),
    "labels as text": ({"y": ["a", "b", "b"]}, "y", "numeric", "dtype"),
    "NaN label": ({"y": [1, np.nan, 1]}, "y", "finite", "entry 1"),
    "too few labels": ({"y": [1, -1]}, "y", "shape (3,)", "(2,)"),
    "labels in a column": ({"y": Y[:, None]}, "y", "shape (3,)", "(3, 1)"),
    "w too long": ({"w": [1.0, 2.0, 3.0]}, "w", "shape (2,)", "(3,)"),
    "w as coef_": ({"w": W[None]}, "w", "shape (2,)", "(1, 2)"),
    "NaN in w": ({"w": [1.0, np.nan]}, "w", "finite", "entry 1"),
    "negative epsilon": ({"epsilon": -0.1}, "epsilon", "at least 0", "-0.1"),
    "infinite epsilon": ({"epsilon": np.inf}, "epsilon", "finite", "inf"),
    "epsilon NaN": ({"epsilon": np.nan}, "epsilon", "at least 0", "nan"),
    "epsilon as text": ({"epsilon": "0.1"}, "epsilon", "number", "'0.1'"),
    "epsilon None": ({"epsilon": None}, "epsilon", "number", "None"),
    "kappa zero": ({"kappa": 0}, "kappa", "above 0", "it is 0"),
    "negative kappa": ({"kappa": -1}, "kappa", "above 0", "-1"),
    "kappa NaN": ({"kappa": np.nan}, "kappa", "above 0", "nan"),
    "unknown norm": ({"norm": "l3"}, "norm", "one of 'l1', 'l2', 'linf'", "'l3'"),
    "norm as number": ({"norm": 2}, "norm", "one of", "it is 2"),
    "unknown support": ({"support": "ball"}, "support", "'unit-box'", "'ball'"),
    "support not a pair": ({"support": (0.0,)}, "support", "pair (low, high)", "(0.0,)"),
    "infinite bound": ({"support": (0.0, np.inf)}, "support (high)", "finite", "inf"),
    "bounds too short": ({"support": ([0.0], [1.0])}, "support (low)", "shape (2,)", "(1,)"),
    "bounds crossed": (
        {"support": ([0.0, 1.0], [1.0, 0.0])},
        "support",
        "low must not exceed high",
        "column 1",
    ),
    "outside the box": (
        {"support": (0.0, 0.85)},
        "X",
        "inside the support",
        "row 0, column 1 is 0.9",
    ),
    "unknown mode": ({"worst_case": "best"}, "worst_case", "'exact', 'paper'", "'best'"),
    "unknown loss": ({"loss": "squared"}, "loss", "'hinge'", "'squared'"),
    "not a loss": ({"loss": 3}, "loss", "lipschitz", "it is 3"),
    "negative weight": ({"sample_weight": [1, -1, 1]}, "sample_weight", "negative", "row 1"),
    "weights all zero": ({"sample_weight": [0, 0, 0]}, "sample_weight", "positive", "all are 0"),
    "too few weights": ({"sample_weight": [1, 1]}, "sample_weight", "shape (3,)", "(2,)"),
    "intercept NaN": ({"intercept": np.nan}, "intercept", "finite", "nan"),
    "overflow": ({"X": X * 1e200, "w": W * 1e200}, "w", "range of float64", "overflows"),
}


@pytest.mark.parametrize(("changes", "argument", "rule", "found"), BAD.values(), ids=BAD)
def test_bad_input_is_named(changes, argument, rule, found):
    arguments = {"w": W, "X": X, "y": Y, "epsilon": 0.1, "kappa": 0.5} | changes
    with pytest.raises(InvalidInputError) as caught:
        worst_case_risk(**arguments)
    error = caught.value
    assert isinstance(error, FDRSVMError)
    assert isinstance(error, ValueError)
    assert error.argument == argument
    assert rule in error.rule
    assert found in error.found
    assert str(error) == f"{error.argument}: {error.rule}; {error.found}"


def test_a_data_frames_column_is_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(changed(X, (1, 1), np.nan), columns=["flow", "pressure"])
    with pytest.raises(InvalidInputError, match=r"row 1, column 1 \('pressure'\) is nan"):
        worst_case_risk(W, frame, Y, epsilon=0.1)


def test_the_distribution_has_the_same_door():
    with pytest.raises(InvalidInputError, match="inside the support"):
        worst_case_distribution(W, X + 1, Y, epsilon=0.1, support="unit-box")
    with pytest.raises(InvalidInputError, match="shape"):
        worst_case_distribution(W[:1], X, Y, epsilon=0.1, support="unit-box")
    with pytest.raises(InvalidInputError, match="overflows"):
        worst_case_distribution(
            W * 1e300, X * 1e300, Y, epsilon=0.1, support=(0.0, 1e300), norm="l1"
        )
