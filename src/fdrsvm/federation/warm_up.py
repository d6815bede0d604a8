"""Compile, or load from disk, all machine code that clients run, before a message needs it."""

from __future__ import annotations

import warnings

import numpy as np

from fdrsvm.federated.algorithms import ADMM, ADMMSC, Bundle, FedAvg, Subgradient
from fdrsvm.federated.problem import make_client
from fdrsvm.federated.rounds import run_rounds
from fdrsvm.federated.transports.in_process import InProcess
from fdrsvm.maths.norms import NORMS


def warm_up() -> None:
    """A few rounds of every method on a problem of six rows."""
    X = np.array([[0.0, 0.2], [0.1, 0.9], [0.4, 0.3], [0.6, 0.8], [0.9, 0.1], [1.0, 0.7]])
    y = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for norm in NORMS:
            client = make_client("warm-up", X, y, epsilon=0.05, norm=norm, fit_intercept=True)
            for method in (Bundle(), ADMM(), ADMMSC(), Subgradient(), FedAvg()):
                run_rounds(InProcess([client]), method, max_rounds=3, tol=0.0)
