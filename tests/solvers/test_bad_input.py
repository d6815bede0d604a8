"""Each kind of bad input gives the package's own error, naming argument, rule and place."""

import numpy as np
import pytest
from scipy import sparse

from fdrsvm import InvalidInputError
from fdrsvm.solvers import prepare_client, solve_central, solve_client_prox

X = np.array([[0.1, 0.9], [0.8, 0.3], [0.5, 0.5]])
Y = np.array([-1, 1, 1])
GOOD = {"X": X, "y": Y, "centre": [0.0, 0.0], "rho": 1.0, "epsilon": 0.1}


def changed(array, at, value):
    array = np.array(array, dtype=float)
    array[at] = value
    return array


BAD_PROX = {
    "rho zero": ({"rho": 0.0}, "rho", "above 0", "0.0"),
    "negative rho": ({"rho": -1.0}, "rho", "above 0", "-1.0"),
    "infinite rho": ({"rho": np.inf}, "rho", "finite", "inf"),
    "rho NaN": ({"rho": np.nan}, "rho", "above 0", "nan"),
    "rho as text": ({"rho": "1"}, "rho", "number", "'1'"),
    "negative tau": ({"tau": -0.1}, "tau", "at least 0", "-0.1"),
    "tau NaN": ({"tau": np.nan}, "tau", "at least 0", "nan"),
    "centre too long": ({"centre": [0.0, 0.0, 0.0]}, "centre", "shape (2,)", "(3,)"),
    "centre a number": ({"centre": 0.0}, "centre", "shape (2,)", "(1,)"),
    "centre as coef_": ({"centre": [[0.0, 0.0]]}, "centre", "shape (2,)", "(1, 2)"),
    "NaN in centre": ({"centre": [0.0, np.nan]}, "centre", "finite", "entry 1"),
    "centre as text": ({"centre": ["a", "b"]}, "centre", "numeric", "dtype"),
    "centre_intercept inf": ({"centre_intercept": np.inf}, "centre_intercept", "finite", "inf"),
    "warm start a vector": ({"warm_start": X[0]}, "warm_start", "Solution", "array"),
}
BAD_EITHER = {
    "NaN in X": ({"X": changed(X, (1, 0), np.nan)}, "X", "finite", "row 1, column 0 is nan"),
    "inf in CSR": (
        {"X": sparse.csr_array(changed(X, (2, 1), np.inf))},
        "X",
        "finite",
        "row 2, column 1 is inf",
    ),
    "text in X": ({"X": X.astype(str)}, "X", "numeric", "dtype"),
    "X a vector": ({"X": X[0]}, "X", "two dimensions", "it has 1"),
    "no samples": ({"X": X[:0], "y": Y[:0]}, "X", "at least one sample", "(0, 2)"),
    "labels 0 and 1": ({"y": [0, 1, 1]}, "y", "-1 or +1", "row 0 is 0"),
    "too few labels": ({"y": [1, -1]}, "y", "shape (3,)", "(2,)"),
    "negative epsilon": ({"epsilon": -0.1}, "epsilon", "at least 0", "-0.1"),
    "epsilon None": ({"epsilon": None}, "epsilon", "number", "None"),
    "kappa zero": ({"kappa": 0}, "kappa", "above 0", "it is 0"),
    "kappa NaN": ({"kappa": np.nan}, "kappa", "above 0", "nan"),
    "unknown norm": ({"norm": "l3"}, "norm", "one of 'l1', 'l2', 'linf'", "'l3'"),
    "negative weight": ({"sample_weight": [1, -1, 1]}, "sample_weight", "negative", "row 1"),
    "weights all zero": ({"sample_weight": [0, 0, 0]}, "sample_weight", "positive", "all are zero"),
    "tol zero": ({"tol": 0.0}, "tol", "above 0", "0.0"),
    "tol NaN": ({"tol": np.nan}, "tol", "above 0", "nan"),
}


def assert_named(call, change, argument, rule, found):
    with pytest.raises(InvalidInputError) as caught:
        call(**change)
    assert caught.value.argument == argument
    assert rule in caught.value.rule
    assert found in str(caught.value)


@pytest.mark.parametrize("name", [*BAD_PROX, *BAD_EITHER])
def test_the_client_update_names_the_argument_at_fault(name):
    change, *expected = (BAD_PROX | BAD_EITHER)[name]
    assert_named(solve_client_prox, GOOD | change, *expected)


@pytest.mark.parametrize("name", BAD_EITHER)
def test_the_central_solver_names_the_argument_at_fault(name):
    change, *expected = BAD_EITHER[name]
    arguments = {"X": X, "y": Y, "epsilon": 0.1} | change
    assert_named(solve_central, arguments, *expected)


def test_a_warm_start_must_fit_the_problem():
    s = solve_central(X, Y, epsilon=0.1)
    with pytest.raises(InvalidInputError, match="2 samples and 2 features"):
        solve_central(X[:2], Y[:2], epsilon=0.1, warm_start=s.warm_start)
    client = prepare_client(X, Y, rho=1.0, epsilon=0.1, fit_intercept=True)
    with pytest.raises(InvalidInputError, match="with intercept"):
        client.solve([0.0, 0.0], warm_start=s.warm_start)
