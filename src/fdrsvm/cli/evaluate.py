"""``fdrsvm evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.commands import PATH, Command, data_options, data_settings, fault_option
from fdrsvm.cli.console import progress, say_json, share, show_table, warn

if TYPE_CHECKING:
    from fdrsvm.inspection.scores import Score


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm evaluate run/model.safetensors test/
         fdrsvm evaluate run/model.safetensors test/ --compare train/
""",
)
@click.argument("model", type=PATH)
@click.argument("data", type=PATH, nargs=-1)
@data_options
@fault_option
@click.option(
    "--compare",
    type=PATH,
    multiple=True,
    metavar="DATA",
    help="Train local, federated and central models on these files or folders, with the model's "
    "parameters, and score them beside it; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def evaluate(
    model: Path,
    data: Sequence[Path],
    named: Sequence[str],
    client_column: str | None,
    label: str | None,
    ignore: Sequence[str],
    fault: str | None,
    compare: Sequence[Path],
    as_json: bool,
) -> int:
    """Score a model on data, over all rows and client by client.

    Accuracy, F1 (of the rarer class in training or that of --fault; of more than two classes the
    mean) and balanced accuracy. Rows of training tell how well the model fits, other rows how good
    it is. A class that is (almost) never predicted is named on stderr, with a remedy.
    """
    from fdrsvm.data.rows import read_rows
    from fdrsvm.inspection.scores import compare as compare_models
    from fdrsvm.inspection.scores import score
    from fdrsvm.inspection.verdict import verdict
    from fdrsvm.model.model_file import load_model

    loaded = load_model(model)
    settings = data_settings(data, named, client_column, label, ignore)
    rows = read_rows(settings, features=loaded.feature_names)
    scores = score(loaded, rows, fault)
    said = verdict(loaded, rows)
    if compare:
        others = replace(settings, paths=tuple(compare), named={})
        training = read_rows(others, features=loaded.feature_names)
        with progress("training local, federated and central models"):
            scores += compare_models(loaded, rows, training, fault)
    if said is not None:
        warn(said)
    if as_json:
        say_json([_content(one) for one in scores])
        return 0
    f1_of = scores[0].f1_of
    f1 = "mean F1" if f1_of is None else f"F1 of {f1_of!r}"
    show_table(
        ["model", "client", "rows", "accuracy", f1, "balanced accuracy"],
        [
            [
                one.model,
                one.client,
                str(one.n_rows),
                share(one.accuracy),
                share(one.f1),
                share(one.balanced_accuracy),
            ]
            for one in scores
        ],
        n_left=2,
    )
    return 0


def _content(one: Score) -> dict[str, Any]:
    """A score as JSON has it: null where a model could not be trained."""
    return {name: None if value != value else value for name, value in asdict(one).items()}


COMMANDS = (evaluate,)
