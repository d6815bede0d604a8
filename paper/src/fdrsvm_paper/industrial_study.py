"""Table 2: nine methods on the pump, in five settings and with two sets of leak sizes.

And for each plant, on the same data: does joining pay? A robust model of its own rows alone, the
federated one, in which plants count alike, and the central one, in which rows do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from fdrsvm.datasets import PumpData, PumpPool, make_pump_pool, split_pump_pool
from fdrsvm.datasets.pump import SETTINGS, SEVERITIES
from fdrsvm_paper import trajectories
from fdrsvm_paper.clients import stack
from fdrsvm_paper.methods import industrial_methods
from fdrsvm_paper.protocols import Protocol, protocol
from fdrsvm_paper.samples import sample_pump
from fdrsvm_paper.scores import score
from fdrsvm_paper.study import Rows, Task
from fdrsvm_paper.tuning import RESULT_COLUMNS, evaluate_methods

_STREAM = 2  # tells this experiment's random numbers from those of the others
BETA, KAPPA = 10.0, 0.5  # radius 1/(10 N_g) and price of a label, as in the sensitivity study


@lru_cache(maxsize=4)
def _pool(seed: tuple[int, ...], severities: str) -> PumpPool:
    sequence = np.random.SeedSequence(seed)
    return make_pump_pool(random_state=np.random.default_rng(sequence), severities=severities)


def draw_pump(
    chosen: Protocol, seed: int, severities: str, setting: str, repetition: int
) -> PumpData:
    """The pump's rows in one repetition: one pool split again, or a pool for each."""
    pool_seed = (seed, _STREAM, 0 if chosen.one_pool else repetition)
    split = np.random.default_rng(np.random.SeedSequence((seed, _STREAM, repetition, 1)))
    return split_pump_pool(_pool(pool_seed, severities), setting, random_state=split)


@dataclass(frozen=True)
class IndustrialStudy:
    """A task is a set of leak sizes, a setting and a repetition.

    Parameters
    ----------
    protocol : {"paper-code", "text"}
    repetitions : int
    severities : tuple of str
        ``"paper"`` (1, 4, 7, 10e-3) and ``"labelling"`` (1, 2, 3, 4e-3).
    settings : tuple of str
    seed : int
        Of records, splits and batches.
    """

    protocol: str = "paper-code"
    repetitions: int = 10
    severities: tuple[str, ...] = tuple(SEVERITIES)
    settings: tuple[str, ...] = tuple(SETTINGS)
    seed: int = 0

    prefix: ClassVar[str] = "table2"
    key: ClassVar[tuple[str, ...]] = ("severities", "setting", "repetition")
    columns: ClassVar[tuple[str, ...]] = (*key, "method", *RESULT_COLUMNS)

    @property
    def file(self) -> str:
        """By protocol."""
        return f"{self.prefix}-{self.protocol}"

    def tasks(self) -> list[Task]:
        """Repetition by repetition: a run cut short is balanced."""
        return [
            (severities, setting, str(repetition))
            for repetition in range(1, self.repetitions + 1)
            for severities in self.severities
            for setting in self.settings
        ]

    def draw(self, task: Task) -> PumpData:
        """The task's rows."""
        severities, setting, repetition = task
        chosen = protocol(self.protocol)
        return draw_pump(chosen, self.seed, severities, setting, int(repetition))

    def run(self, task: Task) -> Rows:
        """One row per method."""
        sample = sample_pump(self.draw(task), (self.seed, _STREAM, int(task[-1]), 2))
        methods = industrial_methods(protocol(self.protocol))
        rows = evaluate_methods(sample, methods, self.seed)
        names = dict(zip(self.key, task, strict=True))
        return [{**names, **row} for row in rows]


@dataclass(frozen=True)
class JoiningStudy(IndustrialStudy):
    """Local, federated and central models of each plant, on the data of :class:`IndustrialStudy`.

    All see normalised features and have the radius 1/(10 N), N the rows they are trained on, and
    kappa = 0.5; nothing is tuned.
    """

    prefix: ClassVar[str] = "joining"
    columns: ClassVar[tuple[str, ...]] = (
        *(*IndustrialStudy.key, "plant", "leak", "n_train", "model", "f1_all", "f1_own", "seed"),
    )

    def run(self, task: Task) -> Rows:
        """Three rows per plant."""
        data = self.draw(task)
        whole = sample_pump(data, (self.seed,)).whole()
        clients, X_test, y_test = whole.normalised, whole.X_out_normalised, whole.y_out
        everywhere = {
            "federated": trajectories.bundle(clients, clients.radii(BETA), KAPPA).model,
            "central": trajectories.central(clients, 1.0 / (BETA * clients.y.size), KAPPA),
        }
        rows: Rows = []
        for g, (X, y) in enumerate(clients.parts()):
            leak = data.client_severities[g]
            own = (data.severity_test == 0.0) | (data.severity_test == leak)
            alone = stack([(X, y)], np.array([float(y.size)]), (0,))
            local = trajectories.central(alone, 1.0 / (BETA * y.size), KAPPA)
            for name, model in {"local": local, **everywhere}.items():
                rows.append(
                    {
                        **dict(zip(self.key, task, strict=True)),
                        "plant": g + 1,
                        "leak": leak,
                        "n_train": y.size,
                        "model": name,
                        "f1_all": float(score(model[None], X_test, y_test).f1[0]),
                        "f1_own": float(score(model[None], X_test[own], y_test[own]).f1[0]),
                        "seed": self.seed,
                    }
                )
        return rows
