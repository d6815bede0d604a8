"""A second process compiles what is needed late, while the first compiles what is needed at once.

Compiled code is kept on disk, where the first process finds it. If nothing is left to compile the
second process ends after its imports.
"""

from __future__ import annotations

import multiprocessing
import os

import numpy as np

from fdrsvm.ambiguity.worst_case import RiskOracle
from fdrsvm.maths.norms import Norm
from fdrsvm.solvers.cut_model import CutModel
from fdrsvm.solvers.master import minimise_model, project_onto_level


def compile_ahead(norm: Norm) -> None:
    """Start compiling the server's problems and the risk on a box; returns at once."""
    if (os.cpu_count() or 1) > 1:
        context = multiprocessing.get_context("spawn")
        context.Process(target=use_late_kernels, args=(norm,), daemon=True).start()


def use_late_kernels(norm: Norm) -> None:
    """Call each on the smallest problem there is."""
    model = CutModel(
        constants=np.array([1.0]),
        slopes=np.array([[-1.0, 0.0]]),
        norm_weights=np.array([0.1]),
        owners=np.zeros(1, dtype=np.int64),
        alphas=np.ones(1),
        floors=np.array([0.1]),
        n_normed=1,
        norm=norm,
    )
    best = minimise_model(model)
    project_onto_level(model, np.zeros(2), 0.5 * (model.value(np.zeros(2)) + best.value))
    X, y = np.array([[0.2, 0.4], [0.6, 0.9]]), np.array([-1.0, 1.0])
    RiskOracle(X, y, epsilon=0.1, norm=norm, support="unit-box")(np.ones(2))
