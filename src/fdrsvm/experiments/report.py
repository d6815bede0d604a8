"""The demo's page: one file, no network, readable on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fdrsvm.experiments.demo import (
    EPSILON,
    KAPPA,
    N_PLANTS,
    N_ROUNDS,
    SENSOR_NOISE,
    WRONG_LABELS,
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
<p>{n_plants} plants train one linear classifier. {wrong:.0%} of their training labels are wrong.
Each of {n_rounds} rounds a plant sends its worst-case risk and a subgradient; its rows stay where
they are. The data are scikit-learn's breast cancer set.</p>
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
is the plain hinge loss. The robust model starts a little higher and rises more slowly: it gives up
some fit to the data as recorded for protection against what may be wrong with them.</p>
<h2>Training</h2>
{training}
<p>Each curve is what that model minimises: the plain hinge loss, or the mean of the plants'
worst-case risks. The subgradient method is simple and slow, and its curve has no end mark: it does
not know how far from the optimum it is.</p>
<footer>Made by <code>fdrsvm demo</code>, seed {seed}.</footer>
</body>
</html>
"""


def write_report(outcomes: Sequence[Outcome], folder: Path, seed: int) -> Path:
    """Write ``index.html`` into ``folder`` and return its path."""
    rows = "\n".join(
        f"<tr><td>{o.name}</td><td>{o.accuracy:.3f}</td><td>{o.accuracy_noisy:.3f}</td>"
        f"<td>{risk_at_training_radius(o):.3f}</td></tr>"
        for o in outcomes
    )
    page = _PAGE.format(
        n_plants=N_PLANTS,
        wrong=WRONG_LABELS,
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
