"""The commands for federations: ``federation``, ``server`` and ``client``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from fdrsvm.cli.commands import PATH, Command, Group, setting
from fdrsvm.cli.console import say, warn
from fdrsvm.errors import InvalidInputError

_ABOVE_TOL, _ENDED_BY = 3, 128
_Function = TypeVar("_Function", bound=Callable[..., Any])


@click.group(
    cls=Group,
    epilog="example: fdrsvm federation init fed --plant a=a.csv --plant b=b.csv",
)
def federation() -> None:
    """Set up a federation, try it on this machine, train.

    Federations of real processes on Flower, with TLS and a key for each plant.
    """


@federation.command(epilog="example: fdrsvm federation init fed --plant a=a.csv --plant b=b.csv")
@click.argument("folder", type=PATH)
@click.option(
    "--plant",
    "plants",
    multiple=True,
    required=True,
    metavar="NAME[=DATA]",
    help="A plant, and its data file if that is on this machine; may be repeated.",
)
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="Where plants reach the server."
)
@click.option("--port", type=int, default=18000, show_default=True)
@click.option("--contract", type=PATH, help="Data contract for all plants.")
@click.option("--label", default="label", show_default=True, help="Column with the labels.")
def init(
    folder: Path,
    plants: Sequence[str],
    address: str,
    port: int,
    contract: Path | None,
    label: str,
) -> int:
    """Write certificates, keys, settings and a README per plant."""
    from fdrsvm.deploy.founding import init as write_folders

    named: dict[str, Path | None] = {}
    for text in plants:
        name, _, data = text.partition("=")
        if name in named:
            raise InvalidInputError("--plant", "names must differ", f"{name!r} is there twice")
        named[name] = Path(data) if data else None
    write_folders(folder, named, address=address, port=port, contract=contract, label=label)
    say(f"{folder}: server and {len(named)} plants; see {folder}/server")
    return 0


@federation.command(epilog="example: fdrsvm federation up fed")
@click.argument("folder", type=PATH)
@click.option("--timeout", type=float, default=180.0, show_default=True, help="Seconds to wait.")
def up(folder: Path, timeout: float) -> int:
    """Start server and plants on this machine."""
    from fdrsvm.deploy.trial import up as start

    def bring_up() -> int:
        start(folder, timeout=timeout, tell=say)
        return 0

    return _until_signal(bring_up)


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


def _run_options(function: _Function) -> _Function:
    for option in reversed(
        (
            click.argument("folder", type=PATH),
            click.option("--output", type=PATH, required=True, help="Folder for the results."),
            click.option(
                "--set",
                "settings",
                multiple=True,
                metavar="NAME=VALUE",
                help="A setting, such as tol=1e-5 or algorithm=admm; may be repeated.",
            ),
            click.option("--timeout", type=float, help="Stop after this many seconds."),
        )
    ):
        function = option(function)
    return function


@federation.command(epilog="example: fdrsvm federation run fed --output run-1 --set tol=1e-5")
@_run_options
def run(folder: Path, output: Path, settings: Sequence[str], timeout: float | None) -> int:
    """Train, on the server's machine.

    The exit code is 3 if the certified gap is above tol.
    """
    return _train_at(folder, output, settings, timeout, resume=False)


@federation.command(epilog="example: fdrsvm federation resume fed --output run-1")
@_run_options
def resume(folder: Path, output: Path, settings: Sequence[str], timeout: float | None) -> int:
    """Go on from the last checkpoint of a run.

    The exit code is 3 if the certified gap is above tol.
    """
    return _train_at(folder, output, settings, timeout, resume=True)


@federation.command(epilog="example: fdrsvm federation simulate plants --output run-2")
@_run_options
def simulate(folder: Path, output: Path, settings: Sequence[str], timeout: float | None) -> int:
    """Train with simulated plants, a CSV each.

    The folder is that of the CSV files; no `init` is needed. The exit code is 3 if the certified
    gap is above tol.
    """
    from fdrsvm.deploy.runs import simulate as train

    return _follow(partial(train, folder), output, settings, timeout)


def _train_at(
    folder: Path, output: Path, settings: Sequence[str], timeout: float | None, *, resume: bool
) -> int:
    from fdrsvm.deploy.layout import ServerFolder
    from fdrsvm.deploy.runs import run as train

    server = ServerFolder.read(folder / "server" if (folder / "server").is_dir() else folder)
    return _follow(partial(train, server, resume=resume), output, settings, timeout)


def _follow(
    train: Callable[..., Mapping[str, Any]],
    output: Path,
    settings: Sequence[str],
    timeout: float | None,
) -> int:
    """Train, and say how it ended; the exit code."""
    given = dict(map(setting, settings))

    def follow() -> int:
        end = train(output, given, timeout=timeout, tell=say)
        say(
            f"{end['reason']} after {end['rounds']} rounds: worst-case risk "
            f"{end['objective']:.6g}, certified gap {end['gap']:.1e}"
        )
        say(f"Model: {output / 'model.safetensors'}")
        for text in end.get("warnings", ()):
            warn(text)
        return _ABOVE_TOL if end.get("is_above_tol") else 0

    return _until_signal(follow)


def _until_signal(command: Callable[[], int]) -> int:
    """Its exit code; that of shells if a signal ends it, after all that it started has ended."""
    from fdrsvm.deploy.processes import Interrupted, signals_raised

    try:
        with signals_raised():
            return command()
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
