"""``fdrsvm audit-leak``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.commands import COUNT, PATH, Command, set_option, takes_data
from fdrsvm.cli.console import progress, say, say_words, show_table
from fdrsvm.errors import InvalidInputError, UnsupportedError

if TYPE_CHECKING:
    from fdrsvm.core.arrays import Array
    from fdrsvm.data.rows import DataSettings, Rows
    from fdrsvm.federated.rounds import Result

_SHARED = ("features", "epsilon", "kappa", "norm", "support", "loss", "fit_intercept")
_IN_UNIT_BOX = ("minmax", "limits")
_OF_TRAINING = {
    "rounds": "--rounds",
    "parameters": "--set",
    "features": "--features",
    "blur": "--blur",
}


@click.command(
    "audit-leak",
    cls=Command,
    epilog="""\b
example: fdrsvm audit-leak plants/ --set algorithm=subgradient --rounds 300
         fdrsvm audit-leak plants/ --blur 4 --resolution 1e-4
         fdrsvm audit-leak plants/ --features additive
         fdrsvm audit-leak --recording messages plants/
""",
)
@takes_data
@click.option(
    "--recording", type=PATH, help="Attack the recorded messages in this folder; train nothing."
)
@click.option("--rounds", type=COUNT, default=300, show_default=True, help="Rounds to train.")
@click.option(
    "--scaling",
    metavar="none|minmax|standard",
    help="As in training [minmax, with a recording none].",
)
@set_option("A parameter of FDRSVC, such as algorithm=subgradient")
@click.option(
    "--features",
    metavar="linear|additive|additive-pairs|fourier",
    help="What the model is linear in [linear]; what is recovered are sensors, whatever it is.",
)
@click.option(
    "--blur", type=click.IntRange(min=0), help="Rows that each client blurs in its cuts [0]."
)
@click.option(
    "--resolution",
    type=click.FloatRange(min=0.0),
    help="Grid to which clients round risks up and constants of cuts down [0, exact].",
)
@click.pass_context
def audit_leak(
    context: click.Context,
    data: DataSettings,
    recording: Path | None,
    rounds: int,
    scaling: str | None,
    parameters: dict[str, Any],
    features: str | None,
    blur: int | None,
    resolution: float | None,
) -> None:
    """Attack a run as a curious server could.

    How many rows do its messages give away? Trains on DATA in this process, records all messages
    and attacks them; or attacks a recording, where DATA, if given, says which claims are true.
    Nothing leaves this machine.

    "from cuts" counts the true rows that cuts alone give away, "recovered" those that cuts and
    risks give away together. "other half" is for an attacker who already has half of the rows: how
    many others there are, and how many of them it recovers ("its recovered", "its share").
    """
    from fdrsvm.data.rows import read_rows
    from fdrsvm.model.unscaling import learn_scaling
    from fdrsvm.privacy.leak_trial import audit_folder, leak_cells, run_and_audit

    method = scaling or ("minmax" if recording is None else "none")
    limits = (0.0, 1.0) if method in _IN_UNIT_BOX else None
    if recording is not None:
        for name, option in _OF_TRAINING.items():
            if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
                raise InvalidInputError(
                    option, "must not be given with --recording", "a recording is not trained again"
                )
        true = None
        if data.paths or data.named:
            rows = read_rows(data)
            true = _by_client(rows, learn_scaling(rows, method)[1])
        audit = audit_folder(recording, true, limits=limits, resolution=resolution or 0.0)
        show_table(*leak_cells(audit))
        return
    rows = read_rows(data)
    readings = _by_client(rows, learn_scaling(rows, method)[1])
    blur = _either(blur, parameters, "blur", 0)
    resolution = _either(resolution, parameters, "resolution", 0.0)
    parameters["features"] = _either(features, parameters, "features", "linear")
    algorithm, weights, ball = _task(parameters, rows, method)
    labels = sorted(set(rows.labels))
    if len(labels) != 2:
        raise UnsupportedError(f"audit-leak: is for two classes; there are {len(labels)}")
    signs = _by_client(rows, 2.0 * (rows.labels == labels[1]) - 1.0)
    with progress("training with all messages recorded, then attacking them"):
        trial = run_and_audit(
            {name: (readings[name], signs[name]) for name in readings},
            algorithm,
            rounds=rounds,
            limits=limits,
            client_weights=weights,
            blur=blur,
            resolution=resolution,
            **ball,
        )
    say(_outcome(trial.result, blur, resolution))
    say()
    say("If the server sees each client's messages:")
    show_table(*leak_cells(trial.of_clients, trial.half_known_of_clients))
    say()
    say("If it sees sums over all clients only (secure aggregation):")
    show_table(*leak_cells(trial.of_sums, trial.half_known_of_sums))
    if trial.of_clients.n_recovered:
        say()
        say_words(
            "What gives away fewer rows: sums over clients (secure aggregation), or --blur and "
            "--resolution, which cost certified gap."
        )


def _either(option: Any, given: dict[str, Any], name: str, usual: Any) -> Any:
    """An option, or the same as a parameter; not both."""
    if option is not None and name in given:
        raise InvalidInputError(name, "must be given once", f"--{name} and --set {name} are there")
    return given.pop(name, usual) if option is None else option


def _outcome(result: Result, blur: int, resolution: float) -> str:
    """What the run proves, next to what it gives away."""
    text = (
        f"{result.n_rounds} rounds with blur {blur} and resolution {resolution:g}: "
        f"objective {result.objective:.6g}, certified gap {result.gap:.2g}"
    )
    if resolution > 0.0 and result.objective > 0.0:
        share = min(2.0 * resolution / result.objective, result.gap)
        text += f", of which the resolution may be up to {share:.2g}"
    return text + "."


def _task(given: dict[str, Any], rows: Rows, scaling: str) -> tuple[Any, Any, dict[str, Any]]:
    """Method, client weights and ball, as FDRSVC reads them."""
    from fdrsvm.estimators.training import FitSettings, make_estimator

    FitSettings(params=given, scaling=scaling).check()
    estimator = make_estimator("FDRSVC", given, rows.labels)
    estimator._check_options()
    ball = {name: getattr(estimator, name) for name in _SHARED}
    return estimator._method(), estimator.client_weights, ball


def _by_client(rows: Rows, values: Any) -> dict[str, Array]:
    return {name: values[rows.clients == name] for name in rows.client_names}
