"""What commands share: ``--debug``, numbers with limits, options defined once, data, results."""

from __future__ import annotations

import contextlib
import functools
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fdrsvm.cli.console import put_content, say, warn
from fdrsvm.errors import InvalidInputError

if TYPE_CHECKING:
    from fdrsvm.data.rows import DataSettings, Rows
    from fdrsvm.model.linear_model import LinearModel

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

SEED = click.IntRange(0, 2**32 - 1)
COUNT = click.IntRange(min=1)
PATH = click.Path(path_type=Path)


class Command(click.Command):
    """A command with ``--debug``, which shows tracebacks."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)

        def note(context: click.Context, _: click.Parameter, value: bool) -> None:
            if value:  # once is enough, for a group or for its command
                context.obj["debug"] = True

        self.params.append(
            click.Option(
                ["--debug"],
                is_flag=True,
                expose_value=False,
                callback=note,
                help="Show where an error comes from.",
            )
        )


class Group(Command, click.Group):
    """Commands in the order in which they were added, each with ``--debug``."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order of a first use."""
        return list(self.commands)


def named_files(texts: Iterable[str], option: str) -> dict[str, Path]:
    """NAME=FILE, several times; names differ."""
    files: dict[str, Path] = {}
    for text in texts:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InvalidInputError(option, "must be NAME=FILE", f"it is {text!r}")
        if name in files:
            raise InvalidInputError(option, "names must differ", f"{name!r} is there twice")
        files[name] = Path(file)
    return files


_AS_IN_PYTHON = {"True": True, "False": False, "None": None}


def setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE, where the value is as in TOML or Python, or else text."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInputError("--set", "must be NAME=VALUE", f"it is {text!r}")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    with contextlib.suppress(ValueError):
        return name, float(value)  # .5, which TOML does not know
    return name, _AS_IN_PYTHON.get(value, value)


# Options of several commands

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
fault_option = click.option(
    "--fault",
    "--positive",
    "fault",
    metavar="LABEL",
    help="Of two classes, the one that is looked for [the rarer one in training].",
)


def repeated_option(*names: str, metavar: str, what: str, **others: Any) -> _Decorator:
    """An option that may be given several times."""
    said = f"{what}; may be repeated."
    return click.option(*names, multiple=True, metavar=metavar, help=said, **others)


def set_option(what: str) -> _Decorator:
    """``--set NAME=VALUE``, several times, as a dictionary ``parameters``."""

    def read(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
        return dict(map(setting, texts))

    return repeated_option("--set", "parameters", metavar="NAME=VALUE", what=what, callback=read)


def output_option(default: str, what: str) -> _Decorator:
    """``--output``, where to write."""
    return click.option("--output", type=PATH, default=Path(default), show_default=True, help=what)


def together(*options: _Decorator) -> _Decorator:
    """Several options as one, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


# Which files, and what their columns are: arguments ``data``, ``named`` and so on.
data_options = together(
    click.argument("data", type=PATH, nargs=-1),
    repeated_option("--client", "named", metavar="NAME=FILE", what="A client and its file"),
    click.option(
        "--client-column",
        metavar="COLUMN",
        help="Column that says whose row it is, where files hold several clients.",
    ),
    click.option("--label", metavar="COLUMN", help="Column with the labels [label]."),
    repeated_option("--ignore", metavar="COLUMN", what="A column that is not a feature"),
    click.option(
        "--missing",
        type=click.Choice(("refuse", "drop")),
        help="Rows that lack a value: an error, or left out and counted; for all features, where "
        "a contract speaks of each [refuse].",
    ),
)


def takes_data(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command what ``data_options`` got as one argument ``data``, a DataSettings."""

    @data_options
    @functools.wraps(function)
    def command(
        data: Iterable[Path],
        named: Iterable[str],
        client_column: str | None,
        label: str | None,
        ignore: Iterable[str],
        missing: str | None,
        **others: Any,
    ) -> Any:
        from fdrsvm.data.rows import DataSettings

        typed = {"label": label, "client_column": client_column, "missing": missing}
        chosen: dict[str, Any] = {name: value for name, value in typed.items() if value is not None}
        settings = DataSettings(
            paths=tuple(data),
            named=named_files(named, "--client"),
            ignore=tuple(ignore),
            typed=frozenset(chosen),
            **chosen,
        )
        return function(data=settings, **others)

    return command


# Data and results


def load_with_rows(model: Path, data: DataSettings) -> tuple[LinearModel, Rows | None]:
    """A model, and the rows with its features; None where no data were given.

    What was not typed, such as the label column, is as it was in training.
    """
    from fdrsvm.data.rows import read_rows
    from fdrsvm.model.model_file import load_model

    loaded = load_model(model)
    if not (data.paths or data.named):
        return loaded, None
    rows = read_rows(data.as_trained(loaded.record), features=loaded.feature_names)
    say_dropped(rows)
    return loaded, rows


def say_dropped(rows: Rows) -> None:
    """How many rows were left out, on stderr, if any were."""
    if rows.n_dropped:
        total = sum(rows.n_dropped.values())
        by_client = ", ".join(f"{name} {count}" for name, count in rows.n_dropped.items())
        warn(f"{total} of {total + len(rows.X)} rows lack a value and are left out: {by_client}")


def put_result(content: bytes, output: Path | None, said: str) -> None:
    """In a file, which is said, or on standard output."""
    from fdrsvm.core.files import write_atomically

    if output is None:
        put_content(content.decode())
    else:
        write_atomically(output, content)
        say(f"{said}: {output}")


def warn_of(model: LinearModel, rows: Rows | None = None) -> None:
    """What is wrong with a model, on these rows or in training, if anything is."""
    from fdrsvm.inspection.verdict import verdict

    fault = verdict(model, rows)
    if fault is not None:
        warn(fault)
