"""What all commands share: ``--debug``, numbers with limits, data files, NAME=VALUE."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fdrsvm.errors import FDRSVMError, InvalidInputError

if TYPE_CHECKING:
    from fdrsvm.data.rows import DataSettings

_Function = TypeVar("_Function", bound=Callable[..., Any])

SEED = click.IntRange(0, 2**32 - 1)
COUNT = click.IntRange(min=1)
PATH = click.Path(path_type=Path)


def _note_debug(context: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: ARG001
    if value:
        context.obj["debug"] = True


def _debug_option() -> click.Option:
    return click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        callback=_note_debug,
        help="Show where an error comes from.",
    )


class Command(click.Command):
    """A command that can be told to show tracebacks."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params.append(_debug_option())


class Group(click.Group):
    """Commands in the order in which they were added, each with ``--debug``."""

    command_class = Command

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params.append(_debug_option())

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order of a first use."""
        return list(self.commands)


def named_files(texts: Iterable[str], option: str) -> dict[str, Path]:
    """NAME=FILE, several times; names differ."""
    found: dict[str, Path] = {}
    for text in texts:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InvalidInputError(option, "must be NAME=FILE", f"it is {text!r}")
        if name in found:
            raise InvalidInputError(option, "names must differ", f"{name!r} is there twice")
        found[name] = Path(file)
    return found


def setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE, where the value is as in TOML, or else text."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInputError("--set", "must be NAME=VALUE", f"it is {text!r}")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


def data_options(function: _Function) -> _Function:
    """Which files, and what their columns are."""
    for option in reversed(
        (
            click.option(
                "--client",
                "named",
                multiple=True,
                metavar="NAME=FILE",
                help="A client and its file; may be repeated.",
            ),
            click.option(
                "--client-column",
                metavar="COLUMN",
                help="Column that says whose row it is, where files hold several clients.",
            ),
            click.option("--label", metavar="COLUMN", help="Column with the labels [label]."),
            click.option(
                "--ignore",
                multiple=True,
                metavar="COLUMN",
                help="A column that is no feature; may be repeated.",
            ),
        )
    ):
        function = option(function)
    return function


def fault_option(function: _Function) -> _Function:
    """Which class the scores of one class are of."""
    return click.option(
        "--fault",
        "--positive",
        "fault",
        metavar="LABEL",
        help="The class whose F1 counts, of two [the rarer one in training].",
    )(function)


def data_settings(
    data: Iterable[Path],
    named: Iterable[str],
    client_column: str | None,
    label: str | None,
    ignore: Iterable[str],
) -> DataSettings:
    """From what ``data_options`` got."""
    from fdrsvm.data.rows import DataSettings

    return DataSettings(
        paths=tuple(data),
        named=named_files(named, "--client"),
        label=label or DataSettings.label,
        client_column=client_column,
        ignore=tuple(ignore),
    )


def missing_extra(error: ModuleNotFoundError, what: str, extra: str) -> FDRSVMError:
    """What to install for a command that needs more than the core."""
    return FDRSVMError(f"{what} needs {error.name}: pip install 'fdr-svm[{extra}]'")
