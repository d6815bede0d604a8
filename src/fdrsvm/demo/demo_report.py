"""The demo's page: one file, no network, readable on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fdrsvm.core.files import write_atomically
from fdrsvm.demo.demo_figures import draw_risk, draw_training
from fdrsvm.demo.four_plants import (
    EPSILON,
    FEDAVG_ROUNDS,
    KAPPA,
    SENSOR_NOISE,
    TOL,
    Data,
    Outcome,
    Plant,
    joining_pays,
    risk_at_training_radius,
)
from fdrsvm.federated.certificate import BOUND_REACH

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
td.name {{ white-space: nowrap; }}
@media (max-width: 30rem) {{ th, td {{ padding: .3rem .25rem; font-size: .85rem; }} }}
.scroll {{ overflow-x: auto; }}
svg {{ width: 100%; max-width: 36rem; height: auto; }}
footer {{ margin-top: 2.5rem; color: #666; font-size: .85rem; }}
</style>
</head>
<body>
<h1>Four plants, one model, no shared rows</h1>
<p>{n_plants} plants run the same triplex pump and train one leak detector from 14 features of the
outlet flow. Each has seen one size of leak, and {wrong:.0%} of their training labels are wrong. In
each round a plant answers with a few risks and slopes, {kilobytes:.1f} kB; its rows stay where they
are. The pump is simulated.</p>
<div class="scroll">
<table>
<thead><tr><th>model</th><th>accuracy</th><th>with noisy sensors</th><th>worst-case risk</th>
<th>rounds</th><th>certified gap</th></tr>
</thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<p>Accuracy is on a clean test set; noisy sensors add Gaussian noise of {noise:.0%} of each
feature's range to it. The worst-case risk is the largest mean hinge loss over all distributions
within radius {epsilon:g} of the test set, where a wrong label counts as a move of {kappa:g}:
exact, not sampled.</p>
<h2>Does joining pay?</h2>
<p>Each plant could also train the same robust model on its own rows and stay alone, or all could
hand over their rows and train one model on the lot. F-1 says how well leaks are found without false
alarms (1 is perfect), on all leaks of the test set and on the one that the plant has seen.</p>
<div class="scroll">
<table>
<thead>
<tr><th></th><th></th><th colspan="3">F-1 on all leaks</th><th colspan="3">on its own leak</th></tr>
<tr><th>plant</th><th>leak</th><th>alone</th><th>federated</th><th>pooled</th><th>alone</th>
<th>federated</th><th>pooled</th></tr>
</thead>
<tbody>
{plants}
</tbody>
</table>
</div>
<p>{joining}</p>
<h2>How much harm can an adversary do?</h2>
{risk}
<p>The further data may drift from what was measured, the larger the worst-case risk. At radius 0 it
is the plain hinge loss. The plain SVM was trained for the data as recorded and nothing else; a
little drift ruins it. FedAvg's ridge penalty guards against some of it without saying against what.
The robust model was trained for this very question.</p>
<h2>Training</h2>
{training}
<p>Solid: what that model minimises, the mean over the plants of the hinge loss or of the worst-case
risk, for the best model so far. Dashed: a proved lower bound, from the plants' answers alone. No
model whatever can lie below it, so training stops when the two are within {tol:.2%} of each other.
FedAvg is not shown: it minimises something else, in {fedavg_rounds} rounds, and the gap in the
table is that of its own objective. (For the plain SVM, which nothing keeps small, the bound is
proved for models up to {reach:.0f} times as large.)</p>
<footer>Made by <code>fdrsvm demo</code>, seed {seed}.</footer>
</body>
</html>
"""


def _plant_row(plant: Plant) -> str:
    scores = [*plant.all_leaks.values(), *plant.own_leak.values()]
    cells = "".join(f"<td>{score:.3f}</td>" for score in scores)
    return f"<tr><td class='name'>{plant.name}</td><td>{plant.leak:g}</td>{cells}</tr>"


def _bytes_up_a_round(outcome: Outcome) -> float:
    """What one plant sends in a round, envelope included, on average."""
    history = outcome.training.history
    sent = sum(record.bytes_up for record in history)
    return sent / len(history) / outcome.training.federation.n_clients


def write_report(data: Data, outcomes: Sequence[Outcome], folder: Path, seed: int) -> Path:
    """Write ``index.html`` into ``folder`` and return its path."""
    rows = "\n".join(
        f"<tr><td class='name'>{o.name}</td><td>{o.accuracy:.3f}</td>"
        f"<td>{o.accuracy_noisy:.3f}</td><td>{risk_at_training_radius(o):.3f}</td><td>{o.training.n_rounds}</td>"
        f"<td>{o.training.gap:.1e}</td></tr>"
        for o in outcomes
    )
    plants = [plant for outcome in outcomes for plant in outcome.plants]
    page = _PAGE.format(
        n_plants=len(data.plants),
        wrong=data.wrong_labels,
        kilobytes=_bytes_up_a_round(outcomes[-1]) / 1000.0,
        tol=TOL,
        fedavg_rounds=FEDAVG_ROUNDS,
        reach=BOUND_REACH,
        noise=SENSOR_NOISE,
        epsilon=EPSILON,
        kappa=KAPPA,
        rows=rows,
        plants="\n".join(map(_plant_row, plants)),
        joining=joining_pays(plants),
        risk=draw_risk(outcomes),
        training=draw_training(outcomes),
        seed=seed,
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    write_atomically(path, page.encode())
    return path
