"""``fdrsvm predict``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.commands import PATH, Command, put_result, repeated_option, takes_data, warn_of
from fdrsvm.cli.console import warn
from fdrsvm.errors import InvalidInputError

if TYPE_CHECKING:
    from fdrsvm.core.arrays import Array
    from fdrsvm.data.rows import DataSettings, Readings
    from fdrsvm.model.linear_model import LinearModel

_FAR = 0.1  # of a sensor's range; a little beyond the extremes of training is usual
_OVERFLOW = "the score is beyond what a computer's numbers hold"


@click.command(
    cls=Command,
    epilog="""\b
example: fdrsvm predict run/model.safetensors new.csv --output labels.csv
         fdrsvm predict run/model.safetensors new.csv --keep time --keep 'Product ID'
""",
)
@click.argument("model", type=PATH)
@takes_data
@repeated_option(
    "--keep", metavar="COLUMN", what="A column to copy as it is written, such as a time or an id"
)
@click.option("--output", type=PATH, help="CSV file to write [standard output].")
def predict(model: Path, data: DataSettings, keep: Sequence[str], output: Path | None) -> None:
    """Label rows with a model: one line per row, in the order of the data.

    Columns are client, row (its number in its file as a spreadsheet counts, with the header in row
    1), those of --keep, predicted, decision (of two classes, above the model's threshold for the
    second) or one decision for each class, and reason. Columns that the model does not know are
    left out; labels are not needed.

    A row that cannot be judged has nothing in predicted and decision, and a reason: a value is
    missing that training did not fill, is no number or infinite. How many these are is said on
    stderr. The exit code is 0 if a row was judged, and 1 if none was. A text that a spreadsheet
    would run as a formula has an apostrophe before it. What was wrong with the model in training is
    reported on stderr.
    """
    from fdrsvm.core.texts import csv_text
    from fdrsvm.data.rows import read_readings
    from fdrsvm.model.model_file import load_model

    loaded = load_model(model)
    settings = data.as_trained(loaded.record)
    read = read_readings(settings, features=loaded.feature_names, keep=keep)
    columns = _judged(loaded, read, keep)
    lines = zip(*columns.values(), strict=True)
    put_result(csv_text([list(columns), *lines]).encode(), output, f"{len(read.X)} rows")
    _warn_of_rows(loaded, columns["reason"], read)
    warn_of(loaded)


def _judged(model: LinearModel, read: Readings, keep: Sequence[str]) -> dict[str, Sequence[Any]]:
    """The columns of the answer, in order."""
    import numpy as np

    from fdrsvm.data.rows import Rows
    from fdrsvm.inspection.scores import check_fits
    from fdrsvm.model.linear_model import choose_labels

    check_fits(model, Rows(read.X, None, read.clients, ()))
    reasons = reasons_against(model, read)
    judged = reasons == ""
    scores = model.decision_function(read.X[judged])
    names = ["decision"]
    if scores.ndim == 2:
        names = [f"decision {label}" for label in model.classes]
    by_score = scores.reshape(-1, len(names)).T
    predicted = choose_labels(scores, np.array(model.classes), model.threshold)
    columns: dict[str, Sequence[Any]] = {
        "client": read.clients.tolist(),
        "row": read.row_numbers.tolist(),
        **read.texts,
        "predicted": _spread(predicted.tolist(), judged),
        **{
            name: _spread(column.tolist(), judged)
            for name, column in [
                *_probabilities(model, scores, read.clients[judged]).items(),
                *zip(names, by_score, strict=True),
            ]
        },
        "reason": reasons.tolist(),
    }
    if set(keep) & {"client", "row", "predicted", "reason", *names, *_headings(model).values()}:
        raise InvalidInputError(
            "--keep",
            "must not name columns called as one of the answer",
            f"one is called {', '.join(map(repr, keep))}; rename it in the file",
        )
    return columns


def reasons_against(model: LinearModel, read: Readings) -> Any:
    """Why rows cannot be judged, "" for those that can; if none can, that is an error."""
    import numpy as np

    reasons = np.array(read.reasons, dtype=object)
    with np.errstate(over="ignore", invalid="ignore"):
        raw = np.asarray(model.of_sensors(read.X) @ model.coef.T) + model.intercept
    reasons[(reasons == "") & ~np.isfinite(raw).all(axis=1)] = _OVERFLOW
    if (reasons != "").all():
        place = f"row {read.row_numbers[0]} of {str(read.clients[0])!r}"
        raise InvalidInputError(
            "data",
            "must have a row that can be judged",
            f"none of {len(reasons)} can; {place}: {reasons[0]}{_notes_of(read)}",
        )
    return reasons


def _headings(model: LinearModel) -> dict[int, str]:
    """By class, the columns of probabilities that a model gives: of two classes the fault's."""
    from fdrsvm.model.sigmoids import Probabilities

    if Probabilities.of(model) is None:
        return {}
    wanted = range(len(model.classes)) if model.positive is None else [model.positive]
    return {code: f"probability of {model.classes[code]}" for code in wanted}


def _probabilities(model: LinearModel, scores: Array, clients: Any) -> dict[str, Array]:
    """Columns of probabilities; a client with sigmoids of its own has those."""
    import numpy as np

    from fdrsvm.model.sigmoids import probabilities_of_scores

    headings = _headings(model)
    if not headings:
        return {}
    found = np.empty((len(clients), len(model.classes)))
    for client in set(clients.tolist()):
        mine = clients == client
        found[mine] = probabilities_of_scores(model, scores[mine], client)
    return {name: found[:, code] for code, name in headings.items()}


def _spread(values: Sequence[Any], judged: Any) -> list[Any]:
    """One value for each judged row in its place, and nothing for the others."""
    left = iter(values)
    return [next(left) if one else "" for one in judged.tolist()]


def _notes_of(read: Readings) -> str:
    return "".join(f"; {name!r}: {note}" for name, note in read.notes.items())


def _warn_of_rows(model: LinearModel, reasons: Sequence[str], read: Readings) -> None:
    """How many rows were not judged, and how many lie where training had none."""
    import numpy as np

    from fdrsvm.inspection.fitted import names_for

    count = sum(map(bool, reasons))
    if count:
        warn(
            f"{count} of {len(reasons)} rows could not be judged; column 'reason' says why: repair "
            "them, or train with a contract that fills missing values"
            f"{_notes_of(read)}"
        )
    if read.n_outside:
        warn(
            f"{read.n_outside} of {len(reasons)} rows have values beyond the contract's limits and "
            "were judged as they are; training saw no such row, so check the sensors"
        )
    elif model.features is not None:  # out there a curve that falls calls anything healthy
        judged = np.array(reasons) == ""
        shares = (read.X[judged] - model.features.low) / model.features.width
        far = (shares < -_FAR) | (shares > 1.0 + _FAR)
        names = ", ".join(map(repr, np.array(names_for(model))[far.any(axis=0)].tolist()))
        if names:
            warn(
                f"{far.any(axis=1).sum()} of {len(reasons)} rows are over a tenth of a sensor's "
                f"range beyond the range that the model bends in ({names}); training saw hardly "
                "any such row, and what is predicted there may be wrong: check the sensors"
            )
