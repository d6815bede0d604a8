"""The commands for federations: arguments to calls, and printing."""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fdrsvm.errors import FDRSVMError, InvalidInputError


def add_commands(commands: Any) -> None:
    """`federation`, `server` and `client`."""
    federation = commands.add_parser(
        "federation",
        help="set up a federation, try it on this machine, train",
        description="Federations of real processes on Flower, with TLS and a key for each plant.",
        epilog="example: fdrsvm federation init fed --plant a=a.csv --plant b=b.csv",
    )
    verbs = federation.add_subparsers(required=True, metavar="verb")
    _add_init(verbs)
    up = _add(verbs, "up", "start server and plants on this machine", _up)
    up.add_argument("--timeout", type=float, default=180.0, help="seconds to wait (180)")
    _add(verbs, "status", "list processes, memory, and who is connected", _status)
    _add(verbs, "down", "end what `up` started, and nothing else", _down)
    for name, help_ in (
        ("run", "train, on the server's machine"),
        ("resume", "go on from the last checkpoint of a run"),
    ):
        run = _add(verbs, name, help_, _run)
        _add_run_options(run)
        run.set_defaults(resume=name == "resume")
    simulate = _add(verbs, "simulate", "train with simulated plants, a CSV each", _simulate)
    simulate.epilog = "the folder is that of the CSV files; no `init` is needed"
    _add_run_options(simulate)
    server = commands.add_parser("server", help="run a federation's server until it is ended")
    server.add_argument("folder", type=Path, help="the server's folder, from `federation init`")
    server.add_argument(
        "--open-control",
        action="store_true",
        help="listen for other machines; whoever reaches the port can run code as this user",
    )
    server.set_defaults(run=_server)
    client = commands.add_parser("client", help="connect a plant and stay")
    client.add_argument("folder", type=Path, help="the plant's folder, from `federation init`")
    client.add_argument(
        "--poll", type=float, default=0.25, help="seconds between two looks for messages (0.25)"
    )
    client.set_defaults(run=_client)


def _add(
    verbs: Any, name: str, help_: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=help_, description=help_)
    parser.add_argument("folder", type=Path, help="the federation's folder")
    parser.set_defaults(run=run)
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, required=True, help="folder for the results")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting, such as tol=1e-5 or algorithm=admm; may be repeated",
    )
    parser.add_argument("--timeout", type=float, default=None, help="stop after so many seconds")


def _add_init(verbs: Any) -> None:
    init = _add(verbs, "init", "write certificates, keys, settings and a README per plant", _init)
    init.add_argument(
        "--plant",
        action="append",
        required=True,
        metavar="NAME[=DATA]",
        help="a plant, and its data file if that is on this machine; may be repeated",
    )
    init.add_argument("--address", default="127.0.0.1", help="where plants reach the server")
    init.add_argument("--port", type=int, default=18000)
    init.add_argument("--contract", type=Path, default=None, help="data contract for all plants")
    init.add_argument("--label", default="label", help="column with the labels (label)")


def _init(arguments: argparse.Namespace) -> int:
    from fdrsvm.federation.founding import init

    plants = {}
    for text in arguments.plant:
        name, _, data = text.partition("=")
        if name in plants:
            raise InvalidInputError("--plant", "names must differ", f"{name!r} is there twice")
        plants[name] = Path(data) if data else None
    init(
        arguments.folder,
        plants,
        address=arguments.address,
        port=arguments.port,
        contract=arguments.contract,
        label=arguments.label,
    )
    print(f"{arguments.folder}: server and {len(plants)} plants; see {arguments.folder}/server")
    return 0


def _up(arguments: argparse.Namespace) -> int:
    from fdrsvm.federation.trial import up

    up(arguments.folder, timeout=arguments.timeout, tell=_say)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from fdrsvm.federation.trial import status

    found = status(arguments.folder)
    if not found:
        print("down")
        return 1
    print(f"{'name':20} {'pid':>8} {'state':8} {'MB':>6}  node")
    for one in found:
        state = "running" if one.is_alive else "ended"
        print(f"{one.name:20} {one.pid:8} {state:8} {one.megabytes:6.0f}  {one.node}")
    return 0 if all(one.is_alive for one in found) else 1


def _down(arguments: argparse.Namespace) -> int:
    from fdrsvm.federation.trial import down

    killed = down(arguments.folder)
    print(f"down; had to be killed: {', '.join(killed)}" if killed else "down")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from fdrsvm.federation.layout import ServerFolder
    from fdrsvm.federation.runs import run

    folder = arguments.folder
    server = ServerFolder.read(folder / "server" if (folder / "server").is_dir() else folder)
    end = run(
        server,
        arguments.output,
        dict(_setting(text) for text in arguments.set),
        resume=arguments.resume,
        timeout=arguments.timeout,
        tell=_say,
    )
    return _say_end(end, arguments.output)


def _simulate(arguments: argparse.Namespace) -> int:
    from fdrsvm.federation.simulation import simulate

    end = simulate(
        arguments.folder,
        arguments.output,
        dict(_setting(text) for text in arguments.set),
        timeout=arguments.timeout,
        tell=_say,
    )
    return _say_end(end, arguments.output)


def _say_end(end: Mapping[str, Any], output: Path) -> int:
    _say(
        f"{end['reason']} after {end['rounds']} rounds: worst-case risk {end['objective']:.6g}, "
        f"certified gap {end['gap']:.1e}"
    )
    _say(f"Model: {output / 'model.safetensors'}")
    return 0


def _server(arguments: argparse.Namespace) -> int:
    from fdrsvm.federation.layout import ServerFolder

    try:
        from fdrsvm.flower_app.server_process import run_server
    except ModuleNotFoundError as error:
        raise _no_flower(error) from None
    run_server(ServerFolder.read(arguments.folder), open_control=arguments.open_control)
    return 0


def _client(arguments: argparse.Namespace) -> int:
    from fdrsvm.federation.engine import check_server, environment, supernode_arguments
    from fdrsvm.federation.layout import ClientFolder

    client = ClientFolder.read(arguments.folder)
    os.environ.update(environment(client.flower_home))  # before NumPy and Flower read them
    try:
        from fdrsvm.flower_app.warm_client import check_plant, run_warm
    except ModuleNotFoundError as error:
        raise _no_flower(error) from None
    _say(check_plant(client))
    waiting = check_server(client)
    if waiting:
        _say(waiting)
    return run_warm(supernode_arguments(client), client.flower_home, poll=arguments.poll)


def _setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE, where the value is a number, true or false, or else text."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInputError("--set", "must be NAME=VALUE", f"it is {text!r}")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


def _say(line: str) -> None:
    print(line, flush=True)


def _no_flower(error: ModuleNotFoundError) -> FDRSVMError:
    return FDRSVMError(f"{error.name} is missing: pip install 'fdr-svm[flower]'")
