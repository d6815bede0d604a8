"""Accuracy of the private subgradient method against the privacy budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.datasets import load_uci, make_pump, partition
from fdrsvm.federated import InProcess, make_client, run_rounds
from fdrsvm.federated.differential import noise_multiplier_for
from fdrsvm.federated.methods import PrivateSubgradient
from fdrsvm_paper.drawing import GREY, Figure, as_svg, log_scale, style

BUDGETS = (0.1, 0.3, 1.0, 3.0, 10.0)
ROUNDS = (10, 30, 100)
N_CLIENTS = 4
DELTA = 1e-5
STEP_SIZE = 10.0  # the best of 1, 3, 10, 30 on seeds 0 to 2 ...
FIRST_SEED = 100  # ... so the figures are of others

_COLOURS = {"bcw": "#1f5f8b", "pump": "#b3541e"}
_TRAINING_SHARE = 0.7


class Split(NamedTuple):
    """Rows of at most length 1: of each client, and to test on."""

    parts: list[tuple[Array, Array]]
    X_test: Array
    y_test: Array


@dataclass(frozen=True)
class PrivacyFigure:
    """Mean accuracy over seeds at one budget; the budget is inf without noise."""

    data: str
    budget: float
    rounds: int
    rows_per_client: int
    accuracy: float
    spread: float  # standard deviation over seeds


@dataclass(frozen=True)
class Privacy:
    """All figures."""

    figures: tuple[PrivacyFigure, ...]

    @property
    def holds(self) -> bool:
        """The largest budget is worth more accuracy than the smallest, everywhere."""
        small, large = (
            {(one.data, one.rounds): one.accuracy for one in self.figures if one.budget == budget}
            for budget in (BUDGETS[0], BUDGETS[-1])
        )
        return all(large[case] > small[case] for case in small)


def split(data: str, seed: int) -> Split:
    """Features in [-1, 1]/sqrt(P), so that no row is longer than 1 by construction.

    Scaled by the range of all training rows, as agreed limits would; test rows are cut off there.
    """
    if data == "pump":
        pump = make_pump("nominal", random_state=seed)
        X, y = np.asarray(pump.X_normalised), pump.y.astype(float)
        X_test, y_test = np.asarray(pump.X_test_normalised), pump.y_test.astype(float)
        ids = np.asarray(pump.clients)
    else:
        loaded = load_uci(data)
        X_all, y_all = np.asarray(loaded.X, dtype=float), np.asarray(loaded.y, dtype=float)
        order = np.random.default_rng(seed).permutation(y_all.size)
        train, test = np.split(order, [int(_TRAINING_SHARE * y_all.size)])
        low, spread = X_all[train].min(axis=0), np.ptp(X_all[train], axis=0)
        X_all = (X_all - low) / np.where(spread > 0.0, spread, 1.0)
        X, y, X_test, y_test = X_all[train], y_all[train], X_all[test], y_all[test]
        ids = np.asarray(partition.stratified(y, N_CLIENTS, random_state=seed))
    X, X_test = (_short_rows(features) for features in (X, X_test))
    return Split([(X[ids == g], y[ids == g]) for g in np.unique(ids)], X_test, y_test)


def _short_rows(X: Array) -> Array:
    return np.asarray((2.0 * np.clip(X, 0.0, 1.0) - 1.0) / np.sqrt(X.shape[1]))


def measure(quick: bool = False) -> Privacy:
    """Ten seeds, all budgets; the quick version has two seeds of one data set and two."""
    if quick:
        budgets = (BUDGETS[0], BUDGETS[-1], np.inf)
        return Privacy(tuple(measure_privacy(["bcw"], budgets, ROUNDS[:1], n_seeds=2)))
    return Privacy(tuple(measure_privacy()))


def measure_privacy(
    data: Sequence[str] = ("bcw", "pump"),
    budgets: Sequence[float] = (*BUDGETS, np.inf),
    rounds: Sequence[int] = ROUNDS,
    *,
    n_seeds: int = 10,
) -> list[PrivacyFigure]:
    """Accuracy at each budget and number of rounds: budget by budget, all rounds of each."""
    figures = []
    for name in data:
        seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
        splits = [split(name, seed) for seed in seeds]
        for budget in budgets:
            for n_rounds in rounds:
                noise = _noise(budget, n_rounds)
                scores = [
                    _accuracy(one, noise, n_rounds, seed)
                    for one, seed in zip(splits, seeds, strict=True)
                ]
                size = int(np.mean([len(y) for _, y in splits[0].parts]))
                figures.append(
                    PrivacyFigure(
                        name, budget, n_rounds, size, float(np.mean(scores)), float(np.std(scores))
                    )
                )
    return figures


@lru_cache  # it takes seconds, and is the same for all data
def _noise(budget: float, rounds: int) -> float:
    return 0.0 if np.isinf(budget) else noise_multiplier_for(budget, DELTA, rounds)


def _accuracy(data: Split, noise_multiplier: float, rounds: int, seed: int) -> float:
    clients = [
        make_client(f"client {g}", X, y, norm="l2", fit_intercept=True)
        for g, (X, y) in enumerate(data.parts)
    ]
    method = PrivateSubgradient(
        noise_multiplier=noise_multiplier, radius=1.0, step_size=STEP_SIZE, random_state=seed
    )
    model = run_rounds(InProcess(clients), method, max_rounds=rounds, tol=0.0).model
    predicted = np.where(data.X_test @ model[:-1] + model[-1] > 0.0, 1.0, -1.0)
    return float(np.mean(predicted == data.y_test))


def to_markdown(result: Privacy) -> str:
    """A table: data and rounds down, budgets across."""
    figures = result.figures
    budgets = sorted({one.budget for one in figures})
    head = " | ".join("no noise" if np.isinf(b) else f"{b:g}" for b in budgets)
    lines = [f"| data | rows a client | rounds | {head} |", "|---|---|---|" + "---|" * len(budgets)]
    by_case: dict[tuple[str, int, int], dict[float, PrivacyFigure]] = {}
    for one in figures:
        by_case.setdefault((one.data, one.rows_per_client, one.rounds), {})[one.budget] = one
    for (data, size, rounds), found in by_case.items():
        cells = " | ".join(f"{found[b].accuracy:.3f} ± {found[b].spread:.3f}" for b in budgets)
        lines.append(f"| {data} | {size} | {rounds} | {cells} |")
    return "\n".join(lines) + "\n"


def draw_privacy(figures: Sequence[PrivacyFigure], rounds: int) -> str:
    """Accuracy against the budget at one number of rounds, as SVG; dashed without noise."""
    with style():
        figure = Figure(figsize=(5.0, 3.2), layout="constrained")
        axes = figure.add_subplot()
        for data in dict.fromkeys(one.data for one in figures):
            own = [one for one in figures if one.data == data and one.rounds == rounds]
            noisy = [one for one in own if np.isfinite(one.budget)]
            colour = _COLOURS.get(data, GREY)
            axes.errorbar(
                [one.budget for one in noisy],
                [one.accuracy for one in noisy],
                yerr=[one.spread for one in noisy],
                color=colour,
                marker="o",
                capsize=2,
                label=f"{data}, {own[0].rows_per_client} rows a client",
            )
            for one in own:
                if np.isinf(one.budget):
                    axes.axhline(one.accuracy, color=colour, linestyle="--", linewidth=1)
        log_scale(axes, "x")
        axes.set(xlabel="privacy budget epsilon (delta = 1e-5)", ylabel="accuracy", ylim=(0.4, 1))
        axes.legend(frameon=False, loc="lower right")
        return as_svg(figure, "privacy", "accuracy against the privacy budget")


def write_privacy_figure(figures: Sequence[PrivacyFigure], rounds: int, path: Path) -> None:
    """The picture as a file of its own."""
    path.write_text(draw_privacy(figures, rounds), encoding="utf-8")
