"""``fdrsvm export``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fdrsvm.cli.commands import PATH, Command
from fdrsvm.cli.console import put_content, say, warn

if TYPE_CHECKING:
    from fdrsvm.model.linear_model import Label, LinearModel


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm export onnx run/model.safetensors --output leak.onnx
         fdrsvm export st run/model.safetensors --name LeakScore --alarm-on leak > leak.st
""",
)
@click.argument("kind", type=click.Choice(("onnx", "st", "json")))
@click.argument("model", type=PATH)
@click.option("--output", type=PATH, help="File to write; needed for onnx [standard output].")
@click.option("--name", default="FDRSVM_Score", show_default=True, help="Name of the block (st).")
@click.option(
    "--alarm-on",
    multiple=True,
    metavar="LABEL",
    help="A class that sets the alarm (st); may be repeated.",
)
def export(kind: str, model: Path, output: Path | None, name: str, alarm_on: Sequence[str]) -> int:
    """Write a model as ONNX, structured text or JSON.

    Structured text is that of IEC 61131-3, for a PLC. The scaling is part of the weights: an export
    takes readings as they are. What was wrong with the model in training is said on stderr.
    """
    from fdrsvm.core.files import write_atomically
    from fdrsvm.inspection.verdict import verdict
    from fdrsvm.model.export import to_json, to_onnx, to_structured_text
    from fdrsvm.model.model_file import load_model

    if kind == "onnx" and output is None:
        raise click.UsageError("onnx is binary: --output FILE is needed.")
    loaded = load_model(model)
    if kind == "onnx":
        content = to_onnx(loaded)
    elif kind == "json":
        content = to_json(loaded).encode()
    else:
        alarms = _labels(loaded, alarm_on) if alarm_on else None
        content = to_structured_text(loaded, name=name, alarm_on=alarms).encode()
    if output is None:
        put_content(content.decode())
    else:
        write_atomically(output, content)
        say(f"{kind}: {output}")
    said = verdict(loaded)
    if said is not None:
        warn(said)
    return 0


def _labels(model: LinearModel, texts: Sequence[str]) -> list[Label]:
    """Labels of the model from text; one that it does not know is left for it to refuse."""
    known = {str(label): label for label in model.classes}
    return [known.get(text, text) for text in texts]


COMMANDS = (export,)
