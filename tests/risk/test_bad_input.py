"""Each kind of bad input gives the package's own error, naming argument, rule and place."""

import numpy as np
import pytest
from scipy import sparse

from fdrsvm import (
    FDRSVMError,
    InvalidInputError,
    NumericalError,
    RiskOracle,
    worst_case_distribution,
    worst_case_risk,
)
from fdrsvm.core.losses import Hinge

X = np.array([[0.1, 0.9], [0.8, 0.3], [0.5, 0.5]])
Y = np.array([-1, 1, 1])
W = np.array([2.0, -1.0])


class Falling(Hinge):
    lipschitz = -1.0


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
    "weights all zero": ({"sample_weight": [0, 0, 0]}, "sample_weight", "positive", "all are zero"),
    "too few weights": ({"sample_weight": [1, 1]}, "sample_weight", "shape (3,)", "(2,)"),
    "intercept NaN": ({"intercept": np.nan}, "intercept", "finite", "nan"),
    "a number beyond float64": ({"epsilon": 10**400}, "epsilon", "number", "1000"),
    "numbers beyond float64": ({"X": [[10**400, 1], [1, 1], [1, 1]]}, "X", "numeric", "large"),
    "a sparse vector": ({"X": sparse.coo_array(X[0])}, "X", "two dimensions", "it has 1"),
    "a ragged support": ({"support": ([0.0, [1.0]], 1.0)}, "support (low)", "regular", ""),
    "a box too wide": ({"support": (-1e300, 1e300)}, "support", "range over more", "column 0"),
    "a loss that is a class": ({"loss": Hinge}, "loss", "lipschitz", "Hinge"),
    "a loss that falls": ({"loss": Falling()}, "loss.lipschitz", "above 0", "-1"),
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


@pytest.mark.parametrize("support", [None, (0.0, 1e149)])
def test_overflow_is_an_error_and_not_a_number(support):
    arguments = {"epsilon": 0.1, "kappa": 0.5, "support": support}
    with pytest.raises(NumericalError, match="rescale"):
        worst_case_risk(W * 1e200, X * 1e149, Y, **arguments)
    if support is not None:
        with pytest.raises(NumericalError, match="rescale"):
            worst_case_distribution(W * 1e200, X * 1e149, Y, **arguments)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("support", [None, "unit-box"])
def test_a_diverged_model_is_not_taken_for_a_perfect_one(norm, support):
    oracle = RiskOracle(X, Y, epsilon=0.1, norm=norm, support=support)
    with pytest.raises(InvalidInputError, match="finite"):
        oracle(np.array([2.0, np.nan]))
    assert oracle([2, -1]).value == oracle(W).value


def test_the_column_outside_the_box_is_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["flow", "pressure"])
    with pytest.raises(InvalidInputError, match=r"row 0, column 1 \('pressure'\) is 0.9"):
        worst_case_risk(W, frame, Y, epsilon=0.1, support=(0.0, 0.85))


def test_bounds_may_be_arrays():
    bounds = np.array([[0.0, 0.0], [1.0, 1.0]])
    arguments = {"epsilon": 0.1, "kappa": 0.5}
    boxed = worst_case_risk(W, X, Y, support=bounds, **arguments)
    assert boxed.value == worst_case_risk(W, X, Y, support="unit-box", **arguments).value


class AnyNumbers:
    """The hinge by somebody who does not think of dtypes."""

    name, lipschitz = "any numbers", 1.0

    def value(self, margins):
        return np.maximum(1.0 - margins, 0.0).astype(np.float32)

    def slope(self, margins):
        return np.where(margins < 1.0, -1, 0)


def test_a_loss_may_give_whole_numbers_and_short_floats(rng):
    X, y = rng.normal(size=(30, 3)), np.where(rng.random(30) < 0.5, -1.0, 1.0)
    w = np.array([0.5, -1.0, 0.25])
    own = worst_case_risk(w, X, y, epsilon=0.1, loss=AnyNumbers())
    # A float32 of at most 8 is off by 2^-22 at most; the slopes are exact.
    assert own.value == pytest.approx(worst_case_risk(w, X, y, epsilon=0.1).value, abs=2.0**-22)


def test_a_loss_must_give_one_number_per_margin(rng):
    X, y = rng.normal(size=(30, 3)), np.where(rng.random(30) < 0.5, -1.0, 1.0)

    class Short(AnyNumbers):
        def slope(self, margins):
            return np.zeros(margins.size - 1)

    with pytest.raises(InvalidInputError, match="loss: value and slope must give one number per"):
        worst_case_risk(np.ones(3), X, y, epsilon=0.1, loss=Short())
