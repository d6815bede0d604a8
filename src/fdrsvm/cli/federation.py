"""The commands for federations: ``federation``, ``server`` and ``client``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from fdrsvm.cli.commands import PATH, Command, Group, repeated_option, set_option, together
from fdrsvm.cli.console import say, warn
from fdrsvm.errors import InvalidInputError

_ABOVE_TOL, _ENDED_BY = 3, 128


@click.group(
    cls=Group, epilog="example: fdrsvm federation init fed --plant a=a.csv --plant b=b.csv"
)
def federation() -> None:
    """Set up a federation, try it on this machine, train.

    Federations of real processes on Flower, with TLS and a key for each plant.
    """


@federation.command(epilog="example: fdrsvm federation init fed --plant a=a.csv --plant b=b.csv")
@click.argument("folder", type=PATH)
@repeated_option(
    "--plant",
    "plants",
    required=True,
    metavar="NAME[=DATA]",
    what="A plant, and its data file if that is on this machine",
)
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="Where plants reach the server."
)
@click.option("--port", type=int, default=18000, show_default=True)
@click.option("--contract", type=PATH, help="Data contract for all plants.")
@click.option("--label", default="label", show_default=True, help="Column with the labels.")
def init(folder: Path, plants: Sequence[str], **options: Any) -> int:
    """Write certificates, keys, settings and a README per plant."""
    from fdrsvm.deploy.founding import init as write_folders

    named: dict[str, Path | None] = {}
    for text in plants:
        name, _, data = text.partition("=")
        if name in named:
            raise InvalidInputError("--plant", "names must differ", f"{name!r} is there twice")
        named[name] = Path(data) if data else None
    write_folders(folder, named, **options)
    say(f"{folder}: server and {len(named)} plants; see {folder}/server")
    return 0


@federation.command(epilog="example: fdrsvm federation up fed")
@click.argument("folder", type=PATH)
@click.option("--timeout", type=float, default=180.0, show_default=True, help="Seconds to wait.")
def up(folder: Path, timeout: float) -> int:
    """Start server and plants on this machine."""
    from fdrsvm.deploy.trial import up as start

    return _until_signal(partial(start, folder, timeout=timeout, tell=say))


@federation.command(epilog="example: fdrsvm federation status fed")
@click.argument("folder", type=PATH)
def status(folder: Path) -> int:
    """List processes, memory, and who is connected.

    The exit code is 1 unless all of them run.
    """
    from fdrsvm.deploy.trial import status as look

    processes = look(folder)
    if not processes:
        say("down")
        return 1
    say(f"{'name':20} {'pid':>8} {'state':8} {'MB':>6}  node")
    for one in processes:
        state = "running" if one.is_alive else "ended"
        say(f"{one.name:20} {one.pid:8} {state:8} {one.megabytes:6.0f}  {one.node}")
    return 0 if all(one.is_alive for one in processes) else 1


@federation.command(epilog="example: fdrsvm federation down fed")
@click.argument("folder", type=PATH)
def down(folder: Path) -> int:
    """End what `up` started, and nothing else."""
    from fdrsvm.deploy.trial import down as end

    killed = end(folder)
    say(f"down; had to be killed: {', '.join(killed)}" if killed else "down")
    return 0


_run_options = together(
    click.argument("folder", type=PATH),
    click.option("--output", type=PATH, required=True, help="Folder for the results."),
    set_option("A setting, such as tol=1e-5 or algorithm=admm"),
    click.option("--timeout", type=float, help="Stop after this many seconds."),
)


@federation.command(epilog="example: fdrsvm federation run fed --output run-1 --set tol=1e-5")
@_run_options
def run(folder: Path, **options: Any) -> int:
    """Train, on the server's machine.

    The exit code is 3 if the certified gap is above tol.
    """
    return _train_at(folder, resume=False, **options)


@federation.command(epilog="example: fdrsvm federation resume fed --output run-1")
@_run_options
def resume(folder: Path, **options: Any) -> int:
    """Go on from the last checkpoint of a run.

    The exit code is 3 if the certified gap is above tol.
    """
    return _train_at(folder, resume=True, **options)


@federation.command(epilog="example: fdrsvm federation simulate plants --output run-2")
@_run_options
def simulate(folder: Path, **options: Any) -> int:
    """Train with simulated plants, a CSV each.

    The folder is that of the CSV files; no `init` is needed. The exit code is 3 if the certified
    gap is above tol.
    """
    from fdrsvm.deploy.runs import simulate as train

    return _follow(partial(train, folder), **options)


def _train_at(folder: Path, *, resume: bool, **options: Any) -> int:
    from fdrsvm.deploy.layout import ServerFolder
    from fdrsvm.deploy.runs import run as train

    server = ServerFolder.read(folder / "server" if (folder / "server").is_dir() else folder)
    return _follow(partial(train, server, resume=resume), **options)


def _follow(
    train: Callable[..., Mapping[str, Any]],
    output: Path,
    parameters: Mapping[str, Any],
    timeout: float | None,
) -> int:
    """Train, and say how it ended; the exit code."""

    def follow() -> int:
        end = train(output, parameters, timeout=timeout, tell=say)
        say(
            f"{end['reason']} after {end['rounds']} rounds: worst-case risk "
            f"{end['objective']:.6g}, certified gap {end['gap']:.1e}"
        )
        say(f"Model: {output / 'model.safetensors'}")
        for text in end.get("warnings", ()):
            warn(text)
        return _ABOVE_TOL if end.get("is_above_tol") else 0

    return _until_signal(follow)


def _until_signal(command: Callable[[], int | None]) -> int:
    """Its exit code, or 0; that of shells if a signal ends it, when all it started has ended."""
    from fdrsvm.deploy.processes import Interrupted, signals_raised

    try:
        with signals_raised():
            return command() or 0
    except Interrupted as signal:
        warn(f"ended by {signal}, with all that this command started")
        return _ENDED_BY + signal.number


@click.command(cls=Command, epilog="example: fdrsvm server fed/server --open-control")
@click.argument("folder", type=PATH)
@click.option(
    "--open-control",
    is_flag=True,
    help="Listen for other machines; whoever reaches the port can run code as this user.",
)
def server(folder: Path, open_control: bool) -> int:
    """Run a federation's server until it is ended.

    FOLDER is the server's folder, from `federation init`.
    """
    from fdrsvm.deploy.engine import run_server
    from fdrsvm.deploy.layout import ServerFolder

    run_server(ServerFolder.read(folder), open_control=open_control)
    return 0


@click.command(cls=Command, epilog="example: fdrsvm client fed/plants/north")
@click.argument("folder", type=PATH)
@click.option(
    "--poll",
    type=float,
    default=0.25,
    show_default=True,
    help="Seconds between two looks for messages.",
)
def client(folder: Path, poll: float) -> int:
    """Connect a plant and stay.

    FOLDER is the plant's folder, from `federation init`.
    """
    from fdrsvm.deploy.engine import check_server, environment, supernode_arguments
    from fdrsvm.deploy.layout import ClientFolder

    own = ClientFolder.read(folder)
    os.environ.update(environment(own.flower_home))  # before NumPy and Flower read them
    from fdrsvm.deploy.client_side import check_plant, keep_ready
    from fdrsvm.deploy.plant import plant_from_config
    from fdrsvm.deploy.warm_client import run_warm

    plant = plant_from_config(own.node_config, {})
    say(check_plant(plant))
    waiting = check_server(own)
    if waiting:
        say(waiting)
    return run_warm(
        supernode_arguments(own),
        own.flower_home,
        poll=poll,
        find_reason=partial(check_server, own),  # why the server does not let it in is raised
        on_answer=partial(keep_ready, plant),
    )


COMMANDS = (federation, server, client)
