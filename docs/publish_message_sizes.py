"""Measures what a plant sends, in bytes, and writes it into docs/data-protection.md.

    python docs/publish_message_sizes.py

Real runs in one process. Every answer is encoded as it would be for the network, and counted.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fdrsvm import ConvergenceWarning, Feature, FeatureContract
from fdrsvm.core.codec import unpack
from fdrsvm.datasets import FEATURE_NAMES
from fdrsvm.federated import ADMM, Bundle, FedAvg, InProcess, Subgradient, make_client, run_rounds
from fdrsvm.federated.joining import Introduction, encode_introduction
from fdrsvm.federated.messages import VERSION, encode

PAGE = Path(__file__).parent / "data-protection.md"
MARKS = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
SHAPES = ((100, 14), (100, 30), (10_000, 30))  # rows of a plant, features
ROUNDS = 20
RELEASE = "1.2.3"  # an example, so that the sizes do not change with the release
METHODS = {
    '`"bundle"` (default)': Bundle(),
    '`Bundle(cuts="summed")`': Bundle(cuts="summed"),
    '`"admm"`, `"admm-sc"`': ADMM(rho=0.01),
    '`"subgradient"`': Subgradient(),
    "`FedSVC`, FedAvg": FedAvg(),
}


@dataclass
class Listening:
    """Clients in this process; keeps each answer as the bytes that a plant would send."""

    inner: InProcess
    sent: list[bytes] = field(default_factory=list)

    def join(self):
        """As the clients say."""
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        """The answers, and a copy of each kept."""
        answers = self.inner.exchange(broadcasts, deadline)
        self.sent += [encode(answer) for answer in answers]
        return answers


def made_plants(n_rows, n_features):
    """Two plants with made-up rows."""
    rng = np.random.default_rng(0)
    plants = []
    for name in ("north", "south"):
        X = rng.random((n_rows, n_features))
        y = np.where(X[:, 0] + 0.3 * rng.normal(size=n_rows) > 0.5, 1.0, -1.0)
        plants.append(make_client(name, X, y, epsilon=0.01, norm="l2", fit_intercept=True))
    return plants


def answers_of(method, n_rows, n_features):
    """What the two plants send, round by round, as bytes."""
    listening = Listening(InProcess(made_plants(n_rows, n_features)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of rounds is fixed
        run_rounds(listening, method, max_rounds=ROUNDS, tol=0.0)
    return listening.sent


def in_words(message):
    """Names and shapes of the arrays in an answer; there is nothing else in it."""
    arrays = unpack(message, "update", VERSION).arrays
    return ", ".join(
        f"{name} {' x '.join(map(str, array.shape)) or '1'}"
        for name, array in sorted(arrays.items())
    )


def rounds_table():
    """One row a method: the largest message of a run, by size of the data."""
    heads = [f"{rows:,} rows of {features}" for rows, features in SHAPES]
    lines = [
        "| method | arrays of round 11, 14 features | " + " | ".join(heads) + " |",
        "|---|---|" + "---|" * len(SHAPES),
    ]
    for name, method in METHODS.items():
        runs = [answers_of(method, *shape) for shape in SHAPES]
        sizes = " | ".join(f"{max(map(len, run)):,}" for run in runs)
        lines.append(f"| {name} | {in_words(runs[0][ROUNDS])} | {sizes} |")
    return "\n".join(lines) + "\n"


def joining_table():
    """Field by field, what a plant says when it joins, for the pump's columns."""
    plant = made_plants(100, len(FEATURE_NAMES))[0]
    features = tuple(Feature(name) for name in FEATURE_NAMES)
    contract = FeatureContract(features=features, labels=("healthy", "leak"))
    introduction = Introduction(
        profile=plant.profile,
        n_rows=100,
        labels=("healthy", "leak"),
        feature_names=FEATURE_NAMES,
        contract=contract.fingerprint,
        release=RELEASE,
    )
    profile = introduction.profile
    rows = {
        "name in the federation": profile.client_id,
        "rows, and different rows": f"{introduction.n_rows}, {profile.n_samples}",
        "columns": ", ".join(introduction.feature_names),
        "labels that occur": ", ".join(introduction.labels),
        "radius, its floor, norm, intercept": f"{profile.epsilon:g}, {profile.floor:g}, "
        f"{profile.norm}, {profile.fit_intercept}",
        "fingerprint of the contract": f"{introduction.contract[:16]}...",
        "release": introduction.release,
    }
    lines = ["| field | for example |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows.items()]
    size = len(encode_introduction(introduction))
    return "\n".join(lines) + f"\n\n{size:,} bytes in all, once a run.\n"


def page_with_tables(text):
    """The page, with its tables made again."""
    tables = {"rounds": rounds_table, "joining": joining_table}
    return MARKS.sub(lambda mark: f"{mark[1]}{tables[mark[2]]()}{mark[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
