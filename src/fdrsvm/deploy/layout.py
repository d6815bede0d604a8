"""The folders of a federation: one for the server, one for each plant, and what stands in them.

    FOLDER/server/          server.toml, certificates, the plants' public keys
    FOLDER/server/app/      what ``flwr run`` takes: settings, and a pointer to the app in this
                            package. It holds no code: every machine runs the release that is
                            installed there, and refuses to work with another.
    FOLDER/plants/NAME/     client.toml, the authority's certificate, this plant's own keys

``fdrsvm federation init`` writes all of it in one place. A plant then gets its own folder and
nothing else. Reading them needs neither Flower nor NumPy.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fdrsvm import __version__
from fdrsvm.core.files import write_atomically
from fdrsvm.errors import InvalidInputError

CONNECTION = "federation"  # its name in Flower's own configuration

_APP = """\
# A Flower app without code: server and clients run the fdr-svm that is installed on their machine.
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "fdrsvm-app"
version = "{version}"
description = "Federated distributionally robust SVM with a certified gap"
license = "BSD-3-Clause"
dependencies = ["fdr-svm[flower]"]

[tool.flwr.app]
publisher = "fdrsvm"

[tool.flwr.app.components]
serverapp = "fdrsvm.deploy.server_app:app"
clientapp = "fdrsvm.deploy.client_app:app"

# Every setting with its value; `flwr run . NAME --run-config 'tol=1e-5'` changes one for a run.
[tool.flwr.app.config]
"""

_README = """\
# FDR-SVM on Flower

    flwr run . NAME --run-config 'clients="plant-a,plant-b" output="run-1"'

NAME is a SuperLink connection of Flower's config.toml. Settings and defaults are in pyproject.toml.
In a simulation `data="FOLDER"` names a folder with one CSV per client.
"""


@dataclass(frozen=True)
class ServerFolder:
    """The server's folder: ``server.toml`` says where it listens.

    That of a simulation has no certificates, and listens on this machine only.
    """

    path: Path
    host: str
    port: int
    address: str
    is_simulated: bool = False

    @classmethod
    def read(cls, path: Path) -> ServerFolder:
        """From ``server.toml``, or an error that says what is wrong with it."""
        path = path.resolve()
        content = _read_toml(path / "server.toml", {"host": str, "port": int, "address": str})
        return cls(path, content["host"], content["port"], content["address"])

    @property
    def app(self) -> Path:
        """What ``flwr run`` takes."""
        return self.path / "app"

    @property
    def flower_home(self) -> Path:
        """Where Flower keeps its own files."""
        return self.path / "flower"

    def write_connection(self, **connection: str | bool) -> None:
        """Tell Flower's own commands how to reach the server."""
        self.flower_home.mkdir(parents=True, exist_ok=True)
        head = f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
        values = {name.replace("_", "-"): value for name, value in connection.items()}
        write_atomically(self.flower_home / "config.toml", head.encode() + to_toml(values))


@dataclass(frozen=True)
class ClientFolder:
    """A plant's folder: ``client.toml`` has the server's address and the plant's own settings."""

    path: Path
    server: str
    runtime_port: int
    node_config: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> ClientFolder:
        """From ``client.toml``; paths in it are relative to the folder."""
        path = path.resolve()
        content = _read_toml(
            path / "client.toml", {"server": str, "runtime-port": int, "client-id": str}
        )
        node = {k: v for k, v in content.items() if k not in ("server", "runtime-port")}
        for key in ("data", "contract", "state"):
            if node.get(key):
                node[key] = str((path / Path(node[key]).expanduser()).resolve())
        for key, value in node.items():
            if isinstance(value, str) and '"' in value:  # Flower cannot read it
                raise InvalidInputError(
                    f"{path / 'client.toml'}: {key}", "must have no quotes in it", f"it is {value}"
                )
        return cls(path, content["server"], content["runtime-port"], node)

    @property
    def client_id(self) -> str:
        """Its name in the federation."""
        return str(self.node_config["client-id"])

    @property
    def flower_home(self) -> Path:
        """Where Flower keeps its own files."""
        return self.path / "flower"


def write_app(folder: Path, config: Mapping[str, Any]) -> None:
    """Write an app, with ``config`` (see RunSettings.to_config) as its settings."""
    folder.mkdir(parents=True, exist_ok=True)
    version = ".".join(__version__.split(".")[:3])  # Flower wants numbers in it
    text = _APP.format(version=version).encode()
    write_atomically(folder / "pyproject.toml", text + to_toml(config))
    write_atomically(folder / "README.md", _README.encode())


def app_config(folder: Path) -> dict[str, Any]:
    """The settings that stand in an app, which anybody may have edited."""
    path = folder / "pyproject.toml"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return dict(content["tool"]["flwr"]["app"]["config"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            str(path), "must be the app that `fdrsvm federation init` wrote", str(error)
        ) from None


def _read_toml(path: Path, needed: Mapping[str, type]) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInputError(
            "folder", "must be one that `fdrsvm federation init` wrote", f"{path} is not there"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(str(path), "must be TOML", str(error)) from None
    for key, kind in needed.items():
        if type(content.get(key)) is not kind:
            raise InvalidInputError(
                f"{path}: {key}", f"must be of type {kind.__name__}", f"it is {content.get(key)!r}"
            )
    return content


def to_toml(values: Mapping[str, Any]) -> bytes:
    """One setting per line."""
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in values.items()).encode()


def toml_value(value: Any) -> str:
    """Text, a number or a flag as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value))
