"""``fdrsvm alarm``."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.commands import (
    PATH,
    Command,
    fault_option,
    json_option,
    say_dropped,
    takes_data,
)
from fdrsvm.cli.console import number, say, say_json, say_words, show_table, warn
from fdrsvm.errors import InvalidInputError, MixedInFaultsWarning

if TYPE_CHECKING:
    from fdrsvm.data.rows import DataSettings, Rows
    from fdrsvm.decision.alarms import AlarmThreshold
    from fdrsvm.model.linear_model import LinearModel

_FILE, _FOLDER = "alarm.safetensors", "alarms"
_FILE_NAME = re.compile(r"\w[\w .-]*")


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm alarm run/model.safetensors healthy.csv --rate 0.01
         fdrsvm alarm run/model.safetensors plants/ --rate 0.05 --confidence 0.9
         fdrsvm predict run/alarm.safetensors new.csv
""",
)
@click.argument("model", type=PATH)
@takes_data
@click.option(
    "--rate",
    type=float,
    default=0.01,
    show_default=True,
    help="The highest share of healthy rows that may set off the alarm; 0.01 is 1 %.",
)
@click.option(
    "--confidence",
    type=float,
    help="How sure that is for the rows given, such as 0.9 [it holds on average over such rows].",
)
@click.option(
    "--trim",
    type=float,
    default=0.0,
    help="Share of the rows with the highest scores to leave out, since faults are mixed in [0].",
)
@fault_option
@click.option(
    "--output",
    type=PATH,
    help="File to write; with several clients a folder, with a file for each [beside the model: "
    f"{_FILE}, or {_FOLDER}].",
)
@json_option
def alarm(
    model: Path,
    data: DataSettings,
    rate: float,
    confidence: float | None,
    trim: float,
    fault: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Set the threshold of an alarm so that few healthy rows set it off.

    DATA are healthy rows that were not used in training, of each client its own. With a column of
    labels (--label) only healthy rows are used, and the faults among the others that are found are
    counted. What is written is the same model with another threshold: predict, evaluate and export
    take it. Of several clients each has a threshold and a file of its own.
    """
    from fdrsvm.data.rows import read_rows
    from fdrsvm.decision.alarms import AlarmThreshold, with_fault
    from fdrsvm.model.model_file import load_model

    loaded = with_fault(load_model(model), fault, "--fault")
    # Labels are read where there are some, and needed only if somebody named their column.
    is_needed = True if data.is_typed("label") else None
    known = data.as_trained(loaded.record)
    rows = read_rows(known, features=loaded.feature_names, with_labels=is_needed)
    say_dropped(rows)
    names = rows.client_names
    paths = _paths(output, model.parent, names)
    healthy, faulty = _split(loaded, rows)
    threshold = AlarmThreshold(rate, confidence, trim)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MixedInFaultsWarning)
        threshold.fit(loaded, healthy.X, healthy.clients if len(names) > 1 else None)
    found = {}  # of each client's faults how many set off the alarm, and how many there are
    if faulty is not None:
        for key in threshold.alarms_:
            X = faulty.X if key is None else faulty.of(key).X
            found[key] = (int(threshold.alarms(X, key).sum()) if len(X) else 0, len(X))
    _write(threshold, paths)
    if as_json:
        content = []
        for key, one in threshold.alarms_.items():
            counts = dict(zip(("n_found", "n_faults"), found.get(key, ()), strict=False))
            content.append({**one.to_record(), **counts, "file": str(paths[key])})
        say_json(content)
    else:
        _show(threshold, found, paths)
    for line in [*_like_training(loaded, rows), *(str(one.message) for one in caught)]:
        warn(line)


def _paths(output: Path | None, home: Path, names: list[str]) -> dict[str | None, Path]:
    """Where each client's model goes; None stands for the only one."""
    if len(names) == 1:
        path = output or home / _FILE
        if path.is_dir():
            path /= _FILE
        return {None: path}
    folder = output or home / _FOLDER
    if folder.suffix == ".safetensors" or (folder.exists() and not folder.is_dir()):
        raise InvalidInputError(
            "--output", f"must be a folder, for the {len(names)} clients", f"it is {folder}"
        )
    wrong = [name for name in names if not _FILE_NAME.fullmatch(name)]
    if wrong or len({name.casefold() for name in names}) < len(names):
        raise InvalidInputError(
            "clients",
            "must have names that files can have, all different: letters, digits, spaces, . _ -",
            f"one is {wrong[0]!r}" if wrong else "two differ in upper and lower case only",
        )
    return {name: folder / f"{name}.safetensors" for name in names}


def _split(model: LinearModel, rows: Rows) -> tuple[Rows, Rows | None]:
    """Healthy rows and faults by their labels; without labels all rows are healthy."""
    if rows.y is None:
        return rows, None
    is_fault = rows.codes(model.classes) == model.positive
    healthy = rows.where(~is_fault)
    missing = sorted(set(rows.client_names) - set(healthy.client_names))
    if missing:
        raise InvalidInputError(
            "data",
            "must hold healthy rows of every client; is the fault another class (--fault)?",
            f"client {missing[0]!r} has none",
        )
    return healthy, rows.where(is_fault)


def _like_training(model: LinearModel, rows: Rows) -> list[str]:
    """All that the file lets us ask: whether a client has as many rows as it had in training."""
    trained = model.record.get("data", {}).get("rows", {})
    counts = rows.counts()
    same = [name for name, count in counts.items() if trained.get(name) == count]
    if not same and trained and len(rows.X) == sum(trained.values()):
        same = list(counts)
    if not same:
        return []
    have = ", ".join(f"{name!r} has {counts[name]}" for name in same)
    return [
        f"as many rows here as in training ({have}): if they are the same, their scores are lower "
        "than those of new rows and there will be more false alarms than promised; give rows that "
        "were kept out of training"
    ]


def _write(threshold: AlarmThreshold, paths: dict[str | None, Path]) -> None:
    """All files or none."""
    from fdrsvm.core.files import write_together
    from fdrsvm.model.model_file import model_bytes

    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    write_together(*((path, model_bytes(threshold.model_for(key))) for key, path in paths.items()))


def _show(
    threshold: AlarmThreshold,
    found: dict[Any, tuple[int, int]],
    paths: dict[str | None, Path],
) -> None:
    headings = ["client"] if len(paths) > 1 else []
    headings += ["healthy rows", "left out"] if threshold.trim else ["healthy rows"]
    headings += ["threshold (fault score)", "false alarms expected per 1000 healthy rows"]
    headings += ["faults found"] if found else []
    lines = []
    for key, one in threshold.alarms_.items():
        line = [str(key), str(one.n_rows), str(one.n_left_out)]
        line = line[key is None : len(line) - (not threshold.trim)]
        line += [number(one.threshold), number(1000.0 * one.expected_rate)]
        if found:
            n_found, n_faults = found[key]
            share = f" ({n_found / n_faults:.0%})" if n_faults else ""
            line.append(f"{n_found} of {n_faults}{share}")
        lines.append(line)
    show_table(headings, lines, n_left=len(paths) > 1)
    say()
    for statement in threshold.statement_.splitlines():
        say_words(statement)
    say()
    for path in paths.values():
        say(f"Model: {path}")
    first = next(iter(paths.values()))
    say(f"Next:  fdrsvm predict {first} NEW.csv, or fdrsvm export st {first} --output alarm.st")
