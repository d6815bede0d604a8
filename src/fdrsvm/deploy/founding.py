"""A new federation: certificates, keys, settings and a README for the server and each plant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fdrsvm.core.files import write_atomically
from fdrsvm.data.contract import FeatureContract
from fdrsvm.deploy.app_folder import toml_value, write_app_folder
from fdrsvm.deploy.keys import VALID_DAYS, Authority, node_key, write_private
from fdrsvm.deploy.layout import CONNECTION
from fdrsvm.deploy.settings import RunSettings, contract_config
from fdrsvm.errors import InvalidInputError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_ADDRESS = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def init(
    folder: Path,
    plants: Mapping[str, Path | None],
    *,
    address: str = "127.0.0.1",
    port: int = 18000,
    contract: Path | None = None,
    label: str = "label",
) -> None:
    """Write the folders of a new federation.

    Parameters
    ----------
    folder : Path
        Must not exist, or be empty.
    plants : mapping from name to data file or None
        None leaves a place to fill in: the plant knows where its data are.
    address, port
        Where plants reach the server; the certificate is for this address and loopback.
    contract : Path, optional
        A data contract, copied to each plant and to the server. If it limits every feature, runs
        hold the plants' answers against its limits, see ``feature-limit``.
    label : str
        Name of the column with the labels.
    """
    _check_plants(plants)
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInputError("folder", "must be new or empty", f"{folder} is not")
    if not 1 <= port <= 65_000:
        raise InvalidInputError("port", "must be from 1 to 65000", f"it is {port}")
    if not _ADDRESS.fullmatch(address):
        raise InvalidInputError(
            "address", "must be a host name in ASCII or an IPv4 address", f"it is {address!r}"
        )
    agreed = None if contract is None else _read_contract(contract)
    authority = Authority.new("FDR-SVM federation")
    server = folder / "server"
    (server / "nodes").mkdir(parents=True)
    _write_server(server, authority, address, port, list(plants), agreed)
    for number, (name, data) in enumerate(plants.items()):
        plant = folder / "plants" / name
        plant.mkdir(parents=True)
        public = _write_keys(plant, authority, name)
        write_atomically(server / "nodes" / f"{name}.pub", public)
        if agreed is not None:
            write_atomically(plant / "contract.json", agreed)
        client = {
            "server": f"{address}:{port}",
            "runtime-port": port + 1 + number,
            "client-id": name,
            "data": "data.csv" if data is None else str(data.expanduser().resolve()),
            "label": label,
            "contract": "" if contract is None else "contract.json",
            "state": "state",
        }
        write_atomically(plant / "client.toml", _CLIENT_HEAD.encode() + _toml(client))
        write_atomically(
            plant / "README.md",
            _PLANT_README.format(name=name, days=VALID_DAYS, **_at(address, port)).encode(),
        )


def _write_server(
    server: Path,
    authority: Authority,
    address: str,
    port: int,
    plants: Sequence[str],
    contract: bytes | None,
) -> None:
    hosts = list(dict.fromkeys([address, *_LOOPBACK]))
    certificate, key = authority.issue("FDR-SVM server", hosts)
    write_atomically(server / "ca.crt", authority.certificate_pem)
    write_atomically(server / "server.pem", certificate)
    write_private(server / "server.key", key)
    flag = "" if address in _LOOPBACK else " --open-control"
    listens = "127.0.0.1" if address in _LOOPBACK else "0.0.0.0"  # noqa: S104 - plants are outside
    settings = {"host": listens, "port": port, "address": f"{address}:{port}"}
    write_atomically(server / "server.toml", _toml(settings))
    run = {"clients": ",".join(plants), "output": str(server.resolve() / "runs" / "run")}
    if contract is not None:
        write_atomically(server / "contract.json", contract)
        run.update(contract_config(server.resolve() / "contract.json"))
    write_app_folder(server / "app", RunSettings.from_config(run).to_config())
    (server / "flower").mkdir()
    connection = {
        "address": f"127.0.0.1:{port}",
        "root-certificates": str(server.resolve() / "ca.crt"),
    }
    text = f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
    write_atomically(server / "flower" / "config.toml", text.encode() + _toml(connection))
    write_atomically(
        server / "README.md",
        _SERVER_README.format(days=VALID_DAYS, flag=flag, **_at(address, port)).encode(),
    )


def _write_keys(plant: Path, authority: Authority, name: str) -> bytes:
    """A plant's keys; its public one."""
    private, public = node_key()
    write_private(plant / "node.key", private)
    write_atomically(plant / "node.pub", public)
    certificate, key = authority.issue(f"{name} inside", _LOOPBACK)
    write_atomically(plant / "ca.crt", authority.certificate_pem)
    write_atomically(plant / "inside.pem", certificate)
    write_private(plant / "inside.key", key)
    return public


def _check_plants(plants: Mapping[str, Path | None]) -> None:
    if not plants:
        raise InvalidInputError("plants", "at least one must take part", "there is none")
    for name, data in plants.items():
        if not _NAME.fullmatch(name):
            raise InvalidInputError(
                "plants",
                "names must be letters, digits, '.', '_' and '-', at most 63",
                f"one is {name!r}",
            )
        if data is not None and not data.expanduser().is_file():
            raise InvalidInputError(f"data of {name!r}", "must be a file", f"{data} is not")


def _read_contract(path: Path) -> bytes:
    """A contract's file, if it is one."""
    try:
        content = path.expanduser().read_bytes()
    except OSError as error:
        raise InvalidInputError(
            "contract", "must be a file that can be read", f"{path}: {error.strerror}"
        ) from None
    FeatureContract.from_json(content)
    return content


def _toml(values: Mapping[str, Any]) -> bytes:
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in values.items()).encode()


def _at(address: str, port: int) -> dict[str, Any]:
    return {"address": address, "port": port}


_CLIENT_HEAD = """\
# This plant's own settings; nothing here leaves the plant. Paths are relative to this folder.
# Further ones: clip = true (move values to the contract's limits), epsilon and kappa (in place of
# the run's), least-in-sum = 4 (answers leave in masked sums over so many plants only).
"""

_PLANT_README = """\
# Plant {name}

This folder is for plant {name} alone: node.key and inside.key are secret. Whoever has node.key can
speak for the plant. The certificates last {days} days.

1. Install the release of fdr-svm that the server has: `pip install 'fdr-svm[flower]'`.
2. In client.toml, set `data` to the CSV (or Parquet) file: a column a feature, and the labels.
3. `fdrsvm client .` connects to {address}:{port} and stays; Ctrl-C ends it. Starting it again is
   always safe: it goes on where it was.

What leaves the plant: number of rows and columns, column names, the labels that occur, and in each
round models, risks and cuts (docs/federated.md). No row does. The plant runs only the code that is
installed here; what the server sends is data.

Rather than take a key from the server's side, make one here
(`ssh-keygen -t ecdsa -b 384 -N "" -f node.key`) and send node.key.pub, which goes into the server's
folder nodes/ as {name}.pub.
"""

_SERVER_README = """\
# Server

server.key is secret. The authority's own key was not kept: nobody can sign another certificate for
this federation. Its certificates last {days} days; after that, or for one more plant, `init` a new
one. Each folder in ../plants goes to its plant, over a safe channel, and is deleted here.

    fdrsvm server .{flag}                          # listens on port {port}; Ctrl-C ends it
    fdrsvm federation run . --output run-1   # in another terminal, once the plants are connected
    fdrsvm federation resume . --output run-1    # after a crash: goes on from the last checkpoint

Plants connect to {address}:{port}; that port must be open to them, and to nobody else: whoever
reaches it can run any code as the user who started the server (docs/federation.md). A plant with a
new key: replace its file in nodes/ and start the server again. A plant that leaves: take it out.
"""
