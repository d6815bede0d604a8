"""Commands of other packages: the entry points of the group ``fdrsvm.commands``.

Each names a click command. They are looked for only where none of our own commands has the name, or
where all are listed, so that ours do not start later because of them. One that cannot be loaded
says so when it is called, and the help still lists the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fdrsvm.cli.commands import Command, Group
from fdrsvm.errors import FDRSVMError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

ENTRY_POINTS = "fdrsvm.commands"
PACKAGES = {"reproduce": "fdr-svm-paper"}  # of this project, each in a package of its own


class Program(Group):
    """Our own commands, and after them those of other packages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of a first use; the others by name."""
        own = super().list_commands(ctx)
        return [*own, *sorted(_installed().names - set(own))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Of two commands with one name, ours."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for entry in _installed().select(name=cmd_name):
            try:
                command = entry.load()
            except (Exception, SystemExit) as error:  # whatever is wrong with it, it is not ours
                return _broken(entry, error)
            if isinstance(command, click.Command):
                return command
            return _broken(entry, TypeError(f"{entry.value} is not a click command"))
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Says what to install for a command that is documented and not here."""
        name = args[0]
        if name in PACKAGES and self.get_command(ctx, name) is None:
            package = PACKAGES[name]
            ctx.fail(f"{name} needs the package {package}; run pip install {package}.")
        return super().resolve_command(ctx, args)


def _installed() -> EntryPoints:
    from importlib.metadata import entry_points  # slow to import

    return entry_points(group=ENTRY_POINTS)


def _broken(entry: EntryPoint, error: BaseException) -> click.Command:
    """A command that only says why there is none."""
    package = entry.dist.name if entry.dist else entry.value

    def fail() -> None:
        raise FDRSVMError(
            f"{entry.name}: the package {package} cannot be loaded ({error}); install it again"
        ) from error

    return Command(
        entry.name,
        callback=fail,
        help=f"Cannot be loaded; install {package} again.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
