"""Which difference between the protocols moves which cell of table 1.

    OMP_NUM_THREADS=1 python benchmarks/protocol_parts.py

For central DR-SVM, ADMM, FedSGD, FedAvg and FedProx the protocols `paper-code` and `text` differ in
the scaling of features only (on UKM also in one row, and so in the splits; on Rice the baselines
see scaled features in both). Three methods have two differences; here each is changed
alone, from `paper-code` on, on the splits of the first ten repetitions of `fdrsvm reproduce
table1`. F-1 by repetition goes to benchmarks/results/protocol_parts.csv. Data: UCI's, from
FDRSVM_DATA or the loader's cache.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

from fdrsvm.datasets import UCI_NAMES, load_uci
from fdrsvm_paper.methods import ADMM_SC, FEDDRO, SM, uci_methods
from fdrsvm_paper.protocols import PROTOCOLS
from fdrsvm_paper.samples import split_uci
from fdrsvm_paper.tuning import evaluate_methods

RESULTS = Path(__file__).parent / "results" / "protocol_parts.csv"
REPETITIONS = 10
SEED, STREAM = 0, 1  # those of table 1
CODE = PROTOCOLS["paper-code"]
VARIANTS = {
    "paper-code": (CODE, (SM, ADMM_SC, FEDDRO)),
    "steps gamma/t": (replace(CODE, step_decay="1/t"), (SM,)),
    "exact worst case": (replace(CODE, worst_case="exact"), (SM,)),
    "tau = 18 rho throughout": (replace(CODE, safeguard_dropped=False), (ADMM_SC,)),
    "scaled features": (replace(CODE, all_normalised=True), (ADMM_SC, FEDDRO)),
    "[feddro]": (replace(CODE, published_feddro=False), (FEDDRO,)),
}


def main():
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "variant", "method", "repetition", "f1"])
        for name in UCI_NAMES:
            data = load_uci(name, rows="authors")
            samples = [
                split_uci(data, (SEED, STREAM, UCI_NAMES.index(name), r + 1))
                for r in range(REPETITIONS)
            ]
            for variant, (chosen, methods) in VARIANTS.items():
                for found in run(name, samples, chosen, methods):
                    writer.writerows([name, variant, *row] for row in found)
                    file.flush()
                    scores = [f1 for _, _, f1 in found]
                    print(name, variant, found[0][0], f"{np.mean(scores):.3f}", flush=True)


def run(name, samples, chosen, methods):
    """Rows of each method: its name, the repetition, F-1."""
    picked = [m for m in uci_methods(chosen, name) if m.name in methods]
    rows = [evaluate_methods(sample, picked, SEED) for sample in samples]
    return [
        [(method.name, r, row[k]["f1"]) for r, row in enumerate(rows, start=1)]
        for k, method in enumerate(picked)
    ]


if __name__ == "__main__":
    main()
