"""How much of table 2 is the draw of the pump's records.

    OMP_NUM_THREADS=1 python benchmarks/pump_pools.py

The paper draws 2700 records once and splits them again in each repetition, so its standard
deviations have no part from the records themselves. Here every repetition has records of its own;
all else is the protocol `paper-code`, with leaks 1, 2, 3, 4e-3. The spread over these is what
another draw, or another simulator of the same pump, may move a cell by. F-1 by repetition goes to
benchmarks/results/pump_pools.csv. ADMM is left out, to save an hour.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

from fdrsvm.datasets.pump import SETTINGS
from fdrsvm_paper.industrial_study import draw_pump
from fdrsvm_paper.methods import ADMM, BUNDLE, industrial_methods
from fdrsvm_paper.protocols import PROTOCOLS
from fdrsvm_paper.samples import sample_pump
from fdrsvm_paper.tuning import evaluate_methods

RESULTS = Path(__file__).parent / "results" / "pump_pools.csv"
REPETITIONS = 5
SEED = 0
OWN_RECORDS = replace(PROTOCOLS["paper-code"], one_pool=False)


def main():
    methods = [m for m in industrial_methods(OWN_RECORDS) if m.name not in (ADMM, BUNDLE)]
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["setting", "method", "repetition", "f1"])
        found = {}
        for repetition in range(1, REPETITIONS + 1):
            for setting in SETTINGS:
                data = draw_pump(OWN_RECORDS, SEED, "labelling", setting, repetition)
                for row in evaluate_methods(sample_pump(data, (SEED, repetition)), methods, SEED):
                    writer.writerow([setting, row["method"], repetition, row["f1"]])
                    found.setdefault((row["method"], setting), []).append(row["f1"])
                file.flush()
        for (method, setting), scores in found.items():
            print(f"{method}, {setting}: {np.mean(scores):.3f} ± {np.std(scores, ddof=1):.3f}")


if __name__ == "__main__":
    main()
