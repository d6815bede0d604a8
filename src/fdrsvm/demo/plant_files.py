"""The demo's plants as files: what a plant would have, to try the command line on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.files import write_atomically
from fdrsvm.core.texts import csv_text
from fdrsvm.data.contract import Feature, FeatureContract
from fdrsvm.datasets.pump import make_pump
from fdrsvm.errors import InvalidInputError

LABELS = ("healthy", "leak")


def write_files(folder: Path, seed: int = 0) -> list[Path]:
    """Write ``train/plant-1.csv`` and so on, ``test/`` likewise, and ``contract.json``.

    Training labels are noisy as in the demo, test labels are right. A plant's test rows hold
    healthy ones of its own and the leak that it has seen.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInputError("--data", "must be a new or empty folder", f"{folder} is not")
    pump = make_pump("noisy-labels", random_state=seed)
    for kind in ("train", "test"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    # Limits that an engineer could have agreed on: round numbers, wider than the data.
    X = np.concatenate([pump.X, pump.X_test])
    low, high = X.min(axis=0), X.max(axis=0)
    step = 10.0 ** np.floor(np.log10(np.where(high > low, high - low, 1.0)))
    limits = [np.floor(low / step - 1.0) * step, np.ceil(high / step + 1.0) * step]
    features = tuple(
        Feature(name, low=float(f"{a:.6g}"), high=float(f"{b:.6g}"))
        for name, a, b in zip(pump.feature_names, *limits, strict=True)
    )
    written = [folder / "contract.json"]
    write_atomically(written[0], FeatureContract(features, LABELS).to_json().encode() + b"\n")
    for g, (X, y) in enumerate(pump.parts()):
        written.append(_write(folder / "train" / f"plant-{g + 1}.csv", pump.feature_names, X, y))
    for g, leak in enumerate(pump.client_severities):
        healthy = np.flatnonzero(pump.severity_test == 0.0)[g :: len(pump.client_severities)]
        rows = np.concatenate([healthy, np.flatnonzero(pump.severity_test == leak)])
        path = folder / "test" / f"plant-{g + 1}.csv"
        written.append(_write(path, pump.feature_names, pump.X_test[rows], pump.y_test[rows]))
    return written


def _write(path: Path, names: Sequence[str], X: Array, y: Array) -> Path:
    labelled = zip(X.tolist(), y, strict=True)
    rows = ([*row, LABELS[int(label > 0.0)]] for row, label in labelled)
    write_atomically(path, csv_text([[*names, "label"], *rows]).encode())
    return path
