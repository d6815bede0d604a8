"""``fdrsvm fit``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.commands import (
    PATH,
    Command,
    data_options,
    fault_option,
    named_files,
    output_option,
    say_dropped,
    set_option,
)
from fdrsvm.cli.console import number, progress, say, say_lines, show_table, warn
from fdrsvm.errors import InvalidInputError

if TYPE_CHECKING:
    from fdrsvm.estimators.training import FitSettings, Training
    from fdrsvm.model.linear_model import LinearModel

_ABOVE_TOL = 3
_DEGENERATE = 4


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm fit plants/
         fdrsvm fit plants/ --goal false-alarms=1% --label-noise 0.1
         fdrsvm fit plants/ --no-tune --set epsilon=0.01 --set norm=l2
         fdrsvm fit --client north=a.csv --client south=b.csv --contract contract.json
         fdrsvm fit all.csv --client-column plant --scaling standard
         fdrsvm fit --config run.toml --set tol=1e-6
""",
)
@data_options
@fault_option
@click.option("--config", type=PATH, help="TOML file of settings; options typed here override it.")
@click.option("--contract", type=PATH, help="Data contract (JSON), checked first.")
@click.option(
    "--clip", is_flag=True, help="Move values to the contract's limits instead of refusing them."
)
@click.option(
    "--scaling",
    metavar="none|minmax|limits|standard",
    help="minmax: range over all clients; limits: those of the contract, for which nothing has "
    "to leave a client; standard: mean and variance [minmax].",
)
@click.option("--estimator", metavar="FDRSVC|DRSVC|FedSVC", help="What to train [FDRSVC].")
@click.option(
    "--features",
    metavar="linear|additive|additive-pairs|fourier",
    help="What the score is made of: a weighted sum of the sensors; one curve per sensor; curves, "
    "and a surface per pair of sensors; waves across all of them. By default fit tries all of "
    "them, surfaces of at most 10 sensors.",
)
@click.option(
    "--class-weight",
    type=click.Choice(["balanced"]),
    help="balanced: every class weighs the same, however rare it is; weights of your own are a "
    "parameter, class_weight.",
)
@click.option(
    "--goal",
    metavar="GOAL",
    help="What is tuned for: balanced (accuracy, each class weighs the same), f1 (of the faults), "
    "cost=20 (a missed fault costs as much as 20 false alarms), false-alarms=1% (most faults found "
    "at that rate), f1-macro, accuracy [balanced].",
)
@click.option(
    "--label-noise",
    type=float,
    metavar="SHARE",
    help="Share of the recorded labels that are wrong, if it is known, such as 0.1 [0].",
)
@click.option(
    "--probabilities",
    is_flag=True,
    help="Have the model tell the probability of a fault, from held-out rows; it is a column of "
    "predict and an output of the exports.",
)
@click.option(
    "--by-client",
    is_flag=True,
    help="Such probabilities, of its own for each client that has enough rows.",
)
@click.option("--no-tune", is_flag=True, help="Train once, with the settings given; cut at 0.")
@set_option("A parameter of the estimator, which is not tuned then, such as epsilon=0.01")
@output_option("run", "Folder for model.safetensors and certificate.json.")
def fit(output: Path, **options: Any) -> int:
    """Train a model across clients, with a certificate.

    DATA are CSV, TSV or Parquet files, each a client called after its file, or folders of such
    files; fdrsvm check says what is wrong with them. Every column but the labels is a feature.
    Radius, price of a wrong label, class weight and the threshold between the classes are chosen by
    cross-validation within the clients, for the goal; what is set is left as it is. The exit code
    is 3 if the certified gap is above tol, 4 if the model (almost) never predicts a class or
    ignores all features.
    """
    from fdrsvm.data.rows import read_rows
    from fdrsvm.estimators.training import train, write_training

    settings = _settings(**options)
    settings.check()
    if output.exists() and not output.is_dir():  # better now than after training
        raise InvalidInputError("--output", "must be a folder", f"{output} is a file")
    rows = read_rows(settings.data)
    say_dropped(rows)
    with progress("training") as watch:
        training = train(settings, rows, watch, watch.trials)
    model, certificate = write_training(training, output)
    _show(training)
    say()
    say(f"Model:       {model}")
    say(f"Certificate: {certificate}")
    for text in training.warnings:
        warn(text)
    if training.verdict is not None:
        warn(training.verdict)
    if training.has_given_up:
        return _DEGENERATE
    return _ABOVE_TOL if training.is_short else 0


def _settings(
    config: Path | None,
    data: Sequence[Path],
    named: Sequence[str],
    ignore: Sequence[str],
    scaling: str | None,
    estimator: str | None,
    fault: str | None,
    features: str | None,
    class_weight: str | None,
    goal: str | None,
    label_noise: float | None,
    probabilities: bool,
    by_client: bool,
    no_tune: bool,
    parameters: dict[str, Any],
    **given: Any,
) -> FitSettings:
    """The file's, and what was typed in its place."""
    from dataclasses import replace

    from fdrsvm.estimators.training import FitSettings, read_configuration, read_value

    settings = FitSettings() if config is None else read_configuration(config)
    given |= {"paths": tuple(data), "named": named_files(named, "--client")}
    given["ignore"] = tuple(ignore)
    settings = settings.with_data(**{name: value for name, value in given.items() if value})
    wanted = "by-client" if by_client else "shared" if probabilities else ""
    settings = replace(
        settings,
        estimator=estimator or settings.estimator,
        scaling=scaling or settings.scaling,
        clip=settings.clip or settings.data.clip,
        fault=fault or settings.fault,
        goal=goal or settings.goal,
        label_noise=settings.label_noise if label_noise is None else label_noise,
        tune=settings.tune and not no_tune,
        probabilities=wanted or settings.probabilities,
    )
    own = {"class_weight": class_weight, "features": features}
    typed = parameters | {name: value for name, value in own.items() if value is not None}
    return settings.with_params({name: read_value(value) for name, value in typed.items()})


def _tuning_lines(model: LinearModel) -> Iterator[str]:
    """What was chosen, and what it gives on rows that its training had not seen."""
    from fdrsvm.core.plain_json import from_plain
    from fdrsvm.model.linear_model import TUNING
    from fdrsvm.model.unscaling import Scaling

    found = model.record[TUNING]
    names = {
        "epsilon": "radius",
        "kappa": "price of a wrong label",
        "class_weight": "class weight",
        "features": "made of",
    }
    yield f"Tuned by {found['n_folds']}-fold cross-validation for {found['goal']}:"
    for name, value in from_plain(found["chosen"]).items():
        values = value.values() if isinstance(value, dict) else [value]
        texts = {number(one) if isinstance(one, float) else str(one or "none") for one in values}
        said = next(iter(texts))
        if len(texts) > 1:
            said = f"by client, {number(min(values))} to {number(max(values))}"
        unit = f", in {Scaling.of(model).unit}" if name in ("epsilon", "kappa") else ""
        yield f"  {names.get(name, name)}: {said}{unit}"
    by_map = found.get("score_by_map", {})
    if len(by_map) > 1:
        scores = ", ".join(f"{name} {number(score, 3)}" for name, score in by_map.items())
        yield f"  best score on held-out rows by what it is made of: {scores}"
    if model.positive is None:
        return
    fault, healthy = str(model.classes[model.positive]), str(model.classes[1 - model.positive])
    yield f"  threshold of the score: {number(model.threshold)} (above it {model.classes[1]!s})"
    counts = found["counts"]
    hits, alarms = counts[model.positive], counts[1 - model.positive]
    rate = 100.0 * alarms[model.positive] / max(sum(alarms), 1.0)
    yield (
        f"On held-out rows: {hits[model.positive]:.9g} of {sum(hits):.9g} {fault!r} found, "
        f"{alarms[model.positive]:.9g} false alarms ({rate:.2g} % of {healthy!r} rows)"
    )


def _show(training: Training) -> None:
    from fdrsvm.model.linear_model import POSITIVE, TUNING

    model, rows = training.model, training.rows
    classes = ", ".join(map(str, model.classes))
    clients = "1 client" if len(rows.client_names) == 1 else f"{len(rows.client_names)} clients"
    say(
        f"{model.estimator}: {clients}, {len(rows.X)} rows, {model.n_features} features, "
        f"classes {classes}, scaling {model.record['scaling']['method']}"
    )
    if POSITIVE in model.record:
        fault = str(model.record[POSITIVE])
        share = (rows.labels.astype(str) == fault).mean()
        told = f"{100.0 * share:.3g} % of the rows"
        say(f"what is looked for is {fault!r}, {told}; --fault chooses another")
    say()
    if TUNING in model.record:
        say_lines(_tuning_lines(model))
        say()
    show_proof(model, rows.counts())


def show_proof(model: LinearModel, counts: Mapping[str, int]) -> None:
    """Objective and bound of each class, then the objective of each client."""
    from fdrsvm.core.plain_json import from_plain
    from fdrsvm.inspection.certifying import proved

    certificate = model.certificate
    objective = "objective" if model.estimator == "FedSVC" else "worst-case risk"
    if model.features is not None:
        objective += " at most"  # of the sensors; of the map's features it is exact, [map]
    headings = ["rounds", objective, "lower bound", "certified gap"]
    facts = []
    for one in proved(model):
        bounds = [number(one.objective, 6), number(one.lower_bound, 6), f"{one.gap:.1e}"]
        facts.append([str(certificate["n_iter"]), *bounds])
    if len(facts) > 1:
        by_class = zip(map(str, model.classes), facts, strict=True)
        show_table(["class", *headings], [[label, *fact] for label, fact in by_class])
    else:
        show_table(headings, facts, n_left=0)
    per_client = certificate.get(
        "worst_case_risk_per_client", certificate.get("objective_per_client")
    )
    if per_client is not None:
        say()
        lines = []
        for name, risk in from_plain(dict(per_client)).items():
            values = [risk] if isinstance(risk, float) else list(risk)
            texts = " ".join(number(value, 6) for value in values)
            lines.append([str(name), str(counts[str(name)]), texts])
        show_table(["client", "rows", objective], lines)
