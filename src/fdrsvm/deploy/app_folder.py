"""The folder that ``flwr run`` takes: settings and a pointer to the app in this package.

It holds no code: every machine runs the release of this package that is installed there, and
refuses to work with another.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fdrsvm import __version__
from fdrsvm.core.files import write_atomically
from fdrsvm.errors import InvalidInputError

_HEAD = """\
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
In a simulation `data="FOLDER"` names a folder with one CSV a client.
"""


def write_app_folder(folder: Path, config: Mapping[str, Any]) -> None:
    """Write the app, with ``config`` (see RunSettings.to_config) as its settings."""
    folder.mkdir(parents=True, exist_ok=True)
    # Flower wants numbers in a version.
    version = ".".join(__version__.split(".")[:3])
    lines = "".join(f"{key} = {toml_value(value)}\n" for key, value in config.items())
    text = _HEAD.format(version=version) + lines
    write_atomically(folder / "pyproject.toml", text.encode())
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


def toml_value(value: Any) -> str:
    """Text, a number or a flag as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value))
