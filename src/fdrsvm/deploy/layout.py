"""The folders of a federation: one for the server, one for each plant, and what stands in them.

    FOLDER/server/          server.toml, certificates, the plants' public keys, the app
    FOLDER/plants/NAME/     client.toml, the authority's certificate, this plant's own keys

``fdrsvm federation init`` writes all of it in one place. A plant then gets its own folder and
nothing else. Reading them needs neither Flower nor NumPy.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fdrsvm.errors import InvalidInputError

CONNECTION = "federation"  # its name in Flower's own configuration


@dataclass(frozen=True)
class ServerFolder:
    """The server's folder: ``server.toml`` says where it listens."""

    path: Path
    host: str
    port: int
    address: str

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

    @property
    def public_keys(self) -> list[Path]:
        """Of the nodes that may connect."""
        return sorted((self.path / "nodes").glob("*.pub"))


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
