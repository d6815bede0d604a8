"""``fdrsvm fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.commands import (
    PATH,
    Command,
    data_options,
    fault_option,
    named_files,
    setting,
)
from fdrsvm.cli.console import number, progress, say, show_table, warn
from fdrsvm.errors import InvalidInputError

if TYPE_CHECKING:
    from fdrsvm.estimators.training import FitSettings, Training

_ABOVE_TOL = 3
_DEGENERATE = 4


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm fit plants/ --set epsilon=0.01 --set norm=l2
         fdrsvm fit --client north=a.csv --client south=b.csv --contract contract.json
         fdrsvm fit all.csv --client-column plant --scaling standard
         fdrsvm fit --config run.toml --set tol=1e-6
""",
)
@click.argument("data", type=PATH, nargs=-1)
@data_options
@fault_option
@click.option("--config", type=PATH, help="TOML file; what is given here goes before it.")
@click.option("--contract", type=PATH, help="Data contract (JSON), checked first.")
@click.option("--clip", is_flag=True, help="Move values to the contract's limits, not refuse them.")
@click.option(
    "--scaling",
    metavar="none|minmax|limits|standard",
    help="minmax: range over all clients; limits: the contract's, so that nothing leaves a client "
    "for it; standard: mean and variance [minmax].",
)
@click.option("--estimator", metavar="FDRSVC|DRSVC|FedSVC", help="What to train [FDRSVC].")
@click.option(
    "--class-weight",
    type=click.Choice(["balanced"]),
    help="balanced: every class weighs the same, however rare it is; weights of your own are a "
    "parameter, class_weight.",
)
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the estimator, such as epsilon=0.01; may be repeated.",
)
@click.option(
    "--output",
    type=PATH,
    default=Path("run"),
    show_default=True,
    help="Folder for model.safetensors and certificate.json.",
)
def fit(output: Path, **options: Any) -> int:
    """Train a model across clients, with a certificate.

    DATA are CSV or Parquet files, each a client called after its file, or folders of such files.
    Every column but the labels is a feature. The exit code is 3 if the certified gap is above tol,
    4 if the model (almost) never predicts a class or ignores all features.
    """
    from fdrsvm.data.rows import read_rows
    from fdrsvm.estimators.training import train, write_training

    settings = _settings(**options)
    settings.check()
    if output.exists() and not output.is_dir():  # better now than after training
        raise InvalidInputError("--output", "must be a folder", f"{output} is a file")
    rows = read_rows(settings.data)
    with progress("training") as watch:
        training = train(settings, rows, watch)
    model, certificate = write_training(training, output)
    _show(training)
    say()
    say(f"Model:       {model}")
    say(f"Certificate: {certificate}")
    for text in training.warnings:
        warn(text)
    if training.verdict is not None:
        warn(training.verdict)
        return _DEGENERATE
    return _ABOVE_TOL if training.warnings else 0


def _settings(
    data: Sequence[Path],
    named: Sequence[str],
    client_column: str | None,
    label: str | None,
    ignore: Sequence[str],
    config: Path | None,
    contract: Path | None,
    clip: bool,
    scaling: str | None,
    estimator: str | None,
    fault: str | None,
    class_weight: str | None,
    parameters: Sequence[str],
) -> FitSettings:
    """The file's, and what was typed in its place."""
    from dataclasses import replace

    from fdrsvm.estimators.training import FitSettings, read_configuration, read_value

    settings = FitSettings() if config is None else read_configuration(config)
    given = {
        "paths": tuple(data),
        "named": named_files(named, "--client"),
        "client_column": client_column,
        "label": label,
        "ignore": tuple(ignore),
        "contract": contract,
        "clip": clip,
    }
    settings = settings.with_data(**{name: value for name, value in given.items() if value})
    if estimator is not None and estimator != settings.estimator:
        settings = replace(settings, estimator=estimator)
    settings = replace(
        settings, scaling=scaling or settings.scaling, clip=settings.clip or settings.data.clip
    )
    settings = replace(settings, fault=fault or settings.fault)
    typed = dict(map(setting, parameters))
    if class_weight is not None:
        typed["class_weight"] = class_weight
    return settings.with_params({name: read_value(value) for name, value in typed.items()})


def _show(training: Training) -> None:
    from fdrsvm.inspection.certifying import proved
    from fdrsvm.model.linear_model import POSITIVE

    model, rows = training.model, training.rows
    classes = ", ".join(map(str, model.classes))
    clients = "1 client" if len(rows.client_names) == 1 else f"{len(rows.client_names)} clients"
    say(
        f"{model.estimator}: {clients}, {len(rows.X)} rows, {model.n_features} features, "
        f"classes {classes}, scaling {model.record['scaling']['method']}"
    )
    if POSITIVE in model.record:
        say(f"F1 counts {model.record[POSITIVE]!r}; --fault chooses another")
    say()
    certificate = model.certificate
    facts = [
        [
            str(certificate["n_iter"]),
            number(one.objective, 6),
            number(one.lower_bound, 6),
            f"{one.gap:.1e}",
        ]
        for one in proved(model)
    ]
    names = [str(label) for label in model.classes] if len(facts) > 1 else [""]
    headings = ["rounds", _objective(model.estimator), "lower bound", "certified gap"]
    if len(facts) > 1:
        show_table(["class", *headings], [[n, *row] for n, row in zip(names, facts, strict=True)])
    else:
        show_table(headings, facts, n_left=0)
    per_client = certificate.get(
        "worst_case_risk_per_client", certificate.get("objective_per_client")
    )
    if per_client is not None:
        say()
        _show_clients(per_client, rows.counts(), model.estimator)


def _show_clients(per_client: Mapping[str, Any], counts: Mapping[str, int], estimator: str) -> None:
    from fdrsvm.core.plain_json import from_plain

    rows = []
    for name, risk in from_plain(dict(per_client)).items():
        values = [risk] if isinstance(risk, float) else list(risk)
        rows.append([str(name), str(counts[str(name)]), " ".join(number(v, 6) for v in values)])
    show_table(["client", "rows", _objective(estimator)], rows)


def _objective(estimator: str) -> str:
    return "objective" if estimator == "FedSVC" else "worst-case risk"


COMMANDS = (fit,)
