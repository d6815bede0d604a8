"""The demo's page: one file, no network, readable on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fdrsvm.experiments.demo import (
    EPSILON,
    KAPPA,
    N_ROUNDS,
    SENSOR_NOISE,
    Data,
    Outcome,
    risk_at_training_radius,
)
from fdrsvm.experiments.figures import draw_risk, draw_training

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>FDR-SVM: four plants, one model</title>
<link rel="icon" href="data:,">
<style>
body {{ font: 16px/1.55 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; }}
h2 {{ font-size: 1.15rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: right; padding: .4rem .5rem; border-bottom: 1px solid #ddd; }}
th:first-child, td:first-child {{ text-align: left; }}
svg {{ width: 100%; height: auto; }}
footer {{ margin-top: 2.5rem; color: #666; font-size: .85rem; }}
</style>
</head>
<body>
<h1>Four plants, one model, no shared rows</h1>
<p>{n_plants} plants run the same triplex pump and train one leak detector from 14 features of the
outlet flow. Each has seen one size of leak, and {wrong:.0%} of their training labels are wrong. In
each of {n_rounds} rounds a plant sends its own solution, 15 numbers; its rows stay where they are.
The pump is simulated.</p>
<table>
<thead><tr><th>model</th><th>accuracy</th><th>with noisy sensors</th><th>worst-case risk</th></tr>
</thead>
<tbody>
{rows}
</tbody>
</table>
<p>Accuracy is on a clean test set; noisy sensors add Gaussian noise of {noise:.0%} of each
feature's range to it. The worst-case risk is the largest mean hinge loss over all distributions
within radius {epsilon:g} of the test set, where a wrong label counts as a move of {kappa:g}:
exact, not sampled.</p>
<h2>How much harm can an adversary do?</h2>
{risk}
<p>The further data may drift from what was measured, the larger the worst-case risk. At radius 0 it
is the plain hinge loss. The robust model rises more slowly: it was trained for what may be wrong
with the data, not only for the data as recorded.</p>
<h2>Training</h2>
{training}
<p>Each curve is what that model minimises, the mean over the plants of the hinge loss or of the
worst-case risk, after each round of the paper's ADMM. Every local solve is certified to a gap of
1e-8; the curve as a whole is not certified yet.</p>
<footer>Made by <code>fdrsvm demo</code>, seed {seed}.</footer>
</body>
</html>
"""


def write_report(data: Data, outcomes: Sequence[Outcome], folder: Path, seed: int) -> Path:
    """Write ``index.html`` into ``folder`` and return its path."""
    rows = "\n".join(
        f"<tr><td>{o.name}</td><td>{o.accuracy:.3f}</td><td>{o.accuracy_noisy:.3f}</td>"
        f"<td>{risk_at_training_radius(o):.3f}</td></tr>"
        for o in outcomes
    )
    page = _PAGE.format(
        n_plants=len(data.plants),
        wrong=data.wrong_labels,
        n_rounds=N_ROUNDS,
        noise=SENSOR_NOISE,
        epsilon=EPSILON,
        kappa=KAPPA,
        rows=rows,
        risk=draw_risk(outcomes),
        training=draw_training(outcomes),
        seed=seed,
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(page, encoding="utf-8")
    return path
